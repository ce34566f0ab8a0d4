// SPDX-License-Identifier: Apache-2.0
// Operators of the host's. A node keeps one operator from forward to backward; outputs that nobody wants are made
// nevertheless, as the host knows nothing of that.
#include <memory>
#include <utility>
#include <vector>

#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"
#include "op/custom.hpp"

namespace cohort {
namespace {

class Custom : public Kernel {
 public:
  bool on_caller() const override { return !use_->any_thread; }

 protected:
  Custom(const StepSpec &spec, std::shared_ptr<CustomOperator> op)
      : use_(spec.attrs_as<CustomAttrs>().use), op_(std::move(op)) {
    pass_.context = spec.context;
    pass_.is_train = spec.is_train;
  }
  static void add(std::vector<CustomArray> *list, const TensorSpec &spec) {
    list->push_back({nullptr, spec.shape, spec.dtype});
  }
  // Puts addresses into the lists, one after the other.
  static void locate(const std::vector<std::vector<CustomArray> *> &lists, void *const *data) {
    for (std::vector<CustomArray> *list : lists) {
      for (CustomArray &array : *list) array.data = *data++;
    }
  }

  const std::shared_ptr<const CustomUse> use_;
  const std::shared_ptr<CustomOperator> op_;
  CustomOperator::Pass pass_;  // without addresses
};

class CustomForward final : public Custom {
 public:
  explicit CustomForward(StepSpec &spec) : Custom(spec, spec.attrs_as<CustomAttrs>().use->create(spec.context)) {
    for (size_t i = 0; i < spec.inputs.size(); ++i) {
      add(i < use_->num_args() ? &pass_.inputs : &pass_.aux, spec.inputs[i]);
    }
    for (size_t i = 0; i < spec.outputs.size(); ++i) {
      add(&pass_.outputs, spec.outputs[i]);
      unwanted_at_.push_back((spec.scratch_bytes + 63) / 64 * 64);
      if (!spec.wanted[i]) spec.scratch_bytes = unwanted_at_.back() + spec.outputs[i].bytes();
    }
  }
  void run(const Args &args, const Lane &) const override {
    CustomOperator::Pass pass = pass_;
    locate({&pass.inputs, &pass.aux}, args.inputs);
    for (size_t i = 0; i < pass.outputs.size(); ++i) {
      pass.outputs[i].data = args.outputs[i] ? args.outputs[i] : static_cast<char *>(args.scratch) + unwanted_at_[i];
    }
    op_->forward(pass);
  }
  const std::shared_ptr<CustomOperator> &op() const { return op_; }

 private:
  std::vector<size_t> unwanted_at_;  // in scratch
};

class CustomBackward final : public Custom {
 public:
  explicit CustomBackward(StepSpec &spec) : Custom(spec, static_cast<const CustomForward *>(spec.forward)->op()) {
    size_t next = 0;
    const auto take = [&](std::vector<CustomArray> *list, size_t count) {
      for (size_t i = 0; i < count; ++i) add(list, spec.inputs[next++]);
    };
    if (use_->reads_head_grads) take(&pass_.head_grads, use_->outputs.size());
    take(&pass_.inputs, use_->num_args());
    take(&pass_.aux, use_->num_aux);
    take(&pass_.outputs, use_->outputs.size());
    for (const TensorSpec &gradient : spec.outputs) add(&pass_.gradients, gradient);
  }
  void run(const Args &args, const Lane &) const override {
    CustomOperator::Pass pass = pass_;
    locate({&pass.head_grads, &pass.inputs, &pass.aux, &pass.outputs}, args.inputs);
    locate({&pass.gradients}, args.outputs);
    op_->backward(pass);
  }
};

COHORT_KERNEL(cpu, Custom, CustomForward);
COHORT_KERNEL(cpu, _backward_Custom, CustomBackward);

}  // namespace
}  // namespace cohort
