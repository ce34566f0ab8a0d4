// SPDX-License-Identifier: Apache-2.0
// The inside of an executor, shared by the files of this folder.
#pragma once

#include <exception>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "executor/bound_plan.hpp"
#include "executor/executor.hpp"

namespace cohort {

struct SharedPartState;

// The errors of several executors that each do their work even if another one throws.
class Failures {
 public:
  explicit Failures(size_t num) : of_(num) {}
  bool failed(size_t executor) const { return of_[executor] != nullptr; }
  bool any() const { return first_ != nullptr; }
  void add(size_t executor, std::exception_ptr failure) {
    if (!first_) first_ = failure;
    if (!of_[executor]) of_[executor] = std::move(failure);
  }
  template <typename Fn>
  void attempt(size_t executor, Fn &&fn) {
    try {
      fn();
    } catch (...) {
      add(executor, std::current_exception());
    }
  }
  std::exception_ptr first() const { return first_; }
  std::exception_ptr of(size_t executor) const { return of_[executor]; }
  void rethrow() const {  // the first error, if any
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::vector<std::exception_ptr> of_;
  std::exception_ptr first_;
};

// The input for binding one part of another executor (value_shapes.hpp); empty for an executor of its own.
struct Executor::PartSetup {
  std::shared_ptr<SharedArenas> arenas;
  RandomStreams random;
  std::vector<std::pair<int, Shape>> shapes;    // of nodes with one output, as values determined them
  std::vector<bool> cut_inputs;                 // by node: it is a variable that another part computes
  size_t num_cut_heads = 0;                     // how many of the last heads another part reads
  std::shared_ptr<SharedPartState> part_state;  // of the parts that it has itself
};

struct Executor::Impl {
  Impl();
  ~Impl();

  // The key of a compiled program. Each is compiled at its first use; bind compiles the usual one.
  struct Mode {
    bool is_train, with_backward, separate_nodes;
    bool operator<(const Mode &o) const {
      return std::tie(is_train, with_backward, separate_nodes) <
             std::tie(o.is_train, o.with_backward, o.separate_nodes);
    }
  };

  Symbol symbol;
  Graph graph;
  Inferred inferred;
  ExecutorOptions options;
  std::vector<Context> contexts;  // of the plan's devices
  int num_threads = 0;            // of each context on the host
  std::map<std::string, int> group_devices;
  std::map<int, int> fixed_devices;
  std::shared_ptr<SharedArenas> arenas;
  std::vector<size_t> arena_index;  // per context, index in arenas->devices
  std::vector<GradReq> reqs;
  BoundArrays arrays;
  std::vector<std::string> arg_names, aux_names, output_names;
  std::vector<bool> constants;                  // per argument: rarely written
  std::vector<std::vector<ValueRange>> ranges;  // node_ranges()
  std::map<int, Op::Precision> precisions;      // by node
  bool any_gradient = false;
  std::vector<bool> heads_with_gradient;  // empty until it is asked for
  std::map<Mode, std::shared_ptr<BoundPlan>> programs;
  BoundPlan *last = nullptr;  // the program that ran forward last; null: none since bind
  bool last_is_train = false, last_is_separate = false;
  bool backward_has_run = false;  // since the last forward
  std::vector<int> gradient_order;
  std::vector<int> bucket_ends;
  MonitorFunction monitor;
  bool monitor_all = false;
  bool in_pass = false;
  bool is_part = false, compute_type_logged = false;
  std::vector<std::pair<int, Shape>> sized;     // nodes whose shapes values determined: PartSetup::shapes
  std::vector<bool> cut_inputs;                 // PartSetup::cut_inputs
  size_t num_cut_heads = 0;                     // PartSetup::num_cut_heads
  std::shared_ptr<SharedPartState> part_state;  // null: there are no parts
  std::unique_ptr<ValueShapedParts> parts;      // run instead of `programs`; null: all shapes are known

  bool is_cut_input(int node) const { return size_t(node) < cut_inputs.size() && cut_inputs[size_t(node)]; }
  BoundPlan &program(bool is_train, bool with_backward, bool separate_nodes);
  std::vector<int> same_memory() const;  // PlanRequest::same_memory
  void check_compute_type() const;       // kUnsupported if a device does not compute in it
  void share_threads();
  int join(const Context &context);  // returns the context's device in the plan, adding it to the arenas if it is new
  // Places nodes around variables whose arrays have, or shall have, these contexts. kDevice on a contradiction.
  void fix_contexts(const std::map<int, Context> &places);
  std::vector<Context> node_contexts() const;  // by node
  // Infer from the known shapes and types, by node. An unknown shape is an error; so is an unknown type if `strict`,
  // else it becomes float32.
  void infer_shapes(const std::vector<Shape> &by_node);
  void infer_dtypes(std::vector<Dtype> by_node, bool strict);
  void finish_bind();  // needs all from `symbol` to `arrays`; makes outputs and the first program
  void make_arguments(const SimpleBind &what, const Impl *shared, ArrayPool *staged);
  void make_auxiliary(const SimpleBind &what, const Impl *shared);
  void make_outputs();
  void check_written_gradients() const;  // kInvalidArgument if one shares memory with another array
  // How far a pass is queued. If executors of a group sync, it is queued up to one sync point after the other.
  struct Progress {
    size_t step = 0;    // number of forward or backward steps queued
    size_t node = 0;    // forward: nodes reported to the monitor
    size_t report = 0;  // backward: Plan::reports that were made
    size_t bucket = 0;  // backward: buckets whose programs were run
  };
  void check_no_sync(const BoundPlan &program) const;  // kState if it syncs with executors of other devices
  // kState if a pass is running, from which a host callback may have made this call.
  void check_idle(const char *what) const;
  class PassGuard {
   public:
    PassGuard(Impl *impl, const char *what) : impl_(impl) {
      impl->check_idle(what);
      impl->in_pass = true;
    }
    ~PassGuard() { impl_->in_pass = false; }
    PassGuard(const PassGuard &) = delete;
    PassGuard &operator=(const PassGuard &) = delete;

   private:
    Impl *const impl_;
  };
  BoundPlan &program_of_forward(bool is_train);
  BoundPlan &start_forward(bool is_train);
  // Queues the steps up to `end`.
  void forward_to(BoundPlan &program, size_t end, Progress *progress);
  void backward_to(BoundPlan &program, size_t end, const BucketPrograms &after_bucket, Progress *progress);
  // Runs a pass that has begun, or a part of it. If it throws, everything the pass would have written is marked as
  // failed, and there is no forward pass any more for backward to follow.
  template <typename Run>
  void run_pass(BoundPlan &program, bool backward, const Run &run) {
    try {
      run();
    } catch (const std::exception &failure) {
      program.pass_failed(backward, failure.what());
      if (!backward) last = nullptr;
      throw;
    }
  }
  void pass_failed(bool backward, const char *why) const;  // of a pass that does not begin
  void abandon_pass(bool backward, const char *why) {      // of a pass that has begun
    pass_failed(backward, why);
    if (!backward) last = nullptr;
  }
  void forward_ran(BoundPlan &program, bool is_train);
  // The program of backward; sets *forward_again if it must run its forward pass first.
  BoundPlan &backward_program(bool is_train, bool *forward_again);
  void set_head_gradients(BoundPlan &program, const std::vector<ArraySlice> &head_grads);
  void start_backward(BoundPlan &program);
  void monitored_forward(BoundPlan &program, size_t end, Progress *progress);
  void monitored_backward(BoundPlan &program, size_t end, Progress *progress);
  void sync();
  void report_output(BoundPlan &program, int node, int output);
  std::vector<bool> narrow_nodes() const;  // those that compute in options.compute.dtype
  void log_if_none_narrow();               // once for a whole network
  std::string roofline() const;            // each step of the program that ran last, beside the limits of the machine
};

// Finds entries of a list by name; of entries with one name, the first.
template <typename T>
class ByName {
 public:
  explicit ByName(const std::vector<std::pair<std::string, T>> &list) {
    for (const auto &entry : list) entries_.emplace(entry.first, &entry.second);
  }
  const T *find(const std::string &name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : found->second;
  }

 private:
  std::unordered_map<std::string, const T *> entries_;
};

// Throws with the expected and the found one if shape or type differ; `what` is "gradient of", ...
void check_array(const NDArray &array, const Shape &shape, Dtype dtype, const std::string &what,
                 const std::string &name);

}  // namespace cohort
