// SPDX-License-Identifier: Apache-2.0
// Point-wise functions, written once and compiled into the loops of every backend. A functor computes one element from
// up to three operands a, b, c and up to two numbers s, t that are the same for all elements. C is float, double or
// int64_t; 16-bit floats are computed in float and other integers in int64_t.
#pragma once

#include <cstdint>

#include "op/float_math.hpp"

namespace cohort {

// X(name, number of operands, in integers, vectorises). "In integers": defined on int64_t; the others are computed in
// double for integer arrays. Names ending in Grad compute the gradient of a function; a is the head gradient.
#define COHORT_POINTWISE_LIST(X)       \
  /* of one operand */                 \
  X(Copy, 1, true, true)               \
  X(Zero, 1, true, true)               \
  X(One, 1, true, true)                \
  X(Negative, 1, true, true)           \
  X(Reciprocal, 1, false, true)        \
  X(Abs, 1, true, true)                \
  X(Sign, 1, true, true)               \
  X(Rint, 1, true, true)               \
  X(Round, 1, true, true)              \
  X(Ceil, 1, true, true)               \
  X(Floor, 1, true, true)              \
  X(Trunc, 1, true, true)              \
  X(Square, 1, true, true)             \
  X(Sqrt, 1, false, true)              \
  X(Rsqrt, 1, false, true)             \
  X(Cbrt, 1, false, false)             \
  X(Rcbrt, 1, false, false)            \
  X(Exp, 1, false, true)               \
  X(Expm1, 1, false, true)             \
  X(Log, 1, false, true)               \
  X(Log10, 1, false, true)             \
  X(Log2, 1, false, false)             \
  X(Log1p, 1, false, true)             \
  X(Sin, 1, false, false)              \
  X(Cos, 1, false, false)              \
  X(Tan, 1, false, false)              \
  X(Arcsin, 1, false, false)           \
  X(Arccos, 1, false, false)           \
  X(Arctan, 1, false, false)           \
  X(Sinh, 1, false, false)             \
  X(Cosh, 1, false, false)             \
  X(Tanh, 1, false, true)              \
  X(Arcsinh, 1, false, false)          \
  X(Arccosh, 1, false, false)          \
  X(Arctanh, 1, false, false)          \
  X(Degrees, 1, false, true)           \
  X(Radians, 1, false, true)           \
  X(Gamma, 1, false, true)             \
  X(Gammaln, 1, false, true)           \
  X(Erf, 1, false, true)               \
  X(Erfinv, 1, false, true)            \
  X(Relu, 1, true, true)               \
  X(Sigmoid, 1, false, true)           \
  X(LogSigmoid, 1, false, true)        \
  X(Softsign, 1, false, true)          \
  X(Softrelu, 1, false, true)          \
  X(Leaky, 1, false, true)             \
  X(Elu, 1, false, true)               \
  X(Selu, 1, false, true)              \
  X(Gelu, 1, false, true)              \
  X(Mish, 1, false, true)              \
  X(HardSigmoid, 1, false, true)       \
  X(LogicalNot, 1, true, true)         \
  X(SmoothL1, 1, false, true)          \
  X(Clip, 1, false, true)              \
  X(Quadratic, 1, false, true)         \
  X(SquareGrad, 2, false, true)        \
  X(AbsGrad, 2, false, true)           \
  X(SqrtGrad, 2, false, true)          \
  X(RsqrtGrad, 2, false, true)         \
  X(CbrtGrad, 2, false, true)          \
  X(RcbrtGrad, 2, false, true)         \
  X(Expm1Grad, 2, false, true)         \
  X(Log10Grad, 2, false, true)         \
  X(Log2Grad, 2, false, true)          \
  X(Log1pGrad, 2, false, true)         \
  X(SinGrad, 2, false, false)          \
  X(CosGrad, 2, false, false)          \
  X(TanGrad, 2, false, true)           \
  X(ArcsinGrad, 2, false, true)        \
  X(ArccosGrad, 2, false, true)        \
  X(ArctanGrad, 2, false, true)        \
  X(SinhGrad, 2, false, false)         \
  X(CoshGrad, 2, false, false)         \
  X(TanhGrad, 2, false, true)          \
  X(ArcsinhGrad, 2, false, true)       \
  X(ArccoshGrad, 2, false, true)       \
  X(ArctanhGrad, 2, false, true)       \
  X(ReciprocalGrad, 2, false, true)    \
  X(GammaGrad, 3, false, false)        \
  X(GammalnGrad, 2, false, false)      \
  X(ErfGrad, 2, false, true)           \
  X(ErfinvGrad, 2, false, true)        \
  X(ReluGrad, 2, true, true)           \
  X(SigmoidGrad, 2, false, true)       \
  X(LogSigmoidGrad, 2, false, true)    \
  X(SoftsignGrad, 2, false, true)      \
  X(SoftreluGrad, 2, false, true)      \
  X(LeakyGrad, 2, false, true)         \
  X(EluGrad, 2, false, true)           \
  X(SeluGrad, 2, false, true)          \
  X(GeluGrad, 2, false, true)          \
  X(MishGrad, 2, false, true)          \
  X(HardSigmoidGrad, 2, false, true)   \
  X(SmoothL1Grad, 2, false, true)      \
  X(ClipGrad, 2, true, true)           \
  X(QuadraticGrad, 2, false, true)     \
  /* of an operand and a number */     \
  X(AddScalar, 1, true, true)          \
  X(SubScalar, 1, true, true)          \
  X(RsubScalar, 1, true, true)         \
  X(MulScalar, 1, true, true)          \
  X(DivScalar, 1, true, true)          \
  X(RdivScalar, 1, true, true)         \
  X(ModScalar, 1, true, true)          \
  X(RmodScalar, 1, true, true)         \
  X(PowerScalar, 1, false, false)      \
  X(RpowerScalar, 1, false, false)     \
  X(MaximumScalar, 1, true, true)      \
  X(MinimumScalar, 1, true, true)      \
  X(HypotScalar, 1, false, true)       \
  X(ExpLessScalar, 1, false, true)     \
  X(EqualScalar, 1, true, true)        \
  X(NotEqualScalar, 1, true, true)     \
  X(GreaterScalar, 1, true, true)      \
  X(GreaterEqualScalar, 1, true, true) \
  X(LesserScalar, 1, true, true)       \
  X(LesserEqualScalar, 1, true, true)  \
  X(LogicalAndScalar, 1, true, true)   \
  X(LogicalOrScalar, 1, true, true)    \
  X(LogicalXorScalar, 1, true, true)   \
  X(RdivScalarGrad, 2, false, true)    \
  X(RmodScalarGrad, 2, true, true)     \
  X(PowerScalarGrad, 2, false, false)  \
  X(RpowerScalarGrad, 2, false, true)  \
  X(MaximumScalarGrad, 2, true, true)  \
  X(MinimumScalarGrad, 2, true, true)  \
  X(HypotScalarGrad, 2, false, true)   \
  /* of two operands */                \
  X(Add, 2, true, true)                \
  X(Sub, 2, true, true)                \
  X(Mul, 2, true, true)                \
  X(Div, 2, true, true)                \
  X(Mod, 2, true, true)                \
  X(Power, 2, false, false)            \
  X(Maximum, 2, true, true)            \
  X(Minimum, 2, true, true)            \
  X(Hypot, 2, false, true)             \
  X(Equal, 2, true, true)              \
  X(NotEqual, 2, true, true)           \
  X(Greater, 2, true, true)            \
  X(GreaterEqual, 2, true, true)       \
  X(Lesser, 2, true, true)             \
  X(LesserEqual, 2, true, true)        \
  X(LogicalAnd, 2, true, true)         \
  X(LogicalOr, 2, true, true)          \
  X(LogicalXor, 2, true, true)         \
  X(DivGradRhs, 3, false, true)        \
  X(ModGrad, 1, true, true)            \
  X(ModGradRhs, 3, true, true)         \
  X(PowerGradLhs, 3, false, false)     \
  X(PowerGradRhs, 3, false, false)     \
  X(HypotGrad, 3, false, true)         \
  X(MaskGreater, 3, true, true)        \
  X(MaskGreaterEqual, 3, true, true)   \
  X(MaskLesser, 3, true, true)         \
  X(MaskLesserEqual, 3, true, true)    \
  X(MaskEqual, 3, true, true)          \
  X(ProdGrad, 3, false, true)          \
  X(NanSumGrad, 2, true, true)         \
  X(NanProdGrad, 3, false, true)       \
  X(NormGrad, 3, false, true)          \
  /* of three operands */              \
  X(Where, 3, true, true)              \
  X(MaskTrue, 2, true, true)           \
  X(MaskFalse, 2, true, true)

enum class PointwiseCode : int16_t {
#define COHORT_POINTWISE_CODE(name, operands, integer, vector) k##name,
  COHORT_POINTWISE_LIST(COHORT_POINTWISE_CODE)
#undef COHORT_POINTWISE_CODE
};

constexpr int kNumPointwiseCodes = 0
#define COHORT_POINTWISE_ONE(name, operands, integer, vector) +1
    COHORT_POINTWISE_LIST(COHORT_POINTWISE_ONE)
#undef COHORT_POINTWISE_ONE
    ;

int pointwise_operands(PointwiseCode code);      // 1 to 3
bool pointwise_in_integers(PointwiseCode code);  // defined on int64_t
const char *pointwise_name(PointwiseCode code);  // "TanhGrad"

namespace pointwise {
inline namespace COHORT_MATH_VARIANT {

// Integer arithmetic wraps around, as it does in the arrays.
template <typename C>
COHORT_HOST_DEVICE inline C add(C a, C b) {
  if constexpr (std::is_integral_v<C>) return C(uint64_t(a) + uint64_t(b));
  return a + b;
}
template <typename C>
COHORT_HOST_DEVICE inline C sub(C a, C b) {
  if constexpr (std::is_integral_v<C>) return C(uint64_t(a) - uint64_t(b));
  return a - b;
}
template <typename C>
COHORT_HOST_DEVICE inline C mul(C a, C b) {
  if constexpr (std::is_integral_v<C>) return C(uint64_t(a) * uint64_t(b));
  return a * b;
}
// Integers divide towards zero; by zero gives 0.
template <typename C>
COHORT_HOST_DEVICE inline C div(C a, C b) {
  if constexpr (std::is_integral_v<C>) return b == 0 ? C(0) : b == C(-1) ? sub(C(0), a) : a / b;
  return a / b;
}
template <typename C>
COHORT_HOST_DEVICE inline C floor_of(C a) {
  if constexpr (std::is_integral_v<C>) {
    return a;
  } else {
    return std::floor(a);
  }
}
// The remainder with the sign of b, as in Python; 0 if b is 0. A zero remainder has the sign MXNet gives it: negative
// if both operands are negative, and if -0 is divided by a positive number.
template <typename C>
COHORT_HOST_DEVICE inline C mod(C a, C b) {
  if constexpr (std::is_integral_v<C>) {
    if (b == 0 || b == C(-1)) return C(0);
    const C rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  } else {
    const C rest = std::fmod(a, b);
    const C shifted = (a < C(0)) != (b < C(0)) ? rest + (rest != C(0) ? b : C(0)) : rest;
    return b == C(0) ? C(0) : shifted;
  }
}
// Gradient of mod(b, c) by c; 0 for integers.
template <typename C>
COHORT_HOST_DEVICE inline C mod_gradient_rhs(C head, C b, C c) {
  if constexpr (std::is_integral_v<C>) {
    return C(0);
  } else {
    return -head * std::floor(b / c);
  }
}
template <typename C>
COHORT_HOST_DEVICE inline C absolute(C a) {
  if constexpr (std::is_integral_v<C>) {
    return a < 0 ? sub(C(0), a) : a;
  } else {
    return std::fabs(a);
  }
}
template <typename C>
COHORT_HOST_DEVICE inline C sign(C a) {
  return C(a > C(0)) - C(a < C(0));
}
template <typename C>
COHORT_HOST_DEVICE inline C is(bool condition) {
  return condition ? C(1) : C(0);
}
template <typename C>
COHORT_HOST_DEVICE inline C maximum(C a, C b) {  // a NaN on the left stays
  return a > b || a != a ? a : b;
}
template <typename C>
COHORT_HOST_DEVICE inline C minimum(C a, C b) {
  return a < b || a != a ? a : b;
}
template <typename C>
COHORT_HOST_DEVICE inline C rint(C a) {  // n.5 goes down
  if constexpr (std::is_integral_v<C>) {
    return a;
  } else {
    const C low = std::floor(a);
    return a - low <= C(0.5) ? low : std::ceil(a);
  }
}
template <typename C>
COHORT_HOST_DEVICE inline C round(C a) {  // n.5 goes away from zero
  if constexpr (std::is_integral_v<C>) {
    return a;
  } else {
    const C magnitude = std::fabs(a), low = std::floor(magnitude);
    return std::copysign(magnitude - low >= C(0.5) ? low + C(1) : low, a);
  }
}
template <typename C>
COHORT_HOST_DEVICE inline C ceil_of(C a) {
  if constexpr (std::is_integral_v<C>) {
    return a;
  } else {
    return std::ceil(a);
  }
}
template <typename C>
COHORT_HOST_DEVICE inline C trunc_of(C a) {
  if constexpr (std::is_integral_v<C>) {
    return a;
  } else {
    return std::trunc(a);
  }
}
// sqrt(a^2 + b^2) without overflow or underflow of the squares.
template <typename C>
COHORT_HOST_DEVICE inline C hypot_of(C a, C b) {
  constexpr bool kFloat = sizeof(C) == sizeof(float);
  constexpr C kLarge = kFloat ? C(0x1p60) : C(0x1p500), kFactor = kFloat ? C(0x1p100) : C(0x1p700);
  const C x = std::fabs(a), y = std::fabs(b), most = x > y ? x : y;
  const C scale = most > kLarge ? C(1) / kFactor : most < C(1) / kLarge ? kFactor : C(1);
  const C root = std::sqrt(x * scale * (x * scale) + y * scale * (y * scale)) / scale;
  return x == C(INFINITY) || y == C(INFINITY) ? C(INFINITY) : root;
}
// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|)
template <typename C>
COHORT_HOST_DEVICE inline C softplus(C x) {
  return (x < C(0) ? C(0) : x) + log1p_of(exp_of(-absolute(x)));
}

constexpr double kSeluScale = 1.0507009873554804934193349852946, kSeluAlpha = 1.6732632423543772848170429916717;
constexpr double kRootHalf = 0.70710678118654752440;

#define COHORT_FUNCTOR(name, expression)                                                                    \
  struct name {                                                                                             \
    template <typename C>                                                                                   \
    COHORT_HOST_DEVICE static inline C of([[maybe_unused]] C a, [[maybe_unused]] C b, [[maybe_unused]] C c, \
                                          [[maybe_unused]] C s, [[maybe_unused]] C t) {                     \
      return expression;                                                                                    \
    }                                                                                                       \
  };

COHORT_FUNCTOR(Copy, a)
COHORT_FUNCTOR(Zero, C(0))
COHORT_FUNCTOR(One, C(1))
COHORT_FUNCTOR(Negative, sub(C(0), a))
COHORT_FUNCTOR(Reciprocal, C(1) / a)
COHORT_FUNCTOR(Abs, absolute(a))
COHORT_FUNCTOR(Sign, sign(a))
COHORT_FUNCTOR(Rint, rint(a))
COHORT_FUNCTOR(Round, round(a))
COHORT_FUNCTOR(Ceil, ceil_of(a))
COHORT_FUNCTOR(Floor, floor_of(a))
COHORT_FUNCTOR(Trunc, trunc_of(a))
COHORT_FUNCTOR(Square, mul(a, a))
COHORT_FUNCTOR(Sqrt, std::sqrt(a))
COHORT_FUNCTOR(Rsqrt, C(1) / std::sqrt(a))
COHORT_FUNCTOR(Cbrt, std::cbrt(a))
COHORT_FUNCTOR(Rcbrt, C(1) / std::cbrt(a))
COHORT_FUNCTOR(Exp, exp_of(a))
COHORT_FUNCTOR(Expm1, expm1_of(a))
COHORT_FUNCTOR(Log, log_of(a))
COHORT_FUNCTOR(Log10, log_of(a) * C(0.43429448190325182765))
COHORT_FUNCTOR(Log2, std::log2(a))
COHORT_FUNCTOR(Log1p, log1p_of(a))
COHORT_FUNCTOR(Sin, std::sin(a))
COHORT_FUNCTOR(Cos, std::cos(a))
COHORT_FUNCTOR(Tan, std::tan(a))
COHORT_FUNCTOR(Arcsin, std::asin(a))
COHORT_FUNCTOR(Arccos, std::acos(a))
COHORT_FUNCTOR(Arctan, std::atan(a))
COHORT_FUNCTOR(Sinh, std::sinh(a))
COHORT_FUNCTOR(Cosh, std::cosh(a))
COHORT_FUNCTOR(Tanh, tanh_of(a))
COHORT_FUNCTOR(Arcsinh, std::asinh(a))
COHORT_FUNCTOR(Arccosh, std::acosh(a))
COHORT_FUNCTOR(Arctanh, std::atanh(a))
COHORT_FUNCTOR(Degrees, a *C(57.295779513082320877))
COHORT_FUNCTOR(Radians, a *C(0.017453292519943295769))
COHORT_FUNCTOR(Gamma, gamma_of(a))
COHORT_FUNCTOR(Gammaln, gammaln_of(a))
COHORT_FUNCTOR(Erf, erf_of(a))
COHORT_FUNCTOR(Erfinv, erfinv_of(a))
COHORT_FUNCTOR(Relu, a < C(0) ? C(0) : a)
COHORT_FUNCTOR(Sigmoid, sigmoid_of(a))
COHORT_FUNCTOR(LogSigmoid, -softplus(-a))
COHORT_FUNCTOR(Softsign, a / (C(1) + absolute(a)))
COHORT_FUNCTOR(Softrelu, softplus(a))
COHORT_FUNCTOR(Leaky, a > C(0) ? a : s * a)
COHORT_FUNCTOR(Elu, a > C(0) ? a : s * expm1_of(a))
COHORT_FUNCTOR(Selu, C(kSeluScale) * (a > C(0) ? a : C(kSeluAlpha) * expm1_of(a)))
COHORT_FUNCTOR(Gelu, a *C(0.5) * (C(1) + erf_of(a * C(kRootHalf))))
COHORT_FUNCTOR(Mish, a *tanh_of(softplus(a)))
COHORT_FUNCTOR(HardSigmoid, minimum(C(1), maximum(C(0), a *s + t)))
COHORT_FUNCTOR(LogicalNot, is<C>(a == C(0)))
COHORT_FUNCTOR(SmoothL1, absolute(a) * s * s > C(1) ? absolute(a) - C(0.5) / (s * s) : C(0.5) * a * a * s * s)
COHORT_FUNCTOR(Clip, a > t ? t : a < s ? s : a)
COHORT_FUNCTOR(Quadratic, a *(a *s + t))  // the constant term is added by AddScalar

COHORT_FUNCTOR(AbsGrad, a *sign(b))
COHORT_FUNCTOR(SquareGrad, C(2) * a * b)
COHORT_FUNCTOR(SqrtGrad, C(0.5) * a / b)
COHORT_FUNCTOR(RsqrtGrad, C(-0.5) * a * b * b * b)
COHORT_FUNCTOR(CbrtGrad, a / (C(3) * b * b))
COHORT_FUNCTOR(RcbrtGrad, a *b *b *b *b / C(-3))
COHORT_FUNCTOR(Expm1Grad, a *exp_of(b))
COHORT_FUNCTOR(Log10Grad, a *C(0.43429448190325182765) / b)
COHORT_FUNCTOR(Log2Grad, a *C(1.4426950408889634074) / b)
COHORT_FUNCTOR(Log1pGrad, a / (C(1) + b))
COHORT_FUNCTOR(SinGrad, a *std::cos(b))
COHORT_FUNCTOR(CosGrad, -a *std::sin(b))
COHORT_FUNCTOR(TanGrad, a *(C(1) + b * b))
COHORT_FUNCTOR(ArcsinGrad, a / std::sqrt(C(1) - b * b))
COHORT_FUNCTOR(ArccosGrad, -a / std::sqrt(C(1) - b * b))
COHORT_FUNCTOR(ArctanGrad, a / (C(1) + b * b))
COHORT_FUNCTOR(SinhGrad, a *std::cosh(b))
COHORT_FUNCTOR(CoshGrad, a *std::sinh(b))
COHORT_FUNCTOR(TanhGrad, a *(C(1) - b * b))
COHORT_FUNCTOR(ArcsinhGrad, a / std::sqrt(b * b + C(1)))
COHORT_FUNCTOR(ArccoshGrad, a / std::sqrt(b * b - C(1)))
COHORT_FUNCTOR(ArctanhGrad, a / (C(1) - b * b))
COHORT_FUNCTOR(ReciprocalGrad, -a *b *b)
COHORT_FUNCTOR(GammaGrad, a *c *digamma_of(b))  // b is the input, c the output
COHORT_FUNCTOR(GammalnGrad, a *digamma_of(b))
COHORT_FUNCTOR(ErfGrad, a *C(1.1283791670955125739) * exp_of(-b * b))
COHORT_FUNCTOR(ErfinvGrad, a *C(0.88622692545275801365) * exp_of(b * b))
COHORT_FUNCTOR(ReluGrad, b > C(0) ? a : b == b ? C(0) : b)
COHORT_FUNCTOR(SigmoidGrad, a *b *(C(1) - b))
COHORT_FUNCTOR(LogSigmoidGrad, a *(C(1) - exp_of(b)))
COHORT_FUNCTOR(SoftsignGrad, a / ((C(1) + absolute(b)) * (C(1) + absolute(b))))
COHORT_FUNCTOR(SoftreluGrad, a * -expm1_of(-b))
COHORT_FUNCTOR(LeakyGrad, a *(b > C(0) ? C(1) : s))
COHORT_FUNCTOR(EluGrad, a *(b > C(0) ? C(1) : s * exp_of(b)))
COHORT_FUNCTOR(SeluGrad, a *C(kSeluScale) * (b > C(0) ? C(1) : C(kSeluAlpha) * exp_of(b)))
COHORT_FUNCTOR(GeluGrad, a *(C(0.5) * (C(1) + erf_of(b * C(kRootHalf))) +
                             b * C(0.39894228040143267794) * exp_of(C(-0.5) * b * b)))
COHORT_FUNCTOR(MishGrad,
               a *(tanh_of(softplus(b)) + b * sigmoid_of(b) * (C(1) - tanh_of(softplus(b)) * tanh_of(softplus(b)))))
COHORT_FUNCTOR(HardSigmoidGrad, b > C(0) && b < C(1) ? a * s : C(0))
COHORT_FUNCTOR(SmoothL1Grad, absolute(b) * s * s > C(1) ? a * sign(b) : a * b * s * s)
COHORT_FUNCTOR(ClipGrad, b > t || b < s ? C(0) : a)
COHORT_FUNCTOR(QuadraticGrad, a *(C(2) * s * b + t))

COHORT_FUNCTOR(AddScalar, add(a, s))
COHORT_FUNCTOR(SubScalar, sub(a, s))
COHORT_FUNCTOR(RsubScalar, sub(s, a))
COHORT_FUNCTOR(MulScalar, mul(a, s))
COHORT_FUNCTOR(DivScalar, div(a, s))
COHORT_FUNCTOR(RdivScalar, div(s, a))
COHORT_FUNCTOR(ModScalar, mod(a, s))
COHORT_FUNCTOR(RmodScalar, mod(s, a))
COHORT_FUNCTOR(PowerScalar, std::pow(a, s))
COHORT_FUNCTOR(RpowerScalar, std::pow(s, a))
COHORT_FUNCTOR(MaximumScalar, maximum(a, s))
COHORT_FUNCTOR(MinimumScalar, minimum(a, s))
COHORT_FUNCTOR(HypotScalar, hypot_of(a, s))
COHORT_FUNCTOR(ExpLessScalar, exp_of(a - s))  // for softmax; s is the largest element
COHORT_FUNCTOR(EqualScalar, is<C>(a == s))
COHORT_FUNCTOR(NotEqualScalar, is<C>(a != s))
COHORT_FUNCTOR(GreaterScalar, is<C>(a > s))
COHORT_FUNCTOR(GreaterEqualScalar, is<C>(a >= s))
COHORT_FUNCTOR(LesserScalar, is<C>(a < s))
COHORT_FUNCTOR(LesserEqualScalar, is<C>(a <= s))
COHORT_FUNCTOR(LogicalAndScalar, is<C>((a != C(0)) & (s != C(0))))
COHORT_FUNCTOR(LogicalOrScalar, is<C>((a != C(0)) | (s != C(0))))
COHORT_FUNCTOR(LogicalXorScalar, is<C>((a != C(0)) != (s != C(0))))
COHORT_FUNCTOR(RdivScalarGrad, -a *s / (b * b))
COHORT_FUNCTOR(RmodScalarGrad, mod_gradient_rhs(a, C(s), b))
// x ^ 0 is 1 everywhere: its slope is 0 at x = 0, too, where the power is infinite.
COHORT_FUNCTOR(PowerScalarGrad, s == C(0) ? C(0) : a * s * std::pow(b, s - C(1)))
COHORT_FUNCTOR(RpowerScalarGrad, a *b *std::log(s))
COHORT_FUNCTOR(MaximumScalarGrad, b >= s ? a : C(0))
COHORT_FUNCTOR(MinimumScalarGrad, b <= s ? a : C(0))
COHORT_FUNCTOR(HypotScalarGrad, a *b / hypot_of(b, s))

COHORT_FUNCTOR(Add, add(a, b))
COHORT_FUNCTOR(Sub, sub(a, b))
COHORT_FUNCTOR(Mul, mul(a, b))
COHORT_FUNCTOR(Div, div(a, b))
COHORT_FUNCTOR(Mod, mod(a, b))
COHORT_FUNCTOR(Power, std::pow(a, b))
COHORT_FUNCTOR(Maximum, maximum(a, b))
COHORT_FUNCTOR(Minimum, minimum(a, b))
COHORT_FUNCTOR(Hypot, hypot_of(a, b))
COHORT_FUNCTOR(Equal, is<C>(a == b))
COHORT_FUNCTOR(NotEqual, is<C>(a != b))
COHORT_FUNCTOR(Greater, is<C>(a > b))
COHORT_FUNCTOR(GreaterEqual, is<C>(a >= b))
COHORT_FUNCTOR(Lesser, is<C>(a < b))
COHORT_FUNCTOR(LesserEqual, is<C>(a <= b))
COHORT_FUNCTOR(LogicalAnd, is<C>((a != C(0)) & (b != C(0))))
COHORT_FUNCTOR(LogicalOr, is<C>((a != C(0)) | (b != C(0))))
COHORT_FUNCTOR(LogicalXor, is<C>((a != C(0)) != (b != C(0))))
// a is the head gradient, b the left operand, c the right one.
COHORT_FUNCTOR(DivGradRhs, -a *b / (c * c))
COHORT_FUNCTOR(ModGrad, std::is_integral_v<C> ? C(0) : a)
COHORT_FUNCTOR(ModGradRhs, mod_gradient_rhs(a, b, c))
COHORT_FUNCTOR(PowerGradLhs, c == C(0) ? C(0) : a * c * std::pow(b, c - C(1)))
COHORT_FUNCTOR(PowerGradRhs, a *std::pow(b, c) * std::log(b))
COHORT_FUNCTOR(HypotGrad, a *b / hypot_of(b, c))  // for the right operand: b and c swapped
COHORT_FUNCTOR(MaskGreater, b > c ? a : C(0))
COHORT_FUNCTOR(MaskGreaterEqual, b >= c ? a : C(0))
COHORT_FUNCTOR(MaskLesser, b < c ? a : C(0))
COHORT_FUNCTOR(MaskLesserEqual, b <= c ? a : C(0))
// Gradients of reductions: a is the head gradient, b an element, c the result of the reduction.
COHORT_FUNCTOR(MaskEqual, b == c ? a : C(0))
// Where an element and the product are 0, the head gradient, which the kernel multiplies by the product of the other
// elements.
COHORT_FUNCTOR(ProdGrad, (b == C(0) ? c : C(1)) == C(0) ? a : a * c / b)
COHORT_FUNCTOR(NanSumGrad, b != b ? C(0) : a)
COHORT_FUNCTOR(NanProdGrad, b != b ? C(0) : (b == C(0) ? c : C(1)) == C(0) ? a : a * c / b)
COHORT_FUNCTOR(NormGrad, c == C(0) ? C(0) : a * b / c)

COHORT_FUNCTOR(Where, a != C(0) ? b : c)
COHORT_FUNCTOR(MaskTrue, b != C(0) ? a : C(0))
COHORT_FUNCTOR(MaskFalse, b == C(0) ? a : C(0))

#undef COHORT_FUNCTOR

}  // namespace COHORT_MATH_VARIANT
}  // namespace pointwise
}  // namespace cohort
