// SPDX-License-Identifier: Apache-2.0
// Operators on images (height, width, channels), optionally with a batch axis in front.
#pragma once

#include "op/op.hpp"
#include "op/update.hpp"  // lists of float as attributes

namespace cohort {

namespace detail {
template <>
struct FieldType<std::vector<double>> {  // values=(1, 2, 3)
  static std::string type() { return "tuple of <double>"; }
  static std::string print(const std::vector<double> &) { return "[]"; }
  static std::vector<double> parse(const std::string &name, const std::string &s) {
    const std::vector<float> values = FieldType<std::vector<float>>::parse(name, s);
    return {values.begin(), values.end()};
  }
};
}  // namespace detail

// (x - mean) / std, channels before height and width.
struct ImageNormalizeAttrs {
  std::vector<float> mean, std;  // one for all channels or one per channel
};

struct ImageCropAttrs {
  int32_t x, y, width, height;
};

// Interpolation between pixels; the codes are OpenCV's.
enum class Interpolation : int32_t { kNearest, kLinear, kCubic, kArea, kLanczos };

struct ImageResizeAttrs {
  Tuple size;  // (width, height), or one number for both or, with keep_ratio, for the shorter side
  bool keep_ratio;
  int32_t w, h;  // for _cvimresize
  int32_t interp;
};

struct ImageBorderAttrs {
  enum Type : int32_t { kConstant, kReplicate, kReflect, kWrap, kReflectWithoutEdge };
  int32_t top, bot, left, right, type;
  double value;
  std::vector<double> values;  // per channel, instead of value
};

}  // namespace cohort
