// SPDX-License-Identifier: Apache-2.0
// Numbers in the types of arrays, for the simulated libraries.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <library_types.h>

#include <cstdint>
#include <cstring>

namespace cudasim {

inline size_t size_of(cudaDataType_t type) {
  return type == CUDA_R_64F ? 8 : type == CUDA_R_32F || type == CUDA_R_32I ? 4 : type == CUDA_R_8I ? 1 : 2;
}

inline double read(const void *data, cudaDataType_t type, int64_t i) {
  switch (type) {
    case CUDA_R_64F:
      return static_cast<const double *>(data)[i];
    case CUDA_R_32I:
      return static_cast<const int32_t *>(data)[i];
    case CUDA_R_8I:
      return static_cast<const int8_t *>(data)[i];
    case CUDA_R_16F:
      return double(__half2float(static_cast<const __half *>(data)[i]));
    case CUDA_R_16BF:
      return double(__bfloat162float(static_cast<const __nv_bfloat16 *>(data)[i]));
    default:
      return double(static_cast<const float *>(data)[i]);
  }
}

inline void write(void *data, cudaDataType_t type, int64_t i, double value) {
  switch (type) {
    case CUDA_R_64F:
      static_cast<double *>(data)[i] = value;
      return;
    case CUDA_R_32I:
      static_cast<int32_t *>(data)[i] = int32_t(value);
      return;
    case CUDA_R_16F:
      static_cast<__half *>(data)[i] = __float2half(float(value));
      return;
    case CUDA_R_16BF:
      static_cast<__nv_bfloat16 *>(data)[i] = __float2bfloat16(float(value));
      return;
    default:
      static_cast<float *>(data)[i] = float(value);
  }
}

inline double rounded(double value, cudaDataType_t type) {
  double room;
  write(&room, type, 0, value);
  return read(&room, type, 0);
}

// 11 significant bits, to nearest.
inline double rounded_to_tf32(double value) {
  auto single = float(value);
  uint32_t bits;
  std::memcpy(&bits, &single, sizeof bits);
  if ((bits >> 23 & 0xff) == 0xff) return value;
  bits = (bits + 0xfff + (bits >> 13 & 1)) & ~uint32_t(0x1fff);
  std::memcpy(&single, &bits, sizeof bits);
  return double(single);
}

}  // namespace cudasim
