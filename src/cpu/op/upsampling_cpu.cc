// SPDX-License-Identifier: Apache-2.0
#include "op/upsampling.hpp"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "cpu/op/cpu_backend.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

using A = UpSamplingAttrs;

// One input of nearest: its channels' position in the output, and how often each element is repeated.
struct RepeatedInput {
  int64_t channels, height, width, first, repeat_y, repeat_x;
};

// kBackward: the gradient of an input element is the sum over its repetitions.
template <typename C, bool kBackward>
class UpNearest {
 public:
  explicit UpNearest(const StepSpec &spec) : sums_(spec.attrs_as<A>().sums) {
    const Shape &large = kBackward ? spec.inputs[0].shape : spec.outputs[0].shape;
    batch_ = large[0], channels_ = large[1], height_ = large[2], width_ = large[3];
    int64_t first = 0;
    for (const TensorSpec &t : kBackward ? spec.outputs : spec.inputs) {
      const Shape &s = t.shape;
      images_.push_back({s[1], s[2], s[3], sums_ ? 0 : first, s[2] ? height_ / s[2] : 1, s[3] ? width_ / s[3] : 1});
      first += s[1];
    }
  }
  size_t extra() const { return 0; }
  void run(const C *const *in, C *const *out, C *, const Lane &lane) const {
    for (size_t i = 0; i < images_.size(); ++i) {
      const RepeatedInput &e = images_[i];
      const int64_t small = e.height * e.width, large = height_ * width_;
      if (kBackward && !out[i]) continue;
      parallel_for(lane, batch_ * e.channels, 1 + kCheapGrain / (large + 1), [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
          const int64_t at = (p / e.channels * channels_ + e.first + p % e.channels) * large;
          if constexpr (kBackward) {
            gather(e, in[0] + at, out[i] + p * small);
          } else {
            spread(e, in[i] + p * small, out[0] + at, sums_ && i > 0);
          }
        }
      });
    }
  }

 private:
  void spread(const RepeatedInput &e, const C *from, C *to, bool add) const {
    for (int64_t y = 0; y < height_; ++y, to += width_) {
      const C *const line = from + y / e.repeat_y * e.width;
      if (!add && y % e.repeat_y > 0) {
        std::copy_n(to - width_, width_, to);
        continue;
      }
      with_repeat(e.repeat_x, [=](auto repeat) {
        for (int64_t x = 0; x < e.width; ++x) {
          for (int64_t k = 0; k < repeat; ++k) {
            to[x * repeat + k] = add ? to[x * repeat + k] + line[x] : line[x];
          }
        }
      });
    }
  }
  void gather(const RepeatedInput &e, const C *from, C *to) const {
    std::fill_n(to, e.height * e.width, C(0));
    for (int64_t y = 0; y < height_; ++y, from += width_) {
      C *const line = to + y / e.repeat_y * e.width;
      with_repeat(e.repeat_x, [=](auto repeat) {
        for (int64_t x = 0; x < e.width; ++x) {
          C sum = line[x];
          for (int64_t k = 0; k < repeat; ++k) sum += from[x * repeat + k];
          line[x] = sum;
        }
      });
    }
  }
  // The common factor 2 has vectorised loops of its own.
  template <typename Fn>
  static void with_repeat(int64_t repeat, Fn &&fn) {
    if (repeat == 2) return fn(std::integral_constant<int64_t, 2>());
    fn(repeat);
  }

  const bool sums_;
  int64_t batch_, channels_, height_, width_;
  std::vector<RepeatedInput> images_;
};

// Calls fn(element of a small image, element of a large one, element of a filter) for all combinations: the small
// element (y, x) places the filter on the large image at (y, x) * scale - pad.
class FilterWalk {
 public:
  FilterWalk(const A &a, const Shape &small)
      : batch_(small[0]),
        channels_(small[1]),
        height_(small[2]),
        width_(small[3]),
        scale_(a.scale),
        kernel_(a.kernel()),
        pad_(a.pad()) {}

 protected:
  int64_t small() const { return height_ * width_; }
  int64_t large() const { return small() * scale_ * scale_; }
  int64_t filter() const { return kernel_ * kernel_; }
  template <typename Fn>
  void walk(Fn &&fn) const {
    const int64_t tall = height_ * scale_, wide = width_ * scale_;
    for (int64_t y = 0; y < height_; ++y) {
      for (int64_t x = 0; x < width_; ++x) {
        const int64_t top = y * scale_ - pad_, left = x * scale_ - pad_;
        for (int64_t v = std::max<int64_t>(0, -top); v < std::min(kernel_, tall - top); ++v) {
          for (int64_t u = std::max<int64_t>(0, -left); u < std::min(kernel_, wide - left); ++u) {
            fn(y * width_ + x, (top + v) * wide + left + u, v * kernel_ + u);
          }
        }
      }
    }
  }

  const int64_t batch_, channels_, height_, width_, scale_, kernel_, pad_;
};

template <typename C>
class UpBilinear : FilterWalk {
 public:
  explicit UpBilinear(const StepSpec &spec) : FilterWalk(spec.attrs_as<A>(), spec.inputs[0].shape) {}
  size_t extra() const { return 0; }
  void run(const C *const *in, C *const *out, C *, const Lane &lane) const {
    parallel_for(lane, batch_ * channels_, 1 + kCheapGrain / (large() + 1), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const C *const x = in[0] + p * small(), *const w = in[1] + p % channels_ * filter();
        C *const y = out[0] + p * large();
        std::fill_n(y, large(), C(0));
        walk([=](int64_t from, int64_t to, int64_t at) { y[to] += x[from] * w[at]; });
      }
    });
  }
};

template <typename C>
class UpBilinearBackward : FilterWalk {
 public:
  explicit UpBilinearBackward(const StepSpec &spec) : FilterWalk(spec.attrs_as<A>(), spec.inputs[1].shape) {}
  size_t extra() const { return 0; }
  void run(const C *const *in, C *const *out, C *, const Lane &lane) const {
    parallel_for(lane, channels_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        const C *const w = in[2] + c * filter();
        C *const dw = out[1] ? out[1] + c * filter() : nullptr;
        if (dw) std::fill_n(dw, filter(), C(0));
        for (int64_t p = c; p < batch_ * channels_; p += channels_) {
          const C *const head = in[0] + p * large(), *const x = in[1] + p * small();
          C *const dx = out[0] ? out[0] + p * small() : nullptr;
          if (dx) std::fill_n(dx, small(), C(0));
          walk([=](int64_t from, int64_t to, int64_t at) {
            if (dx) dx[from] += head[to] * w[at];
            if (dw) dw[at] += head[to] * x[from];
          });
        }
      }
    });
  }
};

template <typename C>
using UpNearestForward = UpNearest<C, false>;
template <typename C>
using UpNearestBackward = UpNearest<C, true>;

std::unique_ptr<Kernel> make_forward(StepSpec &spec) {
  return spec.attrs_as<A>().bilinear ? make_compute<UpBilinear>(spec) : make_compute<UpNearestForward>(spec);
}

std::unique_ptr<Kernel> make_backward(StepSpec &spec) {
  return spec.attrs_as<A>().bilinear ? make_compute<UpBilinearBackward>(spec) : make_compute<UpNearestBackward>(spec);
}

COHORT_KERNEL_BY(cpu, UpSampling, make_forward);
COHORT_KERNEL_BY(cpu, _backward_UpSampling, make_backward);

}  // namespace
}  // namespace cohort
