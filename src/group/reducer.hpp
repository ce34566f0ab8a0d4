// SPDX-License-Identifier: Apache-2.0
// Sums gradients over the devices of a group: the interface of all ways to do it. Driven by exchange.
//
// A reducer only sums. It gives each sum to a consumer as soon as the sum is there, while it is still in the cache of
// the thread that has computed it. An optimizer's update is such a consumer (summed_update.hpp). A level above the
// devices could be one, too: it would consume these sums, exchange them with other processes, and itself be the reducer
// of the final sums.
//
// Each element is summed in the order of the devices, by any worker: the same run gives the same bits.
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

// A piece of one parameter: few enough elements for their sum to stay in a cache, enough to be worth a call.
struct Piece {
  int param;
  int64_t begin, count;
};
using Pieces = std::vector<std::vector<Piece>>;  // [bucket]

// A place that makes and consumes sums: one piece after the other, with one thread or team of threads at a time.
struct Worker {
  Context context;
  int num_threads;
};

// Receives the sums of one pass.
class SumConsumer {
 public:
  virtual ~SumConsumer() = default;
  // Called on the thread that asks for the sums. Work that before_sums() puts on the devices' queues is done before any
  // piece is summed; work that after_sums() puts there runs after all were consumed.
  virtual void before_sums(const ExchangeDevices &) {}
  virtual void after_sums(const ExchangeDevices &) {}
  // Called once for each piece, in any order, by several workers at a time. The sum is valid until this returns.
  virtual void consume(size_t worker, size_t bucket, size_t index, const void *sum, const Lane &lane) = 0;
  // Used instead of consume() if workers are devices (GradientReducer::on_devices): the steps that consume all pieces
  // on one of them, the same each time. The caller keeps this object until they are done.
  virtual Program steps(size_t worker) = 0;
  // The sums will not come: marks what they would have changed on this device as failed. Called on a queue's thread
  // while no worker consumes; must not use a queue.
  virtual void fail(size_t device, const char *message) noexcept = 0;
};

class GradientReducer {
 public:
  // Cuts buckets into pieces for workers of at most `num_threads` threads.
  GradientReducer(const ExchangeParams &params, const GradientBuckets &buckets, int num_threads);
  virtual ~GradientReducer() = default;  // waits for nothing: queued work holds what it uses
  GradientReducer(const GradientReducer &) = delete;
  GradientReducer &operator=(const GradientReducer &) = delete;

  const std::shared_ptr<const Pieces> &pieces() const { return pieces_; }
  const std::vector<Worker> &workers() const { return workers_; }
  // Whether its workers are the devices: each gets all sums, and reaches no memory but its own.
  virtual bool on_devices() const { return false; }
  // Its address, the same in each pass.
  virtual void *sum_of(size_t /* param */, size_t /* worker */) const { return nullptr; }

  // Called before a backward pass is queued on the devices, and after that.
  virtual void begin_backward() {}
  virtual void end_backward() {}
  // The programs that this device's pass runs after its buckets; the caller must run them. Empty if reporting buckets
  // does not pay.
  virtual BucketPrograms after_bucket(size_t) { return {}; }

  // Called before an update registers with the arrays.
  virtual void before_update() {}
  // Queues all sums, after backward was queued on all devices. Later work on the devices' queues runs after everything
  // has been consumed. `waits`: since backward some device's queue waits for other users of the arrays, so nothing may
  // be consumed before all devices have come that far.
  void reduce(std::shared_ptr<SumConsumer> consumer, bool waits = false) {
    queue_sums(std::move(consumer), false, waits);
  }
  // The same; besides, sums replace the gradients on every device once they have been consumed.
  void all_reduce(std::shared_ptr<SumConsumer> consumer, bool waits = false) {
    queue_sums(std::move(consumer), true, waits);
  }

  // Called after waiting for the devices' queues: waits for its own queues and throws their errors. Clears what failed
  // passes have left.
  virtual void wait() = 0;

 protected:
  virtual void queue_sums(std::shared_ptr<SumConsumer> consumer, bool replace_gradients, bool waits) = 0;

  std::vector<Worker> workers_;

 private:
  const std::shared_ptr<const Pieces> pieces_;
};

using DeviceArrays = std::vector<std::vector<NDArray>>;  // [param][device]

// Gradients are summed in their own type, except that float32 ones are summed in the type that is wanted for them.
inline Dtype type_of_sum(Dtype own, Dtype wanted) { return own == Dtype::kFloat32 ? wanted : own; }
// A kernel that casts `length` elements. kInternal if it needs scratch memory.
std::unique_ptr<Kernel> make_cast(const Worker &worker, Dtype from, Dtype to, int64_t length);

// Sums pieces on one worker; used by reducers.
class PieceSum {
 public:
  // The worker must reach the memory of all gradients. `wanted`: see type_of_sum().
  PieceSum(std::shared_ptr<const DeviceArrays> grads, std::shared_ptr<const Pieces> pieces, const Worker &worker,
           Dtype wanted);

  void *run(size_t bucket, size_t index, const Lane &lane) const;  // returns the sum, valid until the next call
  void replace_gradients(size_t bucket, size_t index) const;       // by the latest sum, which must be of this piece

 private:
  struct Kernels {
    std::unique_ptr<Kernel> sum, narrow, widen;  // the last two if it is summed in another type than its own
  };
  const std::shared_ptr<const DeviceArrays> grads_;
  const std::shared_ptr<const Pieces> pieces_;
  std::map<std::pair<Dtype, int64_t>, Kernels> kernels_;
  std::vector<std::vector<const Kernels *>> kernels_of_;  // [bucket][piece]
  std::shared_ptr<Memory> sum_;
  std::vector<std::shared_ptr<Memory>> narrow_;  // one for each device's piece, then one for their sum
  mutable std::vector<void *> inputs_;
};

// The address of an element of an array.
inline void *address_of(const NDArray &array, int64_t element) {
  return static_cast<char *>(array.data()) + size_t(element) * dtype_size(array.dtype());
}

// Throws kExecution if a failed backward pass has left this device without gradients.
void check_gradients(const DeviceArrays &grads, size_t device);

}  // namespace cohort
