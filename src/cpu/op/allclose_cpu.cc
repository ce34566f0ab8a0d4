// SPDX-License-Identifier: Apache-2.0
#include "op/allclose.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "cpu/op/pointwise_loops.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

class Allclose final : public Kernel {
 public:
  explicit Allclose(const StepSpec &spec)
      : attrs_(spec.attrs_as<AllcloseAttrs>()),
        count_(spec.inputs[0].shape.size()),
        load_(load_block(spec.inputs[0].dtype, Dtype::kFloat64)) {}
  void run(const Args &args, const Lane &lane) const override {
    std::atomic<bool> close{true};
    parallel_for(lane, count_, kCheapGrain, [&](int64_t begin, int64_t end) {
      double a[kPointwiseBlock], b[kPointwiseBlock];
      for (int64_t i = begin; i < end && close.load(std::memory_order_relaxed); i += kPointwiseBlock) {
        const int64_t count = std::min(kPointwiseBlock, end - i);
        load_(args.inputs[0], i, a, count);
        load_(args.inputs[1], i, b, count);
        for (int64_t k = 0; k < count; ++k) {
          if (!is_close(a[k], b[k])) close.store(false, std::memory_order_relaxed);
        }
      }
    });
    args.out<uint8_t>(0)[0] = close.load() ? 1 : 0;
  }

 private:
  bool is_close(double a, double b) const {
    if (a == b) return true;  // infinities, too
    if (std::isnan(a) || std::isnan(b)) return attrs_.equal_nan && std::isnan(a) && std::isnan(b);
    return std::isfinite(b) && std::fabs(a - b) <= double(attrs_.atol) + double(attrs_.rtol) * std::fabs(b);
  }

  const AllcloseAttrs attrs_;
  const int64_t count_;
  const LoadBlock load_;
};

COHORT_KERNEL(cpu, _contrib_allclose, Allclose);

}  // namespace
}  // namespace cohort
