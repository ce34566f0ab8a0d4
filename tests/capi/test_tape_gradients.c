/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of operators along a tape, in float64: those of one pass equal an executor's, and gradients of gradients
 * equal central differences of the first ones. */
#include <math.h>

#include "support/boundary.h"
#include "support/tapes.h"

#define MAX_INPUTS 6
#define MAX_SIZE 512

/* An operator on inputs of these shapes, "2,3 3,4". Values are from low to high, in steps that differ from input to
 * input, no two equal. Inputs whose position is in `fixed` ("1", "0 2") get no gradient and hold 0, 1, 2, 0, ... */
typedef struct operator_case {
  const char *op;
  const char *attrs; /* "key=value key=value" */
  const char *shapes;
  double low, high;
  int order; /* how often it can be differentiated */
  const char *fixed;
  const char *then; /* applied to the output; NULL: nothing */
} operator_case;

static const operator_case cases[] = {
    /* y = f(x) */
    {"negative", "", "2,3", -1, 1, 3, "", NULL},
    {"reciprocal", "", "2,3", 0.5, 2, 3, "", NULL},
    {"abs", "", "2,3", -1, 1, 3, "", NULL},
    {"_contrib_round_ste", "", "2,3", 0.1, 0.4, 1, "", NULL},
    {"square", "", "2,3", -1, 1, 3, "", NULL},
    {"sqrt", "", "2,3", 0.5, 2, 3, "", NULL},
    {"rsqrt", "", "2,3", 0.5, 2, 3, "", NULL},
    {"cbrt", "", "2,3", 0.5, 2, 3, "", NULL},
    {"rcbrt", "", "2,3", 0.5, 2, 3, "", NULL},
    {"exp", "", "2,3", -1, 1, 3, "", NULL},
    {"expm1", "", "2,3", -1, 1, 3, "", NULL},
    {"log", "", "2,3", 0.5, 2, 3, "", NULL},
    {"log10", "", "2,3", 0.5, 2, 3, "", NULL},
    {"log2", "", "2,3", 0.5, 2, 3, "", NULL},
    {"log1p", "", "2,3", -0.5, 2, 3, "", NULL},
    {"sin", "", "2,3", -1, 1, 3, "", NULL},
    {"cos", "", "2,3", -1, 1, 3, "", NULL},
    {"tan", "", "2,3", -1, 1, 3, "", NULL},
    {"arcsin", "", "2,3", -0.7, 0.7, 3, "", NULL},
    {"arccos", "", "2,3", -0.7, 0.7, 3, "", NULL},
    {"arctan", "", "2,3", -1, 1, 3, "", NULL},
    {"sinh", "", "2,3", -1, 1, 3, "", NULL},
    {"cosh", "", "2,3", -1, 1, 3, "", NULL},
    {"tanh", "", "2,3", -1, 1, 3, "", NULL},
    {"arcsinh", "", "2,3", -1, 1, 3, "", NULL},
    {"arccosh", "", "2,3", 1.5, 3, 3, "", NULL},
    {"arctanh", "", "2,3", -0.7, 0.7, 3, "", NULL},
    {"degrees", "", "2,3", -1, 1, 2, "", NULL},
    {"radians", "", "2,3", -1, 1, 2, "", NULL},
    {"erf", "", "2,3", -1, 1, 3, "", NULL},
    {"erfinv", "", "2,3", -0.7, 0.7, 3, "", NULL},
    {"relu", "", "2,3", -1, 1, 3, "", NULL},
    {"sigmoid", "", "2,3", -1, 1, 3, "", NULL},
    {"log_sigmoid", "", "2,3", -1, 1, 3, "", NULL},
    {"softsign", "", "2,3", -1, 1, 3, "", NULL},
    {"mish", "", "2,3", -1, 1, 3, "", NULL},
    {"clip", "a_min=-0.5 a_max=0.3", "2,3", -1, 1, 2, "", NULL},
    {"hard_sigmoid", "", "2,3", -4, 4, 2, "", NULL},
    {"smooth_l1", "scalar=1.5", "2,4", -1, 1, 3, "", NULL},
    {"Activation", "act_type=relu", "2,3", -1, 1, 2, "", NULL},
    {"Activation", "act_type=sigmoid", "2,3", -1, 1, 3, "", NULL},
    {"Activation", "act_type=tanh", "2,3", -1, 1, 3, "", NULL},
    {"Activation", "act_type=softrelu", "2,3", -1, 1, 3, "", NULL},
    {"Activation", "act_type=softsign", "2,3", -1, 1, 3, "", NULL},
    {"LeakyReLU", "act_type=leaky slope=0.1", "2,3", -1, 1, 2, "", NULL},
    {"LeakyReLU", "act_type=leaky slope=-0.1", "2,3", -1, 1, 2, "", NULL},
    {"LeakyReLU", "act_type=elu slope=0.7", "2,3", -1, 1, 3, "", NULL},
    {"LeakyReLU", "act_type=selu", "2,3", -1, 1, 3, "", NULL},
    {"LeakyReLU", "act_type=gelu", "2,3", -1, 1, 3, "", NULL},
    {"LeakyReLU", "act_type=prelu", "2,3,2 3", -1, 1, 3, "", NULL},
    {"LeakyReLU", "act_type=prelu", "2,3 1", -1, 1, 2, "", NULL},
    {"LeakyReLU", "act_type=prelu", "2,3 2,3", -1, 1, 2, "", NULL},
    /* y = f(x, scalar) */
    {"_plus_scalar", "scalar=0.7", "2,3", -1, 1, 2, "", NULL},
    {"_minus_scalar", "scalar=0.7", "2,3", -1, 1, 2, "", NULL},
    {"_rminus_scalar", "scalar=0.7", "2,3", -1, 1, 2, "", NULL},
    {"_mul_scalar", "scalar=0.7", "2,3", -1, 1, 3, "", NULL},
    {"_div_scalar", "scalar=0.7", "2,3", -1, 1, 2, "", NULL},
    {"_rdiv_scalar", "scalar=0.7", "2,3", 0.5, 2, 3, "", NULL},
    {"_mod_scalar", "scalar=0.7", "2,3", 0.1, 0.6, 2, "", NULL},
    {"_rmod_scalar", "scalar=1.7", "2,3", 0.6, 0.8, 2, "", NULL},
    {"_power_scalar", "scalar=2.5", "2,3", 0.5, 2, 3, "", NULL},
    {"_power_scalar", "scalar=2", "2,3", -1, 1, 3, "", NULL},
    {"_rpower_scalar", "scalar=1.7", "2,3", -1, 1, 3, "", NULL},
    {"_maximum_scalar", "scalar=0.1", "2,3", -1, 1, 2, "", NULL},
    {"_minimum_scalar", "scalar=0.1", "2,3", -1, 1, 2, "", NULL},
    {"_hypot_scalar", "scalar=0.7", "2,3", -1, 1, 3, "", NULL},
    /* y = f(a, b) */
    {"elemwise_add", "", "2,3 2,3", -1, 1, 2, "", NULL},
    {"elemwise_sub", "", "2,3 2,3", -1, 1, 2, "", NULL},
    {"elemwise_mul", "", "2,3 2,3", -1, 1, 3, "", NULL},
    {"elemwise_div", "", "2,3 2,3", 0.5, 2, 3, "", NULL},
    {"_mod", "", "2,3 2,3", 0.6, 0.9, 1, "", NULL},
    {"_power", "", "2,3 2,3", 0.5, 2, 3, "", NULL},
    {"_maximum", "", "2,3 2,3", -1, 1, 2, "", NULL},
    {"_minimum", "", "2,3 2,3", -1, 1, 2, "", NULL},
    {"_hypot", "", "2,3 2,3", 0.5, 1, 3, "", NULL},
    {"broadcast_add", "", "2,3 1,3", -1, 1, 2, "", NULL},
    {"broadcast_sub", "", "2,1 1,3", -1, 1, 2, "", NULL},
    {"broadcast_mul", "", "2,3 2,1", -1, 1, 3, "", NULL},
    {"broadcast_div", "", "2,3 1,1", 0.5, 2, 3, "", NULL},
    {"broadcast_power", "", "1,3 2,1", 0.5, 2, 3, "", NULL},
    {"broadcast_maximum", "", "2,3 1,3", -1, 1, 2, "", NULL},
    {"broadcast_minimum", "", "2,3 1,3", -1, 1, 2, "", NULL},
    {"broadcast_hypot", "", "2,3 1,3", 0.5, 1, 3, "", NULL},
    {"where", "", "2,3 2,3 2,3", -1, 1, 2, "0", NULL},
    {"add_n", "num_args=3", "2,3 2,3 2,3", -1, 1, 2, "", NULL},
    {"_copy", "", "2,3", -1, 1, 2, "", NULL},
    {"Cast", "dtype=float64", "2,3", -1, 1, 2, "", NULL},
    /* reductions and their opposites */
    {"sum", "", "2,3", -1, 1, 2, "", NULL},
    {"sum", "axis=1 keepdims=1", "2,3,2", -1, 1, 2, "", NULL},
    {"mean", "axis=(0,2)", "2,3,2", -1, 1, 2, "", NULL},
    {"prod", "axis=1", "2,3", 0.5, 2, 3, "", NULL},
    {"nansum", "axis=0", "2,3", -1, 1, 2, "", NULL},
    {"nanprod", "axis=1", "2,3", 0.5, 2, 3, "", NULL},
    {"max", "axis=1", "2,3", -1, 1, 2, "", NULL},
    {"min", "", "2,3", -1, 1, 2, "", NULL},
    {"_square_sum", "axis=1", "2,3", -1, 1, 3, "", NULL},
    {"norm", "", "2,3", 0.5, 2, 3, "", NULL},
    {"norm", "ord=1 axis=1", "2,3", 0.5, 2, 2, "", NULL},
    {"norm", "ord=2 axis=0 keepdims=1", "2,3", 0.5, 2, 3, "", NULL},
    {"broadcast_to", "shape=(2,3)", "1,3", -1, 1, 2, "", NULL},
    {"broadcast_axis", "axis=1 size=3", "2,1", -1, 1, 2, "", NULL},
    {"broadcast_like", "", "2,1 2,3", -1, 1, 2, "1", NULL},
    {"_np_cumsum", "axis=1", "2,3", -1, 1, 2, "", NULL},
    {"moments", "axes=(0,)", "3,2", -1, 1, 3, "", NULL},
    {"moments", "axes=(0,2) keepdims=1", "2,3,2", -1, 1, 2, "", NULL},
    /* products */
    {"dot", "", "2,3 3,4", -1, 1, 3, "", NULL},
    {"dot", "transpose_a=1", "3,2 3,4", -1, 1, 2, "", NULL},
    {"dot", "transpose_b=1", "2,3 4,3", -1, 1, 2, "", NULL},
    {"dot", "", "2,2,3 3,2,2", -1, 1, 2, "", NULL},
    {"batch_dot", "", "2,2,3 2,3,4", -1, 1, 3, "", NULL},
    {"batch_dot", "transpose_a=1 transpose_b=1", "2,3,2 2,4,3", -1, 1, 2, "", NULL},
    {"FullyConnected", "num_hidden=4", "2,3 4,3 4", -1, 1, 3, "", NULL},
    {"FullyConnected", "num_hidden=4 no_bias=1 flatten=0", "2,2,3 4,3", -1, 1, 2, "", NULL},
    {"Convolution", "kernel=(3,3) num_filter=2 pad=(1,1)", "2,2,4,4 2,2,3,3 2", -1, 1, 3, "", NULL},
    {"Convolution", "kernel=(2,2) num_filter=2 no_bias=1 stride=(2,2)", "1,2,4,4 2,2,2,2", -1, 1, 2, "", NULL},
    {"Deconvolution", "kernel=(2,2) num_filter=2 no_bias=0 stride=(2,2)", "1,2,2,2 2,2,2,2 2", -1, 1, 2, "", NULL},
    {"_linalg_gemm", "alpha=0.5 beta=2", "2,3 3,4 2,4", -1, 1, 2, "", NULL},
    {"_linalg_gemm2", "transpose_b=1 alpha=0.5", "2,3 4,3", -1, 1, 3, "", NULL},
    {"_linalg_trmm", "", "3,3 3,2", -1, 1, 2, "", NULL},
    {"_linalg_syrk", "alpha=0.5", "2,3", -1, 1, 3, "", NULL},
    {"_linalg_syrk", "transpose=1", "2,3", -1, 1, 2, "", NULL},
    {"_linalg_trsm", "", "2,2 2,3", 1, 2, 2, "", NULL},
    {"_linalg_trsm", "transpose=1 alpha=0.5", "2,2 2,3", 1, 2, 2, "", NULL},
    {"_linalg_trsm", "rightside=1 lower=0", "2,2 3,2", 1, 2, 2, "", NULL},
    {"_linalg_trsm", "rightside=1 transpose=1", "2,2 3,2", 1, 2, 2, "", NULL},
    {"_linalg_syrk", "", "2,3", 0.5, 2, 2, "", "_linalg_potrf"},
    {"_linalg_potri", "", "2,2", 1, 2, 2, "", NULL},
    {"_linalg_inverse", "", "2,2,2", 1, 3, 2, "", NULL},
    {"_linalg_det", "", "2,2,2", 1, 3, 3, "", NULL},
    {"_linalg_slogdet", "", "3,3", -1, 3, 2, "", NULL},
    {"_linalg_sumlogdiag", "", "3,3", 1, 2, 2, "", NULL},
    {"_linalg_extractdiag", "offset=1", "3,3", -1, 1, 2, "", NULL},
    {"_linalg_makediag", "", "2,3", -1, 1, 2, "", NULL},
    {"_linalg_extracttrian", "", "2,3,3", -1, 1, 2, "", NULL},
    {"_linalg_maketrian", "lower=0", "6", -1, 1, 2, "", NULL},
    /* shapes and places */
    {"Reshape", "shape=(3,2)", "2,3", -1, 1, 2, "", NULL},
    {"Flatten", "", "2,3,2", -1, 1, 2, "", NULL},
    {"expand_dims", "axis=1", "2,3", -1, 1, 2, "", NULL},
    {"squeeze", "", "2,1,3", -1, 1, 2, "", NULL},
    {"reshape_like", "", "2,3 3,2", -1, 1, 2, "1", NULL},
    {"transpose", "axes=(1,0,2)", "2,3,2", -1, 1, 2, "", NULL},
    {"SwapAxis", "dim1=0 dim2=1", "2,3", -1, 1, 2, "", NULL},
    {"slice", "begin=(0,1) end=(2,3)", "2,4", -1, 1, 2, "", NULL},
    {"slice_axis", "axis=1 begin=1 end=3", "2,4", -1, 1, 2, "", NULL},
    {"slice_like", "", "3,4 2,3", -1, 1, 2, "1", NULL},
    {"Concat", "dim=1 num_args=2", "2,3 2,2", -1, 1, 2, "", NULL},
    {"stack", "axis=1 num_args=2", "2,3 2,3", -1, 1, 2, "", NULL},
    {"SliceChannel", "num_outputs=2 axis=1", "2,4", -1, 1, 2, "", NULL},
    {"_split_v2", "indices=(0,1) axis=1", "2,4", -1, 1, 2, "", NULL},
    {"reverse", "axis=1", "2,3", -1, 1, 2, "", NULL},
    {"tile", "reps=(2,2)", "2,3", -1, 1, 2, "", NULL},
    {"repeat", "repeats=2 axis=1", "2,3", -1, 1, 2, "", NULL},
    {"Pad", "mode=edge pad_width=(0,0,0,0,1,1,1,1)", "1,1,2,2", -1, 1, 2, "", NULL},
    {"Pad", "mode=constant constant_value=3 pad_width=(0,0,0,0,1,0,0,1)", "1,1,2,2", -1, 1, 2, "", NULL},
    {"Crop", "num_args=1 h_w=(2,1) offset=(1,1)", "1,2,3,3", -1, 1, 2, "", NULL},
    {"_slice_assign", "begin=(0,1) end=(2,3)", "2,4 2,2", -1, 1, 2, "", NULL},
    {"_slice_assign_scalar", "begin=(0,1) end=(2,3) scalar=3", "2,4", -1, 1, 2, "", NULL},
    {"space_to_depth", "block_size=2", "1,1,2,2", -1, 1, 2, "", NULL},
    {"depth_to_space", "block_size=2", "1,4,1,1", -1, 1, 2, "", NULL},
    {"diag", "", "3,3", -1, 1, 2, "", NULL},
    {"take", "", "3,2 4", -1, 1, 2, "1", NULL},
    {"pick", "axis=1", "3,3 3", -1, 1, 2, "1", NULL},
    {"gather_nd", "", "3,3 2,3", -1, 1, 2, "1", NULL},
    {"Embedding", "input_dim=3 output_dim=2 dtype=float64", "4 3,2", -1, 1, 2, "0", NULL},
    {"im2col", "kernel=(2,2)", "1,1,3,3", -1, 1, 2, "", NULL},
    {"col2im", "output_size=(3,3) kernel=(2,2)", "1,4,4", -1, 1, 2, "", NULL},
    {"_contrib_div_sqrt_dim", "", "2,3", -1, 1, 2, "", NULL},
    {"topk", "k=2 ret_typ=value", "2,4", -1, 1, 2, "", NULL},
    {"topk", "k=2 ret_typ=both axis=1 is_ascend=1 dtype=float64", "2,4,3", -1, 1, 2, "", NULL},
    {"topk", "k=5 ret_typ=value axis=None", "2,4", -1, 1, 2, "", NULL},
    {"sort", "", "2,4", -1, 1, 2, "", NULL},
    {"sort", "axis=0 is_ascend=0", "4,3", -1, 1, 2, "", NULL},
    /* losses, recurrent and image layers: without a graph, or with one that differences cannot check */
    {"SoftmaxOutput", "", "3,4 3", -1, 1, 1, "1", NULL},
    {"LinearRegressionOutput", "", "3,2 3,2", -1, 1, 1, "1", NULL},
    {"LogisticRegressionOutput", "", "3,2 3,2", -1, 1, 1, "1", NULL},
    {"MAERegressionOutput", "", "3,2 3,2", -1, 1, 1, "1", NULL},
    {"SVMOutput", "", "3,4 3", -1, 1, 1, "1", NULL},
    {"MakeLoss", "grad_scale=2", "3,2", -1, 1, 1, "", NULL},
    {"make_loss", "", "3,2", -1, 1, 1, "", NULL},
    {"CTCLoss", "", "4,2,3 2,2", -1, 1, 1, "1", NULL},
    {"RNN", "state_size=2 num_layers=1 mode=rnn_tanh", "3,2,2 12 1,2,2", -1, 1, 1, "", NULL},
    {"RNN", "state_size=2 num_layers=1 mode=lstm state_outputs=1", "3,2,2 48 1,2,2 1,2,2", -1, 1, 1, "", NULL},
    {"SequenceReverse", "", "3,2,2", -1, 1, 2, "", NULL},
    {"SequenceMask", "use_sequence_length=1 value=3", "3,2,2 2", -1, 1, 2, "1", NULL},
    {"SequenceLast", "", "3,2,2", -1, 1, 2, "", NULL},
    {"SequenceReverse", "use_sequence_length=1", "3,2,2 2", -1, 1, 2, "1", NULL},
    {"UpSampling", "scale=2 sample_type=nearest num_args=1", "1,2,2,2", -1, 1, 2, "", NULL},
    {"UpSampling", "scale=2 sample_type=nearest num_args=2", "1,2,2,2 1,1,4,4", -1, 1, 2, "", NULL},
    {"UpSampling", "scale=2 sample_type=nearest num_args=2 multi_input_mode=sum", "1,2,2,2 1,2,4,4", -1, 1, 2, "",
     NULL},
    {"UpSampling", "scale=2 sample_type=bilinear num_filter=2 num_args=2", "1,2,2,2 2,1,4,4", -1, 1, 2, "", NULL},
    {"Correlation", "kernel_size=1 max_displacement=1 pad_size=1", "1,2,3,3 1,2,3,3", -1, 1, 1, "", NULL},
    {"BilinearSampler", "", "1,1,3,3 1,2,2,2", -1, 1, 1, "", NULL},
    {"GridGenerator", "transform_type=affine target_shape=(2,2)", "1,6", -1, 1, 1, "", NULL},
    {"SpatialTransformer", "target_shape=(2,2) transform_type=affine sampler_type=bilinear", "1,1,3,3 1,6", -1, 1, 1,
     "", NULL},
    {"_contrib_BilinearResize2D", "height=3 width=3", "1,1,2,2", -1, 1, 1, "", NULL},
    {"_contrib_quadratic", "a=1 b=2 c=3", "2,3", -1, 1, 3, "", NULL},
    {"_contrib_gradientmultiplier", "scalar=0.5", "2,3", -1, 1, 1, "", NULL},
    {"scatter_nd", "shape=(3,2)", "3,2 1,3", -1, 1, 2, "1", NULL},
    {"amp_multicast", "num_outputs=2", "2,3 2,3", -1, 1, 1, "", NULL},
    {"_contrib_interleaved_matmul_selfatt_qk", "heads=2", "2,1,12", -1, 1, 1, "", NULL},
    /* layers */
    {"softmax", "", "2,3", -1, 1, 3, "", NULL},
    {"softmax", "axis=0 temperature=0.7", "3,2", -1, 1, 2, "", NULL},
    {"log_softmax", "", "2,3", -1, 1, 3, "", NULL},
    {"log_softmax", "axis=1 temperature=1.3", "2,3,2", -1, 1, 2, "", NULL},
    {"softmin", "", "2,3", -1, 1, 2, "", NULL},
    {"SoftmaxActivation", "mode=channel", "2,3,2", -1, 1, 2, "", NULL},
    {"SoftmaxActivation", "mode=instance", "2,3,2", -1, 1, 2, "", NULL},
    {"softmax_cross_entropy", "", "2,3 2", -1, 1, 3, "1", NULL},
    {"Pooling", "kernel=(2,2) pool_type=max stride=(2,2)", "2,2,4,4", -1, 1, 2, "", NULL},
    {"Pooling", "kernel=(3,2) pool_type=max pad=(1,1)", "1,2,4,3", -1, 1, 2, "", NULL},
    {"Pooling", "global_pool=1 pool_type=max", "2,2,3,3", -1, 1, 2, "", NULL},
    {"Pooling", "kernel=(2,) pool_type=max", "1,2,4", -1, 1, 2, "", NULL},
    {"Pooling", "kernel=(2,) pool_type=max stride=(2,) pad=(1,)", "2,1,4", -1, 1, 2, "", NULL},
    {"Pooling", "kernel=(2,2) pool_type=sum pad=(1,0)", "1,2,4,4", -1, 1, 2, "", NULL},
    {"Pooling", "kernel=(2,2) pool_type=avg stride=(2,2)", "1,2,4,4", -1, 1, 2, "", NULL},
    {"LayerNorm", "", "2,4 4 4", -1, 1, 3, "", NULL},
    {"GroupNorm", "num_groups=2", "2,4,2 2 2", -1, 1, 2, "", NULL},
    {"InstanceNorm", "", "2,2,4 2 2", -1, 1, 2, "", NULL},
    {"L2Normalization", "", "2,4", 0.5, 1, 2, "", NULL},
    {"BatchNorm", "fix_gamma=0", "3,2,2 2 2 2 2", -1, 1, 3, "3 4", NULL},
    {"BatchNorm", "axis=-1 eps=0.01", "4,2 2 2 2 2", -1, 1, 2, "3 4", NULL},
    {"BatchNorm", "use_global_stats=1 fix_gamma=0", "3,2 2 2 2 2", -1, 1, 3, "3 4", NULL},
    {"BatchNorm", "use_global_stats=1 axis=-1", "3,2 2 2 2 2", -1, 1, 2, "3 4", NULL},
    {"LRN", "nsize=3", "1,4,2,2", -1, 1, 3, "", NULL},
    {"LRN", "nsize=4 alpha=0.5 beta=0.6 knorm=1.5", "2,5,1,2", -1, 1, 2, "", NULL},
    {"gamma", "", "2,3", 0.5, 2, 3, "", NULL},
    {"gammaln", "", "2,3", 0.5, 2, 3, "", NULL},
    {"gammaln", "", "2,3", -2.6, -2.4, 2, "", NULL},
    {"_contrib_AdaptiveAvgPooling2D", "output_size=(2,2)", "1,1,4,4", -1, 1, 2, "", NULL},
    {"Dropout", "p=0", "2,3", -1, 1, 2, "", NULL},
};

/* ---- values ---- */

static double noise(unsigned *state) {
  *state = *state * 1103515245u + 12345u;
  return (double)((*state >> 8) % 65521u) / 65521.0;
}

static cohort_ndarray *doubles(const double *values, const int64_t *shape, int32_t num_axes) {
  cohort_ndarray *array = NULL;
  size_t size = 1;
  int32_t axis;

  for (axis = 0; axis < num_axes; ++axis) size *= (size_t)shape[axis];
  assert_true(size <= MAX_SIZE);
  ok(cohort_ndarray_from_host(values, size * sizeof(double), shape, num_axes, COHORT_DTYPE_FLOAT64, NULL, &array));
  return array;
}

static size_t read_doubles(const cohort_ndarray *array, double *values) {
  int64_t shape[COHORT_MAX_AXES];
  int32_t num_axes = 0, axis;
  size_t size = 1;

  ok(cohort_ndarray_shape(array, shape, COHORT_MAX_AXES, &num_axes));
  for (axis = 0; axis < num_axes; ++axis) size *= (size_t)shape[axis];
  assert_true(size <= MAX_SIZE);
  ok(cohort_ndarray_read(array, values, size * sizeof(double)));
  return size;
}

static cohort_ndarray *noise_like(const cohort_ndarray *array, unsigned seed) {
  int64_t shape[COHORT_MAX_AXES];
  int32_t num_axes = 0, axis;
  size_t size = 1, i;
  double values[MAX_SIZE];

  ok(cohort_ndarray_shape(array, shape, COHORT_MAX_AXES, &num_axes));
  for (axis = 0; axis < num_axes; ++axis) size *= (size_t)shape[axis];
  for (i = 0; i < size; ++i) values[i] = noise(&seed) * 2 - 1;
  return doubles(values, shape, num_axes);
}

/* ---- cases ---- */

typedef struct inputs {
  cohort_ndarray *array[MAX_INPUTS];
  int fixed[MAX_INPUTS];
  size_t num;
} inputs;

static inputs make_inputs(const operator_case *which) {
  inputs made;
  const char *at = which->shapes;
  unsigned seed = 7;

  memset(&made, 0, sizeof(made));
  while (*at) {
    int64_t shape[COHORT_MAX_AXES];
    int32_t num_axes = 0;
    size_t size = 1, i;
    double values[MAX_SIZE];
    char digit[2] = {(char)('0' + made.num), 0};

    while (*at && *at != ' ') {
      char *end = NULL;

      shape[num_axes] = strtol(at, &end, 10);
      size *= (size_t)shape[num_axes++];
      at = *end == ',' ? end + 1 : end;
    }
    if (*at) ++at;
    made.fixed[made.num] = strstr(which->fixed, digit) != NULL;
    for (i = 0; i < size; ++i) {
      values[i] = made.fixed[made.num] ? (double)(i % 3) : which->low + (which->high - which->low) * noise(&seed);
    }
    made.array[made.num++] = doubles(values, shape, num_axes);
  }
  return made;
}

static void free_inputs(inputs *made) {
  size_t i;

  for (i = 0; i < made->num; ++i) cohort_ndarray_free(made->array[i]);
}

typedef struct attributes {
  char text[256];
  const char *keys[8], *values[8];
  size_t num;
} attributes;

static void read_attributes(const char *text, attributes *attrs) {
  char *at = attrs->text;

  snprintf(attrs->text, sizeof(attrs->text), "%s", text);
  attrs->num = 0;
  while (*at) {
    attrs->keys[attrs->num] = at;
    at = strchr(at, '=');
    assert_non_null(at);
    *at++ = '\0';
    attrs->values[attrs->num++] = at;
    at += strcspn(at, " ");
    if (*at) *at++ = '\0';
  }
}

static cohort_arrays *apply_to_all(cohort_tape *tape, const char *op, const char *attributes_text,
                                   cohort_ndarray *const *arrays, size_t num) {
  attributes attrs;
  cohort_arrays *outputs = NULL;
  cohort_error *error;

  read_attributes(attributes_text, &attrs);
  error = cohort_tape_invoke(tape, op, attrs.keys, attrs.values, attrs.num, arrays, num, NULL, 0, NULL, &outputs);
  if (error) print_error("%s %s\n", op, attributes_text);
  ok(error);
  return outputs;
}

/* The sum of the squares of arrays, weighted with noise of this seed, on the tape. The square makes gradients of linear
 * operators depend on their inputs. */
static cohort_ndarray *weighted_sum(cohort_tape *tape, cohort_arrays *arrays, unsigned seed) {
  cohort_ndarray *sum = NULL;
  size_t num = 0, i;

  ok(cohort_arrays_num(arrays, &num));
  for (i = 0; i < num; ++i) {
    cohort_ndarray *array = NULL, *weight, *square, *product, *part, *both;

    ok(cohort_arrays_get(arrays, i, &array));
    weight = noise_like(array, seed + 100 * (unsigned)i);
    square = apply(tape, "elemwise_mul", array, array);
    product = apply(tape, "elemwise_mul", square, weight);
    part = apply(tape, "sum", product, NULL);
    if (sum) {
      both = apply(tape, "elemwise_add", sum, part);
      cohort_ndarray_free(sum);
      cohort_ndarray_free(part);
      sum = both;
    } else {
      sum = part;
    }
    cohort_ndarray_free(array);
    cohort_ndarray_free(weight);
    cohort_ndarray_free(square);
    cohort_ndarray_free(product);
  }
  return sum;
}

/* The gradients of order `order` of the operator at these inputs: of a weighted sum of those of the order below. */
static cohort_arrays *gradients(const operator_case *which, const inputs *at, int order, int create_graph) {
  cohort_backward_options options = COHORT_BACKWARD_OPTIONS_INIT;
  cohort_tape *tape = NULL;
  cohort_ndarray *variables[MAX_INPUTS];
  cohort_arrays *values;
  size_t num = 0, i;
  int k;

  ok(cohort_tape_create(&tape));
  for (i = 0; i < at->num; ++i) {
    if (!at->fixed[i]) variables[num++] = at->array[i];
  }
  ok(cohort_tape_mark(tape, variables, NULL, NULL, num));
  values = apply_to_all(tape, which->op, which->attrs, at->array, at->num);
  if (which->then) {
    cohort_ndarray *output = NULL;

    ok(cohort_arrays_get(values, 0, &output));
    cohort_arrays_free(values);
    values = apply_to_all(tape, which->then, "", &output, 1);
    cohort_ndarray_free(output);
  }
  for (k = 1; k <= order; ++k) {
    cohort_ndarray *sum = weighted_sum(tape, values, (unsigned)k);
    cohort_error *error;

    cohort_arrays_free(values);
    options.create_graph = k < order || create_graph;
    error = cohort_tape_grad(tape, &sum, NULL, 1, variables, num, &options, &values);
    if (error) print_error("%s %s, order %d\n", which->op, which->attrs, k);
    ok(error);
    cohort_ndarray_free(sum);
  }
  cohort_tape_free(tape);
  return values;
}

/* All elements one after the other. */
static size_t flatten(cohort_arrays *arrays, double *values) {
  size_t num = 0, size = 0, i;

  ok(cohort_arrays_num(arrays, &num));
  for (i = 0; i < num; ++i) {
    cohort_ndarray *array = NULL;

    ok(cohort_arrays_get(arrays, i, &array));
    size += read_doubles(array, values + size);
    cohort_ndarray_free(array);
  }
  cohort_arrays_free(arrays);
  return size;
}

static void expect_close(const operator_case *which, const char *what, const double *found, const double *expected,
                         size_t size, double tolerance) {
  size_t i;

  for (i = 0; i < size; ++i) {
    if (!(fabs(found[i] - expected[i]) <= tolerance * (1 + fabs(expected[i])))) {
      fail_msg("%s %s (%s): %s, element %zu: expected %.12g, found %.12g", which->op, which->attrs, which->shapes, what,
               i, expected[i], found[i]);
    }
  }
}

/* Moves the inputs by `step` times noise; the same again with -step takes it back. */
static void move(const inputs *at, double step) {
  size_t i, k;

  for (k = 0; k < at->num; ++k) {
    double values[MAX_SIZE], by[MAX_SIZE];
    cohort_ndarray *direction;
    size_t size;

    if (at->fixed[k]) continue;
    direction = noise_like(at->array[k], 1000 + (unsigned)k);
    size = read_doubles(at->array[k], values);
    read_doubles(direction, by);
    for (i = 0; i < size; ++i) values[i] += step * by[i];
    ok(cohort_ndarray_write(at->array[k], values, size * sizeof(double)));
    cohort_ndarray_free(direction);
  }
}

/* The first gradients equal an executor's, whether they are differentiated further or not. */
static void first_gradients_are_an_executors(void **state) {
  size_t c;

  (void)state;
  for (c = 0; c < NUM_OF(cases); ++c) {
    const operator_case *which = &cases[c];
    inputs at = make_inputs(which);
    cohort_symbol *variables[MAX_INPUTS], *symbol = NULL;
    cohort_ndarray *grads[MAX_INPUTS], *heads[8];
    int32_t reqs[MAX_INPUTS];
    cohort_executor *executor = NULL;
    cohort_arrays *expected_arrays = NULL;
    double expected[4 * MAX_SIZE], found[4 * MAX_SIZE], value[MAX_SIZE], head[MAX_SIZE];
    size_t num_outputs = 0, num_aux = 0, size, head_size, i, k;
    attributes attrs;

    ok(cohort_arrays_create(&expected_arrays));
    for (i = 0; i < at.num; ++i) {
      char name[24];

      snprintf(name, sizeof(name), "x%zu", i);
      ok(cohort_symbol_variable(name, NULL, NULL, 0, &variables[i]));
      grads[i] = at.fixed[i] ? NULL : noise_like(at.array[i], 3);
      reqs[i] = at.fixed[i] ? COHORT_GRAD_NULL : COHORT_GRAD_WRITE;
      if (grads[i]) ok(cohort_arrays_add(expected_arrays, NULL, grads[i]));
    }
    read_attributes(which->attrs, &attrs);
    ok(cohort_symbol_create(which->op, "op", attrs.keys, attrs.values, attrs.num, variables, NULL, at.num, &symbol));
    if (which->then) {
      cohort_symbol *whole = NULL;

      ok(cohort_symbol_create(which->then, "then", NULL, NULL, 0, &symbol, NULL, 1, &whole));
      cohort_symbol_free(symbol);
      symbol = whole;
    }
    ok(cohort_symbol_num_names(symbol, COHORT_SYMBOL_AUX, &num_aux));
    ok(cohort_executor_bind(symbol, NULL, at.array, at.num - num_aux, grads, reqs, at.array + at.num - num_aux, num_aux,
                            NULL, &executor));
    ok(cohort_executor_forward(executor, 1));
    ok(cohort_executor_num_arrays(executor, COHORT_EXECUTOR_OUTPUTS, &num_outputs));
    for (i = 0; i < num_outputs; ++i) {
      cohort_ndarray *output = NULL;

      ok(cohort_executor_array(executor, COHORT_EXECUTOR_OUTPUTS, i, &output));
      heads[i] = noise_like(output, 1 + 100 * (unsigned)i);
      head_size = read_doubles(output, value);
      read_doubles(heads[i], head);
      for (k = 0; k < head_size; ++k) head[k] *= 2 * value[k];
      ok(cohort_ndarray_write(heads[i], head, head_size * sizeof(double)));
      cohort_ndarray_free(output);
    }
    ok(cohort_executor_backward(executor, heads, num_outputs, 1));
    size = flatten(expected_arrays, expected);
    assert_int_equal(flatten(gradients(which, &at, 1, 0), found), size);
    expect_close(which, "by kernels", found, expected, size, 1e-12);
    assert_int_equal(flatten(gradients(which, &at, 1, 1), found), size);
    expect_close(which, "as a graph", found, expected, size, 1e-10);
    for (i = 0; i < num_outputs; ++i) cohort_ndarray_free(heads[i]);
    for (i = 0; i < at.num; ++i) {
      cohort_symbol_free(variables[i]);
      cohort_ndarray_free(grads[i]);
    }
    cohort_symbol_free(symbol);
    cohort_executor_free(executor);
    free_inputs(&at);
  }
}

/* The difference of the gradients along a direction equals the sum of the gradients of the next order. */
static void gradients_of_gradients_are_differences(void **state) {
  const double step = 1e-4;
  size_t c, num_checked = 0;
  int order;

  (void)state;
  for (c = 0; c < NUM_OF(cases); ++c) {
    for (order = 2; order <= cases[c].order; ++order) {
      const operator_case *which = &cases[c];
      inputs at = make_inputs(which);
      double before[4 * MAX_SIZE], behind[4 * MAX_SIZE], slope[4 * MAX_SIZE], by[4 * MAX_SIZE];
      double along = 0, difference = 0, largest = 0;
      cohort_arrays *directions = NULL;
      size_t size, i;
      char what[32];

      /* The gradient of sum_k w_k g_k^2 along a direction equals the difference of that sum. */
      size = flatten(gradients(which, &at, order, 0), slope);
      ok(cohort_arrays_create(&directions));
      for (i = 0; i < at.num; ++i) {
        cohort_ndarray *direction;

        if (at.fixed[i]) continue;
        direction = noise_like(at.array[i], 1000 + (unsigned)i);
        ok(cohort_arrays_add(directions, NULL, direction));
        cohort_ndarray_free(direction);
      }
      assert_int_equal(flatten(directions, by), size);
      for (i = 0; i < size; ++i) along += slope[i] * by[i];

      move(&at, step);
      assert_int_equal(flatten(gradients(which, &at, order - 1, 0), behind), size);
      move(&at, -2 * step);
      assert_int_equal(flatten(gradients(which, &at, order - 1, 0), before), size);
      {
        cohort_arrays *first = NULL; /* the weights of weighted_sum() for this order */
        double weights[4 * MAX_SIZE];
        size_t k = 0;

        ok(cohort_arrays_create(&first));
        for (i = 0; i < at.num; ++i) {
          cohort_ndarray *weight;

          if (at.fixed[i]) continue;
          weight = noise_like(at.array[i], (unsigned)order + 100 * (unsigned)k++);
          ok(cohort_arrays_add(first, NULL, weight));
          cohort_ndarray_free(weight);
        }
        assert_int_equal(flatten(first, weights), size);
        for (i = 0; i < size; ++i) {
          difference += weights[i] * (behind[i] * behind[i] - before[i] * before[i]) / (2 * step);
          largest = fmax(largest, behind[i] * behind[i]);
        }
      }
      snprintf(what, sizeof(what), "order %d", order);
      expect_close(which, what, &along, &difference, 1, 1e-6 * (1 + largest));
      ++num_checked;
      free_inputs(&at);
    }
  }
  assert_true(num_checked > 180);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(first_gradients_are_an_executors),
      TEST(gradients_of_gradients_are_differences),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
