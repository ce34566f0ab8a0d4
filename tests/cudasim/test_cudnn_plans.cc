// SPDX-License-Identifier: Apache-2.0
// Tests the real cuDNN, if it is installed, without a GPU: whether it accepts our descriptors and has engines for the
// problems, on devices whose properties are given here. Its results can only be tested on a GPU.
#if __has_include(<cudnn_graph.h>)
#include <cudnn_graph.h>
#define HAS_HEADER 1
#endif

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cuda/op/convolution_plan.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

const Cudnn &library() {
  if (unit::kSanitized) SKIP("a library that is not ours is not looked at under a sanitizer");
  std::string why;
  const Cudnn *const found = find_cudnn(&why);
  if (found) return *found;
  CHECK(why.find("libcudnn.so.9 could not be loaded: ") == 0);
  SKIP(why);
}

TEST(numbers_are_those_of_the_header) {
#ifndef HAS_HEADER
  SKIP("there is no cudnn_graph.h here");
#else
#define SAME(ours, theirs) CHECK_EQ(int(Cudnn::ours), int(theirs))
  SAME(kSuccess, CUDNN_STATUS_SUCCESS);
  SAME(kBadParameter, CUDNN_STATUS_BAD_PARAM);
  SAME(kNotSupported, CUDNN_STATUS_NOT_SUPPORTED);
  SAME(kHostAllocationFailed, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  SAME(kDeviceAllocationFailed, CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
  SAME(kExecutionFailed, CUDNN_STATUS_EXECUTION_FAILED);
  SAME(kFloat, CUDNN_DATA_FLOAT);
  SAME(kHalf, CUDNN_DATA_HALF);
  SAME(kBfloat16, CUDNN_DATA_BFLOAT16);
  SAME(kCrossCorrelation, CUDNN_CROSS_CORRELATION);
  SAME(kAdd, CUDNN_POINTWISE_ADD);
  SAME(kRelu, CUDNN_POINTWISE_RELU_FWD);
  SAME(kFallback, CUDNN_HEUR_MODE_FALLBACK);
  SAME(kModeA, CUDNN_HEUR_MODE_A);
  SAME(kTensorCore, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  SAME(kDownConvertInputs, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
  SAME(kReducedPrecisionReduction, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
  SAME(kNondeterministic, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  SAME(kStrictNanPropagation, CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP);
  SAME(kPointwise, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  SAME(kConvolution, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  SAME(kEngine, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  SAME(kEngineConfig, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  SAME(kHeuristics, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  SAME(kExecutionPlan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  SAME(kForward, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  SAME(kBackwardFilter, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
  SAME(kBackwardData, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
  SAME(kPointwiseOperation, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  SAME(kOperationGraph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  SAME(kVariantPack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  SAME(kTensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  SAME(kDeviceProperties, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  SAME(kHandleType, CUDNN_TYPE_HANDLE);
  SAME(kDataTypeType, CUDNN_TYPE_DATA_TYPE);
  SAME(kBooleanType, CUDNN_TYPE_BOOLEAN);
  SAME(kInt64Type, CUDNN_TYPE_INT64);
  SAME(kFloatType, CUDNN_TYPE_FLOAT);
  SAME(kPointerType, CUDNN_TYPE_VOID_PTR);
  SAME(kConvolutionModeType, CUDNN_TYPE_CONVOLUTION_MODE);
  SAME(kHeuristicModeType, CUDNN_TYPE_HEUR_MODE);
  SAME(kNanPropagationType, CUDNN_TYPE_NAN_PROPOGATION);
  SAME(kNoteType, CUDNN_TYPE_NUMERICAL_NOTE);
  SAME(kPointwiseModeType, CUDNN_TYPE_POINTWISE_MODE);
  SAME(kDescriptorType, CUDNN_TYPE_BACKEND_DESCRIPTOR);
  SAME(kCharType, CUDNN_TYPE_CHAR);
  SAME(kPointwiseMode, CUDNN_ATTR_POINTWISE_MODE);
  SAME(kPointwiseComputeType, CUDNN_ATTR_POINTWISE_MATH_PREC);
  SAME(kPointwiseNanPropagation, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION);
  SAME(kPropagateNan, CUDNN_PROPAGATE_NAN);
  SAME(kConvolutionComputeType, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
  SAME(kConvolutionConvolutionMode, CUDNN_ATTR_CONVOLUTION_CONV_MODE);
  SAME(kConvolutionDilations, CUDNN_ATTR_CONVOLUTION_DILATIONS);
  SAME(kConvolutionStrides, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  SAME(kConvolutionPostPaddings, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  SAME(kConvolutionPrePaddings, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  SAME(kConvolutionNumAxes, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
  SAME(kHeuristicsMode, CUDNN_ATTR_ENGINEHEUR_MODE);
  SAME(kHeuristicsGraph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  SAME(kHeuristicsResults, CUDNN_ATTR_ENGINEHEUR_RESULTS);
  SAME(kHeuristicsDevice, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
  SAME(kEngineConfigEngine, CUDNN_ATTR_ENGINECFG_ENGINE);
  SAME(kPlanHandle, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
  SAME(kPlanEngineConfig, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  SAME(kPlanWorkspace, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  SAME(kPlanDevice, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
  SAME(kForwardAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA);
  SAME(kForwardBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
  SAME(kForwardConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
  SAME(kForwardFilters, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
  SAME(kForwardData, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
  SAME(kForwardResult, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
  SAME(kDataAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA);
  SAME(kDataBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA);
  SAME(kDataConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC);
  SAME(kDataFilters, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W);
  SAME(kDataData, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
  SAME(kDataResult, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
  SAME(kFilterAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA);
  SAME(kFilterBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA);
  SAME(kFilterConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC);
  SAME(kFilterFilters, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
  SAME(kFilterData, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X);
  SAME(kFilterResult, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
  SAME(kPointwiseDescriptor, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  SAME(kPointwiseInput, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
  SAME(kPointwiseSecondInput, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
  SAME(kPointwiseOutput, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  SAME(kGraphHandle, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
  SAME(kGraphOperations, CUDNN_ATTR_OPERATIONGRAPH_OPS);
  SAME(kTensorAlignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  SAME(kTensorDataType, CUDNN_ATTR_TENSOR_DATA_TYPE);
  SAME(kTensorDimensions, CUDNN_ATTR_TENSOR_DIMENSIONS);
  SAME(kTensorStrides, CUDNN_ATTR_TENSOR_STRIDES);
  SAME(kTensorId, CUDNN_ATTR_TENSOR_UNIQUE_ID);
  SAME(kTensorIsVirtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
  SAME(kPackIds, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  SAME(kPackPointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  SAME(kPackWorkspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  SAME(kEngineIndex, CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  SAME(kEngineNotes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
  SAME(kDeviceJson, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
  static_assert(sizeof(cudnnStatus_t) == sizeof(int) && sizeof(cudnnBackendDescriptor_t) == sizeof(void *));
#endif
}

// The properties of an H100, in the format of cuDNN.
constexpr char kH100[] =
    R"({"maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536,
"multiProcessorCount": 132, "warpSize": 32, "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
"reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024,
"maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0, "supportCoopLaunch": 1, "totalGlobalMem": 85045739520,
"smClockRateKHz": 1980000, "memClockRateKHz": 2619000, "l2CacheSize": 52428800, "cudaDeviceId": 0, "deviceVer": 900,
"driverVer": 13000, "deviceName": "NVIDIA H100 80GB HBM3"})";

const CudnnOwned &h100() {
  static const auto *const made = [] {
    const Cudnn &cudnn = library();
    if (cudnn.get_version() < 90800) SKIP("this cuDNN takes no properties of devices");
    CudnnDescriptor *properties = nullptr;
    check_cudnn(cudnn, cudnn.create_descriptor(Cudnn::kDeviceProperties, &properties), "cudnnBackendCreateDescriptor");
    const char *const json = kH100;
    check_cudnn(cudnn, cudnn.set_attribute(properties, Cudnn::kDeviceJson, Cudnn::kCharType, sizeof kH100, json),
                "cudnnBackendSetAttribute");
    check_cudnn(cudnn, cudnn.finalize(properties), "cudnnBackendFinalize");
    return new CudnnOwned(cudnn, properties);
  }();
  return *made;
}

struct Layer {
  Shape data, weight, result;
  Tuple stride, dilate, pad;
  int64_t groups = 1;
};

// Channels come after the spatial axes.
Shape turned(const Shape &shape) {
  Tuple lengths;
  lengths.push_back(shape[0]);
  for (int i = 2; i < shape.rank(); ++i) lengths.push_back(shape[i]);
  lengths.push_back(shape[1]);
  return Shape(lengths);
}

struct Found {
  int64_t engine;
  size_t workspace;
};

// The part of a layer's computation that is asked for.
struct Wanted {
  ConvolutionProblem::Of of;
  Dtype dtype;
  bool last, tf32 = false;  // last: channels
  ConvolutionEpilogue epilogue = {};
};

Found engine_for(const Layer &layer, const Wanted &wanted, size_t alignment, size_t most_workspace) {
  const auto lie = [&](const Shape &shape) { return wanted.last ? turned(shape) : shape; };
  const ConvolutionProblem problem{wanted.of,
                                   wanted.dtype,
                                   wanted.tf32,
                                   layer.data.rank() - 2,
                                   alignment,
                                   most_workspace,
                                   convolution_sizes(lie(layer.data), lie(layer.weight), lie(layer.result),
                                                     layer.stride, layer.dilate, layer.pad, layer.groups, wanted.last),
                                   wanted.epilogue};
  std::string why;
  const auto plan = ConvolutionPlan::find(library(), problem, {nullptr, h100().get()}, &why);
  if (plan) return {plan->engine(), plan->workspace_bytes()};
  const ConvolutionEpilogue &e = wanted.epilogue;
  unit::fail(__FILE__, __LINE__,
             text(layer.data, " by ", layer.weight, ", ", wanted.dtype, wanted.last ? ", channels last" : "",
                  ", output ", int(wanted.of), e.addend ? ", addend" : "", e.bias ? ", bias" : "",
                  e.relu ? ", relu" : "", ", arrays at multiples of ", alignment, ": ", why));
}

constexpr ConvolutionProblem::Of kAll[] = {ConvolutionProblem::kResult, ConvolutionProblem::kDataGradient,
                                           ConvolutionProblem::kFilterGradient};

// With the workspace that the kernel allows, for whole arrays and for views that begin anywhere.
void has_engines(const Layer &layer) {
  const int64_t elements = layer.data.size() + layer.weight.size() + layer.result.size();
  const auto has = [&](Dtype dtype, bool last, bool tf32) {
    for (const auto of : kAll) {
      const size_t most = (size_t(32) << 20) + size_t(elements) * dtype_size(dtype);
      const Found whole = engine_for(layer, {of, dtype, last, tf32}, 16, most);
      engine_for(layer, {of, dtype, last, tf32}, dtype_size(dtype), std::max(whole.workspace, size_t(1) << 20));
    }
  };
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat16, Dtype::kBfloat16}) {
    for (const bool last : {false, true}) has(dtype, last, false);
  }
  has(Dtype::kFloat32, true, true);
}

Layer square(int64_t batch, int64_t channels, int64_t side, int64_t filters, int64_t kernel, int64_t stride,
             int64_t groups = 1, int64_t dilate = 1) {
  const int64_t pad = dilate * (kernel - 1) / 2, to = (side + 2 * pad - dilate * (kernel - 1) - 1) / stride + 1;
  return {{batch, channels, side, side},
          {filters, channels / groups, kernel, kernel},
          {batch, filters, to, to},
          {stride, stride},
          {dilate, dilate},
          {pad, pad},
          groups};
}

std::vector<Layer> resnet_50(int64_t batch) {
  const auto square = [=](int64_t channels, int64_t side, int64_t filters, int64_t kernel, int64_t stride) {
    return ::square(batch, channels, side, filters, kernel, stride);
  };
  std::vector<Layer> layers{square(3, 224, 64, 7, 2), square(64, 56, 64, 1, 1), square(64, 56, 64, 3, 1),
                            square(64, 56, 256, 1, 1), square(256, 56, 64, 1, 1)};
  for (int64_t channels = 256, side = 56; side > 7; channels *= 2, side /= 2) {
    const int64_t inner = channels / 2;
    layers.push_back(square(channels, side, inner, 1, 1));
    layers.push_back(square(channels, side, inner, 1, 2));
    layers.push_back(square(inner, side, inner, 3, 2));
    layers.push_back(square(inner, side / 2, inner, 3, 1));
    layers.push_back(square(inner, side / 2, 2 * channels, 1, 1));
    layers.push_back(square(channels, side, 2 * channels, 1, 2));
    layers.push_back(square(2 * channels, side / 2, inner, 1, 1));
  }
  return layers;
}

TEST(there_are_engines_for_the_layers_of_resnet_50) {
  h100();
  for (const Layer &layer : resnet_50(32)) has_engines(layer);
}

// With norms folded into layers: bias and relu, and the sum at the end of a block, in one graph of cuDNN.
TEST(there_are_engines_for_the_layers_of_resnet_50_with_their_epilogues) {
  h100();
  const auto has = [](const Layer &layer, Dtype dtype, bool tf32) {
    const bool ends_block = layer.weight[2] == 1 && layer.weight[0] > layer.weight[1];
    const Wanted wanted{ConvolutionProblem::kResult, dtype, /* last */ true, tf32, {ends_block, true, true}};
    const int64_t elements = layer.data.size() + layer.weight.size() + layer.result.size();
    engine_for(layer, wanted, 16, (size_t(32) << 20) + size_t(elements) * dtype_size(dtype));
  };
  for (const Layer &layer : resnet_50(256)) {
    has(layer, Dtype::kFloat16, false);
    has(layer, Dtype::kBfloat16, false);
    has(layer, Dtype::kFloat32, true);
  }
}

// If this fails, a newer cuDNN can do more than the kernels ask of it.
TEST(graphs_have_engines_only_if_a_bias_is_added_last) {
  const Layer layer = square(32, 256, 14, 256, 3, 1);
  const auto refuses = [&](ConvolutionProblem::Of of, const ConvolutionEpilogue &epilogue) {
    CHECK_THROWS(engine_for(layer, {of, Dtype::kBfloat16, true, false, epilogue}, 16, size_t(1) << 30), unit::Failure,
                 "of the 0 configurations");
  };
  refuses(ConvolutionProblem::kResult, {false, false, true});
  refuses(ConvolutionProblem::kResult, {true, false, false});
  refuses(ConvolutionProblem::kResult, {true, false, true});
  refuses(ConvolutionProblem::kDataGradient, {false, true, false});
}

TEST(there_are_engines_for_groups_dilation_odd_channels_and_other_numbers_of_axes) {
  h100();
  has_engines(square(8, 32, 28, 32, 3, 1, 32));
  has_engines(square(8, 32, 28, 64, 3, 2, 32));
  has_engines(square(8, 32, 28, 64, 3, 1, 4));
  has_engines(square(8, 16, 28, 32, 3, 1, 1, 2));
  has_engines(square(1, 1, 28, 20, 5, 1));
  has_engines(square(2, 5, 9, 7, 3, 2));
  has_engines({{8, 3, 227, 227}, {96, 3, 11, 11}, {8, 96, 55, 55}, {4, 4}, {1, 1}, {0, 0}});
  has_engines({{8, 32, 17, 17}, {48, 32, 1, 7}, {8, 48, 17, 17}, {1, 1}, {1, 1}, {0, 3}});
  has_engines({{1, 21, 544, 544}, {21, 1, 64, 64}, {1, 21, 16, 16}, {32, 32}, {1, 1}, {0, 0}, 21});  // upsampling
  has_engines({{2, 4, 8, 8}, {4, 4, 3, 3}, {2, 4, 14, 14}, {1, 1}, {1, 1}, {4, 4}});
  has_engines({{4, 6, 50}, {8, 6, 3}, {4, 8, 25}, {2}, {1}, {1}});
  has_engines({{4, 6, 50}, {8, 3, 3}, {4, 8, 50}, {1}, {1}, {1}, 2});
  has_engines({{2, 4, 8, 9, 10}, {6, 4, 3, 3, 3}, {2, 6, 8, 9, 10}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}});
  has_engines({{2, 4, 8, 9, 10}, {6, 4, 2, 3, 3}, {2, 6, 4, 4, 5}, {2, 2, 2}, {1, 1, 1}, {0, 0, 1}});
}

TEST(tf32_leads_to_another_engine) {
  h100();
  const Layer layer = square(32, 256, 14, 256, 3, 1);
  for (const auto of : kAll) {
    CHECK(engine_for(layer, {of, Dtype::kFloat32, true, true}, 16, size_t(1) << 30).engine !=
          engine_for(layer, {of, Dtype::kFloat32, true}, 16, size_t(1) << 30).engine);
  }
}

// The reason for the layouts of images: engines on tensor cores that need no copy of them.
TEST(channels_last_take_no_more_workspace) {
  h100();
  for (const Layer &layer :
       {square(32, 64, 56, 64, 3, 1), square(32, 256, 14, 256, 3, 1), square(32, 512, 28, 256, 1, 1)}) {
    for (const auto of : kAll) {
      const auto workspace = [&](bool last) {
        return engine_for(layer, {of, Dtype::kBfloat16, last}, 16, size_t(1) << 30).workspace;
      };
      if (workspace(true) > workspace(false))
        unit::fail(
            __FILE__, __LINE__,
            text(layer.data, ", output ", int(of), ": ", workspace(true), " bytes, row-major ", workspace(false)));
    }
  }
}

TEST(what_is_no_convolution_is_refused_with_the_reason) {
  h100();
  Layer layer = square(2, 4, 8, 4, 3, 1);
  layer.result = Shape{2, 4, 9, 8};
  CHECK_THROWS(engine_for(layer, {ConvolutionProblem::kResult, Dtype::kFloat32, false}, 16, 0), unit::Failure,
               "cuDNN: CUDNN_STATUS_BAD_PARAM in cudnnBackendFinalize");
}

}  // namespace

UNIT_MAIN()
