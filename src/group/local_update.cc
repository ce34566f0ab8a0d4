// SPDX-License-Identifier: Apache-2.0
#include "group/local_update.hpp"

#include <atomic>
#include <deque>

#include "base/error.hpp"
#include "device/trace.hpp"
#include "group/reducer.hpp"
#include "ndarray/name_allocation.hpp"

namespace cohort {

// The parameters of one device that are updated on one of its queues.
struct LocalUpdate::QueueParams {
  std::vector<size_t> params;
  std::vector<NDArray> weights, grads;
  const UpdateSlots *slots = nullptr;  // has the states; `copy` says which copy of them
  size_t copy = 0;
  std::vector<std::unique_ptr<UpdateKernel>> kernels;  // one per parameter
  std::vector<std::unique_ptr<Job>> jobs;
};

struct LocalUpdate::Plan {
  std::unique_ptr<const UpdateSlots> slots;
  std::vector<std::string> labels;  // of each parameter, for errors
  std::deque<WorkInfo> infos;       // likewise, for traces
  WorkSize size = WorkSize::kParallel;
  std::vector<std::unique_ptr<QueueParams>> parts;
};

// One update of these parameters, in flight or free: a program that sets the update's numbers and runs all kernels. A
// job in flight is not changed; there are as many as have ever been in flight at once.
class LocalUpdate::Job {
 public:
  Job(const QueueParams &part, const std::vector<std::string> &labels, const std::deque<WorkInfo> &infos)
      : part_(part), values_(part.params.size()) {
    add_step(&begin_, labels[part.params.front()]);
    for (size_t i = 0; i < part.params.size(); ++i) {
      const size_t param = part.params[i];
      part.kernels[i]->append_steps(labels[param].c_str(), &infos[param], &steps_);
    }
    add_step(&end_, labels[part.params.back()]);
  }
  Job(const Job &) = delete;
  Job &operator=(const Job &) = delete;

  bool free() const { return !busy_.load(std::memory_order_acquire); }
  std::vector<UpdateValues> &values() { return values_; }

  void run(Queue &queue, WorkSize size, const std::shared_ptr<const Plan> &plan) {
    busy_.store(true, std::memory_order_relaxed);
    Program program{};
    program.steps = steps_.data();
    program.count = steps_.size();
    program.size = size;
    program.failed = failed;
    program.may_run_inline = true;
    program.name = "update";
    program.replay = &replay_;
    try {
      queue.run(program, std::shared_ptr<const void>(plan, this));
    } catch (...) {
      busy_.store(false, std::memory_order_relaxed);
      throw;
    }
  }

 private:
  struct Begin final : Kernel {
    explicit Begin(const Job &job) : of(job) {}
    void run(const Args &, const Lane &) const override {
      if (of.part_.grads[0].failed())
        throw Error(Code::kExecution, "the device has no gradients: its backward pass failed");
      for (size_t i = 0; i < of.values_.size(); ++i) of.part_.kernels[i]->set(of.values_[i]);
    }
    bool replays() const override { return false; }
    const Job &of;
  };
  struct End final : Kernel {
    explicit End(Job &job) : of(job) {}
    void run(const Args &, const Lane &) const override { of.busy_.store(false, std::memory_order_release); }
    bool replays() const override { return false; }
    Job &of;
  };
  static void failed(const void *owner, const char *message) {
    auto *self = static_cast<Job *>(const_cast<void *>(owner));
    const QueueParams &part = self->part_;
    for (const NDArray &weight : part.weights) weight.fail(message);
    for (const size_t param : part.params) part.slots->fail(param, part.copy, message);
    self->busy_.store(false, std::memory_order_release);
  }
  void add_step(const Kernel *kernel, const std::string &label) {
    Step step{};
    step.kernel = kernel;
    step.label = label.c_str();
    steps_.push_back(step);
  }

  const QueueParams &part_;
  std::vector<UpdateValues> values_;
  const Begin begin_{*this};
  const End end_{*this};
  std::vector<Step> steps_;
  std::unique_ptr<Replay> replay_;
  std::atomic<bool> busy_{false};
};

LocalUpdate::LocalUpdate(const ExchangeParams &params, const ExchangeDevices &devices,
                         const std::shared_ptr<Optimizer> &optimizer, UpdateMode mode)
    : devices_(devices), plan_(std::make_shared<Plan>()) {
  Plan &plan = *plan_;
  plan.slots = std::make_unique<UpdateSlots>(params, params, devices.size(), optimizer, mode);
  int64_t num_elements = 0;
  for (const ExchangeParam &param : params) {
    num_elements += param.weights[0].size();
    plan.labels.push_back(optimizer->name() + " '" + param.name + "'");
    plan.infos.emplace_back(SpanKind::kUpdate, param.name, optimizer->name());
  }
  plan.size = update_size(num_elements);
  for (size_t d = 0; d < devices.size(); ++d) {
    std::vector<std::shared_ptr<Queue>> queues{devices[d].queue};
    for (const auto &other : devices[d].others) queues.push_back(other.second);
    for (const auto &queue : queues) {
      auto part = std::make_unique<QueueParams>();
      part->slots = plan.slots.get();
      part->copy = plan.slots->num_copies() > 1 ? d : 0;
      for (size_t p = 0; p < params.size(); ++p) {
        const NDArray &weight = params[p].weights[d];
        if (devices[d].queue_for(weight) != queue) continue;
        const auto make = [&] {
          return optimizer->make_kernel(weight.context(), weight.dtype(), weight.shape(), queue->num_threads());
        };
        auto kernel = name_allocation(make, plan.labels[p]);
        void *states[UpdateSlots::kMostStates] = {};
        plan.slots->find_states(p, part->copy, 0, states);
        plan.infos[p].bytes = kernel->bytes();
        kernel->bind(weight.data(), params[p].grads[d].data(), states);
        part->params.push_back(p);
        part->weights.push_back(weight);
        part->grads.push_back(params[p].grads[d]);
        part->kernels.push_back(std::move(kernel));
      }
      if (part->params.empty()) continue;
      plan.parts.push_back(std::move(part));
      targets_.push_back({d, queue});
    }
  }
}

bool LocalUpdate::fits(const Optimizer &optimizer, UpdateMode mode) const {
  return plan_->slots->fits(optimizer, mode);
}

void LocalUpdate::run() {
  const size_t num_copies = plan_->slots->num_copies();
  std::vector<std::shared_ptr<Timeline>> timelines;
  for (const ExchangeDevice &device : devices_) timelines.push_back(device.timeline);
  plan_->slots->begin_states(timelines);
  std::vector<Job *> jobs;  // find all before any is queued
  for (const auto &part : plan_->parts) {
    Job *job = nullptr;
    for (const auto &known : part->jobs)
      if (known->free()) job = known.get();
    if (!job) job = part->jobs.emplace_back(std::make_unique<Job>(*part, plan_->labels, plan_->infos)).get();
    jobs.push_back(job);
  }
  plan_->slots->count(&values_, [&] {
    for (size_t i = 0; i < targets_.size(); ++i) {
      const Target &target = targets_[i];
      const QueueParams &part = *plan_->parts[i];
      for (size_t k = 0; k < part.params.size(); ++k) {
        jobs[i]->values()[k] = values_[part.params[k] * num_copies + (num_copies > 1 ? target.device : 0)];
      }
      // Ordered by the device's own queue, on whichever queue it runs.
      const std::shared_ptr<Queue> &main = devices_[target.device].queue;
      if (target.queue != main) target.queue->wait(main->record());
      jobs[i]->run(*target.queue, plan_->size, plan_);
      if (target.queue != main) main->wait(target.queue->record());
    }
  });
}

}  // namespace cohort
