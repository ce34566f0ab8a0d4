// SPDX-License-Identifier: Apache-2.0
// _random_pdf_NAME: the density or probability of a distribution at samples, or its logarithm. The parameters' shape is
// a prefix of the samples' shape.
#pragma once

#include "op/op.hpp"

namespace cohort {

// Backward inputs: head gradient, samples, parameters.
struct PdfAttrs {
  bool is_log;
};

}  // namespace cohort
