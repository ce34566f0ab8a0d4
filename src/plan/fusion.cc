// SPDX-License-Identifier: Apache-2.0
// Several operators in one kernel, where the backend's kernel says that it can (KernelEntry::fuses).
//   training:  BatchNorm + relu in one step, forward and backward
//   inference: a batch norm behind a layer goes into the layer's weights
//   both:      activation and residual sum as post-operations of the layer before them; chains of point-wise operators
#include <algorithm>

#include "op/activation.hpp"
#include "op/batch_norm.hpp"
#include "op/convolution.hpp"
#include "op/fold_batch_norm.hpp"
#include "plan/ir.hpp"

namespace cohort::plan {
namespace {

unsigned fuses(const Ir &ir, const IrStep &step) {
  const KernelEntry *entry = ir.request->devices[size_t(step.device)]->find_kernel(step.kernel);
  return entry ? entry->fuses : 0;
}

// The activation of a node if it is one of those whose gradient needs its output alone, else -1.
int activation_of(const IrStep &step) {
  if (!step.op || step.backward) return -1;
  if (step.op->name == "relu") return ActivationAttrs::kRelu;
  if (step.op->name == "sigmoid") return ActivationAttrs::kSigmoid;
  if (step.op->name == "tanh") return ActivationAttrs::kTanh;
  if (step.op->name != "Activation") return -1;
  const int type = int(step.attrs.get<ActivationAttrs>().act_type);
  return type == ActivationAttrs::kSoftsign ? -1 : type;
}

// Which forward step makes each value, and who reads it.
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
  // The step that made `value` for nobody else, in working memory; -1 if there is none.
  int private_maker(const Ir &ir, int value) const {
    if (value < 0 || ir.values[size_t(value)].alias >= 0 || uses[size_t(value)] != 1) return -1;
    if (ir.values[size_t(value)].place != Place::kArena) return -1;
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
    if (!norm.op || norm.op->name != "BatchNorm" || !(fuses(ir, norm) & kFusesTrainRelu) || !norm.post.empty() ||
        norm.outputs[0] != input || norm.device != ir.steps[s].device) {
      continue;
    }
    norm.post.push_back({PostOp::Kind::kActivation, ActivationAttrs::kRelu});
    norm.outputs[0] = ir.steps[s].outputs[0];
    ir.forget(input);
    dropped[s] = true;
  }
  ir.drop_steps(dropped);
}

bool is_constant(const Ir &ir, int v) {
  const Value &value = ir.values[size_t(v)];
  if (value.alias >= 0) return false;
  if (value.place == Place::kAuxiliary) return true;
  return value.place == Place::kArgument && size_t(value.index) < ir.request->constants.size() &&
         ir.request->constants[size_t(value.index)];
}

void fold_norms(Ir &ir) {
  Links links(ir);
  std::vector<bool> dropped(ir.steps.size(), false);
  std::vector<std::pair<size_t, IrStep>> folds;  // (before this step, fold)
  for (size_t s = 0; s < ir.steps.size(); ++s) {
    IrStep &norm = ir.steps[s];
    if (!norm.op || norm.op->name != "BatchNorm") continue;
    const int m = links.private_maker(ir, norm.inputs[0]);
    if (m < 0 || dropped[size_t(m)] || ir.steps[size_t(m)].kernel != "Convolution") continue;
    IrStep &layer = ir.steps[size_t(m)];
    const BatchNormAttrs &attrs = norm.attrs.get<BatchNormAttrs>();
    const ConvolutionAttrs &conv = layer.attrs.get<ConvolutionAttrs>();
    const bool extra = std::any_of(norm.outputs.begin() + 1, norm.outputs.end(),
                                   [&](int v) { return v >= 0 && links.uses[size_t(v)] > 0; });
    const bool constant =
        std::all_of(norm.inputs.begin() + 1, norm.inputs.end(), [&](int v) { return is_constant(ir, v); }) &&
        std::all_of(layer.inputs.begin() + 1, layer.inputs.end(), [&](int v) { return is_constant(ir, v); });
    const Dtype dtype = ir.values[size_t(norm.inputs[0])].spec.dtype;
    if (extra || !constant || dtype != Dtype::kFloat32 || attrs.axis != 1 || channels_last(conv.layout) ||
        norm.device != layer.device || !layer.post.empty() || layer.outputs[0] != norm.inputs[0]) {
      continue;
    }
    auto folded = std::make_shared<FoldBatchNormAttrs>();
    folded->eps = attrs.eps;
    folded->fix_gamma = attrs.fix_gamma;
    folded->has_bias = !conv.no_bias;
    IrStep fold;
    fold.kernel = "_fold_batch_norm";
    fold.attrs = Attrs(folded);
    fold.node = layer.node;
    fold.device = layer.device;
    fold.inputs.assign(layer.inputs.begin() + 1, layer.inputs.end());
    fold.inputs.insert(fold.inputs.end(), norm.inputs.begin() + 1, norm.inputs.end());
    Value weight, bias;
    weight.spec = ir.values[size_t(layer.inputs[1])].spec;
    weight.device = bias.device = layer.device;
    bias.spec = weight.spec;
    bias.spec.shape = Shape{weight.spec.shape[0]};
    fold.outputs = {ir.add_value(weight), ir.add_value(bias)};
    auto with_bias = std::make_shared<ConvolutionAttrs>(conv);
    with_bias->no_bias = false;
    layer.attrs = Attrs(with_bias);
    layer.inputs = {layer.inputs[0], fold.outputs[0], fold.outputs[1]};
    ir.forget(layer.outputs[0]);
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

// layer -> elemwise_add with something that is there already: the layer adds it.
void fuse_sums(Ir &ir) {
  Links links(ir);
  std::vector<bool> dropped(ir.steps.size(), false);
  for (size_t s = 0; s < ir.num_forward; ++s) {
    if (!ir.steps[s].op || ir.steps[s].op->name != "elemwise_add" || ir.steps[s].backward) continue;
    const int a = ir.steps[s].inputs[0], b = ir.steps[s].inputs[1];
    auto position = [&](int v) { return links.maker[size_t(ir.root(v))]; };
    const int late = position(a) > position(b) ? a : b, early = late == a ? b : a;
    const int m = links.private_maker(ir, late);
    if (m < 0 || dropped[size_t(m)] || position(early) >= m) continue;
    IrStep &layer = ir.steps[size_t(m)];
    if (!(fuses(ir, layer) & kFusesSum) || !layer.post.empty() || layer.outputs[0] != late ||
        layer.device != ir.steps[s].device) {
      continue;
    }
    layer.post.push_back({PostOp::Kind::kSum, 0});
    // Never in place: a product keeps partial sums in its output before it reads the addend.
    layer.inputs.push_back(early);
    layer.outputs[0] = ir.steps[s].outputs[0];
    links.maker[size_t(layer.outputs[0])] = m;
    ir.forget(late);
    dropped[s] = true;
  }
  ir.drop_steps(dropped);
}

void fuse_activations(Ir &ir) {
  Links links(ir);
  std::vector<bool> dropped(ir.steps.size(), false);
  for (size_t s = 0; s < ir.num_forward; ++s) {
    const int type = activation_of(ir.steps[s]);
    if (type < 0) continue;
    const int input = ir.steps[s].inputs[0], m = links.private_maker(ir, input);
    if (m < 0 || dropped[size_t(m)]) continue;
    IrStep &layer = ir.steps[size_t(m)];
    const bool has_activation = std::any_of(layer.post.begin(), layer.post.end(),
                                            [](const PostOp &p) { return p.kind == PostOp::Kind::kActivation; });
    if (!(fuses(ir, layer) & kFusesActivation) || has_activation || layer.outputs[0] != input ||
        layer.device != ir.steps[s].device) {
      continue;
    }
    layer.post.push_back({PostOp::Kind::kActivation, type});
    layer.outputs[0] = ir.steps[s].outputs[0];
    ir.forget(input);
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
