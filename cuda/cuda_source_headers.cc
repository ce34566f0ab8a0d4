// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_source_headers.hpp"

// Embeds the text of a file.
#define COHORT_EMBED(name, file)                                                         \
  asm(".pushsection .rodata\n" #name ":\n.incbin \"" file "\"\n.byte 0\n.popsection\n"); \
  extern "C" __attribute__((visibility("hidden"))) const char name[]

COHORT_EMBED(cohort_text_of_pointwise_math, "src/op/pointwise_math.hpp");
COHORT_EMBED(cohort_text_of_float_math, "src/op/float_math.hpp");

namespace cohort {
namespace {

constexpr char kInts[] = R"(
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define INT64_MAX 0x7fffffffffffffffll
#define INT64_MIN (-INT64_MAX - 1)
)";

constexpr char kMath[] = R"(
namespace std {
using ::acos;
using ::acosh;
using ::asin;
using ::asinh;
using ::atan;
using ::atanh;
using ::cbrt;
using ::ceil;
using ::copysign;
using ::cos;
using ::cosh;
using ::erf;
using ::erfc;
using ::exp;
using ::expm1;
using ::fabs;
using ::floor;
using ::fmod;
using ::log;
using ::log10;
using ::log1p;
using ::log2;
using ::pow;
using ::rint;
using ::sin;
using ::sinh;
using ::sqrt;
using ::tan;
using ::tanh;
using ::tgamma;
using ::trunc;
}
#define __builtin_fmaf fmaf
#define NAN __int_as_float(0x7fffffff)
#define INFINITY __int_as_float(0x7f800000)
)";

constexpr char kLimits[] = R"(
namespace std {
template <typename T>
struct numeric_limits;
template <>
struct numeric_limits<float> {
  __host__ __device__ static float infinity() { return __int_as_float(0x7f800000); }
  __host__ __device__ static float quiet_NaN() { return __int_as_float(0x7fffffff); }
};
}
)";

constexpr char kAlgorithm[] = R"(
namespace std {
template <typename T>
__host__ __device__ constexpr const T &min(const T &a, const T &b) { return b < a ? b : a; }
template <typename T>
__host__ __device__ constexpr const T &max(const T &a, const T &b) { return a < b ? b : a; }
}
)";

constexpr char kTraits[] = R"(
namespace std {
template <typename A, typename B>
constexpr bool is_same_v = false;
template <typename A>
constexpr bool is_same_v<A, A> = true;
template <typename T>
constexpr bool is_floating_point_v = is_same_v<T, float> || is_same_v<T, double>;
template <typename T>
constexpr bool is_integral_v = false;
template <>
constexpr bool is_integral_v<bool> = true;
template <>
constexpr bool is_integral_v<signed char> = true;
template <>
constexpr bool is_integral_v<unsigned char> = true;
template <>
constexpr bool is_integral_v<short> = true;
template <>
constexpr bool is_integral_v<unsigned short> = true;
template <>
constexpr bool is_integral_v<int> = true;
template <>
constexpr bool is_integral_v<unsigned int> = true;
template <>
constexpr bool is_integral_v<long long> = true;
template <>
constexpr bool is_integral_v<unsigned long long> = true;
}
)";

// The part of base/dtype.hpp that pointwise_math.hpp and compiled sources use.
constexpr char kDtype[] = R"(
#include <cstdint>
#define COHORT_HOST_DEVICE __host__ __device__
namespace cohort {
struct Float16 { uint16_t bits; };
struct Bfloat16 { uint16_t bits; };
}
)";

}  // namespace

const std::vector<SourceHeader> &source_headers() {
  static const auto *const all = new std::vector<SourceHeader>{
      {"op/pointwise_math.hpp", cohort_text_of_pointwise_math},
      {"op/float_math.hpp", cohort_text_of_float_math},
      {"base/dtype.hpp", kDtype},
      {"algorithm", kAlgorithm},
      {"cmath", kMath},
      {"cstdint", kInts},
      {"cstring", "namespace std { using ::memcpy; }\n"},
      {"limits", kLimits},
      {"type_traits", kTraits},
  };
  return *all;
}

}  // namespace cohort
