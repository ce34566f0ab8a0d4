// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_poll.hpp"

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

constexpr std::chrono::milliseconds kInterval{20};
// The longest wait for a round of polling: the waiting thread may hold a lock that the round needs.
constexpr std::chrono::seconds kPatience{2};

// The thread ends when no object is registered, and is started again for the next one. Polling stops when the process
// ends: CUDA is unloaded after this object, and must not be called from then on.
class Poller {
 public:
  Poller() {
    std::atexit([] { instance().end(); });
  }
  static Poller &instance() {
    static auto *const poller = new Poller;  // queues outlive static objects
    return *poller;
  }
  void add(const std::shared_ptr<Pollable> &what) {
    const std::lock_guard<std::mutex> lock(mutex_);
    polled_.push_back(what);
    if (running_) return;
    std::thread([this] { run(); }).detach();
    running_ = true;
  }
  // Waits until all objects have been polled: the current round may already have passed some.
  void wait_for_round() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (thread_id_ == std::this_thread::get_id()) return;  // an object released in poll() allocates memory
    const uint64_t next = num_rounds_ + 2;
    round_done_.wait_for(lock, kPatience, [&] { return !running_ || num_rounds_ >= next; });
  }
  std::vector<std::shared_ptr<Pollable>> all() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return polled_;
  }

 private:
  void run() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      thread_id_ = std::this_thread::get_id();
    }
    for (;;) {
      std::this_thread::sleep_for(kInterval);
      poll_all();
      const std::lock_guard<std::mutex> lock(mutex_);
      ++num_rounds_;
      running_ = !polled_.empty();
      round_done_.notify_all();
      if (!running_) return;
    }
  }
  void poll_all() {
    const std::lock_guard<std::recursive_timed_mutex> lock(round_mutex_);
    if (ended_) return;
    try {
      for (const auto &what : all())
        if (!what->poll()) forget(what);
    } catch (const std::bad_alloc &) {  // retried in the next round
    }
  }
  // The process may be ended from within a round, or while a round waits for a device that hangs.
  void end() {
    const std::unique_lock<std::recursive_timed_mutex> lock(round_mutex_, std::chrono::seconds(1));
    ended_ = true;
  }
  void forget(const std::shared_ptr<Pollable> &what) {
    const std::lock_guard<std::mutex> lock(mutex_);
    polled_.erase(std::find(polled_.begin(), polled_.end(), what));
  }

  std::recursive_timed_mutex round_mutex_;  // held during a round
  std::atomic<bool> ended_{false};
  mutable std::mutex mutex_;  // guards the members below
  std::vector<std::shared_ptr<Pollable>> polled_;
  bool running_ = false;
  std::thread::id thread_id_;  // the latest
  uint64_t num_rounds_ = 0;    // finished
  std::condition_variable round_done_;
};

}  // namespace

void start_polling(const std::shared_ptr<Pollable> &what) { Poller::instance().add(what); }

bool finish_polled() {
  std::vector<std::shared_ptr<Pollable>> all = Poller::instance().all();
  if (all.empty()) return false;
  for (const auto &what : all) what->finish();
  all.clear();
  Poller::instance().wait_for_round();
  return true;
}

}  // namespace cohort
