// SPDX-License-Identifier: Apache-2.0
// Eigenvectors and eigenvalues of symmetric tridiagonal matrices, for linalg_eigen_cpu.cc.
#pragma once

#include <cstdint>

namespace cohort {

// By divide and conquer. Two halves are decomposed without the element that joins them; what it adds is of rank one,
// and the eigenvalues of D + rho z z^T are the roots of f(x) = 1 + rho sum(z_j^2 / (D_j - x)), one between each two D.
// Roots are kept as their distance from the next D, and z is made anew from them: so vectors are orthogonal however
// close roots lie (Gu and Eisenstat). Every search for a root has an end, as its interval shrinks: there is no input
// for which the method does not converge.
class TridiagonalEigen {
 public:
  static int64_t room(int64_t n);  // elements
  // diagonal (n) becomes the eigenvalues, in no order; beside (n - 1) are the elements beside it; rows of u (n, n)
  // become the vectors. No element is larger than a few.
  TridiagonalEigen(int64_t n, double *diagonal, const double *beside, double *u, double *room);
  void run() const;

 private:
  struct Merged;
  void decompose(int64_t begin, int64_t end) const;
  void merge(int64_t begin, int64_t middle, int64_t end, double rho) const;
  int64_t leave_out(int64_t begin, int64_t middle, int64_t end, double rho) const;

  const int64_t n_, width_;  // width_: n in whole vectors
  double *const d_;
  const double *const beside_;
  double *const u_;
  double *const rows_, *const vectors_;  // (n, n), (n, width)
  double *const z_, *const poles_, *const weights_, *const roots_, *const anew_;
  int64_t *const order_, *const kept_, *const side_, *const place_;
};

}  // namespace cohort
