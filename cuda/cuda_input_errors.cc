// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_input_errors.hpp"

namespace cohort {

thread_local StepsEnqueued *StepsEnqueued::now_ = nullptr;

// A kernel inside another one, such as the body of a loop, has no message of its own.
std::string in_words(const InputError &c, const Step *steps) {
  const auto *const by = dynamic_cast<const ReportsInputErrors *>(steps[c.step].kernel);
  if (by) return by->in_words(c);
  return text("expected ", c.least, " to ", c.most, " at place ", c.place, ", found ", c.found);
}

}  // namespace cohort
