// SPDX-License-Identifier: Apache-2.0
#include "op/spectral.hpp"

#include "op/checked_length.hpp"

namespace cohort {
namespace {

// The last axis of `more` is twice as long as that of `less`; all other axes are equal.
void infer_pairs(Shape &less, Shape &more, const char *name) {
  for (const Shape &s : {less, more}) {
    if (s.rank_known() && s.rank() < 1)
      throw Error(Code::kShape, text(name, ": expected at least one axis, found ()"), name);
  }
  const auto as = [](const Shape &s, auto &&length) {
    Shape other = s;
    if (s.rank_known() && s[s.rank() - 1] != Shape::kUnknown) other[s.rank() - 1] = length(s[s.rank() - 1]);
    return other;
  };
  if (more.rank_known() && more[more.rank() - 1] != Shape::kUnknown && more[more.rank() - 1] % 2 != 0) {
    throw Error(Code::kShape, text(name, ": expected pairs on the last axis, found ", more), name);
  }
  unify(more, as(less, [](int64_t n) { return checked_times(n, 2); }), name);
  unify(less, as(more, [](int64_t n) { return n / 2; }), name);
}

OpBuilder<NoAttrs> transform(const char *name, const char *doc) {
  OpBuilder<NoAttrs> op(name);
  op.doc(doc)
      .names_only_input()
      .ignored("compute_size", "int", "128", "Ignored.")
      .same_float()
      .gradient(Gradient::by_kernel({0}));
  return op;
}

[[maybe_unused]] const bool defined = [] {
  transform("_contrib_fft", "The discrete Fourier transform of real numbers, as alternating real and imaginary parts.")
      .input("data", "Real numbers, along the last axis.")
      .infer_shape([](const NoAttrs &, Shapes &in, Shapes &out) { infer_pairs(in[0], out[0], "data"); });
  transform("_contrib_ifft", "The real parts of the inverse Fourier transform, times the length.")
      .input("data", "Alternating real and imaginary parts, along the last axis.")
      .infer_shape([](const NoAttrs &, Shapes &in, Shapes &out) { infer_pairs(out[0], in[0], "data"); });
  return true;
}();

COHORT_OPERATOR(_contrib_count_sketch, CountSketchAttrs)
    .doc("Count sketch: adds each number along the last axis, times s, to the position given by h.")
    .required(&CountSketchAttrs::out_dim, "out_dim", "The number of positions.")
    .range(1)
    .ignored("processing_batch_size", "int", "32", "Ignored.")
    .input("data", "Numbers, along the last axis.")
    .input("h", "The position of each number, (1, numbers): 0 to out_dim - 1.")
    .input("s", "The sign of each number, (1, numbers).")
    .infer_shape([](const CountSketchAttrs &a, Shapes &in, Shapes &out) {
      if (!in[0].rank_known()) return;
      if (in[0].rank() < 1) throw Error(Code::kShape, "data: expected at least one axis, found ()", "data");
      const int64_t length = in[0][in[0].rank() - 1];
      for (size_t i : {size_t(1), size_t(2)}) {
        // A single axis is accepted, too.
        unify(in[i], in[i].rank_known() && in[i].rank() == 1 ? Shape{length} : Shape{1, length}, i == 1 ? "h" : "s");
      }
      Shape result = in[0];
      result[result.rank() - 1] = a.out_dim;
      unify(out[0], result, "output");
    })
    .infer_dtype([](const CountSketchAttrs &, Dtypes &in, Dtypes &out) { infer_same_float(Attrs(), in, out); })
    .gradient(Gradient::by_kernel({0}, {1, 2}));

}  // namespace
}  // namespace cohort
