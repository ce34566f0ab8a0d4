// SPDX-License-Identifier: Apache-2.0
#include "op/deconvolution.hpp"

#include <algorithm>

#include "op/linear.hpp"

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
  check_filters(a);
  const size_t num_axes = a.kernel.size();
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
}

void infer_shape(const DeconvolutionAttrs &a, Shapes &in, Shapes &out) {
  const int num_axes = int(a.kernel.size()), rank = num_axes + 2;
  const int channels = channel_axis(a.layout, rank), first = spatial_axis(a.layout);
  Shape &data = in[0];
  if (!infer_filters(a, in, out)) return;

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
  if (data.known()) deconvolution_padding(a, data);  // refuses a target_shape that cannot be reached
  unify(out[0], result, "output");
  if (data[0] == Shape::kUnknown) data[0] = out[0][0];
}

OpBuilder<DeconvolutionAttrs> deconvolution() {
  OpBuilder<DeconvolutionAttrs> op("Deconvolution");
  op.alias("_npx_deconvolution")
      .doc("Transposed convolution: the gradient of Convolution by its data.")
      .required(&DeconvolutionAttrs::kernel, "kernel", "Filter size: (w,), (h, w) or (d, h, w).")
      .attr(&DeconvolutionAttrs::stride, "stride", Tuple(), "Step of the filter in the output; default 1.")
      .attr(&DeconvolutionAttrs::dilate, "dilate", Tuple(), "Distance between filter elements; default 1.")
      .attr(&DeconvolutionAttrs::pad, "pad", Tuple(), "Elements cut off on both sides of the output; default 0.")
      .attr(&DeconvolutionAttrs::adj, "adj", Tuple(), "Elements added at the end of the output; below stride.")
      .attr(&DeconvolutionAttrs::target_shape, "target_shape", Tuple(),
            "Spatial shape of the output; if given, it decides pad and adj.")
      .check(check)
      .infer_shape(infer_shape)
      .narrow()
      .flops([](const DeconvolutionAttrs &, const Shapes &in, const Shapes &) {
        return 2 * double(in[0].size()) * double(in[1].size(1, in[1].rank()));
      });
  return define_filters(
      op, {"Channels of the output.", "Filters, (channels, num_filter / num_group, kernel) in the default layout.",
           "512", true});
}

[[maybe_unused]] const auto kDeconvolution = deconvolution();

}  // namespace
}  // namespace cohort
