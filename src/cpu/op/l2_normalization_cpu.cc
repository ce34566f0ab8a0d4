// SPDX-License-Identifier: Apache-2.0
// L2Normalization of data as (outer, length, inner), along length.
#include "op/l2_normalization.hpp"

#include <cmath>

#include "cpu/op/cpu_backend.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"
#include "kernels/partial_sums.hpp"

namespace cohort {
namespace {

using A = L2NormalizationAttrs;

struct L2NormExtent {
  int64_t outer, length, inner;

  L2NormExtent(const A &a, const Shape &data) {
    const int rank = data.rank();
    outer = data.size(0, a.mode == A::kSpatial ? 2 : 1);
    length = a.mode == A::kInstance ? data.size(1, rank) : a.mode == A::kChannel ? data[1] : data.size(2, rank);
    inner = a.mode == A::kChannel ? data.size(2, rank) : 1;
  }
  int64_t start(int64_t row) const { return row / inner * length * inner + row % inner; }
};

template <typename C, bool kBackward>
class Body {
 public:
  explicit Body(const StepSpec &spec) : e_(spec.attrs_as<A>(), spec.inputs[0].shape), eps_(C(spec.attrs_as<A>().eps)) {}
  size_t extra() const { return 0; }
  void run(const C *const *in, C *const *out, C *, const Lane &lane) const {
    const int64_t length = e_.length, step = e_.inner;
    parallel_for(lane, e_.outer * e_.inner, 1 + 16384 / (length + 1), [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const C *x = in[kBackward ? 1 : 0] + e_.start(row);
        C *to = out[0] + e_.start(row);
        const C square = sum_over<C>(length, [=](int64_t i) { return x[i * step] * x[i * step]; });
        const C norm = std::sqrt(square + eps_);
        if constexpr (kBackward) {
          const C *dy = in[0] + e_.start(row);
          const C along = sum_over<C>(length, [=](int64_t i) { return dy[i * step] * (x[i * step] / norm); });
          for (int64_t i = 0; i < length; ++i) to[i * step] = (dy[i * step] - x[i * step] / norm * along) / norm;
        } else {
          for (int64_t i = 0; i < length; ++i) to[i * step] = x[i * step] / norm;
        }
      }
    });
  }

 private:
  const L2NormExtent e_;
  const C eps_;
};

template <typename C>
using L2Forward = Body<C, false>;
template <typename C>
using L2Backward = Body<C, true>;

COHORT_KERNEL_BY(cpu, L2Normalization, make_compute<L2Forward>);
COHORT_KERNEL_BY(cpu, _backward_L2Normalization, make_compute<L2Backward>);

}  // namespace
}  // namespace cohort
