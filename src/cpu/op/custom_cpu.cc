// SPDX-License-Identifier: Apache-2.0
// Operators of the host's. A node keeps one operator from forward to backward; outputs that nobody wants are made
// nevertheless, as the host knows nothing of that.
#include <cstring>
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
    list->push_back({nullptr, true, spec.shape, spec.dtype});
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
    const auto book = [&](size_t bytes) {
      const size_t offset = (spec.scratch_bytes + 63) / 64 * 64;
      spec.scratch_bytes = offset + bytes;
      return offset;
    };
    for (size_t i = 0; i < spec.outputs.size(); ++i) {
      add(&pass_.outputs, spec.outputs[i]);
      unwanted_at_.push_back(spec.wanted[i] ? 0 : book(spec.outputs[i].bytes()));
    }
    // Frozen ones keep their states: the host writes to copies.
    for (size_t i = 0; spec.frozen && i < use_->num_aux; ++i) {
      aux_bytes_.push_back(spec.inputs[use_->num_args() + i].bytes());
      aux_at_.push_back(book(aux_bytes_.back()));
    }
  }
  void run(const Args &args, const Lane &) const override {
    CustomOperator::Pass pass = pass_;
    locate({&pass.inputs, &pass.aux}, args.inputs);
    for (size_t i = 0; i < pass.outputs.size(); ++i) {
      pass.outputs[i].data = args.outputs[i] ? args.outputs[i] : static_cast<char *>(args.scratch) + unwanted_at_[i];
    }
    for (size_t i = 0; i < aux_at_.size(); ++i) {
      void *const copy = static_cast<char *>(args.scratch) + aux_at_[i];
      if (aux_bytes_[i] > 0) std::memcpy(copy, pass.aux[i].data, aux_bytes_[i]);
      pass.aux[i].data = copy;
    }
    op_->forward_failed = true;
    op_->forward(pass);
    op_->forward_failed = false;
  }
  const std::shared_ptr<CustomOperator> &op() const { return op_; }

 private:
  std::vector<size_t> unwanted_at_;         // in scratch
  std::vector<size_t> aux_at_, aux_bytes_;  // of copies there
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
    for (size_t i = 0; i < spec.outputs.size(); ++i) {
      add(&pass_.gradients, spec.outputs[i]);
      pass_.gradients.back().wanted = spec.wanted[i];
    }
  }
  void run(const Args &args, const Lane &) const override {
    CustomOperator::Pass pass = pass_;
    locate({&pass.head_grads, &pass.inputs, &pass.aux, &pass.outputs}, args.inputs);
    locate({&pass.gradients}, args.outputs);
    if (op_->forward_failed) throw Error(Code::kExecution, "the forward pass before it failed");
    op_->backward(pass);
  }
};

COHORT_KERNEL(cpu, Custom, CustomForward);
COHORT_KERNEL(cpu, _backward_Custom, CustomBackward);

}  // namespace
}  // namespace cohort
