// SPDX-License-Identifier: Apache-2.0
#include "ndarray/storage.hpp"

namespace cohort {

std::shared_ptr<Timeline> Storage::immediate() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!immediate_) immediate_ = immediate_timeline(context());
  return immediate_;
}

}  // namespace cohort
