// SPDX-License-Identifier: Apache-2.0
// The queue of a cpu(i) device: a ring of work, a worker thread for it, and shortcuts that spare a small network the
// cost of waking that thread.
#pragma once

#include <functional>
#include <memory>

#include "device/device.hpp"

namespace cohort {

// The worker is the master of an OpenMP team of num_threads threads, which loops of ours and primitives of oneDNN use;
// it starts with the first work that needs it. One thread at a time executes work, in order:
// - a brief program on an idle queue runs on the caller before run() returns;
// - a thread that waits executes work for one thread itself (all work of a queue of one thread, else serial programs),
//   if the worker has not begun it;
// - the worker executes everything else. After its last work it polls for more for some microseconds, if processors are
//   idle, and then sleeps.
// At most kDepth pieces of work are queued; enqueuing more blocks until there is room.
// In a forked child all calls on a queue of the parent throw kState, and its destructor returns at once.
class CpuQueue final : public Queue {
 public:
  static constexpr size_t kDepth = 256;

  CpuQueue(const Context &context, const QueueOptions &options);
  ~CpuQueue() override;
  CpuQueue(const CpuQueue &) = delete;
  CpuQueue &operator=(const CpuQueue &) = delete;

  void run(const Program &program, std::shared_ptr<const void> owner) override;
  void call(std::function<void()> fn, const char *label) override;
  void copy(void *to, const void *from, size_t bytes, std::shared_ptr<const void> owner,
            void (*failed)(const void *owner, const char *message)) override;
  std::shared_ptr<Event> record() override;
  void wait(std::shared_ptr<Event> event) override;
  void sync() override;
  void finish() noexcept override;
  void check() const override;
  bool idle() const override;
  int num_threads() const override;

  class Core;  // shared with the worker and events

 private:
  const std::shared_ptr<Core> core_;
};

}  // namespace cohort
