// SPDX-License-Identifier: Apache-2.0
// Kernels of diag.
#pragma once

#include "kernels/backend.hpp"
#include "kernels/strided_copy.hpp"
#include "op/diag.hpp"

namespace cohort {
namespace {

// Copies the diagonal of an array into a dense array, or back; elements beside the diagonal become zero.
class DiagonalCopy final : public Kernel {
 public:
  DiagonalCopy(const DiagAttrs &a, const TensorSpec &matrix, bool into)
      : into_(into), bytes_(matrix.bytes()), element_(int64_t(dtype_size(matrix.dtype))) {
    const DiagonalRange d = diagonal_of(a, matrix.shape);
    const std::vector<int64_t> strides = dense_strides(matrix.shape);
    const int64_t down = strides[size_t(d.axis1)], right = strides[size_t(d.axis2)];
    if (d.length > 0) offset_ = d.row * down + d.column * right;
    std::vector<StridedCopy::Axis> axes = {axis(d.length, down + right, 1)};
    int64_t dense = d.length;
    for (size_t i = d.rest.size(); i-- > 0;) {
      const int64_t length = matrix.shape[d.rest[i]];
      axes.insert(axes.begin(), axis(length, strides[size_t(d.rest[i])], dense));
      dense *= length;
    }
    copy_ = StridedCopy(std::move(axes), dtype_size(matrix.dtype));
  }
  void run(const Args &args, const Lane &lane) const override {
    if (into_) zero_bytes(lane, args.outputs[0], bytes_);
    copy_.run(args.in<char>(0) + (into_ ? 0 : offset_ * element_), args.out<char>(0) + (into_ ? offset_ * element_ : 0),
              lane);
  }

 private:
  StridedCopy::Axis axis(int64_t length, int64_t matrix, int64_t diagonal) const {
    return into_ ? StridedCopy::Axis{length, diagonal, matrix} : StridedCopy::Axis{length, matrix, diagonal};
  }
  const bool into_;
  const size_t bytes_;
  const int64_t element_;
  int64_t offset_ = 0;
  StridedCopy copy_;
};

// A vector has no second axis: it becomes the diagonal of a matrix.
std::unique_ptr<Kernel> make_diagonal(const StepSpec &spec, const TensorSpec &data, const TensorSpec &result,
                                      bool backward) {
  DiagAttrs a = spec.attrs_as<DiagAttrs>();
  const bool vector = data.shape.rank() == 1;
  if (vector) {
    a.axis1 = 0;
    a.axis2 = 1;
  }
  return std::make_unique<DiagonalCopy>(a, vector ? result : data, vector != backward);
}
std::unique_ptr<Kernel> make_diag(StepSpec &spec) {
  return make_diagonal(spec, spec.inputs[0], spec.outputs[0], false);
}
std::unique_ptr<Kernel> make_diag_backward(StepSpec &spec) {
  return make_diagonal(spec, spec.outputs[0], spec.inputs[0], true);
}

COHORT_KERNEL_BY(backend, diag, make_diag);
COHORT_KERNEL_BY(backend, _backward_diag, make_diag_backward);

}  // namespace
}  // namespace cohort
