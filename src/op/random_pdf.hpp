// SPDX-License-Identifier: Apache-2.0
// _random_pdf_NAME: the density of a distribution, or the probability, at samples; or its logarithm. Parameters have
// the shape that the samples' begins with.
#pragma once

#include "op/op.hpp"

namespace cohort {

// Backward inputs: head gradient, samples, parameters.
struct PdfAttrs {
  bool is_log;
};

}  // namespace cohort
