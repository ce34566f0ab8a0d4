// SPDX-License-Identifier: Apache-2.0
// Connectionist temporal classification: -log of the probability that softmax(data) emits the labels, summed over all
// alignments of the labels in time with blanks between them.
#pragma once

#include "op/op.hpp"

namespace cohort {

// Inputs data (length, batch, classes), label (batch, label length), data_lengths, label_lengths if used. The gradient
// of data is computed with the loss and saved.
struct CtcLossAttrs {
  bool use_data_lengths, use_label_lengths;
  bool blank_last;  // true: blank is the last class and labels are padded with -1; false: class 0, padded with 0
};

}  // namespace cohort
