// SPDX-License-Identifier: Apache-2.0
// Operators whose number of output rows depends on input values: kernels "_shape_NAME" compute it before the operator
// itself runs (executor/invoke.cc).
#include "op/boolean_mask.hpp"

#include <algorithm>

namespace cohort {
namespace {

COHORT_OPERATOR(_contrib_boolean_mask, BooleanMaskAttrs)
    .alias("_npi_boolean_mask")
    .doc("The rows of data for which index is not 0.")
    .attr(&BooleanMaskAttrs::axis, "axis", 0, "The axis of the rows; must be the first.")
    .range(0, 0)
    .input("data", "At least one axis.")
    .input("index", "One number per row.")
    .infer_shape([](const BooleanMaskAttrs &, Shapes &in, Shapes &out) {
      unify(in[1], Shape::of_rank(1), "index");
      if (in[0].rank_known()) {
        if (in[0].rank() == 0) throw Error(Code::kShape, "data: expected at least one axis, found none", "data");
        if (in[0][0] != Shape::kUnknown) unify(in[1], Shape{in[0][0]}, "index");
        Shape rows = in[0];
        rows[0] = Shape::kUnknown;
        unify(out[0], rows, "output");
      }
    })
    .infer_dtype([](const BooleanMaskAttrs &, Dtypes &in, Dtypes &out) {
      unify(in[0], out[0], "data");
      unify(out[0], in[0], "output");
    })
    .gradient(Gradient::by_kernel({0}, {1}));

COHORT_OPERATOR(_npx_nonzero, NoAttrs)
    .alias("_npi_nonzero")
    .doc("The coordinates of the elements that are not 0, one row each.")
    .input("x", "Any shape; a scalar counts as one element.")
    .infer_shape([](const NoAttrs &, Shapes &in, Shapes &out) {
      if (in[0].rank_known()) unify(out[0], Shape{Shape::kUnknown, std::max(in[0].rank(), 1)}, "output");
    })
    .infer_dtype([](const NoAttrs &, Dtypes &, Dtypes &out) { unify(out[0], Dtype::kInt64, "output"); });

}  // namespace
}  // namespace cohort
