// SPDX-License-Identifier: Apache-2.0
// A factor on the loss, and so on all gradients, that keeps small ones above what a narrow type can tell from 0, and is
// as large as it can be without overflow: it doubles after so many good updates, and halves with each that is skipped.
// One for all groups that share their parameters. For group and plan.
#pragma once

#include <cstdint>

#include "executor/executor.hpp"
#include "optimizer/optimizer.hpp"
#include "symbol/symbol.hpp"

namespace cohort {

struct LossScaleOptions {
  double initial = 0;  // 0: no loss scale
  int window = 2000;   // good updates after which it doubles
};

struct LossScale : LossScaleState {
  int window = 2000;
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
