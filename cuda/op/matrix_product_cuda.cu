// SPDX-License-Identifier: Apache-2.0
// Row-major matrices are read by cuBLASLt as their transposes: c (m, n) = a b is, column-major, c' (n, m) = b' a'.
#include "cuda/op/matrix_product.hpp"

#include <algorithm>
#include <map>
#include <mutex>

#include "cuda/op/compute.cuh"

namespace cohort {
namespace {

// ---- tiles in shared memory; sums run over the depth in order

constexpr int kTile = 16;

// A block owns a tile of the result.
template <typename C>
__global__ void multiply_tiles(ProductExtent e, Elements a, Elements b, Elements bias, Elements c, int64_t blocks,
                               bool adds) {
  COHORT_SHARED(C, tile_a, [kTile][kTile]);
  COHORT_SHARED(C, tile_b, [kTile][kTile]);
  const int64_t wide = (e.n + kTile - 1) / kTile, high = (e.m + kTile - 1) / kTile;
  const int x = int(threadIdx.x), y = int(threadIdx.y);
  for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const int64_t i = block / (wide * high), row = block / wide % high * kTile + y, column = block % wide * kTile + x;
    const bool inside = row < e.m && column < e.n;
    C sum = bias.data && inside ? load<C>(bias, column) : C(0);
    if (adds && inside) sum += load<C>(c, (i * e.m + row) * e.n + column);
    for (int64_t first = 0; first < e.k; first += kTile) {
      const int64_t along = first + x, down = first + y;
      tile_a[y][x] = row < e.m && along < e.k
                         ? load<C>(a, i * e.m * e.k + (e.transpose_a ? along * e.m + row : row * e.k + along))
                         : C(0);
      tile_b[y][x] = down < e.k && column < e.n
                         ? load<C>(b, i * e.k * e.n + (e.transpose_b ? column * e.k + down : down * e.n + column))
                         : C(0);
      __syncthreads();
      for (int k = 0; k < kTile; ++k) sum += tile_a[y][k] * tile_b[k][x];
      __syncthreads();
    }
    if (inside) store(c, (i * e.m + row) * e.n + column, sum);
  }
}

template <typename C>
void multiply(const Lane &lane, const ProductExtent &e, const Elements &a, const Elements &b, const Elements &bias,
              const Elements &c, bool adds = false) {
  const int64_t blocks = e.batch * ((e.m + kTile - 1) / kTile) * ((e.n + kTile - 1) / kTile);
  if (blocks == 0) return;
  const Grid grid{dim3(unsigned(std::min<int64_t>(blocks, 132 * 64))), dim3(kTile, kTile)};
  launch(multiply_tiles<C>, grid, lane.stream, e, a, b, bias, c, blocks, adds);
}

constexpr Elements kNothing{nullptr, int64_t(Dtype::kFloat32)};

template <typename C>
void add_bias(const Lane &lane, int64_t count, int64_t columns, const Elements &bias, const Elements &to) {
  for_each(lane, count, [=] __device__(int64_t i) { store(to, i, load<C>(to, i) + load<C>(bias, i % columns)); });
}

template <typename C>
void multiply_dense(const Lane &lane, const ProductExtent &e, const C *a, const C *b, C *c) {
  const auto elements = [](const C *data) { return elements_of(const_cast<C *>(data), dtype_of<C>()); };
  multiply<C>(lane, e, elements(a), elements(b), kNothing, elements(c));
}

}  // namespace

void multiply_each(const Lane &lane, int64_t count, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a,
                   const float *b, float *c) {
  multiply_dense(lane, {count, m, n, k, ta, tb}, a, b, c);
}
void multiply_each(const Lane &lane, int64_t count, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const double *a,
                   const double *b, double *c) {
  multiply_dense(lane, {count, m, n, k, ta, tb}, a, b, c);
}

// ---- the library

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

Matrix new_matrix(cudaDataType_t type, int64_t batch, int64_t rows, int64_t columns) {
  cublasLtMatrixLayout_t made = nullptr;
  CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&made, type, uint64_t(rows), uint64_t(columns), rows));
  Matrix matrix(made);
  if (batch == 1) return matrix;
  const auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, auto value) {
    CUBLAS_CHECK(cublasLtMatrixLayoutSetAttribute(made, attribute, &value, sizeof value));
  };
  set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t(batch));
  set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, rows * columns);
  return matrix;
}

cudaDataType_t type_of(Dtype dtype) {
  return dtype == Dtype::kFloat64    ? CUDA_R_64F
         : dtype == Dtype::kFloat16  ? CUDA_R_16F
         : dtype == Dtype::kBfloat16 ? CUDA_R_16BF
                                     : CUDA_R_32F;
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

}  // namespace

// One product, all resolved, for arrays that begin at multiples of `alignment` bytes.
class MatrixProduct::OfLibrary {
 public:
  // Null where the library has no algorithm for it.
  static std::unique_ptr<OfLibrary> find(Dtype dtype, const ProductExtent &e, bool with_bias, bool adds,
                                         uint32_t alignment) {
    if (e.batch > INT32_MAX) return nullptr;
    std::unique_ptr<OfLibrary> made(new OfLibrary(dtype, e, with_bias, adds));
    return made->choose_algorithm(alignment) ? std::move(made) : nullptr;
  }
  size_t workspace_bytes() const { return algorithm_.workspaceSize; }

  // Any number of calls at once: what changes is set in a copy.
  void run(const void *a, const void *b, void *c, const void *bias, void *workspace, cudaStream_t stream) const {
    cublasLtMatmulDescOpaque_t described = *description_.get();
    if (bias) set(&described, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    static const float kFactors[] = {0, 1};
    static const double kFactors64[] = {0, 1};
    const auto factor = [&](bool one) {
      return double_ ? static_cast<const void *>(kFactors64 + one) : static_cast<const void *>(kFactors + one);
    };
    CUBLAS_CHECK(cublasLtMatmul(handle_, &described, factor(true), b, b_.get(), a, a_.get(), factor(adds_), c, c_.get(),
                                c, c_.get(), &algorithm_.algo, workspace, workspace_bytes(), stream));
  }

 private:
  OfLibrary(Dtype dtype, const ProductExtent &e, bool with_bias, bool adds)
      : double_(dtype == Dtype::kFloat64), adds_(adds), handle_(handle_here()) {
    const cudaDataType_t type = type_of(dtype), scale = double_ ? CUDA_R_64F : CUDA_R_32F;
    cublasLtMatmulDesc_t description = nullptr;
    CUBLAS_CHECK(cublasLtMatmulDescCreate(&description, double_ ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, scale));
    description_.reset(description);
    set(description, CUBLASLT_MATMUL_DESC_TRANSA, e.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(description, CUBLASLT_MATMUL_DESC_TRANSB, e.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, with_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT);
    a_ = e.transpose_a ? new_matrix(type, e.batch, e.m, e.k) : new_matrix(type, e.batch, e.k, e.m);
    b_ = e.transpose_b ? new_matrix(type, e.batch, e.k, e.n) : new_matrix(type, e.batch, e.n, e.k);
    c_ = new_matrix(type, e.batch, e.n, e.m);
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
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle_, description_.get(), b_.get(), a_.get(),
                                                                 c_.get(), c_.get(), made, 1, &algorithm_, &found);
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) CUBLAS_CHECK(status);
    return status == CUBLAS_STATUS_SUCCESS && found > 0;
  }

  const bool double_, adds_;
  const cublasLtHandle_t handle_;
  Description description_;
  Matrix a_, b_, c_;
  cublasLtMatmulHeuristicResult_t algorithm_{};
};

MatrixProduct::MatrixProduct(Dtype dtype, const ProductExtent &e, bool with_bias, Into into)
    : extent_(e), dtype_(dtype), adds_(into == kAdding) {
  if (e.batch == 0 || e.m == 0 || e.n == 0 || e.k == 0 || !kFloatTypes.has(dtype)) return;
  constexpr uint32_t kAlignment = 16;
  if (with_bias) aligned_ = OfLibrary::find(dtype, e, true, adds_, kAlignment);
  adds_bias_ = aligned_ != nullptr;
  if (!aligned_) aligned_ = OfLibrary::find(dtype, e, false, adds_, kAlignment);
  any_ = OfLibrary::find(dtype, e, false, adds_, uint32_t(dtype_size(dtype)));
}
MatrixProduct::~MatrixProduct() = default;
MatrixProduct::MatrixProduct(MatrixProduct &&) noexcept = default;

size_t MatrixProduct::scratch_bytes() const {
  size_t most = 0;
  for (const OfLibrary *product : {aligned_.get(), any_.get()}) {
    if (product) most = std::max(most, product->workspace_bytes());
  }
  return most + kWorkspaceAlignment;
}

void MatrixProduct::run(const Lane &lane, const void *a, const void *b, void *c, const void *bias,
                        void *scratch) const {
  const ProductExtent &e = extent_;
  if (e.batch == 0 || e.m == 0 || e.n == 0) return;
  const bool aligned = can_be_vectors({a, b, c, bias});
  const OfLibrary *const product = (aligned ? aligned_ : any_).get();
  const auto elements = [this](const void *data) { return elements_of(const_cast<void *>(data), dtype_); };
  const Elements to = elements(c), added = elements(bias);
  if (!product) {
    dispatch_compute(dtype_, false, [&](auto zero) {
      if constexpr (std::is_floating_point_v<decltype(zero)>) {
        multiply<decltype(zero)>(lane, e, elements(a), elements(b), added, to, adds_);
      }
    });
    return;
  }
  const bool adds_bias = bias && aligned && adds_bias_;
  product->run(a, b, c, adds_bias ? bias : nullptr, workspace_in(scratch), static_cast<cudaStream_t>(lane.stream));
  if (!bias || adds_bias) return;
  const int64_t columns = e.n;
  dispatch_compute(dtype_, false, [&](auto zero) {
    if constexpr (std::is_floating_point_v<decltype(zero)>) {
      add_bias<decltype(zero)>(lane, e.batch * e.m * columns, columns, added, to);
    }
  });
}

}  // namespace cohort
