// SPDX-License-Identifier: Apache-2.0
// Arrays whose element type is known when a kernel runs, not when it is compiled: read and written in the type in which
// is computed (op/compute_type.hpp). The choice is the same for all threads. And a launch that calls a function for
// each of so many indices.
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
  int64_t dtype;  // a Dtype; a whole word, for the simulator looks through the arguments of kernels word by word
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

// Arrays of which elements are moved alone: only their size counts.
struct Cells {
  void *data;
  int64_t bytes;  // 1, 2, 4 or 8
};

inline Cells cells_of(void *data, Dtype dtype) { return {data, int64_t(dtype_size(dtype))}; }

// to[i] = from[j], or zeros where `from` has no data.
__device__ inline void move_cell(const Cells &to, int64_t i, const Cells &from, int64_t j) {
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

// body(i) for i < count, one thread each, in no order. What the body captures is copied to the device.
template <typename Body>
void for_each(const Lane &lane, int64_t count, const Body &body) {
  if (count > 0) launch(call_for_each<Body>, flat_grid(count), lane.stream, body, count);
}

// K<C>, where C is the type in which arrays of the output's type are computed.
template <template <typename> class K>
std::unique_ptr<Kernel> make_computed(StepSpec &spec, bool integer) {
  return dispatch_compute(spec.outputs[0].dtype, integer,
                          [&](auto c) -> std::unique_ptr<Kernel> { return std::make_unique<K<decltype(c)>>(spec); });
}

// K<float> or K<double>, by the type of the input, which is a floating one.
template <template <typename> class K>
std::unique_ptr<Kernel> make_floating(StepSpec &spec) {
  return dispatch_compute(spec.inputs[0].dtype, false, [&](auto c) -> std::unique_ptr<Kernel> {
    if constexpr (std::is_floating_point_v<decltype(c)>) return std::make_unique<K<decltype(c)>>(spec);
    return nullptr;
  });
}

}  // namespace cohort
