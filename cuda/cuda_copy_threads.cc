// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_copy_threads.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/per_process.hpp"
#include "base/processors.hpp"
#include "base/signals.hpp"

namespace cohort {
namespace {

constexpr int kMostHelpers = 3;  // with the caller four, which read about as fast as a bus of 50 GB/s takes

// The threads are detached and never end: while idle they wait for a condition of an object that is never destroyed.
class CopyHelpers {
 public:
  void run(int num_helpers, const std::function<void()> &fn) {
    Job job{&fn, num_helpers};
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      start_threads(num_helpers);
      waiting_.push_back(&job);
    }
    work_.notify_all();
    fn();
    // Helpers that have not come by now are not waited for.
    std::unique_lock<std::mutex> lock(mutex_);
    waiting_.erase(std::remove(waiting_.begin(), waiting_.end(), &job), waiting_.end());
    finished_.wait(lock, [&job] { return job.num_running == 0; });
  }

 private:
  struct Job {
    const std::function<void()> *fn;
    int num_wanted;       // helpers that may still join
    int num_running = 0;  // helpers that have joined and have not finished
  };

  void start_threads(int wanted) {
    const SignalsBlocked there;
    try {
      for (; num_threads_ < wanted; ++num_threads_) std::thread([this] { help(); }).detach();
    } catch (const std::system_error &) {  // then there are fewer
    }
  }
  [[noreturn]] void help() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      work_.wait(lock, [this] { return !waiting_.empty(); });
      Job &job = *waiting_.front();
      ++job.num_running;
      if (--job.num_wanted == 0) waiting_.erase(waiting_.begin());
      lock.unlock();
      (*job.fn)();
      lock.lock();
      if (--job.num_running == 0) finished_.notify_all();
    }
  }

  std::mutex mutex_;                         // guards the members below, and the jobs
  std::condition_variable work_, finished_;  // there is a job; all helpers of some job have finished
  std::vector<Job *> waiting_;               // jobs that want more helpers
  int num_threads_ = 0;
};

}  // namespace

int num_copy_threads() {
  static const int number = std::min(usable_processors(), kMostHelpers + 1);
  return number;
}

void run_together(int num_threads, const std::function<void()> &fn) {
  const int num_helpers = std::min(num_threads, num_copy_threads()) - 1;
  if (num_helpers <= 0) return fn();
  per_process<CopyHelpers>().run(num_helpers, fn);
}

}  // namespace cohort
