// SPDX-License-Identifier: Apache-2.0
#include "ndarray_handle.hpp"

namespace cohort_mxnet {

bool NDArray::is_none() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !array_ && !has_shape_;
}

bool NDArray::has_memory() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<bool>(array_);
}

cohort::NDArray &NDArray::array() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!array_) {
    if (!has_shape_) fail("the NDArray has no shape and no contents yet");
    array_ = cohort::make<cohort::NDArray>(cohort_ndarray_empty, shape_.data(), static_cast<int32_t>(shape_.size()),
                                           dtype_, &context_);
  }
  return array_;
}

void NDArray::set_array(cohort::NDArray array) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (array_) fail("the NDArray has memory already");
  array_ = std::move(array);
}

void NDArray::own_memory() {
  cohort::NDArray copy = array().copy(array().context());
  const std::lock_guard<std::mutex> lock(mutex_);
  array_ = std::move(copy);
  is_detached = is_part = false;
}

cohort::Shape NDArray::shape() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return array_ ? array_.shape() : shape_;
}

cohort_dtype NDArray::dtype() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return array_ ? array_.dtype() : has_shape_ ? dtype_ : COHORT_DTYPE_NONE;
}

cohort_context NDArray::context() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return array_ ? static_cast<cohort_context>(array_.context()) : context_;
}

std::vector<std::shared_ptr<NDArray>> ndarrays(void *const *handles, size_t num) {
  if (num > 0) required(handles, "the list of arrays");
  std::vector<std::shared_ptr<NDArray>> arrays;
  arrays.reserve(num);
  for (size_t i = 0; i < num; ++i) arrays.push_back(ndarray(handles[i]));
  return arrays;
}

}  // namespace cohort_mxnet
