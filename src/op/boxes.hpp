// SPDX-License-Identifier: Apache-2.0
// Boxes of object detection.
#pragma once

#include "base/text_list.hpp"
#include "op/op.hpp"

namespace cohort {

using Numbers = std::vector<float>;  // an attribute such as sizes=(0.5, 0.25)

template <>
struct detail::FieldType<Numbers> {
  static std::string type() { return "tuple of <float>"; }
  static std::string print(const Numbers &values) {
    std::string all;
    for (float v : values) all += (all.empty() ? "" : ",") + print_float(double(v), 6);
    return "[" + all + "]";
  }
  static Numbers parse(const std::string &name, const std::string &s) {
    Numbers values;
    for (const std::string &element : parse_list(name, s)) values.push_back(float(parse_float(name, element)));
    return values;
  }
};

// Boxes around each place of data's image: each size with the first ratio of width to height, then the first size with
// each other ratio. Corners, by the size of the image.
struct MultiBoxPriorAttrs {
  Numbers sizes, ratios;   // neither is empty
  Numbers steps, offsets;  // y, then x; a step not above 0 is the distance of elements
  bool clip;

  int64_t boxes() const { return int64_t(sizes.size() + ratios.size()) - 1; }  // a place
};

struct BoxIouAttrs {
  bool center;  // boxes are (x, y, width, height) with x and y of the centre; else (left, top, right, bottom)
};

}  // namespace cohort
