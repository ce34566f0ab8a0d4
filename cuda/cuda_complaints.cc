// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_complaints.hpp"

namespace cohort {

thread_local StepsEnqueued *StepsEnqueued::now_ = nullptr;

// Of a kernel within another one, such as the body of a loop, there are no words of its own.
std::string in_words(const Complaint &c, const Step *steps) {
  const auto *const by = dynamic_cast<const Complains *>(steps[c.step].kernel);
  if (by) return by->in_words(c);
  return text("expected ", c.least, " to ", c.most, " at place ", c.place, ", found ", c.found);
}

}  // namespace cohort
