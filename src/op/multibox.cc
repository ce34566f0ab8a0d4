// SPDX-License-Identifier: Apache-2.0
#include "op/multibox.hpp"

#include "op/checked_length.hpp"

namespace cohort {
namespace {

void check_variances(const FloatList &variances) {
  if (variances.size() == 4) return;
  throw Error(Code::kInvalidArgument, text("attribute 'variances': expected four numbers, found ", variances.size()),
              "variances");
}

int64_t times_four(int64_t count) { return count == Shape::kUnknown ? count : checked_times(count, 4); }

using Target = MultiBoxTargetAttrs;

COHORT_OPERATOR(_contrib_MultiBoxTarget, MultiBoxTargetAttrs)
    .alias("_npx_multibox_target")
    .doc(
        "Training targets of a detector: for each anchor the class and the relative position of the object it "
        "overlaps.")
    .attr(&Target::overlap_threshold, "overlap_threshold", 0.5f,
          "Smallest overlap at which an anchor is assigned to an object.")
    .attr(&Target::ignore_label, "ignore_label", -1.0f, "cls_target of anchors that are ignored in training.")
    .attr(&Target::negative_mining_ratio, "negative_mining_ratio", -1.0f,
          "Number of background anchors per anchor with an object, hardest first; -1: all.")
    .attr(&Target::negative_mining_thresh, "negative_mining_thresh", 0.5f,
          "Smallest overlap at which an anchor is not used as background.")
    .ignored("minimum_negative_samples", "int", "0", "Ignored, as on MXNet's CPU.")
    .attr(&Target::variances, "variances", (FloatList{0.1f, 0.1f, 0.2f, 0.2f}),
          "Divisors of the four numbers of a target.")
    .check([](Target &a) {
      check_variances(a.variances);
      if (a.negative_mining_ratio > 0 && !(a.negative_mining_thresh > 0)) {
        throw Error(
            Code::kInvalidArgument,
            text("attribute 'negative_mining_thresh': expected a number above 0, found ", a.negative_mining_thresh),
            "negative_mining_thresh");
      }
    })
    .input("anchor", "Boxes, (1, anchors, 4), relative to the size of the image.")
    .input("label",
           "Objects, (batch, objects, 5 or more): class and corners, the rest is not read. Class -1 ends the list.")
    .input("cls_pred", "Class scores, (batch, classes, anchors); the first class is the background.")
    .outputs([](const Target &) { return 3; })
    .output_names([](const Target &) {
      return std::vector<std::string>{"loc_target", "loc_mask", "cls_target"};
    })
    .infer_shape([](const Target &, Shapes &in, Shapes &out) {
      const int64_t kAny = Shape::kUnknown;
      unify(in[0], Shape{1, kAny, 4}, "anchor");
      unify(in[1], Shape::of_rank(3), "label");
      unify(in[2], Shape{in[1][0], kAny, in[0][1]}, "cls_pred");
      unify(in[0], Shape{1, in[2][2], 4}, "anchor");
      unify(in[1], Shape{in[2][0], kAny, kAny}, "label");
      if (in[1][2] != kAny && in[1][2] < 5) {
        throw Error(Code::kShape, text("label: expected (batch, objects, 5 or more), found ", in[1]), "label");
      }
      if (in[2][1] == 0) throw Error(Code::kShape, text("cls_pred: expected classes, found ", in[2]), "cls_pred");
      unify(out[0], Shape{in[1][0], times_four(in[0][1])}, "loc_target");
      unify(out[1], Shape{in[1][0], times_four(in[0][1])}, "loc_mask");
      unify(out[2], Shape{in[1][0], in[0][1]}, "cls_target");
    })
    .same_float();

using Detection = MultiBoxDetectionAttrs;

COHORT_OPERATOR(_contrib_MultiBoxDetection, MultiBoxDetectionAttrs)
    .alias("_npx_multibox_detection")
    .doc(
        "Detected objects, best first: rows of class, score and corners. Rows without an object have class -1; their "
        "other numbers are unspecified.")
    .attr(&Detection::clip, "clip", true, "Whether boxes are clipped to the image.")
    .attr(&Detection::threshold, "threshold", 0.01f, "Smallest score at which an anchor is a detection.")
    .ignored("background_id", "int", "0", "Ignored, as on MXNet's CPU: the first class is the background.")
    .attr(&Detection::nms_threshold, "nms_threshold", 0.5f,
          "Smallest overlap at which a better box suppresses another; outside (0, 1] nothing is suppressed.")
    .attr(&Detection::force_suppress, "force_suppress", false, "Whether boxes also suppress those of other classes.")
    .attr(&Detection::variances, "variances", (FloatList{0.1f, 0.1f, 0.2f, 0.2f}),
          "Factors of the four numbers of loc_pred.")
    .attr(&Detection::nms_topk, "nms_topk", -1, "Number of best boxes to consider; -1: all.")
    .check([](Detection &a) { check_variances(a.variances); })
    .input("cls_prob", "Class probabilities, (batch, classes, anchors); the first class is the background.")
    .input("loc_pred", "Positions of objects relative to the anchors, (batch, 4 * anchors).")
    .input("anchor",
           "Boxes, (1, anchors, 4), relative to the size of the image; of several rows only the first is used.")
    .infer_shape([](const Detection &, Shapes &in, Shapes &out) {
      const int64_t kAny = Shape::kUnknown;
      unify(in[0], Shape{out[0].rank() == 3 ? out[0][0] : kAny, kAny, kAny}, "cls_prob");
      unify(in[2], Shape{kAny, in[0][2], 4}, "anchor");
      unify(in[0], Shape{kAny, kAny, in[2][1]}, "cls_prob");
      unify(in[1], Shape{in[0][0], times_four(in[2][1])}, "loc_pred");
      unify(in[0], Shape{in[1][0], kAny, kAny}, "cls_prob");
      unify(out[0], Shape{in[0][0], in[2][1], 6}, "output");
    })
    .same_float();

}  // namespace
}  // namespace cohort
