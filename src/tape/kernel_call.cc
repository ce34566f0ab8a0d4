// SPDX-License-Identifier: Apache-2.0
#include "tape/kernel_call.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace cohort {
namespace {

// A kernel between reorders from and to row-major arrays, as steps of one program; keeps what the queue works on alive.
struct Steps {
  std::vector<std::unique_ptr<Kernel>> reorders;
  std::shared_ptr<const Kernel> kernel;
  std::vector<std::vector<void *>> pointers;  // of each step: inputs, then outputs
  std::vector<Step> steps;
  std::vector<std::shared_ptr<Memory>> memory;
  std::vector<NDArray> arrays;
  std::string label;

  void add(const Kernel *step, const std::vector<void *> &inputs, const std::vector<void *> &outputs) {
    pointers.push_back(inputs);
    pointers.back().insert(pointers.back().end(), outputs.begin(), outputs.end());
    Step made{step, Args(), label.c_str()};
    made.args.inputs = pointers.back().data();
    made.args.outputs = pointers.back().data() + inputs.size();
    steps.push_back(made);
  }
};

StepSpec spec_of(const KernelCall &call) {
  const Op &op = *call.what->op;
  StepSpec spec;
  spec.op = op.view && !call.what->backward ? "_copy" : call.what->name();
  spec.attrs = call.what->parsed.pointer();
  spec.is_train = call.is_train;
  spec.keep_for_backward = !call.what->backward;
  spec.seed = call.seed;
  spec.forward = call.forward ? call.forward->kernel.get() : nullptr;
  for (const NDArray &input : call.inputs) {
    spec.inputs.push_back({input.shape(), input.dtype(), nullptr});
    spec.constant.push_back(false);
  }
  for (size_t i = 0; i < call.types.size(); ++i) {
    spec.outputs.push_back({call.types[i].shape, call.types[i].dtype, nullptr});
    spec.wanted.push_back(bool(call.outputs[i]));
  }
  return spec;
}

}  // namespace

std::shared_ptr<const Kept> KernelRunner::run(const KernelCall &call, const Context &context) {
  const std::shared_ptr<Device> device = get_device(context);
  StepSpec spec = spec_of(call);
  const KernelEntry *entry = device->find_kernel(spec.op);
  if (!entry) {
    throw Error(Code::kUnsupported, text("operator ", call.what->name(), " has no kernel on ", context),
                call.what->op->name);
  }
  auto kept = std::make_shared<Kept>();
  kept->kernel = device->make_kernel(*entry, spec);
  const auto work = std::make_shared<Steps>();
  work->kernel = kept->kernel;
  work->label = call.what->name();
  work->pointers.reserve(call.inputs.size() + call.outputs.size() + 1);
  const auto allocate = [&](size_t bytes) -> void * {
    if (bytes) work->memory.push_back(device->allocate(bytes));
    return bytes ? work->memory.back()->data() : nullptr;
  };
  const auto add_reorder = [&](const TensorSpec &from, const TensorSpec &to, void *source, void *target) {
    work->reorders.push_back(device->make_reorder(from, to, spec.num_threads));
    work->add(work->reorders.back().get(), {source}, {target});
  };

  std::vector<void *> sources, targets;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    call.inputs[i].wait();
    work->arrays.push_back(call.inputs[i]);
    sources.push_back(call.inputs[i].data());
    if (!spec.inputs[i].layout) continue;
    sources[i] = allocate(spec.inputs[i].bytes());
    add_reorder({call.inputs[i].shape(), call.inputs[i].dtype(), nullptr}, spec.inputs[i], call.inputs[i].data(),
                sources[i]);
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (call.outputs[i]) call.outputs[i].storage()->wait_for_work();
    work->arrays.push_back(call.outputs[i]);
    targets.push_back(!call.outputs[i]         ? nullptr
                      : spec.outputs[i].layout ? allocate(spec.outputs[i].bytes())
                                               : call.outputs[i].data());
  }
  work->add(kept->kernel.get(), sources, targets);
  Args &args = work->steps.back().args;
  args.scratch = allocate(spec.scratch_bytes);
  if (!call.what->backward && spec.saved_bytes) kept->saved = device->allocate(spec.saved_bytes);
  const std::shared_ptr<Memory> saved = call.forward ? call.forward->saved : kept->saved;
  args.saved = saved ? saved->data() : nullptr;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (!call.outputs[i] || !spec.outputs[i].layout) continue;
    add_reorder(spec.outputs[i], {call.types[i].shape, call.types[i].dtype, nullptr}, targets[i],
                call.outputs[i].data());
  }

  std::shared_ptr<Queue> &queue = queues_[context];
  if (!queue) queue = device->create_queue({1});
  queue->run({work->steps.data(), work->steps.size(), true, nullptr}, work);
  queue->sync();
  for (int i : call.what->backward ? std::vector<int>() : call.what->op->mutates) {
    if (size_t(i) < call.inputs.size()) call.inputs[size_t(i)].storage()->written();
  }
  for (const NDArray &output : call.outputs) {
    if (output) output.storage()->written();
  }
  return kept;
}

}  // namespace cohort
