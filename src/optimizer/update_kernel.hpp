// SPDX-License-Identifier: Apache-2.0
// The kernels of one optimizer's rule for one number of elements on one device. Made by Optimizer; run by group and by
// Optimizer::update().
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

// What one update of one parameter uses, taken when the update is asked for: bias corrections included.
using UpdateValues = UpdateNumbers<double>;

// How an optimizer's formula becomes a kernel.
struct UpdateOp {
  const char *name;  // the operator: inputs weight, gradient, states; its numbers by Args::numbers
  int num_states;
  bool whole = false;    // each element comes from the whole weight and gradient
  bool by_rows = false;  // states have a number for each row, whatever lies in it
  int copied = -1;       // the state that begins as a copy of the weight; else from zeros
};

Shape state_shape(const UpdateOp &op, const Shape &weight);  // kShape: such a weight has none

// Weight and gradient of `dtype`; states of the same, or, if `master` is set, of float32 with the weight in float32 as
// the last of them. Unless the operator wants the whole of it, what is computed of an element depends on that element's
// inputs alone, so that a parameter may be updated in pieces.
class UpdateKernel {
 public:
  // `shape`: of the parameter, or (elements,) of a piece.
  UpdateKernel(const UpdateOp &op, bool master, const Context &context, Dtype dtype, const Shape &shape,
               int num_threads);
  UpdateKernel(const UpdateKernel &) = delete;
  UpdateKernel &operator=(const UpdateKernel &) = delete;

  // For the runs that follow. `first`: the place in the parameter of its first element here.
  void set(const UpdateValues &values, int64_t first = 0) {
    values_ = values;
    values_.first = first;
  }
  void bind(void *weight, const void *grad, void *const *states);  // likewise
  // Which point into this object.
  void append_steps(const char *label, const WorkInfo *info, std::vector<Step> *steps) const;
  double bytes() const;              // that a run reads and writes
  void run(const Lane &lane) const;  // those steps, at once

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
  std::shared_ptr<Memory> grad32_, scratch_;  // where they are needed
  std::vector<std::unique_ptr<Call>> calls_;  // the rule, between casts if there is a master
};

}  // namespace cohort
