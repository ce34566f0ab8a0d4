// SPDX-License-Identifier: Apache-2.0
// How a GPU keeps images between steps when not row-major: with the channels behind all other axes, as the tensor cores
// of convolutions and whatever goes over channels like them. Kernels read layouts in one of these ways, which their
// registration says, and are given row-major inputs where it says none (KernelEntry::any_layout()):
//   flat  the order of elements is all one to them: COHORT_KERNEL_BY(cuda, Cast, flat<make_cast>).any_layout()
//   own   their factories read and set StepSpec's layouts: convolutions, batch norms, pooling, Concat, Dropout,
//   LeakyReLU
#pragma once

#include <vector>

#include "device/kernel.hpp"

namespace cohort {

// A dense permutation of axes.
class CudaLayout final : public Layout {
 public:
  // `order`: the axes, the outermost first.
  CudaLayout(const Shape &shape, Dtype dtype, std::vector<int> order);

  bool equals(const Layout &other) const override;
  size_t bytes() const override { return bytes_; }
  std::string describe() const override;  // "NHWC"
  const std::vector<int64_t> &strides() const { return strides_; }
  std::shared_ptr<const Layout> with(const TensorSpec &other) const;  // of a tensor of the same shape

 private:
  const std::vector<int> order_;
  std::vector<int64_t> strides_;  // per axis, in elements
  size_t bytes_;
};

// How far apart neighbours along each axis lie, in elements.
std::vector<int64_t> strides_of(const TensorSpec &tensor);

// Of images, (batch, channels, spatial axes): the channels behind the others. Null where they lie there anyhow.
std::shared_ptr<const Layout> channels_last_layout(const TensorSpec &images);
bool lies_channels_last(const TensorSpec &images);  // and not row-major, too
Shape channels_last_shape(const Shape &images);     // lengths of the axes in the order in which they lie then
Shape lying_shape(const TensorSpec &tensor);        // lengths in the order in which they lie

// Calls `make` where the order of elements is all one: where all tensors have one shape they lie as the first of the
// inputs does that is not row-major; else row-major.
std::unique_ptr<Kernel> make_flat(StepSpec &spec, KernelFactory make);

template <KernelFactory make>
std::unique_ptr<Kernel> flat(StepSpec &spec) {
  return make_flat(spec, make);
}

}  // namespace cohort
