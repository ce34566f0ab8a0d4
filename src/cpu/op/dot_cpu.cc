// SPDX-License-Identifier: Apache-2.0
#include "op/dot.hpp"

#include <algorithm>

#include "cpu/op/compute_kernel.hpp"
#include "cpu/op/gemm.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

// Many small products are shared out by batch, one large one by oneDNN.
template <typename C>
void multiply(const Lane &lane, int64_t batch, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const C *a,
              const C *b, C *c) {
  const int64_t work = std::max<int64_t>(m * n * k, 1);
  if (batch == 1) return gemm(ta, tb, m, n, k, a, b, C(0), c);
  parallel_for(lane, batch, std::max<int64_t>(1, 65536 / work), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) gemm(ta, tb, m, n, k, a + i * m * k, b + i * k * n, C(0), c + i * m * n);
  });
}

template <typename C, bool kBatched>
class Forward {
 public:
  explicit Forward(const StepSpec &spec)
      : attrs_(spec.attrs_as<DotAttrs>()),
        extent_(dot_extent(attrs_, spec.inputs[0].shape, spec.inputs[1].shape, kBatched)) {}
  size_t extra() const { return 0; }
  void run(const C *const *in, C *const *out, C *, const Lane &lane) const {
    const DotExtent &e = extent_;
    multiply(lane, e.batch, attrs_.transpose_a, attrs_.transpose_b, e.m, e.n, e.k, in[0], in[1], out[0]);
  }

 private:
  const DotAttrs attrs_;
  const DotExtent extent_;
};

template <typename C, bool kBatched>
class Backward {
 public:
  explicit Backward(const StepSpec &spec)
      : attrs_(spec.attrs_as<DotAttrs>()),
        extent_(dot_extent(attrs_, spec.inputs[1].shape, spec.inputs[2].shape, kBatched)) {}
  size_t extra() const { return 0; }
  void run(const C *const *in, C *const *out, C *, const Lane &lane) const {
    const C *const head = in[0], *const a = in[1], *const b = in[2];
    const bool ta = attrs_.transpose_a, tb = attrs_.transpose_b;
    const DotExtent &e = extent_;
    if (out[0] && ta) multiply(lane, e.batch, tb, true, e.k, e.m, e.n, b, head, out[0]);
    if (out[0] && !ta) multiply(lane, e.batch, false, !tb, e.m, e.k, e.n, head, b, out[0]);
    if (out[1] && tb) multiply(lane, e.batch, true, ta, e.n, e.k, e.m, head, a, out[1]);
    if (out[1] && !tb) multiply(lane, e.batch, !ta, false, e.k, e.n, e.m, a, head, out[1]);
  }

 private:
  const DotAttrs attrs_;
  const DotExtent extent_;
};

template <typename C>
using DotForward = Forward<C, false>;
template <typename C>
using DotBackward = Backward<C, false>;
template <typename C>
using BatchDotForward = Forward<C, true>;
template <typename C>
using BatchDotBackward = Backward<C, true>;

COHORT_KERNEL_BY(cpu, dot, make_compute<DotForward>);
COHORT_KERNEL_BY(cpu, _backward_dot, make_compute<DotBackward>);
COHORT_KERNEL_BY(cpu, batch_dot, make_compute<BatchDotForward>);
COHORT_KERNEL_BY(cpu, _backward_batch_dot, make_compute<BatchDotBackward>);

}  // namespace
}  // namespace cohort
