// SPDX-License-Identifier: Apache-2.0
#include "op/roi_align.hpp"

#include "op/checked_length.hpp"

namespace cohort {

void check_pooled_size(const Tuple &pooled_size) {
  if (pooled_size.size() == 2 && pooled_size[0] >= 1 && pooled_size[1] >= 1) return;
  throw Error(Code::kInvalidArgument,
              text("attribute 'pooled_size': expected height and width, found ", print_tuple(pooled_size)),
              "pooled_size");
}

namespace {

using A = RoiAlignAttrs;

void infer_align(const A &a, Shapes &in, Shapes &out, int64_t numbers) {
  unify(in[1], Shape{out[0].rank() == 4 ? out[0][0] : Shape::kUnknown, numbers}, "rois");
  if (!in[0].rank_known()) return;
  unify(in[0], Shape::of_rank(4), "data");
  int64_t channels = in[0][1];
  if (a.position_sensitive && channels != Shape::kUnknown) {
    const int64_t windows = checked_times(a.pooled_size[0], a.pooled_size[1]);
    if (channels % windows != 0) {
      throw Error(Code::kShape, text("data: expected a multiple of ", windows, " channels, found ", in[0]), "data");
    }
    channels /= windows;
  }
  unify(out[0], Shape{in[1][0], channels, a.pooled_size[0], a.pooled_size[1]}, "output");
}

OpBuilder<A> align(const char *name, const char *ratio, int64_t numbers) {
  OpBuilder<A> op(name);
  op.required(&A::pooled_size, "pooled_size", "Height and width of the grid.")
      .required(&A::spatial_scale, "spatial_scale", "Ratio of the size of data to the scale of rois.")
      .range(0, 1)
      .attr(&A::sample_ratio, ratio, -1, "Samples along each side of a window; -1: about one per element.")
      .check([](A &a) { check_pooled_size(a.pooled_size); })
      .input("data", "Images, (batch, channels, height, width).")
      .infer_shape([numbers](const A &a, Shapes &in, Shapes &out) { infer_align(a, in, out, numbers); })
      .same_float()
      .gradient(Gradient::by_kernel({0}, {1}));
  return op;
}

[[maybe_unused]] const bool defined = [] {
  align("_contrib_ROIAlign", "sample_ratio", 5)
      .doc(
          "ROI align: means over a grid of windows in each region, interpolated between elements; 0 outside of the "
          "image.")
      .attr(&A::position_sensitive, "position_sensitive", false,
            "Whether each window of the grid reads a channel of its own.")
      .attr(&A::aligned, "aligned", false, "Whether coordinates refer to the centres of elements.")
      .input("rois", "Regions, (count, 5): image, x1, y1, x2, y2. A negative image index gives zeros.");
  align("_contrib_RROIAlign", "sampling_ratio", 6)
      .doc(
          "ROI align of rotated regions: means over a grid of windows, interpolated between elements; 0 outside of the "
          "image.")
      .input("rois",
             "Regions, (count, 6): image, x and y of the centre, width, height, and degrees counter-clockwise. A "
             "negative image index gives zeros.");
  return true;
}();

}  // namespace
}  // namespace cohort
