// SPDX-License-Identifier: Apache-2.0
// Loops and branches: operators whose work is in sub-graphs of their nodes. Kernels run those compiled, one pass after
// the other (device/subprogram.hpp): a loop is not unrolled, so that a long sequence makes no large plan.
#pragma once

#include <vector>

#include "op/op.hpp"

namespace cohort {

struct ControlFlowAttrs {
  Subgraphs inside;
  int num_args = 0;  // sub-graphs and inputs
  int num_outputs = 1, num_out_data = 0, max_iterations = 0;
  // As MXNet writes them. _foreach: inputs of the sub-graph, in the order of the node's. Others: inputs of the node, in
  // the order of the sub-graph's; but var_locs: inputs of func that are loop variables.
  Tuple data_locs, state_locs, remain_locs, cond_locs, func_locs, var_locs, then_locs, else_locs;

  // Of these.
  std::vector<std::vector<int>> sources;  // of each sub-graph's inputs: inputs of the node
  std::vector<int> auxiliary;             // inputs of the node that are auxiliary states inside
  std::vector<int> changed[kNumPasses];   // inputs of the node that a pass writes; no states, of which it has its own
  std::vector<InputField> inputs;

  size_t num_inputs() const { return inputs.size(); }
  size_t num_data() const { return data_locs.size(); }  // of _foreach: inputs that are taken row by row, the first ones
  // What goes from one pass to the next: inputs of the node, in the order of the last outputs.
  std::vector<int> states() const;
  // Which inputs get gradients: all but auxiliary states.
  std::vector<int> with_gradient() const;
};

}  // namespace cohort
