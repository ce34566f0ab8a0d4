// SPDX-License-Identifier: Apache-2.0
#include "op/image_transforms.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpu/op/pointwise_loops.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"
#include "op/random_math.hpp"

namespace cohort {
namespace {

// `count` images of (height, width, channels).
struct Images {
  int64_t count, height, width, channels;
  int64_t element_bytes;

  explicit Images(const TensorSpec &t)
      : count(t.shape.rank() == 4 ? t.shape[0] : 1),
        height(t.shape[t.shape.rank() - 3]),
        width(t.shape[t.shape.rank() - 2]),
        channels(t.shape[t.shape.rank() - 1]),
        element_bytes(int64_t(dtype_size(t.dtype))) {}
  int64_t pixel_bytes() const { return channels * element_bytes; }
  int64_t row_bytes() const { return width * pixel_bytes(); }
};

// Moves channels first and divides by 255, in float; backward from there.
template <bool kBackward>
class ToTensor final : public Kernel {
 public:
  explicit ToTensor(const StepSpec &spec)
      : images_((kBackward ? spec.outputs : spec.inputs)[0]),
        load_(load_block((kBackward ? spec.outputs : spec.inputs)[0].dtype, Dtype::kFloat32)),
        store_(store_block(Dtype::kFloat32, (kBackward ? spec.outputs : spec.inputs)[0].dtype)) {}
  void run(const Args &args, const Lane &lane) const override {
    const int64_t pixels = images_.height * images_.width, channels = images_.channels;
    parallel_for(lane, images_.count * pixels, kCheapGrain, [&](int64_t begin, int64_t end) {
      float block[kPointwiseBlock];
      for (int64_t at = begin * channels; at < end * channels; at += kPointwiseBlock) {
        const int64_t count = std::min(kPointwiseBlock, end * channels - at);
        if (!kBackward) load_(args.inputs[0], at, block, count);
        for (int64_t k = 0; k < count; ++k) {
          const int64_t pixel = (at + k) / channels, channel = (at + k) % channels;
          const int64_t place = (pixel / pixels * channels + channel) * pixels + pixel % pixels;
          if constexpr (kBackward) {
            block[k] = args.in<float>(0)[place] / 255.0f;
          } else {
            args.out<float>(0)[place] = block[k] / 255.0f;
          }
        }
        if (kBackward) store_(block, args.outputs[0], at, count);
      }
    });
  }

 private:
  const Images images_;
  const LoadBlock load_;
  const StoreBlock store_;
};

// (x - mean) / std, truncated for integers; backward: x / std.
template <bool kBackward>
class Normalize final : public Kernel {
 public:
  explicit Normalize(const StepSpec &spec)
      : attrs_(spec.attrs_as<ImageNormalizeAttrs>()), shape_(spec.outputs[0].shape), dtype_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    dispatch_compute(dtype_, false, [&](auto c) { run_in<decltype(c)>(args, lane); });
  }

 private:
  template <typename C>
  void run_in(const Args &args, const Lane &lane) const {
    const int64_t channels = shape_[shape_.rank() - 3], pixels = shape_.size(shape_.rank() - 2, shape_.rank());
    const LoadBlock load = load_block(dtype_, dtype_of<C>());
    const StoreBlock store = store_block(dtype_of<C>(), dtype_);
    if (pixels == 0) return;
    parallel_for(lane, shape_.size() / pixels, 1 + kCheapGrain / pixels, [&](int64_t begin, int64_t end) {
      C block[kPointwiseBlock];
      for (int64_t plane = begin; plane < end; ++plane) {
        const auto of = [&](const std::vector<float> &list) {
          return C(list.size() == 1 ? list[0] : list[size_t(plane % channels)]);
        };
        const C mean = kBackward ? C(0) : of(attrs_.mean), deviation = of(attrs_.std);
        for (int64_t i = 0; i < pixels; i += kPointwiseBlock) {
          const int64_t count = std::min(kPointwiseBlock, pixels - i);
          load(args.inputs[0], plane * pixels + i, block, count);
          for (int64_t k = 0; k < count; ++k) block[k] = (block[k] - mean) / deviation;
          store(block, args.outputs[0], plane * pixels + i, count);
        }
      }
    });
  }

  const ImageNormalizeAttrs attrs_;
  const Shape shape_;
  const Dtype dtype_;
};

// Copies a window of a larger image to a smaller one; backward fills the rest of the larger one with zeros.
template <bool kBackward>
class CropWindow final : public Kernel {
 public:
  explicit CropWindow(const StepSpec &spec)
      : attrs_(spec.attrs_as<ImageCropAttrs>()),
        large_(kBackward ? spec.outputs[0] : spec.inputs[0]),
        small_(kBackward ? spec.inputs[0] : spec.outputs[0]) {}
  void run(const Args &args, const Lane &) const override {
    if (kBackward) std::memset(args.outputs[0], 0, size_t(large_.count * large_.height * large_.row_bytes()));
    for (int64_t row = 0; row < small_.count * small_.height; ++row) {
      const int64_t image = row / small_.height, y = attrs_.y + row % small_.height;
      const int64_t in_large = (image * large_.height + y) * large_.row_bytes() + attrs_.x * large_.pixel_bytes();
      const int64_t in_small = row * small_.row_bytes();
      std::memcpy(args.out<char>(0) + (kBackward ? in_large : in_small),
                  args.in<char>(0) + (kBackward ? in_small : in_large), size_t(small_.row_bytes()));
    }
  }

 private:
  const ImageCropAttrs attrs_;
  const Images large_, small_;
};

template <bool kColumns, bool kRandom>
class Flip final : public Kernel {
 public:
  explicit Flip(const StepSpec &spec) : image_(spec.inputs[0]) {}
  void run(const Args &args, const Lane &) const override {
    const char *const from = args.in<char>(0);
    char *const to = args.out<char>(0);
    if (kRandom) {
      const uint64_t stream = args.random->draws++;
      if (Dice(args.random->seed, stream, 0).below(2) == 0) {
        std::memcpy(to, from, size_t(image_.height * image_.row_bytes()));
        return;
      }
    }
    const int64_t pixel = image_.pixel_bytes(), row = image_.row_bytes();
    for (int64_t y = 0; y < image_.height; ++y) {
      if (!kColumns) {
        std::memcpy(to + y * row, from + (image_.height - 1 - y) * row, size_t(row));
        continue;
      }
      for (int64_t x = 0; x < image_.width; ++x) {
        std::memcpy(to + y * row + x * pixel, from + y * row + (image_.width - 1 - x) * pixel, size_t(pixel));
      }
    }
  }

 private:
  const Images image_;
};

COHORT_KERNEL(cpu, _image_to_tensor, ToTensor<false>);
COHORT_KERNEL(cpu, _backward__image_to_tensor, ToTensor<true>);
COHORT_KERNEL(cpu, _image_normalize, Normalize<false>)
    .dtypes({Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kBfloat16, Dtype::kUint8, Dtype::kInt8,
             Dtype::kInt32, Dtype::kInt64});
COHORT_KERNEL(cpu, _backward__image_normalize, Normalize<true>);
COHORT_KERNEL(cpu, _image_crop, CropWindow<false>);
COHORT_KERNEL(cpu, _backward__image_crop, CropWindow<true>);
using FlipColumns = Flip<true, false>;
using FlipRows = Flip<false, false>;
using FlipColumnsAtRandom = Flip<true, true>;
using FlipRowsAtRandom = Flip<false, true>;
COHORT_KERNEL(cpu, _image_flip_left_right, FlipColumns);
COHORT_KERNEL(cpu, _image_flip_top_bottom, FlipRows);
COHORT_KERNEL(cpu, _backward__image_flip_left_right, FlipColumns);
COHORT_KERNEL(cpu, _backward__image_flip_top_bottom, FlipRows);
COHORT_KERNEL(cpu, _image_random_flip_left_right, FlipColumnsAtRandom);
COHORT_KERNEL(cpu, _image_random_flip_top_bottom, FlipRowsAtRandom);

}  // namespace
}  // namespace cohort
