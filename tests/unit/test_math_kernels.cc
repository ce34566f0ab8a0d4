// SPDX-License-Identifier: Apache-2.0
// Kernels of point-wise operators, reductions, movement and losses: forward against plain formulas, backward against
// central differences, in several types, with guard bytes around every array.
#include <limits>

#include "cpu/op/pointwise_loops.hpp"
#include "cpu/simd.hpp"
#include "op/fused_pointwise.hpp"
#include "support/run_kernel.hpp"

using namespace cohort;
using unit::Array;
using unit::check_close;
using unit::check_gradient;
using unit::OpRun;
using unit::RunOptions;
using unit::spread;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

struct Tolerance {
  Dtype dtype;
  double rtol, atol;
};
// float: a few units in the last place; 16-bit floats: one rounding of the input and one of the output.
const Tolerance kFloats[] = {{Dtype::kFloat64, 1e-13, 1e-15},
                             {Dtype::kFloat32, 2e-6, 1e-7},
                             {Dtype::kFloat16, 1e-3, 1e-7},
                             {Dtype::kBfloat16, 8e-3, 1e-7}};

struct Unary {
  const char *name;
  AttrMap attrs;
  double low, high;
  double (*f)(double);
  bool gradient;
};

const Unary kUnary[] = {
    {"negative", {}, -3, 3, [](double x) { return -x; }, true},
    {"reciprocal", {}, 0.2, 3, [](double x) { return 1 / x; }, true},
    {"abs", {}, -3, 3, [](double x) { return std::fabs(x); }, true},
    {"sign", {}, -3, 3, [](double x) { return double(x > 0) - double(x < 0); }, false},
    {"round", {}, -3, 3, [](double x) { return std::round(x); }, false},
    {"rint", {}, -3, 3, [](double x) { return std::ceil(x - 0.5); }, false},
    {"ceil", {}, -3, 3, [](double x) { return std::ceil(x); }, false},
    {"floor", {}, -3, 3, [](double x) { return std::floor(x); }, false},
    {"trunc", {}, -3, 3, [](double x) { return std::trunc(x); }, false},
    {"fix", {}, -3, 3, [](double x) { return std::trunc(x); }, false},
    {"square", {}, -3, 3, [](double x) { return x * x; }, true},
    {"sqrt", {}, 0.1, 9, [](double x) { return std::sqrt(x); }, true},
    {"rsqrt", {}, 0.1, 9, [](double x) { return 1 / std::sqrt(x); }, true},
    {"cbrt", {}, 0.1, 9, [](double x) { return std::cbrt(x); }, true},
    {"rcbrt", {}, 0.1, 9, [](double x) { return 1 / std::cbrt(x); }, true},
    {"exp", {}, -5, 5, [](double x) { return std::exp(x); }, true},
    {"expm1", {}, -2, 2, [](double x) { return std::expm1(x); }, true},
    {"log", {}, 0.1, 50, [](double x) { return std::log(x); }, true},
    {"log10", {}, 0.1, 50, [](double x) { return std::log10(x); }, true},
    {"log2", {}, 0.1, 50, [](double x) { return std::log2(x); }, true},
    {"log1p", {}, -0.8, 50, [](double x) { return std::log1p(x); }, true},
    {"sin", {}, -4, 4, [](double x) { return std::sin(x); }, true},
    {"cos", {}, -4, 4, [](double x) { return std::cos(x); }, true},
    {"tan", {}, -1.3, 1.3, [](double x) { return std::tan(x); }, true},
    {"arcsin", {}, -0.9, 0.9, [](double x) { return std::asin(x); }, true},
    {"arccos", {}, -0.9, 0.9, [](double x) { return std::acos(x); }, true},
    {"arctan", {}, -3, 3, [](double x) { return std::atan(x); }, true},
    {"sinh", {}, -3, 3, [](double x) { return std::sinh(x); }, true},
    {"cosh", {}, -3, 3, [](double x) { return std::cosh(x); }, true},
    {"tanh", {}, -5, 5, [](double x) { return std::tanh(x); }, true},
    {"arcsinh", {}, -3, 3, [](double x) { return std::asinh(x); }, true},
    {"arccosh", {}, 1.2, 5, [](double x) { return std::acosh(x); }, true},
    {"arctanh", {}, -0.9, 0.9, [](double x) { return std::atanh(x); }, true},
    {"degrees", {}, -3, 3, [](double x) { return x * 180 / M_PI; }, true},
    {"radians", {}, -180, 180, [](double x) { return x * M_PI / 180; }, true},
    {"gamma", {}, 0.4, 5, [](double x) { return std::tgamma(x); }, true},
    {"gammaln", {}, 0.4, 20, [](double x) { return std::lgamma(x); }, true},
    {"erf", {}, -3, 3, [](double x) { return std::erf(x); }, true},
    {"relu", {}, -3, 3, [](double x) { return std::max(x, 0.0); }, true},
    {"sigmoid", {}, -8, 8, [](double x) { return 1 / (1 + std::exp(-x)); }, true},
    {"log_sigmoid", {}, -8, 8, [](double x) { return -std::log1p(std::exp(-x)); }, true},
    {"softsign", {}, -3, 3, [](double x) { return x / (1 + std::fabs(x)); }, true},
    {"mish", {}, -4, 4, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, true},
    {"hard_sigmoid", {}, -4, 4, [](double x) { return std::max(0.0, std::min(1.0, double(0.2f) * x + 0.5)); }, true},
    {"clip",
     {{"a_min", "-1"}, {"a_max", "1.5"}},
     -3,
     3,
     [](double x) { return std::min(std::max(x, -1.0), 1.5); },
     true},
    {"smooth_l1",
     {{"scalar", "2"}},
     -1,
     1,
     [](double x) { return std::fabs(x) > 0.25 ? std::fabs(x) - 0.125 : 2 * x * x; },
     true},
    {"logical_not", {}, -1, 1, [](double x) { return double(x == 0); }, false},
    {"zeros_like", {}, -1, 1, [](double) { return 0.0; }, false},
    {"ones_like", {}, -1, 1, [](double) { return 1.0; }, false},
    {"_plus_scalar", {{"scalar", "1.5"}}, -3, 3, [](double x) { return x + 1.5; }, true},
    {"_minus_scalar", {{"scalar", "1.5"}}, -3, 3, [](double x) { return x - 1.5; }, true},
    {"_rminus_scalar", {{"scalar", "1.5"}}, -3, 3, [](double x) { return 1.5 - x; }, true},
    {"_mul_scalar", {{"scalar", "-1.5"}}, -3, 3, [](double x) { return x * -1.5; }, true},
    {"_div_scalar", {{"scalar", "1.5"}}, -3, 3, [](double x) { return x / 1.5; }, true},
    {"_rdiv_scalar", {{"scalar", "1.5"}}, 0.3, 3, [](double x) { return 1.5 / x; }, true},
    {"_power_scalar", {{"scalar", "2.5"}}, 0.3, 3, [](double x) { return std::pow(x, 2.5); }, true},
    {"_power_scalar", {{"scalar", "2"}}, -3, 3, [](double x) { return x * x; }, true},
    {"_rpower_scalar", {{"scalar", "1.5"}}, -3, 3, [](double x) { return std::pow(1.5, x); }, true},
    {"_maximum_scalar", {{"scalar", "0.5"}}, -3, 3, [](double x) { return std::max(x, 0.5); }, true},
    {"_minimum_scalar", {{"scalar", "0.5"}}, -3, 3, [](double x) { return std::min(x, 0.5); }, true},
    {"_hypot_scalar", {{"scalar", "1.5"}}, -3, 3, [](double x) { return std::hypot(x, 1.5); }, true},
    {"_greater_scalar", {{"scalar", "0.5"}}, -3, 3, [](double x) { return double(x > 0.5); }, false},
    {"_lesser_equal_scalar", {{"scalar", "0.5"}}, -3, 3, [](double x) { return double(x <= 0.5); }, false},
    {"_logical_xor_scalar", {{"scalar", "1"}}, -3, 3, [](double x) { return double(x == 0); }, false},
};

// The change of f if its argument is off by one rounding error of this type.
double argument_error(const Unary &op, double x, double relative) {
  const double h = std::fabs(x) * relative + 1e-300;
  const double above = op.f(std::min(x + h, op.high)), below = op.f(std::max(x - h, op.low)), here = op.f(x);
  return std::max(std::fabs(above - here), std::fabs(below - here));
}

}  // namespace

// Sizes: one element, less than a vector, odd ones, more than a block.
TEST(functions_of_one_operand_give_their_formula_in_all_float_types) {
  for (const Unary &op : kUnary) {
    for (const Tolerance &type : kFloats) {
      for (int64_t count : {1, 7, 33, 1500}) {
        const Array x(Shape{count}, type.dtype, spread(count, op.low, op.high));
        RunOptions in_place;
        in_place.in_place = true;
        const OpRun run(op.name, op.attrs, {x}), other(op.name, op.attrs, {x}, in_place);
        CHECK(run.outputs()[0].same_bits(other.outputs()[0]));
        for (int64_t i = 0; i < count; ++i) {
          const double expected = op.f(x.at(i));
          check_close(text(op.name, " of ", type.dtype, " at ", x.at(i)), run.outputs()[0].at(i), expected, type.rtol,
                      type.atol + argument_error(op, x.at(i), 1e-7 * (type.dtype == Dtype::kFloat32)));
        }
      }
    }
  }
}

TEST(gradients_of_functions_of_one_operand_are_their_slopes) {
  for (const Unary &op : kUnary) {
    if (!op.gradient) continue;
    check_gradient(op.name, op.attrs, {Array(Shape{5, 7}, Dtype::kFloat64, spread(35, op.low, op.high))});
  }
}

TEST(zeros_keep_their_sign) {
  const OpRun run("expm1", {}, {Array(Shape{2}, Dtype::kFloat32, {-0.0, 0.0})});
  CHECK(std::signbit(run.outputs()[0].at(0)));
  CHECK(!std::signbit(run.outputs()[0].at(1)));
}

TEST(a_window_of_channels_may_exceed_them) {
  check_gradient("LRN", {{"nsize", "2147483647"}, {"alpha", "1e9"}},
                 {Array(Shape{1, 3, 2, 2}, Dtype::kFloat64, spread(12, 0.5, 2))});
}

TEST(inverse_error_function_undoes_the_error_function) {
  for (double x : {-0.999999, -0.9, -0.5, -1e-3, 0.0, 1e-9, 0.3, 0.7, 0.99, 0.9999999}) {
    const OpRun run("erfinv", {}, {Array(Shape{1}, Dtype::kFloat64, {x})});
    check_close("erf(erfinv)", std::erf(run.outputs()[0].at(0)), x, 1e-13, 1e-16);
  }
  const std::vector<double> near = {1e-9, 0.25, 0.9977, 0.9999992, 1 - std::ldexp(1, -40), 1 - std::ldexp(1, -53)};
  const OpRun found("erfinv", {}, {Array(Shape{6}, Dtype::kFloat64, near)});
  check_close("erfinv", found.outputs()[0],
              {8.8622692545275806908e-10, 0.22531205501217810473, 2.1556029330491552791, 3.4898317878044596129,
               5.0512540852493899671, 5.8635847487551679272},
              5e-16, 0);
  const OpRun ends("erfinv", {}, {Array(Shape{3}, Dtype::kFloat32, {-1, 1, 2})});
  check_close("erfinv at the ends", ends.outputs()[0], {-kInf, kInf, kNaN}, 0, 0);
  check_gradient("erfinv", {}, {Array(Shape{9}, Dtype::kFloat64, spread(9, -0.9, 0.9))});
}

// In float to a few units in the last place: poles and zeros, both sides of them, and results that overflow float.
TEST(gamma_functions_in_float_are_those_in_double_rounded) {
  std::vector<double> x = {kInf, -kInf, kNaN, 0,     -0.0,   -1,    -2,   -3e9, 1,     2,
                           3,    5,     13,   1e-45, -1e-45, 1e-39, 3e38, 40,   -45.5, -200.5};
  for (double at : {0.0, 0.75, 1.0, 2.0, 2.25, 3.0, -2.0, -2.4570247, -2.7476826, -3.1435807, 35.04}) {
    for (double away : {1e-7, 1e-5, 1e-3, 0.1}) x.insert(x.end(), {double(float(at - away)), double(float(at + away))});
  }
  for (int i = 0; i < 400; ++i) x.push_back(double(float(-20 + 0.137 * i)));
  const Array in(Shape{int64_t(x.size())}, Dtype::kFloat32, x);
  const OpRun gamma("gamma", {}, {in}), log("gammaln", {}, {in});
  for (size_t i = 0; i < x.size(); ++i) {
    const double given = in.at(int64_t(i));
    const float rounded = float(std::tgamma(given)), of_log = float(std::lgamma(given));
    check_close(text("gamma of ", given), gamma.outputs()[0].at(int64_t(i)), double(rounded), 1.2e-7, 1.5e-45);
    check_close(text("gammaln of ", given), log.outputs()[0].at(int64_t(i)), double(of_log), 1.2e-7, 0);
  }
}

TEST(special_values_pass_through_the_float_functions) {
  struct Case {
    const char *name;
    std::vector<double> expected;
  };
  const std::vector<double> x = {0, -0.0, kInf, -kInf, kNaN, 88.8, -104.5, 1e30, -1e30};
  const Case cases[] = {
      {"exp", {1, 1, kInf, 0, kNaN, kInf, 0, kInf, 0}},
      {"tanh", {0, 0, 1, -1, kNaN, 1, -1, 1, -1}},
      {"sigmoid", {0.5, 0.5, 1, 0, kNaN, 1, 0, 1, 0}},
      {"log", {-kInf, -kInf, kInf, kNaN, kNaN, std::log(88.8), kNaN, std::log(1e30), kNaN}},
      {"log1p", {0, 0, kInf, kNaN, kNaN, std::log1p(88.8), kNaN, std::log1p(1e30), kNaN}},
      {"erf", {0, 0, 1, -1, kNaN, 1, -1, 1, -1}},
      {"relu", {0, 0, kInf, 0, kNaN, 88.8, 0, 1e30, 0}},
      {"sqrt", {0, 0, kInf, kNaN, kNaN, std::sqrt(88.8), kNaN, std::sqrt(1e30), kNaN}},
  };
  for (const Case &c : cases) {
    for (int copies : {1, 8}) {  // in the vector part of the loop and in its remainder
      std::vector<double> in, out;
      for (int i = 0; i < copies; ++i) {
        in.insert(in.end(), x.begin(), x.end());
        out.insert(out.end(), c.expected.begin(), c.expected.end());
      }
      const OpRun run(c.name, {}, {Array(Shape{int64_t(in.size())}, Dtype::kFloat32, in)});
      check_close(c.name, run.outputs()[0], out, 1e-6, 0);
    }
  }
}

TEST(integers_wrap_around_and_keep_large_values_exact) {
  const double big = 9007199254740992.0;  // 2^53
  const OpRun plus("_plus_scalar", {{"scalar", "1"}}, {Array(Shape{1}, Dtype::kInt64, {big})});
  CHECK_EQ(static_cast<const int64_t *>(plus.outputs()[0].data())[0], (int64_t(1) << 53) + 1);
  const OpRun sum("elemwise_add", {},
                  {Array(Shape{2}, Dtype::kUint8, {200, 255}), Array(Shape{2}, Dtype::kUint8, {100, 1})});
  check_close("uint8", sum.outputs()[0], {44, 0}, 0, 0);
  const OpRun square("square", {}, {Array(Shape{3}, Dtype::kInt32, {-3, 46341, 7})});
  check_close("int32", square.outputs()[0], {9, -2147479015, 49}, 0, 0);
  const OpRun mod("_mod", {},
                  {Array(Shape{4}, Dtype::kInt32, {7, -7, 7, 5}), Array(Shape{4}, Dtype::kInt32, {3, 3, -3, 0})});
  check_close("mod", mod.outputs()[0], {1, 2, -2, 0}, 0, 0);
  const OpRun div("elemwise_div", {},
                  {Array(Shape{4}, Dtype::kInt8, {7, -7, 5, -128}), Array(Shape{4}, Dtype::kInt8, {2, 2, 0, -1})});
  check_close("div", div.outputs()[0], {3, -3, 0, -128}, 0, 0);
}

namespace {

struct Binary {
  const char *name, *broadcast_name;
  double low, high;
  double (*f)(double, double);
  bool gradient;
};

const Binary kBinary[] = {
    {"elemwise_add", "broadcast_add", -3, 3, [](double a, double b) { return a + b; }, true},
    {"elemwise_sub", "broadcast_sub", -3, 3, [](double a, double b) { return a - b; }, true},
    {"elemwise_mul", "broadcast_mul", -3, 3, [](double a, double b) { return a * b; }, true},
    {"elemwise_div", "broadcast_div", 0.3, 3, [](double a, double b) { return a / b; }, true},
    {"_mod", "broadcast_mod", 0.3, 3, [](double a, double b) { return std::fmod(a, b); }, false},
    {"_power", "broadcast_power", 0.3, 3, [](double a, double b) { return std::pow(a, b); }, true},
    {"_maximum", "broadcast_maximum", -3, 3, [](double a, double b) { return std::max(a, b); }, true},
    {"_minimum", "broadcast_minimum", -3, 3, [](double a, double b) { return std::min(a, b); }, true},
    {"_hypot", "broadcast_hypot", -3, 3, [](double a, double b) { return std::hypot(a, b); }, true},
    {"_equal", "broadcast_equal", -3, 3, [](double a, double b) { return double(a == b); }, false},
    {"_not_equal", "broadcast_not_equal", -3, 3, [](double a, double b) { return double(a != b); }, false},
    {"_greater", "broadcast_greater", -3, 3, [](double a, double b) { return double(a > b); }, false},
    {"_greater_equal", "broadcast_greater_equal", -3, 3, [](double a, double b) { return double(a >= b); }, false},
    {"_lesser", "broadcast_lesser", -3, 3, [](double a, double b) { return double(a < b); }, false},
    {"_lesser_equal", "broadcast_lesser_equal", -3, 3, [](double a, double b) { return double(a <= b); }, false},
    {"_logical_and", "broadcast_logical_and", -3, 3, [](double a, double b) { return double(a != 0 && b != 0); },
     false},
    {"_logical_or", "broadcast_logical_or", -3, 3, [](double a, double b) { return double(a != 0 || b != 0); }, false},
    {"_logical_xor", "broadcast_logical_xor", -3, 3, [](double a, double b) { return double((a != 0) != (b != 0)); },
     false},
};

// Element `index` of the broadcast array in an array of `shape`, axes aligned from the last.
int64_t broadcast_index(int64_t index, const Shape &to, const Shape &shape) {
  int64_t at = 0, stride = 1;
  for (int axis = 1; axis <= to.rank(); ++axis) {
    const int64_t length = axis <= shape.rank() ? shape[shape.rank() - axis] : 1;
    const int64_t k = index % to[to.rank() - axis];
    index /= to[to.rank() - axis];
    if (length > 1) at += k * stride;
    stride *= length;
  }
  return at;
}

struct ShapePair {
  Shape lhs, rhs, out;
};
const ShapePair kPairs[] = {
    {{3, 4}, {3, 4}, {3, 4}}, {{3, 4}, {1, 4}, {3, 4}},          {{3, 4}, {3, 1}, {3, 4}},
    {{3, 1}, {1, 4}, {3, 4}}, {{2, 1, 3}, {1, 4, 1}, {2, 4, 3}}, {{2, 3, 1, 2}, {1, 3, 2, 1}, {2, 3, 2, 2}},
    {{4}, {3, 4}, {3, 4}},    {{3, 4}, {1, 1}, {3, 4}},          {{2, 5, 7, 3}, {1, 5, 1, 1}, {2, 5, 7, 3}}};

}  // namespace

TEST(functions_of_two_operands_give_their_formula_also_where_they_broadcast) {
  for (const Binary &op : kBinary) {
    for (const Tolerance &type : kFloats) {
      for (const ShapePair &pair : kPairs) {
        const Array a(pair.lhs, type.dtype, spread(pair.lhs.size(), op.low, op.high, 1));
        const Array b(pair.rhs, type.dtype, spread(pair.rhs.size(), op.low, op.high, 2));
        for (const char *name : {op.name, op.broadcast_name}) {
          if (name == op.name && pair.lhs != pair.rhs) continue;
          const OpRun run(name, {}, {a, b});
          const Array &out = run.outputs()[0];
          CHECK_EQ(out.shape(), pair.out);
          for (int64_t i = 0; i < out.size(); ++i) {
            const double x = a.at(broadcast_index(i, pair.out, pair.lhs)),
                         y = b.at(broadcast_index(i, pair.out, pair.rhs));
            // A result near zero has lost the digits of its operands.
            check_close(text(name, " of ", type.dtype), out.at(i), op.f(x, y), type.rtol,
                        type.atol + 3 * type.rtol * 1e-1);
          }
        }
      }
    }
  }
}

TEST(gradients_of_two_operands_are_summed_where_they_broadcast) {
  for (const Binary &op : kBinary) {
    if (!op.gradient) continue;
    for (const ShapePair &pair : kPairs) {
      const Array a(pair.lhs, Dtype::kFloat64, spread(pair.lhs.size(), op.low, op.high, 1));
      const Array b(pair.rhs, Dtype::kFloat64, spread(pair.rhs.size(), op.low, op.high, 2));
      check_gradient(op.broadcast_name, {}, {a, b});
      if (pair.lhs == pair.rhs && std::string(op.name) != "elemwise_add") check_gradient(op.name, {}, {a, b});
    }
  }
}

TEST(add_n_adds_from_left_to_right_in_place_of_the_first) {
  for (const Tolerance &type : kFloats) {
    for (int num_args : {1, 2, 3, 5}) {
      std::vector<Array> inputs;
      std::vector<double> expected(700, 0.0);
      for (int i = 0; i < num_args; ++i) {
        inputs.emplace_back(Shape{7, 100}, type.dtype, spread(700, -1, 1, i));
        for (size_t k = 0; k < expected.size(); ++k) expected[k] += inputs.back().at(int64_t(k));
      }
      RunOptions in_place;
      in_place.in_place = true;
      const OpRun run("add_n", {}, inputs), other("add_n", {}, inputs, in_place);
      check_close("add_n", run.outputs()[0], expected, type.rtol, type.rtol);
      CHECK(run.outputs()[0].same_bits(other.outputs()[0]));
    }
  }
}

// ---- fused --------------------------------------------------------------------------------------------------------

namespace {

// A small LSTM cell: several outputs, values used twice, inputs read late.
FusedPointwiseAttrs lstm_cell() {
  using P = PointwiseCode;
  FusedPointwiseAttrs cell;
  cell.num_inputs = 5;  // four gates and the state
  cell.instructions = {
      {P::kSigmoid, 0}, {P::kSigmoid, 1}, {P::kTanh, 2},  {P::kSigmoid, 3}, {P::kMul, 6, 4},
      {P::kMul, 5, 7},  {P::kAdd, 9, 10}, {P::kTanh, 11}, {P::kMul, 8, 12}, {P::kMulScalar, 13, -1, -1, 2},
      {P::kSub, 14, 0}};
  cell.outputs = {11, 13, 15, 5};
  return cell;
}

std::vector<std::vector<double>> lstm_cell_by_hand(const std::vector<Array> &in) {
  std::vector<std::vector<double>> out(4);
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  for (int64_t k = 0; k < in[0].size(); ++k) {
    const double i = sigmoid(in[0].at(k)), f = sigmoid(in[1].at(k)), g = std::tanh(in[2].at(k)),
                 o = sigmoid(in[3].at(k));
    const double c = f * in[4].at(k) + i * g, h = o * std::tanh(c);
    out[0].push_back(c);
    out[1].push_back(h);
    out[2].push_back(2 * h - in[0].at(k));
    out[3].push_back(i);
  }
  return out;
}

}  // namespace

TEST(fused_instructions_give_what_single_operators_give) {
  const auto attrs = std::make_shared<FusedPointwiseAttrs>(lstm_cell());
  for (const Tolerance &type : kFloats) {
    for (int64_t count : {1, 5, 32, 1000, 40000}) {
      std::vector<Array> inputs;
      for (int i = 0; i < 5; ++i) inputs.emplace_back(Shape{count}, type.dtype, spread(count, -2, 2, i));
      const auto expected = lstm_cell_by_hand(inputs);
      const std::vector<std::pair<Shape, Dtype>> outputs(4, {Shape{count}, type.dtype});
      std::vector<Array> fresh = inputs;
      const unit::KernelRun apart("_fused_pointwise", Attrs(attrs), fresh, outputs, {});
      for (size_t o = 0; o < 4; ++o) {
        check_close(text("output ", o, " of ", type.dtype), apart.outputs[o], expected[o], 3 * type.rtol,
                    3 * type.rtol);
      }
      // Every output in the memory of every input: the same bits, on any number of threads.
      for (int input = 0; input < 5; ++input) {
        for (int output = 0; output < 4; ++output) {
          RunOptions how;
          how.in_place = true;
          how.num_threads = 1 + input % 3;
          fresh = inputs;
          const unit::KernelRun run("_fused_pointwise", Attrs(attrs), fresh, outputs, how, nullptr, nullptr,
                                    {{input, output}});
          for (size_t o = 0; o < 4; ++o) CHECK(run.outputs[o].same_bits(apart.outputs[o]));
        }
      }
    }
  }
}

TEST(fused_outputs_that_nobody_wants_are_left_out) {
  const auto attrs = std::make_shared<FusedPointwiseAttrs>(lstm_cell());
  std::vector<Array> inputs;
  for (int i = 0; i < 5; ++i) inputs.emplace_back(Shape{100}, Dtype::kFloat32, spread(100, -2, 2, i));
  const auto expected = lstm_cell_by_hand(inputs);
  const std::vector<std::pair<Shape, Dtype>> outputs(4, {Shape{100}, Dtype::kFloat32});
  for (size_t only = 0; only < 4; ++only) {
    std::vector<bool> wanted(4, false);
    wanted[only] = true;
    if (only != 0) wanted[0] = only != 3;
    const unit::KernelRun run("_fused_pointwise", Attrs(attrs), inputs, outputs, {}, nullptr, nullptr, {}, wanted);
    check_close("wanted", run.outputs[only], expected[only], 1e-5, 1e-5);
  }
}

TEST(fused_programs_that_cannot_be_are_refused) {
  using P = PointwiseCode;
  auto attrs = std::make_shared<FusedPointwiseAttrs>();
  attrs->num_inputs = 1;
  attrs->instructions = {{P::kAdd, 0, 1}};
  attrs->outputs = {1};
  std::vector<Array> inputs = {Array(Shape{3}, Dtype::kFloat32)};
  CHECK_THROWS(unit::KernelRun("_fused_pointwise", Attrs(attrs), inputs, {{Shape{3}, Dtype::kFloat32}}, {}), Error,
               "instruction 0 (Add) reads value 1");
  attrs->instructions = {{P::kExp, 0}};
  CHECK_THROWS(unit::KernelRun("_fused_pointwise", Attrs(attrs), inputs, {{Shape{4}, Dtype::kFloat32}}, {}), Error,
               "expected 4 elements");
}

// ---- instruction sets ---------------------------------------------------------------------------------------------

// Compares the best version for this processor with the plain one (the double loop), for every length of the remainder.
TEST(vector_loops_agree_with_plain_ones_at_every_length) {
  for (int code = 0; code < kNumPointwiseCodes; ++code) {
    const PointwiseCode c = PointwiseCode(code);
    for (int64_t count = 1; count < 70; count += 3) {
      std::vector<std::vector<double>> wide;
      std::vector<std::vector<float>> narrow;
      for (int i = 0; i < 3; ++i) {
        wide.push_back(spread(count, 0.25, 0.75, i));
        narrow.emplace_back(wide.back().begin(), wide.back().end());
        wide.back().assign(narrow.back().begin(), narrow.back().end());
      }
      std::vector<double> expected(size_t(count), 0.0);
      std::vector<float> found(size_t(count) + 1, 42.0f);
      pointwise_loop<double>(c)(wide[0].data(), wide[1].data(), wide[2].data(), 0.25, 0.5, expected.data(), count);
      pointwise_loop<float>(c)(narrow[0].data(), narrow[1].data(), narrow[2].data(), 0.25f, 0.5f, found.data(), count);
      for (size_t i = 0; i < size_t(count); ++i) {
        if (std::isnan(expected[i])) continue;  // outside the function's domain
        check_close(text(pointwise_name(c), " of ", count, " elements"), found[i], expected[i], 2e-5, 1e-6);
      }
      CHECK_EQ(found[size_t(count)], 42.0f);
    }
  }
}

// One in a few thousand of all floats, and the ends of each range, including the smallest numbers; errors are counted
// in units in the last place of the result. A sigmoid rounds two more times than its exponential, and may be 0 where
// the result is no normal number.
TEST(exponentials_and_logarithms_are_right_to_few_units_of_the_last_place) {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const struct {
    PointwiseCode code;
    double (*function)(double);
    double units, smallest;
  } cases[] = {{PointwiseCode::kExp, [](double x) { return std::exp(x); }, 2, 0},
               {PointwiseCode::kExpLessScalar, [](double x) { return std::exp(double(float(x) - 0.75f)); }, 2, 0},
               {PointwiseCode::kLog, [](double x) { return std::log(x); }, 1, 0},
               {PointwiseCode::kTanh, [](double x) { return std::tanh(x); }, 3, 0},
               {PointwiseCode::kSigmoid, sigmoid, 3, std::numeric_limits<float>::min()}};
  std::vector<float> x;
  for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += 4093) {
    const uint32_t of_one = uint32_t(bits);
    float one;
    std::memcpy(&one, &of_one, 4);
    x.push_back(one);
  }
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float one : {0.0f, 1e-45f, 1.1754942e-38f, 1.17549435e-38f, 0.70710677f, 0.70710683f, 1.0f, 87.33654f,
                          88.72283f, 88.72284f, 103.97207f, 103.97209f, 3.4028235e38f, infinity}) {
    x.push_back(one);
    x.push_back(-one);
  }
  x.push_back(std::numeric_limits<float>::quiet_NaN());
  std::vector<float> y(x.size());
  for (const auto &c : cases) {
    pointwise_loop<float>(c.code)(x.data(), nullptr, nullptr, 0.75f, 0.0f, y.data(), int64_t(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = c.function(double(x[i]));
      const float rounded = float(exact);
      if (std::isnan(rounded) || std::isinf(rounded)) {
        if (std::isnan(rounded) ? !std::isnan(y[i]) : y[i] != rounded) {
          unit::fail(__FILE__, __LINE__, text(pointwise_name(c.code), "(", x[i], "): ", y[i], ", not ", rounded));
        }
        continue;
      }
      if (std::fabs(exact) < c.smallest && y[i] < float(c.smallest)) continue;
      const double magnitude = std::max(std::fabs(exact), double(std::numeric_limits<float>::min()));
      const double unit = std::ldexp(1.0, std::ilogb(magnitude) - 23);
      if (!(std::fabs(double(y[i]) - exact) <= c.units * unit)) {
        unit::fail(__FILE__, __LINE__, text(pointwise_name(c.code), "(", x[i], "): ", y[i], ", not ", exact));
      }
    }
  }
}

// Loops use a shorter formula if it holds for all numbers of a vector: both give the same bits.
TEST(no_element_depends_on_its_neighbours) {
  constexpr int64_t kCount = 1500;
  std::vector<float> usual(kCount), mixed, expected(kCount), found(kCount);
  const float infinity = std::numeric_limits<float>::infinity();
  const float unusual[] = {0.0f, -infinity, infinity, 1e-40f, std::numeric_limits<float>::quiet_NaN(), 1e30f, -200.0f};
  for (const PointwiseCode code : {PointwiseCode::kExp, PointwiseCode::kExpLessScalar, PointwiseCode::kTanh,
                                   PointwiseCode::kSigmoid, PointwiseCode::kLog}) {
    for (int64_t i = 0; i < kCount; ++i) {
      usual[size_t(i)] = code == PointwiseCode::kLog    ? std::ldexp(0.6f + 0.0007f * float(i), int(i % 250) - 125)
                         : code == PointwiseCode::kTanh ? 0.0132f * float(i - kCount / 2)
                                                        : 0.115f * float(i - kCount / 2);
    }
    mixed = usual;
    for (size_t i = 0; i < mixed.size(); i += 100) mixed[i] = unusual[i / 100 % std::size(unusual)];
    pointwise_loop<float>(code)(usual.data(), nullptr, nullptr, 0.25f, 0.0f, expected.data(), kCount);
    pointwise_loop<float>(code)(mixed.data(), nullptr, nullptr, 0.25f, 0.0f, found.data(), kCount);
    for (size_t i = 0; i < found.size(); ++i) {
      if (i % 100 == 0) continue;
      if (std::memcmp(&expected[i], &found[i], sizeof(float)) == 0) continue;
      unit::fail(__FILE__, __LINE__, text(pointwise_name(code), "(", usual[i], "): ", found[i], ", not ", expected[i]));
    }
  }
}

UNIT_MAIN()
