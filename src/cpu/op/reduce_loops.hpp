// SPDX-License-Identifier: Apache-2.0
// Reductions over any axes, of an array or of the result of a point-wise functor. Used by the kernels of reductions
// and by the backward steps of broadcasting operators.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/dtype_cast.hpp"
#include "cpu/op/broadcast_operand.hpp"
#include "cpu/parallel.hpp"
#include "cpu/simd.hpp"
#include "op/reduce.hpp"

namespace cohort {
namespace reduce {

// Floats are added in double, integers in int64_t.
template <typename C>
using Wide = std::conditional_t<std::is_same_v<C, int64_t>, int64_t, double>;

// A reduction: the contribution of an element, the start value, and how two results are combined.
template <typename C>
struct Sum {
  using A = Wide<C>;
  static constexpr int kLanes = 16;  // partial results at once
  static A start() { return A(0); }
  static A of(C x) { return A(x); }
  static A join(A a, A b) { return pointwise::add(a, b); }
};
template <typename C>
struct NanSum : Sum<C> {
  using A = Wide<C>;
  static A of(C x) { return x != x ? A(0) : A(x); }
};
template <typename C>
struct AbsSum : Sum<C> {
  using A = Wide<C>;
  static A of(C x) { return pointwise::absolute(A(x)); }
};
template <typename C>
struct SquareSum : Sum<C> {
  using A = Wide<C>;
  static A of(C x) { return pointwise::mul(A(x), A(x)); }
};
template <typename C>
struct Prod {
  using A = Wide<C>;
  static constexpr int kLanes = 16;  // partial results at once
  static A start() { return A(1); }
  static A of(C x) { return A(x); }
  static A join(A a, A b) { return pointwise::mul(a, b); }
};
template <typename C>
struct NanProd : Prod<C> {
  using A = Wide<C>;
  static A of(C x) { return x != x ? A(1) : A(x); }
};
template <typename C>
struct Max {  // NaN wins; without branches, so that it vectorises
  using A = C;
  static constexpr int kLanes = 64;
  static A start() {
    return std::is_integral_v<C> ? std::numeric_limits<C>::min() : -std::numeric_limits<C>::infinity();
  }
  static A of(C x) { return x; }
  static A join(A a, A b) {
    const A larger = b > a ? b : a;
    return b != b ? b : larger;
  }
};
template <typename C>
struct Min {
  using A = C;
  static constexpr int kLanes = 64;
  static A start() {
    return std::is_integral_v<C> ? std::numeric_limits<C>::max() : std::numeric_limits<C>::infinity();
  }
  static A of(C x) { return x; }
  static A join(A a, A b) {
    const A smaller = b < a ? b : a;
    return b != b ? b : smaller;
  }
};

// Reduces contiguous elements to one result, by partial results that are combined in order, whatever the instruction
// set; the remaining elements follow one by one.
template <typename Op, typename C>
struct ContiguousBody {
  using A = typename Op::A;
  static A run(const C *x, int64_t count) {
    constexpr int kLanes = Op::kLanes;
    A result = Op::start();
    int64_t i = 0;
    if (count >= kLanes) {
      A partial[kLanes];
      for (int k = 0; k < kLanes; ++k) partial[k] = Op::of(x[k]);
      for (i = kLanes; i + kLanes <= count; i += kLanes) {
        for (int k = 0; k < kLanes; ++k) partial[k] = Op::join(partial[k], Op::of(x[i + k]));
      }
      for (int width = kLanes / 2; width > 0; width /= 2) {
        for (int k = 0; k < width; ++k) partial[k] = Op::join(partial[k], partial[k + width]);
      }
      result = partial[0];
    }
    for (; i < count; ++i) result = Op::join(result, Op::of(x[i]));
    return result;
  }
};

// Reduces lines element by element into a line of results. Several lines at once, so that results are read and
// written once for all of them.
constexpr int kLinesAtOnce = 8;
template <typename Op, typename C>
struct LineBody {
  using A = typename Op::A;
  static void run(const C *x, A *results, int64_t count) {
    COHORT_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) results[i] = Op::join(results[i], Op::of(x[i]));
  }
};
template <typename Op, typename C>
struct LinesBody {
  using A = typename Op::A;
  static void run(const C *const *x, A *results, int64_t count) {
    const C *lines[kLinesAtOnce];
    std::copy_n(x, kLinesAtOnce, lines);
    COHORT_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) {
      A result = results[i];
      for (int k = 0; k < kLinesAtOnce; ++k) result = Op::join(result, Op::of(lines[k][i]));
      results[i] = result;
    }
  }
};

using Finish = Reduction::Finish;

// A source for AxisReducer: a dense array of any type.
class ArraySource {
 public:
  ArraySource(int input, Dtype dtype, Dtype compute)
      : input_(input), same_type_(dtype == compute), load_(load_block(dtype, compute)) {}
  template <typename C>
  const C *block(const Args &args, int64_t begin, int64_t count, C *buffer) const {
    if (same_type_) return args.in<C>(input_) + begin;
    load_(args.inputs[input_], begin, buffer, count);
    return buffer;
  }

 private:
  const int input_;
  const bool same_type_;
  const LoadBlock load_;
};

// The kernel: for every kept index, reduces all dropped ones in an order that depends on the shape alone. Source
// gives blocks of the array that is reduced, in C.
template <typename C, typename Op, typename Source>
class AxisReducer {
 public:
  using A = typename Op::A;
  AxisReducer(const Shape &shape, const std::vector<bool> &reduced, Dtype out, Finish finish, Source source)
      : axes_(shape, reduced),
        source_(std::move(source)),
        store_(store_block(compute_dtype(), out)),
        finish_(finish),
        divisor_(double(axes_.num_dropped) * double(axes_.inner_kept ? 1 : axes_.inner)),
        contiguous_(best<ContiguousBody<Op, C>>()),
        line_(best<LineBody<Op, C>>()),
        lines_(best<LinesBody<Op, C>>()) {
    // Where few results come from many elements, each is computed in several parts, which are combined in order.
    const int64_t num_units = axes_.inner_kept ? axes_.num_kept * chunks() : axes_.num_kept;
    const int64_t line = axes_.inner_kept ? std::min(axes_.inner, kLine) : axes_.inner;
    split_inner_ = !axes_.inner_kept && axes_.num_dropped == 1;
    const int64_t divisible = split_inner_       ? axes_.inner / kPointwiseBlock
                              : axes_.inner_kept ? axes_.num_dropped / kPartLines
                                                 : axes_.num_dropped;
    const int64_t parts =
        std::min({kMaxParts / std::max<int64_t>(num_units, 1), divisible, axes_.num_dropped * line / kPartElements});
    num_parts_ = std::max<int64_t>(parts, 1);
  }

  size_t scratch_bytes() const {
    if (num_parts_ == 1) return 0;
    return size_t(num_parts_ * axes_.num_kept * (axes_.inner_kept ? axes_.inner : 1)) * sizeof(A);
  }

  void run(const Args &args, int output, const Lane &lane) const {
    A *const parts = static_cast<A *>(args.scratch);
    if (axes_.inner_kept) {
      const int64_t num_units = axes_.num_kept * chunks(), width = std::min(axes_.inner, kLine);
      const int64_t grain = grain_of(axes_.num_dropped / num_parts_ * width);
      parallel_for(lane, num_units * num_parts_, grain, [&](int64_t begin, int64_t end) {
        for (int64_t unit = begin; unit < end; ++unit) lines(args, output, unit / num_parts_, unit % num_parts_, parts);
      });
      if (num_parts_ > 1) {
        for (int64_t unit = 0; unit < num_units; ++unit) join_lines(args, output, unit, parts);
      }
    } else {
      const int64_t grain = grain_of(axes_.num_dropped * axes_.inner / num_parts_);
      parallel_for(lane, axes_.num_kept * num_parts_, grain, [&](int64_t begin, int64_t end) {
        for (int64_t unit = begin; unit < end; ++unit) reduce_contiguous(args, output, unit, parts);
      });
      if (num_parts_ > 1) {
        for (int64_t k = 0; k < axes_.num_kept; ++k) {
          A result = parts[k * num_parts_];
          for (int64_t p = 1; p < num_parts_; ++p) result = Op::join(result, parts[k * num_parts_ + p]);
          store(args, output, k, &result, 1);
        }
      }
    }
  }

 private:
  static constexpr int64_t kPartElements = 16384, kMaxParts = 64;
  static constexpr int64_t kPartLines = 64;  // lines of a part: each part has results of its own to fill and combine
  static constexpr int64_t kLine =
      4 * kPointwiseBlock;  // results at once: long pieces of lines profit from prefetching

  template <typename Body>
  static auto best() {
    if constexpr (std::is_same_v<C, float>) return best_version<Body>();
    return &Body::run;
  }
  static constexpr Dtype compute_dtype() { return std::is_same_v<A, int64_t> ? Dtype::kInt64 : dtype_of<A>(); }
  int64_t chunks() const { return (axes_.inner + kLine - 1) / kLine; }
  static int64_t grain_of(int64_t elements) {
    return std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(elements, 1));
  }

  void range(int64_t part, int64_t total, int64_t *begin, int64_t *end) const {
    *begin = total * part / num_parts_;
    *end = total * (part + 1) / num_parts_;
  }

  void reduce_contiguous(const Args &args, int output, int64_t unit, A *parts) const {
    const int64_t k = unit / num_parts_, part = unit % num_parts_;
    int64_t first = 0, last = axes_.num_dropped, from = 0, to = axes_.inner;
    if (split_inner_) {
      range(part, axes_.inner, &from, &to);
    } else {
      range(part, axes_.num_dropped, &first, &last);
    }
    const int64_t base = ReduceAxes::offset(axes_.kept, k);
    A result = Op::start();
    C buffer[kPointwiseBlock];
    for (int64_t d = first; d < last; ++d) {
      const int64_t row = base + ReduceAxes::offset(axes_.dropped, d);
      for (int64_t i = from; i < to; i += kPointwiseBlock) {
        const int64_t count = std::min(kPointwiseBlock, to - i);
        result = Op::join(result, contiguous_(source_.template block<C>(args, row + i, count, buffer), count));
      }
    }
    if (num_parts_ > 1) {
      parts[unit] = result;
    } else {
      store(args, output, k, &result, 1);
    }
  }

  // Computes one unit: a kept index and a chunk of the inner axis.
  void lines(const Args &args, int output, int64_t unit, int64_t part, A *parts) const {
    const int64_t k = unit / chunks(), first = unit % chunks() * kLine;
    const int64_t count = std::min(kLine, axes_.inner - first);
    const int64_t base = ReduceAxes::offset(axes_.kept, k) + first;
    A own[kLine];
    A *const results = num_parts_ > 1 ? parts + (part * axes_.num_kept + k) * axes_.inner + first : own;
    std::fill(results, results + count, Op::start());
    C buffers[kLinesAtOnce][kPointwiseBlock];
    int64_t begin, end;
    range(part, axes_.num_dropped, &begin, &end);
    for (int64_t d = begin; d < end;) {
      const int at_once = end - d >= kLinesAtOnce ? kLinesAtOnce : 1;
      for (int64_t i = 0; i < count; i += kPointwiseBlock) {
        const int64_t piece = std::min(kPointwiseBlock, count - i);
        const C *from[kLinesAtOnce];
        for (int n = 0; n < at_once; ++n) {
          const int64_t at = base + ReduceAxes::offset(axes_.dropped, d + n);
          from[n] = source_.template block<C>(args, at + i, piece, buffers[n]);
        }
        if (at_once > 1) {
          lines_(from, results + i, piece);
        } else {
          line_(from[0], results + i, piece);
        }
      }
      d += at_once;
    }
    if (num_parts_ == 1) store(args, output, k * axes_.inner + first, results, count);
  }

  void join_lines(const Args &args, int output, int64_t unit, A *parts) const {
    const int64_t k = unit / chunks(), first = unit % chunks() * kLine;
    const int64_t count = std::min(kLine, axes_.inner - first);
    A *const results = parts + k * axes_.inner + first;
    for (int64_t p = 1; p < num_parts_; ++p) {
      const A *const more = results + p * axes_.num_kept * axes_.inner;
      for (int64_t i = 0; i < count; ++i) results[i] = Op::join(results[i], more[i]);
    }
    store(args, output, k * axes_.inner + first, results, count);
  }

  void store(const Args &args, int output, int64_t at, A *results, int64_t count) const {
    if (finish_ == Finish::kDivide) {
      for (int64_t i = 0; i < count; ++i) results[i] = A(double(results[i]) / divisor_);
    } else if (finish_ == Finish::kRoot) {
      for (int64_t i = 0; i < count; ++i) results[i] = A(std::sqrt(double(results[i])));
    }
    store_(results, args.outputs[output], at, count);
  }

  const ReduceAxes axes_;
  const Source source_;
  const StoreBlock store_;
  const Finish finish_;
  const double divisor_;
  A (*const contiguous_)(const C *, int64_t);
  void (*const line_)(const C *, A *, int64_t);
  void (*const lines_)(const C *const *, A *, int64_t);
  int64_t num_parts_ = 1;
  bool split_inner_ = false;
};

}  // namespace reduce
}  // namespace cohort
