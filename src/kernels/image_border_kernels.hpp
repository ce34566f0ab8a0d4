// SPDX-License-Identifier: Apache-2.0
// The kernel of _cvcopyMakeBorder: an image with a frame around it.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/dtype_cast.hpp"
#include "kernels/backend.hpp"
#include "kernels/compute.hpp"
#include "op/image_transforms.hpp"

namespace cohort {
namespace {

// Maps places of the result to places of the image, along one axis.
struct BorderAxis {
  int64_t length, before, type;  // length of the image; places in front of it; ImageBorderAttrs::Type

  // The image's place for place `i` of the result; -1: the constant.
  COHORT_HOST_DEVICE int64_t source(int64_t i) const {
    const int64_t at = i - before;
    if (at >= 0 && at < length) return at;
    switch (type) {
      case ImageBorderAttrs::kConstant:
        return -1;
      case ImageBorderAttrs::kReplicate:
        return at < 0 ? 0 : length - 1;
      case ImageBorderAttrs::kWrap:
        return (at % length + length) % length;
      default: {
        const int64_t edge = type == ImageBorderAttrs::kReflect ? 0 : 1, whole = 2 * (length - edge);
        const int64_t period = whole > 1 ? whole : 1, place = (at % period + period) % period;
        return place < length ? place : period - 1 + edge - place;
      }
    }
  }
};

constexpr int64_t kFilledTogether = 32;  // channels filled by one launch
template <typename T>
struct alignas(8) FramePixel {
  T at[kFilledTogether];
};

template <typename Backend, typename T>
class Border final : public Kernel {
 public:
  explicit Border(const StepSpec &spec)
      : tall_(spec.outputs[0].shape[0]), wide_(spec.outputs[0].shape[1]), channels_(spec.outputs[0].shape[2]) {
    const auto &a = spec.attrs_as<ImageBorderAttrs>();
    rows_ = {spec.inputs[0].shape[0], a.top, a.type};
    columns_ = {spec.inputs[0].shape[1], a.left, a.type};
    for (int64_t c = 0; c < channels_; ++c) {
      filling_.push_back(held(size_t(c) < a.values.size() ? a.values[size_t(c)] : a.value));
    }
  }

  void run(const Args &args, const Lane &lane) const override {
    for (int64_t first = 0; first < channels_; first += kFilledTogether) pass(args, lane, first);
  }

  void pass(const Args &args, const Lane &lane, int64_t first) const {
    FramePixel<T> filling{};
    const int64_t last = std::min(first + kFilledTogether, channels_), channels = channels_, wide = wide_;
    std::copy(filling_.begin() + first, filling_.begin() + last, filling.at);
    const BorderAxis rows = rows_, columns = columns_;
    const T *const from = args.in<T>(0);
    T *const to = args.out<T>(0);
    Backend::parallel_for_2d(lane, tall_, wide_, [=] COHORT_DEVICE(int64_t y, int64_t x) {
      const int64_t row = rows.source(y), column = columns.source(x);
      const bool inside = row >= 0 && column >= 0;
      const int64_t pixel = (row * columns.length + column) * channels, result = (y * wide + x) * channels;
      for (int64_t c = first; c < last; ++c) to[result + c] = inside ? from[pixel + c] : filling.at[c - first];
    });
  }

 private:
  // The value as T; bytes are rounded to the nearest one.
  static T held(double value) {
    if constexpr (sizeof(T) == 1 && !std::is_same_v<T, bool>) {
      const double low = double(std::numeric_limits<T>::lowest()), top = double(std::numeric_limits<T>::max());
      value = std::min(std::max(std::nearbyint(value), low), top);
    }
    return cast_element<T>(value);
  }

  const int64_t tall_, wide_, channels_;
  BorderAxis rows_, columns_;
  std::vector<T> filling_;
};

template <typename Backend>
std::unique_ptr<Kernel> make_border(StepSpec &spec) {
  return dispatch(spec.outputs[0].dtype, [&](auto t) -> std::unique_ptr<Kernel> {
    return std::make_unique<Border<Backend, decltype(t)>>(spec);
  });
}

template <typename Backend>
void register_image_border_kernels() {
  KernelTable &table = backend_kernels();
  table.add("_cvcopyMakeBorder", make_border<Backend>);
}

}  // namespace
}  // namespace cohort
