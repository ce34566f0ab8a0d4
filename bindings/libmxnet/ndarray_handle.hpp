// SPDX-License-Identifier: Apache-2.0
// Arrays behind NDArrayHandle. Functions that a call of the host needs for arrays, whatever file they are in.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "handles.hpp"

namespace cohort_mxnet {

struct Origin;  // autograd.hpp

// An array, or the promise of one: memory of a delayed array is allocated when it is first used, and an array without
// shape takes whatever an operator writes to it.
class NDArray : public Object {
 public:
  static constexpr Kind kKind = Kind::kNDArray;
  static constexpr const char *kName = "an NDArray";

  NDArray() : Object(kKind) {}
  explicit NDArray(cohort::NDArray array) : Object(kKind), array_(std::move(array)) {}
  NDArray(cohort::Shape shape, cohort_dtype dtype, cohort_context context)
      : Object(kKind), has_shape_(true), shape_(std::move(shape)), dtype_(dtype), context_(context) {}

  // Neither memory nor a shape.
  bool is_none() const;
  bool has_memory() const;
  // The array, with memory; an error if it has no shape.
  cohort::NDArray &array();
  // Another handle of the library's on the array.
  cohort::NDArray share() { return make_shared_handle(array()); }
  // Gives memory to an array that has none yet.
  void set_array(cohort::NDArray array);

  // Replaces the memory by a copy of it.
  void own_memory();

  cohort::Shape shape() const;
  cohort_dtype dtype() const;
  cohort_context context() const;

  static cohort::NDArray make_shared_handle(const cohort::NDArray &array) {
    return cohort::make<cohort::NDArray>(cohort_ndarray_share, array.get());
  }

  // For autograd. Views share the origin of the array whose memory they use.
  std::shared_ptr<Origin> origin;  // null: a constant
  bool is_marked = false;          // the array itself is the variable, not one that shares its memory
  bool is_detached = false;        // a constant that shares memory with a recorded array
  bool is_part = false;            // a view of some elements of another array

  // Memory that other processes map as this array (shared_memory.cc).
  cohort::NDArray shared_copy;

 private:
  mutable std::mutex mutex_;  // guards array_ while it has no memory
  cohort::NDArray array_;
  bool has_shape_ = false;
  cohort::Shape shape_;
  cohort_dtype dtype_ = COHORT_DTYPE_FLOAT32;
  cohort_context context_{COHORT_DEVICE_CPU, 0};
};

// The new handle of an array, which is the host's.
inline void *new_ndarray(cohort::NDArray array) { return publish(std::make_shared<NDArray>(std::move(array))); }

// The array of a handle.
inline std::shared_ptr<NDArray> ndarray(const void *handle) { return from_handle<NDArray>(handle); }

std::vector<std::shared_ptr<NDArray>> ndarrays(void *const *handles, size_t num);

// Whether lengths of axes are as in NumPy on this thread: 0 is a length, and -1 is not known.
bool is_numpy_shape();

}  // namespace cohort_mxnet
