// SPDX-License-Identifier: Apache-2.0
// Merges several operators into one kernel if the backend has a kernel that fuses them (KernelEntry::fuses). The
// operators declare what can be fused (op/op.hpp).
//   training:  BatchNorm + relu in one step, forward and backward
//   inference: a batch norm after a layer is folded into the layer's weights
//   both:      activation and residual sum become post-operations of the layer before them; chains of point-wise
//   operators
#include <algorithm>
#include <optional>

#include "op/activation.hpp"
#include "op/pointwise.hpp"
#include "plan/ir.hpp"

namespace cohort::plan {
namespace {

// Returns the step with one more post-operation, and `addend` (-1: none) as a further input, if its device has a kernel
// for that or it can become an int8 layer.
std::optional<IrStep> with_post(const Ir &ir, const IrStep &step, PostOp post, int addend = -1) {
  IrStep fused = step;
  fused.post.push_back(post);
  if (addend >= 0) fused.inputs.push_back(addend);
  if (!ir.has_kernel(fused) && !is_layer_in_bytes(ir, fused)) return std::nullopt;
  return fused;
}

// The activation of a step if its gradient needs only its output, otherwise -1.
int activation_of(const IrStep &step) {
  if (!step.op || step.backward || !step.op->activation) return -1;
  const int type = step.op->activation(step.attrs);
  return type == ActivationAttrs::kSoftsign ? -1 : type;
}

// The forward step that produces each value, and how often the value is read.
struct Links {
  std::vector<int> maker;
  std::vector<int> uses;

  explicit Links(const Ir &ir) : maker(ir.values.size(), -1), uses(ir.count_uses()) {
    for (size_t s = 0; s < ir.num_forward; ++s) {
      for (int v : ir.steps[s].outputs) {
        if (v >= 0) maker[size_t(v)] = int(s);
      }
    }
  }
  // The step that produced `value` in the arena, if the value has a single reader; otherwise -1.
  int private_maker(const Ir &ir, int value) const {
    if (value < 0 || ir.values[size_t(value)].alias >= 0 || uses[size_t(value)] != 1) return -1;
    if (ir.values[size_t(value)].location != ValueLocation::kArena) return -1;
    return maker[size_t(value)];
  }
};

void fuse_norm_and_relu(Ir &ir) {
  Links links(ir);
  std::vector<bool> dropped(ir.steps.size(), false);
  for (size_t s = 0; s < ir.steps.size(); ++s) {
    if (activation_of(ir.steps[s]) != ActivationAttrs::kRelu) continue;
    const int input = ir.steps[s].inputs[0], m = links.private_maker(ir, input);
    if (m < 0 || dropped[size_t(m)]) continue;
    IrStep &norm = ir.steps[size_t(m)];
    if (!norm.post.empty() || norm.outputs[0] != input || norm.device != ir.steps[s].device) continue;
    std::optional<IrStep> fused = with_post(ir, norm, {PostOp::Kind::kTrainRelu, ActivationAttrs::kRelu});
    if (!fused) continue;
    norm = std::move(*fused);
    norm.outputs[0] = ir.steps[s].outputs[0];
    ir.drop_node_value(input);
    dropped[s] = true;
  }
  ir.drop_steps(dropped);
}

bool is_constant(const Ir &ir, int v) {
  const IrValue &value = ir.values[size_t(v)];
  if (value.alias >= 0) return false;
  return value.location == ValueLocation::kAuxiliary || ir.is_parameter(v);
}

void fold_norms(Ir &ir) {
  Links links(ir);
  std::vector<bool> dropped(ir.steps.size(), false);
  std::vector<std::pair<size_t, IrStep>> folds;  // (insert before this step, fold)
  for (size_t s = 0; s < ir.steps.size(); ++s) {
    IrStep &norm = ir.steps[s];
    if (!norm.op || !norm.op->channel_scaling) continue;
    const int m = links.private_maker(ir, norm.inputs[0]);
    if (m < 0 || dropped[size_t(m)] || !ir.steps[size_t(m)].op || !ir.steps[size_t(m)].op->linear_layer) continue;
    IrStep &layer = ir.steps[size_t(m)];
    const LinearLayer linear = layer.op->linear_layer(layer.attrs);
    const ChannelScaling scaling = norm.op->channel_scaling(norm.attrs, linear.has_bias);
    const bool extra = std::any_of(norm.outputs.begin() + 1, norm.outputs.end(),
                                   [&](int v) { return v >= 0 && links.uses[size_t(v)] > 0; });
    const bool constant =
        std::all_of(norm.inputs.begin() + 1, norm.inputs.end(), [&](int v) { return is_constant(ir, v); }) &&
        std::all_of(layer.inputs.begin() + 1, layer.inputs.end(), [&](int v) { return is_constant(ir, v); });
    const int rank = ir.values[size_t(norm.inputs[0])].spec.shape.rank();
    const int axis = scaling.channel_axis < 0 ? scaling.channel_axis + rank : scaling.channel_axis;
    if (extra || !constant || axis != linear.channel_axis || norm.device != layer.device || !layer.post.empty() ||
        layer.outputs[0] != norm.inputs[0]) {
      continue;
    }
    IrStep fold;
    fold.kernel = scaling.fold;
    fold.attrs = scaling.fold_attrs;
    fold.node = layer.node;
    fold.device = layer.device;
    fold.inputs.assign(layer.inputs.begin() + 1, layer.inputs.end());
    fold.inputs.insert(fold.inputs.end(), norm.inputs.begin() + 1, norm.inputs.end());
    IrValue weight, bias;
    weight.spec = ir.values[size_t(layer.inputs[1])].spec;
    weight.device = bias.device = layer.device;
    bias.spec = weight.spec;
    bias.spec.shape = Shape{weight.spec.shape[0]};
    fold.outputs = {ir.add_value(weight), ir.add_value(bias)};
    if (!ir.has_kernel(fold)) continue;
    layer.attrs = linear.with_bias;
    layer.inputs = {layer.inputs[0], fold.outputs[0], fold.outputs[1]};
    ir.drop_node_value(layer.outputs[0]);
    layer.outputs = {norm.outputs[0]};
    folds.emplace_back(size_t(m), std::move(fold));
    dropped[s] = true;
  }
  if (folds.empty()) return;
  std::sort(folds.begin(), folds.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
  std::vector<IrStep> steps;
  size_t next = 0;
  for (size_t s = 0; s < ir.steps.size(); ++s) {
    while (next < folds.size() && folds[next].first == s) steps.push_back(std::move(folds[next++].second));
    if (!dropped[s]) steps.push_back(std::move(ir.steps[s]));
  }
  ir.steps = std::move(steps);
  ir.num_forward = ir.steps.size();
}

// Fuses elemwise_add into the layer that produces the later operand.
void fuse_sums(Ir &ir) {
  Links links(ir);
  std::vector<bool> dropped(ir.steps.size(), false);
  for (size_t s = 0; s < ir.num_forward; ++s) {
    if (!ir.steps[s].op || !ir.steps[s].op->sum || ir.steps[s].backward) continue;
    const int a = ir.steps[s].inputs[0], b = ir.steps[s].inputs[1];
    auto position = [&](int v) { return links.maker[size_t(ir.root(v))]; };
    const int late = position(a) > position(b) ? a : b, early = late == a ? b : a;
    const int m = links.private_maker(ir, late);
    if (m < 0 || dropped[size_t(m)] || position(early) >= m) continue;
    IrStep &layer = ir.steps[size_t(m)];
    if (!layer.post.empty() || layer.outputs[0] != late || layer.device != ir.steps[s].device) continue;
    // Never in place: a matrix product keeps partial sums in its output before it reads the addend.
    std::optional<IrStep> fused = with_post(ir, layer, {PostOp::Kind::kSum, 0}, early);
    if (!fused) continue;
    layer = std::move(*fused);
    layer.outputs[0] = ir.steps[s].outputs[0];
    links.maker[size_t(layer.outputs[0])] = m;
    ir.drop_node_value(late);
    dropped[s] = true;
  }
  ir.drop_steps(dropped);
}

// The post-operation with which the preceding layer can replace the step.
std::optional<PostOp> post_of(const IrStep &step) {
  const int type = activation_of(step);
  if (type >= 0) return PostOp{PostOp::Kind::kActivation, type};
  PointwiseCall call;
  if (!step.op || step.backward || !step.op->pointwise || !fusible(*step.op, step.attrs, &call)) return std::nullopt;
  if (call.code != PointwiseCode::kClip || !(call.s <= call.t)) return std::nullopt;
  return PostOp{PostOp::Kind::kClip, 0, call.s, call.t};
}

void fuse_activations(Ir &ir) {
  Links links(ir);
  std::vector<bool> dropped(ir.steps.size(), false);
  for (size_t s = 0; s < ir.num_forward; ++s) {
    const std::optional<PostOp> post = post_of(ir.steps[s]);
    if (!post) continue;
    const int input = ir.steps[s].inputs[0], m = links.private_maker(ir, input);
    if (m < 0 || dropped[size_t(m)]) continue;
    IrStep &layer = ir.steps[size_t(m)];
    const bool has_activation =
        std::any_of(layer.post.begin(), layer.post.end(), [](const PostOp &p) { return p.kind != PostOp::Kind::kSum; });
    if (has_activation || layer.outputs[0] != input || layer.device != ir.steps[s].device) continue;
    std::optional<IrStep> fused = with_post(ir, layer, *post);
    if (!fused) continue;
    layer = std::move(*fused);
    layer.outputs[0] = ir.steps[s].outputs[0];
    ir.drop_node_value(input);
    dropped[s] = true;
  }
  ir.drop_steps(dropped);
}

}  // namespace

void fuse_before_gradient(Ir &ir) {
  if (ir.request->is_train) {
    fuse_norm_and_relu(ir);
  } else if (!ir.request->with_backward) {
    fold_norms(ir);
  }
}

void fuse_after_gradient(Ir &ir) {
  fuse_sums(ir);
  fuse_activations(ir);
  fuse_pointwise(ir);
}

}  // namespace cohort::plan
