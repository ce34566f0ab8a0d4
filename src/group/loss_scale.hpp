// SPDX-License-Identifier: Apache-2.0
// A factor on the loss, and so on all gradients, that keeps small ones above what a narrow type can tell from 0, and is
// as large as it can be without overflow: it doubles after so many good updates, and halves with each that is skipped.
// One for all groups that share their parameters. For group and plan.
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

// By what each gradient was multiplied in the pass that has written it, or added to it, last: groups that share
// gradients may have run with another factor since.
class GradientFactors {
 public:
  // A backward pass with this factor is next: what it adds to has that, too.
  void begin_pass(const std::vector<std::shared_ptr<Executor>> &executors, double factor);
  // All gradients have this factor from here on.
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

// kInvalidArgument: no number above 0 that could be one.
void check_loss_scale(double value, const char *what);

// kUnsupported: a node's gradient begins where the plan cannot scale it, and would be divided all the same.
void refuse_unscaled(const Graph &graph);

// Whether all gradients of these executors are finite numbers, and so small that a sum of `num_summed` of them, in
// their own type, is one. Waits for them.
bool are_finite(const std::vector<std::shared_ptr<Executor>> &executors, const std::vector<int> &arguments,
                size_t num_summed);

// What follows from an update that could be made, or was skipped.
void count_update(LossScale *scale, bool is_good);

}  // namespace cohort
