// SPDX-License-Identifier: Apache-2.0
// Sums gradients over the devices of a group: what all ways of doing it have in common. Driven by exchange.
//
// Summing is one thing, what is done with sums another. A reducer gives each sum to a consumer as soon as it is there
// and while it is in the cache of whoever has summed it: an optimizer's update is such a consumer (summed_update.hpp).
// A level above the devices is one, too: what takes these sums to other processes consumes them, and is itself the
// reducer of those who want the sums of all.
//
// Each element is summed in the order of the devices, whoever does it: the same run gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "executor/executor.hpp"
#include "group/exchange_types.hpp"
#include "group/gradient_buckets.hpp"

namespace cohort {

// Elements of one parameter: few enough for their sum to stay in a cache, enough to be worth a call.
struct Piece {
  int param;
  int64_t begin, count;
};
using Pieces = std::vector<std::vector<Piece>>;  // [bucket]

// Where sums are made and consumed: one piece after the other, by one thread, or team of threads, at a time.
struct Worker {
  Context context;
  int num_threads;
};

// What is done with the sums of one pass.
class SumConsumer {
 public:
  virtual ~SumConsumer() = default;
  // On the thread that asks for the sums: what these queue on the devices' queues is done before any piece is summed;
  // after all have been consumed.
  virtual void before_sums(const ExchangeDevices &) {}
  virtual void after_sums(const ExchangeDevices &) {}
  // Each piece once, in no order; several workers may come at a time. The sum stays until this returns.
  virtual void consume(size_t worker, size_t bucket, size_t index, const void *sum, const Lane &lane) = 0;
  // In its place where workers are devices (GradientReducer::on_devices): steps that consume all pieces on one of them,
  // the same each time. Whoever queues them keeps this until they are done.
  virtual Program steps(size_t worker) = 0;
  // Sums are missing, and will not come: what they would have brought to this device has not been written. On a queue's
  // thread, while no worker consumes; must not use a queue.
  virtual void fail(size_t device, const char *message) noexcept = 0;
};

class GradientReducer {
 public:
  // Buckets cut for workers of at most `num_threads` threads.
  GradientReducer(const ExchangeParams &params, const GradientBuckets &buckets, int num_threads);
  virtual ~GradientReducer() = default;  // waits for nothing: queued work holds what it uses
  GradientReducer(const GradientReducer &) = delete;
  GradientReducer &operator=(const GradientReducer &) = delete;

  const std::shared_ptr<const Pieces> &pieces() const { return pieces_; }
  const std::vector<Worker> &workers() const { return workers_; }
  // Its workers are the devices, each of which is given all sums, and sees no memory but its own.
  virtual bool on_devices() const { return false; }
  virtual void *sum_of(size_t /* param */, size_t /* worker */) const { return nullptr; }  // where it lies each time

  // Before a backward pass is queued on the devices, and after that.
  virtual void begin_backward() {}
  virtual void end_backward() {}
  // What the pass of this device is to run after its buckets; asking is promising to. Nothing: not worth telling.
  virtual BucketPrograms after_bucket(size_t) { return {}; }

  // An update comes next, and has not said so to the arrays yet.
  virtual void before_update() {}
  // After backward was queued on all devices: queues all sums. What the devices' queues are given later comes after all
  // has been consumed. `waits`: some device's queue has been told since to wait for what others do with the arrays, so
  // that nothing may be consumed before all devices have come that far.
  void reduce(std::shared_ptr<SumConsumer> consumer, bool waits = false) {
    queue_sums(std::move(consumer), false, waits);
  }
  // The same, and sums that have been consumed replace the gradients on every device.
  void all_reduce(std::shared_ptr<SumConsumer> consumer, bool waits = false) {
    queue_sums(std::move(consumer), true, waits);
  }

  // The devices' queues have been waited for: waits for those of its own, and throws what failed there. What failed
  // passes have left behind is cleared away.
  virtual void wait() = 0;

 protected:
  virtual void queue_sums(std::shared_ptr<SumConsumer> consumer, bool replace_gradients, bool waits) = 0;

  std::vector<Worker> workers_;

 private:
  const std::shared_ptr<const Pieces> pieces_;
};

using DeviceArrays = std::vector<std::vector<NDArray>>;  // [param][device]

// Gradients are summed in their own type, but float32 ones in the type that is wanted for these.
inline Dtype type_of_sum(Dtype own, Dtype wanted) { return own == Dtype::kFloat32 ? wanted : own; }
// Casts so many elements. kInternal: not without scratch memory.
std::unique_ptr<Kernel> make_cast(const Worker &worker, Dtype from, Dtype to, int64_t length);

// Sums pieces on one worker. For reducers.
class PieceSum {
 public:
  // The worker sees the memory of all gradients. `wanted`: see type_of_sum().
  PieceSum(std::shared_ptr<const DeviceArrays> grads, std::shared_ptr<const Pieces> pieces, const Worker &worker,
           Dtype wanted);

  void *run(size_t bucket, size_t index, const Lane &lane) const;  // the sum, which stays until the next
  void replace_gradients(size_t bucket, size_t index) const;       // by the latest sum, which was of this piece

 private:
  struct Kernels {
    std::unique_ptr<Kernel> sum, narrow, widen;  // the last two where it is summed in another type than its own
  };
  const std::shared_ptr<const DeviceArrays> grads_;
  const std::shared_ptr<const Pieces> pieces_;
  std::map<std::pair<Dtype, int64_t>, Kernels> kernels_;
  std::vector<std::vector<const Kernels *>> kernels_of_;  // [bucket][piece]
  std::shared_ptr<Memory> sum_;
  std::vector<std::shared_ptr<Memory>> narrow_;  // of each device's piece; then of their sum
  mutable std::vector<void *> inputs_;
};

// An element of an array, by its address.
inline void *address_of(const NDArray &array, int64_t element) {
  return static_cast<char *>(array.data()) + size_t(element) * dtype_size(array.dtype());
}

// Throws kExecution if a failed backward pass has left this device without gradients.
void check_gradients(const DeviceArrays &grads, size_t device);

}  // namespace cohort
