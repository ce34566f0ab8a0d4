// SPDX-License-Identifier: Apache-2.0
#include "op/softmax_output.hpp"

#include <algorithm>

#include "base/dtype_cast.hpp"
#include "cpu/op/softmax_rows.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

// data as (outer, cols, inner): one sample is a line along cols.
struct SoftmaxOutputExtent {
  int64_t outer, cols, inner;
  SoftmaxOutputExtent(const Shape &data, const SoftmaxOutputAttrs &a) {
    const int rank = data.rank();
    if (a.multi_output) {
      outer = data[0], cols = data[1], inner = data.size(2, rank);
    } else if (a.preserve_shape) {
      outer = data.size(0, rank - 1), cols = data[rank - 1], inner = 1;
    } else {
      outer = data[0], cols = data.size(1, rank), inner = 1;
    }
  }
};

// 16-bit floats and integers are computed in float, through scratch memory.
template <typename T>
using ComputeOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename T>
class SoftmaxOutputForward final : public Kernel {
 public:
  using C = ComputeOf<T>;
  explicit SoftmaxOutputForward(StepSpec &spec)
      : extent_(spec.inputs[0].shape, spec.attrs_as<SoftmaxOutputAttrs>()), count_(spec.inputs[0].shape.size()) {
    if (!std::is_same_v<C, T>) spec.scratch_bytes = size_t(count_) * sizeof(C);
  }
  void run(const Args &args, const Lane &lane) const override {
    const C *x;
    C *y;
    if constexpr (std::is_same_v<C, T>) {
      x = args.in<T>(0), y = args.out<T>(0);
    } else {
      C *const wide = static_cast<C *>(args.scratch);
      const T *const in = args.in<T>(0);
      for (int64_t i = 0; i < count_; ++i) wide[i] = cast_element<C>(in[i]);
      x = y = wide;
    }
    const int64_t slab = extent_.cols * extent_.inner;
    const int64_t grain = std::max<int64_t>(1, kExpensiveGrain / std::max<int64_t>(slab, 1));
    parallel_for(lane, extent_.outer, grain, [&](int64_t begin, int64_t end) {
      if (extent_.inner == 1) return softmax_.rows(x + begin * slab, y + begin * slab, end - begin, slab);
      for (int64_t i = begin; i < end; ++i) softmax_.slab(x + i * slab, y + i * slab, extent_.cols, extent_.inner);
    });
    if constexpr (!std::is_same_v<C, T>) {
      T *const out = args.out<T>(0);
      for (int64_t i = 0; i < count_; ++i) out[i] = cast_element<T>(y[i]);
    }
  }

 private:
  const SoftmaxOutputExtent extent_;
  const int64_t count_;
  const SoftmaxRows<C> softmax_;
};

template <typename T>
class SoftmaxOutputBackward final : public Kernel {
 public:
  using C = ComputeOf<T>;
  explicit SoftmaxOutputBackward(const StepSpec &spec)
      : attrs_(spec.attrs_as<SoftmaxOutputAttrs>()),
        extent_(spec.outputs[0].shape, attrs_),
        probabilities_(spec.inputs[attrs_.out_grad ? 1 : 0].shape == spec.outputs[0].shape),
        labels_(spec.inputs[attrs_.out_grad ? 1 : 0].shape.size()),
        ignored_(to_index(attrs_.ignore_label)),
        load_label_(load_block(spec.inputs[attrs_.out_grad ? 1 : 0].dtype, dtype_of<C>())) {}

  void run(const Args &args, const Lane &lane) const override {
    const T *const head = attrs_.out_grad ? args.in<T>(0) : nullptr;
    const void *const label = args.inputs[head ? 1 : 0];
    const T *const y = args.in<T>(head ? 2 : 1);
    T *const grad = args.out<T>(0);
    const int64_t slab = extent_.cols * extent_.inner;
    if (slab == 0) return;  // samples without classes may have no labels either
    const int64_t grain = std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(slab, 1));
    const C scale = probabilities_ ? C(attrs_.grad_scale) : C(attrs_.grad_scale) / C(divisor(label));
    parallel_for(lane, extent_.outer, grain, [&](int64_t begin, int64_t end) {
      C block[kPointwiseBlock];
      const int64_t step = probabilities_ ? slab : extent_.inner;  // of the label, per outer index
      for (int64_t first = begin * step; first < end * step; first += kPointwiseBlock) {
        const int64_t count = std::min(kPointwiseBlock, end * step - first), inner = extent_.inner;
        load_label_(label, first, block, count);
        for (int64_t i = 0; i < count; ++i) {
          const int64_t at = first + i;
          if (probabilities_) {
            grad[at] = cast_element<T>((C(y[at]) - block[i]) * scale);
          } else {
            one_sample(y, grad, inner == 1 ? at * slab : at / inner * slab + at % inner, block[i], scale);
          }
        }
      }
      if (!head) return;
      for (int64_t i = begin * slab; i < end * slab; ++i) grad[i] = cast_element<T>(C(grad[i]) * C(head[i]));
    });
  }

 private:
  // (y - wanted) * scale along one line.
  void one_sample(const T *y, T *grad, int64_t at, C label, C scale) const {
    const int64_t cols = extent_.cols, stride = extent_.inner;
    const int64_t k = to_index(label);
    if (attrs_.use_ignore && k == ignored_) {
      for (int64_t c = 0; c < cols; ++c) grad[at + c * stride] = T(C(0));
      return;
    }
    const bool smooth = attrs_.smooth_alpha > 0 && !attrs_.multi_output && cols > 1;
    const C others = smooth ? C(attrs_.smooth_alpha) / C(cols - 1) : C(0);
    const C wanted = C(1) - (smooth ? C(attrs_.smooth_alpha) : C(0));
    for (int64_t c = 0; c < cols; ++c)
      grad[at + c * stride] = cast_element<T>((C(y[at + c * stride]) - others) * scale);
    if (k >= 0 && k < cols) grad[at + k * stride] = cast_element<T>((C(y[at + k * stride]) - wanted) * scale);
  }

  // The divisor of the gradient for class indices.
  double divisor(const void *label) const {
    switch (attrs_.normalization) {
      case SoftmaxOutputAttrs::kBatch:
        return double(labels_);
      case SoftmaxOutputAttrs::kValid: {
        int64_t valid = 0;
        C block[kPointwiseBlock];
        for (int64_t first = 0; first < labels_; first += kPointwiseBlock) {
          const int64_t count = std::min(kPointwiseBlock, labels_ - first);
          load_label_(label, first, block, count);
          for (int64_t i = 0; i < count; ++i) valid += to_index(block[i]) != ignored_;
        }
        return double(std::max<int64_t>(valid, 1));
      }
      case SoftmaxOutputAttrs::kNull:
        break;
    }
    return attrs_.multi_output ? double(extent_.inner) : 1;
  }

  const SoftmaxOutputAttrs attrs_;
  const SoftmaxOutputExtent extent_;
  const bool probabilities_;  // the label has the shape of data
  const int64_t labels_, ignored_;
  const LoadBlock load_label_;
};

template <template <typename> class K>
std::unique_ptr<Kernel> make(StepSpec &spec) {
  return dispatch_float(spec.outputs[0].dtype, "SoftmaxOutput",
                        [&](auto t) -> std::unique_ptr<Kernel> { return std::make_unique<K<decltype(t)>>(spec); });
}

COHORT_KERNEL_BY(cpu, SoftmaxOutput, make<SoftmaxOutputForward>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, _backward_SoftmaxOutput, make<SoftmaxOutputBackward>).output_dtypes(kFloatTypes);

}  // namespace
}  // namespace cohort
