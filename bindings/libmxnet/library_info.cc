// SPDX-License-Identifier: Apache-2.0
// MXGetVersion and MXLibInfoFeatures: what hosts ask before they use the library.
#include "error_guard.hpp"
#include "mxnet/c_api.h"

namespace cohort_mxnet {
namespace {

// All names that MXNet has, in its order, as hosts look them up by number, too.
const std::vector<LibFeature> &features() {
  static const std::vector<LibFeature> list = [] {
    const bool gpus = cohort_has_feature("cuda") != 0;
#ifdef __x86_64__
    const bool is_x86 = true;
#else
    const bool is_x86 = false;
#endif
    return std::vector<LibFeature>{
        {"CUDA", gpus},
        {"CUDNN", gpus},
        {"NCCL", gpus},
        {"CUDA_RTC", false},
        {"TENSORRT", false},
        {"CPU_SSE", is_x86},
        {"CPU_SSE2", is_x86},
        {"CPU_SSE3", false},
        {"CPU_SSE4_1", false},
        {"CPU_SSE4_2", false},
        {"CPU_SSE4A", false},
        {"CPU_AVX", false},
        {"CPU_AVX2", false},
        {"OPENMP", true},
        {"SSE", false},
        {"F16C", false},
        {"JEMALLOC", false},
        {"BLAS_OPEN", false},
        {"BLAS_ATLAS", false},
        {"BLAS_MKL", false},
        {"BLAS_APPLE", false},
        {"LAPACK", true},
        {"MKLDNN", true},
        {"OPENCV", false},
        {"CAFFE", false},
        {"PROFILER", true},
        {"DIST_KVSTORE", false},
        {"CXX14", true},
        {"INT64_TENSOR_SIZE", false},
        {"SIGNAL_HANDLER", false},
        {"DEBUG", false},
        {"TVM_OP", false},
    };
  }();
  return list;
}

}  // namespace
}  // namespace cohort_mxnet

using namespace cohort_mxnet;

extern "C" {

int MXGetVersion(int *out) {
  return guarded([&] { required(out, "out") = 10901; });
}

int MXLibInfoFeatures(const struct LibFeature **libFeature, size_t *size) {
  return guarded([&] {
    require(libFeature, "libFeature"), require(size, "size");
    *libFeature = features().data();
    *size = features().size();
  });
}

}  // extern "C"
