// SPDX-License-Identifier: Apache-2.0
// LayerNorm. Rows of neighbouring elements are loaded as vectors; other rows have a warp each. Gradients of gamma and
// beta are summed in a fixed number of parts, which are joined in order.
#include "cuda/op/row_vectors.cuh"
#include "device/kernel_table.hpp"
#include "op/layer_norm.hpp"

namespace cohort {
namespace {

// ---- LayerNorm over (outer, length, inner), along length: y = (x - mean) / std * gamma + beta

template <typename T>
struct LayerNormRows {
  using C = ComputeOf<T>;
  const T *data, *gamma, *beta;
  T *y, *means, *stds;
  C eps;
  __device__ void operator()(const RowThreads<T> &threads, int64_t row) const {
    const T *const x = data + row * threads.length;
    const C count = C(threads.length), mean = threads.sum([](C value) { return value; }, x) / count;
    const C squares = threads.sum([=](C value) { return (value - mean) * (value - mean); }, x);
    const C std = std::sqrt(squares / count + eps);
    threads.write(
        y + row * threads.length, [=](int64_t, C value, C by, C shift) { return (value - mean) / std * by + shift; }, x,
        gamma, beta);
    if (threadIdx.x != 0) return;
    if (means) means[row] = from_compute<T>(mean);
    if (stds) stds[row] = from_compute<T>(std);
  }
};

// The gradient of the data.
template <typename T>
struct LayerNormGradientRows {
  using C = ComputeOf<T>;
  const T *head, *data, *gamma, *means, *stds;
  T *gradient;
  __device__ void operator()(const RowThreads<T> &threads, int64_t row) const {
    const T *const dy = head + row * threads.length, *const x = data + row * threads.length;
    const C mean = to_compute(means[row]), std = to_compute(stds[row]), count = C(threads.length);
    const C sum = threads.sum([](C g, C by) { return g * by; }, dy, gamma) / count;
    const C product =
        threads.sum([=](C g, C by, C value) { return g * by * ((value - mean) / std); }, dy, gamma, x) / count;
    threads.write(
        gradient + row * threads.length,
        [=](int64_t, C g, C by, C value) { return (g * by - sum - (value - mean) / std * product) / std; }, dy, gamma,
        x);
  }
};

// Part of the gradients of gamma and beta: sums over rows [rows * part / parts, rows * (part + 1) / parts).
template <typename T>
struct LayerNormColumns {
  using C = ComputeOf<T>;
  const T *head, *data, *means, *stds;
  C *parts;
  int64_t rows, length, num_parts;
  __device__ void operator()(int64_t k) const {
    const int64_t part = k / length, i = k % length, end = rows * (part + 1) / num_parts;
    C product = 0, sum = 0;
    for (int64_t row = rows * part / num_parts; row < end; ++row) {
      const C g = to_compute(head[row * length + i]), value = to_compute(data[row * length + i]);
      product += g * ((value - to_compute(means[row])) / to_compute(stds[row]));
      sum += g;
    }
    parts[2 * k] = product;
    parts[2 * k + 1] = sum;
  }
};

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
    if (are_vectors(e, dtype_)) {
      return with_row_type(dtype_, [&](auto type) {
        using T = decltype(type);
        const auto at = [](const Elements &array) { return static_cast<T *>(array.data); };
        for_each_row_of_vectors<T>(
            lane, e.rows(), e.length, {data.data, gamma.data, beta.data, y.data},
            LayerNormRows<T>{at(data), at(gamma), at(beta), at(y), at(mean_out), at(std_out), ComputeOf<T>(eps_)});
      });
    }
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
    const bool by_vectors = are_vectors(e, dtype_);
    const Elements to = elements_of(args.outputs[0], dtype_);
    if (to.data && by_vectors) {
      with_row_type(dtype_, [&](auto type) {
        using T = decltype(type);
        const auto at = [](const Elements &array) { return static_cast<T *>(array.data); };
        for_each_row_of_vectors<T>(
            lane, e.rows(), e.length, {head.data, data.data, gamma.data, to.data},
            LayerNormGradientRows<T>{at(head), at(data), at(gamma), at(means), at(stds), at(to)});
      });
    } else if (to.data) {
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
    if (by_vectors) {
      with_row_type(dtype_, [&](auto type) {
        using T = decltype(type);
        const auto at = [](const Elements &array) { return static_cast<const T *>(array.data); };
        for_each(lane, kParts * e.length,
                 LayerNormColumns<T>{at(head), at(data), at(means), at(stds), static_cast<ComputeOf<T> *>(args.scratch),
                                     e.rows(), e.length, kParts});
      });
    } else {
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
    }
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
