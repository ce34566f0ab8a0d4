// SPDX-License-Identifier: Apache-2.0
// Inference in int8, using calibrated value ranges of the network (ComputeTypes::ranges). A layer whose data and output
// have a range takes int8 and passes int8 to readers that accept it; other readers get the dequantized value. The
// backend decides which operators work on int8: those with a kernel "_int8_NAME". Runs after sums, activations and
// norms have been fused into their layers.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.hpp"
#include "device/kernel_table.hpp"
#include "op/activation.hpp"
#include "op/int8_layer.hpp"
#include "plan/ir.hpp"

namespace cohort::plan {
namespace {

const ValueRange *range_of(const Ir &ir, int value) {
  const IrValue &v = ir.values[size_t(ir.root(value))];
  if (v.node < 0 || size_t(v.node) >= ir.request->ranges.size() || v.spec.dtype != Dtype::kFloat32) return nullptr;
  const auto &of_node = ir.request->ranges[size_t(v.node)];
  const ValueRange *const range = size_t(v.output) < of_node.size() ? &of_node[size_t(v.output)] : nullptr;
  return range && range->low <= range->high ? range : nullptr;
}

bool has_bytes_kernel(const Ir &ir, const IrStep &step) {
  StepSpec spec = ir.spec_of(step);
  spec.op = "_int8_" + step.kernel;
  spec.inputs[0].dtype = Dtype::kInt8;
  if (step.op->linear_layer) {
    spec.attrs = std::make_shared<Int8LayerAttrs>(Int8LayerAttrs{step.attrs, false, 1, 1, 1});
  }
  return ir.kernels(step).find(spec) != nullptr;
}

// False if the caller requested that the node computes in its own type.
bool may_quantize(const Ir &ir, const IrStep &step) {
  if (!step.op || step.inputs.empty() || step.outputs.empty() || step.outputs[0] < 0) return false;
  const auto said = ir.request->precisions.find(step.node);
  if (said != ir.request->precisions.end() && said->second == Op::Precision::kOwn) return false;
  return ir.values[size_t(step.outputs[0])].spec.dtype == Dtype::kFloat32;
}

// The post-operations are relu, clip, and first a sum with a value that has a range.
bool posts_fit(const Ir &ir, const IrStep &step) {
  for (size_t i = 0; i < step.post.size(); ++i) {
    if (step.post[i].kind == PostOp::Kind::kSum && i == 0) {
      if (!range_of(ir, step.inputs.back())) return false;
    } else if (step.post[i].kind == PostOp::Kind::kActivation && step.post[i].activation != ActivationAttrs::kRelu) {
      return false;
    }
  }
  return true;
}

class QuantizePass {
 public:
  explicit QuantizePass(Ir &ir)
      : ir_(ir),
        bytes_(ir.values.size()),
        is_missing_(ir.values.size(), false),
        takers_(ir.values.size(), 0),
        in_bytes_(ir.node_values.size(), false) {}

  void run() {
    std::vector<IrStep> steps = std::move(ir_.steps);
    ir_.steps.clear();
    find_takers(steps);
    for (IrStep &step : steps) {
      if (can_quantize(step)) {
        quantize(std::move(step));
        continue;
      }
      for (const int v : step.inputs) {
        if (v >= 0) make_float(v, step);
      }
      ir_.steps.push_back(std::move(step));
    }
    ir_.num_forward = ir_.steps.size();
    refuse_others();
  }

 private:
  // The int8 or uint8 form of a value.
  struct Bytes {
    int value = -1;  // -1: not available
    Dtype dtype = Dtype::kNone;
    float scale = 0;
  };

  // Marks the node, and nodes that were fused into its step.
  void note_in_bytes(int node) {
    in_bytes_[size_t(node)] = true;
    for (const Graph::Input &input : ir_.request->graph->inputs[size_t(node)])
      if (ir_.node_values[size_t(input.node)][size_t(input.index)] < 0) note_in_bytes(input.node);
  }

  // Reports nodes for which the caller requested int8 but that cannot use it. Views of other values are exempt.
  void refuse_others() const {
    for (const auto &[n, precision] : ir_.request->precisions) {
      if (precision != Op::Precision::kNarrow || in_bytes_[size_t(n)]) continue;
      const int made = ir_.node_values[size_t(n)][0];
      if (made >= 0 && ir_.values[size_t(made)].alias >= 0) continue;
      const Node &node = ir_.node(n);
      throw Error(Code::kUnsupported,
                  text("narrow_names: ", node.op->name, " '", node.name, "' cannot compute in int8 with these inputs"),
                  node.name);
    }
  }

  bool has_linear_layer(const IrStep &step) const { return bool(step.op->linear_layer); }

  // Whether the step works on int8, given that its inputs are available in int8.
  bool can_quantize(const IrStep &step) const {
    if (!may_quantize(ir_, step)) return false;
    if (has_linear_layer(step)) return is_layer_in_bytes(ir_, step);
    // Pass-through operators stay in int8 only if their input already is.
    if (!step.post.empty() || step.outputs.size() != 1 || bytes_of(step.inputs[0]).value < 0) return false;
    return is_inner(step.outputs[0]) && has_bytes_kernel(ir_, step);
  }

  bool adds(const IrStep &step) const { return !step.post.empty() && step.post[0].kind == PostOp::Kind::kSum; }

  void find_takers(const std::vector<IrStep> &steps) {
    const auto count = [&](int v) { ++takers_[size_t(ir_.root(v))]; };
    for (const IrStep &step : steps) {
      if (!step.op || step.inputs.empty()) continue;
      if (has_linear_layer(step) && can_quantize(step)) {
        count(step.inputs[0]);
        if (adds(step)) count(step.inputs.back());
      } else if (!has_linear_layer(step) && step.post.empty() && has_bytes_kernel(ir_, step)) {
        count(step.inputs[0]);
      }
    }
  }

  const ValueRange *range_of(int value) const { return plan::range_of(ir_, value); }

  // The quantized form for this range; 0 always represents 0.
  static Bytes bytes_for(const ValueRange &range) {
    const bool is_unsigned = range.low >= 0;
    const float largest = std::max(std::fabs(range.low), std::fabs(range.high));
    Bytes bytes;
    bytes.dtype = is_unsigned ? Dtype::kUint8 : Dtype::kInt8;
    bytes.scale = largest > 0 ? largest / (is_unsigned ? 255.0f : 127.0f) : 1;
    return bytes;
  }

  const Bytes &bytes_of(int value) const { return bytes_[size_t(ir_.root(value))]; }

  int add_like(int other, Dtype dtype) {
    const int value = ir_.add_like(other);
    ir_.values[size_t(value)].spec.dtype = dtype;
    return value;
  }

  IrStep inserted(const char *kernel, std::shared_ptr<const void> attrs, const IrStep &reader) const {
    IrStep step;
    step.kernel = kernel;
    step.attrs = Attrs(std::const_pointer_cast<void>(std::move(attrs)));
    step.node = reader.node;
    step.device = reader.device;
    step.inserted = true;
    return step;
  }

  void add_cast(const char *kernel, float scale, int from, int to, const IrStep &reader) {
    IrStep step = inserted(kernel, std::make_shared<Int8CastAttrs>(Int8CastAttrs{scale}), reader);
    step.inputs = {from};
    step.outputs = {to};
    ir_.steps.push_back(std::move(step));
  }

  // Inserts before `reader` the dequantized value if only the int8 form exists.
  void make_float(int value, const IrStep &reader) {
    const auto root = size_t(ir_.root(value));
    if (!is_missing_[root]) return;
    add_cast("_int8_dequantize", bytes_[root].scale, bytes_[root].value, int(root), reader);
    is_missing_[root] = false;
  }

  // Inserts before `reader` the int8 form of a value that has a range.
  int make_bytes(int value, const IrStep &reader) {
    const int root = ir_.root(value);
    if (bytes_[size_t(root)].value < 0 || ir_.changes(root)) {
      Bytes bytes = bytes_for(*range_of(value));
      bytes.value = add_like(root, bytes.dtype);
      bytes_[size_t(root)] = bytes;
      add_cast("_int8_quantize", bytes.scale, root, bytes.value, reader);
    }
    const int made = bytes_[size_t(root)].value;
    return root == value ? made : ir_.add_alias(made, ir_.values[size_t(value)].spec.shape);
  }

  // Whether only the int8 form may exist: nothing outside the plan sees the value.
  bool is_inner(int value) const {
    return ir_.values[size_t(value)].location == ValueLocation::kArena &&
           std::none_of(ir_.heads.begin(), ir_.heads.end(), [&](int h) { return ir_.root(h) == value; });
  }

  void set_output(IrStep *step, Bytes bytes) {
    const int v = step->outputs[0];
    bytes.value = add_like(v, bytes.dtype);
    bytes_[size_t(v)] = bytes;
    is_missing_[size_t(v)] = true;
    step->outputs[0] = bytes.value;
  }

  void quantize(IrStep step) {
    ir_.narrow_nodes.resize(ir_.request->graph->nodes.size(), false);
    ir_.narrow_nodes[size_t(step.node)] = true;
    const int last = ir_.values[size_t(step.outputs[0])].node;  // the node of the last operator fused into the step
    note_in_bytes(last >= 0 ? last : step.node);
    const std::string kernel = "_int8_" + step.kernel;
    if (!has_linear_layer(step)) {  // keeps the range of its data
      Bytes bytes = bytes_of(step.inputs[0]);
      step.inputs[0] = make_bytes(step.inputs[0], step);
      set_output(&step, bytes);
      step.kernel = kernel;
      step.elementwise = false;
      ir_.steps.push_back(std::move(step));
      return;
    }
    const bool sums = adds(step);
    const int data = make_bytes(step.inputs[0], step);
    const int addend = sums ? make_bytes(step.inputs.back(), step) : -1;
    auto attrs = std::make_shared<Int8LayerAttrs>();
    attrs->layer = step.attrs;
    attrs->has_bias = step.inputs.size() > size_t(sums ? 3 : 2);
    attrs->data_scale = bytes_of(step.inputs[0]).scale;
    const ValueRange *const range = range_of(step.outputs[0]);
    const bool narrow = range && is_inner(step.outputs[0]) && takers_[size_t(step.outputs[0])] > 0;
    const Bytes result = narrow ? bytes_for(*range) : Bytes{-1, Dtype::kFloat32, 1};
    attrs->unit = sums ? bytes_of(step.inputs.back()).scale : result.scale;
    attrs->last = sums ? attrs->unit / result.scale : 1;

    const int weight = step.inputs[1];
    for (size_t i = 1; i < size_t(attrs->has_bias ? 3 : 2); ++i) make_float(step.inputs[i], step);
    IrValue vector;
    vector.spec.shape = Shape{ir_.values[size_t(weight)].spec.shape[0]};
    vector.device = step.device;
    IrStep weights = inserted("_int8_weights", attrs, step);
    weights.inputs.assign(step.inputs.begin() + 1, step.inputs.begin() + (attrs->has_bias ? 3 : 2));
    weights.outputs = {add_like(weight, Dtype::kInt8), ir_.add_value(vector), ir_.add_value(vector)};
    step.inputs = {data};
    step.inputs.insert(step.inputs.end(), weights.outputs.begin(), weights.outputs.end());
    if (sums) step.inputs.push_back(addend);
    ir_.steps.push_back(std::move(weights));
    step.kernel = kernel;
    step.attrs = Attrs(std::static_pointer_cast<void>(attrs));
    step.inplace.clear();
    if (narrow) set_output(&step, result);
    ir_.steps.push_back(std::move(step));
  }

  Ir &ir_;
  std::vector<Bytes> bytes_;      // per value of the network
  std::vector<bool> is_missing_;  // only the int8 form exists so far
  std::vector<int> takers_;       // number of steps that could read the int8 form
  std::vector<bool> in_bytes_;    // per node
};

}  // namespace

bool is_layer_in_bytes(const Ir &ir, const IrStep &step) {
  return ir.request->compute_dtype == Dtype::kInt8 && may_quantize(ir, step) && step.op->linear_layer &&
         range_of(ir, step.inputs[0]) && posts_fit(ir, step) && has_bytes_kernel(ir, step);
}

void lower_to_bytes(Ir &ir) {
  if (ir.request->compute_dtype == Dtype::kInt8) QuantizePass(ir).run();
}

}  // namespace cohort::plan
