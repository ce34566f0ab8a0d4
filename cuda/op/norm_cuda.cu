// SPDX-License-Identifier: Apache-2.0
// LayerNorm, GroupNorm, InstanceNorm and L2Normalization: a warp a row. Gradients of gamma and beta are summed in a
// fixed number of parts, which are joined in order.
#include "cuda/op/rows.cuh"
#include "device/kernel_table.hpp"
#include "op/group_norm.hpp"
#include "op/l2_normalization.hpp"
#include "op/layer_norm.hpp"

namespace cohort {
namespace {

Elements input(const StepSpec &spec, int i) { return elements_of(nullptr, spec.inputs[size_t(i)].dtype); }

Elements at(const Elements &typed, const void *data) { return {const_cast<void *>(data), typed.dtype}; }

// ---- LayerNorm over (outer, length, inner), along length: y = (x - mean) / std * gamma + beta

template <typename C>
class LayerNormCuda final : public Kernel {
 public:
  explicit LayerNormCuda(const StepSpec &spec)
      : e_(rows_along(spec.inputs[0].shape,
                      normalize_axis(spec.attrs_as<LayerNormAttrs>().axis, spec.inputs[0].shape.rank(), "LayerNorm"))),
        eps_(C(spec.attrs_as<LayerNormAttrs>().eps)),
        dtype_(spec.inputs[0].dtype) {}

  void run(const Args &args, const Lane &lane) const override {
    const auto in = [&](int i) { return elements_of(args.inputs[i], dtype_); };
    const auto out = [&](int i) { return elements_of(args.outputs[i], dtype_); };
    const Elements data = in(0), gamma = in(1), beta = in(2), y = out(0), mean_out = out(1), std_out = out(2);
    const RowExtent e = e_;
    const C eps = eps_;
    for_each_row(lane, e.rows(), [=] __device__(int64_t row) {
      const int64_t first = e.start(row);
      const auto x = [=](int64_t i) { return load<C>(data, first + i * e.inner); };
      const C mean = sum_along<C>(e.length, x) / C(e.length);
      const C squares = sum_along<C>(e.length, [=](int64_t i) { return (x(i) - mean) * (x(i) - mean); });
      const C std = std::sqrt(squares / C(e.length) + eps);
      each_along(e.length, [=](int64_t i) {
        store(y, first + i * e.inner, (x(i) - mean) / std * load<C>(gamma, i) + load<C>(beta, i));
      });
      if (threadIdx.x != 0) return;
      if (mean_out.data) store(mean_out, row, mean);
      if (std_out.data) store(std_out, row, std);
    });
  }

 private:
  const RowExtent e_;
  const C eps_;
  const Dtype dtype_;
};

// Inputs: head gradients (1 or 3, the first counts), data, gamma, mean, std.
template <typename C>
class LayerNormBackwardCuda final : public Kernel {
 public:
  explicit LayerNormBackwardCuda(StepSpec &spec)
      : first_(spec.attrs_as<LayerNormAttrs>().output_mean_var ? 3 : 1),
        e_(rows_along(spec.inputs[size_t(first_)].shape,
                      normalize_axis(spec.attrs_as<LayerNormAttrs>().axis, spec.inputs[size_t(first_)].shape.rank(),
                                     "LayerNorm"))),
        dtype_(spec.inputs[0].dtype) {
    spec.scratch_bytes = size_t(2 * kParts * e_.length) * sizeof(C);
  }

  void run(const Args &args, const Lane &lane) const override {
    const auto in = [&](int i) { return elements_of(args.inputs[i], dtype_); };
    const Elements head = in(0), data = in(first_), gamma = in(first_ + 1), means = in(first_ + 2),
                   stds = in(first_ + 3);
    const RowExtent e = e_;
    if (args.outputs[0]) {
      const Elements to = elements_of(args.outputs[0], dtype_);
      for_each_row(lane, e.rows(), [=] __device__(int64_t row) {
        const int64_t first = e.start(row);
        const C mean = load<C>(means, row), std = load<C>(stds, row);
        const auto g = [=](int64_t i) { return load<C>(head, first + i * e.inner) * load<C>(gamma, i); };
        const auto normal = [=](int64_t i) { return (load<C>(data, first + i * e.inner) - mean) / std; };
        const C sum = sum_along<C>(e.length, g) / C(e.length);
        const C product = sum_along<C>(e.length, [=](int64_t i) { return g(i) * normal(i); }) / C(e.length);
        each_along(e.length,
                   [=](int64_t i) { store(to, first + i * e.inner, (g(i) - sum - normal(i) * product) / std); });
      });
    }
    const Elements dgamma = elements_of(args.outputs[1], dtype_), dbeta = elements_of(args.outputs[2], dtype_);
    if (!dgamma.data && !dbeta.data) return;
    C *const parts = static_cast<C *>(args.scratch);
    for_each(lane, kParts * e.length, [=] __device__(int64_t k) {
      const int64_t part = k / e.length, i = k % e.length, rows = e.rows();
      C product = 0, sum = 0;
      for (int64_t row = rows * part / kParts; row < rows * (part + 1) / kParts; ++row) {
        const int64_t place = e.start(row) + i * e.inner;
        const C g = load<C>(head, place);
        product += g * ((load<C>(data, place) - load<C>(means, row)) / load<C>(stds, row));
        sum += g;
      }
      parts[2 * k] = product;
      parts[2 * k + 1] = sum;
    });
    for_each(lane, e.length, [=] __device__(int64_t i) {
      C product = 0, sum = 0;
      for (int64_t part = 0; part < kParts; ++part) {
        product += parts[2 * (part * e.length + i)];
        sum += parts[2 * (part * e.length + i) + 1];
      }
      if (dgamma.data) store(dgamma, i, product);
      if (dbeta.data) store(dbeta, i, sum);
    });
  }

 private:
  static constexpr int64_t kParts = 64;
  const int first_;
  const RowExtent e_;
  const Dtype dtype_;
};

// ---- InstanceNorm and GroupNorm: (batch, groups, length), each (sample, group) for itself

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

template <template <typename> class K>
std::unique_ptr<Kernel> make(StepSpec &spec) {
  return dispatch_compute(spec.inputs[0].dtype, false, [&](auto c) -> std::unique_ptr<Kernel> {
    if constexpr (std::is_floating_point_v<decltype(c)>) return std::make_unique<K<decltype(c)>>(spec);
    return nullptr;
  });
}
template <typename C>
using L2Forward = L2Cuda<C, false>;
template <typename C>
using L2Backward = L2Cuda<C, true>;

COHORT_KERNEL_BY(cuda, LayerNorm, make<LayerNormCuda>).dtypes(kFloatTypes);
COHORT_KERNEL_BY(cuda, _backward_LayerNorm, make<LayerNormBackwardCuda>).dtypes(kFloatTypes);
COHORT_KERNEL_BY(cuda, InstanceNorm, make<GroupNormCuda>);
COHORT_KERNEL_BY(cuda, _backward_InstanceNorm, make<GroupNormBackwardCuda>);
COHORT_KERNEL_BY(cuda, GroupNorm, make<GroupNormCuda>);
COHORT_KERNEL_BY(cuda, _backward_GroupNorm, make<GroupNormBackwardCuda>);
COHORT_KERNEL_BY(cuda, L2Normalization, make<L2Forward>);
COHORT_KERNEL_BY(cuda, _backward_L2Normalization, make<L2Backward>);

}  // namespace
}  // namespace cohort
