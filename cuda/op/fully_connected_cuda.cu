// SPDX-License-Identifier: Apache-2.0
// FullyConnected on cuBLASLt, in full precision (no TF32: results are held to IEEE float32). Row-major matrices are
// read by the library as their transposes: y (rows, units) = x (rows, depth) w^T is, column-major, y' = w x'.
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "cuda/cuda_launch.hpp"
#include "device/kernel_table.hpp"
#include "op/fully_connected.hpp"

namespace cohort {
namespace {

// Objects of the library, freed with their owner.
template <typename T, cublasStatus_t (*kDestroy)(T)>
struct Destroy {
  using pointer = T;
  void operator()(T object) const { kDestroy(object); }
};
template <typename T, cublasStatus_t (*kDestroy)(T)>
using Owned = std::unique_ptr<T, Destroy<T, kDestroy>>;
using Description = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Matrix = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

Matrix new_matrix(cudaDataType_t type, int64_t rows, int64_t columns) {
  cublasLtMatrixLayout_t made = nullptr;
  CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&made, type, uint64_t(rows), uint64_t(columns), rows));
  return Matrix(made);
}

// Of the current device; any thread may use it. Kept until the process ends.
cublasLtHandle_t handle_here() {
  struct Handles {
    std::mutex mutex;  // guards the other
    std::map<int, cublasLtHandle_t> by_device;
  };
  static auto *const all = new Handles;
  int device = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  const std::lock_guard<std::mutex> lock(all->mutex);
  cublasLtHandle_t &handle = all->by_device[device];
  if (!handle) CUBLAS_CHECK(cublasLtCreate(&handle));
  return handle;
}

// What the library recommends: 32 MiB from Hopper on.
size_t most_workspace_here() {
  int device = 0, major = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  return size_t(major >= 9 ? 32 : 4) << 20;
}

constexpr size_t kWorkspaceAlignment = 256;

void *workspace_in(void *scratch) {
  const auto at = reinterpret_cast<uintptr_t>(scratch);
  return reinterpret_cast<void *>((at + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment);
}

// c (m, n) = a (m, k, or k, m to be transposed) times b (k, n, or n, k), column-major and dense.
struct Extents {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
};

// One product, all resolved, for arrays that begin at multiples of `alignment` bytes. With a bias (of m elements), it
// is added to each column.
class Product {
 public:
  // Null where the library has no algorithm for it.
  static std::unique_ptr<Product> find(Dtype dtype, const Extents &e, bool with_bias, uint32_t alignment) {
    std::unique_ptr<Product> made(new Product(dtype, e, with_bias));
    return made->choose_algorithm(alignment) ? std::move(made) : nullptr;
  }
  size_t workspace_bytes() const { return algorithm_.workspaceSize; }

  // Any number of calls at once: what changes is set in a copy.
  void run(const void *a, const void *b, void *c, const void *bias, void *workspace, cudaStream_t stream) const {
    cublasLtMatmulDescOpaque_t described = *description_.get();
    if (bias) set(&described, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    static const float kOne = 1, kZero = 0;
    static const double kOne64 = 1, kZero64 = 0;
    const void *one = double_ ? static_cast<const void *>(&kOne64) : &kOne;
    const void *zero = double_ ? static_cast<const void *>(&kZero64) : &kZero;
    CUBLAS_CHECK(cublasLtMatmul(handle_, &described, one, a, a_.get(), b, b_.get(), zero, c, c_.get(), c, c_.get(),
                                &algorithm_.algo, workspace, workspace_bytes(), stream));
  }

 private:
  Product(Dtype dtype, const Extents &e, bool with_bias) : double_(dtype == Dtype::kFloat64), handle_(handle_here()) {
    const cudaDataType_t type = double_ ? CUDA_R_64F : CUDA_R_32F;
    cublasLtMatmulDesc_t description = nullptr;
    CUBLAS_CHECK(cublasLtMatmulDescCreate(&description, double_ ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, type));
    description_.reset(description);
    set(description, CUBLASLT_MATMUL_DESC_TRANSA, e.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(description, CUBLASLT_MATMUL_DESC_TRANSB, e.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, with_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT);
    a_ = e.transpose_a ? new_matrix(type, e.k, e.m) : new_matrix(type, e.m, e.k);
    b_ = e.transpose_b ? new_matrix(type, e.n, e.k) : new_matrix(type, e.k, e.n);
    c_ = new_matrix(type, e.m, e.n);
  }

  template <typename T>
  static void set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute, const T &value) {
    CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value));
  }

  bool choose_algorithm(uint32_t alignment) {
    cublasLtMatmulPreference_t made = nullptr;
    CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&made));
    const Preference preference(made);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto &value) {
      CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(made, attribute, &value, sizeof value));
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t(most_workspace_here()));
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      prefer(attribute, alignment);
    }
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle_, description_.get(), a_.get(), b_.get(),
                                                                 c_.get(), c_.get(), made, 1, &algorithm_, &found);
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) CUBLAS_CHECK(status);
    return status == CUBLAS_STATUS_SUCCESS && found > 0;
  }

  const bool double_;
  const cublasLtHandle_t handle_;
  Description description_;
  Matrix a_, b_, c_;
  cublasLtMatmulHeuristicResult_t algorithm_{};
};

// out (rows, units) += bias (units); with `overwrite`, = bias.
template <typename T>
__global__ void add_bias(const T *bias, T *out, int64_t units, int64_t count, bool overwrite) {
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += int64_t(gridDim.x) * blockDim.x) {
    out[i] = bias[i % units] + (overwrite ? T(0) : out[i]);
  }
}

void launch_add_bias(Dtype dtype, const void *bias, void *out, int64_t units, int64_t count, bool overwrite,
                     cudaStream_t stream) {
  if (dtype == Dtype::kFloat64) {
    launch(add_bias<double>, flat_grid(count), stream, static_cast<const double *>(bias), static_cast<double *>(out),
           units, count, overwrite);
  } else {
    launch(add_bias<float>, flat_grid(count), stream, static_cast<const float *>(bias), static_cast<float *>(out),
           units, count, overwrite);
  }
}

// A product for arrays wherever they lie: one algorithm for those that begin at multiples of 16 bytes, as whole arrays
// do, and one for views. The first adds a bias while it writes, if the library can; one of no depth is the bias, or
// zeros.
class AnyProduct {
 public:
  AnyProduct(Dtype dtype, const Extents &e, bool with_bias) : extents_(e), dtype_(dtype) {
    if (e.m == 0 || e.n == 0 || e.k == 0) return;
    if (with_bias) aligned_ = Product::find(dtype, e, true, kAlignment);
    adds_bias_ = aligned_ != nullptr;
    if (!aligned_) aligned_ = Product::find(dtype, e, false, kAlignment);
    any_ = Product::find(dtype, e, false, uint32_t(dtype_size(dtype)));
    if (!aligned_ || !any_) throw Error(Code::kUnsupported, "cuBLASLt has no algorithm for a product");
  }
  size_t scratch_bytes() const {
    return aligned_ ? std::max(aligned_->workspace_bytes(), any_->workspace_bytes()) + kWorkspaceAlignment : 0;
  }

  void run(const void *a, const void *b, void *c, const void *bias, const Args &args, cudaStream_t stream) const {
    const int64_t count = extents_.m * extents_.n;
    if (count == 0) return;
    if (extents_.k == 0) {
      if (bias) return launch_add_bias(dtype_, bias, c, extents_.m, count, true, stream);
      CUDA_CHECK(cudaMemsetAsync(c, 0, size_t(count) * dtype_size(dtype_), stream));
      return;
    }
    bool aligned = true;
    for (const void *p : {a, b, static_cast<const void *>(c), bias}) {
      aligned = aligned && reinterpret_cast<uintptr_t>(p) % kAlignment == 0;
    }
    const bool adds_bias = aligned && adds_bias_;
    (aligned ? aligned_ : any_)->run(a, b, c, adds_bias ? bias : nullptr, workspace_in(args.scratch), stream);
    if (bias && !adds_bias) launch_add_bias(dtype_, bias, c, extents_.m, count, false, stream);
  }

 private:
  static constexpr uint32_t kAlignment = 16;
  const Extents extents_;
  const Dtype dtype_;
  bool adds_bias_ = false;
  std::unique_ptr<Product> aligned_, any_;
};

struct Sizes {
  int64_t rows, depth, units;
  Sizes(const FullyConnectedAttrs &attrs, const Shape &data) {
    depth = attrs.flatten ? data.size(1, data.rank()) : data[data.rank() - 1];
    rows = attrs.flatten ? data[0] : data.size(0, data.rank() - 1);
    units = attrs.num_hidden;
  }
};

class FullyConnectedCuda final : public Kernel {
 public:
  explicit FullyConnectedCuda(StepSpec &spec)
      : has_bias_(!spec.attrs_as<FullyConnectedAttrs>().no_bias),
        sizes_(spec.attrs_as<FullyConnectedAttrs>(), spec.inputs[0].shape),
        product_(spec.inputs[0].dtype, Extents{sizes_.units, sizes_.rows, sizes_.depth, true, false}, has_bias_) {
    spec.scratch_bytes = product_.scratch_bytes();
  }

  void run(const Args &args, const Lane &lane) const override {
    product_.run(args.inputs[1], args.inputs[0], args.outputs[0], has_bias_ ? args.inputs[2] : nullptr, args,
                 static_cast<cudaStream_t>(lane.stream));
  }

 private:
  const bool has_bias_;
  const Sizes sizes_;
  const AnyProduct product_;
};

// sums[u] = sum over rows of gradient (rows, units). A block owns 32 columns; each of its 8 warps adds every 8th row in
// order, then the warps' sums are added in order: bit-identical from run to run.
template <typename T>
__global__ void sum_rows(const T *gradient, T *sums, int64_t rows, int64_t units) {
  COHORT_SHARED(T, partial, [8][32]);
  const int64_t unit = int64_t(blockIdx.x) * 32 + threadIdx.x;
  T sum = 0;
  if (unit < units) {
    for (int64_t row = threadIdx.y; row < rows; row += 8) sum += gradient[row * units + unit];
  }
  partial[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || unit >= units) return;
  for (int warp = 1; warp < 8; ++warp) sum += partial[warp][threadIdx.x];
  sums[unit] = sum;
}

// Inputs: head gradient, data, weight. Outputs: gradients of data, weight, bias.
class FullyConnectedBackwardCuda final : public Kernel {
 public:
  explicit FullyConnectedBackwardCuda(StepSpec &spec)
      : sizes_(spec.attrs_as<FullyConnectedAttrs>(), spec.inputs[1].shape), dtype_(spec.inputs[0].dtype) {
    const auto product = [&](const Extents &extents) {
      auto made = std::make_unique<AnyProduct>(dtype_, extents, false);
      spec.scratch_bytes = std::max(spec.scratch_bytes, made->scratch_bytes());
      return made;
    };
    if (spec.wanted[0]) data_ = product({sizes_.depth, sizes_.rows, sizes_.units, false, false});
    if (spec.wanted[1]) weight_ = product({sizes_.depth, sizes_.units, sizes_.rows, false, true});
    const bool has_bias = !spec.attrs_as<FullyConnectedAttrs>().no_bias;
    bias_ = has_bias && spec.wanted.size() > 2 && spec.wanted[2] && sizes_.units > 0;
  }

  void run(const Args &args, const Lane &lane) const override {
    const auto stream = static_cast<cudaStream_t>(lane.stream);
    if (data_) data_->run(args.inputs[2], args.inputs[0], args.outputs[0], nullptr, args, stream);
    if (weight_) weight_->run(args.inputs[1], args.inputs[0], args.outputs[1], nullptr, args, stream);
    if (!bias_) return;
    const Grid grid{dim3(unsigned((sizes_.units + 31) / 32)), dim3(32, 8)};
    if (dtype_ == Dtype::kFloat64) {
      launch(sum_rows<double>, grid, stream, args.in<double>(0), args.out<double>(2), sizes_.rows, sizes_.units);
    } else {
      launch(sum_rows<float>, grid, stream, args.in<float>(0), args.out<float>(2), sizes_.rows, sizes_.units);
    }
  }

 private:
  const Sizes sizes_;
  const Dtype dtype_;
  std::unique_ptr<AnyProduct> data_, weight_;
  bool bias_ = false;
};

COHORT_KERNEL(cuda, FullyConnected, FullyConnectedCuda).named("cublaslt").one_dtype(kWideFloatTypes);
COHORT_KERNEL(cuda, _backward_FullyConnected, FullyConnectedBackwardCuda).named("cublaslt").one_dtype(kWideFloatTypes);

}  // namespace
}  // namespace cohort
