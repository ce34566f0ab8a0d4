// SPDX-License-Identifier: Apache-2.0
// The layout of images on a GPU between steps if it is not row-major: channels last, as tensor cores and kernels that
// go over channels prefer it. A kernel gets row-major inputs unless it is registered with any_layout(), in one of two
// ways:
//   flat  the order of elements does not matter: COHORT_KERNEL_BY(cuda, Cast, flat<make_cast>).any_layout()
//   own   the factory reads and sets the layouts in StepSpec: convolutions, batch norms, pooling, Concat, Dropout,
//         LeakyReLU
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
  std::shared_ptr<const Layout> with(const TensorSpec &other) const;  // this order for a tensor of the same shape

 private:
  const std::vector<int> order_;
  std::vector<int64_t> strides_;  // per axis, in elements
  size_t bytes_;
};

// The stride of each axis, in elements.
std::vector<int64_t> strides_of(const TensorSpec &tensor);

// The channels-last layout for images of shape (batch, channels, spatial axes). Null if row-major order is the same.
std::shared_ptr<const Layout> channels_last_layout(const TensorSpec &images);
bool lies_channels_last(const TensorSpec &images);  // false if row-major order is the same
Shape channels_last_shape(const Shape &images);     // lengths of the axes in channels-last order
Shape lying_shape(const TensorSpec &tensor);        // lengths of the axes in the order of the tensor's layout

// Calls `make`, for kernels to which the order of elements does not matter. If all tensors have one shape, they all get
// the layout of the first input that is not row-major; else all are row-major.
std::unique_ptr<Kernel> make_flat(StepSpec &spec, KernelFactory make);

template <KernelFactory make>
std::unique_ptr<Kernel> flat(StepSpec &spec) {
  return make_flat(spec, make);
}

}  // namespace cohort
