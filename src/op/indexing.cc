// SPDX-License-Identifier: Apache-2.0
#include "op/indexing.hpp"

#include "op/dtype_words.hpp"
#include "op/reduce.hpp"

namespace cohort {
namespace {

Gradient kernel_gradient(std::vector<int> of, std::vector<int> inputs) {
  return Gradient::by_kernel(std::move(of), std::move(inputs));
}

// Output and first input have one type; indices may have any.
template <typename A>
void infer_indexed_dtype(const A &, Dtypes &in, Dtypes &out) {
  unify(out[0], in[0], "output");
  unify(in[0], out[0], "data");
  if (in[1] == Dtype::kNone) in[1] = Dtype::kFloat32;
}

COHORT_OPERATOR(take, TakeAttrs)
    .alias("_npi_take")
    .doc("Slices of a along one axis, selected by index.")
    .attr(&TakeAttrs::axis, "axis", 0, "The axis; negative counts from the last.")
    .choice(&TakeAttrs::mode, "mode",
            {{"clip", IndexMode::kClip}, {"raise", IndexMode::kRaise}, {"wrap", IndexMode::kWrap}}, IndexMode::kClip,
            "Indices out of range: clip to the nearest, raise an error, or wrap around.")
    .input("a", "The array to select from.")
    .input("indices", "Indices, any shape.")
    .infer_shape([](const TakeAttrs &a, Shapes &in, Shapes &out) {
      if (!in[0].rank_known() || !in[1].rank_known()) return;
      const int axis = normalize_axis(a.axis, in[0].rank(), "axis");
      std::vector<int64_t> result(in[0].begin(), in[0].begin() + axis);
      result.insert(result.end(), in[1].begin(), in[1].end());
      result.insert(result.end(), in[0].begin() + axis + 1, in[0].end());
      unify(out[0], Shape(result), "output");
    })
    .infer_dtype(infer_indexed_dtype<TakeAttrs>)
    .gradient(kernel_gradient({0}, {1}));

COHORT_OPERATOR(pick, PickAttrs)
    .alias("choose_element_0index")
    .alias("_npx_pick")
    .doc("One element of data along an axis, selected by index.")
    .attr(&PickAttrs::axis, "axis", -1, "The axis; None: the flattened array.")
    .attr(&PickAttrs::keepdims, "keepdims", false, "Whether the axis is kept with length 1.")
    .choice(&PickAttrs::mode, "mode", {{"clip", IndexMode::kClip}, {"wrap", IndexMode::kWrap}}, IndexMode::kClip,
            "Indices out of range: clip to the nearest, or wrap around.")
    .input("data", "The array to select from.")
    .input("index", "The shape of data without the axis, or with length 1 there.")
    .infer_shape([](const PickAttrs &a, Shapes &in, Shapes &out) {
      if (!in[0].rank_known()) return;
      std::vector<int64_t> kept, dropped;
      if (a.axis) {
        const int axis = normalize_axis(*a.axis, in[0].rank(), "axis");
        kept = dropped = std::vector<int64_t>(in[0].begin(), in[0].end());
        kept[size_t(axis)] = 1;
        dropped.erase(dropped.begin() + axis);
      } else {
        kept.assign(size_t(in[0].rank()), 1);
      }
      if (dropped.empty()) dropped.push_back(1);
      unify(out[0], Shape(a.keepdims ? kept : dropped), "output");
      if (in[1].rank_known() && in[1].rank() == int(kept.size()) && in[1].merge(Shape(kept))) return;
      unify(in[1], Shape(dropped), "index");
    })
    .infer_dtype(infer_indexed_dtype<PickAttrs>)
    .gradient(kernel_gradient({0}, {1}));

COHORT_OPERATOR(batch_take, PickAttrs)
    .doc("One element of each row of a, selected by index; an index out of range selects the nearest.")
    .check([](PickAttrs &a) {
      a.axis = -1;
      a.mode = IndexMode::kClip;
    })
    .input("a", "At least 2 axes; its rows are along the last one.")
    .input("indices", "One index for each row of a.")
    .infer_shape([](const PickAttrs &, Shapes &in, Shapes &out) {
      unify(in[1], out[0], "indices");
      unify(out[0], in[1], "output");
      if (in[0].rank_known() && in[0].rank() < 2) {
        throw Error(Code::kShape, text("a: expected at least 2 axes, found ", in[0]), "a");
      }
      if (!in[0].known() || !in[1].known()) return;
      const int64_t rows = in[0].size(0, in[0].rank() - 1);
      if (in[1].size() != rows) {
        throw Error(Code::kShape, text("indices: expected ", rows, " indices, found ", in[1]), "indices");
      }
    })
    .infer_dtype([](const PickAttrs &, Dtypes &in, Dtypes &out) {
      unify(out[0], in[0], "output");
      unify(in[0], out[0], "a");
      unify(in[1], Dtype::kInt32, "indices");
    });

// For a matrix and vectors with one number per row.
void infer_row_shapes(Shapes &in, Shapes &out, size_t matrix, std::initializer_list<size_t> vectors) {
  unify(in[matrix], Shape::of_rank(2), "rows");
  unify(in[matrix], out[0], "rows");
  Shape length{in[matrix][0]};
  for (size_t i : vectors) unify(length, in[i], "one number for each row");
  for (size_t i : vectors) unify(in[i], length, "one number for each row");
  in[matrix][0] = length[0];
  unify(out[0], in[matrix], "output");
}

COHORT_OPERATOR(fill_element_0index, NoAttrs)
    .doc("lhs with one element of each row replaced; rows whose index is out of range are unchanged.")
    .input("lhs", "Rows, two axes.")
    .input("mhs", "The new values, one for each row.")
    .input("rhs", "The indices, one for each row.")
    .inplace(0, 0)
    .infer_shape([](const NoAttrs &, Shapes &in, Shapes &out) {
      infer_row_shapes(in, out, 0, {1, 2});
    })
    .infer_dtype([](const NoAttrs &, Dtypes &in, Dtypes &out) {
      for (Dtype d : {out[0], in[1]}) unify(in[0], d, "lhs");
      if (in[0] == Dtype::kNone) in[0] = in[2];
      unify(out[0], in[0], "output");
      unify(in[1], in[0], "mhs");
      if (in[2] == Dtype::kNone) in[2] = in[0];
    });

COHORT_OPERATOR(_onehot_encode, NoAttrs)
    .doc("Zeros in the shape and type of rhs, with a 1 in each row whose index is in range.")
    .input("lhs", "The indices, one for each row.")
    .input("rhs", "Two axes. Only its shape and type are used.")
    .infer_shape([](const NoAttrs &, Shapes &in, Shapes &out) { infer_row_shapes(in, out, 1, {0}); })
    .infer_dtype([](const NoAttrs &, Dtypes &in, Dtypes &out) {
      unify(in[1], out[0], "rhs");
      if (in[1] == Dtype::kNone) in[1] = in[0];
      unify(out[0], in[1], "output");
      if (in[0] == Dtype::kNone) in[0] = in[1];
    });

COHORT_OPERATOR(one_hot, OneHotAttrs)
    .alias("_npx_one_hot")
    .doc("A row for each index, with on_value at the index and off_value elsewhere.")
    .required(&OneHotAttrs::depth, "depth", "The length of a row.")
    .range(0)
    .attr(&OneHotAttrs::on_value, "on_value", 1.0, "The value at the index.")
    .attr(&OneHotAttrs::off_value, "off_value", 0.0, "The value elsewhere.")
    .choice(&OneHotAttrs::dtype, "dtype",
            dtype_words({Dtype::kBfloat16, Dtype::kFloat16, Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt32,
                         Dtype::kInt64, Dtype::kInt8, Dtype::kUint8}),
            Dtype::kFloat32, "The type of the output.")
    .input("indices", "Indices, any shape.")
    .names_only_input()
    .infer_shape([](const OneHotAttrs &a, Shapes &in, Shapes &out) {
      if (!in[0].rank_known()) return;
      std::vector<int64_t> result(in[0].begin(), in[0].end());
      result.push_back(a.depth);
      unify(out[0], Shape(result), "output");
    })
    .infer_dtype([](const OneHotAttrs &a, Dtypes &, Dtypes &out) { unify(out[0], a.dtype, "output"); });

COHORT_OPERATOR(where, NoAttrs)
    .alias("_sparse_where")
    .doc("x where condition is not 0, y elsewhere.")
    .input("condition", "The shape of x, or one number for each row of x.")
    .input("x", "Any shape.")
    .input("y", "The shape of x.")
    .infer_shape([](const NoAttrs &, Shapes &in, Shapes &out) {
      for (Shape *s : {&in[1], &in[2], &out[0]}) unify(in[1], *s, "x");
      unify(in[2], in[1], "y");
      unify(out[0], in[1], "output");
      if (!in[1].rank_known()) return;
      if (in[0].rank_known() && in[0].rank() == 1 && in[1].rank() > 1) {
        unify(in[0], Shape{in[1][0]}, "condition");
      } else {
        unify(in[0], in[1], "condition");
      }
    })
    .infer_dtype([](const NoAttrs &, Dtypes &in, Dtypes &out) {
      for (Dtype d : {in[2], out[0]}) unify(in[1], d, "x");
      unify(in[2], in[1], "y");
      unify(out[0], in[1], "output");
      if (in[0] == Dtype::kNone) in[0] = in[1];
    })
    .gradient(kernel_gradient({1, 2}, {0}));

COHORT_OPERATOR(stack, StackAttrs)
    .doc("Joins arrays of one shape along a new axis.")
    .attr(&StackAttrs::axis, "axis", 0, "The new axis; negative counts from the last of the output.")
    .variadic("arg", "num_args", "The arrays to join.")
    .infer_shape([](const StackAttrs &a, Shapes &in, Shapes &out) {
      Shape all;
      for (size_t i = 0; i < in.size(); ++i) join(all, in[i], i);
      if (!all.rank_known()) return;
      for (Shape &s : in) s = all;
      std::vector<int64_t> result(all.begin(), all.end());
      result.insert(result.begin() + normalize_axis(a.axis, all.rank() + 1, "axis"), int64_t(in.size()));
      unify(out[0], Shape(result), "output");
    })
    .gradient(kernel_gradient({}, {}));

COHORT_OPERATOR(squeeze, SqueezeAttrs)
    .doc("Removes axes of length 1.")
    .attr(&SqueezeAttrs::axis, "axis", std::nullopt, "The axes; None: all of length 1.")
    .input("data", "Any shape.")
    .names_only_input()
    .infer_shape([](const SqueezeAttrs &a, Shapes &in, Shapes &out) {
      if (!in[0].known()) return;
      std::vector<bool> dropped(size_t(in[0].rank()), false);
      if (!a.axis) {
        for (int axis = 0; axis < in[0].rank(); ++axis) dropped[size_t(axis)] = in[0][axis] == 1;
      } else {
        for (const int axis : distinct_axes(*a.axis, in[0].rank(), "axis")) {
          if (in[0][axis] != 1) {
            throw Error(Code::kShape, text("data: expected a length of 1 on axis ", axis, ", found ", in[0]), "data");
          }
          dropped[size_t(axis)] = true;
        }
      }
      std::vector<int64_t> result;
      for (int axis = 0; axis < in[0].rank(); ++axis) {
        if (!dropped[size_t(axis)]) result.push_back(in[0][axis]);
      }
      if (result.empty()) result.push_back(1);
      unify(out[0], Shape(result), "output");
    })
    .view()
    .gradient([](const SqueezeAttrs &) {
      Gradient g;
      g.kind = Gradient::Kind::kPassThrough;
      g.of = {0};
      return g;
    });

}  // namespace
}  // namespace cohort
