// SPDX-License-Identifier: Apache-2.0
// A factor on the loss, and so on all gradients, that keeps small gradients from becoming 0 in a narrow type. It is
// kept as large as possible without overflow: it doubles after `window` good updates and halves with each skipped
// update. Groups that share their parameters have one. For group and plan.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "executor/executor.hpp"
#include "optimizer/optimizer.hpp"
#include "symbol/symbol.hpp"

namespace cohort {

struct LossScaleOptions {
  double initial = 0;  // 0: no loss scale
  int window = 2000;   // good updates after which it doubles
};

// The factor with which each gradient was last written or added to: groups that share gradients may have run with
// another factor since.
class GradientFactors {
 public:
  // A backward pass with this factor comes next: gradients that it adds to are rescaled to it.
  void begin_pass(const std::vector<std::shared_ptr<Executor>> &executors, double factor);
  // Rescales all gradients to this factor.
  void rescale_to(const std::vector<std::shared_ptr<Executor>> &executors, double factor);

 private:
  void rescale_to(const NDArray &gradient, double factor);

  std::map<std::weak_ptr<Storage>, double, std::owner_less<>> factor_of_;
};

struct LossScale : LossScaleState {
  int window = 2000;
  GradientFactors factors;
  LossScaleState &state() { return *this; }
};

// kInvalidArgument if it is out of range.
void check_loss_scale(double value, const char *what);

// kUnsupported if the plan cannot scale the gradient that some node creates: it would be divided all the same.
void refuse_unscaled(const Graph &graph);

// Whether all gradients of these executors are finite, and so small that a sum of `num_summed` of them in their own
// type is finite. Waits for them.
bool are_finite(const std::vector<std::shared_ptr<Executor>> &executors, const std::vector<int> &arguments,
                size_t num_summed);

// Adjusts the scale after an update, or after one that was skipped.
void count_update(LossScale *scale, bool is_good);

}  // namespace cohort
