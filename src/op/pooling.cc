// SPDX-License-Identifier: Apache-2.0
#include "op/pooling.hpp"

#include <algorithm>

namespace cohort {

PoolingWindow pooling_window(const PoolingAttrs &a, const Shape &data) {
  if (!a.global_pool) return {a.kernel, a.stride, a.pad};
  const size_t num_axes = size_t(data.rank() - 2);
  const int first = spatial_axis(a.layout);
  PoolingWindow window{Tuple(num_axes), Tuple(num_axes, 1), Tuple(num_axes, 0)};
  for (size_t k = 0; k < num_axes; ++k) window.kernel[k] = data[first + int(k)];
  return window;
}

OpBuilder<PoolingAttrs> &define_pooling(OpBuilder<PoolingAttrs> &op) {
  using A = PoolingAttrs;
  return op.attr(&A::kernel, "kernel", Tuple(), "Window size: (w,), (h, w) or (d, h, w).")
      .choice(
          &A::pool_type, "pool_type", {{"avg", A::kAvg}, {"lp", A::kLp}, {"max", A::kMax}, {"sum", A::kSum}}, A::kMax,
          "The function applied to each window. The maximum of a window with a NaN is NaN, in training and inference.")
      .attr(&A::global_pool, "global_pool", false, "Whether a single window covers all spatial axes.")
      .ignored("cudnn_off", "boolean", "0", "Ignored.")
      .choice(&A::pooling_convention, "pooling_convention",
              {{"full", A::kFull}, {"same", A::kSame}, {"valid", A::kValid}}, A::kValid,
              "Rounding of the output length: full rounds up, valid rounds down, same is length / stride rounded up.")
      .attr(&A::stride, "stride", Tuple(), "Step of the window along each axis; default 1.")
      .attr(&A::pad, "pad", Tuple(), "Padding on both sides of each axis; default 0.")
      .attr(&A::p_value, "p_value", std::nullopt, "Order of the norm for pool_type lp: 1, 2 or 3.")
      .attr(&A::count_include_pad, "count_include_pad", std::nullopt, "Whether means include the padding; None: yes.")
      .choice(&A::layout, "layout", layout_words(LayoutWords::kAll), ImageLayout::kNone,
              "Layout of data and output; None: channels before the spatial axes.");
}

namespace {

void check(PoolingAttrs &a) {
  if (a.global_pool) {
    a.kernel.clear();
    a.stride.clear();
    a.pad.clear();
    return;
  }
  const size_t num_axes = spatial_axes(a.kernel);
  complete_window(a.kernel, num_axes, 1, 1, "kernel");
  complete_window(a.stride, num_axes, 1, 1, "stride");
  complete_window(a.pad, num_axes, 0, 0, "pad");
  check_layout(a.layout, num_axes);
  for (size_t k = 0; k < num_axes; ++k) {
    if (a.pad[k] >= a.kernel[k]) {
      throw Error(Code::kInvalidArgument,
                  text("attribute 'pad': expected entries below kernel ", print_tuple(a.kernel), ", found ",
                       print_tuple(a.pad)),
                  "pad");
    }
  }
  if (a.pool_type == PoolingAttrs::kLp && (!a.p_value || *a.p_value < 1 || *a.p_value > 3)) {
    throw Error(Code::kInvalidArgument,
                text("attribute 'p_value': expected 1, 2 or 3 for pool_type lp, found ",
                     a.p_value ? std::to_string(*a.p_value) : "None"),
                "p_value");
  }
}

int64_t pooled_length(const PoolingAttrs &a, size_t k, int64_t length) {
  const int64_t whole = length + 2 * a.pad[k], room = whole - a.kernel[k], stride = a.stride[k];
  if (a.pooling_convention == PoolingAttrs::kSame) return (length + stride - 1) / stride;
  if (a.pooling_convention == PoolingAttrs::kValid) return room / stride + 1;
  if (a.v1) return std::min(whole - 1, room + stride - 1) / stride + 1;
  return (room + stride - 1) / stride + 1;
}

void infer_shape(const PoolingAttrs &a, Shapes &in, Shapes &out) {
  Shape &data = in[0];
  if (!a.global_pool && (data.rank_known() || out[0].rank_known())) {
    unify(data, Shape::of_rank(int(a.kernel.size()) + 2), "data");
  }
  if (!data.rank_known()) return;
  if (data.rank() < 3 || data.rank() > 5) {
    throw Error(Code::kShape, text("data: expected 3 to 5 axes, found ", data), "data");
  }
  const int channels = channel_axis(a.layout, data.rank()), first = spatial_axis(a.layout);
  Shape result = Shape::of_rank(data.rank());
  result[0] = data[0];
  result[channels] = data[channels];
  for (int i = 0; i < data.rank() - 2; ++i) {
    const int64_t length = data[first + i];
    if (a.global_pool) {
      result[first + i] = 1;
    } else if (length != Shape::kUnknown) {
      const size_t k = size_t(i);
      if (a.kernel[k] > length + 2 * a.pad[k] && a.pooling_convention != PoolingAttrs::kSame) {
        throw Error(Code::kShape,
                    text("data: expected a padded length of at least that of kernel ", print_tuple(a.kernel),
                         ", found ", data, " with pad ", print_tuple(a.pad)),
                    "data");
      }
      result[first + i] = pooled_length(a, k, length);
    }
  }
  unify(out[0], result, "output");
  if (data[0] == Shape::kUnknown) data[0] = out[0][0];
  if (data[channels] == Shape::kUnknown) data[channels] = out[0][channels];
}

Gradient gradient() { return Gradient::by_kernel({0}, {0}, {0}).beside_forward(); }

[[maybe_unused]] const bool defined = [] {
  OpBuilder<PoolingAttrs> op("Pooling");
  op.follows();
  define_pooling(op)
      .alias("_npx_pooling")
      .doc("Maximum, mean, sum or p-norm over windows along 1 to 3 spatial axes.")
      .check(check)
      .input("data", "(batch, channels, spatial axes) in the default layout.")
      .infer_shape(infer_shape)
      .gradient(gradient())
      .names_only_input();
  return true;
}();

COHORT_OPERATOR(Pooling_v1, PoolingAttrs)
    .doc("Pooling of old files: means always divide by the kernel size.")
    .attr(&PoolingAttrs::kernel, "kernel", Tuple(), "Window size: (h, w) or (d, h, w).")
    .choice(
        &PoolingAttrs::pool_type, "pool_type",
        {{"avg", PoolingAttrs::kAvg}, {"max", PoolingAttrs::kMax}, {"sum", PoolingAttrs::kSum}}, PoolingAttrs::kMax,
        "The function applied to each window. The maximum of a window with a NaN is NaN, in training and inference.")
    .attr(&PoolingAttrs::global_pool, "global_pool", false, "Whether a single window covers all spatial axes.")
    .choice(&PoolingAttrs::pooling_convention, "pooling_convention",
            {{"full", PoolingAttrs::kFull}, {"valid", PoolingAttrs::kValid}}, PoolingAttrs::kValid,
            "Rounding of the output length: full rounds up, valid rounds down.")
    .attr(&PoolingAttrs::stride, "stride", Tuple(), "Step of the window along each axis; default 1.")
    .attr(&PoolingAttrs::pad, "pad", Tuple(), "Padding on both sides of each axis; default 0.")
    .check([](PoolingAttrs &a) {
      a.v1 = true;
      a.layout = ImageLayout::kNone;
      check(a);
    })
    .input("data", "(batch, channels, spatial axes).")
    .infer_shape(infer_shape)
    .gradient(gradient())
    .names_only_input();

}  // namespace
}  // namespace cohort
