// SPDX-License-Identifier: Apache-2.0
// Products of row-major, dense matrices: by cuBLASLt, in full precision (no TF32: results are held to IEEE float32), or
// by tiles of our own where the library has no algorithm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/dtype.hpp"
#include "device/kernel.hpp"

namespace cohort {

// c[i] (m, n) = op(a[i]) (m, k) op(b[i]) (k, n) for i < batch, where op transposes if asked to: a is then (k, m), b
// (n, k).
struct ProductExtent {
  int64_t batch, m, n, k;
  bool transpose_a, transpose_b;
};

// All resolved, for arrays wherever they lie. 16-bit floats are summed in float.
class MatrixProduct {
 public:
  enum Into : uint8_t { kOver, kAdding };  // c: written over, or added to
  // With a bias (of n elements), it is added to each row.
  MatrixProduct(Dtype dtype, const ProductExtent &extent, bool with_bias = false, Into into = kOver);
  ~MatrixProduct();
  MatrixProduct(MatrixProduct &&) noexcept;

  size_t scratch_bytes() const;
  void run(const Lane &lane, const void *a, const void *b, void *c, const void *bias, void *scratch) const;

 private:
  class OfLibrary;
  ProductExtent extent_;
  Dtype dtype_;
  bool adds_, adds_bias_ = false;
  // For arrays that begin at multiples of 16 bytes, as whole arrays do, and for views. Null: tiles. The first adds a
  // bias while it writes, if the library can.
  std::unique_ptr<OfLibrary> aligned_, any_;
};

}  // namespace cohort
