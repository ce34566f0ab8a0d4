// SPDX-License-Identifier: Apache-2.0
// softmax, softmin, log_softmax and SoftmaxActivation over (outer, cols, inner), along cols. In double if any array
// is of double, else in float; arrays of another type are converted through scratch memory.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpu/op/pointwise_loops.hpp"
#include "cpu/op/softmax_rows.hpp"
#include "cpu/parallel.hpp"
#include "cpu/simd.hpp"
#include "device/kernel_table.hpp"
#include "kernels/partial_sums.hpp"
#include "kernels/softmax_problem.hpp"

namespace cohort {
namespace {

using Problem = SoftmaxProblem;

bool needs_scratch(const Problem &p) {
  const Dtype compute = p.in_double() ? Dtype::kFloat64 : Dtype::kFloat32;
  return p.from != compute || p.to != compute;
}

// The number of elements along the axis that count.
int64_t length_at(const LoadBlock &load, const Args &args, int64_t at, int64_t cols) {
  double given;
  load(args.in<void>(1), at, &given, 1);
  return std::clamp<int64_t>(int64_t(given), 0, cols);
}

template <typename C>
class SoftmaxForward final : public Kernel {
 public:
  SoftmaxForward(StepSpec &spec, const Problem &p) : p_(p), exp_(pointwise_loop<C>(PointwiseCode::kExp)) {
    load_ = load_block(p.from, dtype_of<C>());
    store_ = store_block(dtype_of<C>(), p.to);
    if (p.uses_length) load_length_ = load_block(spec.inputs[1].dtype, Dtype::kFloat64);
    if (needs_scratch(p)) spec.scratch_bytes = size_t(p.count()) * sizeof(C);
  }

  void run(const Args &args, const Lane &lane) const override {
    const int64_t slab = p_.cols * p_.inner;
    if (slab == 0) return;
    parallel_for(lane, p_.outer, 1 + kExpensiveGrain / slab, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * slab, count = (end - begin) * slab;
      const C *x = args.in<C>(0) + first;
      C *y = args.out<C>(0) + first;
      if (needs_scratch(p_)) {
        y = static_cast<C *>(args.scratch) + first;
        load_(args.in<void>(0), first, y, count);
        x = y;
      }
      if (p_.scale != 1) {
        const C scale = C(p_.scale);
        for (int64_t i = 0; i < count; ++i) y[i] = x[i] * scale;
        x = y;
      }
      if (p_.uses_length) {
        with_lengths(x, y, begin, end, args);
      } else if (p_.log && p_.inner == 1) {
        softmax_.log_rows(x, y, end - begin, p_.cols);
      } else if (p_.log) {
        for (int64_t o = begin; o < end; ++o) log_slab(x + (o - begin) * slab, y + (o - begin) * slab);
      } else if (p_.inner == 1) {
        softmax_.rows(x, y, end - begin, p_.cols);
      } else {
        for (int64_t o = begin; o < end; ++o) {
          softmax_.slab(x + (o - begin) * slab, y + (o - begin) * slab, p_.cols, p_.inner);
        }
      }
      if (needs_scratch(p_)) store_(y, args.out<void>(0), first, count);
    });
  }

 private:
  // y = x - max - log(sum(exp(x - max))), for a few columns at a time.
  void log_slab(const C *x, C *y) const {
    constexpr int64_t kBlock = 512;
    C buffer[kBlock];
    for (int64_t j = 0; j < p_.inner; ++j) {
      C top = x[j], sum = 0;
      for (int64_t c = 1; c < p_.cols; ++c) top = std::max(top, x[c * p_.inner + j]);
      for (int64_t c = 0; c < p_.cols; c += kBlock) {
        const int64_t count = std::min(kBlock, p_.cols - c);
        for (int64_t i = 0; i < count; ++i) buffer[i] = x[(c + i) * p_.inner + j] - top;
        exp_(buffer, nullptr, nullptr, C(0), C(0), buffer, count);
        for (int64_t i = 0; i < count; ++i) sum += buffer[i];
      }
      const C shift = top + std::log(sum);
      for (int64_t c = 0; c < p_.cols; ++c) y[c * p_.inner + j] = x[c * p_.inner + j] - shift;
    }
  }

  // Elements from the length on become 0.
  void with_lengths(const C *x, C *y, int64_t begin, int64_t end, const Args &args) const {
    for (int64_t o = begin; o < end; ++o, x += p_.cols * p_.inner, y += p_.cols * p_.inner) {
      for (int64_t j = 0; j < p_.inner; ++j) {
        const int64_t length = length_at(load_length_, args, o * p_.inner + j, p_.cols);
        if (p_.inner == 1) {
          softmax_.rows(x, y, 1, length);
          std::fill(y + length, y + p_.cols, C(0));
          continue;
        }
        C top = length > 0 ? x[j] : C(0), sum = 0;
        for (int64_t c = 1; c < length; ++c) top = std::max(top, x[c * p_.inner + j]);
        for (int64_t c = 0; c < p_.cols; ++c) {
          const int64_t at = c * p_.inner + j;
          y[at] = c < length ? std::exp(x[at] - top) : C(0);
          sum += y[at];
        }
        for (int64_t c = 0; c < length; ++c) y[c * p_.inner + j] /= sum;
      }
    }
  }

  const Problem p_;
  const PointwiseLoop<C> exp_;
  const SoftmaxRows<C> softmax_;
  LoadBlock load_, load_length_ = nullptr;
  StoreBlock store_;
};

template <typename C>
struct RowSum {
  static C run(const C *x, int64_t count) {
    return sum_over<C>(count, [=](int64_t i) { return x[i]; });
  }
};

// dx = (dy - sum(dy y)) y scale, for each row.
template <typename C>
struct RowGradients {
  static void run(const C *dy, const C *y, int64_t rows, int64_t cols, C scale, C *dx) {
    for (int64_t row = 0; row < rows; ++row, dy += cols, y += cols, dx += cols) {
      const C sum = sum_over<C>(cols, [=](int64_t i) { return dy[i] * y[i]; });
      COHORT_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < cols; ++i) dx[i] = (dy[i] - sum) * y[i] * scale;
    }
  }
};

// Inputs: head gradient, [lengths,] output. dx = (dy - sum(dy y)) y; for log_softmax, dy - exp(y) sum(dy). From the
// length on it is 0, and dy is not read.
template <typename C>
class SoftmaxBackward final : public Kernel {
 public:
  SoftmaxBackward(StepSpec &spec, const Problem &p)
      : p_(p), output_(int(spec.inputs.size()) - 1), exp_(pointwise_loop<C>(PointwiseCode::kExp)) {
    load_ = load_block(p.to, dtype_of<C>());
    store_ = store_block(dtype_of<C>(), p.from);
    if (p.uses_length) load_length_ = load_block(spec.inputs[1].dtype, Dtype::kFloat64);
    if (needs_scratch(p)) spec.scratch_bytes = size_t(p.count()) * sizeof(C) * 2;
  }

  void run(const Args &args, const Lane &lane) const override {
    const int64_t slab = p_.cols * p_.inner;
    if (slab == 0) return;
    parallel_for(lane, p_.outer, 1 + kExpensiveGrain / slab, [&](int64_t begin, int64_t end) {
      const int64_t first = begin * slab, count = (end - begin) * slab;
      const C *dy = args.in<C>(0) + first, *y = args.in<C>(output_) + first;
      C *dx = args.out<C>(0) + first;
      if (needs_scratch(p_)) {
        dx = static_cast<C *>(args.scratch) + first;
        C *const output = static_cast<C *>(args.scratch) + p_.count() + first;
        load_(args.in<void>(0), first, dx, count);
        load_(args.in<void>(output_), first, output, count);
        dy = dx;
        y = output;
      }
      if (p_.uses_length) with_lengths(dy, y, dx, begin, end, args);
      if (p_.inner == 1 && !p_.uses_length) rows(dy, y, end - begin, dx);
      for (int64_t o = 0; o < end - begin && p_.inner != 1 && !p_.uses_length; ++o) {
        columns(dy + o * slab, y + o * slab, dx + o * slab);
      }
      if (needs_scratch(p_)) store_(dx, args.out<void>(0), first, count);
    });
  }

 private:
  static constexpr int64_t kBlock = 256;

  void with_lengths(const C *dy, const C *y, C *dx, int64_t begin, int64_t end, const Args &args) const {
    for (int64_t o = begin; o < end; ++o, dy += p_.cols * p_.inner, y += p_.cols * p_.inner, dx += p_.cols * p_.inner) {
      for (int64_t j = 0; j < p_.inner; ++j) {
        const int64_t length = length_at(load_length_, args, o * p_.inner + j, p_.cols);
        if (p_.inner == 1) {
          rows_(dy, y, 1, length, C(p_.scale), dx);
          std::fill(dx + length, dx + p_.cols, C(0));
          continue;
        }
        C sum = 0;
        for (int64_t c = 0; c < length; ++c) sum += dy[c * p_.inner + j] * y[c * p_.inner + j];
        for (int64_t c = 0; c < p_.cols; ++c) {
          const int64_t at = c * p_.inner + j;
          dx[at] = c < length ? (dy[at] - sum) * y[at] * C(p_.scale) : C(0);
        }
      }
    }
  }

  void rows(const C *dy, const C *y, int64_t count, C *dx) const {
    const int64_t cols = p_.cols;
    if (!p_.log) return rows_(dy, y, count, cols, C(p_.scale), dx);
    C powers[kBlock];  // of a part of a row, or of several rows
    const int64_t together = std::max<int64_t>(1, kBlock / cols);
    for (int64_t row = 0; row < count; row += together) {
      const int64_t last = std::min(row + together, count), width = std::min(kBlock, (last - row) * cols);
      if (together > 1) exp_(y + row * cols, nullptr, nullptr, C(0), C(0), powers, width);
      for (int64_t r = row; r < last; ++r) {
        const C sum = row_sum_(dy + r * cols, cols);
        for (int64_t first = 0; first < cols; first += kBlock) {
          const int64_t at = r * cols + first, part = std::min(kBlock, cols - first);
          if (together == 1) exp_(y + at, nullptr, nullptr, C(0), C(0), powers, part);
          const C *const power = powers + (together == 1 ? 0 : (r - row) * cols);
          for (int64_t i = 0; i < part; ++i) dx[at + i] = (dy[at + i] - power[i] * sum) * C(p_.scale);
        }
      }
    }
  }

  void columns(const C *dy, const C *y, C *dx) const {
    C sums[kBlock];
    for (int64_t first = 0; first < p_.inner; first += kBlock) {
      const int64_t width = std::min(kBlock, p_.inner - first);
      std::fill(sums, sums + width, C(0));
      for (int64_t c = 0; c < p_.cols; ++c) {
        const C *g = dy + c * p_.inner + first, *v = y + c * p_.inner + first;
        for (int64_t i = 0; i < width; ++i) sums[i] += p_.log ? g[i] : g[i] * v[i];
      }
      for (int64_t c = 0; c < p_.cols; ++c) {
        const int64_t at = c * p_.inner + first;
        finish(dy + at, y + at, dx + at, width, [&](int64_t i) { return sums[i]; });
      }
    }
  }

  template <typename Sum>
  void finish(const C *dy, const C *y, C *dx, int64_t count, Sum &&sum_at) const {
    const C scale = C(p_.scale);
    if (!p_.log) {
      for (int64_t i = 0; i < count; ++i) dx[i] = (dy[i] - sum_at(i)) * y[i] * scale;
      return;
    }
    C buffer[kBlock];
    for (int64_t first = 0; first < count; first += kBlock) {
      const int64_t width = std::min(kBlock, count - first);
      exp_(y + first, nullptr, nullptr, C(0), C(0), buffer, width);
      for (int64_t i = 0; i < width; ++i) {
        dx[first + i] = (dy[first + i] - buffer[i] * sum_at(first + i)) * scale;
      }
    }
  }

  const Problem p_;
  const int output_;
  const PointwiseLoop<C> exp_;
  void (*const rows_)(const C *, const C *, int64_t, int64_t, C, C *) = best_version<RowGradients<C>>();
  C (*const row_sum_)(const C *, int64_t) = best_version<RowSum<C>>();
  LoadBlock load_, load_length_ = nullptr;
  StoreBlock store_;
};

std::unique_ptr<Kernel> make_forward(StepSpec &spec) {
  const Problem p = softmax_problem(spec, spec.op, spec.inputs[0], spec.outputs[0].dtype);
  if (p.in_double()) return std::make_unique<SoftmaxForward<double>>(spec, p);
  return std::make_unique<SoftmaxForward<float>>(spec, p);
}

std::unique_ptr<Kernel> make_backward(StepSpec &spec) {
  const std::string op = spec.op.substr(std::strlen("_backward_"));
  const Problem p = softmax_problem(spec, op, spec.outputs[0], spec.inputs[0].dtype);
  if (p.in_double()) return std::make_unique<SoftmaxBackward<double>>(spec, p);
  return std::make_unique<SoftmaxBackward<float>>(spec, p);
}

COHORT_KERNEL_BY(cpu, softmax, make_forward);
COHORT_KERNEL_BY(cpu, softmin, make_forward);
COHORT_KERNEL_BY(cpu, log_softmax, make_forward);
COHORT_KERNEL_BY(cpu, SoftmaxActivation, make_forward);
COHORT_KERNEL_BY(cpu, _backward_softmax, make_backward);
COHORT_KERNEL_BY(cpu, _backward_softmin, make_backward);
COHORT_KERNEL_BY(cpu, _backward_log_softmax, make_backward);
COHORT_KERNEL_BY(cpu, _backward_SoftmaxActivation, make_backward);

}  // namespace
}  // namespace cohort
