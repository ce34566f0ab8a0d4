// SPDX-License-Identifier: Apache-2.0
#include "op/tile.hpp"

#include "cpu/op/reduce_loops.hpp"
#include "device/kernel_table.hpp"
#include "kernels/strided_copy.hpp"

namespace cohort {
namespace {

class Repeated final : public Kernel {
 public:
  Repeated(const StepSpec &spec, const Repetition &r) {
    std::vector<StridedCopy::Axis> axes;
    const std::vector<int64_t> to = dense_strides(Shape(r.lengths));
    int64_t from = 1;  // stride of the next axis of data, from the last one on
    for (size_t i = r.lengths.size(); i-- > 0;) {
      axes.insert(axes.begin(), {r.lengths[i], r.repeated[i] ? 0 : from, to[i]});
      if (!r.repeated[i]) from *= r.lengths[i];
    }
    copy_ = StridedCopy(std::move(axes), dtype_size(spec.outputs[0].dtype));
  }
  void run(const Args &args, const Lane &lane) const override { copy_.run(args.inputs[0], args.outputs[0], lane); }

 private:
  StridedCopy copy_;
};

// Sums the head gradient over the repetitions.
template <typename C>
class RepeatedBackward final : public Kernel {
 public:
  RepeatedBackward(StepSpec &spec, const Repetition &r)
      : reducer_(Shape(r.lengths), r.repeated, spec.outputs[0].dtype, reduce::Finish::kNone,
                 reduce::ArraySource(0, spec.inputs[0].dtype, dtype_of<C>())) {
    spec.scratch_bytes = reducer_.scratch_bytes();
  }
  void run(const Args &args, const Lane &lane) const override { reducer_.run(args, 0, lane); }

 private:
  const reduce::AxisReducer<C, reduce::Sum<C>, reduce::ArraySource> reducer_;
};

template <typename A>
std::unique_ptr<Kernel> make_repeated(StepSpec &spec) {
  return std::make_unique<Repeated>(spec, repetition_of(spec.attrs_as<A>(), spec.inputs[0].shape));
}
template <typename A>
std::unique_ptr<Kernel> make_repeated_backward(StepSpec &spec) {
  const Repetition r = repetition_of(spec.attrs_as<A>(), spec.outputs[0].shape);
  return dispatch_compute(spec.outputs[0].dtype, true, [&](auto c) -> std::unique_ptr<Kernel> {
    return std::make_unique<RepeatedBackward<decltype(c)>>(spec, r);
  });
}

COHORT_KERNEL_BY(cpu, tile, make_repeated<TileAttrs>);
COHORT_KERNEL_BY(cpu, _backward_tile, make_repeated_backward<TileAttrs>);
COHORT_KERNEL_BY(cpu, repeat, make_repeated<RepeatAttrs>);
COHORT_KERNEL_BY(cpu, _backward_repeat, make_repeated_backward<RepeatAttrs>);

}  // namespace
}  // namespace cohort
