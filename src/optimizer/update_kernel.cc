// SPDX-License-Identifier: Apache-2.0
#include "optimizer/update_kernel.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "op/op.hpp"

namespace cohort {

Shape state_shape(const UpdateOp &op, const Shape &weight) {
  if (!op.by_rows) return weight;
  if (weight.rank() == 0) throw Error(Code::kShape, "weight: expected at least one axis, found ()", "weight");
  return {weight[0], 1};
}

UpdateKernel::UpdateKernel(const UpdateOp &op, bool master, const Context &context, Dtype dtype, const Shape &shape,
                           int num_threads)
    : op_(op), master_(master), dtype_(dtype), shape_(shape), num_threads_(num_threads), device_(get_device(context)) {
  const Dtype inner = master ? Dtype::kFloat32 : dtype;
  if (op.num_states > kMaxStates) throw Error(Code::kInternal, text(op.name, " has too many states"));
  const auto cast = [this](Dtype from, Dtype to) {
    add_call(make("Cast", get_op("Cast").parse({{"dtype", dtype_name(to)}}).pointer(), {tensor(shape_, from)},
                  tensor(shape_, to)));
  };
  if (master) {
    grad32_ = device_->allocate(size_t(shape.size()) * dtype_size(inner));
    cast(dtype, inner);
  }
  const TensorSpec weight = tensor(shape, inner);
  std::vector<TensorSpec> inputs(2, weight);
  inputs.resize(2 + size_t(op.num_states), tensor(state_shape(op, shape), inner));
  add_call(make(op.name, nullptr, std::move(inputs), weight));  // no attributes: the numbers come with each run
  if (master) cast(inner, dtype);
  for (auto &call : calls_) call->scratch = scratch_ ? scratch_->data() : nullptr;
}

TensorSpec UpdateKernel::tensor(const Shape &shape, Dtype dtype) const {
  TensorSpec spec;
  spec.shape = shape;
  spec.dtype = dtype;
  return spec;
}

std::unique_ptr<Kernel> UpdateKernel::make(const std::string &op, std::shared_ptr<const void> attrs,
                                           std::vector<TensorSpec> inputs, TensorSpec output) {
  StepSpec spec = StepSpec::of(op, std::move(attrs), std::move(inputs), {std::move(output)}, num_threads_);
  std::unique_ptr<Kernel> kernel = device_->make_kernel(spec);
  if (spec.scratch_bytes > 0 && (!scratch_ || scratch_->bytes() < spec.scratch_bytes)) {
    scratch_ = device_->allocate(spec.scratch_bytes);
  }
  return kernel;
}

void UpdateKernel::add_call(std::unique_ptr<Kernel> kernel) {
  calls_.push_back(std::make_unique<Call>());
  calls_.back()->kernel = std::move(kernel);
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

void UpdateKernel::append_steps(const char *label, const WorkInfo *info, std::vector<Step> *steps) const {
  for (const auto &call : calls_) {
    Step step{};
    step.kernel = call->kernel.get();
    step.args.inputs = call->inputs;
    step.args.outputs = call->outputs;
    step.args.scratch = call->scratch;
    step.args.numbers = &values_;
    step.label = label;
    step.info = info;
    steps->push_back(step);
  }
}

// Weight and states are read and written, the gradient is read.
double UpdateKernel::bytes() const {
  const double given = double(dtype_size(dtype_)), inner = master_ ? double(sizeof(float)) : given;
  const double element = master_ ? 2 * given + 2 * inner : 2 * inner;
  const double states = double(state_shape(op_, shape_).size()) * op_.num_states;
  return double(shape_.size()) * (element + given) + 2 * states * inner;
}

void UpdateKernel::run(const Lane &lane) const {
  for (const auto &call : calls_) {
    Args args;
    args.inputs = call->inputs;
    args.outputs = call->outputs;
    args.scratch = call->scratch;
    args.numbers = &values_;
    call->kernel->run(args, lane);
  }
}

}  // namespace cohort
