// SPDX-License-Identifier: Apache-2.0
#include "op/copy.hpp"

#include "op/dtype_words.hpp"

namespace cohort {
namespace {

Gradient pass_through() {
  Gradient g;
  g.kind = Gradient::Kind::kPassThrough;
  return g;
}

Gradient first_input(Gradient::Kind kind) {
  Gradient g;
  g.kind = kind;
  g.of = {0};
  return g;
}

COHORT_OPERATOR(_copy, NoAttrs)
    .alias("identity")
    .doc("A copy of data.")
    .input("data", "Any shape.")
    .same_shape()
    .inplace(0, 0)
    .gradient(first_input(Gradient::Kind::kPassThrough));

COHORT_OPERATOR(_copyto, NoAttrs)
    .doc("A copy of data, converted to the type of the given output.")
    .input("data", "Any shape.")
    .same_shape()
    .infer_dtype([](const NoAttrs &, Dtypes &in, Dtypes &out) {
      if (out[0] == Dtype::kNone) out[0] = in[0];
    });

COHORT_OPERATOR(_identity_with_attr_like_rhs, NoAttrs)
    .doc("A copy of lhs.")
    .input("lhs", "Any shape.")
    .input("rhs", "Only its shape and type are used; they equal those of lhs.")
    .same_shape()
    .inplace(0, 0)
    .gradient(first_input(Gradient::Kind::kPassThrough));

COHORT_OPERATOR(add_n, NoAttrs)
    .alias("ElementWiseSum")
    .alias("_sparse_ElementWiseSum")
    .alias("_sparse_add_n")
    .doc("The sum of arrays of one shape.")
    .variadic("arg", "num_args", "The arrays to add.")
    .same_shape()
    .inplace(0, 0)
    .gradient(pass_through());

void infer_cast(const CastAttrs &a, Dtypes &, Dtypes &out) { unify(out[0], a.dtype, "output"); }

COHORT_OPERATOR(Cast, CastAttrs)
    .alias("cast")
    .alias("_npi_cast")
    .alias("_npx_cast")
    .doc("Converts the elements of data to another type. Floats are truncated to integers.")
    .required(&CastAttrs::dtype, "dtype", "The type of the output.")
    .input("data", "Any shape.")
    .same_shape()
    .infer_dtype(infer_cast)
    .gradient(first_input(Gradient::Kind::kKernel));

// Mixed precision converts float32 and narrower floats; other types are kept, as in MXNet.
COHORT_OPERATOR(amp_cast, CastAttrs)
    .doc("Converts float32, float16 and bfloat16 to another type; returns other types unchanged.")
    .required_choice(&CastAttrs::dtype, "dtype",
                     dtype_words({Dtype::kBfloat16, Dtype::kFloat16, Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt32,
                                  Dtype::kInt64, Dtype::kInt8, Dtype::kUint8}),
                     "The type of the output.")
    .input("data", "Any shape.")
    .same_shape()
    .infer_dtype([](const CastAttrs &a, Dtypes &in, Dtypes &out) {
      if (in[0] == Dtype::kNone) return;
      unify(out[0], dtype_is_float(in[0]) && in[0] != Dtype::kFloat64 ? a.dtype : in[0], "output");
    })
    .gradient(first_input(Gradient::Kind::kKernel));

void expect_an_input_each(size_t num_inputs, size_t num_outputs) {
  if (num_inputs == num_outputs) return;
  throw Error(Code::kShape,
              text("amp_multicast: expected as many inputs as num_outputs = ", num_outputs, ", found ", num_inputs));
}

void infer_multicast(const AmpMulticastAttrs &a, Dtypes &in, Dtypes &out) {
  expect_an_input_each(in.size(), out.size());
  Dtype chosen = Dtype::kNone;
  for (Dtype d : in) {
    if (d == Dtype::kNone) return;
    if (!dtype_is_float(d)) continue;
    const bool better = chosen == Dtype::kNone ||
                        (a.cast_narrow ? dtype_size(d) < dtype_size(chosen) : dtype_size(d) > dtype_size(chosen));
    if (better) chosen = d;
  }
  for (size_t i = 0; i < out.size(); ++i) unify(out[i], dtype_is_float(in[i]) ? chosen : in[i], "output");
}

COHORT_OPERATOR(amp_multicast, AmpMulticastAttrs)
    .doc("Converts floating arrays to the widest, or the narrowest, floating type among them.")
    .required(&AmpMulticastAttrs::num_outputs, "num_outputs", "The number of arrays.")
    .attr(&AmpMulticastAttrs::cast_narrow, "cast_narrow", false, "Whether to use the narrowest type.")
    .variadic("data_", kNumInputsAttr, "The arrays.")
    .outputs([](const AmpMulticastAttrs &a) { return int(a.num_outputs); })
    .infer_shape([](const AmpMulticastAttrs &, Shapes &in, Shapes &out) {
      expect_an_input_each(in.size(), out.size());
      for (size_t i = 0; i < in.size(); ++i) {
        unify(out[i], in[i], "output");
        unify(in[i], out[i], "data");
      }
    })
    .infer_dtype(infer_multicast)
    .gradient([](const AmpMulticastAttrs &) {
      Gradient g;
      g.kind = Gradient::Kind::kKernel;
      return g;
    });

}  // namespace
}  // namespace cohort
