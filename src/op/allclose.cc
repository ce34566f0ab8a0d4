// SPDX-License-Identifier: Apache-2.0
#include "op/allclose.hpp"

namespace cohort {
namespace {

COHORT_OPERATOR(_contrib_allclose, AllcloseAttrs)
    .doc("1 if |a - b| <= atol + rtol |b| for all elements, else 0.")
    .attr(&AllcloseAttrs::rtol, "rtol", 1e-5f, "Relative tolerance.")
    .attr(&AllcloseAttrs::atol, "atol", 1e-8f, "Absolute tolerance.")
    .attr(&AllcloseAttrs::equal_nan, "equal_nan", true, "Whether NaN is close to NaN.")
    .input("a", "Any shape.")
    .input("b", "The shape of a.")
    .infer_shape([](const AllcloseAttrs &, Shapes &in, Shapes &out) {
      unify(in[0], in[1], "a");
      unify(in[1], in[0], "b");
      unify(out[0], Shape(std::vector<int64_t>()), "output");
    })
    .infer_dtype([](const AllcloseAttrs &, Dtypes &in, Dtypes &out) {
      unify(in[0], in[1], "a");
      unify(in[1], in[0], "b");
      unify(out[0], Dtype::kUint8, "output");
    });

}  // namespace
}  // namespace cohort
