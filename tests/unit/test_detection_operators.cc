// SPDX-License-Identifier: Apache-2.0
// Operators of object detection: gradients against differences, results of 16-bit floats and of several threads, and
// cases that golden cases do not hold: places out of range, NaN, invalid attributes.
#include <limits>

#include "support/run_kernel.hpp"

using namespace cohort;
using unit::Array;
using unit::check_close;
using unit::check_gradient;
using unit::OpRun;
using unit::RunOptions;
using unit::spread;

namespace {

const double kNaN = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

Array array(const Shape &shape, const std::vector<double> &values, Dtype dtype = Dtype::kFloat64) {
  return Array(shape, dtype, values);
}
Array spread_array(const Shape &shape, double low, double high, int salt = 0) {
  return array(shape, spread(shape.size(), low, high, salt));
}
Array zeros(const Shape &shape) { return array(shape, std::vector<double>(size_t(shape.size()), 0.0)); }

// The code of the error that making or running the operator throws; 0 if it runs.
int refusal(const std::string &op, const AttrMap &attrs, const std::vector<Array> &inputs) {
  try {
    OpRun run(op, attrs, inputs);
  } catch (const Error &e) {
    return int(e.code());
  }
  return 0;
}

std::vector<double> outputs(const std::string &op, const AttrMap &attrs, const std::vector<Array> &inputs,
                            int num_threads = 1) {
  RunOptions options;
  options.num_threads = num_threads;
  return OpRun(op, attrs, inputs, options).outputs()[0].values();
}

// float16 and bfloat16 give the same as float32 but for rounding, with the same bits on several threads.
void check_types(const std::string &op, const AttrMap &attrs, const std::vector<Array> &inputs) {
  for (Dtype dtype : {Dtype::kFloat16, Dtype::kBfloat16}) {
    std::vector<Array> narrow, wide;
    for (const Array &a : inputs) {
      narrow.push_back(a.as(dtype));
      wide.push_back(narrow.back().as(Dtype::kFloat32));
    }
    const std::vector<double> expected = outputs(op, attrs, wide);
    OpRun run(op, attrs, narrow);
    CHECK(run.outputs()[0].dtype() == dtype);
    const double unit = dtype == Dtype::kFloat16 ? 1e-3 : 8e-3;
    check_close(op, run.outputs()[0], expected, unit, 1e-6);
    CHECK(outputs(op, attrs, wide, 3) == expected);
  }
}

Array regions() {
  return array({4, 5}, {0, 0.3, 0.2, 4.1, 3.3, 1, -1.2, 1.3, 3.2, 6.4, 1, 2.2, 2.1, 2.3, 2.4, 0, 3.1, 1.2, 9.3, 5.2});
}
Array turned_regions() {
  return array({3, 6}, {0, 2.2, 2.1, 3.3, 2.4, 20, 1, 1.3, 3.1, 4.2, 5.1, -70, 1, 4.4, 4.1, 1.1, 2.2, 200});
}
const AttrMap kPsRoi = {{"spatial_scale", "0.8"}, {"output_dim", "2"}, {"pooled_size", "3"}, {"group_size", "2"}};
const AttrMap kDeformablePsRoi = {{"spatial_scale", "0.8"}, {"output_dim", "2"}, {"pooled_size", "3"},
                                  {"group_size", "2"},      {"part_size", "2"},  {"sample_per_part", "2"},
                                  {"trans_std", "0.2"}};
const AttrMap kConvolution = {{"kernel", "(3, 2)"}, {"stride", "(1, 2)"}, {"pad", "(1, 1)"},
                              {"num_filter", "4"},  {"num_group", "2"},   {"num_deformable_group", "2"}};

std::vector<Array> convolution_inputs(bool modulated) {
  std::vector<Array> inputs = {spread_array({2, 4, 5, 6}, -1, 1), spread_array({2, 24, 5, 4}, -1.7, 1.7, 1)};
  if (modulated) inputs.push_back(spread_array({2, 12, 5, 4}, 0, 1, 2));
  inputs.push_back(spread_array({4, 2, 3, 2}, -1, 1, 3));
  inputs.push_back(spread_array({4}, -1, 1, 4));
  return inputs;
}

constexpr int64_t kAny = Shape::kUnknown;

// Shapes of inputs and outputs once inference is done, as text.
std::string inferred(const std::string &name, const AttrMap &attrs, Shapes in, Shapes out = {}) {
  const Op &op = get_op(name);
  const Attrs parsed = op.parse(attrs);
  in.resize(size_t(op.num_inputs(parsed, 0)));
  out.resize(size_t(op.num_outputs(parsed)));
  op.infer_shape(parsed, in, out);
  op.infer_shape(parsed, in, out);
  std::string all;
  for (const Shape &s : in) all += text(s, " ");
  all += "->";
  for (const Shape &s : out) all += text(" ", s);
  return all;
}

}  // namespace

TEST(shapes_follow_from_inputs_and_from_outputs) {
  CHECK_EQ(inferred("_contrib_MultiBoxTarget", {}, {Shape{1, 7, 4}, Shape{2, kAny, 5}}),
           "(1, 7, 4) (2, ?, 5) (2, ?, 7) -> (2, 28) (2, 28) (2, 7)");
  CHECK_EQ(inferred("_contrib_MultiBoxTarget", {}, {{}, {}, Shape{2, 3, 7}}),
           "(1, 7, 4) (2, ?, ?) (2, 3, 7) -> (2, 28) (2, 28) (2, 7)");
  CHECK_EQ(inferred("_contrib_MultiBoxDetection", {}, {Shape{2, 3, 7}}), "(2, 3, 7) (2, 28) (?, 7, 4) -> (2, 7, 6)");
  CHECK_EQ(inferred("_contrib_MultiBoxDetection", {}, {{}, Shape{2, 28}, Shape{1, 7, 4}}),
           "(2, ?, 7) (2, 28) (1, 7, 4) -> (2, 7, 6)");
  CHECK_EQ(inferred("_contrib_box_nms", {}, {}, {Shape{2, 5, 6}}), "(2, 5, 6) -> (2, 5, 6) (2, 5, 1)");
  CHECK_EQ(inferred("_contrib_bipartite_matching", {{"threshold", "0"}}, {Shape{2, 5, 6}}),
           "(2, 5, 6) -> (2, 5) (2, 6)");
  CHECK_EQ(inferred("_contrib_box_encode", {}, {Shape{2, 5}, {}, {}, Shape{kAny, 3, 4}}),
           "(2, 5) (2, 5) (2, 5, 4) (2, 3, 4) (4,) (4,) -> (2, 5, 4) (2, 5, 4)");
  CHECK_EQ(inferred("_contrib_box_decode", {}, {Shape{2, kAny, 4}, Shape{1, 5, 4}}),
           "(2, 5, 4) (1, 5, 4) -> (2, 5, 4)");
  const AttrMap grid = {{"pooled_size", "(2, 3)"}, {"spatial_scale", "1"}};
  CHECK_EQ(inferred("_contrib_ROIAlign", grid, {Shape{1, 4, kAny, kAny}}, {Shape{6, kAny, kAny, kAny}}),
           "(1, 4, ?, ?) (6, 5) -> (6, 4, 2, 3)");
  CHECK_EQ(inferred("_contrib_RROIAlign", grid, {Shape{1, 4, 5, 5}, Shape{6, kAny}}),
           "(1, 4, 5, 5) (6, 6) -> (6, 4, 2, 3)");
  CHECK_EQ(inferred("_contrib_PSROIPooling", kPsRoi, {{}, Shape{6, 5}}), "(?, ?, ?, ?) (6, 5) -> (6, 2, 3, 3)");
  CHECK_EQ(inferred("_contrib_DeformablePSROIPooling", kDeformablePsRoi, {{}, {}, Shape{6, 4, kAny, kAny}}),
           "(?, ?, ?, ?) (6, 5) (6, 4, 2, 2) -> (6, 2, 3, 3) (6, 2, 3, 3)");
  const AttrMap one = {{"scales", "(1,)"}, {"ratios", "(1,)"}, {"rpn_post_nms_top_n", "3"}};
  CHECK_EQ(inferred("_contrib_MultiProposal", one, {Shape{2, kAny, 4, 5}}),
           "(2, 2, 4, 5) (2, 4, 4, 5) (2, 3) -> (6, 5) (6, 1)");
  CHECK_EQ(inferred("_contrib_Proposal", one, {{}, Shape{kAny, 4, 4, 5}}),
           "(1, 2, 4, 5) (1, 4, 4, 5) (1, 3) -> (3, 5) (3, 1)");
  CHECK_EQ(inferred("_contrib_DeformableConvolution", kConvolution, {Shape{2, 4, 5, 6}}),
           "(2, 4, 5, 6) (2, 24, 5, 4) (4, 2, 3, 2) (4,) -> (2, 4, 5, 4)");
  CHECK_EQ(inferred("_contrib_ModulatedDeformableConvolution", kConvolution, {Shape{kAny, 4, kAny, 6}},
                    {Shape{2, kAny, 5, kAny}}),
           "(2, 4, 5, 6) (2, 24, 5, 4) (2, 12, 5, 4) (4, 2, 3, 2) (4,) -> (2, 4, 5, 4)");
}

TEST(gradients_of_regions_are_those_of_differences) {
  const Array data = spread_array({2, 4, 5, 6}, -1, 1);
  check_gradient("_contrib_ROIAlign", {{"pooled_size", "(2, 3)"}, {"spatial_scale", "0.9"}}, {data, regions()});
  check_gradient("_contrib_ROIAlign",
                 {{"pooled_size", "(2, 1)"}, {"spatial_scale", "0.9"}, {"sample_ratio", "3"}, {"aligned", "1"}},
                 {data, regions()});
  check_gradient("_contrib_ROIAlign", {{"pooled_size", "(2, 2)"}, {"spatial_scale", "1"}, {"position_sensitive", "1"}},
                 {data, regions()});
  check_gradient("_contrib_RROIAlign", {{"pooled_size", "(2, 3)"}, {"spatial_scale", "0.9"}}, {data, turned_regions()});
  const Array many = spread_array({2, 8, 5, 6}, -1, 1);
  check_gradient("_contrib_PSROIPooling", kPsRoi, {many, regions()});
  check_gradient("_contrib_DeformablePSROIPooling", kDeformablePsRoi,
                 {many, regions(), spread_array({4, 4, 2, 2}, -1, 1, 5)});
  AttrMap straight = kDeformablePsRoi;
  straight["no_trans"] = "1";
  check_gradient("_contrib_DeformablePSROIPooling", straight, {many, regions()});
}

TEST(gradients_of_deformable_convolutions_are_those_of_differences) {
  check_gradient("_contrib_DeformableConvolution", kConvolution, convolution_inputs(false));
  check_gradient("_contrib_ModulatedDeformableConvolution", kConvolution, convolution_inputs(true));
  AttrMap plain = kConvolution;
  plain["no_bias"] = "1";
  std::vector<Array> inputs = convolution_inputs(true);
  inputs.pop_back();
  check_gradient("_contrib_ModulatedDeformableConvolution", plain, inputs);
}

TEST(offsets_of_zero_make_a_plain_convolution) {
  std::vector<Array> inputs = convolution_inputs(true);
  const Array plain =
      OpRun("Convolution",
            {{"kernel", "(3, 2)"}, {"stride", "(1, 2)"}, {"pad", "(1, 1)"}, {"num_filter", "4"}, {"num_group", "2"}},
            {inputs[0], inputs[3], inputs[4]})
          .outputs()[0];
  inputs[1] = zeros(inputs[1].shape());
  for (int64_t i = 0; i < inputs[2].size(); ++i) inputs[2].set(i, 1);
  check_close("modulated", OpRun("_contrib_ModulatedDeformableConvolution", kConvolution, inputs).outputs()[0],
              plain.values(), 1e-12, 1e-12);
  inputs.erase(inputs.begin() + 2);
  check_close("plain", OpRun("_contrib_DeformableConvolution", kConvolution, inputs).outputs()[0], plain.values(),
              1e-12, 1e-12);
}

TEST(off_the_image_nothing_counts_whatever_lies_at_its_begin) {
  const AttrMap attrs = {{"kernel", "(1, 1)"}, {"stride", "(2, 2)"}, {"num_filter", "1"}, {"no_bias", "1"}};
  const Array data = array({1, 1, 2, 2}, {kInf, 1, 1, 2}), weight = array({1, 1, 1, 1}, {3});
  const Array mask = array({1, 1, 1, 1}, {1}), head = array({1, 1, 1, 1}, {1});
  const auto moved_by = [](double down, double right) { return array({1, 2, 1, 1}, {down, right}); };
  const auto gradients = [&](const Array &offset) {
    return OpRun("_contrib_ModulatedDeformableConvolution", attrs, {data, offset, mask, weight}).backward({head});
  };
  const std::vector<Array> beyond = gradients(moved_by(5, 5)), border = gradients(moved_by(1.5, 1.5));
  check_close("offset beyond", beyond[1], {0, 0}, 0, 0);
  check_close("mask beyond", beyond[2], {0}, 0, 0);
  check_close("offset at the border", border[1], {-3, -3}, 0, 0);
  check_close("mask at the border", border[2], {1.5}, 0, 0);
  OpRun plain("_contrib_DeformableConvolution", attrs, {data, moved_by(5, 5), weight});
  check_close("plain", plain.backward({head})[1], {0, 0}, 0, 0);
}

TEST(the_gradient_of_suppressed_boxes_is_zero) {
  const Array boxes = array({1, 3, 6}, {0, .3, 0, 0, 2, 2, 0, .9, 0, 0, 2, 2.1, 0, .5, 5, 5, 6, 6});
  OpRun run("_contrib_box_nms", {}, {boxes});
  check_close("boxes", run.outputs()[0], {0, .9, 0, 0, 2, 2.1, 0, .5, 5, 5, 6, 6, -1, -1, -1, -1, -1, -1}, 0, 0);
  check_close(
      "gradient", run.backward({array({1, 3, 6}, spread(18, 1, 2))})[0],
      [] {
        const std::vector<double> head = spread(18, 1, 2);
        std::vector<double> moved(18, 0);
        std::copy_n(head.begin(), 6, moved.begin() + 6);
        std::copy_n(head.begin() + 6, 6, moved.begin() + 12);
        return moved;
      }(),
      0, 0);
}

TEST(types_and_threads_do_not_change_what_is_found) {
  const Array data = spread_array({2, 8, 5, 6}, -1, 1);
  check_types("_contrib_ROIAlign", {{"pooled_size", "(2, 3)"}, {"spatial_scale", "0.5"}}, {data, regions()});
  check_types("_contrib_RROIAlign", {{"pooled_size", "(2, 3)"}, {"spatial_scale", "0.5"}}, {data, turned_regions()});
  check_types("_contrib_PSROIPooling", kPsRoi, {data, regions()});
  check_types("_contrib_DeformablePSROIPooling", kDeformablePsRoi,
              {data, regions(), spread_array({4, 4, 2, 2}, -1, 1, 5)});
  check_types("_contrib_DeformableConvolution", kConvolution, convolution_inputs(false));
  check_types("_contrib_ModulatedDeformableConvolution", kConvolution, convolution_inputs(true));
  const Array anchors = array({1, 3, 4}, {0, 0, .5, .5, .25, .25, 1, 1, .5, 0, 1, .5});
  check_types("_contrib_MultiBoxTarget", {{"overlap_threshold", "0.2"}},
              {anchors, array({4, 1, 5}, {1, .1, .1, .5, .6, 0, .5, 0, 1, .5, 2, .3, .2, .9, .8, -1, -1, -1, -1, -1}),
               spread_array({4, 2, 3}, -1, 1)});
  check_types("_contrib_MultiBoxDetection", {},
              {spread_array({5, 3, 3}, 0.1, 1), spread_array({5, 12}, -1, 1, 1), anchors});
  check_types("_contrib_box_nms", {{"id_index", "0"}, {"overlap_thresh", "0.4"}}, {spread_array({4, 9, 6}, 0, 1)});
  check_types("_contrib_bipartite_matching", {{"threshold", "0.1"}}, {spread_array({4, 3, 5}, 0, 1)});
  check_types("_contrib_box_decode", {}, {spread_array({2, 3, 4}, -1, 1), anchors});
  check_types("_contrib_MultiProposal",
              {{"scales", "(2,)"},
               {"ratios", "(1,)"},
               {"feature_stride", "4"},
               {"rpn_post_nms_top_n", "5"},
               {"rpn_min_size", "1"}},
              {spread_array({3, 2, 3, 3}, 0, 1), spread_array({3, 4, 3, 3}, -.2, .2, 1),
               array({3, 3}, {12, 12, 1, 12, 12, 1, 8, 12, 1})});
}

TEST(regions_of_no_image_are_errors_or_zeros_and_numbers_may_be_anything) {
  const Array data = array({1, 4, 1, 1}, {1, 1, 1, 1});
  const std::vector<std::pair<std::string, AttrMap>> operators = {
      {"_contrib_ROIAlign", {{"pooled_size", "(1, 1)"}, {"spatial_scale", "1"}}},
      {"_contrib_PSROIPooling", {{"spatial_scale", "1"}, {"output_dim", "4"}, {"pooled_size", "1"}}},
      {"_contrib_DeformablePSROIPooling",
       {{"spatial_scale", "1"}, {"output_dim", "4"}, {"group_size", "1"}, {"pooled_size", "1"}, {"no_trans", "1"}}}};
  for (const auto &[op, attrs] : operators) {
    CHECK_EQ(refusal(op, attrs, {data, array({1, 5}, {1, 0, 0, 1, 1})}), int(Code::kExecution));
    CHECK_EQ(refusal(op, attrs, {data, array({1, 5}, {kNaN, 0, 0, 1, 1})}), int(Code::kExecution));
    CHECK_EQ(refusal(op, attrs, {data, zeros({1, 4})}), int(Code::kShape));
    check_close(op, OpRun(op, attrs, {data, array({1, 5}, {-1, 0, 0, 1, 1})}).outputs()[0], {0, 0, 0, 0}, 0, 0);
    for (double far : {1e30, 1e300, kInf, kNaN}) {
      for (const std::vector<double> &roi :
           {std::vector<double>{0, -far, -far, far, far}, {0, far, far, far, far}, {0, 0, 0, far, 0}}) {
        const std::vector<double> found = outputs(op, attrs, {data, array({1, 5}, roi)});
        CHECK(found[0] == 0 || found[0] == 1 || (found[0] > 0 && found[0] < 1));
      }
    }
    CHECK_EQ(refusal(op, attrs, {zeros({1, 4, 2, 2}), zeros({0, 5})}), 0);
  }
  const AttrMap turned = {{"pooled_size", "(1, 1)"}, {"spatial_scale", "1"}};
  CHECK_EQ(refusal("_contrib_RROIAlign", turned, {data, array({1, 6}, {0, 0, 0, 1e30, 1, 0})}), int(Code::kExecution));
  CHECK_EQ(refusal("_contrib_RROIAlign", turned, {data, array({1, 6}, {0, 0, 0, kNaN, 1, 0})}), int(Code::kExecution));
  CHECK_EQ(refusal("_contrib_RROIAlign", turned, {data, array({1, 6}, {0, kNaN, 0, 1, 1, kInf})}), 0);
  CHECK_EQ(refusal("_contrib_ROIAlign", {{"pooled_size", "(1, 1)"}, {"spatial_scale", "1"}, {"aligned", "1"}},
                   {data, array({1, 5}, {0, 1, 1, 1, 2})}),
           int(Code::kExecution));
}

TEST(places_far_away_and_infinite_elements_outside_read_zero) {
  const AttrMap attrs = {{"kernel", "(1, 1)"}, {"num_filter", "1"}, {"no_bias", "1"}};
  const Array data = array({1, 1, 2, 2}, {kInf, 2, 3, 4}), weight = array({1, 1, 1, 1}, {1});
  const Array offset = array({1, 2, 2, 2}, {1e30, -1e30, kNaN, 0, 0, 0, 0, kInf});
  check_close("far", OpRun("_contrib_DeformableConvolution", attrs, {data, offset, weight}).outputs()[0], {0, 0, 0, 0},
              0, 0);
  check_close(
      "far",
      OpRun("_contrib_ModulatedDeformableConvolution", attrs, {data, offset, array({1, 1, 2, 2}, {1, 1, 1, 1}), weight})
          .outputs()[0],
      {0, 0, 0, 0}, 0, 0);
}

TEST(scores_and_labels_that_are_no_numbers_count_for_nothing) {
  check_close("nms",
              OpRun("_contrib_box_nms", {}, {array({2, 6}, {0, kNaN, 0, 0, 1, 1, 0, .5, 0, 0, 1, 1})}).outputs()[0],
              {0, .5, 0, 0, 1, 1, -1, -1, -1, -1, -1, -1}, 0, 0);
  check_close("matching",
              OpRun("_contrib_bipartite_matching", {{"threshold", "0"}}, {array({2, 1}, {kNaN, .5})}).outputs()[0],
              {-1, 0}, 0, 0);
  const Array anchor = array({1, 1, 4}, {0, 0, 1, 1}), scores = array({1, 2, 1}, {kNaN, 1});
  OpRun target("_contrib_MultiBoxTarget", {{"negative_mining_ratio", "1e30"}},
               {anchor, array({1, 1, 5}, {1, kNaN, 0, 1, 1}), scores});
  check_close("target", target.outputs()[2], {-1}, 0, 0);
  CHECK_EQ(refusal("_contrib_MultiBoxTarget", {}, {anchor, array({1, 1, 5}, {-1, 0, -1, -1, -1}), scores}),
           int(Code::kExecution));
  check_close(
      "detection",
      OpRun("_contrib_MultiBoxDetection", {}, {array({1, 2, 1}, {0, kNaN}), zeros({1, 4}), anchor}).outputs()[0],
      {-1, -1, -1, -1, -1, -1}, 0, 0);
  CHECK_EQ(refusal("_contrib_box_encode", {},
                   {array({1, 1}, {1}), array({1, 1}, {kNaN}), anchor, anchor, zeros({4}), zeros({4})}),
           int(Code::kExecution));
  CHECK_EQ(refusal("_contrib_box_encode", {},
                   {array({1, 1}, {0}), array({1, 1}, {7}), anchor, anchor, zeros({4}), zeros({4})}),
           0);
  const AttrMap one = {{"scales", "(1,)"}, {"ratios", "(1,)"}, {"rpn_post_nms_top_n", "2"}};
  const auto proposal = [&](double height) {
    return refusal("_contrib_Proposal", one,
                   {zeros({1, 2, 1, 1}), zeros({1, 4, 1, 1}), array({1, 3}, {height, 16, 1})});
  };
  CHECK_EQ(proposal(16), 0);
  CHECK_EQ(proposal(64), int(Code::kExecution));
  CHECK_EQ(proposal(kNaN), int(Code::kExecution));
}

TEST(shapes_and_attributes_that_make_no_sense_are_refused) {
  const Array anchor = zeros({1, 3, 4});
  CHECK_EQ(refusal("_contrib_MultiBoxTarget", {}, {anchor, zeros({1, 2, 4}), zeros({1, 2, 3})}), int(Code::kShape));
  CHECK_EQ(refusal("_contrib_MultiBoxTarget", {}, {anchor, zeros({1, 2, 5}), zeros({1, 2, 4})}), int(Code::kShape));
  CHECK_EQ(refusal("_contrib_MultiBoxTarget", {{"variances", "(1, 1)"}}, {anchor, zeros({1, 2, 5}), zeros({1, 2, 3})}),
           int(Code::kInvalidArgument));
  CHECK_EQ(refusal("_contrib_MultiBoxTarget", {{"negative_mining_ratio", "3"}, {"negative_mining_thresh", "0"}},
                   {anchor, zeros({1, 2, 5}), zeros({1, 2, 3})}),
           int(Code::kInvalidArgument));
  CHECK_EQ(refusal("_contrib_MultiBoxDetection", {}, {zeros({1, 2, 3}), zeros({1, 11}), anchor}), int(Code::kShape));
  CHECK_EQ(refusal("_contrib_box_nms", {}, {zeros({2, 4})}), int(Code::kShape));
  CHECK_EQ(refusal("_contrib_box_nms", {{"coord_start", "3"}}, {zeros({2, 6})}), int(Code::kShape));
  CHECK_EQ(refusal("_contrib_box_nms", {{"score_index", "3"}}, {zeros({2, 6})}), int(Code::kShape));
  CHECK_EQ(refusal("_contrib_box_nms", {{"id_index", "1"}}, {zeros({2, 6})}), int(Code::kShape));
  CHECK_EQ(refusal("_contrib_bipartite_matching", {}, {zeros({2, 6})}), int(Code::kName));
  CHECK_EQ(refusal("_contrib_bipartite_matching", {{"threshold", "1"}}, {zeros({2})}), int(Code::kShape));
  CHECK_EQ(refusal("_contrib_box_decode", {}, {zeros({2, 2, 4}), zeros({1, 3, 4})}), int(Code::kShape));
  CHECK_EQ(refusal("_contrib_ROIAlign", {{"pooled_size", "(0, 1)"}, {"spatial_scale", "1"}},
                   {zeros({1, 1, 2, 2}), zeros({1, 5})}),
           int(Code::kInvalidArgument));
  CHECK_EQ(
      refusal("_contrib_ROIAlign", {{"pooled_size", "(2, 1)"}, {"spatial_scale", "1"}, {"position_sensitive", "1"}},
              {zeros({1, 3, 2, 2}), zeros({1, 5})}),
      int(Code::kShape));
  CHECK_EQ(refusal("_contrib_PSROIPooling", kPsRoi, {zeros({1, 7, 2, 2}), zeros({1, 5})}), int(Code::kShape));
  CHECK_EQ(refusal("_contrib_DeformablePSROIPooling", kDeformablePsRoi,
                   {zeros({1, 8, 2, 2}), zeros({1, 5}), zeros({1, 6, 2, 2})}),
           int(Code::kShape));
  CHECK_EQ(refusal("_contrib_Proposal", {}, {zeros({2, 24, 1, 1}), zeros({2, 48, 1, 1}), zeros({2, 3})}),
           int(Code::kShape));
  CHECK_EQ(refusal("_contrib_MultiProposal", {{"scales", "()"}},
                   {zeros({1, 24, 1, 1}), zeros({1, 48, 1, 1}), zeros({1, 3})}),
           int(Code::kInvalidArgument));
  const Array data = zeros({1, 2, 3, 3}), weight = zeros({1, 2, 2, 2});
  const AttrMap attrs = {{"kernel", "(2, 2)"}, {"num_filter", "1"}, {"no_bias", "1"}};
  CHECK_EQ(refusal("_contrib_DeformableConvolution", attrs, {data, zeros({1, 7, 2, 2}), weight}), int(Code::kShape));
  CHECK_EQ(refusal("_contrib_DeformableConvolution", attrs, {data, zeros({1, 8, 3, 2}), weight}), int(Code::kShape));
  CHECK_EQ(refusal("_contrib_DeformableConvolution", {{"kernel", "(2,)"}, {"num_filter", "1"}, {"no_bias", "1"}},
                   {data, zeros({1, 8, 2, 2}), weight}),
           int(Code::kInvalidArgument));
  CHECK_EQ(refusal("_contrib_ModulatedDeformableConvolution", attrs,
                   {data, zeros({1, 8, 2, 2}), zeros({1, 3, 2, 2}), weight}),
           int(Code::kShape));
}

UNIT_MAIN()
