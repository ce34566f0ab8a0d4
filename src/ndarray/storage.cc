// SPDX-License-Identifier: Apache-2.0
#include "ndarray/storage.hpp"

#include <sys/mman.h>
#include <unistd.h>

namespace cohort {

std::shared_ptr<Timeline> Storage::immediate() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!immediate_) immediate_ = immediate_timeline(context());
  return immediate_;
}

void Storage::drop_pages() {
  if (whole_) return whole_->drop_pages();
  if (!has_droppable_pages()) return;
  // The partial pages at both ends also contain neighbours' data.
  const auto page = uintptr_t(sysconf(_SC_PAGESIZE)), begin = reinterpret_cast<uintptr_t>(data());
  const uintptr_t first = (begin + page - 1) / page * page, end = (begin + bytes()) / page * page;
  if (first < end) madvise(reinterpret_cast<void *>(first), end - first, MADV_DONTNEED);
}

}  // namespace cohort
