// SPDX-License-Identifier: Apache-2.0
// Values other than arrays that change from run to run (Args::numbers, Args::random). In a recorded run (CUDA graphs)
// kernels read them from device memory, where each replay stores the current values. For kernels of all backends.
#pragma once

#include "base/dtype.hpp"
#include "device/kernel.hpp"

namespace cohort {

template <typename T>
struct RunValue {
  const T *at;  // in device memory; null: use `value`
  T value;

  COHORT_HOST_DEVICE T get() const { return at ? *at : value; }
};

// Implemented by a queue that records work for replay. Both return where the replays will find the value, or null if
// this run is not being recorded.
class ReplayRecorder {
 public:
  virtual ~ReplayRecorder() = default;
  // The host's `numbers`, stored anew by each replay.
  virtual const void *record_numbers(const void *numbers, size_t bytes) = 0;
  virtual const RandomStream *record_draw(RandomStream *random) = 0;  // the stream's state; each replay counts one draw
};

template <typename T>
RunValue<T> run_value(const void *numbers, const Lane &lane) {
  const void *const at = lane.recorder ? lane.recorder->record_numbers(numbers, sizeof(T)) : nullptr;
  return {static_cast<const T *>(at), *static_cast<const T *>(numbers)};
}

// Returns the state of the stream for this run's draw and counts the draw.
inline RunValue<RandomStream> next_draw(const Args &args, const Lane &lane) {
  const RandomStream *const at = lane.recorder ? lane.recorder->record_draw(args.random) : nullptr;
  const RandomStream now = *args.random;
  if (!at) ++args.random->draws;
  return {at, now};
}

}  // namespace cohort
