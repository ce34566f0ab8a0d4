// SPDX-License-Identifier: Apache-2.0
#include "op/coordinates.hpp"

namespace cohort {

std::vector<int> asked_axes(const IndexArrayAttrs &a, int rank) {
  std::vector<int> axes;
  if (a.axes) {
    for (int64_t axis : *a.axes) axes.push_back(normalize_axis(axis, rank, "axes"));
  } else {
    for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
  }
  return axes;
}

namespace {

void check_lengths(RavelAttrs &a) {
  bool good = !a.shape.empty();
  for (size_t i = 1; i < a.shape.size(); ++i) good = good && a.shape[i] > 0;
  if (!good) {
    throw Error(Code::kInvalidArgument,
                text("attribute 'shape': expected lengths of at least 1, found ", print_tuple(a.shape)), "shape");
  }
}

COHORT_OPERATOR(_ravel_multi_index, RavelAttrs)
    .alias("ravel_multi_index")
    .doc("The row-major index of each column of coordinates.")
    .attr(&RavelAttrs::shape, "shape", Tuple(), "The shape of the indexed array; the first length may be -1.")
    .check(check_lengths)
    .input("data", "(M, N): N columns of M coordinates, which are not checked against the shape.")
    .names_only_input()
    .infer_shape([](const RavelAttrs &a, Shapes &in, Shapes &out) {
      unify(in[0], Shape{int64_t(a.shape.size()), out[0].rank_known() && out[0].rank() == 1 ? out[0][0] : -1}, "data");
      unify(out[0], Shape{in[0][1]}, "output");
    });

COHORT_OPERATOR(_unravel_index, RavelAttrs)
    .alias("unravel_index")
    .doc("The coordinates of each row-major index; an index too large increases the first coordinate.")
    .attr(&RavelAttrs::shape, "shape", Tuple(), "The shape of the indexed array; the first length may be -1.")
    .check(check_lengths)
    .input("data", "Indices, any shape.")
    .names_only_input()
    .infer_shape([](const RavelAttrs &a, Shapes &in, Shapes &out) {
      if (out[0].rank_known() && out[0].rank() > 0) {
        unify(in[0], Shape(std::vector<int64_t>(out[0].begin() + 1, out[0].end())), "data");
      }
      if (!in[0].rank_known()) return;
      std::vector<int64_t> result(in[0].begin(), in[0].end());
      result.insert(result.begin(), int64_t(a.shape.size()));
      unify(out[0], Shape(result), "output");
    });

template <typename A>
void infer_int64(const A &, Dtypes &, Dtypes &out) {
  unify(out[0], Dtype::kInt64, "output");
}

COHORT_OPERATOR(_contrib_index_array, IndexArrayAttrs)
    .doc("The coordinates of each element of data, as int64.")
    .attr(&IndexArrayAttrs::axes, "axes", std::nullopt,
          "The axes of the coordinates; negative ones count from the last.")
    .input("data", "Only its shape is used.")
    .names_only_input()
    .infer_shape([](const IndexArrayAttrs &a, Shapes &in, Shapes &out) {
      if (!in[0].rank_known()) return;
      std::vector<int64_t> result(in[0].begin(), in[0].end());
      result.push_back(int64_t(asked_axes(a, in[0].rank()).size()));
      unify(out[0], Shape(result), "output");
    })
    .infer_dtype(infer_int64<IndexArrayAttrs>);

COHORT_OPERATOR(shape_array, NoAttrs)
    .alias("_npx_shape_array")
    .doc("The shape of data, as int64.")
    .input("data", "Any shape.")
    .infer_shape([](const NoAttrs &, Shapes &in, Shapes &out) {
      if (in[0].rank_known()) unify(out[0], Shape{in[0].rank()}, "output");
    })
    .infer_dtype(infer_int64<NoAttrs>);

COHORT_OPERATOR(size_array, NoAttrs)
    .doc("The number of elements of data, as int64.")
    .input("data", "Any shape.")
    .infer_shape([](const NoAttrs &, Shapes &, Shapes &out) { unify(out[0], Shape{1}, "output"); })
    .infer_dtype(infer_int64<NoAttrs>);

}  // namespace
}  // namespace cohort
