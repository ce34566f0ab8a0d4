// SPDX-License-Identifier: Apache-2.0
// khatri_rao.
#include "cuda/op/axis_lengths.hpp"
#include "cuda/op/elements.cuh"
#include "device/kernel_table.hpp"
#include "op/pointwise_math.hpp"

namespace cohort {
namespace {

// Row r of the output is the product of one row of each input: their indices are the digits of r, the last input's the
// fastest.
template <typename C>
class KhatriRaoCuda final : public Kernel {
 public:
  explicit KhatriRaoCuda(const StepSpec &spec)
      : rows_(spec.outputs[0].shape[0]), columns_(spec.outputs[0].shape[1]), dtype_(spec.outputs[0].dtype) {
    for (const TensorSpec &in : spec.inputs) lengths_.add(in.shape[0], 0, "khatri_rao");
  }
  void run(const Args &args, const Lane &lane) const override {
    const Elements out = elements_of(args.outputs[0], dtype_);
    const AxisLengths lengths = lengths_;
    const int64_t columns = columns_;
    for (int64_t i = lengths.num_axes; i-- > 0;) {
      const Elements x = elements_of(args.inputs[i], dtype_);
      int64_t each = 1;  // rows of the output for each of this input
      for (int64_t k = i + 1; k < lengths.num_axes; ++k) each *= lengths.lengths[k];
      const int64_t length = lengths.lengths[i];
      const bool first = i + 1 == lengths.num_axes;
      for_each(lane, rows_ * columns, [=] __device__(int64_t at) {
        const C factor = load<C>(x, at / columns / each % length * columns + at % columns);
        store(out, at, first ? factor : pointwise::mul(load<C>(out, at), factor));
      });
    }
  }

 private:
  const int64_t rows_, columns_;
  const Dtype dtype_;
  AxisLengths lengths_;
};
std::unique_ptr<Kernel> make_khatri_rao(StepSpec &spec) {
  return dispatch_compute(spec.outputs[0].dtype, true, [&](auto c) -> std::unique_ptr<Kernel> {
    return std::make_unique<KhatriRaoCuda<decltype(c)>>(spec);
  });
}
COHORT_KERNEL_BY(cuda, khatri_rao, make_khatri_rao);

}  // namespace
}  // namespace cohort
