// SPDX-License-Identifier: Apache-2.0
// The devices of a group without the group: queues, parameters, and gradients written by queued work, as executors
// would write them. For tests of exchanges and reducers.
#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "group/exchange.hpp"
#include "support/unit.hpp"

namespace cohort {

constexpr int64_t kSizes[] = {3, 20000, 50, 40000, 1, 16384, 70};

inline float gradient_value(size_t param, size_t device, int64_t i, int step) {
  return float((i * 7 + int64_t(param) * 13 + int64_t(device) * 29 + step * 3) % 101) * 0.01f - 0.5f;
}

inline float sum_of(size_t param, size_t num_devices, int64_t i, int step) {
  float sum = gradient_value(param, 0, i, step);
  for (size_t d = 1; d < num_devices; ++d) sum += gradient_value(param, d, i, step);
  return sum;
}

inline float first_weight(size_t param, int64_t i) { return float((i + int64_t(param)) % 17) * 0.1f; }

// Forwards calls to a queue, and throws bad_alloc instead of the call at which a countdown reaches zero.
class FailingQueue final : public Queue {
 public:
  FailingQueue(std::shared_ptr<Queue> queue, std::shared_ptr<std::atomic<int>> countdown)
      : queue_(std::move(queue)), countdown_(std::move(countdown)) {}
  void run(const Program &program, std::shared_ptr<const void> owner) override {
    count();
    queue_->run(program, std::move(owner));
  }
  void call(std::function<void()> fn, const char *label) override { queue_->call(std::move(fn), label); }
  void copy(void *to, const void *from, size_t bytes, std::shared_ptr<const void> owner,
            void (*failed)(const void *owner, const char *message)) override {
    count();
    queue_->copy(to, from, bytes, std::move(owner), failed);
  }
  std::shared_ptr<Event> record() override {
    count();
    return queue_->record();
  }
  void wait(std::shared_ptr<Event> event) override {
    count();
    queue_->wait(std::move(event));
  }
  void sync() override { queue_->sync(); }
  void finish() noexcept override { queue_->finish(); }
  void check() const override { queue_->check(); }
  bool idle() const override { return queue_->idle(); }
  int num_threads() const override { return queue_->num_threads(); }

 private:
  void count() const {
    if (*countdown_ > 0 && --*countdown_ == 0) throw std::bad_alloc();
  }
  const std::shared_ptr<Queue> queue_;
  const std::shared_ptr<std::atomic<int>> countdown_;
};

struct DevicesOptions {
  size_t num_devices = 2;
  unsigned gpus = 0;    // bit i: device i presents itself as a gpu (it is none)
  bool placed = false;  // every second parameter is on another context than its device, as with group2ctx
};

struct Devices {
  std::vector<std::shared_ptr<Queue>> queues;  // the devices' own
  ExchangeDevices devices;
  ExchangeParams params;
  std::shared_ptr<std::atomic<int>> countdown = std::make_shared<std::atomic<int>>(0);  // counts down to the call that
                                                                                        // fails; 0: none
  std::shared_ptr<std::atomic<int>> released = std::make_shared<std::atomic<int>>(0);   // weights

  explicit Devices(const DevicesOptions &options) {
    for (size_t d = 0; d < options.num_devices; ++d) {
      const bool gpu = (options.gpus >> d) & 1;
      const Context here{gpu ? DeviceType::kGpu : DeviceType::kCpu, int32_t(d)};
      devices.push_back({here, make_queue(d), std::make_shared<Timeline>(), {}});
      queues.push_back(devices[d].queue);
      devices[d].timeline->add(devices[d].queue);
      // One of the two has to be a gpu; kernels exist for a cpu only.
      const Context there{gpu ? DeviceType::kCpu : DeviceType::kGpu, int32_t(d + options.num_devices)};
      if (!options.placed) continue;
      devices[d].others.emplace_back(there, make_queue(d + options.num_devices));
      devices[d].timeline->add(devices[d].others[0].second);
    }
    for (size_t p = 0; p < std::size(kSizes); ++p) {
      ExchangeParam param;
      param.name = "p" + std::to_string(p) + "_weight";
      param.position = int(p);
      for (const ExchangeDevice &device : devices) {
        const Context &context = options.placed && p % 2 ? device.others[0].first : device.context;
        param.weights.push_back(array_on(context, kSizes[p], released));
        param.grads.push_back(array_on(context, kSizes[p], nullptr));
        for (int64_t i = 0; i < kSizes[p]; ++i) param.weights.back().data_as<float>()[i] = first_weight(p, i);
      }
      params.push_back(param);
    }
  }

  // An array on the host, whatever its context says. `released` counts freed ones; null: this one is not counted.
  static NDArray array_on(const Context &context, int64_t size, const std::shared_ptr<std::atomic<int>> &released) {
    const NDArray array = NDArray::create(Shape{size}, Dtype::kFloat32, Context());
    auto memory = std::make_shared<Memory>(context, array.data(), array.bytes(), [array, released](void *) {
      if (released) ++*released;
    });
    return NDArray::wrap(std::move(memory), Shape{size}, Dtype::kFloat32);
  }

  std::shared_ptr<Queue> make_queue(size_t id) const {
    QueueOptions options;
    options.num_threads = 1;
    const auto queue = get_device({DeviceType::kCpu, int32_t(id)})->create_queue(options);
    return std::make_shared<FailingQueue>(queue, countdown);
  }

  // Writes gradients bucket by bucket; the devices take different times. `fails`: that device throws half-way. `owner`:
  // an Exchange or a GradientReducer.
  template <typename Owner>
  void backward(Owner &owner, const std::vector<int> &ends, int step, int fails = -1) {
    owner.begin_backward();
    for (size_t d = 0; d < queues.size(); ++d) {
      const BucketPrograms after = owner.after_bucket(d);
      int begin = 0;
      for (size_t b = 0; b < ends.size(); ++b) {
        const int end = ends[b];
        const bool fail = int(d) == fails && b == ends.size() / 2;
        std::vector<NDArray> grads;
        for (int p = begin; p < end; ++p) grads.push_back(params[size_t(p)].grads[d]);
        for (const NDArray &grad : grads) grad.begin_write(devices[d].timeline);
        queues[d]->call(
            [grads, d, begin, step, fail] {
              if (fail) throw Error(Code::kExecution, "planted");
              std::this_thread::sleep_for(std::chrono::microseconds((step * 37 + int(d) * 91 + begin * 53) % 200));
              for (size_t p = 0; p < grads.size(); ++p) {
                float *const to = grads[p].data_as<float>();
                for (int64_t i = 0; i < grads[p].size(); ++i) to[i] = gradient_value(size_t(begin) + p, d, i, step);
              }
            },
            "backward");
        if (b < after.count) queues[d]->run(after.programs[b], after.owner);
        begin = end;
      }
    }
  }

  // Queued work of this device finds that it has not written a gradient when it is released; the device goes on.
  std::promise<void> fail_gradient(size_t param, size_t device) {
    std::promise<void> go_on;
    queues[device]->call(
        [grad = params[param].grads[device], held = go_on.get_future().share()] {
          held.wait_for(std::chrono::seconds(20));
          grad.fail("planted");
        },
        "backward");
    return go_on;
  }

  void sync() const {
    for (const ExchangeDevice &device : devices) {
      device.queue->sync();
      for (const auto &other : device.others) other.second->sync();
    }
  }
};

}  // namespace cohort
