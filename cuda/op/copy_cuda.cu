// SPDX-License-Identifier: Apache-2.0
// Kernels that copy, cast or add up whole arrays.
#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "cuda/cuda_layout.hpp"
#include "cuda/cuda_memory.hpp"
#include "cuda/op/compute_type.cuh"
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

// The i-th N elements.
template <int N, typename From, typename To>
__device__ void cast_several(const From *from, To *to, int64_t i) {
  const Several<From, N> x = load_several<N>(from + i * N);
  Several<To, N> y;
  for (int k = 0; k < N; ++k) y.at[k] = from_compute<To>(to_compute(x.at[k]));
  store_several(to + i * N, y);
}

// Between types that are computed in float: groups of kCastSize elements, then those that remain.
template <typename From, typename To>
constexpr int kCastSize = Vector<From>::kSize < Vector<To>::kSize ? Vector<From>::kSize : Vector<To>::kSize;

template <typename From, typename To>
__global__ void cast_floats(const From *from, To *to, int64_t groups, int64_t count) {
  constexpr int kSize = kCastSize<From, To>;
  const int64_t first = int64_t(blockIdx.x) * blockDim.x + threadIdx.x, step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = first; i < groups; i += step) cast_several<kSize>(from, to, i);
  for (int64_t i = groups * kSize + first; i < count; i += step) cast_several<1>(from, to, i);
}

// Calls fn(T()) if elements of `dtype` have 16 or 32 bits and are computed in float.
template <typename Fn>
bool dispatch_narrow(Dtype dtype, const Fn &fn) {
  if (dtype == Dtype::kFloat32) return fn(float()), true;
  if (dtype == Dtype::kFloat16) return fn(Float16()), true;
  if (dtype == Dtype::kBfloat16) return fn(Bfloat16()), true;
  return false;
}

// Converts an array to another type.
void launch_cast(const Lane &lane, const void *data, Dtype from, void *result, Dtype to, int64_t count) {
  if (count == 0) return;
  bool done = false;
  dispatch_narrow(from, [&](auto f) {
    done = dispatch_narrow(to, [&](auto t) {
      using From = decltype(f);
      using To = decltype(t);
      const int64_t groups = can_be_vectors({data, result}) ? count / kCastSize<From, To> : 0;
      launch(cast_floats<From, To>, flat_grid(groups > 0 ? groups : count), lane.stream,
             static_cast<const From *>(data), static_cast<To *>(result), groups, count);
    });
  });
  if (done) return;
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

template <typename T>
struct Addends {
  const T *at[kMostAddends];
};

// The i-th N elements: all addends from left to right.
template <int N, typename T>
__device__ void add_several(const Addends<T> &addends, int num_addends, T *out, int64_t i) {
  constexpr int kAtOnce = 4;  // loads before the first use
  ComputeOf<T> sums[N] = {};
  for (int begin = 0; begin < num_addends; begin += kAtOnce) {
    Several<T, N> loaded[kAtOnce];
    for (int j = 0; j < kAtOnce; ++j) {
      if (begin + j < num_addends) loaded[j] = load_several<N>(addends.at[begin + j] + i * N);
    }
    for (int j = 0; j < kAtOnce; ++j) {
      if (begin + j >= num_addends) continue;
      for (int k = 0; k < N; ++k) {
        const ComputeOf<T> x = to_compute(loaded[j].at[k]);
        sums[k] = begin + j == 0 ? x : pointwise::add(sums[k], x);
      }
    }
  }
  Several<T, N> all;
  for (int k = 0; k < N; ++k) all.at[k] = from_compute<T>(sums[k]);
  store_several(out + i * N, all);
}

// out = in0 + in1 + ..., as vectors of 16 bytes, then the elements that remain. out may be any of them.
template <typename T>
__global__ void add_all(Addends<T> addends, int num_addends, T *out, int64_t vectors, int64_t count) {
  constexpr int kSize = Vector<T>::kSize;
  const int64_t first = int64_t(blockIdx.x) * blockDim.x + threadIdx.x, step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = first; i < vectors; i += step) add_several<kSize>(addends, num_addends, out, i);
  for (int64_t i = vectors * kSize + first; i < count; i += step) add_several<1>(addends, num_addends, out, i);
}

template <typename T>
class AddAllCuda final : public Kernel {
 public:
  explicit AddAllCuda(const StepSpec &spec)
      : count_(spec.outputs[0].shape.size()), num_inputs_(int(spec.inputs.size())) {}
  void run(const Args &args, const Lane &lane) const override {
    if (count_ == 0) return;
    T *const out = args.out<T>(0);
    Addends<T> addends{{args.in<T>(0)}};
    for (int i = 1; i == 1 || i < num_inputs_;) {
      int filled = 1;
      while (filled < kMostAddends && i < num_inputs_) addends.at[filled++] = args.in<T>(i++);
      const bool whole = can_be_vectors({out}) && std::all_of(addends.at, addends.at + filled, [](const T *address) {
                           return can_be_vectors({address});
                         });
      const int64_t vectors = whole ? count_ / Vector<T>::kSize : 0;
      launch(add_all<T>, flat_grid(vectors > 0 ? vectors : count_), lane.stream, addends, filled, out, vectors, count_);
      if (num_inputs_ == 1) return;
      addends.at[0] = out;
    }
  }

 private:
  const int64_t count_;
  const int num_inputs_;
};

// Addends of which each is in float or in T, which has 16 bits.
template <typename T>
struct MixedAddends {
  const void *at[kMostAddends];
  bool is_wide[kMostAddends];
};

// The i-th N elements: all addends from left to right, in float.
template <int N, typename T, typename Out>
__device__ void add_mixed_several(const MixedAddends<T> &addends, int num_addends, Out *out, int64_t i) {
  float sums[N] = {};
  for (int j = 0; j < num_addends; ++j) {
    Several<float, N> x;
    if (addends.is_wide[j]) {
      x = load_several<N>(static_cast<const float *>(addends.at[j]) + i * N);
    } else {
      const Several<T, N> narrow = load_several<N>(static_cast<const T *>(addends.at[j]) + i * N);
      for (int k = 0; k < N; ++k) x.at[k] = to_compute(narrow.at[k]);
    }
    for (int k = 0; k < N; ++k) sums[k] = j == 0 ? x.at[k] : pointwise::add(sums[k], x.at[k]);
  }
  Several<Out, N> all;
  for (int k = 0; k < N; ++k) all.at[k] = from_compute<Out>(sums[k]);
  store_several(out + i * N, all);
}

// out = in0 + in1 + ..., in groups of as many elements as float has in 16 bytes, then the elements that remain. out may
// be any addend of its type.
template <typename T, typename Out>
__global__ void add_mixed(MixedAddends<T> addends, int num_addends, Out *out, int64_t groups, int64_t count) {
  constexpr int kSize = Vector<float>::kSize;
  const int64_t first = int64_t(blockIdx.x) * blockDim.x + threadIdx.x, step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = first; i < groups; i += step) add_mixed_several<kSize>(addends, num_addends, out, i);
  for (int64_t i = groups * kSize + first; i < count; i += step) add_mixed_several<1>(addends, num_addends, out, i);
}

template <typename T, typename Out>
class AddMixedCuda final : public Kernel {
 public:
  explicit AddMixedCuda(const StepSpec &spec)
      : count_(spec.outputs[0].shape.size()), num_inputs_(int(spec.inputs.size())) {
    if (num_inputs_ > kMostAddends) {
      throw Error(Code::kUnsupported, text("_sum_gradients: expected at most ", kMostAddends,
                                           " inputs of several types, found ", num_inputs_));
    }
    for (int i = 0; i < num_inputs_; ++i) is_wide_[i] = spec.inputs[size_t(i)].dtype == Dtype::kFloat32;
  }
  void run(const Args &args, const Lane &lane) const override {
    if (count_ == 0) return;
    Out *const out = args.out<Out>(0);
    MixedAddends<T> addends{};
    bool whole = can_be_vectors({out});
    for (int i = 0; i < num_inputs_; ++i) {
      addends.at[i] = args.inputs[i];
      addends.is_wide[i] = is_wide_[i];
      whole = whole && can_be_vectors({args.inputs[i]});
    }
    const int64_t groups = whole ? count_ / Vector<float>::kSize : 0;
    launch(add_mixed<T, Out>, flat_grid(groups > 0 ? groups : count_), lane.stream, addends, num_inputs_, out, groups,
           count_);
  }

 private:
  const int64_t count_;
  const int num_inputs_;
  bool is_wide_[kMostAddends];
};

// The type with 16 bits of a sum whose inputs and output are in that type and in float; kNone: all are of one type.
Dtype narrow_type(const StepSpec &spec) {
  Dtype narrow = Dtype::kNone;
  bool is_mixed = false;
  std::vector<TensorSpec> tensors = spec.inputs;
  tensors.push_back(spec.outputs[0]);
  for (const TensorSpec &tensor : tensors) {
    if (tensor.dtype != Dtype::kFloat32) narrow = tensor.dtype;
    is_mixed = is_mixed || tensor.dtype != spec.outputs[0].dtype;
  }
  return is_mixed ? narrow : Dtype::kNone;
}

template <typename T>
std::unique_ptr<Kernel> make_mixed_sum(const StepSpec &spec) {
  if (spec.outputs[0].dtype == Dtype::kFloat32) return std::make_unique<AddMixedCuda<T, float>>(spec);
  return std::make_unique<AddMixedCuda<T, T>>(spec);
}

std::unique_ptr<Kernel> make_sum(StepSpec &spec) {
  const Dtype narrow = narrow_type(spec);
  if (narrow == Dtype::kFloat16) return make_mixed_sum<Float16>(spec);
  if (narrow == Dtype::kBfloat16) return make_mixed_sum<Bfloat16>(spec);
  return dispatch(spec.outputs[0].dtype, [&](auto type) -> std::unique_ptr<Kernel> {
    return std::make_unique<AddAllCuda<decltype(type)>>(spec);
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
COHORT_KERNEL_BY(cuda, _sum_gradients, flat<make_sum>).any_layout();

}  // namespace
}  // namespace cohort
