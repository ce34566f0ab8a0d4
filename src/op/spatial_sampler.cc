// SPDX-License-Identifier: Apache-2.0
#include "op/spatial_sampler.hpp"

namespace cohort {
namespace {

constexpr int64_t kUnknown = Shape::kUnknown;

void check_target(const Tuple &shape) {
  if (shape.size() == 2 && shape[0] >= 1 && shape[1] >= 1) return;
  throw Error(Code::kInvalidArgument,
              text("attribute 'target_shape': expected height and width, found ", print_tuple(shape)), "target_shape");
}

COHORT_OPERATOR(BilinearSampler, NoAttrs)
    .doc("Samples images at the positions of a grid by bilinear interpolation; zero outside.")
    .ignored("cudnn_off", "boolean or None", "None", "Ignored.")
    .input("data", "Images, (batch, channels, height, width).")
    .input("grid", "Positions, (batch, 2, output height, output width).")
    .infer_shape([](const NoAttrs &, Shapes &in, Shapes &out) {
      unify(in[0], Shape::of_rank(4), "data");
      unify(in[1], Shape{in[0][0], 2, kUnknown, kUnknown}, "grid");
      unify(out[0], Shape{in[0][0], in[0][1], in[1][2], in[1][3]}, "output");
    })
    .same_float()
    .gradient(Gradient::by_kernel({0, 1}, {0, 1}));

COHORT_OPERATOR(GridGenerator, GridGeneratorAttrs)
    .doc("Generates grids for BilinearSampler.")
    .input("data", "Affine matrices, (batch, 6), row by row; or a flow, (batch, 2, height, width).")
    .names_only_input()
    .required_choice(&GridGeneratorAttrs::warp, "transform_type", {{"affine", false}, {"warp", true}},
                     "Whether data holds affine matrices or a flow.")
    .attr(&GridGeneratorAttrs::target_shape, "target_shape", Tuple{0, 0}, "Height and width of the grid, for affine.")
    .check([](GridGeneratorAttrs &a) {
      if (!a.warp) check_target(a.target_shape);
    })
    .infer_shape([](const GridGeneratorAttrs &a, Shapes &in, Shapes &out) {
      if (a.warp) {
        unify(in[0], Shape{kUnknown, 2, kUnknown, kUnknown}, "data");
        unify(in[0], out[0], "data");
        unify(out[0], in[0], "output");
      } else {
        unify(in[0], Shape{kUnknown, 6}, "data");
        unify(out[0], Shape{in[0][0], 2, a.target_shape[0], a.target_shape[1]}, "output");
      }
    })
    .same_float()
    .gradient(Gradient::by_kernel({0}));

OpBuilder<SpatialTransformerAttrs> transformer() {
  OpBuilder<SpatialTransformerAttrs> op("SpatialTransformer");
  op.doc("Applies an affine transformation to each image.")
      .input("data", "Images, (batch, channels, height, width).")
      .input("loc", "Affine matrices, (batch, 6), row by row.")
      .attr(&SpatialTransformerAttrs::target_shape, "target_shape", Tuple{0, 0}, "Height and width of the output.")
      .required_choice(&SpatialTransformerAttrs::transform_type, "transform_type", {{"affine", 0}},
                       "The kind of transformation; only affine.")
      .required_choice(&SpatialTransformerAttrs::sampler_type, "sampler_type", {{"bilinear", 0}},
                       "The interpolation; only bilinear.")
      .ignored("cudnn_off", "boolean or None", "None", "Ignored.")
      .check([](SpatialTransformerAttrs &a) { check_target(a.target_shape); })
      .infer_shape([](const SpatialTransformerAttrs &a, Shapes &in, Shapes &out) {
        unify(in[0], Shape::of_rank(4), "data");
        unify(in[1], Shape{in[0][0], 6}, "loc");
        unify(out[0], Shape{in[0][0], in[0][1], a.target_shape[0], a.target_shape[1]}, "output");
      })
      .same_float()
      .gradient(Gradient::by_kernel({0, 1}, {0, 1}));
  return op;
}

[[maybe_unused]] const auto kTransformer = transformer();

}  // namespace
}  // namespace cohort
