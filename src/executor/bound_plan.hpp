// SPDX-License-Identifier: Apache-2.0
// A plan with addresses: what the executor hands to its queues. The plan is shared with all that bind the same network
// (plan/plan_cache.hpp); arrays, addresses and what is derived from constants are here. Private to src/executor.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "executor/replicas.hpp"
#include "executor/segments.hpp"
#include "ndarray/queue_copy.hpp"
#include "plan/plan.hpp"

namespace cohort {

// What executors that share memory have in common: a queue and an arena a device. Members are used by one thread at a
// time.
// What a prologue step derives from constants: up to date for these versions of its sources. That a reorder makes of an
// array is the same for all programs of a family that want the same layout, and is made once for them.
struct DerivedConstant {
  size_t device = 0;
  NDArray source;  // of a reorder that is shared; else none
  TensorSpec from, to;
  std::shared_ptr<Memory> memory;   // null: what it makes goes to steps behind it in the prologue alone
  std::vector<uint64_t> versions;   // empty: it was never made
  std::atomic<bool> failed{false};  // the work that made it may have failed
};

struct SharedArenas {
  SharedArenas() : timeline(std::make_shared<Timeline>()) {}
  explicit SharedArenas(std::shared_ptr<Timeline> of_another) : timeline(std::move(of_another)) {}

  struct DeviceArena {
    std::shared_ptr<Device> device;
    std::shared_ptr<Queue> queue;
    std::shared_ptr<Memory> arena;  // as large as the largest plan of the family needs
  };
  std::vector<DeviceArena> devices;          // by first use
  const std::shared_ptr<Timeline> timeline;  // of their queues
  uint32_t num_networks = 0;
  uint64_t num_passes = 0;  // of all its programs, which work in the same arenas
  uint64_t generation = 1;  // counts arenas that were replaced: programs then take their addresses anew
  std::vector<std::weak_ptr<DerivedConstant>> reordered;

  DeviceArena &arena_on(const Context &context, int num_threads);
  void join(const SharedArenas &other);  // takes its queues, not its arenas; the timeline is the other's, too
  void reserve(size_t device, size_t bytes);
  std::shared_ptr<DerivedConstant> reorder_of(size_t device, const NDArray &source, const TensorSpec &from,
                                              const TensorSpec &to);
  // What is queued later on one member's queue comes after what is queued now on all; and the other way round.
  void gather(size_t device);
  void scatter(size_t device);
};

// The arrays that a program reads and writes; the executor's own.
// Where streams stood before the latest forward pass: for one that is repeated, to draw the same.
struct RandomMarks {
  struct NodeMark {
    uint64_t pass = 0, draws = 0;
    uint64_t furthest = 0;  // where the stream stood before that
  };
  uint64_t pass = 0;
  std::vector<NodeMark> nodes;  // the queues'
};

struct BoundArrays {
  std::vector<NDArray> args, grads, aux, outputs;
  std::shared_ptr<std::vector<RandomStream>> random;  // per node: one for all programs and shapes
  std::shared_ptr<RandomMarks> noted = std::make_shared<RandomMarks>();
  std::shared_ptr<Replicas> replicas;        // of the group; null: there are none to meet
  size_t replica = 0;                        // which of them this is
  std::shared_ptr<const double> loss_scale;  // null: there is none
};

// Each call below queues its work in the order of the main queue, that of the executor's own context: after everything
// queued before on any queue of the family, and before what is queued later on the main one. In between, devices wait
// for each other as the segments say.
class BoundPlan : public std::enable_shared_from_this<BoundPlan> {
 public:
  BoundPlan(std::shared_ptr<const Plan> plan, bool is_train, const BoundArrays &arrays,
            std::shared_ptr<SharedArenas> arenas, std::vector<size_t> arena_index);

  const Plan &plan() const { return *plan_; }
  const std::vector<std::shared_ptr<DerivedConstant>> &constants() const {
    return constants_;
  }  // of the prologue's steps
  // Before steps of forward, or of backward, are queued: says so to the arrays they use. kExecution where an array that
  // is read was not written.
  void begin_forward();
  void begin_backward();
  // Random numbers of the forward pass that comes next: says where they begin, or takes those of the pass for which
  // that was said last, of whichever program.
  void mark_random();
  void mark_random_of(int first_node, int last_node);  // which are run by themselves, as if in the pass noted last
  void rewind_random();
  void skip_random();  // once that has drawn: others draw from these streams, too, and have come further
  bool is_latest() const { return pass_ == arenas_->num_passes; }  // none of the family has run since
  // Whether another program has worked since this one did where its forward pass has left something for backward.
  bool has_lost_values() const;
  // Brings what was derived from constants up to date, then queues the forward steps [begin, end).
  void run_forward(size_t begin, size_t end);
  // Before a backward pass is repeated: queues what makes again what the one before has overwritten.
  void restore();
  // Queues backward steps [begin, end), counted from the first backward step.
  void run_backward(size_t begin, size_t end);
  void run(const Program &program, const std::shared_ptr<const void> &owner);  // on the main queue

  // Steps that meet those of the group's other executors, by their place among the forward, or the backward steps. What
  // runs such a step has let each of the others find its part before, after all that comes before the step, and has let
  // the queues wait for each other.
  bool meets() const { return !sync_steps_.empty(); }
  std::vector<size_t> sync_points(bool backward) const;
  std::vector<int> sync_nodes(bool backward) const;
  void find_part(bool backward, size_t meeting);
  // The work queued so far ends without finding any more.
  void give_up(bool backward, size_t meeting) noexcept;
  // Of the latest pass: what it would have written is bad, and whether that is so as far as known.
  void pass_failed(bool backward, const char *message) const {
    (backward ? backward_failed : forward_failed)(this, message);
  }
  bool has_failed(bool backward) const {
    return (backward ? failed_backward_ : failed_forward_).load(std::memory_order_acquire);
  }
  Queue &main_queue() const { return queue(0); }

  void *address(int slot);                                // where a slot lies now
  NDArray snapshot(int slot);                             // a copy of its contents, after all queued work (monitor)
  void copy_to_slot(int slot, const ArraySlice &source);  // queued

 private:
  void resolve();  // addresses of all steps, when the arena has moved
  void begin_steps();
  template <typename Begin>
  void begin_writes(bool backward, const std::vector<NDArray> &arrays, Begin &&begin);
  const NDArray &kept_output(size_t i) const { return arrays_.outputs[size_t(plan_->kept_outputs[i])]; }
  bool arrays_overlap() const;
  Queue &queue(int device) const { return *arenas_->devices[arena_index_[size_t(device)]].queue; }
  void for_streams(int first_node, int last_node,
                   void (*fn)(RandomStream *stream, RandomMarks::NodeMark *noted, uint64_t pass));
  void begin_work();
  void end_work();
  void enqueue(size_t begin, size_t end, bool brief);
  void run_on(int device, const Program &program);
  void run_part(int device, size_t begin, size_t end, bool brief);
  void run_here(int device, size_t step);
  std::string largest_in_arena(int device) const;
  std::shared_ptr<DerivedConstant> make_constant(const PlanStep &step) const;
  struct MappedFiles {
    std::vector<std::shared_ptr<Storage>> storage;
    size_t bytes = 0;
  };
  MappedFiles mapped_sources(size_t prologue_step) const;
  std::vector<bool> stale_constants() const;
  void run_prologue();
  const NDArray &source(int index) const;
  bool is_written(size_t head) const;  // or it is the array of an argument
  void fail(const NDArray &array, const char *message) const;
  void forget_derived() const;
  static void forward_failed(const void *owner, const char *message);
  static void backward_failed(const void *owner, const char *message);
  static void share_failed(const void *met, const char *message);
  void trace_plan() const;

  const std::shared_ptr<const Plan> plan_;
  const bool is_train_;
  BoundArrays arrays_;
  std::shared_ptr<SharedArenas> arenas_;
  std::vector<size_t> arena_index_;  // per plan device, index in family
  std::vector<std::shared_ptr<DerivedConstant>> constants_;
  std::vector<void *> pointers_;
  std::vector<Step> steps_, prologue_, restored_;
  std::vector<Segment> segments_;
  std::vector<std::vector<size_t>> random_nodes_;  // per plan device, nodes that may draw, ascending
  std::vector<size_t> on_caller_;                  // steps that are: Kernel::on_caller()
  struct SyncStep {
    size_t step;
    std::shared_ptr<BatchSync> meeting;
    PublishShare first;
    UseShares rest;
    size_t replica;
    Step find;
  };
  std::deque<SyncStep> sync_steps_;
  std::vector<std::shared_ptr<Event>> ends_;  // of the segments that are awaited, while they are queued
  using Replays = std::map<std::pair<size_t, size_t>, std::unique_ptr<Replay>>;  // of steps [first, second), as queued
  Replays replays_, prologue_replays_;
  uint64_t generation_ = 0;
  uint64_t pass_ = 0;                    // the latest of it among the family's
  std::vector<uint64_t> kept_versions_;  // in it, of Plan::kept_outputs
  bool trace_steps_ = false;
  mutable std::atomic<bool> failed_forward_{false}, failed_backward_{false};
};

}  // namespace cohort
