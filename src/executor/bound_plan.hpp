// SPDX-License-Identifier: Apache-2.0
// A plan bound to memory addresses, which the executor queues. The plan is shared with all that bind the same network
// (plan/plan_cache.hpp); arrays, addresses and data derived from constants are here. Private to src/executor.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/node_streams.hpp"
#include "executor/batch_sync.hpp"
#include "executor/segments.hpp"
#include "ndarray/queue_copy.hpp"
#include "plan/bound_step.hpp"

namespace cohort {

// Data that a prologue step derives from constants, up to date for these versions of its sources. A reorder of an array
// is made once for all programs of the shared arenas that want the same layout.
struct DerivedConstant {
  size_t device = 0;
  NDArray source;  // set for a reorder that programs share; else null
  TensorSpec from, to;
  std::shared_ptr<Memory> memory;   // null: only later steps of the prologue read the result
  std::vector<uint64_t> versions;   // empty: never computed
  std::atomic<bool> failed{false};  // the work that made it may have failed
};

// A queue and an arena per device, which executors that share memory have in common. Used by one thread at a time.
struct SharedArenas {
  SharedArenas() : timeline(std::make_shared<Timeline>()) {}
  explicit SharedArenas(std::shared_ptr<Timeline> of_another) : timeline(std::move(of_another)) {}

  struct DeviceArena {
    std::shared_ptr<Device> device;
    std::shared_ptr<Queue> queue;
    std::shared_ptr<Memory> arena;  // as large as the largest plan needs
  };
  std::vector<DeviceArena> devices;          // in the order of first use
  const std::shared_ptr<Timeline> timeline;  // of their queues
  uint32_t num_networks = 0;
  uint64_t num_passes = 0;  // passes of all programs that work in these arenas
  uint64_t generation = 1;  // counts replaced arenas: programs then resolve their addresses again
  std::vector<std::weak_ptr<DerivedConstant>> reordered;

  DeviceArena &arena_on(const Context &context, int num_threads);
  void join(const SharedArenas &other);  // adds its queues, not its arenas; both must have one timeline
  void reserve(size_t device, size_t bytes);
  std::shared_ptr<DerivedConstant> reorder_of(size_t device, const NDArray &source, const TensorSpec &from,
                                              const TensorSpec &to);
  // gather(): later work on this device's queue comes after everything queued on all queues so far. scatter(): later
  // work on all other queues comes after everything queued on this device's queue so far.
  void gather(size_t device);
  void scatter(size_t device);
};

// Positions of the random streams before the latest forward pass, so that a repeated pass draws the same numbers.
struct RandomMarks {
  struct NodeMark {
    uint64_t pass = 0, draws = 0;
    uint64_t furthest = 0;  // where the stream stood before it was rewound
  };
  uint64_t pass = 0;
  std::vector<NodeMark> nodes;  // read and written by work on the queues
};

// The executor's own arrays, which its programs read and write.
struct BoundArrays {
  std::vector<NDArray> args, grads, aux, outputs;
  RandomStreams random;  // of the nodes, for all programs and shapes
  std::shared_ptr<RandomMarks> marks = std::make_shared<RandomMarks>();
  size_t batch_part = 0;                     // ExecutorOptions::batch_part
  std::shared_ptr<BatchSync> batch_sync;     // likewise
  std::shared_ptr<const double> loss_scale;  // null: there is none
};

// Each call below queues its work in the order of the main queue, that of the executor's own context: after everything
// queued so far on any queue of the arenas, and before what is queued later on the main one. In between, devices wait
// for each other as the segments require.
class BoundPlan : public std::enable_shared_from_this<BoundPlan> {
 public:
  BoundPlan(std::shared_ptr<const Plan> plan, bool is_train, const BoundArrays &arrays,
            std::shared_ptr<SharedArenas> arenas, std::vector<size_t> arena_index);

  const Plan &plan() const { return *plan_; }
  const std::vector<std::shared_ptr<DerivedConstant>> &constants() const {
    return constants_;
  }  // one per step of the prologue
  // Before steps of forward or backward are queued: registers the pass with the arrays it uses. kExecution if an array
  // that is read was not written.
  void begin_forward();
  void begin_backward();
  // mark_random() saves the random state of the next forward pass; rewind_random() restores the state that was saved
  // last, by any program. After the repeated pass skip_random() moves the streams on to where they were before: others
  // draw from them, too.
  void mark_random();
  void mark_random_of(int first_node, int last_node);  // of nodes that run separately, as if in the pass marked last
  void rewind_random();
  void skip_random();
  bool is_latest() const { return pass_ == arenas_->num_passes; }  // no program of the arenas has run since
  // Whether another program has overwritten values that this one's forward pass has kept for backward.
  bool has_lost_values() const;
  // Updates the data derived from constants, then queues the forward steps [begin, end).
  void run_forward(size_t begin, size_t end);
  // Before a backward pass is repeated: queues the steps that restore what the previous one has overwritten.
  void restore();
  // Queues backward steps [begin, end), counted from the first backward step.
  void run_backward(size_t begin, size_t end);
  void run(const Program &program, const std::shared_ptr<const void> &owner);  // on the main queue

  // Steps that sync with the executors of the batch's other parts, by their position among the forward or backward
  // steps. Before such a step is queued, publish_share() was called on all executors, after all their steps before it,
  // and the queues were made to wait for each other.
  const std::vector<size_t> &sync_points(bool backward) const { return sync_points_[backward]; }
  const std::vector<int> &sync_nodes() const { return sync_nodes_; }  // forward, then backward
  void publish_share(bool backward, size_t sync);
  // Waits for the work queued so far; marks the shares of this sync and of all later ones as not delivered.
  void abandon_syncs(bool backward, size_t sync) noexcept;
  // pass_failed() marks everything that the latest pass would have written as failed; has_failed() tells whether that
  // has happened so far.
  void pass_failed(bool backward, const char *message) const {
    (backward ? backward_failed : forward_failed)(this, message);
  }
  bool has_failed(bool backward) const {
    return (backward ? failed_backward_ : failed_forward_).load(std::memory_order_acquire);
  }
  Queue &main_queue() const { return queue(0); }

  void *address(int slot);                                // the current address of a slot
  NDArray snapshot(int slot);                             // a copy of its contents, after all queued work (monitor)
  void copy_to_slot(int slot, const ArraySlice &source);  // queued

 private:
  void resolve();  // finds the addresses of all steps again if an arena was replaced
  void begin_steps();
  template <typename Begin>
  void begin_writes(bool backward, const std::vector<NDArray> &arrays, Begin &&begin);
  const NDArray &kept_output(size_t i) const { return arrays_.outputs[size_t(plan_->kept_outputs[i])]; }
  bool arrays_overlap() const;
  Queue &queue(int device) const { return *arenas_->devices[arena_index_[size_t(device)]].queue; }
  void for_streams(int first_node, int last_node,
                   void (*fn)(RandomStream *stream, RandomMarks::NodeMark *mark, uint64_t pass));
  void begin_work();
  void end_work();
  void enqueue(size_t begin, size_t end, WorkSize size);
  void run_on(int device, const Program &program);
  void run_part(int device, size_t begin, size_t end, WorkSize size);
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
  bool is_written(size_t head) const;  // false: it is the array of an argument
  void fail(const NDArray &array, const char *message) const;
  void forget_derived() const;
  static void forward_failed(const void *owner, const char *message);
  static void backward_failed(const void *owner, const char *message);
  static void share_failed(const void *sync_step, const char *message);
  void trace_plan() const;

  const std::shared_ptr<const Plan> plan_;
  const bool is_train_;
  BoundArrays arrays_;
  std::shared_ptr<SharedArenas> arenas_;
  std::vector<size_t> arena_index_;  // per plan device, index in arenas_->devices
  std::vector<std::shared_ptr<DerivedConstant>> constants_;
  std::vector<void *> pointers_;
  std::vector<Step> steps_, prologue_, restored_;
  std::vector<Segment> segments_;
  std::vector<std::vector<size_t>> random_nodes_;  // per plan device, nodes that may draw, ascending
  std::vector<size_t> on_caller_;                  // steps whose kernel runs on the calling thread
  struct SyncStep {
    size_t step;
    std::shared_ptr<StepSync> sync;
    PublishShare publish;
    UseShares use;
    size_t part;
    Step publish_step;
  };
  std::deque<SyncStep> sync_steps_;
  std::array<std::vector<size_t>, 2> sync_points_;  // of forward and of backward
  std::vector<int> sync_nodes_;
  std::vector<std::shared_ptr<Event>> ends_;  // of awaited segments, while they are queued
  using Replays = std::map<std::pair<size_t, size_t>, std::unique_ptr<Replay>>;  // of steps [first, second), as queued
  Replays replays_, prologue_replays_;
  uint64_t generation_ = 0;
  uint64_t pass_ = 0;                    // its latest pass, in the count of the arenas
  std::vector<uint64_t> kept_versions_;  // of Plan::kept_outputs in that pass
  bool trace_steps_ = false;
  mutable std::atomic<bool> failed_forward_{false}, failed_backward_{false};
};

}  // namespace cohort
