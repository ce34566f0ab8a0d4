// SPDX-License-Identifier: Apache-2.0
// Shared by FullyConnected, Convolution and Deconvolution: data times weight, and an optional bias.
#pragma once

#include "op/image_layout.hpp"
#include "op/op.hpp"

namespace cohort {

template <typename A>
bool has_bias(const A &a) {
  return !a.no_bias;
}

template <typename A>
Gradient linear_gradient(const A &a) {
  return Gradient::by_kernel(a.no_bias ? std::vector<int>{0, 1} : std::vector<int>{0, 1, 2}, {0, 1});
}

// For (de)convolutions: completes and checks kernel, stride, dilate and pad, and checks layout and number of filters.
template <typename A>
void check_filters(A &a) {
  const size_t num_axes = spatial_axes(a.kernel);
  complete_window(a.kernel, num_axes, 1, 1, "kernel");
  complete_window(a.stride, num_axes, 1, 1, "stride");
  complete_window(a.dilate, num_axes, 1, 1, "dilate");
  complete_window(a.pad, num_axes, 0, 0, "pad");
  check_layout(a.layout, num_axes);
  if (a.num_filter % a.num_group != 0) {
    throw Error(
        Code::kInvalidArgument,
        text("attribute 'num_filter': expected a multiple of num_group = ", a.num_group, ", found ", a.num_filter),
        "num_filter");
  }
}

// Infers the shapes of (de)convolutions that do not depend on the direction: bias, number of axes, and channels
// divisible by groups. Returns false if nothing more can be known.
template <typename A>
bool infer_filters(const A &a, Shapes &in, Shapes &out) {
  const int rank = int(a.kernel.size()) + 2, channels = channel_axis(a.layout, rank);
  if (!a.no_bias) unify(in[2], Shape{a.num_filter}, "bias");
  if (!in[0].rank_known() && !out[0].rank_known()) return false;
  unify(in[0], Shape::of_rank(rank), "data");
  unify(out[0], Shape::of_rank(rank), "output");
  if (in[0][channels] != Shape::kUnknown && in[0][channels] % a.num_group != 0) {
    throw Error(Code::kShape,
                text("data: expected a multiple of num_group = ", a.num_group, " channels, found ", in[0]), "data");
  }
  return true;
}

// Texts and defaults of the (de)convolution attributes that follow those of the window, and of the inputs.
struct FilterWords {
  const char *num_filter, *weight, *workspace;
  bool no_bias;
};

template <typename A>
OpBuilder<A> &define_filters(OpBuilder<A> &op, const FilterWords &words) {
  return op.required(&A::num_filter, "num_filter", words.num_filter)
      .range(1)
      .shown_as("int (non-negative)")
      .attr(&A::num_group, "num_group", 1, "Groups of channels that are convolved apart.")
      .range(1)
      .shown_as("int (non-negative)")
      .ignored("workspace", "long (non-negative)", words.workspace, "Ignored.")
      .attr(&A::no_bias, "no_bias", words.no_bias, "Whether there is no bias.")
      .ignored("cudnn_tune", "{None, 'fastest', 'limited_workspace', 'off'}", "None", "Ignored.")
      .ignored("cudnn_off", "boolean", "0", "Ignored.")
      .choice(&A::layout, "layout", layout_words(LayoutWords::kAllButNWC), ImageLayout::kNone,
              "Layout of data and output; None: channels before the spatial axes.")
      .input("data", "Input data, (batch, channels, spatial axes) in the default layout.")
      .input("weight", words.weight)
      .input_if("bias", has_bias<A>, "Bias, (num_filter,).")
      .gradient([](const A &a) { return linear_gradient(a).beside_forward(); });
}

}  // namespace cohort
