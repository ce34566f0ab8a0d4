// SPDX-License-Identifier: Apache-2.0
#include "device/timeline.hpp"

#include <exception>
#include <map>

#include "base/error.hpp"
#include "base/per_process.hpp"

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

struct ImmediateTimelines {
  std::mutex mutex;  // protects all
  std::map<Context, std::weak_ptr<Timeline>> all;
};

}  // namespace

std::shared_ptr<Timeline> immediate_timeline(const Context &asked) {
  const std::shared_ptr<Device> device = get_device(asked);
  auto &known = per_process<ImmediateTimelines>();
  const std::lock_guard<std::mutex> lock(known.mutex);
  // The device's context, because pinned and shared host memory use the host's timeline.
  std::weak_ptr<Timeline> &entry = known.all[device->context()];
  std::shared_ptr<Timeline> timeline = entry.lock();
  if (!timeline) {
    const std::shared_ptr<Queue> queue = device->create_queue(QueueOptions());
    register_queue(queue);
    entry = timeline = std::make_shared<Timeline>(queue, /* shared */ true);
  }
  return timeline;
}

}  // namespace cohort
