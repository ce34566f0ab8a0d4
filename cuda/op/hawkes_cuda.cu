// SPDX-License-Identifier: Apache-2.0
// Hawkes processes, by the bodies that all backends share: one thread per row.
#include "cuda/op/cuda_backend.cuh"
#include "cuda/op/expected.cuh"
#include "kernels/hawkes_kernels.hpp"

namespace cohort {
namespace {

// Checks that events that count have valid marks. Inputs of the backward step begin with two head gradients.
class MarksCheck {
 public:
  explicit MarksCheck(const StepSpec &spec)
      : first_(spec.inputs.size() > 8 ? 2 : 0),
        num_marks_(spec.inputs[first_].shape[1]),
        events_(spec.inputs[first_ + 5].shape[1]),
        count_(spec.inputs[first_ + 5].shape.size()),
        marks_(spec.inputs[first_ + 5].dtype),
        lengths_(spec.inputs[first_ + 6].dtype) {}
  struct ElementCheck {
    Elements marks, lengths;
    int64_t events, num_marks;
    __device__ Finding operator()(int64_t i) const {
      const int64_t mark = load_index(marks, i);
      const bool counts = i % events < load_index(lengths, i / events);
      return {counts && (mark < 0 || mark >= num_marks), mark, 0, num_marks - 1};
    }
  };
  int64_t count() const { return count_; }
  ElementCheck element_check(const Args &args) const {
    return {elements_of(args.inputs[first_ + 5], marks_), elements_of(args.inputs[first_ + 6], lengths_), events_,
            num_marks_};
  }
  std::string in_words(const InputError &c) const {
    return text("marks: expected 0 to ", c.most, ", found ", c.found, " in row ", c.place / events_);
  }

 private:
  const size_t first_;
  const int64_t num_marks_, events_, count_;
  const Dtype marks_, lengths_;
};

COHORT_KERNEL_BY(cuda, _contrib_hawkesll, make_checked<MarksCheck, make_compute<CudaBackend, HawkesForward>>)
    .dtypes(kFloatTypes)
    .named("checked")
    .preference(1);
COHORT_KERNEL_BY(cuda, _backward__contrib_hawkesll, make_checked<MarksCheck, make_compute<CudaBackend, HawkesBackward>>)
    .named("checked")
    .preference(1);

const bool registered = [] {
  register_hawkes_kernels<CudaBackend>();
  return true;
}();

}  // namespace
}  // namespace cohort
