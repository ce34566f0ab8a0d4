// SPDX-License-Identifier: Apache-2.0
#include "op/image_colors.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include "cpu/op/pointwise_loops.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"
#include "kernels/partial_sums.hpp"
#include "op/random_math.hpp"

namespace cohort {
namespace {

constexpr float kGrey[3] = {0.299f, 0.587f, 0.114f};
// The columns are the principal components of ImageNet's colours, times the roots of their variances.
constexpr float kLight[3][3] = {{55.46f * -0.5675f, 4.794f * 0.7192f, 1.148f * 0.4009f},
                                {55.46f * -0.5808f, 4.794f * -0.0045f, 1.148f * -0.8140f},
                                {55.46f * -0.5836f, 4.794f * -0.6948f, 1.148f * 0.4203f}};

// Of a pixel in [0, 255]: its hue is turned by `degrees`, with lightness and saturation kept.
void turn_hue(float *pixel, float degrees) {
  const float r = pixel[0] / 255, g = pixel[1] / 255, b = pixel[2] / 255;
  const float top = std::max({r, g, b}), low = std::min({r, g, b}), distance = top - low, light = (top + low) / 2;
  float hue = 0, saturation = 0;
  if (distance > FLT_EPSILON) {
    saturation = light < 0.5f ? distance / (top + low) : distance / (2 - top - low);
    hue = top == r ? (g - b) / distance : top == g ? (b - r) / distance + 2 : (r - g) / distance + 4;
  }
  float channels[3] = {light, light, light};
  if (saturation != 0) {
    const float high = light <= 0.5f ? light * (1 + saturation) : light + saturation - light * saturation;
    const float deep = 2 * light - high;
    hue += degrees / 60;
    hue -= 6 * std::floor(hue / 6);
    const float shift[3] = {2, 0, -2};
    for (int c = 0; c < 3; ++c) {  // a channel is high for two sixths of the circle, deep for two, and moves between
      float place = hue + shift[c];
      place -= 6 * std::floor(place / 6);
      const float share = place < 1 ? place : place < 3 ? 1 : place < 4 ? 4 - place : 0;
      channels[c] = deep + (high - deep) * share;
    }
  }
  for (int c = 0; c < 3; ++c) pixel[c] = channels[c] * 255;
}

// One image in floats, changed step by step. After each step numbers are cut to what the type of the image holds.
class Image {
 public:
  Image(float *pixels, int64_t count, int channels, Dtype dtype, const Lane &lane)
      : pixels_(pixels), count_(count), channels_(channels), lane_(lane), cuts_(!dtype_is_float(dtype)) {
    if (!cuts_) return;
    dispatch(dtype, [&](auto t) {
      using T = decltype(t);
      low_ = float(std::numeric_limits<T>::lowest());
      top_ = float(std::numeric_limits<T>::max());
    });
  }
  void scale(float factor) {
    each([=](float *pixel) { for_channels(pixel, [=](float x, int) { return x * factor; }); });
  }
  void contrast(float factor) {
    if (count_ == 0) return;
    double sum = 0;
    for (int64_t i = 0; i < count_; ++i) sum += double(grey(pixels_ + i * channels_));
    const float offset = (1 - factor) * float(sum / double(count_));
    each([=](float *pixel) { for_channels(pixel, [=](float x, int) { return x * factor + offset; }); });
  }
  void saturation(float factor) {
    if (channels_ == 1) return;
    each([=](float *pixel) {
      const float offset = (1 - factor) * grey(pixel);
      for_channels(pixel, [=](float x, int) { return x * factor + offset; });
    });
  }
  void hue(float share) {
    if (channels_ == 1) return;
    each([=](float *pixel) {
      turn_hue(pixel, share * 360);
      for_channels(pixel, [](float x, int) { return x; });
    });
  }
  void light(const float *alpha) {
    if (channels_ == 1) return;
    float offsets[3];
    for (int c = 0; c < 3; ++c) {
      offsets[c] = kLight[c][0] * alpha[0] + kLight[c][1] * alpha[1] + kLight[c][2] * alpha[2];
    }
    each([&](float *pixel) { for_channels(pixel, [&](float x, int c) { return x + offsets[c]; }); });
  }

 private:
  float grey(const float *pixel) const {
    return channels_ == 1 ? pixel[0] : kGrey[0] * pixel[0] + kGrey[1] * pixel[1] + kGrey[2] * pixel[2];
  }
  template <typename Fn>
  void for_channels(float *pixel, Fn &&fn) const {
    for (int c = 0; c < channels_; ++c) {
      const float x = fn(pixel[c], c);
      pixel[c] = cuts_ ? std::trunc(std::min(std::max(x, low_), top_)) : x;
    }
  }
  template <typename Fn>
  void each(Fn &&fn) const {
    parallel_for(lane_, count_, kExpensiveGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) fn(pixels_ + i * channels_);
    });
  }

  float *const pixels_;
  const int64_t count_;
  const int channels_;
  const Lane &lane_;
  const bool cuts_;
  float low_ = 0, top_ = 0;
};

// Change::of(attrs, dice, image) changes the image; dice is null where nothing is random.
template <typename Change>
class ColorKernel final : public Kernel {
 public:
  explicit ColorKernel(StepSpec &spec)
      : attrs_(spec.attrs_as<typename Change::Attributes>()),
        shape_(spec.inputs[0].shape),
        dtype_(spec.inputs[0].dtype),
        load_(load_block(dtype_, Dtype::kFloat32)),
        store_(store_block(Dtype::kFloat32, dtype_)) {
    spec.scratch_bytes = size_t(shape_.size()) * sizeof(float);
  }
  void run(const Args &args, const Lane &lane) const override {
    float *const pixels = static_cast<float *>(args.scratch);
    load_(args.inputs[0], 0, pixels, shape_.size());
    Image image(pixels, shape_[0] * shape_[1], int(shape_[2]), dtype_, lane);
    if constexpr (Change::kRandom) {
      const uint64_t stream = args.random->draws++;
      Dice dice(args.random->seed, stream, 0);
      Change::of(attrs_, dice, image);
    } else {
      Change::of(attrs_, image);
    }
    store_(pixels, args.outputs[0], 0, shape_.size());
  }

 private:
  const typename Change::Attributes attrs_;
  const Shape shape_;
  const Dtype dtype_;
  const LoadBlock load_;
  const StoreBlock store_;
};

float between(Dice &dice, float low, float high) { return float(low + (high - low) * dice.unit()); }

template <void (Image::*kStep)(float)>
struct RandomFactor {
  using Attributes = ColorFactorAttrs;
  static constexpr bool kRandom = true;
  static void of(const Attributes &a, Dice &dice, Image &image) {
    (image.*kStep)(between(dice, a.min_factor, a.max_factor));
  }
};

struct RandomJitter {
  using Attributes = ColorJitterAttrs;
  static constexpr bool kRandom = true;
  static void of(const Attributes &a, Dice &dice, Image &image) {
    int order[4] = {0, 1, 2, 3};
    for (int i = 3; i > 0; --i) std::swap(order[i], order[dice.below(uint64_t(i) + 1)]);
    const auto about = [&](float center, float distance) {
      return between(dice, center - distance, center + distance);
    };
    for (int step : order) {
      if (step == 0) image.scale(about(1, a.brightness));
      if (step == 1) image.contrast(about(1, a.contrast));
      if (step == 2) image.saturation(about(1, a.saturation));
      if (step == 3) image.hue(about(0, a.hue));
    }
  }
};

struct AdjustLighting {
  using Attributes = LightingAttrs;
  static constexpr bool kRandom = false;
  static void of(const Attributes &a, Image &image) { image.light(a.alpha.data()); }
};

struct RandomLighting {
  using Attributes = LightingAttrs;
  static constexpr bool kRandom = true;
  static void of(const Attributes &a, Dice &dice, Image &image) {
    float alpha[3];
    for (float &share : alpha) share = float(a.alpha_std * dice.normal());
    image.light(alpha);
  }
};

COHORT_KERNEL(cpu, _image_random_brightness, ColorKernel<RandomFactor<&Image::scale>>);
COHORT_KERNEL(cpu, _image_random_contrast, ColorKernel<RandomFactor<&Image::contrast>>);
COHORT_KERNEL(cpu, _image_random_saturation, ColorKernel<RandomFactor<&Image::saturation>>);
COHORT_KERNEL(cpu, _image_random_hue, ColorKernel<RandomFactor<&Image::hue>>);
COHORT_KERNEL(cpu, _image_random_color_jitter, ColorKernel<RandomJitter>);
COHORT_KERNEL(cpu, _image_adjust_lighting, ColorKernel<AdjustLighting>);
COHORT_KERNEL(cpu, _image_random_lighting, ColorKernel<RandomLighting>);

}  // namespace
}  // namespace cohort
