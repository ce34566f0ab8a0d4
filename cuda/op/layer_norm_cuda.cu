// SPDX-License-Identifier: Apache-2.0
// LayerNorm: one warp per row. Gradients of gamma and beta are summed in a fixed number of parts, which are joined in
// order.
#include "cuda/op/rows.cuh"
#include "device/kernel_table.hpp"
#include "op/layer_norm.hpp"

namespace cohort {
namespace {

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

COHORT_KERNEL_BY(cuda, LayerNorm, make_floating<LayerNormCuda>).dtypes(kFloatTypes);
COHORT_KERNEL_BY(cuda, _backward_LayerNorm, make_floating<LayerNormBackwardCuda>).dtypes(kFloatTypes);

}  // namespace
}  // namespace cohort
