// SPDX-License-Identifier: Apache-2.0
// Each image for itself. What a row or column of the output is made of is looked up once.
#include "op/image_resize.hpp"

#include <algorithm>
#include <vector>

#include "cpu/op/compute_kernel.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

// Sizes of both images, and the loop over (sample, channel).
class ImagePairs {
 public:
  ImagePairs(const Shape &in, const Shape &out)
      : count_(in[0] * in[1]), height_(in[2]), width_(in[3]), tall_(out[2]), wide_(out[3]) {}

 protected:
  // Calls fn(offset of the input image, offset of the output image).
  template <typename Fn>
  void images(const Lane &lane, Fn &&fn) const {
    const int64_t in = height_ * width_, out = tall_ * wide_;
    parallel_for(lane, count_, 1 + kCheapGrain / (in + out + 1), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) fn(i * in, i * out);
    });
  }
  const int64_t count_, height_, width_, tall_, wide_;
};

struct PoolWindow {
  int64_t begin, end;
};

template <typename C, bool kBackward>
class AdaptivePool : ImagePairs {
 public:
  explicit AdaptivePool(const StepSpec &spec)
      : ImagePairs((kBackward ? spec.outputs : spec.inputs)[0].shape,
                   (kBackward ? spec.inputs : spec.outputs)[0].shape),
        rows_(windows(height_, tall_)),
        cols_(windows(width_, wide_)) {}
  size_t extra() const { return 0; }
  void run(const C *const *in, C *const *out, C *, const Lane &lane) const {
    images(lane, [&](int64_t from, int64_t to) {
      if (kBackward) std::fill_n(out[0] + from, height_ * width_, C(0));
      for (int64_t i = 0; i < tall_ * wide_; ++i) {
        const PoolWindow &rows = rows_[size_t(i / wide_)], &cols = cols_[size_t(i % wide_)];
        const C area = C((rows.end - rows.begin) * (cols.end - cols.begin));
        C sum = 0;
        for (int64_t y = rows.begin; y < rows.end; ++y) {
          for (int64_t x = cols.begin; x < cols.end; ++x) {
            if constexpr (kBackward) {
              out[0][from + y * width_ + x] += in[0][to + i] / area;
            } else {
              sum += in[0][from + y * width_ + x];
            }
          }
        }
        if (!kBackward) out[0][to + i] = sum / area;
      }
    });
  }

 private:
  static std::vector<PoolWindow> windows(int64_t length, int64_t count) {
    std::vector<PoolWindow> all;
    for (int64_t i = 0; i < count; ++i) all.push_back({i * length / count, ((i + 1) * length + count - 1) / count});
    return all;
  }
  const std::vector<PoolWindow> rows_, cols_;
};

// An element between two: (1 - weight) of `low` and weight of `high`.
template <typename C>
struct Between {
  int64_t low, high;
  C weight;
};

template <typename C, bool kBackward>
class Resizer : ImagePairs {
 public:
  explicit Resizer(const StepSpec &spec)
      : ImagePairs((kBackward ? spec.outputs : spec.inputs)[0].shape,
                   (kBackward ? spec.inputs : spec.outputs)[0].shape),
        like_size_(kBackward && spec.outputs.size() > 1 ? spec.outputs[1].shape.size() : 0),
        rows_(places(height_, tall_, spec.attrs_as<BilinearResizeAttrs>().align_corners)),
        cols_(places(width_, wide_, spec.attrs_as<BilinearResizeAttrs>().align_corners)) {}
  size_t extra() const { return 0; }
  void run(const C *const *in, C *const *out, C *, const Lane &lane) const {
    if (like_size_ > 0 && out[1]) std::fill_n(out[1], like_size_, C(0));
    if (!out[0]) return;
    images(lane, [&](int64_t from, int64_t to) {
      if (kBackward) std::fill_n(out[0] + from, height_ * width_, C(0));
      for (int64_t i = 0; i < tall_ * wide_; ++i) {
        const Between<C> &y = rows_[size_t(i / wide_)], &x = cols_[size_t(i % wide_)];
        const C v = y.weight, u = x.weight;
        if constexpr (kBackward) {
          C *const low = out[0] + from + y.low * width_, *const high = out[0] + from + y.high * width_;
          const C head = in[0][to + i];
          low[x.low] += (1 - v) * (1 - u) * head;
          low[x.high] += (1 - v) * u * head;
          high[x.low] += v * (1 - u) * head;
          high[x.high] += v * u * head;
        } else {
          const C *const low = in[0] + from + y.low * width_, *const high = in[0] + from + y.high * width_;
          out[0][to + i] =
              (1 - v) * ((1 - u) * low[x.low] + u * low[x.high]) + v * ((1 - u) * high[x.low] + u * high[x.high]);
        }
      }
    });
  }

 private:
  static std::vector<Between<C>> places(int64_t length, int64_t count, bool align_corners) {
    std::vector<Between<C>> all;
    for (int64_t i = 0; i < count; ++i) {
      C at = C(i);
      if (count > 1 && length != count && align_corners) at = C(length - 1) / C(count - 1) * C(i);
      if (count > 1 && length != count && !align_corners) at = C(length) / C(count) * (C(i) + C(0.5)) - C(0.5);
      at = std::max(at, C(0));
      const int64_t low = std::min(int64_t(at), length - 1);
      all.push_back({low, std::min(low + 1, length - 1), at - C(low)});
    }
    return all;
  }
  const int64_t like_size_;
  const std::vector<Between<C>> rows_, cols_;
};

template <typename C>
using AdaptivePoolForward = AdaptivePool<C, false>;
template <typename C>
using AdaptivePoolBackward = AdaptivePool<C, true>;
template <typename C>
using ResizeForward = Resizer<C, false>;
template <typename C>
using ResizeBackward = Resizer<C, true>;

COHORT_KERNEL_BY(cpu, _contrib_AdaptiveAvgPooling2D, make_compute<AdaptivePoolForward>);
COHORT_KERNEL_BY(cpu, _backward__contrib_AdaptiveAvgPooling2D, make_compute<AdaptivePoolBackward>);
COHORT_KERNEL_BY(cpu, _contrib_BilinearResize2D, make_compute<ResizeForward>);
COHORT_KERNEL_BY(cpu, _backward__contrib_BilinearResize2D, make_compute<ResizeBackward>);

}  // namespace
}  // namespace cohort
