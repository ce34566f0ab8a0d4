// SPDX-License-Identifier: Apache-2.0
#include "op/creation.hpp"

#include <cmath>

#include "op/checked_length.hpp"
#include "op/dtype_words.hpp"

namespace cohort {
namespace {

const DtypeWords kAllTypes = dtype_words({Dtype::kBfloat16, Dtype::kBool, Dtype::kFloat16, Dtype::kFloat32,
                                          Dtype::kFloat64, Dtype::kInt32, Dtype::kInt64, Dtype::kInt8, Dtype::kUint8});
const DtypeWords kRangeTypes = dtype_words({Dtype::kBfloat16, Dtype::kFloat16, Dtype::kFloat32, Dtype::kFloat64,
                                            Dtype::kInt32, Dtype::kInt64, Dtype::kInt8, Dtype::kUint8});
const DtypeWords kEyeTypes = dtype_words(
    {Dtype::kFloat16, Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt32, Dtype::kInt64, Dtype::kInt8, Dtype::kUint8});

// A length of 0 is inferred from the graph, and so is the whole shape if it is empty.
void infer_filled(const FillAttrs &a, Shapes &, Shapes &out) {
  if (a.shape.empty()) return;
  Shape shape(a.shape);
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 0 || shape[axis] == -1) shape[axis] = Shape::kUnknown;
  }
  unify(out[0], shape, "output");
}

template <typename A>
void infer_given_dtype(const A &a, Dtypes &, Dtypes &out) {
  unify(out[0], a.dtype, "output");
}

OpBuilder<FillAttrs> filled(const char *name, const char *doc) {
  OpBuilder<FillAttrs> op(name);
  op.doc(doc)
      .attr(&FillAttrs::shape, "shape", Tuple(), "The shape; lengths of 0 are inferred from the graph.")
      .ignored("ctx", "string", "''", "Ignored: the array is created on the caller's context.")
      .choice(&FillAttrs::dtype, "dtype", kAllTypes, Dtype::kFloat32, "Type of the output.")
      .infer_shape(infer_filled)
      .infer_dtype(infer_given_dtype<FillAttrs>);
  return op;
}

[[maybe_unused]] const bool defined = [] {
  filled("_zeros", "An array of zeros.");
  filled("_ones", "An array of ones.");
  filled("_full", "An array filled with one value.")
      .alias("_npi_full")
      .required(&FillAttrs::value, "value", "The value.");
  return true;
}();

COHORT_OPERATOR(_set_value, FillAttrs)
    .doc("Fills the given output with one value.")
    .attr(&FillAttrs::value, "src", 0.0, "The value.")
    .shown_as("real_t")
    .infer_shape([](const FillAttrs &, Shapes &, Shapes &) {})
    .infer_dtype([](const FillAttrs &, Dtypes &, Dtypes &) {});

COHORT_OPERATOR(_zeros_without_dtype, UntypedAttrs)
    .doc("Zeros whose type is inferred from the graph.")
    .attr(&UntypedAttrs::shape, "shape", std::nullopt, "The shape; lengths of 0 are inferred from the graph.")
    .shown_as("Shape(tuple)")
    .ignored("ctx", "string", "''", "Ignored: the array is created on the caller's context.")
    .attr(&UntypedAttrs::dtype, "dtype", -1, "The code of a type; -1: inferred from the graph.")
    .check([](UntypedAttrs &a) {
      if (a.dtype == -1) return;
      for (const auto &word : kAllTypes) {
        if (int32_t(word.second) == a.dtype) return;
      }
      throw Error(Code::kInvalidArgument, text("attribute 'dtype': expected the code of a type, found ", a.dtype),
                  "dtype");
    })
    .infer_shape([](const UntypedAttrs &a, Shapes &in, Shapes &out) {
      FillAttrs filled{};
      filled.shape = a.shape.value_or(Tuple());
      infer_filled(filled, in, out);
    })
    .infer_dtype([](const UntypedAttrs &a, Dtypes &, Dtypes &out) {
      if (a.dtype != -1) unify(out[0], Dtype(a.dtype), "output");
    });

COHORT_OPERATOR(_arange, RangeAttrs)
    .doc("Evenly spaced numbers: start, start + step, ... up to but excluding stop.")
    .required(&RangeAttrs::start, "start", "The first number; without stop, the end, and the first number is 0.")
    .attr(&RangeAttrs::stop, "stop", std::nullopt, "The end, excluded.")
    .attr(&RangeAttrs::step, "step", 1.0, "The difference between consecutive numbers.")
    .attr(&RangeAttrs::repeat, "repeat", 1, "How often each number is repeated.")
    .range(1, 1 << 30)
    .attr(&RangeAttrs::infer_range, "infer_range", false, "Whether the length is inferred from the graph.")
    .ignored("ctx", "string", "''", "Ignored: the array is created on the caller's context.")
    .choice(&RangeAttrs::dtype, "dtype", kRangeTypes, Dtype::kFloat32, "Type of the output.")
    .check([](RangeAttrs &a) {
      if (a.infer_range && !a.stop) return;
      if (!a.stop) {
        a.stop = a.start;
        a.start = 0;
      }
      if (a.step == 0 || !std::isfinite(a.step) || !std::isfinite(a.start) || !std::isfinite(*a.stop)) {
        throw Error(Code::kInvalidArgument,
                    text("attribute 'step': expected finite numbers and a step other than 0, found ", a.step), "step");
      }
    })
    .infer_shape([](const RangeAttrs &a, Shapes &, Shapes &out) {
      if (!a.stop) return;
      const double numbers = std::ceil((*a.stop - a.start) / a.step);
      if (numbers > 1e15) throw Error(Code::kShape, text("output: expected at most 1e15 numbers, found ", numbers));
      unify(out[0], Shape{numbers > 0 ? checked_times(int64_t(numbers), a.repeat) : 0}, "output");
    })
    .infer_dtype(infer_given_dtype<RangeAttrs>);

COHORT_OPERATOR(_linspace, RangeAttrs)
    .alias("_npi_linspace")
    .doc("num evenly spaced numbers from start to stop.")
    .required(&RangeAttrs::start, "start", "The first number.")
    .attr(&RangeAttrs::stop, "stop", std::nullopt, "The last number, or with endpoint false the end, excluded.")
    .attr(&RangeAttrs::step, "step", 1.0, "Ignored.")
    .attr(&RangeAttrs::repeat, "repeat", 1, "Ignored.")
    .attr(&RangeAttrs::num, "num", 0, "The number of numbers.")
    .range(0, 1 << 30)
    .attr(&RangeAttrs::endpoint, "endpoint", true, "Whether the last number is stop.")
    .ignored("infer_range", "boolean", "0", "Ignored.")
    .ignored("ctx", "string", "''", "Ignored: the array is created on the caller's context.")
    .choice(&RangeAttrs::dtype, "dtype", kRangeTypes, Dtype::kFloat32, "Type of the output.")
    .check([](RangeAttrs &a) {
      if (!a.stop) throw Error(Code::kInvalidArgument, "attribute 'stop': expected a number, found none", "stop");
    })
    .infer_shape([](const RangeAttrs &a, Shapes &, Shapes &out) { unify(out[0], Shape{a.num}, "output"); })
    .infer_dtype(infer_given_dtype<RangeAttrs>);

COHORT_OPERATOR(_eye, EyeAttrs)
    .doc("Ones on a diagonal, zeros elsewhere.")
    .required(&EyeAttrs::N, "N", "The number of rows.")
    .attr(&EyeAttrs::M, "M", 0, "The number of columns; 0: as many as rows.")
    .attr(&EyeAttrs::k, "k", 0, "Index of the diagonal; positive: above the main one.")
    .ignored("ctx", "string", "''", "Ignored: the array is created on the caller's context.")
    .choice(&EyeAttrs::dtype, "dtype", kEyeTypes, Dtype::kFloat32, "Type of the output.")
    .check([](EyeAttrs &a) {
      if (a.N < 0 || a.M < 0) {
        throw Error(Code::kInvalidArgument,
                    text("attributes 'N' and 'M': expected at least 0, found ", a.N, " and ", a.M), "N");
      }
    })
    .infer_shape([](const EyeAttrs &a, Shapes &, Shapes &out) {
      unify(out[0], Shape{a.N, a.M > 0 ? a.M : a.N}, "output");
    })
    .infer_dtype(infer_given_dtype<EyeAttrs>);

COHORT_OPERATOR(_contrib_arange_like, ArangeLikeAttrs)
    .alias("_npx_arange_like")
    .doc("Evenly spaced numbers, as many as data has elements, or as long as one of its axes.")
    .attr(&ArangeLikeAttrs::start, "start", 0.0, "The first number.")
    .attr(&ArangeLikeAttrs::step, "step", 1.0, "The difference between consecutive numbers.")
    .attr(&ArangeLikeAttrs::repeat, "repeat", 1, "How often each number is repeated.")
    .range(1, 1 << 30)
    .ignored("ctx", "string", "''", "Ignored: the context of data is used.")
    .attr(&ArangeLikeAttrs::axis, "axis", std::nullopt, "The axis; None: all elements, in the shape of data.")
    .input("data", "Only its shape and type are used.")
    .infer_shape([](const ArangeLikeAttrs &a, Shapes &in, Shapes &out) {
      if (!a.axis) return infer_same_shape(Attrs(), in, out);
      if (in[0].rank_known()) unify(out[0], Shape{in[0][normalize_axis(*a.axis, in[0].rank(), "axis")]}, "output");
    });

}  // namespace
}  // namespace cohort
