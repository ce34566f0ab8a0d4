// SPDX-License-Identifier: Apache-2.0
// Losses with a simple forward pass: regression outputs, SVMOutput, softmax_cross_entropy; gradients of MakeLoss and
// make_loss.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/dtype_cast.hpp"
#include "cpu/op/softmax_rows.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"
#include "op/make_loss.hpp"
#include "op/regression_output.hpp"
#include "op/svm_output.hpp"

namespace cohort {
namespace {

template <typename T>
using ComputeOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

// ---- regression: y = x or sigmoid(x); gradient y - label or its sign, times grad_scale / outputs per sample
// ----------

class PassData final : public Kernel {
 public:
  explicit PassData(const StepSpec &spec) : bytes_(spec.outputs[0].bytes()) {}
  void run(const Args &args, const Lane &) const override {
    if (args.outputs[0] != args.inputs[0]) std::memcpy(args.outputs[0], args.inputs[0], bytes_);
  }

 private:
  const size_t bytes_;
};

template <typename T>
class Logistic final : public Kernel {
 public:
  using C = ComputeOf<T>;
  explicit Logistic(const StepSpec &spec)
      : count_(spec.outputs[0].shape.size()),
        sigmoid_(pointwise_loop<C>(PointwiseCode::kSigmoid)),
        load_(load_block(spec.inputs[0].dtype, dtype_of<C>())),
        store_(store_block(dtype_of<C>(), spec.outputs[0].dtype)) {}
  void run(const Args &args, const Lane &lane) const override {
    parallel_for(lane, count_, kExpensiveGrain, [&](int64_t begin, int64_t end) {
      C block[kPointwiseBlock];
      for (int64_t i = begin; i < end; i += kPointwiseBlock) {
        const int64_t count = std::min(kPointwiseBlock, end - i);
        load_(args.inputs[0], i, block, count);
        sigmoid_(block, nullptr, nullptr, C(0), C(0), block, count);
        store_(block, args.outputs[0], i, count);
      }
    });
  }

 private:
  const int64_t count_;
  const PointwiseLoop<C> sigmoid_;
  const LoadBlock load_;
  const StoreBlock store_;
};

template <typename T, bool kSign>
class RegressionBackward final : public Kernel {
 public:
  using C = ComputeOf<T>;
  explicit RegressionBackward(const StepSpec &spec)
      : count_(spec.outputs[0].shape.size()), load_label_(load_block(spec.inputs[0].dtype, dtype_of<C>())) {
    const Shape &shape = spec.outputs[0].shape;
    const int64_t per_sample = shape.rank() > 0 ? shape.size(1, shape.rank()) : 1;
    scale_ = C(spec.attrs_as<RegressionOutputAttrs>().grad_scale) / C(std::max<int64_t>(per_sample, 1));
  }
  void run(const Args &args, const Lane &lane) const override {
    const T *const y = args.in<T>(1);
    T *const grad = args.out<T>(0);
    parallel_for(lane, count_, kCheapGrain, [&](int64_t begin, int64_t end) {
      C label[kPointwiseBlock];
      for (int64_t first = begin; first < end; first += kPointwiseBlock) {
        const int64_t count = std::min(kPointwiseBlock, end - first);
        load_label_(args.inputs[0], first, label, count);
        for (int64_t i = 0; i < count; ++i) {
          const C error = C(y[first + i]) - label[i];
          grad[first + i] = cast_element<T>(scale_ * (kSign ? C(error > 0 ? 1 : -1) : error));
        }
      }
    });
  }

 private:
  const int64_t count_;
  C scale_;
  const LoadBlock load_label_;
};

template <typename T>
using DifferenceBackward = RegressionBackward<T, false>;
template <typename T>
using SignBackward = RegressionBackward<T, true>;

// ---- SVMOutput: hinge loss of the scores, one against all ---------------------------------------------------------

template <typename T>
class SVMBackward final : public Kernel {
 public:
  using C = ComputeOf<T>;
  explicit SVMBackward(const StepSpec &spec)
      : attrs_(spec.attrs_as<SVMOutputAttrs>()),
        rows_(spec.inputs[0].shape.size()),
        cols_(rows_ > 0 ? spec.outputs[0].shape.size() / rows_ : 0),
        load_label_(load_indices(spec.inputs[0].dtype)) {}
  void run(const Args &args, const Lane &lane) const override {
    const T *const y = args.in<T>(1);
    T *const grad = args.out<T>(0);
    const C margin = C(attrs_.margin), scale = C(attrs_.regularization_coefficient);
    parallel_for(lane, rows_, std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(cols_, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row) {
                     int64_t label = 0;
                     load_label_(args.inputs[0], row, &label, 1);
                     const T *const from = y + row * cols_;
                     T *const to = grad + row * cols_;
                     // The score of the label shall be above the margin, all others below its negative.
                     for (int64_t c = 0; c < cols_; ++c) to[c] = cast_element<T>(slope(margin + C(from[c])) * scale);
                     if (label < 0 || label >= cols_) continue;
                     to[label] = cast_element<T>(-slope(margin - C(from[label])) * scale);
                   }
                 });
  }

 private:
  C slope(C missing) const {
    const C above = missing > 0 ? missing : C(0);
    return attrs_.use_linear ? C(above > 0) : C(2) * above;
  }

  const SVMOutputAttrs attrs_;
  const int64_t rows_, cols_;
  const LoadBlock load_label_;
};

// ---- MakeLoss, make_loss ------------------------------------------------------------------------------------------

template <typename T>
class MakeLossBackward final : public Kernel {
 public:
  explicit MakeLossBackward(const StepSpec &spec)
      : attrs_(spec.attrs_as<MakeLossAttrs>()),
        count_(spec.outputs[0].shape.size()),
        batch_(spec.outputs[0].shape.size(0, std::max(spec.outputs[0].shape.rank() - 1, 0))) {}
  void run(const Args &args, const Lane &) const override {
    double scale = attrs_.grad_scale;
    if (attrs_.normalization == MakeLossAttrs::kBatch) scale /= double(std::max<int64_t>(batch_, 1));
    if (attrs_.normalization == MakeLossAttrs::kValid) {
      const T *const y = args.in<T>(0);
      int64_t valid = 0;
      for (int64_t i = 0; i < count_; ++i) valid += double(cast_element<double>(y[i])) > attrs_.valid_thresh;
      scale /= double(std::max<int64_t>(valid, 1));
    }
    std::fill(args.out<T>(0), args.out<T>(0) + count_, cast_element<T>(scale));
  }

 private:
  const MakeLossAttrs attrs_;
  const int64_t count_, batch_;
};

template <typename T>
class Ones final : public Kernel {
 public:
  explicit Ones(const StepSpec &spec) : count_(spec.outputs[0].shape.size()) {}
  void run(const Args &args, const Lane &) const override {
    std::fill(args.out<T>(0), args.out<T>(0) + count_, cast_element<T>(1.0f));
  }

 private:
  const int64_t count_;
};

// ---- softmax_cross_entropy: sum over rows of -log(softmax(row)[label]) --------------------------------------------

template <typename T, bool kBackward>
class SoftmaxCrossEntropy final : public Kernel {
 public:
  using C = ComputeOf<T>;
  explicit SoftmaxCrossEntropy(StepSpec &spec)
      : rows_(spec.inputs[kBackward ? 1 : 0].shape[0]),
        cols_(spec.inputs[kBackward ? 1 : 0].shape[1]),
        load_label_(load_indices(spec.inputs[kBackward ? 2 : 1].dtype)) {
    spec.scratch_bytes = size_t(cols_) * sizeof(C);
  }
  void run(const Args &args, const Lane &) const override {
    const T *const x = args.in<T>(kBackward ? 1 : 0);
    C *const p = static_cast<C *>(args.scratch);
    double loss = 0;
    for (int64_t row = 0; row < rows_; ++row) {
      int64_t label = 0;
      load_label_(args.inputs[kBackward ? 2 : 1], row, &label, 1);
      for (int64_t c = 0; c < cols_; ++c) p[c] = cast_element<C>(x[row * cols_ + c]);
      softmax_.rows(p, p, 1, cols_);
      if constexpr (kBackward) {
        const C head = cast_element<C>(args.in<T>(0)[0]);
        T *const grad = args.out<T>(0) + row * cols_;
        for (int64_t c = 0; c < cols_; ++c) grad[c] = cast_element<T>((p[c] - (c == label ? C(1) : C(0))) * head);
      } else if (label >= 0 && label < cols_) {
        loss -= std::log(std::max(double(p[label]), 1e-8));
      }
    }
    if constexpr (!kBackward) args.out<T>(0)[0] = cast_element<T>(loss);
  }

 private:
  const int64_t rows_, cols_;
  const LoadBlock load_label_;
  const SoftmaxRows<C> softmax_;
};

template <typename T>
using CrossEntropyForward = SoftmaxCrossEntropy<T, false>;
template <typename T>
using CrossEntropyBackward = SoftmaxCrossEntropy<T, true>;

template <template <typename> class K>
std::unique_ptr<Kernel> make(StepSpec &spec) {
  return dispatch_float(spec.outputs[0].dtype, spec.op.c_str(),
                        [&](auto t) -> std::unique_ptr<Kernel> { return std::make_unique<K<decltype(t)>>(spec); });
}

COHORT_KERNEL(cpu, LinearRegressionOutput, PassData);
COHORT_KERNEL(cpu, MAERegressionOutput, PassData);
COHORT_KERNEL(cpu, SVMOutput, PassData);
COHORT_KERNEL_BY(cpu, LogisticRegressionOutput, make<Logistic>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, _backward_LinearRegressionOutput, make<DifferenceBackward>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, _backward_LogisticRegressionOutput, make<DifferenceBackward>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, _backward_MAERegressionOutput, make<SignBackward>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, _backward_SVMOutput, make<SVMBackward>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, _backward_MakeLoss, make<MakeLossBackward>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, _backward_make_loss, make<Ones>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, softmax_cross_entropy, make<CrossEntropyForward>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, _backward_softmax_cross_entropy, make<CrossEntropyBackward>).output_dtypes(kFloatTypes);

}  // namespace
}  // namespace cohort
