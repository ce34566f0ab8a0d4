// SPDX-License-Identifier: Apache-2.0
// Sequences of different lengths in one array: SequenceLast, SequenceMask, SequenceReverse.
#pragma once

#include "op/op.hpp"

namespace cohort {

// Backward: head gradient, and sequence_length if used. A length out of range is an error when the step runs, except
// for SequenceMask, which accepts any.
struct SequenceAttrs {
  bool use_sequence_length;  // false: all sequences are as long as the axis
  float value;               // SequenceMask: written after the end of each sequence
  int32_t axis;              // of time steps, 0 or 1; the other of the two is the batch axis
};

}  // namespace cohort
