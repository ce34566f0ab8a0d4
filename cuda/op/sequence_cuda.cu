// SPDX-License-Identifier: Apache-2.0
// SequenceMask, SequenceReverse and SequenceLast. A length out of range is recorded as an error (expected.cuh),
// except by SequenceMask.
#include "cuda/op/expected.cuh"
#include "device/kernel_table.hpp"
#include "op/sequence.hpp"

namespace cohort {
namespace {

// ---- sequences: time steps are rows of `width` elements

struct SequenceLayout {
  int64_t steps, count, width;
  bool steps_first;
  Elements lengths;  // no data: all steps

  SequenceLayout(const StepSpec &spec, const Shape &data)
      : steps(data[spec.attrs_as<SequenceAttrs>().axis]),
        count(data[1 - spec.attrs_as<SequenceAttrs>().axis]),
        width(data.size(2, data.rank())),
        steps_first(spec.attrs_as<SequenceAttrs>().axis == 0),
        lengths{nullptr, int64_t(Dtype::kNone)} {
    if (spec.attrs_as<SequenceAttrs>().use_sequence_length) lengths.dtype = int64_t(spec.inputs[1].dtype);
  }
  SequenceLayout of(const Args &args) const {
    SequenceLayout s = *this;
    if (Dtype(lengths.dtype) != Dtype::kNone) s.lengths.data = args.inputs[1];
    return s;
  }
  int64_t size() const { return steps * count * width; }
  __device__ int64_t step_of(int64_t i) const { return steps_first ? i / width / count : i / width % steps; }
  __device__ int64_t sequence_of(int64_t i) const { return steps_first ? i / width % count : i / width / steps; }
  __device__ int64_t place(int64_t step, int64_t sequence, int64_t i) const {
    return (steps_first ? step * count + sequence : sequence * steps + step) * width + i % width;
  }
  __device__ int64_t length(int64_t sequence, int64_t least) const {
    const int64_t found = lengths.data ? load_index(lengths, sequence) : steps;
    return found < least ? least : found < steps ? found : steps;
  }
};

enum class SequenceWay { kMask, kMaskBackward, kReverse, kLast, kLastBackward };

template <SequenceWay kWay>
class SequenceCuda final : public Kernel, public ReportsInputErrors {
 public:
  explicit SequenceCuda(const StepSpec &spec)
      : sequences_(spec, (kWay == SequenceWay::kLastBackward ? spec.outputs : spec.inputs)[0].shape),
        value_(kWay == SequenceWay::kMask ? double(spec.attrs_as<SequenceAttrs>().value) : 0),
        dtype_(spec.outputs[0].dtype) {
    if (kWay == SequenceWay::kLast && sequences_.steps == 0 && spec.outputs[0].shape.size() > 0) {
      throw Error(Code::kShape, text("expected steps to take the last of, found ", spec.inputs[0].shape));
    }
  }
  void run(const Args &args, const Lane &lane) const override {
    const SequenceLayout s = sequences_.of(args);
    const RawElements from = raw_elements(args.inputs[0], dtype_), to = raw_elements(args.outputs[0], dtype_);
    const RawElements zero{nullptr, to.bytes};
    const Elements out = elements_of(args.outputs[0], dtype_);
    const double value = value_;
    const int64_t elements = kWay == SequenceWay::kLast ? s.count * s.width : s.size();
    const bool is_mask = kWay == SequenceWay::kMask || kWay == SequenceWay::kMaskBackward;
    if (s.lengths.data && !is_mask)
      expect_within(lane, s.lengths, 0, s.count, kWay == SequenceWay::kReverse ? 0 : 1, s.steps);
    for_each(lane, elements, [=] __device__(int64_t i) {
      if (kWay == SequenceWay::kLast) {
        const int64_t sequence = i / s.width;
        return copy_element(to, i, from, s.place(s.length(sequence, 1) - 1, sequence, i));
      }
      const int64_t step = s.step_of(i), sequence = s.sequence_of(i);
      if (kWay == SequenceWay::kReverse) {
        const int64_t length = s.length(sequence, 0);
        copy_element(to, i, from, s.place(step < length ? length - 1 - step : step, sequence, i));
      } else if (kWay == SequenceWay::kLastBackward) {
        copy_element(to, i, step == s.length(sequence, 1) - 1 ? from : zero, sequence * s.width + i % s.width);
      } else if (step >= s.length(sequence, 0)) {
        store(out, i, value);
      } else if (to.data != from.data) {
        copy_element(to, i, from, i);
      }
    });
  }
  std::string in_words(const InputError &c) const override {
    return text("sequence_length[", c.place, "]: expected ", c.least, " to ", c.most, ", found ", c.found);
  }

 private:
  const SequenceLayout sequences_;
  const double value_;
  const Dtype dtype_;
};

COHORT_KERNEL(cuda, SequenceMask, SequenceCuda<SequenceWay::kMask>);
COHORT_KERNEL(cuda, _backward_SequenceMask, SequenceCuda<SequenceWay::kMaskBackward>);
COHORT_KERNEL(cuda, SequenceReverse, SequenceCuda<SequenceWay::kReverse>);
COHORT_KERNEL(cuda, _backward_SequenceReverse, SequenceCuda<SequenceWay::kReverse>);
COHORT_KERNEL(cuda, SequenceLast, SequenceCuda<SequenceWay::kLast>);
COHORT_KERNEL(cuda, _backward_SequenceLast, SequenceCuda<SequenceWay::kLastBackward>);

}  // namespace
}  // namespace cohort
