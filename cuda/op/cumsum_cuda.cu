// SPDX-License-Identifier: Apache-2.0
// _np_cumsum: sums along lines.
#include "cuda/op/rows.cuh"
#include "device/kernel_table.hpp"
#include "op/cumsum.hpp"
#include "op/pointwise_math.hpp"

namespace cohort {
namespace {

// ---- _np_cumsum along the middle of (outer, length, inner), floats in double; from the last element to the first for
// the backward step. First sums the parts of each line, then the sums before each part, then writes the running sums.

template <typename C, bool kBackward>
class CumsumCuda final : public Kernel {
 public:
  explicit CumsumCuda(StepSpec &spec) : in_(spec.inputs[0].dtype), out_(spec.outputs[0].dtype) {
    const Shape &data = (kBackward ? spec.outputs : spec.inputs)[0].shape;
    const auto &a = spec.attrs_as<CumsumAttrs>();
    e_ = {1, data.size(), 1};
    if (a.axis) e_ = rows_along(data, normalize_axis(*a.axis, data.rank(), "axis"));
    parts_ = parts_of_rows(e_);
    if (parts_ > 1) spec.scratch_bytes = size_t(e_.rows() * parts_) * sizeof(C);
  }
  void run(const Args &args, const Lane &lane) const override {
    const Elements from = elements_of(args.inputs[0], in_), to = elements_of(args.outputs[0], out_);
    const RowExtent e = e_;
    const int64_t parts = parts_;
    C *const before = parts > 1 ? static_cast<C *>(args.scratch) : nullptr;
    const auto place = [=] __device__(int64_t row, int64_t n) {
      return e.start(row) + (kBackward ? e.length - 1 - n : n) * e.inner;
    };
    if (before) {
      for_each(lane, e.rows() * parts, [=] __device__(int64_t i) {
        const int64_t row = i / parts, part = i % parts;
        C sum = 0;
        for (int64_t n = e.length * part / parts; n < e.length * (part + 1) / parts; ++n) {
          sum = pointwise::add(sum, load<C>(from, place(row, n)));
        }
        before[i] = sum;
      });
      for_each(lane, e.rows(), [=] __device__(int64_t row) {
        C sum = 0;
        for (int64_t part = 0; part < parts; ++part) {
          const C own = before[row * parts + part];
          before[row * parts + part] = sum;
          sum = pointwise::add(sum, own);
        }
      });
    }
    for_each(lane, e.rows() * parts, [=] __device__(int64_t i) {
      const int64_t row = i / parts, part = i % parts;
      C sum = before ? before[i] : C(0);
      for (int64_t n = e.length * part / parts; n < e.length * (part + 1) / parts; ++n) {
        sum = pointwise::add(sum, load<C>(from, place(row, n)));
        store(to, place(row, n), sum);
      }
    });
  }

 private:
  const Dtype in_, out_;
  RowExtent e_;
  int64_t parts_ = 1;
};

template <bool kBackward>
std::unique_ptr<Kernel> make_cumsum(StepSpec &spec) {
  if (dtype_is_float((kBackward ? spec.inputs : spec.outputs)[0].dtype)) {
    return std::make_unique<CumsumCuda<double, kBackward>>(spec);
  }
  return std::make_unique<CumsumCuda<int64_t, kBackward>>(spec);
}

COHORT_KERNEL_BY(cuda, _np_cumsum, make_cumsum<false>);
COHORT_KERNEL_BY(cuda, _backward__np_cumsum, make_cumsum<true>);

}  // namespace
}  // namespace cohort
