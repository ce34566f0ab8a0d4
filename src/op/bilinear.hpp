// SPDX-License-Identifier: Apache-2.0
// Linear interpolation along an axis: a position between two elements is read as a weighted sum of both. Operators
// differ in what lies beyond the ends. Compiled by nvcc, too.
#pragma once

#include "base/dtype.hpp"

namespace cohort {

// A missing neighbour has index 0 and weight and slope 0. Slopes are the derivatives of the weights by the position.
template <typename C>
struct Neighbours {
  int64_t low = 0, high = 0;
  C low_weight = 0, high_weight = 0;
  C low_slope = 0, high_slope = 0;
};

template <typename C>
COHORT_HOST_DEVICE inline Neighbours<C> between(C at, int64_t low) {
  Neighbours<C> n;
  n.low = low;
  n.high = low + 1;
  n.high_weight = at - C(low);
  n.low_weight = 1 - n.high_weight;
  n.low_slope = -1;
  n.high_slope = 1;
  return n;
}

template <typename C>
COHORT_HOST_DEVICE inline Neighbours<C> exactly(int64_t index) {
  Neighbours<C> n;
  n.low = n.high = index;
  n.low_weight = 1;
  return n;
}

// Valid from -1 to length; positions beyond the ends read the end element. Returns false outside, and for NaN.
template <typename C>
COHORT_HOST_DEVICE inline bool wide_neighbours(C at, int64_t length, Neighbours<C> *found) {
  if (!(at >= -1 && at <= C(length)) || length == 0) return false;
  const int64_t low = at <= 0 ? 0 : int64_t(at);
  *found = low >= length - 1 ? exactly<C>(length - 1) : between(at <= 0 ? C(0) : at, low);
  return true;
}

// Valid from -0.5 to length - 0.5; positions beyond the ends read the end element.
template <typename C>
COHORT_HOST_DEVICE inline bool half_neighbours(C at, int64_t length, Neighbours<C> *found) {
  if (!(at >= C(-0.5) && at <= C(length) - C(0.5)) || length == 0) return false;
  const C last = C(length - 1), inside = at < 0 ? C(0) : at > last ? last : at;
  const int64_t low = int64_t(inside);
  *found = C(low) == inside ? exactly<C>(low) : between(inside, low);
  return true;
}

// Valid in [0, length); positions after the last element read the last element.
template <typename C>
COHORT_HOST_DEVICE inline bool clamped_neighbours(C at, int64_t length, Neighbours<C> *found) {
  if (!(at >= 0 && at < C(length))) return false;
  const int64_t low = int64_t(at);
  *found = low >= length - 1 ? exactly<C>(length - 1) : between(at, low);
  return true;
}

// Valid in (-1, length); elements outside the axis count as zero.
template <typename C>
COHORT_HOST_DEVICE inline bool bordered_neighbours(C at, int64_t length, Neighbours<C> *found) {
  if (!(at > -1 && at < C(length))) return false;
  const int64_t low = at < 0 ? -1 : int64_t(at);
  Neighbours<C> n = between(at, low);
  if (low < 0) {
    n.low = 0;
    n.low_weight = n.low_slope = 0;
  }
  if (low + 1 >= length) {
    n.high = 0;
    n.high_weight = n.high_slope = 0;
  }
  *found = n;
  return true;
}

}  // namespace cohort
