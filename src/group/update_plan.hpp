// SPDX-License-Identifier: Apache-2.0
// What the exchange needs to run an optimizer's rule on its parameters, made once: states, kernels, pieces. For
// exchange.cc.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "group/exchange.hpp"
#include "group/group.hpp"

namespace cohort {

// A piece of one parameter, small enough for its sum to stay in a cache, large enough to be worth a call.
struct Piece {
  int param;
  int64_t begin, count;
};

// Updates of one device's own parameters, in its queue's order: a program that takes over values and runs all kernels.
// One that is in flight is not touched; there are as many as have ever been in flight at once.
class LocalUpdate {
 public:
  LocalUpdate(const std::vector<ExchangeParam> &params, size_t device,
              const std::vector<std::unique_ptr<UpdateKernel>> &kernels, const std::vector<std::string> &labels);
  LocalUpdate(const LocalUpdate &) = delete;
  LocalUpdate &operator=(const LocalUpdate &) = delete;

  bool free() const { return !busy_.load(std::memory_order_acquire); }
  std::vector<UpdateValues> &values() { return values_; }
  void run(Queue &queue, bool brief, const std::shared_ptr<const void> &keeper);  // keeper holds this

 private:
  // The first and the last step of the program.
  class Begin final : public Kernel {
   public:
    explicit Begin(LocalUpdate &of) : of_(of) {}
    void run(const Args &, const Lane &) const override;

   private:
    LocalUpdate &of_;
  };
  class End final : public Kernel {
   public:
    explicit End(LocalUpdate &of) : of_(of) {}
    void run(const Args &, const Lane &) const override { of_.busy_.store(false, std::memory_order_release); }

   private:
    LocalUpdate &of_;
  };
  static void failed(const void *owner, const char *message);

  const std::vector<ExchangeParam> &params_;
  const size_t device_;
  const std::vector<std::unique_ptr<UpdateKernel>> &kernels_;
  std::vector<UpdateValues> values_;
  const Begin begin_{*this};
  const End end_{*this};
  std::vector<Step> steps_;
  std::atomic<bool> busy_{false};
};

class UpdatePlan {
 public:
  // `shared`: devices work on each other's parameters, in pieces; else each on its own.
  UpdatePlan(const std::vector<ExchangeParam> &params, const std::vector<int> &bucket_params,
             const std::vector<std::shared_ptr<Queue>> &queues, const std::shared_ptr<Optimizer> &optimizer,
             UpdateMode mode, bool shared);

  bool fits(const Optimizer &optimizer, UpdateMode mode) const {
    return optimizer_.get() == &optimizer && generation_ == optimizer.generation() && mode_ == mode;
  }
  UpdateMode mode() const { return mode_; }
  size_t num_copies() const { return num_copies_; }
  int64_t num_elements() const { return num_elements_; }
  // One update of every copy of every parameter is counted; its values, [param * num_copies + copy].
  void begin(std::vector<UpdateValues> *values);

  // ---- shared
  size_t num_buckets() const { return pieces_.size(); }
  const std::vector<Piece> &pieces(size_t bucket) const { return pieces_[bucket]; }
  int64_t bucket_elements(size_t bucket) const { return bucket_elements_[bucket]; }
  // Sums, updates and hands out piece `index` of a bucket, on the thread of `device`'s queue.
  void run_piece(size_t device, size_t bucket, size_t index, const std::vector<UpdateValues> &values,
                 const Lane &lane) const;

  // ---- each device for itself
  LocalUpdate &free_local(size_t device);

 private:
  struct Worker {  // what one device's thread works with
    std::map<std::pair<Dtype, int64_t>, std::unique_ptr<Kernel>> sums;
    std::map<std::pair<Dtype, int64_t>, std::unique_ptr<UpdateKernel>> updates;
    std::vector<std::vector<Kernel *>> sum_of;           // [bucket][piece]
    std::vector<std::vector<UpdateKernel *>> update_of;  // likewise
    std::shared_ptr<Memory> sum;
    mutable std::vector<void *> inputs;
  };
  struct Local {
    std::vector<std::unique_ptr<UpdateKernel>> kernels;  // of each parameter
    std::vector<std::unique_ptr<LocalUpdate>> updates;
  };
  void make_pieces(const std::vector<int> &bucket_params, int num_threads);
  void make_workers(const std::vector<std::shared_ptr<Queue>> &queues);
  void make_locals(const std::vector<std::shared_ptr<Queue>> &queues);
  std::unique_ptr<Kernel> make_sum(const Context &context, Dtype dtype, int64_t length, int num_threads) const;

  const std::vector<ExchangeParam> &params_;
  const std::shared_ptr<Optimizer> optimizer_;
  const uint64_t generation_;
  const UpdateMode mode_;
  const size_t num_devices_, num_copies_;
  int64_t num_elements_ = 0;
  std::vector<Optimizer::Slot *> slots_;
  std::vector<std::vector<NDArray>> states_;  // of each slot
  std::vector<std::string> labels_;           // of each parameter, for errors
  std::vector<std::vector<Piece>> pieces_;
  std::vector<int64_t> bucket_elements_;
  std::vector<Worker> workers_;
  std::vector<Local> locals_;
};

}  // namespace cohort
