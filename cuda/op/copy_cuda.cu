// SPDX-License-Identifier: Apache-2.0
// Kernels that copy, cast or add up whole arrays.
#include <algorithm>
#include <vector>

#include "cuda/cuda_layout.hpp"
#include "cuda/cuda_memory.hpp"
#include "cuda/op/elements.cuh"
#include "device/kernel_table.hpp"
#include "kernels/compute.hpp"
#include "op/pointwise_math.hpp"

namespace cohort {
namespace {

// Output i is input i.
class CopyCuda : public Kernel {
 public:
  explicit CopyCuda(const StepSpec &spec) {
    for (const TensorSpec &out : spec.outputs) bytes_.push_back(out.bytes());
  }
  void run(const Args &args, const Lane &lane) const override {
    for (size_t i = 0; i < bytes_.size(); ++i) {
      if (bytes_[i] == 0 || !args.outputs[i] || args.inputs[i] == args.outputs[i]) continue;
      copy(args.outputs[i], args.inputs[i], bytes_[i], static_cast<cudaStream_t>(lane.stream));
    }
  }

 private:
  virtual void copy(void *to, const void *from, size_t bytes, cudaStream_t stream) const {
    CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
  }
  std::vector<size_t> bytes_;
};

// A copy between devices, or from or to the host; never part of a graph.
class CrossDeviceCopyCuda final : public CopyCuda {
 public:
  using CopyCuda::CopyCuda;
  bool replays() const override { return false; }

 private:
  void copy(void *to, const void *from, size_t bytes, cudaStream_t stream) const override {
    copy_between(to, place_of(to), from, place_of(from), bytes, stream);
  }
};

template <typename C>
__global__ void cast_all(Elements from, Elements to, int64_t count) {
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += int64_t(gridDim.x) * blockDim.x) {
    store(to, i, load<C>(from, i));
  }
}

// Converts an array to another type.
void launch_cast(const Lane &lane, const void *data, Dtype from, void *result, Dtype to, int64_t count) {
  if (count == 0) return;
  const auto kernel = !dtype_is_float(from)     ? cast_all<int64_t>
                      : from == Dtype::kFloat64 ? cast_all<double>
                                                : cast_all<float>;
  launch(kernel, flat_grid(count), lane.stream, elements_of(const_cast<void *>(data), from), elements_of(result, to),
         count);
}

// Output i is input i, converted to the type of output i: floats through float or double, integers through int64_t.
class CastCuda final : public Kernel {
 public:
  explicit CastCuda(const StepSpec &spec) {
    for (size_t i = 0; i < spec.outputs.size(); ++i) {
      casts_.push_back({spec.inputs[i].dtype, spec.outputs[i].dtype, spec.outputs[i].shape.size()});
    }
  }
  void run(const Args &args, const Lane &lane) const override {
    for (size_t i = 0; i < casts_.size(); ++i) {
      const auto &[from, to, count] = casts_[i];
      if (count == 0 || !args.outputs[i] || (from == to && args.inputs[i] == args.outputs[i])) continue;
      launch_cast(lane, args.inputs[i], from, args.outputs[i], to, count);
    }
  }

 private:
  struct Cast {
    Dtype from, to;
    int64_t count;
  };
  std::vector<Cast> casts_;
};

}  // namespace

void widen(const Lane &lane, const void *from, Dtype dtype, float *to, int64_t count) {
  launch_cast(lane, from, dtype, to, Dtype::kFloat32, count);
}
void widen(const Lane &lane, const void *from, Dtype dtype, double *to, int64_t count) {
  launch_cast(lane, from, dtype, to, Dtype::kFloat64, count);
}
void narrow(const Lane &lane, const float *from, void *to, Dtype dtype, int64_t count) {
  launch_cast(lane, from, Dtype::kFloat32, to, dtype, count);
}
void narrow(const Lane &lane, const double *from, void *to, Dtype dtype, int64_t count) {
  launch_cast(lane, from, Dtype::kFloat64, to, dtype, count);
}

namespace {

constexpr int kMostAddends = 64;  // in one launch

struct Addends {
  Elements at[kMostAddends];
};

// out = in0 + in1 + ..., from left to right. out may be any of them.
template <typename C>
__global__ void add_all(Addends addends, int num_addends, Elements out, int64_t count) {
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += int64_t(gridDim.x) * blockDim.x) {
    C sum = load<C>(addends.at[0], i);
    for (int k = 1; k < num_addends; ++k) sum = pointwise::add(sum, load<C>(addends.at[k], i));
    store(out, i, sum);
  }
}

template <typename C>
class AddAllCuda final : public Kernel {
 public:
  explicit AddAllCuda(const StepSpec &spec)
      : count_(spec.outputs[0].shape.size()), num_inputs_(int(spec.inputs.size())), dtype_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    if (count_ == 0) return;
    const Elements out = elements_of(args.outputs[0], dtype_);
    Addends addends{{elements_of(args.inputs[0], dtype_)}};
    for (int i = 1; i == 1 || i < num_inputs_;) {
      int filled = 1;
      while (filled < kMostAddends && i < num_inputs_) addends.at[filled++] = elements_of(args.inputs[i++], dtype_);
      launch(add_all<C>, flat_grid(count_), lane.stream, addends, filled, out, count_);
      if (num_inputs_ == 1) return;
      addends.at[0] = out;
    }
  }

 private:
  const int64_t count_;
  const int num_inputs_;
  const Dtype dtype_;
};

std::unique_ptr<Kernel> make_sum(StepSpec &spec) {
  return dispatch_compute(spec.outputs[0].dtype, true, [&](auto c) -> std::unique_ptr<Kernel> {
    return std::make_unique<AddAllCuda<decltype(c)>>(spec);
  });
}

COHORT_KERNEL_BY(cuda, _copy, flat<make_kernel_of<CopyCuda>>).any_layout();
COHORT_KERNEL(cuda, _identity_with_attr_like_rhs, CopyCuda);
COHORT_KERNEL(cuda, _CrossDeviceCopy, CrossDeviceCopyCuda);
COHORT_KERNEL_BY(cuda, BlockGrad, flat<make_kernel_of<CopyCuda>>).any_layout();
COHORT_KERNEL_BY(cuda, make_loss, flat<make_kernel_of<CopyCuda>>).any_layout();
COHORT_KERNEL(cuda, MakeLoss, CopyCuda);
COHORT_KERNEL(cuda, LinearRegressionOutput, CopyCuda);
COHORT_KERNEL(cuda, MAERegressionOutput, CopyCuda);
COHORT_KERNEL(cuda, SVMOutput, CopyCuda);
COHORT_KERNEL_BY(cuda, _cast_copy, flat<make_kernel_of<CastCuda>>).any_layout();
COHORT_KERNEL_BY(cuda, Cast, flat<make_kernel_of<CastCuda>>).any_layout();
COHORT_KERNEL(cuda, _copyto, CastCuda);
COHORT_KERNEL_BY(cuda, _backward_Cast, flat<make_kernel_of<CastCuda>>).any_layout();
COHORT_KERNEL_BY(cuda, amp_cast, flat<make_kernel_of<CastCuda>>).any_layout();
COHORT_KERNEL_BY(cuda, _backward_amp_cast, flat<make_kernel_of<CastCuda>>).any_layout();
COHORT_KERNEL(cuda, amp_multicast, CastCuda);
COHORT_KERNEL(cuda, _backward_amp_multicast, CastCuda);
COHORT_KERNEL_BY(cuda, add_n, flat<make_sum>).any_layout();
COHORT_KERNEL_BY(cuda, _sum_gradients, flat<make_sum>).named("any type").preference(-1).any_layout();

// ---- the sums of gradients that plans make, in float and double

// out = in0 + in1 + ..., added up in this order; out may be in0.
template <typename C>
__global__ void add_vectors(C *sum, const C *a, const C *b, int64_t count) {  // count: of vectors
  constexpr int kSize = Vector<C>::kSize;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += int64_t(gridDim.x) * blockDim.x) {
    Vector<C> x = load_vector(a + i * kSize);
    const Vector<C> y = load_vector(b + i * kSize);
    for (int k = 0; k < kSize; ++k) x.at[k] += y.at[k];
    store_vector(sum + i * kSize, x);
  }
}

template <typename C>
__global__ void add_to(C *sum, const C *a, const C *b, int64_t count) {
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += int64_t(gridDim.x) * blockDim.x) {
    sum[i] = a[i] + b[i];
  }
}

class SumGradientsCuda final : public Kernel {
 public:
  explicit SumGradientsCuda(StepSpec &spec)
      : count_(spec.outputs[0].shape.size()),
        num_inputs_(int(spec.inputs.size())),
        bytes_(spec.outputs[0].bytes()),
        is_double_(spec.outputs[0].dtype == Dtype::kFloat64) {}

  void run(const Args &args, const Lane &lane) const override {
    const auto stream = static_cast<cudaStream_t>(lane.stream);
    if (count_ == 0) return;
    if (num_inputs_ == 1 && args.inputs[0] != args.outputs[0]) {
      CUDA_CHECK(cudaMemcpyAsync(args.outputs[0], args.inputs[0], bytes_, cudaMemcpyDeviceToDevice, stream));
    }
    const void *sum = args.inputs[0];
    for (int i = 1; i < num_inputs_; ++i) {
      if (is_double_) {
        add(args.out<double>(0), static_cast<const double *>(sum), args.in<double>(i), stream);
      } else {
        add(args.out<float>(0), static_cast<const float *>(sum), args.in<float>(i), stream);
      }
      sum = args.outputs[0];
    }
  }

 private:
  // Elements that do not fill a vector, and arrays that are not aligned to vectors, are added one element at a time.
  template <typename C>
  void add(C *sum, const C *a, const C *b, cudaStream_t stream) const {
    const int64_t vectors = can_be_vectors({sum, a, b}) ? count_ / Vector<C>::kSize : 0,
                  done = vectors * Vector<C>::kSize;
    if (vectors > 0) launch(add_vectors<C>, flat_grid(vectors), stream, sum, a, b, vectors);
    if (done < count_) {
      launch(add_to<C>, flat_grid(count_ - done), stream, sum + done, a + done, b + done, count_ - done);
    }
  }

  const int64_t count_;
  const int num_inputs_;
  const size_t bytes_;
  const bool is_double_;
};

COHORT_KERNEL_BY(cuda, _sum_gradients, flat<make_kernel_of<SumGradientsCuda>>).one_dtype(kWideFloatTypes).any_layout();

}  // namespace
}  // namespace cohort
