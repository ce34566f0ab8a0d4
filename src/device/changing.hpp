// SPDX-License-Identifier: Apache-2.0
// What changes from run to run and is no array (Args::numbers, Args::random), as kernels take it. A run that is
// recorded finds it in the device's memory, where each replay puts it anew. For kernels of all backends.
#pragma once

#include "base/dtype.hpp"
#include "device/kernel.hpp"

namespace cohort {

template <typename T>
struct Changing {
  const T *at;  // in the device's memory; null: it is `value`
  T value;

  COHORT_HOST_DEVICE T get() const { return at ? *at : value; }
};

// Of the queue that records. Both say where each replay will find it; null: this run is not recorded yet.
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual const void *place(const void *numbers, size_t bytes) = 0;  // what lies on the host there
  virtual const RandomStream *draw(RandomStream *random) = 0;        // which draw it is; replays count them
};

template <typename T>
Changing<T> changing(const void *numbers, const Lane &lane) {
  const void *const at = lane.recorder ? lane.recorder->place(numbers, sizeof(T)) : nullptr;
  return {static_cast<const T *>(at), *static_cast<const T *>(numbers)};
}

// What draws in this run is of this stream, at as many draws; it is counted.
inline Changing<RandomStream> next_draw(const Args &args, const Lane &lane) {
  const RandomStream *const at = lane.recorder ? lane.recorder->draw(args.random) : nullptr;
  const RandomStream now = *args.random;
  if (!at) ++args.random->draws;
  return {at, now};
}

}  // namespace cohort
