// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_watch.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

namespace cohort {
namespace {

constexpr std::chrono::milliseconds kLook{20};

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
  std::vector<std::shared_ptr<Watched>> all() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return watched_;
  }

 private:
  void look() {
    for (;;) {
      std::this_thread::sleep_for(kLook);
      look_at_all();
      const std::lock_guard<std::mutex> lock(mutex_);
      looking_ = !watched_.empty();
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
};

}  // namespace

void watch(const std::shared_ptr<Watched> &what) { Watch::instance().add(what); }

bool finish_watched() {
  const std::vector<std::shared_ptr<Watched>> all = Watch::instance().all();
  for (const auto &what : all) what->finish();
  if (!all.empty()) std::this_thread::sleep_for(2 * kLook);
  return !all.empty();
}

}  // namespace cohort
