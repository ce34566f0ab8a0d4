// SPDX-License-Identifier: Apache-2.0
// The internal operator _fused_pointwise: a chain or small graph of point-wise functors in one kernel. Made by the plan
// (see fusible() in pointwise.hpp); it has a kernel and no definition.
#pragma once

#include <vector>

#include "op/pointwise.hpp"

namespace cohort {

// Values are numbered: first the inputs, then the result of each instruction. The operands of an instruction are values
// before its own. All inputs and outputs have the same number of elements and one dtype; an output may lie in the
// memory of an input that it is as long as.
struct FusedPointwiseAttrs {
  int num_inputs = 0;
  std::vector<PointwiseCall> instructions;  // in the order of execution
  std::vector<int> outputs;                 // the value of each output
};

}  // namespace cohort
