// SPDX-License-Identifier: Apache-2.0
// The loops in double and int64_t, and conversions of blocks.
#include <algorithm>

#include "base/dtype_cast.hpp"
#include "cpu/op/pointwise_loop_body.hpp"
#include "cpu/simd.hpp"

namespace cohort {
namespace {

template <typename F, int kOperands, bool kInteger>
PointwiseLoop<int64_t> integer_loop() {
  if constexpr (kInteger && std::is_same_v<F, pointwise::Mul>) {
    return best_version<pointwise::Body<F, int64_t, kOperands>>();
  } else if constexpr (kInteger) {
    return pointwise::Body<F, int64_t, kOperands>::run;
  } else {
    return nullptr;
  }
}

// Other functors call the standard library.
template <typename F, int kOperands>
PointwiseLoop<double> double_loop() {
  if constexpr (std::is_same_v<F, pointwise::Erfinv>) return best_version<pointwise::Body<F, double, kOperands>>();
  return pointwise::Body<F, double, kOperands>::run;
}

template <typename U, typename T>
struct ConvertBody {
  static void run(const T *from, U *to, int64_t count) {
    COHORT_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) to[i] = cast_element<U>(from[i]);
  }
};

// 16-bit floats and int32 are converted in vectors; other types are rare.
template <typename T>
constexpr bool kIsUsual = kIsHalf<T> || std::is_same_v<T, int32_t>;
template <typename U, typename T>
void convert(const T *from, U *to, int64_t count) {
  if constexpr (kIsUsual<T> || kIsUsual<U>) {
    static const auto loop = best_version<ConvertBody<U, T>>();
    loop(from, to, count);
  } else {
    ConvertBody<U, T>::run(from, to, count);
  }
}

}  // namespace

template <>
PointwiseLoop<double> pointwise_loop(PointwiseCode code) {
  static const PointwiseLoop<double> kLoops[] = {
#define COHORT_LOOP(name, operands, integer, vector) double_loop<pointwise::name, operands>(),
      COHORT_POINTWISE_LIST(COHORT_LOOP)
#undef COHORT_LOOP
  };
  return kLoops[int(code)];
}

template <>
PointwiseLoop<int64_t> pointwise_loop(PointwiseCode code) {
  static const PointwiseLoop<int64_t> kLoops[] = {
#define COHORT_LOOP(name, operands, integer, vector) integer_loop<pointwise::name, operands, integer>(),
      COHORT_POINTWISE_LIST(COHORT_LOOP)
#undef COHORT_LOOP
  };
  return kLoops[int(code)];
}

LoadBlock load_block(Dtype from, Dtype compute) {
  return dispatch(from, [&](auto t) {
    using T = decltype(t);
    return dispatch_compute(compute, true, [](auto c) -> LoadBlock {
      using C = decltype(c);
      return [](const void *source, int64_t offset, void *to, int64_t count) {
        convert(static_cast<const T *>(source) + offset, static_cast<C *>(to), count);
      };
    });
  });
}

namespace {
template <typename T>
struct LoadIndices {
  static void run(const void *source, int64_t offset, void *to, int64_t count) {
    const T *const x = static_cast<const T *>(source) + offset;
    std::transform(x, x + count, static_cast<int64_t *>(to), to_index<T>);
  }
};
}  // namespace

LoadBlock load_indices(Dtype from) {
  return dispatch(from, [](auto t) -> LoadBlock { return best_version<LoadIndices<decltype(t)>>(); });
}

StoreBlock store_block(Dtype compute, Dtype to) {
  return dispatch(to, [&](auto t) {
    using T = decltype(t);
    return dispatch_compute(compute, true, [](auto c) -> StoreBlock {
      using C = decltype(c);
      return [](const void *from, void *target, int64_t offset, int64_t count) {
        convert(static_cast<const C *>(from), static_cast<T *>(target) + offset, count);
      };
    });
  });
}

}  // namespace cohort
