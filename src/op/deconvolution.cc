// SPDX-License-Identifier: Apache-2.0
#include "op/deconvolution.hpp"

#include <algorithm>

namespace cohort {

DeconvolutionPadding deconvolution_padding(const DeconvolutionAttrs &a, const Shape &data) {
  DeconvolutionPadding padding{a.pad, a.adj};
  if (a.target_shape.empty()) return padding;
  const int first = spatial_axis(a.layout);
  for (size_t k = 0; k < a.kernel.size(); ++k) {
    const int64_t whole = a.stride[k] * (data[first + int(k)] - 1) + a.dilate[k] * (a.kernel[k] - 1) + 1;
    const int64_t surplus = whole - a.target_shape[k];
    if (surplus < 0) {
      throw Error(Code::kShape,
                  text("attribute 'target_shape': expected at most ", whole, " elements on spatial axis ", k,
                       ", found ", print_tuple(a.target_shape)),
                  "target_shape");
    }
    padding.adj[k] = surplus % 2;
    padding.pad[k] = (surplus + 1) / 2;
  }
  return padding;
}

namespace {

void check(DeconvolutionAttrs &a) {
  if (a.kernel.empty() || a.kernel.size() > 3) {
    throw Error(Code::kInvalidArgument,
                text("attribute 'kernel': expected 1 to 3 entries, found ", print_tuple(a.kernel)), "kernel");
  }
  const size_t num_axes = a.kernel.size();
  complete_window(a.kernel, num_axes, 1, 1, "kernel");
  complete_window(a.stride, num_axes, 1, 1, "stride");
  complete_window(a.dilate, num_axes, 1, 1, "dilate");
  complete_window(a.pad, num_axes, 0, 0, "pad");
  complete_window(a.adj, num_axes, 0, 0, "adj");
  if (std::all_of(a.target_shape.begin(), a.target_shape.end(), [](int64_t n) { return n == 0; })) {
    a.target_shape.clear();
  }
  if (!a.target_shape.empty()) complete_window(a.target_shape, num_axes, 1, 1, "target_shape");
  for (size_t k = 0; k < num_axes; ++k) {
    if (a.adj[k] >= a.stride[k] && a.adj[k] != 0) {
      throw Error(Code::kInvalidArgument,
                  text("attribute 'adj': expected entries below stride ", print_tuple(a.stride), ", found ",
                       print_tuple(a.adj)),
                  "adj");
    }
  }
  check_layout(a.layout, num_axes);
  if (a.num_filter < 1 || a.num_group < 1 || a.num_filter % a.num_group != 0) {
    throw Error(Code::kInvalidArgument,
                text("attribute 'num_filter': expected a positive multiple of num_group = ", a.num_group, ", found ",
                     a.num_filter),
                "num_filter");
  }
}

void infer_shape(const DeconvolutionAttrs &a, Shapes &in, Shapes &out) {
  const int num_axes = int(a.kernel.size()), rank = num_axes + 2;
  const int channels = channel_axis(a.layout, rank), first = spatial_axis(a.layout);
  Shape &data = in[0];
  if (!a.no_bias) unify(in[2], Shape{a.num_filter}, "bias");
  if (!data.rank_known() && !out[0].rank_known()) return;
  unify(data, Shape::of_rank(rank), "data");
  unify(out[0], Shape::of_rank(rank), "output");
  if (data[channels] != Shape::kUnknown && data[channels] % a.num_group != 0) {
    throw Error(Code::kShape, text("data: expected a multiple of num_group = ", a.num_group, " channels, found ", data),
                "data");
  }

  Shape weight = Shape::of_rank(rank);
  weight[0] = data[channels];
  weight[channels] = a.num_filter / a.num_group;
  for (int i = 0; i < num_axes; ++i) weight[first + i] = a.kernel[size_t(i)];
  unify(in[1], weight, "weight");

  Shape result = Shape::of_rank(rank);
  result[0] = data[0];
  result[channels] = a.num_filter;
  for (int i = 0; i < num_axes; ++i) {
    const size_t k = size_t(i);
    if (!a.target_shape.empty()) {
      result[first + i] = a.target_shape[k];
    } else if (data[first + i] != Shape::kUnknown) {
      result[first + i] =
          a.stride[k] * (data[first + i] - 1) + a.dilate[k] * (a.kernel[k] - 1) + 1 - 2 * a.pad[k] + a.adj[k];
      if (result[first + i] < 1) {
        throw Error(Code::kShape, text("data: pad ", print_tuple(a.pad), " leaves no output for data of shape ", data),
                    "data");
      }
    }
  }
  if (data.known()) deconvolution_padding(a, data);  // refuses a target that is out of reach
  unify(out[0], result, "output");
  if (data[0] == Shape::kUnknown) data[0] = out[0][0];
}

COHORT_OPERATOR(Deconvolution, DeconvolutionAttrs)
    .alias("_npx_deconvolution")
    .doc("Transposed convolution: the gradient of Convolution with respect to its data, as an operator.")
    .required(&DeconvolutionAttrs::kernel, "kernel", "Filter size: (w,), (h, w) or (d, h, w).")
    .attr(&DeconvolutionAttrs::stride, "stride", Tuple(), "Step of the filter in the output; 1 if not given.")
    .attr(&DeconvolutionAttrs::dilate, "dilate", Tuple(), "Distance of filter elements; 1 if not given.")
    .attr(&DeconvolutionAttrs::pad, "pad", Tuple(), "Elements cut off on both sides of the output; none if not given.")
    .attr(&DeconvolutionAttrs::adj, "adj", Tuple(), "Elements added at the end of the output; below stride.")
    .attr(&DeconvolutionAttrs::target_shape, "target_shape", Tuple(),
          "Spatial shape of the output; if given, it decides pad and adj.")
    .required(&DeconvolutionAttrs::num_filter, "num_filter", "Channels of the output.")
    .shown_as("int (non-negative)")
    .attr(&DeconvolutionAttrs::num_group, "num_group", 1, "Groups of channels that are convolved apart.")
    .shown_as("int (non-negative)")
    .ignored("workspace", "long (non-negative)", "512", "No meaning here.")
    .attr(&DeconvolutionAttrs::no_bias, "no_bias", true, "Whether there is no bias.")
    .ignored("cudnn_tune", "{None, 'fastest', 'limited_workspace', 'off'}", "None", "No meaning here.")
    .ignored("cudnn_off", "boolean", "0", "No meaning here.")
    .choice(&DeconvolutionAttrs::layout, "layout",
            {{"None", ImageLayout::kNone},
             {"NCDHW", ImageLayout::kNCDHW},
             {"NCHW", ImageLayout::kNCHW},
             {"NCW", ImageLayout::kNCW},
             {"NDHWC", ImageLayout::kNDHWC},
             {"NHWC", ImageLayout::kNHWC}},
            ImageLayout::kNone, "Layout of data and output; None: channels before the spatial axes.")
    .check(check)
    .input("data", "Input data, (batch, channels, spatial axes) in the default layout.")
    .input("weight", "Filters, (channels, num_filter / num_group, kernel) in the default layout.")
    .input_if(
        "bias", [](const DeconvolutionAttrs &a) { return !a.no_bias; }, "Bias, (num_filter,).")
    .infer_shape(infer_shape)
    .gradient([](const DeconvolutionAttrs &a) {
      Gradient g;
      g.kind = Gradient::Kind::kKernel;
      g.of = a.no_bias ? std::vector<int>{0, 1} : std::vector<int>{0, 1, 2};
      g.inputs = {0, 1};
      return g;
    });

}  // namespace
}  // namespace cohort
