// SPDX-License-Identifier: Apache-2.0
// Kernels of ROIPooling. The forward step shares out channels of regions among threads, and saves the positions of
// the maxima. The backward step shares out channels of images, because regions may overlap.
#pragma once

#include "op/roi_pooling.hpp"

#include <cmath>

#include "kernels/backend.hpp"
#include "kernels/compute.hpp"
#include "kernels/regions.hpp"

namespace cohort {
namespace {

// A region in elements of an image. Corners are clamped to +-2^30, so that sums of them cannot overflow.
template <typename C>
struct Region {
  int64_t image, left, top;
  C bin_height, bin_width;
};

template <typename Backend, typename C>
class RoiPoolingBody {
 public:
  using Index = int32_t;  // position of the maximum in a plane; -1: none

  RoiPoolingBody(const RoiPoolingAttrs &a, const Shape &data, const Shape &rois)
      : scale_(C(a.spatial_scale)),
        rows_(a.pooled_size[0]),
        cols_(a.pooled_size[1]),
        batch_(data[0]),
        channels_(data[1]),
        height_(data[2]),
        width_(data[3]),
        count_(rois[0]) {}
  size_t extra() const { return 0; }
  size_t saved_bytes() const { return size_t(count_ * channels_ * rows_ * cols_) * sizeof(Index); }

 protected:
  COHORT_HOST_DEVICE Region<C> region(const C *roi, int64_t index) const {
    const auto corner = [&](int k) {
      const C at = std::round(roi[k] * scale_), most = C(1 << 30);
      return int64_t(at != at ? C(0) : at < -most ? -most : at > most ? most : at);
    };
    const int64_t left = corner(1), top = corner(2), right = corner(3), bottom = corner(4);
    const int64_t width = right > left ? right - left + 1 : 1, height = bottom > top ? bottom - top + 1 : 1;
    return {image_of_region<Backend>(roi[0], index, batch_), left, top, C(height) / C(rows_), C(width) / C(cols_)};
  }
  // Calls fn(element of the output, position of the maximum in `plane`, or -1) for one channel of a region.
  template <typename Fn>
  COHORT_HOST_DEVICE void maxima(const Region<C> &r, const C *plane, Fn &&fn) const {
    const auto bound = [](C at, int64_t offset, int64_t length) {
      const int64_t place = int64_t(at) + offset;
      return place < 0 ? 0 : place < length ? place : length;
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

template <typename Backend, typename C>
class RoiPoolingForward : public RoiPoolingBody<Backend, C> {
 public:
  explicit RoiPoolingForward(const StepSpec &spec)
      : RoiPoolingBody<Backend, C>(spec.attrs_as<RoiPoolingAttrs>(), spec.inputs[0].shape, spec.inputs[1].shape) {
    if (spec.keep_for_backward && this->height_ * this->width_ > INT32_MAX) {
      throw Error(Code::kUnsupported, text("ROIPooling: a gradient wants images of fewer than 2^31 elements, found ",
                                           spec.inputs[0].shape));
    }
  }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, void *saved, const Lane &lane) const {
    using Index = typename RoiPoolingBody<Backend, C>::Index;
    Index *const places = static_cast<Index *>(saved);
    Backend::parallel_for(lane, this->count_ * this->channels_, 1,
                          [=, *this] COHORT_DEVICE(int64_t begin, int64_t end) {
                            const int64_t plane = this->height_ * this->width_, bins = this->rows_ * this->cols_;
                            for (int64_t unit = begin; unit < end; ++unit) {
                              const int64_t n = unit / this->channels_, c = unit % this->channels_;
                              const Region<C> r = this->region(in[1] + 5 * n, n);
                              C *const to = out[0] + unit * bins;
                              Index *const at = places ? places + unit * bins : nullptr;
                              fill_elements(to, bins, C(0));
                              if (r.image < 0) continue;  // the backward step does not read its maxima
                              const C *const from = in[0] + (r.image * this->channels_ + c) * plane;
                              this->maxima(r, from, [=](int64_t i, int64_t best) {
                                if (best >= 0) to[i] = from[best];
                                if (at) at[i] = Index(best);
                              });
                            }
                          });
  }
};

template <typename Backend, typename C>
class RoiPoolingBackward : public RoiPoolingBody<Backend, C> {
 public:
  explicit RoiPoolingBackward(const StepSpec &spec)
      : RoiPoolingBody<Backend, C>(spec.attrs_as<RoiPoolingAttrs>(), spec.outputs[0].shape, spec.inputs[1].shape) {}
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, void *saved, const Lane &lane) const {
    using Index = typename RoiPoolingBody<Backend, C>::Index;
    const Index *const places = static_cast<const Index *>(saved);
    Backend::parallel_for(lane, this->batch_ * this->channels_, 1,
                          [=, *this] COHORT_DEVICE(int64_t begin, int64_t end) {
                            const int64_t plane = this->height_ * this->width_, bins = this->rows_ * this->cols_;
                            for (int64_t unit = begin; unit < end; ++unit) {
                              const int64_t image = unit / this->channels_, c = unit % this->channels_;
                              C *const to = out[0] + unit * plane;
                              fill_elements(to, plane, C(0));
                              for (int64_t n = 0; n < this->count_; ++n) {
                                const Region<C> r = this->region(in[1] + 5 * n, n);
                                if (r.image != image) continue;
                                const C *const head = in[0] + (n * this->channels_ + c) * bins;
                                const Index *const at = places + (n * this->channels_ + c) * bins;
                                for (int64_t i = 0; i < bins; ++i) {
                                  if (at[i] >= 0) to[at[i]] += head[i];
                                }
                              }
                            }
                          });
  }
};

template <typename Backend>
void register_roi_pooling_kernels() {
  KernelTable &table = backend_kernels();
  table.add("ROIPooling", make_compute<Backend, RoiPoolingForward>);
  table.add("_backward_ROIPooling", make_compute<Backend, RoiPoolingBackward>);
}

}  // namespace
}  // namespace cohort
