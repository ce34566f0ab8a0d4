// SPDX-License-Identifier: Apache-2.0
#include "cpu/op/narrow_product.hpp"

namespace cohort::dnn {

std::optional<DnnlCall> narrow_product(const NarrowProduct &p, Dtype dtype, BufferRef a, BufferRef b, BufferRef c,
                                       float factor, StepSpec &spec) {
  const auto matrices = [&](int64_t rows, int64_t columns, bool transposed) {
    return ordered({p.batch, rows, columns}, dtype, transposed ? Dims{0, 2, 1} : Dims{0, 1, 2});
  };
  const Desc left = matrices(p.m, p.k, p.transpose_a), right = matrices(p.k, p.n, p.transpose_b);
  const Desc result = matrices(p.m, p.n, false);
  dnnl::post_ops post;
  if (factor != 1) append_eltwise(post, algorithm::eltwise_linear, factor, 0.0f);
  const auto pd =
      attempt([&] { return forward_desc<dnnl::matmul>(engine(), attributes(post), left, right, Desc(), result); });
  if (!pd || is_reference(*pd)) return std::nullopt;
  return DnnlCall(*pd, name_of(spec),
                  {{DNNL_ARG_SRC, left, a}, {DNNL_ARG_WEIGHTS, right, b}, {DNNL_ARG_DST, result, c}}, spec);
}

}  // namespace cohort::dnn
