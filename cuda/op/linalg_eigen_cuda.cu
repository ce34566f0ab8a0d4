// SPDX-License-Identifier: Apache-2.0
// syevd: eigenvectors and eigenvalues of symmetric matrices, one block per matrix. The largest element of each vector
// is positive.
#include <cfloat>
#include <cmath>

#include "cuda/op/cuda_backend.cuh"
#include "cuda/op/expected.cuh"
#include "kernels/linalg_loops.hpp"
#include "kernels/linalg_reflections.hpp"
#include "op/linalg.hpp"

namespace cohort {
namespace {

using linalg::Batch;

// Reduces to tridiagonal form by reflections, then applies the implicit QL method: one thread computes the rotations,
// all threads apply them, each to its own columns. Works in double, on a matrix scaled so that its largest element is
// between 1/2 and 1. The order of sums does not depend on the block.
template <typename C>
class SyevdCuda {
 public:
  explicit SyevdCuda(const StepSpec &spec)
      : e_(spec.inputs[0].shape),
        room_(whole_lines(e_.area() + kNumLines * e_.cols + kStateWords)),
        num_rooms_(CudaBackend::num_slots(spec, e_.count, work())) {}
  size_t extra() const { return size_t(num_rooms_ * room_) * (sizeof(double) / sizeof(C)); }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    double *const memory = reinterpret_cast<double *>(extra);
    CudaBackend::for_each_block_with_slot(lane, e_.count, work(), [=, *this] __device__(int64_t index, int64_t room) {
      decompose(in[0] + index * e_.area(), memory + room * room_, out[0] + index * e_.area(),
                out[1] ? out[1] + index * e_.cols : nullptr);
    });
  }

 private:
  static constexpr int64_t kNumLines = 6, kStateWords = 4;
  int64_t work() const { return e_.area() * e_.cols; }

  // One sweep of QL: rotations of the row pairs (i, i + 1) for low <= i < high, the last first.
  struct Sweep {
    int64_t row, left, low, high;  // values before `row` are found; sweeps left; high < 0: finished
  };

  // The matrix, which is overwritten by the reflections and then by the vectors, in rows; and vectors of n numbers.
  struct EigenWorkspace {
    int64_t n;
    double *a, *diagonal, *beside, *taus, *cosines, *sines, *along;
    Sweep *sweep;
    __device__ EigenWorkspace(int64_t order, double *at)
        : n(order),
          a(at),
          diagonal(at + n * n),
          beside(diagonal + n),
          taus(beside + n),
          cosines(taus + n),
          sines(cosines + n),
          along(sines + n),
          sweep(reinterpret_cast<Sweep *>(along + n)) {}
  };

  __device__ void decompose(const C *from, double *at, C *vectors, C *values) const {
    const EigenWorkspace r(e_.cols, at);
    if (r.n == 0) return;
    int exponent = 0;
    bool found = load(r, from, &exponent);
    if (found) {
      tridiagonalize(r);
      turn_back(r);
      found = find_values(r);
    }
    if (found) return write(r, exponent, vectors, values);
    linalg::fill<CudaBackend>(vectors, r.n * r.n, C(NAN));
    if (values) linalg::fill<CudaBackend>(values, r.n, C(NAN));
  }

  // Loads the lower triangle and its mirror image, divided by a power of 2. False if a number is not finite.
  __device__ bool load(const EigenWorkspace &r, const C *from, int *exponent) const {
    const int64_t n = r.n;
    linalg::share_each<CudaBackend>(n, [&](int64_t j) {
      double top = 0;
      for (int64_t i = j; i < n; ++i) {
        const double size = fabs(double(from[i * n + j]));
        if (!(size <= top)) top = size <= DBL_MAX ? size : INFINITY;
      }
      r.along[j] = top;
    });
    double top = 0;
    for (int64_t j = 0; j < n; ++j) top = fmax(top, r.along[j]);
    if (!(top <= DBL_MAX)) return false;
    frexp(top, exponent);
    // In two steps: neither 2^1024 nor 2^-1074 has an inverse.
    const double half = ldexp(1.0, -(*exponent / 2)), rest = ldexp(1.0, -(*exponent - *exponent / 2));
    linalg::share_each<CudaBackend>(n, [&](int64_t j) {
      for (int64_t i = 0; i < n; ++i) r.a[i * n + j] = double(from[i < j ? j * n + i : i * n + j]) * half * rest;
    });
    return true;
  }

  // Reflection i zeroes row i except element i - 1; its vector is stored in that row, and the matrix above is updated
  // by a -= v w^T + w v^T.
  __device__ void tridiagonalize(const EigenWorkspace &r) const {
    const int64_t n = r.n;
    double *const a = r.a, *const w = r.along;
    for (int64_t i = n - 1; i > 0; --i) {
      double *const v = a + i * n;
      double beta = 0;
      const double tau = linalg::make_reflection<CudaBackend>(i, v, i - 1, &beta);
      linalg::share_each<CudaBackend>(1, [&](int64_t) {
        r.diagonal[i] = v[i];
        r.beside[i - 1] = beta;
        r.taus[i] = tau;
      });
      if (tau == 0) continue;
      linalg::share_each<CudaBackend>(i, [&](int64_t j) {
        double sum = 0;
        for (int64_t k = 0; k < i; ++k) sum += a[k * n + j] * v[k];
        w[j] = sum;
      });
      const double along = CudaBackend::block_sum<double>(i, [=](int64_t j) { return v[j] * w[j]; });
      linalg::share_each<CudaBackend>(i, [&](int64_t j) { w[j] = tau * (w[j] - tau / 2 * along * v[j]); });
      linalg::share_each<CudaBackend>(i, [&](int64_t j) {
        for (int64_t k = 0; k < i; ++k) a[k * n + j] -= v[k] * w[j] + w[k] * v[j];
      });
    }
    linalg::share_each<CudaBackend>(1, [&](int64_t) {
      r.diagonal[0] = a[0];
      r.beside[n - 1] = 0;
    });
  }

  // Forms the product of all reflections, to whose rows the rotations are applied. The block above and left of row i
  // holds the product of the reflections before i.
  __device__ void turn_back(const EigenWorkspace &r) const {
    const int64_t n = r.n;
    double *const a = r.a;
    linalg::share_each<CudaBackend>(1, [&](int64_t) { a[0] = 1; });
    for (int64_t i = 1; i < n; ++i) {
      double *const v = a + i * n;
      const double tau = r.taus[i];
      linalg::share_each<CudaBackend>(i, [&](int64_t j) {
        double sum = 0;
        for (int64_t k = 0; k < i; ++k) sum += v[k] * a[k * n + j];
        sum *= tau;
        for (int64_t k = 0; k < i; ++k) a[k * n + j] -= v[k] * sum;
      });
      linalg::share_each<CudaBackend>(i + 1, [&](int64_t j) { v[j] = a[j * n + i] = j == i ? 1 : 0; });
    }
    linalg::transpose_square<CudaBackend>(n, a);
  }

  // Sweeps until the off-diagonal is zero; false if it does not converge.
  __device__ bool find_values(const EigenWorkspace &r) const {
    const int64_t n = r.n;
    linalg::share_each<CudaBackend>(1, [&](int64_t) { *r.sweep = {0, 30 * n, 0, 0}; });
    for (;;) {
      linalg::share_each<CudaBackend>(1, [&](int64_t) { find_sweep(r); });
      const Sweep sweep = *r.sweep;
      if (sweep.high < 0) return sweep.left > 0;
      linalg::share_each<CudaBackend>(n, [&](int64_t j) {
        double carried = r.a[sweep.high * n + j];
        for (int64_t i = sweep.high - 1; i >= sweep.low; --i) {
          const double next = r.a[i * n + j], c = r.cosines[i], s = r.sines[i];
          r.a[(i + 1) * n + j] = s * next + c * carried;
          carried = c * next - s * carried;
        }
        r.a[sweep.low * n + j] = carried;
      });
    }
  }

  // Called by one thread: computes the next rotations. An off-diagonal element counts as 0 if it is negligible against
  // its neighbours on the diagonal, or against the largest element.
  __device__ static void find_sweep(const EigenWorkspace &r) {
    Sweep *const sweep = r.sweep;
    double *const d = r.diagonal, *const e = r.beside;
    int64_t l = sweep->row, m = l;
    for (; l < r.n; ++l) {
      for (m = l; m + 1 < r.n; ++m) {
        if (fabs(e[m]) <= DBL_EPSILON * (fabs(d[m]) + fabs(d[m + 1])) + DBL_MIN / DBL_EPSILON) break;
      }
      if (m > l) break;
    }
    sweep->row = l;
    if (l >= r.n || --sweep->left == 0) {
      sweep->high = -1;
      return;
    }
    double g = (d[l + 1] - d[l]) / (2 * e[l]);
    g = d[m] - d[l] + e[l] / (g + copysign(hypot(g, 1.0), g));
    double s = 1, c = 1, p = 0;
    e[m] = 0;
    int64_t i = m - 1;
    for (; i >= l; --i) {
      const double f = s * e[i], b = c * e[i], length = hypot(f, g);
      if (i + 1 < m) e[i + 1] = length;
      if (length == 0) break;
      s = f / length;
      c = g / length;
      g = d[i + 1] - p;
      const double turned = (d[i] - g) * s + 2 * c * b;
      p = s * turned;
      d[i + 1] = g + p;
      g = c * turned - b;
      r.cosines[i] = c;
      r.sines[i] = s;
    }
    d[i + 1] -= p;
    if (i < l) e[l] = g;
    sweep->low = i + 1;
    sweep->high = m;
  }

  __device__ void write(const EigenWorkspace &r, int exponent, C *vectors, C *values) const {
    const int64_t n = r.n;
    int64_t *const order = reinterpret_cast<int64_t *>(r.taus);
    double *const signs = r.along;
    linalg::share_each<CudaBackend>(n, [&](int64_t i) {
      const double value = r.diagonal[i];
      int64_t rank = 0;
      for (int64_t j = 0; j < n; ++j) rank += r.diagonal[j] < value || (r.diagonal[j] == value && j < i);
      order[rank] = i;
    });
    linalg::share_each<CudaBackend>(n, [&](int64_t i) {
      const double *const row = r.a + order[i] * n;
      double largest = 0;
      for (int64_t k = 0; k < n; ++k) {
        if (fabs(largest) < fabs(row[k])) largest = row[k];
      }
      signs[i] = largest < 0 ? -1 : 1;
      if (values) values[i] = C(ldexp(r.diagonal[order[i]], exponent));
    });
    linalg::share_each<CudaBackend>(n, [&](int64_t k) {
      for (int64_t i = 0; i < n; ++i) vectors[i * n + k] = C(signs[i] * r.a[order[i] * n + k]);
    });
  }

  const Batch e_;
  const int64_t room_, num_rooms_;
};

// Checks that the lower triangles, the only part that is read, have finite numbers.
class FiniteCheck {
 public:
  explicit FiniteCheck(const StepSpec &spec) : e_(spec.inputs[0].shape), dtype_(spec.inputs[0].dtype) {}
  struct ElementCheck {
    Elements a;
    int64_t n;
    __device__ Finding operator()(int64_t i) const {
      const double x = load<double>(a, i);
      return {i % n <= i / n % n && !(fabs(x) <= DBL_MAX), bits_of(x), 0, 0};
    }
  };
  int64_t count() const { return e_.count * e_.area(); }
  ElementCheck element_check(const Args &args) const { return {elements_of(args.inputs[0], dtype_), e_.cols}; }
  std::string in_words(const InputError &c) const {
    return text("A: expected finite numbers, found others in matrix ", c.place / e_.area());
  }

 private:
  const Batch e_;
  const Dtype dtype_;
};

COHORT_KERNEL_BY(cuda, _linalg_syevd, make_checked<FiniteCheck, make_compute<SyevdCuda>>).named("checked");

}  // namespace
}  // namespace cohort
