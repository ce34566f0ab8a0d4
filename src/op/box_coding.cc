// SPDX-License-Identifier: Apache-2.0
#include "op/box_coding.hpp"

namespace cohort {
namespace {

constexpr int64_t kAny = Shape::kUnknown;

COHORT_OPERATOR(_contrib_box_encode, NoAttrs)
    .doc(
        "Training targets of a detector: for each anchor the code of its matched object relative to the anchor, less "
        "means and divided by stds; 0, with a mask of 0, for anchors without an object.")
    .input("samples", "1 for anchors with an object, otherwise at most 0.5, (batch, anchors).")
    .input("matches", "Index of the object of each anchor, (batch, anchors). Read only for anchors with an object.")
    .input("anchors", "Corners, (batch, anchors, 4).")
    .input("refs", "Objects: corners, (batch, objects, 4).")
    .input("means", "Four numbers.")
    .input("stds", "Four numbers.")
    .outputs([](const NoAttrs &) { return 2; })
    .infer_shape([](const NoAttrs &, Shapes &in, Shapes &out) {
      unify(in[4], Shape{4}, "means");
      unify(in[5], Shape{4}, "stds");
      Shape anchors = Shape{kAny, kAny, 4};
      for (const Shape &known : {in[2], out[0], out[1]}) unify(anchors, known, "anchors");
      for (int i : {0, 1}) {
        unify(in[size_t(i)], Shape::of_rank(2), i == 0 ? "samples" : "matches");
        unify(anchors, Shape{in[size_t(i)][0], in[size_t(i)][1], 4}, "anchors");
      }
      unify(in[3], Shape{anchors[0], kAny, 4}, "refs");
      unify(anchors, Shape{in[3][0], kAny, 4}, "anchors");
      unify(in[0], Shape{anchors[0], anchors[1]}, "samples");
      unify(in[1], Shape{anchors[0], anchors[1]}, "matches");
      unify(in[2], anchors, "anchors");
      unify(out[0], anchors, "output0");
      unify(out[1], anchors, "output1");
    })
    .same_float();

using Decode = BoxDecodeAttrs;

COHORT_OPERATOR(_contrib_box_decode, BoxDecodeAttrs)
    .doc("Boxes as corners, decoded from codes relative to anchors.")
    .attr(&Decode::std0, "std0", 1.0f, "Multiplies the first number.")
    .attr(&Decode::std1, "std1", 1.0f, "Multiplies the second number.")
    .attr(&Decode::std2, "std2", 1.0f, "Multiplies the third number.")
    .attr(&Decode::std3, "std3", 1.0f, "Multiplies the fourth number.")
    .attr(&Decode::clip, "clip", -1.0f, "Upper limit of the third and fourth number after that; not above 0: no limit.")
    .choice(&Decode::center, "format", {{"center", true}, {"corner", false}}, true,
            "Format of the anchors: centre, width and height, or left, top, right and bottom.")
    .input("data", "Codes of boxes relative to anchors, (batch, anchors, 4).")
    .input("anchors", "Anchors, (1, anchors, 4).")
    .infer_shape([](const Decode &, Shapes &in, Shapes &out) {
      unify(in[0], out[0], "data");
      unify(in[0], Shape{kAny, kAny, 4}, "data");
      unify(in[1], Shape{1, in[0][1], 4}, "anchors");
      unify(in[0], Shape{kAny, in[1][1], 4}, "data");
      unify(out[0], in[0], "output");
    })
    .same_float();

}  // namespace
}  // namespace cohort
