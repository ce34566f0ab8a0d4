// SPDX-License-Identifier: Apache-2.0
// The formulas of parameter updates, one functor each, for the kernels of every backend. C is float or double.
#pragma once

#include <cmath>

#include "base/dtype.hpp"

namespace cohort {

// What a formula reads beside weight, gradient and states. Limits below which nothing is cut are infinite here.
template <typename C>
struct UpdateNumbers {
  C lr = 0, wd = 0, rescale = 1, clip = INFINITY;
  C momentum = 0, wd_lh = 0, eta = 0, epsilon = 0;
  C beta1 = 0, beta2 = 0, clip_weights = INFINITY;
  C correction1 = 1, correction2 = 1;  // 1 - beta^t
  C lamda1 = 0, beta = 0;

  template <typename D>
  COHORT_HOST_DEVICE UpdateNumbers<D> as() const {
    return {D(lr),    D(wd),    D(rescale),      D(clip),        D(momentum),    D(wd_lh),  D(eta), D(epsilon),
            D(beta1), D(beta2), D(clip_weights), D(correction1), D(correction2), D(lamda1), D(beta)};
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

// of(w, g, s, n) gives the new weight and changes the states s.

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

struct AdamW {  // s: mean, variance; the decay is apart from the gradient
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
    return std::fabs(s[0]) > n.lamda1 ? next : C(0);
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

struct LambPhase1 {  // s: mean, variance; gives the direction, not the weight
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

}  // namespace update
}  // namespace cohort
