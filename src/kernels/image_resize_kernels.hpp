// SPDX-License-Identifier: Apache-2.0
// The bodies of op/image_resize.hpp, for all backends. Gradients are gathered: a line looks for the windows that read
// it, or each of its elements does.
#pragma once

#include "op/image_resize.hpp"

#include "kernels/backend.hpp"
#include "kernels/compute.hpp"

namespace cohort {
namespace {

// Sizes of the images on both sides: of (batch * channels) planes.
struct ImagePair {
  int64_t planes, height, width, tall, wide;  // data, result

  ImagePair(const Shape &in, const Shape &out)
      : planes(in[0] * in[1]), height(in[2]), width(in[3]), tall(out[2]), wide(out[3]) {}
};

// `count` windows over `length` elements: of means.
struct MeanWindows {
  int64_t length, count;
  COHORT_HOST_DEVICE int64_t begin(int64_t i) const { return i * length / count; }
  COHORT_HOST_DEVICE int64_t end(int64_t i) const { return ((i + 1) * length + count - 1) / count; }
  // Those that an element lies in.
  COHORT_HOST_DEVICE int64_t first_over(int64_t at) const { return at * count / length; }
  COHORT_HOST_DEVICE int64_t behind_over(int64_t at) const { return ((at + 1) * count + length - 1) / length; }
};

template <typename C>
class AdaptivePool {
 public:
  explicit AdaptivePool(const StepSpec &spec) : s_(spec.inputs[0].shape, spec.outputs[0].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const ImagePair s = s_;
    const MeanWindows rows{s.height, s.tall}, columns{s.width, s.wide};
    each_place(
        lane, s.planes * s.tall, s.wide, COHORT_LOOP_BODY(int64_t line, int64_t j) {
          const int64_t plane = line / s.tall, i = line % s.tall;
          const C *const from = in[0] + plane * s.height * s.width;
          C sum = 0;
          for (int64_t y = rows.begin(i); y < rows.end(i); ++y) {
            for (int64_t x = columns.begin(j); x < columns.end(j); ++x) sum += from[y * s.width + x];
          }
          const C area = C((rows.end(i) - rows.begin(i)) * (columns.end(j) - columns.begin(j)));
          out[0][line * s.wide + j] = sum / area;
        });
  }

 private:
  const ImagePair s_;
};

template <typename C>
class AdaptivePoolBackward {
 public:
  explicit AdaptivePoolBackward(const StepSpec &spec) : s_(spec.outputs[0].shape, spec.inputs[0].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const ImagePair s = s_;
    const MeanWindows rows{s.height, s.tall}, columns{s.width, s.wide};
    parallel_for(
        lane, s.planes * s.height, 1, COHORT_BODY(int64_t begin, int64_t end) {
          for (int64_t line = begin; line < end; ++line) {
            const int64_t y = line % s.height;
            const C *const head = in[0] + line / s.height * s.tall * s.wide;
            C *const to = out[0] + line * s.width;
            fill_elements(to, s.width, C(0));
            for (int64_t i = rows.first_over(y); i < rows.behind_over(y); ++i) {
              const int64_t height = rows.end(i) - rows.begin(i);
              for (int64_t j = 0; j < s.wide; ++j) {
                const int64_t left = columns.begin(j), right = columns.end(j);
                const C share = head[i * s.wide + j] / C(height * (right - left));
                for (int64_t x = left; x < right; ++x) to[x] += share;
              }
            }
          }
        });
  }

 private:
  const ImagePair s_;
};

// Where `count` places lie among `length` elements.
template <typename C>
struct ResizeAxis {
  int64_t length, count;
  C slope = 1, start = 0;
  bool shifted = false;  // centres of elements meet, not corners

  ResizeAxis(int64_t data, int64_t result, bool align_corners) : length(data), count(result) {
    if (count <= 1 || length == count) return;
    slope = align_corners ? C(length - 1) / C(count - 1) : C(length) / C(count);
    start = align_corners ? C(0) : C(0.5) * slope - C(0.5);
    shifted = !align_corners;
  }

  // (1 - weight) of `low` and weight of `high`.
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
  // How much place i reads of an element.
  COHORT_HOST_DEVICE C share(int64_t i, int64_t element) const {
    const Between b = at(i);
    return (b.low == element ? 1 - b.weight : C(0)) + (b.high == element ? b.weight : C(0));
  }
  // Places beyond [first, behind) read nothing of an element.
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

template <typename C>
class BilinearResize {
 public:
  explicit BilinearResize(const StepSpec &spec)
      : s_(spec.inputs[0].shape, spec.outputs[0].shape),
        rows_(s_.height, s_.tall, spec.attrs_as<BilinearResizeAttrs>().align_corners),
        columns_(s_.width, s_.wide, spec.attrs_as<BilinearResizeAttrs>().align_corners) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const ImagePair s = s_;
    const ResizeAxis<C> rows = rows_, columns = columns_;
    each_place(
        lane, s.planes * s.tall, s.wide, COHORT_LOOP_BODY(int64_t line, int64_t j) {
          const auto y = rows.at(line % s.tall), x = columns.at(j);
          const C *const from = in[0] + line / s.tall * s.height * s.width;
          const C *const low = from + y.low * s.width, *const high = from + y.high * s.width;
          const C v = y.weight, u = x.weight;
          out[0][line * s.wide + j] =
              (1 - v) * ((1 - u) * low[x.low] + u * low[x.high]) + v * ((1 - u) * high[x.low] + u * high[x.high]);
        });
  }

 private:
  const ImagePair s_;
  const ResizeAxis<C> rows_, columns_;
};

template <typename C>
class BilinearResizeBackward {
 public:
  explicit BilinearResizeBackward(const StepSpec &spec)
      : s_(spec.outputs[0].shape, spec.inputs[0].shape),
        like_bytes_(spec.outputs.size() > 1 ? size_t(spec.outputs[1].shape.size()) * sizeof(C) : 0),
        rows_(s_.height, s_.tall, spec.attrs_as<BilinearResizeAttrs>().align_corners),
        columns_(s_.width, s_.wide, spec.attrs_as<BilinearResizeAttrs>().align_corners) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    if (out[1]) zero_bytes(lane, out[1], like_bytes_);
    if (!out[0]) return;
    const ImagePair s = s_;
    const ResizeAxis<C> rows = rows_, columns = columns_;
    each_place(
        lane, s.planes * s.height, s.width, COHORT_LOOP_BODY(int64_t line, int64_t x) {
          const int64_t y = line % s.height;
          const C *const head = in[0] + line / s.height * s.tall * s.wide;
          C sum = 0;
          for (int64_t i = rows.first_over(y); i < rows.behind_over(y); ++i) {
            const C share = rows.share(i, y);
            if (share == 0) continue;
            for (int64_t j = columns.first_over(x); j < columns.behind_over(x); ++j) {
              const C both = share * columns.share(j, x);
              if (both != 0) sum += both * head[i * s.wide + j];
            }
          }
          out[0][line * s.width + x] = sum;
        });
  }

 private:
  const ImagePair s_;
  const size_t like_bytes_;
  const ResizeAxis<C> rows_, columns_;
};

COHORT_KERNEL_BY(backend, _contrib_AdaptiveAvgPooling2D, make_compute<AdaptivePool>);
COHORT_KERNEL_BY(backend, _backward__contrib_AdaptiveAvgPooling2D, make_compute<AdaptivePoolBackward>);
COHORT_KERNEL_BY(backend, _contrib_BilinearResize2D, make_compute<BilinearResize>);
COHORT_KERNEL_BY(backend, _backward__contrib_BilinearResize2D, make_compute<BilinearResizeBackward>);

}  // namespace
}  // namespace cohort
