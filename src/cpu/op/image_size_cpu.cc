// SPDX-License-Identifier: Apache-2.0
// _image_resize and _cvimresize: each pixel is a weighted sum over a window of columns and rows of the source, whose
// weights are made at bind. As in OpenCV, whose numbers MXNet gives: coordinates and weights are float, those of bytes
// are whole numbers of 2^-11, and windows are cut off at the edges by taking the edge again.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>

#include "cpu/op/pointwise_loops.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"
#include "op/image_transforms.hpp"

namespace cohort {
namespace {

constexpr int kWeightBits = 11;

// What each place along one axis is made of: `taps` places of the source with their weights.
struct AxisWindows {
  int64_t taps = 1;
  std::vector<int64_t> from;
  std::vector<float> weight;
  std::vector<int32_t> whole;  // the weights times 2^11
};

void lanczos(float x, float *weights) {
  constexpr double kRoot = 0.70710678118654752440;
  constexpr double kTurn[8][2] = {{1, 0},  {-kRoot, -kRoot}, {0, 1},  {kRoot, -kRoot},
                                  {-1, 0}, {kRoot, kRoot},   {0, -1}, {-kRoot, kRoot}};
  std::fill_n(weights, 8, 0.0f);
  if (x < FLT_EPSILON) {
    weights[3] = 1;
    return;
  }
  constexpr double kQuarter = 3.14159265358979323846 * 0.25;
  const double start = -(double(x) + 3) * kQuarter, sine = std::sin(start), cosine = std::cos(start);
  float sum = 0;
  for (int i = 0; i < 8; ++i) {
    const double y = -(double(x) + 3 - i) * kQuarter;
    weights[i] = float((kTurn[i][0] * sine + kTurn[i][1] * cosine) / (y * y));
    sum += weights[i];
  }
  for (int i = 0; i < 8; ++i) weights[i] *= 1 / sum;
}

void cubic(float x, float *weights) {
  constexpr float kA = -0.75f;
  weights[0] = ((kA * (x + 1) - 5 * kA) * (x + 1) + 8 * kA) * (x + 1) - 4 * kA;
  weights[1] = ((kA + 2) * x - (kA + 3)) * x * x + 1;
  weights[2] = ((kA + 2) * (1 - x) - (kA + 3)) * (1 - x) * (1 - x) + 1;
  weights[3] = 1 - weights[0] - weights[1] - weights[2];
}

// Means over the part of the source that a place covers, where places are fewer than the source has.
AxisWindows areas(int64_t in, int64_t out) {
  AxisWindows w;
  const double scale = double(in) / double(out);
  w.taps = int64_t(std::ceil(scale)) + 1;
  for (int64_t i = 0; i < out; ++i) {
    const double begin = double(i) * scale, end = std::min(begin + scale, double(in)),
                 width = std::min(scale, double(in) - begin);
    const auto first = int64_t(std::ceil(begin - 1e-3)), last = std::min(int64_t(std::floor(end + 1e-3)), in);
    std::vector<std::pair<int64_t, float>> parts;
    if (double(first) - begin > 1e-3) parts.emplace_back(first - 1, float((double(first) - begin) / width));
    for (int64_t k = first; k < last; ++k) parts.emplace_back(k, float(1 / width));
    if (end - double(last) > 1e-3) parts.emplace_back(last, float(std::min(end - double(last), 1.0) / width));
    for (int64_t k = 0; k < w.taps; ++k) {
      w.from.push_back(size_t(k) < parts.size() ? std::clamp<int64_t>(parts[size_t(k)].first, 0, in - 1) : 0);
      w.weight.push_back(size_t(k) < parts.size() ? parts[size_t(k)].second : 0.0f);
    }
  }
  return w;
}

// Linear windows at the edges have one place across and twice the same one down, which shows in the rounding of bytes.
AxisWindows windows_of(int64_t in, int64_t out, Interpolation how, bool shrinks, bool across) {
  if (how == Interpolation::kArea && shrinks) return areas(in, out);
  AxisWindows w;
  const double inverse = double(out) / double(in), scale = 1 / inverse;
  w.taps = how == Interpolation::kNearest   ? 1
           : how == Interpolation::kCubic   ? 4
           : how == Interpolation::kLanczos ? 8
                                            : 2;
  for (int64_t i = 0; i < out; ++i) {
    float weights[8] = {1};
    int64_t first = 0;
    if (how == Interpolation::kNearest) {
      first = std::min(int64_t(std::floor(double(i) * scale)), in - 1);
    } else if (how == Interpolation::kArea) {  // of a larger image: linear, with places as wide as they are
      first = int64_t(std::floor(double(i) * scale));
      float x = float(double(i + 1) - double(first + 1) * inverse);
      x = x <= 0 ? 0.0f : x - std::floor(x);
      weights[0] = 1 - x, weights[1] = x;
    } else {
      float x = float((double(i) + 0.5) * scale - 0.5);
      first = int64_t(std::floor(x));
      x -= float(first);
      if (how == Interpolation::kLinear) {
        if (across && first < 0) first = 0, x = 0;
        if (across && first >= in - 1) first = in - 1, x = 0;
        weights[0] = 1 - x, weights[1] = x;
      } else if (how == Interpolation::kCubic) {
        cubic(x, weights);
        first -= 1;
      } else {
        lanczos(x, weights);
        first -= 3;
      }
    }
    for (int64_t k = 0; k < w.taps; ++k) {
      w.from.push_back(std::clamp<int64_t>(first + k, 0, in - 1));
      w.weight.push_back(weights[k]);
      w.whole.push_back(int32_t(std::lrint(weights[k] * float(1 << kWeightBits))));
    }
  }
  return w;
}

class ResizeImage final : public Kernel {
 public:
  explicit ResizeImage(StepSpec &spec)
      : in_(spec.inputs[0].shape),
        out_(spec.outputs[0].shape),
        axis_(in_.rank() - 3),
        count_(in_.rank() == 4 ? in_[0] : 1),
        channels_(in_[axis_ + 2]),
        how_(Interpolation(spec.attrs_as<ImageResizeAttrs>().interp)),
        dtype_(spec.inputs[0].dtype) {
    if (out_.size() == 0) return;
    const bool shrinks = out_[axis_] <= in_[axis_] && out_[axis_ + 1] <= in_[axis_ + 1];
    rows_ = windows_of(in_[axis_], out_[axis_], how_, shrinks, false);
    columns_ = windows_of(in_[axis_ + 1], out_[axis_ + 1], how_, shrinks, true);
    areas_ = how_ == Interpolation::kArea && shrinks;
    // The images with their columns done, as int32, float or double.
    spec.scratch_bytes = size_t(count_ * in_[axis_] * out_[axis_ + 1] * channels_) * 8;
  }
  void run(const Args &args, const Lane &lane) const override {
    if (out_.size() == 0) return;
    dispatch(dtype_, [&](auto t) {
      using T = decltype(t);
      if constexpr (std::is_same_v<T, uint8_t>) {
        if (areas_ || how_ == Interpolation::kNearest) {
          resize<T, float>(args, lane, columns_.weight, rows_.weight, round_byte);
        } else if (rows_.taps == 2) {
          resize<T, int32_t>(args, lane, columns_.whole, rows_.whole, nullptr);
        } else {
          resize<T, int32_t>(args, lane, columns_.whole, rows_.whole, [](int32_t sum) {
            return uint8_t(std::clamp((sum + (1 << (2 * kWeightBits - 1))) >> (2 * kWeightBits), 0, 255));
          });
        }
      } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
        resize<T, T>(args, lane, columns_.weight, rows_.weight, [](T sum) { return sum; });
      } else {
        resize<T, float>(args, lane, columns_.weight, rows_.weight, [](float sum) { return cast_number<T>(sum); });
      }
    });
  }

 private:
  static uint8_t round_byte(float sum) { return uint8_t(std::clamp(int32_t(std::lrint(sum)), 0, 255)); }
  template <typename T>
  static T cast_number(float sum) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      const double low = double(std::numeric_limits<T>::lowest()), top = double(std::numeric_limits<T>::max());
      const double rounded = std::nearbyint(double(sum));
      return rounded <= low   ? std::numeric_limits<T>::lowest()
             : rounded >= top ? std::numeric_limits<T>::max()
                              : T(rounded);
    } else {
      return T(sum);
    }
  }

  // Columns first, then rows. `finish` makes an element of a sum; null: of two rows of bytes, as OpenCV adds them up.
  template <typename T, typename S, typename Weight, typename Finish>
  void resize(const Args &args, const Lane &lane, const std::vector<Weight> &across, const std::vector<Weight> &down,
              Finish &&finish) const {
    const int64_t in_width = in_[axis_ + 1] * channels_, width = out_[axis_ + 1], row = width * channels_;
    const T *const from = args.in<T>(0);
    S *const middle = static_cast<S *>(args.scratch);
    parallel_for(lane, count_ * in_[axis_], 1 + kCheapGrain / row, [&](int64_t begin, int64_t end) {
      for (int64_t y = begin; y < end; ++y) {
        for (int64_t x = 0; x < width; ++x) {
          for (int64_t c = 0; c < channels_; ++c) {
            S sum = 0;
            for (int64_t k = x * columns_.taps; k < (x + 1) * columns_.taps; ++k) {
              sum += S(from[y * in_width + columns_.from[size_t(k)] * channels_ + c]) * S(across[size_t(k)]);
            }
            middle[y * row + x * channels_ + c] = sum;
          }
        }
      }
    });
    T *const to = args.out<T>(0);
    parallel_for(lane, count_ * out_[axis_], 1 + kCheapGrain / row, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t image = line / out_[axis_], y = line % out_[axis_];
        const S *const source = middle + image * in_[axis_] * row;
        for (int64_t i = 0; i < row; ++i) {
          const auto at = [&](int64_t k) { return source[rows_.from[size_t(y * rows_.taps + k)] * row + i]; };
          if constexpr (std::is_same_v<std::decay_t<Finish>, std::nullptr_t>) {
            const int32_t a = down[size_t(2 * y)], b = down[size_t(2 * y + 1)];
            to[line * row + i] = T((((a * (at(0) >> 4)) >> 16) + ((b * (at(1) >> 4)) >> 16) + 2) >> 2);
          } else {
            S sum = 0;
            for (int64_t k = 0; k < rows_.taps; ++k) sum += at(k) * S(down[size_t(y * rows_.taps + k)]);
            to[line * row + i] = finish(sum);
          }
        }
      }
    });
  }

  const Shape in_, out_;
  const int axis_;  // of the height
  const int64_t count_, channels_;
  const Interpolation how_;
  const Dtype dtype_;
  bool areas_ = false;
  AxisWindows rows_, columns_;
};

std::string refuses_layer_images(const StepSpec &spec) {
  return spec.inputs[0].shape.size() == 0 && spec.outputs[0].shape.size() > 0 ? "takes images with pixels alone" : "";
}

COHORT_KERNEL(cpu, _image_resize, ResizeImage).when(refuses_layer_images);
COHORT_KERNEL(cpu, _cvimresize, ResizeImage).when(refuses_layer_images);

}  // namespace
}  // namespace cohort
