// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/small_array.hpp"
#include "plan/bound_step.hpp"
#include "plan/ir.hpp"
#include "plan/node_compiler.hpp"

namespace cohort::plan {
namespace {

void *at_offset(void *memory, size_t offset) { return static_cast<char *>(memory) + offset; }

class PlannedSubprogram final : public Subprogram {
 public:
  PlannedSubprogram(Plan plan, int num_threads, const Graph &graph, const std::vector<int> &inputs, bool is_random)
      : plan_(std::move(plan)), num_threads_(num_threads), num_streams_(is_random ? graph.nodes.size() : 0) {
    const auto positions = [&](const std::vector<int> &nodes) {
      std::vector<size_t> at;
      for (const int node : nodes) at.push_back(size_t(std::find(inputs.begin(), inputs.end(), node) - inputs.begin()));
      return at;
    };
    arguments_ = positions(graph.arguments);
    auxiliary_ = positions(graph.auxiliary);
    for (const PlanStep &step : plan_.prologue) {
      constants_at_.push_back(constant_bytes_);
      constant_bytes_ += aligned(step.constant_bytes);
    }
    for (const auto *list : {&plan_.prologue, &plan_.steps}) {
      for (const PlanStep &step : *list) {
        on_caller_ = on_caller_ || step.kernel->on_caller();
        replays_ = replays_ && step.kernel->replays();
      }
    }
  }

  const TensorSpec &output(size_t index) const override { return plan_.slots[size_t(plan_.head_slots[index])].spec; }
  size_t arena_bytes() const override { return plan_.arena_bytes[0]; }
  size_t constant_bytes() const override { return constant_bytes_; }
  size_t num_streams() const override { return num_streams_; }
  bool on_caller() const override { return on_caller_; }
  bool replays() const override { return replays_; }
  void prepare(const Arrays &arrays, const Lane &lane) const override {
    run(plan_.prologue, 0, plan_.prologue.size(), arrays, narrowed(lane, plan_.forward_size));
  }
  void forward(const Arrays &arrays, const Lane &lane) const override {
    run(plan_.steps, 0, plan_.num_forward, arrays, narrowed(lane, plan_.forward_size));
  }
  void backward(const Arrays &arrays, const Lane &lane) const override {
    run(plan_.steps, plan_.num_forward, plan_.steps.size(), arrays, narrowed(lane, plan_.backward_size));
  }
  void *head_gradient(size_t output, void *arena) const override {
    const int slot = plan_.head_gradient_slots[output];
    return slot < 0 ? nullptr : at_offset(arena, plan_.slots[size_t(slot)].offset);
  }

 private:
  void *address(const Slot &slot, const Arrays &arrays) const {
    const size_t index = size_t(slot.index);
    switch (slot.location) {
      case ValueLocation::kArgument:
        return arrays.inputs[arguments_[index]];
      case ValueLocation::kAuxiliary:
        return arrays.inputs[auxiliary_[index]];
      case ValueLocation::kGradient:
        return arrays.gradients[arguments_[index]];
      case ValueLocation::kOutput:
        return arrays.outputs[index];
      case ValueLocation::kArena:
        return at_offset(arrays.arena, slot.offset);
      case ValueLocation::kConstant:
        return at_offset(arrays.constants, constants_at_[index] + slot.offset);
      case ValueLocation::kNowhere:
        break;
    }
    return nullptr;
  }

  // Limits threads to the number for which the kernels were made and have scratch.
  Lane narrowed(const Lane &lane, WorkSize size) const {
    return {std::min(lane.num_threads, threads_of(size, num_threads_)), lane.stream, lane.recorder};
  }

  void run(const std::vector<PlanStep> &steps, size_t begin, size_t end, const Arrays &arrays, const Lane &lane) const {
    const auto pointer = [&](int slot) { return slot < 0 ? nullptr : address(plan_.slots[size_t(slot)], arrays); };
    for (size_t s = begin; s < end; ++s) {
      const PlanStep &step = steps[s];
      SmallArray<void *, 24> pointers(count_pointers(step));
      Step bound = bound_step(step, pointers.data(), pointer);
      bound.args.random = arrays.random ? arrays.random + step.node : nullptr;
      try {
        const WorkSpan span(bound.info);
        bound.kernel->run(bound.args, lane);
      } catch (const Error &e) {
        throw Error(e.code(), text(step.label, ": ", e.what()), e.subject());
      }
    }
  }

  const Plan plan_;
  const int num_threads_;
  const size_t num_streams_;
  std::vector<size_t> arguments_, auxiliary_;  // positions among the inputs
  std::vector<size_t> constants_at_;           // offsets of the prologue steps' outputs in the constant memory
  size_t constant_bytes_ = 0;
  bool on_caller_ = false, replays_ = true;
};

GradReq req_of(Subprogram::Gradient gradient) {
  switch (gradient) {
    case Subprogram::Gradient::kWrite:
      return GradReq::kWrite;
    case Subprogram::Gradient::kAdd:
      return GradReq::kAdd;
    case Subprogram::Gradient::kNone:
      break;
  }
  return GradReq::kNull;
}

}  // namespace

void infer_inside(const NodeGraph &inside, const std::vector<TensorSpec> &inputs, const std::string &node,
                  Inferred *inferred) {
  const Graph &graph = inside.graph();
  std::vector<Shape> shapes(graph.nodes.size());
  std::vector<Dtype> dtypes(graph.nodes.size(), Dtype::kNone);
  for (size_t i = 0; i < inside.inputs().size(); ++i) {
    shapes[size_t(inside.inputs()[i])] = inputs[i].shape;
    dtypes[size_t(inside.inputs()[i])] = inputs[i].dtype;
  }
  infer_shapes_at(graph, shapes, inferred);
  infer_dtypes_at(graph, dtypes, inferred);
  if (inferred->shapes_complete && inferred->dtypes_complete) return;
  throw Error(Code::kShape,
              "sub-graph: expected all shapes and types inside to follow from the inputs, found unknown ones", node);
}

std::unique_ptr<Subprogram> NodeCompiler::compile(size_t index, const Request &asked) const {
  // The operator's own version of the sub-graph, which for a fused layer differs from the given one.
  const NodeGraph &inside = static_cast<const NodeGraph &>(*node_.op->subgraphs_of(node_.parsed)[index]);
  const Graph &graph = inside.graph();
  PlanRequest request;
  for (size_t i = 0; i < inside.inputs().size(); ++i) {
    if (graph.is_auxiliary[size_t(inside.inputs()[i])]) continue;
    request.grad_reqs.push_back(asked.gradients.empty() ? GradReq::kNull : req_of(asked.gradients[i]));
    request.constants.push_back(asked.constant[i]);
  }
  Inferred inferred;
  infer_inside(inside, asked.inputs, node_.name, &inferred);
  request.graph = &graph;
  request.inferred = &inferred;
  request.devices = {device_};
  request.is_train = asked.is_train;
  request.with_backward = !asked.gradients.empty();
  request.num_threads = asked.num_threads;
  Plan plan = cohort::compile(request);
  num_steps_ += plan.steps.size() + plan.prologue.size() + plan.num_inner_steps;
  return std::make_unique<PlannedSubprogram>(std::move(plan), asked.num_threads, graph, inside.inputs(),
                                             inside.is_random());
}

}  // namespace cohort::plan
