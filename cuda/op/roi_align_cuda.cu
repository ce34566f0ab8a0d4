// SPDX-License-Identifier: Apache-2.0
// ROIAlign: forward, one thread reads the places of one window of a region; backward, one thread per element of the
// data finds the windows that read it. RROIAlign: backward, one thread per element and group of channels transforms the
// element into the axes of each region of its image, and tests the places around it.
#include "cuda/op/cuda_backend.cuh"
#include "cuda/op/expected.cuh"
#include "kernels/regions.hpp"
#include "kernels/rotated_regions.hpp"
#include "op/bilinear.hpp"
#include "op/roi_align.hpp"

namespace cohort {
namespace {

// The windows of a region along one axis. Each reads `places` places; those outside the axis are skipped.
template <typename C>
struct AlignAxis {
  C start, size, places;  // size: of a window
  int64_t length;

  struct Range {
    int64_t begin, end;
  };
  // The places of a window that can lie on the axis, so that the cost does not grow with the size of the region.
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
  // The weight with which a window reads an element.
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
    int64_t image = image_of_region<CudaBackend>(roi[0], n, batch);
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
      // If each window reads a plane of its own, only one window reads this plane.
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

// ---- RROIAlign

// A region in scratch memory, with all numbers of type C. image: -1 if it reads nothing.
template <typename C>
struct PlacedRegion {
  RotatedRegion<C> region;
  C image;
};

// The range [begin, end) of places near an element along one side of a region, over all its windows.
struct PlacesAround {
  int64_t begin, end;

  // at: of the element, from where the side begins; far: how far from it a place may lie.
  template <typename C>
  __device__ PlacesAround(C at, C far, C distance, C count) {
    const C first = floor((at - far) / distance - C(0.5)) - 1, last = ceil((at + far) / distance - C(0.5)) + 1;
    begin = first > 0 ? int64_t(first < count ? first : count) : 0;  // NaN: all of them
    end = last < count ? int64_t(last > -1 ? last + 1 : C(0)) : int64_t(count);
  }
};

template <typename C>
class RotatedBodyCuda {
 public:
  using Placed = PlacedRegion<C>;

  RotatedBodyCuda(const StepSpec &spec, const Shape &data, const Shape &rois)
      : grid_(spec.attrs_as<RoiAlignAttrs>(), data), batch_(data[0]), channels_(data[1]), count_(rois[0]) {}
  size_t extra() const { return size_t(count_) * (sizeof(Placed) / sizeof(C)); }

  const Placed *place_regions(const C *rois, C *extra, const Lane &lane) const {
    Placed *const placed = reinterpret_cast<Placed *>(extra);
    const RotatedGrid<C> grid = grid_;
    const int64_t batch = batch_;
    for_each(lane, count_, [=] __device__(int64_t n) {
      const C *const roi = rois + 6 * n;
      const RotatedRegion<C> region = grid.region(roi);
      const int64_t image = image_of_region<CudaBackend>(roi[0], n, batch);
      placed[n] = {region, region.is_readable() ? C(image) : C(-1)};
    });
    return placed;
  }

 protected:
  const RotatedGrid<C> grid_;
  const int64_t batch_, channels_, count_;
};

template <typename C>
class RotatedRoiAlignCuda : RotatedBodyCuda<C> {
  using Base = RotatedBodyCuda<C>;

 public:
  explicit RotatedRoiAlignCuda(const StepSpec &spec) : Base(spec, spec.inputs[0].shape, spec.inputs[1].shape) {}
  using Base::extra;
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    const PlacedRegion<C> *const placed = this->place_regions(in[1], extra, lane);
    const RotatedGrid<C> grid = this->grid_;
    const int64_t channels = this->channels_, windows = grid.rows * grid.columns;
    for_each(lane, this->count_ * channels * windows, [=] __device__(int64_t at) {
      const PlacedRegion<C> &r = placed[at / windows / channels];
      C sum = 0;
      if (r.image >= 0) {
        const C *const from =
            in[0] + (int64_t(r.image) * channels + at / windows % channels) * grid.height * grid.width;
        grid.each_place(r.region, at % windows, [&](const RotatedSample<C> &place) {
          const int64_t *const e = place.elements;
          const C *const by = place.weights;
          sum += by[0] * from[e[0]] + by[1] * from[e[1]] + by[2] * from[e[2]] + by[3] * from[e[3]];
        });
      }
      out[0][at] = sum;
    });
  }
};

constexpr int kTogether = 8;  // channels per thread; they share the same places

template <typename C>
struct RotatedElement {
  RotatedGrid<C> grid;
  const PlacedRegion<C> *placed;
  const C *head;
  C *grad;
  int64_t channels, count, parts;

  __device__ void operator()(int64_t unit) const {
    const int64_t plane = grid.height * grid.width, own = unit % plane, windows = grid.rows * grid.columns;
    const int64_t first = unit / plane % parts * kTogether, image = unit / plane / parts;
    const int64_t many = channels - first < kTogether ? channels - first : kTogether;
    C sums[kTogether] = {};
    for (int64_t n = 0; n < count; ++n) {
      if (placed[n].image != C(image)) continue;
      const C *const from = head + (n * channels + first) * windows;
      each_reading(placed[n].region, own, [&](int64_t window, C by) {
        for (int k = 0; k < kTogether; ++k) {
          if (k < many) sums[k] += by * from[k * windows + window];
        }
      });
    }
    for (int k = 0; k < kTogether; ++k) {
      if (k < many) grad[(image * channels + first + k) * plane + own] = sums[k];
    }
  }

  // Calls fn(window, weight) for each place that reads an element.
  template <typename Fn>
  __device__ void each_reading(const RotatedRegion<C> &r, int64_t own, Fn &&fn) const {
    const C y = C(own / grid.width) - r.y, x = C(own % grid.width) - r.x;
    const C down = y * r.cosine + x * r.sine + r.height / 2, right = x * r.cosine - y * r.sine + r.width / 2;
    // A place reads elements at most one away along either axis; the rounding error grows with the numbers.
    constexpr C kRounding = sizeof(C) == 4 ? C(0x1p-19) : C(0x1p-48);
    const C size = fabs(r.y) + fabs(r.x) + r.height + r.width + C(grid.height + grid.width);
    const C far = fabs(r.cosine) + fabs(r.sine) + size * kRounding;
    const auto places_y = int64_t(r.places_y), places_x = int64_t(r.places_x);
    const PlacesAround rows(down, far, r.window_height / r.places_y, C(grid.rows * places_y));
    const PlacesAround columns(right, far, r.window_width / r.places_x, C(grid.columns * places_x));
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      const int64_t row = i / places_y;
      const C at = r.down(row, C(i % places_y));
      for (int64_t j = columns.begin; j < columns.end; ++j) {
        const int64_t column = j / places_x;
        RotatedSample<C> place;
        if (!grid.find(r, at, r.right(column, C(j % places_x)), &place)) continue;
        for (int k = 0; k < 4; ++k) {
          if (place.elements[k] == own) fn(row * grid.columns + column, place.weights[k]);
        }
      }
    }
  }
};

template <typename C>
class RotatedRoiAlignBackwardCuda : RotatedBodyCuda<C> {
  using Base = RotatedBodyCuda<C>;

 public:
  explicit RotatedRoiAlignBackwardCuda(const StepSpec &spec)
      : Base(spec, spec.outputs[0].shape, spec.inputs[1].shape) {}
  using Base::extra;
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    const PlacedRegion<C> *const placed = this->place_regions(in[1], extra, lane);
    const int64_t parts = (this->channels_ + kTogether - 1) / kTogether;
    for_each(lane, this->batch_ * parts * this->grid_.height * this->grid_.width,
             RotatedElement<C>{this->grid_, placed, in[0], out[0], this->channels_, this->count_, parts});
  }
};

// Checks that regions name images and are not too large.
class RotatedRegionsCheck : RegionsCheck {
 public:
  explicit RotatedRegionsCheck(const StepSpec &spec)
      : RegionsCheck(spec),
        wide_(spec.attrs_as<RoiAlignAttrs>(), spec.inputs[0].shape),
        narrow_(spec.attrs_as<RoiAlignAttrs>(), spec.inputs[0].shape) {}
  struct ElementCheck {
    RegionsCheck::ElementCheck images;
    RotatedGrid<double> wide;
    RotatedGrid<float> narrow;

    template <typename C>
    __device__ double most_places(const RotatedGrid<C> &grid, int64_t row) const {
      C roi[6];
      for (int k = 0; k < 6; ++k) roi[k] = load<C>(images.rois, 6 * row + k);
      return double(grid.region(roi).most_places());
    }
    __device__ Finding operator()(int64_t row) const {
      const Finding image = images(row);
      if (image.wrong || load<double>(images.rois, 6 * row) < 0) return image;
      const bool is_wide = Dtype(images.rois.dtype) == Dtype::kFloat64;
      const double found = is_wide ? most_places(wide, row) : most_places(narrow, row);
      return {!(found <= RotatedRegion<double>::kMostPlaces), bits_of(found), 1, RotatedRegion<double>::kMostPlaces};
    }
  };
  using RegionsCheck::count;
  ElementCheck element_check(const Args &args) const { return {RegionsCheck::element_check(args), wide_, narrow_}; }
  std::string in_words(const InputError &c) const {
    if (c.least == 0) return RegionsCheck::in_words(c);
    return text("rois[", c.place, "]: expected at most ", c.most, " places along a side of a window, found ",
                number_of(c.found));
  }

 private:
  const RotatedGrid<double> wide_;
  const RotatedGrid<float> narrow_;
};

COHORT_KERNEL_BY(cuda, _contrib_RROIAlign, make_checked<RotatedRegionsCheck, make_compute<RotatedRoiAlignCuda>>);
COHORT_KERNEL_BY(cuda, _backward__contrib_RROIAlign, make_compute<RotatedRoiAlignBackwardCuda>);

}  // namespace
}  // namespace cohort
