// SPDX-License-Identifier: Apache-2.0
#include "op/embedding.hpp"

#include "op/dtype_words.hpp"

namespace cohort {
namespace {

void infer_shape(const EmbeddingAttrs &a, Shapes &in, Shapes &out) {
  unify(in[1], Shape{a.input_dim, a.output_dim}, "weight");
  if (out[0].rank_known()) {
    if (out[0].rank() < 1) throw Error(Code::kShape, "output: expected at least one axis, found ()", "output");
    unify(in[0], Shape(out[0].begin(), out[0].end() - 1), "data");
  }
  if (!in[0].rank_known()) return;
  std::vector<int64_t> result(in[0].begin(), in[0].end());
  result.push_back(a.output_dim);
  unify(out[0], Shape(result), "output");
}

// As in MXNet, the type of weight or output overrides the attribute.
void infer_dtype(const EmbeddingAttrs &a, Dtypes &in, Dtypes &out) {
  unify(in[1], out[0], "weight");
  if (in[1] == Dtype::kNone) in[1] = a.dtype;
  unify(out[0], in[1], "output");
}

COHORT_OPERATOR(Embedding, EmbeddingAttrs)
    .alias("_contrib_SparseEmbedding")
    .alias("_sparse_Embedding")
    .alias("_npx_embedding")
    .doc("Selects rows of weight by index; an index out of range selects the nearest row.")
    .required(&EmbeddingAttrs::input_dim, "input_dim", "Number of rows of weight.")
    .range(1)
    .required(&EmbeddingAttrs::output_dim, "output_dim", "Length of a row.")
    .range(1)
    .choice(&EmbeddingAttrs::dtype, "dtype",
            dtype_words({Dtype::kBfloat16, Dtype::kFloat16, Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt32,
                         Dtype::kInt64, Dtype::kInt8, Dtype::kUint8}),
            Dtype::kFloat32, "Type of weight and output if neither has one.")
    .ignored("sparse_grad", "boolean", "0", "Ignored: the gradient is dense.")
    .input("data", "Indices, any shape.")
    .input("weight", "(input_dim, output_dim).")
    .infer_shape(infer_shape)
    .infer_dtype(infer_dtype)
    .gradient([](const EmbeddingAttrs &) { return Gradient::by_kernel({1}, {0}); });

}  // namespace
}  // namespace cohort
