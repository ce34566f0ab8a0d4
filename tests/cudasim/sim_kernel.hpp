// SPDX-License-Identifier: Apache-2.0
// What g++ lacks to compile cuda/: included before everything else there. The built-in variables and functions of
// kernels, and a launch that keeps the arguments until the stream comes to it.
#pragma once

// host_defines.h leaves these alone where they are known.
#ifndef __host__
#define __host__
#define __device__
#define __global__
#endif

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>
#include <vector>

// Where the thread that runs now stands.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace cudasim {

// All threads of the block meet. `where` tells one barrier from another: a block meets at one of them.
void meet_at_barrier();

// All lanes of the mask meet, each with a value. Each gets the value of the lane that it names, or all ones where that
// lane is not in the mask; with kBallot, the mask of those whose value is not 0.
constexpr int kBallot = -1;
uint64_t exchange(unsigned mask, uint64_t value, int from_lane);
int lane();

// Memory that the block's threads share, one piece for each `key`.
void *shared_memory(const void *key, size_t bytes, size_t alignment);

// What a kernel is given. Pointers must be of the device's memory when it runs.
struct Argument {
  uintptr_t word;
  int number;
  bool is_pointer;  // else it may be one: a word within a struct
};

template <typename T>
void note_arguments(const T &value, int number, std::vector<Argument> *all) {
  // Not is_trivially_copyable, of which g++ says no for closures that have captured constants.
  static_assert(std::is_trivially_copy_constructible_v<T> && std::is_trivially_destructible_v<T>,
                "an argument of a kernel is copied byte by byte");
  if constexpr (std::is_pointer_v<T>) {
    all->push_back({reinterpret_cast<uintptr_t>(value), number, true});
  } else if constexpr (std::is_class_v<T> && std::has_unique_object_representations_v<T>) {
    for (size_t at = 0; at + sizeof(uintptr_t) <= sizeof(T); at += sizeof(uintptr_t)) {
      uintptr_t word;
      std::memcpy(&word, reinterpret_cast<const char *>(&value) + at, sizeof word);
      all->push_back({word, number, false});
    }
  }
}

// `code` tells one kernel from another.
cudaError_t enqueue_kernel(const cudaLaunchConfig_t &config, const void *code, const char *kernel,
                           std::function<void()> one_thread, std::vector<Argument> arguments, size_t argument_bytes);

template <typename... Params, typename... Args>
cudaError_t launch_kernel(const cudaLaunchConfig_t *config, void (*kernel)(Params...), Args &&...args) {
  std::tuple<Params...> values(static_cast<Params>(args)...);
  std::vector<Argument> arguments;
  int number = 0;
  std::apply([&](const Params &...value) { (note_arguments(value, number++, &arguments), ...); }, values);
  // The members of the pack are in the name of this function.
  return enqueue_kernel(
      *config, reinterpret_cast<const void *>(kernel), __PRETTY_FUNCTION__,
      [kernel, values] { std::apply(kernel, values); }, std::move(arguments), (sizeof(Params) + ... + 0));
}

template <typename T>
T exchange_value(unsigned mask, T value, int from_lane) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles move 4 or 8 bytes");
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = exchange(mask, bits, from_lane);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Where a shuffle among `width` lanes reads: from `to` if it is in the range of this lane, else from itself.
inline int within(int to, int width) { return to / width == lane() / width && to >= 0 ? to : lane(); }

// A load or store of so many bytes at once.
void check_vector(const void *address, size_t bytes);

}  // namespace cudasim

#define cudaLaunchKernelEx ::cudasim::launch_kernel
// Of cuda_launch.hpp what cannot be a function.
#define COHORT_SHARED(type, name, dims) \
  static const char name##_key = 0;     \
  using name##_type = type dims;        \
  name##_type &name =                   \
      *static_cast<name##_type *>(::cudasim::shared_memory(&name##_key, sizeof(name##_type), alignof(name##_type)))

#define COHORT_CHECK_VECTOR(address, bytes) ::cudasim::check_vector(address, bytes)

inline void __syncthreads() { cudasim::meet_at_barrier(); }
inline void __syncwarp(unsigned mask = ~0u) { cudasim::exchange(mask, 0, cudasim::kBallot); }
template <typename T>
T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
  return cudasim::exchange_value(mask, value, cudasim::lane() / width * width + (from & (width - 1)));
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
  return cudasim::exchange_value(mask, value, cudasim::within(cudasim::lane() ^ bits, width));
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, int by, int width = 32) {
  return cudasim::exchange_value(mask, value, cudasim::within(cudasim::lane() + by, width));
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, int by, int width = 32) {
  return cudasim::exchange_value(mask, value, cudasim::within(cudasim::lane() - by, width));
}
inline unsigned __ballot_sync(unsigned mask, int holds) {
  return unsigned(cudasim::exchange(mask, holds != 0, cudasim::kBallot));
}
inline int __any_sync(unsigned mask, int holds) { return __ballot_sync(mask, holds) != 0; }
inline int __all_sync(unsigned mask, int holds) { return __ballot_sync(mask, holds) == mask; }
template <typename T>
T atomicAdd(T *to, T value) {  // one thread runs at a time
  const T old = *to;
  *to = T(old + value);
  return old;
}
template <typename T>
T atomicMax(T *to, T value) {
  const T old = *to;
  if (old < value) *to = value;
  return old;
}
template <typename T>
T atomicOr(T *to, T value) {
  const T old = *to;
  *to = T(old | value);
  return old;
}
inline void __threadfence() {}
