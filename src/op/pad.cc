// SPDX-License-Identifier: Apache-2.0
#include "op/pad.hpp"

#include <algorithm>

namespace cohort {
namespace {

void infer_padded(const PadAttrs &a, Shapes &in, Shapes &out) {
  if (!in[0].rank_known()) return;
  const Shape &data = in[0];
  if (data.rank() != 4 && data.rank() != 5) {
    throw Error(Code::kShape, text("data: expected 4 or 5 axes, found ", data), "data");
  }
  if (int(a.pad_width.size()) != 2 * data.rank()) {
    throw Error(Code::kInvalidArgument,
                text("attribute 'pad_width': expected ", 2 * data.rank(), " numbers, found ", print_tuple(a.pad_width)),
                "pad_width");
  }
  Shape result = data;
  for (int i = 0; i < 2 * data.rank(); ++i) {
    const int64_t width = a.pad_width[size_t(i)], length = data[i / 2];
    const bool reflect = a.mode == PadAttrs::Mode::kReflect, edge = a.mode == PadAttrs::Mode::kEdge;
    const bool known = length != Shape::kUnknown;
    const int64_t most = i < 4 || (edge && length == 0) ? 0
                         : reflect && known             ? std::max<int64_t>(length - 1, 0)
                                                        : 1 << 30;
    if (width < 0 || width > most) {
      throw Error(Code::kInvalidArgument,
                  text("attribute 'pad_width': expected 0 to ", most, " at ", i, " for data ", data, ", found ", width),
                  "pad_width");
    }
    if (known) result[i / 2] += width;
  }
  unify(out[0], result, "output");
}

COHORT_OPERATOR(Pad, PadAttrs)
    .alias("pad")
    .doc("Adds a border to images: constant, the nearest pixel, or the image reflected at its edge.")
    .required_choice(&PadAttrs::mode, "mode",
                     {{"constant", PadAttrs::Mode::kConstant},
                      {"edge", PadAttrs::Mode::kEdge},
                      {"reflect", PadAttrs::Mode::kReflect}},
                     "The content of the border.")
    .required(
        &PadAttrs::pad_width, "pad_width",
        "For each axis the widths before and after; 0 for the first two axes; for reflect, less than the axis length.")
    .attr(&PadAttrs::constant_value, "constant_value", 0.0, "The value of mode 'constant'.")
    .input("data", "(N, C, H, W) or (N, C, D, H, W).")
    .names_only_input()
    .infer_shape(infer_padded)
    .gradient([](const PadAttrs &) { return Gradient::by_kernel({0}); });

}  // namespace
}  // namespace cohort
