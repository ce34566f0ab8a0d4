// SPDX-License-Identifier: Apache-2.0
// The types in which kernels compute: float for float32 and 16-bit floats, double for float64, and int64_t for integers
// if the operator is defined on integers.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/dtype.hpp"

namespace cohort {

template <typename C>
constexpr Dtype dtype_of() {
  return std::is_same_v<C, float> ? Dtype::kFloat32 : std::is_same_v<C, double> ? Dtype::kFloat64 : Dtype::kInt64;
}

// Calls fn(C()) with the type in which arrays of `dtype` are computed. Integers use int64_t if `integer`, else double.
template <typename Fn>
decltype(auto) dispatch_compute(Dtype dtype, bool integer, Fn &&fn) {
  switch (dtype) {
    case Dtype::kFloat32:
    case Dtype::kFloat16:
    case Dtype::kBfloat16:
      return fn(float());
    case Dtype::kFloat64:
      return fn(double());
    default:
      return integer ? fn(int64_t()) : fn(double());
  }
}

}  // namespace cohort
