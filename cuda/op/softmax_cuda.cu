// SPDX-License-Identifier: Apache-2.0
// softmax, softmin, log_softmax and SoftmaxActivation. Rows of neighbouring elements of one type are loaded as vectors;
// other rows have a warp each.
#include <cstring>

#include "cuda/op/row_vectors.cuh"
#include "device/kernel_table.hpp"
#include "kernels/softmax_problem.hpp"
#include "op/float_math.hpp"

namespace cohort {
namespace {

// The number of elements of a row that count.
__device__ inline int64_t length_at(const Elements &lengths, int64_t row, int64_t most) {
  const int64_t length = lengths.data ? load_index(lengths, row) : most;
  return length < 0 ? 0 : length > most ? most : length;
}

template <typename T>
struct SoftmaxVectors {
  using C = ComputeOf<T>;
  const T *x;
  T *y;
  C scale;
  bool log;
  __device__ void operator()(const RowThreads<T> &threads, int64_t row) const {
    const T *const from = x + row * threads.length;
    T *const to = y + row * threads.length;
    const C by = scale;
    const C top = threads.largest([=](C value) { return value * by; }, from);
    const C sum = threads.sum([=](C value) { return pointwise::exp_of(value * by - top); }, from);
    if (log) {
      const C shift = top + pointwise::log_of(sum);
      threads.write(
          to, [=](int64_t, C value) { return value * by - shift; }, from);
    } else {
      threads.write(
          to, [=](int64_t, C value) { return pointwise::exp_of(value * by - top) / sum; }, from);
    }
  }
};

template <typename T>
struct SoftmaxGradientVectors {
  using C = ComputeOf<T>;
  const T *head, *output;
  T *gradient;
  C scale;
  bool log;
  __device__ void operator()(const RowThreads<T> &threads, int64_t row) const {
    const T *const dy = head + row * threads.length, *const y = output + row * threads.length;
    T *const to = gradient + row * threads.length;
    const C by = scale;
    if (log) {
      const C sum = threads.sum([](C g) { return g; }, dy);
      threads.write(
          to, [=](int64_t, C g, C result) { return (g - pointwise::exp_of(result) * sum) * by; }, dy, y);
    } else {
      const C sum = threads.sum([](C g, C result) { return g * result; }, dy, y);
      threads.write(
          to, [=](int64_t, C g, C result) { return (g - sum) * result * by; }, dy, y);
    }
  }
};

// Whether the rows of a problem are given to the structures above.
bool has_vector_rows(const SoftmaxProblem &p) {
  return !p.uses_length && p.from == p.to && are_vectors({p.outer, p.cols, p.inner}, p.from);
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
    if (has_vector_rows(p_)) {
      return with_row_type(p_.from, [&](auto type) {
        using T = decltype(type);
        for_each_row_of_vectors<T>(
            lane, e.rows(), e.length, {x.data, y.data},
            SoftmaxVectors<T>{static_cast<const T *>(x.data), static_cast<T *>(y.data), ComputeOf<T>(p_.scale), log});
      });
    }
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
    if (has_vector_rows(p_)) {
      return with_row_type(p_.from, [&](auto type) {
        using T = decltype(type);
        for_each_row_of_vectors<T>(
            lane, e.rows(), e.length, {head.data, output.data, to.data},
            SoftmaxGradientVectors<T>{static_cast<const T *>(head.data), static_cast<const T *>(output.data),
                                      static_cast<T *>(to.data), ComputeOf<T>(p_.scale), log});
      });
    }
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

}  // namespace
}  // namespace cohort
