// SPDX-License-Identifier: Apache-2.0
#include "cpu/cpu_queue.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <mutex>
#include <new>
#include <string>

#include "base/error.hpp"
#include "base/processors.hpp"
#include "base/settings.hpp"
#include "base/signals.hpp"
#include "cpu/parallel.hpp"
#include "device/trace.hpp"
#include "device/working_queue.hpp"

namespace cohort {
namespace {

// How long a thread polls before it sleeps. Waking a sleeping one costs about as much.
constexpr int64_t kWorkerLookout_ns = 50000, kWaiterLookout_ns = 30000;
constexpr size_t kInlineCopyBytes = 64 << 10;
constexpr uint64_t kNever = UINT64_MAX;

// Threads that work or poll, including those of teams. Polling only pays while each of them has a processor.
std::atomic<int> num_active{0};

int num_processors() {
  static const int count = usable_processors();
  return count;
}

class ActiveScope {
 public:
  explicit ActiveScope(int num_threads) : num_threads_(num_threads) {
    num_active.fetch_add(num_threads_, std::memory_order_relaxed);
  }
  ~ActiveScope() { num_active.fetch_sub(num_threads_, std::memory_order_relaxed); }
  ActiveScope(const ActiveScope &) = delete;
  ActiveScope &operator=(const ActiveScope &) = delete;

 private:
  const int num_threads_;
};

// Calls fn. If it throws, calls told(what, code) and returns false.
template <typename Fn, typename Told>
bool caught(Fn &&fn, Told &&told) noexcept {
  try {
    fn();
    return true;
  } catch (const std::bad_alloc &) {
    told("out of memory", Code::kOutOfMemory);
  } catch (const Error &error) {
    told(error.what(), error.code() == Code::kOutOfMemory ? error.code() : Code::kExecution);
  } catch (const std::exception &error) {
    told(error.what(), Code::kExecution);
  } catch (...) {
    told("unknown exception", Code::kExecution);
  }
  return false;
}

// Differs in every forked child.
std::atomic<uint32_t> generation{0};

uint32_t current_generation() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] {
    generation.fetch_add(1, std::memory_order_relaxed);
    num_active.store(0, std::memory_order_relaxed);
  });
  (void)registered;  // fails only if there is no memory; a child is then not recognised
  return generation.load(std::memory_order_relaxed);
}

void futex_wait(std::atomic<uint32_t> &word, uint32_t expected) {
  static_assert(sizeof word == sizeof(uint32_t), "a futex is a plain word");
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t> &word, int num_waiters) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAKE_PRIVATE, num_waiters, nullptr, nullptr, 0);
}

// Polls ready() until it is true, the time is over, pays() is false, or other work of ours needs the processors.
// `headroom`: the processors that the caller itself needs beyond num_active. Returns whether ready() was true.
template <typename Ready, typename Pays>
bool look_out(int64_t limit_ns, int headroom, Ready &&ready, Pays &&pays) {
  int64_t end_ns = 0;
  for (;;) {
    for (int i = 0; i < 16; ++i) {
      if (ready()) return true;
      pause_processor();
    }
    if (num_active.load(std::memory_order_relaxed) + headroom > num_processors() || !pays()) return false;
    const int64_t now = trace_now_ns();
    if (end_ns == 0) end_ns = now + limit_ns;
    if (now >= end_ns) return false;
  }
}

class CurrentScope {
 public:
  explicit CurrentScope(const void *core) : before_(working_queue) { working_queue = core; }
  ~CurrentScope() { working_queue = before_; }
  CurrentScope(const CurrentScope &) = delete;
  CurrentScope &operator=(const CurrentScope &) = delete;

 private:
  const void *const before_;
};

// One piece of queued work. Slots are reused, so that enqueuing allocates nothing.
struct Work {
  enum class Kind { kRun, kCall, kCopy, kWait } kind;
  Program program;
  std::shared_ptr<const void> owner;  // for kRun and kCopy
  std::function<void()> fn;
  const char *label;
  void *to;
  const void *from;
  size_t bytes;
  void (*failed)(const void *owner, const char *message);  // for kCopy
  std::shared_ptr<Event> event;
};

}  // namespace

class CpuQueue::Core : public std::enable_shared_from_this<CpuQueue::Core> {
 public:
  Core(const Context &context, int num_threads, Trace *trace)
      : context_(context),
        num_threads_(num_threads),
        generation_(current_generation()),
        trace_(trace),
        row_(*trace, text(context, " queue, threads: ", num_threads), context, num_threads) {
    num_processors();  // the first call allocates memory, which waiting must not do
    const std::string node = read_setting(kFault);
    if (!node.empty()) fault_ = "'" + node + "'";
  }

  // ---- for the thread that enqueues ----
  bool finished_all() const {
    return finished_.load(std::memory_order_acquire) == queued_.load(std::memory_order_relaxed);
  }
  // Whether there is one thread and one processor, by the machine or the affinity mask: a worker could only alternate
  // with the host's thread.
  bool shares_processor() const { return num_threads_ == 1 && num_processors() == 1; }
  Work &slot();    // for the next piece of work; waits for room
  void publish();  // queues the work in the slot
  void run_here(const Program &program, const void *owner) {
    const CurrentScope current(this);
    const FloatModeScope mode;
    const ThreadsScope threads(1);
    run_program(program, owner);
  }

  void copy_here(void *to, const void *from, size_t bytes) {
    ProgramSpans spans(trace_, row_, nullptr);
    std::memcpy(to, from, bytes);
    if (spans) spans.ended(SpanKind::kCopy, "copy", 2.0 * double(bytes));
  }

  // Calls `failed` with the first error.
  void tell(void (*failed)(const void *owner, const char *message), const void *owner) noexcept;

  // ---- for every thread ----
  uint64_t queued() const { return queued_.load(std::memory_order_acquire); }
  bool finished(uint64_t ticket) const { return finished_.load(std::memory_order_acquire) >= ticket; }
  // Returns when the first `ticket` pieces are finished; at once if the caller is executing one of them, or in a
  // forked child.
  void wait_for(uint64_t ticket);
  bool poisoned() const { return poisoned_.load(std::memory_order_acquire); }
  void throw_error(bool and_clear);  // if poisoned
  bool in_child() const { return generation_ != current_generation(); }
  void check_process() const {
    if (in_child()) {
      throw Error(Code::kState, text(context_, ": this queue was made before fork(); make new objects in this process"),
                  text(context_));
    }
  }
  int num_threads() const { return num_threads_; }

  void start_worker();
  void work();  // the main function of the worker
  void stop();  // ends the worker

 private:
  bool take() { return !running_.load(std::memory_order_relaxed) && !running_.exchange(true); }
  void give_back() { running_.store(false); }
  bool has_work() const { return queued_.load() != finished_.load(); }
  void wake_worker();
  void worker_sleep();
  // For the thread that has taken the queue, while there is work.
  bool next_is_serial() const {
    const Work &next = ring_[finished_.load(std::memory_order_relaxed) % kDepth];
    return num_threads_ == 1 || (next.kind == Work::Kind::kRun && next.program.size != WorkSize::kParallel);
  }
  void do_next();
  void do_work(Work &work) noexcept;
  void run_program(const Program &program, const void *owner) noexcept;
  void fail(const char *label, const char *what, Code code) noexcept;
  template <typename Fn>
  bool guarded(const char *const &label, Fn &&fn) noexcept;

  const Context context_;
  const int num_threads_;
  const uint32_t generation_;
  Trace *const trace_;
  const TraceRow row_;
  std::string fault_;  // "'conv0'": steps whose label contains this fail

  // Pieces of work are numbered from 1; slot i of the ring holds numbers i + 1, i + 1 + kDepth, ... Atomic operations
  // below without an explicit order are sequentially consistent, which is needed where two threads each write one
  // variable and read the other's.
  Work ring_[kDepth];
  alignas(64) std::atomic<uint64_t> queued_{0};        // written by the thread that enqueues
  alignas(64) std::atomic<uint64_t> finished_{0};      // written by the thread that has taken the queue
  std::atomic<bool> running_{false};                   // whether some thread has taken the queue
  alignas(64) std::atomic<uint64_t> wake_at_{kNever};  // the smallest number that a sleeping thread waits for
  std::atomic<uint32_t> finished_word_{0};             // threads that wait for finished work sleep on it
  alignas(64) std::atomic<bool> asleep_{false};        // whether the worker sleeps
  // Processors on which the worker and the thread it works for were last seen. If both are the same, polling only
  // keeps the other thread from running.
  std::atomic<int> worker_processor_{-1}, host_processor_{-2};
  std::atomic<uint32_t> work_word_{0};  // the worker sleeps on it
  std::atomic<bool> stopping_{false};

  std::atomic<bool> poisoned_{false};
  std::mutex error_mutex_;   // guards the next three members
  char message_[1024] = {};  // a fixed size, because running out of memory is an error, too
  char subject_[256] = {};
  Code code_ = Code::kExecution;

  bool woken_ = false;    // for the thread that has taken the queue: a sleeping thread was woken lately
  bool started_ = false;  // with worker_: for the thread that enqueues, then for the destructor
  pthread_t worker_{};
};

namespace {

class CpuEvent final : public Event {
 public:
  CpuEvent(std::shared_ptr<CpuQueue::Core> core, uint64_t ticket) : core_(std::move(core)), ticket_(ticket) {}
  bool done() const override { return core_->finished(ticket_); }
  void wait() const override { core_->wait_for(ticket_); }

 private:
  const std::shared_ptr<CpuQueue::Core> core_;
  const uint64_t ticket_;
};

}  // namespace

// ---- work ---------------------------------------------------------------------------------------------------------

void CpuQueue::Core::fail(const char *label, const char *what, Code code) noexcept {
  const std::lock_guard<std::mutex> lock(error_mutex_);
  if (poisoned_.load(std::memory_order_relaxed)) return;
  std::snprintf(message_, sizeof message_, "%s: %s", label, what);
  std::snprintf(subject_, sizeof subject_, "%s", label);
  code_ = code;
  poisoned_.store(true, std::memory_order_release);
}

void CpuQueue::Core::throw_error(bool and_clear) {
  if (!poisoned()) return;
  char message[sizeof message_], subject[sizeof subject_];
  Code code;
  {
    const std::lock_guard<std::mutex> lock(error_mutex_);
    if (!poisoned_.load(std::memory_order_relaxed)) return;  // another thread has thrown it meanwhile
    std::memcpy(message, message_, sizeof message);
    std::memcpy(subject, subject_, sizeof subject);
    code = code_;
    if (and_clear) poisoned_.store(false, std::memory_order_release);
  }
  throw Error(code, message, subject);
}

// Calls fn. If it throws, poisons the queue and returns false. `label` is read only then, as fn may change it.
template <typename Fn>
bool CpuQueue::Core::guarded(const char *const &label, Fn &&fn) noexcept {
  return caught(fn, [&](const char *what, Code code) { fail(label, what, code); });
}

void CpuQueue::Core::run_program(const Program &program, const void *owner) noexcept {
  char message[sizeof message_];
  const char *label = "";
  const auto run_steps = [&] {
    const Lane lane{threads_of(program.size, num_threads_), nullptr};
    ProgramSpans spans(trace_, row_, program.name);
    for (const Step *step = program.steps, *const end = step + program.count; step != end; ++step) {
      label = step->label;
      if (!fault_.empty() && std::strstr(label, fault_.c_str())) {
        throw Error(Code::kExecution, text("made to fail by ", kFault.name));
      }
      step->kernel->run(step->args, lane);
      if (spans) spans.ended(step->info);
    }
  };
  if (!program.isolated) {
    if (poisoned() || !guarded(label, run_steps)) tell(program.failed, owner);
    return;
  }
  const bool done =
      caught(run_steps, [&](const char *what, Code) { std::snprintf(message, sizeof message, "%s: %s", label, what); });
  if (!done && program.failed) program.failed(owner, message);
}

void CpuQueue::Core::tell(void (*failed)(const void *owner, const char *message), const void *owner) noexcept {
  if (!failed) return;
  char message[sizeof message_];
  {
    const std::lock_guard<std::mutex> lock(error_mutex_);
    std::memcpy(message, message_, sizeof message);
  }
  failed(owner, message);
}

void CpuQueue::Core::do_work(Work &work) noexcept {
  const char *const label = work.label;
  switch (work.kind) {
    case Work::Kind::kRun: {
      const ThreadsScope threads(threads_of(work.program.size, num_threads_));
      run_program(work.program, work.owner.get());
      break;
    }
    case Work::Kind::kCall:
      if (!poisoned()) guarded(label, [&] { work.fn(); });
      break;
    case Work::Kind::kCopy: {
      ProgramSpans spans(trace_, row_, nullptr);
      const bool done = !poisoned() && guarded(label, [&] {
        parallel_for(Lane{num_threads_, nullptr}, int64_t(work.bytes), 1 << 20, [&](int64_t begin, int64_t end) {
          std::memcpy(static_cast<char *>(work.to) + begin, static_cast<const char *>(work.from) + begin,
                      size_t(end - begin));
        });
      });
      if (!done) tell(work.failed, work.owner.get());
      if (spans) spans.ended(SpanKind::kCopy, "copy", 2.0 * double(work.bytes));
      break;
    }
    case Work::Kind::kWait: {  // also if poisoned: events recorded later still depend on this one
      ProgramSpans spans(trace_, row_, nullptr);
      work.event->wait();
      if (spans) spans.ended(SpanKind::kWait, "wait", 0);
      break;
    }
  }
  // Releases what the work held before it counts as finished: it is free when a wait for it returns.
  work.owner.reset();
  work.fn = nullptr;
  work.event.reset();
}

void CpuQueue::Core::do_next() {
  const uint64_t before = finished_.load(std::memory_order_relaxed);
  do_work(ring_[before % kDepth]);
  finished_.store(before + 1);
  if (before + 1 >= wake_at_.load()) {
    wake_at_.exchange(kNever);
    finished_word_.fetch_add(1);
    futex_wake(finished_word_, INT_MAX);  // threads that wait for later work check again
    woken_ = true;
  }
}

// ---- waiting ------------------------------------------------------------------------------------------------------

void CpuQueue::Core::wait_for(uint64_t ticket) {
  if (finished(ticket) || working_queue == this || in_child()) return;
  // A thread that executes work of another queue does not take this one: it belongs to its own queue.
  if (!working_queue && take()) {
    const std::shared_ptr<Core> keep = shared_from_this();  // the work may hold the last reference to its queue
    {
      const ActiveScope active(1);
      const CurrentScope current(this);
      const FloatModeScope mode;
      const ThreadsScope threads(1);
      while (!finished(ticket) && next_is_serial()) do_next();
    }
    give_back();
    if (has_work() || stopping_.load()) wake_worker();
    if (finished(ticket)) return;
  }
  // Polling does not pay while the worker must still be woken: that takes long, and it may have to run on this
  // processor. A worker that waits for another one is counted as active already.
  const auto pays = [this] { return running_.load(std::memory_order_relaxed) && worker_processor_ != sched_getcpu(); };
  if (look_out(
          kWaiterLookout_ns, working_queue ? 0 : 1, [&] { return finished(ticket); }, pays))
    return;
  for (;;) {
    const uint32_t word = finished_word_.load();
    uint64_t at = wake_at_.load();
    while (ticket < at && !wake_at_.compare_exchange_weak(at, ticket)) {
    }
    if (finished_.load() >= ticket) return;
    futex_wait(finished_word_, word);
    if (finished(ticket)) return;
  }
}

// ---- enqueuing ----------------------------------------------------------------------------------------------------

Work &CpuQueue::Core::slot() {
  if (!started_) start_worker();
  const uint64_t before = queued_.load(std::memory_order_relaxed);
  if (before >= kDepth && !finished(before - kDepth + 1)) {
    if (working_queue == this) {
      throw Error(Code::kState, text(context_, ": queued work may not queue more than ", kDepth, " pieces of work"));
    }
    wait_for(before - kDepth / 2);  // waits for half of the ring, so that not every finished piece wakes this thread
  }
  return ring_[before % kDepth];
}

void CpuQueue::Core::publish() {
  host_processor_.store(sched_getcpu(), std::memory_order_relaxed);
  queued_.store(queued_.load(std::memory_order_relaxed) + 1);
  wake_worker();
}

void CpuQueue::Core::wake_worker() {
  if (!asleep_.load() || !asleep_.exchange(false)) return;
  work_word_.fetch_add(1);
  futex_wake(work_word_, 1);
}

// ---- the worker ---------------------------------------------------------------------------------------------------

void CpuQueue::Core::start_worker() {
  auto keep = std::make_unique<std::shared_ptr<Core>>(shared_from_this());
  const SignalsBlocked there;
  const int error = pthread_create(
      &worker_, nullptr,
      [](void *argument) -> void * {
        const std::unique_ptr<std::shared_ptr<Core>> core(static_cast<std::shared_ptr<Core> *>(argument));
        (*core)->work();
        return nullptr;
      },
      keep.get());
  if (error) {
    throw Error(Code::kOutOfMemory, text(context_, ": no worker thread can be started: ", std::strerror(error)),
                text(context_));
  }
  keep.release();  // the worker owns it now
  started_ = true;
}

void CpuQueue::Core::work() {
  pthread_setname_np(pthread_self(), text("cohort ", context_).substr(0, 15).c_str());
  const CurrentScope current(this);
  const FloatModeScope mode;
  omp_set_dynamic(0);
  omp_set_num_threads(num_threads_);
  for (;;) {
    const ActiveScope active(num_threads_);
    const auto ready = [this] { return has_work() ? !running_.load() : stopping_.load(); };
    for (;;) {
      if (has_work() && take()) {
        worker_processor_.store(sched_getcpu(), std::memory_order_relaxed);
        woken_ = false;
        while (has_work()) do_next();
        const bool woken = woken_;
        give_back();
        if (woken && !has_work()) sched_yield();  // the woken thread may have to run on this processor
      }
      if (stopping_.load() && !has_work()) return;
      const auto pays = [this] { return host_processor_.load(std::memory_order_relaxed) != sched_getcpu(); };
      if (!look_out(kWorkerLookout_ns, 0, ready, pays)) break;
    }
    const ActiveScope inactive(-num_threads_);
    const uint32_t word = work_word_.load();
    asleep_.store(true);
    if (!ready()) futex_wait(work_word_, word);
    asleep_.store(false);
  }
}

void CpuQueue::Core::stop() {
  if (!started_ || in_child()) return;  // a forked child does not have this thread
  if (working_queue == this) {          // the worker itself drops the last reference to the queue
    pthread_detach(worker_);
    stopping_.store(true);
    wake_worker();
    return;
  }
  wait_for(queued());
  stopping_.store(true);
  wake_worker();
  pthread_join(worker_, nullptr);
}

// ---- the queue ----------------------------------------------------------------------------------------------------

CpuQueue::CpuQueue(const Context &context, const QueueOptions &options)
    // OMP_THREAD_LIMIT may allow fewer threads; do not promise more (CpuDevice::make_kernel).
    : core_(std::make_shared<Core>(
          context, std::min(options.num_threads > 0 ? options.num_threads : default_threads(), omp_get_thread_limit()),
          options.trace)) {}

CpuQueue::~CpuQueue() { core_->stop(); }

void CpuQueue::run(const Program &program, std::shared_ptr<const void> owner) {
  core_->check_process();
  if ((program.size == WorkSize::kBrief || (program.may_run_inline && core_->shares_processor())) &&
      core_->finished_all()) {
    core_->run_here(program, owner.get());
    return;
  }
  Work &work = core_->slot();
  work.kind = Work::Kind::kRun;
  work.program = program;
  work.owner = std::move(owner);
  core_->publish();
}

void CpuQueue::call(std::function<void()> fn, const char *label) {
  core_->check_process();
  Work &work = core_->slot();
  work.kind = Work::Kind::kCall;
  work.fn = std::move(fn);
  work.label = label;
  core_->publish();
}

void CpuQueue::copy(void *to, const void *from, size_t bytes, std::shared_ptr<const void> owner,
                    void (*failed)(const void *owner, const char *message)) {
  core_->check_process();
  if (bytes == 0) return;
  if ((bytes <= kInlineCopyBytes || core_->shares_processor()) && core_->finished_all()) {
    if (!core_->poisoned()) {
      core_->copy_here(to, from, bytes);
    } else {
      core_->tell(failed, owner.get());
    }
    return;
  }
  Work &work = core_->slot();
  work.kind = Work::Kind::kCopy;
  work.to = to;
  work.from = from;
  work.bytes = bytes;
  work.failed = failed;
  work.owner = std::move(owner);
  work.label = "copy";
  core_->publish();
}

std::shared_ptr<Event> CpuQueue::record() {
  core_->check_process();
  return std::make_shared<CpuEvent>(core_, core_->queued());
}

void CpuQueue::wait(std::shared_ptr<Event> event) {
  core_->check_process();
  if (!event || event->done()) return;
  Work &work = core_->slot();
  work.kind = Work::Kind::kWait;
  work.event = std::move(event);
  core_->publish();
}

void CpuQueue::sync() {
  core_->check_process();
  core_->wait_for(core_->queued());
  core_->throw_error(/* and_clear */ true);
}

void CpuQueue::finish() noexcept { core_->wait_for(core_->queued()); }

void CpuQueue::check() const { core_->throw_error(/* and_clear */ false); }

bool CpuQueue::idle() const { return core_->finished(core_->queued()) && !core_->poisoned(); }

int CpuQueue::num_threads() const { return core_->num_threads(); }

}  // namespace cohort
