// SPDX-License-Identifier: Apache-2.0
// Element types of arrays (contract NDA-01) and the two 16-bit floats that C++ lacks. Compiled by nvcc, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <string>

#include "base/error.hpp"

#ifdef __CUDACC__
#define COHORT_HOST_DEVICE __host__ __device__
#else
#define COHORT_HOST_DEVICE
#endif

namespace cohort {

enum class Dtype : int32_t {
  kNone = -1,
  kFloat32 = 0,
  kFloat64 = 1,
  kFloat16 = 2,
  kUint8 = 3,
  kInt32 = 4,
  kInt8 = 5,
  kInt64 = 6,
  kBool = 7,
  kBfloat16 = 12,
};

// IEEE binary16; converts to and from float, rounding to nearest even.
struct Float16 {
  uint16_t bits = 0;
  Float16() = default;
  COHORT_HOST_DEVICE explicit Float16(float value);
  COHORT_HOST_DEVICE explicit operator float() const;
};

// The upper half of a float; rounds to nearest even.
struct Bfloat16 {
  uint16_t bits = 0;
  Bfloat16() = default;
  COHORT_HOST_DEVICE explicit Bfloat16(float value) {
    uint32_t u;
    std::memcpy(&u, &value, 4);
    if ((u & 0x7fffffffu) > 0x7f800000u) {
      bits = uint16_t((u >> 16) | 0x40u);  // stays NaN
    } else {
      bits = uint16_t((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
    }
  }
  COHORT_HOST_DEVICE explicit operator float() const {
    const uint32_t u = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &u, 4);
    return value;
  }
};

COHORT_HOST_DEVICE inline Float16::Float16(float value) {
  uint32_t u;
  std::memcpy(&u, &value, 4);
  const uint32_t sign = (u >> 16) & 0x8000u;
  u &= 0x7fffffffu;
  if (u > 0x7f800000u) {  // NaN
    bits = uint16_t(sign | 0x7e00u | ((u >> 13) & 0x3ffu));
  } else if (u >= 0x47800000u) {  // 65536 and above; values that round up to 65536 carry into the exponent below
    bits = uint16_t(sign | 0x7c00u);
  } else if (u < 0x38800000u) {  // subnormal: adding 0.5 aligns the bits, the sum rounds them
    float magnitude;
    std::memcpy(&magnitude, &u, 4);
    magnitude += 0.5f;
    uint32_t aligned;
    std::memcpy(&aligned, &magnitude, 4);
    bits = uint16_t(sign | (aligned - 0x3f000000u));
  } else {
    const uint32_t odd = (u >> 13) & 1u;
    bits = uint16_t(sign | ((u - 0x38000000u + 0xfffu + odd) >> 13));
  }
}

COHORT_HOST_DEVICE inline Float16::operator float() const {
  const uint32_t sign = uint32_t(bits & 0x8000u) << 16, exponent = (bits >> 10) & 0x1fu, fraction = bits & 0x3ffu;
  uint32_t u;
  if (exponent == 0x1fu) {
    u = sign | 0x7f800000u | (fraction << 13);
  } else if (exponent != 0) {
    u = sign | ((exponent + 112u) << 23) | (fraction << 13);
  } else {
    const float magnitude = float(fraction) * 5.9604644775390625e-8f;  // 2^-24
    std::memcpy(&u, &magnitude, 4);
    u |= sign;
  }
  float value;
  std::memcpy(&value, &u, 4);
  return value;
}

bool dtype_valid(int32_t code);                  // true for the codes above except kNone
size_t dtype_size(Dtype dtype);                  // bytes of one element
const char *dtype_name(Dtype dtype);             // "float32"; "none"
Dtype dtype_from_name(const std::string &name);  // throws kDtype
bool dtype_is_float(Dtype dtype);
std::ostream &operator<<(std::ostream &out, Dtype dtype);

// The type in which sums and products of T are taken.
template <typename T>
struct Accumulator {
  using type = T;
};
template <>
struct Accumulator<Float16> {
  using type = float;
};
template <>
struct Accumulator<Bfloat16> {
  using type = float;
};
template <>
struct Accumulator<uint8_t> {
  using type = int64_t;
};
template <>
struct Accumulator<int8_t> {
  using type = int64_t;
};
template <>
struct Accumulator<int32_t> {
  using type = int64_t;
};
template <>
struct Accumulator<bool> {
  using type = int64_t;
};

// Calls fn(T()) with the C++ type of dtype.
template <typename Fn>
decltype(auto) dispatch(Dtype dtype, Fn &&fn) {
  switch (dtype) {
    case Dtype::kFloat32:
      return fn(float());
    case Dtype::kFloat64:
      return fn(double());
    case Dtype::kFloat16:
      return fn(Float16());
    case Dtype::kBfloat16:
      return fn(Bfloat16());
    case Dtype::kUint8:
      return fn(uint8_t());
    case Dtype::kInt8:
      return fn(int8_t());
    case Dtype::kInt32:
      return fn(int32_t());
    case Dtype::kInt64:
      return fn(int64_t());
    case Dtype::kBool:
      return fn(bool());
    case Dtype::kNone:
      break;
  }
  throw Error(Code::kDtype, text("no element type has the code ", int32_t(dtype)));
}

// As dispatch(), for floating types only; any other type throws kDtype with `what`.
template <typename Fn>
decltype(auto) dispatch_float(Dtype dtype, const char *what, Fn &&fn) {
  switch (dtype) {
    case Dtype::kFloat32:
      return fn(float());
    case Dtype::kFloat64:
      return fn(double());
    case Dtype::kFloat16:
      return fn(Float16());
    case Dtype::kBfloat16:
      return fn(Bfloat16());
    default:
      throw Error(Code::kDtype, text(what, ": expected a floating type, found ", dtype), what);
  }
}

// Returns `dtype` if it is a floating type and throws kDtype otherwise. For kernels that support floating types only.
inline Dtype float_dtype(Dtype dtype, const char *what) {
  return dispatch_float(dtype, what, [=](auto) { return dtype; });
}

// Converts one element from T to U by the rules of contract NDA-08.
template <typename U, typename T>
COHORT_HOST_DEVICE inline U cast_element(T value);

}  // namespace cohort

#include "base/dtype_cast.hpp"
