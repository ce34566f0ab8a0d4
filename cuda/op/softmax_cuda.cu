// SPDX-License-Identifier: Apache-2.0
// softmax, softmin, log_softmax and SoftmaxActivation, and softmax_cross_entropy. A warp a row.
#include <cstring>

#include "cuda/op/rows.cuh"
#include "device/kernel_table.hpp"
#include "kernels/softmax_problem.hpp"
#include "op/float_math.hpp"

namespace cohort {
namespace {

// How many elements of a row count.
__device__ inline int64_t length_at(const Elements &lengths, int64_t row, int64_t most) {
  const int64_t length = lengths.data ? load_index(lengths, row) : most;
  return length < 0 ? 0 : length > most ? most : length;
}

template <typename C>
class SoftmaxCuda final : public Kernel {
 public:
  SoftmaxCuda(const StepSpec &spec, const SoftmaxProblem &p)
      : p_(p), length_dtype_(p.uses_length ? spec.inputs[1].dtype : Dtype::kNone) {}

  void run(const Args &args, const Lane &lane) const override {
    const Elements x = elements_of(args.inputs[0], p_.from), y = elements_of(args.outputs[0], p_.to);
    const Elements lengths = elements_of(p_.uses_length ? args.inputs[1] : nullptr, length_dtype_);
    const RowExtent e{p_.outer, p_.cols, p_.inner};
    const C scale = C(p_.scale);
    const bool log = p_.log;
    if (e.size() == 0) return;
    for_each_row(lane, e.rows(), [=] __device__(int64_t row) {
      const int64_t first = e.start(row);
      // Elements from the length on are 0.
      const int64_t cols = length_at(lengths, row, e.length);
      const auto value = [=](int64_t i) { return load<C>(x, first + i * e.inner) * scale; };
      const C top = largest_along<C>(cols, value);
      const C sum = sum_along<C>(cols, [=](int64_t i) { return pointwise::exp_of(value(i) - top); });
      const C shift = log ? top + pointwise::log_of(sum) : C(0);
      each_along(e.length, [=](int64_t i) {
        const C result = i >= cols ? C(0) : log ? value(i) - shift : pointwise::exp_of(value(i) - top) / sum;
        store(y, first + i * e.inner, result);
      });
    });
  }

 private:
  const SoftmaxProblem p_;
  const Dtype length_dtype_;
};

// Inputs: head gradient, [lengths,] output. dx = (dy - sum(dy y)) y, of the logarithm dy - exp(y) sum(dy);
// 0 from the length on, where dy is not read.
template <typename C>
class SoftmaxBackwardCuda final : public Kernel {
 public:
  SoftmaxBackwardCuda(const StepSpec &spec, const SoftmaxProblem &p)
      : p_(p), output_(spec.inputs.size() - 1), length_dtype_(p.uses_length ? spec.inputs[1].dtype : Dtype::kNone) {}

  void run(const Args &args, const Lane &lane) const override {
    const Elements head = elements_of(args.inputs[0], p_.to), output = elements_of(args.inputs[output_], p_.to);
    const Elements to = elements_of(args.outputs[0], p_.from);
    const Elements lengths = elements_of(p_.uses_length ? args.inputs[1] : nullptr, length_dtype_);
    const RowExtent e{p_.outer, p_.cols, p_.inner};
    const C scale = C(p_.scale);
    const bool log = p_.log;
    if (e.size() == 0) return;
    for_each_row(lane, e.rows(), [=] __device__(int64_t row) {
      const int64_t first = e.start(row);
      const auto dy = [=](int64_t i) { return load<C>(head, first + i * e.inner); };
      const auto y = [=](int64_t i) { return load<C>(output, first + i * e.inner); };
      const int64_t cols = length_at(lengths, row, e.length);
      const C sum = sum_along<C>(cols, [=](int64_t i) { return log ? dy(i) : dy(i) * y(i); });
      each_along(e.length, [=](int64_t i) {
        const C dx = i >= cols ? C(0) : log ? dy(i) - pointwise::exp_of(y(i)) * sum : (dy(i) - sum) * y(i);
        store(to, first + i * e.inner, dx * scale);
      });
    });
  }

 private:
  const SoftmaxProblem p_;
  const size_t output_;
  const Dtype length_dtype_;
};

std::unique_ptr<Kernel> make_forward(StepSpec &spec) {
  const SoftmaxProblem p = softmax_problem(spec, spec.op, spec.inputs[0], spec.outputs[0].dtype);
  if (p.in_double()) return std::make_unique<SoftmaxCuda<double>>(spec, p);
  return std::make_unique<SoftmaxCuda<float>>(spec, p);
}

std::unique_ptr<Kernel> make_backward(StepSpec &spec) {
  const std::string op = spec.op.substr(std::strlen("_backward_"));
  const SoftmaxProblem p = softmax_problem(spec, op, spec.outputs[0], spec.inputs[0].dtype);
  if (p.in_double()) return std::make_unique<SoftmaxBackwardCuda<double>>(spec, p);
  return std::make_unique<SoftmaxBackwardCuda<float>>(spec, p);
}

COHORT_KERNEL_BY(cuda, softmax, make_forward);
COHORT_KERNEL_BY(cuda, softmin, make_forward);
COHORT_KERNEL_BY(cuda, log_softmax, make_forward);
COHORT_KERNEL_BY(cuda, SoftmaxActivation, make_forward);
COHORT_KERNEL_BY(cuda, _backward_softmax, make_backward);
COHORT_KERNEL_BY(cuda, _backward_softmin, make_backward);
COHORT_KERNEL_BY(cuda, _backward_log_softmax, make_backward);
COHORT_KERNEL_BY(cuda, _backward_SoftmaxActivation, make_backward);

// ---- softmax_cross_entropy: sum over rows of -log(softmax(row)[label])

// A loss a row in scratch, which one warp adds up in order.
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

template <template <typename> class K>
std::unique_ptr<Kernel> make(StepSpec &spec) {
  if (spec.outputs[0].dtype == Dtype::kFloat64) return std::make_unique<K<double>>(spec);
  return std::make_unique<K<float>>(spec);
}

COHORT_KERNEL_BY(cuda, softmax_cross_entropy, make<CrossEntropyCuda>).output_dtypes(kFloatTypes);
COHORT_KERNEL_BY(cuda, _backward_softmax_cross_entropy, make<CrossEntropyBackwardCuda>).output_dtypes(kFloatTypes);

}  // namespace
}  // namespace cohort
