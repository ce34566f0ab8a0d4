// SPDX-License-Identifier: Apache-2.0
// _histogram.
#include "cuda/op/elements.cuh"
#include "device/kernel_table.hpp"
#include "kernels/backend.hpp"
#include "op/histogram.hpp"

namespace cohort {
namespace {

// Elements are compared with the edges of the second output, rounded to its type. Counts are integers, so atomic
// additions give the same result in any order.
class HistogramCuda final : public Kernel {
 public:
  explicit HistogramCuda(StepSpec &spec)
      : attrs_(spec.attrs_as<HistogramAttrs>()),
        count_(spec.inputs[0].shape.size()),
        bins_(spec.outputs[0].shape[0]),
        data_(spec.inputs[0].dtype),
        given_(spec.inputs.size() > 1 ? spec.inputs[1].dtype : Dtype::kNone),
        edges_(spec.outputs[1].dtype) {
    spec.scratch_bytes = size_t(bins_ + 1) * sizeof(double);
  }
  void run(const Args &args, const Lane &lane) const override {
    const Elements data = elements_of(args.inputs[0], data_);
    // If the edges are not wanted, they are rounded in scratch memory.
    const Elements edges = elements_of(args.outputs[1] ? args.outputs[1] : args.scratch, edges_);
    const Elements given = elements_of(attrs_.bin_cnt ? nullptr : args.inputs[1], given_);
    const int64_t bins = bins_;
    const double low = attrs_.low, high = attrs_.high;
    for_each(lane, bins + 1, [=] __device__(int64_t i) {
      const double edge = i == bins ? high : low + double(i) * (high - low) / double(bins);
      store(edges, i, given.data ? load<double>(given, i) : edge);
    });
    int64_t *const counts = args.out<int64_t>(0);
    if (!counts) return;
    zero_bytes(lane, counts, size_t(bins) * sizeof(int64_t));
    for_each(lane, count_, [=] __device__(int64_t i) {
      const double first = load<double>(edges, 0), last = load<double>(edges, bins);
      const double x = load<double>(data, i);
      if (!(x >= first && x <= last)) return;  // NaN is in no bin
      int64_t begin = 0, end = bins + 1;
      while (begin < end) {
        const int64_t middle = (begin + end) / 2;
        if (x < load<double>(edges, middle)) {
          end = middle;
        } else {
          begin = middle + 1;
        }
      }
      const int64_t own = begin - 1 < 0 ? 0 : begin - 1 < bins ? begin - 1 : bins - 1;
      atomicAdd(reinterpret_cast<unsigned long long *>(counts) + own, 1ull);
    });
  }

 private:
  const HistogramAttrs attrs_;
  const int64_t count_, bins_;
  const Dtype data_, given_, edges_;
};
COHORT_KERNEL(cuda, _histogram, HistogramCuda);

}  // namespace
}  // namespace cohort
