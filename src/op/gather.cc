// SPDX-License-Identifier: Apache-2.0
#include "op/gather.hpp"

#include <algorithm>

namespace cohort {
namespace {

// The shape of the elements of `whole` that indices select.
Shape parts_shape(const Shape &indices, const Shape &whole) {
  if (indices.rank() < 2) {
    throw Error(Code::kShape, text("indices: expected at least 2 axes, found ", indices), "indices");
  }
  if (indices[0] > whole.rank()) {
    throw Error(Code::kShape, text("indices: expected at most ", whole.rank(), " coordinates, found ", indices),
                "indices");
  }
  std::vector<int64_t> parts(indices.begin() + 1, indices.end());
  parts.insert(parts.end(), whole.begin() + indices[0], whole.end());
  return Shape(parts);
}

template <typename A>
void infer_parts_dtype(const A &, Dtypes &in, Dtypes &out) {
  unify(out[0], in[0], "output");
  unify(in[0], out[0], "data");
  if (in[1] == Dtype::kNone) in[1] = Dtype::kFloat32;
}

Gradient of_data() { return Gradient::by_kernel({0}, {1}); }

COHORT_OPERATOR(gather_nd, NoAttrs)
    .alias("_npi_gather_nd")
    .alias("_npx_gather_nd")
    .doc("Elements or slices of data selected by coordinates.")
    .input("data", "The array to select from.")
    .input("indices", "(M, ...): coordinates along the first M axes of data; negative ones count from the end.")
    .infer_shape([](const NoAttrs &, Shapes &in, Shapes &out) {
      if (in[0].known() && in[1].known()) unify(out[0], parts_shape(in[1], in[0]), "output");
    })
    .infer_dtype(infer_parts_dtype<NoAttrs>)
    .gradient(of_data());

void check_shape(ScatterAttrs &a) {
  if (a.shape.empty() || std::any_of(a.shape.begin(), a.shape.end(), [](int64_t n) { return n < 0; })) {
    throw Error(Code::kInvalidArgument,
                text("attribute 'shape': expected the lengths of all axes, found ", print_tuple(a.shape)), "shape");
  }
}

OpBuilder<ScatterAttrs> scattered(const char *name, const char *doc) {
  OpBuilder<ScatterAttrs> op(name);
  op.doc(doc)
      .required(&ScatterAttrs::shape, "shape", "The shape of the output.")
      .check(check_shape)
      .input("data", "The values to write, in the shape of gather_nd's output.")
      .input("indices", "(M, ...): coordinates along the first M axes of the output.")
      .infer_shape([](const ScatterAttrs &a, Shapes &in, Shapes &out) {
        unify(out[0], Shape(a.shape), "output");
        if (in[1].known()) unify(in[0], parts_shape(in[1], out[0]), "data");
      })
      .infer_dtype(infer_parts_dtype<ScatterAttrs>);
  return op;
}

[[maybe_unused]] const bool defined = [] {
  scattered("scatter_nd",
            "Zeros with data written at coordinates; if several have the same coordinates, the last one stays.")
      .gradient(of_data());
  scattered("_backward_gather_nd", "Zeros with data added at coordinates.");
  return true;
}();

COHORT_OPERATOR(_scatter_set_nd, ScatterAttrs)
    .alias("_npi_scatter_set_nd")
    .doc("lhs with rhs written at coordinates.")
    .required(&ScatterAttrs::shape, "shape", "The shape of lhs.")
    .check(check_shape)
    .input("lhs", "The array to write to.")
    .input("rhs", "The values to write, in the shape of gather_nd's output.")
    .input("indices", "(M, ...): coordinates along the first M axes of lhs.")
    .infer_shape([](const ScatterAttrs &a, Shapes &in, Shapes &out) {
      unify(in[0], Shape(a.shape), "lhs");
      unify(out[0], in[0], "output");
      if (in[2].known()) unify(in[1], parts_shape(in[2], out[0]), "rhs");
    })
    .infer_dtype([](const ScatterAttrs &, Dtypes &in, Dtypes &out) {
      for (Dtype d : {in[1], out[0]}) unify(in[0], d, "lhs");
      unify(in[1], in[0], "rhs");
      unify(out[0], in[0], "output");
      if (in[2] == Dtype::kNone) in[2] = Dtype::kFloat32;
    })
    .inplace(0, 0);

COHORT_OPERATOR(_contrib_index_copy, NoAttrs)
    .doc("old_tensor with rows replaced by those of new_tensor, by index.")
    .input("old_tensor", "The array to write to.")
    .input("index_vector", "(K,): index of the row that each row of new_tensor replaces.")
    .input("new_tensor", "K rows, shaped like those of old_tensor.")
    .infer_shape([](const NoAttrs &, Shapes &in, Shapes &out) {
      unify(in[0], out[0], "old_tensor");
      unify(out[0], in[0], "output");
      unify(in[1], Shape::of_rank(1), "index_vector");
      if (!in[0].rank_known()) return;
      if (in[0].rank() < 1) throw Error(Code::kShape, "old_tensor: expected at least one axis, found ()", "old_tensor");
      Shape rows = in[0];
      rows[0] = in[1][0];
      unify(in[2], rows, "new_tensor");
      unify(in[1], Shape{in[2][0]}, "index_vector");
    })
    .infer_dtype([](const NoAttrs &, Dtypes &in, Dtypes &out) {
      for (Dtype d : {in[2], out[0]}) unify(in[0], d, "old_tensor");
      unify(in[2], in[0], "new_tensor");
      unify(out[0], in[0], "output");
      if (in[1] == Dtype::kNone) in[1] = Dtype::kInt32;
    })
    .inplace(0, 0)
    .gradient([](const NoAttrs &) {
      return Gradient::by_kernel({0, 2}, {1});
    });

}  // namespace
}  // namespace cohort
