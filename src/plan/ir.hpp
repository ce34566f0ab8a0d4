// SPDX-License-Identifier: Apache-2.0
// The form that the passes of compile() work on: values and the steps that make them. Private to src/plan.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/plan.hpp"

namespace cohort::plan {

struct Value {
  TensorSpec spec;
  Place place = Place::kArena;
  int index = 0;
  int alias = -1;                // the same memory as that value, which is none itself, under another shape
  bool blocks_gradient = false;  // of an alias: nothing flows back through it
  int memory = -1;               // of a variable: PlanRequest::same_memory
  int device = 0;
  int node = -1, output = 0;  // the output of the graph that it is, or -1
  int narrow_of = -1;         // the value that it is in a narrower type (precision.cc)
  bool changes = false;  // a forward step writes what it reads here: who comes before that step must not come later
};

struct IrStep {
  std::string kernel;      // name to look up
  const Op *op = nullptr;  // the operator; null for steps of the plan's own
  Attrs attrs;
  int node = 0;
  int device = 0;
  bool backward = false;
  int forward_step = -1;             // of a backward step
  std::vector<int> inputs, outputs;  // an output that nobody wants is -1, and ...
  std::vector<int> like;             // ... the value here, at the same index, has its shape and type; empty: all wanted
  std::vector<PostOp> post;
  std::vector<std::pair<int, int>> inplace;
  bool elementwise = false;  // may run flat on tensors of one common layout
  bool keep_for_backward = false;
  bool learns =
      false;  // an argument that it reads, or that is computed from, wants a gradient, whether one comes or not
  int num_inside = -1;    // of a step inside its node: its inputs
  bool inserted = false;  // by the plan, between nodes: monitors are not shown its gradients
};

struct Ir {
  const PlanRequest *request = nullptr;
  std::vector<bool> constants;  // PlanRequest::constants, less what a node of the network writes
  std::vector<Value> values;
  std::vector<IrStep> steps;  // forward, then (after the gradient pass) backward
  size_t num_forward = 0;
  std::vector<std::vector<int>> node_values;  // per node and output
  std::vector<int> heads;                     // value per head
  std::vector<int> head_gradients;            // value per head, -1 if none is read
  struct Report {
    int step, node, input, value;
  };
  std::vector<Report> reports;
  std::vector<bool> narrow_nodes;  // those that work in PlanRequest::compute_dtype; empty: none do

  const Node &node(int index) const { return *request->graph->nodes[size_t(index)]; }
  // Of the node that it comes from; what a step has beyond them is of post-operations.
  size_t num_node_inputs(const IrStep &step) const {
    return step.num_inside >= 0 ? size_t(step.num_inside) : request->graph->inputs[size_t(step.node)].size();
  }
  int add_value(Value value) {
    values.push_back(std::move(value));
    return int(values.size()) - 1;
  }
  int add_alias(int of, const Shape &shape, bool blocks_gradient = false);
  int root(int value) const {
    const int alias = values[size_t(value)].alias;
    return alias >= 0 ? alias : value;
  }
  // Of the values in one memory, as far as nodes write it, the first.
  int memory(int value) const {
    const int own = root(value), first = values[size_t(own)].memory;
    return first >= 0 ? first : own;
  }
  // What was made of it once may be out of date.
  bool changes(int value) const { return values[size_t(memory(value))].changes; }
  // Of an argument that is rarely written: what is made of it alone may be kept until it is.
  bool is_parameter(int value) const {
    const Value &v = values[size_t(value)];
    return v.place == Place::kArgument && v.alias < 0 && size_t(v.index) < constants.size() &&
           constants[size_t(v.index)];
  }
  // The node's own value is not there any more; a later step holds what it becomes.
  void forget(int value) {
    const Value &v = values[size_t(value)];
    if (v.node >= 0) node_values[size_t(v.node)][size_t(v.output)] = -1;
  }
  // Uses of each value's root: inputs of steps, and heads (counted once more).
  std::vector<int> count_uses() const;
  void drop_steps(const std::vector<bool> &dropped);  // forward_step links follow; node order stays
  // Whose queue copies from one device to another: the reader's, but for a GPU's memory, which the host does not see.
  int copying_device(int from, int to) const {
    const auto on_host = [this](int device) { return request->devices[size_t(device)]->context().on_host(); };
    return on_host(to) && !on_host(from) ? from : to;
  }
  StepSpec spec_of(const IrStep &step) const;  // what says which kernels take the step
  const KernelTable &kernels(const IrStep &step) const;
  // Whether its device has a kernel for the step as it is: nothing is made.
  bool has_kernel(const IrStep &step) const;
};

inline constexpr char kScaleGradient[] = "_scale_gradient", kSumGradients[] = "_sum_gradients";
inline constexpr char kCastCopy[] = "_cast_copy";

// Up to where the next block of memory may begin.
inline size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

// What a step computes and moves, as its shapes say: products alone count, of backward those whose results are wanted.
struct Cost {
  double flops = 0, bytes = 0;
};
Cost cost_of(const Ir &ir, const IrStep &step);  // cost.cc

// Point-wise operators: run flat, whatever the layout, if all tensors share it.
bool is_elementwise(const Op &op);

Ir build(const PlanRequest &request);
void place(Ir &ir);
void give_outputs_places(Ir &ir);
void fuse_before_gradient(Ir &ir);
void lower_precision(Ir &ir);  // precision.cc
void add_gradients(Ir &ir);
void fuse_after_gradient(Ir &ir);
bool is_layer_in_bytes(const Ir &ir, const IrStep &step);  // whether lower_to_bytes() makes it one
void lower_to_bytes(Ir &ir);                               // quantize.cc
void fuse_pointwise(Ir &ir);                               // pointwise_fusion.cc
void drop_unused(Ir &ir);                                  // unused.cc
void schedule(Ir &ir, const std::vector<double> &costs);   // what each step takes, in any unit
// Makes the kernels; puts reorders in between; takes what depends on constants alone into the prologue. Values of the
// result's slots are the Ir's values one to one.
void lower(Ir &ir, Plan *plan);
void recompute(Ir &ir, Plan *plan);  // recompute.cc
void assign_memory(const Ir &ir, Plan *plan);

}  // namespace cohort::plan
