// SPDX-License-Identifier: Apache-2.0
#include "op/proposal.hpp"

#include "op/checked_length.hpp"

namespace cohort {
namespace {

using A = ProposalAttrs;
constexpr int64_t kAny = Shape::kUnknown;

void check(A &a) {
  for (const char *name : {a.scales.empty() ? "scales" : nullptr, a.ratios.empty() ? "ratios" : nullptr}) {
    if (!name) continue;
    throw Error(Code::kInvalidArgument, text("attribute '", name, "': expected at least one number, found 0"), name);
  }
}

void infer(const A &a, Shapes &in, Shapes &out, int64_t images) {
  const int64_t anchors = a.anchors();
  unify(in[0], Shape{images, 2 * anchors, kAny, kAny}, "cls_prob");
  unify(in[0], Shape{in[2].rank() == 2 ? in[2][0] : kAny, kAny, kAny, kAny}, "cls_prob");
  if (in[1].rank() == 4) unify(in[0], Shape{in[1][0], kAny, in[1][2], in[1][3]}, "cls_prob");
  unify(in[1], Shape{in[0][0], 4 * anchors, in[0][2], in[0][3]}, "bbox_pred");
  unify(in[2], Shape{in[0][0], 3}, "im_info");
  if (in[0][2] == 0 || in[0][3] == 0) {
    throw Error(Code::kShape, text("cls_prob: expected height and width of at least 1, found ", in[0]), "cls_prob");
  }
  const int64_t rows = in[0][0] == kAny ? kAny : checked_times(in[0][0], a.rpn_post_nms_top_n);
  unify(out[0], Shape{rows, 5}, "output");
  unify(out[1], Shape{rows, 1}, "score");
}

OpBuilder<A> proposal(const char *name, int64_t images) {
  OpBuilder<A> op(name);
  op.attr(&A::rpn_pre_nms_top_n, "rpn_pre_nms_top_n", 6000, "Number of best boxes of an image to consider; 0: all.")
      .attr(&A::rpn_post_nms_top_n, "rpn_post_nms_top_n", 300, "Rows of the output per image.")
      .range(1)
      .attr(&A::threshold, "threshold", 0.7f,
            "Overlap (intersection over union) above which only the better box remains.")
      .attr(&A::rpn_min_size, "rpn_min_size", 16,
            "Boxes with a side shorter than this times the scale in im_info come last.")
      .attr(&A::scales, "scales", (FloatList{4, 8, 16, 32}), "Sizes of anchors, in units of feature_stride.")
      .attr(&A::ratios, "ratios", (FloatList{0.5f, 1, 2}), "Ratios of height to width of anchors.")
      .attr(&A::feature_stride, "feature_stride", 16, "Distance between positions in the image.")
      .range(1)
      .attr(&A::output_score, "output_score", false, "Whether scores are also returned.")
      .attr(&A::iou_loss, "iou_loss", false, "Whether bbox_pred offsets corners instead of centres and sides.")
      .check(check)
      .input("cls_prob", "Scores of anchors, (batch, 2 * anchors, height, width): background, then objects.")
      .input("bbox_pred", "Box offsets relative to anchors, (batch, 4 * anchors, height, width).")
      .input("im_info", "Height, width and scale of each image, (batch, 3).")
      .outputs([](const A &) { return 2; }, [](const A &a) { return a.output_score ? 2 : 1; })
      .output_names([](const A &) {
        return std::vector<std::string>{"output", "score"};
      })
      .infer_shape([images](const A &a, Shapes &in, Shapes &out) { infer(a, in, out, images); })
      .same_float();
  return op;
}

[[maybe_unused]] const bool defined = [] {
  proposal("_contrib_Proposal", 1)
      .doc(
          "Region proposals of an image: rows of 0 and the corners, best first, repeated from the start if there are "
          "too few.");
  proposal("_contrib_MultiProposal", kAny)
      .doc(
          "Region proposals of each image: rows of the image index and the corners, best first, repeated from the "
          "start "
          "if there are too few.");
  return true;
}();

}  // namespace
}  // namespace cohort
