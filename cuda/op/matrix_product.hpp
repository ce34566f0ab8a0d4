// SPDX-License-Identifier: Apache-2.0
// Products of row-major matrices: by cuBLASLt, in full precision unless TF32 is allowed at bind, or by tiles of our
// own where the library has no algorithm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/dtype.hpp"
#include "device/kernel.hpp"

namespace cohort {

// c[i] (m, n) = op(a[i]) (m, k) op(b[i]) (k, n) for i < batch, where op transposes if requested: a is then (k, m), b
// (n, k).
struct ProductExtent {
  int64_t batch, m, n, k;
  bool transpose_a, transpose_b;
};

// Types of the factors and of the result: the same, or 16-bit floats and float32, or int8 and int32. 16-bit floats are
// summed in float, int8 modulo 2^32; these have no bias, and a factor of 1.
struct ProductTypes {
  Dtype factors, result;
  bool tf32 = false;
  ProductTypes(Dtype of_factors, Dtype of_result, bool with_tf32 = false)
      : factors(of_factors), result(of_result), tf32(with_tf32) {}
  ProductTypes(Dtype dtype, const StepSpec &spec) : ProductTypes(dtype, dtype, spec.tf32) {}
};

// Strides of the rows and of the matrices of a batch, in elements. 0: dense.
struct MatrixPlaces {
  static constexpr int64_t kSame = -1;  // for `matrix`: a factor that is one for all of the batch
  int64_t row = 0, matrix = 0;
};

struct ProductPlaces {
  MatrixPlaces a, b, c;
};

// A product with everything resolved; the arrays may have any alignment.
class MatrixProduct {
 public:
  // c is overwritten, or added to. The latter not in 16 bits: the library would round the product before it adds it.
  enum Into : uint8_t { kOver, kAdding };
  // With a bias (of n elements), it is added to each row.
  MatrixProduct(const ProductTypes &types, const ProductExtent &extent, bool with_bias = false, Into into = kOver);
  // c = factor * op(a) op(b) (+ c), with any strides.
  MatrixProduct(const ProductTypes &types, const ProductExtent &extent, const ProductPlaces &places, double factor,
                Into into = kOver);
  ~MatrixProduct();
  MatrixProduct(MatrixProduct &&) noexcept;

  size_t scratch_bytes() const;
  void run(const Lane &lane, const void *a, const void *b, void *c, const void *bias, void *scratch) const;

 private:
  class OfLibrary;
  std::unique_ptr<OfLibrary> find(bool with_bias, uint32_t alignment) const;
  void find_both(bool with_bias);
  ProductTypes types_;
  ProductExtent extent_;
  ProductPlaces places_;
  double factor_ = 1;
  bool adds_;
  // For arrays aligned to 16 bytes, as whole arrays are, and for views. Null: tiles are used.
  std::unique_ptr<OfLibrary> aligned_, any_;
  size_t sums_bytes_ = 0;  // of sums in float32, where the library cannot add the bias before it rounds to 16 bits
};

}  // namespace cohort
