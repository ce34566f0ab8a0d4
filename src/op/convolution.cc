// SPDX-License-Identifier: Apache-2.0
#include "op/convolution.hpp"

#include "op/linear.hpp"

namespace cohort {
namespace {

void infer_shape(const ConvolutionAttrs &a, Shapes &in, Shapes &out) {
  const int num_axes = int(a.kernel.size()), rank = num_axes + 2;
  const int channels = channel_axis(a.layout, rank), first = spatial_axis(a.layout);
  Shape &data = in[0];
  if (!infer_filters(a, in, out)) return;

  Shape weight = Shape::of_rank(rank);
  weight[0] = a.num_filter;
  for (int i = 0; i < num_axes; ++i) weight[first + i] = a.kernel[size_t(i)];
  if (data[channels] != Shape::kUnknown) weight[channels] = data[channels] / a.num_group;
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

  // Infers in the other direction: the batch always, lengths if the stride is 1.
  if (data[0] == Shape::kUnknown) data[0] = out[0][0];
  for (int i = 0; i < num_axes; ++i) {
    const size_t k = size_t(i);
    if (data[first + i] == Shape::kUnknown && out[0][first + i] != Shape::kUnknown && a.stride[k] == 1) {
      data[first + i] = out[0][first + i] + a.dilate[k] * (a.kernel[k] - 1) - 2 * a.pad[k];
    }
  }
}

OpBuilder<ConvolutionAttrs> convolution() {
  OpBuilder<ConvolutionAttrs> op("Convolution");
  op.narrow();
  op.alias("Convolution_v1")
      .alias("_npx_convolution")
      .doc("Convolves data with num_filter filters, over 1 to 3 spatial axes.")
      .required(&ConvolutionAttrs::kernel, "kernel", "Filter size: (w,), (h, w) or (d, h, w).")
      .attr(&ConvolutionAttrs::stride, "stride", Tuple(), "Step of the filter along each axis; default 1.")
      .attr(&ConvolutionAttrs::dilate, "dilate", Tuple(),
            "Distance between filter elements along each axis; default 1.")
      .attr(&ConvolutionAttrs::pad, "pad", Tuple(), "Zeros added on both sides of each axis; default 0.")
      .check(check_filters<ConvolutionAttrs>)
      .infer_shape(infer_shape)
      .flops([](const ConvolutionAttrs &, const Shapes &in, const Shapes &out) {
        return 2 * double(out[0].size()) * double(in[1].size(1, in[1].rank()));
      })
      .linear_layer([](const ConvolutionAttrs &a) {
        auto with_bias = std::make_shared<ConvolutionAttrs>(a);
        with_bias->no_bias = false;
        return LinearLayer{channel_axis(a.layout, int(a.kernel.size()) + 2), !a.no_bias, Attrs(with_bias)};
      });
  return define_filters(op,
                        {"Number of filters, the channels of the output.",
                         "Filters, (num_filter, channels / num_group, kernel) in the default layout.", "1024", false});
}

[[maybe_unused]] const auto kConvolution = convolution();

}  // namespace
}  // namespace cohort
