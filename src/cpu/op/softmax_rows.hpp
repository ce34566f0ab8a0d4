// SPDX-License-Identifier: Apache-2.0
// Softmax along one axis, for the kernels of losses: y = exp(x - max) / sum(exp(x - max)). Computed in C (float or
// double), on arrays of C.
#pragma once

#include <cstdint>

#include "cpu/op/pointwise_loops.hpp"

namespace cohort {

// One row in fewer passes, where it is long and of usual numbers, whose powers are neither infinite nor subnormal;
// false: it is not, y is as it was, and *top is the largest number. y may be x. Null: this processor has no
// instructions for it.
using UsualSoftmaxRow = bool (*)(const float *x, float *y, int64_t cols, float *top);
constexpr int64_t kShortestUsualRow = 64;
UsualSoftmaxRow usual_softmax_row();

template <typename C>
class SoftmaxRows {
 public:
  SoftmaxRows();
  // count rows of `cols` contiguous elements. y may be x.
  void rows(const C *x, C *y, int64_t count, int64_t cols) const;
  // The same of their logarithms: y = x - max - log(sum(exp(x - max))).
  void log_rows(const C *x, C *y, int64_t count, int64_t cols) const;
  // One slab (cols, inner), along cols. y may be x.
  void slab(const C *x, C *y, int64_t cols, int64_t inner) const;

 private:
  const PointwiseLoop<C> exp_, exp_less_;
  C (*const top_)(const C *x, int64_t count);  // of a row: its largest element
  C (*const sum_)(const C *x, int64_t count);
  // Of several rows: less the largest element; by the sum; logarithms.
  void (*const less_top_)(const C *x, C *y, C *tops, int64_t rows, int64_t cols);
  void (*const norm_)(C *y, int64_t rows, int64_t cols);
  void (*const log_)(const C *x, const C *tops, const C *powers, C *y, int64_t rows, int64_t cols);
  const UsualSoftmaxRow usual_ = usual_softmax_row();
};

extern template class SoftmaxRows<float>;
extern template class SoftmaxRows<double>;

}  // namespace cohort
