// SPDX-License-Identifier: Apache-2.0
// A group for each bucket of a bucketing network, all sharing the parameters of the first (contract section 12). The
// group of the batch loaded last is current.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "group/group.hpp"

namespace cohort {

// The network of a bucket. Called once for each key but the default one. Throws to refuse the key.
using SymbolGenerator = std::function<Symbol(const std::string &key)>;

struct ManagerOptions {
  std::vector<Context> contexts;
  std::vector<double> workload;  // empty: equal shares
  std::vector<std::string> param_names;
  bool all_params = false;  // as for a group
  int64_t batch_size = 0;
  std::map<std::string, Symbol> symbols;  // of buckets, by key
  SymbolGenerator generator;              // for other keys. If there are neither: one network, and keys are not read
  std::optional<std::string> default_bucket_key;  // key of the symbol given
  std::vector<std::string> state_names;
  int num_threads = 0;
  ComputeTypes compute;
  bool backward_once = false;    // as an executor's
  bool recompute = false;        // likewise
  bool keep_device_aux = false;  // as a group's
  LossScaleOptions loss_scale;
  Dtype gradient_sum_dtype = Dtype::kFloat32;  // as a group's
  uint64_t seed = 0;
  std::function<void(LogLevel, const std::string &)> log;  // empty: the library's
};

// One batch. Every descriptor is sliced along axis 0, in any layout; its length there is not read: buckets are bound
// for the manager's batch size.
struct ManagerBatch {
  std::vector<NDArray> data, labels;  // labels empty: they stay as they are
  std::optional<std::string> bucket_key;
  DataDescs data_descs, label_descs;  // read if the key is new
};

class Manager {
 public:
  Manager(const Symbol &symbol, const DataDescs &data, const DataDescs &labels, const ManagerOptions &options);

  const std::shared_ptr<Group> &main() const { return main_; }  // its parameters are those of all buckets
  const std::shared_ptr<Group> &current() const;                // kState before the first load
  // The group from which a list is read (MGR-04).
  Group &group_of(GroupList list) const {
    const bool is_shared = list == GroupList::kParams || list == GroupList::kGrads || list == GroupList::kAux;
    return is_shared ? *main_ : *current();
  }
  const std::vector<BatchSlice> &slices() const { return main_->slices(); }
  // Those made so far, by key.
  const std::map<std::string, std::shared_ptr<Group>> &buckets() const { return buckets_; }

  // Makes the batch's bucket current and loads the batch. A batch that does not fit changes nothing.
  void load(const ManagerBatch &batch);
  void forward(int is_train) { current()->run(is_train); }
  void backward() { current()->backward({}); }
  void update(const std::shared_ptr<Optimizer> &optimizer, UpdateMode mode) { current()->update(optimizer, mode); }
  void update_metric(Metric &metric, const std::vector<NDArray> &labels) { current()->update_metric(metric, labels); }
  void update_metric_presliced(Metric &metric, const std::vector<std::vector<NDArray>> &device_labels) {
    current()->update_metric_presliced(metric, device_labels);
  }
  void resume(Optimizer &optimizer);  // Group::resume() for all buckets, those too that are not made yet
  void set_params(const NamedArrays &args, const NamedArrays *aux) { main_->set_params(args, aux, false); }
  void copy_to(const NamedArrays &args, const NamedArrays *aux) const { main_->get_params(args, aux); }
  MemoryUse memory() const;                              // of all buckets on all devices; what they share counts once
  void set_monitor(MonitorFunction function, bool all);  // kUnsupported with a generator (MON-13)

 private:
  DataDescs along_first_axis(DataDescs descs) const;
  void check_batch(const ManagerBatch &batch) const;
  bool has_buckets() const { return options_.generator || !options_.symbols.empty(); }
  Symbol symbol_of(const std::string &key) const;
  std::shared_ptr<Group> make_bucket(const std::string &key, const ManagerBatch &batch) const;

  const ManagerOptions options_;
  std::shared_ptr<Group> main_, current_;
  std::map<std::string, std::shared_ptr<Group>> buckets_;
  std::map<std::string, std::vector<RandomPositions>> resumed_;  // for buckets that are not made yet
};

}  // namespace cohort
