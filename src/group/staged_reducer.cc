// SPDX-License-Identifier: Apache-2.0
#include "group/staged_reducer.hpp"

#include <atomic>

#include "base/error.hpp"

namespace cohort {

struct StagedReducer::Arrays {
  std::shared_ptr<const DeviceArrays> grads;
  std::shared_ptr<const DeviceArrays> mirrors;  // on the host; copies of those that the host cannot reach
};

// The sums of one pass, in flight or free.
struct StagedReducer::Sums final : Kernel {
  std::shared_ptr<const Arrays> arrays;
  std::shared_ptr<const Pieces> pieces;
  std::shared_ptr<const PieceSum> sum;
  std::shared_ptr<SumConsumer> consumer;
  bool replace_gradients = false;
  Step step{};
  mutable std::atomic<bool> busy{false};

  void run(const Args &, const Lane &lane) const override {
    for (size_t d = 0; !arrays->grads->empty() && d < (*arrays->grads)[0].size(); ++d)
      check_gradients(*arrays->grads, d);
    for (size_t b = 0; b < pieces->size(); ++b) {
      for (size_t i = 0; i < (*pieces)[b].size(); ++i) {
        consumer->consume(0, b, i, sum->run(b, i, lane), lane);
        if (replace_gradients) sum->replace_gradients(b, i);
      }
    }
    busy.store(false, std::memory_order_release);
  }
  static void failed(const void *owner, const char *message) {
    const auto *self = static_cast<const Sums *>(owner);
    const size_t num_devices = self->arrays->grads->empty() ? 0 : (*self->arrays->grads)[0].size();
    for (size_t d = 0; d < num_devices; ++d) self->consumer->fail(d, message);
    self->busy.store(false, std::memory_order_release);
  }
};

namespace {

// The device whose queue sums: the first cpu, or a new queue.
ExchangeDevice choose_store(const ExchangeDevices &devices) {
  for (const ExchangeDevice &device : devices)
    if (device.context.on_host()) return device;
  const std::shared_ptr<Queue> queue = get_device(Context())->create_queue(QueueOptions());
  return {Context(), queue, std::make_shared<Timeline>(queue), {}};
}

}  // namespace

StagedReducer::StagedReducer(const ExchangeParams &params, const GradientBuckets &buckets,
                             const ExchangeDevices &devices, Dtype sum_dtype)
    : StagedReducer(params, buckets, devices, choose_store(devices), sum_dtype) {}

StagedReducer::StagedReducer(const ExchangeParams &params, const GradientBuckets &buckets,
                             const ExchangeDevices &devices, const ExchangeDevice &store, Dtype sum_dtype)
    : GradientReducer(params, buckets, store.queue->num_threads()),
      devices_(devices),
      sum_dtype_(sum_dtype),
      queue_(store.queue),
      timeline_(store.timeline) {
  workers_.push_back({store.context, queue_->num_threads()});
  own_queue_ = true;
  for (const ExchangeDevice &device : devices) own_queue_ = own_queue_ && device.queue != queue_;
  auto grads = std::make_shared<DeviceArrays>();
  for (const ExchangeParam &param : params) grads->push_back(param.grads);
  auto mirrors = std::make_shared<DeviceArrays>(*grads);
  for (std::vector<NDArray> &arrays : *mirrors) {
    for (NDArray &array : arrays) {
      if (!array.context().on_host()) array = NDArray::create(array.shape(), array.dtype(), Context(), false);
    }
  }
  auto both = std::make_shared<Arrays>();
  both->grads = std::move(grads);
  both->mirrors = std::move(mirrors);
  arrays_ = std::move(both);
}

const std::shared_ptr<StagedReducer::Sums> &StagedReducer::free_sums() {
  for (const auto &known : all_sums_)
    if (!known->busy.load(std::memory_order_acquire)) return known;
  if (!sum_) sum_ = std::make_shared<PieceSum>(arrays_->mirrors, pieces(), workers_[0], sum_dtype_);
  auto fresh = std::make_shared<Sums>();
  fresh->arrays = arrays_;
  fresh->pieces = pieces();
  fresh->sum = sum_;
  fresh->step.kernel = fresh.get();
  fresh->step.label = kExchangeLabel;
  fresh->step.info = exchange_info();
  all_sums_.push_back(std::move(fresh));
  return all_sums_.back();
}

// Everything goes through queues, which already wait for other users of the arrays, so `waits` is not needed.
void StagedReducer::queue_sums(std::shared_ptr<SumConsumer> consumer, bool replace_gradients, bool) {
  const std::shared_ptr<Sums> sums = free_sums();
  // Arrays of another context are used in the order of their device's own queue.
  for (const ExchangeDevice &device : devices_)
    for (const auto &other : device.others) other.second->wait(device.queue->record());
  for (size_t p = 0; p < arrays_->grads->size(); ++p) {
    for (size_t d = 0; d < devices_.size(); ++d) {
      const NDArray &grad = (*arrays_->grads)[p][d], &mirror = (*arrays_->mirrors)[p][d];
      if (!grad.same_memory(mirror))
        devices_[d].queue_for(grad)->copy(mirror.data(), grad.data(), grad.bytes(), arrays_);
    }
  }
  consumer->before_sums(devices_);
  for (const ExchangeDevice &device : devices_) {
    if (device.queue != queue_) queue_->wait(device.queue->record());
    for (const auto &other : device.others) queue_->wait(other.second->record());
  }

  sums->consumer = consumer;
  sums->replace_gradients = replace_gradients;
  Program program{};
  program.steps = &sums->step;
  program.count = 1;
  program.failed = Sums::failed;
  sums->busy.store(true, std::memory_order_relaxed);
  try {
    queue_->run(program, sums);
  } catch (...) {
    sums->busy.store(false, std::memory_order_relaxed);
    throw;
  }

  try {
    broadcast(*consumer, replace_gradients);
  } catch (...) {  // the devices do not wait for this work: none of it may be left
    queue_->finish();
    for (size_t d = 0; d < devices_.size(); ++d) consumer->fail(d, "its update could not be queued");
    throw;
  }
}

void StagedReducer::broadcast(SumConsumer &consumer, bool replace_gradients) {
  const std::shared_ptr<Event> summed = queue_->record();
  for (const ExchangeDevice &device : devices_) {
    if (device.queue != queue_) device.queue->wait(summed);
    for (const auto &other : device.others) other.second->wait(summed);
  }
  for (size_t p = 0; replace_gradients && p < arrays_->grads->size(); ++p) {
    for (size_t d = 0; d < devices_.size(); ++d) {
      const NDArray &grad = (*arrays_->grads)[p][d], &mirror = (*arrays_->mirrors)[p][d];
      if (!grad.same_memory(mirror))
        devices_[d].queue_for(grad)->copy(grad.data(), mirror.data(), grad.bytes(), arrays_);
    }
  }
  consumer.after_sums(devices_);
  for (const ExchangeDevice &device : devices_)
    for (const auto &other : device.others) device.queue->wait(other.second->record());
}

void StagedReducer::wait() {
  if (own_queue_) queue_->sync();
}

}  // namespace cohort
