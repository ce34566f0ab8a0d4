// SPDX-License-Identifier: Apache-2.0
// cuBLASLt reads row-major matrices as their transposes: c (m, n) = a b is c' (n, m) = b' a' in column-major order.
#include "cuda/op/matrix_product.hpp"

#include <algorithm>
#include <map>
#include <mutex>

#include "cuda/cuda_cublas.hpp"
#include "cuda/op/add_product.cuh"
#include "cuda/op/cuda_backend.cuh"
#include "cuda/op/finish_sums.hpp"

namespace cohort {
namespace {

// ---- tiles in shared memory; sums run over the depth in order

constexpr int kTile = 16;

// Where none is said.
ProductPlaces places_of(const ProductExtent &e, ProductPlaces places) {
  const auto dense = [](MatrixPlaces *of, int64_t rows, int64_t columns) {
    if (of->row == 0) of->row = columns;
    if (of->matrix == 0) of->matrix = rows * columns;
    if (of->matrix == MatrixPlaces::kSame) of->matrix = 0;
  };
  dense(&places.a, e.transpose_a ? e.k : e.m, e.transpose_a ? e.m : e.k);
  dense(&places.b, e.transpose_b ? e.n : e.k, e.transpose_b ? e.k : e.n);
  dense(&places.c, e.m, e.n);
  return places;
}

// How the product becomes the result: c = factor * op(a) op(b) (+ bias) (+ c).
template <typename C>
struct TileResult {
  C factor;
  bool adds;
};

// One block per tile of the result.
template <typename C>
__global__ void multiply_tiles(ProductExtent e, ProductPlaces at, Elements a, Elements b, Elements bias, Elements c,
                               int64_t blocks, TileResult<C> result) {
  COHORT_SHARED(C, tile_a, [kTile][kTile]);
  COHORT_SHARED(C, tile_b, [kTile][kTile]);
  const int64_t wide = (e.n + kTile - 1) / kTile, high = (e.m + kTile - 1) / kTile;
  const int x = int(threadIdx.x), y = int(threadIdx.y);
  for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const int64_t i = block / (wide * high), row = block / wide % high * kTile + y, column = block % wide * kTile + x;
    const bool inside = row < e.m && column < e.n;
    const int64_t place = i * at.c.matrix + row * at.c.row + column;
    C sum = bias.data && inside ? load<C>(bias, column) : C(0);
    if (result.adds && inside) sum += load<C>(c, place);
    for (int64_t first = 0; first < e.k; first += kTile) {
      const int64_t along = first + x, down = first + y;
      tile_a[y][x] =
          row < e.m && along < e.k
              ? load<C>(a, i * at.a.matrix + (e.transpose_a ? along * at.a.row + row : row * at.a.row + along)) *
                    result.factor
              : C(0);
      tile_b[y][x] =
          down < e.k && column < e.n
              ? load<C>(b, i * at.b.matrix + (e.transpose_b ? column * at.b.row + down : down * at.b.row + column))
              : C(0);
      __syncthreads();
      for (int k = 0; k < kTile; ++k) sum = add_product(sum, tile_a[y][k], tile_b[k][x]);
      __syncthreads();
    }
    if (inside) store(c, place, sum);
  }
}

template <typename C>
void multiply(const Lane &lane, const ProductExtent &e, const ProductPlaces &places, const Elements &a,
              const Elements &b, const Elements &bias, const Elements &c, const TileResult<C> &result) {
  const int64_t blocks = e.batch * ((e.m + kTile - 1) / kTile) * ((e.n + kTile - 1) / kTile);
  if (blocks == 0) return;
  const Grid grid{dim3(unsigned(std::min<int64_t>(blocks, 132 * 64))), dim3(kTile, kTile)};
  launch(multiply_tiles<C>, grid, lane.stream, e, places, a, b, bias, c, blocks, result);
}

constexpr Elements kNothing{nullptr, int64_t(Dtype::kFloat32)};

template <typename C>
void multiply_dense(const Lane &lane, const ProductExtent &e, const C *a, const C *b, C *c) {
  const auto elements = [](const C *data) { return elements_of(const_cast<C *>(data), dtype_of<C>()); };
  multiply<C>(lane, e, places_of(e, {}), elements(a), elements(b), kNothing, elements(c), {C(1), false});
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

// The library's structs by value, with the sizes of its header here: a later version may use larger ones.
cublasLtMatrixLayoutOpaque_t new_matrix(cudaDataType_t type, int64_t batch, int64_t rows, int64_t columns,
                                        const MatrixPlaces &places) {
  cublasLtMatrixLayoutOpaque_t made;
  CUBLAS_CHECK(cublasLtMatrixLayoutInit(&made, type, uint64_t(rows), uint64_t(columns), places.row));
  if (batch == 1) return made;
  const auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, auto value) {
    CUBLAS_CHECK(cublasLtMatrixLayoutSetAttribute(&made, attribute, &value, sizeof value));
  };
  set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t(batch));
  set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, places.matrix);
  return made;
}

cudaDataType_t type_of(Dtype dtype) {
  return dtype == Dtype::kFloat64    ? CUDA_R_64F
         : dtype == Dtype::kFloat16  ? CUDA_R_16F
         : dtype == Dtype::kBfloat16 ? CUDA_R_16BF
         : dtype == Dtype::kInt8     ? CUDA_R_8I
         : dtype == Dtype::kInt32    ? CUDA_R_32I
                                     : CUDA_R_32F;
}

cublasComputeType_t compute_of(const ProductTypes &types) {
  if (types.factors == Dtype::kFloat64) return CUBLAS_COMPUTE_64F;
  if (types.factors == Dtype::kInt8) return CUBLAS_COMPUTE_32I;
  return types.tf32 && types.factors == Dtype::kFloat32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

// The type of the factor by which sums are multiplied.
cudaDataType_t scale_of(const ProductTypes &types) {
  return types.factors == Dtype::kFloat64 ? CUDA_R_64F : types.factors == Dtype::kInt8 ? CUDA_R_32I : CUDA_R_32F;
}

// The handle of the current device; any thread may use it. Kept until the process ends.
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
  if (!handle) {
    const std::lock_guard<std::mutex> alone(launch_order());
    CUBLAS_CHECK(cublasLtCreate(&handle));
  }
  return handle;
}

// The workspace that NVIDIA recommends: 32 MiB from Hopper on.
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
  // Null if the library has no algorithm for it.
  static std::unique_ptr<OfLibrary> find(const ProductTypes &types, const ProductExtent &e, const ProductPlaces &places,
                                         double factor, bool with_bias, bool adds, uint32_t alignment) {
    if (e.batch > INT32_MAX) return nullptr;
    std::unique_ptr<OfLibrary> made(new OfLibrary(types, e, places, factor, with_bias, adds, alignment));
    return made->choose_algorithm(alignment) ? std::move(made) : nullptr;
  }
  size_t workspace_bytes() const { return algorithm_.workspaceSize; }
  bool adds_bias() const { return adds_bias_; }
  Dtype result() const { return result_; }

  // Safe for concurrent calls: settings that change are made in a copy.
  void run(const void *a, const void *b, void *c, const void *bias, void *workspace, cudaStream_t stream) const {
    cublasLtMatmulDescOpaque_t described = description_;
    if (bias) set(&described, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    const double factors64[] = {factor_, adds_ ? 1.0 : 0.0};
    const float factors[] = {float(factors64[0]), float(factors64[1])};
    const int32_t whole[] = {int32_t(factors64[0]), int32_t(factors64[1])};
    const auto factor = [&](int i) {
      return scale_ == CUDA_R_64F   ? static_cast<const void *>(factors64 + i)
             : scale_ == CUDA_R_32I ? static_cast<const void *>(whole + i)
                                    : static_cast<const void *>(factors + i);
    };
    use_code(&used_, [&] {
      CUBLAS_CHECK(cublasLtMatmul(handle_, &described, factor(0), b, &b_, a, &a_, factor(1), c, &c_, c, &c_,
                                  &algorithm_.algo, workspace, workspace_bytes(), stream));
    });
  }

 private:
  OfLibrary(const ProductTypes &types, const ProductExtent &e, const ProductPlaces &places, double factor,
            bool with_bias, bool adds, uint32_t alignment)
      : scale_(scale_of(types)),
        adds_(adds),
        adds_bias_(with_bias),
        result_(types.result),
        factor_(factor),
        handle_(handle_here()) {
    const cudaDataType_t type = type_of(types.factors), result = type_of(types.result);
    CUBLAS_CHECK(cublasLtMatmulDescInit(&description_, compute_of(types), scale_));
    set(&description_, CUBLASLT_MATMUL_DESC_TRANSA, e.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(&description_, CUBLASLT_MATMUL_DESC_TRANSB, e.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(&description_, CUBLASLT_MATMUL_DESC_EPILOGUE, with_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT);
    // The bias of a run lies elsewhere; what is chosen may go by whether there is one, and by its alignment.
    if (with_bias) set(&description_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, uintptr_t(alignment));
    a_ = e.transpose_a ? new_matrix(type, e.batch, e.m, e.k, places.a) : new_matrix(type, e.batch, e.k, e.m, places.a);
    b_ = e.transpose_b ? new_matrix(type, e.batch, e.k, e.n, places.b) : new_matrix(type, e.batch, e.n, e.k, places.b);
    c_ = new_matrix(result, e.batch, e.n, e.m, places.c);
  }

  template <typename T>
  static void set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute, const T &value) {
    CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value));
  }

  bool choose_algorithm(uint32_t alignment) {
    cublasLtMatmulPreferenceOpaque_t preference;
    CUBLAS_CHECK(cublasLtMatmulPreferenceInit(&preference));
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto &value) {
      CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof value));
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t(most_workspace_here()));
    // If the depth is cut into parts, their sums must not be rounded to 16 bits before they are added up.
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      prefer(attribute, alignment);
    }
    int found = 0;
    const std::lock_guard<std::mutex> alone(launch_order());  // it may look at code, and load it for that
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle_, &description_, &b_, &a_, &c_, &c_, &preference, 1, &algorithm_, &found);
    // Some combinations that it does not have it calls invalid.
    const bool refused = status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE;
    if (!refused) CUBLAS_CHECK(status);
    return !refused && found > 0 && algorithm_.state == CUBLAS_STATUS_SUCCESS;
  }

  const cudaDataType_t scale_;
  const bool adds_, adds_bias_;
  const Dtype result_;
  const double factor_;
  const cublasLtHandle_t handle_;
  cublasLtMatmulDescOpaque_t description_;
  mutable cublasLtMatrixLayoutOpaque_t a_, b_, c_;  // by a call of the library, which only reads them
  cublasLtMatmulHeuristicResult_t algorithm_{};
  mutable std::atomic<bool> used_{false};
};

MatrixProduct::MatrixProduct(const ProductTypes &types, const ProductExtent &e, bool with_bias, Into into)
    : types_(types), extent_(e), places_(places_of(e, {})), adds_(into == kAdding) {
  find_both(with_bias);
}
MatrixProduct::MatrixProduct(const ProductTypes &types, const ProductExtent &e, const ProductPlaces &places,
                             double factor, Into into)
    : types_(types), extent_(e), places_(places_of(e, places)), factor_(factor), adds_(into == kAdding) {
  find_both(/* with_bias */ false);
}
std::unique_ptr<MatrixProduct::OfLibrary> MatrixProduct::find(bool with_bias, uint32_t alignment) const {
  if (with_bias) {
    if (auto found = OfLibrary::find(types_, extent_, places_, factor_, true, adds_, alignment)) return found;
  }
  ProductTypes types = types_;
  if (with_bias && dtype_size(types.result) == 2) types.result = Dtype::kFloat32;  // the bias is added to sums
  return OfLibrary::find(types, extent_, places_, factor_, false, adds_, alignment);
}
void MatrixProduct::find_both(bool with_bias) {
  if (adds_ && dtype_size(types_.result) == 2) throw Error(Code::kInternal, "a product is added to 16 bits");
  const ProductExtent &e = extent_;
  const bool whole = types_.factors == Dtype::kInt8;
  if (e.batch == 0 || e.m == 0 || e.n == 0 || e.k == 0 || !(whole || kFloatTypes.has(types_.factors))) return;
  if (whole && e.k >= 1 << 17) return;  // the library does not say what becomes of sums that int32 does not hold
  aligned_ = find(with_bias, 16);
  any_ = find(with_bias, uint32_t(dtype_size(types_.factors)));
  for (const OfLibrary *product : {aligned_.get(), any_.get()}) {
    if (!product || product->result() == types_.result) continue;
    sums_bytes_ = size_t(e.batch * e.m * e.n) * dtype_size(product->result());
    sums_bytes_ = (sums_bytes_ + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
  }
}
MatrixProduct::~MatrixProduct() = default;
MatrixProduct::MatrixProduct(MatrixProduct &&) noexcept = default;

size_t MatrixProduct::scratch_bytes() const {
  size_t most = 0;
  for (const OfLibrary *product : {aligned_.get(), any_.get()}) {
    if (product) most = std::max(most, product->workspace_bytes());
  }
  return sums_bytes_ + most + kWorkspaceAlignment;
}

void MatrixProduct::run(const Lane &lane, const void *a, const void *b, void *c, const void *bias,
                        void *scratch) const {
  const ProductExtent &e = extent_;
  if (e.batch == 0 || e.m == 0 || e.n == 0) return;
  const bool aligned = can_be_vectors({a, b, c, bias});
  const OfLibrary *const product = (aligned ? aligned_ : any_).get();
  const auto elements = [](const void *data, Dtype dtype) { return elements_of(const_cast<void *>(data), dtype); };
  const Elements to = elements(c, types_.result), added = elements(bias, types_.result);
  if (!product && types_.factors == Dtype::kInt8) {
    const Elements from_a = elements(a, types_.factors), from_b = elements(b, types_.factors);
    multiply<int32_t>(lane, e, places_, from_a, from_b, kNothing, to, {1, adds_});
    return;
  }
  if (!product) {
    dispatch_compute(types_.factors, false, [&](auto zero) {
      using C = decltype(zero);
      if constexpr (std::is_floating_point_v<C>) {
        multiply<C>(lane, e, places_, elements(a, types_.factors), elements(b, types_.factors), added, to,
                    {C(factor_), adds_});
      }
    });
    return;
  }
  char *const memory = static_cast<char *>(workspace_in(scratch));
  void *const into = product->result() == types_.result ? c : memory;
  const bool finishes = bias && !product->adds_bias();
  product->run(a, b, into, finishes ? nullptr : bias, memory + sums_bytes_, static_cast<cudaStream_t>(lane.stream));
  if (finishes) {
    finish_sums(lane, {into, c, product->result(), types_.result, e.batch * e.m * e.n, nullptr, bias, false, e.n, 1});
  }
}

}  // namespace cohort
