// SPDX-License-Identifier: Apache-2.0
// Copies of whole arrays and of views, for the kernels that all backends share.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "cuda/cuda_launch.hpp"
#include "cuda/op/divisor.cuh"
#include "kernels/backend.hpp"
#include "kernels/strided_copy.hpp"

namespace cohort {

void copy_bytes(const Lane &lane, void *to, const void *from, size_t bytes) {
  if (bytes == 0 || to == from) return;
  CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, static_cast<cudaStream_t>(lane.stream)));
}

void zero_bytes(const Lane &lane, void *to, size_t bytes) {
  if (bytes > 0) CUDA_CHECK(cudaMemsetAsync(to, 0, bytes, static_cast<cudaStream_t>(lane.stream)));
}

namespace {

struct CopyAxes {
  int64_t num_axes = 0;
  int64_t lengths[kMaxAxes] = {}, from[kMaxAxes] = {}, to[kMaxAxes] = {};
};

struct alignas(16) SixteenBytes {
  uint64_t words[2];
};

struct AxisDivisors {
  Divisor by[kMaxAxes];
};

// One thread per element. With no `from`, all elements are `value`. Index: uint32_t, for which divisions are
// multiplications, or int64_t from 2^31 elements on.
template <typename T, typename Index>
__global__ void copy_strided(CopyAxes axes, AxisDivisors divisors, const T *from, T *to, T value, int64_t count) {
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += int64_t(gridDim.x) * blockDim.x) {
    Index rest = Index(i);
    int64_t at_from = 0, at_to = 0;
    for (int axis = int(axes.num_axes) - 1; axis > 0; --axis) {
      int64_t along;
      if constexpr (std::is_same_v<Index, uint32_t>) {
        along = divisors.by[axis].split(&rest);
      } else {
        along = rest % axes.lengths[axis];
        rest /= axes.lengths[axis];
      }
      at_from += along * axes.from[axis];
      at_to += along * axes.to[axis];
    }
    at_from += int64_t(rest) * axes.from[0];  // without axes, index and strides are 0
    at_to += int64_t(rest) * axes.to[0];
    COHORT_CHECK_VECTOR(to + at_to, sizeof(T));
    to[at_to] = from ? from[at_from] : value;
  }
}

// One block copies one square of kSide x kSide at a time through shared memory: `from` is dense along the last axis but
// one, `to` along the last, so that both are accessed line by line.
constexpr int64_t kSide = 32;
constexpr unsigned kLines = 8;  // of a square, copied at a time

template <typename T>
__global__ void copy_squares(CopyAxes axes, const T *from, T *to, int64_t count) {
  constexpr int kPitch =
      int(kSide) + (sizeof(T) < 4 ? int(4 / sizeof(T)) : 1);  // so that the elements of a column lie in different banks
  COHORT_SHARED(T, square, [kSide][kPitch]);
  const int last = int(axes.num_axes) - 1;
  const int64_t rows = axes.lengths[last - 1], columns = axes.lengths[last];
  const int64_t squares_down = (rows + kSide - 1) / kSide, squares_across = (columns + kSide - 1) / kSide;
  for (int64_t i = blockIdx.x; i < count; i += gridDim.x) {
    const int64_t first_row = i % squares_down * kSide, first_column = i / squares_down % squares_across * kSide;
    int64_t rest = i / squares_down / squares_across, at_from = 0, at_to = 0;
    for (int axis = last - 2; axis >= 0; --axis) {
      at_from += rest % axes.lengths[axis] * axes.from[axis];
      at_to += rest % axes.lengths[axis] * axes.to[axis];
      rest /= axes.lengths[axis];
    }
    for (unsigned line = threadIdx.y; line < kSide; line += kLines) {
      const int64_t row = first_row + threadIdx.x, column = first_column + line;
      if (row < rows && column < columns) square[line][threadIdx.x] = from[at_from + row + column * axes.from[last]];
    }
    __syncthreads();
    for (unsigned line = threadIdx.y; line < kSide; line += kLines) {
      const int64_t row = first_row + line, column = first_column + threadIdx.x;
      if (row < rows && column < columns) to[at_to + row * axes.to[last - 1] + column] = square[threadIdx.x][line];
    }
    __syncthreads();  // before the next one
  }
}

// Whether squares pay off: for short axes most of a square would be empty.
bool goes_by_squares(const CopyAxes &axes, const void *from) {
  constexpr int64_t kLeast = 8;
  const int64_t last = axes.num_axes - 1;
  return from && last > 0 && axes.from[last - 1] == 1 && axes.to[last] == 1 && axes.lengths[last - 1] >= kLeast &&
         axes.lengths[last] >= kLeast;
}

template <typename T>
void launch_squares(const CopyAxes &axes, const void *from, void *to, const Lane &lane) {
  int64_t count = 1;
  for (int64_t axis = 0; axis < axes.num_axes; ++axis) {
    count *= axis + 2 < axes.num_axes ? axes.lengths[axis] : (axes.lengths[axis] + kSide - 1) / kSide;
  }
  const Grid grid{dim3(unsigned(std::min<int64_t>(count, 132 * 16))), dim3(kSide, kLines)};
  launch(copy_squares<T>, grid, lane.stream, axes, static_cast<const T *>(from), static_cast<T *>(to), count);
}

template <typename T>
void launch_copy(const CopyAxes &axes, const void *from, void *to, const void *value, int64_t count, const Lane &lane) {
  if (goes_by_squares(axes, from)) return launch_squares<T>(axes, from, to, lane);
  T element{};
  std::memcpy(&element, value, sizeof element);
  AxisDivisors divisors;
  const bool small = count <= INT32_MAX;
  for (int64_t axis = 0; small && axis < axes.num_axes; ++axis) divisors.by[axis] = Divisor(axes.lengths[axis]);
  launch(small ? copy_strided<T, uint32_t> : copy_strided<T, int64_t>, flat_grid(count), lane.stream, axes, divisors,
         static_cast<const T *>(from), static_cast<T *>(to), element, count);
}

// How many neighbouring elements can be copied as one: where they are neighbours on both sides, up to 16 bytes.
int64_t elements_at_once(const CopyAxes &axes, size_t element_bytes, const void *from, const void *to) {
  const int64_t last = axes.num_axes - 1;
  if (last < 0 || axes.to[last] != 1 || (from && axes.from[last] != 1)) return 1;
  int64_t number = 16 / int64_t(element_bytes);
  const auto fits = [&] {
    const auto bytes = uintptr_t(number) * element_bytes;
    if (reinterpret_cast<uintptr_t>(from) % bytes != 0 || reinterpret_cast<uintptr_t>(to) % bytes != 0) return false;
    for (int64_t axis = 0; axis < last; ++axis) {
      if (axes.to[axis] % number != 0 || (from && axes.from[axis] % number != 0)) return false;
    }
    return axes.lengths[last] % number == 0;
  };
  while (!fits()) number /= 2;  // 1 fits
  return number;
}

// Appends an axis, unless it has length 1.
void add(const StridedCopy::Axis &axis, CopyAxes *axes) {
  if (axis.length == 1) return;
  if (axes->num_axes == kMaxAxes) throw Error(Code::kUnsupported, text("a copy along more than ", kMaxAxes, " axes"));
  axes->lengths[axes->num_axes] = axis.length;
  axes->from[axes->num_axes] = axis.from;
  axes->to[axes->num_axes++] = axis.to;
}

void copy_or_fill(CopyAxes axes, size_t element_bytes, const void *from, void *to, const void *value,
                  const Lane &lane) {
  int64_t count = 1;
  for (int64_t axis = 0; axis < axes.num_axes; ++axis) count *= axes.lengths[axis];
  if (count == 0) return;
  const int64_t number = elements_at_once(axes, element_bytes, from, to);
  if (number > 1) {
    for (int64_t axis = 0; axis + 1 < axes.num_axes; ++axis) axes.from[axis] /= number, axes.to[axis] /= number;
    axes.lengths[axes.num_axes - 1] /= number;
  }
  unsigned char repeated[16] = {};
  for (int64_t i = 0; value && i < number; ++i) {
    std::memcpy(repeated + size_t(i) * element_bytes, value, element_bytes);
  }
  switch (element_bytes * size_t(number)) {
    case 1:
      return launch_copy<uint8_t>(axes, from, to, repeated, count / number, lane);
    case 2:
      return launch_copy<uint16_t>(axes, from, to, repeated, count / number, lane);
    case 4:
      return launch_copy<uint32_t>(axes, from, to, repeated, count / number, lane);
    case 8:
      return launch_copy<uint64_t>(axes, from, to, repeated, count / number, lane);
    default:
      return launch_copy<SixteenBytes>(axes, from, to, repeated, count / number, lane);
  }
}

}  // namespace

void StridedCopy::run(const void *from, void *to, const Lane &lane) const {
  CopyAxes axes;
  for (const Axis &axis : outer_) add(axis, &axes);
  add(row_, &axes);
  add(inner_, &axes);
  copy_or_fill(axes, element_bytes_, from, to, nullptr, lane);
}

void StridedCopy::fill(const void *value, void *to, const Lane &lane) const {
  CopyAxes axes;
  for (const Axis &axis : outer_) add(axis, &axes);
  add(row_, &axes);
  add(inner_, &axes);
  copy_or_fill(axes, element_bytes_, nullptr, to, value, lane);
}

}  // namespace cohort
