// SPDX-License-Identifier: Apache-2.0
// moments in double, first the means and then the squares: a single pass would cancel. One warp per result.
#include "cuda/op/rows.cuh"
#include "device/kernel_table.hpp"
#include "op/moments.hpp"
#include "op/reduce.hpp"

namespace cohort {
namespace {

// Some axes of an array. The i-th element along them lies at offset(i).
struct SomeAxes {
  int64_t num_axes = 0, count = 1;
  int64_t lengths[kMaxAxes] = {}, strides[kMaxAxes] = {};

  void add(int64_t length, int64_t stride) {
    lengths[num_axes] = length;
    strides[num_axes++] = stride;
    count *= length;
  }
  COHORT_HOST_DEVICE int64_t offset(int64_t i) const {
    int64_t at = 0;
    for (int64_t axis = num_axes - 1; axis >= 0; --axis) {
      at += i % lengths[axis] * strides[axis];
      i /= lengths[axis];
    }
    return at;
  }
};

struct MomentAxes {
  SomeAxes kept, dropped;  // by their strides in the data
  SomeAxes all;            // by their strides in the result; 0 along those that are dropped

  MomentAxes(const MomentsAttrs &attrs, const Shape &data) {
    const std::vector<bool> drops = axes_to_reduce(attrs.axes, false, data.rank(), "axes");
    int64_t stride = data.size(), result = 1;
    for (int axis = 0; axis < data.rank(); ++axis) {
      if (!drops[size_t(axis)]) result *= data[axis];
    }
    for (int axis = 0; axis < data.rank(); ++axis) {
      const bool drop = drops[size_t(axis)];
      if (data[axis] > 0) stride /= data[axis];
      if (!drop && data[axis] > 0) result /= data[axis];
      (drop ? dropped : kept).add(data[axis], stride);
      all.add(data[axis], drop ? 0 : result);
    }
  }
};

class MomentsCuda final : public Kernel {
 public:
  explicit MomentsCuda(const StepSpec &spec)
      : axes_(spec.attrs_as<MomentsAttrs>(), spec.inputs[0].shape),
        data_(spec.inputs[0].dtype),
        result_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const Elements data = elements_of(args.inputs[0], data_);
    const Elements means = elements_of(args.outputs[0], result_), variances = elements_of(args.outputs[1], result_);
    const SomeAxes kept = axes_.kept, dropped = axes_.dropped;
    for_each_row(lane, kept.count, [=] __device__(int64_t row) {
      const int64_t base = kept.offset(row);
      const auto x = [&](int64_t i) { return load<double>(data, base + dropped.offset(i)); };
      const double count = double(dropped.count), mean = sum_along<double>(dropped.count, x) / count;
      const double squares = sum_along<double>(dropped.count, [&](int64_t i) { return (x(i) - mean) * (x(i) - mean); });
      if (threadIdx.x != 0) return;
      if (means.data) store(means, row, mean);
      if (variances.data) store(variances, row, squares / count);
    });
  }

 private:
  const MomentAxes axes_;
  const Dtype data_, result_;
};

// (g_mean + 2 g_variance (x - mean)) / elements per result.
class MomentsBackwardCuda final : public Kernel {
 public:
  explicit MomentsBackwardCuda(const StepSpec &spec)
      : axes_(spec.attrs_as<MomentsAttrs>(), spec.outputs[0].shape), grad_(spec.outputs[0].dtype) {
    for (size_t i = 0; i < 4; ++i) dtypes_[i] = spec.inputs[i].dtype;
  }
  void run(const Args &args, const Lane &lane) const override {
    const auto in = [&](int i) { return elements_of(args.inputs[i], dtypes_[i]); };
    const Elements of_means = in(0), of_variances = in(1), data = in(2), means = in(3);
    const Elements grad = elements_of(args.outputs[0], grad_);
    const SomeAxes all = axes_.all;
    const double count = double(axes_.dropped.count);
    for_each(lane, all.count, [=] __device__(int64_t i) {
      const int64_t at = all.offset(i);
      const double away = load<double>(data, i) - load<double>(means, at);
      store(grad, i, (load<double>(of_means, at) + 2 * load<double>(of_variances, at) * away) / count);
    });
  }

 private:
  const MomentAxes axes_;
  const Dtype grad_;
  Dtype dtypes_[4];
};

COHORT_KERNEL(cuda, moments, MomentsCuda);
COHORT_KERNEL(cuda, _backward_moments, MomentsBackwardCuda);

}  // namespace
}  // namespace cohort
