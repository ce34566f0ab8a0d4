// SPDX-License-Identifier: Apache-2.0
// InstanceNorm and GroupNorm: data as (batch, groups, length), where each (sample, group) is normalised separately.
#include "op/group_norm.hpp"

#include <algorithm>
#include <cmath>

#include "cpu/op/cpu_backend.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"
#include "kernels/partial_sums.hpp"

namespace cohort {
namespace {

struct GroupNormExtent {
  int64_t batch, groups, length;

  int64_t rows() const { return batch * groups; }
  int64_t grain() const { return 1 + 16384 / (length + 1); }
};

GroupNormExtent extent_of(const GroupNormAttrs &a, const Shape &data) {
  const int64_t groups = a.num_groups == 0 ? data[1] : a.num_groups;
  return {data[0], groups, groups == 0 ? 0 : data.size(1, data.rank()) / groups};
}

template <typename C>
class GroupNormForward {
 public:
  explicit GroupNormForward(const StepSpec &spec)
      : e_(extent_of(spec.attrs_as<GroupNormAttrs>(), spec.inputs[0].shape)),
        eps_(C(spec.attrs_as<GroupNormAttrs>().eps)) {}
  size_t extra() const { return 0; }
  void run(const C *const *in, C *const *out, C *, const Lane &lane) const {
    parallel_for(lane, e_.rows(), e_.grain(), [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const C *x = in[0] + row * e_.length;
        C *y = out[0] + row * e_.length;
        const C mean = sum_over<C>(e_.length, [=](int64_t i) { return x[i]; }) / C(e_.length);
        const C variance = sum_over<C>(e_.length, [=](int64_t i) { return (x[i] - mean) * (x[i] - mean); });
        const C std = std::sqrt(variance / C(e_.length) + eps_);
        const C scale = in[1][row % e_.groups] / std, offset = in[2][row % e_.groups];
        for (int64_t i = 0; i < e_.length; ++i) y[i] = (x[i] - mean) * scale + offset;
        if (out[1]) out[1][row] = mean;
        if (out[2]) out[2][row] = std;
      }
    });
  }

 private:
  const GroupNormExtent e_;
  const C eps_;
};

template <typename C>
class GroupNormBackward {
 public:
  explicit GroupNormBackward(const StepSpec &spec)
      : first_(int(spec.inputs.size()) - 4),
        e_(extent_of(spec.attrs_as<GroupNormAttrs>(), spec.inputs[size_t(first_)].shape)) {}
  size_t extra() const { return size_t(2 * e_.rows()); }
  void run(const C *const *in, C *const *out, C *extra, const Lane &lane) const {
    const C *const data = in[first_], *const gamma = in[first_ + 1];
    parallel_for(lane, e_.rows(), e_.grain(), [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const C *dy = in[0] + row * e_.length, *x = data + row * e_.length;
        const C mean = in[first_ + 2][row], std = in[first_ + 3][row];
        const auto normal = [=](int64_t i) { return (x[i] - mean) / std; };
        const C sum = sum_over<C>(e_.length, [=](int64_t i) { return dy[i]; });
        const C product = sum_over<C>(e_.length, [=](int64_t i) { return dy[i] * normal(i); });
        extra[2 * row] = product;
        extra[2 * row + 1] = sum;
        if (!out[0]) continue;
        C *dx = out[0] + row * e_.length;
        const C scale = gamma[row % e_.groups] / std, n = C(e_.length);
        for (int64_t i = 0; i < e_.length; ++i) dx[i] = (dy[i] - sum / n - normal(i) * (product / n)) * scale;
      }
    });
    for (int k = 0; k < 2; ++k) {
      if (!out[1 + k]) continue;
      for (int64_t g = 0; g < e_.groups; ++g) {
        C total = 0;
        for (int64_t n = 0; n < e_.batch; ++n) total += extra[2 * (n * e_.groups + g) + k];
        out[1 + k][g] = total;
      }
    }
  }

 private:
  const int first_;
  const GroupNormExtent e_;
};

COHORT_KERNEL_BY(cpu, InstanceNorm, make_compute<GroupNormForward>);
COHORT_KERNEL_BY(cpu, _backward_InstanceNorm, make_compute<GroupNormBackward>);
COHORT_KERNEL_BY(cpu, GroupNorm, make_compute<GroupNormForward>);
COHORT_KERNEL_BY(cpu, _backward_GroupNorm, make_compute<GroupNormBackward>);

}  // namespace
}  // namespace cohort
