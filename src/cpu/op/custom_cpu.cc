// SPDX-License-Identifier: Apache-2.0
// Operators that the host defines. A node keeps one operator object from forward to backward. Unwanted outputs are
// computed, too, as the host's operator does not know which are wanted.
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
    call_.context = spec.context;
    call_.is_train = spec.is_train;
  }
  static void add(std::vector<CustomArray> *list, const TensorSpec &spec) {
    list->push_back({nullptr, true, spec.shape, spec.dtype});
  }
  // Fills the lists of addresses, one after the other.
  static void locate(const std::vector<std::vector<CustomArray> *> &lists, void *const *data) {
    for (std::vector<CustomArray> *list : lists) {
      for (CustomArray &array : *list) array.data = *data++;
    }
  }

  const std::shared_ptr<const CustomUse> use_;
  const std::shared_ptr<CustomOperator> op_;
  CustomOperator::Call call_;  // without addresses
};

class CustomForward final : public Custom {
 public:
  explicit CustomForward(StepSpec &spec) : Custom(spec, spec.attrs_as<CustomAttrs>().use->create(spec.context)) {
    for (size_t i = 0; i < spec.inputs.size(); ++i) {
      add(i < use_->num_args() ? &call_.inputs : &call_.aux, spec.inputs[i]);
    }
    const auto book = [&](size_t bytes) {
      const size_t offset = (spec.scratch_bytes + 63) / 64 * 64;
      spec.scratch_bytes = offset + bytes;
      return offset;
    };
    for (size_t i = 0; i < spec.outputs.size(); ++i) {
      add(&call_.outputs, spec.outputs[i]);
      unwanted_at_.push_back(spec.wanted[i] ? 0 : book(spec.outputs[i].bytes()));
    }
    // A frozen node keeps its states: the host writes to copies.
    for (size_t i = 0; spec.frozen && i < use_->num_aux; ++i) {
      aux_bytes_.push_back(spec.inputs[use_->num_args() + i].bytes());
      aux_at_.push_back(book(aux_bytes_.back()));
    }
  }
  void run(const Args &args, const Lane &) const override {
    CustomOperator::Call call = call_;
    locate({&call.inputs, &call.aux}, args.inputs);
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      call.outputs[i].data = args.outputs[i] ? args.outputs[i] : static_cast<char *>(args.scratch) + unwanted_at_[i];
    }
    for (size_t i = 0; i < aux_at_.size(); ++i) {
      void *const copy = static_cast<char *>(args.scratch) + aux_at_[i];
      if (aux_bytes_[i] > 0) std::memcpy(copy, call.aux[i].data, aux_bytes_[i]);
      call.aux[i].data = copy;
    }
    op_->forward_failed = true;
    op_->forward(call);
    op_->forward_failed = false;
  }
  const std::shared_ptr<CustomOperator> &op() const { return op_; }

 private:
  std::vector<size_t> unwanted_at_;         // in scratch memory
  std::vector<size_t> aux_at_, aux_bytes_;  // of copies of the states, in scratch memory
};

class CustomBackward final : public Custom {
 public:
  explicit CustomBackward(StepSpec &spec) : Custom(spec, static_cast<const CustomForward *>(spec.forward)->op()) {
    size_t next = 0;
    const auto take = [&](std::vector<CustomArray> *list, size_t count) {
      for (size_t i = 0; i < count; ++i) add(list, spec.inputs[next++]);
    };
    if (use_->reads_head_grads) take(&call_.head_grads, use_->outputs.size());
    take(&call_.inputs, use_->num_args());
    take(&call_.aux, use_->num_aux);
    take(&call_.outputs, use_->outputs.size());
    for (size_t i = 0; i < spec.outputs.size(); ++i) {
      add(&call_.gradients, spec.outputs[i]);
      call_.gradients.back().wanted = spec.wanted[i];
    }
  }
  void run(const Args &args, const Lane &) const override {
    CustomOperator::Call call = call_;
    locate({&call.head_grads, &call.inputs, &call.aux, &call.outputs}, args.inputs);
    locate({&call.gradients}, args.outputs);
    if (op_->forward_failed) throw Error(Code::kExecution, "the forward pass before it failed");
    op_->backward(call);
  }
};

COHORT_KERNEL(cpu, Custom, CustomForward);
COHORT_KERNEL(cpu, _backward_Custom, CustomBackward);

}  // namespace
}  // namespace cohort
