// SPDX-License-Identifier: Apache-2.0
// The internal operator _fused_pointwise: a graph of point-wise functors in one kernel. Created by the plan (see
// fusible() in pointwise.hpp); it has kernels but no operator definition.
#pragma once

#include <vector>

#include "op/pointwise.hpp"

namespace cohort {

// Values are numbered: the inputs first, then the result of each instruction. Operands of an instruction are earlier
// values. All inputs and outputs have the same number of elements and one dtype; an output may share memory with an
// input.
struct FusedPointwiseAttrs {
  int num_inputs = 0;
  std::vector<PointwiseCall> instructions;  // in the order of execution
  std::vector<int> outputs;                 // the value of each output
};

}  // namespace cohort
