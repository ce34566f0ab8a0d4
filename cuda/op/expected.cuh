// SPDX-License-Identifier: Apache-2.0
// Checks that numbers lie in a range: the first that does not is recorded (cuda_input_errors.hpp).
#pragma once

#include <cstring>
#include <memory>
#include <string>

#include "cuda/cuda_input_errors.hpp"
#include "cuda/op/elements.cuh"

namespace cohort {

// The result of one check. `found` holds the bits of a double if the numbers are not integers.
struct Finding {
  bool wrong;
  int64_t found, least, most;
};

COHORT_HOST_DEVICE inline int64_t bits_of(double value) {
  int64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline double number_of(int64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Evaluates check(i), a Finding, for i < count; records the first wrong one as an error at place first_place + i.
template <typename ElementCheck>
void expect_each(const Lane &lane, int64_t count, const ElementCheck &check, int64_t first_place = 0) {
  StepsEnqueued *const steps = StepsEnqueued::now();
  if (!steps || count == 0) return;
  InputError *const at = steps->place();
  const int64_t step = steps->step();
  for_each(lane, count, [=] __device__(int64_t i) {
    if (check(i).wrong && !at->is_whole) atomicMax(&at->behind, (unsigned long long)(count - i));
  });
  for_each(lane, 1, [=] __device__(int64_t) {
    if (at->behind == 0 || at->is_whole) return;
    const int64_t place = count - int64_t(at->behind);
    const Finding first = check(place);
    *at = {at->behind, 1, step, first_place + place, first.found, first.least, first.most};
  });
}

struct WithinRange {
  Elements numbers;
  int64_t first, least, most;
  __device__ Finding operator()(int64_t i) const {
    const int64_t found = load_index(numbers, first + i);
    return {found < least || found > most, found, least, most};
  }
};

// Records an error if one of `count` numbers from numbers[first] on is not between `least` and `most`.
inline void expect_within(const Lane &lane, const Elements &numbers, int64_t first, int64_t count, int64_t least,
                          int64_t most) {
  expect_each(lane, count, WithinRange{numbers, first, least, most}, first);
}

// Checks inputs, then runs a kernel that clamps invalid numbers. Check, made from (spec), has
//   int64_t count() const; ElementCheck element_check(const Args &) const; std::string in_words(const InputError &)
//   const;
template <typename Check>
class RangeCheckedKernel final : public Kernel, public ReportsInputErrors {
 public:
  RangeCheckedKernel(StepSpec &spec, KernelFactory make) : check_(spec), kernel_(make(spec)) {}
  void run(const Args &args, const Lane &lane) const override {
    expect_each(lane, check_.count(), check_.element_check(args));
    kernel_->run(args, lane);
  }
  std::string in_words(const InputError &input_error) const override { return check_.in_words(input_error); }

 private:
  const Check check_;
  const std::unique_ptr<Kernel> kernel_;
};
template <typename Check, KernelFactory kMake>
std::unique_ptr<Kernel> make_checked(StepSpec &spec) {
  return std::make_unique<RangeCheckedKernel<Check>>(spec, kMake);
}

// Each row of rois, the second input, names an image of the first; below 0 means none.
class RegionsCheck {
 public:
  explicit RegionsCheck(const StepSpec &spec)
      : batch_(spec.inputs[0].shape[0]),
        rows_(spec.inputs[1].shape[0]),
        width_(spec.inputs[1].shape[1]),
        dtype_(spec.inputs[1].dtype) {}
  struct ElementCheck {
    Elements rois;
    int64_t width, batch;
    __device__ Finding operator()(int64_t row) const {
      const double image = load<double>(rois, row * width);
      return {!(image < double(batch)), bits_of(image), 0, batch};
    }
  };
  int64_t count() const { return rows_; }
  ElementCheck element_check(const Args &args) const { return {elements_of(args.inputs[1], dtype_), width_, batch_}; }
  std::string in_words(const InputError &c) const {
    return text("rois[", c.place, "]: expected an image below ", c.most, ", found ", number_of(c.found));
  }

 private:
  const int64_t batch_, rows_, width_;
  const Dtype dtype_;
};

}  // namespace cohort
