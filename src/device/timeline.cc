// SPDX-License-Identifier: Apache-2.0
#include "device/timeline.hpp"

#include <pthread.h>

#include <atomic>
#include <exception>
#include <map>

#include "base/error.hpp"

namespace cohort {

void Timeline::add(std::shared_ptr<Queue> queue) {
  const std::lock_guard<std::mutex> lock(mutex_);
  queues_.push_back(std::move(queue));
}

std::vector<std::shared_ptr<Queue>> Timeline::queues() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return queues_;
}

void Timeline::record(std::vector<std::shared_ptr<Event>> *events) const {
  for (const std::shared_ptr<Queue> &queue : queues()) {
    if (queue->idle()) continue;
    std::shared_ptr<Event> event = queue->record();
    if (!event->done()) events->push_back(std::move(event));
  }
}

void Timeline::wait_for(const std::vector<std::shared_ptr<Event>> &events) const {
  for (const std::shared_ptr<Queue> &queue : queues())
    for (const std::shared_ptr<Event> &event : events) queue->wait(event);
}

void Timeline::check_first(const std::function<void()> &check, const char *label) const {
  for (const std::shared_ptr<Queue> &queue : queues()) queue->call(check, label);
}

bool Timeline::idle() const {
  for (const std::shared_ptr<Queue> &queue : queues())
    if (!queue->idle()) return false;
  return true;
}

void Timeline::finish() const {
  for (const std::shared_ptr<Queue> &queue : queues())
    if (!queue->idle()) queue->record()->wait();
}

bool Timeline::has_no_pending_failure() const {
  if (shared_) return idle();
  for (const std::shared_ptr<Queue> &queue : queues()) {
    try {
      queue->check();
    } catch (const Error &) {
      return false;
    }
  }
  return true;
}

void Timeline::sync() const {
  std::exception_ptr first;
  for (const std::shared_ptr<Queue> &queue : queues()) {
    try {
      queue->sync();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

namespace {

struct Immediate {
  std::mutex mutex;  // guards all
  std::map<Context, std::weak_ptr<Timeline>> all;
};

std::atomic<Immediate *> known_immediate{nullptr};  // never destroyed: they outlive static objects

// A forked child starts anew: it has none of the threads, and nobody to unlock what they had locked.
Immediate &immediate() {
  Immediate *known = known_immediate.load(std::memory_order_acquire);
  if (known) return *known;
  static const int registered = pthread_atfork(nullptr, nullptr, [] { known_immediate.store(nullptr); });
  (void)registered;
  auto made = std::make_unique<Immediate>();
  if (known_immediate.compare_exchange_strong(known, made.get())) return *made.release();
  return *known;
}

}  // namespace

std::shared_ptr<Timeline> immediate_timeline(const Context &asked) {
  const std::shared_ptr<Device> device = get_device(asked);
  Immediate &known = immediate();
  const std::lock_guard<std::mutex> lock(known.mutex);
  std::weak_ptr<Timeline> &entry = known.all[device->context()];  // pinned and shared host memory is that of the host
  std::shared_ptr<Timeline> timeline = entry.lock();
  if (!timeline) {
    const std::shared_ptr<Queue> queue = device->create_queue(QueueOptions());
    register_queue(queue);
    entry = timeline = std::make_shared<Timeline>(queue, /* shared */ true);
  }
  return timeline;
}

}  // namespace cohort
