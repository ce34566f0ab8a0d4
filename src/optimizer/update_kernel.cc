// SPDX-License-Identifier: Apache-2.0
#include "optimizer/update_kernel.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "op/op.hpp"

namespace cohort {

UpdateKernel::UpdateKernel(const UpdateOp &op, bool master, const Context &context, Dtype dtype, int64_t length,
                           int num_threads)
    : op_(op),
      master_(master),
      length_(length),
      num_threads_(num_threads),
      device_(get_device(context)),
      attrs_(op.make_attrs()) {
  const Dtype inner = master ? Dtype::kFloat32 : dtype;
  if (op.num_states > kMaxStates) throw Error(Code::kInternal, text(op.name, " has too many states"));
  if (master) {
    grad32_ = device_->allocate(size_t(length) * dtype_size(inner));
    add_call(make("Cast", get_op("Cast").parse({{"dtype", dtype_name(inner)}}).pointer(), {dtype}, inner), 1);
  }
  std::vector<Dtype> inputs(size_t(op.num_states) + 2, inner);
  if (op.rescale_tensor) {
    inputs.push_back(Dtype::kFloat32);
    rescale_ = device_->allocate(sizeof(float));
  }
  add_call(make(op.name, attrs_, inputs, inner), inputs.size());
  if (op.rescale_tensor) calls_.back()->inputs[inputs.size() - 1] = rescale_->data();
  if (master) add_call(make("Cast", get_op("Cast").parse({{"dtype", dtype_name(dtype)}}).pointer(), {inner}, dtype), 1);
  for (auto &call : calls_) call->scratch = scratch_ ? scratch_->data() : nullptr;
}

// Every input has `length` elements but the tensor of rescale_grad, which has one.
std::unique_ptr<Kernel> UpdateKernel::make(const std::string &op, std::shared_ptr<const void> attrs,
                                           const std::vector<Dtype> &inputs, Dtype output) {
  const KernelEntry *entry = device_->find_kernel(op);
  if (!entry) throw Error(Code::kUnsupported, text(device_->context(), " has no kernel for ", op), op);
  StepSpec spec;
  spec.op = op;
  spec.attrs = std::move(attrs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    TensorSpec tensor;
    tensor.shape = Shape{op == op_.name && op_.rescale_tensor && i + 1 == inputs.size() ? 1 : length_};
    tensor.dtype = inputs[i];
    spec.inputs.push_back(std::move(tensor));
  }
  spec.constant.assign(inputs.size(), false);
  TensorSpec result;
  result.shape = Shape{length_};
  result.dtype = output;
  spec.outputs.push_back(std::move(result));
  spec.wanted.push_back(true);
  spec.num_threads = num_threads_;
  std::unique_ptr<Kernel> kernel = device_->make_kernel(*entry, spec);
  if (spec.scratch_bytes > 0 && (!scratch_ || scratch_->bytes() < spec.scratch_bytes)) {
    scratch_ = device_->allocate(spec.scratch_bytes);
  }
  return kernel;
}

void UpdateKernel::add_call(std::unique_ptr<Kernel> kernel, size_t num_inputs) {
  auto call = std::make_unique<Call>();
  if (num_inputs > sizeof call->inputs / sizeof call->inputs[0]) {
    throw Error(Code::kInternal, text(op_.name, " has too many inputs"));
  }
  call->kernel = std::move(kernel);
  calls_.push_back(std::move(call));
}

void UpdateKernel::set(const UpdateValues &values) { op_.set_attrs(attrs_.get(), values); }

void UpdateKernel::set_rescale(float rescale_grad) {
  if (!rescale_) return;
  if (device_->context().on_host()) {
    *static_cast<float *>(rescale_->data()) = rescale_grad;
    return;
  }
  const std::shared_ptr<Queue> queue = device_->create_queue(QueueOptions());
  queue->copy(rescale_->data(), &rescale_grad, sizeof rescale_grad, nullptr);
  queue->sync();
}

void UpdateKernel::bind(void *weight, const void *grad, void *const *states) {
  void *const given = const_cast<void *>(grad);
  Call &rule = *calls_[master_ ? 1 : 0];
  void *const updated = master_ ? states[op_.num_states] : weight;
  rule.inputs[0] = updated;
  rule.inputs[1] = master_ ? grad32_->data() : given;
  for (int i = 0; i < op_.num_states; ++i) rule.inputs[2 + i] = states[i];
  rule.outputs[0] = updated;
  if (!master_) return;
  calls_[0]->inputs[0] = given;
  calls_[0]->outputs[0] = grad32_->data();
  calls_[2]->inputs[0] = updated;
  calls_[2]->outputs[0] = weight;
}

void UpdateKernel::append_steps(const char *label, std::vector<Step> *steps) const {
  for (const auto &call : calls_) {
    Step step{};
    step.kernel = call->kernel.get();
    step.args.inputs = call->inputs;
    step.args.outputs = call->outputs;
    step.args.scratch = call->scratch;
    step.label = label;
    steps->push_back(step);
  }
}

void UpdateKernel::run(const Lane &lane) const {
  for (const auto &call : calls_) {
    Args args;
    args.inputs = call->inputs;
    args.outputs = call->outputs;
    args.scratch = call->scratch;
    call->kernel->run(args, lane);
  }
}

}  // namespace cohort
