// SPDX-License-Identifier: Apache-2.0
// Arrays bound to a plan on one device: forward, backward, reshape, monitor (contract section 13). The group drives one
// of these a device; the boundary drives single ones.
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

#include "ndarray/queue_copy.hpp"
#include "plan/compute_types.hpp"
#include "plan/grad_req.hpp"
#include "symbol/symbol.hpp"

namespace cohort {

class Executor;
class Failures;
class Replicas;
class ValueShapedParts;

// What every way of binding takes.
struct ExecutorOptions {
  Context context;                           // where everything is that no group places elsewhere
  std::map<std::string, Context> group2ctx;  // EXE-10; empty: __ctx_group__ is ignored
  int num_threads = 0;                       // of each cpu context; 0: the processors are shared out among them
  uint64_t seed = 0;                         // of random operators; the same seed gives the same numbers
  ComputeTypes compute;
  bool backward_once = false;  // after each forward; backward then works in the memory of what it has read
  bool recompute = false;      // backward makes again what is cheap, in the place of keeping it
  std::shared_ptr<const double> loss_scale;  // times which gradients begin; changed by its owner alone, while no work
                                             // is in flight. Null: 1
  uint32_t replica = 0;                      // tells executors staged that work under one seed: devices of a group
  std::shared_ptr<Replicas> replicas;        // of make_replicas(): forward_all() and backward_all() run it
  std::shared_ptr<Executor> shared;          // shares its queue and its arena (EXE-18); same context
  // Arguments whose values rarely change between forwards with is_train 0, beside the weights of layers: what inference
  // derives from them (reorders, folded batch norms) is kept until they are written.
  std::set<std::string> constants;
  // Arrays to write the outputs to, one per head, or empty: the executor's own. A null array among them: its own.
  std::vector<NDArray> outputs;
};

// Monitor: called on the thread that runs forward or backward, after the work it reports is done (MON-01..05, 12).
using MonitorFunction = std::function<void(const std::string &name, const NDArray &array)>;

// Pool of non-parameter arrays by name, shared by a family of executors on one device (SHR-03, 04).
using ArrayPool = std::map<std::string, NDArray>;

struct SimpleBind {
  std::vector<std::pair<std::string, Shape>>
      shapes;  // kUnknown: to be inferred; names unknown to the symbol are ignored
  std::vector<std::pair<std::string, Dtype>> dtypes;  // wins over __dtype__ (EXE-14)
  bool strict_dtypes = false;                         // what cannot be inferred is kDtype; else it becomes float32
  std::vector<GradReq> grad_reqs;                     // one per argument; empty: as grad_req says, else null
  GradReqs grad_req;
  std::set<std::string> param_names;                       // arguments that may be taken from `shared` (EXE-17)
  ArrayPool *pool = nullptr;                               // read and updated; null: none (then no arrays are shared)
  std::map<std::string, NDArray> given_params, given_aux;  // to be used, if not shared; copied where they cannot be
  // Of each argument, its gradient, which goes where it is, and auxiliary state, in the order of the lists; empty: as
  // placed. Nodes without a group go where their inputs are; without a group2ctx none may be elsewhere than on the
  // default context.
  std::vector<Context> arg_contexts, grad_contexts, aux_contexts;
  // By name: -1 not said, 0 dense, 1 and 2 sparse. Of those that are dense __storage_type__ is not read.
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
  size_t intermediate_bytes = 0;  // what its arrays would take without sharing
  size_t value_bytes = 0;         // what lives in it at one time, no workspaces
  size_t argument_bytes = 0;      // auxiliary states included
  size_t gradient_bytes = 0;
  size_t output_bytes = 0;
};

// Programs that others run in the midst of a backward pass, on the queue of the executor's own context: the b-th after
// bucket b.
struct BucketPrograms {
  const Program *programs = nullptr;
  size_t count = 0;
  std::shared_ptr<const void> owner;  // keeps them and all that they edge
};

class Executor : public std::enable_shared_from_this<Executor> {
 public:
  // Binds given arrays: one per argument, one gradient per argument (null array: none, then grad_req counts as null),
  // one per auxiliary state, in list order (EXE-01..09).
  static std::shared_ptr<Executor> bind(const Symbol &symbol, std::vector<NDArray> args, std::vector<NDArray> grads,
                                        std::vector<GradReq> reqs, std::vector<NDArray> aux,
                                        const ExecutorOptions &options);
  // Infers and allocates them, zero-filled (EXE-12..17).
  static std::shared_ptr<Executor> simple_bind(const Symbol &symbol, const SimpleBind &what,
                                               const ExecutorOptions &options);
  ~Executor();  // waits for its queued work

  // Copies into an argument, which has as many elements, in the order of what is queued (queue_copy.hpp).
  void load(int argument, const ArraySlice &from);
  void check_arguments() const;  // kExecution where one is known not to have been written
  // kState where a callback of the host's, in the midst of a pass, would begin another one.
  void check_idle(const char *what) const;
  // Queue the work and return. Errors of it come out at wait() or at reading an array that it writes.
  void forward(bool is_train);
  // Completes node `step` of the bound symbol (EXE-21); returns step_left.
  int partial_forward(bool is_train, int step);
  // Head gradients: one per output, null arrays and a short list where none is needed (BWD-02..08). After bucket b of
  // set_buckets() is complete, program b of after_bucket runs.
  void backward(const std::vector<ArraySlice> &head_grads, bool is_train = true,
                const BucketPrograms &after_bucket = {});
  void wait();

  // The same for all executors of a group. Each does its work, whatever another throws; the first error is thrown.
  static void forward_all(const std::vector<std::shared_ptr<Executor>> &executors, bool is_train);
  // By executor: head gradients, and what runs after its buckets, which is asked for when its pass is next.
  static void backward_all(const std::vector<std::shared_ptr<Executor>> &executors,
                           const std::vector<std::vector<ArraySlice>> &head_grads,
                           const std::function<BucketPrograms(size_t executor)> &after_bucket);
  // What executors on `num` devices have in common where operators of the symbol meet (Op::syncs_batch); null: none do.
  static std::shared_ptr<Replicas> make_replicas(const Symbol &symbol, size_t num);

  // Arguments with a gradient, in the order in which backward is done with them: the gradient is written and the
  // argument's own value is not read any more. Kernels decide, and so shapes: executors of one symbol may differ in it.
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
  const std::vector<NDArray> &outputs() const;  // null where values say the shape and there was no forward
  const std::vector<GradReq> &grad_reqs() const;
  void check_backward() const;                      // kState: no forward that backward belongs to
  bool has_failed(bool backward) const;             // its latest pass, known after wait()
  bool output_needs_head_gradient(int head) const;  // BWD-03
  const Node *node_sized_by_values() const;         // the first of which values say the shape; null: there is none
  // BWD-02..04: no more than outputs, one where it is needed, and of the shape that the output has for whoever asks.
  void check_head_gradients(const std::vector<ArraySlice> &head_grads,
                            const std::function<Shape(size_t head)> &shape_of) const;
  int arg_index(const std::string &name) const;  // -1: none; kName if two arguments have it (EXE-33)
  int aux_index(const std::string &name) const;
  const ExecutorOptions &options() const;
  const std::shared_ptr<Queue> &queue() const;  // of its context
  const std::shared_ptr<Timeline> &timeline() const;
  // That of another context that layers are placed on; null: none are.
  std::shared_ptr<Queue> queue_on(const Context &context) const;

  // PRM-01..05 for this executor: everything is checked before anything is copied.
  void copy_params_from(const NamedArrays &args, const NamedArrays &aux, bool allow_extra);
  std::shared_ptr<Executor> reshape(const ReshapeOptions &how);  // EXE-27..32: a new executor, this one stays usable
  // A forward pass of inference, node by node, which shows `function` each array by the name of value_name(), once. The
  // monitor sees nothing of it.
  void forward_observed(const MonitorFunction &function);
  void set_monitor(MonitorFunction function, bool all);  // null removes it
  std::string debug_text() const;                        // EXE-37
  MemoryUse memory() const;
  // Of several, what they share counted once: arenas, what is derived from constants, and arrays, as they are
  // allocated; intermediate_bytes and value_bytes are the most that one of them has.
  static MemoryUse combined_memory(const std::vector<std::shared_ptr<Executor>> &executors);

 private:
  Executor();
  friend class ValueShapedParts;
  struct Impl;
  struct PartSetup;
  // Everything a bind does before it has arrays: the graph, names, placement, arenas.
  static std::unique_ptr<Impl> prepare(const Symbol &symbol, const ExecutorOptions &options, const PartSetup &part);
  static std::shared_ptr<Executor> bind_part(const Symbol &symbol, std::vector<NDArray> args,
                                             std::vector<NDArray> grads, std::vector<GradReq> reqs,
                                             std::vector<NDArray> aux, const ExecutorOptions &options,
                                             const PartSetup &part);
  // What forward_all() and backward_all() do; what is thrown here is thrown before anything is queued.
  static Failures try_forward(const std::vector<std::shared_ptr<Executor>> &executors, bool is_train);
  static Failures try_backward(const std::vector<std::shared_ptr<Executor>> &executors,
                               const std::vector<std::vector<ArraySlice>> &head_grads, bool is_train,
                               const std::function<BucketPrograms(size_t executor)> &after_bucket);
  template <typename Begin>
  static void begin_all(const std::vector<std::shared_ptr<Executor>> &executors, bool backward, Begin &&begin);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort
