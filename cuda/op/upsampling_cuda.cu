// SPDX-License-Identifier: Apache-2.0
// UpSampling: one thread per element, also backward, where an element gathers its gradient.
#include <vector>

#include "cuda/op/elements.cuh"
#include "device/kernel_table.hpp"
#include "op/upsampling.hpp"

namespace cohort {
namespace {

// ---- UpSampling, nearest: inputs are joined along channels or added up; bilinear: each element of the small image
// adds the filter to the large image, from its place * scale - pad on

struct EnlargedImage {
  int64_t channels, height, width, first, repeat_y, repeat_x;
};

template <typename C>
class UpNearestCuda final : public Kernel {
 public:
  UpNearestCuda(const StepSpec &spec, bool backward)
      : backward_(backward), sums_(spec.attrs_as<UpSamplingAttrs>().sums), dtype_(spec.inputs[0].dtype) {
    const Shape &large = (backward ? spec.inputs : spec.outputs)[0].shape;
    batch_ = large[0], channels_ = large[1], height_ = large[2], width_ = large[3];
    int64_t first = 0;
    for (const TensorSpec &t : backward ? spec.outputs : spec.inputs) {
      const Shape &s = t.shape;
      images_.push_back({s[1], s[2], s[3], sums_ ? 0 : first, s[2] ? height_ / s[2] : 1, s[3] ? width_ / s[3] : 1});
      first += s[1];
    }
  }
  void run(const Args &args, const Lane &lane) const override {
    const int64_t height = height_, width = width_, channels = channels_;
    for (size_t k = 0; k < images_.size(); ++k) {
      const EnlargedImage e = images_[k];
      if (backward_ && !args.outputs[k]) continue;
      const Elements small = elements_of(backward_ ? args.outputs[k] : args.inputs[k], dtype_);
      const Elements large = elements_of(backward_ ? args.inputs[0] : args.outputs[0], dtype_);
      if (backward_) {
        for_each(lane, batch_ * e.channels * e.height * e.width, [=] __device__(int64_t i) {
          const int64_t x = i % e.width, y = i / e.width % e.height, p = i / e.width / e.height;
          const int64_t at = (p / e.channels * channels + e.first + p % e.channels) * height;
          C sum = 0;
          for (int64_t v = 0; v < e.repeat_y; ++v) {
            for (int64_t u = 0; u < e.repeat_x; ++u) {
              sum += load<C>(large, (at + y * e.repeat_y + v) * width + x * e.repeat_x + u);
            }
          }
          store(small, i, sum);
        });
        continue;
      }
      const bool adds = sums_ && k > 0;
      for_each(lane, batch_ * e.channels * height * width, [=] __device__(int64_t i) {
        const int64_t x = i % width, y = i / width % height, p = i / width / height;
        const int64_t to = ((p / e.channels * channels + e.first + p % e.channels) * height + y) * width + x;
        const C value = load<C>(small, (p * e.height + y / e.repeat_y) * e.width + x / e.repeat_x);
        store(large, to, adds ? load<C>(large, to) + value : value);
      });
    }
  }

 private:
  const bool backward_, sums_;
  const Dtype dtype_;
  int64_t batch_, channels_, height_, width_;
  std::vector<EnlargedImage> images_;
};

struct BilinearSizes {
  int64_t batch, channels, height, width, scale, kernel, pad;
  BilinearSizes(const UpSamplingAttrs &a, const Shape &small)
      : batch(small[0]),
        channels(small[1]),
        height(small[2]),
        width(small[3]),
        scale(a.scale),
        kernel(a.kernel()),
        pad(a.pad()) {}
  COHORT_HOST_DEVICE int64_t tall() const { return height * scale; }
  COHORT_HOST_DEVICE int64_t wide() const { return width * scale; }
};

// Backward: head gradient, data, weight.
template <typename C>
class UpBilinearCuda final : public Kernel {
 public:
  UpBilinearCuda(const StepSpec &spec, bool backward)
      : backward_(backward),
        e_(spec.attrs_as<UpSamplingAttrs>(), spec.inputs[backward ? 1 : 0].shape),
        dtype_(spec.inputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const BilinearSizes e = e_;
    const auto in = [&](int i) { return elements_of(args.inputs[i], dtype_); };
    const Elements x = in(backward_ ? 1 : 0), w = in(backward_ ? 2 : 1), head = in(0);
    const Elements first = elements_of(args.outputs[0], dtype_);
    if (!backward_) {
      return for_each(lane, e.batch * e.channels * e.tall() * e.wide(), [=] __device__(int64_t i) {
        const int64_t column = i % e.wide(), row = i / e.wide() % e.tall(), p = i / e.wide() / e.tall();
        C sum = 0;
        for (int64_t v = (row + e.pad) % e.scale; v < e.kernel; v += e.scale) {
          const int64_t y = (row + e.pad - v) / e.scale;
          if (row + e.pad < v || y >= e.height) continue;
          for (int64_t u = (column + e.pad) % e.scale; u < e.kernel; u += e.scale) {
            const int64_t place = (column + e.pad - u) / e.scale;
            if (column + e.pad < u || place >= e.width) continue;
            sum += load<C>(x, (p * e.height + y) * e.width + place) *
                   load<C>(w, (p % e.channels * e.kernel + v) * e.kernel + u);
          }
        }
        store(first, i, sum);
      });
    }
    if (first.data) {
      for_each(lane, e.batch * e.channels * e.height * e.width, [=] __device__(int64_t i) {
        const int64_t left = i % e.width * e.scale - e.pad, top = i / e.width % e.height * e.scale - e.pad;
        const int64_t p = i / e.width / e.height;
        C sum = 0;
        for (int64_t v = top < 0 ? -top : 0; v < e.kernel && top + v < e.tall(); ++v) {
          for (int64_t u = left < 0 ? -left : 0; u < e.kernel && left + u < e.wide(); ++u) {
            sum += load<C>(head, (p * e.tall() + top + v) * e.wide() + left + u) *
                   load<C>(w, (p % e.channels * e.kernel + v) * e.kernel + u);
          }
        }
        store(first, i, sum);
      });
    }
    const Elements second = elements_of(args.outputs[1], dtype_);
    if (!second.data) return;
    for_each(lane, e.channels * e.kernel * e.kernel, [=] __device__(int64_t i) {
      const int64_t u = i % e.kernel, v = i / e.kernel % e.kernel, c = i / e.kernel / e.kernel;
      C sum = 0;
      for (int64_t p = c; p < e.batch * e.channels; p += e.channels) {
        for (int64_t y = 0; y < e.height; ++y) {
          const int64_t row = y * e.scale - e.pad + v;
          if (row < 0 || row >= e.tall()) continue;
          for (int64_t place = 0; place < e.width; ++place) {
            const int64_t column = place * e.scale - e.pad + u;
            if (column < 0 || column >= e.wide()) continue;
            sum += load<C>(head, (p * e.tall() + row) * e.wide() + column) *
                   load<C>(x, (p * e.height + y) * e.width + place);
          }
        }
      }
      store(second, i, sum);
    });
  }

 private:
  const bool backward_;
  const BilinearSizes e_;
  const Dtype dtype_;
};

template <bool kBackward>
std::unique_ptr<Kernel> make_upsampling(StepSpec &spec) {
  return dispatch_compute(spec.inputs[0].dtype, false, [&](auto c) -> std::unique_ptr<Kernel> {
    using C = std::conditional_t<std::is_integral_v<decltype(c)>, double, decltype(c)>;
    if (spec.attrs_as<UpSamplingAttrs>().bilinear) return std::make_unique<UpBilinearCuda<C>>(spec, kBackward);
    return std::make_unique<UpNearestCuda<C>>(spec, kBackward);
  });
}

COHORT_KERNEL_BY(cuda, UpSampling, make_upsampling<false>);
COHORT_KERNEL_BY(cuda, _backward_UpSampling, make_upsampling<true>);

}  // namespace
}  // namespace cohort
