// SPDX-License-Identifier: Apache-2.0
#include "group/summed_update.hpp"

#include <algorithm>
#include <cstring>

#include "ndarray/name_allocation.hpp"

namespace cohort {

WeightMirrors::WeightMirrors(const ExchangeParams &params, bool wanted) : params_(params), mirrored_(params) {
  for (ExchangeParam &param : mirrored_) {
    versions_.emplace_back(param.weights.size(), 0);
    changed_.emplace_back(param.weights.size(), true);
    for (NDArray &weight : param.weights) {
      if (!wanted || weight.context().on_host()) continue;
      weight = NDArray::create(weight.shape(), weight.dtype(), Context(), false);
      any_ = true;
    }
  }
}

void WeightMirrors::copy_to_host(size_t num_copies, const ExchangeDevices &devices,
                                 const std::shared_ptr<const void> &owner) const {
  for (size_t p = 0; any_ && p < params_.size(); ++p) {
    for (size_t d = 0; d < num_copies; ++d) {
      const NDArray &weight = params_[p].weights[d], &mirror = mirrored_[p].weights[d];
      if (weight.same_memory(mirror)) continue;
      if (!changed_[p][d]) continue;
      devices[d].queue_for(weight)->copy(mirror.data(), weight.data(), weight.bytes(), owner);
    }
  }
}

void WeightMirrors::copy_to_devices(const ExchangeDevices &devices, const std::shared_ptr<const void> &owner) const {
  for (size_t p = 0; any_ && p < params_.size(); ++p) {
    for (size_t d = 0; d < devices.size(); ++d) {
      const NDArray &weight = params_[p].weights[d], &mirror = mirrored_[p].weights[d];
      if (weight.same_memory(mirror)) continue;
      devices[d].queue_for(weight)->copy(weight.data(), mirror.data(), weight.bytes(), owner);
    }
  }
}

void WeightMirrors::find_changed() {
  for (size_t p = 0; any_ && p < params_.size(); ++p) {
    for (size_t d = 0; d < versions_[p].size(); ++d) {
      const NDArray &weight = params_[p].weights[d];
      changed_[p][d] = weight.exposed() || versions_[p][d] != weight.version();
    }
  }
}

void WeightMirrors::note_versions() {
  for (size_t p = 0; any_ && p < params_.size(); ++p)
    for (size_t d = 0; d < versions_[p].size(); ++d) versions_[p][d] = params_[p].weights[d].version();
}

SummedUpdatePlan::SummedUpdatePlan(std::shared_ptr<WeightMirrors> weights, const GradientReducer &reducer,
                                   const std::shared_ptr<Optimizer> &optimizer, UpdateMode mode)
    : weights_(std::move(weights)),
      pieces_(reducer.pieces()),
      slots_(weights_->mirrored(), weights_->params(), weights_->mirrored()[0].weights.size(), optimizer, mode),
      on_devices_(reducer.on_devices()) {
  for (const ExchangeParam &param : weights_->params()) {
    labels_.push_back(optimizer->name() + " '" + param.name + "'");
    infos_.emplace_back(SpanKind::kUpdate, param.name, optimizer->name());
  }
  if (optimizer->updates_whole() && !on_devices_) make_whole_params(reducer, *optimizer);
  for (const Worker &worker : reducer.workers()) {
    Kernels &kernels = kernels_.emplace_back();
    if (on_devices_) {
      make_bound(kernels_.size() - 1, worker, reducer, *optimizer);
      continue;
    }
    for (const std::vector<Piece> &bucket : *pieces_) {
      kernels.of.emplace_back();
      for (const Piece &piece : bucket) {
        if (!wholes_.empty()) {
          kernels.of.back().push_back(wholes_[size_t(piece.param)].kernel.get());
          continue;
        }
        const Dtype dtype = weights_->params()[size_t(piece.param)].weights[0].dtype();
        std::unique_ptr<UpdateKernel> &kernel = kernels.all[{dtype, piece.count}];
        if (!kernel) kernel = optimizer->make_kernel(worker.context, dtype, {piece.count}, worker.num_threads);
        kernels.of.back().push_back(kernel.get());
      }
    }
  }
}

// Any worker may run a parameter's kernel: it is made for the worker with most threads.
void SummedUpdatePlan::make_whole_params(const GradientReducer &reducer, const Optimizer &optimizer) {
  const Worker *most = &reducer.workers()[0];
  for (const Worker &worker : reducer.workers())
    if (worker.num_threads > most->num_threads) most = &worker;
  const ExchangeParams &params = weights_->params();
  num_pieces_.resize(params.size());
  for (const std::vector<Piece> &bucket : *pieces_)
    for (const Piece &piece : bucket) ++num_pieces_[size_t(piece.param)];
  for (size_t p = 0; p < params.size(); ++p) {
    const NDArray &weight = params[p].weights[0];
    WholeParam &whole = wholes_.emplace_back();
    name_allocation(
        [&] {
          whole.kernel = optimizer.make_kernel(most->context, weight.dtype(), weight.shape(), most->num_threads);
          if (num_pieces_[p] > 1) whole.sum = get_device(most->context)->allocate(weight.bytes());
        },
        labels_[p]);
  }
}

// Returns the sum of the whole parameter once its last piece is there, else null.
const void *SummedUpdatePlan::gather(const Piece &piece, const void *sum, std::atomic<int> *missing) const {
  const size_t param = size_t(piece.param), size = dtype_size(weights_->params()[param].weights[0].dtype());
  const WholeParam &whole = wholes_[param];
  if (!whole.sum) return sum;
  auto *const all = static_cast<char *>(whole.sum->data());
  std::memcpy(all + size_t(piece.begin) * size, sum, size_t(piece.count) * size);
  return missing[param].fetch_sub(1, std::memory_order_acq_rel) == 1 ? all : nullptr;
}

void SummedUpdatePlan::make_bound(size_t worker, const Worker &who, const GradientReducer &reducer,
                                  const Optimizer &optimizer) {
  if (worker >= slots_.num_copies()) return;
  for (const std::vector<Piece> &bucket : *pieces_) {
    for (const Piece &piece : bucket) {
      const auto param = size_t(piece.param);
      const NDArray &weight = weights_->params()[param].weights[worker];
      auto kernel = optimizer.make_kernel(who.context, weight.dtype(), weight.shape(), who.num_threads);
      void *states[UpdateSlots::kMostStates] = {};
      slots_.find_states(param, worker, 0, states);
      kernel->bind(weight.data(), reducer.sum_of(param, worker), states);
      infos_[param].bytes = kernel->bytes();
      kernels_[worker].bound.emplace_back(param, std::move(kernel));
    }
  }
}

void SummedUpdatePlan::set_numbers(size_t worker, const std::vector<UpdateValues> &values) const {
  for (const auto &[param, kernel] : kernels_[worker].bound) kernel->set(values[param * slots_.num_copies() + worker]);
}

void SummedUpdatePlan::append_steps(size_t worker, std::vector<Step> *steps) const {
  for (const auto &[param, kernel] : kernels_[worker].bound)
    kernel->append_steps(labels_[param].c_str(), &infos_[param], steps);
}

void SummedUpdatePlan::update_piece(size_t worker, size_t bucket, size_t index, const void *sum,
                                    const std::vector<UpdateValues> &values, std::atomic<int> *missing,
                                    const Lane &lane) const {
  const size_t num_copies = slots_.num_copies();
  Piece piece = (*pieces_)[bucket][index];
  const auto param = size_t(piece.param);
  const std::vector<NDArray> &weights = weights_->mirrored()[param].weights;
  if (!wholes_.empty()) {
    sum = gather(piece, sum, missing);
    if (!sum) return;
    piece.begin = 0, piece.count = weights[0].size();
  }
  UpdateKernel &kernel = *kernels_[worker].of[bucket][index];
  const WorkSpan span(&infos_[param], kernel.bytes() * double(num_copies));
  for (size_t c = 0; c < num_copies; ++c) {
    void *states[UpdateSlots::kMostStates] = {};
    slots_.find_states(param, c, piece.begin, states);
    kernel.set(values[param * num_copies + c], piece.begin);
    kernel.bind(address_of(weights[c], piece.begin), sum, states);
    kernel.run(lane);
  }
  const size_t bytes = size_t(piece.count) * dtype_size(weights[0].dtype());
  for (size_t d = num_copies; d < weights.size(); ++d) {
    std::memcpy(address_of(weights[d], piece.begin), address_of(weights[0], piece.begin), bytes);
  }
}

void SummedUpdatePlan::broadcast(const ExchangeDevices &devices, const std::shared_ptr<const void> &owner) const {
  if (!on_devices_ || slots_.num_copies() == devices.size()) return;
  for (const ExchangeParam &param : weights_->params()) {
    for (size_t d = 1; d < devices.size(); ++d) {
      devices[0].queue->copy(param.weights[d].data(), param.weights[0].data(), param.weights[d].bytes(), owner);
    }
  }
  const std::shared_ptr<Event> copied = devices[0].queue->record();
  for (size_t d = 1; d < devices.size(); ++d) devices[d].queue->wait(copied);
}

void SummedUpdatePlan::fail(size_t device, const char *message) const noexcept {
  const ExchangeParams &params = weights_->params();
  for (size_t p = 0; p < params.size(); ++p) {
    params[p].weights[device].fail(message);
    slots_.fail(p, slots_.num_copies() > 1 ? device : 0, message);
  }
}

// The steps on one device: set the numbers, then run all kernels.
struct SummedUpdate::OnDevice {
  struct Begin final : Kernel {
    Begin(const SummedUpdate &update, size_t on) : of(update), worker(on) {}
    void run(const Args &, const Lane &) const override { of.plan_->set_numbers(worker, of.values_); }
    bool replays() const override { return false; }
    const SummedUpdate &of;
    const size_t worker;
  };
  OnDevice(const SummedUpdate &update, size_t worker) : begin(update, worker) {
    Step step{};
    step.kernel = &begin;
    step.label = kExchangeLabel;
    steps.push_back(step);
    update.plan_->append_steps(worker, &steps);
  }
  const Begin begin;
  std::vector<Step> steps;
  std::unique_ptr<Replay> replay;
};

SummedUpdate::SummedUpdate(std::shared_ptr<const SummedUpdatePlan> plan)
    : plan_(std::move(plan)), missing_(new std::atomic<int>[plan_->pieces_to_gather().size()]) {}
SummedUpdate::~SummedUpdate() = default;

Program SummedUpdate::steps(size_t worker) {
  if (worker >= on_devices_.size()) on_devices_.resize(worker + 1);
  std::unique_ptr<OnDevice> &own = on_devices_[worker];
  if (!own) own = std::make_unique<OnDevice>(*this, worker);
  Program program{};
  program.steps = own->steps.data();
  program.count = own->steps.size();
  program.name = "update";
  program.replay = &own->replay;
  return program;
}

void SummedUpdate::before_sums(const ExchangeDevices &devices) {
  const std::vector<int> &wanted = plan_->pieces_to_gather();
  for (size_t p = 0; p < wanted.size(); ++p) missing_[p].store(wanted[p], std::memory_order_relaxed);
  plan_->weights().copy_to_host(plan_->slots().num_copies(), devices, plan_);
}

void SummedUpdate::after_sums(const ExchangeDevices &devices) {
  plan_->weights().copy_to_devices(devices, plan_);
  plan_->broadcast(devices, plan_);
}

void SummedUpdate::consume(size_t worker, size_t bucket, size_t index, const void *sum, const Lane &lane) {
  plan_->update_piece(worker, bucket, index, sum, values_, missing_.get(), lane);
}

void SummedUpdate::fail(size_t device, const char *message) noexcept { plan_->fail(device, message); }

}  // namespace cohort
