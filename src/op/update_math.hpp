// SPDX-License-Identifier: Apache-2.0
// The formulas of parameter updates, one functor each, for the kernels of every backend. C is float or double.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/dtype.hpp"

namespace cohort {

// Numbers that a formula reads besides weight, gradient and states. Infinite limits do not clip.
template <typename C>
struct UpdateNumbers {
  C lr = 0, wd = 0, rescale = 1, clip = INFINITY;
  C momentum = 0, wd_lh = 0, eta = 0, epsilon = 0;
  C beta1 = 0, beta2 = 0, clip_weights = INFINITY;
  C correction1 = 1, correction2 = 1;  // 1 - beta^t
  C lamda1 = 0, beta = 0;
  C rest1 = 1, rest2 = 1;              // 1 - beta, precisely
  C gradient_part = 0, mean_part = 0;  // nadam: weights of gradient and mean in the step
  C lower = 0, upper = INFINITY;       // lamb: bounds of the weight's norm
  C unscale = 1;                       // lars, lbsgd: factor applied to gradients as they arrive
  C gathered = 1, due = 1;             // lbsgd: gradients per step, and whether the step is taken now
  C by_norms = 1;                      // lars: whether norms scale the learning rate
  C deviation = 0;                     // sgld: deviation of the noise
  uint64_t seed = 0, draw = 0;         // likewise: random stream and draw
  int64_t first = 0;                   // likewise: index within the parameter of the first element

  template <typename D>
  COHORT_HOST_DEVICE UpdateNumbers<D> as() const {
    return {D(lr),      D(wd),       D(rescale), D(clip),          D(momentum),    D(wd_lh),       D(eta),
            D(epsilon), D(beta1),    D(beta2),   D(clip_weights),  D(correction1), D(correction2), D(lamda1),
            D(beta),    D(rest1),    D(rest2),   D(gradient_part), D(mean_part),   D(lower),       D(upper),
            D(unscale), D(gathered), D(due),     D(by_norms),      D(deviation),   seed,           draw,
            first};
  }
};

namespace update {

template <typename C>
COHORT_HOST_DEVICE inline C clipped(C x, C limit) {
  return x > limit ? limit : x < -limit ? -limit : x;
}
template <typename C>
COHORT_HOST_DEVICE inline C sign(C x) {
  return C(x > C(0)) - C(x < C(0));
}
template <typename C>
COHORT_HOST_DEVICE inline C scaled(C g, const UpdateNumbers<C> &n) {
  return clipped(n.rescale * g, n.clip);
}
template <typename C>
COHORT_HOST_DEVICE inline C scaled_with_decay(C w, C g, const UpdateNumbers<C> &n) {
  return clipped(n.rescale * g + n.wd * w, n.clip);
}

// of(w, g, s, n) returns the new weight and updates the states s.

struct Sgd {
  static constexpr int kStates = 0;
  template <typename C>
  COHORT_HOST_DEVICE static C of(C w, C g, C *, const UpdateNumbers<C> &n) {
    return w - n.lr * (scaled(g, n) + n.wd * w);
  }
};

struct SgdMom {  // s: momentum
  static constexpr int kStates = 1;
  template <typename C>
  COHORT_HOST_DEVICE static C of(C w, C g, C *s, const UpdateNumbers<C> &n) {
    s[0] = n.momentum * s[0] - n.lr * (scaled(g, n) + n.wd * w);
    return w + s[0];
  }
};

struct NagMom {  // s: momentum
  static constexpr int kStates = 1;
  template <typename C>
  COHORT_HOST_DEVICE static C of(C w, C g, C *s, const UpdateNumbers<C> &n) {
    const C step = n.lr * (scaled(g, n) + n.wd * w);
    s[0] = n.momentum * s[0] - step;
    return w + n.momentum * s[0] - step;
  }
};

struct SignSgd {
  static constexpr int kStates = 0;
  template <typename C>
  COHORT_HOST_DEVICE static C of(C w, C g, C *, const UpdateNumbers<C> &n) {
    return (C(1) - n.lr * n.wd) * w - n.lr * sign(g);
  }
};

struct Signum {  // s: momentum
  static constexpr int kStates = 1;
  template <typename C>
  COHORT_HOST_DEVICE static C of(C w, C g, C *s, const UpdateNumbers<C> &n) {
    s[0] = n.momentum * s[0] - (C(1) - n.momentum) * (n.wd * w + scaled(g, n));
    return (C(1) - n.lr * n.wd_lh) * w + n.lr * sign(s[0]);
  }
};

struct Adam {  // s: mean, variance
  static constexpr int kStates = 2;
  template <typename C>
  COHORT_HOST_DEVICE static C of(C w, C g, C *s, const UpdateNumbers<C> &n) {
    const C d = scaled_with_decay(w, g, n);
    s[0] = n.beta1 * s[0] + (C(1) - n.beta1) * d;
    s[1] = n.beta2 * s[1] + (C(1) - n.beta2) * d * d;
    return w - n.lr * s[0] / (std::sqrt(s[1]) + n.epsilon);
  }
};

struct AdamW {  // s: mean, variance; weight decay is separate from the gradient
  static constexpr int kStates = 2;
  template <typename C>
  COHORT_HOST_DEVICE static C of(C w, C g, C *s, const UpdateNumbers<C> &n) {
    const C d = scaled(g, n);
    s[0] = n.beta1 * s[0] + (C(1) - n.beta1) * d;
    s[1] = n.beta2 * s[1] + (C(1) - n.beta2) * d * d;
    return w - n.eta * (n.lr * s[0] / (std::sqrt(s[1]) + n.epsilon) + n.wd * w);
  }
};

struct RmsProp {  // s: mean square
  static constexpr int kStates = 1;
  template <typename C>
  COHORT_HOST_DEVICE static C of(C w, C g, C *s, const UpdateNumbers<C> &n) {
    const C d = scaled_with_decay(w, g, n);
    s[0] = (C(1) - n.beta1) * d * d + n.beta1 * s[0];
    return clipped(w - n.lr * d / std::sqrt(s[0] + n.epsilon), n.clip_weights);
  }
};

struct RmsPropAlex {  // s: mean square, mean, step
  static constexpr int kStates = 3;
  template <typename C>
  COHORT_HOST_DEVICE static C of(C w, C g, C *s, const UpdateNumbers<C> &n) {
    const C d = scaled_with_decay(w, g, n);
    s[0] = (C(1) - n.beta1) * d * d + n.beta1 * s[0];
    s[1] = (C(1) - n.beta1) * d + n.beta1 * s[1];
    s[2] = n.beta2 * s[2] - n.lr * d / std::sqrt(s[0] - s[1] * s[1] + n.epsilon);
    return clipped(w + s[2], n.clip_weights);
  }
};

struct Adagrad {  // s: sum of squares
  static constexpr int kStates = 1;
  template <typename C>
  COHORT_HOST_DEVICE static C of(C w, C g, C *s, const UpdateNumbers<C> &n) {
    const C d = scaled(g, n);
    s[0] += d * d;
    return w - n.lr * (d / std::sqrt(s[0] + n.epsilon) + n.wd * w);
  }
};

struct Ftrl {  // s: z, n
  static constexpr int kStates = 2;
  template <typename C>
  COHORT_HOST_DEVICE static C of(C w, C g, C *s, const UpdateNumbers<C> &n) {
    const C d = scaled(g, n), before = std::sqrt(s[1]);
    s[1] += d * d;
    const C after = std::sqrt(s[1]);
    s[0] += d - (after - before) * w / n.lr;
    const C next = (sign(s[0]) * n.lamda1 - s[0]) / ((n.beta + after) / n.lr + n.wd);
    return std::fabs(s[0]) <= n.lamda1 ? C(0) : next;  // a NaN propagates
  }
};

struct Ftml {  // s: d, v, z
  static constexpr int kStates = 3;
  template <typename C>
  COHORT_HOST_DEVICE static C of(C w, C g, C *s, const UpdateNumbers<C> &n) {
    const C d = scaled_with_decay(w, g, n);
    s[1] = n.beta2 * s[1] + (C(1) - n.beta2) * d * d;
    const C next = n.correction1 / n.lr * (std::sqrt(s[1] / n.correction2) + n.epsilon);
    s[2] = n.beta1 * s[2] + (C(1) - n.beta1) * d - (next - n.beta1 * s[0]) * w;
    s[0] = next;
    return -s[2] / next;
  }
};

struct AdaDelta {  // s: mean square of gradients, of steps; weight decay is separate from the gradient
  static constexpr int kStates = 2;
  template <typename C>
  COHORT_HOST_DEVICE static C of(C w, C g, C *s, const UpdateNumbers<C> &n) {
    const C d = scaled(g, n);
    s[0] = n.beta1 * s[0] + n.rest1 * d * d;
    const C step = std::sqrt(s[1] + n.epsilon) / std::sqrt(s[0] + n.epsilon) * d;
    s[1] = n.beta1 * s[1] + n.rest1 * step * step;
    return w - (step + n.wd * w);
  }
};

struct Adamax {  // s: mean, largest
  static constexpr int kStates = 2;
  template <typename C>
  COHORT_HOST_DEVICE static C of(C w, C g, C *s, const UpdateNumbers<C> &n) {
    const C d = scaled_with_decay(w, g, n), size = std::fabs(d), faded = n.beta2 * s[1];
    s[0] = n.beta1 * s[0] + n.rest1 * d;
    s[1] = faded > size ? faded : size;
    return s[1] == C(0) ? w : w - n.lr * s[0] / s[1];  // 0 if all gradients so far were 0
  }
};

struct Nadam {  // s: mean, variance
  static constexpr int kStates = 2;
  template <typename C>
  COHORT_HOST_DEVICE static C of(C w, C g, C *s, const UpdateNumbers<C> &n) {
    const C d = scaled_with_decay(w, g, n);
    s[0] = n.beta1 * s[0] + n.rest1 * d;
    s[1] = n.beta2 * s[1] + n.rest2 * d * d;
    return w - n.lr * (n.gradient_part * d + n.mean_part * s[0]) / (std::sqrt(s[1] / n.correction2) + n.epsilon);
  }
};

struct Dcasgd {  // s: previous weight
  static constexpr int kStates = 1;
  template <typename C>
  COHORT_HOST_DEVICE static C step(C w, C g, C *s, const UpdateNumbers<C> &n) {
    const C d = scaled(g, n), before = s[0];
    s[0] = w;
    return -n.lr * (d + n.wd * w + n.lamda1 * d * d * (w - before));
  }
  template <typename C>
  COHORT_HOST_DEVICE static C of(C w, C g, C *s, const UpdateNumbers<C> &n) {
    return w + step(w, g, s, n);
  }
};

struct DcasgdMom {  // s: previous weight, momentum
  static constexpr int kStates = 2;
  template <typename C>
  COHORT_HOST_DEVICE static C of(C w, C g, C *s, const UpdateNumbers<C> &n) {
    s[1] = n.momentum * s[1] + Dcasgd::step(w, g, s, n);
    return w + s[1];
  }
};

struct Test {  // s: the new weight
  static constexpr int kStates = 1;
  template <typename C>
  COHORT_HOST_DEVICE static C of(C w, C g, C *s, const UpdateNumbers<C> &n) {
    return s[0] = w + n.rescale * g;
  }
};

// Langevin dynamics: `noise` is standard normal.
struct Sgld {
  template <typename C>
  COHORT_HOST_DEVICE static C of(C w, C g, C noise, const UpdateNumbers<C> &n) {
    return w - n.lr / C(2) * (scaled(g, n) + n.wd * w) + n.deviation * noise;
  }
};

// Large-batch SGD: each step uses the mean of several gradients.
struct Gathered {  // s: momentum, sum so far
  static constexpr int kStates = 2;
  template <typename C>
  COHORT_HOST_DEVICE static C seen(C g, const C *s, const UpdateNumbers<C> &n) {  // the gradient of the step
    return (s[1] + n.unscale * g) / n.gathered;
  }
  template <typename C>
  COHORT_HOST_DEVICE static C of(C w, C g, C *s, const UpdateNumbers<C> &n) {
    const C mean = seen(g, s, n);
    s[1] = n.due != C(0) ? C(0) : s[1] + n.unscale * g;
    return n.due != C(0) ? SgdMom::of(w, mean, s, n) : w;
  }
};
// Likewise, with a step for every gradient.
template <typename Rule>
struct Single {
  static constexpr int kStates = Rule::kStates;
  template <typename C>
  COHORT_HOST_DEVICE static C seen(C g, const C *, const UpdateNumbers<C> &n) {
    return n.unscale * g;
  }
  template <typename C>
  COHORT_HOST_DEVICE static C of(C w, C g, C *s, const UpdateNumbers<C> &n) {
    return Rule::of(w, n.unscale * g, s, n);
  }
};

struct LambPhase1 {  // s: mean, variance; returns the direction, not the weight
  static constexpr int kStates = 2;
  template <typename C>
  COHORT_HOST_DEVICE static C of(C w, C g, C *s, const UpdateNumbers<C> &n) {
    const C d = scaled(g, n);
    s[0] = n.beta1 * s[0] + (C(1) - n.beta1) * d;
    s[1] = n.beta2 * s[1] + (C(1) - n.beta2) * d * d;
    return (s[0] / n.correction1) / (std::sqrt(s[1] / n.correction2) + n.epsilon) + n.wd * w;
  }
};

struct LambPhase2 {  // g: the direction; lr has been scaled by the norms
  static constexpr int kStates = 0;
  template <typename C>
  COHORT_HOST_DEVICE static C of(C w, C g, C *, const UpdateNumbers<C> &n) {
    return w - n.lr * g;
  }
};

// Factors for a layer's learning rate, from the sums of squares of its weight and of its step or gradient.

struct LambScale {
  COHORT_HOST_DEVICE static double of_norms(double weight, double step, const UpdateNumbers<double> &n) {
    const double norm = weight < n.lower ? n.lower : weight > n.upper ? n.upper : weight;
    return norm == 0 || step == 0 ? 1 : norm / step;
  }
  COHORT_HOST_DEVICE static double of(double weight, double step, const UpdateNumbers<double> &n) {
    return of_norms(std::sqrt(weight), std::sqrt(step), n);
  }
};

struct LarsScale {
  COHORT_HOST_DEVICE static double of(double weight, double gradient, const UpdateNumbers<double> &n) {
    if (n.by_norms == 0 || !(weight > 0 && gradient > 0)) return 1;
    const double norm = std::sqrt(weight);
    return n.eta * norm / (std::sqrt(gradient) * n.rescale + n.wd * norm + n.epsilon);
  }
};

struct LbsgdScale {
  COHORT_HOST_DEVICE static double of(double weight, double gradient, const UpdateNumbers<double> &n) {
    const double scale = std::sqrt(weight / (gradient + n.wd * weight + 1e-18));
    return scale < 0.01 ? 0.01 : scale > 100 ? 100 : scale;
  }
};

}  // namespace update
}  // namespace cohort
