// SPDX-License-Identifier: Apache-2.0
// Kernels of _image_resize and _cvimresize: each pixel is a weighted sum over a window of columns and rows of the
// source. As in OpenCV, whose results MXNet returns: coordinates and weights are float; weights for bytes are integer
// multiples of 2^-11; and at the edges a window reads the edge pixel again.
#pragma once

#include <cfloat>
#include <cmath>
#include <limits>

#include "base/dtype_cast.hpp"
#include "kernels/backend.hpp"
#include "kernels/compute.hpp"
#include "kernels/scratch_layout.hpp"
#include "op/checked_length.hpp"
#include "op/image_transforms.hpp"

namespace cohort {
namespace {

constexpr int kWeightBits = 11;

COHORT_HOST_DEVICE inline int64_t within(int64_t i, int64_t length) { return i < 0 ? 0 : i < length ? i : length - 1; }
COHORT_HOST_DEVICE inline int64_t floor_of(double x) { return int64_t(std::floor(x)); }

COHORT_HOST_DEVICE inline void lanczos(float x, float *weights) {
  constexpr double kRoot = 0.70710678118654752440, kQuarter = 3.14159265358979323846 * 0.25;
  const double turn[8][2] = {{1, 0},  {-kRoot, -kRoot}, {0, 1},  {kRoot, -kRoot},
                             {-1, 0}, {kRoot, kRoot},   {0, -1}, {-kRoot, kRoot}};
  if (x < FLT_EPSILON) {
    for (int i = 0; i < 8; ++i) weights[i] = i == 3 ? 1.0f : 0.0f;
    return;
  }
  const double start = -(double(x) + 3) * kQuarter, sine = std::sin(start), cosine = std::cos(start);
  float sum = 0;
  for (int i = 0; i < 8; ++i) {
    const double y = -(double(x) + 3 - i) * kQuarter;
    weights[i] = float((turn[i][0] * sine + turn[i][1] * cosine) / (y * y));
    sum += weights[i];
  }
  for (int i = 0; i < 8; ++i) weights[i] *= 1 / sum;
}

COHORT_HOST_DEVICE inline void cubic(float x, float *weights) {
  constexpr float kA = -0.75f;
  weights[0] = ((kA * (x + 1) - 5 * kA) * (x + 1) + 8 * kA) * (x + 1) - 4 * kA;
  weights[1] = ((kA + 2) * x - (kA + 3)) * x * x + 1;
  weights[2] = ((kA + 2) * (1 - x) - (kA + 3)) * (1 - x) * (1 - x) + 1;
  weights[3] = 1 - weights[0] - weights[1] - weights[2];
}

// The windows along one axis: `taps` places of the source for each place of the result, with their weights.
struct PixelAxis {
  int64_t in = 0, out = 0, how = 0;         // lengths; an Interpolation
  int64_t areas = 0, across = 0, taps = 1;  // areas: average over areas; across: along rows

  PixelAxis() = default;
  PixelAxis(int64_t in_length, int64_t out_length, Interpolation interpolation, bool means, bool along_rows)
      : in(in_length), out(out_length), how(int64_t(interpolation)), areas(means), across(along_rows) {
    taps = means                                      ? int64_t(std::ceil(double(in) / double(out))) + 1
           : interpolation == Interpolation::kNearest ? 1
           : interpolation == Interpolation::kCubic   ? 4
           : interpolation == Interpolation::kLanczos ? 8
                                                      : 2;
  }
  int64_t size() const { return out * taps; }

  COHORT_HOST_DEVICE void make(int64_t i, int64_t *from, float *weight) const {
    if (areas) {
      make_area(i, from, weight);
    } else {
      make_points(i, from, weight);
    }
  }

 private:
  // Averages over the part of the source that the place covers.
  COHORT_HOST_DEVICE void make_area(int64_t i, int64_t *from, float *weight) const {
    const double scale = double(in) / double(out), begin = double(i) * scale, length = double(in);
    const double end = begin + scale < length ? begin + scale : length;
    const double width = scale < length - begin ? scale : length - begin;
    const int64_t first = int64_t(std::ceil(begin - 1e-3)), floor = floor_of(end + 1e-3),
                  last = floor < in ? floor : in;
    int64_t k = 0;
    const auto add = [&](int64_t place, double share) {
      if (k == taps) return;
      from[k] = within(place, in);
      weight[k++] = float(share);
    };
    if (double(first) - begin > 1e-3) add(first - 1, (double(first) - begin) / width);
    for (int64_t at = first; at < last; ++at) add(at, 1 / width);
    const double left = end - double(last);
    if (left > 1e-3) add(last, (left < 1 ? left : 1.0) / width);
    while (k < taps) add(0, 0);
  }

  // At the edges, a linear window along rows has one place, but one along columns has the same place twice, which
  // shows in the rounding of bytes.
  COHORT_HOST_DEVICE void make_points(int64_t i, int64_t *from, float *weight) const {
    const double inverse = double(out) / double(in), scale = 1 / inverse;
    float weights[8] = {1};
    int64_t first = 0;
    switch (Interpolation(how)) {
      case Interpolation::kNearest:
        first = within(floor_of(double(i) * scale), in);
        break;
      case Interpolation::kArea: {  // of a larger image: linear, with places as wide as they are
        first = floor_of(double(i) * scale);
        float x = float(double(i + 1) - double(first + 1) * inverse);
        x = x <= 0 ? 0.0f : x - std::floor(x);
        weights[0] = 1 - x, weights[1] = x;
        break;
      }
      default: {
        float x = float((double(i) + 0.5) * scale - 0.5);
        first = int64_t(std::floor(x));
        x -= float(first);
        if (Interpolation(how) == Interpolation::kLinear) {
          if (across && first < 0) first = 0, x = 0;
          if (across && first >= in - 1) first = in - 1, x = 0;
          weights[0] = 1 - x, weights[1] = x;
        } else if (Interpolation(how) == Interpolation::kCubic) {
          cubic(x, weights);
          first -= 1;
        } else {
          lanczos(x, weights);
          first -= 3;
        }
      }
    }
    for (int64_t k = 0; k < taps; ++k) {
      from[k] = within(first + k, in);
      weight[k] = weights[k];
    }
  }
};

// The windows of an axis, as arrays in memory.
template <typename Weight>
struct Windows {
  int64_t taps;
  int64_t *from;
  Weight *weight;

  // The sum over window i of elements that lie `step` apart.
  template <typename S, typename T>
  COHORT_HOST_DEVICE S sum(int64_t i, const T *source, int64_t step) const {
    S total = 0;
    for (int64_t k = i * taps; k < (i + 1) * taps; ++k) total += S(source[from[k] * step]) * S(weight[k]);
    return total;
  }
};

// Computes the windows into memory.
template <typename Backend, typename Weight>
void make_windows(const Lane &lane, const PixelAxis &axis, const Windows<Weight> &windows) {
  Backend::parallel_for_2d(lane, 1, axis.out, [=] COHORT_DEVICE(int64_t, int64_t i) {
    int64_t *const from = windows.from + i * axis.taps;
    Weight *const weight = windows.weight + i * axis.taps;
    if constexpr (std::is_same_v<Weight, float>) {
      axis.make(i, from, weight);
    } else {
      float exact[8];
      axis.make(i, from, exact);
      for (int64_t k = 0; k < axis.taps; ++k) weight[k] = Weight(std::rint(exact[k] * float(1 << kWeightBits)));
    }
  });
}

// Each of these computes an element from window i of rows, `step` elements apart.
struct NearestByte {
  template <typename T>
  COHORT_HOST_DEVICE static T of(const Windows<float> &rows, int64_t i, const float *source, int64_t step) {
    return T(within(int64_t(std::rint(rows.sum<float>(i, source, step))), 256));
  }
};
struct WholeByte {
  template <typename T>
  COHORT_HOST_DEVICE static T of(const Windows<int32_t> &rows, int64_t i, const int32_t *source, int64_t step) {
    return T(within((rows.sum<int32_t>(i, source, step) + (1 << (2 * kWeightBits - 1))) >> (2 * kWeightBits), 256));
  }
};
struct ByteOfTwo {  // rounded as OpenCV does
  template <typename T>
  COHORT_HOST_DEVICE static T of(const Windows<int32_t> &rows, int64_t i, const int32_t *source, int64_t step) {
    const int32_t a = rows.weight[2 * i] * (source[rows.from[2 * i] * step] >> 4);
    const int32_t b = rows.weight[2 * i + 1] * (source[rows.from[2 * i + 1] * step] >> 4);
    return T(((a >> 16) + (b >> 16) + 2) >> 2);
  }
};
struct NearestNumber {
  template <typename T, typename S>
  COHORT_HOST_DEVICE static T of(const Windows<float> &rows, int64_t i, const S *source, int64_t step) {
    const S sum = rows.sum<S>(i, source, step);
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      const double low = double(std::numeric_limits<T>::lowest()), top = double(std::numeric_limits<T>::max());
      const double rounded = std::rint(double(sum));
      return rounded <= low   ? std::numeric_limits<T>::lowest()
             : rounded >= top ? std::numeric_limits<T>::max()
                              : T(rounded);
    } else {
      return cast_element<T>(sum);
    }
  }
};

template <typename Backend>
class ResizeImage final : public Kernel {
 public:
  explicit ResizeImage(StepSpec &spec)
      : dtype_(spec.inputs[0].dtype),
        how_(Interpolation(spec.attrs_as<ImageResizeAttrs>().interp)),
        empty_(spec.outputs[0].shape.size() == 0) {
    if (empty_) return;
    const Shape &in = spec.inputs[0].shape, &out = spec.outputs[0].shape;
    const int axis = in.rank() - 3;
    count_ = in.rank() == 4 ? in[0] : 1;
    channels_ = in[axis + 2];
    const bool shrinks = out[axis] <= in[axis] && out[axis + 1] <= in[axis + 1];
    areas_ = how_ == Interpolation::kArea && shrinks;
    rows_ = PixelAxis(in[axis], out[axis], how_, areas_, false);
    columns_ = PixelAxis(in[axis + 1], out[axis + 1], how_, areas_, true);
    // The images with resized columns, as int32, float or double.
    const int64_t middle = checked_times(checked_times(count_ * channels_, rows_.in), checked_times(columns_.out, 8));
    book(spec.scratch_bytes, size_t(middle));
    const auto book_windows = [&](const PixelAxis &windows, size_t *at) {
      at[0] = book(spec.scratch_bytes, size_t(windows.size()) * sizeof(int64_t));
      at[1] = book(spec.scratch_bytes, size_t(windows.size()) * sizeof(float));
    };
    book_windows(rows_, rows_at_);
    book_windows(columns_, columns_at_);
  }

  void run(const Args &args, const Lane &lane) const override {
    if (empty_) return;
    dispatch(dtype_, [&](auto t) {
      using T = decltype(t);
      if constexpr (std::is_same_v<T, uint8_t>) {
        if (areas_ || how_ == Interpolation::kNearest) {
          resize<T, float, float, NearestByte>(args, lane);
        } else if (rows_.taps == 2) {
          resize<T, int32_t, int32_t, ByteOfTwo>(args, lane);
        } else {
          resize<T, int32_t, int32_t, WholeByte>(args, lane);
        }
      } else if constexpr (std::is_same_v<T, double>) {
        resize<T, double, float, NearestNumber>(args, lane);
      } else {
        resize<T, float, float, NearestNumber>(args, lane);
      }
    });
  }

  // Resizes the columns first, then the rows.
  template <typename T, typename S, typename Weight, typename Finish>
  void resize(const Args &args, const Lane &lane) const {
    const auto windows = [&](const PixelAxis &axis, const size_t *at) {
      char *const room = static_cast<char *>(args.scratch);
      const Windows<Weight> made{axis.taps, reinterpret_cast<int64_t *>(room + at[0]),
                                 reinterpret_cast<Weight *>(room + at[1])};
      make_windows<Backend>(lane, axis, made);
      return made;
    };
    const Windows<Weight> rows = windows(rows_, rows_at_), columns = windows(columns_, columns_at_);
    const int64_t channels = channels_, width = columns_.out, row = width * channels, in_row = columns_.in * channels;
    const T *const from = args.in<T>(0);
    S *const middle = static_cast<S *>(args.scratch);
    Backend::parallel_for_2d(lane, count_ * rows_.in, width, [=] COHORT_DEVICE(int64_t y, int64_t x) {
      for (int64_t c = 0; c < channels; ++c) {
        middle[y * row + x * channels + c] = columns.template sum<S>(x, from + y * in_row + c, channels);
      }
    });
    T *const to = args.out<T>(0);
    const int64_t height = rows_.in, tall = rows_.out;
    Backend::parallel_for_2d(lane, count_ * tall, row, [=] COHORT_DEVICE(int64_t line, int64_t i) {
      const S *const image = middle + line / tall * height * row;
      to[line * row + i] = Finish::template of<T>(rows, line % tall, image + i, row);
    });
  }

 private:
  const Dtype dtype_;
  const Interpolation how_;
  const bool empty_;
  bool areas_ = false;
  int64_t count_ = 0, channels_ = 0;
  PixelAxis rows_, columns_;
  size_t rows_at_[2] = {}, columns_at_[2] = {};  // offsets in the scratch memory: places of the source, weights
};

inline std::string refuses_layer_images(const StepSpec &spec) {
  return spec.inputs[0].shape.size() == 0 && spec.outputs[0].shape.size() > 0 ? "takes images with pixels alone" : "";
}

template <typename Backend>
void register_image_size_kernels() {
  KernelTable &table = backend_kernels();
  table.add("_image_resize", make_kernel_of<ResizeImage<Backend>>).when(refuses_layer_images);
  table.add("_cvimresize", make_kernel_of<ResizeImage<Backend>>).when(refuses_layer_images);
}

}  // namespace
}  // namespace cohort
