// SPDX-License-Identifier: Apache-2.0
#include "tape/kernel_call.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace cohort {
namespace {

// The steps of one call; keeps what the queue works on alive.
struct Steps {
  std::shared_ptr<const void> made;
  std::vector<std::vector<void *>> pointers;  // of each step: inputs, then outputs
  std::vector<Step> steps;
  std::vector<std::shared_ptr<Memory>> memory;
  std::vector<NDArray> arrays;
  std::string label;
  RandomStream random;

  void add(const Kernel *step, const std::vector<void *> &inputs, const std::vector<void *> &outputs) {
    pointers.push_back(inputs);
    pointers.back().insert(pointers.back().end(), outputs.begin(), outputs.end());
    Step added{step, Args(), label.c_str()};
    added.args.inputs = pointers.back().data();
    added.args.outputs = pointers.back().data() + inputs.size();
    steps.push_back(added);
  }
};

template <typename T>
void append(std::string *key, const T &value) {
  key->append(reinterpret_cast<const char *>(&value), sizeof value);
}

void append_type(std::string *key, const Shape &shape, Dtype dtype) {
  append(key, shape.rank());
  append(key, dtype);
  for (const int64_t length : shape) append(key, length);
}

std::string key_of(const KernelCall &call, const Context &context) {
  std::string key = call.what->name();
  append(&key, context.type);
  append(&key, context.id);
  append(&key, call.what->is_train);
  append(&key, call.forward ? call.forward->kernel.get() : nullptr);
  for (const auto &[name, value] : call.what->attrs) key.append(name).append(1, '=').append(value).append(1, '\0');
  append(&key, call.inputs.size());
  for (const NDArray &input : call.inputs) append_type(&key, input.shape(), input.dtype());
  for (size_t i = 0; i < call.types.size(); ++i) {
    append(&key, bool(call.outputs[i]));
    append_type(&key, call.types[i].shape, call.types[i].dtype);
  }
  return key;
}

StepSpec spec_of(const KernelCall &call) {
  const Op &op = *call.what->op;
  StepSpec spec;
  spec.op = op.view && !call.what->backward ? "_copy" : call.what->name();
  spec.attrs = call.what->parsed.pointer();
  spec.is_train = call.what->is_train;
  spec.keep_for_backward = !call.what->backward;
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

std::shared_ptr<const KernelRunner::Made> KernelRunner::made_for(const KernelCall &call, const Context &context,
                                                                 Device &device) {
  const std::string key = key_of(call, context);
  const auto found = made_.find(key);
  if (found != made_.end() && !call.what->op->stateful) return found->second;

  auto made = std::make_shared<Made>();
  StepSpec &spec = made->spec = spec_of(call);
  made->kernel = device.make_kernel(spec);
  if (call.forward) made->forward = call.forward->kernel;
  const auto row_major = [](TensorSpec tensor) {
    tensor.layout = nullptr;
    return tensor;
  };
  for (const TensorSpec &input : spec.inputs) {
    made->from_inputs.push_back(input.layout ? device.make_reorder(row_major(input), input, spec.num_threads)
                                             : nullptr);
  }
  for (const TensorSpec &output : spec.outputs) {
    made->to_outputs.push_back(output.layout ? device.make_reorder(output, row_major(output), spec.num_threads)
                                             : nullptr);
  }
  if (call.what->op->stateful) return made;
  if (made_.size() >= kMostMade) made_.clear();
  made_[key] = made;
  return made;
}

std::shared_ptr<const Kept> KernelRunner::run(const KernelCall &call, const Context &context) {
  const std::shared_ptr<Device> device = get_device(context);
  const std::shared_ptr<const Made> made = made_for(call, context, *device);
  const StepSpec &spec = made->spec;
  const auto work = std::make_shared<Steps>();
  work->made = made;
  work->label = call.what->name();
  work->random.seed = call.seed;
  work->pointers.reserve(call.inputs.size() + call.outputs.size() + 1);
  const auto allocate = [&](size_t bytes) -> void * {
    if (bytes) work->memory.push_back(device->allocate(bytes));
    return bytes ? work->memory.back()->data() : nullptr;
  };

  std::vector<void *> sources, targets;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    call.inputs[i].wait();
    work->arrays.push_back(call.inputs[i]);
    sources.push_back(call.inputs[i].data());
    if (!made->from_inputs[i]) continue;
    sources[i] = allocate(spec.inputs[i].bytes());
    work->add(made->from_inputs[i].get(), {call.inputs[i].data()}, {sources[i]});
  }
  std::vector<int> mutated;
  if (!call.what->backward) mutated = call.what->op->mutated(call.what->parsed, call.inputs.size());
  for (const int i : mutated) call.inputs[size_t(i)].wait_to_write();
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const NDArray &output = call.outputs[i];
    if (output) output.wait_to_write();
    work->arrays.push_back(output);
    targets.push_back(!output ? nullptr : made->to_outputs[i] ? allocate(spec.outputs[i].bytes()) : output.data());
  }
  work->add(made->kernel.get(), sources, targets);
  Args &args = work->steps.back().args;
  args.random = &work->random;
  args.scratch = allocate(spec.scratch_bytes);
  std::shared_ptr<Memory> saved = call.forward ? call.forward->saved : nullptr;
  if (!call.what->backward && spec.saved_bytes) saved = device->allocate(spec.saved_bytes);
  args.saved = saved ? saved->data() : nullptr;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (call.outputs[i] && made->to_outputs[i]) {
      work->add(made->to_outputs[i].get(), {targets[i]}, {call.outputs[i].data()});
    }
  }

  std::shared_ptr<Queue> &queue = queues_[context];
  if (!queue) queue = device->create_queue({1});
  if (made->kernel->on_caller()) {
    for (const Step &step : work->steps) run_on_caller(step);
  } else {
    queue->run({work->steps.data(), work->steps.size(), true, nullptr}, work);
    queue->sync();
  }
  for (const int i : mutated) call.inputs[size_t(i)].written();
  for (const NDArray &output : call.outputs) {
    if (output) output.written();
  }
  return std::make_shared<const Kept>(Kept{made->kernel, saved});
}

}  // namespace cohort
