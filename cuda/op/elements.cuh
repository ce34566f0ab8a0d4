// SPDX-License-Identifier: Apache-2.0
// Arrays whose element type is a run-time value: elements are loaded and stored in the compute type
// (op/compute_type.hpp). The branch on the type is the same for all threads. Also for_each(), which launches a function
// over indices.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <memory>

#include "base/dtype_cast.hpp"
#include "cuda/cuda_launch.hpp"
#include "device/kernel.hpp"
#include "op/compute_type.hpp"

namespace cohort {

struct Elements {
  void *data;
  int64_t dtype;  // a Dtype, in a whole word, because the simulator inspects the arguments of kernels word by word
};

inline Elements elements_of(void *data, Dtype dtype) { return {data, int64_t(dtype)}; }

// 16-bit floats by the device's own instructions.
__device__ inline float to_float(Float16 x) {
  __half_raw raw;
  raw.x = x.bits;
  return __half2float(__half(raw));
}
__device__ inline float to_float(Bfloat16 x) {
  __nv_bfloat16_raw raw;
  raw.x = x.bits;
  return __bfloat162float(__nv_bfloat16(raw));
}
__device__ inline Float16 to_float16(float x) {
  Float16 result;
  result.bits = __half_raw(__float2half_rn(x)).x;
  return result;
}
__device__ inline Bfloat16 to_bfloat16(float x) {
  Bfloat16 result;
  result.bits = __nv_bfloat16_raw(__float2bfloat16_rn(x)).x;
  return result;
}

template <typename C>
__device__ C load(const Elements &from, int64_t i) {
  switch (Dtype(from.dtype)) {
    case Dtype::kFloat32:
      return cast_element<C>(static_cast<const float *>(from.data)[i]);
    case Dtype::kFloat64:
      return cast_element<C>(static_cast<const double *>(from.data)[i]);
    case Dtype::kFloat16:
      return cast_element<C>(to_float(static_cast<const Float16 *>(from.data)[i]));
    case Dtype::kBfloat16:
      return cast_element<C>(to_float(static_cast<const Bfloat16 *>(from.data)[i]));
    case Dtype::kUint8:
      return C(static_cast<const uint8_t *>(from.data)[i]);
    case Dtype::kInt8:
      return C(static_cast<const int8_t *>(from.data)[i]);
    case Dtype::kInt32:
      return C(static_cast<const int32_t *>(from.data)[i]);
    case Dtype::kInt64:
      return C(static_cast<const int64_t *>(from.data)[i]);
    case Dtype::kBool:
      return C(static_cast<const bool *>(from.data)[i]);
    case Dtype::kNone:
      break;
  }
  return C(0);
}

template <typename C>
__device__ void store(const Elements &to, int64_t i, C value) {
  switch (Dtype(to.dtype)) {
    case Dtype::kFloat32:
      static_cast<float *>(to.data)[i] = cast_element<float>(value);
      break;
    case Dtype::kFloat64:
      static_cast<double *>(to.data)[i] = cast_element<double>(value);
      break;
    case Dtype::kFloat16:
      static_cast<Float16 *>(to.data)[i] = to_float16(float(value));
      break;
    case Dtype::kBfloat16:
      static_cast<Bfloat16 *>(to.data)[i] = to_bfloat16(float(value));
      break;
    case Dtype::kUint8:
      static_cast<uint8_t *>(to.data)[i] = cast_element<uint8_t>(value);
      break;
    case Dtype::kInt8:
      static_cast<int8_t *>(to.data)[i] = cast_element<int8_t>(value);
      break;
    case Dtype::kInt32:
      static_cast<int32_t *>(to.data)[i] = cast_element<int32_t>(value);
      break;
    case Dtype::kInt64:
      static_cast<int64_t *>(to.data)[i] = cast_element<int64_t>(value);
      break;
    case Dtype::kBool:
      static_cast<bool *>(to.data)[i] = cast_element<bool>(value);
      break;
    case Dtype::kNone:
      break;
  }
}

// A label, an index or a length (to_index() of dtype_cast.hpp).
__device__ inline int64_t load_index(const Elements &from, int64_t i) {
  switch (Dtype(from.dtype)) {
    case Dtype::kFloat32:
    case Dtype::kFloat16:
    case Dtype::kBfloat16:
    case Dtype::kFloat64:
      return to_index(load<double>(from, i));
    default:
      return load<int64_t>(from, i);
  }
}

// An array whose elements are copied only: it needs no type but their size.
struct RawElements {
  void *data;
  int64_t bytes;  // 1, 2, 4 or 8
};

inline RawElements raw_elements(void *data, Dtype dtype) { return {data, int64_t(dtype_size(dtype))}; }

// to[i] = from[j], or zeros where `from` has no data.
__device__ inline void copy_element(const RawElements &to, int64_t i, const RawElements &from, int64_t j) {
  const bool zero = !from.data;
  switch (to.bytes) {
    case 1:
      static_cast<uint8_t *>(to.data)[i] = zero ? uint8_t(0) : static_cast<const uint8_t *>(from.data)[j];
      break;
    case 2:
      static_cast<uint16_t *>(to.data)[i] = zero ? uint16_t(0) : static_cast<const uint16_t *>(from.data)[j];
      break;
    case 4:
      static_cast<uint32_t *>(to.data)[i] = zero ? uint32_t(0) : static_cast<const uint32_t *>(from.data)[j];
      break;
    default:
      static_cast<uint64_t *>(to.data)[i] = zero ? uint64_t(0) : static_cast<const uint64_t *>(from.data)[j];
  }
}

template <typename Body>
__global__ void call_for_each(Body body, int64_t count) {
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += int64_t(gridDim.x) * blockDim.x) {
    body(i);
  }
}

// Calls body(i) for i < count, one thread each, in no particular order. Captures are copied to the device.
template <typename Body>
void for_each(const Lane &lane, int64_t count, const Body &body) {
  if (count > 0) launch(call_for_each<Body>, flat_grid(count), lane.stream, body, count);
}

// Makes K<C>, where C is the compute type of the output.
template <template <typename> class K>
std::unique_ptr<Kernel> make_computed(StepSpec &spec, bool integer) {
  return dispatch_compute(spec.outputs[0].dtype, integer,
                          [&](auto c) -> std::unique_ptr<Kernel> { return std::make_unique<K<decltype(c)>>(spec); });
}

// Makes K<float> or K<double>, the compute type of the input, which must be a floating type.
template <template <typename> class K>
std::unique_ptr<Kernel> make_floating(StepSpec &spec) {
  return dispatch_compute(spec.inputs[0].dtype, false, [&](auto c) -> std::unique_ptr<Kernel> {
    if constexpr (std::is_floating_point_v<decltype(c)>) return std::make_unique<K<decltype(c)>>(spec);
    return nullptr;
  });
}

}  // namespace cohort
