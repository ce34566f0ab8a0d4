// SPDX-License-Identifier: Apache-2.0
// Softmax along one axis, for the kernels of losses: y = exp(x - max) / sum(exp(x - max)). Computed in C (float or
// double), on arrays of C.
#pragma once

#include <cstdint>

#include "cpu/op/pointwise_loops.hpp"

namespace cohort {

// Computes one long row in fewer passes if its numbers are in a common range, so that their powers are neither
// infinite nor subnormal. Else returns false and leaves y as it was, with the largest number in *top. y may be x. The
// pointer is null if this processor lacks the instructions.
using UsualSoftmaxRow = bool (*)(const float *x, float *y, int64_t cols, float *top);
constexpr int64_t kShortestUsualRow = 64;
UsualSoftmaxRow usual_softmax_row();

template <typename C>
class SoftmaxRows {
 public:
  SoftmaxRows();
  // count rows of `cols` contiguous elements. y may be x.
  void rows(const C *x, C *y, int64_t count, int64_t cols) const;
  // The logarithms of softmax: y = x - max - log(sum(exp(x - max))).
  void log_rows(const C *x, C *y, int64_t count, int64_t cols) const;
  // One slab (cols, inner), along cols. y may be x.
  void slab(const C *x, C *y, int64_t cols, int64_t inner) const;

 private:
  const PointwiseLoop<C> exp_, exp_less_;
  C (*const top_)(const C *x, int64_t count);  // the largest element of a row
  C (*const sum_)(const C *x, int64_t count);
  // On several rows: subtract the largest element; divide by the sum; logarithms.
  void (*const less_top_)(const C *x, C *y, C *tops, int64_t rows, int64_t cols);
  void (*const norm_)(C *y, int64_t rows, int64_t cols);
  void (*const log_)(const C *x, const C *tops, const C *powers, C *y, int64_t rows, int64_t cols);
  const UsualSoftmaxRow usual_ = usual_softmax_row();
};

extern template class SoftmaxRows<float>;
extern template class SoftmaxRows<double>;

}  // namespace cohort
