// SPDX-License-Identifier: Apache-2.0
// Gradients of backward steps that follow from what an operator is, whatever it computes. Of a linear operator X the
// backward step is the adjoint, which is linear as well, and whose adjoint is X. Of an operator that is linear in each
// of two inputs, the backward step is linear in the head gradient and in both.
#include <algorithm>

#include "op/gradient_graph.hpp"
#include "op/pooling.hpp"

namespace cohort {
namespace {

using Value = GradientGraph::Value;
using Values = GradientGraph::Values;

// Of the inputs of a backward step, those that are values of the forward inputs: `forward` is listed at this place, or
// nowhere (-1).
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

void of_adjoint(GradientGraph &g) {
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
  const Values made = g.apply_all(g.what().op->name, inputs, g.what().attrs);
  for (int j = 0; j < in.num_heads; ++j) g.give(j, made[size_t(j)]);
}

// A third input is added, and may be left out where there is an attribute no_bias.
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

// What the forward pass kept decides which elements pass, and by what they are multiplied: the step is its own adjoint.
void of_mask(GradientGraph &g) {
  if (g.head()) g.give(0, g.apply_backward({g.head()}, {g.output_type(0)})[0]);
}

// shape_like gives nothing but its shape, which the head gradient has.
void of_slice_like(GradientGraph &g) {
  if (g.head()) g.give(0, g.apply("slice_like", {g.head(), g.input(0)}, g.what().attrs));
}

// Linear but for a number that is put in.
void of_number_put_in(GradientGraph &g) {
  if (!g.head()) return;
  AttrMap attrs = g.what().attrs;
  attrs[g.what().op->name == "Pad" ? "constant_value" : "scalar"] = "0";
  g.give(0, g.apply(g.what().op->name, {g.head()}, attrs));
}

// The windows as columns: of each the element where data has its maximum. Data are lifted above 0, which is what
// padding holds.
void of_max_pooling(GradientGraph &g) {
  const Value data = g.input(1);
  const Shape &shape = data.shape(), pooled = g.input_shape(0);
  if (shape.rank() != 4 || channel_axis(g.attrs<PoolingAttrs>().layout, 4) != 1) refuse_second_gradient(g);
  const PoolingWindow window = pooling_window(g.attrs<PoolingAttrs>(), shape);
  const AttrMap attrs{
      {"kernel", print_tuple(window.kernel)}, {"stride", print_tuple(window.stride)}, {"pad", print_tuple(window.pad)}};
  const Shape columns{shape[0], shape[1], window.kernel[0] * window.kernel[1], pooled[2] * pooled[3]};
  const auto as_columns = [&](Value images) {
    const Value made = g.apply("im2col", {images}, attrs);
    if (made.shape().size() != columns.size()) refuse_second_gradient(g);  // windows that stick out
    return g.reshape(made, columns);
  };
  const Value lifted = data - g.reshape(g.apply("min", {data}), Shape{1, 1, 1, 1}) + 1.0;
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
  define_backward_gradient("Dropout", of_mask);
  define_backward_gradient("slice_like", of_slice_like);
  define_backward_gradient("Pad", of_number_put_in);
  define_backward_gradient("_slice_assign_scalar", of_number_put_in);
  define_backward_gradient("Pooling", of_pooling);
  define_backward_gradient("Pooling_v1", of_pooling);
  return true;
}();

}  // namespace
}  // namespace cohort
