// SPDX-License-Identifier: Apache-2.0
#include "op/reduce.hpp"

#include <memory>

#include "cpu/op/reduce_loops.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

using reduce::ArraySource;
using reduce::Finish;

template <typename C, template <typename> class Op>
class Reduce final : public Kernel {
 public:
  Reduce(StepSpec &spec, const Shape &shape, const std::vector<bool> &reduced, Finish finish)
      : reducer_(shape, reduced, spec.outputs[0].dtype, finish, ArraySource(0, spec.inputs[0].dtype, dtype_of<C>())) {
    spec.scratch_bytes = reducer_.scratch_bytes();
  }
  void run(const Args &args, const Lane &lane) const override { reducer_.run(args, 0, lane); }

 private:
  const reduce::Reducer<C, Op<C>, ArraySource> reducer_;
};

template <template <typename> class Op>
std::unique_ptr<Kernel> make_reduce_of(StepSpec &spec, const std::vector<bool> &reduced, Finish finish) {
  return dispatch_compute(spec.inputs[0].dtype, true, [&](auto c) -> std::unique_ptr<Kernel> {
    return std::make_unique<Reduce<decltype(c), Op>>(spec, spec.inputs[0].shape, reduced, finish);
  });
}

std::vector<bool> reduced_of(const StepSpec &spec, const Shape &shape) {
  const auto &a = spec.attrs_as<ReduceAttrs>();
  return axes_to_reduce(a.axis, a.exclude, shape.rank(), spec.op.c_str());
}

template <template <typename> class Op, Finish kFinish>
std::unique_ptr<Kernel> make_reduce(StepSpec &spec) {
  return make_reduce_of<Op>(spec, reduced_of(spec, spec.inputs[0].shape), kFinish);
}

std::unique_ptr<Kernel> make_norm(StepSpec &spec) {
  const auto &a = spec.attrs_as<NormAttrs>();
  const std::vector<bool> reduced = axes_to_reduce(a.axis, false, spec.inputs[0].shape.rank(), "norm");
  if (a.ord == 1) return make_reduce_of<reduce::AbsSum>(spec, reduced, Finish::kNone);
  return make_reduce_of<reduce::SquareSum>(spec, reduced, Finish::kRoot);
}

// A functor on the head gradient (and an element, and the result it went into), repeated over the reduced axes.
template <typename C>
class ReduceBackward final : public Kernel {
 public:
  ReduceBackward(const StepSpec &spec, const std::vector<bool> &reduced, PointwiseCode code, double s)
      : count_(spec.outputs[0].shape.size()),
        loop_(pointwise_loop<C>(code)),
        s_(C(s)),
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
        loop_(operands[0], operands[1], operands[2], s_, C(0), direct_ ? args.out<C>(0) + at : out, count);
        if (!direct_) store_(out, args.outputs[0], at, count);
      }
    });
  }

 private:
  const int64_t count_;
  const PointwiseLoop<C> loop_;
  const C s_;
  const bool direct_;
  const StoreBlock store_;
  std::vector<BroadcastOperand> operands_;
};

std::unique_ptr<Kernel> make_backward_of(StepSpec &spec, const std::vector<bool> &reduced, PointwiseCode code,
                                         double s = 0) {
  return dispatch_compute(spec.outputs[0].dtype, pointwise_in_integers(code), [&](auto c) -> std::unique_ptr<Kernel> {
    return std::make_unique<ReduceBackward<decltype(c)>>(spec, reduced, code, s);
  });
}

template <PointwiseCode kCode>
std::unique_ptr<Kernel> make_reduce_backward(StepSpec &spec) {
  return make_backward_of(spec, reduced_of(spec, spec.outputs[0].shape), kCode);
}

std::unique_ptr<Kernel> make_mean_backward(StepSpec &spec) {
  const double elements = double(spec.outputs[0].shape.size()), results = double(spec.inputs[0].shape.size());
  return make_backward_of(spec, reduced_of(spec, spec.outputs[0].shape), PointwiseCode::kDivScalar,
                          results > 0 ? elements / results : 1);
}

std::unique_ptr<Kernel> make_norm_backward(StepSpec &spec) {
  const auto &a = spec.attrs_as<NormAttrs>();
  return make_backward_of(spec, axes_to_reduce(a.axis, false, spec.outputs[0].shape.rank(), "norm"),
                          a.ord == 1 ? PointwiseCode::kAbsGrad : PointwiseCode::kNormGrad);
}

COHORT_KERNEL_BY(cpu, sum, make_reduce<reduce::Sum, Finish::kNone>);
COHORT_KERNEL_BY(cpu, mean, make_reduce<reduce::Sum, Finish::kDivide>);
COHORT_KERNEL_BY(cpu, prod, make_reduce<reduce::Prod, Finish::kNone>);
COHORT_KERNEL_BY(cpu, nansum, make_reduce<reduce::NanSum, Finish::kNone>);
COHORT_KERNEL_BY(cpu, nanprod, make_reduce<reduce::NanProd, Finish::kNone>);
COHORT_KERNEL_BY(cpu, max, make_reduce<reduce::Max, Finish::kNone>);
COHORT_KERNEL_BY(cpu, min, make_reduce<reduce::Min, Finish::kNone>);
COHORT_KERNEL_BY(cpu, _square_sum, make_reduce<reduce::SquareSum, Finish::kNone>);
COHORT_KERNEL_BY(cpu, norm, make_norm);
COHORT_KERNEL_BY(cpu, _backward_sum, make_reduce_backward<PointwiseCode::kCopy>);
COHORT_KERNEL_BY(cpu, _backward_mean, make_mean_backward);
COHORT_KERNEL_BY(cpu, _backward_prod, make_reduce_backward<PointwiseCode::kProdGrad>);
COHORT_KERNEL_BY(cpu, _backward_nansum, make_reduce_backward<PointwiseCode::kNanSumGrad>);
COHORT_KERNEL_BY(cpu, _backward_nanprod, make_reduce_backward<PointwiseCode::kNanProdGrad>);
COHORT_KERNEL_BY(cpu, _backward_max, make_reduce_backward<PointwiseCode::kMaskEqual>);
COHORT_KERNEL_BY(cpu, _backward_min, make_reduce_backward<PointwiseCode::kMaskEqual>);
COHORT_KERNEL_BY(cpu, _backward__square_sum, make_reduce_backward<PointwiseCode::kSquareGrad>);
COHORT_KERNEL_BY(cpu, _backward_norm, make_norm_backward);

// ---- argmax, argmin, argmax_channel: the first one ----------------------------------------------------------------

template <typename T, bool kLargest>
class ArgReduce final : public Kernel {
 public:
  ArgReduce(const Shape &shape, std::optional<int32_t> axis, const char *op) {
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
    parallel_for(lane, outer_ * inner_, std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(length_, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const T *const line = x + i / inner_ * length_ * inner_ + i % inner_;
                     int64_t best = 0;
                     for (int64_t k = 1; k < length_; ++k) {
                       if (better(line[k * inner_], line[best * inner_])) best = k;
                     }
                     out[i] = cast_element<T>(best);
                   }
                 });
  }

 private:
  static bool better(T a, T b) {
    if constexpr (kIsHalf<T>) {
      return kLargest ? float(a) > float(b) : float(a) < float(b);
    } else {
      return kLargest ? a > b : a < b;
    }
  }
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
