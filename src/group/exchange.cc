// SPDX-License-Identifier: Apache-2.0
#include "group/exchange.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "device/trace.hpp"
#include "group/collective_reducer.hpp"
#include "group/local_update.hpp"
#include "group/shared_memory_reducer.hpp"
#include "group/staged_reducer.hpp"
#include "group/summed_update.hpp"

namespace cohort {

const char kExchangeLabel[] = "gradient exchange";

const WorkInfo *exchange_info() {
  static const auto *const info = new WorkInfo(SpanKind::kExchange, kExchangeLabel);  // queues outlive static objects
  return info;
}

bool have_same_shape(const std::vector<NDArray> &of_devices) {
  const auto differs = [&](const NDArray &array) { return array.shape() != of_devices[0].shape(); };
  return std::none_of(of_devices.begin(), of_devices.end(), differs);
}

void check_same_shape(const std::string &name, const std::vector<NDArray> &of_devices) {
  if (have_same_shape(of_devices)) return;
  std::string found;
  for (const NDArray &array : of_devices) found += (found.empty() ? "" : ", ") + text(array.shape());
  throw Error(Code::kShape, text("'", name, "': expected one shape on all devices, found ", found), name);
}

const std::shared_ptr<Queue> &ExchangeDevice::queue_for(const NDArray &array) const {
  if (array.context() == context || (array.context().on_host() && context.on_host())) return queue;
  for (const auto &other : others)
    if (other.first == array.context()) return other.second;
  throw Error(Code::kInternal, text(context, " has an array on ", array.context(), ", for which it has no queue"));
}

Exchange::Exchange(ExchangeParams params, ExchangeDevices devices, int num_gradients, size_t bucket_bytes,
                   Dtype sum_dtype)
    : params_(std::move(params)),
      devices_(std::move(devices)),
      buckets_(choose_buckets(params_, num_gradients, bucket_bytes)) {
  if (devices_.size() == 1 || params_.empty()) return;
  for (const ExchangeParam &param : params_)
    if (!have_same_shape(param.weights)) mismatched_ = &param;
  bool on_host = true;
  for (const ExchangeParam &param : params_)
    for (const NDArray &weight : param.weights) on_host = on_host && weight.context().on_host();
  for (const ExchangeDevice &device : devices_) on_host = on_host && device.context.on_host();
  std::string why;
  if (on_host) {
    reducer_ = std::make_unique<SharedMemoryReducer>(params_, buckets_, devices_, sum_dtype);
  } else {
    reducer_ = CollectiveReducer::make(params_, buckets_, devices_, sum_dtype, &why);
  }
  if (reducer_) {
    for (const ExchangeDevice &device : devices_) reduced_on_.push_back(device.timeline);
  } else {
    log(LogLevel::kInfo, text(kExchangeLabel, ": gradients are summed on the host: ", why));
    auto staged = std::make_unique<StagedReducer>(params_, buckets_, devices_, sum_dtype);
    reduced_on_.push_back(staged->timeline());
    reducer_ = std::move(staged);
  }
}

Exchange::~Exchange() = default;

bool Exchange::works_on(const ExchangeParams &params, const ExchangeDevices &devices) const {
  if (params.size() != params_.size() || devices.size() != devices_.size()) return false;
  if (!(devices == devices_)) return false;
  for (size_t p = 0; p < params.size(); ++p) {
    const ExchangeParam &a = params[p], &b = params_[p];
    if (a.name != b.name || a.position != b.position) return false;
    for (size_t d = 0; d < devices.size(); ++d)
      if (!a.weights[d].same_memory(b.weights[d]) || !a.grads[d].same_memory(b.grads[d])) return false;
  }
  return true;
}

void Exchange::begin_backward() {
  if (reducer_) reducer_->begin_backward();
}

uint64_t Exchange::num_given() const {
  uint64_t sum = 0;
  for (const ExchangeDevice &device : devices_) sum += device.timeline->num_submitted();
  return sum;
}

void Exchange::end_backward() {
  if (reducer_) reducer_->end_backward();
  num_given_ = num_given();
}

BucketPrograms Exchange::after_bucket(size_t device) {
  return reducer_ ? reducer_->after_bucket(device) : BucketPrograms();
}

void Exchange::wait() {
  if (reducer_) reducer_->wait();
}

void Exchange::update(const std::shared_ptr<Optimizer> &optimizer, UpdateMode mode) {
  if (params_.empty()) return;
  if (devices_.size() > 1 && mode != UpdateMode::kNoStore) return update_from_sums(optimizer, mode);
  if (!local_ || !local_->fits(*optimizer, mode)) {
    local_ = std::make_unique<LocalUpdate>(params_, devices_, optimizer, mode);
  }
  begin_update(mode);
  local_->run();
}

// Registers an update with weights and gradients; returns whether queues have to wait for other work.
bool Exchange::begin_update(UpdateMode mode) const {
  bool waits = false;
  for (const ExchangeParam &param : params_) {
    for (size_t d = 0; d < devices_.size(); ++d) {
      const std::shared_ptr<Timeline> &by = devices_[d].timeline;
      const bool sums_replace_it = mode == UpdateMode::kPerDevice;
      const auto gradient = [&] {
        return sums_replace_it ? param.grads[d].begin_change(by) : param.grads[d].begin_read(by);
      };
      waits = with_array_name("gradient of", param.name, gradient) || waits;
      waits = with_array_name("parameter", param.name, [&] { return param.weights[d].begin_change(by); }) || waits;
    }
  }
  return waits;
}

void Exchange::update_from_sums(const std::shared_ptr<Optimizer> &optimizer, UpdateMode mode) {
  if (mismatched_) check_same_shape(mismatched_->name, mismatched_->weights);
  if (!weights_) weights_ = std::make_shared<WeightMirrors>(params_, !reducer_->on_devices());
  if (!plan_ || !plan_->fits(*optimizer, mode)) {
    updates_.clear();
    plan_ = std::make_shared<SummedUpdatePlan>(weights_, *reducer_, optimizer, mode);
  }
  weights_->find_changed();
  reducer_->before_update();
  // If work was given to a device since backward, another device must not update before that work has read the weights.
  bool waits = num_given() != num_given_;
  waits = begin_update(mode) || waits;
  waits = plan_->slots().begin_states(reduced_on_) || waits;
  const std::shared_ptr<SummedUpdate> &update = free_update();
  update->count([&] {
    if (mode == UpdateMode::kPerDevice) {
      reducer_->all_reduce(update, waits);
    } else {
      reducer_->reduce(update, waits);
    }
  });
  weights_->note_versions();
}

// A reducer releases a consumer only on this thread, when it reuses the reduction: an update that nothing else refers
// to is free.
const std::shared_ptr<SummedUpdate> &Exchange::free_update() {
  for (const auto &known : updates_)
    if (known.use_count() == 1) return known;
  return updates_.emplace_back(std::make_shared<SummedUpdate>(plan_));
}

}  // namespace cohort
