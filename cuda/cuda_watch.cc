// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_watch.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

namespace cohort {
namespace {

constexpr std::chrono::milliseconds kLook{20};
// How long a look is waited for: who waits may hold what it needs.
constexpr std::chrono::seconds kPatience{2};

// The thread ends when nothing is left, and is made anew. When the process ends nobody looks any more: CUDA, which ends
// after this, is not to be called then.
class Watch {
 public:
  Watch() {
    std::atexit([] { instance().end(); });
  }
  static Watch &instance() {
    static auto *const watch = new Watch;  // queues outlive static objects
    return *watch;
  }
  void add(const std::shared_ptr<Watched> &what) {
    const std::lock_guard<std::mutex> lock(mutex_);
    watched_.push_back(what);
    if (looking_) return;
    std::thread([this] { look(); }).detach();
    looking_ = true;
  }
  // Until everybody has been looked at: the look that is going on may have passed some by.
  void wait_for_look() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (looker_ == std::this_thread::get_id()) return;  // what it lets go of wants memory
    const uint64_t next = num_looks_ + 2;
    looked_.wait_for(lock, kPatience, [&] { return !looking_ || num_looks_ >= next; });
  }
  std::vector<std::shared_ptr<Watched>> all() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return watched_;
  }

 private:
  void look() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      looker_ = std::this_thread::get_id();
    }
    for (;;) {
      std::this_thread::sleep_for(kLook);
      look_at_all();
      const std::lock_guard<std::mutex> lock(mutex_);
      ++num_looks_;
      looking_ = !watched_.empty();
      looked_.notify_all();
      if (!looking_) return;
    }
  }
  void look_at_all() {
    const std::lock_guard<std::recursive_timed_mutex> turn(turn_);
    if (ended_) return;
    try {
      for (const auto &what : all())
        if (!what->look()) forget(what);
    } catch (const std::bad_alloc &) {  // the next time
    }
  }
  // Whoever ends the process may do so in a look, or while one waits for a device that stands still.
  void end() {
    const std::unique_lock<std::recursive_timed_mutex> turn(turn_, std::chrono::seconds(1));
    ended_ = true;
  }
  void forget(const std::shared_ptr<Watched> &what) {
    const std::lock_guard<std::mutex> lock(mutex_);
    watched_.erase(std::find(watched_.begin(), watched_.end(), what));
  }

  std::recursive_timed_mutex turn_;  // held while it is looked
  std::atomic<bool> ended_{false};
  mutable std::mutex mutex_;  // guards what follows
  std::vector<std::shared_ptr<Watched>> watched_;
  bool looking_ = false;
  std::thread::id looker_;  // the latest
  uint64_t num_looks_ = 0;  // that have ended
  std::condition_variable looked_;
};

}  // namespace

void watch(const std::shared_ptr<Watched> &what) { Watch::instance().add(what); }

bool finish_watched() {
  std::vector<std::shared_ptr<Watched>> all = Watch::instance().all();
  if (all.empty()) return false;
  for (const auto &what : all) what->finish();
  all.clear();
  Watch::instance().wait_for_look();
  return true;
}

}  // namespace cohort
