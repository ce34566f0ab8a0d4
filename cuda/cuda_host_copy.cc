// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_host_copy.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

namespace cohort {
namespace {

struct AllCopies {
  std::mutex mutex;               // guards the members below; taken before the mutex of a copy
  std::vector<HostCopy *> alive;  // those that have an owner
  HostCopy *left = nullptr;       // those without one that have not run
};

AllCopies &all_copies() {
  static auto *const instance = new AllCopies;  // queues outlive static objects
  return *instance;
}

bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes) {
  const auto *const one = static_cast<const char *>(a), *const other = static_cast<const char *>(b);
  return std::less<>()(one, other + b_bytes) && std::less<>()(other, one + a_bytes);
}

}  // namespace

std::shared_ptr<HostCopy> HostCopy::create(std::shared_ptr<void> pinned, void *to, const void *from, size_t bytes) {
  const std::shared_ptr<HostCopy> copy(new HostCopy(std::move(pinned), to, from, bytes), let_go);
  const std::lock_guard<std::mutex> lock(all_copies().mutex);
  all_copies().alive.push_back(copy.get());
  return copy;
}

void CUDART_CB HostCopy::run(void *self) {
  auto *const copy = static_cast<HostCopy *>(self);
  const std::lock_guard<std::mutex> lock(copy->mutex_);
  if (copy->pinned_) std::memcpy(copy->to_, copy->from_, copy->bytes_);
  copy->has_run_.store(true, std::memory_order_release);
}

bool HostCopy::will_write(const void *data, size_t bytes) {
  const std::lock_guard<std::mutex> lock(all_copies().mutex);
  const auto &alive = all_copies().alive;
  return std::any_of(alive.begin(), alive.end(), [&](const HostCopy *copy) {
    return !copy->has_run_.load(std::memory_order_acquire) && overlap(copy->to_, copy->bytes_, data, bytes);
  });
}

void HostCopy::let_go(HostCopy *copy) {
  std::shared_ptr<void> pinned;  // freed after the locks: freeing may wait for the device, and the driver for run()
  {
    AllCopies &all = all_copies();
    const std::lock_guard<std::mutex> all_lock(all.mutex), lock(copy->mutex_);
    all.alive.erase(std::remove(all.alive.begin(), all.alive.end(), copy), all.alive.end());
    pinned = std::move(copy->pinned_);
    if (!copy->has_run_) {
      copy->next_left_ = all.left;
      all.left = copy;
      return;
    }
  }
  delete copy;
}

}  // namespace cohort
