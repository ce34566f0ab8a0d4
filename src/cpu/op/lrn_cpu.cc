// SPDX-License-Identifier: Apache-2.0
// LRN of data as (batch, channels, places), in blocks of places, over which each loop runs.
#include "op/lrn.hpp"

#include <algorithm>

#include "cpu/op/compute_kernel.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

constexpr int64_t kBlock = 128;

template <typename C>
class Lrn {
 public:
  explicit Lrn(const StepSpec &spec)
      : a_(spec.attrs_as<LrnAttrs>()),
        batch_(spec.inputs[0].shape[0]),
        channels_(spec.inputs[0].shape[1]),
        places_(spec.inputs[0].shape.size(2, 4)),
        log_(pointwise_loop<C>(PointwiseCode::kLog)),
        exp_(pointwise_loop<C>(PointwiseCode::kExp)) {}

 protected:
  // Calls fn(offset of a sample, first place, number of places) for all blocks.
  template <typename Fn>
  void blocks(const Lane &lane, Fn &&fn) const {
    const int64_t per_sample = (places_ + kBlock - 1) / kBlock;
    parallel_for(lane, batch_ * per_sample, 1 + 4096 / (channels_ * std::min(places_, kBlock) + 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t first = i % per_sample * kBlock;
                     fn(i / per_sample * channels_ * places_, first, std::min(kBlock, places_ - first));
                   }
                 });
  }
  // Calls fn(offset of a channel) for the neighbours of one.
  template <typename Fn>
  void neighbours(int64_t channel, Fn &&fn) const {
    const int64_t reach = (a_.nsize - 1) / 2;
    for (int64_t c = std::max<int64_t>(channel - reach, 0); c <= std::min(channel + reach, channels_ - 1); ++c) {
      fn(c * places_);
    }
  }
  // norm = knorm + alpha / nsize * sum(x^2) and power = norm^-beta at a block of a channel; x points to the block in
  // channel 0.
  void norm_of(const C *x, int64_t channel, int64_t count, C *norm, C *power) const {
    std::fill_n(norm, count, C(0));
    neighbours(channel, [&](int64_t at) {
      for (int64_t i = 0; i < count; ++i) norm[i] += x[at + i] * x[at + i];
    });
    const C factor = C(a_.alpha) / C(a_.nsize);
    for (int64_t i = 0; i < count; ++i) norm[i] = C(a_.knorm) + factor * norm[i];
    log_(norm, nullptr, nullptr, 0, 0, power, count);
    for (int64_t i = 0; i < count; ++i) power[i] *= -C(a_.beta);
    exp_(power, nullptr, nullptr, 0, 0, power, count);
  }

  const LrnAttrs a_;
  const int64_t batch_, channels_, places_;
  const PointwiseLoop<C> log_, exp_;
};

template <typename C>
class LrnForward : Lrn<C> {
 public:
  using Lrn<C>::Lrn;
  size_t extra() const { return 0; }
  void run(const C *const *in, C *const *out, C *, const Lane &lane) const {
    this->blocks(lane, [&](int64_t sample, int64_t first, int64_t count) {
      const C *const x = in[0] + sample + first;
      C *const y = out[0] + sample + first;
      C norm[kBlock], power[kBlock];
      for (int64_t c = 0; c < this->channels_; ++c) {
        const int64_t at = c * this->places_;
        this->norm_of(x, c, count, norm, power);
        for (int64_t i = 0; i < count; ++i) y[at + i] = x[at + i] * power[i];
      }
    });
  }
};

// dx = dy norm^-beta - 2 alpha beta / nsize x sum(dy x norm^(-beta - 1)), the sum over the neighbours.
template <typename C>
class LrnBackward : Lrn<C> {
 public:
  using Lrn<C>::Lrn;
  size_t extra() const { return size_t(this->batch_ * this->channels_ * this->places_); }
  void run(const C *const *in, C *const *out, C *extra, const Lane &lane) const {
    const C factor = 2 * C(this->a_.alpha) * C(this->a_.beta) / C(this->a_.nsize);
    this->blocks(lane, [&](int64_t sample, int64_t first, int64_t count) {
      const C *const dy = in[0] + sample + first, *const x = in[1] + sample + first;
      C *const dx = out[0] + sample + first, *const ratio = extra + sample + first;
      C norm[kBlock], power[kBlock];
      for (int64_t c = 0; c < this->channels_; ++c) {
        const int64_t at = c * this->places_;
        this->norm_of(x, c, count, norm, power);
        for (int64_t i = 0; i < count; ++i) {
          dx[at + i] = dy[at + i] * power[i];
          ratio[at + i] = dx[at + i] * x[at + i] / norm[i];
        }
      }
      for (int64_t c = 0; c < this->channels_; ++c) {
        C sum[kBlock] = {};
        this->neighbours(c, [&](int64_t at) {
          for (int64_t i = 0; i < count; ++i) sum[i] += ratio[at + i];
        });
        const int64_t at = c * this->places_;
        for (int64_t i = 0; i < count; ++i) dx[at + i] -= factor * x[at + i] * sum[i];
      }
    });
  }
};

COHORT_KERNEL_BY(cpu, LRN, make_compute<LrnForward>);
COHORT_KERNEL_BY(cpu, _backward_LRN, make_compute<LrnBackward>);

}  // namespace
}  // namespace cohort
