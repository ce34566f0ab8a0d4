// SPDX-License-Identifier: Apache-2.0
#include "op/box_nms.hpp"

namespace cohort {
namespace {

using Nms = BoxNmsAttrs;

constexpr int kCoordinates = 4;

void check_place(const char *name, int32_t place, int64_t width) {
  if (place >= 0 && place < width) return;
  throw Error(Code::kShape, text("attribute '", name, "': expected 0 to ", width - 1, ", found ", place), name);
}

void check_apart(const Nms &a, const char *name, int32_t place) {
  if (place < a.coord_start || place >= a.coord_start + kCoordinates) return;
  throw Error(Code::kShape,
              text("attribute '", name, "': expected none of the coordinates ", a.coord_start, " to ",
                   a.coord_start + kCoordinates - 1, ", found ", place),
              name);
}

void infer_nms(const Nms &a, Shapes &in, Shapes &out) {
  unify(in[0], out[0], "data");
  if (!in[0].rank_known()) return;
  const Shape &data = in[0];
  if (data.rank() < 2) throw Error(Code::kShape, text("data: expected (..., boxes, width), found ", data), "data");
  const int64_t width = data[data.rank() - 1];
  if (width != Shape::kUnknown) {
    const int64_t least = a.id_index >= 0 ? 6 : 5;
    if (width < least) {
      throw Error(Code::kShape, text("data: expected at least ", least, " numbers for each box, found ", data), "data");
    }
    check_place("score_index", a.score_index, width);
    check_place("coord_start", a.coord_start, width - kCoordinates + 1);
    check_apart(a, "score_index", a.score_index);
    if (a.id_index >= 0) {
      check_place("id_index", a.id_index, width);
      check_apart(a, "id_index", a.id_index);
      if (a.id_index == a.score_index) {
        throw Error(Code::kShape,
                    text("attribute 'id_index': expected an index other than score_index = ", a.score_index),
                    "id_index");
      }
    }
  }
  unify(out[0], data, "output");
  Shape record = data;
  record[record.rank() - 1] = 1;
  unify(out[1], record, "temp");
}

COHORT_OPERATOR(_contrib_box_nms, BoxNmsAttrs)
    .alias("_contrib_box_non_maximum_suppression")
    .doc("Non-maximum suppression: boxes that no better box overlaps, best first, then rows of -1.")
    .attr(&Nms::overlap_thresh, "overlap_thresh", 0.5f,
          "Overlap (intersection over union) above which only the better box remains.")
    .attr(&Nms::valid_thresh, "valid_thresh", 0.0f, "Only boxes with a score above this are considered.")
    .attr(&Nms::topk, "topk", -1, "Number of best boxes to consider; -1: all; 0: return data unchanged.")
    .attr(&Nms::coord_start, "coord_start", 2, "Index of the first of the four coordinates.")
    .attr(&Nms::score_index, "score_index", 1, "Index of the score.")
    .attr(&Nms::id_index, "id_index", -1, "Index of the class; -1: no classes.")
    .attr(&Nms::background_id, "background_id", -1, "Boxes of this class are ignored.")
    .attr(&Nms::force_suppress, "force_suppress", false, "Whether boxes also suppress those of other classes.")
    .choice(&Nms::in_center, "in_format", {{"center", true}, {"corner", false}}, false,
            "Format of the coordinates: centre, width and height, or left, top, right and bottom.")
    .choice(&Nms::out_center, "out_format", {{"center", true}, {"corner", false}}, false,
            "Format of the output's coordinates. Boxes whose first coordinate is negative are not converted.")
    .input("data", "Boxes, (..., boxes, width).")
    .outputs([](const Nms &) { return 2; }, [](const Nms &) { return 1; })
    .infer_shape(infer_nms)
    .infer_dtype([](const Nms &, Dtypes &in, Dtypes &out) {
      Dtypes boxes = {out[0]};
      infer_same_float(Attrs(), in, boxes);
      out[0] = boxes[0];
      unify(out[1], Dtype::kInt32, "temp");
    })
    .gradient(Gradient::by_kernel({0}, {}, {1}));

using Matching = BipartiteMatchingAttrs;

COHORT_OPERATOR(_contrib_bipartite_matching, BipartiteMatchingAttrs)
    .doc("Greedy matching of rows and columns, best score first; each row and column is used once.")
    .attr(&Matching::is_ascend, "is_ascend", false, "Whether lower scores are better.")
    .required(&Matching::threshold, "threshold", "Pairs whose score is not better than this are not matched.")
    .attr(&Matching::topk, "topk", -1, "Matching ends once there are more than this many pairs; -1: no limit.")
    .input("data", "Scores, (..., rows, columns).")
    .outputs([](const Matching &) { return 2; })
    .infer_shape([](const Matching &, Shapes &in, Shapes &out) {
      if (!in[0].rank_known()) return;
      const int rank = in[0].rank();
      if (rank < 2) throw Error(Code::kShape, text("data: expected (..., rows, columns), found ", in[0]), "data");
      const std::vector<int64_t> &lengths = in[0].dims();
      std::vector<int64_t> columns(lengths.begin(), lengths.end() - 2);
      columns.push_back(lengths.back());
      unify(out[0], Shape(lengths.begin(), lengths.end() - 1), "output0");
      unify(out[1], Shape(columns), "output1");
    })
    .same_float();

}  // namespace
}  // namespace cohort
