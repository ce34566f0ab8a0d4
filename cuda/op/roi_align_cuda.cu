// SPDX-License-Identifier: Apache-2.0
// ROIAlign: forward, a thread reads the places of one window of one region; backward, an element of the data looks for
// the windows that read it.
#include "cuda/op/compute.cuh"
#include "cuda/op/expected.cuh"
#include "kernels/regions.hpp"
#include "op/bilinear.hpp"
#include "op/roi_align.hpp"

namespace cohort {
namespace {

// The windows of a region along one axis. Each reads `places` places, as far as they lie on the axis.
template <typename C>
struct AlignAxis {
  C start, size, places;  // size: of a window
  int64_t length;

  struct Range {
    int64_t begin, end;
  };
  // Only the places of a window that may lie on the axis, so that a region may be of any size.
  __device__ Range of(int64_t window) const {
    constexpr C kFar = C(int64_t(1) << 40);
    const C base = start + C(window) * size, distance = size / places;
    if (!(fabs(base) < kFar && size < kFar && distance > 0)) return {0, 0};
    const C low = floor((-1 - base) / distance) - 2, high = ceil((C(length) - base) / distance) + 2;
    return {low > 0 && low < places ? int64_t(low) : 0,
            low < places && high > 0 ? int64_t(high < places ? high : places) : 0};
  }
  __device__ bool place(int64_t window, int64_t i, Neighbours<C> *found) const {
    return wide_neighbours(start + C(window) * size + (C(i) + C(0.5)) * size / places, length, found);
  }
  // How much a window reads of an element.
  __device__ C share(int64_t window, int64_t element) const {
    const C base = start + C(window) * size;
    if (!(C(element) > base - 2 && C(element) < base + size + 2)) return 0;
    const Range range = of(window);
    C sum = 0;
    for (int64_t i = range.begin; i < range.end; ++i) {
      Neighbours<C> n;
      if (!place(window, i, &n)) continue;
      if (n.low == element) sum += n.low_weight;
      if (n.high == element) sum += n.high_weight;
    }
    return sum;
  }
};

template <typename C>
struct AlignSizes {
  C scale;
  int64_t rows, columns, batch, planes, height, width, count, numbers, channels, ratio;
  bool position_sensitive, aligned;

  AlignSizes(const RoiAlignAttrs &a, const Shape &data, const Shape &rois)
      : scale(C(a.spatial_scale)),
        rows(a.pooled_size[0]),
        columns(a.pooled_size[1]),
        batch(data[0]),
        planes(data[1]),
        height(data[2]),
        width(data[3]),
        count(rois[0]),
        numbers(rois[1]),
        channels(a.position_sensitive ? planes / (rows * columns) : planes),
        ratio(a.sample_ratio),
        position_sensitive(a.position_sensitive),
        aligned(a.aligned) {}

  struct Region {
    int64_t image;  // -1: none
    AlignAxis<C> y, x;
    __device__ C share() const { return 1 / (y.places * x.places); }
  };
  __device__ Region region(const C *rois, int64_t n) const {
    const C *const roi = rois + n * numbers;
    const C shift = aligned ? C(0.5) : C(0), left = roi[1] * scale - shift, top = roi[2] * scale - shift;
    C wide = roi[3] * scale - shift - left, tall = roi[4] * scale - shift - top;
    int64_t image = image_of_region(roi[0], n, batch);
    if (aligned && !(wide > 0 && tall > 0)) image = -1;
    if (!aligned) {
      wide = wide > 1 ? wide : C(1);
      tall = tall > 1 ? tall : C(1);
    }
    const C down = C(rows), across = C(columns);
    return {image,
            {top, tall / down, ratio > 0 ? C(ratio) : ceil(tall / down), height},
            {left, wide / across, ratio > 0 ? C(ratio) : ceil(wide / across), width}};
  }
  __device__ int64_t plane_of(int64_t channel, int64_t row, int64_t column) const {
    return position_sensitive ? (channel * rows + row) * columns + column : channel;
  }
};

template <typename C>
class RoiAlignCuda {
 public:
  explicit RoiAlignCuda(const StepSpec &spec)
      : s_(spec.attrs_as<RoiAlignAttrs>(), spec.inputs[0].shape, spec.inputs[1].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const AlignSizes<C> s = s_;
    for_each(lane, s.count * s.channels * s.rows * s.columns, [=] __device__(int64_t at) {
      const int64_t column = at % s.columns, row = at / s.columns % s.rows;
      const int64_t c = at / s.columns / s.rows % s.channels, n = at / s.columns / s.rows / s.channels;
      const auto r = s.region(in[1], n);
      C sum = 0;
      if (r.image >= 0) {
        const C *const plane = in[0] + (r.image * s.planes + s.plane_of(c, row, column)) * s.height * s.width;
        const auto down = r.y.of(row), across = r.x.of(column);
        for (int64_t i = down.begin; i < down.end; ++i) {
          Neighbours<C> y;
          if (!r.y.place(row, i, &y)) continue;
          const C *const low = plane + y.low * s.width, *const high = plane + y.high * s.width;
          for (int64_t j = across.begin; j < across.end; ++j) {
            Neighbours<C> x;
            if (!r.x.place(column, j, &x)) continue;
            sum += y.low_weight * (x.low_weight * low[x.low] + x.high_weight * low[x.high]) +
                   y.high_weight * (x.low_weight * high[x.low] + x.high_weight * high[x.high]);
          }
        }
      }
      out[0][at] = sum == 0 ? C(0) : sum * r.share();
    });
  }

 private:
  const AlignSizes<C> s_;
};

template <typename C>
class RoiAlignBackwardCuda {
 public:
  explicit RoiAlignBackwardCuda(const StepSpec &spec)
      : s_(spec.attrs_as<RoiAlignAttrs>(), spec.outputs[0].shape, spec.inputs[1].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const AlignSizes<C> s = s_;
    for_each(lane, s.batch * s.planes * s.height * s.width, [=] __device__(int64_t at) {
      const int64_t x = at % s.width, y = at / s.width % s.height;
      const int64_t plane = at / s.width / s.height % s.planes, image = at / s.width / s.height / s.planes;
      const int64_t windows = s.rows * s.columns;
      // Where each window reads a plane of its own, there is but one.
      const int64_t channel = s.position_sensitive ? plane / windows : plane;
      const int64_t own = s.position_sensitive ? plane % windows : -1;
      C sum = 0;
      for (int64_t n = 0; n < s.count; ++n) {
        const auto r = s.region(in[1], n);
        if (r.image != image) continue;
        const C *const head = in[0] + (n * s.channels + channel) * windows;
        for (int64_t row = own < 0 ? 0 : own / s.columns; row < (own < 0 ? s.rows : own / s.columns + 1); ++row) {
          const C down = r.y.share(row, y);
          if (down == 0) continue;
          for (int64_t column = own < 0 ? 0 : own % s.columns; column < (own < 0 ? s.columns : own % s.columns + 1);
               ++column) {
            const C across = r.x.share(column, x);
            if (across != 0) sum += head[row * s.columns + column] * r.share() * down * across;
          }
        }
      }
      out[0][at] = sum;
    });
  }

 private:
  const AlignSizes<C> s_;
};

COHORT_KERNEL_BY(cuda, _contrib_ROIAlign, make_checked<RegionsCheck, make_compute<RoiAlignCuda>>);
COHORT_KERNEL_BY(cuda, _backward__contrib_ROIAlign, make_compute<RoiAlignBackwardCuda>);

}  // namespace
}  // namespace cohort
