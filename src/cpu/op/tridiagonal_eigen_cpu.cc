// SPDX-License-Identifier: Apache-2.0
#include "cpu/op/tridiagonal_eigen.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/op/gemm.hpp"
#include "cpu/simd.hpp"

namespace cohort {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr int64_t kEight = 8;
using Eight [[gnu::vector_size(64), gnu::aligned(8), gnu::may_alias]] = double;

int64_t whole_eights(int64_t count) { return (count + kEight - 1) / kEight * kEight; }
double sum(const Eight &x) { return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7])); }

// The terms of f and of its derivative, summed over poles below x and over those above it.
struct Secular {
  double below = 0, above = 0;              // sums of z^2 / (pole - x)
  double slope_below = 0, slope_above = 0;  // sums of (z / (pole - x))^2

  // away (count, in whole vectors; z is 0 behind count) is the distance of the poles from the origin from which x is
  // measured.
  static Secular run(const double *away, const double *z, int64_t count, double x) {
    Eight below = {}, above = {}, slope_below = {}, slope_above = {};
    const Eight zero = {};
    for (int64_t j = 0; j < count; j += kEight) {
      const Eight distance = *reinterpret_cast<const Eight *>(away + j) - x;
      const Eight weight = *reinterpret_cast<const Eight *>(z + j), ratio = weight / distance;
      const Eight term = weight * ratio, slope = ratio * ratio;
      below += distance < 0 ? term : zero;
      above += distance < 0 ? zero : term;
      slope_below += distance < 0 ? slope : zero;
      slope_above += distance < 0 ? zero : slope;
    }
    return {sum(below), sum(above), sum(slope_below), sum(slope_above)};
  }
};

// Recomputes the numerators z that have exactly these roots (Gu and Eisenstat), in whole vectors.
struct TakeRoot {
  // anew *= (pole - root) / (pole - own), where `own` is the pole of the root; `away` is pole - root.
  static void run(const double *away, const double *poles, double own, int64_t count, double *anew) {
    for (int64_t j = 0; j < count; j += kEight) {
      *reinterpret_cast<Eight *>(anew + j) *=
          *reinterpret_cast<const Eight *>(away + j) / (*reinterpret_cast<const Eight *>(poles + j) - own);
    }
  }
};

// away = z / away, normalised to length 1.
struct MakeVector {
  static void run(const double *z, int64_t count, double *away) {
    Eight square = {};
    for (int64_t j = 0; j < count; j += kEight) {
      Eight *const at = reinterpret_cast<Eight *>(away + j);
      *at = *reinterpret_cast<const Eight *>(z + j) / *at;
      square += *at * *at;
    }
    const double factor = 1 / std::sqrt(sum(square));
    for (int64_t j = 0; j < count; j += kEight) *reinterpret_cast<Eight *>(away + j) *= factor;
  }
};

// The zero of c x^2 - a x + b that is close to the one of -a x + b, or the other one.
double quadratic(double a, double b, double c, bool other) {
  const double root = std::sqrt(std::max(a * a - 4 * b * c, 0.0));
  if (other) return a >= 0 ? (a + root) / (2 * c) : 2 * b / (a - root);
  return a > 0 ? 2 * b / (a + root) : (a - root) / (2 * c);
}

}  // namespace

// The problem D + rho z z^T without the deflated elements.
struct TridiagonalEigen::Merged {
  int64_t count;
  double rho;
  const double *poles, *z;
  const int64_t *ranked;  // the order of the poles
  double *away;

  // Computes root i as its distance from a pole, *origin; away becomes pole - root for all poles.
  double root(int64_t i, int64_t *origin) const {
    static const auto secular = best_version<Secular>();
    const bool last = i + 1 == count;
    // f is modelled by the two poles around the root; for the last root both are below it.
    int64_t left = ranked[last ? std::max<int64_t>(i - 1, 0) : i], right = ranked[last ? i : i + 1];
    const int64_t whole = whole_eights(count);
    const auto place = [&](int64_t pole) {
      *origin = pole;
      for (int64_t j = 0; j < count; ++j) away[j] = poles[j] - poles[pole];
      std::fill(away + count, away + whole, std::numeric_limits<double>::infinity());
    };
    double low = 0, high = 0, x;
    if (last) {
      place(right);
      for (int64_t j = 0; j < count; ++j) high += z[j] * z[j];
      high *= rho * (1 + 4 * kEpsilon);  // certainly above the root
      x = count == 1 ? high : high / 2;
    } else {
      place(left);
      const double gap = away[right], half = gap / 2;
      const Secular s = secular(away, z, whole, half);
      const double f = 1 + rho * (s.below + s.above);
      const double to_left = rho * z[left] * z[left], to_right = rho * z[right] * z[right];
      const double c = f + (to_left - to_right) / half;  // of all other poles
      high = half;
      if (f < 0) {
        place(right);
        low = -half, high = 0;
      }
      const double l = away[left], r = away[right];
      x = quadratic(c * (l + r) + to_left + to_right, to_left * r + to_right * l, c, false);
      if (!(x > low && x < high)) x = (low + high) / 2;
    }
    for (int step = 0; step < 200; ++step) {
      Secular s = secular(away, z, whole, x);
      const double f = 1 + rho * (s.below + s.above), slope = rho * (s.slope_below + s.slope_above);
      if (!(std::fabs(f) > kEpsilon * (1 + 4 * rho * (s.above - s.below) + std::fabs(x) * slope))) break;
      (f < 0 ? low : high) = x;
      const double l = away[left] - x, r = away[right] - x;
      if (last) {  // its own pole counts as the right one
        const double ratio = z[right] / r;
        s.slope_below -= ratio * ratio;
        s.slope_above = ratio * ratio;
      }
      const double c = f - rho * (l * s.slope_below + r * s.slope_above);
      double next = x + quadratic((l + r) * f - l * r * slope, l * r * f, c, last);
      if (!(next > low && next < high)) next = low + (high - low) / 2;
      if (std::fabs(next - x) <= kEpsilon * std::fabs(next) || next == low || next == high) break;
      x = next;
    }
    for (int64_t j = 0; j < count; ++j) away[j] -= x;
    return x;
  }
};

int64_t TridiagonalEigen::room(int64_t n) { return n * n + (n + 9) * whole_eights(n); }

TridiagonalEigen::TridiagonalEigen(int64_t n, double *diagonal, const double *beside, double *u, double *room)
    : n_(n),
      width_(whole_eights(n)),
      d_(diagonal),
      beside_(beside),
      u_(u),
      rows_(room),
      vectors_(rows_ + n * n),
      z_(vectors_ + n * width_),
      poles_(z_ + width_),
      weights_(poles_ + width_),
      roots_(weights_ + width_),
      anew_(roots_ + width_),
      order_(reinterpret_cast<int64_t *>(anew_ + width_)),
      kept_(order_ + width_),
      side_(kept_ + width_),
      place_(side_ + width_) {}

void TridiagonalEigen::run() const {
  std::fill_n(u_, n_ * n_, 0.0);
  for (int64_t i = 0; i < n_; ++i) u_[i * n_ + i] = 1;
  decompose(0, n_);
}

void TridiagonalEigen::decompose(int64_t begin, int64_t end) const {
  if (end - begin < 2) return;
  const int64_t middle = begin + (end - begin) / 2;
  const double joint = beside_[middle - 1], size = std::fabs(joint);
  d_[middle - 1] -= size;
  d_[middle] -= size;
  decompose(begin, middle);
  decompose(middle, end);
  if (joint != 0) merge(begin, middle, end, joint);
}

// Deflation. Elements of z that are negligible, and, after a rotation, one of two whose D are nearly equal, leave a
// vector as it is. kept_ holds the numbers of the others in the order of their D; returns how many. side_ says in
// which half the elements of a vector are: 0 in the first, 1 in both, 2 in the second; 3: deflated.
int64_t TridiagonalEigen::leave_out(int64_t begin, int64_t middle, int64_t end, double rho) const {
  const int64_t count = end - begin;
  double *const d = d_ + begin;
  double top = rho;
  for (int64_t j = 0; j < count; ++j) {
    order_[j] = j;
    side_[j] = j < middle - begin ? 0 : 2;
    top = std::max(top, std::fabs(d[j]));
  }
  std::sort(order_, order_ + count, [d](int64_t x, int64_t y) { return d[x] != d[y] ? d[x] < d[y] : x < y; });
  const double small = 4 * kEpsilon * top;
  int64_t num_kept = 0, before = -1;
  for (int64_t k = 0; k < count; ++k) {
    const int64_t j = order_[k];
    if (rho * std::fabs(z_[j]) <= small) {
      side_[j] = 3;
      continue;
    }
    if (before >= 0) {
      const double both = std::sqrt(z_[before] * z_[before] + z_[j] * z_[j]), c = z_[j] / both, s = z_[before] / both;
      if (std::fabs((d[j] - d[before]) * c * s) <= small) {
        double *const x = u_ + (begin + before) * n_ + begin, *const y = u_ + (begin + j) * n_ + begin;
        for (int64_t i = 0; i < count; ++i) {
          const double was = x[i];
          x[i] = c * was - s * y[i];
          y[i] = c * y[i] + s * was;
        }
        const double first = d[before], second = d[j];
        d[before] = first * c * c + second * s * s;
        d[j] = first * s * s + second * c * c;
        z_[j] = both;
        if (side_[before] != side_[j]) side_[j] = 1;
        side_[before] = 3;
      } else {
        kept_[num_kept++] = before;
      }
    }
    before = j;
  }
  if (before >= 0) kept_[num_kept++] = before;
  return num_kept;
}

void TridiagonalEigen::merge(int64_t begin, int64_t middle, int64_t end, double joint) const {
  static const auto take_root = best_version<TakeRoot>();
  static const auto make_vector = best_version<MakeVector>();
  const int64_t count = end - begin, first = middle - begin;
  double *const d = d_ + begin, *const u = u_ + begin * n_ + begin;
  // z is the row of vectors at the joint, normalised to length 1; the factor is then 2 rho.
  for (int64_t j = 0; j < count; ++j) {
    z_[j] = (j < first ? u[j * n_ + first - 1] : std::copysign(1.0, joint) * u[j * n_ + first]) * std::sqrt(0.5);
  }
  const double rho = 2 * std::fabs(joint);
  const int64_t num_kept = leave_out(begin, middle, end, rho);
  if (num_kept == 0) return;
  // Sorts vectors by their sides.
  int64_t starts[5] = {};
  for (int64_t j = 0; j < count; ++j) ++starts[side_[j] + 1];
  for (int k = 0; k < 4; ++k) starts[k + 1] += starts[k];
  const int64_t only_first = starts[1], not_second = starts[2];
  double top = rho;
  for (int64_t j = 0; j < count; ++j) {
    place_[j] = starts[side_[j]]++;
    std::copy_n(u + j * n_, count, rows_ + place_[j] * count);
    roots_[place_[j]] = d[j];
    top = std::max(top, std::fabs(d[j]));
  }
  const double scale = std::ldexp(1.0, -std::max(std::ilogb(top), -1000));  // keeps numbers from being too small
  for (int64_t i = 0; i < num_kept; ++i) {
    poles_[place_[kept_[i]]] = d[kept_[i]] * scale;
    weights_[place_[kept_[i]]] = z_[kept_[i]];
    kept_[i] = place_[kept_[i]];
  }
  const int64_t whole = whole_eights(num_kept);
  std::fill(weights_ + num_kept, weights_ + whole, 0.0);
  std::fill(poles_ + num_kept, poles_ + whole, 0.0);
  std::fill_n(anew_, whole, 1.0);
  for (int64_t i = 0; i < num_kept; ++i) {
    double *const vector = vectors_ + i * whole;
    const Merged merged{num_kept, rho * scale, poles_, weights_, kept_, vector};
    int64_t origin = 0;
    const double x = merged.root(i, &origin);
    roots_[i] = (poles_[origin] + x) / scale;
    const int64_t own = kept_[i];
    const double kept = anew_[own] * vector[own];
    take_root(vector, poles_, poles_[own], whole, anew_);
    anew_[own] = kept;
  }
  for (int64_t j = 0; j < whole; ++j)
    anew_[j] = j < num_kept ? std::copysign(std::sqrt(std::fabs(anew_[j])), weights_[j]) : 0;
  for (int64_t i = 0; i < num_kept; ++i) make_vector(anew_, whole, vectors_ + i * whole);
  std::copy_n(roots_, count, d);
  gemm(false, false, num_kept, first, not_second, vectors_, whole, rows_, count, 0.0, u, n_);
  gemm(false, false, num_kept, count - first, num_kept - only_first, vectors_ + only_first, whole,
       rows_ + only_first * count + first, count, 0.0, u + first, n_);
  for (int64_t j = num_kept; j < count; ++j) std::copy_n(rows_ + j * count, count, u + j * n_);
}

}  // namespace cohort
