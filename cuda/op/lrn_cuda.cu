// SPDX-License-Identifier: Apache-2.0
// LRN: one thread per element.
#include "cuda/op/elements.cuh"
#include "device/kernel_table.hpp"
#include "op/float_math.hpp"
#include "op/lrn.hpp"

namespace cohort {
namespace {

// ---- LRN of data as (batch, channels, places): norm = knorm + alpha / nsize * sum(x^2) over neighbouring channels

template <typename C>
struct LrnNumbers {
  int64_t channels, places, reach;
  C knorm, factor, beta;
  __device__ int64_t channel(int64_t i) const { return i / places % channels; }
  // The sum of fn(place) over the neighbours of the element.
  template <typename Fn>
  __device__ C neighbours(int64_t i, const Fn &fn) const {
    const int64_t c = channel(i), low = c < reach ? 0 : c - reach,
                  high = c + reach < channels ? c + reach : channels - 1;
    C sum = 0;
    for (int64_t k = low; k <= high; ++k) sum += fn(i + (k - c) * places);
    return sum;
  }
  __device__ C norm(const Elements &x, int64_t i) const {
    return knorm + factor * neighbours(i, [&](int64_t at) { return load<C>(x, at) * load<C>(x, at); });
  }
  __device__ C power(C norm) const { return pointwise::exp_of(-beta * pointwise::log_of(norm)); }
};

// Backward: head gradient, data. dx = dy norm^-beta - 2 alpha beta / nsize x sum(dy x norm^(-beta - 1)).
template <typename C, bool kBackward>
class LrnCuda final : public Kernel {
 public:
  explicit LrnCuda(StepSpec &spec) : count_(spec.outputs[0].shape.size()), dtype_(spec.outputs[0].dtype) {
    const auto &a = spec.attrs_as<LrnAttrs>();
    const Shape &shape = spec.inputs[0].shape;
    n_ = {shape[1], shape.size(2, 4), (a.nsize - 1) / 2, C(a.knorm), C(a.alpha) / C(a.nsize), C(a.beta)};
    if (kBackward) spec.scratch_bytes = size_t(count_) * sizeof(C);
  }
  void run(const Args &args, const Lane &lane) const override {
    const Elements first = elements_of(args.inputs[0], dtype_), to = elements_of(args.outputs[0], dtype_);
    const LrnNumbers<C> n = n_;
    if constexpr (kBackward) {
      const Elements x = elements_of(args.inputs[1], dtype_);
      C *const ratios = static_cast<C *>(args.scratch);
      for_each(lane, count_, [=] __device__(int64_t i) {
        const C norm = n.norm(x, i);
        ratios[i] = load<C>(first, i) * n.power(norm) * load<C>(x, i) / norm;
      });
      for_each(lane, count_, [=] __device__(int64_t i) {
        const C sum = n.neighbours(i, [&](int64_t at) { return ratios[at]; });
        store(to, i, load<C>(first, i) * n.power(n.norm(x, i)) - 2 * n.factor * n.beta * load<C>(x, i) * sum);
      });
    } else {
      for_each(lane, count_,
               [=] __device__(int64_t i) { store(to, i, load<C>(first, i) * n.power(n.norm(first, i))); });
    }
  }

 private:
  const int64_t count_;
  const Dtype dtype_;
  LrnNumbers<C> n_;
};

template <bool kBackward>
std::unique_ptr<Kernel> make_lrn(StepSpec &spec) {
  return dispatch_compute(spec.inputs[0].dtype, false, [&](auto c) -> std::unique_ptr<Kernel> {
    if constexpr (std::is_floating_point_v<decltype(c)>) return std::make_unique<LrnCuda<decltype(c), kBackward>>(spec);
    return nullptr;
  });
}

COHORT_KERNEL_BY(cuda, LRN, make_lrn<false>);
COHORT_KERNEL_BY(cuda, _backward_LRN, make_lrn<true>);

}  // namespace
}  // namespace cohort
