// SPDX-License-Identifier: Apache-2.0
#include "op/sequence.hpp"

#include <algorithm>

#include "base/dtype_cast.hpp"
#include "cpu/op/pointwise_loops.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

// The layout of sequences, as rows of `width` elements per time step, and the length of each sequence.
class SequenceSteps {
 public:
  SequenceSteps(const StepSpec &spec, const Shape &data)
      : steps(data[spec.attrs_as<SequenceAttrs>().axis]),
        count(data[1 - spec.attrs_as<SequenceAttrs>().axis]),
        width(data.size(2, data.rank())),
        steps_first_(spec.attrs_as<SequenceAttrs>().axis == 0) {
    if (spec.attrs_as<SequenceAttrs>().use_sequence_length) {
      load_ = load_indices(spec.inputs[1].dtype);
    }
  }
  int64_t row(int64_t step, int64_t sequence) const {
    return (steps_first_ ? step * count + sequence : sequence * steps + step) * width;
  }
  int64_t length(const Args &args, int64_t sequence) const {
    int64_t length = steps;
    if (load_) load_(args.inputs[1], sequence, &length, 1);
    return length;
  }
  int64_t length_of_at_least(int64_t least, const Args &args, int64_t sequence) const {
    const int64_t found = length(args, sequence);
    if (found >= least && found <= steps) return found;
    throw Error(Code::kExecution,
                text("sequence_length[", sequence, "]: expected ", least, " to ", steps, ", found ", found));
  }
  // Calls fn(step, sequence) for all of them, on several threads.
  template <typename Fn>
  void for_each(const Lane &lane, Fn &&fn) const {
    parallel_for(lane, steps * count, std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(width, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) fn(i / count, i % count);
                 });
  }

  const int64_t steps, count, width;

 private:
  const bool steps_first_;
  LoadBlock load_ = nullptr;
};

// SequenceMask is its own backward step, with zero as the value.
template <typename T, bool kBackward>
class SequenceMask final : public Kernel {
 public:
  explicit SequenceMask(const StepSpec &spec)
      : sequences_(spec, spec.inputs[0].shape),
        value_(kBackward ? T() : cast_element<T>(spec.attrs_as<SequenceAttrs>().value)) {}
  void run(const Args &args, const Lane &lane) const override {
    sequences_.for_each(lane, [&](int64_t step, int64_t sequence) {
      const int64_t at = sequences_.row(step, sequence);
      T *const to = args.out<T>(0) + at;
      if (step >= sequences_.length(args, sequence)) {
        std::fill_n(to, sequences_.width, value_);
      } else if (args.outputs[0] != args.inputs[0]) {
        std::copy_n(args.in<T>(0) + at, sequences_.width, to);
      }
    });
  }

 private:
  const SequenceSteps sequences_;
  const T value_;
};

// SequenceReverse is its own backward step.
template <typename T>
class SequenceReverse final : public Kernel {
 public:
  explicit SequenceReverse(const StepSpec &spec) : sequences_(spec, spec.inputs[0].shape) {}
  void run(const Args &args, const Lane &lane) const override {
    sequences_.for_each(lane, [&](int64_t step, int64_t sequence) {
      const int64_t length = sequences_.length_of_at_least(0, args, sequence);
      const int64_t from = step < length ? length - 1 - step : step;
      std::copy_n(args.in<T>(0) + sequences_.row(from, sequence), sequences_.width,
                  args.out<T>(0) + sequences_.row(step, sequence));
    });
  }

 private:
  const SequenceSteps sequences_;
};

template <typename T>
class SequenceLast final : public Kernel {
 public:
  explicit SequenceLast(const StepSpec &spec) : sequences_(spec, spec.inputs[0].shape) {}
  void run(const Args &args, const Lane &) const override {
    for (int64_t i = 0; i < sequences_.count; ++i) {
      const int64_t last = sequences_.length_of_at_least(1, args, i) - 1;
      std::copy_n(args.in<T>(0) + sequences_.row(last, i), sequences_.width, args.out<T>(0) + i * sequences_.width);
    }
  }

 private:
  const SequenceSteps sequences_;
};

template <typename T>
class SequenceLastBackward final : public Kernel {
 public:
  explicit SequenceLastBackward(const StepSpec &spec) : sequences_(spec, spec.outputs[0].shape) {}
  void run(const Args &args, const Lane &lane) const override {
    sequences_.for_each(lane, [&](int64_t step, int64_t sequence) {
      T *const to = args.out<T>(0) + sequences_.row(step, sequence);
      if (step == sequences_.length_of_at_least(1, args, sequence) - 1) {
        std::copy_n(args.in<T>(0) + sequence * sequences_.width, sequences_.width, to);
      } else {
        std::fill_n(to, sequences_.width, T());
      }
    });
  }

 private:
  const SequenceSteps sequences_;
};

template <template <typename> class K>
std::unique_ptr<Kernel> make_typed(StepSpec &spec) {
  return dispatch(spec.outputs[0].dtype,
                  [&](auto t) -> std::unique_ptr<Kernel> { return std::make_unique<K<decltype(t)>>(spec); });
}
template <typename T>
using Mask = SequenceMask<T, false>;
template <typename T>
using MaskBackward = SequenceMask<T, true>;

COHORT_KERNEL_BY(cpu, SequenceMask, make_typed<Mask>);
COHORT_KERNEL_BY(cpu, _backward_SequenceMask, make_typed<MaskBackward>);
COHORT_KERNEL_BY(cpu, SequenceReverse, make_typed<SequenceReverse>);
COHORT_KERNEL_BY(cpu, _backward_SequenceReverse, make_typed<SequenceReverse>);
COHORT_KERNEL_BY(cpu, SequenceLast, make_typed<SequenceLast>);
COHORT_KERNEL_BY(cpu, _backward_SequenceLast, make_typed<SequenceLastBackward>);

}  // namespace
}  // namespace cohort
