// SPDX-License-Identifier: Apache-2.0
// Losses whose forward pass is simple: regression outputs, SVMOutput, softmax_cross_entropy; gradients of MakeLoss.
#include <algorithm>
#include <cmath>

#include "cuda/op/rows.cuh"
#include "device/kernel_table.hpp"
#include "op/float_math.hpp"
#include "op/make_loss.hpp"
#include "op/pointwise_math.hpp"
#include "op/regression_output.hpp"
#include "op/svm_output.hpp"

namespace cohort {
namespace {

template <template <typename> class K>
std::unique_ptr<Kernel> make(StepSpec &spec) {
  if (spec.outputs[0].dtype == Dtype::kFloat64) return std::make_unique<K<double>>(spec);
  return std::make_unique<K<float>>(spec);
}

// ---- regression: y = x or sigmoid(x); gradient y - label or its sign, times grad_scale / outputs of a sample

template <typename C>
class LogisticCuda final : public Kernel {
 public:
  explicit LogisticCuda(const StepSpec &spec)
      : count_(spec.outputs[0].shape.size()), in_(spec.inputs[0].dtype), out_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const Elements x = elements_of(args.inputs[0], in_), y = elements_of(args.outputs[0], out_);
    for_each(lane, count_, [=] __device__(int64_t i) { store(y, i, pointwise::sigmoid_of(load<C>(x, i))); });
  }

 private:
  const int64_t count_;
  const Dtype in_, out_;
};

// Inputs: label, output.
template <typename C, bool kSign>
class RegressionBackwardCuda final : public Kernel {
 public:
  explicit RegressionBackwardCuda(const StepSpec &spec)
      : count_(spec.outputs[0].shape.size()), label_(spec.inputs[0].dtype), dtype_(spec.outputs[0].dtype) {
    const Shape &shape = spec.outputs[0].shape;
    const int64_t per_sample = shape.rank() > 0 ? shape.size(1, shape.rank()) : 1;
    scale_ = C(spec.attrs_as<RegressionOutputAttrs>().grad_scale) / C(std::max<int64_t>(per_sample, 1));
  }
  void run(const Args &args, const Lane &lane) const override {
    const Elements label = elements_of(args.inputs[0], label_), y = elements_of(args.inputs[1], dtype_);
    const Elements grad = elements_of(args.outputs[0], dtype_);
    const C scale = scale_;
    for_each(lane, count_, [=] __device__(int64_t i) {
      const C error = load<C>(y, i) - load<C>(label, i);
      store(grad, i, scale * (kSign ? C(error > 0 ? 1 : -1) : error));
    });
  }

 private:
  const int64_t count_;
  C scale_;
  const Dtype label_, dtype_;
};
template <typename C>
using DifferenceBackward = RegressionBackwardCuda<C, false>;
template <typename C>
using SignBackward = RegressionBackwardCuda<C, true>;

// Hinge loss of the scores, one against all. Inputs: label, output.
template <typename C>
class SVMBackwardCuda final : public Kernel {
 public:
  explicit SVMBackwardCuda(const StepSpec &spec)
      : attrs_(spec.attrs_as<SVMOutputAttrs>()),
        rows_(spec.inputs[0].shape.size()),
        cols_(rows_ > 0 ? spec.outputs[0].shape.size() / rows_ : 0),
        label_(spec.inputs[0].dtype),
        dtype_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const Elements labels = elements_of(args.inputs[0], label_), y = elements_of(args.inputs[1], dtype_);
    const Elements grad = elements_of(args.outputs[0], dtype_);
    const C margin = C(attrs_.margin), scale = C(attrs_.regularization_coefficient);
    const bool linear = attrs_.use_linear;
    const int64_t cols = cols_;
    for_each(lane, rows_ * cols, [=] __device__(int64_t i) {
      // The score of the label shall be above the margin, all others below its negative.
      const C sign = i % cols == load_index(labels, i / cols) ? C(1) : C(-1);
      const C missing = margin - sign * load<C>(y, i);
      const C slope = missing > 0 ? (linear ? C(1) : C(2) * missing) : C(0);
      store(grad, i, -sign * slope * scale);
    });
  }

 private:
  const SVMOutputAttrs attrs_;
  const int64_t rows_, cols_;
  const Dtype label_, dtype_;
};

// Input: output. One warp counts the valid elements.
class MakeLossBackwardCuda final : public Kernel {
 public:
  explicit MakeLossBackwardCuda(StepSpec &spec)
      : attrs_(spec.attrs_as<MakeLossAttrs>()),
        count_(spec.outputs[0].shape.size()),
        batch_(spec.outputs[0].shape.size(0, std::max(spec.outputs[0].shape.rank() - 1, 0))),
        dtype_(spec.outputs[0].dtype) {
    spec.scratch_bytes = sizeof(double);
  }
  void run(const Args &args, const Lane &lane) const override {
    const Elements grad = elements_of(args.outputs[0], dtype_);
    double scale = attrs_.grad_scale;
    if (attrs_.normalization == MakeLossAttrs::kBatch) scale /= double(std::max<int64_t>(batch_, 1));
    double *const divisor =
        attrs_.normalization == MakeLossAttrs::kValid ? static_cast<double *>(args.scratch) : nullptr;
    if (divisor) {
      const Elements y = elements_of(args.inputs[0], dtype_);
      const double threshold = attrs_.valid_thresh;
      const int64_t count = count_;
      for_each_row(lane, 1, [=] __device__(int64_t) {
        const double valid =
            sum_along<double>(count, [=](int64_t i) { return load<double>(y, i) > threshold ? 1.0 : 0.0; });
        if (threadIdx.x == 0) *divisor = valid > 1 ? valid : 1;
      });
    }
    for_each(lane, count_, [=] __device__(int64_t i) { store(grad, i, divisor ? scale / *divisor : scale); });
  }

 private:
  const MakeLossAttrs attrs_;
  const int64_t count_, batch_;
  const Dtype dtype_;
};

// ---- softmax_cross_entropy: sum over rows of -log(softmax(row)[label])

// One loss per row in scratch memory, which one warp adds up in order.
template <typename C>
class CrossEntropyCuda final : public Kernel {
 public:
  explicit CrossEntropyCuda(StepSpec &spec)
      : rows_(spec.inputs[0].shape[0]),
        cols_(spec.inputs[0].shape[1]),
        data_(spec.inputs[0].dtype),
        label_(spec.inputs[1].dtype),
        out_(spec.outputs[0].dtype) {
    spec.scratch_bytes = size_t(rows_) * sizeof(double);
  }
  void run(const Args &args, const Lane &lane) const override {
    const Elements x = elements_of(args.inputs[0], data_), label = elements_of(args.inputs[1], label_);
    const Elements out = elements_of(args.outputs[0], out_);
    double *const losses = static_cast<double *>(args.scratch);
    const int64_t cols = cols_, rows = rows_;
    for_each_row(lane, rows, [=] __device__(int64_t row) {
      const auto value = [=](int64_t i) { return load<C>(x, row * cols + i); };
      const C top = largest_along<C>(cols, value);
      const C sum = sum_along<C>(cols, [=](int64_t i) { return pointwise::exp_of(value(i) - top); });
      const int64_t k = load_index(label, row);
      if (threadIdx.x != 0) return;
      const double p = k >= 0 && k < cols ? double(pointwise::exp_of(value(k) - top) / sum) : 1.0;
      losses[row] = k >= 0 && k < cols ? -log(p > 1e-8 ? p : 1e-8) : 0.0;
    });
    for_each_row(lane, 1, [=] __device__(int64_t) {
      const double loss = sum_along<double>(rows, [=](int64_t i) { return losses[i]; });
      if (threadIdx.x == 0) store(out, 0, loss);
    });
  }

 private:
  const int64_t rows_, cols_;
  const Dtype data_, label_, out_;
};

// Inputs: head gradient, data, label.
template <typename C>
class CrossEntropyBackwardCuda final : public Kernel {
 public:
  explicit CrossEntropyBackwardCuda(const StepSpec &spec)
      : rows_(spec.inputs[1].shape[0]),
        cols_(spec.inputs[1].shape[1]),
        head_(spec.inputs[0].dtype),
        data_(spec.inputs[1].dtype),
        label_(spec.inputs[2].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const Elements head = elements_of(args.inputs[0], head_), x = elements_of(args.inputs[1], data_);
    const Elements label = elements_of(args.inputs[2], label_), to = elements_of(args.outputs[0], data_);
    const int64_t cols = cols_;
    for_each_row(lane, rows_, [=] __device__(int64_t row) {
      const auto value = [=](int64_t i) { return load<C>(x, row * cols + i); };
      const C top = largest_along<C>(cols, value), dy = load<C>(head, 0);
      const C sum = sum_along<C>(cols, [=](int64_t i) { return pointwise::exp_of(value(i) - top); });
      const int64_t k = load_index(label, row);
      each_along(cols, [=](int64_t i) {
        store(to, row * cols + i, (pointwise::exp_of(value(i) - top) / sum - (i == k ? C(1) : C(0))) * dy);
      });
    });
  }

 private:
  const int64_t rows_, cols_;
  const Dtype head_, data_, label_;
};

COHORT_KERNEL_BY(cuda, LogisticRegressionOutput, make<LogisticCuda>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cuda, _backward_LinearRegressionOutput, make<DifferenceBackward>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cuda, _backward_LogisticRegressionOutput, make<DifferenceBackward>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cuda, _backward_MAERegressionOutput, make<SignBackward>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cuda, _backward_SVMOutput, make<SVMBackwardCuda>).output_dtypes(kFloatTypes);
COHORT_KERNEL(cuda, _backward_MakeLoss, MakeLossBackwardCuda).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cuda, softmax_cross_entropy, make<CrossEntropyCuda>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cuda, _backward_softmax_cross_entropy, make<CrossEntropyBackwardCuda>).output_dtypes(kFloatTypes);

}  // namespace
}  // namespace cohort
