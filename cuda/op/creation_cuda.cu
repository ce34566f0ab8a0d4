// SPDX-License-Identifier: Apache-2.0
// Arrays from nothing: zeros, ones, one number, ranges and diagonals.
#include <algorithm>
#include <vector>

#include "cuda/op/elements.cuh"
#include "device/kernel_table.hpp"
#include "op/creation.hpp"

namespace cohort {
namespace {

class FillZeroCuda final : public Kernel {
 public:
  explicit FillZeroCuda(const StepSpec &spec) {
    for (const TensorSpec &out : spec.outputs) bytes_.push_back(out.bytes());
  }
  void run(const Args &args, const Lane &lane) const override {
    for (size_t i = 0; i < bytes_.size(); ++i) {
      if (bytes_[i] == 0 || !args.outputs[i]) continue;
      CUDA_CHECK(cudaMemsetAsync(args.outputs[i], 0, bytes_[i], static_cast<cudaStream_t>(lane.stream)));
    }
  }

 private:
  std::vector<size_t> bytes_;
};

COHORT_KERNEL(cuda, _fill_zero, FillZeroCuda);
COHORT_KERNEL(cuda, _zeros, FillZeroCuda);
COHORT_KERNEL(cuda, _zeros_without_dtype, FillZeroCuda);

// ---- output 0 is what a functor gives for each index

struct ConstantValue {
  double value;
  __device__ double operator()(int64_t) const { return value; }
};

struct ArangeValue {
  double start, step;
  int64_t repeat;
  __device__ double operator()(int64_t i) const { return start + double(i / repeat) * step; }
};

struct LinspaceValue {
  double start, stop;
  int64_t intervals;
  __device__ double operator()(int64_t i) const {
    return i == intervals ? stop : start + (stop - start) / double(intervals) * double(i);
  }
};

struct EyeValue {
  int64_t columns, k;
  __device__ double operator()(int64_t i) const { return i % columns - i / columns == k ? 1.0 : 0.0; }
};

template <typename Value>
__global__ void fill(Value value, Elements out, int64_t count) {
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += int64_t(gridDim.x) * blockDim.x) {
    store(out, i, value(i));
  }
}

template <typename Value>
class FilledCuda final : public Kernel {
 public:
  FilledCuda(const StepSpec &spec, Value value)
      : value_(value), count_(spec.outputs[0].shape.size()), dtype_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    if (count_ == 0) return;
    launch(fill<Value>, flat_grid(count_), lane.stream, value_, elements_of(args.outputs[0], dtype_), count_);
  }

 private:
  const Value value_;
  const int64_t count_;
  const Dtype dtype_;
};

template <typename Value>
std::unique_ptr<Kernel> make_filled(const StepSpec &spec, Value value) {
  return std::make_unique<FilledCuda<Value>>(spec, value);
}

std::unique_ptr<Kernel> make_ones(StepSpec &spec) { return make_filled(spec, ConstantValue{1}); }
std::unique_ptr<Kernel> make_full(StepSpec &spec) {
  return make_filled(spec, ConstantValue{spec.attrs_as<FillAttrs>().value});
}
std::unique_ptr<Kernel> make_arange(StepSpec &spec) {
  const auto &a = spec.attrs_as<RangeAttrs>();
  return make_filled(spec, ArangeValue{a.start, a.step, a.repeat});
}
std::unique_ptr<Kernel> make_arange_like(StepSpec &spec) {
  const auto &a = spec.attrs_as<ArangeLikeAttrs>();
  return make_filled(spec, ArangeValue{a.start, a.step, a.repeat});
}
std::unique_ptr<Kernel> make_linspace(StepSpec &spec) {
  const auto &a = spec.attrs_as<RangeAttrs>();
  return make_filled(spec, LinspaceValue{a.start, *a.stop, std::max(a.endpoint ? a.num - 1 : a.num, 1)});
}
std::unique_ptr<Kernel> make_eye(StepSpec &spec) {
  return make_filled(spec, EyeValue{std::max<int64_t>(spec.outputs[0].shape[1], 1), spec.attrs_as<EyeAttrs>().k});
}

COHORT_KERNEL_BY(cuda, _ones, make_ones);
COHORT_KERNEL_BY(cuda, _backward_make_loss, make_ones);
COHORT_KERNEL_BY(cuda, _set_value, make_full);
COHORT_KERNEL_BY(cuda, _full, make_full);
COHORT_KERNEL_BY(cuda, _arange, make_arange);
COHORT_KERNEL_BY(cuda, _contrib_arange_like, make_arange_like);
COHORT_KERNEL_BY(cuda, _linspace, make_linspace);
COHORT_KERNEL_BY(cuda, _eye, make_eye);

}  // namespace
}  // namespace cohort
