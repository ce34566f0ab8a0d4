// SPDX-License-Identifier: Apache-2.0
#include "group/shared_memory_reducer.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>

#include "base/error.hpp"
#include "base/processors.hpp"

namespace cohort {
namespace {

constexpr int64_t kBriefElements = 16384;  // so few that waking a thread for their sums does not pay

std::shared_ptr<const DeviceArrays> gradients_of(const ExchangeParams &params) {
  auto grads = std::make_shared<DeviceArrays>();
  for (const ExchangeParam &param : params) grads->push_back(param.grads);
  return grads;
}

int most_threads(const ExchangeDevices &devices) {
  int num_threads = 1;
  for (const ExchangeDevice &device : devices) num_threads = std::max(num_threads, device.queue->num_threads());
  return num_threads;
}

}  // namespace

// The state that all reductions share.
struct SharedMemoryReducer::Work {
  std::shared_ptr<const DeviceArrays> grads;
  std::shared_ptr<const Pieces> pieces;
  std::vector<int64_t> bucket_elements;
  int64_t num_elements = 0;
  size_t num_filled = 0;                              // buckets that have pieces
  std::vector<std::unique_ptr<const PieceSum>> sums;  // per device; made when sums are first asked for
};

// One backward pass and the sums that follow it. Reused: a pass allocates nothing once there are as many of these as
// passes are ever in flight. Queued work owns it, and it owns all that this work uses, except queues: else a queue
// could be destroyed on the thread of another one.
class SharedMemoryReducer::Reduction {
 public:
  Reduction(size_t num_devices, std::shared_ptr<const Work> work)
      : num_devices_(num_devices),
        num_buckets_(work->pieces->size()),
        work_(std::move(work)),
        buckets_(new Bucket[num_buckets_]),
        arrived_(new std::atomic<bool>[num_buckets_ * num_devices]),
        taken_(new std::atomic<int64_t>[num_devices]),
        ends_(num_devices),
        // The last bucket needs none: the end of the pass stands for it.
        arrivals_((num_buckets_ - 1) * num_devices) {
    for (size_t d = 0; d < num_devices; ++d) {
      ends_[d].pass = this;
      ends_[d].device = d;
      ends_[d].step.kernel = &ends_[d];
      ends_[d].step.label = kExchangeLabel;
      ends_[d].step.info = exchange_info();
      for (size_t b = 0; b + 1 < num_buckets_; ++b) {
        Arrival &arrival = arrivals_[d * (num_buckets_ - 1) + b];
        arrival.pass = this;
        arrival.device = d;
        arrival.bucket = b;
        arrival.step.kernel = &arrival;
        arrival.step.label = kExchangeLabel;
        arrival.step.info = exchange_info();
        Program program{};
        program.steps = &arrival.step;
        program.count = 1;
        arrival_programs_.push_back(program);
      }
    }
    clear();
  }
  Reduction(const Reduction &) = delete;
  Reduction &operator=(const Reduction &) = delete;

  // ---- the host
  // Whether no work of an earlier use is left.
  bool free() const {
    if (is_posted()) return pending_.load(std::memory_order_acquire) == 0;
    if (!in_buckets_) return true;
    for (size_t b = 0; b + 1 < num_buckets_; ++b)
      if (buckets_[b].num_arrived.load(std::memory_order_acquire) != num_devices_) return false;
    return true;
  }
  void clear() {
    for (size_t b = 0; b < num_buckets_; ++b) {
      buckets_[b].num_arrived.store(0, std::memory_order_relaxed);
      buckets_[b].next.store(0, std::memory_order_relaxed);
      buckets_[b].done.store(0, std::memory_order_relaxed);
    }
    for (size_t i = 0; i < num_buckets_ * num_devices_; ++i) arrived_[i].store(false, std::memory_order_relaxed);
    for (size_t d = 0; d < num_devices_; ++d) taken_[d].store(0, std::memory_order_relaxed);
    num_done_.store(0, std::memory_order_relaxed);
    pending_.store(0, std::memory_order_relaxed);
    failed_.store(-1, std::memory_order_relaxed);
    posted_.store(false, std::memory_order_relaxed);
    consumer_.reset();
    in_buckets_ = false;
  }
  bool is_posted() const { return consumer_ != nullptr; }

  // Programs that one device's backward must run after its buckets.
  BucketPrograms bucket_programs(size_t device, const std::shared_ptr<Reduction> &self) {
    in_buckets_ = true;
    BucketPrograms result;
    result.programs = arrival_programs_.data() + device * (num_buckets_ - 1);
    result.count = num_buckets_ - 1;
    result.owner = self;
    return result;
  }

  // Asks for the sums. All work of the pass is queued. `brief`: all queues are idle; everything is done at once.
  // `waits`: see reduce().
  void post(std::shared_ptr<SumConsumer> consumer, bool replace_gradients, bool brief, bool waits,
            const ExchangeDevices &devices, const std::shared_ptr<Reduction> &self) {
    consumer_ = std::move(consumer);
    replace_gradients_ = replace_gradients;
    brief_ = brief;
    if (brief_) {
      for (size_t d = 0; d < num_devices_; ++d)
        for (size_t b = 0; b < num_buckets_; ++b) arrive(d, b);
    }
    const size_t num_ends = brief_ ? 1 : num_devices_;
    pending_.store(int(num_ends), std::memory_order_relaxed);
    num_missing_.store(waits ? num_ends : 0, std::memory_order_relaxed);
    if (!waits) posted_.store(true, std::memory_order_release);
    for (size_t d = 0; d < num_ends; ++d) {
      Program program{};
      program.steps = &ends_[d].step;
      program.count = 1;
      if (brief_) program.size = WorkSize::kBrief;
      program.failed = End::failed;
      try {
        devices[d].queue->run(program, std::shared_ptr<const void>(self, &ends_[d]));
      } catch (...) {  // the ends that are queued must not wait for the rest
        stop(d);
        for (size_t rest = d; rest < num_devices_; ++rest) consumer_->fail(rest, "its update could not be queued");
        pending_.fetch_sub(int(num_ends - d), std::memory_order_acq_rel);
        throw;
      }
    }
  }

 private:
  struct Bucket {
    alignas(64) std::atomic<size_t> num_arrived;
    std::atomic<size_t> next, done;  // pieces
  };
  // The step that a device runs during backward, after a bucket.
  struct Arrival final : Kernel {
    Reduction *pass = nullptr;
    size_t device = 0, bucket = 0;
    Step step{};
    void run(const Args &, const Lane &lane) const override { pass->arrive_and_help(device, bucket, lane); }
  };
  // The step that is queued on each device after backward.
  struct End final : Kernel {
    Reduction *pass = nullptr;
    size_t device = 0;
    Step step{};
    void run(const Args &, const Lane &lane) const override { pass->finish(device, lane); }
    static void failed(const void *owner, const char *message) {
      const auto *end = static_cast<const End *>(owner);
      end->pass->device_failed(end->device, message);
    }
  };

  // Marks a bucket of one device as done; the last device makes its pieces available.
  void arrive(size_t device, size_t bucket) {
    if (arrived_[bucket * num_devices_ + device].exchange(true, std::memory_order_acq_rel)) return;
    if (buckets_[bucket].num_arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == num_devices_) signal_progress();
  }

  void arrive_and_help(size_t device, size_t bucket, const Lane &lane) {
    arrive(device, bucket);
    if (posted_.load(std::memory_order_acquire)) help(device, lane, true);
  }

  // Works on available pieces. During backward a device takes at most its share of them, so that one that is behind
  // does not fall back further.
  void help(size_t device, const Lane &lane, bool only_share) {
    num_active_.fetch_add(1);
    try {
      int64_t available = 0;
      for (size_t b = 0; b < num_buckets_; ++b) {
        Bucket &bucket = buckets_[b];
        if (bucket.num_arrived.load(std::memory_order_acquire) != num_devices_) continue;
        available += work_->bucket_elements[b];
        const std::vector<Piece> &pieces = (*work_->pieces)[b];
        while (bucket.next.load(std::memory_order_relaxed) < pieces.size() && failed_.load() < 0) {
          if (only_share && taken_[device].load(std::memory_order_relaxed) * int64_t(num_devices_) >= available) {
            break;
          }
          const size_t piece = bucket.next.fetch_add(1, std::memory_order_relaxed);
          if (piece >= pieces.size()) break;
          const PieceSum &sum = *work_->sums[device];
          consumer_->consume(device, b, piece, sum.run(b, piece, lane), lane);
          if (replace_gradients_) sum.replace_gradients(b, piece);
          taken_[device].fetch_add(pieces[piece].count, std::memory_order_relaxed);
          if (bucket.done.fetch_add(1, std::memory_order_acq_rel) + 1 == pieces.size()) {
            num_done_.fetch_add(1, std::memory_order_acq_rel);
            signal_progress();
          }
        }
      }
    } catch (...) {
      num_active_.fetch_sub(1);
      fail(device);
      throw;
    }
    num_active_.fetch_sub(1);
  }

  // Ends the pass on one device: helps, and waits until nothing is left.
  void finish(size_t device, const Lane &lane) {
    for (size_t d = 0; d < num_devices_; ++d) {
      try {
        check_gradients(*work_->grads, d);
      } catch (const Error &) {
        fail(d);
        throw;
      }
    }
    for (size_t b = 0; b < num_buckets_; ++b) arrive(device, b);
    if (num_missing_.load() > 0 && num_missing_.fetch_sub(1) == 1) {
      posted_.store(true, std::memory_order_release);
      signal_progress();
    }
    for (;;) {
      const uint32_t progress = progress_.load();
      if (posted_.load(std::memory_order_acquire)) help(device, lane, false);
      if (num_done_.load(std::memory_order_acquire) == work_->num_filled) break;
      const int failed = failed_.load();
      if (failed >= 0) throw Error(Code::kExecution, text("device ", failed, " failed; parameters were not updated"));
      wait_for_progress(progress);
    }
    pending_.fetch_sub(1, std::memory_order_acq_rel);
  }

  // The queue of a device has failed, before this program or in it.
  void device_failed(size_t device, const char *message) {
    stop(device);
    for (size_t d = 0; d < num_devices_; ++d)
      if (brief_ || d == device) consumer_->fail(d, message);
    pending_.fetch_sub(1, std::memory_order_acq_rel);
  }

  void stop(size_t device) {
    fail(device);
    while (num_active_.load() > 0) sched_yield();  // others may be using this device's arrays
  }

  void fail(size_t device) {
    int none = -1;
    failed_.compare_exchange_strong(none, int(device));
    signal_progress();
  }

  void signal_progress() {
    progress_.fetch_add(1);
    if (num_sleeping_.load() == 0) return;
    { const std::lock_guard<std::mutex> lock(mutex_); }
    changed_.notify_all();
  }

  void wait_for_progress(uint32_t known_progress) {
    for (int i = 0; i < 2000; ++i) {
      if (progress_.load() != known_progress) return;
      if (i % 64 == 63) {
        sched_yield();
      } else {
        pause_processor();
      }
    }
    num_sleeping_.fetch_add(1);
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [&] { return progress_.load() != known_progress; });
    }
    num_sleeping_.fetch_sub(1);
  }

  const size_t num_devices_, num_buckets_;
  const std::shared_ptr<const Work> work_;
  const std::unique_ptr<Bucket[]> buckets_;
  const std::unique_ptr<std::atomic<bool>[]> arrived_;   // [bucket][device]
  const std::unique_ptr<std::atomic<int64_t>[]> taken_;  // number of elements that a device has worked on
  std::vector<End> ends_;
  std::vector<Arrival> arrivals_;          // [device][bucket]
  std::vector<Program> arrival_programs_;  // likewise
  std::shared_ptr<SumConsumer> consumer_;
  bool replace_gradients_ = false;
  bool in_buckets_ = false;  // backward runs the programs of its buckets
  bool brief_ = false;       // one device's end does everything

  std::atomic<bool> posted_{false};     // sums were asked for: members that the host sets before may be read
  std::atomic<size_t> num_missing_{0};  // devices that must reach the end of the pass before that
  std::atomic<size_t> num_done_{0};     // buckets
  std::atomic<int> pending_{0};         // number of queued ends
  std::atomic<int> failed_{-1};         // a device
  // Sequentially consistent: fail() stores failed_, then loads num_active_; help() stores num_active_, then loads
  // failed_.
  std::atomic<int> num_active_{0};
  std::atomic<uint32_t> progress_{0};
  std::atomic<int> num_sleeping_{0};
  std::mutex mutex_;  // for changed_; the condition is a change of progress_
  std::condition_variable changed_;
};

SharedMemoryReducer::SharedMemoryReducer(const ExchangeParams &params, const GradientBuckets &buckets,
                                         const ExchangeDevices &devices, Dtype sum_dtype)
    : GradientReducer(params, buckets, most_threads(devices)),
      one_processor_(usable_processors() == 1),
      devices_(devices),
      sum_dtype_(sum_dtype),
      work_(std::make_shared<Work>()) {
  for (const ExchangeDevice &device : devices) {
    workers_.push_back({device.context, device.queue->num_threads()});
  }
  work_->grads = gradients_of(params);
  work_->pieces = pieces();
  for (const std::vector<Piece> &bucket : *pieces()) {
    int64_t elements = 0;
    for (const Piece &piece : bucket) elements += piece.count;
    work_->bucket_elements.push_back(elements);
    work_->num_elements += elements;
    work_->num_filled += bucket.empty() ? 0 : 1;
  }
}

const std::shared_ptr<SharedMemoryReducer::Reduction> &SharedMemoryReducer::free_reduction() {
  for (const auto &known : reductions_) {
    if (known == latest_ || !known->free()) continue;
    known->clear();
    return known;
  }
  reductions_.push_back(std::make_shared<Reduction>(devices_.size(), work_));
  return reductions_.back();
}

void SharedMemoryReducer::begin_backward() { latest_ = free_reduction(); }

BucketPrograms SharedMemoryReducer::after_bucket(size_t device) {
  return one_processor_ ? BucketPrograms() : latest_->bucket_programs(device, latest_);
}

void SharedMemoryReducer::queue_sums(std::shared_ptr<SumConsumer> consumer, bool replace_gradients, bool waits) {
  while (work_->sums.size() < workers_.size()) {
    const Worker &worker = workers_[work_->sums.size()];
    work_->sums.push_back(std::make_unique<PieceSum>(work_->grads, work_->pieces, worker, sum_dtype_));
  }
  // Sums asked for twice after one backward: the second time no device arrives before its end.
  if (!latest_ || latest_->is_posted()) latest_ = free_reduction();
  consumer->before_sums(devices_);
  const bool brief =
      !waits && (work_->num_elements <= kBriefElements || one_processor_) &&
      std::all_of(devices_.begin(), devices_.end(), [](const auto &device) { return device.queue->idle(); });
  SumConsumer &given = *consumer;
  latest_->post(std::move(consumer), replace_gradients, brief, waits, devices_, latest_);
  given.after_sums(devices_);
}

void SharedMemoryReducer::wait() {
  for (const auto &pass : reductions_)
    if (!pass->free()) pass->clear();
}

}  // namespace cohort
