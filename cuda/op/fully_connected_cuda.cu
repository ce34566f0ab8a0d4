// SPDX-License-Identifier: Apache-2.0
// FullyConnected on cuBLASLt, in full precision (no TF32: results are held to IEEE float32). Row-major matrices are
// read by the library as their transposes: y (rows, units) = x (rows, depth) w^T is, column-major, y' = w x'.
#include <memory>

#include "cuda/cuda_check.hpp"
#include "cuda/cuda_launch.hpp"
#include "device/kernel_table.hpp"
#include "op/fully_connected.hpp"

namespace cohort {
namespace {

struct LtHandle {
  cublasLtHandle_t handle = nullptr;
  LtHandle() { CUBLAS_CHECK(cublasLtCreate(&handle)); }
  ~LtHandle() { cublasLtDestroy(handle); }
};

constexpr size_t kWorkspaceBytes = size_t(4) << 20;

// One product, all resolved: c (m, n, ld m) = a (op_a) times b (op_b), column-major.
class Product {
 public:
  Product(Dtype dtype, int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b,
          cublasLtEpilogue_t epilogue) {
    const cudaDataType_t type = dtype == Dtype::kFloat64 ? CUDA_R_64F : CUDA_R_32F;
    const cublasComputeType_t compute = dtype == Dtype::kFloat64 ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
    double_ = dtype == Dtype::kFloat64;
    const cublasOperation_t op_a = transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                            op_b = transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    CUBLAS_CHECK(cublasLtMatmulDescCreate(&description_, compute, type));
    CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(description_, CUBLASLT_MATMUL_DESC_TRANSA, &op_a, sizeof op_a));
    CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(description_, CUBLASLT_MATMUL_DESC_TRANSB, &op_b, sizeof op_b));
    CUBLAS_CHECK(
        cublasLtMatmulDescSetAttribute(description_, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
    const int64_t rows_a = transpose_a ? k : m, cols_a = transpose_a ? m : k;
    const int64_t rows_b = transpose_b ? n : k, cols_b = transpose_b ? k : n;
    CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&a_, type, uint64_t(rows_a), uint64_t(cols_a), rows_a));
    CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&b_, type, uint64_t(rows_b), uint64_t(cols_b), rows_b));
    CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&c_, type, uint64_t(m), uint64_t(n), m));
    cublasLtMatmulPreference_t preference = nullptr;
    CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&preference));
    const size_t workspace = kWorkspaceBytes;
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                         sizeof workspace);
    int found = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(lt_.handle, description_, a_, b_, c_, c_, preference, 1, &algorithm_, &found);
    cublasLtMatmulPreferenceDestroy(preference);
    CUBLAS_CHECK(status);
    if (found == 0)
      throw Error(Code::kUnsupported, text("cuBLASLt has no product of ", m, " x ", k, " and ", k, " x ", n));
  }
  Product(const Product &) = delete;
  Product &operator=(const Product &) = delete;
  ~Product() {
    cublasLtMatrixLayoutDestroy(a_);
    cublasLtMatrixLayoutDestroy(b_);
    cublasLtMatrixLayoutDestroy(c_);
    cublasLtMatmulDescDestroy(description_);
  }

  void run(const void *a, const void *b, void *c, const void *bias, void *workspace, cudaStream_t stream) const {
    if (bias) {
      CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(description_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
    }
    static const float kOne = 1, kZero = 0;
    static const double kOne64 = 1, kZero64 = 0;
    const void *one = double_ ? static_cast<const void *>(&kOne64) : &kOne;
    const void *zero = double_ ? static_cast<const void *>(&kZero64) : &kZero;
    CUBLAS_CHECK(cublasLtMatmul(lt_.handle, description_, one, a, a_, b, b_, zero, c, c_, c, c_, &algorithm_.algo,
                                workspace, kWorkspaceBytes, stream));
  }

 private:
  LtHandle lt_;
  bool double_ = false;
  cublasLtMatmulDesc_t description_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  cublasLtMatmulHeuristicResult_t algorithm_{};
};

struct Sizes {
  int64_t rows, depth, units;
  Sizes(const FullyConnectedAttrs &attrs, const Shape &data) {
    depth = attrs.flatten ? data.size(1, data.rank()) : data[data.rank() - 1];
    rows = depth > 0 ? data.size() / depth : 0;
    units = attrs.num_hidden;
  }
  bool empty() const { return rows == 0 || depth == 0 || units == 0; }
};

void check_dtype(const StepSpec &spec) {
  const Dtype dtype = spec.inputs[0].dtype;
  if (dtype != Dtype::kFloat32 && dtype != Dtype::kFloat64) {
    throw Error(Code::kUnsupported, text(spec.op, " on cuda: expected float32 or float64, found ", dtype));
  }
}

class FullyConnectedCuda final : public Kernel {
 public:
  explicit FullyConnectedCuda(StepSpec &spec)
      : attrs_(spec.attrs_as<FullyConnectedAttrs>()), sizes_(attrs_, spec.inputs[0].shape) {
    check_dtype(spec);
    if (sizes_.empty()) return;
    spec.scratch_bytes = kWorkspaceBytes;
    const cublasLtEpilogue_t epilogue = attrs_.no_bias ? CUBLASLT_EPILOGUE_DEFAULT : CUBLASLT_EPILOGUE_BIAS;
    product_ =
        std::make_unique<Product>(spec.inputs[0].dtype, sizes_.units, sizes_.rows, sizes_.depth, true, false, epilogue);
  }

  void run(const Args &args, const Lane &lane) const override {
    if (!product_) return;
    product_->run(args.inputs[1], args.inputs[0], args.outputs[0], attrs_.no_bias ? nullptr : args.inputs[2],
                  args.scratch, static_cast<cudaStream_t>(lane.stream));
  }

 private:
  const FullyConnectedAttrs attrs_;
  const Sizes sizes_;
  std::unique_ptr<Product> product_;
};

// sums[u] = sum over rows of gradient (rows, units). A block owns 32 columns; each of its 8 warps adds every 8th row in
// order, then the warps' sums are added in order: bit-identical from run to run.
template <typename T>
__global__ void sum_rows(const T *gradient, T *sums, int64_t rows, int64_t units) {
  __shared__ T partial[8][32];
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
      : attrs_(spec.attrs_as<FullyConnectedAttrs>()),
        sizes_(attrs_, spec.inputs[1].shape),
        dtype_(spec.inputs[0].dtype) {
    check_dtype(spec);
    if (sizes_.empty()) return;
    spec.scratch_bytes = kWorkspaceBytes;
    if (spec.wanted[0]) {
      data_ = std::make_unique<Product>(dtype_, sizes_.depth, sizes_.rows, sizes_.units, false, false,
                                        CUBLASLT_EPILOGUE_DEFAULT);
    }
    if (spec.wanted[1]) {
      weight_ = std::make_unique<Product>(dtype_, sizes_.depth, sizes_.units, sizes_.rows, false, true,
                                          CUBLASLT_EPILOGUE_DEFAULT);
    }
    bias_ = !attrs_.no_bias && spec.wanted.size() > 2 && spec.wanted[2];
  }

  void run(const Args &args, const Lane &lane) const override {
    const auto stream = static_cast<cudaStream_t>(lane.stream);
    if (data_) data_->run(args.inputs[2], args.inputs[0], args.outputs[0], nullptr, args.scratch, stream);
    if (weight_) weight_->run(args.inputs[1], args.inputs[0], args.outputs[1], nullptr, args.scratch, stream);
    if (!bias_) return;
    const dim3 block(32, 8), grid(unsigned((sizes_.units + 31) / 32));
    if (dtype_ == Dtype::kFloat64) {
      sum_rows<<<grid, block, 0, stream>>>(args.in<double>(0), args.out<double>(2), sizes_.rows, sizes_.units);
    } else {
      sum_rows<<<grid, block, 0, stream>>>(args.in<float>(0), args.out<float>(2), sizes_.rows, sizes_.units);
    }
  }

 private:
  const FullyConnectedAttrs attrs_;
  const Sizes sizes_;
  const Dtype dtype_;
  std::unique_ptr<Product> data_, weight_;
  bool bias_ = false;
};

COHORT_KERNEL(cuda, FullyConnected, FullyConnectedCuda);
COHORT_KERNEL(cuda, _backward_FullyConnected, FullyConnectedBackwardCuda);

}  // namespace
}  // namespace cohort
