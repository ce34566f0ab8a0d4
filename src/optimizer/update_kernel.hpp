// SPDX-License-Identifier: Apache-2.0
// The kernels of one optimizer's rule, for a certain number of elements on one device. Made by Optimizer; run by group
// and by Optimizer::update().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "base/shape.hpp"
#include "device/device.hpp"
#include "op/update_math.hpp"

namespace cohort {

// The numbers of one update of one parameter, taken when the update is asked for; bias corrections are included.
using UpdateValues = UpdateNumbers<double>;

// The operator that computes an optimizer's formula.
struct UpdateOp {
  const char *name;  // the operator: inputs weight, gradient, states; its numbers by Args::numbers
  int num_states;
  bool whole = false;    // each element depends on the whole weight and gradient
  bool by_rows = false;  // states have one number per row
  int copied = -1;       // index of the state that begins as a copy of the weight; -1: all begin as zeros
};

Shape state_shape(const UpdateOp &op, const Shape &weight);  // kShape if such a weight can have none

// How many threads updates of so many elements together are worth.
inline WorkSize update_size(int64_t num_elements) {
  return num_elements <= 16384 ? WorkSize::kBrief : num_elements <= 65536 ? WorkSize::kSerial : WorkSize::kParallel;
}

// Updates a weight from a gradient, both of `dtype`. States have the same type or, if `master` is set, float32, with
// the weight in float32 as the last one. Unless the operator needs the whole weight, each element depends only on the
// inputs at that element, so that a parameter may be updated in pieces.
class UpdateKernel {
 public:
  // `shape` is that of the parameter, or (elements,) for a piece.
  UpdateKernel(const UpdateOp &op, bool master, const Context &context, Dtype dtype, const Shape &shape,
               int num_threads);
  UpdateKernel(const UpdateKernel &) = delete;
  UpdateKernel &operator=(const UpdateKernel &) = delete;

  // Sets the numbers for the runs that follow. `first`: the index, in the parameter, of the first element here.
  void set(const UpdateValues &values, int64_t first = 0) {
    values_ = values;
    values_.first = first;
  }
  void bind(void *weight, const void *grad, void *const *states);  // sets the arrays likewise
  // Appends the steps, which point into this object.
  void append_steps(const char *label, const WorkInfo *info, std::vector<Step> *steps) const;
  double bytes() const;              // bytes that a run reads and writes
  void run(const Lane &lane) const;  // runs those steps immediately

 private:
  enum { kMaxStates = 4 };
  TensorSpec tensor(const Shape &shape, Dtype dtype) const;
  std::unique_ptr<Kernel> make(const std::string &op, std::shared_ptr<const void> attrs, std::vector<TensorSpec> inputs,
                               TensorSpec output);
  void add_call(std::unique_ptr<Kernel> kernel);

  struct Call {
    std::unique_ptr<Kernel> kernel;
    void *inputs[kMaxStates + 2] = {};
    void *outputs[1] = {};
    void *scratch = nullptr;
  };

  const UpdateOp &op_;
  const bool master_;
  const Dtype dtype_;
  const Shape shape_;
  const int num_threads_;
  const std::shared_ptr<Device> device_;
  UpdateValues values_;
  std::shared_ptr<Memory> grad32_, scratch_;  // null where they are not needed
  std::vector<std::unique_ptr<Call>> calls_;  // the rule; between casts if there is a master
};

}  // namespace cohort
