// SPDX-License-Identifier: Apache-2.0
#include "op/histogram.hpp"

#include <cmath>

namespace cohort {
namespace {

void read_range(HistogramAttrs &a) {
  if (a.bin_cnt.has_value() != a.range.has_value()) {
    throw Error(Code::kInvalidArgument,
                text("attributes 'bin_cnt' and 'range': expected both or neither, found ",
                     a.range ? "range" : "bin_cnt", " alone"),
                a.range ? "bin_cnt" : "range");
  }
  if (!a.range) return;
  const size_t comma = a.range->find(',');
  const size_t begin = a.range->find_first_of("([") == 0 ? 1 : 0, end = a.range->find_last_not_of(")] ");
  bool good = comma != std::string::npos && end != std::string::npos && end > comma;
  if (good) {
    a.low = parse_float("range", a.range->substr(begin, comma - begin));
    a.high = parse_float("range", a.range->substr(comma + 1, end - comma));
    good = std::isfinite(a.low) && std::isfinite(a.high) && a.low <= a.high;
  }
  if (!good) {
    throw Error(Code::kInvalidArgument,
                text("attribute 'range': expected two numbers in order, found '", *a.range, "'"), "range");
  }
  if (a.low == a.high) {
    a.low -= 0.5;
    a.high += 0.5;
  }
}

COHORT_OPERATOR(_histogram, HistogramAttrs)
    .alias("_npi_histogram")
    .doc(
        "The number of elements in each bin, and the bin edges. A bin includes its lower edge; the last bin includes "
        "both.")
    .attr(&HistogramAttrs::bin_cnt, "bin_cnt", std::nullopt,
          "The number of bins of equal width; None: bins is an input.")
    .range(1)
    .attr(&HistogramAttrs::range, "range", std::nullopt, "The lowest and the highest edge, with bin_cnt.")
    .shown_as("tuple of <double>")
    .check(read_range)
    .input("data", "Any shape.")
    .names_only_input()
    .input_if(
        "bins", [](const HistogramAttrs &a) { return !a.bin_cnt; }, "The edges in ascending order, one more than bins.")
    .outputs([](const HistogramAttrs &) { return 2; })
    .infer_shape([](const HistogramAttrs &a, Shapes &in, Shapes &out) {
      if (a.bin_cnt) {
        unify(out[0], Shape{*a.bin_cnt}, "output");
        unify(out[1], Shape{*a.bin_cnt + int64_t(1)}, "output");
        return;
      }
      unify(in[1], out[1], "bins");
      unify(in[1], Shape::of_rank(1), "bins");
      unify(out[1], in[1], "output");
      if (in[1][0] == Shape::kUnknown) return;
      if (in[1][0] < 2) throw Error(Code::kShape, text("bins: expected at least 2 edges, found ", in[1]), "bins");
      unify(out[0], Shape{in[1][0] - 1}, "output");
    })
    .infer_dtype([](const HistogramAttrs &, Dtypes &in, Dtypes &out) {
      unify(out[0], Dtype::kInt64, "output");
      for (Dtype d : in) unify(out[1], d, "bins");
      for (Dtype &d : in) unify(d, out[1], "bins");
    });

}  // namespace
}  // namespace cohort
