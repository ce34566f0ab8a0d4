// SPDX-License-Identifier: Apache-2.0
// LeakyReLU in all its forms.
#include "base/random.hpp"
#include "cuda/cuda_layout.hpp"
#include "cuda/op/rows.cuh"
#include "device/kernel_table.hpp"
#include "device/run_value.hpp"
#include "op/leaky_relu.hpp"
#include "op/pointwise_math.hpp"

namespace cohort {
namespace {

// The function of x or, backward, its gradient: x is the output there, of leaky with a slope that keeps signs.
template <typename C, bool kBackward>
__device__ C leaky(int type, C slope, C head, C x) {
  const auto value_of = [&](auto function, auto gradient) {
    if constexpr (kBackward) return decltype(gradient)::template of<C>(head, x, C(0), slope, C(0));
    return decltype(function)::template of<C>(x, C(0), C(0), slope, C(0));
  };
  switch (type) {
    case LeakyReLUAttrs::kElu:
      return value_of(pointwise::Elu(), pointwise::EluGrad());
    case LeakyReLUAttrs::kSelu:
      return value_of(pointwise::Selu(), pointwise::SeluGrad());
    case LeakyReLUAttrs::kGelu:
      return value_of(pointwise::Gelu(), pointwise::GeluGrad());
    default:
      return value_of(pointwise::Leaky(), pointwise::LeakyGrad());
  }
}

// Backward: head gradient; data or (leaky) output.
template <typename C, bool kBackward>
class LeakyCuda final : public Kernel {
 public:
  explicit LeakyCuda(const StepSpec &spec)
      : type_(spec.attrs_as<LeakyReLUAttrs>().act_type),
        slope_(C(spec.attrs_as<LeakyReLUAttrs>().slope)),
        count_(spec.outputs[0].shape.size()),
        dtype_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const Elements first = elements_of(args.inputs[0], dtype_), to = elements_of(args.outputs[0], dtype_);
    const Elements x = kBackward ? elements_of(args.inputs[1], dtype_) : first;
    const int type = type_;
    const C slope = slope_;
    for_each(lane, count_, [=] __device__(int64_t i) {
      store(to, i, leaky<C, kBackward>(type, slope, load<C>(first, i), load<C>(x, i)));
    });
  }

 private:
  const int type_;
  const C slope_;
  const int64_t count_;
  const Dtype dtype_;
};

// rrelu: its second output are the slopes. The slope is 1 above zero; below, in training it is number i of the stream
// of the run for element i, else the mean. Inputs backward: head gradients of both outputs (the second is ignored);
// slopes.
template <typename C, bool kBackward>
class RandomLeakyCuda final : public Kernel {
 public:
  explicit RandomLeakyCuda(const StepSpec &spec)
      : attrs_(spec.attrs_as<LeakyReLUAttrs>()),
        count_(spec.inputs[0].shape.size()),
        dtype_(spec.inputs[0].dtype),
        is_train_(spec.is_train) {}
  void run(const Args &args, const Lane &lane) const override {
    const Elements x = elements_of(args.inputs[0], dtype_), y = elements_of(args.outputs[0], dtype_);
    if constexpr (kBackward) {
      const Elements slopes = elements_of(args.inputs[2], dtype_);
      for_each(lane, count_, [=] __device__(int64_t i) { store(y, i, load<C>(x, i) * load<C>(slopes, i)); });
    } else {
      const Elements slopes = elements_of(args.outputs[1], dtype_);
      const C mean = (C(attrs_.lower_bound) + C(attrs_.upper_bound)) / 2;
      if (!is_train_) {
        for_each(lane, count_, [=] __device__(int64_t i) { put(x, y, slopes, i, mean); });
        return;
      }
      const auto draw = next_draw(args, lane);
      const float low = attrs_.lower_bound, span = attrs_.upper_bound - attrs_.lower_bound;
      for_each(lane, count_, [=] __device__(int64_t i) {
        const RandomStream drawn = draw.get();
        const Philox random = Philox::at(drawn.seed, uint64_t(i / 4), drawn.draws);
        put(x, y, slopes, i, C(low + span * uniform_of(random.word[i % 4])));
      });
    }
  }

 private:
  static __device__ void put(const Elements &x, const Elements &y, const Elements &slopes, int64_t i, C below) {
    const C value = load<C>(x, i), slope = value > 0 ? C(1) : below;
    if (y.data) store(y, i, value * slope);
    if (slopes.data) store(slopes, i, slope);
  }

  const LeakyReLUAttrs attrs_;
  const int64_t count_;
  const Dtype dtype_;
  const bool is_train_;
};

// prelu: element i of (outer, channels, inner) has slope number i / inner % channels. Inputs backward: head gradient,
// data, gamma.
RowExtent slopes_of(const Shape &data, const Shape &gamma) {
  if (gamma.size() == 1) return {1, 1, data.size()};
  if (gamma == data) return {1, data.size(), 1};
  return {data[0], data[1], data.size(2, data.rank())};
}

template <typename C>
class PreluCuda final : public Kernel {
 public:
  explicit PreluCuda(const StepSpec &spec)
      : e_(slopes_of(spec.inputs[0].shape, spec.inputs[1].shape)), dtype_(spec.inputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const Elements x = elements_of(args.inputs[0], dtype_), gamma = elements_of(args.inputs[1], dtype_);
    const Elements y = elements_of(args.outputs[0], dtype_);
    const RowExtent e = e_;
    for_each(lane, e.size(), [=] __device__(int64_t i) {
      const C value = load<C>(x, i);
      store(y, i, value > 0 ? value : load<C>(gamma, i / e.inner % e.length) * value);
    });
  }

 private:
  const RowExtent e_;
  const Dtype dtype_;
};

template <typename C>
class PreluBackwardCuda final : public Kernel {
 public:
  explicit PreluBackwardCuda(const StepSpec &spec)
      : e_(slopes_of(spec.inputs[1].shape, spec.inputs[2].shape)), dtype_(spec.inputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const Elements head = elements_of(args.inputs[0], dtype_), x = elements_of(args.inputs[1], dtype_);
    const Elements gamma = elements_of(args.inputs[2], dtype_), dx = elements_of(args.outputs[0], dtype_);
    const Elements dgamma = elements_of(args.outputs[1], dtype_);
    const RowExtent e = e_;
    // The sum over head * x below zero of a channel is read before dx, which may be head, is written.
    if (dgamma.data) {
      for_each_row(lane, e.length, [=] __device__(int64_t c) {
        const C sum = sum_along<C>(e.outer * e.inner, [=](int64_t i) {
          const int64_t at = (i / e.inner * e.length + c) * e.inner + i % e.inner;
          const C value = load<C>(x, at);
          return value > 0 ? C(0) : load<C>(head, at) * value;
        });
        if (threadIdx.x == 0) store(dgamma, c, sum);
      });
    }
    if (!dx.data) return;
    for_each(lane, e.size(), [=] __device__(int64_t i) {
      const C g = load<C>(head, i);
      store(dx, i, load<C>(x, i) > 0 ? g : g * load<C>(gamma, i / e.inner % e.length));
    });
  }

 private:
  const RowExtent e_;
  const Dtype dtype_;
};

template <typename C, bool kBackward>
std::unique_ptr<Kernel> make_leaky_of(StepSpec &spec) {
  const auto type = spec.attrs_as<LeakyReLUAttrs>().act_type;
  if (type == LeakyReLUAttrs::kPrelu) {
    if constexpr (kBackward) return std::make_unique<PreluBackwardCuda<C>>(spec);
    return std::make_unique<PreluCuda<C>>(spec);
  }
  if (type == LeakyReLUAttrs::kRrelu) return std::make_unique<RandomLeakyCuda<C, kBackward>>(spec);
  return std::make_unique<LeakyCuda<C, kBackward>>(spec);
}
// Any layout, except with slopes by channels, and with slopes that are drawn in the order of elements.
template <bool kBackward>
std::unique_ptr<Kernel> make_leaky(StepSpec &spec) {
  const auto make =
      spec.inputs[0].dtype == Dtype::kFloat64 ? make_leaky_of<double, kBackward> : make_leaky_of<float, kBackward>;
  const auto type = spec.attrs_as<LeakyReLUAttrs>().act_type;
  if (type != LeakyReLUAttrs::kPrelu && type != LeakyReLUAttrs::kRrelu) return make_flat(spec, make);
  for (TensorSpec &input : spec.inputs) input.layout = nullptr;
  return make(spec);
}

COHORT_KERNEL_BY(cuda, LeakyReLU, make_leaky<false>).dtypes(kFloatTypes).any_layout();
COHORT_KERNEL_BY(cuda, _backward_LeakyReLU, make_leaky<true>).dtypes(kFloatTypes).any_layout();

}  // namespace
}  // namespace cohort
