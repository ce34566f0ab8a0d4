// SPDX-License-Identifier: Apache-2.0
// Products of matrices in types that sgemm does not take, as one call of oneDNN: for dot, batch_dot and attention.
#pragma once

#include <optional>

#include "cpu/dnnl_kernel.hpp"

namespace cohort::dnn {

// c[i] = op(a[i]) op(b[i]) for each of `batch`: (m, k) times (k, n), dense, one behind another; op transposes if
// asked to.
struct NarrowProduct {
  int64_t batch;
  bool transpose_a, transpose_b;
  int64_t m, n, k;
};

// Makes the call, with every element times `factor`. Empty if oneDNN only has reference loops for it.
std::optional<DnnlCall> narrow_product(const NarrowProduct &p, Dtype dtype, BufferRef a, BufferRef b, BufferRef c,
                                       float factor, StepSpec &spec);

}  // namespace cohort::dnn
