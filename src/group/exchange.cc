// SPDX-License-Identifier: Apache-2.0
#include "group/exchange.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>

#include "base/error.hpp"
#include "base/processors.hpp"
#include "executor/invoke.hpp"
#include "group/staged_update.hpp"
#include "group/update_plan.hpp"

namespace cohort {

const char kExchangeLabel[] = "gradient exchange";

namespace {

// Below this one bucket does: telling of several costs more than starting early wins.
constexpr size_t kSmallModelBytes = 256 << 10;
constexpr size_t kLeastBucketBytes = 128 << 10, kMostBucketBytes = 4 << 20;
constexpr int64_t kBriefElements = 16384;  // so few that no thread is woken for their update

void pause_processor() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// One backward pass, and the update that follows it, of a group whose memory the host sees. Made for reuse: nothing is
// allocated for a pass once there are as many of these as passes are ever in flight.
class Pass {
 public:
  Pass(size_t num_devices, const std::vector<std::shared_ptr<Queue>> &queues, const std::vector<ExchangeParam> &params,
       size_t num_buckets)
      : num_devices_(num_devices),
        num_buckets_(num_buckets),
        queues_(queues),
        params_(params),
        buckets_(new Bucket[num_buckets]),
        arrived_(new std::atomic<bool>[num_buckets * num_devices]),
        taken_(new std::atomic<int64_t>[num_devices]),
        ends_(num_devices),
        callbacks_(num_devices) {
    for (size_t d = 0; d < num_devices; ++d) {
      ends_[d].pass = this;
      ends_[d].device = d;
      ends_[d].step.kernel = &ends_[d];
      ends_[d].step.label = kExchangeLabel;
      // The last bucket needs none: the program that follows the pass speaks for it.
      for (size_t b = 0; b + 1 < num_buckets; ++b) {
        Arrival arrival{this, int32_t(d), int32_t(b)};
        callbacks_[d].push_back(arrival);
      }
    }
    clear();
  }
  Pass(const Pass &) = delete;
  Pass &operator=(const Pass &) = delete;

  const std::vector<std::function<void()>> &callbacks(size_t device) const { return callbacks_[device]; }

  // ---- the host
  // Nothing of an earlier use is still to come.
  bool free() const {
    if (is_posted()) return pending_.load(std::memory_order_acquire) == 0;
    if (!started_) return true;
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
    posted_.store(nullptr, std::memory_order_relaxed);
    plan_.reset();
    started_ = false;
  }
  void start() { started_ = true; }
  bool is_posted() const { return posted_.load(std::memory_order_relaxed) != nullptr; }

  // The update that follows the pass. Everything of the pass is queued.
  void post(std::shared_ptr<const UpdatePlan> plan, const std::vector<UpdateValues> &values,
            const std::shared_ptr<Pass> &self) {
    plan_ = std::move(plan);
    values_ = values;
    brief_ = (plan_->num_elements() <= kBriefElements || one_processor_) &&
             std::all_of(queues_.begin(), queues_.end(), [](const auto &queue) { return queue->idle(); });
    if (brief_) {  // all of it at once, here
      for (size_t d = 0; d < num_devices_; ++d)
        for (size_t b = 0; b < num_buckets_; ++b) arrive(d, b);
    }
    const size_t num_ends = brief_ ? 1 : num_devices_;
    pending_.store(int(num_ends), std::memory_order_relaxed);
    posted_.store(plan_.get(), std::memory_order_release);
    for (size_t d = 0; d < num_ends; ++d) {
      Program program{};
      program.steps = &ends_[d].step;
      program.count = 1;
      program.brief = brief_;
      program.failed = End::failed;
      try {
        queues_[d]->run(program, std::shared_ptr<const void>(self, &ends_[d]));
      } catch (...) {  // those that are queued must not wait for the rest
        fail(d);
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
  struct Arrival {  // small enough to lie inside a std::function
    Pass *pass;
    int32_t device, bucket;
    void operator()() const { pass->arrive_and_help(size_t(device), size_t(bucket)); }
  };
  // What is queued on each device after backward.
  struct End final : Kernel {
    Pass *pass = nullptr;
    size_t device = 0;
    Step step{};
    void run(const Args &, const Lane &lane) const override { pass->finish(device, lane); }
    static void failed(const void *owner, const char *message) {
      const auto *end = static_cast<const End *>(owner);
      end->pass->give_up(end->device, message);
    }
  };

  // Marks a bucket of one device; the last device makes its pieces available.
  void arrive(size_t device, size_t bucket) {
    if (arrived_[bucket * num_devices_ + device].exchange(true, std::memory_order_acq_rel)) return;
    if (buckets_[bucket].num_arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == num_devices_) announce();
  }

  void arrive_and_help(size_t device, size_t bucket) {
    arrive(device, bucket);
    if (posted_.load(std::memory_order_acquire)) help(device, Lane{queues_[device]->num_threads(), nullptr}, true);
  }

  // Works on pieces that are available. In the midst of backward no more than this device's share of them, so that one
  // that is behind does not fall back further.
  void help(size_t device, const Lane &lane, bool only_share) {
    const UpdatePlan &plan = *posted_.load(std::memory_order_acquire);
    num_active_.fetch_add(1);
    try {
      int64_t available = 0;
      for (size_t b = 0; b < num_buckets_; ++b) {
        Bucket &bucket = buckets_[b];
        if (bucket.num_arrived.load(std::memory_order_acquire) != num_devices_) continue;
        available += plan.bucket_elements(b);
        const std::vector<Piece> &pieces = plan.pieces(b);
        while (bucket.next.load(std::memory_order_relaxed) < pieces.size() && failed_.load() < 0) {
          if (only_share && taken_[device].load(std::memory_order_relaxed) * int64_t(num_devices_) >= available) {
            break;
          }
          const size_t piece = bucket.next.fetch_add(1, std::memory_order_relaxed);
          if (piece >= pieces.size()) break;
          plan.run_piece(device, b, piece, values_, lane);
          taken_[device].fetch_add(pieces[piece].count, std::memory_order_relaxed);
          if (bucket.done.fetch_add(1, std::memory_order_acq_rel) + 1 == pieces.size()) {
            num_done_.fetch_add(1, std::memory_order_acq_rel);
            announce();
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

  // The end of the pass on one device: helps, and waits until nothing is left.
  void finish(size_t device, const Lane &lane) {
    for (size_t d = 0; d < num_devices_ && !params_.empty(); ++d) {
      if (!params_[0].grads[d].storage()->failed()) continue;
      fail(d);
      throw Error(Code::kExecution, text("device ", d, " has no gradients: its backward pass failed"));
    }
    for (size_t b = 0; b < num_buckets_; ++b) arrive(device, b);
    for (;;) {
      const uint32_t news = news_.load();
      help(device, lane, false);
      if (num_done_.load(std::memory_order_acquire) == num_buckets_) break;
      const int failed = failed_.load();
      if (failed >= 0) throw Error(Code::kExecution, text("device ", failed, " failed; parameters were not updated"));
      wait_for_news(news);
    }
    pending_.fetch_sub(1, std::memory_order_acq_rel);
  }

  // Of a device whose queue has failed, before this or in this.
  void give_up(size_t device, const char *message) {
    fail(device);
    while (num_active_.load() > 0) sched_yield();  // others may be at work on this device's arrays
    for (const ExchangeParam &param : params_) {
      for (size_t d = 0; d < num_devices_; ++d)
        if (brief_ || d == device) param.weights[d].storage()->fail(message);
    }
    pending_.fetch_sub(1, std::memory_order_acq_rel);
  }

  void fail(size_t device) {
    int none = -1;
    failed_.compare_exchange_strong(none, int(device));
    announce();
  }

  void announce() {
    news_.fetch_add(1);
    if (num_sleeping_.load() == 0) return;
    { const std::lock_guard<std::mutex> lock(mutex_); }
    changed_.notify_all();
  }

  void wait_for_news(uint32_t known_news) {
    for (int i = 0; i < 2000; ++i) {
      if (news_.load() != known_news) return;
      if (i % 64 == 63) {
        sched_yield();
      } else {
        pause_processor();
      }
    }
    num_sleeping_.fetch_add(1);
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [&] { return news_.load() != known_news; });
    }
    num_sleeping_.fetch_sub(1);
  }

  const size_t num_devices_, num_buckets_;
  const bool one_processor_ = usable_processors() == 1;  // asked once: it reads files
  const std::vector<std::shared_ptr<Queue>> &queues_;
  const std::vector<ExchangeParam> &params_;
  const std::unique_ptr<Bucket[]> buckets_;
  const std::unique_ptr<std::atomic<bool>[]> arrived_;   // [bucket][device]
  const std::unique_ptr<std::atomic<int64_t>[]> taken_;  // elements that a device has worked on
  std::vector<End> ends_;
  std::vector<std::vector<std::function<void()>>> callbacks_;
  std::shared_ptr<const UpdatePlan> plan_;
  std::vector<UpdateValues> values_;
  bool started_ = false;  // backward of this pass is queued, and will call back
  bool brief_ = false;    // one end does everything

  std::atomic<const UpdatePlan *> posted_{nullptr};
  std::atomic<size_t> num_done_{0};  // buckets
  std::atomic<int> pending_{0};      // ends that are queued
  std::atomic<int> failed_{-1};      // a device
  // Sequentially consistent: who fails, then looks for others at work; who works, then looks for a failure.
  std::atomic<int> num_active_{0};
  std::atomic<uint32_t> news_{0};
  std::atomic<int> num_sleeping_{0};
  std::mutex mutex_;  // of changed_; what is waited for is news_
  std::condition_variable changed_;
};

}  // namespace

struct Exchange::Impl {
  std::vector<ExchangeParam> params;  // in the order of their positions
  std::vector<std::shared_ptr<Queue>> queues;
  std::vector<int> bucket_ends;    // positions
  std::vector<int> bucket_params;  // the same as ends in params
  bool pieces = false;             // several devices, all of whose memory the host sees
  bool model_parallel = false;
  std::vector<std::shared_ptr<Pass>> passes;
  std::shared_ptr<Pass> pass;  // of the latest backward
  std::shared_ptr<UpdatePlan> plan;
  std::unique_ptr<StagedUpdate> staged;
  std::vector<UpdateValues> values;
  const std::vector<std::function<void()>> no_callbacks{};

  void choose_buckets(int num_gradients, size_t bucket_bytes);
  const std::shared_ptr<Pass> &free_pass();
  void update_pieces();
  void update_locals();
  void update_model_parallel(Optimizer &optimizer, UpdateMode mode);
};

Exchange::Exchange(std::vector<ExchangeParam> params, std::vector<std::shared_ptr<Queue>> queues, int num_gradients,
                   size_t bucket_bytes, bool model_parallel)
    : impl_(std::make_unique<Impl>()) {
  impl_->params = std::move(params);
  impl_->queues = std::move(queues);
  bool on_host = true;
  for (const ExchangeParam &param : impl_->params)
    for (const NDArray &weight : param.weights) on_host = on_host && weight.context().on_host();
  impl_->model_parallel = model_parallel && !on_host;
  impl_->pieces = impl_->queues.size() > 1 && on_host;
  impl_->choose_buckets(num_gradients, bucket_bytes);
}

Exchange::~Exchange() {
  for (const auto &queue : impl_->queues) queue->finish();
}

bool Exchange::works_on(const std::vector<ExchangeParam> &params,
                        const std::vector<std::shared_ptr<Queue>> &queues) const {
  if (params.size() != impl_->params.size() || queues != impl_->queues) return false;
  for (size_t p = 0; p < params.size(); ++p) {
    const ExchangeParam &a = params[p], &b = impl_->params[p];
    if (a.name != b.name || a.position != b.position) return false;
    for (size_t d = 0; d < queues.size(); ++d)
      if (!a.weights[d].same_memory(b.weights[d]) || !a.grads[d].same_memory(b.grads[d])) return false;
  }
  return true;
}

void Exchange::Impl::choose_buckets(int num_gradients, size_t bucket_bytes) {
  size_t total = 0;
  for (const ExchangeParam &param : params) total += param.grads[0].bytes();
  if (bucket_bytes == 0) {
    // On one processor nothing runs at the same time.
    bucket_bytes = total <= kSmallModelBytes || usable_processors() == 1
                       ? total + 1
                       : std::min(std::max(total / 8, kLeastBucketBytes), kMostBucketBytes);
  }
  size_t bytes = 0;
  for (size_t p = 0; p < params.size(); ++p) {
    bytes += params[p].grads[0].bytes();
    if (bytes < bucket_bytes || p + 1 == params.size()) continue;
    // Arguments that backward is done with at once stay together.
    if (params[p + 1].position == params[p].position) continue;
    bucket_ends.push_back(params[p].position + 1);
    bucket_params.push_back(int(p) + 1);
    bytes = 0;
  }
  bucket_ends.push_back(num_gradients);
  bucket_params.push_back(int(params.size()));
}

const std::vector<int> &Exchange::bucket_ends() const { return impl_->bucket_ends; }

const std::shared_ptr<Pass> &Exchange::Impl::free_pass() {
  for (const auto &known : passes) {
    if (known == pass || !known->free()) continue;
    known->clear();
    return known;
  }
  passes.push_back(std::make_shared<Pass>(queues.size(), queues, params, bucket_ends.size()));
  return passes.back();
}

void Exchange::begin_backward(bool in_buckets) {
  if (!impl_->pieces) return;
  impl_->pass = impl_->free_pass();
  if (in_buckets) impl_->pass->start();
}

const std::vector<std::function<void()>> &Exchange::after_bucket(size_t device) const {
  return impl_->pieces ? impl_->pass->callbacks(device) : impl_->no_callbacks;
}

void Exchange::forget_failed_passes() {
  for (const auto &pass : impl_->passes)
    if (!pass->free()) pass->clear();
}

void Exchange::update(const std::shared_ptr<Optimizer> &optimizer, UpdateMode mode) {
  Impl &self = *impl_;
  if (self.params.empty()) return;
  const bool local = self.queues.size() == 1 || mode == UpdateMode::kNoStore;
  if (self.model_parallel) {
    self.update_model_parallel(*optimizer, mode);
  } else if (!local && !self.pieces) {
    if (!self.staged || !self.staged->fits(*optimizer, mode)) {
      self.staged.reset();
      self.staged = std::make_unique<StagedUpdate>(self.params, self.queues, optimizer, mode);
    }
    self.staged->run();
  } else {
    if (!self.plan || !self.plan->fits(*optimizer, mode)) {
      self.plan = std::make_shared<UpdatePlan>(self.params, self.bucket_params, self.queues, optimizer, mode, !local);
    }
    self.plan->begin(&self.values);
    if (local) {
      self.update_locals();
    } else {
      self.update_pieces();
    }
  }
  for (const ExchangeParam &param : self.params)
    for (const NDArray &weight : param.weights) weight.storage()->will_change();
  if (self.staged) self.staged->note_versions();
}

void Exchange::Impl::update_pieces() {
  // Asked for twice after one backward: the second time nobody arrives before the end.
  if (!pass || pass->is_posted()) pass = free_pass();
  pass->post(plan, values, pass);
}

void Exchange::Impl::update_locals() {
  const size_t num_copies = plan->num_copies();
  for (size_t d = 0; d < queues.size(); ++d) {
    LocalUpdate &update = plan->free_local(d);
    for (size_t p = 0; p < params.size(); ++p) update.values()[p] = values[p * num_copies + (num_copies > 1 ? d : 0)];
    update.run(*queues[d], plan->num_elements() <= kBriefElements, plan);
  }
}

// Waits for the gradients, and has finished when it returns: parameters of one device lie on several contexts.
void Exchange::Impl::update_model_parallel(Optimizer &optimizer, UpdateMode mode) {
  const size_t num_devices = queues.size();
  for (const ExchangeParam &param : params) {
    for (size_t d = 0; d < num_devices; ++d) {
      param.weights[d].wait();
      param.grads[d].wait();
    }
  }
  for (const ExchangeParam &param : params) {
    if (mode == UpdateMode::kNoStore || num_devices == 1) {
      for (size_t d = 0; d < num_devices; ++d) optimizer.update(param.name, d, param.weights[d], param.grads[d]);
      continue;
    }
    NDArray sum = param.grads[0].copy_to(Context());
    for (size_t d = 1; d < num_devices; ++d)
      invoke("elemwise_add", {}, {sum, param.grads[d].on_host()}, {sum}, Context());
    if (mode == UpdateMode::kPerDevice) {
      for (size_t d = 0; d < num_devices; ++d) {
        param.grads[d].copy_from(sum);
        optimizer.update(param.name, d, param.weights[d], param.grads[d]);
      }
      continue;
    }
    const Context &store = param.weights[0].context();
    optimizer.update(param.name, 0, param.weights[0], sum.context() == store ? sum : sum.copy_to(store));
    for (size_t d = 1; d < num_devices; ++d) param.weights[d].copy_from(param.weights[0]);
  }
}

}  // namespace cohort
