// SPDX-License-Identifier: Apache-2.0
// The intermediate form on which the passes of compile() work: values and the steps that produce them. Private to
// src/plan.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/plan.hpp"

namespace cohort::plan {

struct IrValue {
  TensorSpec spec;
  ValueLocation location = ValueLocation::kArena;
  int index = 0;
  int alias = -1;  // index of the value whose memory this one shares in another shape; that value is not an alias
  bool blocks_gradient = false;  // for an alias: no gradient flows back through it
  int memory = -1;               // of a variable: PlanRequest::same_memory
  int device = 0;
  int node = -1, output = 0;  // the output of the graph that this value is, or -1
  int narrow_of = -1;         // this value is that one in a narrower type (precision.cc)
  bool changes = false;  // a forward step writes this memory, so steps that read it earlier must stay before that step
};

struct IrStep {
  std::string kernel;      // name to look up
  const Op *op = nullptr;  // null for the plan's own steps
  Attrs attrs;
  int node = 0;
  int device = 0;
  bool backward = false;
  int forward_step = -1;             // for a backward step: its forward step
  std::vector<int> inputs, outputs;  // an output that is not wanted is -1 ...
  // ... and `like` has, at the same index, a value of its shape and type; empty: all outputs are wanted.
  std::vector<int> like;
  std::vector<PostOp> post;
  std::vector<std::pair<int, int>> inplace;
  bool elementwise = false;  // works element by element on tensors of one common layout
  bool running_sum = false;  // sums gradients to which later ones are added
  bool keep_for_backward = false;
  // An argument that it reads, directly or indirectly, wants a gradient, whether or not one arrives.
  bool learns = false;
  int num_inside = -1;    // for a step inside its node: number of its inputs
  bool inserted = false;  // added by the plan between nodes: monitors do not see its gradients
  bool casts = false;     // added by the plan, only converts to another type
  std::string also;       // for the label of a fused step: what it computes for other nodes
};

struct Ir {
  const PlanRequest *request = nullptr;
  std::vector<bool> constants;  // PlanRequest::constants without those that nodes of the network write
  std::vector<IrValue> values;
  std::vector<IrStep> steps;  // forward, then (after the gradient pass) backward
  size_t num_forward = 0;
  std::vector<std::vector<int>> node_values;  // per node and output
  std::vector<int> heads;                     // value per head
  std::vector<int> head_gradients;            // value per head, -1 if none is read
  struct Report {
    int step, node, input, value;
  };
  std::vector<Report> reports;
  std::vector<bool> narrow_nodes;  // nodes that compute in PlanRequest::compute_dtype; empty: none

  const Node &node(int index) const { return *request->graph->nodes[size_t(index)]; }
  // The name of the step in errors, COHORT_FAULT and traces: "negative 'third' with exp 'first', sqrt 'second'".
  std::string label_of(const IrStep &step) const {
    const std::string &name = step.op && !step.backward ? step.op->name : step.kernel;
    return text(name, " '", node(step.node).name, step.also.empty() ? "'" : "' with ", step.also);
  }
  // Inputs of the step's node; further inputs of the step belong to its post-operations.
  size_t num_node_inputs(const IrStep &step) const {
    return step.num_inside >= 0 ? size_t(step.num_inside) : request->graph->inputs[size_t(step.node)].size();
  }
  int add_value(IrValue value) {
    values.push_back(std::move(value));
    return int(values.size()) - 1;
  }
  // A value of the same shape, type and device as another.
  int add_like(int other) {
    IrValue value;
    value.spec = values[size_t(other)].spec;
    value.device = values[size_t(other)].device;
    return add_value(std::move(value));
  }
  int add_alias(int of, const Shape &shape, bool blocks_gradient = false);
  int root(int value) const {
    const int alias = values[size_t(value)].alias;
    return alias >= 0 ? alias : value;
  }
  // The first of the values that share one memory block, as far as nodes write it.
  int memory(int value) const {
    const int own = root(value), first = values[size_t(own)].memory;
    return first >= 0 ? first : own;
  }
  // True if results computed from the value may be outdated later in the pass.
  bool changes(int value) const { return values[size_t(memory(value))].changes; }
  // True for a rarely written argument: results computed from it alone may be kept until it is written.
  bool is_parameter(int value) const {
    const IrValue &v = values[size_t(value)];
    return v.location == ValueLocation::kArgument && v.alias < 0 && size_t(v.index) < constants.size() &&
           constants[size_t(v.index)];
  }
  // Marks the node's own value as gone; a later step holds what it becomes.
  void drop_node_value(int value) {
    const IrValue &v = values[size_t(value)];
    if (v.node >= 0) node_values[size_t(v.node)][size_t(v.output)] = -1;
  }
  // Number of uses per root value: inputs of steps, plus one per head.
  std::vector<int> count_uses() const;
  void drop_steps(const std::vector<bool> &dropped);  // updates forward_step; node order is kept
  // The device whose queue copies between devices: the reader's, unless the source is GPU memory, which the host cannot
  // access.
  int copying_device(int from, int to) const {
    const auto on_host = [this](int device) { return request->devices[size_t(device)]->context().on_host(); };
    return on_host(to) && !on_host(from) ? from : to;
  }
  // The spec by which kernels accept or refuse the step; the layout pass completes it. `inputs`: values in the place of
  // the step's own.
  StepSpec spec_of(const IrStep &step) const { return spec_of(step, step.inputs); }
  StepSpec spec_of(const IrStep &step, const std::vector<int> &inputs) const;
  const KernelTable &kernels(const IrStep &step) const;
  // Whether the step's device has a kernel for the step as it is; constructs nothing.
  bool has_kernel(const IrStep &step) const;
};

inline constexpr char kScaleGradient[] = "_scale_gradient", kSumGradients[] = "_sum_gradients";
inline constexpr char kCastCopy[] = "_cast_copy";

// Rounds up to the alignment of memory blocks.
inline size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Work of a step as its shapes give it: only matrix products count; in backward only those whose results are wanted.
struct Cost {
  double flops = 0, bytes = 0;
};
Cost cost_of(const Ir &ir, const IrStep &step);  // cost.cc

// Point-wise operators, which run on tensors of any common layout as if flat.
bool is_elementwise(const Op &op);

Ir build(const PlanRequest &request);
void assign_devices(Ir &ir);
void place_outputs(Ir &ir);
void fuse_before_gradient(Ir &ir);
void lower_precision(Ir &ir);  // precision.cc
void add_gradients(Ir &ir);
void fuse_after_gradient(Ir &ir);
bool is_layer_in_bytes(const Ir &ir, const IrStep &step);  // whether lower_to_bytes() converts it to an int8 layer
void lower_to_bytes(Ir &ir);                               // quantize.cc
void fuse_pointwise(Ir &ir);                               // pointwise_fusion.cc
void drop_unused(Ir &ir);                                  // unused.cc
void schedule(Ir &ir, const std::vector<double> &costs);   // costs: time of each step, in any unit
// Constructs the kernels, inserts reorders, and moves steps that depend on constants alone to the prologue. The plan's
// slots correspond one to one to the Ir's values.
void lower(Ir &ir, Plan *plan);
void recompute(Ir &ir, Plan *plan);  // recompute.cc
void assign_memory(const Ir &ir, Plan *plan);

}  // namespace cohort::plan
