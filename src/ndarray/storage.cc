// SPDX-License-Identifier: Apache-2.0
#include "ndarray/storage.hpp"

namespace cohort {

std::shared_ptr<Timeline> Storage::immediate() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!immediate_) immediate_ = immediate_timeline(context());
  return immediate_;
}

void Storage::keep_immediate(const std::shared_ptr<Timeline> &timeline) {
  const std::lock_guard<std::mutex> lock(mutex_);
  immediate_ = timeline;
}

}  // namespace cohort
