// SPDX-License-Identifier: Apache-2.0
// Applies operators to arrays.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "autograd.hpp"
#include "operators.hpp"

namespace cohort_mxnet {

using TextAttrs = std::vector<std::pair<std::string, std::string>>;

TextAttrs text_attrs(size_t num, const char *const *keys, const char *const *values);

// Applies an operator, and records it if the thread records. `outputs` is empty, or has an array for each output that a
// user can see; those without memory take what was computed. `context` is for an operator without inputs that names
// none. Returns the outputs, given or new.
ArrayList apply_operator(const Operator &op, const TextAttrs &attrs, const ArrayList &inputs, const ArrayList &outputs,
                         cohort_context context = {COHORT_DEVICE_CPU, 0});

// The same by name.
ArrayList apply_operator(const char *op, const ArrayList &inputs, const ArrayList &outputs);

// A seed for one application of a random operator, or one executor, on a context. MXRandomSeed() starts the sequence
// anew.
uint64_t next_seed(const cohort_context &context);
// Changes whenever the host seeds the context.
uint64_t seed_generation(const cohort_context &context);

}  // namespace cohort_mxnet
