// SPDX-License-Identifier: Apache-2.0
#include "group/manager.hpp"

#include "base/error.hpp"

namespace cohort {
namespace {

GroupOptions group_options(const ManagerOptions &options) {
  GroupOptions result;
  result.contexts = options.contexts;
  result.workload = options.workload;
  result.rounding = Rounding::kHalfEven;
  result.param_names = options.param_names;
  result.all_params = options.all_params;
  result.state_names = options.state_names;
  result.num_threads = options.num_threads;
  result.compute = options.compute;
  result.backward_once = options.backward_once;
  result.recompute = options.recompute;
  result.keep_device_aux = options.keep_device_aux;
  result.loss_scale = options.loss_scale;
  result.gradient_sum_dtype = options.gradient_sum_dtype;
  result.seed = options.seed;
  result.log = options.log;
  result.managed = true;
  return result;
}

}  // namespace

Manager::Manager(const Symbol &symbol, const DataDescs &data, const DataDescs &labels, const ManagerOptions &options)
    : options_(options) {
  if (has_buckets() && !options_.default_bucket_key) {
    throw Error(Code::kInvalidArgument, "default_bucket_key: expected a key, as there are bucket symbols, found none",
                "default_bucket_key");
  }
  split_batch(options_.batch_size, options_.workload, options_.contexts.size(), Rounding::kHalfEven);
  std::string contexts;
  for (const Context &context : options_.contexts) contexts += (contexts.empty() ? "" : ", ") + text(context);
  const std::string message = "starts training with " + contexts;
  if (options_.log) {
    options_.log(LogLevel::kInfo, message);
  } else {
    log(LogLevel::kInfo, message);
  }
  GroupOptions main = group_options(options_);
  main.strict_names = true;
  if (has_buckets()) main.bucket = *options_.default_bucket_key;
  main_ = Group::create(symbol, along_first_axis(data), along_first_axis(labels), main);
  if (has_buckets()) buckets_[*options_.default_bucket_key] = main_;
}

const std::shared_ptr<Group> &Manager::current() const {
  if (!current_) throw Error(Code::kState, "no batch has been loaded yet: there is no current bucket", "batch");
  return current_;
}

// MGR-03, MGR-07.
DataDescs Manager::along_first_axis(DataDescs descs) const {
  for (DataDesc &desc : descs) {
    desc.layout = "N";
    if (desc.shape.rank() < 1) {
      throw Error(Code::kShape, text("'", desc.name, "': expected a batch along axis 0, found shape ", desc.shape),
                  desc.name);
    }
    desc.shape[0] = options_.batch_size;
  }
  return descs;
}

// Checks a batch before a bucket is made for it.
void Manager::check_batch(const ManagerBatch &batch) const {
  for (const auto *list : {&batch.data, &batch.labels}) {
    for (const NDArray &array : *list) {
      if (!array) throw Error(Code::kInvalidArgument, "batch: found no array", "batch");
      if (array.shape().rank() < 1 || array.shape()[0] != options_.batch_size) {
        throw Error(Code::kShape,
                    text("batch: expected ", options_.batch_size, " samples along axis 0, found shape ", array.shape()),
                    "batch");
      }
    }
  }
}

Symbol Manager::symbol_of(const std::string &key) const {
  const auto known = options_.symbols.find(key);
  if (known != options_.symbols.end()) return known->second;
  if (options_.generator) return options_.generator(key);
  throw Error(Code::kName, text("bucket '", key, "': there is no symbol for this key"), key);
}

std::shared_ptr<Group> Manager::make_bucket(const std::string &key, const ManagerBatch &batch) const {
  if (batch.data_descs.empty()) {
    throw Error(Code::kInvalidArgument,
                text("batch: bucket '", key, "' is new; expected descriptors of its data, found none"), key);
  }
  GroupOptions options = group_options(options_);
  options.compute.all_known = false;  // nodes of the main symbol need not be in this one
  options.bucket = key;
  const std::shared_ptr<Group> group = Group::create(symbol_of(key), along_first_axis(batch.data_descs),
                                                     along_first_axis(batch.label_descs), options, main_);
  const auto resumed = resumed_.find(key);
  if (resumed != resumed_.end()) group->set_random_state(resumed->second);
  return group;
}

void Manager::load(const ManagerBatch &batch) {
  check_batch(batch);
  if (!has_buckets()) {
    main_->load(batch.data, batch.labels);
    current_ = main_;
    return;
  }
  if (!batch.bucket_key) throw Error(Code::kInvalidArgument, "batch: expected a bucket key, found none", "bucket_key");
  const auto known = buckets_.find(*batch.bucket_key);
  const std::shared_ptr<Group> group = known != buckets_.end() ? known->second : make_bucket(*batch.bucket_key, batch);
  group->load(batch.data, batch.labels);
  buckets_.emplace(*batch.bucket_key, group);
  current_ = group;
}

void Manager::resume(Optimizer &optimizer) {
  const TrainingState *const loaded = optimizer.loaded_training();
  if (!loaded) return;
  std::map<std::string, std::vector<RandomPositions>> later = loaded->random;
  main_->resume(optimizer);
  for (const auto &[key, group] : buckets_) {
    const auto found = later.find(key);
    if (found == later.end()) continue;
    if (group != main_) group->set_random_state(found->second);
    later.erase(found);
  }
  resumed_ = std::move(later);
}

MemoryUse Manager::memory() const {
  std::vector<std::shared_ptr<Executor>> all;
  size_t intermediate_bytes = 0, value_bytes = 0;
  for (size_t d = 0; d < main_->num_devices(); ++d) {
    std::vector<std::shared_ptr<Executor>> here{main_->executor(d)};
    for (const auto &bucket : buckets_) here.push_back(bucket.second->executor(d));
    const MemoryUse together = Executor::combined_memory(here);
    intermediate_bytes += together.intermediate_bytes;
    value_bytes += together.value_bytes;
    all.insert(all.end(), here.begin(), here.end());
  }
  MemoryUse use = Executor::combined_memory(all);
  use.intermediate_bytes = intermediate_bytes;
  use.value_bytes = value_bytes;
  return use;
}

void Manager::set_monitor(MonitorFunction function, bool all) {
  if (has_buckets()) {
    throw Error(Code::kUnsupported, "monitoring is not supported for a manager that generates bucket symbols",
                "monitor");
  }
  main_->set_monitor(std::move(function), all);
}

}  // namespace cohort
