// SPDX-License-Identifier: Apache-2.0
// cuBLASLt in plain loops. It enforces the alignments, workspace and leading dimensions that callers have promised, and
// overwrites the whole workspace.
#include <cublasLt.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "cudasim.h"
#include "sim.hpp"
#include "sim_numbers.hpp"

using namespace cudasim;

namespace {

struct Description {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void *bias = nullptr;
};

// Stored inside the library's own struct, which callers may copy.
static_assert(sizeof(Description) <= sizeof(cublasLtMatmulDescOpaque_t) && std::is_trivially_copyable_v<Description>);

struct Matrix {  // column-major
  cudaDataType_t type;
  uint64_t rows, columns;
  int64_t leading, stride = 0;
  int32_t count = 1;

  int64_t elements() const {
    return columns ? stride * (count - 1) + leading * int64_t(columns - 1) + int64_t(rows) : 0;
  }
};

static_assert(sizeof(Matrix) <= sizeof(cublasLtMatrixLayoutOpaque_t) && std::is_trivially_copyable_v<Matrix>);

struct Preference {
  uint64_t workspace = 0;
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t alignments[4] = {256, 256, 256, 256};
};

static_assert(sizeof(Preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t));

// rounds_parts: it sums the depth in two halves, and rounds the sum of the first to the type of the result.
struct Algorithm {
  uint32_t alignments[4];
  uint64_t workspace, mark;
  uint32_t rounds_parts, bias_alignment;
};
constexpr uint64_t kMark = 0x6375626c61736c74;
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

std::atomic<int> num_handles{0};
std::atomic<bool> refuses_epilogues{false};

template <typename T>
bool take(T *to, const void *value, size_t bytes) {
  if (bytes != sizeof(T)) return false;
  std::memcpy(to, value, bytes);
  return true;
}

// Whether a product of int8 is supported: rows of A and columns of B must be read along the depth, in words of four
// bytes; rows, depth and the strides between columns and matrices must be whole words. Sums are not scaled.
bool are_whole_supported(const Description &d, const Matrix &a, const Matrix &b, const Matrix &c) {
  if (a.type != b.type || c.type != CUDA_R_32I || d.compute != CUBLAS_COMPUTE_32I || d.scale != CUDA_R_32I)
    return false;
  if (d.epilogue != CUBLASLT_EPILOGUE_DEFAULT) return false;
  if (d.transpose_a != CUBLAS_OP_T || d.transpose_b != CUBLAS_OP_N || a.columns % 4 != 0) return false;
  const auto is_whole = [](const Matrix &x) { return x.rows % 4 == 0 && x.leading % 4 == 0 && x.stride % 4 == 0; };
  return is_whole(a) && is_whole(b) && is_whole(c);
}

bool is_supported(const Description &d, const Matrix &a, const Matrix &b, const Matrix &c) {
  if (a.type == CUDA_R_8I) return are_whole_supported(d, a, b, c);
  const bool doubles = a.type == CUDA_R_64F;
  if (a.type != b.type || (c.type != a.type && c.type != CUDA_R_32F)) return false;
  if (d.compute == CUBLAS_COMPUTE_32F_FAST_TF32 && a.type != CUDA_R_32F) return false;
  if (doubles != (d.compute == CUBLAS_COMPUTE_64F) || d.scale != (doubles ? CUDA_R_64F : CUDA_R_32F)) return false;
  if (d.epilogue != CUBLASLT_EPILOGUE_DEFAULT && (doubles || refuses_epilogues)) return false;
  return d.epilogue == CUBLASLT_EPILOGUE_DEFAULT || d.epilogue == CUBLASLT_EPILOGUE_BIAS;
}

bool fit(const Description &d, const Matrix &a, const Matrix &b, const Matrix &c) {
  const bool ta = d.transpose_a != CUBLAS_OP_N, tb = d.transpose_b != CUBLAS_OP_N;
  const uint64_t m = ta ? a.columns : a.rows, k = ta ? a.rows : a.columns;
  const uint64_t n = tb ? b.rows : b.columns, kb = tb ? b.columns : b.rows;
  const auto led = [](const Matrix &x) { return x.leading >= int64_t(x.rows) && x.rows > 0 && x.columns > 0; };
  return m == c.rows && n == c.columns && k == kb && led(a) && led(b) && led(c) && a.count == c.count &&
         b.count == c.count;
}

// One code for all of these kernels; odd, so that it differs from every code address.
uint64_t code_of(const Description &d, const Matrix &a, const Matrix &b, const Matrix &c, const Algorithm &algorithm) {
  uint64_t code = 0;
  for (const auto part : {uint64_t(d.compute), uint64_t(d.transpose_a), uint64_t(d.transpose_b), uint64_t(d.epilogue),
                          uint64_t(a.type), uint64_t(b.type), uint64_t(c.type), uint64_t(algorithm.alignments[0])}) {
    code = code * 1021 + part;
  }
  return 2 * code + 1;
}

struct Product {
  Description d;
  Matrix a, b, c;
  double alpha, beta;
  const void *from_a, *from_b, *from_c;
  void *to, *workspace;
  size_t workspace_bytes;
  bool rounds_parts;

  bool reach(const void *data, size_t bytes, const char *what) const {
    if (bytes == 0) return true;
    std::string why;
    Block *const block = sim().find_live(data, bytes, sim().running_device, &why);
    if (!block) {
      sim().fault(sim().running_device, cudaErrorIllegalAddress, std::string("cublasLtMatmul: ") + what + " is " + why);
      return false;
    }
    sim().open(*block);
    return true;
  }

  double factor(const void *data, cudaDataType_t type, int64_t i) const {
    const double value = read(data, type, i);
    return d.compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? rounded_to_tf32(value) : value;
  }

  void run() const {
    const size_t element = size_of(a.type), out = size_of(c.type);
    if (!reach(from_a, size_t(a.elements()) * element, "A") || !reach(from_b, size_t(b.elements()) * element, "B") ||
        !reach(to, size_t(c.elements()) * out, "D") || !reach(workspace, workspace_bytes, "the workspace") ||
        (beta != 0 && !reach(from_c, size_t(c.elements()) * out, "C")) ||
        (d.bias && !reach(d.bias, c.rows * out, "the bias"))) {
      return;
    }
    if (workspace_bytes) std::memset(workspace, 0xee, workspace_bytes);
    const bool ta = d.transpose_a != CUBLAS_OP_N, tb = d.transpose_b != CUBLAS_OP_N;
    const auto k = int64_t(ta ? a.rows : a.columns);
    for (int32_t batch = 0; batch < c.count; ++batch) {
      for (int64_t j = 0; j < int64_t(c.columns); ++j) {
        for (int64_t i = 0; i < int64_t(c.rows); ++i) {
          double sum = 0;
          for (int64_t l = 0; l < k; ++l) {
            if (rounds_parts && l == k / 2) sum = rounded(sum, c.type);
            sum += factor(from_a, a.type, batch * a.stride + (ta ? l + i * a.leading : i + l * a.leading)) *
                   factor(from_b, b.type, batch * b.stride + (tb ? j + l * b.leading : l + j * b.leading));
          }
          const int64_t at = batch * c.stride + i + j * c.leading;
          double value = alpha * sum;
          if (beta != 0) value = rounded(value, c.type) + beta * read(from_c, c.type, at);
          if (d.bias) value += read(d.bias, c.type, i);
          if (c.type == CUDA_R_32I && (value < INT32_MIN || value > INT32_MAX)) {
            sim().report("cublasLtMatmul: a sum that int32 does not hold");
            value = 0;
          }
          write(to, c.type, at, value);
        }
      }
    }
  }
};

}  // namespace

extern "C" {

void cudasim_refuse_epilogues(int refuse) { refuses_epilogues = refuse != 0; }
int cudasim_num_cublas_handles(void) { return num_handles; }

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  const Call call("cublasLtCreate", Call::kNothing);
  sim().check_no_launch("cublasLtCreate");
  ++num_handles;
  *handle = reinterpret_cast<cublasLtHandle_t>(new int(0));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  --num_handles;
  delete reinterpret_cast<int *>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
const char *cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS         ? "success"
         : status == CUBLAS_STATUS_NOT_SUPPORTED ? "the requested functionality is not supported"
                                                 : "an invalid value";
}

// Structs that callers allocate, with the sizes of the header.
cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t made, size_t bytes, cublasComputeType_t compute,
                                               cudaDataType_t scale) {
  if (bytes != sizeof *made) return CUBLAS_STATUS_INVALID_VALUE;
  auto *const description = new (made) Description;
  description->compute = compute;
  description->scale = scale;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t given, cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes) {
  auto &d = *reinterpret_cast<Description *>(given);
  const bool taken = attribute == CUBLASLT_MATMUL_DESC_TRANSA         ? take(&d.transpose_a, value, bytes)
                     : attribute == CUBLASLT_MATMUL_DESC_TRANSB       ? take(&d.transpose_b, value, bytes)
                     : attribute == CUBLASLT_MATMUL_DESC_EPILOGUE     ? take(&d.epilogue, value, bytes)
                     : attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER ? take(&d.bias, value, bytes)
                                                                      : false;
  return taken ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t made, size_t bytes, cudaDataType type,
                                                 uint64_t rows, uint64_t columns, int64_t leading) {
  if (bytes != sizeof *made) return CUBLAS_STATUS_INVALID_VALUE;
  new (made) Matrix{type, rows, columns, leading};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t given, cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t bytes) {
  auto &m = *reinterpret_cast<Matrix *>(given);
  const bool taken = attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT            ? take(&m.count, value, bytes)
                     : attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET ? take(&m.stride, value, bytes)
                                                                                : false;
  return taken ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t made, size_t bytes) {
  if (bytes != sizeof *made) return CUBLAS_STATUS_INVALID_VALUE;
  new (made) Preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t given,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
                                                    size_t bytes) {
  auto &p = *reinterpret_cast<Preference *>(given);
  const int which = int(attribute) - int(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
  const bool taken = attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES     ? take(&p.workspace, value, bytes)
                     : attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK ? take(&p.reductions, value, bytes)
                     : which >= 0 && which < 4 ? take(&p.alignments[which], value, bytes)
                                               : false;
  return taken ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t given, int wanted,
                                              cublasLtMatmulHeuristicResult_t *results, int *found) {
  *found = 0;
  const Call call("cublasLtMatmulAlgoGetHeuristic", Call::kNothing);
  sim().check_no_launch("cublasLtMatmulAlgoGetHeuristic");
  const auto &d = *reinterpret_cast<const Description *>(description);
  const auto &ma = *reinterpret_cast<const Matrix *>(a), &mb = *reinterpret_cast<const Matrix *>(b),
             &mc = *reinterpret_cast<const Matrix *>(c);
  if (wanted < 1 || !fit(d, ma, mb, mc)) {
    sim().report("cublasLtMatmulAlgoGetHeuristic: matrices that do not fit");
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (d.epilogue == CUBLASLT_EPILOGUE_BIAS && !d.bias) return CUBLAS_STATUS_INVALID_VALUE;
  if (!is_supported(d, ma, mb, mc)) return CUBLAS_STATUS_NOT_SUPPORTED;
  const auto &preference = *reinterpret_cast<const Preference *>(given);
  if (ma.type == CUDA_R_8I) {
    for (const uint32_t alignment : preference.alignments)
      if (alignment % 4 != 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  Algorithm algorithm{};
  std::memcpy(algorithm.alignments, preference.alignments, sizeof algorithm.alignments);
  algorithm.workspace = std::min<uint64_t>(preference.workspace, 64 << 10);
  algorithm.mark = kMark;
  constexpr uint32_t kRounding = CUBLASLT_REDUCTION_SCHEME_INPLACE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  algorithm.rounds_parts = (preference.reductions & kRounding) != 0;
  const auto bias = reinterpret_cast<uintptr_t>(d.bias);
  algorithm.bias_alignment = uint32_t(std::min<uintptr_t>(bias & -bias, 256));
  results[0] = {};
  std::memcpy(&results[0].algo, &algorithm, sizeof algorithm);
  results[0].workspaceSize = algorithm.workspace;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t layout_a, const void *b, cublasLtMatrixLayout_t layout_b,
                              const void *beta, const void *c, cublasLtMatrixLayout_t layout_c, void *out,
                              cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  const Call call("cublasLtMatmul", Call::kContext);
  if (call.refused) return CUBLAS_STATUS_EXECUTION_FAILED;
  Product product;
  product.d = *reinterpret_cast<const Description *>(description);
  product.a = *reinterpret_cast<const Matrix *>(layout_a);
  product.b = *reinterpret_cast<const Matrix *>(layout_b);
  product.c = *reinterpret_cast<const Matrix *>(layout_c);
  if (product.d.epilogue != CUBLASLT_EPILOGUE_BIAS) product.d.bias = nullptr;
  product.alpha = read(alpha, product.d.scale, 0);
  product.beta = read(beta, product.d.scale, 0);
  product.from_a = a, product.from_b = b, product.from_c = c, product.to = out, product.workspace = workspace;
  Algorithm algorithm;
  std::memcpy(&algorithm, algo, sizeof algorithm);
  product.workspace_bytes = algorithm.workspace;
  product.rounds_parts = algorithm.rounds_parts != 0;
  if (!sim().streams.count(stream) || stream->context != call.context) return CUBLAS_STATUS_INVALID_VALUE;
  if (algorithm.mark != kMark || !fit(product.d, product.a, product.b, product.c) ||
      (product.d.epilogue == CUBLASLT_EPILOGUE_BIAS && !product.d.bias)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!is_supported(product.d, product.a, product.b, product.c)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (product.a.type == CUDA_R_8I && (product.alpha != 1 || (product.beta != 0 && product.beta != 1))) {
    sim().report("cublasLtMatmul: sums of int8 are not scaled");
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const void *const addresses[4] = {a, b, c, out};
  for (int i = 0; i < 4; ++i) {
    if (reinterpret_cast<uintptr_t>(addresses[i]) % algorithm.alignments[i] == 0) continue;
    sim().report("cublasLtMatmul: an array is not aligned as its algorithm was told");
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (product.d.bias && reinterpret_cast<uintptr_t>(product.d.bias) % algorithm.bias_alignment != 0) {
    sim().report("cublasLtMatmul: the bias is not aligned as that was by which its algorithm was found");
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (workspace_bytes < algorithm.workspace || (algorithm.workspace && !workspace) ||
      reinterpret_cast<uintptr_t>(workspace) % 256 != 0) {
    sim().report("cublasLtMatmul: the workspace is too small, or not aligned");
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  sim().use_code(code_of(product.d, product.a, product.b, product.c, algorithm), stream, "a product");
  sim().launch(stream, {"a product", [product] { product.run(); }});
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
