// SPDX-License-Identifier: Apache-2.0
// Where a grid of windows over a rotated region of an image reads. Compiled by nvcc, too.
#pragma once

#include <cmath>

#include "kernels/regions.hpp"
#include "op/bilinear.hpp"
#include "op/roi_align.hpp"

namespace cohort {

// A rotated region, in elements of an image.
template <typename C>
struct RotatedRegion {
  static constexpr int kMostPlaces =
      4096;  // along a side of a window: the most samples that are read, as regions have any size

  C x, y, height, width, cosine, sine;  // x and y: of the centre
  C window_height, window_width;
  C places_y, places_x;  // samples of a window along its sides
  C share;               // the weight of one sample

  // The number of samples along the side of a window that has too many, if one has.
  COHORT_HOST_DEVICE C most_places() const { return places_y <= kMostPlaces ? places_x : places_y; }
  COHORT_HOST_DEVICE bool is_readable() const { return most_places() <= kMostPlaces; }

  // Offsets from the centre of a sample, before the rotation.
  COHORT_HOST_DEVICE C down(int64_t row, C i) const {
    return C(row) * window_height - height / 2 + (i + C(0.5)) * window_height / places_y;
  }
  COHORT_HOST_DEVICE C right(int64_t column, C j) const {
    return C(column) * window_width - width / 2 + (j + C(0.5)) * window_width / places_x;
  }
};

// The four elements that a sample reads, and their weights.
template <typename C>
struct RotatedSample {
  int64_t elements[4];
  C weights[4];
};

template <typename C>
struct RotatedGrid {
  C scale;
  int64_t rows, columns, height, width, ratio;  // height and width: of an image

  RotatedGrid(const RoiAlignAttrs &a, const Shape &data)
      : scale(C(a.spatial_scale)),
        rows(a.pooled_size[0]),
        columns(a.pooled_size[1]),
        height(data[2]),
        width(data[3]),
        ratio(a.sample_ratio) {}

  COHORT_HOST_DEVICE RotatedRegion<C> region(const C *roi) const {
    const C turn = roi[5] * C(3.14159265358979323846 / 180), wide = roi[3] * scale, tall = roi[4] * scale;
    RotatedRegion<C> r;
    r.x = roi[1] * scale;
    r.y = roi[2] * scale;
    r.width = wide < 1 ? C(1) : wide;
    r.height = tall < 1 ? C(1) : tall;
    r.cosine = std::cos(turn);
    r.sine = std::sin(turn);
    r.window_height = r.height / C(rows);
    r.window_width = r.width / C(columns);
    r.places_y = ratio > 0 ? C(ratio) : std::ceil(r.window_height);
    r.places_x = ratio > 0 ? C(ratio) : std::ceil(r.window_width);
    r.share = 1 / (r.places_y * r.places_x);
    return r;
  }

  // Finds the elements of a sample; false if it lies outside the image.
  COHORT_HOST_DEVICE bool find(const RotatedRegion<C> &r, C down, C right, RotatedSample<C> *found) const {
    Neighbours<C> y, x;
    if (!wide_neighbours(down * r.cosine - right * r.sine + r.y, height, &y)) return false;
    if (!wide_neighbours(right * r.cosine + down * r.sine + r.x, width, &x)) return false;
    *found = {{y.low * width + x.low, y.low * width + x.high, y.high * width + x.low, y.high * width + x.high},
              {y.low_weight * x.low_weight * r.share, y.low_weight * x.high_weight * r.share,
               y.high_weight * x.low_weight * r.share, y.high_weight * x.high_weight * r.share}};
    return true;
  }

  // Calls fn(sample) for each sample of a window that lies on the image.
  template <typename Fn>
  COHORT_HOST_DEVICE void each_place(const RotatedRegion<C> &r, int64_t window, Fn &&fn) const {
    for (C i = 0; i < r.places_y; ++i) {
      const C down = r.down(window / columns, i);
      for (C j = 0; j < r.places_x; ++j) {
        RotatedSample<C> place;
        if (find(r, down, r.right(window % columns, j), &place)) fn(place);
      }
    }
  }
};

}  // namespace cohort
