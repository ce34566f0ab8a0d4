// SPDX-License-Identifier: Apache-2.0
// Large copies between pageable host memory and a device. Several threads copy the bytes into pieces of pinned memory,
// from which the device fetches them meanwhile, or the other way round. While a queue computes, bytes for the device go
// through a staging array there, so that a batch arrives during the step before it. Used by cuda_queue.cc.
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

// The pinned pieces of one device, pinned at the first copy. Safe to use from any thread. Copies are in the order of a
// stream, and return false if there is no pinned memory, with nothing enqueued. If they throw, a part may have been
// enqueued.
class PinnedRing {
 public:
  explicit PinnedRing(int device) : device_(device) {}
  bool upload(void *to, const void *from, size_t bytes, cudaStream_t stream);    // returns when `from` has been read
  bool download(void *to, const void *from, size_t bytes, cudaStream_t stream);  // returns when `to` has been written

 private:
  struct Piece {
    char *data;
    CudaEvent free;         // the device no longer uses it
    bool was_used = false;  // the event has been recorded
    Piece(char *at, int device) : data(at), free(device) {}
    void record(cudaStream_t stream) {
      free.record(stream);
      was_used = true;
    }
  };
  bool pin();
  template <typename Fn>
  bool for_pieces(size_t bytes, cudaStream_t stream, const Fn &fn);
  template <typename Fn>
  void with_piece(cudaStream_t stream, const Fn &fn);

  const int device_;
  std::mutex mutex_;                  // guards the members below
  std::condition_variable put_back_;  // pieces_ is not empty
  std::shared_ptr<void> memory_;      // null until it is needed
  std::list<Piece> pieces_;           // that no thread uses; the one used longest ago comes first
  bool has_warned_ = false;
};

// Uploads of one queue while it computes: a stream of their own fills a staging array, which the queue's stream copies
// to the target. Used by the thread that enqueues.
class StagedUploads {
 public:
  StagedUploads(DevicePool &pool, PinnedRing &ring, int id) : pool_(pool), ring_(ring), id_(id) {}
  ~StagedUploads();  // after the queue's stream has finished
  StagedUploads(const StagedUploads &) = delete;
  StagedUploads &operator=(const StagedUploads &) = delete;

  // Copies in the order of the queue's `stream`, but has the bytes on the device before the stream has come to it.
  // False: there is no memory for it, and nothing has been enqueued. If it throws, `stream` may still use a staging
  // array.
  bool copy(void *to, const void *from, size_t bytes, cudaStream_t stream);

 private:
  struct StagingArray {
    const void *to;  // the last target
    void *data = nullptr;
    const size_t bytes;
    CudaEvent filled, emptied;  // the bytes have come; they have gone to the target
    bool was_used = false;      // the events have been recorded
    StagingArray(const void *whose, size_t size, int device)
        : to(whose), bytes(size), filled(device), emptied(device) {}
    bool is_free() const { return !was_used || emptied.over(); }
  };
  StagingArray *find(const void *to, size_t bytes);
  StagingArray *add(const void *to, size_t bytes);

  DevicePool &pool_;
  PinnedRing &ring_;
  const int id_;
  cudaStream_t stream_ = nullptr;  // null until it is needed
  std::list<StagingArray> arrays_;
  size_t bytes_ = 0;  // of all of them
};

}  // namespace cohort
