// SPDX-License-Identifier: Apache-2.0
#include "cuda/op/fused_source.hpp"

#include <cmath>
#include <cstdio>

#include "base/error.hpp"

namespace cohort {
namespace {

// The number as an exact literal of the type.
std::string number_of(double value, Dtype dtype) {
  const bool wide = dtype == Dtype::kFloat64;
  if (std::isnan(value)) return "C(NAN)";
  if (std::isinf(value)) return value > 0 ? "C(INFINITY)" : "C(-INFINITY)";
  char digits[64];
  std::snprintf(digits, sizeof digits, "C(%a)", wide ? value : double(float(value)));
  return digits;
}

// The type of elements in memory, and conversions to and from the compute type.
const char *type_text(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat64:
      return R"(
typedef double C;
typedef double Element;
__device__ inline C take(Element x) { return x; }
__device__ inline Element give(C x) { return x; }
)";
    case Dtype::kFloat16:
      return R"(
typedef float C;
typedef cohort::Float16 Element;
#ifdef __CUDA_ARCH__
__device__ inline C take(Element x) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
  return wide;
}
__device__ inline Element give(C x) {
  Element narrow;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(x));
  return narrow;
}
#else
inline C take(Element x) { return C(x); }
inline Element give(C x) { return Element(x); }
#endif
)";
    case Dtype::kBfloat16:
      return R"(
typedef float C;
typedef cohort::Bfloat16 Element;
#ifdef __CUDA_ARCH__
__device__ inline C take(Element x) { return __uint_as_float(uint32_t(x.bits) << 16); }
__device__ inline Element give(C x) {
  Element narrow;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(x));
  return narrow;
}
#else
inline C take(Element x) { return C(x); }
inline Element give(C x) { return Element(x); }
#endif
)";
    default:
      return R"(
typedef float C;
typedef float Element;
__device__ inline C take(Element x) { return x; }
__device__ inline Element give(C x) { return x; }
)";
  }
}

}  // namespace

std::string fused_source(const FusedPointwiseAttrs &attrs, const std::vector<bool> &wanted, Dtype dtype) {
  std::string loads, steps, stores;
  for (int i = 0; i < attrs.num_inputs; ++i) {
    loads += text("  const Several<N> x", i, " = static_cast<const Several<N> *>(arrays.inputs[", i, "])[i];\n");
    steps += text("    const C v", i, " = take(x", i, ".at[k]);\n");
  }
  int value = attrs.num_inputs;
  for (const PointwiseCall &call : attrs.instructions) {
    const int operands = pointwise_operands(call.code);
    const auto operand = [&](int place, int from) { return operands > place ? text('v', from) : std::string("C(0)"); };
    steps += text("    const C v", value++, " = pointwise::", pointwise_name(call.code), "::of<C>(", operand(0, call.a),
                  ", ", operand(1, call.b), ", ", operand(2, call.c), ", ", number_of(call.s, dtype), ", ",
                  number_of(call.t, dtype), ");\n");
  }
  for (size_t j = 0; j < attrs.outputs.size(); ++j) {
    if (!wanted[j]) continue;
    loads += text("  Several<N> y", j, ";\n");
    steps += text("    y", j, ".at[k] = give(v", attrs.outputs[j], ");\n");
    stores += text("  static_cast<Several<N> *>(arrays.outputs[", j, "])[i] = y", j, ";\n");
  }
  return text(R"(#include "op/pointwise_math.hpp"
namespace cohort {
namespace {
)",
              type_text(dtype), R"(
constexpr int kWidth = int(16 / sizeof(Element));
struct Arrays {
  const void *inputs[)",
              int(FusedArrays::kMostInputs), R"(];
  void *outputs[)",
              int(FusedArrays::kMostOutputs), R"(];
  int64_t count;
};
template <int N>
struct alignas(N * sizeof(Element)) Several {
  Element at[N];
};
// The i-th N elements. All inputs are read before outputs are written, as these may be the same arrays.
template <int N>
__device__ inline void compute(const Arrays &arrays, int64_t i) {
)",
              loads, "#pragma unroll\n  for (int k = 0; k < N; ++k) {\n", steps, "  }\n", stores, R"(}
}  // namespace
extern "C" __global__ void fused_plain(Arrays arrays) {
  const int64_t first = int64_t(blockIdx.x) * blockDim.x + threadIdx.x, step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = first; i < arrays.count; i += step) compute<1>(arrays, i);
}
extern "C" __global__ void fused_vectors(Arrays arrays) {
  const int64_t first = int64_t(blockIdx.x) * blockDim.x + threadIdx.x, step = int64_t(gridDim.x) * blockDim.x;
  const int64_t whole = arrays.count / kWidth;
  for (int64_t i = first; i < whole; i += step) compute<kWidth>(arrays, i);
  for (int64_t i = whole * kWidth + first; i < arrays.count; i += step) compute<1>(arrays, i);
}
}  // namespace cohort
)");
}

}  // namespace cohort
