// SPDX-License-Identifier: Apache-2.0
// LRN of data as (batch, channels, places), in blocks of places; each loop runs over a block.
#include "op/lrn.hpp"

#include <algorithm>
#include <type_traits>

#include "cpu/op/cpu_backend.hpp"
#include "cpu/parallel.hpp"
#include "cpu/simd.hpp"
#include "device/kernel_table.hpp"
#include "op/float_math.hpp"

namespace cohort {
namespace {

constexpr int64_t kBlock = 1024;

// norm = knorm + factor * the sum of the squares of `lines` lines, `step` apart.
template <typename C>
struct Norm {
  static void run(const C *x, int64_t lines, int64_t step, int64_t count, C knorm, C factor, C *norm) {
    for (int64_t i = 0; i < count; ++i) norm[i] = x[i] * x[i];
    for (int64_t line = 1; line < lines; ++line) {
      const C *const next = x + line * step;
      for (int64_t i = 0; i < count; ++i) norm[i] += next[i] * next[i];
    }
    for (int64_t i = 0; i < count; ++i) norm[i] = knorm + factor * norm[i];
  }
};

// x^-0.75 = r^3 with r = x^-0.25, by Newton's steps from an estimate based on the bits of x. False if some x is out
// of the common range and its power wrong.
struct UsualPower {
  static bool is_usual(float x) { return (x > 1e-30f) & (x < 1e30f); }
  static bool run(const float *x, int64_t count, float *y) {
    int32_t unusual = 0;
    for (int64_t i = 0; i < count; ++i) {
      float r = pointwise::float_of(0x4f584000u - (pointwise::bits_of(x[i]) >> 2));
      for (int step = 0; step < 3; ++step) r *= 1.25f - 0.25f * x[i] * ((r * r) * (r * r));
      y[i] = r * r * r;
      unusual |= !is_usual(x[i]);
    }
    return unusual == 0;
  }
};

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
  int64_t blocks_of_sample() const { return (places_ + kBlock - 1) / kBlock; }
  int64_t num_blocks() const { return batch_ * blocks_of_sample(); }
  // Calls fn(block, offset of its sample, its first place, its number of places) for all blocks.
  template <typename Fn>
  void blocks(const Lane &lane, Fn &&fn) const {
    parallel_for(lane, num_blocks(), 1 + 4096 / (channels_ * std::min(places_, kBlock) + 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t first = i % blocks_of_sample() * kBlock;
                     fn(i, i / blocks_of_sample() * channels_ * places_, first, std::min(kBlock, places_ - first));
                   }
                 });
  }
  // The channels over which the squares at a channel are summed.
  int64_t reach() const { return std::max<int64_t>(std::min<int64_t>((a_.nsize - 1) / 2, channels_ - 1), 0); }
  int64_t first_of(int64_t channel) const { return std::max<int64_t>(channel - reach(), 0); }
  int64_t behind_of(int64_t channel) const { return std::min<int64_t>(channel + reach() + 1, channels_); }
  // Computes norm = knorm + alpha / nsize * sum(x^2) and power = norm^-beta for a block of a channel; x points to the
  // block in channel 0.
  void norm_of(const C *x, int64_t channel, int64_t count, C *norm, C *power) const {
    const int64_t first = first_of(channel);
    norm_(x + first * places_, behind_of(channel) - first, places_, count, C(a_.knorm), C(a_.alpha) / C(a_.nsize),
          norm);
    if constexpr (std::is_same_v<C, float>) {
      if (a_.beta == 0.75f) {
        if (usual_power_(norm, count, power)) return;
        C any[kBlock];
        any_power(norm, count, any);
        for (int64_t i = 0; i < count; ++i) power[i] = UsualPower::is_usual(norm[i]) ? power[i] : any[i];
        return;
      }
    }
    any_power(norm, count, power);
  }
  void any_power(const C *norm, int64_t count, C *power) const {
    log_(norm, nullptr, nullptr, 0, 0, power, count);
    for (int64_t i = 0; i < count; ++i) power[i] *= -C(a_.beta);
    exp_(power, nullptr, nullptr, 0, 0, power, count);
  }

  const LrnAttrs a_;
  const int64_t batch_, channels_, places_;
  const PointwiseLoop<C> log_, exp_;
  void (*const norm_)(const C *, int64_t, int64_t, int64_t, C, C, C *) = best_version<Norm<C>>();
  bool (*const usual_power_)(const float *, int64_t, float *) = best_version<UsualPower>();
};

template <typename C>
class LrnForward : Lrn<C> {
 public:
  using Lrn<C>::Lrn;
  size_t extra() const { return 0; }
  void run(const C *const *in, C *const *out, C *, const Lane &lane) const {
    this->blocks(lane, [&](int64_t, int64_t sample, int64_t first, int64_t count) {
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

// dx = dy norm^-beta - 2 alpha beta / nsize x sum(dy x norm^(-beta - 1)), with the sum over the neighbours.
template <typename C>
class LrnBackward : Lrn<C> {
 public:
  using Lrn<C>::Lrn;
  size_t extra() const {
    return size_t(this->num_blocks() * ring() * line());
  }  // for each block, ratios of the neighbouring channels
  void run(const C *const *in, C *const *out, C *extra, const Lane &lane) const {
    const C factor = 2 * C(this->a_.alpha) * C(this->a_.beta) / C(this->a_.nsize);
    this->blocks(lane, [&](int64_t index, int64_t sample, int64_t first, int64_t count) {
      const C *const dy = in[0] + sample + first, *const x = in[1] + sample + first;
      C *const dx = out[0] + sample + first, *const ratios = extra + index * ring() * line();
      C norm[kBlock], power[kBlock];
      for (int64_t c = 0; c < this->channels_ + ring() / 2; ++c) {
        if (c < this->channels_) {
          const int64_t at = c * this->places_;
          C *const ratio = ratios + c % ring() * line();
          this->norm_of(x, c, count, norm, power);
          for (int64_t i = 0; i < count; ++i) {
            dx[at + i] = dy[at + i] * power[i];
            ratio[i] = dx[at + i] * x[at + i] / norm[i];
          }
        }
        const int64_t done = c - ring() / 2,
                      at = done * this->places_;  // the ratios of all its neighbours are computed
        if (done < 0) continue;
        C sum[kBlock] = {};
        for (int64_t k = this->first_of(done); k < this->behind_of(done); ++k) {
          const C *const ratio = ratios + k % ring() * line();
          for (int64_t i = 0; i < count; ++i) sum[i] += ratio[i];
        }
        for (int64_t i = 0; i < count; ++i) dx[at + i] -= factor * x[at + i] * sum[i];
      }
    });
  }

 private:
  int64_t ring() const { return 2 * this->reach() + 1; }
  int64_t line() const { return std::min(this->places_, kBlock); }
};

COHORT_KERNEL_BY(cpu, LRN, make_compute<LrnForward>);
COHORT_KERNEL_BY(cpu, _backward_LRN, make_compute<LrnBackward>);

}  // namespace
}  // namespace cohort
