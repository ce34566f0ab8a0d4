// SPDX-License-Identifier: Apache-2.0
// Bind compiles: a graph with known shapes becomes a flat list of kernel calls with a place for every array. The
// executor puts addresses to the places and runs the steps. compile() is a row of passes over one intermediate form
// (ir.hpp), one file each:
//   build      the graph's nodes as steps                       build.cc
//   placement  which device runs what, copies between them      placement.cc
//   fusion     several operators in one kernel                  fusion.cc, pointwise_fusion.cc
//   precision  matrix work in a narrower type                   precision.cc
//   quantize   inference in bytes                               quantize.cc
//   gradient   the backward steps                               gradient.cc
//   unused     steps and outputs that nobody reads go           unused.cc
//   schedule   what a device does while it would wait           schedule.cc
//   layout     kernels made, each in the layout it likes best   layout.cc
//   recompute  what is made again in the backward pass           recompute.cc
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

struct PlanRequest {
  const Graph *graph = nullptr;
  const Inferred *inferred = nullptr;            // complete
  std::vector<GradReq> grad_reqs;                // per argument
  std::vector<std::shared_ptr<Device>> devices;  // [0] is the default
  std::map<std::string, int> group_devices;      // __ctx_group__ -> index in devices; empty: the attribute is ignored
  std::map<int, int> fixed_devices;              // variable -> index in devices, where its array is already
  std::vector<bool> constants;                   // per argument: rarely written
  // Of each node the first variable in whose memory its own lies at least in part, where nodes write some of that; -1:
  // none. Empty: all are apart.
  std::vector<int> same_memory;
  bool is_train = false;
  bool with_backward = false;
  bool backward_once = false;  // after each forward: what it has read may be overwritten
  bool recompute = false;      // backward makes again what is cheap, in the place of keeping it
  bool restores = false;       // whoever repeats a backward pass runs the restorers before
  bool always_moves = false;   // training moves auxiliary states without a gradient, too: an operator applied at once
  bool separate_nodes =
      false;  // no fusion, no in-place reuse: each node can be run and looked at (monitor, partial forward)
  int num_threads = 1;
  int num_replicas = 1;                         // devices of the group, for operators that meet
  Dtype compute_dtype = Dtype::kFloat32;        // of operators that may work in a narrower type than their arrays
  bool tf32 = false;                            // ComputeTypes::tf32
  std::vector<std::vector<ValueRange>> ranges;  // kInt8: node_ranges()
  bool scales_loss = false;                     // gradients begin with a factor that is known when they are made
  size_t num_scaled_heads = 0;                  // of the last heads, whose gradients come with that factor already
  std::map<int, Op::Precision> precisions;      // of nodes, in the place of their operators': node_precisions()
};

// Where a value lies.
enum class Place {
  kNowhere,   // fused away
  kArgument,  // the executor's arrays, by index
  kAuxiliary,
  kGradient,
  kOutput,    // by head
  kArena,     // shared working memory, by offset
  kConstant,  // memory of a prologue step, by its index and offset; of one that no later step reads: kArena
};

struct Slot {
  Place place = Place::kNowhere;
  int index = 0;      // of the array or prologue step
  size_t offset = 0;  // in the arena or the memory of the prologue step
  size_t bytes = 0;
  int device = 0;
  TensorSpec spec;
};

struct PlanStep {
  std::unique_ptr<Kernel> kernel;
  std::vector<int> inputs, outputs;  // slots; -1: a null pointer
  int scratch = -1, saved = -1;
  int node = 0;  // of the graph
  int device = 0;
  std::string label;
  KernelChoice choice;  // which of the operator's kernels it is; of a reorder: none
  std::unique_ptr<WorkInfo> info;
  // Prologue: the arguments (auxiliary states after all arguments) it depends on; it runs when one of them was written.
  std::vector<int> sources;
  size_t constant_bytes = 0;                 // prologue: what those of its outputs take that steps behind it read
  std::vector<int> passed_by;                // prologue: the steps of it whose outputs it reads from the arena
  bool reorder = false;                      // does nothing but bring its input into another layout, or type
  std::vector<std::pair<int, int>> inplace;  // (input, output) that may share memory
  bool repeatable = false;                   // its kernel may run again, and costs little
  bool scales_loss = false;                  // its numbers are the loss scale
  const Kernel *finds_part = nullptr;  // of a step that meets those of other devices: whose find_part() comes first
  size_t part_bytes = 0;
  std::unique_ptr<Kernel> restorer;  // makes its first output again; or null
};

// For the monitor: gradient of input `input` of `node` lies in `slot` after backward step `step`.
struct GradientReport {
  int step;
  int node;
  int input;
  int slot;
};

struct Plan {
  std::vector<bool> narrow_nodes;  // those that work in PlanRequest::compute_dtype; empty: none do
  std::vector<Slot> slots;
  std::vector<PlanStep> prologue;
  std::vector<PlanStep> steps;  // forward, then backward
  size_t num_forward = 0;
  std::vector<size_t> restored;     // forward steps whose restorers run before backward is repeated, in this order
  int restoring_scratch = -1;       // of each of them
  size_t num_inner_steps = 0;       // of the plans inside its nodes
  std::vector<size_t> arena_bytes;  // per device
  size_t intermediate_bytes = 0;    // what the arena's values would take side by side, scratch not counted
  size_t value_bytes = 0;           // the most of it that lives at one time, parameters in other layouts not counted
  std::vector<std::vector<int>> node_slots;  // per node and output; -1 fused away
  std::vector<size_t> node_end;              // forward steps up to and with this node
  std::vector<int> head_slots;               // per head, where its value lies: kOutput, or kArgument for a variable
  std::vector<int> head_gradient_slots;      // per head; -1: none is read
  std::vector<std::pair<int, size_t>>
      gradient_order;  // (argument, backward steps after which it is done with), ascending
  std::vector<int> written_forward, written_backward;  // arguments that operators overwrite
  bool keeps_values = false;                           // backward reads what forward leaves in the arena
  std::vector<int> kept_outputs;                       // and what it leaves in these
  std::vector<GradientReport> reports;
  bool brief_forward = false, brief_backward = false;
  bool stateful = false;  // it is for one owner, and calls the host: its work is nobody's but a queue's to run
};

// The device of each node by its __ctx_group__ (index in devices); executors allocate their arrays by it. Throws
// kDevice naming node and group where a group has no context.
std::vector<int> place_nodes(const Graph &graph, const std::map<std::string, int> &group_devices,
                             const std::map<int, int> &fixed);

// Per head: whether what flows back from its gradient reaches an argument that wants one. Losses begin with a gradient
// of their own, and let none through.
std::vector<bool> heads_with_gradient(const Graph &graph, const std::vector<GradReq> &grad_reqs);

// Throws kUnsupported naming node and operator where a backend has no kernel, and whatever kernels throw at their
// making.
Plan compile(const PlanRequest &request);

}  // namespace cohort
