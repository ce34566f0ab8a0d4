// SPDX-License-Identifier: Apache-2.0
// Attributes of operators on boxes for object detection.
#pragma once

#include "base/text_list.hpp"
#include "op/op.hpp"

namespace cohort {

using FloatList = std::vector<float>;  // an attribute such as sizes=(0.5, 0.25)

template <>
struct detail::FieldType<FloatList> {
  static std::string type() { return "tuple of <float>"; }
  static std::string print(const FloatList &values) {
    std::string all;
    for (float v : values) all += (all.empty() ? "" : ",") + print_float(double(v), 6);
    return "[" + all + "]";
  }
  static FloatList parse(const std::string &name, const std::string &s) {
    FloatList values;
    for (const std::string &element : parse_list(name, s)) values.push_back(float(parse_float(name, element)));
    return values;
  }
};

// Anchor boxes around each element of data's image: every size with the first ratio of width to height, then the first
// size with every other ratio. Corners in units of the image's size.
struct MultiBoxPriorAttrs {
  FloatList sizes, ratios;   // neither is empty
  FloatList steps, offsets;  // y, then x; a step not above 0 means the distance between elements
  bool clip;

  int64_t boxes() const { return int64_t(sizes.size() + ratios.size()) - 1; }  // per element of the image
};

struct BoxIouAttrs {
  bool center;  // boxes are (x, y, width, height) with x and y of the centre; else (left, top, right, bottom)
};

}  // namespace cohort
