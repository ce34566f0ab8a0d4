// SPDX-License-Identifier: Apache-2.0
// Dropout. Masks are the CPU's own: bit by bit the same for the same seed.
#include <algorithm>

#include "cuda/cuda_layout.hpp"
#include "cuda/op/elements.cuh"
#include "device/kernel_table.hpp"
#include "device/run_value.hpp"
#include "op/dropout.hpp"
#include "op/random_math.hpp"

namespace cohort {
namespace {

// The place of each element's draw in the mask, which has length 1 along axes that drop together. The mask is row-major
// in every layout of the elements, so that the draws do not depend on the layout.
struct DropoutMaskIndex {
  int64_t num_axes = 0, size = 1;
  int64_t channels = 0, places = 1;  // of images whose channels lie last; 0 channels: row-major
  bool whole = true;                 // one draw per element
  int64_t lengths[kMaxAxes], strides[kMaxAxes];

  DropoutMaskIndex(const TensorSpec &tensor, const Tuple &axes) {
    const Shape &shape = tensor.shape;
    if (lies_channels_last(tensor)) channels = shape[1], places = shape.size(2, shape.rank());
    std::fill_n(strides, kMaxAxes, int64_t(-1));
    for (int64_t axis : axes) strides[normalize_axis(axis, shape.rank(), "Dropout")] = 0;
    num_axes = shape.rank();
    for (int i = shape.rank(); i-- > 0;) {
      lengths[i] = shape[i];
      whole = whole && strides[i] < 0;
      if (strides[i] == 0) continue;
      strides[i] = size;
      size *= lengths[i];
    }
  }
  // The index in the mask of the i-th element in memory.
  __device__ int64_t of(int64_t i) const {
    int64_t element = i;
    if (channels > 0) {
      const int64_t place = i / channels;
      element = (place / places * channels + i % channels) * places + place % places;
    }
    if (whole) return element;
    int64_t index = 0;
    for (int i = int(num_axes); i-- > 0;) {
      index += element % lengths[i] * strides[i];
      element /= lengths[i];
    }
    return index;
  }
};

// out = in * mask / (1 - p); mask holds one byte per draw. The same for forward and backward.
template <typename C>
void apply_mask(const Lane &lane, int64_t count, const DropoutMaskIndex &index, const uint8_t *mask, float scale,
                const Elements &in, const Elements &out) {
  for_each(lane, count,
           [=] __device__(int64_t i) { store(out, i, mask[index.of(i)] ? load<C>(in, i) * C(scale) : C(0)); });
}

template <typename C, bool kBackward>
class DropoutCuda final : public Kernel {
 public:
  explicit DropoutCuda(StepSpec &spec)
      : count_(spec.outputs[0].shape.size()),
        index_(spec.inputs[0], spec.attrs_as<DropoutAttrs>().axes),
        dtype_(spec.outputs[0].dtype),
        scale_(spec.attrs_as<DropoutAttrs>().p < 1 ? 1 / (1 - spec.attrs_as<DropoutAttrs>().p) : 0),
        threshold_(uint64_t((1.0 - double(spec.attrs_as<DropoutAttrs>().p)) * 4294967296.0)),
        saved_(kBackward || spec.keep_for_backward) {
    if (!kBackward) (saved_ ? spec.saved_bytes : spec.scratch_bytes) = size_t(index_.size);
  }
  void run(const Args &args, const Lane &lane) const override {
    uint8_t *const mask = static_cast<uint8_t *>(saved_ ? args.saved : args.scratch);
    if constexpr (!kBackward) {
      const auto draw = next_draw(args, lane);
      const uint64_t threshold = threshold_;
      for_each(lane, index_.size, [=] __device__(int64_t i) {
        const RandomStream drawn = draw.get();
        mask[i] = Philox::at(drawn.seed, uint64_t(i / 4), drawn.draws).word[i % 4] < threshold;
      });
    }
    apply_mask<C>(lane, count_, index_, mask, scale_, elements_of(args.inputs[0], dtype_),
                  elements_of(args.outputs[0], dtype_));
  }

 private:
  const int64_t count_;
  const DropoutMaskIndex index_;
  const Dtype dtype_;
  const float scale_;
  const uint64_t threshold_;
  const bool saved_;
};

class IdentityCuda final : public Kernel {
 public:
  explicit IdentityCuda(const StepSpec &spec) : bytes_(spec.outputs[0].bytes()) {}
  void run(const Args &args, const Lane &lane) const override {
    if (bytes_ == 0 || args.inputs[0] == args.outputs[0]) return;
    CUDA_CHECK(cudaMemcpyAsync(args.outputs[0], args.inputs[0], bytes_, cudaMemcpyDeviceToDevice,
                               static_cast<cudaStream_t>(lane.stream)));
  }

 private:
  const size_t bytes_;
};

template <bool kBackward>
std::unique_ptr<Kernel> make_dropout(StepSpec &spec) {
  const auto &attrs = spec.attrs_as<DropoutAttrs>();
  spec.outputs[0].layout = spec.inputs[0].layout;  // also for head gradient and gradient of the backward step
  if (attrs.p <= 0 || !(spec.is_train || attrs.mode == DropoutAttrs::kAlways)) {
    return std::make_unique<IdentityCuda>(spec);
  }
  return dispatch_compute(spec.outputs[0].dtype, false, [&](auto c) -> std::unique_ptr<Kernel> {
    if constexpr (std::is_floating_point_v<decltype(c)>) {
      return std::make_unique<DropoutCuda<decltype(c), kBackward>>(spec);
    }
    return nullptr;
  });
}

COHORT_KERNEL_BY(cuda, Dropout, make_dropout<false>).any_layout();
COHORT_KERNEL_BY(cuda, _backward_Dropout, make_dropout<true>).any_layout();

}  // namespace
}  // namespace cohort
