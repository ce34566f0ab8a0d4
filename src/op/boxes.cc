// SPDX-License-Identifier: Apache-2.0
#include "op/boxes.hpp"

namespace cohort {
namespace {

void check_boxes(const Shape &s, const char *name) {
  if (s.rank() >= 2 && (s[s.rank() - 1] == 4 || s[s.rank() - 1] == Shape::kUnknown)) return;
  throw Error(Code::kShape, text(name, ": expected (..., 4), found ", s), name);
}

COHORT_OPERATOR(_contrib_box_iou, BoxIouAttrs)
    .doc("Intersection over union of each pair of boxes; 0 if they do not overlap.")
    .choice(&BoxIouAttrs::center, "format", {{"center", true}, {"corner", false}}, false,
            "Format of the boxes: centre, width and height, or left, top, right and bottom.")
    .input("lhs", "Boxes, (..., 4).")
    .input("rhs", "Boxes, (..., 4).")
    .infer_shape([](const BoxIouAttrs &, Shapes &in, Shapes &out) {
      if (!in[0].rank_known() || !in[1].rank_known()) return;
      check_boxes(in[0], "lhs");
      check_boxes(in[1], "rhs");
      std::vector<int64_t> result(in[0].begin(), in[0].end() - 1);
      result.insert(result.end(), in[1].begin(), in[1].end() - 1);
      unify(out[0], Shape(result), "output");
    })
    .same_float();

using Prior = MultiBoxPriorAttrs;

void check_prior(Prior &a) {
  const auto refuse = [](const char *name, const char *expected, size_t found) {
    throw Error(Code::kInvalidArgument,
                text("attribute '", name, "': expected ", expected, ", found ", found, " numbers"), name);
  };
  if (a.sizes.empty()) refuse("sizes", "at least one number", 0);
  if (a.ratios.empty()) refuse("ratios", "at least one number", 0);
  if (a.steps.size() != 2) refuse("steps", "two numbers, y and x", a.steps.size());
  if (a.offsets.size() != 2) refuse("offsets", "two numbers, y and x", a.offsets.size());
}

COHORT_OPERATOR(_contrib_MultiBoxPrior, MultiBoxPriorAttrs)
    .alias("_npx_multibox_prior")
    .doc("Anchor boxes around each position of an image, in units of its size.")
    .attr(&Prior::sizes, "sizes", FloatList{1}, "Sizes of boxes, relative to the height of the image.")
    .attr(&Prior::ratios, "ratios", FloatList{1}, "Ratios of width to height.")
    .attr(&Prior::clip, "clip", false, "Whether boxes are clipped to the image.")
    .attr(&Prior::steps, "steps", (FloatList{-1, -1}),
          "Distance between positions, y and x; not above 0: the distance between elements.")
    .attr(&Prior::offsets, "offsets", (FloatList{0.5f, 0.5f}), "The first position, y and x, in steps.")
    .check(check_prior)
    .input("data", "Images, (batch, channels, height, width), of which only the size is used.")
    .names_only_input()
    .infer_shape([](const Prior &a, Shapes &in, Shapes &out) {
      if (!in[0].rank_known()) return;
      unify(in[0], Shape::of_rank(4), "data");
      const int64_t height = in[0][2], width = in[0][3];
      const bool known = height != Shape::kUnknown && width != Shape::kUnknown;
      unify(out[0], Shape{1, known ? height * width * a.boxes() : Shape::kUnknown, 4}, "output");
    })
    .same_float();

}  // namespace
}  // namespace cohort
