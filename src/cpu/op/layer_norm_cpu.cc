// SPDX-License-Identifier: Apache-2.0
// LayerNorm over (outer, cols, inner), along cols: y = (x - mean) / std * gamma + beta with std = sqrt(variance + eps).
// Sums run in a fixed order over a few partial sums, which fill a vector register.
#include "op/layer_norm.hpp"

#include <algorithm>
#include <cmath>

#include "cpu/parallel.hpp"
#include "cpu/simd.hpp"
#include "device/kernel_table.hpp"
#include "kernels/partial_sums.hpp"

namespace cohort {
namespace {

struct LayerNormExtent {
  int64_t outer, cols, inner;
};

LayerNormExtent extent_of(const LayerNormAttrs &a, const Shape &data) {
  const int axis = normalize_axis(a.axis, data.rank(), "LayerNorm");
  return {data.size(0, axis), data[axis], data.size(axis + 1, data.rank())};
}

// Rows of contiguous elements of C.
template <typename C>
struct NormRows {
  static void run(const C *x, const C *gamma, const C *beta, C *y, int64_t rows, int64_t cols, C eps, C *means,
                  C *stds) {
    for (int64_t row = 0; row < rows; ++row, x += cols, y += cols) {
      const C mean = sum_over<C>(cols, [=](int64_t i) { return x[i]; }) / C(cols);
      const C variance = sum_over<C>(cols, [=](int64_t i) { return (x[i] - mean) * (x[i] - mean); }) / C(cols);
      const C std = std::sqrt(variance + eps), scale = 1 / std;
      COHORT_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < cols; ++i) y[i] = (x[i] - mean) * scale * gamma[i] + beta[i];
      if (means) means[row] = mean;
      if (stds) stds[row] = std;
    }
  }
};

template <typename T>
T *at_or_null(T *base, int64_t offset) {
  return base ? base + offset : nullptr;
}

class LayerNormForward final : public Kernel {
 public:
  explicit LayerNormForward(StepSpec &spec)
      : extent_(extent_of(spec.attrs_as<LayerNormAttrs>(), spec.inputs[0].shape)),
        eps_(double(spec.attrs_as<LayerNormAttrs>().eps)),
        dtype_(spec.inputs[0].dtype),
        rows_(best_version<NormRows<float>>()) {}

  void run(const Args &args, const Lane &lane) const override {
    if (dtype_ == Dtype::kFloat32 && extent_.inner == 1) {
      rows(args, lane);
    } else {
      dispatch_float(dtype_, "LayerNorm", [&](auto type) { columns<decltype(type)>(args, lane); });
    }
  }

 private:
  void rows(const Args &args, const Lane &lane) const {
    const int64_t cols = extent_.cols;
    const float *x = args.in<float>(0), *gamma = args.in<float>(1), *beta = args.in<float>(2);
    float *y = args.out<float>(0), *mean = args.out<float>(1), *std = args.out<float>(2);
    const float eps = float(eps_);
    parallel_for(lane, extent_.outer, 1 + 16384 / (cols + 1), [&](int64_t begin, int64_t end) {
      rows_(x + begin * cols, gamma, beta, y + begin * cols, end - begin, cols, eps, at_or_null(mean, begin),
            at_or_null(std, begin));
    });
  }

  template <typename T>
  void columns(const Args &args, const Lane &lane) const {
    using C = typename Accumulator<T>::type;
    const LayerNormExtent e = extent_;
    const T *data = args.in<T>(0), *gamma = args.in<T>(1), *beta = args.in<T>(2);
    T *result = args.out<T>(0), *mean_out = args.out<T>(1), *std_out = args.out<T>(2);
    const C eps = C(eps_);
    parallel_for(lane, e.outer * e.inner, 1 + 4096 / (e.cols + 1), [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t first = row / e.inner * e.cols * e.inner + row % e.inner;
        const T *x = data + first;
        T *y = result + first;
        const auto value = [=](int64_t i) { return cast_element<C>(x[i * e.inner]); };
        const C mean = sum_over<C>(e.cols, value) / C(e.cols);
        const C variance = sum_over<C>(e.cols, [=](int64_t i) { return (value(i) - mean) * (value(i) - mean); });
        const C std = std::sqrt(variance / C(e.cols) + eps);
        for (int64_t i = 0; i < e.cols; ++i) {
          y[i * e.inner] =
              cast_element<T>((value(i) - mean) / std * cast_element<C>(gamma[i]) + cast_element<C>(beta[i]));
        }
        if (mean_out) mean_out[row] = cast_element<T>(mean);
        if (std_out) std_out[row] = cast_element<T>(std);
      }
    });
  }

  const LayerNormExtent extent_;
  const double eps_;
  const Dtype dtype_;
  void (*const rows_)(const float *, const float *, const float *, float *, int64_t, int64_t, float, float *, float *);
};

// Computes dx of one row, and adds its share of the gradients of gamma and beta to sums.
struct NormRowBackward {
  static void run(const float *dy, const float *x, const float *gamma, float mean, float std, int64_t cols, float *dx,
                  float *dgamma, float *dbeta) {
    const float scale = 1 / std;
    if (dx) {
      const float sum = sum_over<float>(cols, [=](int64_t i) { return dy[i] * gamma[i]; }) / float(cols);
      const float product =
          sum_over<float>(cols, [=](int64_t i) { return dy[i] * gamma[i] * ((x[i] - mean) * scale); }) / float(cols);
      for (int64_t i = 0; i < cols; ++i) {
        dx[i] = (dy[i] * gamma[i] - sum - (x[i] - mean) * scale * product) * scale;
      }
    }
    for (int64_t i = 0; dgamma && i < cols; ++i) dgamma[i] += dy[i] * ((x[i] - mean) * scale);
    for (int64_t i = 0; dbeta && i < cols; ++i) dbeta[i] += dy[i];
  }
};

// Inputs: head gradients (1 or 3, of which the first counts), data, gamma, mean, std. Gradients of gamma and beta are
// summed over rows in kParts parts, whatever the number of threads, and then over the parts. dx may not be dy (no
// such pair is declared in-place).
class LayerNormBackward final : public Kernel {
 public:
  explicit LayerNormBackward(StepSpec &spec)
      : first_(spec.attrs_as<LayerNormAttrs>().output_mean_var ? 3 : 1),
        extent_(extent_of(spec.attrs_as<LayerNormAttrs>(), spec.inputs[0].shape)),
        dtype_(spec.inputs[0].dtype),
        row_(best_version<NormRowBackward>()) {
    if (by_rows()) spec.scratch_bytes = size_t(kParts * 2 * extent_.cols) * sizeof(float);
  }

  void run(const Args &args, const Lane &lane) const override {
    if (by_rows()) {
      rows(args, lane);
    } else {
      dispatch_float(dtype_, "_backward_LayerNorm", [&](auto type) { columns<decltype(type)>(args, lane); });
    }
  }

 private:
  static constexpr int64_t kParts = 16;
  bool by_rows() const { return dtype_ == Dtype::kFloat32 && extent_.inner == 1; }

  void rows(const Args &args, const Lane &lane) const {
    const int64_t cols = extent_.cols, outer = extent_.outer;
    const float *dy = args.in<float>(0), *x = args.in<float>(first_), *gamma = args.in<float>(first_ + 1);
    const float *mean = args.in<float>(first_ + 2), *std = args.in<float>(first_ + 3);
    float *dx = args.out<float>(0), *dgamma = args.out<float>(1), *dbeta = args.out<float>(2);
    auto *const parts = static_cast<float *>(args.scratch);
    parallel_for(lane, kParts, outer * cols < 32768 ? kParts : 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        float *const sums = parts + part * 2 * cols;
        std::fill_n(sums, 2 * cols, 0.0f);
        for (int64_t row = outer * part / kParts; row < outer * (part + 1) / kParts; ++row) {
          row_(dy + row * cols, x + row * cols, gamma, mean[row], std[row], cols, at_or_null(dx, row * cols),
               dgamma ? sums : nullptr, dbeta ? sums + cols : nullptr);
        }
      }
    });
    const auto total = [=](const float *from, float *to) {
      for (int64_t i = 0; i < cols; ++i) to[i] = from[i];
      for (int64_t part = 1; part < kParts; ++part) {
        for (int64_t i = 0; i < cols; ++i) to[i] += from[part * 2 * cols + i];
      }
    };
    if (dgamma) total(parts, dgamma);
    if (dbeta) total(parts + cols, dbeta);
  }

  template <typename T>
  void columns(const Args &args, const Lane &lane) const {
    using C = typename Accumulator<T>::type;
    const LayerNormExtent e = extent_;
    const T *head = args.in<T>(0), *data = args.in<T>(first_), *gamma = args.in<T>(first_ + 1);
    const T *means = args.in<T>(first_ + 2), *stds = args.in<T>(first_ + 3);
    T *grad = args.out<T>(0), *dgamma = args.out<T>(1), *dbeta = args.out<T>(2);
    const auto start = [=](int64_t row) { return row / e.inner * e.cols * e.inner + row % e.inner; };
    if (grad) {
      parallel_for(lane, e.outer * e.inner, 1 + 4096 / (e.cols + 1), [=](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const T *dy = head + start(row), *x = data + start(row);
          T *dx = grad + start(row);
          const C mean = cast_element<C>(means[row]), std = cast_element<C>(stds[row]);
          const auto g = [=](int64_t i) { return cast_element<C>(dy[i * e.inner]) * cast_element<C>(gamma[i]); };
          const auto normal = [=](int64_t i) { return (cast_element<C>(x[i * e.inner]) - mean) / std; };
          const C sum = sum_over<C>(e.cols, g) / C(e.cols);
          const C product = sum_over<C>(e.cols, [=](int64_t i) { return g(i) * normal(i); }) / C(e.cols);
          for (int64_t i = 0; i < e.cols; ++i) {
            dx[i * e.inner] = cast_element<T>((g(i) - sum - normal(i) * product) / std);
          }
        }
      });
    }
    if (!dgamma && !dbeta) return;
    parallel_for(lane, e.cols, 1 + 4096 / (e.outer * e.inner + 1), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        C product = 0, sum = 0;
        for (int64_t row = 0; row < e.outer * e.inner; ++row) {
          const C g = cast_element<C>(head[start(row) + i * e.inner]);
          const C x = cast_element<C>(data[start(row) + i * e.inner]);
          product += g * (x - cast_element<C>(means[row])) / cast_element<C>(stds[row]);
          sum += g;
        }
        if (dgamma) dgamma[i] = cast_element<T>(product);
        if (dbeta) dbeta[i] = cast_element<T>(sum);
      }
    });
  }

  const int first_;
  const LayerNormExtent extent_;
  const Dtype dtype_;
  void (*const row_)(const float *, const float *, const float *, float, float, int64_t, float *, float *, float *);
};

COHORT_KERNEL(cpu, LayerNorm, LayerNormForward).dtypes(kFloatTypes);
COHORT_KERNEL(cpu, _backward_LayerNorm, LayerNormBackward).dtypes(kFloatTypes);

}  // namespace
}  // namespace cohort
