// SPDX-License-Identifier: Apache-2.0
// The inside of a group, shared by the files of this folder.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "group/exchange.hpp"
#include "group/group.hpp"

namespace cohort {

// One batch shape, bound on every device: reshape() and bind() replace it as a whole.
struct GroupBinding {
  DataDescs data, labels;
  std::vector<int> data_axes, label_axes, output_axes;
  int64_t batch_size = 0;
  std::vector<BatchSlice> slices;  // empty: nothing is batched
  std::vector<std::shared_ptr<Executor>> execs;
  std::vector<int> data_args, label_args;  // argument of each descriptor
  // Per output: where each device's part begins along the batch axis, then the whole length. Empty if it is not
  // batched, if the parts cannot be joined, or if their shapes depend on values and no forward has run.
  std::vector<std::vector<int64_t>> output_starts;
  // Per output: the array that all devices write their parts of; null: joined when it is read.
  std::vector<NDArray> merged;
};

// Where parts of these shapes begin when they are joined along the axis, then the whole length; empty if they cannot be
// joined.
std::vector<int64_t> starts_of_parts(const Shapes &parts, int axis);

// Memory for outputs, shared by groups that share memory: one of them runs at a time (SHR-07), and outputs are often
// the largest arrays of all.
struct OutputPool {
  using Key = std::pair<size_t, size_t>;  // head; device, or kAllDevices for an array that all write their parts of
  static constexpr size_t kAllDevices = SIZE_MAX;
  std::map<Key, std::shared_ptr<Storage>> storage;  // the largest that was needed

  // At least `bytes`, filled with zeros if it is new.
  std::shared_ptr<Storage> take(const Key &key, const Context &context, size_t bytes);
};

struct Group::Impl {
  Symbol symbol;
  Graph graph;
  GroupOptions options;
  std::vector<std::string> arg_names, aux_names, output_names;
  std::vector<std::string> head_layouts;  // `__layout__` of each head's node, if has_layout
  std::vector<bool> has_layout;
  std::vector<GradReq> grad_reqs;
  std::vector<int> param_args, state_args;  // arguments; parameters in the order of the arguments
  std::vector<std::string> param_arg_names;

  std::shared_ptr<GroupBinding> current_binding;
  std::shared_ptr<GroupBinding> initial_binding;             // by the latest bind(): reshape() starts from it
  std::list<std::shared_ptr<GroupBinding>> cached_bindings;  // shapes bound before, the latest first, to be used again
  std::vector<std::shared_ptr<ArrayPool>> pools;             // one per device, common to groups that share memory
  std::shared_ptr<OutputPool> outputs;                       // likewise
  std::shared_ptr<Exchange> exchange;
  std::shared_ptr<LossScale> loss_scale;  // null: there is none
  // The loss scale of the latest backward pass. Queued steps read it here, as groups that share a loss scale may change
  // that one meanwhile.
  std::shared_ptr<double> gradient_scale;
  std::shared_ptr<const TrainingSource> training_source;  // null until the first update after binding

  MonitorFunction monitor;
  bool monitor_all = false, monitor_ever = false;
  bool has_forward = false, has_backward = false, last_is_train = false;
  size_t num_devices() const { return options.contexts.size(); }
  void log(LogLevel level, const std::string &message) const;
  MonitorFunction monitor_of(size_t device) const;  // the function to install on an executor; null: none
  void check_list(GroupList list, size_t index, size_t num) const;

  // ---- group_bind.cc
  void prepare(const Symbol &symbol, const DataDescs &data, const DataDescs &labels);
  std::map<std::string, std::string> labels_of_losses() const;
  void warn_of_missing_labels(const DataDescs &data, const DataDescs &labels) const;
  void refuse_if_managed(const char *call) const;
  void check_arg_names() const;
  void check_unknown_names() const;
  std::vector<GradReq> resolve_grad_reqs(const GroupBinding &binding) const;
  std::shared_ptr<GroupBinding> describe(const DataDescs &data, const DataDescs &labels) const;
  void bind(const DataDescs &data, const DataDescs &labels, const std::shared_ptr<Group> &shared);
  void reshape(const DataDescs &data, const DataDescs &labels);
  void adopt(const std::shared_ptr<GroupBinding> &binding);
  Dtype input_dtype(const DataDesc &desc, bool is_label) const;
  std::string words_of_slice(const GroupBinding &binding, size_t device) const;
  std::vector<Shapes> infer_heads(const GroupBinding &binding, std::vector<Dtype> *dtypes) const;
  std::vector<std::vector<NDArray>> make_outputs(GroupBinding *binding, OutputPool *pool) const;
  void finish_merged(GroupBinding *binding) const;
  void clear_grown(const GroupBinding &binding) const;
  std::shared_ptr<Exchange> make_exchange(const GroupBinding &binding) const;
  void check_shared(const Group &shared) const;
  const std::map<std::string, Context> &group2ctx(size_t device) const;
  int num_cpus() const;
  std::shared_ptr<LossScale> make_loss_scale(const Group *shared) const;
  ExecutorOptions executor_options(size_t device) const;

  // ---- group_run.cc
  void check_load(const std::vector<NDArray> &data, const std::vector<NDArray> &labels) const;
  void load_whole(const DataDescs &descs, const std::vector<int> &axes, const std::vector<int> &args,
                  const std::vector<NDArray> &arrays);
  bool resolve_train(int is_train) const;
  bool has_parts() const { return current_binding->execs[0]->node_sized_by_values() != nullptr; }
  [[noreturn]] void refuse_without_shape(size_t head) const;
  void find_output_starts();                // for outputs whose shapes depend on values
  void check_idle(const char *what) const;  // Executor::check_idle() for all devices
  ArraySlice part_of_head(const NDArray &whole, size_t head, size_t device) const;
  const std::shared_ptr<const TrainingSource> &source_for_optimizer();
  void for_all_devices(Metric &metric, const std::function<NamedArrays(size_t device)> &labels);
};

}  // namespace cohort
