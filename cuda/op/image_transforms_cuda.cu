// SPDX-License-Identifier: Apache-2.0
// _image_to_tensor, _image_normalize, _image_crop and flips: one thread per element.
#include "cuda/op/elements.cuh"
#include "device/kernel_table.hpp"
#include "device/run_value.hpp"
#include "op/image_transforms.hpp"
#include "op/random_math.hpp"

namespace cohort {
namespace {

// ---- images as (height, width, channels), or several of them

struct ImageSizes {
  int64_t count, height, width, channels;
  explicit ImageSizes(const Shape &s)
      : count(s.rank() == 4 ? s[0] : 1), height(s[s.rank() - 3]), width(s[s.rank() - 2]), channels(s[s.rank() - 1]) {}
  int64_t size() const { return count * height * width * channels; }
};

// Moves channels first and divides by 255, in float; backward the inverse move, and the same division.
template <bool kBackward>
class ToTensorCuda final : public Kernel {
 public:
  explicit ToTensorCuda(const StepSpec &spec)
      : e_((kBackward ? spec.outputs : spec.inputs)[0].shape),
        from_(spec.inputs[0].dtype),
        to_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const Elements from = elements_of(args.inputs[0], from_), to = elements_of(args.outputs[0], to_);
    const ImageSizes e = e_;
    const int64_t pixels = e.height * e.width;
    for_each(lane, e.size(), [=] __device__(int64_t i) {
      const int64_t pixel = i / e.channels;
      const int64_t place = (pixel / pixels * e.channels + i % e.channels) * pixels + pixel % pixels;
      store(to, kBackward ? i : place, load<float>(from, kBackward ? place : i) / 255.0f);
    });
  }

 private:
  const ImageSizes e_;
  const Dtype from_, to_;
};

// Copies a window of the larger image to the smaller one; backward fills the rest of the larger one with zeros.
template <bool kBackward>
class CropWindowCuda final : public Kernel {
 public:
  explicit CropWindowCuda(const StepSpec &spec)
      : large_((kBackward ? spec.outputs : spec.inputs)[0].shape),
        small_((kBackward ? spec.inputs : spec.outputs)[0].shape),
        x_(spec.attrs_as<ImageCropAttrs>().x),
        y_(spec.attrs_as<ImageCropAttrs>().y),
        dtype_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const RawElements from = raw_elements(args.inputs[0], dtype_), to = raw_elements(args.outputs[0], dtype_);
    const RawElements zero{nullptr, to.bytes};
    const ImageSizes l = large_, s = small_;
    const int64_t left = x_, top = y_;
    if constexpr (kBackward) {
      for_each(lane, l.size(), [=] __device__(int64_t i) {
        const int64_t c = i % l.channels, x = i / l.channels % l.width - left, row = i / l.channels / l.width;
        const int64_t y = row % l.height - top;
        const bool inside = x >= 0 && x < s.width && y >= 0 && y < s.height;
        copy_element(to, i, inside ? from : zero, ((row / l.height * s.height + y) * s.width + x) * s.channels + c);
      });
    } else {
      for_each(lane, s.size(), [=] __device__(int64_t i) {
        const int64_t c = i % s.channels, x = i / s.channels % s.width + left, row = i / s.channels / s.width;
        const int64_t y = row % s.height + top;
        copy_element(to, i, from, ((row / s.height * l.height + y) * l.width + x) * l.channels + c);
      });
    }
  }

 private:
  const ImageSizes large_, small_;
  const int64_t x_, y_;
  const Dtype dtype_;
};

template <bool kColumns, bool kRandom>
class FlipCuda final : public Kernel {
 public:
  explicit FlipCuda(const StepSpec &spec) : e_(spec.inputs[0].shape), dtype_(spec.inputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    bool flips = true;
    if (kRandom) {
      const RandomStream drawn = next_draw(args, lane).value;
      flips = Dice(drawn.seed, drawn.draws, 0).below(2) != 0;
    }
    const RawElements from = raw_elements(args.inputs[0], dtype_), to = raw_elements(args.outputs[0], dtype_);
    const ImageSizes e = e_;
    for_each(lane, e.height * e.width * e.channels, [=] __device__(int64_t i) {
      const int64_t c = i % e.channels, x = i / e.channels % e.width, y = i / e.channels / e.width;
      const int64_t column = flips && kColumns ? e.width - 1 - x : x, row = flips && !kColumns ? e.height - 1 - y : y;
      copy_element(to, i, from, (row * e.width + column) * e.channels + c);
    });
  }
  bool replays() const override { return !kRandom; }  // the host throws the dice

 private:
  const ImageSizes e_;
  const Dtype dtype_;
};

COHORT_KERNEL(cuda, _image_to_tensor, ToTensorCuda<false>);
COHORT_KERNEL(cuda, _backward__image_to_tensor, ToTensorCuda<true>);
COHORT_KERNEL(cuda, _image_crop, CropWindowCuda<false>);
COHORT_KERNEL(cuda, _backward__image_crop, CropWindowCuda<true>);
using FlipColumns = FlipCuda<true, false>;
using FlipRows = FlipCuda<false, false>;
using FlipColumnsAtRandom = FlipCuda<true, true>;
using FlipRowsAtRandom = FlipCuda<false, true>;
COHORT_KERNEL(cuda, _image_flip_left_right, FlipColumns);
COHORT_KERNEL(cuda, _image_flip_top_bottom, FlipRows);
COHORT_KERNEL(cuda, _backward__image_flip_left_right, FlipColumns);
COHORT_KERNEL(cuda, _backward__image_flip_top_bottom, FlipRows);
COHORT_KERNEL(cuda, _image_random_flip_left_right, FlipColumnsAtRandom);
COHORT_KERNEL(cuda, _image_random_flip_top_bottom, FlipRowsAtRandom);

// ---- _image_normalize: (x - mean) / std, truncated for integers; backward: x / std

constexpr int64_t kMostChannels = 3;  // that images may have (src/op/image_transforms.cc)

struct ChannelNumbers {
  float mean[kMostChannels], deviation[kMostChannels];
  // Constant indices keep the lists in registers.
  __device__ static float of(const float (&list)[kMostChannels], int64_t channel) {
    return channel == 0 ? list[0] : channel == 1 ? list[1] : list[2];
  }
};

template <typename C, bool kBackward>
class NormalizeCuda final : public Kernel {
 public:
  explicit NormalizeCuda(const StepSpec &spec) : dtype_(spec.outputs[0].dtype) {
    const auto &a = spec.attrs_as<ImageNormalizeAttrs>();
    const Shape &shape = spec.outputs[0].shape;
    count_ = shape.size();
    channels_ = shape[shape.rank() - 3];
    pixels_ = shape.size(shape.rank() - 2, shape.rank());
    const auto of = [](const std::vector<float> &list, int64_t channel) {
      return list.size() == 1 ? list[0] : list[size_t(channel)];
    };
    for (int64_t c = 0; c < channels_; ++c) {
      numbers_.mean[c] = kBackward ? 0.0f : of(a.mean, c);
      numbers_.deviation[c] = of(a.std, c);
    }
  }
  void run(const Args &args, const Lane &lane) const override {
    const Elements from = elements_of(args.inputs[0], dtype_), to = elements_of(args.outputs[0], dtype_);
    const ChannelNumbers numbers = numbers_;
    const int64_t channels = channels_, pixels = pixels_;
    for_each(lane, count_, [=] __device__(int64_t i) {
      const int64_t channel = i / pixels % channels;
      store(to, i,
            (load<C>(from, i) - C(numbers.of(numbers.mean, channel))) / C(numbers.of(numbers.deviation, channel)));
    });
  }

 private:
  const Dtype dtype_;
  int64_t count_, channels_, pixels_;
  ChannelNumbers numbers_{};
};

template <bool kBackward>
std::unique_ptr<Kernel> make_normalize(StepSpec &spec) {
  return dispatch_compute(spec.outputs[0].dtype, false, [&](auto c) -> std::unique_ptr<Kernel> {
    if constexpr (std::is_floating_point_v<decltype(c)>) {
      return std::make_unique<NormalizeCuda<decltype(c), kBackward>>(spec);
    }
    return nullptr;
  });
}

COHORT_KERNEL_BY(cuda, _image_normalize, make_normalize<false>)
    .dtypes({Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kBfloat16, Dtype::kUint8, Dtype::kInt8,
             Dtype::kInt32, Dtype::kInt64});
COHORT_KERNEL_BY(cuda, _backward__image_normalize, make_normalize<true>);

}  // namespace
}  // namespace cohort
