// SPDX-License-Identifier: Apache-2.0
// Gradients of backward steps that follow from an operator's structure. If operator X is linear, its backward step is
// the adjoint, which is linear too and has X as its adjoint. If an operator is linear in each of two inputs, its
// backward step is linear in the head gradient and in both inputs.
#include <algorithm>

#include "op/gradient_graph.hpp"
#include "op/ordering.hpp"
#include "op/pooling.hpp"
#include "op/upsampling.hpp"

namespace cohort {
namespace {

using Value = GradientGraph::Value;
using Values = GradientGraph::Values;

const AttrMap kSwapLast{{"dim1", "1"}, {"dim2", "2"}};

// Maps forward inputs to inputs of the backward step: place_of(i) is where forward input i is listed, or -1.
struct BackwardInputs {
  Gradient gradient;
  int num_heads;
  std::vector<int> of;
  int num_forward;  // inputs of the operator

  explicit BackwardInputs(const GradientGraph &g) {
    const Op &op = *g.what().op;
    gradient = op.gradient_of(g.what().parsed);
    num_heads = gradient.head_grads ? op.num_visible(g.what().parsed) : 0;
    num_forward = op.variadic.empty() ? op.num_inputs(g.what().parsed, 0) : g.num_outputs();
    of = inputs_with_gradient(op, gradient, size_t(num_forward));
  }
  int place_of(int forward) const {
    const auto found = std::find(gradient.inputs.begin(), gradient.inputs.end(), forward);
    return found == gradient.inputs.end() ? -1 : num_heads + int(found - gradient.inputs.begin());
  }
};

bool any_head(GradientGraph &g) {
  for (int k = 0; k < g.num_outputs(); ++k) {
    if (g.head(k)) return true;
  }
  return false;
}

void give_adjoint(GradientGraph &g, const AttrMap &attrs) {
  if (!any_head(g)) return;
  const BackwardInputs in(g);
  Values inputs;
  for (int i = 0; i < in.num_forward; ++i) {
    const auto found = std::find(in.of.begin(), in.of.end(), i);
    if (found != in.of.end()) {
      const int k = int(found - in.of.begin());
      inputs.push_back(g.head(k) ? g.head(k) : g.zeros(g.output_type(k)));
    } else {
      inputs.push_back(g.input(in.place_of(i)));
    }
  }
  const Values made = g.apply_all(g.what().op->name, inputs, attrs);
  for (int j = 0; j < in.num_heads; ++j) g.give(j, made[size_t(j)]);
}

void of_adjoint(GradientGraph &g) { give_adjoint(g, g.what().attrs); }

// For operators with two linear inputs and an added third one, which is left out with the attribute no_bias.
void of_bilinear(GradientGraph &g) {
  if (!any_head(g)) return;
  const Op &op = *g.what().op;
  const Value head = g.input(0), lhs = g.input(1), rhs = g.input(2);
  const Value by_lhs = g.head(0), by_rhs = g.head(1), by_bias = g.num_outputs() > 2 ? g.head(2) : Value();
  const bool may_lack_bias =
      std::any_of(op.attrs.begin(), op.attrs.end(), [](const AttrField &f) { return f.name == "no_bias"; });
  const auto product = [&](Value l, Value r, Value bias) {
    AttrMap attrs = g.what().attrs;
    Values inputs{l, r};
    if (!bias && may_lack_bias) {
      attrs["no_bias"] = "1";
    } else if (g.num_outputs() > 2) {
      inputs.push_back(bias ? bias : g.zeros(g.output_type(2)));
    }
    return g.apply(op.name, inputs, attrs);
  };
  if (by_lhs || by_bias) g.give(0, product(by_lhs ? by_lhs : g.zeros(g.output_type(0)), rhs, by_bias));
  if (by_rhs) g.give(0, product(lhs, by_rhs, Value()));
  std::vector<TensorType> types;
  for (int k = 0; k < g.num_outputs(); ++k) types.push_back(g.output_type(k));
  if (by_rhs) g.give(1, g.apply_backward({head, lhs, by_rhs}, types)[0]);
  if (by_lhs) g.give(2, g.apply_backward({head, by_lhs, rhs}, types)[1]);
}

// For steps that multiply by a mask kept from the forward pass: such a step is its own adjoint.
void of_mask(GradientGraph &g) {
  if (g.head()) g.give(0, g.apply_backward({g.head()}, {g.output_type(0)})[0]);
}

// shape_like contributes only its shape, which the head gradient also has.
void of_slice_like(GradientGraph &g) {
  if (g.head()) g.give(0, g.apply("slice_like", {g.head(), g.input(0)}, g.what().attrs));
}

// For operators that are linear apart from a constant that they insert.
void of_number_put_in(GradientGraph &g) {
  const std::string &name = g.what().op->name;
  AttrMap attrs = g.what().attrs;
  attrs[name == "Pad" ? "constant_value" : name == "SequenceMask" ? "value" : "scalar"] = "0";
  give_adjoint(g, attrs);
}

// Takes windows as columns and picks in each the element where data has its maximum. Data is shifted above 0, the value
// of the padding. One spatial axis is treated as the columns of a single row.
void of_max_pooling(GradientGraph &g) {
  const Shape &given = g.input_shape(1), pooled = g.input_shape(0);
  const int rank = given.rank();
  if (rank > 4 || channel_axis(g.attrs<PoolingAttrs>().layout, rank) != 1) refuse_second_gradient(g);
  PoolingWindow window = pooling_window(g.attrs<PoolingAttrs>(), given);
  if (rank == 3) {
    window.kernel.insert(window.kernel.begin(), 1);
    window.stride.insert(window.stride.begin(), 1);
    window.pad.insert(window.pad.begin(), 0);
  }
  const Shape shape{given[0], given[1], rank == 3 ? 1 : given[2], given[rank - 1]};
  const AttrMap attrs{
      {"kernel", print_tuple(window.kernel)}, {"stride", print_tuple(window.stride)}, {"pad", print_tuple(window.pad)}};
  const Shape columns{shape[0], shape[1], window.kernel[0] * window.kernel[1], pooled.size(2, rank)};
  const auto as_columns = [&](Value images) {
    const Value made = g.apply("im2col", {g.reshape(images, shape)}, attrs);
    if (made.shape().size() != columns.size()) refuse_second_gradient(g);  // windows reach beyond the padded data
    return g.reshape(made, columns);
  };
  const Value data = g.input(1), lowest = g.apply("min", {data});
  const Value lifted = data - g.reshape(lowest, Shape(std::vector<int64_t>(size_t(rank), 1))) + 1.0;
  const Value place = g.apply("argmax", {as_columns(lifted)}, {{"axis", "2"}});
  g.give(0, g.reshape(g.apply("pick", {as_columns(g.head()), place}, {{"axis", "2"}}), pooled));
}

void of_pooling(GradientGraph &g) {
  if (!g.head()) return;
  switch (g.attrs<PoolingAttrs>().pool_type) {
    case PoolingAttrs::kAvg:
    case PoolingAttrs::kSum:
      return of_adjoint(g);
    case PoolingAttrs::kMax:
      return of_max_pooling(g);
    case PoolingAttrs::kLp:
      refuse_second_gradient(g);
  }
}

void of_upsampling(GradientGraph &g) { g.attrs<UpSamplingAttrs>().bilinear ? of_bilinear(g) : of_adjoint(g); }

// The backward step returns elements to their positions; its adjoint reads them from there. To find the positions, it
// is applied to descending numbers as head gradients, and topk sorts the result.
void of_ordering(GradientGraph &g) {
  if (!g.head()) return;
  const TensorType &data = g.output_type(0), &values = g.input_type(0);
  const OrderedAxis o = ordered_axis(g.attrs<OrderAttrs>(), data.shape);
  const int64_t exact = data.dtype == Dtype::kFloat16 ? 2048 : data.dtype == Dtype::kBfloat16 ? 256 : 1 << 24;
  if (o.kept > exact) refuse_second_gradient(g);
  if (data.shape.size() == 0) return;
  const int64_t num_rows = o.outer * o.inner;
  const auto as_rows = [&](Value value) {
    const Value moved = g.apply("SwapAxis", {g.reshape(value, Shape{o.outer, o.length, o.inner})}, kSwapLast);
    return g.reshape(moved, Shape{num_rows, o.length});
  };
  const auto shape_text = [](std::vector<int64_t> lengths) { return print_tuple(lengths); };
  const Value numbers =
      g.apply("_arange", {},
              {{"start", std::to_string(o.kept)}, {"stop", "0"}, {"step", "-1"}, {"dtype", dtype_name(values.dtype)}});
  Values heads{g.reshape(g.apply("broadcast_to", {g.reshape(numbers, Shape{1, o.kept, 1})},
                                 {{"shape", shape_text({o.outer, o.kept, o.inner})}}),
                         values.shape)};
  for (int j = 1; j < g.num_inputs(); ++j) heads.push_back(g.zeros(g.input_type(j)));
  const Value told = g.apply_backward(heads, {data})[0];
  const Value place =
      g.apply("topk", {as_rows(told)},
              {{"axis", "-1"}, {"k", std::to_string(o.kept)}, {"ret_typ", "indices"}, {"dtype", "int32"}});
  const Value rows = g.apply("_arange", {}, {{"start", "0"}, {"stop", std::to_string(num_rows)}, {"dtype", "int32"}});
  const Value row =
      g.apply("broadcast_to", {g.reshape(rows, Shape{num_rows, 1})}, {{"shape", shape_text({num_rows, o.kept})}});
  const Value taken =
      g.apply("gather_nd", {as_rows(g.head()), g.apply("stack", {row, place}, {{"axis", "0"}, {"num_args", "2"}})});
  g.give(0,
         g.reshape(g.apply("SwapAxis", {g.reshape(taken, Shape{o.outer, o.inner, o.kept})}, kSwapLast), values.shape));
}

// Selects slices of the head gradient by coordinates, possibly repeatedly, so their gradients are added up.
void of_parts_taken(GradientGraph &g) {
  if (!g.head()) return;
  const Shape &whole = g.input_shape(0);
  const std::vector<int64_t> lengths(whole.begin(), whole.end());
  g.give(0, g.apply("_backward_gather_nd", {g.head(), g.input(1)}, {{"shape", print_tuple(lengths)}}));
}

[[maybe_unused]] const bool defined = [] {
  for (const char *name : {"sum",
                           "mean",
                           "broadcast_to",
                           "broadcast_axis",
                           "transpose",
                           "SwapAxis",
                           "slice",
                           "slice_axis",
                           "Concat",
                           "stack",
                           "SliceChannel",
                           "_split_v2",
                           "reverse",
                           "tile",
                           "repeat",
                           "space_to_depth",
                           "depth_to_space",
                           "diag",
                           "_np_cumsum",
                           "take",
                           "pick",
                           "Embedding",
                           "gather_nd",
                           "Cast",
                           "SequenceLast",
                           "SequenceReverse",
                           "im2col",
                           "col2im",
                           "_contrib_div_sqrt_dim",
                           "amp_cast",
                           "_slice_assign",
                           "Crop",
                           "_contrib_AdaptiveAvgPooling2D",
                           "_linalg_extractdiag",
                           "_linalg_makediag",
                           "_linalg_extracttrian",
                           "_linalg_maketrian"}) {
    define_backward_gradient(name, of_adjoint);
  }
  for (const char *name : {"dot", "batch_dot", "FullyConnected", "Convolution", "Deconvolution", "_linalg_gemm",
                           "_linalg_gemm2", "_linalg_trmm"}) {
    define_backward_gradient(name, of_bilinear);
  }
  for (const char *name : {"Dropout", "_contrib_gradientmultiplier"}) define_backward_gradient(name, of_mask);
  define_backward_gradient("slice_like", of_slice_like);
  define_backward_gradient("scatter_nd", of_parts_taken);
  define_backward_gradient("Pad", of_number_put_in);
  define_backward_gradient("_slice_assign_scalar", of_number_put_in);
  define_backward_gradient("SequenceMask", of_number_put_in);
  define_backward_gradient("Pooling", of_pooling);
  define_backward_gradient("Pooling_v1", of_pooling);
  define_backward_gradient("UpSampling", of_upsampling);
  for (const char *name : {"sort", "topk"}) define_backward_gradient(name, of_ordering);
  return true;
}();

}  // namespace
}  // namespace cohort
