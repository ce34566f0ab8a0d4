// SPDX-License-Identifier: Apache-2.0
// Eigenvectors and eigenvalues of symmetric tridiagonal matrices, for linalg_eigen_cpu.cc.
#pragma once

#include <cstdint>

namespace cohort {

// Divide and conquer. Both halves are decomposed without the element that joins them; that element contributes a
// matrix of rank one, and the eigenvalues of D + rho z z^T are the roots of f(x) = 1 + rho sum(z_j^2 / (D_j - x)),
// one between each two D. Roots are kept as distances from the nearest D, and z is recomputed from them, so that
// vectors are orthogonal however close roots lie (Gu and Eisenstat). Every search for a root ends, because its
// interval shrinks: the method converges for all inputs.
class TridiagonalEigen {
 public:
  static int64_t room(int64_t n);  // scratch elements
  // On entry, diagonal (n) and beside (n - 1) hold the matrix, whose elements must not be larger than a few. On
  // return, diagonal holds the eigenvalues in no particular order, and the rows of u (n, n) the vectors.
  TridiagonalEigen(int64_t n, double *diagonal, const double *beside, double *u, double *room);
  void run() const;

 private:
  struct Merged;
  void decompose(int64_t begin, int64_t end) const;
  void merge(int64_t begin, int64_t middle, int64_t end, double rho) const;
  int64_t leave_out(int64_t begin, int64_t middle, int64_t end, double rho) const;

  const int64_t n_, width_;  // width_: n rounded up to whole vectors
  double *const d_;
  const double *const beside_;
  double *const u_;
  double *const rows_, *const vectors_;  // (n, n), (n, width)
  double *const z_, *const poles_, *const weights_, *const roots_, *const anew_;
  int64_t *const order_, *const kept_, *const side_, *const place_;
};

}  // namespace cohort
