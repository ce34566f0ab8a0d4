// SPDX-License-Identifier: Apache-2.0
#include "op/roi_pooling.hpp"

#include "op/roi_align.hpp"

namespace cohort {
namespace {

using A = RoiPoolingAttrs;

COHORT_OPERATOR(ROIPooling, RoiPoolingAttrs)
    .alias("_npx_roi_pooling")
    .doc("Maxima over a grid of windows in each region; 0 for a window outside of the image.")
    .required(&A::pooled_size, "pooled_size", "Height and width of the grid.")
    .required(&A::spatial_scale, "spatial_scale", "Ratio of the size of data to the scale of rois.")
    .range(0, 1)
    .check([](A &a) { check_pooled_size(a.pooled_size); })
    .input("data", "Images, (batch, channels, height, width).")
    .input("rois", "Regions, (count, 5): image, x1, y1, x2, y2, corners included. A negative image index gives zeros.")
    .infer_shape([](const A &a, Shapes &in, Shapes &out) {
      unify(in[1], Shape{Shape::kUnknown, 5}, "rois");
      if (!in[0].rank_known()) return;
      unify(in[0], Shape::of_rank(4), "data");
      unify(out[0], Shape{in[1][0], in[0][1], a.pooled_size[0], a.pooled_size[1]}, "output");
    })
    .same_float()
    .gradient(Gradient::by_kernel({0}, {1}).beside_forward());

}  // namespace
}  // namespace cohort
