// SPDX-License-Identifier: Apache-2.0
// Kernels that move elements: those that are the same for all backends, what they stand on, and joining and cutting.
#include <algorithm>

#include "cuda/cuda_launch.hpp"
#include "cuda/cuda_layout.hpp"
#include "device/kernel_table.hpp"
#include "kernels/diag_kernels.hpp"
#include "kernels/slice_kernels.hpp"
#include "kernels/space_to_depth_kernels.hpp"
#include "kernels/transpose_kernels.hpp"
#include "op/concat.hpp"
#include "op/indexing.hpp"
#include "op/slice_channel.hpp"

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

// One thread an element. With no `from`, all elements are `value`.
template <typename T>
__global__ void copy_strided(CopyAxes axes, const T *from, T *to, T value, int64_t count) {
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += int64_t(gridDim.x) * blockDim.x) {
    int64_t rest = i, at_from = 0, at_to = 0;
    for (int axis = int(axes.num_axes) - 1; axis >= 0; --axis) {
      const int64_t along = axis == 0 ? rest : rest % axes.lengths[axis];
      if (axis > 0) rest /= axes.lengths[axis];
      at_from += along * axes.from[axis];
      at_to += along * axes.to[axis];
    }
    to[at_to] = from ? from[at_from] : value;
  }
}

// One block a square of kSide x kSide at a time, which goes through shared memory: along the last but one axis `from`
// is dense, along the last one `to` is, so that both are met line by line.
constexpr int64_t kSide = 32;
constexpr unsigned kLines = 8;  // of a square, at a time

template <typename T>
__global__ void copy_squares(CopyAxes axes, const T *from, T *to, int64_t count) {
  constexpr int kPitch =
      int(kSide) + (sizeof(T) < 4 ? int(4 / sizeof(T)) : 1);  // a column is in as many banks as lines
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

// Whether it pays: else most of a square would be empty.
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
  T element = 0;
  if (value) std::memcpy(&element, value, sizeof element);
  launch(copy_strided<T>, flat_grid(count), lane.stream, axes, static_cast<const T *>(from), static_cast<T *>(to),
         element, count);
}

// Behind the axes that are there. Those of length 1 are left out.
void add(const StridedCopy::Axis &axis, CopyAxes *axes) {
  if (axis.length == 1) return;
  if (axes->num_axes == kMaxAxes) throw Error(Code::kUnsupported, text("a copy along more than ", kMaxAxes, " axes"));
  axes->lengths[axes->num_axes] = axis.length;
  axes->from[axes->num_axes] = axis.from;
  axes->to[axes->num_axes++] = axis.to;
}

void copy_or_fill(const CopyAxes &axes, size_t element_bytes, const void *from, void *to, const void *value,
                  const Lane &lane) {
  int64_t count = 1;
  for (int64_t axis = 0; axis < axes.num_axes; ++axis) count *= axes.lengths[axis];
  if (count == 0) return;
  switch (element_bytes) {
    case 1:
      return launch_copy<uint8_t>(axes, from, to, value, count, lane);
    case 2:
      return launch_copy<uint16_t>(axes, from, to, value, count, lane);
    case 4:
      return launch_copy<uint32_t>(axes, from, to, value, count, lane);
    default:
      return launch_copy<uint64_t>(axes, from, to, value, count, lane);
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

namespace {

// ---- Concat, SliceChannel, stack: an array of `outer` rows, each of which is made of one stretch of every part.
// Each is the backward step of another.

class Stretches {
 public:
  Stretches(int64_t outer, const TensorSpec &whole, const std::vector<int64_t> &parts, bool joins)
      : joins_(joins), element_bytes_(dtype_size(whole.dtype)) {
    const int64_t row = outer > 0 ? whole.shape.size() / outer : 0;
    int64_t offset = 0;
    for (int64_t size : parts) {
      const int64_t length = outer > 0 ? size / outer : 0;
      offsets_.push_back(offset);
      offset += length;
      copies_.push_back(joins ? StridedCopy({{outer, length, row}, {length, 1, 1}}, element_bytes_)
                              : StridedCopy({{outer, row, length}, {length, 1, 1}}, element_bytes_));
    }
  }
  void run(const Args &args, const Lane &lane) const {
    for (size_t i = 0; i < copies_.size(); ++i) {
      const size_t at = size_t(offsets_[i]) * element_bytes_;
      if (joins_) {
        copies_[i].run(args.inputs[i], args.out<char>(0) + at, lane);
      } else if (args.outputs[i]) {
        copies_[i].run(args.in<char>(0) + at, args.outputs[i], lane);
      }
    }
  }

 private:
  const bool joins_;
  const size_t element_bytes_;
  std::vector<int64_t> offsets_;
  std::vector<StridedCopy> copies_;
};

class StretchesCuda final : public Kernel {
 public:
  explicit StretchesCuda(Stretches stretches) : stretches_(std::move(stretches)) {}
  void run(const Args &args, const Lane &lane) const override { stretches_.run(args, lane); }

 private:
  const Stretches stretches_;
};

// `axis`: of the shape as it lies.
std::unique_ptr<Kernel> make_join(StepSpec &spec, int64_t axis, const char *op) {
  const Shape whole = lying_shape(spec.outputs[0]);
  std::vector<int64_t> parts;
  for (const TensorSpec &part : spec.inputs) parts.push_back(part.shape.size());
  return std::make_unique<StretchesCuda>(
      Stretches(whole.size(0, normalize_axis(axis, whole.rank(), op)), spec.outputs[0], parts, true));
}
// Into equal parts where `equal` says so: those that nobody wants come without a shape.
std::unique_ptr<Kernel> make_cut(StepSpec &spec, int64_t axis, const char *op, bool equal) {
  const Shape whole = lying_shape(spec.inputs[0]);
  std::vector<int64_t> parts;
  for (const TensorSpec &part : spec.outputs) {
    parts.push_back(equal ? whole.size() / int64_t(spec.outputs.size()) : part.shape.size());
  }
  return std::make_unique<StretchesCuda>(
      Stretches(whole.size(0, normalize_axis(axis, whole.rank(), op)), spec.inputs[0], parts, false));
}

// Images that lie with their channels last, and are joined along these or cut: each place is one stretch of every part.
// All of them lie as one of the inputs does.
bool settle_layouts(StepSpec *spec, const Shape &whole) {
  const std::vector<TensorSpec> &inputs = spec->inputs;
  const bool last = normalize_axis(spec->attrs_as<ConcatAttrs>().dim, whole.rank(), "Concat") == 1 &&
                    std::any_of(inputs.begin(), inputs.end(), lies_channels_last);
  for (TensorSpec &tensor : spec->inputs) tensor.layout = last ? channels_last_layout(tensor) : nullptr;
  for (TensorSpec &tensor : spec->outputs) tensor.layout = last ? channels_last_layout(tensor) : nullptr;
  return last;
}

std::unique_ptr<Kernel> make_concat(StepSpec &spec) {
  const bool last = settle_layouts(&spec, spec.outputs[0].shape);
  return make_join(spec, last ? -1 : spec.attrs_as<ConcatAttrs>().dim, "Concat");
}
std::unique_ptr<Kernel> make_concat_backward(StepSpec &spec) {
  const bool last = settle_layouts(&spec, spec.inputs[0].shape);
  return make_cut(spec, last ? -1 : spec.attrs_as<ConcatAttrs>().dim, "Concat", false);
}
std::unique_ptr<Kernel> make_slice_channel(StepSpec &spec) {
  return make_cut(spec, spec.attrs_as<SliceChannelAttrs>().axis, "SliceChannel", true);
}
std::unique_ptr<Kernel> make_slice_channel_backward(StepSpec &spec) {
  return make_join(spec, spec.attrs_as<SliceChannelAttrs>().axis, "SliceChannel");
}
std::unique_ptr<Kernel> make_stack(StepSpec &spec) {
  return make_join(spec, spec.attrs_as<StackAttrs>().axis, "stack");
}
std::unique_ptr<Kernel> make_stack_backward(StepSpec &spec) {
  return make_cut(spec, spec.attrs_as<StackAttrs>().axis, "stack", true);
}

COHORT_KERNEL_BY(cuda, Concat, make_concat).any_layout();
COHORT_KERNEL_BY(cuda, _backward_Concat, make_concat_backward).any_layout();
COHORT_KERNEL_BY(cuda, SliceChannel, make_slice_channel);
COHORT_KERNEL_BY(cuda, _backward_SliceChannel, make_slice_channel_backward);
COHORT_KERNEL_BY(cuda, stack, make_stack);
COHORT_KERNEL_BY(cuda, _backward_stack, make_stack_backward);

}  // namespace
}  // namespace cohort
