// SPDX-License-Identifier: Apache-2.0
// LeakyReLU: element by element in any layout (layouts of activations hold no padding), except prelu, which has a
// slope per channel and needs row-major data.
#include "op/leaky_relu.hpp"

#include <algorithm>

#include "base/random.hpp"
#include "cpu/op/elementwise.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

constexpr int64_t kGrain = 4096;

// The function; and its gradient, from the gradient of the output and from the data, or from the output for leaky
// with a slope that keeps signs. The other kinds have arrays of slopes.
PointwiseCall call_of(const LeakyReLUAttrs &a, bool is_backward) {
  using P = PointwiseCode;
  const auto call = [&](P forward, P backward) {
    return is_backward ? PointwiseCall{backward, 0, 1, -1, a.slope} : PointwiseCall{forward, 0, -1, -1, a.slope};
  };
  switch (a.act_type) {
    case LeakyReLUAttrs::kLeaky:
      return call(P::kLeaky, P::kLeakyGrad);
    case LeakyReLUAttrs::kElu:
      return call(P::kElu, P::kEluGrad);
    case LeakyReLUAttrs::kSelu:
      return call(P::kSelu, P::kSeluGrad);
    case LeakyReLUAttrs::kGelu:
      return call(P::kGelu, P::kGeluGrad);
    case LeakyReLUAttrs::kRrelu:
    case LeakyReLUAttrs::kPrelu:
      break;
  }
  throw Error(Code::kInternal, text("LeakyReLU: there is no type ", int(a.act_type)));
}

// rrelu: the slopes are its second output. In training the slope of element i of run r is number i of stream r, else
// their mean; above zero it is 1.
class RandomForward final : public Kernel {
 public:
  explicit RandomForward(StepSpec &spec)
      : attrs_(spec.attrs_as<LeakyReLUAttrs>()),
        dtype_(spec.inputs[0].dtype),
        count_(spec.inputs[0].shape.size()),
        is_train_(spec.is_train) {
    spec.inputs[0].layout = nullptr;
  }
  void run(const Args &args, const Lane &lane) const override {
    const uint64_t seed = is_train_ ? args.random->seed : 0, stream = is_train_ ? args.random->draws++ : 0;
    dispatch_float(dtype_, "LeakyReLU", [&](auto type) {
      using T = decltype(type);
      using C = typename Accumulator<T>::type;
      const T *x = args.in<T>(0);
      T *y = args.out<T>(0), *slopes = args.out<T>(1);  // null: not wanted
      const float low = attrs_.lower_bound, span = attrs_.upper_bound - attrs_.lower_bound;
      const C mean = (C(attrs_.lower_bound) + C(attrs_.upper_bound)) / 2;
      parallel_for(lane, (count_ + 3) / 4, kGrain / 16, [&](int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; ++block) {
          const Philox random = is_train_ ? Philox::at(seed, uint64_t(block), stream) : Philox{};
          for (int64_t i = block * 4; i < std::min(block * 4 + 4, count_); ++i) {
            const C value = cast_element<C>(x[i]);
            const C below = is_train_ ? C(low + span * uniform_of(random.word[i % 4])) : mean;
            const C slope = value > 0 ? C(1) : below;
            if (y) y[i] = cast_element<T>(value * slope);
            if (slopes) slopes[i] = cast_element<T>(slope);
          }
        }
      });
    });
  }

 private:
  const LeakyReLUAttrs attrs_;
  const Dtype dtype_;
  const int64_t count_;
  const bool is_train_;
};

// Inputs: head gradients of both outputs (no gradient flows through the slopes); the slopes.
class RandomBackward final : public Kernel {
 public:
  explicit RandomBackward(StepSpec &spec) : dtype_(spec.inputs[0].dtype), count_(spec.inputs[0].shape.size()) {
    for (TensorSpec &input : spec.inputs) input.layout = nullptr;
  }
  void run(const Args &args, const Lane &lane) const override {
    dispatch_float(dtype_, "_backward_LeakyReLU", [&](auto type) {
      using T = decltype(type);
      using C = typename Accumulator<T>::type;
      const T *head = args.in<T>(0), *slopes = args.in<T>(2);
      T *grad = args.out<T>(0);
      parallel_for(lane, count_, kGrain, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          grad[i] = cast_element<T>(cast_element<C>(head[i]) * cast_element<C>(slopes[i]));
        }
      });
    });
  }

 private:
  const Dtype dtype_;
  const int64_t count_;
};

// The slope of element i of (outer, channels, inner) is at i / inner % channels.
struct Slopes {
  int64_t outer, channels, inner;
};

Slopes slopes_of(const Shape &data, const Shape &gamma) {
  if (gamma.size() == 1) return {1, 1, data.size()};
  if (gamma == data) return {1, data.size(), 1};
  return {data[0], data[1], data.size(2, data.rank())};
}

class PreluForward final : public Kernel {
 public:
  explicit PreluForward(StepSpec &spec)
      : dtype_(spec.inputs[0].dtype), slopes_(slopes_of(spec.inputs[0].shape, spec.inputs[1].shape)) {
    for (TensorSpec &input : spec.inputs) input.layout = nullptr;
  }
  void run(const Args &args, const Lane &lane) const override {
    dispatch_float(dtype_, "LeakyReLU", [&](auto type) {
      using T = decltype(type);
      using C = typename Accumulator<T>::type;
      const T *x = args.in<T>(0), *gamma = args.in<T>(1);
      T *y = args.out<T>(0);
      const Slopes s = slopes_;
      parallel_for(lane, s.outer * s.channels, 1 + kGrain / (s.inner + 1), [=](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const C slope = cast_element<C>(gamma[row % s.channels]);
          for (int64_t i = row * s.inner; i < (row + 1) * s.inner; ++i) {
            const C value = cast_element<C>(x[i]);
            y[i] = cast_element<T>(value > 0 ? value : slope * value);
          }
        }
      });
    });
  }

 private:
  const Dtype dtype_;
  const Slopes slopes_;
};

// Inputs: head gradient, data, gamma.
class PreluBackward final : public Kernel {
 public:
  explicit PreluBackward(StepSpec &spec)
      : dtype_(spec.inputs[0].dtype), slopes_(slopes_of(spec.inputs[1].shape, spec.inputs[2].shape)) {
    for (TensorSpec &input : spec.inputs) input.layout = nullptr;
  }
  void run(const Args &args, const Lane &lane) const override {
    dispatch_float(dtype_, "_backward_LeakyReLU", [&](auto type) {
      using T = decltype(type);
      using C = typename Accumulator<T>::type;
      const T *head = args.in<T>(0), *x = args.in<T>(1), *gamma = args.in<T>(2);
      T *dx = args.out<T>(0), *dgamma = args.out<T>(1);
      const Slopes s = slopes_;
      // Reads the sum over head * x below zero of a channel before it writes dx, which may be head.
      parallel_for(lane, s.channels, 1 + kGrain / (s.outer * s.inner + 1), [=](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
          const C slope = cast_element<C>(gamma[c]);
          C sum = 0;
          for (int64_t o = 0; o < s.outer; ++o) {
            for (int64_t i = (o * s.channels + c) * s.inner; i < (o * s.channels + c + 1) * s.inner; ++i) {
              const C value = cast_element<C>(x[i]), g = cast_element<C>(head[i]);
              if (!(value > 0)) sum += g * value;
              if (dx) dx[i] = cast_element<T>(value > 0 ? g : g * slope);
            }
          }
          if (dgamma) dgamma[c] = cast_element<T>(sum);
        }
      });
    });
  }

 private:
  const Dtype dtype_;
  const Slopes slopes_;
};

std::unique_ptr<Kernel> make_forward(StepSpec &spec) {
  const auto &a = spec.attrs_as<LeakyReLUAttrs>();
  if (a.act_type == LeakyReLUAttrs::kPrelu) return std::make_unique<PreluForward>(spec);
  if (a.act_type == LeakyReLUAttrs::kRrelu) return std::make_unique<RandomForward>(spec);
  spec.outputs[0].layout = spec.inputs[0].layout;
  return make_elementwise(spec, {call_of(a, /* is_backward */ false)});
}

std::unique_ptr<Kernel> make_backward(StepSpec &spec) {
  const auto &a = spec.attrs_as<LeakyReLUAttrs>();
  if (a.act_type == LeakyReLUAttrs::kPrelu) return std::make_unique<PreluBackward>(spec);
  if (a.act_type == LeakyReLUAttrs::kRrelu) return std::make_unique<RandomBackward>(spec);
  spec.inputs[0].layout = spec.outputs[0].layout = spec.inputs[1].layout;
  return make_elementwise(spec, {call_of(a, /* is_backward */ true)});
}

COHORT_KERNEL_BY(cpu, LeakyReLU, make_forward).dtypes(kFloatTypes).any_layout();
COHORT_KERNEL_BY(cpu, _backward_LeakyReLU, make_backward).dtypes(kFloatTypes).any_layout();

}  // namespace
}  // namespace cohort
