// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_watch.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace cohort {
namespace {

constexpr std::chrono::milliseconds kLook{20};

// The thread ends when nothing is left, and is made anew.
class Watch {
 public:
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
      try {
        for (const auto &what : all())
          if (!what->look()) forget(what);
      } catch (const std::bad_alloc &) {  // the next time
      }
      const std::lock_guard<std::mutex> lock(mutex_);
      looking_ = !watched_.empty();
      if (!looking_) return;
    }
  }
  void forget(const std::shared_ptr<Watched> &what) {
    const std::lock_guard<std::mutex> lock(mutex_);
    watched_.erase(std::find(watched_.begin(), watched_.end(), what));
  }

  mutable std::mutex mutex_;  // guards what follows
  std::vector<std::shared_ptr<Watched>> watched_;
  bool looking_ = false;
};

Watch &instance() {
  static auto *const watch = new Watch;  // queues outlive static objects
  return *watch;
}

}  // namespace

void watch(const std::shared_ptr<Watched> &what) { instance().add(what); }

bool finish_watched() {
  const std::vector<std::shared_ptr<Watched>> all = instance().all();
  for (const auto &what : all) what->finish();
  if (!all.empty()) std::this_thread::sleep_for(2 * kLook);
  return !all.empty();
}

}  // namespace cohort
