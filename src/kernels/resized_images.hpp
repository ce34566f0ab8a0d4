// SPDX-License-Identifier: Apache-2.0
// Common code of the kernels of op/image_resize.hpp: sizes, and the places of one image in coordinates of the other.
// Compiled by nvcc, too.
#pragma once

#include "kernels/backend.hpp"
#include "op/image_resize.hpp"

namespace cohort {

// Sizes of both images; planes = batch * channels.
struct ImagePair {
  int64_t planes, height, width, tall, wide;  // height and width: of the data; tall and wide: of the result

  ImagePair(const Shape &in, const Shape &out)
      : planes(in[0] * in[1]), height(in[2]), width(in[3]), tall(out[2]), wide(out[3]) {}
};

// Coordinates of `count` places among `length` elements.
template <typename C>
struct ResizeAxis {
  int64_t length, count;
  C slope = 1, start = 0;
  bool shifted = false;  // the centres of elements coincide, not the corners

  ResizeAxis(int64_t data, int64_t result, bool align_corners) : length(data), count(result) {
    if (count <= 1 || length == count) return;
    slope = align_corners ? C(length - 1) / C(count - 1) : C(length) / C(count);
    start = align_corners ? C(0) : C(0.5) * slope - C(0.5);
    shifted = !align_corners;
  }

  // A place reads (1 - weight) times element `low` plus weight times element `high`.
  struct Between {
    int64_t low, high;
    C weight;
  };
  COHORT_HOST_DEVICE Between at(int64_t i) const {
    const C exact = shifted ? slope * (C(i) + C(0.5)) - C(0.5) : slope * C(i);
    const C place = exact > 0 ? exact : C(0);
    const int64_t low = int64_t(place) < length - 1 ? int64_t(place) : length - 1;
    return {low, low + 1 < length ? low + 1 : length - 1, place - C(low)};
  }
  // The weight with which place i reads an element; 0 if it does not.
  COHORT_HOST_DEVICE C share(int64_t i, int64_t element) const {
    const Between b = at(i);
    return (b.low == element ? 1 - b.weight : C(0)) + (b.high == element ? b.weight : C(0));
  }
  // Only places in [first_over, behind_over) can read an element.
  COHORT_HOST_DEVICE int64_t first_over(int64_t element) const {
    if (element == 0 || slope == 0) return 0;
    const int64_t i = int64_t((C(element) - 1 - start) / slope) - 1;
    return i < 0 ? 0 : i;
  }
  COHORT_HOST_DEVICE int64_t behind_over(int64_t element) const {
    if (element == length - 1 || slope == 0) return count;
    const int64_t i = int64_t((C(element) + 1 - start) / slope) + 2;
    return i < count ? i : count;
  }
};

// Both images, with the coordinates of the result's places along rows and columns of the data.
template <typename C>
struct BilinearImages : ImagePair {
  ResizeAxis<C> rows, columns;

  BilinearImages(const StepSpec &spec, const TensorSpec &data, const TensorSpec &result)
      : ImagePair(data.shape, result.shape),
        rows(height, tall, spec.attrs_as<BilinearResizeAttrs>().align_corners),
        columns(width, wide, spec.attrs_as<BilinearResizeAttrs>().align_corners) {}
};

// Writes the gradient of an input that only gives a size: zeros.
class LikeGradient {
 public:
  explicit LikeGradient(const StepSpec &spec) : bytes_(spec.outputs.size() > 1 ? spec.outputs[1].bytes() : 0) {}
  void write(void *to, const Lane &lane) const {
    if (to) zero_bytes(lane, to, bytes_);
  }

 private:
  const size_t bytes_;
};

}  // namespace cohort
