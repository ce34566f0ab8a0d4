// SPDX-License-Identifier: Apache-2.0
#include "op/cumsum.hpp"

#include "op/dtype_words.hpp"

namespace cohort {
namespace {

COHORT_OPERATOR(_np_cumsum, CumsumAttrs)
    .alias("cumsum")
    .doc("Cumulative sums along an axis.")
    .attr(&CumsumAttrs::axis, "axis", std::nullopt,
          "The axis; negative counts from the last; None: over the flattened array.")
    .choice(&CumsumAttrs::dtype, "dtype",
            dtype_words({Dtype::kNone, Dtype::kFloat16, Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt32, Dtype::kInt64,
                         Dtype::kInt8}),
            Dtype::kNone, "The type of the output and of the sums; None: that of data.")
    .input("a", "Any shape.")
    .names_only_input()
    .infer_shape([](const CumsumAttrs &a, Shapes &in, Shapes &out) {
      if (a.axis) {
        infer_same_shape(Attrs(), in, out);
        if (in[0].rank_known()) normalize_axis(*a.axis, in[0].rank(), "axis");
      } else if (in[0].known()) {
        unify(out[0], Shape{in[0].size()}, "output");
      }
    })
    .infer_dtype([](const CumsumAttrs &a, Dtypes &in, Dtypes &out) {
      if (a.dtype != Dtype::kNone) return unify(out[0], a.dtype, "output");
      unify(out[0], in[0] == Dtype::kBool ? Dtype::kInt64 : in[0], "output");
      if (in[0] == Dtype::kNone) in[0] = out[0];
    })
    .gradient([](const CumsumAttrs &) { return Gradient::by_kernel({0}); });

}  // namespace
}  // namespace cohort
