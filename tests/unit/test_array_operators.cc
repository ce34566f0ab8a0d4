// SPDX-License-Identifier: Apache-2.0
// Operators that order, repeat, pad, mark and look up elements: cases that golden cases do not hold (NaN, ties, empty
// sequences, indices out of range, 16-bit floats, several threads), and refusals.
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

std::vector<double> counted(int64_t count, double first = 0) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(first + double(i));
  return values;
}

Array array(const Shape &shape, const std::vector<double> &values, Dtype dtype = Dtype::kFloat32) {
  return Array(shape, dtype, values);
}

// Returns "CODE: message" of the error that making or running the operator throws; "" if it runs.
std::string refusal(const std::string &op, const AttrMap &attrs, const std::vector<Array> &inputs) {
  try {
    OpRun run(op, attrs, inputs);
  } catch (const Error &e) {
    return text(int(e.code()), ": ", e.what());
  }
  return "";
}
std::string refused(Code code, const std::string &message) { return text(int(code), ": ", message); }

void check_values(const char *what, const Array &found, const Shape &shape, const std::vector<double> &values) {
  CHECK_EQ(found.shape(), shape);
  check_close(what, found, values, 0, 0);
}

}  // namespace

// ---- topk, sort, argsort ------------------------------------------------------------------------------------------

TEST(equal_elements_keep_their_order_and_nan_comes_last) {
  const std::vector<double> x = {2, kNaN, 1, 2, 3, 1};
  for (Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kBfloat16}) {
    check_values("ascending", OpRun("argsort", {}, {array({6}, x, dtype)}).outputs()[0], {6}, {2, 5, 0, 3, 4, 1});
    check_values("descending", OpRun("argsort", {{"is_ascend", "0"}}, {array({6}, x, dtype)}).outputs()[0], {6},
                 {4, 0, 3, 2, 5, 1});
    check_values("values", OpRun("sort", {}, {array({6}, x, dtype)}).outputs()[0], {6}, {1, 1, 2, 2, 3, kNaN});
    const OpRun top("topk", {{"k", "2"}, {"ret_typ", "both"}, {"dtype", "int32"}}, {array({6}, x, dtype)});
    check_values("topk", top.outputs()[0], {2}, {3, 2});
    check_values("topk", top.outputs()[1], {2}, {4, 0});
    CHECK_EQ(top.outputs()[0].dtype(), dtype);
    CHECK_EQ(top.outputs()[1].dtype(), Dtype::kInt32);
  }
}

TEST(order_of_every_type_and_axis) {
  for (Dtype dtype : {Dtype::kInt8, Dtype::kUint8, Dtype::kInt32, Dtype::kInt64}) {
    check_values("sort", OpRun("sort", {{"axis", "0"}}, {array({3, 2}, {3, 0, 1, 5, 2, 4}, dtype)}).outputs()[0],
                 {3, 2}, {1, 0, 2, 4, 3, 5});
  }
  check_values("bool", OpRun("sort", {}, {array({3}, {1, 0, 1}, Dtype::kBool)}).outputs()[0], {3}, {0, 1, 1});
  check_values("whole", OpRun("sort", {{"axis", "None"}}, {array({2, 2}, {3, 1, 2, 0})}).outputs()[0], {4},
               {0, 1, 2, 3});
  check_values("k < 1 is all", OpRun("topk", {{"k", "0"}}, {array({1, 3}, {1, 3, 2})}).outputs()[0], {1, 3}, {1, 2, 0});
  check_values("mask",
               OpRun("topk", {{"axis", "None"}, {"ret_typ", "mask"}}, {array({2, 2}, {1, 3, 3, 2})}).outputs()[0],
               {2, 2}, {0, 1, 0, 0});
}

TEST(order_is_the_same_on_several_threads) {
  const Array x({7, 700, 3}, Dtype::kFloat32, spread(7 * 700 * 3, -1, 1));
  RunOptions threads;
  threads.num_threads = 3;
  for (const char *k : {"5", "700"}) {
    const AttrMap attrs = {{"axis", "1"}, {"k", k}, {"ret_typ", "both"}};
    const OpRun one("topk", attrs, {x}), three("topk", attrs, {x}, threads);
    for (size_t i = 0; i < 2; ++i) CHECK(one.outputs()[i].same_bits(three.outputs()[i]));
    for (int64_t n = 0; n + 1 < one.outputs()[0].shape()[1]; ++n) {
      CHECK(one.outputs()[0].at(n * 3) >= one.outputs()[0].at(n * 3 + 3));
      CHECK_EQ(x.at(int64_t(one.outputs()[1].at(n * 3)) * 3), one.outputs()[0].at(n * 3));
    }
  }
}

TEST(gradients_of_ordered_elements) {
  const Array x({2, 5, 3}, Dtype::kFloat64, spread(30, -1, 1));
  check_gradient("sort", {{"axis", "1"}}, {x});
  check_gradient("topk", {{"ret_typ", "value"}, {"k", "2"}, {"axis", "0"}}, {x});
  check_gradient("topk", {{"ret_typ", "value"}, {"k", "4"}, {"axis", "None"}, {"is_ascend", "1"}}, {x});
  CHECK(get_op("topk").gradient_of(get_op("topk").parse({})).kind == Gradient::Kind::kNone);
}

TEST(refusals_of_ordering) {
  const Array x({2, 3}, Dtype::kFloat32, counted(6));
  CHECK_EQ(refusal("topk", {{"k", "4"}}, {x}),
           refused(Code::kInvalidArgument, "attribute 'k': expected at most 3, found 4"));
  CHECK_EQ(refusal("sort", {{"axis", "2"}}, {x}), refused(Code::kInvalidArgument, "axis: expected -2 to 1, found 2"));
  CHECK_EQ(
      refusal("topk", {{"ret_typ", "values"}}, {x}),
      refused(
          Code::kInvalidArgument,
          "operator topk: attribute 'ret_typ': expected one of 'both', 'indices', 'mask', 'value', found 'values'"));
}

// ---- tile, repeat, space_to_depth, depth_to_space, diag, Pad ------------------------------------------------------

TEST(arrays_repeated) {
  const Array x = array({2, 1}, {1, 2});
  check_values("tile", OpRun("tile", {{"reps", "(2, 1, 3)"}}, {x}).outputs()[0], {2, 2, 3},
               {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2});
  check_values("tile", OpRun("tile", {{"reps", "(2,)"}}, {x}).outputs()[0], {2, 2}, {1, 1, 2, 2});
  check_values("tile", OpRun("tile", {{"reps", "()"}}, {x}).outputs()[0], {2, 1}, {1, 2});
  check_values("repeat", OpRun("repeat", {{"repeats", "2"}, {"axis", "-2"}}, {x}).outputs()[0], {4, 1}, {1, 1, 2, 2});
  check_values("repeat", OpRun("repeat", {{"repeats", "2"}}, {x.as(Dtype::kBool)}).outputs()[0], {4}, {1, 1, 1, 1});
  check_values("repeat", OpRun("repeat", {{"repeats", "0"}}, {x}).outputs()[0], {0}, {});
  const Array y({2, 3, 2}, Dtype::kFloat64, spread(12, -1, 1));
  check_gradient("tile", {{"reps", "(2, 1, 2, 3)"}}, {y});
  check_gradient("tile", {{"reps", "(3,)"}}, {y});
  check_gradient("repeat", {{"repeats", "3"}}, {y});
  check_gradient("repeat", {{"repeats", "2"}, {"axis", "1"}}, {y});
  check_gradient("repeat", {{"repeats", "0"}, {"axis", "1"}}, {y});
}

TEST(blocks_of_pixels_go_to_channels_and_back) {
  const Array x({2, 3, 4, 6}, Dtype::kInt8, counted(144, -72));
  const AttrMap block = {{"block_size", "2"}};
  const OpRun there("space_to_depth", block, {x});
  CHECK_EQ(there.outputs()[0].shape(), (Shape{2, 12, 2, 3}));
  CHECK(OpRun("depth_to_space", block, {there.outputs()[0]}).outputs()[0].same_bits(x));
  check_gradient("space_to_depth", block, {Array({1, 2, 2, 4}, Dtype::kFloat64, spread(16, -1, 1))});
  check_gradient("depth_to_space", block, {Array({1, 8, 1, 2}, Dtype::kFloat64, spread(16, -1, 1))});
}

TEST(diagonals_of_arrays) {
  const Array x({2, 3, 4}, Dtype::kFloat64, counted(24));
  check_values("axes 0, 2", OpRun("diag", {{"axis1", "0"}, {"axis2", "-1"}}, {x}).outputs()[0], {3, 2},
               {0, 13, 4, 17, 8, 21});
  check_values("axes 1, 0", OpRun("diag", {{"axis1", "1"}, {"axis2", "0"}, {"k", "1"}}, {x}).outputs()[0], {4, 1},
               {12, 13, 14, 15});
  check_values("empty", OpRun("diag", {{"k", "3"}}, {array({2, 3}, counted(6))}).outputs()[0], {0}, {});
  check_values("a vector", OpRun("diag", {{"k", "-1"}}, {array({2}, {1, 2})}).outputs()[0], {3, 3},
               {0, 0, 0, 1, 0, 0, 0, 2, 0});
  check_gradient("diag", {{"axis1", "2"}, {"axis2", "0"}, {"k", "-1"}}, {x});
  check_gradient("diag", {{"k", "2"}}, {Array({3}, Dtype::kFloat64, {1, 2, 3})});
}

TEST(borders_of_images) {
  const Array x({2, 2, 3, 4}, Dtype::kFloat64, spread(48, -1, 1)),
      y({1, 2, 2, 3, 2}, Dtype::kFloat64, spread(24, -1, 1));
  for (const char *mode : {"constant", "edge", "reflect"}) {
    check_gradient("Pad", {{"mode", mode}, {"pad_width", "(0, 0, 0, 0, 2, 1, 3, 2)"}}, {x});
    check_gradient("Pad", {{"mode", mode}, {"pad_width", "(0, 0, 0, 0, 1, 0, 2, 1, 0, 1)"}}, {y});
  }
  check_values("16 bits, added up in 32",
               OpRun("Pad", {{"mode", "edge"}, {"pad_width", "(0, 0, 0, 0, 0, 0, 0, 4095)"}},
                     {Array({1, 1, 1, 1}, Dtype::kFloat16, {1})})
                   .backward({Array({1, 1, 1, 4096}, Dtype::kFloat16, std::vector<double>(4096, 1))})[0],
               {1, 1, 1, 1}, {4096});
}

TEST(what_is_repeated_no_times_has_no_elements) {
  const Array x({2, 3}, Dtype::kFloat32, counted(6));
  for (const char *reps : {"(2, 0)", "(0,)"}) {
    OpRun run("tile", {{"reps", reps}}, {x});
    const int64_t rows = reps[1] == '2' ? 4 : 2;
    check_values(reps, run.outputs()[0], {rows, 0}, {});
    check_values(reps, run.backward({Array({rows, 0}, Dtype::kFloat32, {})})[0], {2, 3}, {0, 0, 0, 0, 0, 0});
  }
}

TEST(refusals_of_repetitions_blocks_diagonals_and_borders) {
  const Array x({2, 3}, Dtype::kFloat32, counted(6)), image({1, 1, 2, 3}, Dtype::kFloat32, counted(6));
  CHECK_EQ(refusal("tile", {{"reps", "(2, -1)"}}, {x}),
           refused(Code::kInvalidArgument,
                   "operator tile: attribute 'reps': expected at least 0 for each axis, found [2,-1]"));
  CHECK_EQ(refusal("tile", {{"reps", "(4611686018427387904,)"}}, {x}),
           refused(Code::kShape, "output: expected fewer than 2^63 elements, found 3 times 4611686018427387904"));
  CHECK_EQ(refusal("repeat", {{"repeats", "-1"}}, {x}),
           refused(Code::kInvalidArgument, "operator repeat: attribute 'repeats': expected at least 0, found -1"));
  CHECK_EQ(
      refusal("depth_to_space", {{"block_size", "0"}}, {image}),
      refused(Code::kInvalidArgument, "operator depth_to_space: attribute 'block_size': expected 1 to 32768, found 0"));
  CHECK_EQ(refusal("space_to_depth", {{"block_size", "2"}}, {image}),
           refused(Code::kShape, "data: expected a multiple of 2 on axis 3, found (1, 1, 2, 3)"));
  CHECK_EQ(refusal("depth_to_space", {{"block_size", "2"}}, {x}),
           refused(Code::kShape, "data: expected 4 axes, found (2, 3)"));
  CHECK_EQ(refusal("diag", {{"k", "5"}}, {x}),
           refused(Code::kInvalidArgument, "attribute 'k': (2, 3) has no diagonal 5"));
  CHECK_EQ(refusal("diag", {{"axis2", "-2"}}, {x}),
           refused(Code::kInvalidArgument, "attributes 'axis1' and 'axis2': expected two axes, found 0 and -2"));
  const auto pad = [&](const char *mode, const char *width, const Array &data) {
    return refusal("Pad", {{"mode", mode}, {"pad_width", width}}, {data});
  };
  CHECK_EQ(pad("edge", "(0, 0, 1, 1)", x), refused(Code::kShape, "data: expected 4 or 5 axes, found (2, 3)"));
  CHECK_EQ(pad("edge", "(0, 0)", image),
           refused(Code::kInvalidArgument, "attribute 'pad_width': expected 8 numbers, found [0,0]"));
  for (const char *width : {"(0, 0, 0, 0, 2, 0, 0, 0)", "(0, 0, 0, 0, 0, 0, 0, 3)", "(0, 0, 1, 0, 0, 0, 0, 0)",
                            "(0, 0, 0, 0, -1, 0, 0, 0)"}) {
    CHECK(pad("reflect", width, image).find(text(int(Code::kInvalidArgument), ": attribute 'pad_width': ")) == 0);
  }
}

// ---- SequenceLast, SequenceMask, SequenceReverse ------------------------------------------------------------------

TEST(sequences_of_given_lengths) {
  const Array x({3, 2}, Dtype::kFloat16, {1, 2, 3, 4, 5, 6});
  const AttrMap given = {{"use_sequence_length", "1"}};
  const auto run = [&](const char *op, const AttrMap &more, std::vector<double> lengths, Dtype dtype) {
    AttrMap attrs = given;
    attrs.insert(more.begin(), more.end());
    return OpRun(op, attrs, {x, Array({int64_t(lengths.size())}, dtype, lengths)}).outputs()[0];
  };
  check_values("last", run("SequenceLast", {}, {1, 3}, Dtype::kFloat32), {2}, {1, 6});
  check_values("last", run("SequenceLast", {{"axis", "1"}}, {1, 2, 1}, Dtype::kInt32), {3}, {1, 4, 5});
  check_values("mask", run("SequenceMask", {{"value", "-1.5"}}, {0, 7}, Dtype::kInt64), {3, 2},
               {-1.5, 2, -1.5, 4, -1.5, 6});
  check_values("mask", run("SequenceMask", {{"axis", "1"}}, {-3, 1.5, 2}, Dtype::kFloat16), {3, 2}, {0, 0, 3, 0, 5, 6});
  check_values("reverse", run("SequenceReverse", {}, {0, 2}, Dtype::kUint8), {3, 2}, {1, 4, 3, 2, 5, 6});
}

TEST(gradients_of_sequences) {
  const Array x({3, 2, 2}, Dtype::kFloat64, spread(12, -1, 1)), lengths({2}, Dtype::kInt32, {1, 3}),
      along_1({3}, Dtype::kInt32, {2, 1, 2});
  for (const char *op : {"SequenceLast", "SequenceMask", "SequenceReverse"}) {
    check_gradient(op, {}, {x});
    check_gradient(op, {{"use_sequence_length", "1"}}, {x, lengths});
    if (op != std::string("SequenceReverse")) {
      check_gradient(op, {{"use_sequence_length", "1"}, {"axis", "1"}}, {x, along_1});
    }
  }
}

TEST(refusals_of_sequences) {
  const Array x({3, 2}, Dtype::kFloat32, counted(6)), line({3}, Dtype::kFloat32, counted(3));
  const auto lengths = [&](const char *op, const std::vector<double> &values) {
    return refusal(op, {{"use_sequence_length", "1"}}, {x, array({int64_t(values.size())}, values)});
  };
  CHECK_EQ(lengths("SequenceLast", {1, 0}), refused(Code::kExecution, "sequence_length[1]: expected 1 to 3, found 0"));
  CHECK_EQ(lengths("SequenceLast", {9, 1}), refused(Code::kExecution, "sequence_length[0]: expected 1 to 3, found 9"));
  CHECK_EQ(lengths("SequenceReverse", {4, 1}),
           refused(Code::kExecution, "sequence_length[0]: expected 0 to 3, found 4"));
  CHECK(lengths("SequenceReverse", {kNaN, 1}).find("sequence_length[0]: expected 0 to 3") != std::string::npos);
  CHECK_EQ(lengths("SequenceMask", {1, 1, 1}), refused(Code::kShape, "sequence_length: expected (2,), found (3,)"));
  CHECK_EQ(refusal("SequenceMask", {}, {line}), refused(Code::kShape, "data: expected at least 2 axes, found (3,)"));
  CHECK_EQ(refusal("SequenceReverse", {{"axis", "1"}}, {x}),
           refused(Code::kInvalidArgument, "operator SequenceReverse: attribute 'axis': expected 0 to 0, found 1"));
}

// ---- gather_nd, scatter_nd, _scatter_set_nd, _contrib_index_copy --------------------------------------------------

TEST(parts_by_coordinates) {
  const Array x({2, 3, 2}, Dtype::kInt8, counted(12));
  check_values("from the end", OpRun("gather_nd", {}, {x, array({2, 3}, {0, -1, 1, 2, -3, 1})}).outputs()[0], {3, 2},
               {4, 5, 6, 7, 8, 9});
  check_values("rows", OpRun("gather_nd", {}, {x, Array({1, 1, 2}, Dtype::kUint8, {1, 0})}).outputs()[0], {1, 2, 3, 2},
               {6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5});
  const Array twice = array({2, 3}, {0, 0, 1, 1, 1, 2}), data = array({3}, {1, 2, 3});
  const AttrMap shape = {{"shape", "(2, 3)"}};
  check_values("the last stays", OpRun("scatter_nd", shape, {data, twice}).outputs()[0], {2, 3}, {0, 2, 0, 0, 0, 3});
  check_values("added up", OpRun("_backward_gather_nd", shape, {data, twice}).outputs()[0], {2, 3}, {0, 3, 0, 0, 0, 3});
  check_values("put in", OpRun("_scatter_set_nd", shape, {array({2, 3}, counted(6)), data, twice}).outputs()[0], {2, 3},
               {0, 2, 2, 3, 4, 3});
  check_values(
      "rows",
      OpRun("_contrib_index_copy", {}, {array({3, 2}, counted(6)), array({2}, {2, 2}), array({2, 2}, {7, 8, 9, 10})})
          .outputs()[0],
      {3, 2}, {0, 1, 2, 3, 9, 10});
}

TEST(gradients_of_parts) {
  const Array x({2, 3, 2}, Dtype::kFloat64, spread(12, -1, 1)), i({2, 3}, Dtype::kInt32, {0, -1, 1, 2, -1, 2});
  check_gradient("gather_nd", {}, {x, i});
  const Array once({2, 2}, Dtype::kInt32, {0, 1, 2, 0});
  check_gradient("scatter_nd", {{"shape", "(2, 3, 2)"}}, {Array({2, 2}, Dtype::kFloat64, spread(4, -1, 1)), once});
  check_gradient("_contrib_index_copy", {},
                 {Array({3, 2}, Dtype::kFloat64, spread(6, -1, 1)), Array({2}, Dtype::kInt32, {2, 0}),
                  Array({2, 2}, Dtype::kFloat64, spread(4, -1, 1, 1))});
  const Array many({1, 4096}, Dtype::kInt32, std::vector<double>(4096, 0));
  check_values("16 bits, added up in 32",
               OpRun("gather_nd", {}, {Array({1}, Dtype::kFloat16, {1}), many})
                   .backward({Array({4096}, Dtype::kFloat16, std::vector<double>(4096, 1))})[0],
               {1}, {4096});
}

TEST(refusals_of_coordinates) {
  const Array x = array({2, 3}, counted(6));
  const auto gather = [&](const Shape &shape, const std::vector<double> &indices) {
    return refusal("gather_nd", {}, {x, array(shape, indices)});
  };
  CHECK_EQ(gather({2, 2}, {0, 0, 2, 3}),
           refused(Code::kExecution, "indices: expected -3 to 2 along axis 1, found 3 in column 1"));
  CHECK_EQ(gather({1, 1}, {-3}),
           refused(Code::kExecution, "indices: expected -2 to 1 along axis 0, found -3 in column 0"));
  CHECK(gather({1, 1}, {kNaN}).find("indices: expected -2 to 1 along axis 0") != std::string::npos);
  CHECK(gather({1, 1}, {1e30}).find("indices: expected -2 to 1 along axis 0") != std::string::npos);
  CHECK_EQ(gather({2}, {0, 0}), refused(Code::kShape, "indices: expected at least 2 axes, found (2,)"));
  CHECK_EQ(gather({3, 1}, {0, 0, 0}), refused(Code::kShape, "indices: expected at most 2 coordinates, found (3, 1)"));
  const Array one = array({1}, {5});
  CHECK_EQ(refusal("scatter_nd", {{"shape", "(2,)"}}, {one, array({1, 1}, {-1})}),
           refused(Code::kExecution, "indices: expected 0 to 1 along axis 0, found -1 in column 0"));
  CHECK_EQ(refusal("scatter_nd", {{"shape", "(2, 3)"}}, {one, array({1, 1}, {0})}),
           refused(Code::kShape, "data: expected (1, 3), found (1,)"));
  CHECK_EQ(refusal("scatter_nd", {{"shape", "(2, -3)"}}, {one, array({1, 1}, {0})}),
           refused(Code::kInvalidArgument,
                   "operator scatter_nd: attribute 'shape': expected the lengths of all axes, found [2,-3]"));
  CHECK_EQ(refusal("_contrib_index_copy", {}, {x, array({1}, {2}), array({1, 3}, {7, 8, 9})}),
           refused(Code::kExecution, "index_vector[0]: expected 0 to 1, found 2"));
  CHECK_EQ(refusal("_contrib_index_copy", {}, {x, array({1}, {1}), array({1, 2}, {7, 8})}),
           refused(Code::kShape, "new_tensor: expected (1, 3), found (1, 2)"));
}

// ---- batch_take, reshape_like, _contrib_arange_like, _ravel_multi_index and the like ------------------------------

TEST(elements_of_rows_by_index) {
  const Array x({2, 2, 3}, Dtype::kBfloat16, counted(12)), i({4}, Dtype::kInt32, {0, -7, 2, 9});
  check_values("batch_take", OpRun("batch_take", {}, {x, i}).outputs()[0], {4}, {0, 3, 8, 11});
  CHECK_EQ(refusal("batch_take", {}, {x, i.as(Dtype::kFloat32)}),
           refused(Code::kDtype, "indices: expected int32, found float32"));
  CHECK_EQ(refusal("batch_take", {}, {x, Array({3}, Dtype::kInt32, {0, 0, 0})}),
           refused(Code::kShape, "indices: expected 4 indices, found (3,)"));
  CHECK_EQ(refusal("batch_take", {}, {i, i}), refused(Code::kShape, "a: expected at least 2 axes, found (4,)"));
}

TEST(shapes_taken_over_from_other_arrays) {
  const Array x({2, 3, 4}, Dtype::kFloat32, counted(24)), like({6, 9}, Dtype::kInt8, counted(54));
  const auto shape = [&](const AttrMap &attrs) { return OpRun("reshape_like", attrs, {x, like}).outputs()[0].shape(); };
  CHECK_EQ(shape({{"lhs_end", "2"}, {"rhs_end", "1"}}), (Shape{6, 4}));
  CHECK_EQ(shape({{"lhs_end", "-1"}, {"rhs_begin", "None"}, {"rhs_end", "-1"}}), (Shape{6, 4}));
  CHECK_EQ(OpRun("reshape_like", {}, {x, array({3, 8}, counted(24))}).outputs()[0].shape(), (Shape{3, 8}));
  CHECK_EQ(refusal("reshape_like", {}, {x, like}),
           refused(Code::kShape, "lhs: expected as many elements as (6, 9) has, found (2, 3, 4)"));
  CHECK_EQ(refusal("reshape_like", {{"lhs_begin", "2"}, {"lhs_end", "1"}}, {x, like}),
           refused(Code::kInvalidArgument, "attributes 'lhs_begin' and 'lhs_end': expected axes of 3, found 2 to 1"));
  CHECK_EQ(refusal("reshape_like", {{"rhs_end", "3"}}, {x, like}),
           refused(Code::kInvalidArgument, "attributes 'rhs_begin' and 'rhs_end': expected axes of 2, found 0 to 3"));
}

TEST(numbers_from_shapes) {
  const Array x({2, 3}, Dtype::kFloat16, counted(6));
  const auto first = [&](const char *op, const AttrMap &attrs) { return OpRun(op, attrs, {x}).outputs()[0]; };
  check_values("whole", first("_contrib_arange_like", {{"repeat", "4"}}), {2, 3}, {0, 0, 0, 0, 1, 1});
  check_values("axis", first("_contrib_arange_like", {{"axis", "-1"}, {"start", "2"}, {"step", "-0.5"}}), {3},
               {2, 1.5, 1});
  CHECK_EQ(first("_contrib_arange_like", {}).dtype(), Dtype::kFloat16);
  check_values("all", first("_contrib_index_array", {}), {2, 3, 2}, {0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 2});
  check_values("some", first("_contrib_index_array", {{"axes", "(-1, 0, 0)"}}), {2, 3, 3},
               {0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 1, 1, 1, 1, 1, 2, 1, 1});
  check_values("shape", first("shape_array", {}), {2}, {2, 3});
  check_values("size", first("size_array", {}), {1}, {6});
  CHECK_EQ(first("size_array", {}).dtype(), Dtype::kInt64);
  CHECK_EQ(refusal("_contrib_index_array", {{"axes", "(2,)"}}, {x}),
           refused(Code::kInvalidArgument, "axes: expected -2 to 1, found 2"));
  CHECK_EQ(refusal("_contrib_arange_like", {{"axis", "5"}}, {x}),
           refused(Code::kInvalidArgument, "axis: expected -2 to 1, found 5"));
}

TEST(coordinates_to_indices_and_back) {
  const AttrMap shape = {{"shape", "(3, 4)"}};
  check_values("ravel", OpRun("_ravel_multi_index", shape, {array({2, 3}, {1, 0, 0, 2, 9, -9})}).outputs()[0], {3},
               {6, 9, -9});
  check_values("unravel", OpRun("_unravel_index", shape, {array({4}, {1, 7, 100, -1})}).outputs()[0], {2, 4},
               {0, 1, 25, 0, 1, 3, 0, -1});
  const Array all({2, 600}, Dtype::kInt64, counted(1200));
  const OpRun apart("_unravel_index", {{"shape", "(-1, 7, 5)"}}, {all});
  CHECK_EQ(apart.outputs()[0].shape(), (Shape{3, 2, 600}));
  check_values("together",
               OpRun("_ravel_multi_index", {{"shape", "(-1, 7, 5)"}},
                     {Array({3, 1200}, Dtype::kInt64, apart.outputs()[0].values())})
                   .outputs()[0],
               {1200}, counted(1200));
  const Array large({6}, Dtype::kInt64,
                    {4503599627374593, -4503599627370501, 2251799813685247, 191807, -1125899906842688, 0});
  check_values(
      "unravel large", OpRun("_unravel_index", {{"shape", "(1, 1000, 64)"}}, {large}).outputs()[0], {3, 6},
      {70368744177, -70368744177, 35184372088, 2, -17592186044, 0, 728, -664, 831, 996, -417, 0, 1, -5, 63, 63, 0, 0});
  const Array most({3}, Dtype::kInt64,
                   {2251799813685247, 191807, -1125899906842688});  // no block of them contains an integer beyond 2^51
  check_values("unravel", OpRun("_unravel_index", {{"shape", "(1, 1000, 64)"}}, {most}).outputs()[0], {3, 3},
               {35184372088, 2, -17592186044, 831, 996, -417, 63, 63, 0});
  CHECK_EQ(refusal("_unravel_index", {{"shape", "(3, 0)"}}, {all}),
           refused(Code::kInvalidArgument,
                   "operator _unravel_index: attribute 'shape': expected lengths of at least 1, found [3,0]"));
  CHECK_EQ(refusal("_ravel_multi_index", {}, {all}),
           refused(Code::kInvalidArgument,
                   "operator _ravel_multi_index: attribute 'shape': expected lengths of at least 1, found []"));
  CHECK_EQ(refusal("_ravel_multi_index", {{"shape", "(3, 4, 5)"}}, {all}),
           refused(Code::kShape, "data: expected (3, ?), found (2, 600)"));
}

// ---- cumsum, moments, _histogram, khatri_rao, im2col, col2im ------------------------------------------------------

TEST(running_sums) {
  const Array x({2, 3}, Dtype::kUint8, {3, 1, 2, 4, 5, 250});
  check_values("rows", OpRun("cumsum", {{"axis", "-1"}}, {x}).outputs()[0], {2, 3}, {3, 4, 6, 4, 9, 3});
  check_values("flat", OpRun("cumsum", {{"dtype", "int32"}}, {x}).outputs()[0], {6}, {3, 4, 6, 10, 15, 265});
  check_values("cast before", OpRun("cumsum", {{"dtype", "int32"}}, {array({2}, {1.5, 1.5})}).outputs()[0], {2},
               {1, 2});
  const OpRun flags("cumsum", {}, {array({3}, {1, 0, 1}, Dtype::kBool)});
  CHECK_EQ(flags.outputs()[0].dtype(), Dtype::kInt64);
  check_values("bool", flags.outputs()[0], {3}, {1, 1, 2});
  // More elements than a 16-bit float can count in steps of 1; lines longer than a block, and wider.
  const OpRun ones("cumsum", {{"dtype", "float32"}}, {Array({4000}, Dtype::kFloat16, std::vector<double>(4000, 1))});
  check_values("float16", ones.outputs()[0], {4000}, counted(4000, 1));
  const OpRun wide("cumsum", {{"axis", "1"}}, {Array({2, 3, 700}, Dtype::kInt32, std::vector<double>(4200, 2))});
  for (int64_t i = 0; i < 4200; ++i) CHECK_EQ(wide.outputs()[0].at(i), double(2 * (i / 700 % 3 + 1)));
  const Array y({2, 3, 2}, Dtype::kFloat64, spread(12, -1, 1));
  for (const char *axis : {"None", "0", "1", "-1"}) check_gradient("cumsum", {{"axis", axis}}, {y});
  check_gradient("cumsum", {}, {Array({1030}, Dtype::kFloat64, spread(1030, -1, 1))}, 1e-3, 1e-5, 1e-6);
  CHECK_EQ(refusal("cumsum", {{"axis", "2"}}, {x}), refused(Code::kInvalidArgument, "axis: expected -2 to 1, found 2"));
}

TEST(means_and_variances) {
  const Array far({4}, Dtype::kFloat32, {10000, 10001, 10002, 10003});  // squares would cancel
  const OpRun run("moments", {{"axes", "(0,)"}}, {far});
  check_values("mean", run.outputs()[0], {1}, {10001.5});
  check_values("variance", run.outputs()[1], {1}, {1.25});
  const Array x({3, 2, 600}, Dtype::kFloat64, spread(3600, -1, 1));
  for (const char *axes : {"(0,)", "(1,)", "(-1,)", "(0, 2)", "(0, 1)", "(0, 1, 2)"}) {
    const OpRun both("moments", {{"axes", axes}, {"keepdims", "1"}}, {x});
    const OpRun mean("mean", {{"axis", axes}, {"keepdims", "1"}}, {x});
    check_close("mean", both.outputs()[0], mean.outputs()[0].values(), 1e-12, 1e-12);
    const OpRun centred("broadcast_sub", {}, {x, mean.outputs()[0]});
    const OpRun square("square", {}, {centred.outputs()[0]});
    const OpRun variance("mean", {{"axis", axes}, {"keepdims", "1"}}, {square.outputs()[0]});
    check_close("variance", both.outputs()[1], variance.outputs()[0].values(), 1e-12, 1e-12);
  }
  const Array small({2, 3, 2}, Dtype::kFloat64, spread(12, -1, 1));
  check_gradient("moments", {{"axes", "(1,)"}}, {small});
  check_gradient("moments", {{"axes", "(0, -1)"}, {"keepdims", "1"}}, {small});
  CHECK_EQ(
      refusal("moments", {}, {small}),
      refused(Code::kInvalidArgument, "operator moments: attribute 'axes': expected at least one axis, found none"));
  CHECK_EQ(refusal("moments", {{"axes", "(3,)"}}, {small}),
           refused(Code::kInvalidArgument, "axes: expected -3 to 2, found 3"));
}

TEST(elements_counted_in_bins) {
  const Array x = array({2, 4}, {0, 6, 6.1, -1, kNaN, 3, 2, 1.9});
  const AttrMap three = {{"bin_cnt", "3"}, {"range", "(0, 6)"}};
  const OpRun even("_histogram", three, {x});
  check_values("counts", even.outputs()[0], {3}, {2, 2, 1});
  check_values("edges", even.outputs()[1], {4}, {0, 2, 4, 6});
  CHECK_EQ(even.outputs()[0].dtype(), Dtype::kInt64);
  const OpRun given("_histogram", {}, {x, array({3}, {0, 2.5, 3})});
  check_values("counts", given.outputs()[0], {2}, {3, 1});
  const OpRun whole("_histogram", {{"bin_cnt", "4"}, {"range", "[1.0, 6.0]"}},
                    {Array({6}, Dtype::kInt32, {1, 2, 3, 4, 5, 6})});
  check_values("edges of integers", whole.outputs()[1], {5}, {1, 2, 3, 4, 6});
  check_values("counts", whole.outputs()[0], {4}, {1, 1, 1, 3});
  const OpRun point("_histogram", {{"bin_cnt", "2"}, {"range", "(3, 3)"}}, {x});
  check_values("edges of a point", point.outputs()[1], {3}, {2.5, 3, 3.5});
  check_values("counts", point.outputs()[0], {2}, {0, 1});
  OpRun("_histogram", {}, {x, array({4}, {5, kNaN, -1, 7})});  // not in order: any counts, all in bounds
  CHECK_EQ(
      refusal("_histogram", {{"bin_cnt", "2"}}, {x, x}),
      refused(Code::kInvalidArgument,
              "operator _histogram: attributes 'bin_cnt' and 'range': expected both or neither, found bin_cnt alone"));
  CHECK_EQ(refusal("_histogram", {{"bin_cnt", "0"}, {"range", "(0, 1)"}}, {x}),
           refused(Code::kInvalidArgument, "operator _histogram: attribute 'bin_cnt': expected at least 1, found 0"));
  for (const char *range : {"(1, 0)", "(1)", "", "(0, inf)", "(", ",", "(0, 1, 2)"}) {
    CHECK(refusal("_histogram", {{"bin_cnt", "2"}, {"range", range}}, {x})
              .find(text(int(Code::kInvalidArgument), ": ")) == 0);
  }
  CHECK_EQ(refusal("_histogram", {}, {x, array({1}, {5})}),
           refused(Code::kShape, "bins: expected at least 2 edges, found (1,)"));
}

TEST(products_of_all_rows) {
  const Array a = array({2, 3}, {3, 1, 2, 4, 5, 6}), b = array({1, 3}, {1, 2, 3}),
              c = array({2, 3}, {1, 2, 3, 4, 5, 6});
  const AttrMap three = {{"num_args", "3"}};
  for (Dtype dtype : {Dtype::kFloat32, Dtype::kBfloat16, Dtype::kInt64}) {
    check_values("khatri_rao", OpRun("khatri_rao", three, {a.as(dtype), b.as(dtype), c.as(dtype)}).outputs()[0], {4, 3},
                 {3, 4, 18, 12, 10, 36, 4, 20, 54, 16, 50, 108});
  }
  CHECK_EQ(refusal("khatri_rao", {{"num_args", "2"}}, {a, array({2, 2}, counted(4))}),
           refused(Code::kShape, "args1: expected (?, 3), found (2, 2)"));
  CHECK_EQ(refusal("khatri_rao", {{"num_args", "1"}}, {array({3}, counted(3))}),
           refused(Code::kShape, "args0: expected 2 axes, found (3,)"));
}

TEST(windows_as_columns) {
  const Array x({1, 2, 3}, Dtype::kInt32, {1, 2, 3, 4, 5, 6});
  check_values("one axis", OpRun("im2col", {{"kernel", "(2,)"}, {"pad", "(1,)"}}, {x}).outputs()[0], {1, 4, 4},
               {0, 1, 2, 3, 1, 2, 3, 0, 0, 4, 5, 6, 4, 5, 6, 0});
  check_values("ones",
               OpRun("col2im", {{"kernel", "(2, 2)"}, {"output_size", "(3, 4)"}},
                     {Array({1, 4, 6}, Dtype::kFloat16, counted(24, 1))})
                   .outputs()[0],
               {1, 1, 3, 4}, {1, 9, 11, 9, 17, 48, 52, 33, 16, 39, 41, 24});
  const Array image({2, 2, 4, 5}, Dtype::kFloat64, spread(80, -1, 1)),
      volume({1, 2, 3, 2, 3}, Dtype::kFloat64, spread(36, -1, 1)),
      columns({2, 8, 6}, Dtype::kFloat64, spread(96, -1, 1));
  check_gradient("im2col", {{"kernel", "(2, 3)"}, {"stride", "(2, 1)"}, {"dilate", "(1, 2)"}, {"pad", "(1, 0)"}},
                 {image});
  check_gradient("im2col", {{"kernel", "(2, 1, 2)"}, {"stride", "(1, 1, 2)"}, {"pad", "(0, 0, 1)"}}, {volume});
  check_gradient("col2im", {{"kernel", "(2, 2)"}, {"stride", "(1, 2)"}, {"pad", "(0, 1)"}, {"output_size", "(3, 5)"}},
                 {columns});
}

TEST(refusals_of_windows) {
  const Array x({1, 2, 3, 4}, Dtype::kFloat32, counted(24)), columns({1, 4, 6}, Dtype::kFloat32, counted(24));
  const std::string form = "expected a number from ",
                    axes = " to 1048576 for each of one to three spatial axes, found ";
  CHECK_EQ(refusal("im2col", {{"kernel", "(2, 2)"}, {"stride", "(2,)"}}, {x}),
           refused(Code::kInvalidArgument, "operator im2col: attribute 'stride': " + form + "1" + axes + "[2]"));
  CHECK_EQ(refusal("im2col", {{"kernel", "(0, 2)"}}, {x}),
           refused(Code::kInvalidArgument, "operator im2col: attribute 'kernel': " + form + "1" + axes + "[0,2]"));
  CHECK_EQ(refusal("im2col", {{"kernel", "(2, 2)"}, {"pad", "(-1, 0)"}}, {x}),
           refused(Code::kInvalidArgument, "operator im2col: attribute 'pad': " + form + "0" + axes + "[-1,0]"));
  CHECK_EQ(refusal("im2col", {{"kernel", "(2, 5)"}}, {x}),
           refused(Code::kShape, "attribute 'kernel': expected a window of at most 4 on spatial axis 1, found 5"));
  CHECK_EQ(refusal("im2col", {{"kernel", "(2,)"}}, {x}),
           refused(Code::kShape, "data: expected 3 axes, found (1, 2, 3, 4)"));
  CHECK_EQ(refusal("col2im", {{"kernel", "(2, 2)"}, {"output_size", "(3, 3)"}}, {columns}),
           refused(Code::kShape, "data: expected (N, a multiple of 4, 4), found (1, 4, 6)"));
  CHECK_EQ(refusal("col2im", {{"kernel", "(2, 2)"}, {"output_size", "(3,)"}}, {columns}),
           refused(Code::kInvalidArgument,
                   "operator col2im: attribute 'output_size': expected 2 numbers of at least 1, found [3]"));
}

TEST(random_numbers_do_not_depend_on_the_number_of_threads) {
  const Shape some{3};
  const auto parameters = [&](double a, double b) {
    return std::vector<Array>{Array(some, Dtype::kFloat32, {a, a, 2 * a}), Array(some, Dtype::kFloat32, {b, b, b})};
  };
  const std::vector<Array> one = {parameters(3, 0)[0]};
  const Array many(Shape{9999}, Dtype::kInt32, spread(9999, 0, 1000)),
      rows(Shape{9, 1}, Dtype::kFloat64, spread(9, 0, 1));
  const AttrMap shape{{"shape", "(20001,)"}}, numbers{{"shape", "(5000, 3)"}};
  struct Drawn {
    const char *op;
    AttrMap attrs;
    std::vector<Array> inputs;
  };
  const std::vector<Drawn> all = {{"_random_uniform", shape, {}},
                                  {"_random_normal", {{"shape", "(20001,)"}, {"dtype", "float64"}}, {}},
                                  {"_random_exponential", {{"shape", "(20001,)"}, {"dtype", "float16"}}, {}},
                                  {"_random_gamma", shape, {}},
                                  {"_random_randint", {{"shape", "(20001,)"}, {"low", "0"}, {"high", "9"}}, {}},
                                  {"_sample_uniform", numbers, parameters(-1, 1)},
                                  {"_sample_normal", numbers, parameters(-1, 1)},
                                  {"_sample_poisson", numbers, one},
                                  {"_sample_negative_binomial", numbers, parameters(3, 0.5)},
                                  {"_sample_generalized_negative_binomial", numbers, parameters(3, 0.5)},
                                  {"_sample_multinomial", numbers, {rows}},
                                  {"_shuffle", {}, {many}},
                                  {"_sample_unique_zipfian", {{"range_max", "99"}, {"shape", "(5000, 9)"}}, {}}};
  for (const Drawn &d : all) {
    std::vector<Array> first;
    for (int num_threads : {1, 2, 3, 7}) {
      RunOptions how;
      how.num_threads = num_threads;
      how.seed = 42;
      const OpRun run(d.op, d.attrs, d.inputs, how);
      if (num_threads == 1) first = run.outputs();
      for (size_t i = 0; i < first.size(); ++i) CHECK(run.outputs()[i].same_bits(first[i]));
    }
  }
}

UNIT_MAIN()
