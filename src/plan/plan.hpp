// SPDX-License-Identifier: Apache-2.0
// Binding compiles a graph with known shapes to a flat list of kernel calls with a location for every array. The
// executor fills in addresses and runs the steps. compile() is a sequence of passes over one intermediate form
// (ir.hpp), one file each:
//   build      the graph's nodes as steps                       build.cc
//   placement  which device runs what, copies between them      placement.cc
//   fusion     merges several operators into one kernel         fusion.cc, pointwise_fusion.cc
//   precision  matrix products in a narrower type               precision.cc
//   quantize   inference in int8                                quantize.cc
//   gradient   the backward steps                               gradient.cc
//   unused     removes steps and outputs that are not read      unused.cc
//   schedule   fills waiting time of devices with other steps   schedule.cc
//   layout     constructs kernels, each in its preferred layout layout.cc
//   recompute  values computed again in the backward pass       recompute.cc
//   memory     lifetimes, in-place reuse, offsets               memory.cc
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "device/restoring.hpp"
#include "device/trace.hpp"
#include "plan/compute_types.hpp"
#include "plan/grad_req.hpp"
#include "symbol/symbol.hpp"

namespace cohort {

// The graph has one node, which stands for the backward step of its operator: its inputs are those of the kernel
// "_backward_NAME" (op/gradient_graph.hpp), its outputs the gradients.
struct BackwardNode {
  const Kernel *forward = nullptr;  // Plan::keeping_kernel of the forward step's plan; null: that kept nothing
  int saved = -1;                   // the variable whose array holds what that step saved; -1: none
  std::vector<bool> wanted;         // per output
};

struct PlanRequest {
  const Graph *graph = nullptr;
  const Inferred *inferred = nullptr;            // complete
  std::vector<GradReq> grad_reqs;                // per argument
  std::vector<std::shared_ptr<Device>> devices;  // [0] is the default
  std::map<std::string, int> group_devices;      // __ctx_group__ -> index in devices; empty: ignore the attribute
  std::map<int, int> fixed_devices;              // variable -> index in devices of its existing array
  std::vector<bool> constants;                   // per argument: rarely written
  // For each node the first variable whose memory overlaps its own, where nodes write that memory; -1: none. Empty: no
  // memory is shared.
  std::vector<int> same_memory;
  bool is_train = false;
  bool with_backward = false;
  bool backward_once = false;  // after each forward at most one backward runs, so it may overwrite what it reads
  bool recompute = false;      // backward recomputes cheap values instead of keeping them
  bool restores = false;       // the caller runs the restorers before it repeats a backward pass
  // Training updates auxiliary states even without a gradient: for operators applied at once.
  bool always_updates_aux = false;
  // No fusion and no in-place reuse, so that each node can be run and inspected (monitor, partial forward).
  bool separate_nodes = false;
  int num_threads = 1;
  int num_replicas = 1;                         // devices of the group, for operators that combine results across them
  Dtype compute_dtype = Dtype::kFloat32;        // for operators that may compute in a narrower type than their arrays
  bool tf32 = false;                            // ComputeTypes::tf32
  std::vector<std::vector<ValueRange>> ranges;  // kInt8: node_ranges()
  bool scales_loss = false;                     // gradients start with a factor that is known when they are computed
  size_t num_scaled_heads = 0;                  // number of last heads whose gradients already include that factor
  std::map<int, Op::Precision> precisions;      // by node, overriding the operator's: node_precisions()
  // For one operator applied to arrays. gives_saved: a backward step may follow, in a plan of its own, so what the
  // operator's kernel saves for it is one more output, behind the heads. backward: this is such a step.
  bool gives_saved = false;
  const BackwardNode *backward = nullptr;
};

// Where a value is stored.
enum class ValueLocation {
  kNowhere,   // fused away
  kArgument,  // the executor's arrays, by index
  kAuxiliary,
  kGradient,
  kOutput,    // by head
  kArena,     // intermediate memory, by offset
  kConstant,  // output of a prologue step, by step and offset; if no later step reads it: kArena
};

struct Slot {
  ValueLocation location = ValueLocation::kNowhere;
  int index = 0;      // of the array or prologue step
  size_t offset = 0;  // in the arena or the memory of the prologue step
  size_t bytes = 0;
  int device = 0;
  TensorSpec spec;
};

struct PlanStep {
  std::unique_ptr<Kernel> kernel;
  std::vector<int> inputs, outputs;  // slots; -1: null pointer
  int scratch = -1, saved = -1;
  int node = 0;  // node of the graph
  int device = 0;
  std::string label;
  KernelChoice choice;  // which of the operator's kernels; none for a reorder
  std::unique_ptr<WorkInfo> info;
  // Prologue: arguments (auxiliary states numbered after all arguments) on which it depends. It runs after one was
  // written.
  std::vector<int> sources;
  size_t constant_bytes = 0;                 // prologue: bytes of its outputs that later steps read
  std::vector<int> passed_by;                // prologue: earlier prologue steps whose outputs it reads from the arena
  bool reorder = false;                      // only converts its input to another layout or type
  std::vector<std::pair<int, int>> inplace;  // (input, output) pairs that may share memory
  bool repeatable = false;                   // its kernel is cheap and may run again
  bool scales_loss = false;                  // its numbers are the loss scale
  bool sums_gradients = false;               // adds up the gradients of one value
  const Kernel *share_kernel = nullptr;  // combines results across devices: the kernel whose publish_share() runs first
  size_t share_bytes = 0;
  std::unique_ptr<Kernel> restorer;  // recomputes its first output; or null
};

// For the monitor: the gradient of input `input` of `node` is in `slot` after backward step `step`.
struct GradientReport {
  int step;
  int node;
  int input;
  int slot;
};

struct Plan {
  std::vector<bool> narrow_nodes;  // nodes that compute in PlanRequest::compute_dtype; empty: none
  std::vector<Slot> slots;
  std::vector<PlanStep> prologue;
  std::vector<PlanStep> steps;  // forward, then backward
  size_t num_forward = 0;
  std::vector<size_t> restored;     // forward steps whose restorers run, in this order, before backward is repeated
  int restoring_scratch = -1;       // scratch slot for all of them
  size_t num_inner_steps = 0;       // steps of the plans inside its nodes
  std::vector<size_t> arena_bytes;  // per device
  size_t intermediate_bytes = 0;    // sum of the arena's values without sharing or scratch
  size_t value_bytes = 0;           // peak of simultaneously live values, excluding reordered parameters
  std::vector<std::vector<int>> node_slots;  // per node and output; -1: fused away
  std::vector<size_t> node_end;              // number of forward steps up to and including each node
  std::vector<int> head_slots;               // per head, the slot of its value: kOutput, or kArgument for a variable
  std::vector<int> head_gradient_slots;      // per head; -1: not read
  // (argument, backward steps after which its gradient is complete), ascending.
  std::vector<std::pair<int, size_t>> gradient_order;
  std::vector<int> written_forward, written_backward;  // arguments that operators write
  bool keeps_values = false;                           // backward reads values that forward leaves in the arena
  std::vector<int> kept_outputs;                       // outputs whose values backward reads
  std::vector<GradientReport> reports;
  WorkSize forward_size = WorkSize::kParallel, backward_size = WorkSize::kParallel;
  bool stateful = false;                   // belongs to one owner and calls the host: its work runs only on its queue
  const Kernel *keeping_kernel = nullptr;  // PlanRequest::gives_saved: the kernel of the node
};

// The device of each node by its __ctx_group__ (index in devices); executors allocate their arrays accordingly. Throws
// kDevice naming node and group if a group has no context.
std::vector<int> place_nodes(const Graph &graph, const std::map<std::string, int> &group_devices,
                             const std::map<int, int> &fixed);

// Per head: whether a gradient given for it reaches an argument that wants one. Losses start their own gradient and
// pass none on.
std::vector<bool> heads_with_gradient(const Graph &graph, const std::vector<GradReq> &grad_reqs);

// Throws kUnsupported naming node and operator if a backend has no kernel, and any error of constructing kernels.
Plan compile(const PlanRequest &request);

}  // namespace cohort
