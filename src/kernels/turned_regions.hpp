// SPDX-License-Identifier: Apache-2.0
// The places that a grid of windows over a turned region of an image reads. Compiled by nvcc, too.
#pragma once

#include <cmath>

#include "kernels/regions.hpp"
#include "op/bilinear.hpp"
#include "op/roi_align.hpp"

namespace cohort {

// A region, in elements of an image.
template <typename C>
struct TurnedRegion {
  static constexpr int kMostPlaces = 4096;  // along a side of a window: regions have any size

  C x, y, height, width, cosine, sine;  // x and y: of the centre
  C window_height, window_width;
  C places_y, places_x;  // that a window reads along its sides
  C share;               // of one of them

  // Along a side of a window; the number that is too large, if one is.
  COHORT_HOST_DEVICE C most_places() const { return places_y <= kMostPlaces ? places_x : places_y; }
  COHORT_HOST_DEVICE bool is_readable() const { return most_places() <= kMostPlaces; }

  // Where places lie before the region is turned: from its centre.
  COHORT_HOST_DEVICE C down(int64_t row, C i) const {
    return C(row) * window_height - height / 2 + (i + C(0.5)) * window_height / places_y;
  }
  COHORT_HOST_DEVICE C right(int64_t column, C j) const {
    return C(column) * window_width - width / 2 + (j + C(0.5)) * window_width / places_x;
  }
};

// The four elements that are read at a place.
template <typename C>
struct TurnedPlace {
  int64_t elements[4];
  C weights[4];
};

template <typename C>
struct TurnedGrid {
  C scale;
  int64_t rows, columns, height, width, ratio;  // height and width: of an image

  TurnedGrid(const RoiAlignAttrs &a, const Shape &data)
      : scale(C(a.spatial_scale)),
        rows(a.pooled_size[0]),
        columns(a.pooled_size[1]),
        height(data[2]),
        width(data[3]),
        ratio(a.sample_ratio) {}

  COHORT_HOST_DEVICE TurnedRegion<C> region(const C *roi) const {
    const C turn = roi[5] * C(3.14159265358979323846 / 180), wide = roi[3] * scale, tall = roi[4] * scale;
    TurnedRegion<C> r;
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

  // What is read there, if it lies on the image.
  COHORT_HOST_DEVICE bool find(const TurnedRegion<C> &r, C down, C right, TurnedPlace<C> *found) const {
    Neighbours<C> y, x;
    if (!wide_neighbours(down * r.cosine - right * r.sine + r.y, height, &y)) return false;
    if (!wide_neighbours(right * r.cosine + down * r.sine + r.x, width, &x)) return false;
    *found = {{y.low * width + x.low, y.low * width + x.high, y.high * width + x.low, y.high * width + x.high},
              {y.low_weight * x.low_weight * r.share, y.low_weight * x.high_weight * r.share,
               y.high_weight * x.low_weight * r.share, y.high_weight * x.high_weight * r.share}};
    return true;
  }

  // Calls fn(place) for the places of a window that lie on the image.
  template <typename Fn>
  COHORT_HOST_DEVICE void each_place(const TurnedRegion<C> &r, int64_t window, Fn &&fn) const {
    for (C i = 0; i < r.places_y; ++i) {
      const C down = r.down(window / columns, i);
      for (C j = 0; j < r.places_x; ++j) {
        TurnedPlace<C> place;
        if (find(r, down, r.right(window % columns, j), &place)) fn(place);
      }
    }
  }
};

}  // namespace cohort
