// SPDX-License-Identifier: Apache-2.0
#include "op/image_resize.hpp"

namespace cohort {
namespace {

using Resize = BilinearResizeAttrs;
constexpr int64_t kUnknown = Shape::kUnknown;

void check_image(const Shape &s, const char *name) {
  if (s.rank() != 4) throw Error(Code::kShape, text(name, ": expected 4 axes, found ", s), name);
}

COHORT_OPERATOR(_contrib_AdaptiveAvgPooling2D, AdaptiveAvgPoolingAttrs)
    .doc("Means over windows that divide the image evenly, one per element of the output.")
    .attr(&AdaptiveAvgPoolingAttrs::output_size, "output_size", Tuple(),
          "Height and width of the output, or one number for both; default 1.")
    .check([](AdaptiveAvgPoolingAttrs &a) {
      Tuple &size = a.output_size;
      if (size.empty() || size.size() > 2) size = {1, 1};
      if (size.size() == 1) size.push_back(size[0]);
      if (size[0] < 1 || size[1] < 1) {
        throw Error(Code::kInvalidArgument,
                    text("attribute 'output_size': expected lengths of at least 1, found ", print_tuple(size)),
                    "output_size");
      }
    })
    .input("data", "Images, (batch, channels, height, width).")
    .infer_shape([](const AdaptiveAvgPoolingAttrs &a, Shapes &in, Shapes &out) {
      if (!in[0].rank_known()) return;
      check_image(in[0], "data");
      unify(out[0], Shape{in[0][0], in[0][1], a.output_size[0], a.output_size[1]}, "output");
    })
    .same_float()
    .gradient(Gradient::by_kernel({0}));

int64_t resized(Resize::Mode mode, int64_t length, int32_t given, const std::optional<float> &scale) {
  const bool even = length % 2 == 0;
  switch (mode) {
    case Resize::kOddScale:
      return even ? int64_t(float(length) * *scale) : int64_t(float(length - 1) * *scale) + 1;
    case Resize::kToEvenDown:
      return even ? length : length - 1;
    case Resize::kToEvenUp:
      return even ? length : length + 1;
    case Resize::kToOddDown:
      return even ? length - 1 : length;
    case Resize::kToOddUp:
      return even ? length + 1 : length;
    default:
      return scale ? int64_t(*scale * float(length)) : given;
  }
}

void infer_resized(const Resize &a, Shapes &in, Shapes &out) {
  if (!in[0].rank_known()) return;
  check_image(in[0], "data");
  Shape result{in[0][0], in[0][1], kUnknown, kUnknown};
  if (a.mode == Resize::kLike) {
    if (!in[1].rank_known()) return;
    check_image(in[1], "like");
    result[2] = in[1][2];
    result[3] = in[1][3];
  } else {
    if (in[0][2] != kUnknown) result[2] = resized(a.mode, in[0][2], a.height, a.scale_height);
    if (in[0][3] != kUnknown) result[3] = resized(a.mode, in[0][3], a.width, a.scale_width);
  }
  for (int axis = 2; axis < 4; ++axis) {
    if (result[axis] != kUnknown && (result[axis] < 1 || in[0][axis] == 0)) {
      throw Error(Code::kShape,
                  text("data: expected lengths of at least 1 before and after resizing, found ", in[0], " to ", result),
                  "data");
    }
  }
  unify(out[0], result, "output");
}

void check(Resize &a) {
  if (a.mode == Resize::kOddScale && (!a.scale_height || !a.scale_width)) {
    throw Error(Code::kInvalidArgument,
                "attribute 'scale_height': expected scale_height and scale_width for mode odd_scale", "scale_height");
  }
  for (const auto &scale : {a.scale_height, a.scale_width}) {
    if (scale && !(*scale > 0 && *scale <= 10000)) {
      throw Error(Code::kInvalidArgument,
                  text("attributes 'scale_height' and 'scale_width': expected above 0 and up to 10000, found ", *scale),
                  "scale_height");
    }
  }
}

COHORT_OPERATOR(_contrib_BilinearResize2D, BilinearResizeAttrs)
    .doc("Resizes images by bilinear interpolation.")
    .input("data", "Images, (batch, channels, height, width).")
    .names_only_input()
    .input_if(
        "like", [](const Resize &a) { return a.mode == Resize::kLike; }, "Images of the desired size.")
    .attr(&Resize::height, "height", 1, "Height of the output, for mode size.")
    .range(1, 10000)
    .attr(&Resize::width, "width", 1, "Width of the output, for mode size.")
    .range(1, 10000)
    .attr(&Resize::scale_height, "scale_height", std::nullopt, "Factor of the height, for size and odd_scale.")
    .attr(&Resize::scale_width, "scale_width", std::nullopt, "Factor of the width, for size and odd_scale.")
    .choice(
        &Resize::mode, "mode",
        {{"like", Resize::kLike},
         {"odd_scale", Resize::kOddScale},
         {"size", Resize::kSize},
         {"to_even_down", Resize::kToEvenDown},
         {"to_even_up", Resize::kToEvenUp},
         {"to_odd_down", Resize::kToOddDown},
         {"to_odd_up", Resize::kToOddUp}},
        Resize::kSize,
        "How the size is chosen: given, as another input, scaled to odd, or the next even or odd length down or up.")
    .attr(&Resize::align_corners, "align_corners", true,
          "Whether the centres of the corner elements of both images coincide.")
    .check(check)
    .infer_shape(infer_resized)
    .same_float()
    .gradient([](const Resize &a) {
      return Gradient::by_kernel(a.mode == Resize::kLike ? std::vector<int>{0, 1} : std::vector<int>{0});
    });

}  // namespace
}  // namespace cohort
