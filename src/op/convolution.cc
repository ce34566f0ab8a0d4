// SPDX-License-Identifier: Apache-2.0
#include "op/convolution.hpp"

namespace cohort {
namespace {

void check(ConvolutionAttrs &a) {
  if (a.kernel.empty() || a.kernel.size() > 3) {
    throw Error(Code::kInvalidArgument,
                text("attribute 'kernel': expected 1 to 3 entries, found ", print_tuple(a.kernel)), "kernel");
  }
  const size_t num_axes = a.kernel.size();
  complete_window(a.kernel, num_axes, 1, 1, "kernel");
  complete_window(a.stride, num_axes, 1, 1, "stride");
  complete_window(a.dilate, num_axes, 1, 1, "dilate");
  complete_window(a.pad, num_axes, 0, 0, "pad");
  check_layout(a.layout, num_axes);
  if (a.num_filter < 1 || a.num_group < 1 || a.num_filter % a.num_group != 0) {
    throw Error(Code::kInvalidArgument,
                text("attribute 'num_filter': expected a positive multiple of num_group = ", a.num_group, ", found ",
                     a.num_filter),
                "num_filter");
  }
}

void infer_shape(const ConvolutionAttrs &a, Shapes &in, Shapes &out) {
  const int num_axes = int(a.kernel.size()), rank = num_axes + 2;
  const int channels = channel_axis(a.layout, rank), first = spatial_axis(a.layout);
  Shape &data = in[0];
  if (!a.no_bias) unify(in[2], Shape{a.num_filter}, "bias");
  if (!data.rank_known() && !out[0].rank_known()) return;
  unify(data, Shape::of_rank(rank), "data");
  unify(out[0], Shape::of_rank(rank), "output");

  Shape weight = Shape::of_rank(rank);
  weight[0] = a.num_filter;
  for (int i = 0; i < num_axes; ++i) weight[first + i] = a.kernel[size_t(i)];
  if (data[channels] != Shape::kUnknown) {
    if (data[channels] % a.num_group != 0) {
      throw Error(Code::kShape,
                  text("data: expected a multiple of num_group = ", a.num_group, " channels, found ", data), "data");
    }
    weight[channels] = data[channels] / a.num_group;
  }
  unify(in[1], weight, "weight");

  Shape result = Shape::of_rank(rank);
  result[0] = data[0];
  result[channels] = a.num_filter;
  for (int i = 0; i < num_axes; ++i) {
    const size_t k = size_t(i);
    const int64_t span = a.dilate[k] * (a.kernel[k] - 1) + 1, length = data[first + i];
    if (length == Shape::kUnknown) continue;
    if (length + 2 * a.pad[k] < span) {
      throw Error(Code::kShape,
                  text("data: expected a padded length of at least ", span, " for kernel ", print_tuple(a.kernel),
                       ", found ", data),
                  "data");
    }
    result[first + i] = (length + 2 * a.pad[k] - span) / a.stride[k] + 1;
  }
  unify(out[0], result, "output");

  // The other way: the batch always, a length where the stride skips nothing.
  if (data[0] == Shape::kUnknown) data[0] = out[0][0];
  for (int i = 0; i < num_axes; ++i) {
    const size_t k = size_t(i);
    if (data[first + i] == Shape::kUnknown && out[0][first + i] != Shape::kUnknown && a.stride[k] == 1) {
      data[first + i] = out[0][first + i] + a.dilate[k] * (a.kernel[k] - 1) - 2 * a.pad[k];
    }
  }
}

COHORT_OPERATOR(Convolution, ConvolutionAttrs)
    .alias("Convolution_v1")
    .alias("_npx_convolution")
    .doc("Convolves data with num_filter filters, over 1 to 3 spatial axes.")
    .required(&ConvolutionAttrs::kernel, "kernel", "Filter size: (w,), (h, w) or (d, h, w).")
    .attr(&ConvolutionAttrs::stride, "stride", Tuple(), "Step of the filter; 1 for each axis if not given.")
    .attr(&ConvolutionAttrs::dilate, "dilate", Tuple(), "Distance of filter elements; 1 for each axis if not given.")
    .attr(&ConvolutionAttrs::pad, "pad", Tuple(), "Zeros added on both sides; none if not given.")
    .required(&ConvolutionAttrs::num_filter, "num_filter", "Number of filters, the channels of the output.")
    .shown_as("int (non-negative)")
    .attr(&ConvolutionAttrs::num_group, "num_group", 1, "Groups of channels that are convolved apart.")
    .shown_as("int (non-negative)")
    .ignored("workspace", "long (non-negative)", "1024", "No meaning here.")
    .attr(&ConvolutionAttrs::no_bias, "no_bias", false, "Whether there is no bias.")
    .ignored("cudnn_tune", "{None, 'fastest', 'limited_workspace', 'off'}", "None", "No meaning here.")
    .ignored("cudnn_off", "boolean", "0", "No meaning here.")
    .choice(&ConvolutionAttrs::layout, "layout",
            {{"None", ImageLayout::kNone},
             {"NCDHW", ImageLayout::kNCDHW},
             {"NCHW", ImageLayout::kNCHW},
             {"NCW", ImageLayout::kNCW},
             {"NDHWC", ImageLayout::kNDHWC},
             {"NHWC", ImageLayout::kNHWC}},
            ImageLayout::kNone, "Layout of data and output; None: channels before the spatial axes.")
    .check(check)
    .input("data", "Input data, (batch, channels, spatial axes) in the default layout.")
    .input("weight", "Filters, (num_filter, channels / num_group, kernel) in the default layout.")
    .input_if(
        "bias", [](const ConvolutionAttrs &a) { return !a.no_bias; }, "Bias, (num_filter,).")
    .infer_shape(infer_shape)
    .gradient([](const ConvolutionAttrs &a) {
      Gradient g;
      g.kind = Gradient::Kind::kKernel;
      g.of = a.no_bias ? std::vector<int>{0, 1} : std::vector<int>{0, 1, 2};
      g.inputs = {0, 1};
      return g;
    });

}  // namespace
}  // namespace cohort
