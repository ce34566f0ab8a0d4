// SPDX-License-Identifier: Apache-2.0
// Kernels of device/array_work.hpp.
#pragma once

#include "device/array_work.hpp"
#include "kernels/backend.hpp"
#include "kernels/strided_copy.hpp"

namespace cohort {
namespace {

class FillAll final : public Kernel {
 public:
  explicit FillAll(const StepSpec &spec)
      : value_(spec.attrs_as<ElementFill>().value),
        all_({{spec.outputs[0].shape.size(), 1, 1}}, dtype_size(spec.outputs[0].dtype)) {}
  void run(const Args &args, const Lane &lane) const override { all_.fill(&value_, args.outputs[0], lane); }

 private:
  const uint64_t value_;
  const StridedCopy all_;
};

class CopyParts final : public Kernel {
 public:
  explicit CopyParts(const StepSpec &spec) {
    const auto &rows = spec.attrs_as<RowCopy>();
    const size_t element = dtype_size(spec.inputs[0].dtype);
    from_ = size_t(rows.from) * element;
    to_ = size_t(rows.to) * element;
    copy_ = StridedCopy({{rows.num_rows, rows.from_stride, rows.to_stride}, {rows.length, 1, 1}}, element);
  }
  void run(const Args &args, const Lane &lane) const override {
    copy_.run(args.in<char>(0) + from_, args.out<char>(0) + to_, lane);
  }

 private:
  size_t from_ = 0, to_ = 0;  // bytes
  StridedCopy copy_;
};

COHORT_KERNEL(backend, _fill_elements, FillAll);
COHORT_KERNEL(backend, _copy_rows, CopyParts);

}  // namespace
}  // namespace cohort
