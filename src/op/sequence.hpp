// SPDX-License-Identifier: Apache-2.0
// Sequences of different lengths in one array: SequenceLast, SequenceMask, SequenceReverse.
#pragma once

#include "op/op.hpp"

namespace cohort {

// Backward: head gradient, and sequence_length if it is used. A length outside what the operator can do is an error of
// the run; SequenceMask takes any.
struct SequenceAttrs {
  bool use_sequence_length;  // else all sequences are as long as the axis
  float value;               // SequenceMask: what stands behind the end
  int32_t axis;              // of time steps, 0 or 1; the other one is that of sequences
};

}  // namespace cohort
