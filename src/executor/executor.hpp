// SPDX-License-Identifier: Apache-2.0
// Arrays bound to a plan on one device: forward, backward, reshape, monitor (contract section 13). A group drives one
// executor per device; the API layer also drives single ones.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "device/node_streams.hpp"
#include "ndarray/queue_copy.hpp"
#include "plan/compute_types.hpp"
#include "plan/grad_req.hpp"
#include "symbol/symbol.hpp"

namespace cohort {

class BatchSync;
class Executor;
class SplitNetwork;

// Options of all ways of binding.
struct ExecutorOptions {
  Context context;                           // where everything is that group2ctx does not place elsewhere
  std::map<std::string, Context> group2ctx;  // EXE-10; empty: __ctx_group__ is ignored
  int num_threads = 0;                       // of each cpu context; 0: the contexts divide the processors
  uint64_t seed = 0;                         // of random operators; the same seed gives the same numbers
  ComputeTypes compute;
  bool backward_once = false;  // at most once after each forward; backward may then overwrite what it has read
  bool recompute = false;      // backward computes cheap values again instead of keeping them
  // Factor on the initial gradients; changed only by its owner while no work is in flight. Null: 1.
  std::shared_ptr<const double> loss_scale;
  // For executors with one seed that each process a part of a batch: the number of the part, and what combines results
  // over all of them (batch_sync.hpp). Null: no operator does, or the batch has one part.
  uint32_t batch_part = 0;
  std::shared_ptr<BatchSync> batch_sync;
  std::shared_ptr<Executor> shared;  // an executor whose queue and arena to share (EXE-18); same context
  // Arguments, beside the weights of layers, whose values rarely change between inference forward passes. Data derived
  // from them (reorders, folded batch norms) are kept until they are written.
  std::set<std::string> constants;
  // Arrays to write the outputs to, one per head. Empty list or null array: the executor allocates its own.
  std::vector<NDArray> outputs;
};

// Monitor: called on the thread that runs forward or backward, after the work it reports is done (MON-01..05, 12).
using MonitorFunction = std::function<void(const std::string &name, const NDArray &array)>;

// Pool of non-parameter arrays by name, shared by executors on one device (SHR-03, 04).
using ArrayPool = std::map<std::string, NDArray>;

struct SimpleBind {
  std::vector<std::pair<std::string, Shape>>
      shapes;  // kUnknown: to be inferred; names unknown to the symbol are ignored
  std::vector<std::pair<std::string, Dtype>> dtypes;  // overrides __dtype__ (EXE-14)
  bool strict_dtypes = false;      // a type that cannot be inferred is an error (kDtype); else it becomes float32
  std::vector<GradReq> grad_reqs;  // one per argument; empty: taken from grad_req, else null
  GradReqs grad_req;
  std::set<std::string> param_names;  // arguments that may be taken from `shared` (EXE-17)
  ArrayPool *pool = nullptr;          // read and updated; null: none (then no arrays are shared)
  // Used unless shared; copied where they cannot be used in place.
  std::map<std::string, NDArray> given_params, given_aux;
  // Contexts of arguments, of their gradients (each on its argument's context) and of auxiliary states, in list order;
  // empty: placement decides. Nodes without a group go where their inputs are; without group2ctx all must be on the
  // default context.
  std::vector<Context> arg_contexts, grad_contexts, aux_contexts;
  // By name: -1 unspecified, 0 dense, 1 and 2 sparse. For an array that is 0, __storage_type__ is not read.
  std::vector<std::pair<std::string, int32_t>> storage_types;
  std::function<void(const std::string &)> warn;  // pool re-allocations (SHR-04); empty: the log
};

struct ReshapeOptions {
  bool partial_shaping = false;
  bool allow_up_sizing = false;
  std::vector<std::pair<std::string, Shape>> shapes;
  // Arguments whose changed shape is accepted without being named (a group's labels and states: BND-07).
  std::set<std::string> may_follow;
  std::vector<NDArray> outputs;                             // as ExecutorOptions::outputs
  std::optional<Context> context;                           // none: the executor's
  std::optional<std::map<std::string, Context>> group2ctx;  // likewise
};

struct MemoryUse {
  size_t planned_bytes = 0;       // the arena of the plan
  size_t intermediate_bytes = 0;  // size of its arrays if none shared memory
  size_t value_bytes = 0;         // size of the values in it that are alive at one time, without workspaces
  size_t argument_bytes = 0;      // auxiliary states included
  size_t gradient_bytes = 0;
  size_t output_bytes = 0;
};

// Programs that the caller runs during a backward pass, on the queue of the executor's own context: program b after
// bucket b.
struct BucketPrograms {
  const Program *programs = nullptr;
  size_t count = 0;
  std::shared_ptr<const void> owner;  // keeps them and everything they use alive
};

// Where a pass that runs step by step has stopped.
enum class PassStop {
  kEnd,           // all its work is queued
  kBetweenParts,  // the next call may wait for queued work; it must not follow if other executors that sync have failed
  kSync,          // the next steps read what other executors have published
};

class Executor : public std::enable_shared_from_this<Executor> {
 public:
  // Binds given arrays: one per argument, one gradient per argument (null array: none, then grad_req counts as null),
  // one per auxiliary state, in list order (EXE-01..09).
  static std::shared_ptr<Executor> bind(const Symbol &symbol, std::vector<NDArray> args, std::vector<NDArray> grads,
                                        std::vector<GradReq> reqs, std::vector<NDArray> aux,
                                        const ExecutorOptions &options);
  // Infers and allocates the arrays, zero-filled (EXE-12..17).
  static std::shared_ptr<Executor> simple_bind(const Symbol &symbol, const SimpleBind &what,
                                               const ExecutorOptions &options);
  ~Executor();  // waits for its queued work

  // Queues a copy into an argument, which must have as many elements (queue_copy.hpp).
  void load(int argument, const ArraySlice &from);
  void check_arguments() const;  // kExecution if work that should have written one is known to have failed
  // kState during a pass, from which a host callback may have made this call.
  void check_idle(const char *what) const;
  // Queue the work and return. Its errors are thrown by wait(), or when an array that it writes is read.
  void forward(bool is_train);
  // Runs node `step` of the bound symbol (EXE-21); returns step_left.
  int partial_forward(bool is_train, int step);
  // Head gradients: one per output; null, or missing at the end of the list, where none is needed (BWD-02..08). When
  // bucket b of set_buckets() is complete, program b of after_bucket runs.
  void backward(const std::vector<ArraySlice> &head_grads, bool is_train = true,
                const BucketPrograms &after_bucket = {});
  void wait();

  // A pass step by step, for callers that run several executors together: prepare, then advance until kEnd. If one of
  // these throws, the pass is over; if it has begun, everything that it would have written is marked as failed.
  void prepare_forward(bool is_train);  // checks what forward() checks, and compiles
  void prepare_backward(const std::vector<ArraySlice> &head_grads, bool is_train, const BucketPrograms &after_bucket);
  // Nodes of a prepared pass whose steps sync over the batch (Op::syncs_batch), in the order in which advance() stops
  // at them: executors that run together must have the same. After kBetweenParts, those of the next part.
  const std::vector<int> &sync_nodes() const;
  // Whether backward begins with the forward steps: of executors that run together and sync, all do so or none does.
  // repeat_forward() follows prepare_backward(), or kBetweenParts.
  bool repeats_forward() const;
  void repeat_forward();
  // Registers the pass with the arrays that it uses before advance() does. If all begin before any advances, no device
  // waits for work that another one has yet to get, even if their outputs of different batches share memory.
  void begin();
  PassStop advance();             // queues its work up to the next stop
  void abandon(const char *why);  // ends the pass, if there is one, as if it had thrown

  // Arguments with a gradient, in the order in which backward finishes with them: the gradient is written, and the
  // argument's value is not read any more. The order depends on kernels, and so on shapes: executors of one symbol may
  // differ.
  const std::vector<int> &gradient_order();
  // Ends of buckets as positions in gradient_order(); the last is its size. For after_bucket of backward().
  void set_buckets(const std::vector<int> &ends);

  const Symbol &symbol() const;
  const std::vector<std::string> &arg_names() const;
  const std::vector<std::string> &aux_names() const;
  const std::vector<std::string> &output_names() const;
  const std::vector<NDArray> &args() const;
  const std::vector<NDArray> &grads() const;  // null arrays where there is none
  const std::vector<NDArray> &aux() const;
  const std::vector<NDArray> &outputs() const;  // null if the shape depends on values and no forward has run
  const std::vector<GradReq> &grad_reqs() const;
  void check_backward() const;                      // kState if there is no forward pass for backward to follow
  bool has_failed(bool backward) const;             // whether its latest pass failed; known after wait()
  bool output_needs_head_gradient(int head) const;  // BWD-03
  const Node *node_sized_by_values() const;         // the first whose shape depends on values; null if there is none
  // BWD-02..04: no more than outputs, one where it is needed, each of the shape that shape_of() returns for its output.
  void check_head_gradients(const std::vector<ArraySlice> &head_grads,
                            const std::function<Shape(size_t head)> &shape_of) const;
  int arg_index(const std::string &name) const;  // -1: none; kName if two arguments have it (EXE-33)
  int aux_index(const std::string &name) const;
  const ExecutorOptions &options() const;
  const std::shared_ptr<Queue> &queue() const;  // of its context
  const std::shared_ptr<Timeline> &timeline() const;
  // The queue of another context that layers are placed on; null if none are.
  std::shared_ptr<Queue> queue_on(const Context &context) const;

  // PRM-01..05 for this executor: everything is checked before anything is copied.
  void copy_params_from(const NamedArrays &args, const NamedArrays &aux, bool allow_extra);
  std::shared_ptr<Executor> reshape(const ReshapeOptions &how);  // EXE-27..32: a new executor, this one stays usable
  // Runs an inference forward pass node by node and calls `function` once for each array with its value_name(). The
  // monitor is not called.
  void forward_observed(const MonitorFunction &function);
  void set_monitor(MonitorFunction function, bool all);  // null removes it
  StreamAccess stream_access() const;                    // of its random operators
  std::string debug_text() const;                        // EXE-37
  MemoryUse memory() const;
  // The memory of several executors. What they share counts once, with its allocated size: arenas, data derived from
  // constants, and arrays. intermediate_bytes and value_bytes are the largest among the executors.
  static MemoryUse combined_memory(const std::vector<std::shared_ptr<Executor>> &executors);

 private:
  Executor();
  friend class PlannedNetwork;
  friend class SplitNetwork;
  struct Impl;
  struct PartSetup;
  // Everything that binding does before it has arrays: graph, names, placement, arenas.
  static std::unique_ptr<Impl> prepare(const Symbol &symbol, const ExecutorOptions &options, const PartSetup &part);
  static std::shared_ptr<Executor> bind_part(const Symbol &symbol, std::vector<NDArray> args,
                                             std::vector<NDArray> grads, std::vector<GradReq> reqs,
                                             std::vector<NDArray> aux, const ExecutorOptions &options,
                                             const PartSetup &part);
  template <typename Run>
  auto run_pass(Run &&run);
  void run_alone();  // a pass that is prepared
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort
