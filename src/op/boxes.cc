// SPDX-License-Identifier: Apache-2.0
#include "op/boxes.hpp"

namespace cohort {
namespace {

void check_boxes(const Shape &s, const char *name) {
  if (s.rank() >= 2 && (s[s.rank() - 1] == 4 || s[s.rank() - 1] == Shape::kUnknown)) return;
  throw Error(Code::kShape, text(name, ": expected (..., 4), found ", s), name);
}

COHORT_OPERATOR(_contrib_box_iou, BoxIouAttrs)
    .doc("The area that each two boxes share, by the area of both together; 0 where they share none.")
    .choice(&BoxIouAttrs::center, "format", {{"center", true}, {"corner", false}}, false,
            "What the four numbers are: centre, width and height, or left, top, right and bottom.")
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

}  // namespace
}  // namespace cohort
