// SPDX-License-Identifier: Apache-2.0
#include "op/roi_pooling.hpp"

#include <algorithm>
#include <cmath>

#include "cpu/op/compute_kernel.hpp"
#include "cpu/op/regions.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

// A region in elements of an image. Corners are kept within +-2^30, so that sums of them stay in range.
template <typename C>
struct Region {
  int64_t image, left, top;
  C bin_height, bin_width;
};

template <typename C>
class RoiPoolingBody {
 public:
  RoiPoolingBody(const RoiPoolingAttrs &a, const Shape &data, const Shape &rois)
      : scale_(C(a.spatial_scale)),
        rows_(a.pooled_size[0]),
        cols_(a.pooled_size[1]),
        batch_(data[0]),
        channels_(data[1]),
        height_(data[2]),
        width_(data[3]),
        count_(rois[0]) {}

 protected:
  Region<C> region(const C *roi, int64_t index) const {
    const auto corner = [&](int k) {
      const C at = std::round(roi[k] * scale_);
      return int64_t(std::min(std::max(std::isnan(at) ? C(0) : at, C(-(1 << 30))), C(1 << 30)));
    };
    const int64_t left = corner(1), top = corner(2);
    const int64_t width = std::max<int64_t>(corner(3) - left + 1, 1),
                  height = std::max<int64_t>(corner(4) - top + 1, 1);
    return {image_of_region(roi[0], index, batch_), left, top, C(height) / C(rows_), C(width) / C(cols_)};
  }
  // Calls fn(element of the output, place of the maximum in a plane of `image`, or -1) for a channel of a region.
  template <typename Fn>
  void maxima(const Region<C> &r, const C *plane, Fn &&fn) const {
    const auto bound = [](C at, int64_t offset, int64_t length) {
      return std::min(std::max<int64_t>(int64_t(at) + offset, 0), length);
    };
    for (int64_t i = 0; i < rows_ * cols_; ++i) {
      const C row = C(i / cols_), col = C(i % cols_);
      const int64_t y0 = bound(std::floor(row * r.bin_height), r.top, height_);
      const int64_t y1 = bound(std::ceil((row + 1) * r.bin_height), r.top, height_);
      const int64_t x0 = bound(std::floor(col * r.bin_width), r.left, width_);
      const int64_t x1 = bound(std::ceil((col + 1) * r.bin_width), r.left, width_);
      int64_t best = -1;
      for (int64_t y = y0; y < y1; ++y) {
        for (int64_t x = x0; x < x1; ++x) {
          if (best < 0 || plane[y * width_ + x] > plane[best]) best = y * width_ + x;
        }
      }
      fn(i, best);
    }
  }

  const C scale_;
  const int64_t rows_, cols_, batch_, channels_, height_, width_, count_;
};

template <typename C>
class RoiPoolingForward : RoiPoolingBody<C> {
 public:
  explicit RoiPoolingForward(const StepSpec &spec)
      : RoiPoolingBody<C>(spec.attrs_as<RoiPoolingAttrs>(), spec.inputs[0].shape, spec.inputs[1].shape) {}
  size_t extra() const { return 0; }
  void run(const C *const *in, C *const *out, C *, const Lane &lane) const {
    const int64_t plane = this->height_ * this->width_, bins = this->rows_ * this->cols_;
    parallel_for(lane, this->count_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const Region<C> r = this->region(in[1] + 5 * n, n);
        C *const to = out[0] + n * this->channels_ * bins;
        std::fill_n(to, this->channels_ * bins, C(0));
        for (int64_t c = 0; r.image >= 0 && c < this->channels_; ++c) {
          const C *const from = in[0] + (r.image * this->channels_ + c) * plane;
          this->maxima(r, from, [=](int64_t i, int64_t best) {
            if (best >= 0) to[c * bins + i] = from[best];
          });
        }
      }
    });
  }
};

// Channels apart: regions may share elements.
template <typename C>
class RoiPoolingBackward : RoiPoolingBody<C> {
 public:
  explicit RoiPoolingBackward(const StepSpec &spec)
      : RoiPoolingBody<C>(spec.attrs_as<RoiPoolingAttrs>(), spec.inputs[1].shape, spec.inputs[2].shape) {}
  size_t extra() const { return 0; }
  void run(const C *const *in, C *const *out, C *, const Lane &lane) const {
    const int64_t plane = this->height_ * this->width_, bins = this->rows_ * this->cols_;
    std::fill_n(out[0], this->batch_ * this->channels_ * plane, C(0));
    parallel_for(lane, this->channels_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        for (int64_t n = 0; n < this->count_; ++n) {
          const Region<C> r = this->region(in[2] + 5 * n, n);
          if (r.image < 0) continue;
          const int64_t at = (r.image * this->channels_ + c) * plane;
          const C *const head = in[0] + (n * this->channels_ + c) * bins;
          C *const to = out[0] + at;
          this->maxima(r, in[1] + at, [=](int64_t i, int64_t best) {
            if (best >= 0) to[best] += head[i];
          });
        }
      }
    });
  }
};

COHORT_KERNEL_BY(cpu, ROIPooling, make_compute<RoiPoolingForward>);
COHORT_KERNEL_BY(cpu, _backward_ROIPooling, make_compute<RoiPoolingBackward>);

}  // namespace
}  // namespace cohort
