// SPDX-License-Identifier: Apache-2.0
// Arrays: a window on shared storage. Row-major and dense, on one device. Copies of an NDArray object are the same
// array.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/context.hpp"
#include "base/dtype.hpp"
#include "base/shape.hpp"
#include "device/device.hpp"

namespace cohort {

// Memory and what is known of the work that uses it. Shared by all views of an array, and by executors.
class Storage {
 public:
  explicit Storage(std::shared_ptr<Memory> memory) : memory_(std::move(memory)) {}

  void *data() const { return memory_->data(); }
  size_t bytes() const { return memory_->bytes(); }
  const Context &context() const { return memory_->context(); }

  // Work that reads or writes this storage has been, or may at any time be, enqueued there: an executor attaches its
  // queue to all its arrays at bind, a copy attaches for its source and target.
  void attach(const std::shared_ptr<Queue> &queue) { attach(queue, true); }
  void attach_reader(const std::shared_ptr<Queue> &queue) { attach(queue, false); }  // which writes nothing here
  // Waits for all work queued on the attached queues. Throws the error of such work, once (ERR-07); after that, and
  // until it is written again, an array that failed work should have written throws kExecution (see fail()).
  void wait();
  // The same without the second part: before it is overwritten.
  void wait_for_work() { wait_for_work(nullptr); }
  void wait_for_work(const Queue *but);  // on all other queues
  // Waits until it can be read by work on `reader`: for writers on other queues, as wait() does.
  void wait_for_writers(const Queue *reader);
  // What is written to `part` is a part of this storage, too: waiting for this one waits for it, and throws if it
  // failed.
  void depend_on(std::shared_ptr<Storage> part);
  void check_failure();                     // the second part of wait() alone
  void fail(const char *message) noexcept;  // by an executor: the work that should have filled this storage failed
  void written();                           // its contents are good again, and are others than before
  void will_change() { version_.fetch_add(1, std::memory_order_acq_rel); }  // by work that is queued
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  // A raw pointer to it is in the host's hands: it may change without our knowing, so version() is no proof.
  void expose() { exposed_.store(true, std::memory_order_release); }
  bool exposed() const { return exposed_.load(std::memory_order_acquire); }
  // A queue of its device for copies between it and the host; only of a device whose memory the host does not see.
  const std::shared_ptr<Queue> &copier();

 private:
  struct User {
    std::weak_ptr<Queue> queue;
    bool writes;
  };
  void attach(const std::shared_ptr<Queue> &queue, bool writes);
  void sync_users(bool writers_only, const Queue *but);
  std::vector<std::shared_ptr<Storage>> parts();

  std::shared_ptr<Memory> memory_;
  std::atomic<uint64_t> version_{1};
  std::atomic<bool> exposed_{false};
  std::atomic<bool> busy_{false};    // users_ or parts_ is not empty: the fast path of wait()
  std::atomic<bool> failed_{false};  // failure_ is not empty
  std::mutex mutex_;                 // guards the four below
  std::vector<User> users_;
  std::vector<std::shared_ptr<Storage>> parts_;
  std::string failure_;
  std::shared_ptr<Queue> copier_;
};

class NDArray {
 public:
  NDArray() = default;  // no array
  // Zero-filled unless `zero` is false. Throws kDevice, kOutOfMemory, kShape (negative or too large).
  static NDArray create(const Shape &shape, Dtype dtype, const Context &context, bool zero = true);
  static NDArray wrap(std::shared_ptr<Memory> memory, const Shape &shape, Dtype dtype);
  // A window on storage, `offset` bytes in.
  NDArray(std::shared_ptr<Storage> storage, size_t offset, Shape shape, Dtype dtype)
      : storage_(std::move(storage)), offset_(offset), shape_(std::move(shape)), dtype_(dtype) {}

  explicit operator bool() const { return storage_ != nullptr; }
  const Shape &shape() const { return shape_; }
  Dtype dtype() const { return dtype_; }
  const Context &context() const { return storage_->context(); }
  int64_t size() const { return shape_.size(); }
  size_t bytes() const { return size_t(size()) * dtype_size(dtype_); }
  size_t capacity_bytes() const { return storage_->bytes() - offset_; }
  const std::shared_ptr<Storage> &storage() const { return storage_; }
  // The address, without any waiting; on its device.
  void *data() const { return static_cast<char *>(storage_->data()) + offset_; }
  template <typename T>
  T *data_as() const {
    return static_cast<T *>(data());
  }

  // Views. kInvalidArgument / kShape as NDA-03..06 say.
  NDArray slice(int64_t begin, int64_t end) const;  // axis 0
  NDArray at(int64_t index) const;
  NDArray reshape(const Shape &shape) const;  // same number of elements; one -1 is inferred (kUnknown)
  NDArray window(const Shape &shape) const;   // at most as many elements: the first ones (pools, up-sizing)
  NDArray slice_axis(int axis, int64_t begin, int64_t end) const;  // a copy unless axis is 0

  void wait() const { storage_->wait(); }  // before the host reads
  bool same_memory(const NDArray &other) const { return storage_ == other.storage_ && offset_ == other.offset_; }

  // All of these wait for what they need and have finished when they return.
  void copy_from(const NDArray &source) const;  // same shape (kShape); casts; any two contexts (NDA-07, 08)
  void read(void *to, size_t bytes) const;      // to host memory; bytes must be bytes() (kInvalidArgument)
  void write(const void *from, size_t bytes) const;
  void fill(double value) const;
  void fill_uniform(double low, double high, uint64_t seed) const;  // as base/random.hpp has it; floating types
  void fill_normal(double mean, double deviation, uint64_t seed) const;
  NDArray copy_to(const Context &context) const;  // a new array
  NDArray cast(Dtype dtype) const;                // a new array on the same context
  NDArray on_host() const;                        // itself if the host can read it, else a copy on cpu(0)

 private:
  std::shared_ptr<Storage> storage_;
  size_t offset_ = 0;
  Shape shape_;
  Dtype dtype_ = Dtype::kFloat32;
};

// Bytes of a dense array. Throws kShape (unknown, negative or too large lengths), kDtype.
size_t dense_bytes(const Shape &shape, Dtype dtype);

NDArray concatenate(const std::vector<NDArray> &arrays, int axis);  // NDA-09

// Element-wise work on host memory, used by copies here. `from` and `to` may overlap only if the types are equal.
void cast_elements(const void *from, Dtype from_dtype, void *to, Dtype to_dtype, int64_t count);
// Rows [begin, end) of `axis` of a row-major array `from` of shape `shape` into dense `to`, with cast.
void copy_slice(const void *from, const Shape &shape, Dtype from_dtype, int axis, int64_t begin, int64_t end, void *to,
                Dtype to_dtype);
// The other way: dense `from` of that slice's shape into rows [begin, end) of `to`.
void paste_slice(const void *from, Dtype from_dtype, void *to, const Shape &shape, Dtype to_dtype, int axis,
                 int64_t begin, int64_t end);

using NamedArrays = std::vector<std::pair<std::string, NDArray>>;  // ordered; names empty in a list without names

}  // namespace cohort
