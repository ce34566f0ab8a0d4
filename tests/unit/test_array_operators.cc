// SPDX-License-Identifier: Apache-2.0
// Operators that order, repeat, pad, mark and look up elements: what files of golden cases do not hold (NaN, ties,
// empty sequences, indices out of range, 16-bit floats, several threads), and their refusals.
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

// "CODE: message" of what making or running the operator throws; "" if it runs.
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
  CHECK_EQ(refusal("sort", {{"axis", "2"}}, {x}),
           refused(Code::kInvalidArgument, "axis: axis 2 is outside an array of 2 axes"));
  CHECK_EQ(
      refusal("topk", {{"ret_typ", "values"}}, {x}),
      refused(
          Code::kInvalidArgument,
          "operator topk: attribute 'ret_typ': expected one of 'both', 'indices', 'mask', 'value', found 'values'"));
}

UNIT_MAIN()
