// SPDX-License-Identifier: Apache-2.0
// LeakyReLU: element by element in whatever layout the data lie (layouts of activations hold no padding), but for
// prelu, whose slopes belong to channels and which wants row-major data.
#include "op/leaky_relu.hpp"

#include <algorithm>
#include <cmath>

#include "base/random.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

constexpr int64_t kGrain = 4096;
constexpr double kSeluScale = 1.0507009873554804934193349852946, kSeluAlpha = 1.6732632423543772848170429916717;

// Calls fn(f, slope): the function of x, and its derivative as a function of x or, for leaky with a slope that keeps
// signs, of its output.
template <typename C, typename Fn>
void with_function(const LeakyReLUAttrs &a, Fn &&fn) {
  const C slope = C(a.slope);
  switch (a.act_type) {
    case LeakyReLUAttrs::kLeaky:
      return fn([=](C x) { return x > 0 ? x : slope * x; }, [=](C x) { return x > 0 ? C(1) : slope; });
    case LeakyReLUAttrs::kElu:
      return fn([=](C x) { return x > 0 ? x : slope * std::expm1(x); },
                [=](C x) { return x > 0 ? C(1) : slope * std::exp(x); });
    case LeakyReLUAttrs::kSelu:
      return fn([](C x) { return C(kSeluScale) * (x > 0 ? x : C(kSeluAlpha) * std::expm1(x)); },
                [](C x) { return C(kSeluScale) * (x > 0 ? C(1) : C(kSeluAlpha) * std::exp(x)); });
    case LeakyReLUAttrs::kGelu:
      return fn([](C x) { return x * C(0.5) * (1 + std::erf(x * C(0.70710678118654752440))); },
                [](C x) {
                  return C(0.5) * (1 + std::erf(x * C(0.70710678118654752440))) +
                         x * C(0.39894228040143267794) * std::exp(C(-0.5) * x * x);
                });
    case LeakyReLUAttrs::kRrelu:
    case LeakyReLUAttrs::kPrelu:
      break;
  }
  throw Error(Code::kInternal, text("LeakyReLU: there is no type ", int(a.act_type)));
}

int64_t flat_size(const TensorSpec &tensor) { return int64_t(tensor.bytes() / dtype_size(tensor.dtype)); }

class LeakyForward final : public Kernel {
 public:
  explicit LeakyForward(StepSpec &spec)
      : attrs_(spec.attrs_as<LeakyReLUAttrs>()), dtype_(spec.inputs[0].dtype), count_(flat_size(spec.inputs[0])) {
    spec.outputs[0].layout = spec.inputs[0].layout;
  }
  void run(const Args &args, const Lane &lane) const override {
    dispatch_float(dtype_, "LeakyReLU", [&](auto type) {
      using T = decltype(type);
      using C = typename Accumulator<T>::type;
      const T *x = args.in<T>(0);
      T *y = args.out<T>(0);
      with_function<C>(attrs_, [&](auto f, auto) {
        parallel_for(lane, count_, kGrain, [=](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) y[i] = cast_element<T>(f(cast_element<C>(x[i])));
        });
      });
    });
  }

 private:
  const LeakyReLUAttrs attrs_;
  const Dtype dtype_;
  const int64_t count_;
};

// Inputs: head gradient; data or (leaky) output.
class LeakyBackward final : public Kernel {
 public:
  explicit LeakyBackward(StepSpec &spec)
      : attrs_(spec.attrs_as<LeakyReLUAttrs>()), dtype_(spec.inputs[0].dtype), count_(flat_size(spec.inputs[1])) {
    spec.inputs[0].layout = spec.outputs[0].layout = spec.inputs[1].layout;
  }
  void run(const Args &args, const Lane &lane) const override {
    dispatch_float(dtype_, "_backward_LeakyReLU", [&](auto type) {
      using T = decltype(type);
      using C = typename Accumulator<T>::type;
      const T *head = args.in<T>(0), *x = args.in<T>(1);
      T *grad = args.out<T>(0);
      with_function<C>(attrs_, [&](auto, auto slope) {
        parallel_for(lane, count_, kGrain, [=](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            grad[i] = cast_element<T>(cast_element<C>(head[i]) * slope(cast_element<C>(x[i])));
          }
        });
      });
    });
  }

 private:
  const LeakyReLUAttrs attrs_;
  const Dtype dtype_;
  const int64_t count_;
};

// rrelu: the slopes are its second output. In training that of element i of run r is number i of stream r, else their
// mean; 1 above zero.
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

// Inputs: head gradients of both outputs, of which none flows through the slopes; the slopes.
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

// Where element i of (outer, channels, inner) finds its slope: at i / inner % channels.
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
      // The sum over head * x below zero of a channel is read before dx, which may be head, is written.
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
  return std::make_unique<LeakyForward>(spec);
}

std::unique_ptr<Kernel> make_backward(StepSpec &spec) {
  const auto &a = spec.attrs_as<LeakyReLUAttrs>();
  if (a.act_type == LeakyReLUAttrs::kPrelu) return std::make_unique<PreluBackward>(spec);
  if (a.act_type == LeakyReLUAttrs::kRrelu) return std::make_unique<RandomBackward>(spec);
  return std::make_unique<LeakyBackward>(spec);
}

COHORT_KERNEL_BY(cpu, LeakyReLU, make_forward).dtypes(kFloatTypes).any_layout();
COHORT_KERNEL_BY(cpu, _backward_LeakyReLU, make_backward).dtypes(kFloatTypes).any_layout();

}  // namespace
}  // namespace cohort
