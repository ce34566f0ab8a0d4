// SPDX-License-Identifier: Apache-2.0
#include "group/staged_update.hpp"

#include "base/error.hpp"

namespace cohort {

// One update in flight: the values it was asked for with, and the program that works them off.
struct StagedUpdate::Job final : Kernel {
  const StagedUpdate *of = nullptr;
  std::shared_ptr<UpdatePlan> plan;
  std::vector<UpdateValues> values;
  Step step{};
  mutable std::atomic<bool> busy{false};

  void run(const Args &, const Lane &lane) const override {
    for (const NDArray &grad : of->params_[0].grads) {
      if (grad.storage()->failed())
        throw Error(Code::kExecution, "a device has no gradients: its backward pass failed");
    }
    for (size_t b = 0; b < plan->num_buckets(); ++b) {
      for (size_t i = 0; i < plan->pieces(b).size(); ++i) plan->run_piece(of->store_device_, b, i, values, lane);
    }
    busy.store(false, std::memory_order_release);
  }
  static void failed(const void *owner, const char *message) {
    const auto *self = static_cast<const Job *>(owner);
    for (const ExchangeParam &param : self->of->params_)
      for (const NDArray &weight : param.weights) weight.storage()->fail(message);
    self->busy.store(false, std::memory_order_release);
  }
};

StagedUpdate::StagedUpdate(const std::vector<ExchangeParam> &params, const std::vector<std::shared_ptr<Queue>> &queues,
                           const std::shared_ptr<Optimizer> &optimizer, UpdateMode mode)
    : params_(params), queues_(queues), mode_(mode), mirrors_(params) {
  for (size_t d = 0; d < queues.size(); ++d) {
    on_host_.push_back(params[0].weights[d].context().on_host());
    if (on_host_[d] && !store_) {
      store_ = queues[d];
      store_device_ = d;
    }
  }
  if (!store_) store_ = get_device(Context())->create_queue(QueueOptions());
  for (ExchangeParam &mirror : mirrors_) {
    for (size_t d = 0; d < queues.size(); ++d) {
      if (on_host_[d]) continue;
      mirror.weights[d] = NDArray::create(mirror.weights[d].shape(), mirror.weights[d].dtype(), Context(), false);
      mirror.grads[d] = NDArray::create(mirror.grads[d].shape(), mirror.grads[d].dtype(), Context(), false);
    }
  }
  versions_.assign(params.size(), std::vector<uint64_t>(queues.size(), 0));
  std::vector<std::shared_ptr<Queue>> workers = queues;
  for (size_t d = 0; d < queues.size(); ++d)
    if (!on_host_[d]) workers[d] = store_;
  plan_ = std::make_shared<UpdatePlan>(mirrors_, std::vector<int>{int(params.size())}, workers, optimizer, mode, true);
}

StagedUpdate::~StagedUpdate() { store_->finish(); }

StagedUpdate::Job &StagedUpdate::free_job() {
  for (const auto &job : jobs_)
    if (!job->busy.load(std::memory_order_acquire)) return *job;
  auto job = std::make_shared<Job>();
  job->of = this;
  job->plan = plan_;
  job->step.kernel = job.get();
  job->step.label = kExchangeLabel;
  jobs_.push_back(std::move(job));
  return *jobs_.back();
}

// Gradients, and weights that are not known on the host: those that the update starts from.
void StagedUpdate::bring_down(size_t device) {
  Queue &queue = *queues_[device];
  for (size_t p = 0; p < params_.size(); ++p) {
    const NDArray &grad = params_[p].grads[device], &weight = params_[p].weights[device];
    const NDArray &grad_mirror = mirrors_[p].grads[device], &weight_mirror = mirrors_[p].weights[device];
    queue.copy(grad_mirror.data(), grad.data(), grad.bytes(), grad_mirror.storage());
    const bool starts_here = mode_ == UpdateMode::kPerDevice || device == 0;
    if (starts_here && (weight.storage()->exposed() || versions_[p][device] != weight.storage()->version())) {
      queue.copy(weight_mirror.data(), weight.data(), weight.bytes(), weight_mirror.storage());
    }
  }
}

void StagedUpdate::take_up(size_t device) {
  Queue &queue = *queues_[device];
  for (size_t p = 0; p < params_.size(); ++p) {
    const NDArray &from = mirrors_[p].weights[device], &to = params_[p].weights[device];
    queue.copy(to.data(), from.data(), to.bytes(), from.storage());
    if (mode_ != UpdateMode::kPerDevice) continue;
    const NDArray &sum = mirrors_[p].grads[device], &grad = params_[p].grads[device];
    queue.copy(grad.data(), sum.data(), grad.bytes(), sum.storage());
  }
}

void StagedUpdate::run() {
  Job &job = free_job();
  for (size_t d = 0; d < queues_.size(); ++d) {
    if (!on_host_[d]) bring_down(d);
    if (queues_[d] != store_) store_->wait(queues_[d]->record());
  }
  plan_->begin(&job.values);
  job.busy.store(true, std::memory_order_relaxed);
  Program program{};
  program.steps = &job.step;
  program.count = 1;
  program.failed = Job::failed;
  std::shared_ptr<Job> owner;
  for (const auto &known : jobs_)
    if (known.get() == &job) owner = known;
  store_->run(program, owner);
  const std::shared_ptr<Event> updated = store_->record();
  for (size_t d = 0; d < queues_.size(); ++d) {
    if (queues_[d] != store_) queues_[d]->wait(updated);
    if (!on_host_[d]) take_up(d);
  }
}

void StagedUpdate::note_versions() {
  for (size_t p = 0; p < params_.size(); ++p)
    for (size_t d = 0; d < queues_.size(); ++d) versions_[p][d] = params_[p].weights[d].storage()->version();
}

}  // namespace cohort
