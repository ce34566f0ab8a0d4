// SPDX-License-Identifier: Apache-2.0
// A network whose shapes are all known, bound to plans: one for each way of running it, compiled at its first use.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "executor/executable_network.hpp"
#include "executor/executor_impl.hpp"

namespace cohort {

class PlannedNetwork final : public ExecutableNetwork {
 public:
  explicit PlannedNetwork(Executor::Impl &bound) : bound_(bound) {}  // `bound` owns this
  void compile_usual() { program(bound_.any_gradient, bound_.any_gradient, false); }

  void prepare_forward(bool is_train) override;
  void prepare_backward(const std::vector<ArraySlice> &head_grads, bool is_train,
                        const BucketPrograms &after_bucket) override;
  const std::vector<int> &sync_nodes() const override { return pass_.program->sync_nodes(); }
  bool repeats_forward() const override { return pass_.forward_again; }
  void repeat_forward() override {
    pass_.forward_again = true;
    pass_.backward = false;  // comes next
  }
  void begin() override;
  PassStop advance() override;
  void abandon(const char *why) override;
  int partial_forward(bool is_train, int step) override;

  bool has_run() const override { return last_ != nullptr; }
  std::vector<int> gradient_order() override;
  std::vector<bool> narrow_nodes() const override;
  const Node *node_sized_by_values() const override { return nullptr; }
  void each_planned(const std::function<void(const PlannedNetwork &)> &fn) const override { fn(*this); }

  // Marks everything that a pass would have written as failed, although it has not begun.
  void fail_pass(bool backward, const char *why) const;
  bool has_lost_values() const { return last_ && last_->has_lost_values(); }
  bool has_failed(bool backward) const { return last_ && last_->has_failed(backward); }
  MemoryUse planned_memory() const;                            // of the largest plan
  std::vector<std::shared_ptr<Memory>> memory_blocks() const;  // arenas, and data derived from constants
  std::string roofline() const;  // each step of the program that ran last, beside the limits of the machine

 private:
  using Mode = std::tuple<bool, bool, bool>;  // is_train, with_backward, separate_nodes
  // How far the forward or the backward steps are queued.
  struct Progress {
    bool begun = false;     // registered with the arrays
    bool may_sync = false;  // the stop before the first sync was made
    bool started = false;
    size_t sync = 0;    // number of shares published
    size_t step = 0;    // number of steps queued
    size_t node = 0;    // forward: nodes reported to the monitor
    size_t report = 0;  // backward: Plan::reports that were made
    size_t bucket = 0;  // backward: buckets whose programs were run
  };
  struct RunningPass {
    BoundPlan *program = nullptr;
    bool is_train = false;
    bool forward_again = false;  // backward begins with the forward steps
    bool backward = false;       // the backward steps are being queued, or come next
    std::vector<ArraySlice> head_grads = {};
    BucketPrograms after_bucket = {};
    Progress progress = {};
  };

  BoundPlan &program(bool is_train, bool with_backward, bool separate_nodes);
  void start();
  void set_head_gradients() const;
  // Queue the steps up to `end`.
  void forward_to(size_t end);
  void backward_to(size_t end);
  void monitored_forward(size_t end);
  void monitored_backward(size_t end);
  void report_output(BoundPlan &program, int node, int output);

  Executor::Impl &bound_;
  std::map<Mode, std::shared_ptr<BoundPlan>> programs_;
  BoundPlan *last_ = nullptr;  // the program that ran forward last; null: none since bind, or it failed
  bool last_is_train_ = false, last_is_separate_ = false;
  RunningPass pass_;
};

}  // namespace cohort
