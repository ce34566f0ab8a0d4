// SPDX-License-Identifier: Apache-2.0
#include "op/creation.hpp"

#include <algorithm>
#include <cstring>

#include "base/dtype_cast.hpp"
#include "cpu/op/pointwise_loops.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

// Fills output 0 with value(index).
template <typename T, typename Value>
class Filled final : public Kernel {
 public:
  Filled(int64_t count, Value value) : count_(count), value_(std::move(value)) {}
  void run(const Args &args, const Lane &lane) const override {
    T *const out = args.out<T>(0);
    parallel_for(lane, count_, kCheapGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[i] = cast_element<T>(value_(i));
    });
  }

 private:
  const int64_t count_;
  const Value value_;
};

template <typename Value>
std::unique_ptr<Kernel> make_filled(const StepSpec &spec, Value value) {
  return dispatch(spec.outputs[0].dtype, [&](auto t) -> std::unique_ptr<Kernel> {
    return std::make_unique<Filled<decltype(t), Value>>(spec.outputs[0].shape.size(), value);
  });
}

std::unique_ptr<Kernel> make_zeros(StepSpec &spec) {
  return make_filled(spec, [](int64_t) { return 0.0; });
}
std::unique_ptr<Kernel> make_ones(StepSpec &spec) {
  return make_filled(spec, [](int64_t) { return 1.0; });
}
std::unique_ptr<Kernel> make_full(StepSpec &spec) {
  return make_filled(spec, [value = spec.attrs_as<FillAttrs>().value](int64_t) { return value; });
}
std::unique_ptr<Kernel> make_arange(StepSpec &spec) {
  const auto &a = spec.attrs_as<RangeAttrs>();
  return make_filled(spec, [start = a.start, step = a.step, repeat = int64_t(a.repeat)](int64_t i) {
    return start + double(i / repeat) * step;
  });
}
std::unique_ptr<Kernel> make_arange_like(StepSpec &spec) {
  const auto &a = spec.attrs_as<ArangeLikeAttrs>();
  return make_filled(spec, [start = a.start, step = a.step, repeat = int64_t(a.repeat)](int64_t i) {
    return start + double(i / repeat) * step;
  });
}
std::unique_ptr<Kernel> make_linspace(StepSpec &spec) {
  const auto &a = spec.attrs_as<RangeAttrs>();
  const int64_t intervals = std::max(a.endpoint ? a.num - 1 : a.num, 1);
  return make_filled(spec, [start = a.start, stop = *a.stop, intervals](int64_t i) {
    return i == intervals ? stop : start + (stop - start) / double(intervals) * double(i);
  });
}
std::unique_ptr<Kernel> make_eye(StepSpec &spec) {
  return make_filled(spec, [columns = std::max<int64_t>(spec.outputs[0].shape[1], 1), k = spec.attrs_as<EyeAttrs>().k](
                               int64_t i) { return i % columns - i / columns == k ? 1.0 : 0.0; });
}

COHORT_KERNEL_BY(cpu, _zeros, make_zeros);
COHORT_KERNEL_BY(cpu, _zeros_without_dtype, make_zeros);
COHORT_KERNEL_BY(cpu, _ones, make_ones);
COHORT_KERNEL_BY(cpu, _set_value, make_full);
COHORT_KERNEL_BY(cpu, _full, make_full);
COHORT_KERNEL_BY(cpu, _arange, make_arange);
COHORT_KERNEL_BY(cpu, _contrib_arange_like, make_arange_like);
COHORT_KERNEL_BY(cpu, _linspace, make_linspace);
COHORT_KERNEL_BY(cpu, _eye, make_eye);

}  // namespace
}  // namespace cohort
