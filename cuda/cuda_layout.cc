// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_layout.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "kernels/strided_copy.hpp"

namespace cohort {
namespace {

const CudaLayout *layout_of(const TensorSpec &tensor) { return static_cast<const CudaLayout *>(tensor.layout.get()); }

}  // namespace

CudaLayout::CudaLayout(const Shape &shape, Dtype dtype, std::vector<int> order)
    : order_(std::move(order)), strides_(order_.size(), 0), bytes_(size_t(shape.size()) * dtype_size(dtype)) {
  int64_t step = 1;
  for (size_t i = order_.size(); i-- > 0;) {
    strides_[size_t(order_[i])] = step;
    step *= shape[order_[i]];
  }
}

bool CudaLayout::equals(const Layout &other) const {
  const auto &layout = static_cast<const CudaLayout &>(other);
  return strides_ == layout.strides_ && bytes_ == layout.bytes_;
}

std::string CudaLayout::describe() const {
  const std::string spatial = "DHW", names = "NC" + spatial.substr(std::max<size_t>(5, order_.size()) - order_.size());
  std::string all;
  for (const int axis : order_) all += size_t(axis) < names.size() ? std::string(1, names[size_t(axis)]) : text(axis);
  return all;
}

std::shared_ptr<const Layout> CudaLayout::with(const TensorSpec &other) const {
  return std::make_shared<CudaLayout>(other.shape, other.dtype, order_);
}

std::vector<int64_t> strides_of(const TensorSpec &tensor) {
  return tensor.layout ? layout_of(tensor)->strides() : dense_strides(tensor.shape);
}

std::shared_ptr<const Layout> channels_last_layout(const TensorSpec &images) {
  const Shape &shape = images.shape;
  if (shape.rank() < 3 || shape[1] == 1 || shape.size(2, shape.rank()) == 1) return nullptr;
  std::vector<int> order{0};
  for (int axis = 2; axis < shape.rank(); ++axis) order.push_back(axis);
  order.push_back(1);
  return std::make_shared<CudaLayout>(shape, images.dtype, std::move(order));
}

bool lies_channels_last(const TensorSpec &images) {
  return images.layout && same_layout(images.layout, channels_last_layout(images));
}

Shape channels_last_shape(const Shape &images) {
  std::vector<int64_t> lengths{images[0]};
  for (int axis = 2; axis < images.rank(); ++axis) lengths.push_back(images[axis]);
  lengths.push_back(images[1]);
  return Shape(std::move(lengths));
}

Shape lying_shape(const TensorSpec &tensor) {
  return lies_channels_last(tensor) ? channels_last_shape(tensor.shape) : tensor.shape;
}

std::unique_ptr<Kernel> make_flat(StepSpec &spec, KernelFactory make) {
  const std::vector<TensorSpec> inputs = spec.inputs, outputs = spec.outputs;
  std::vector<TensorSpec *> tensors;
  for (TensorSpec &tensor : spec.inputs) tensors.push_back(&tensor);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (i >= spec.wanted.size() || spec.wanted[i]) tensors.push_back(&spec.outputs[i]);
  }
  std::shared_ptr<const Layout> common;
  bool one_shape = true;
  for (TensorSpec *tensor : tensors) {
    one_shape = one_shape && tensor->shape == tensors[0]->shape;
    if (!common) common = tensor->layout;
    tensor->layout = nullptr;
  }
  std::unique_ptr<Kernel> kernel = make(spec);
  if (!kernel) {
    spec.inputs = inputs;
    spec.outputs = outputs;
    return nullptr;
  }
  if (!common || !one_shape) return kernel;
  for (TensorSpec *tensor : tensors) tensor->layout = static_cast<const CudaLayout &>(*common).with(*tensor);
  return kernel;
}

}  // namespace cohort
