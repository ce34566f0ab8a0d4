// SPDX-License-Identifier: Apache-2.0
#include "group/update_plan.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"

namespace cohort {
namespace {

constexpr int64_t kPieceElements = 16384;  // of one thread: the sum takes 64 KiB of float32
constexpr size_t kMostStates = 4;
constexpr char kSum[] = "_sum_gradients";

void *at(const NDArray &array, int64_t element) {
  return static_cast<char *>(array.data()) + size_t(element) * dtype_size(array.dtype());
}

// A failed backward pass leaves no gradients to update from.
void check_gradients(const std::vector<ExchangeParam> &params, size_t device) {
  if (!params.empty() && params[0].grads[device].storage()->failed()) {
    throw Error(Code::kExecution, text("device ", device, " has no gradients: its backward pass failed"));
  }
}

}  // namespace

// ---- each device for itself -----------------------------------------------------------------------------------------

LocalUpdate::LocalUpdate(const std::vector<ExchangeParam> &params, size_t device,
                         const std::vector<std::unique_ptr<UpdateKernel>> &kernels,
                         const std::vector<std::string> &labels)
    : params_(params), device_(device), kernels_(kernels), values_(params.size()) {
  Step begin{};
  begin.kernel = &begin_;
  begin.label = "update";
  steps_.push_back(begin);
  for (size_t p = 0; p < params.size(); ++p) kernels[p]->append_steps(labels[p].c_str(), &steps_);
  Step end{};
  end.kernel = &end_;
  end.label = "update";
  steps_.push_back(end);
}

void LocalUpdate::Begin::run(const Args &, const Lane &) const {
  check_gradients(of_.params_, of_.device_);
  for (size_t p = 0; p < of_.kernels_.size(); ++p) of_.kernels_[p]->set(of_.values_[p]);
}

void LocalUpdate::failed(const void *owner, const char *message) {
  auto *self = static_cast<LocalUpdate *>(const_cast<void *>(owner));
  for (const ExchangeParam &param : self->params_) param.weights[self->device_].storage()->fail(message);
  self->busy_.store(false, std::memory_order_release);
}

void LocalUpdate::run(Queue &queue, bool brief, const std::shared_ptr<const void> &keeper) {
  busy_.store(true, std::memory_order_relaxed);
  Program program{};
  program.steps = steps_.data();
  program.count = steps_.size();
  program.brief = brief;
  program.failed = failed;
  program.here = true;
  try {
    queue.run(program, std::shared_ptr<const void>(keeper, this));
  } catch (...) {
    busy_.store(false, std::memory_order_relaxed);
    throw;
  }
}

// ---- the plan -------------------------------------------------------------------------------------------------------

UpdatePlan::UpdatePlan(const std::vector<ExchangeParam> &params, const std::vector<int> &bucket_params,
                       const std::vector<std::shared_ptr<Queue>> &queues, const std::shared_ptr<Optimizer> &optimizer,
                       UpdateMode mode, bool shared)
    : params_(params),
      optimizer_(optimizer),
      generation_(optimizer->generation()),
      mode_(mode),
      num_devices_(queues.size()),
      num_copies_(mode == UpdateMode::kOnStore ? 1 : queues.size()) {
  for (const ExchangeParam &param : params_) {
    num_elements_ += param.weights[0].size();
    labels_.push_back(optimizer->name() + " '" + param.name + "'");
    for (size_t c = 0; c < num_copies_; ++c) slots_.push_back(&optimizer->slot(param.name, c));
  }
  // All slots before any states: a further copy may have to go on from what was loaded for the first.
  for (size_t s = 0; s < slots_.size(); ++s) {
    const size_t copy = s % num_copies_;
    states_.push_back(optimizer->states(*slots_[s], params_[s / num_copies_].weights[copy]));
    if (states_.back().size() > kMostStates)
      throw Error(Code::kInternal, "an optimizer with more states than expected");
    for (const NDArray &state : states_.back()) state.storage()->attach(queues[copy]);
  }
  if (shared) {
    int num_threads = 1;
    for (const auto &queue : queues) num_threads = std::max(num_threads, queue->num_threads());
    make_pieces(bucket_params, num_threads);
    make_workers(queues);
  } else {
    make_locals(queues);
  }
}

void UpdatePlan::begin(std::vector<UpdateValues> *values) {
  values->resize(slots_.size());
  for (size_t s = 0; s < slots_.size(); ++s) (*values)[s] = optimizer_->begin_update(*slots_[s]);
}

void UpdatePlan::make_pieces(const std::vector<int> &bucket_params, int num_threads) {
  size_t param = 0;
  for (int end : bucket_params) {
    pieces_.emplace_back();
    bucket_elements_.push_back(0);
    for (; param < size_t(end); ++param) {
      const int64_t size = params_[param].weights[0].size(), length = kPieceElements * num_threads;
      for (int64_t begin = 0; begin < size; begin += length) {
        pieces_.back().push_back({int(param), begin, std::min(length, size - begin)});
      }
      bucket_elements_.back() += size;
    }
  }
}

std::unique_ptr<Kernel> UpdatePlan::make_sum(const Context &context, Dtype dtype, int64_t length,
                                             int num_threads) const {
  const std::shared_ptr<Device> device = get_device(context);
  const KernelEntry *entry = device->find_kernel(kSum);
  if (!entry) throw Error(Code::kUnsupported, text(context, " has no kernel for ", kSum), kSum);
  StepSpec spec;
  spec.op = kSum;
  TensorSpec tensor;
  tensor.shape = Shape{length};
  tensor.dtype = dtype;
  spec.inputs.assign(num_devices_, tensor);
  spec.constant.assign(num_devices_, false);
  spec.outputs.assign(1, tensor);
  spec.wanted.assign(1, true);
  spec.num_threads = num_threads;
  std::unique_ptr<Kernel> kernel = device->make_kernel(*entry, spec);
  if (spec.scratch_bytes > 0) throw Error(Code::kInternal, text(kSum, " wants scratch memory"));
  return kernel;
}

void UpdatePlan::make_workers(const std::vector<std::shared_ptr<Queue>> &queues) {
  workers_.resize(num_devices_);
  for (size_t d = 0; d < num_devices_; ++d) {
    Worker &worker = workers_[d];
    const Context context = params_.empty() ? Context() : params_[0].weights[d].context();
    const int num_threads = queues[d]->num_threads();
    worker.inputs.resize(num_devices_);
    size_t largest = 0;
    for (const std::vector<Piece> &bucket : pieces_) {
      worker.sum_of.emplace_back();
      worker.update_of.emplace_back();
      for (const Piece &piece : bucket) {
        const Dtype dtype = params_[size_t(piece.param)].weights[0].dtype();
        largest = std::max(largest, size_t(piece.count) * dtype_size(dtype));
        std::unique_ptr<Kernel> &sum = worker.sums[{dtype, piece.count}];
        if (!sum) sum = make_sum(context, dtype, piece.count, num_threads);
        std::unique_ptr<UpdateKernel> &update = worker.updates[{dtype, piece.count}];
        if (!update) update = optimizer_->make_kernel(context, dtype, piece.count, num_threads);
        worker.sum_of.back().push_back(sum.get());
        worker.update_of.back().push_back(update.get());
      }
    }
    if (largest > 0) worker.sum = get_device(context)->allocate(largest);
  }
}

void UpdatePlan::make_locals(const std::vector<std::shared_ptr<Queue>> &queues) {
  locals_.resize(num_devices_);
  for (size_t d = 0; d < num_devices_; ++d) {
    for (size_t p = 0; p < params_.size(); ++p) {
      const ExchangeParam &param = params_[p];
      const NDArray &weight = param.weights[d];
      auto kernel = optimizer_->make_kernel(weight.context(), weight.dtype(), weight.size(), queues[d]->num_threads());
      void *states[kMostStates] = {};
      const std::vector<NDArray> &arrays = states_[p * num_copies_ + (num_copies_ > 1 ? d : 0)];
      for (size_t i = 0; i < arrays.size(); ++i) states[i] = arrays[i].data();
      kernel->bind(weight.data(), param.grads[d].data(), states);
      locals_[d].kernels.push_back(std::move(kernel));
    }
  }
}

LocalUpdate &UpdatePlan::free_local(size_t device) {
  Local &local = locals_[device];
  for (const auto &update : local.updates)
    if (update->free()) return *update;
  local.updates.push_back(std::make_unique<LocalUpdate>(params_, device, local.kernels, labels_));
  return *local.updates.back();
}

void UpdatePlan::run_piece(size_t device, size_t bucket, size_t index, const std::vector<UpdateValues> &values,
                           const Lane &lane) const {
  const Worker &worker = workers_[device];
  const Piece &piece = pieces_[bucket][index];
  const ExchangeParam &param = params_[size_t(piece.param)];
  const size_t bytes = size_t(piece.count) * dtype_size(param.weights[0].dtype());
  for (size_t d = 0; d < num_devices_; ++d) worker.inputs[d] = at(param.grads[d], piece.begin);
  void *const sum = worker.sum->data();
  Args args;
  args.inputs = worker.inputs.data();
  args.outputs = &sum;
  worker.sum_of[bucket][index]->run(args, lane);

  UpdateKernel &update = *worker.update_of[bucket][index];
  for (size_t c = 0; c < num_copies_; ++c) {
    const size_t slot = size_t(piece.param) * num_copies_ + c;
    void *states[kMostStates] = {};
    for (size_t i = 0; i < states_[slot].size(); ++i) states[i] = at(states_[slot][i], piece.begin);
    update.set(values[slot]);
    update.bind(at(param.weights[c], piece.begin), sum, states);
    update.run(lane);
  }
  for (size_t d = 0; d < num_devices_; ++d) {
    if (mode_ == UpdateMode::kPerDevice) {
      std::memcpy(at(param.grads[d], piece.begin), sum, bytes);
    } else if (d > 0) {
      std::memcpy(at(param.weights[d], piece.begin), at(param.weights[0], piece.begin), bytes);
    }
  }
}

}  // namespace cohort
