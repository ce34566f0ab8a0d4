// SPDX-License-Identifier: Apache-2.0
// Large copies from pageable host memory to a device. Several threads copy the bytes into pieces of pinned memory, from
// which the device fetches them meanwhile; the call returns when the source has been read. While a queue computes, the
// bytes go into another array of the device first, so that a batch arrives during the step before it. Used by
// cuda_queue.cc.
#pragma once

#include <cuda_runtime.h>

#include <condition_variable>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>

#include "cuda/cuda_completion.hpp"
#include "cuda/cuda_memory.hpp"

namespace cohort {

// The pinned pieces of one device, pinned at the first copy. Safe to use from any thread.
class PinnedRing {
 public:
  explicit PinnedRing(int device) : device_(device) {}
  // Copies in the order of the stream, and returns when `from` has been read. False: there is no pinned memory, and
  // nothing has been enqueued. If it throws, a part may have been enqueued.
  bool copy(void *to, const void *from, size_t bytes, cudaStream_t stream);

 private:
  struct Piece {
    char *data;
    CudaEvent fetched;      // the device no longer reads it
    bool was_used = false;  // the event has been recorded
    Piece(char *at, int device) : data(at), fetched(device) {}
  };
  bool pin();
  void send(char *to, const char *from, size_t bytes, cudaStream_t stream);

  const int device_;
  std::mutex mutex_;                  // guards the members below
  std::condition_variable put_back_;  // pieces_ is not empty
  std::shared_ptr<void> memory_;      // null until it is needed
  std::list<Piece> pieces_;           // that no thread fills; the one fetched first comes first
  bool has_warned_ = false;
};

// The arrays of one queue in which its uploads arrive while it computes. Used by the thread that enqueues.
class AheadUploads {
 public:
  AheadUploads(DevicePool &pool, PinnedRing &ring, int id) : pool_(pool), ring_(ring), id_(id) {}
  ~AheadUploads();  // after the queue's stream has finished
  AheadUploads(const AheadUploads &) = delete;
  AheadUploads &operator=(const AheadUploads &) = delete;

  // Copies in the order of the queue's `stream`, but has the bytes on the device before the stream has come to it.
  // False: there is no memory for it, and nothing has been enqueued. If it throws, the stream may use the array.
  bool copy(void *to, const void *from, size_t bytes, cudaStream_t stream);

 private:
  struct Arrival {
    const void *to;  // where its bytes went last
    void *data = nullptr;
    const size_t bytes;
    CudaEvent arrived, passed_on;
    bool was_used = false;  // the events have been recorded
    Arrival(const void *whose, size_t size, int device) : to(whose), bytes(size), arrived(device), passed_on(device) {}
    bool is_free() const { return !was_used || passed_on.over(); }
  };
  Arrival *find(const void *to, size_t bytes);
  Arrival *add(const void *to, size_t bytes);

  DevicePool &pool_;
  PinnedRing &ring_;
  const int id_;
  cudaStream_t stream_ = nullptr;  // null until it is needed
  std::list<Arrival> arrivals_;
  size_t bytes_ = 0;  // of all of them
};

}  // namespace cohort
