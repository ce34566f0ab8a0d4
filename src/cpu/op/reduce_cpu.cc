// SPDX-License-Identifier: Apache-2.0
#include "op/reduce.hpp"

#include <cstring>
#include <memory>

#include "cpu/op/reduce_loops.hpp"
#include "cpu/simd.hpp"
#include "device/kernel_table.hpp"
#include "kernels/reduction_group.hpp"

namespace cohort {
namespace {

using reduce::ArraySource;
using Finish = Reduction::Finish;

template <typename C, template <typename> class Op>
class Reduce final : public Kernel {
 public:
  Reduce(StepSpec &spec, const Shape &shape, const std::vector<bool> &reduced, Finish finish)
      : reducer_(shape, reduced, spec.outputs[0].dtype, finish, ArraySource(0, spec.inputs[0].dtype, dtype_of<C>())) {
    spec.scratch_bytes = reducer_.scratch_bytes();
  }
  void run(const Args &args, const Lane &lane) const override { reducer_.run(args, 0, lane); }

 private:
  const reduce::AxisReducer<C, Op<C>, ArraySource> reducer_;
};

template <template <typename> class Op>
std::unique_ptr<Kernel> make_reduce_of(StepSpec &spec, const std::vector<bool> &reduced, Finish finish) {
  return dispatch_compute(spec.inputs[0].dtype, true, [&](auto c) -> std::unique_ptr<Kernel> {
    return std::make_unique<Reduce<decltype(c), Op>>(spec, spec.inputs[0].shape, reduced, finish);
  });
}

std::unique_ptr<Kernel> make_reduce(StepSpec &spec) {
  const Reduction r = reduction_of(spec.op, spec.attrs.get());
  const std::vector<bool> reduced = axes_reduced_by(spec.op, spec.attrs.get(), spec.inputs[0].shape);
  switch (r.combine) {
    case Reduction::Combine::kMaximum:
      return make_reduce_of<reduce::Max>(spec, reduced, r.finish);
    case Reduction::Combine::kMinimum:
      return make_reduce_of<reduce::Min>(spec, reduced, r.finish);
    case Reduction::Combine::kProduct:
      if (r.skips_nan) return make_reduce_of<reduce::NanProd>(spec, reduced, r.finish);
      return make_reduce_of<reduce::Prod>(spec, reduced, r.finish);
    case Reduction::Combine::kSum:
      break;
  }
  if (r.of == PointwiseCode::kAbs) return make_reduce_of<reduce::AbsSum>(spec, reduced, r.finish);
  if (r.of == PointwiseCode::kSquare) return make_reduce_of<reduce::SquareSum>(spec, reduced, r.finish);
  if (r.skips_nan) return make_reduce_of<reduce::NanSum>(spec, reduced, r.finish);
  return make_reduce_of<reduce::Sum>(spec, reduced, r.finish);
}

// Applies a functor to the head gradient (and the element, and the result that it contributed to), repeated over the
// reduced axes.
template <typename C>
class ReduceBackward final : public Kernel {
 public:
  ReduceBackward(const StepSpec &spec, const std::vector<bool> &reduced, PointwiseCode code, double s)
      : count_(spec.outputs[0].shape.size()),
        loop_(pointwise_loop<C>(code)),
        s_(C(s)),
        completes_zeros_(code == PointwiseCode::kProdGrad || code == PointwiseCode::kNanProdGrad),
        skips_nan_(code == PointwiseCode::kNanProdGrad),
        group_(spec.outputs[0].shape, reduced),
        direct_(spec.outputs[0].dtype == dtype_of<C>()),
        store_(store_block(dtype_of<C>(), spec.outputs[0].dtype)) {
    const Shape &shape = spec.outputs[0].shape, kept = kept_shape(shape, reduced);
    for (int i = 0; i < pointwise_operands(code); ++i) {
      const TensorSpec &in = spec.inputs[size_t(i)];
      operands_.emplace_back(i == 1 ? shape : kept, in.dtype, shape, dtype_of<C>());
    }
  }
  void run(const Args &args, const Lane &lane) const override {
    parallel_for(lane, count_, kCheapGrain, [&](int64_t begin, int64_t end) {
      C buffers[3][kPointwiseBlock], out[kPointwiseBlock];
      for (int64_t at = begin; at < end; at += kPointwiseBlock) {
        const int64_t count = std::min(kPointwiseBlock, end - at);
        const C *operands[3] = {nullptr, nullptr, nullptr};
        for (size_t i = 0; i < operands_.size(); ++i) {
          operands[i] = operands_[i].template block<C>(args.inputs[i], at, count, buffers[i]);
        }
        C *const to = direct_ ? args.out<C>(0) + at : out;
        loop_(operands[0], operands[1], operands[2], s_, C(0), to, count);
        if (completes_zeros_) complete_zeros(args, at, count, operands[1], to);
        if (!direct_) store_(out, args.outputs[0], at, count);
      }
    });
  }

 private:
  // For products: where an element is 0, the functor leaves the head gradient.
  void complete_zeros(const Args &args, int64_t begin, int64_t count, const C *elements, C *gradients) const {
    for (int64_t i = 0; i < count; ++i) {
      if (elements[i] != C(0)) continue;
      gradients[i] *= product_of_others<C>(group_, begin + i, skips_nan_, [&](int64_t at) {
        C buffer;
        return *operands_[1].template block<C>(args.inputs[1], at, 1, &buffer);
      });
    }
  }

  const int64_t count_;
  const PointwiseLoop<C> loop_;
  const C s_;
  const bool completes_zeros_, skips_nan_;
  const ReductionGroup group_;
  const bool direct_;
  const StoreBlock store_;
  std::vector<BroadcastOperand> operands_;
};

std::unique_ptr<Kernel> make_reduce_backward(StepSpec &spec) {
  const std::string op = spec.op.substr(std::strlen("_backward_"));
  const Shape &data = spec.outputs[0].shape;
  const PointwiseCall call = reduction_gradient(op, spec.attrs.get(), data, spec.inputs[0].shape);
  return dispatch_compute(spec.outputs[0].dtype, pointwise_in_integers(call.code),
                          [&](auto c) -> std::unique_ptr<Kernel> {
                            return std::make_unique<ReduceBackward<decltype(c)>>(
                                spec, axes_reduced_by(op, spec.attrs.get(), data), call.code, call.s);
                          });
}

const bool reductions_registered = [] {
  for (const std::string &op : reducing_operators()) {
    cpu_kernels().add(op, make_reduce);
    cpu_kernels().add("_backward_" + op, make_reduce_backward);
  }
  return true;
}();

// ---- argmax, argmin, argmax_channel: the first of equal elements
// ---------------------------------------------------

template <typename T>
auto number(T x) {
  if constexpr (kIsHalf<T>)
    return float(x);
  else
    return x;
}
template <bool kLargest, typename T>
bool better(T a, T b) {  // false if either is NaN
  return kLargest ? number(a) > number(b) : number(a) < number(b);
}

// The best element of a contiguous line: the best of several lanes, then the first element equal to it. A leading NaN
// stays the best.
template <typename T, bool kLargest>
struct BestOfLineBody {
  static int64_t run(const T *x, int64_t count) {
    constexpr int kLanes = 64;
    T best = x[0];
    int64_t i = 0;
    if (count >= kLanes) {
      T partial[kLanes];
      std::fill_n(partial, kLanes, best);
      for (; i + kLanes <= count; i += kLanes) {
        for (int k = 0; k < kLanes; ++k) partial[k] = better<kLargest>(x[i + k], partial[k]) ? x[i + k] : partial[k];
      }
      for (int k = 0; k < kLanes; ++k) best = better<kLargest>(partial[k], best) ? partial[k] : best;
    }
    for (; i < count; ++i) best = better<kLargest>(x[i], best) ? x[i] : best;
    int64_t at = 0;
    for (int found = 0; at + kLanes <= count; at += kLanes) {
      for (int k = 0; k < kLanes; ++k) found += number(x[at + k]) == number(best);
      if (found > 0) break;
    }
    for (; at < count; ++at) {
      if (number(x[at]) == number(best)) return at;
    }
    return 0;
  }
};

// Updates the best elements of columns with one more line.
template <typename T, bool kLargest>
struct BestOfColumnsBody {
  static void run(const T *x, int64_t line, T *best, int64_t *at, int64_t count) {
    COHORT_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) {
      const bool wins = better<kLargest>(x[i], best[i]);
      best[i] = wins ? x[i] : best[i];
      at[i] = wins ? line : at[i];
    }
  }
};

template <typename Body, typename T>
auto version() {
  if constexpr (std::is_same_v<T, float>) return best_version<Body>();
  return &Body::run;
}

template <typename T, bool kLargest>
class ArgReduce final : public Kernel {
 public:
  ArgReduce(const Shape &shape, std::optional<int32_t> axis, const char *op)
      : of_line_(version<BestOfLineBody<T, kLargest>, T>()), of_columns_(version<BestOfColumnsBody<T, kLargest>, T>()) {
    if (!axis) {
      length_ = shape.size();
    } else {
      const int at = normalize_axis(*axis, shape.rank(), op);
      outer_ = shape.size(0, at);
      length_ = shape[at];
      inner_ = shape.size(at + 1, shape.rank());
    }
  }
  void run(const Args &args, const Lane &lane) const override {
    const T *const x = args.in<T>(0);
    T *const out = args.out<T>(0);
    if (length_ == 0) return void(std::fill_n(out, outer_ * inner_, T()));
    const int64_t width = std::min(inner_, kPointwiseBlock),
                  chunks = (inner_ + width - 1) / std::max<int64_t>(width, 1);
    const int64_t grain = std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(length_ * width, 1));
    parallel_for(lane, outer_ * chunks, grain, [&](int64_t begin, int64_t end) {
      T best[kPointwiseBlock];
      int64_t at[kPointwiseBlock];
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t outer = unit / chunks, first = unit % chunks * width, count = std::min(width, inner_ - first);
        const T *const lines = x + outer * length_ * inner_ + first;
        if (inner_ == 1) {
          at[0] = of_line_(lines, length_);
        } else {
          std::copy_n(lines, count, best);
          std::fill_n(at, count, int64_t(0));
          for (int64_t k = 1; k < length_; ++k) of_columns_(lines + k * inner_, k, best, at, count);
        }
        for (int64_t i = 0; i < count; ++i) out[outer * inner_ + first + i] = cast_element<T>(at[i]);
      }
    });
  }

 private:
  int64_t (*const of_line_)(const T *, int64_t);
  void (*const of_columns_)(const T *, int64_t, T *, int64_t *, int64_t);
  int64_t outer_ = 1, length_ = 1, inner_ = 1;
};

template <bool kLargest>
std::unique_ptr<Kernel> make_arg(StepSpec &spec, std::optional<int32_t> axis) {
  return dispatch(spec.inputs[0].dtype, [&](auto t) -> std::unique_ptr<Kernel> {
    return std::make_unique<ArgReduce<decltype(t), kLargest>>(spec.inputs[0].shape, axis, spec.op.c_str());
  });
}
std::unique_ptr<Kernel> make_argmax(StepSpec &spec) {
  return make_arg<true>(spec, spec.attrs_as<ArgReduceAttrs>().axis);
}
std::unique_ptr<Kernel> make_argmin(StepSpec &spec) {
  return make_arg<false>(spec, spec.attrs_as<ArgReduceAttrs>().axis);
}
std::unique_ptr<Kernel> make_argmax_channel(StepSpec &spec) { return make_arg<true>(spec, 1); }

COHORT_KERNEL_BY(cpu, argmax, make_argmax);
COHORT_KERNEL_BY(cpu, argmin, make_argmin);
COHORT_KERNEL_BY(cpu, argmax_channel, make_argmax_channel);

// ---- broadcast_to, broadcast_axis, broadcast_like -----------------------------------------------------------------

template <typename C>
class BroadcastCopy final : public Kernel {
 public:
  explicit BroadcastCopy(const StepSpec &spec)
      : count_(spec.outputs[0].shape.size()),
        operand_(spec.inputs[0].shape, spec.inputs[0].dtype, spec.outputs[0].shape, dtype_of<C>()),
        store_(store_block(dtype_of<C>(), spec.outputs[0].dtype)) {}
  void run(const Args &args, const Lane &lane) const override {
    parallel_for(lane, count_, kCheapGrain, [&](int64_t begin, int64_t end) {
      C buffer[kPointwiseBlock];
      for (int64_t at = begin; at < end; at += kPointwiseBlock) {
        const int64_t count = std::min(kPointwiseBlock, end - at);
        store_(operand_.template block<C>(args.inputs[0], at, count, buffer), args.outputs[0], at, count);
      }
    });
  }

 private:
  const int64_t count_;
  const BroadcastOperand operand_;
  const StoreBlock store_;
};

std::unique_ptr<Kernel> make_broadcast(StepSpec &spec) {
  return dispatch_compute(spec.outputs[0].dtype, true, [&](auto c) -> std::unique_ptr<Kernel> {
    return std::make_unique<BroadcastCopy<decltype(c)>>(spec);
  });
}
std::unique_ptr<Kernel> make_broadcast_backward(StepSpec &spec) {
  return make_reduce_of<reduce::Sum>(spec, reduced_axes(spec.inputs[0].shape, spec.outputs[0].shape), Finish::kNone);
}

COHORT_KERNEL_BY(cpu, broadcast_to, make_broadcast);
COHORT_KERNEL_BY(cpu, broadcast_axis, make_broadcast);
COHORT_KERNEL_BY(cpu, broadcast_like, make_broadcast);
COHORT_KERNEL_BY(cpu, _backward_broadcast_to, make_broadcast_backward);
COHORT_KERNEL_BY(cpu, _backward_broadcast_axis, make_broadcast_backward);
COHORT_KERNEL_BY(cpu, _backward_broadcast_like, make_broadcast_backward);

}  // namespace
}  // namespace cohort
