// SPDX-License-Identifier: Apache-2.0
// What is known of the work on a block of memory.
#include <new>

#include "base/error.hpp"
#include "ndarray/ndarray.hpp"

namespace cohort {

void Storage::attach(const std::shared_ptr<Queue> &queue, bool writes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  size_t kept = 0;
  bool known = false;
  for (User &user : users_) {
    const std::shared_ptr<Queue> alive = user.queue.lock();
    if (!alive) continue;
    if (alive == queue) {
      known = true;
      user.writes = user.writes || writes;
    }
    if (&user != &users_[kept]) users_[kept] = std::move(user);
    ++kept;
  }
  users_.resize(kept);
  if (!known) users_.push_back({queue, writes});
  busy_.store(true, std::memory_order_release);
}

void Storage::depend_on(std::shared_ptr<Storage> part) {
  const std::lock_guard<std::mutex> lock(mutex_);
  parts_.push_back(std::move(part));
  busy_.store(true, std::memory_order_release);
}

void Storage::sync_users(bool writers_only, const Queue *but) {
  for (size_t i = 0;; ++i) {
    std::shared_ptr<Queue> queue;  // one that is gone has finished its work
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (i >= users_.size()) return;
      if (!writers_only || users_[i].writes) queue = users_[i].queue.lock();
    }
    if (queue && queue.get() != but) queue->sync();
  }
}

// Parts are added before a storage is shared, and stay.
std::vector<std::shared_ptr<Storage>> Storage::parts() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return parts_;
}

void Storage::check_failure() {
  if (failed()) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!failure_.empty()) throw Error(Code::kExecution, "the array was not written: " + failure_);
  }
  for (const auto &part : parts()) part->check_failure();
}

void Storage::wait_for_work(const Queue *but) {
  if (!busy_.load(std::memory_order_acquire)) return;
  sync_users(false, but);
  for (const auto &part : parts()) part->wait_for_work(but);
}

void Storage::wait() {
  wait_for_work();
  check_failure();
}

void Storage::wait_for_writers(const Queue *reader) {
  if (busy_.load(std::memory_order_acquire)) {
    sync_users(true, reader);
    for (const auto &part : parts()) part->wait_for_writers(reader);
  }
  check_failure();
}

void Storage::fail(const char *message) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  try {
    failure_ = *message ? message : "its work failed";
  } catch (const std::bad_alloc &) {
    failure_.clear();
    failure_ += "out of memory";  // short enough to need none
  }
  failed_.store(true, std::memory_order_release);
}

void Storage::written() {
  version_.fetch_add(1, std::memory_order_acq_rel);
  if (!failed_.load(std::memory_order_acquire)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  failure_.clear();
  failed_.store(false, std::memory_order_release);
}

const std::shared_ptr<Queue> &Storage::copier() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!copier_) {
    // One queue a device, alive while any of its arrays has been copied.
    static std::mutex *const all_mutex = new std::mutex;  // guards all
    static auto *const all = new std::vector<std::pair<Context, std::weak_ptr<Queue>>>;
    const std::lock_guard<std::mutex> all_lock(*all_mutex);
    std::weak_ptr<Queue> *slot = nullptr;
    for (auto &entry : *all) {
      if (entry.first == context()) slot = &entry.second;
    }
    if (!slot) slot = &all->emplace_back(context(), std::weak_ptr<Queue>()).second;
    copier_ = slot->lock();
    if (!copier_) *slot = copier_ = get_device(context())->create_queue(QueueOptions());
  }
  return copier_;
}

}  // namespace cohort
