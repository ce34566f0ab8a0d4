// SPDX-License-Identifier: Apache-2.0
// Kernels of op/image_colors.hpp. They compute in float, whatever the type of the image. Random numbers are drawn on
// the device: one thread writes a list of steps that all others read.
#pragma once

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <vector>

#include "device/run_value.hpp"
#include "kernels/backend.hpp"
#include "kernels/compute.hpp"
#include "kernels/scratch_layout.hpp"
#include "op/image_colors.hpp"
#include "op/random_math.hpp"

namespace cohort {
namespace {

COHORT_HOST_DEVICE inline float grey_of(const float *pixel, int64_t channels) {
  return channels == 1 ? pixel[0] : 0.299f * pixel[0] + 0.587f * pixel[1] + 0.114f * pixel[2];
}

// Turns the hue of a pixel in [0, 255] by `degrees`; lightness and saturation stay.
COHORT_HOST_DEVICE inline void turn_hue(float *pixel, float degrees) {
  const float r = pixel[0] / 255, g = pixel[1] / 255, b = pixel[2] / 255;
  const float top = r < g ? (g < b ? b : g) : (r < b ? b : r), low = g < r ? (b < g ? b : g) : (b < r ? b : r);
  const float distance = top - low, light = (top + low) / 2;
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
    for (int c = 0; c < 3; ++c) {  // a channel is high for two sixths of the circle, low for two, and linear between
      float place = hue + float(2 - 2 * c);
      place -= 6 * std::floor(place / 6);
      const float share = place < 1 ? place : place < 3 ? 1 : place < 4 ? 4 - place : 0;
      channels[c] = deep + (high - deep) * share;
    }
  }
  for (int c = 0; c < 3; ++c) pixel[c] = channels[c] * 255;
}

enum class ColorStep : int64_t { kScale, kContrast, kSaturation, kHue, kLight };

// The steps to apply to an image, in this order.
struct ColorSteps {
  static constexpr int kMost = 4;
  ColorStep step[kMost];
  float number[kMost][4];  // a factor, a fraction of the circle, or the addend of each channel
};

// Writes the steps, from attributes and random numbers.
struct ColorPlan {
  enum Kind : int64_t { kFactor, kJitter, kLight, kRandomLight } kind = kFactor;
  ColorStep step = ColorStep::kScale;  // for kFactor
  float number[4] = {};

  int num_steps() const { return kind == kJitter ? ColorSteps::kMost : 1; }
  bool is_random() const { return kind != kLight; }
  bool may_be_contrast() const { return kind == kJitter || (kind == kFactor && step == ColorStep::kContrast); }

  COHORT_HOST_DEVICE static float between(Dice &dice, float low, float high) {
    return float(low + (high - low) * dice.unit());
  }
  COHORT_HOST_DEVICE void make(const RandomStream &drawn, ColorSteps *to) const {
    Dice dice(drawn.seed, drawn.draws, 0);
    if (kind == kFactor) {
      to->step[0] = step;
      to->number[0][0] = between(dice, number[0], number[1]);
    } else if (kind == kJitter) {
      for (int i = 0; i < ColorSteps::kMost; ++i) to->step[i] = ColorStep(i);
      for (int i = ColorSteps::kMost - 1; i > 0; --i) {
        swap_elements(to->step + i, to->step + dice.below(uint64_t(i) + 1), 1);
      }
      for (int i = 0; i < ColorSteps::kMost; ++i) {
        const float distance = number[int(to->step[i])], center = to->step[i] == ColorStep::kHue ? 0.0f : 1.0f;
        to->number[i][0] = between(dice, center - distance, center + distance);
      }
    } else {
      // Rows are the principal components of ImageNet's colours, times the square roots of their variances.
      const float light[3][3] = {{55.46f * -0.5675f, 55.46f * -0.5808f, 55.46f * -0.5836f},
                                 {4.794f * 0.7192f, 4.794f * -0.0045f, 4.794f * -0.6948f},
                                 {1.148f * 0.4009f, 1.148f * -0.8140f, 1.148f * 0.4203f}};
      float alpha[3];
      for (int i = 0; i < 3; ++i) alpha[i] = kind == kLight ? number[i] : float(number[0] * dice.normal());
      to->step[0] = ColorStep::kLight;
      for (int c = 0; c < 3; ++c) {
        to->number[0][c] = light[0][c] * alpha[0] + light[1][c] * alpha[1] + light[2][c] * alpha[2];
      }
    }
  }
};

// Pixels in float. After each step numbers are cut to what the type of the image can hold.
struct ColorPixels {
  float *pixels;
  int64_t count, channels, cuts;
  float low, top;

  COHORT_HOST_DEVICE double grey(int64_t begin, int64_t end) const {
    double sum = 0;
    for (int64_t i = begin; i < end; ++i) sum += double(grey_of(pixels + i * channels, channels));
    return sum;
  }
  COHORT_HOST_DEVICE void take(ColorStep step, const float *number, int64_t begin, int64_t end) const {
    const float factor = number[0], offset = number[1];
    if (step == ColorStep::kScale) {
      each(begin, end, [=](float x, int64_t) { return x * factor; });
    } else if (step == ColorStep::kContrast) {
      each(begin, end, [=](float x, int64_t) { return x * factor + offset; });
    } else if (channels == 1) {
      return;
    } else if (step == ColorStep::kLight) {
      each(begin, end, [=](float x, int64_t c) { return x + number[c]; });
    } else if (step == ColorStep::kSaturation) {
      for (int64_t i = begin; i < end; ++i) {
        const float grey = (1 - factor) * grey_of(pixels + i * channels, channels);
        each(i, i + 1, [=](float x, int64_t) { return x * factor + grey; });
      }
    } else {
      for (int64_t i = begin; i < end; ++i) turn_hue(pixels + i * channels, factor * 360);
      each(begin, end, [=](float x, int64_t) { return x; });
    }
  }

 private:
  template <typename Fn>
  COHORT_HOST_DEVICE void each(int64_t begin, int64_t end, const Fn &fn) const {
    for (int64_t i = begin; i < end; ++i) {
      float *const pixel = pixels + i * channels;
      for (int64_t c = 0; c < channels; ++c) {
        const float x = fn(pixel[c], c), least = x < low ? low : x;
        pixel[c] = cuts ? std::trunc(top < least ? top : least) : x;
      }
    }
  }
};

template <typename Backend>
class ChangeColors : public Kernel {
 public:
  ChangeColors(StepSpec &spec, const ColorPlan &plan)
      : plan_(plan), size_(spec.inputs[0].shape.size()), dtype_(spec.inputs[0].dtype) {
    const Shape &shape = spec.inputs[0].shape;
    const bool cuts = !dtype_is_float(dtype_);
    pixels_ = {nullptr, shape[0] * shape[1], shape[2], cuts, 0, 0};
    if (cuts) {
      dispatch(dtype_, [&](auto t) {
        pixels_.low = float(std::numeric_limits<decltype(t)>::lowest());
        pixels_.top = float(std::numeric_limits<decltype(t)>::max());
      });
    }
    part_ = std::max<int64_t>(256, int64_t(std::sqrt(double(pixels_.count))));
    num_parts_ = (pixels_.count + part_ - 1) / part_;
    pixels_at_ = book(spec.scratch_bytes, size_t(size_) * sizeof(float));
    steps_at_ = book(spec.scratch_bytes, sizeof(ColorSteps));
    if (plan_.may_be_contrast()) sums_at_ = book(spec.scratch_bytes, size_t(num_parts_) * sizeof(double));
  }

  void run(const Args &args, const Lane &lane) const override {
    if (size_ == 0 && !plan_.is_random()) return;
    char *const room = static_cast<char *>(args.scratch);
    ColorPixels pixels = pixels_;
    pixels.pixels = reinterpret_cast<float *>(room + pixels_at_);
    auto *const steps = reinterpret_cast<ColorSteps *>(room + steps_at_);
    RunValue<RandomStream> drawn{nullptr, {}};
    if (plan_.is_random()) drawn = next_draw(args, lane);
    const ColorPlan plan = plan_;
    Backend::parallel_for_2d(lane, 1, 1, [=] COHORT_DEVICE(int64_t, int64_t) { plan.make(drawn.get(), steps); });
    widen(lane, args.inputs[0], dtype_, pixels.pixels, size_);
    for (int k = 0; k < plan_.num_steps(); ++k) {
      if (plan_.may_be_contrast()) find_mean(pixels, steps, reinterpret_cast<double *>(room + sums_at_), k, lane);
      Backend::parallel_for(
          lane, pixels.count, Backend::kExpensiveGrain,
          [=] COHORT_DEVICE(int64_t begin, int64_t end) { pixels.take(steps->step[k], steps->number[k], begin, end); });
    }
    narrow(lane, pixels.pixels, args.outputs[0], dtype_, size_);
  }

  // Computes the mean of the grey image if step k changes the contrast. Partial sums have a fixed order, so that the
  // mean does not depend on the number of threads.
  void find_mean(const ColorPixels &image, ColorSteps *steps, double *sums, int k, const Lane &lane) const {
    const ColorPixels pixels = image;
    const int64_t part = part_, num_parts = num_parts_;
    Backend::parallel_for(lane, num_parts, 1 + Backend::kExpensiveGrain / part,
                          [=] COHORT_DEVICE(int64_t begin, int64_t end) {
                            if (steps->step[k] != ColorStep::kContrast) return;
                            for (int64_t i = begin; i < end; ++i) {
                              const int64_t last = (i + 1) * part;
                              sums[i] = pixels.grey(i * part, last < pixels.count ? last : pixels.count);
                            }
                          });
    Backend::parallel_for_2d(lane, 1, 1, [=] COHORT_DEVICE(int64_t, int64_t) {
      if (steps->step[k] != ColorStep::kContrast) return;
      double sum = 0;
      for (int64_t i = 0; i < num_parts; ++i) sum += sums[i];
      steps->number[k][1] = (1 - steps->number[k][0]) * float(sum / double(pixels.count));
    });
  }

 private:
  const ColorPlan plan_;
  const int64_t size_;
  const Dtype dtype_;
  ColorPixels pixels_{};
  int64_t part_, num_parts_;
  size_t pixels_at_, steps_at_, sums_at_ = 0;
};

template <typename Backend, ColorStep kStep>
std::unique_ptr<Kernel> make_random_factor(StepSpec &spec) {
  const auto &a = spec.attrs_as<ColorFactorAttrs>();
  return std::make_unique<ChangeColors<Backend>>(spec,
                                                 ColorPlan{ColorPlan::kFactor, kStep, {a.min_factor, a.max_factor}});
}
template <typename Backend>
std::unique_ptr<Kernel> make_jitter(StepSpec &spec) {
  const auto &a = spec.attrs_as<ColorJitterAttrs>();
  return std::make_unique<ChangeColors<Backend>>(
      spec, ColorPlan{ColorPlan::kJitter, {}, {a.brightness, a.contrast, a.saturation, a.hue}});
}
template <typename Backend>
std::unique_ptr<Kernel> make_light(StepSpec &spec) {
  const std::vector<float> &alpha = spec.attrs_as<LightingAttrs>().alpha;
  return std::make_unique<ChangeColors<Backend>>(spec,
                                                 ColorPlan{ColorPlan::kLight, {}, {alpha[0], alpha[1], alpha[2]}});
}
template <typename Backend>
std::unique_ptr<Kernel> make_random_light(StepSpec &spec) {
  return std::make_unique<ChangeColors<Backend>>(
      spec, ColorPlan{ColorPlan::kRandomLight, {}, {spec.attrs_as<LightingAttrs>().alpha_std}});
}

template <typename Backend>
void register_image_colors_kernels() {
  KernelTable &table = backend_kernels();
  table.add("_image_random_brightness", make_random_factor<Backend, ColorStep::kScale>);
  table.add("_image_random_contrast", make_random_factor<Backend, ColorStep::kContrast>);
  table.add("_image_random_saturation", make_random_factor<Backend, ColorStep::kSaturation>);
  table.add("_image_random_hue", make_random_factor<Backend, ColorStep::kHue>);
  table.add("_image_random_color_jitter", make_jitter<Backend>);
  table.add("_image_adjust_lighting", make_light<Backend>);
  table.add("_image_random_lighting", make_random_light<Backend>);
}

}  // namespace
}  // namespace cohort
