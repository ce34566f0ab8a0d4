// SPDX-License-Identifier: Apache-2.0
// Where the windows of a deformable convolution read: each element of a window is displaced by an offset. Compiled by
// nvcc, too.
#pragma once

#include "op/bilinear.hpp"
#include "op/deformable_convolution.hpp"

namespace cohort {

// weight * element, but 0 where the weight is 0: the element may be infinite.
template <typename C>
COHORT_HOST_DEVICE inline C weighted(C weight, C element) {
  return weight == 0 ? C(0) : weight * element;
}

// The neighbours and weights of a sampling point. All weights are 0 if it lies outside the image.
template <typename C>
struct DeformableSample {
  Neighbours<C> y, x;

  COHORT_HOST_DEVICE bool is_inside() const { return y.low_weight > 0 || y.high_weight > 0; }
  // The index of one of the four elements around the point.
  COHORT_HOST_DEVICE int64_t element(int corner, int64_t width) const {
    return (corner < 2 ? y.low : y.high) * width + (corner % 2 == 0 ? x.low : x.high);
  }
  COHORT_HOST_DEVICE C weight(int corner) const {
    return (corner < 2 ? y.low_weight : y.high_weight) * (corner % 2 == 0 ? x.low_weight : x.high_weight);
  }
  // Adds, each times d, the value at this point of a plane with elements at(i), and its derivatives by y and by x.
  template <typename At>
  COHORT_HOST_DEVICE void add_slopes(const At &at, int64_t width, C d, C *by_y, C *by_x, C *value) const {
    const bool has_low = exists(y.low_weight, y.low_slope), has_high = exists(y.high_weight, y.high_slope);
    const bool has_left = exists(x.low_weight, x.low_slope), has_right = exists(x.high_weight, x.high_slope);
    const int64_t low = y.low * width, high = y.high * width;
    const C low_low = has_low && has_left ? at(low + x.low) : C(0);
    const C low_high = has_low && has_right ? at(low + x.high) : C(0);
    const C high_low = has_high && has_left ? at(high + x.low) : C(0);
    const C high_high = has_high && has_right ? at(high + x.high) : C(0);
    const C at_low = x.low_weight * low_low + x.high_weight * low_high;
    const C at_high = x.low_weight * high_low + x.high_weight * high_high;
    *by_y += d * (y.low_slope * at_low + y.high_slope * at_high);
    *by_x += d * (y.low_weight * (x.low_slope * low_low + x.high_slope * low_high) +
                  y.high_weight * (x.low_slope * high_low + x.high_slope * high_high));
    *value += d * (y.low_weight * at_low + y.high_weight * at_high);
  }

 private:
  COHORT_HOST_DEVICE static bool exists(C weight, C slope) { return weight != 0 || slope != 0; }
};

template <typename C, bool kModulated>
struct DeformableSampling {
  int64_t stride[2], pad[2], dilate[2];
  int64_t across;         // elements in a row of a window
  int64_t height, width;  // of an image
  int64_t columns;        // places in a row of the output

  DeformableSampling(const DeformableConvolutionAttrs &a, const Shape &data, const Shape &output)
      : stride{a.stride[0], a.stride[1]},
        pad{a.pad[0], a.pad[1]},
        dilate{a.dilate[0], a.dilate[1]},
        across(a.kernel[1]),
        height(data[2]),
        width(data[3]),
        columns(output[3]) {}

  // The sampling point of an element of the window at `place` of the output, displaced by (down, right).
  COHORT_HOST_DEVICE DeformableSample<C> find(int64_t element, int64_t place, C down, C right) const {
    const C top = C(place / columns * stride[0] - pad[0] + element / across * dilate[0]) + down;
    const C left = C(place % columns * stride[1] - pad[1] + element % across * dilate[1]) + right;
    DeformableSample<C> found;
    const bool inside = kModulated
                            ? bordered_neighbours(top, height, &found.y) && bordered_neighbours(left, width, &found.x)
                            : clamped_neighbours(top, height, &found.y) && clamped_neighbours(left, width, &found.x);
    return inside ? found : DeformableSample<C>();
  }
};

}  // namespace cohort
