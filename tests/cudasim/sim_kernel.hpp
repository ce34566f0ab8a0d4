// SPDX-License-Identifier: Apache-2.0
// CUDA's built-in variables and functions for g++, included before everything else when cuda/ is compiled here; and a
// launch that keeps the arguments until the stream runs the kernel.
#pragma once

// host_defines.h does not redefine these.
#ifndef __host__
#define __host__
#define __device__
#define __global__
#endif

#include <cuda_runtime.h>
#include <math.h>  // nvcc declares its functions outside of std, too

#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>
#include <vector>

// The position of the running thread.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace cudasim {

// Waits for all threads of the block.
void wait_at_barrier();

// Waits for all lanes of the mask, each with a value. Returns the value of lane `from_lane`, or all ones if that lane
// is not in the mask; with kBallot, the mask of the lanes whose value is not 0.
constexpr int kBallot = -1;
uint64_t exchange(unsigned mask, uint64_t value, int from_lane);
int lane();

// Shared memory of the block, one array per `key`.
void *shared_memory(const void *key, size_t bytes, size_t alignment);

// An argument of a kernel. Pointers must point to memory of the device when the kernel runs.
struct Argument {
  uintptr_t word;
  int number;
  bool is_pointer;  // false: a word within a struct, which may be a pointer
};

template <typename T>
void note_arguments(const T &value, int number, std::vector<Argument> *all) {
  // Not is_trivially_copyable, which g++ denies to closures that have captured constants.
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

// `code` identifies the kernel.
cudaError_t enqueue_kernel(const cudaLaunchConfig_t &config, const void *code, const char *kernel,
                           std::function<void()> one_thread, std::vector<Argument> arguments, size_t argument_bytes);

template <typename... Params, typename... Args>
cudaError_t launch_kernel(const cudaLaunchConfig_t *config, void (*kernel)(Params...), Args &&...args) {
  std::tuple<Params...> values(static_cast<Params>(args)...);
  std::vector<Argument> arguments;
  int number = 0;
  std::apply([&](const Params &...value) { (note_arguments(value, number++, &arguments), ...); }, values);
  // __PRETTY_FUNCTION__ holds the types of the pack, which name the kernel.
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

// The lane from which a shuffle among `width` lanes reads: `to` if it is in the range of this lane, else this lane.
inline int within(int to, int width) { return to / width == lane() / width && to >= 0 ? to : lane(); }

// Checks a vector load or store of so many bytes.
void check_vector(const void *address, size_t bytes);

}  // namespace cudasim

#define cudaLaunchKernelEx ::cudasim::launch_kernel
// The macros of cuda_launch.hpp.
#define COHORT_SHARED(type, name, dims) \
  static const char name##_key = 0;     \
  using name##_type = type dims;        \
  name##_type &name =                   \
      *static_cast<name##_type *>(::cudasim::shared_memory(&name##_key, sizeof(name##_type), alignof(name##_type)))

#define COHORT_CHECK_VECTOR(address, bytes) ::cudasim::check_vector(address, bytes)

inline void __syncthreads() { cudasim::wait_at_barrier(); }
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
