// SPDX-License-Identifier: Apache-2.0
// L2Normalization: one warp per row.
#include "cuda/op/rows.cuh"
#include "device/kernel_table.hpp"
#include "op/l2_normalization.hpp"

namespace cohort {
namespace {

// ---- L2Normalization along the middle of (outer, length, inner)

RowExtent l2_extent(const L2NormalizationAttrs &a, const Shape &data) {
  using A = L2NormalizationAttrs;
  const int rank = data.rank();
  return {data.size(0, a.mode == A::kSpatial ? 2 : 1),
          a.mode == A::kInstance  ? data.size(1, rank)
          : a.mode == A::kChannel ? data[1]
                                  : data.size(2, rank),
          a.mode == A::kChannel ? data.size(2, rank) : 1};
}

// Backward: head gradient, data.
template <typename C, bool kBackward>
class L2Cuda final : public Kernel {
 public:
  explicit L2Cuda(const StepSpec &spec)
      : e_(l2_extent(spec.attrs_as<L2NormalizationAttrs>(), spec.inputs[0].shape)),
        eps_(C(spec.attrs_as<L2NormalizationAttrs>().eps)),
        data_(spec.inputs[kBackward ? 1 : 0].dtype),
        head_(spec.inputs[0].dtype),
        out_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const Elements data = elements_of(args.inputs[kBackward ? 1 : 0], data_);
    const Elements head = elements_of(args.inputs[0], head_), to = elements_of(args.outputs[0], out_);
    const RowExtent e = e_;
    const C eps = eps_;
    for_each_row(lane, e.rows(), [=] __device__(int64_t row) {
      const int64_t first = e.start(row);
      const auto x = [=](int64_t i) { return load<C>(data, first + i * e.inner); };
      const auto dy = [=](int64_t i) { return load<C>(head, first + i * e.inner); };
      const C norm = std::sqrt(sum_along<C>(e.length, [=](int64_t i) { return x(i) * x(i); }) + eps);
      const C along = kBackward ? sum_along<C>(e.length, [=](int64_t i) { return dy(i) * (x(i) / norm); }) : C(0);
      each_along(e.length, [=](int64_t i) {
        store(to, first + i * e.inner, kBackward ? (dy(i) - x(i) / norm * along) / norm : x(i) / norm);
      });
    });
  }

 private:
  const RowExtent e_;
  const C eps_;
  const Dtype data_, head_, out_;
};

template <typename C>
using L2Forward = L2Cuda<C, false>;
template <typename C>
using L2Backward = L2Cuda<C, true>;

COHORT_KERNEL_BY(cuda, L2Normalization, make_floating<L2Forward>);
COHORT_KERNEL_BY(cuda, _backward_L2Normalization, make_floating<L2Backward>);

}  // namespace
}  // namespace cohort
