// SPDX-License-Identifier: Apache-2.0
// The functors of op/pointwise_math.hpp as loops over arrays, for the kernels of the CPU backend.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/dtype.hpp"
#include "op/compute_type.hpp"
#include "op/pointwise_math.hpp"

namespace cohort {

// out[i] = functor(a[i], b[i], c[i], s, t) for i < count; operands that the functor does not have are not read. out
// may be any of a, b, c, but must not overlap them in another way.
template <typename C>
using PointwiseLoop = void (*)(const C *a, const C *b, const C *c, C s, C t, C *out, int64_t count);

// C is float, double or int64_t. Null if the functor is not defined on integers (compute in double).
template <typename C>
PointwiseLoop<C> pointwise_loop(PointwiseCode code);
template <>
PointwiseLoop<float> pointwise_loop(PointwiseCode code);
template <>
PointwiseLoop<double> pointwise_loop(PointwiseCode code);
template <>
PointwiseLoop<int64_t> pointwise_loop(PointwiseCode code);

// Elements per block for kernels with intermediate values: a few such blocks stay in the L1 cache.
constexpr int64_t kPointwiseBlock = 512;

// Convert blocks of arrays of any type to and from the type of computation.
using LoadBlock = void (*)(const void *from, int64_t offset, void *to, int64_t count);
using StoreBlock = void (*)(const void *from, void *to, int64_t offset, int64_t count);
LoadBlock load_block(Dtype from, Dtype compute);  // compute: kFloat32, kFloat64 or kInt64
StoreBlock store_block(Dtype compute, Dtype to);
LoadBlock load_indices(Dtype from);  // labels, indices and lengths as int64_t, by to_index()

// The fewest elements for which another thread pays.
constexpr int64_t kCheapGrain = 32768;     // a few operations
constexpr int64_t kExpensiveGrain = 4096;  // exp and the like

}  // namespace cohort
