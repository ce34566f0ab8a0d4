// SPDX-License-Identifier: Apache-2.0
// GroupNorm and InstanceNorm: a warp for each group of a sample.
#include "cuda/op/rows.cuh"
#include "device/kernel_table.hpp"
#include "op/group_norm.hpp"

namespace cohort {
namespace {

Elements input(const StepSpec &spec, int i) { return elements_of(nullptr, spec.inputs[size_t(i)].dtype); }

Elements at(const Elements &typed, const void *data) { return {const_cast<void *>(data), typed.dtype}; }

// ---- InstanceNorm and GroupNorm: (batch, groups, length), each (sample, group) by itself

struct Groups {
  int64_t batch, groups, length;
  Groups(const GroupNormAttrs &a, const Shape &data) : batch(data[0]) {
    groups = a.num_groups == 0 ? data[1] : a.num_groups;
    length = groups == 0 ? 0 : data.size(1, data.rank()) / groups;
  }
};

template <typename C>
class GroupNormCuda final : public Kernel {
 public:
  explicit GroupNormCuda(const StepSpec &spec)
      : e_(spec.attrs_as<GroupNormAttrs>(), spec.inputs[0].shape), eps_(C(spec.attrs_as<GroupNormAttrs>().eps)) {
    for (int i = 0; i < 3; ++i) in_[i] = input(spec, i);
    for (size_t i = 0; i < spec.outputs.size(); ++i) out_[i] = elements_of(nullptr, spec.outputs[i].dtype);
    num_outputs_ = int(spec.outputs.size());
  }
  void run(const Args &args, const Lane &lane) const override {
    const Elements data = at(in_[0], args.inputs[0]), gamma = at(in_[1], args.inputs[1]);
    const Elements beta = at(in_[2], args.inputs[2]), y = at(out_[0], args.outputs[0]);
    const Elements mean_out = at(out_[1], num_outputs_ > 1 ? args.outputs[1] : nullptr);
    const Elements std_out = at(out_[2], num_outputs_ > 2 ? args.outputs[2] : nullptr);
    const Groups e = e_;
    const C eps = eps_;
    for_each_row(lane, e.batch * e.groups, [=] __device__(int64_t row) {
      const auto x = [=](int64_t i) { return load<C>(data, row * e.length + i); };
      const C mean = sum_along<C>(e.length, x) / C(e.length);
      const C squares = sum_along<C>(e.length, [=](int64_t i) { return (x(i) - mean) * (x(i) - mean); });
      const C std = std::sqrt(squares / C(e.length) + eps);
      const C scale = load<C>(gamma, row % e.groups) / std, offset = load<C>(beta, row % e.groups);
      each_along(e.length, [=](int64_t i) { store(y, row * e.length + i, (x(i) - mean) * scale + offset); });
      if (threadIdx.x != 0) return;
      if (mean_out.data) store(mean_out, row, mean);
      if (std_out.data) store(std_out, row, std);
    });
  }

 private:
  const Groups e_;
  const C eps_;
  Elements in_[3], out_[3] = {};
  int num_outputs_;
};

template <typename C>
class GroupNormBackwardCuda final : public Kernel {
 public:
  explicit GroupNormBackwardCuda(StepSpec &spec)
      : first_(int(spec.inputs.size()) - 4),
        e_(spec.attrs_as<GroupNormAttrs>(), spec.inputs[size_t(first_)].shape),
        head_(input(spec, 0)),
        dtypes_{spec.outputs[0].dtype, spec.outputs[1].dtype, spec.outputs[2].dtype} {
    for (int i = 0; i < 4; ++i) in_[i] = input(spec, first_ + i);
    spec.scratch_bytes = size_t(2 * e_.batch * e_.groups) * sizeof(C);
  }
  void run(const Args &args, const Lane &lane) const override {
    const Elements head = at(head_, args.inputs[0]), data = at(in_[0], args.inputs[first_]);
    const Elements gamma = at(in_[1], args.inputs[first_ + 1]), means = at(in_[2], args.inputs[first_ + 2]);
    const Elements stds = at(in_[3], args.inputs[first_ + 3]), to = elements_of(args.outputs[0], dtypes_[0]);
    const Groups e = e_;
    C *const sums = static_cast<C *>(args.scratch);
    for_each_row(lane, e.batch * e.groups, [=] __device__(int64_t row) {
      const C mean = load<C>(means, row), std = load<C>(stds, row);
      const auto dy = [=](int64_t i) { return load<C>(head, row * e.length + i); };
      const auto normal = [=](int64_t i) { return (load<C>(data, row * e.length + i) - mean) / std; };
      const C sum = sum_along<C>(e.length, dy);
      const C product = sum_along<C>(e.length, [=](int64_t i) { return dy(i) * normal(i); });
      if (threadIdx.x == 0) {
        sums[2 * row] = product;
        sums[2 * row + 1] = sum;
      }
      if (!to.data) return;
      const C scale = load<C>(gamma, row % e.groups) / std, n = C(e.length);
      each_along(e.length, [=](int64_t i) {
        store(to, row * e.length + i, (dy(i) - sum / n - normal(i) * (product / n)) * scale);
      });
    });
    const Elements dgamma = elements_of(args.outputs[1], dtypes_[1]), dbeta = elements_of(args.outputs[2], dtypes_[2]);
    if (!dgamma.data && !dbeta.data) return;
    for_each(lane, e.groups, [=] __device__(int64_t g) {
      C product = 0, sum = 0;
      for (int64_t n = 0; n < e.batch; ++n) {
        product += sums[2 * (n * e.groups + g)];
        sum += sums[2 * (n * e.groups + g) + 1];
      }
      if (dgamma.data) store(dgamma, g, product);
      if (dbeta.data) store(dbeta, g, sum);
    });
  }

 private:
  const int first_;
  const Groups e_;
  Elements in_[4];
  const Elements head_;
  const Dtype dtypes_[3];
};

COHORT_KERNEL_BY(cuda, InstanceNorm, make_floating<GroupNormCuda>);
COHORT_KERNEL_BY(cuda, _backward_InstanceNorm, make_floating<GroupNormBackwardCuda>);
COHORT_KERNEL_BY(cuda, GroupNorm, make_floating<GroupNormCuda>);
COHORT_KERNEL_BY(cuda, _backward_GroupNorm, make_floating<GroupNormBackwardCuda>);

}  // namespace
}  // namespace cohort
