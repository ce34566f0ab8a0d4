// SPDX-License-Identifier: Apache-2.0
// Adds the backward steps, in reverse order of the forward steps. Each value collects the gradients from its readers;
// the step that produced the value reads their sum. A few gradients are summed by one step. Many are added to a running
// sum as soon as each one is there, so that they do not all take memory at once; the sum is in float32 if they are in
// 16 bits, and so is rounded once, like that of a few.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "op/gradient_graph.hpp"
#include "plan/ir.hpp"

namespace cohort::plan {
namespace {

constexpr int kFewGradients = 3;  // of one value, that one step sums

class GradientPass {
 public:
  explicit GradientPass(Ir &ir) : ir_(ir), wanted_(ir.values.size(), false), given_(ir.values.size()) {}

  void run() {
    mark_wanted();
    count_gradients();
    ir_.head_gradients.assign(ir_.heads.size(), -1);
    take_head_gradients();
    // Writes an argument's gradient as soon as its first reader has been differentiated: this frees memory, and the
    // gradient can be exchanged early.
    const std::vector<std::vector<int>> done_after = arguments_by_first_reader();
    for (size_t s = ir_.num_forward; s-- > 0;) {
      differentiate(int(s));
      for (int v : done_after[s]) write_argument(v);
    }
    for (int v : done_after[ir_.num_forward]) write_argument(v);
  }

 private:
  GradReq req_of(int value) const {
    const IrValue &v = ir_.values[size_t(value)];
    return v.location == ValueLocation::kArgument && v.alias < 0 ? ir_.request->grad_reqs[size_t(v.index)]
                                                                 : GradReq::kNull;
  }

  // The value's root if a gradient flows back to it, otherwise -1.
  int reach(int value) const {
    const int root = ir_.root(value);
    return ir_.values[size_t(value)].blocks_gradient || !wanted_[size_t(root)] ? -1 : root;
  }

  void mark_wanted() {
    for (size_t v = 0; v < ir_.values.size(); ++v) wanted_[v] = req_of(int(v)) != GradReq::kNull;
    for (size_t s = 0; s < ir_.num_forward; ++s) {
      IrStep &step = ir_.steps[s];
      if (!step.op) continue;
      const Gradient gradient = step.op->gradient_of(step.attrs);
      if (gradient.kind == Gradient::Kind::kNone) continue;
      const std::vector<int> of = inputs_with_gradient(*step.op, gradient, step.inputs.size());
      step.learns = std::any_of(of.begin(), of.end(), [&](int k) { return reach(step.inputs[size_t(k)]) >= 0; });
      if (!step.learns) continue;
      for (int v : step.outputs) {
        if (v >= 0) wanted_[size_t(v)] = true;
      }
    }
  }

  bool is_narrow_twin(int value) const { return ir_.values[size_t(value)].narrow_of >= 0; }

  // Counts the gradients that each value may get.
  void count_gradients() {
    num_gradients_.assign(ir_.values.size(), 0);
    const auto count = [this](int value) {
      const int root = reach(value);
      if (root >= 0) ++num_gradients_[size_t(is_narrow_twin(root) ? ir_.values[size_t(root)].narrow_of : root)];
    };
    for (size_t s = 0; s < ir_.num_forward; ++s) {
      const IrStep &step = ir_.steps[s];
      if (!step.learns || is_narrow_twin(step.outputs[0])) continue;
      for (int k : inputs_with_gradient(*step.op, step.op->gradient_of(step.attrs), step.inputs.size()))
        count(step.inputs[size_t(k)]);
    }
    for (const Graph::Input &head : ir_.request->graph->heads)
      count(ir_.node_values[size_t(head.node)][size_t(head.index)]);
  }

  void take_head_gradients() {
    const Graph &graph = *ir_.request->graph;
    const std::vector<bool> reads = heads_with_gradient(graph, ir_.request->grad_reqs);
    for (size_t h = 0; h < ir_.heads.size(); ++h) {
      const int value = ir_.node_values[size_t(graph.heads[h].node)][size_t(graph.heads[h].index)];
      if (!reads[h] || reach(value) < 0) continue;
      IrValue gradient;
      gradient.spec = ir_.values[size_t(value)].spec;
      gradient.device = ir_.values[size_t(value)].device;
      ir_.head_gradients[h] = ir_.add_value(std::move(gradient));
      from_outside_.insert(ir_.head_gradients[h]);
      const bool begins = h + ir_.request->num_scaled_heads < ir_.heads.size();
      give(value, begins ? scaled(ir_.head_gradients[h], graph.heads[h].node) : ir_.head_gradients[h]);
    }
  }

  // Multiplies a gradient that starts here by the loss scale, if there is one.
  int scaled(int gradient, int node) {
    if (!ir_.request->scales_loss) return gradient;
    const int result = ir_.add_like(gradient);
    IrStep &step = add_step(kScaleGradient, node, ir_.values[size_t(result)].device);
    step.inputs = {gradient};
    step.outputs = {result};
    step.elementwise = true;
    if (from_outside_.count(gradient) == 0) step.inplace = {{0, 0}};
    return result;
  }

  // Arguments that want a gradient, by the first step that reads them; the last entry has those that no step reads.
  std::vector<std::vector<int>> arguments_by_first_reader() const {
    std::vector<std::vector<int>> arguments(ir_.num_forward + 1);
    std::vector<size_t> first(ir_.values.size(), ir_.num_forward);
    for (size_t s = ir_.num_forward; s-- > 0;) {
      for (int v : ir_.steps[s].inputs) first[size_t(ir_.root(v))] = s;
    }
    for (size_t v = 0; v < first.size(); ++v) {
      if (req_of(int(v)) != GradReq::kNull) arguments[first[v]].push_back(int(v));
    }
    return arguments;
  }

  // Adds `gradient`, which has the shape of `value`, to the gradients of `value`.
  void give(int value, int gradient) {
    int root = reach(value);
    if (root < 0) return;
    if (root != value) gradient = ir_.add_alias(gradient, ir_.values[size_t(root)].spec.shape);
    const int node = ir_.steps.empty() ? ir_.values[size_t(root)].node : ir_.steps.back().node;
    if (is_narrow_twin(root)) {
      root = ir_.values[size_t(root)].narrow_of;
      if (!has_many(root)) gradient = add_cast(gradient, root, node);  // so that sums are computed in the wide type
    }
    const int device = ir_.values[size_t(root)].device;
    if (const int from = ir_.values[size_t(ir_.root(gradient))].device;
        from != device) {  // back across the device boundary that forward crossed
      const int copy = ir_.add_like(gradient);
      ir_.values[size_t(copy)].device = device;
      IrStep &step = add_step("_CrossDeviceCopy", node, ir_.copying_device(from, device));
      step.inputs = {gradient};
      step.outputs = {copy};
      gradient = copy;
    }
    std::vector<int> &given = given_[size_t(root)];
    given.push_back(gradient);
    if (has_many(root)) given = {running_sum(root, given, node)};
  }

  bool has_many(int root) const { return num_gradients_[size_t(root)] > kFewGradients; }

  // The sum of the first gradients of `root`, to which later ones are added.
  int running_sum(int root, const std::vector<int> &addends, int node) {
    const Dtype type = ir_.values[size_t(root)].spec.dtype;
    const Dtype sum_type = type == Dtype::kFloat16 || type == Dtype::kBfloat16 ? Dtype::kFloat32 : type;
    if (addends.size() == 1 && ir_.values[size_t(addends[0])].spec.dtype == sum_type) return addends[0];
    const int sum = add_sum(root, addends, node);
    ir_.values[size_t(sum)].spec.dtype = sum_type;
    ir_.steps.back().running_sum = true;
    return sum;
  }

  // Adds a step that sums gradients of `root`.
  int add_sum(int root, const std::vector<int> &addends, int node) {
    const int sum = ir_.add_like(root);
    IrStep &step = add_step(kSumGradients, node, ir_.values[size_t(root)].device);
    step.inputs = addends;
    step.outputs = {sum};
    step.inplace = {{0, 0}};
    step.elementwise = true;
    return sum;
  }

  IrStep &add_step(const char *kernel, int node, int device) {
    IrStep step;
    step.kernel = kernel;
    step.node = node;
    step.device = device;
    step.backward = true;
    step.attrs = Attrs(std::make_shared<NoAttrs>());
    ir_.steps.push_back(std::move(step));
    return ir_.steps.back();
  }

  // Casts `from` to the type of `like`.
  int add_cast(int from, int like, int node) {
    const int cast = ir_.add_like(like);
    ir_.values[size_t(cast)].device = ir_.values[size_t(ir_.root(from))].device;
    IrStep &step = add_step(kCastCopy, node, ir_.values[size_t(cast)].device);
    step.casts = true;
    step.inputs = {from};
    step.outputs = {cast};
    return cast;
  }

  // The value that backward reads for a forward input: arguments are read as they are at that time (BWD-08).
  int as_now(int value, int node) {
    const int narrow = ir_.root(value), wide = ir_.values[size_t(narrow)].narrow_of;
    if (wide < 0) return value;
    // Kept, and recomputed after it was written.
    if (ir_.is_parameter(wide) && !ir_.request->separate_nodes) return value;
    const ValueLocation location = ir_.values[size_t(wide)].location;
    if (location != ValueLocation::kArgument && location != ValueLocation::kAuxiliary) return value;
    const auto known = cast_now_.find(narrow);
    const int now = known != cast_now_.end() ? known->second : add_cast(wide, narrow, node);
    cast_now_[narrow] = now;
    return value == narrow ? now : ir_.add_alias(now, ir_.values[size_t(value)].spec.shape);
  }

  // The array that a step may overwrite: a bound array itself, or a copy of a value that others also read.
  int for_writing(int value, int node) {
    if (ir_.values[size_t(ir_.root(value))].location == ValueLocation::kArgument) return value;
    const int copy = ir_.add_like(value);
    IrStep &step = add_step("_copy", node, ir_.values[size_t(copy)].device);
    step.inputs = {value};
    step.outputs = {copy};
    return copy;
  }

  // The sum of the gradients of `root`, or -1 if there are none.
  int collect(int root, int node) {
    std::vector<int> &given = given_[size_t(root)];
    if (given.empty()) return -1;
    const bool is_sum =
        given.size() == 1 && ir_.values[size_t(given[0])].spec.dtype == ir_.values[size_t(root)].spec.dtype;
    if (!is_sum) given = {add_sum(root, given, node)};
    return given[0];
  }

  void differentiate(int s) {
    const Op *op = ir_.steps[size_t(s)].op;
    if (!op) return;
    const Gradient gradient = op->gradient_of(ir_.steps[size_t(s)].attrs);
    if (gradient.kind == Gradient::Kind::kNone) return;
    const std::vector<int> inputs = ir_.steps[size_t(s)].inputs, outputs = ir_.steps[size_t(s)].outputs;
    const int node = ir_.steps[size_t(s)].node, device = ir_.steps[size_t(s)].device;
    const std::vector<int> of = inputs_with_gradient(*op, gradient, inputs.size());
    if (std::none_of(of.begin(), of.end(), [&](int k) { return reach(inputs[size_t(k)]) >= 0; })) return;

    const size_t visible = std::min(outputs.size(), size_t(op->num_visible(ir_.steps[size_t(s)].attrs)));
    std::vector<int> head_gradients;
    bool any = false;
    if (gradient.head_grads || gradient.kind == Gradient::Kind::kPassThrough) {
      for (size_t j = 0; j < visible; ++j) {
        head_gradients.push_back(outputs[j] < 0 ? -1 : collect(outputs[j], node));
        any = any || head_gradients.back() >= 0;
      }
      if (!any) return;
    }
    if (gradient.kind == Gradient::Kind::kPassThrough) {
      for (int k : of) {
        if (reach(inputs[size_t(k)]) < 0) continue;
        give(inputs[size_t(k)], head_gradients[0]);
        report(std::max(int(ir_.steps.size()) - 1, int(ir_.num_forward)), node, k, head_gradients[0]);
      }
      return;
    }
    for (size_t j = 0; j < head_gradients.size(); ++j) {
      if (head_gradients[j] >= 0) continue;
      const int zero = ir_.add_like(outputs[j]);
      add_step("_fill_zero", node, device).outputs = {zero};
      head_gradients[j] = zero;
    }
    std::vector<int> made, like;
    for (int k : of) {
      like.push_back(inputs[size_t(k)]);
      made.push_back(reach(inputs[size_t(k)]) < 0 ? -1 : ir_.add_like(inputs[size_t(k)]));
      if (made.back() >= 0) ir_.values[size_t(made.back())].device = device;
    }
    const IrStep forward = ir_.steps[size_t(s)];  // a copy, because add_step reallocates the steps
    std::vector<int> read = head_gradients;
    for (int i : gradient.inputs) {
      if (size_t(i) >= inputs.size()) continue;
      const int now = as_now(inputs[size_t(i)], node);
      const bool writes = std::count(gradient.writes.begin(), gradient.writes.end(), i) > 0;
      read.push_back(writes ? for_writing(now, node) : now);
    }
    for (int j : gradient.outputs) read.push_back(outputs[size_t(j)]);
    IrStep &step = add_step(("_backward_" + forward.kernel).c_str(), node, device);
    step.op = op;
    step.attrs = forward.attrs;
    step.forward_step = s;
    step.post = forward.post;
    step.inplace = op->backward_inplace;
    step.inputs = std::move(read);
    step.outputs = made;
    step.like = std::move(like);
    step.elementwise = forward.elementwise;
    ir_.steps[size_t(s)].keep_for_backward = true;
    const int index = int(ir_.steps.size()) - 1;
    const bool begins = op->is_loss(forward.attrs);
    for (size_t i = 0; i < of.size(); ++i) {
      if (made[i] < 0) continue;
      give(inputs[size_t(of[i])], begins ? scaled(made[i], node) : made[i]);
      if (!forward.inserted) report(index, node, of[i], made[i]);
    }
  }

  // Monitors see gradients in the network's types.
  void report(int step, int node, int input, int value) {
    const Graph::Input &of = ir_.request->graph->inputs[size_t(node)][size_t(input)];
    const Dtype type = ir_.request->inferred->dtypes[size_t(of.node)][size_t(of.index)];
    if (ir_.request->separate_nodes && ir_.values[size_t(ir_.root(value))].spec.dtype != type) {
      const int wide = add_cast(value, value, node);
      ir_.values[size_t(wide)].spec.dtype = type;
      value = wide;
      step = int(ir_.steps.size()) - 1;
    }
    ir_.reports.push_back({step, node, input, value});
  }

  int gradient_array(int argument_value) {
    IrValue array;
    array.spec = ir_.values[size_t(argument_value)].spec;
    array.location = ValueLocation::kGradient;
    array.index = ir_.values[size_t(argument_value)].index;
    array.device = ir_.values[size_t(argument_value)].device;
    return ir_.add_value(std::move(array));
  }

  void write_argument(int value) {
    const int node = ir_.values[size_t(value)].node, device = ir_.values[size_t(value)].device;
    const std::vector<int> given = given_[size_t(value)];
    if (req_of(value) == GradReq::kAdd) {
      if (given.empty()) return;
      const int before = gradient_array(value), after = gradient_array(value);
      IrStep &step = add_step(kSumGradients, node, device);
      step.inputs = {before};
      step.inputs.insert(step.inputs.end(), given.begin(), given.end());
      step.outputs = {after};
      return;
    }
    const int gradient = collect(value, node);
    if (gradient < 0) {
      const int array = gradient_array(value);
      add_step("_fill_zero", node, device).outputs = {array};
      return;
    }
    // If a step produces the gradient, let it write directly to the bound array.
    const int root = ir_.root(gradient);
    IrValue &source = ir_.values[size_t(root)];
    if (from_outside_.count(root) == 0 && source.location == ValueLocation::kArena && source.device == device) {
      source.location = ValueLocation::kGradient;
      source.index = ir_.values[size_t(value)].index;
      return;
    }
    const int array = gradient_array(value);
    IrStep &step = add_step("_copy", node, device);
    step.inputs = {gradient};
    step.outputs = {array};
  }

  Ir &ir_;
  std::vector<bool> wanted_;               // per forward value: an argument it depends on wants a gradient
  std::vector<int> num_gradients_;         // per forward value: the most gradients that it can get
  std::vector<std::vector<int>> given_;    // per forward value: its gradients so far, or the running sum of many
  std::unordered_set<int> from_outside_;   // values not produced by steps: head gradients
  std::unordered_map<int, int> cast_now_;  // narrow copies of arguments, and the casts that backward reads instead
};

}  // namespace

void add_gradients(Ir &ir) { GradientPass(ir).run(); }

}  // namespace cohort::plan

namespace cohort {

std::vector<bool> heads_with_gradient(const Graph &graph, const std::vector<GradReq> &grad_reqs) {
  std::vector<bool> flows(graph.nodes.size(), false);  // whether a gradient flows from a node's outputs to an argument
  for (size_t i = 0; i < graph.arguments.size(); ++i) {
    flows[size_t(graph.arguments[i])] = grad_reqs[i] != GradReq::kNull;
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n]->is_variable()) continue;
    const Op &op = *graph.nodes[n]->op;
    const Gradient gradient = op.gradient_of(graph.nodes[n]->parsed);
    if (!gradient.reads_head_grads()) continue;
    const std::vector<Graph::Input> &inputs = graph.inputs[n];
    const std::vector<int> of = inputs_with_gradient(op, gradient, inputs.size());
    flows[n] = std::any_of(of.begin(), of.end(), [&](int k) { return flows[size_t(inputs[size_t(k)].node)]; });
  }
  std::vector<bool> result;
  for (const Graph::Input &head : graph.heads) result.push_back(flows[size_t(head.node)]);
  return result;
}

}  // namespace cohort
