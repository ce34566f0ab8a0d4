// SPDX-License-Identifier: Apache-2.0
// _image_normalize: (x - mean) / std, of whole numbers its whole part; backward: x / std.
#include "cuda/op/elements.cuh"
#include "device/kernel_table.hpp"
#include "op/image_transforms.hpp"

namespace cohort {
namespace {

constexpr int64_t kMostChannels = 3;  // that images may have (src/op/image_transforms.cc)

struct ChannelNumbers {
  float mean[kMostChannels], deviation[kMostChannels];
  // Constant indices: what is chosen stays in registers.
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
