// SPDX-License-Identifier: Apache-2.0
#include "op/diag.hpp"

#include <algorithm>
#include <cstdlib>

namespace cohort {

DiagonalRange diagonal_of(const DiagAttrs &a, const Shape &matrix) {
  DiagonalRange d;
  d.axis1 = normalize_axis(a.axis1, matrix.rank(), "axis1");
  d.axis2 = normalize_axis(a.axis2, matrix.rank(), "axis2");
  if (d.axis1 == d.axis2) {
    throw Error(Code::kInvalidArgument,
                text("attributes 'axis1' and 'axis2': expected two axes, found ", a.axis1, " and ", a.axis2), "axis2");
  }
  d.row = a.k < 0 ? -int64_t(a.k) : 0;
  d.column = a.k > 0 ? a.k : 0;
  d.length = std::min(matrix[d.axis1] - d.row, matrix[d.axis2] - d.column);
  if (d.length < 0) {
    throw Error(Code::kInvalidArgument, text("attribute 'k': ", matrix, " has no diagonal ", a.k), "k");
  }
  for (int axis = 0; axis < matrix.rank(); ++axis) {
    if (axis != d.axis1 && axis != d.axis2) d.rest.push_back(axis);
  }
  return d;
}

namespace {

COHORT_OPERATOR(diag, DiagAttrs)
    .doc("The diagonal of data as the last axis; for a vector, the matrix with that diagonal.")
    .attr(&DiagAttrs::k, "k", 0, "Index of the diagonal; positive: above the main one.")
    .attr(&DiagAttrs::axis1, "axis1", 0, "The axis of rows; negative counts from the last.")
    .attr(&DiagAttrs::axis2, "axis2", 1, "The axis of columns.")
    .input("data", "At least one axis.")
    .names_only_input()
    .infer_shape([](const DiagAttrs &a, Shapes &in, Shapes &out) {
      if (!in[0].known()) return;
      if (in[0].rank() == 0) throw Error(Code::kShape, "data: expected at least one axis, found ()", "data");
      if (in[0].rank() == 1) {
        const int64_t side = in[0][0] + std::llabs(a.k);
        return unify(out[0], Shape{side, side}, "output");
      }
      const DiagonalRange d = diagonal_of(a, in[0]);
      std::vector<int64_t> result;
      for (int axis : d.rest) result.push_back(in[0][axis]);
      result.push_back(d.length);
      unify(out[0], Shape(result), "output");
    })
    .gradient([](const DiagAttrs &) { return Gradient::by_kernel({0}); });

}  // namespace
}  // namespace cohort
