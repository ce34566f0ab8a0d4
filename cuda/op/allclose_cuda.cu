// SPDX-License-Identifier: Apache-2.0
// _contrib_allclose.
#include "cuda/op/elements.cuh"
#include "device/kernel_table.hpp"
#include "op/allclose.hpp"

namespace cohort {
namespace {

class AllcloseCuda final : public Kernel {
 public:
  explicit AllcloseCuda(const StepSpec &spec)
      : attrs_(spec.attrs_as<AllcloseAttrs>()),
        count_(spec.inputs[0].shape.size()),
        dtypes_{spec.inputs[0].dtype, spec.inputs[1].dtype} {}
  void run(const Args &args, const Lane &lane) const override {
    const Elements a = elements_of(args.inputs[0], dtypes_[0]), b = elements_of(args.inputs[1], dtypes_[1]);
    uint8_t *const out = args.out<uint8_t>(0);
    const double absolute = double(attrs_.atol), relative = double(attrs_.rtol);
    const bool equal_nan = attrs_.equal_nan;
    for_each(lane, 1, [=] __device__(int64_t) { *out = 1; });
    for_each(lane, count_, [=] __device__(int64_t i) {
      const double x = load<double>(a, i), y = load<double>(b, i);
      const bool both_nan = x != x && y != y;
      const bool near = x == y || (isfinite(y) && fabs(x - y) <= absolute + relative * fabs(y));
      if (!near && !(equal_nan && both_nan)) *out = 0;  // all threads that write, write the same
    });
  }

 private:
  const AllcloseAttrs attrs_;
  const int64_t count_;
  const Dtype dtypes_[2];
};
COHORT_KERNEL(cuda, _contrib_allclose, AllcloseCuda);

}  // namespace
}  // namespace cohort
