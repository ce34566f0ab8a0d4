// SPDX-License-Identifier: Apache-2.0
#include "op/pointwise.hpp"

#include <algorithm>
#include <unordered_map>

#include "op/activation.hpp"

namespace cohort {
namespace {

// Index of a gradient's operand: the head gradient, an input of the operator, or its output.
enum OperandIndex : int { kNothing = -1, kHead = 0, kIn0 = 1, kIn1 = 2, kIn2 = 3, kOut = 4 };

struct Term {
  PointwiseCode code;
  OperandIndex a = kHead, b = kNothing, c = kNothing;
};

using P = PointwiseCode;
using Words = std::vector<const char *>;

struct Rules {
  std::vector<std::unique_ptr<PointwiseRule>> all;
  std::unordered_map<std::string, const PointwiseRule *> by_name;
};

Rules &rules() {  // possibly incomplete; other code calls defined_rules()
  static Rules *const instance = new Rules;
  return *instance;
}

// `of` lists the inputs that get a gradient, with one term each; empty: no gradient.
PointwiseRule &add_rule(const char *name, PointwiseRule::Form form, int num_inputs, P code, const std::vector<int> &of,
                        const std::vector<Term> &terms) {
  auto rule = std::make_unique<PointwiseRule>();
  rule->name = name;
  rule->backward_name = std::string("_backward_") + name;
  rule->form = form;
  rule->num_inputs = num_inputs;
  rule->forward = {code, 0, num_inputs > 1 ? 1 : -1, num_inputs > 2 ? 2 : -1};
  rule->numbers = nullptr;
  if (!of.empty()) {
    Gradient &g = rule->gradient;
    g.kind = Gradient::Kind::kKernel;
    g.of = of;
    bool used[5] = {true, false, false, false, false};
    for (const Term &t : terms) {
      for (OperandIndex o : {t.a, t.b, t.c}) {
        if (o != kNothing) used[o] = true;
      }
    }
    int place[5] = {0, -1, -1, -1, -1}, next = 1;
    for (int input = 0; input < 3; ++input) {
      if (!used[kIn0 + input]) continue;
      place[kIn0 + input] = next++;
      g.inputs.push_back(input);
    }
    if (used[kOut]) {
      place[kOut] = next++;
      g.outputs.push_back(0);
    }
    const auto index = [&](OperandIndex o) { return o == kNothing ? -1 : place[o]; };
    for (const Term &t : terms) rule->backward.push_back({t.code, index(t.a), index(t.b), index(t.c)});
  }
  PointwiseRule &added = *rule;
  rules().by_name[added.name] = &added;
  rules().by_name[added.backward_name] = &added;
  rules().all.push_back(std::move(rule));
  return added;
}

template <typename A>
OpBuilder<A> define(const PointwiseRule &rule, const Words &aliases, const char *doc) {
  OpBuilder<A> op(rule.name.c_str());
  for (const char *alias : aliases) op.alias(alias);
  op.doc(doc).gradient(rule.gradient).pointwise(rule);
  if (rule.form == PointwiseRule::Form::kElementwise) {
    op.same_shape();
    for (int input = 0; input < rule.num_inputs; ++input) op.inplace(input, 0);
    // Kernels compute the last gradient of an element first, so the first gradient may overwrite any input.
    const int num_inputs = 1 + int(rule.gradient.inputs.size() + rule.gradient.outputs.size());
    for (int input = 0; input < num_inputs && !rule.backward.empty(); ++input) op.backward_inplace(input, 0);
  }
  return op;
}

constexpr auto kElementwise = PointwiseRule::Form::kElementwise;
constexpr auto kBroadcast = PointwiseRule::Form::kBroadcast;

// ---- y = f(x) -----------------------------------------------------------------------------------------------------

// `activation`: the corresponding ActivationAttrs::Type, or -1.
void unary(const char *name, const Words &aliases, const char *doc, P code, const std::vector<Term> &slope,
           int activation = -1) {
  const PointwiseRule &rule =
      add_rule(name, kElementwise, 1, code, slope.empty() ? std::vector<int>() : std::vector<int>{0}, slope);
  OpBuilder<NoAttrs> op = define<NoAttrs>(rule, aliases, doc);
  op.input("data", "Any shape.");
  if (activation >= 0) op.activation([activation](const NoAttrs &) { return activation; }).follows();
}

void define_unary() {
  unary("zeros_like", {"_sparse_zeros_like"}, "Zeros in the shape of data.", P::kZero, {});
  unary("ones_like", {}, "Ones in the shape of data.", P::kOne, {});
  unary("negative", {"_sparse_negative"}, "-x", P::kNegative, {{P::kNegative}});
  unary("reciprocal", {}, "1 / x", P::kReciprocal, {{P::kReciprocalGrad, kHead, kOut}});
  unary("abs", {"_sparse_abs"}, "|x|", P::kAbs, {{P::kAbsGrad, kHead, kIn0}});
  unary("sign", {"_sparse_sign"}, "-1, 0 or 1", P::kSign, {});
  unary("rint", {"_sparse_rint"}, "The nearest integer; n + 0.5 is rounded to n.", P::kRint, {});
  unary("round", {"_sparse_round"}, "The nearest integer; halves are rounded away from zero.", P::kRound, {});
  unary("_contrib_round_ste", {"_sparse__contrib_round_ste"},
        "round, with a gradient that passes unchanged (straight-through).", P::kRound, {{P::kCopy}});
  unary("_contrib_sign_ste", {"_sparse__contrib_sign_ste"},
        "sign, with a gradient that passes unchanged (straight-through).", P::kSign, {{P::kCopy}});
  unary("ceil", {"_sparse_ceil"}, "The smallest integer not below x.", P::kCeil, {});
  unary("floor", {"_sparse_floor"}, "The largest integer not above x.", P::kFloor, {});
  unary("trunc", {"_sparse_trunc"}, "The integer part of x, rounded towards zero.", P::kTrunc, {});
  unary("fix", {"_sparse_fix"}, "The integer part of x, rounded towards zero.", P::kTrunc, {});
  unary("square", {"_sparse_square"}, "x^2", P::kSquare, {{P::kSquareGrad, kHead, kIn0}});
  unary("sqrt", {"_sparse_sqrt"}, "The square root.", P::kSqrt, {{P::kSqrtGrad, kHead, kOut}});
  unary("rsqrt", {"_sparse_rsqrt"}, "1 / sqrt(x)", P::kRsqrt, {{P::kRsqrtGrad, kHead, kOut}});
  unary("cbrt", {"_sparse_cbrt"}, "The cube root.", P::kCbrt, {{P::kCbrtGrad, kHead, kOut}});
  unary("rcbrt", {}, "1 / cbrt(x)", P::kRcbrt, {{P::kRcbrtGrad, kHead, kOut}});
  unary("exp", {"_sparse_exp"}, "e^x", P::kExp, {{P::kMul, kHead, kOut}});
  unary("expm1", {"_sparse_expm1"}, "e^x - 1", P::kExpm1, {{P::kExpm1Grad, kHead, kIn0}});
  unary("log", {"_sparse_log"}, "The natural logarithm.", P::kLog, {{P::kDiv, kHead, kIn0}});
  unary("log10", {"_sparse_log10"}, "The logarithm to base 10.", P::kLog10, {{P::kLog10Grad, kHead, kIn0}});
  unary("log2", {"_sparse_log2"}, "The logarithm to base 2.", P::kLog2, {{P::kLog2Grad, kHead, kIn0}});
  unary("log1p", {"_sparse_log1p"}, "log(1 + x)", P::kLog1p, {{P::kLog1pGrad, kHead, kIn0}});
  unary("sin", {"_sparse_sin"}, "The sine.", P::kSin, {{P::kSinGrad, kHead, kIn0}});
  unary("cos", {"_sparse_cos"}, "The cosine.", P::kCos, {{P::kCosGrad, kHead, kIn0}});
  unary("tan", {"_sparse_tan"}, "The tangent.", P::kTan, {{P::kTanGrad, kHead, kOut}});
  unary("arcsin", {"_sparse_arcsin"}, "The inverse sine.", P::kArcsin, {{P::kArcsinGrad, kHead, kIn0}});
  unary("arccos", {"_sparse_arccos"}, "The inverse cosine.", P::kArccos, {{P::kArccosGrad, kHead, kIn0}});
  unary("arctan", {"_sparse_arctan"}, "The inverse tangent.", P::kArctan, {{P::kArctanGrad, kHead, kIn0}});
  unary("sinh", {"_sparse_sinh"}, "The hyperbolic sine.", P::kSinh, {{P::kSinhGrad, kHead, kIn0}});
  unary("cosh", {"_sparse_cosh"}, "The hyperbolic cosine.", P::kCosh, {{P::kCoshGrad, kHead, kIn0}});
  unary("tanh", {"_sparse_tanh"}, "The hyperbolic tangent.", P::kTanh, {{P::kTanhGrad, kHead, kOut}},
        ActivationAttrs::kTanh);
  unary("arcsinh", {"_sparse_arcsinh"}, "The inverse hyperbolic sine.", P::kArcsinh, {{P::kArcsinhGrad, kHead, kIn0}});
  unary("arccosh", {"_sparse_arccosh"}, "The inverse hyperbolic cosine.", P::kArccosh,
        {{P::kArccoshGrad, kHead, kIn0}});
  unary("arctanh", {"_sparse_arctanh"}, "The inverse hyperbolic tangent.", P::kArctanh,
        {{P::kArctanhGrad, kHead, kIn0}});
  unary("degrees", {"_sparse_degrees"}, "Radians to degrees.", P::kDegrees, {{P::kDegrees}});
  unary("radians", {"_sparse_radians"}, "Degrees to radians.", P::kRadians, {{P::kRadians}});
  unary("gamma", {"_sparse_gamma", "_npx_gamma"}, "The gamma function.", P::kGamma,
        {{P::kGammaGrad, kHead, kIn0, kOut}});
  unary("gammaln", {"_sparse_gammaln", "_npx_gammaln"}, "The logarithm of |gamma(x)|.", P::kGammaln,
        {{P::kGammalnGrad, kHead, kIn0}});
  unary("erf", {"_npx_erf"}, "The error function.", P::kErf, {{P::kErfGrad, kHead, kIn0}});
  unary("erfinv", {"_npx_erfinv"}, "The inverse of the error function.", P::kErfinv, {{P::kErfinvGrad, kHead, kOut}});
  unary("relu", {"_sparse_relu"}, "max(x, 0)", P::kRelu, {{P::kReluGrad, kHead, kOut}}, ActivationAttrs::kRelu);
  unary("sigmoid", {"_sparse_sigmoid"}, "1 / (1 + exp(-x))", P::kSigmoid, {{P::kSigmoidGrad, kHead, kOut}},
        ActivationAttrs::kSigmoid);
  unary("log_sigmoid", {}, "-log(1 + exp(-x))", P::kLogSigmoid, {{P::kLogSigmoidGrad, kHead, kOut}});
  unary("softsign", {}, "x / (1 + |x|)", P::kSoftsign, {{P::kSoftsignGrad, kHead, kIn0}}, ActivationAttrs::kSoftsign);
  unary("mish", {}, "x tanh(log(1 + exp(x)))", P::kMish, {{P::kMishGrad, kHead, kIn0}});
  unary("logical_not", {}, "1 where x is 0, else 0", P::kLogicalNot, {});

  PointwiseRule &clip = add_rule("clip", kElementwise, 1, P::kClip, {0}, {{P::kClipGrad, kHead, kIn0}});
  clip.numbers = [](const void *attrs, double *s, double *t) {
    *s = static_cast<const ClipAttrs *>(attrs)->a_min;
    *t = static_cast<const ClipAttrs *>(attrs)->a_max;
  };
  define<ClipAttrs>(clip, {"_sparse_clip", "_npi_clip"}, "Limits values to the range from a_min to a_max.")
      .required(&ClipAttrs::a_min, "a_min", "The smallest value.")
      .required(&ClipAttrs::a_max, "a_max", "The largest value.")
      .input("data", "Any shape.")
      .follows();

  PointwiseRule &hard =
      add_rule("hard_sigmoid", kElementwise, 1, P::kHardSigmoid, {0}, {{P::kHardSigmoidGrad, kHead, kOut}});
  hard.numbers = [](const void *attrs, double *s, double *t) {
    *s = static_cast<const HardSigmoidAttrs *>(attrs)->alpha;
    *t = static_cast<const HardSigmoidAttrs *>(attrs)->beta;
  };
  define<HardSigmoidAttrs>(hard, {}, "max(0, min(1, alpha x + beta))")
      .attr(&HardSigmoidAttrs::alpha, "alpha", 0.2f, "The slope.")
      .attr(&HardSigmoidAttrs::beta, "beta", 0.5f, "The value at 0.")
      .input("data", "Any shape.");

  PointwiseRule &smooth = add_rule("smooth_l1", kElementwise, 1, P::kSmoothL1, {0}, {{P::kSmoothL1Grad, kHead, kIn0}});
  smooth.numbers = [](const void *attrs, double *s, double *) {
    *s = static_cast<const SmoothL1Attrs *>(attrs)->scalar;
  };
  define<SmoothL1Attrs>(smooth, {"_npx_smooth_l1"},
                        "(scalar x)^2 / 2 up to |x| = 1 / scalar^2, |x| - 0.5 / scalar^2 beyond.")
      .attr(&SmoothL1Attrs::scalar, "scalar", 1.0f, "The parts join where the absolute value of x is 1 / scalar^2.")
      .input("data", "Any shape.");
}

// ---- y = f(x, scalar) ---------------------------------------------------------------------------------------------

// As in MXNet, an integer array gives float64 unless the number is an integer, and a bool array then gives int64.
void infer_scalar_dtype(const ScalarAttrs &a, Dtypes &in, Dtypes &out) {
  if (in[0] == Dtype::kNone) in[0] = out[0];
  if (in[0] == Dtype::kNone) return;
  const bool keeps = dtype_is_float(in[0]) || (a.is_int && in[0] != Dtype::kBool);
  unify(out[0], keeps ? in[0] : a.is_int ? Dtype::kInt64 : Dtype::kFloat64, "output");
}

void same_dtype(const ScalarAttrs &, Dtypes &in, Dtypes &out) { infer_same_dtype(Attrs(), in, out); }

void scalar(const char *name, const Words &aliases, const char *doc, P code, const std::vector<Term> &slope) {
  PointwiseRule &rule =
      add_rule(name, kElementwise, 1, code, slope.empty() ? std::vector<int>() : std::vector<int>{0}, slope);
  rule.numbers = [](const void *attrs, double *s, double *) { *s = static_cast<const ScalarAttrs *>(attrs)->scalar; };
  define<ScalarAttrs>(rule, aliases, doc)
      .attr(&ScalarAttrs::scalar, "scalar", 1.0, "The other operand, a number.")
      .attr(&ScalarAttrs::is_int, "is_int", true,
            "Whether the number is an integer; otherwise integer arrays give float64.")
      .input("data", "Any shape.")
      .infer_dtype(code == P::kCopy ? std::function<void(const ScalarAttrs &, Dtypes &, Dtypes &)>(same_dtype)
                                    : infer_scalar_dtype);
}

void define_scalar() {
  scalar("_plus_scalar", {"_PlusScalar", "_scatter_plus_scalar"}, "x + scalar", P::kAddScalar, {{P::kCopy}});
  scalar("_minus_scalar", {"_MinusScalar", "_scatter_minus_scalar"}, "x - scalar", P::kSubScalar, {{P::kCopy}});
  scalar("_rminus_scalar", {"_RMinusScalar"}, "scalar - x", P::kRsubScalar, {{P::kNegative}});
  scalar("_mul_scalar", {"_MulScalar"}, "x * scalar", P::kMulScalar, {{P::kMulScalar}});
  scalar("_div_scalar", {"_DivScalar"}, "x / scalar", P::kDivScalar, {{P::kDivScalar}});
  scalar("_rdiv_scalar", {"_RDivScalar"}, "scalar / x", P::kRdivScalar, {{P::kRdivScalarGrad, kHead, kIn0}});
  scalar("_contrib_gradientmultiplier", {}, "Returns x and multiplies its gradient by scalar.", P::kCopy,
         {{P::kMulScalar}});
  scalar("_mod_scalar", {"_ModScalar"}, "The remainder of x / scalar, with the sign of scalar.", P::kModScalar,
         {{P::kModGrad}});
  scalar("_rmod_scalar", {"_RModScalar"}, "The remainder of scalar / x, with the sign of x.", P::kRmodScalar,
         {{P::kRmodScalarGrad, kHead, kIn0}});
  scalar("_power_scalar", {"_PowerScalar"}, "x ^ scalar", P::kPowerScalar, {{P::kPowerScalarGrad, kHead, kIn0}});
  scalar("_rpower_scalar", {"_RPowerScalar"}, "scalar ^ x", P::kRpowerScalar, {{P::kRpowerScalarGrad, kHead, kOut}});
  scalar("_maximum_scalar", {"_MaximumScalar", "_npi_maximum_scalar"}, "max(x, scalar)", P::kMaximumScalar,
         {{P::kMaximumScalarGrad, kHead, kIn0}});
  scalar("_minimum_scalar", {"_MinimumScalar", "_npi_minimum_scalar"}, "min(x, scalar)", P::kMinimumScalar,
         {{P::kMinimumScalarGrad, kHead, kIn0}});
  scalar("_hypot_scalar", {"_HypotScalar", "_npi_hypot_scalar"}, "sqrt(x^2 + scalar^2)", P::kHypotScalar,
         {{P::kHypotScalarGrad, kHead, kIn0}});
  scalar("_equal_scalar", {"_EqualScalar"}, "1 where x == scalar, else 0", P::kEqualScalar, {});
  scalar("_not_equal_scalar", {"_NotEqualScalar"}, "1 where x != scalar, else 0", P::kNotEqualScalar, {});
  scalar("_greater_scalar", {"_GreaterScalar"}, "1 where x > scalar, else 0", P::kGreaterScalar, {});
  scalar("_greater_equal_scalar", {"_GreaterEqualScalar"}, "1 where x >= scalar, else 0", P::kGreaterEqualScalar, {});
  scalar("_lesser_scalar", {"_LesserScalar"}, "1 where x < scalar, else 0", P::kLesserScalar, {});
  scalar("_lesser_equal_scalar", {"_LesserEqualScalar"}, "1 where x <= scalar, else 0", P::kLesserEqualScalar, {});
  scalar("_logical_and_scalar", {"_LogicalAndScalar"}, "1 where neither is 0, else 0", P::kLogicalAndScalar, {});
  scalar("_logical_or_scalar", {"_LogicalOrScalar"}, "1 where at least one is not 0, else 0", P::kLogicalOrScalar, {});
  scalar("_logical_xor_scalar", {"_LogicalXorScalar"}, "1 where exactly one is not 0, else 0", P::kLogicalXorScalar,
         {});
}

// ---- y = f(lhs, rhs) ----------------------------------------------------------------------------------------------

// Axes are aligned from the last; the lengths are equal or one of them is 1.
void infer_broadcast(const NoAttrs &, Shapes &in, Shapes &out) {
  if (!in[0].rank_known() || !in[1].rank_known()) return;
  const int rank = std::max(in[0].rank(), in[1].rank());
  Shape result = Shape::of_rank(rank);
  for (int axis = 0; axis < rank; ++axis) {
    const int l_axis = axis - (rank - in[0].rank()), r_axis = axis - (rank - in[1].rank());
    const int64_t l = l_axis < 0 ? 1 : in[0][l_axis], r = r_axis < 0 ? 1 : in[1][r_axis];
    if (l == r || r == 1) {
      result[axis] = l;
    } else if (l == 1) {
      result[axis] = r;
    } else if (l == Shape::kUnknown || r == Shape::kUnknown) {
      result[axis] = l == Shape::kUnknown ? r : l;  // the unknown length is 1 or the same
    } else {
      throw Error(Code::kShape, text("rhs: expected a shape that broadcasts with ", in[0], ", found ", in[1]), "rhs");
    }
  }
  unify(out[0], result, "output");
}

// `aliases` are for the element-wise form, `broadcast_aliases` for the broadcasting one. A null name: no such form.
void binary(const char *name, const Words &aliases, const char *broadcast_name, const Words &broadcast_aliases,
            const char *doc, P code, const std::vector<Term> &slopes) {
  const std::vector<int> of = slopes.empty() ? std::vector<int>() : std::vector<int>{0, 1};
  if (name) {
    define<NoAttrs>(add_rule(name, kElementwise, 2, code, of, slopes), aliases, doc)
        .input("lhs", "Any shape.")
        .input("rhs", "The shape of lhs.");
  }
  if (broadcast_name) {
    define<NoAttrs>(add_rule(broadcast_name, kBroadcast, 2, code, of, slopes), broadcast_aliases, doc)
        .input("lhs", "Any shape.")
        .input("rhs", "A shape that broadcasts with that of lhs.")
        .infer_shape(infer_broadcast);
  }
}

// The gradient of a sum is the head gradient itself, so the element-wise form needs no backward step.
void sum(const char *name, const Words &aliases) {
  Gradient pass;
  pass.kind = Gradient::Kind::kPassThrough;
  pass.of = {0, 1};
  define<NoAttrs>(add_rule(name, kElementwise, 2, P::kAdd, {}, {}), aliases, "lhs + rhs")
      .input("lhs", "Any shape.")
      .input("rhs", "The shape of lhs.")
      .gradient(pass)
      .sum()
      .follows();
}

void define_binary() {
  sum("elemwise_add", {"_Plus", "_add", "_plus", "_sparse_elemwise_add"});
  sum("_grad_add", {});
  binary(nullptr, {}, "broadcast_add", {"_sparse_broadcast_add", "_sparse_broadcast_plus", "broadcast_plus"},
         "lhs + rhs", P::kAdd, {{P::kCopy}, {P::kCopy}});
  binary("elemwise_sub", {"_Minus", "_minus", "_sparse_elemwise_sub", "_sub"}, "broadcast_sub",
         {"_sparse_broadcast_minus", "_sparse_broadcast_sub", "broadcast_minus"}, "lhs - rhs", P::kSub,
         {{P::kCopy}, {P::kNegative}});
  binary("elemwise_mul", {"_Mul", "_mul", "_sparse_elemwise_mul"}, "broadcast_mul", {"_sparse_broadcast_mul"},
         "lhs * rhs", P::kMul, {{P::kMul, kHead, kIn1}, {P::kMul, kHead, kIn0}});
  binary("elemwise_div", {"_Div", "_div", "_sparse_elemwise_div", "_scatter_elemwise_div"}, "broadcast_div",
         {"_sparse_broadcast_div"}, "lhs / rhs", P::kDiv,
         {{P::kDiv, kHead, kIn1}, {P::kDivGradRhs, kHead, kIn0, kIn1}});
  binary("_mod", {"_Mod"}, "broadcast_mod", {},
         "The remainder of lhs / rhs, with the sign of rhs. Integers get no gradient.", P::kMod,
         {{P::kModGrad}, {P::kModGradRhs, kHead, kIn0, kIn1}});
  binary("_power", {"_Power"}, "broadcast_power", {}, "lhs ^ rhs", P::kPower,
         {{P::kPowerGradLhs, kHead, kIn0, kIn1}, {P::kPowerGradRhs, kHead, kIn0, kIn1}});
  binary("_maximum", {"_Maximum"}, "broadcast_maximum", {"_npi_maximum"}, "The larger one.", P::kMaximum,
         {{P::kMaskGreaterEqual, kHead, kIn0, kIn1}, {P::kMaskLesser, kHead, kIn0, kIn1}});
  binary("_minimum", {"_Minimum"}, "broadcast_minimum", {"_npi_minimum"}, "The smaller one.", P::kMinimum,
         {{P::kMaskLesserEqual, kHead, kIn0, kIn1}, {P::kMaskGreater, kHead, kIn0, kIn1}});
  binary("_hypot", {"_Hypot"}, "broadcast_hypot", {}, "sqrt(lhs^2 + rhs^2)", P::kHypot,
         {{P::kHypotGrad, kHead, kIn0, kIn1}, {P::kHypotGrad, kHead, kIn1, kIn0}});
  binary("_equal", {"_Equal"}, "broadcast_equal", {}, "1 where lhs == rhs, else 0", P::kEqual, {});
  binary("_not_equal", {"_Not_Equal"}, "broadcast_not_equal", {}, "1 where lhs != rhs, else 0", P::kNotEqual, {});
  binary("_greater", {"_Greater"}, "broadcast_greater", {}, "1 where lhs > rhs, else 0", P::kGreater, {});
  binary("_greater_equal", {"_Greater_Equal"}, "broadcast_greater_equal", {}, "1 where lhs >= rhs, else 0",
         P::kGreaterEqual, {});
  binary("_lesser", {"_Lesser"}, "broadcast_lesser", {}, "1 where lhs < rhs, else 0", P::kLesser, {});
  binary("_lesser_equal", {"_Lesser_Equal"}, "broadcast_lesser_equal", {}, "1 where lhs <= rhs, else 0",
         P::kLesserEqual, {});
  binary("_logical_and", {"_Logical_And"}, "broadcast_logical_and", {}, "1 where neither is 0, else 0", P::kLogicalAnd,
         {});
  binary("_logical_or", {"_Logical_Or"}, "broadcast_logical_or", {}, "1 where at least one is not 0, else 0",
         P::kLogicalOr, {});
  binary("_logical_xor", {"_Logical_Xor"}, "broadcast_logical_xor", {}, "1 where exactly one is not 0, else 0",
         P::kLogicalXor, {});
}

// Defined on first use, as kernels in another file may be registered before this file's static objects are initialised.
Rules &defined_rules() {
  [[maybe_unused]] static const bool defined = [] {
    define_unary();
    define_scalar();
    define_binary();
    return true;
  }();
  return rules();
}

[[maybe_unused]] const Rules &defined_before_main = defined_rules();

// In the order of ActivationAttrs::Type. The backward step of softsign reads the input, the others read the output.
constexpr PointwiseCode kActivationCodes[] = {P::kRelu, P::kSigmoid, P::kTanh, P::kSoftrelu, P::kSoftsign};
constexpr PointwiseCode kActivationGrads[] = {P::kReluGrad, P::kSigmoidGrad, P::kTanhGrad, P::kSoftreluGrad,
                                              P::kSoftsignGrad};

}  // namespace

const std::vector<std::unique_ptr<PointwiseRule>> &pointwise_rules() { return defined_rules().all; }

const PointwiseRule *find_pointwise_rule(const std::string &name) {
  const auto found = defined_rules().by_name.find(name);
  return found == defined_rules().by_name.end() ? nullptr : found->second;
}

PointwiseCall PointwiseRule::with_numbers(PointwiseCall call, const void *attrs) const {
  if (numbers) numbers(attrs, &call.s, &call.t);
  if (call.s == 2.0 && call.code == P::kPowerScalar) call.code = P::kSquare;
  if (call.s == 2.0 && call.code == P::kPowerScalarGrad) call.code = P::kSquareGrad;
  return call;
}

PointwiseCall activation_call(int type) { return {kActivationCodes[type], 0}; }
PointwiseCall activation_gradient_call(int type) { return {kActivationGrads[type], 0, 1}; }

bool fusible(const Op &op, const Attrs &attrs, PointwiseCall *call) {
  if (op.activation) {
    *call = activation_call(op.activation(attrs));
    return true;
  }
  if (!op.pointwise) return false;
  *call = op.pointwise->forward_call(attrs.pointer().get());
  return true;
}

bool fusible_backward(const Op &op, const Attrs &attrs, int index, PointwiseCall *call) {
  if (op.activation) {
    *call = activation_gradient_call(op.activation(attrs));
    return true;
  }
  const PointwiseRule *rule = op.pointwise;
  if (!rule || index < 0 || size_t(index) >= rule->backward.size()) return false;
  *call = rule->backward_call(attrs.pointer().get(), index);
  return true;
}

int pointwise_operands(PointwiseCode code) {
  static constexpr int kOperands[] = {
#define COHORT_OPERANDS(name, operands, integer, vector) operands,
      COHORT_POINTWISE_LIST(COHORT_OPERANDS)
#undef COHORT_OPERANDS
  };
  return kOperands[int(code)];
}

bool pointwise_in_integers(PointwiseCode code) {
  static constexpr bool kIntegers[] = {
#define COHORT_INTEGERS(name, operands, integer, vector) integer,
      COHORT_POINTWISE_LIST(COHORT_INTEGERS)
#undef COHORT_INTEGERS
  };
  return kIntegers[int(code)];
}

const char *pointwise_name(PointwiseCode code) {
  static constexpr const char *kNames[] = {
#define COHORT_NAME(name, operands, integer, vector) #name,
      COHORT_POINTWISE_LIST(COHORT_NAME)
#undef COHORT_NAME
  };
  return kNames[int(code)];
}

}  // namespace cohort
