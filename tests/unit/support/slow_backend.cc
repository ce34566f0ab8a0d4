// SPDX-License-Identifier: Apache-2.0
// A backend whose queues are slow and run out of step, for tests of the order in which arrays are used: built as a
// separate libcohort_cuda.so with the kernels of the cpu backend. Nothing runs before a wait, or until a random choice
// lets it; then runnable work of any queue runs in an order that follows from COHORT_SLOW_SEED. A missing wait
// therefore gives a wrong result in some order.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "device/device.hpp"

namespace cohort {
namespace {

class SlowQueue;

// All queues work under one lock: one piece of work at a time.
struct Scheduler {
  std::mutex mutex;  // guards all of this, and the contents of the queues
  std::vector<SlowQueue *> queues;
  std::minstd_rand random;
  std::string seed;

  void reseed() {
    const char *value = std::getenv("COHORT_SLOW_SEED");
    if (!value || seed == value) return;
    seed = value;
    random.seed(std::minstd_rand::result_type(std::strtoul(value, nullptr, 10) + 1));
  }
  bool step();  // false: nothing may run now
  template <typename Done>
  void run_until(Done &&done) {
    for (;;) {
      {
        const std::lock_guard<std::mutex> lock(mutex);
        while (!done())
          if (!step()) break;
        if (done()) return;
      }
      usleep(20);  // another backend's event is waited for
    }
  }
};

Scheduler &scheduler() {
  static auto *const instance = new Scheduler;
  return *instance;
}

struct Marker {
  bool reached = false;
};

class SlowEvent final : public Event {
 public:
  explicit SlowEvent(std::shared_ptr<Marker> marker) : marker_(std::move(marker)) {}
  bool done() const override {
    const std::lock_guard<std::mutex> lock(scheduler().mutex);
    return reached();
  }
  void wait() const override {
    scheduler().run_until([this] { return reached(); });
  }
  bool reached() const { return marker_->reached; }

 private:
  const std::shared_ptr<Marker> marker_;
};

class SlowQueue final : public Queue {
 public:
  SlowQueue() {
    const std::lock_guard<std::mutex> lock(scheduler().mutex);
    scheduler().reseed();
    scheduler().queues.push_back(this);
  }
  ~SlowQueue() override {
    finish();
    const std::lock_guard<std::mutex> lock(scheduler().mutex);
    auto &all = scheduler().queues;
    for (size_t i = all.size(); i-- > 0;)
      if (all[i] == this) all.erase(all.begin() + std::ptrdiff_t(i));
  }
  void run(const Program &program, std::shared_ptr<const void> owner) override {
    add([this, program, owner = std::move(owner)] {
      std::string outside;
      if (program.isolated) outside.swap(message_);
      guarded(program.failed, owner.get(), [&] {
        for (size_t s = 0; s < program.count; ++s) {
          label_ = program.steps[s].label;
          program.steps[s].kernel->run(program.steps[s].args, Lane{1, nullptr});
        }
      });
      if (program.isolated) outside.swap(message_);
    });
  }
  void call(std::function<void()> fn, const char *label) override {
    add([this, fn = std::move(fn), label] {
      label_ = label;
      guarded(nullptr, nullptr, fn);
    });
  }
  void copy(void *to, const void *from, size_t bytes, std::shared_ptr<const void> owner,
            void (*failed)(const void *owner, const char *message)) override {
    add([=] {
      label_ = "copy";
      guarded(failed, owner.get(), [&] { std::memcpy(to, from, bytes); });
    });
  }
  std::shared_ptr<Event> record() override {
    const auto marker = std::make_shared<Marker>();
    add([marker] { marker->reached = true; });
    return std::make_shared<SlowEvent>(marker);
  }
  void wait(std::shared_ptr<Event> event) override { add(nullptr, std::move(event)); }
  void sync() override {
    finish();
    std::string message;
    {
      const std::lock_guard<std::mutex> lock(scheduler().mutex);
      message.swap(message_);
    }
    if (!message.empty()) throw Error(Code::kExecution, message);
  }
  void check() const override {
    const std::lock_guard<std::mutex> lock(scheduler().mutex);
    if (!message_.empty()) throw Error(Code::kExecution, message_);
  }
  void finish() noexcept override {
    scheduler().run_until([this] { return work_.empty(); });
  }
  bool idle() const override {
    const std::lock_guard<std::mutex> lock(scheduler().mutex);
    return work_.empty() && message_.empty();
  }
  int num_threads() const override { return 1; }

  // ---- with the scheduler's lock held
  bool ready() const {
    if (work_.empty()) return false;
    const Event *const event = work_.front().event.get();
    if (!event) return true;
    const auto *const own = dynamic_cast<const SlowEvent *>(event);
    return own ? own->reached() : event->done();
  }
  void run_next() {
    const Work work = std::move(work_.front());
    work_.pop_front();
    if (work.fn) work.fn();
  }

 private:
  struct Work {
    std::function<void()> fn;
    std::shared_ptr<Event> event;  // before fn
  };
  void add(std::function<void()> fn, std::shared_ptr<Event> event = nullptr) {
    Scheduler &all = scheduler();
    const std::lock_guard<std::mutex> lock(all.mutex);
    work_.push_back({std::move(fn), std::move(event)});
    for (auto steps = all.random() % 4; steps > 2; --steps) all.step();
  }
  template <typename Fn>
  void guarded(void (*failed)(const void *owner, const char *message), const void *owner, Fn &&fn) {
    if (message_.empty()) {
      try {
        fn();
        return;
      } catch (const std::exception &error) {
        message_ = std::string(label_) + ": " + error.what();
      }
    }
    if (failed) failed(owner, message_.c_str());
  }

  std::deque<Work> work_;
  std::string message_;  // of the first error
  const char *label_ = "";
};

bool Scheduler::step() {
  std::vector<SlowQueue *> ready;
  for (SlowQueue *queue : queues)
    if (queue->ready()) ready.push_back(queue);
  if (ready.empty()) return false;
  ready[random() % ready.size()]->run_next();
  return true;
}

class SlowDevice final : public Device {
 public:
  SlowDevice(const Context &context, int32_t id) : Device(context), cpu_(cpu_backend()(id)) {}
  std::shared_ptr<Memory> obtain(size_t bytes) override {
    const std::shared_ptr<Memory> memory = cpu_->allocate(bytes);
    return std::make_shared<Memory>(context(), memory->data(), bytes, [memory](void *) {});
  }
  std::shared_ptr<Queue> create_queue(const QueueOptions &) override { return std::make_shared<SlowQueue>(); }
  const KernelTable &kernels() const override { return cpu_->kernels(); }
  std::unique_ptr<Kernel> make_reorder(const TensorSpec &from, const TensorSpec &to, int num_threads) override {
    return cpu_->make_reorder(from, to, num_threads);
  }
  std::unique_ptr<Kernel> construct(const KernelEntry &entry, StepSpec &spec) override {
    return call_factory(entry, spec);
  }

 private:
  const std::shared_ptr<Device> cpu_;
};

}  // namespace
}  // namespace cohort

extern "C" __attribute__((visibility("default"))) const char *cohort_backend(int interface_version,
                                                                             const char *build_id,
                                                                             cohort::BackendExports *backend) {
  if (interface_version != cohort::kBackendInterface || std::string(build_id) != COHORT_BUILD_ID) return "stale";
  backend->create = [](int32_t id) -> cohort::Device * {
    return new cohort::SlowDevice(cohort::Context{cohort::DeviceType::kGpu, id}, id);
  };
  backend->count = [] { return 4; };
  return nullptr;
}
