// SPDX-License-Identifier: Apache-2.0
// The functors of op/pointwise_math.hpp over arrays of one type and size: a kernel for each functor and type. Results
// do not depend on the launch. A 16-bit gradient such as that of relu moves 6 bytes per element.
#pragma once

#include "cuda/op/compute_type.cuh"
#include "op/pointwise.hpp"

namespace cohort::pointwise_kernels {

// Functors of few instructions, which are limited by memory: a thread computes a vector of 16 bytes at a time. In the
// others arithmetic takes as long, and several copies of their code would use too many registers.
template <typename Functor>
inline constexpr bool kInVectors = false;
#define COHORT_IN_VECTORS(name) \
  template <>                   \
  inline constexpr bool kInVectors<pointwise::name> = true;
COHORT_IN_VECTORS(Copy)
COHORT_IN_VECTORS(Zero)
COHORT_IN_VECTORS(One)
COHORT_IN_VECTORS(Negative)
COHORT_IN_VECTORS(Abs)
COHORT_IN_VECTORS(Square)
COHORT_IN_VECTORS(Exp)
COHORT_IN_VECTORS(Tanh)
COHORT_IN_VECTORS(Relu)
COHORT_IN_VECTORS(Sigmoid)
COHORT_IN_VECTORS(Leaky)
COHORT_IN_VECTORS(Clip)
COHORT_IN_VECTORS(SquareGrad)
COHORT_IN_VECTORS(AbsGrad)
COHORT_IN_VECTORS(TanhGrad)
COHORT_IN_VECTORS(ReluGrad)
COHORT_IN_VECTORS(SigmoidGrad)
COHORT_IN_VECTORS(LeakyGrad)
COHORT_IN_VECTORS(ClipGrad)
COHORT_IN_VECTORS(AddScalar)
COHORT_IN_VECTORS(SubScalar)
COHORT_IN_VECTORS(RsubScalar)
COHORT_IN_VECTORS(MulScalar)
COHORT_IN_VECTORS(DivScalar)
COHORT_IN_VECTORS(MaximumScalar)
COHORT_IN_VECTORS(MinimumScalar)
COHORT_IN_VECTORS(Add)
COHORT_IN_VECTORS(Sub)
COHORT_IN_VECTORS(Mul)
COHORT_IN_VECTORS(Div)
COHORT_IN_VECTORS(Maximum)
COHORT_IN_VECTORS(Minimum)
COHORT_IN_VECTORS(Where)
COHORT_IN_VECTORS(MaskTrue)
COHORT_IN_VECTORS(MaskFalse)
#undef COHORT_IN_VECTORS

// Operands that are null count as zeros.
template <typename T>
struct PointwiseArrays {
  const T *a, *b, *c;
  T *out;
  int64_t count;
};

// The i-th N elements.
template <typename Functor, int kOperands, int N, typename T>
__device__ void compute(const PointwiseArrays<T> &arrays, ComputeOf<T> s, ComputeOf<T> t, int64_t i) {
  using C = ComputeOf<T>;
  Several<T, N> a{}, b{}, c{}, out;
  if (arrays.a) a = load_several<N>(arrays.a + i * N);
  if (kOperands > 1 && arrays.b) b = load_several<N>(arrays.b + i * N);
  if (kOperands > 2 && arrays.c) c = load_several<N>(arrays.c + i * N);
  for (int k = 0; k < N; ++k) {
    out.at[k] =
        from_compute<T>(Functor::template of<C>(to_compute(a.at[k]), to_compute(b.at[k]), to_compute(c.at[k]), s, t));
  }
  store_several(arrays.out + i * N, out);
}

// `vectors`: so many vectors are computed first, then the elements that remain. out may be any of the operands: each
// thread reads its elements before it writes them.
template <typename Functor, int kOperands, typename T>
__global__ void apply(PointwiseArrays<T> arrays, ComputeOf<T> s, ComputeOf<T> t, int64_t vectors) {
  const int64_t first = int64_t(blockIdx.x) * blockDim.x + threadIdx.x, step = int64_t(gridDim.x) * blockDim.x;
  if constexpr (kInVectors<Functor>) {
    constexpr int kSize = Vector<T>::kSize;
    for (int64_t i = first; i < vectors; i += step) compute<Functor, kOperands, kSize>(arrays, s, t, i);
    for (int64_t i = vectors * kSize + first; i < arrays.count; i += step) {
      compute<Functor, kOperands, 1>(arrays, s, t, i);
    }
  } else {
    for (int64_t i = first; i < arrays.count; i += step) compute<Functor, kOperands, 1>(arrays, s, t, i);
  }
}

template <typename T>
using Launch = void (*)(const PointwiseArrays<T> &arrays, ComputeOf<T> s, ComputeOf<T> t, void *stream);

template <typename Functor, int kOperands, typename T>
void launch_apply(const PointwiseArrays<T> &arrays, ComputeOf<T> s, ComputeOf<T> t, void *stream) {
  const bool whole = kInVectors<Functor> && can_be_vectors({arrays.a, arrays.b, arrays.c, arrays.out});
  const int64_t vectors = whole ? arrays.count / Vector<T>::kSize : 0;
  launch(apply<Functor, kOperands, T>, flat_grid(vectors > 0 ? vectors : arrays.count), stream, arrays, s, t, vectors);
}

template <typename T>
Launch<T> launch_of(PointwiseCode code) {
  static constexpr Launch<T> kLaunches[] = {
#define COHORT_LAUNCH(name, operands, integer, vector) launch_apply<pointwise::name, operands, T>,
      COHORT_POINTWISE_LIST(COHORT_LAUNCH)
#undef COHORT_LAUNCH
  };
  return kLaunches[int(code)];
}

// Compiled in pointwise_narrow_cuda.cu.
extern template Launch<Float16> launch_of<Float16>(PointwiseCode code);
extern template Launch<Bfloat16> launch_of<Bfloat16>(PointwiseCode code);

}  // namespace cohort::pointwise_kernels
