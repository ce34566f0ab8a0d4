// SPDX-License-Identifier: Apache-2.0
// Gradients of point-wise operators as graphs. Each formula reads what the backward kernel of its operator reads: h is
// the head gradient, a and b are the inputs, y is the output.
#include <algorithm>
#include <cmath>

#include "op/activation.hpp"
#include "op/gradient_graph.hpp"
#include "op/leaky_relu.hpp"
#include "op/pointwise.hpp"
#include "op/scaling.hpp"

namespace cohort {
namespace {

using V = GraphValue;
using G = GradientGraph;

constexpr double kPi = 3.14159265358979323846;

V apply(const char *op, V a) { return apply1(op, a); }

// 1 where the condition holds, otherwise 0.
V greater(V a, double b) { return with_scalar("_greater_scalar", a, b); }
V lesser(V a, double b) { return with_scalar("_lesser_scalar", a, b); }
V power(V a, double b) { return with_scalar("_power_scalar", a, b); }
V where(V condition, V a, V b) { return condition.graph().apply("where", {condition, a, b}); }
V relu_slope(V y) { return where(apply2("broadcast_equal", y, y), greater(y, 0.0), y); }  // the slope at NaN is NaN
// None for integers.
V of_floats(const G &g, V gradient) { return dtype_is_float(g.input_type(0).dtype) ? gradient : V(); }
V sigmoid(V a) { return apply("sigmoid", a); }
V softplus(V a) { return a.graph().apply("Activation", {a}, {{"act_type", "softrelu"}}); }

// ---- y = f(a) ----------------------------------------------------------------------------------------------------

#define COHORT_UNARY(name, formula)                              \
  define_gradient(name, [](G &g) {                               \
    const V h = g.head();                                        \
    if (!h) return;                                              \
    [[maybe_unused]] const auto a = [&] { return g.input(0); };  \
    [[maybe_unused]] const auto y = [&] { return g.output(0); }; \
    g.give(0, formula);                                          \
  })

void define_unary() {
  COHORT_UNARY("negative", -h);
  COHORT_UNARY("reciprocal", -(h * y() * y()));
  COHORT_UNARY("abs", h * apply("sign", a()));
  COHORT_UNARY("_contrib_round_ste", h);
  COHORT_UNARY("_contrib_sign_ste", h);
  COHORT_UNARY("square", h * a() * 2.0);
  COHORT_UNARY("sqrt", h / (y() * 2.0));
  COHORT_UNARY("rsqrt", h * y() * y() * y() * -0.5);
  COHORT_UNARY("cbrt", h / (y() * y() * 3.0));
  COHORT_UNARY("rcbrt", h * (y() * y()) * (y() * y()) / -3.0);
  COHORT_UNARY("exp", h * y());
  COHORT_UNARY("expm1", h * apply("exp", a()));
  COHORT_UNARY("log", h / a());
  COHORT_UNARY("log10", h / (a() * std::log(10.0)));
  COHORT_UNARY("log2", h / (a() * std::log(2.0)));
  COHORT_UNARY("log1p", h / (a() + 1.0));
  COHORT_UNARY("sin", h * apply("cos", a()));
  COHORT_UNARY("cos", -(h * apply("sin", a())));
  COHORT_UNARY("tan", h * (y() * y() + 1.0));
  COHORT_UNARY("arcsin", h * apply("rsqrt", 1.0 - a() * a()));
  COHORT_UNARY("arccos", -(h * apply("rsqrt", 1.0 - a() * a())));
  COHORT_UNARY("arctan", h / (a() * a() + 1.0));
  COHORT_UNARY("sinh", h * apply("cosh", a()));
  COHORT_UNARY("cosh", h * apply("sinh", a()));
  COHORT_UNARY("tanh", h * (1.0 - y() * y()));
  COHORT_UNARY("arcsinh", h * apply("rsqrt", a() * a() + 1.0));
  COHORT_UNARY("arccosh", h * apply("rsqrt", a() * a() - 1.0));
  COHORT_UNARY("arctanh", h / (1.0 - a() * a()));
  COHORT_UNARY("degrees", apply("degrees", h));
  COHORT_UNARY("radians", apply("radians", h));
  COHORT_UNARY("erf", h * apply("exp", -(a() * a())) * (2.0 / std::sqrt(kPi)));
  COHORT_UNARY("erfinv", h * apply("exp", y() * y()) * (std::sqrt(kPi) / 2.0));
  COHORT_UNARY("relu", h * relu_slope(y()));
  COHORT_UNARY("sigmoid", h * (y() * (1.0 - y())));
  COHORT_UNARY("log_sigmoid", h * (1.0 - apply("exp", y())));
  COHORT_UNARY("softsign", h / apply("square", apply("abs", a()) + 1.0));
  define_gradient("mish", [](G &g) {
    if (!g.head()) return;
    const V a = g.input(0), t = apply("tanh", softplus(a));
    g.give(0, g.head() * (t + a * sigmoid(a) * (1.0 - t * t)));
  });
  define_gradient("clip", [](G &g) {
    if (!g.head()) return;
    const auto &attrs = g.attrs<ClipAttrs>();
    g.give(0, g.head() * with_scalar("_greater_equal_scalar", g.input(0), attrs.a_min) *
                  with_scalar("_lesser_equal_scalar", g.input(0), attrs.a_max));
  });
  define_gradient("hard_sigmoid", [](G &g) {
    if (!g.head()) return;
    g.give(0, g.head() * greater(g.output(0), 0.0) * lesser(g.output(0), 1.0) * g.attrs<HardSigmoidAttrs>().alpha);
  });
  define_gradient("smooth_l1", [](G &g) {
    if (!g.head()) return;
    const double square = double(g.attrs<SmoothL1Attrs>().scalar) * g.attrs<SmoothL1Attrs>().scalar;
    const V a = g.input(0);
    g.give(0, g.head() * where(greater(apply("abs", a) * square, 1.0), apply("sign", a), a * square));
  });
  define_gradient("Activation", [](G &g) {
    const V h = g.head();
    if (!h) return;
    switch (g.attrs<ActivationAttrs>().act_type) {
      case ActivationAttrs::kRelu:
        return g.give(0, h * relu_slope(g.output(0)));
      case ActivationAttrs::kSigmoid:
        return g.give(0, h * (g.output(0) * (1.0 - g.output(0))));
      case ActivationAttrs::kTanh:
        return g.give(0, h * (1.0 - g.output(0) * g.output(0)));
      case ActivationAttrs::kSoftrelu:
        return g.give(0, h * (1.0 - apply("exp", -g.output(0))));
      case ActivationAttrs::kSoftsign:
        return g.give(0, h / apply("square", apply("abs", g.input(0)) + 1.0));
    }
  });
}

// ---- y = f(a, scalar) --------------------------------------------------------------------------------------------

#define COHORT_SCALAR(name, formula)                                 \
  define_gradient(name, [](G &g) {                                   \
    const V h = g.head();                                            \
    if (!h) return;                                                  \
    [[maybe_unused]] const double s = g.attrs<ScalarAttrs>().scalar; \
    [[maybe_unused]] const auto a = [&] { return g.input(0); };      \
    [[maybe_unused]] const auto y = [&] { return g.output(0); };     \
    g.give(0, formula);                                              \
  })

void define_scalar() {
  COHORT_SCALAR("_plus_scalar", h);
  COHORT_SCALAR("_minus_scalar", h);
  COHORT_SCALAR("_rminus_scalar", -h);
  COHORT_SCALAR("_mul_scalar", h * s);
  COHORT_SCALAR("_div_scalar", h / s);
  COHORT_SCALAR("_rdiv_scalar", h / (a() * a()) * -s);
  COHORT_SCALAR("_contrib_gradientmultiplier", h * s);
  COHORT_SCALAR("_mod_scalar", of_floats(g, h));
  COHORT_SCALAR("_rmod_scalar", of_floats(g, -(h * apply("floor", with_scalar("_rdiv_scalar", a(), s)))));
  COHORT_SCALAR("_power_scalar", s == 0.0 ? h * apply("zeros_like", a()) : h * power(a(), s - 1.0) * s);
  COHORT_SCALAR("_rpower_scalar", h * y() * std::log(s));
  COHORT_SCALAR("_maximum_scalar", h * with_scalar("_greater_equal_scalar", a(), s));
  COHORT_SCALAR("_minimum_scalar", h * with_scalar("_lesser_equal_scalar", a(), s));
  COHORT_SCALAR("_hypot_scalar", h * a() / with_scalar("_hypot_scalar", a(), s));
}

// ---- y = f(a, b), element-wise or broadcast ----------------------------------------------------------------------

#define COHORT_BINARY(name, by_a, by_b)                           \
  for (const char *op : name) {                                   \
    define_gradient(op, [](G &g) {                                \
      const V h = g.head();                                       \
      if (!h) return;                                             \
      [[maybe_unused]] const auto a = [&] { return g.input(0); }; \
      [[maybe_unused]] const auto b = [&] { return g.input(1); }; \
      g.give(0, g.sum_to(by_a, g.input_shape(0)));                \
      g.give(1, g.sum_to(by_b, g.input_shape(1)));                \
    });                                                           \
  }

using Names = std::initializer_list<const char *>;

// The slope of a ^ b in a. At a = 0, b = 0 it is 0, as 0 ^ 0 is 1 beside a, too; b - 1 would make it infinite there.
V power_slope(V a, V b) {
  const V both_zero = with_scalar("_equal_scalar", b, 0.0) * with_scalar("_equal_scalar", a, 0.0);
  return b * apply2("broadcast_power", a, b - 1.0 + both_zero);
}

void define_binary() {
  COHORT_BINARY((Names{"elemwise_add", "_grad_add", "broadcast_add"}), h, h);
  COHORT_BINARY((Names{"elemwise_sub", "broadcast_sub"}), h, -h);
  COHORT_BINARY((Names{"elemwise_mul", "broadcast_mul"}), h * b(), h * a());
  COHORT_BINARY((Names{"elemwise_div", "broadcast_div"}), h / b(), -(h * a() / (b() * b())));
  for (const char *op : {"_mod", "broadcast_mod"}) {
    define_gradient(op, [](G &g) {
      const V h = g.head();
      if (!of_floats(g, h)) return;
      g.give(0, g.sum_to(h, g.input_shape(0)));
      g.give(1, g.sum_to(-(h * apply("floor", g.input(0) / g.input(1))), g.input_shape(1)));
    });
  }
  COHORT_BINARY((Names{"_power", "broadcast_power"}), h * power_slope(a(), b()),
                h * (apply2("broadcast_power", a(), b()) * apply("log", a())));
  COHORT_BINARY((Names{"_maximum", "broadcast_maximum"}), h * apply2("broadcast_greater_equal", a(), b()),
                h * apply2("broadcast_lesser", a(), b()));
  COHORT_BINARY((Names{"_minimum", "broadcast_minimum"}), h * apply2("broadcast_lesser_equal", a(), b()),
                h * apply2("broadcast_greater", a(), b()));
  COHORT_BINARY((Names{"_hypot", "broadcast_hypot"}), h * (a() / apply2("broadcast_hypot", a(), b())),
                h * (b() / apply2("broadcast_hypot", a(), b())));
  define_gradient("where", [](G &g) {
    if (!g.head()) return;
    const V chosen = g.input(0), none = apply("zeros_like", g.head());
    g.give(1, where(chosen, g.head(), none));
    g.give(2, where(chosen, none, g.head()));
  });
}

void of_quadratic(G &g) {
  const auto &a = g.attrs<QuadraticAttrs>();
  if (g.head()) g.give(0, g.head() * (g.input(0) * (2.0 * a.a) + double(a.b)));
}

// ---- the gamma function ------------------------------------------------------------------------------------------

// The second derivative of log |gamma(x)|: the asymptotic series at x + 8, where it is accurate to the last digits,
// then eight steps of the recurrence back; below 1/2 by reflection.
V trigamma(V x) {
  const V low = lesser(x, 0.5), z = where(low, 1.0 - x, x);
  V steps;
  for (int k = 0; k < 8; ++k) steps = steps + power(z + double(k), -2.0);
  const V r = apply("reciprocal", z + 8.0), r2 = r * r;
  static constexpr double kBernoulli[] = {5.0 / 66, -1.0 / 30, 1.0 / 42, -1.0 / 30, 1.0 / 6};  // 10th to 2nd
  V series = r2 * (-691.0 / 2730);
  for (double b : kBernoulli) series = (series + b) * r2;
  const V right = steps + r + r2 * 0.5 + series * r;
  const V sine = apply("sin", x * kPi);
  return where(low, power(sine, -2.0) * (kPi * kPi) - right, right);
}

// The backward kernel of gammaln multiplies by the first derivative, digamma.
void of_gamma(G &g) {
  if (!g.head()) return;
  const V digamma = g.apply_backward_of("gammaln", {apply("ones_like", g.input(0)), g.input(0)}, g.input_type(0));
  g.give(0, g.head() * g.output(0) * digamma);
}

void of_backward_gammaln(G &g) {
  if (!g.head()) return;
  g.give(0, g.apply_backward({g.head(), g.input(1)}, {g.output_type(0)})[0]);
  g.give(1, g.head() * g.input(0) * trigamma(g.input(1)));
}

// ---- rectifiers --------------------------------------------------------------------------------------------------

constexpr double kSeluScale = 1.0507009873554804934193349852946, kSeluAlpha = 1.6732632423543772848170429916717;

// 1 above zero, `below` elsewhere.
V slope_below(V a, V below) { return where(greater(a, 0.0), apply("ones_like", a), below); }
V exp_below(V a) { return apply("exp", with_scalar("_minimum_scalar", a, 0.0)); }

void of_leaky_relu(G &g) {
  const auto &attrs = g.attrs<LeakyReLUAttrs>();
  const V h = g.head();
  if (!h) return;
  switch (attrs.act_type) {
    case LeakyReLUAttrs::kLeaky: {
      const V sign = attrs.slope >= 0 ? g.output(0) : g.input(0);
      return g.give(0, h * (greater(sign, 0.0) * (1.0 - attrs.slope) + double(attrs.slope)));
    }
    case LeakyReLUAttrs::kElu:
      return g.give(0, h * slope_below(g.input(0), exp_below(g.input(0)) * attrs.slope));
    case LeakyReLUAttrs::kSelu:
      return g.give(0, h * slope_below(g.input(0), exp_below(g.input(0)) * kSeluAlpha) * kSeluScale);
    case LeakyReLUAttrs::kGelu: {
      const V a = g.input(0), normal = apply("exp", a * a * -0.5) / std::sqrt(2 * kPi);
      return g.give(0, h * ((apply("erf", a / std::sqrt(2.0)) + 1.0) * 0.5 + a * normal));
    }
    case LeakyReLUAttrs::kPrelu: {
      const V a = g.input(0);
      Shape wide = g.input_shape(1);  // the shape in which it broadcasts with data
      if (wide != a.shape() && a.shape().rank() > 1) {
        const int64_t count = wide.size();
        wide = Shape(std::vector<int64_t>(size_t(a.shape().rank()), 1));
        wide[1] = count;
      }
      const V gamma = g.reshape(g.input(1), wide), below = with_scalar("_lesser_equal_scalar", a, 0.0);
      g.give(0, h * (greater(a, 0.0) + below * gamma));
      return g.give(1, g.reshape(g.sum_to(h * below * a, wide), g.input_shape(1)));
    }
    case LeakyReLUAttrs::kRrelu:
      return differentiate_once(g);
  }
}

[[maybe_unused]] const bool defined = [] {
  define_unary();
  define_scalar();
  define_binary();
  define_gradient("_contrib_quadratic", of_quadratic);
  define_gradient("gamma", of_gamma);
  define_backward_gradient("gammaln", of_backward_gammaln);
  define_gradient("LeakyReLU", of_leaky_relu);
  return true;
}();

}  // namespace
}  // namespace cohort
