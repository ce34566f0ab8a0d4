// SPDX-License-Identifier: Apache-2.0
#include "op/psroi_pooling.hpp"

#include "op/checked_length.hpp"
#include "op/roi_align.hpp"

namespace cohort {
namespace {

constexpr int64_t kAny = Shape::kUnknown;

template <typename A>
void infer_regions(const A &a, Shapes &in, Shapes &out) {
  unify(in[0], Shape::of_rank(4), "data");
  unify(in[1], Shape{out[0].rank() == 4 ? out[0][0] : kAny, 5}, "rois");
  const int64_t least = checked_times(checked_times(a.group_size, a.group_size), a.output_dim);
  if (in[0][1] != kAny && in[0][1] < least) {
    throw Error(Code::kShape, text("data: expected at least ", least, " channels, found ", in[0]), "data");
  }
  unify(out[0], Shape{in[1][0], a.output_dim, a.pooled_size, a.pooled_size}, "output");
}

using A = PsRoiPoolingAttrs;

COHORT_OPERATOR(_contrib_PSROIPooling, PsRoiPoolingAttrs)
    .doc(
        "Position-sensitive ROI pooling: means over a grid of windows in each region, each window from a channel of "
        "its "
        "own; 0 outside of the image.")
    .required(&A::spatial_scale, "spatial_scale", "Ratio of the size of data to the scale of rois.")
    .range(0, 1)
    .required(&A::output_dim, "output_dim", "Number of channels of the output.")
    .range(1)
    .required(&A::pooled_size, "pooled_size", "Number of windows per side of a region.")
    .range(1)
    .attr(&A::group_size, "group_size", 0, "Number of channel groups per side; 0: pooled_size.")
    .range(0)
    .check([](A &a) {
      if (a.group_size == 0) a.group_size = a.pooled_size;
    })
    .input("data", "Images, (batch, output_dim * group_size * group_size, height, width).")
    .input("rois", "Regions, (count, 5): image, x1, y1, x2, y2. A negative image index gives zeros.")
    .infer_shape(infer_regions<A>)
    .same_float()
    .gradient(Gradient::by_kernel({0}, {1}));

using D = DeformablePsRoiPoolingAttrs;

void infer_deformable(const D &a, Shapes &in, Shapes &out) {
  infer_regions(a, in, out);
  unify(out[1], out[0], "top_count");
  if (a.no_trans) return;
  unify(in[2], Shape{in[1][0], kAny, a.part_size, a.part_size}, "trans");
  unify(in[1], Shape{in[2][0], 5}, "rois");
  unify(out[0], Shape{in[2][0], kAny, kAny, kAny}, "output");
  unify(out[1], out[0], "top_count");
  if (in[2][1] == kAny) return;
  if (in[2][1] < 2 || in[2][1] % 2 != 0 || a.output_dim % (in[2][1] / 2) != 0) {
    throw Error(Code::kShape,
                text("trans: expected two channels for each class and a number of classes that divides output_dim = ",
                     a.output_dim, ", found ", in[2]),
                "trans");
  }
}

COHORT_OPERATOR(_contrib_DeformablePSROIPooling, DeformablePsRoiPoolingAttrs)
    .doc(
        "Deformable position-sensitive ROI pooling: means over a grid of windows in each region, each window from a "
        "channel of its own, shifted by trans and sampled between elements; 0 outside of the image.")
    .required(&D::spatial_scale, "spatial_scale", "Ratio of the size of data to the scale of rois.")
    .range(0, 1)
    .required(&D::output_dim, "output_dim", "Number of channels of the output.")
    .range(1)
    .required(&D::group_size, "group_size", "Number of channel groups per side.")
    .range(1)
    .required(&D::pooled_size, "pooled_size", "Number of windows per side of a region.")
    .range(1)
    .attr(&D::part_size, "part_size", 0, "Number of separately shifted parts per side of a region; 0: pooled_size.")
    .range(0)
    .attr(&D::sample_per_part, "sample_per_part", 1, "Samples per side of a window.")
    .range(1)
    .attr(&D::trans_std, "trans_std", 0.0f, "Shift for a trans of 1, relative to the sides of the region.")
    .range(0.0f, 1.0f)
    .attr(&D::no_trans, "no_trans", false, "Whether there are no shifts and no input trans.")
    .check([](D &a) {
      if (a.part_size == 0) a.part_size = a.pooled_size;
    })
    .input("data", "Images, (batch, output_dim * group_size * group_size, height, width).")
    .input("rois", "Regions, (count, 5): image, x1, y1, x2, y2. A negative image index gives zeros.")
    .input_if(
        "trans", [](const D &a) { return !a.no_trans; },
        "Shifts of the parts, (count, 2 * classes, part_size, part_size), x before y.")
    .outputs([](const D &) { return 2; }, [](const D &) { return 1; })
    .output_names([](const D &) {
      return std::vector<std::string>{"output", "top_count"};
    })
    .infer_shape(infer_deformable)
    .same_float()
    .gradient([](const D &a) {
      return a.no_trans ? Gradient::by_kernel({0}, {0, 1}, {1}) : Gradient::by_kernel({0, 2}, {0, 1, 2}, {1});
    });

}  // namespace
}  // namespace cohort
