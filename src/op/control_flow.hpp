// SPDX-License-Identifier: Apache-2.0
// Loops and branches: operators that run sub-graphs of their nodes. Kernels run the compiled sub-graphs one pass after
// another (device/subprogram.hpp); loops are not unrolled, so a long sequence does not make a large plan.
#pragma once

#include <vector>

#include "op/op.hpp"

namespace cohort {

struct ControlFlowAttrs {
  Subgraphs inside;
  int num_args = 0;  // number of sub-graphs and inputs together
  int num_outputs = 1, num_out_data = 0, max_iterations = 0;
  // Index lists in MXNet's format. _foreach: inputs of the sub-graph, in the order of the node's inputs. Others: inputs
  // of the node, in the order of the sub-graph's inputs, except var_locs: the inputs of func that are loop variables.
  Tuple data_locs, state_locs, remain_locs, cond_locs, func_locs, var_locs, then_locs, else_locs;

  // Derived from the lists above.
  std::vector<std::vector<int>> sources;  // for each sub-graph's inputs: the node's input
  std::vector<int> auxiliary;             // inputs of the node that are auxiliary states inside
  std::vector<int> changed[kNumPasses];  // inputs of the node that a pass of that kind writes; without states, of which
                                         // a pass has copies
  std::vector<InputField> inputs;

  size_t num_inputs() const { return inputs.size(); }
  size_t num_data() const {
    return data_locs.size();
  }  // _foreach: number of inputs iterated over row by row, which come first
  // Inputs of the node that are carried from one pass to the next, in the order of the last outputs.
  std::vector<int> states() const;
  // Inputs that get gradients: all except auxiliary states.
  std::vector<int> with_gradient() const;
};

}  // namespace cohort
