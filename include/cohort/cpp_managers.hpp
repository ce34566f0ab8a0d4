/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file cpp_managers.hpp
 * Managers: groups for networks of several lengths. A part of cohort.hpp, which says what holds for all.
 */
#ifndef COHORT_CPP_MANAGERS_HPP
#define COHORT_CPP_MANAGERS_HPP

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/cpp_groups.hpp"

namespace cohort {
inline namespace abi0 {

/** Gives the symbol of a bucket; throws to refuse the key. */
using BucketSymbolFunction = std::function<Symbol(const std::string &bucket_key)>;

/** Settings of a manager: cohort_manager_options, where each field is described. */
struct ManagerOptions {
  std::optional<std::vector<std::string>> param_names;  // nullopt: as for a group
  std::vector<double> workload;
  std::optional<std::string> default_bucket_key;
  std::map<std::string, Symbol> buckets;  // given ahead
  BucketSymbolFunction bucket_symbol;     // asked for the others
  int32_t num_threads = 0;
  uint64_t seed = 0;
  LogFunction log;
  std::vector<std::string> state_names;
  cohort_dtype compute_dtype = COHORT_DTYPE_FLOAT32;
  std::vector<std::string> float32_names, narrow_names;
  double loss_scale = 0;
  int32_t loss_scale_window = 0;
  bool backward_once = false;
  cohort_dtype gradient_sum_dtype = COHORT_DTYPE_FLOAT32;
  bool tf32 = false;
  bool recompute = false;
  bool keep_device_aux = false;
};

/** A bucket that has been made. */
struct Bucket {
  std::string key;
  Group group;
};

/** A group for each bucket of a network, on the parameters of the main one. */
class Manager : public Handle<cohort_manager, cohort_manager_free> {
 public:
  using Handle::Handle;
  Manager() noexcept = default;
  /** Makes a manager and binds its main group for training: cohort_manager_create(). */
  Manager(const Symbol &symbol, Span<Context> contexts, int64_t batch_size, const Descs &data,
          const Descs &label = Descs(nullptr), const ManagerOptions &options = {}) {
    const detail::CStrings param_names(options.param_names ? Span<std::string>(*options.param_names)
                                                           : Span<std::string>()),
        state_names(options.state_names), float32_names(options.float32_names), narrow_names(options.narrow_names);
    std::vector<const char *> keys;
    std::vector<cohort_symbol *> symbols;
    for (const auto &[key, bucket] : options.buckets) {
      keys.push_back(key.c_str());
      symbols.push_back(bucket.get());
    }
    cohort_manager_options c = COHORT_MANAGER_OPTIONS_INIT;
    c.workload = options.workload.empty() ? nullptr : options.workload.data();
    c.num_workloads = options.workload.size();
    c.default_bucket_key = options.default_bucket_key ? options.default_bucket_key->c_str() : nullptr;
    c.bucket_keys = keys.data();
    c.bucket_symbols = symbols.data();
    c.num_buckets = keys.size();
    c.bucket_symbol_user_data = detail::keep_closure(closures_, options.bucket_symbol);
    c.bucket_symbol = options.bucket_symbol ? call_bucket_symbol : nullptr;
    c.num_threads = options.num_threads;
    c.seed = options.seed;
    c.log_user_data = detail::keep_closure(closures_, options.log);
    c.log = options.log ? detail::call_log : nullptr;
    c.state_names = state_names.data();
    c.num_state_names = state_names.size();
    c.compute_dtype = options.compute_dtype;
    c.float32_names = float32_names.data();
    c.num_float32_names = float32_names.size();
    c.narrow_names = narrow_names.data();
    c.num_narrow_names = narrow_names.size();
    c.loss_scale = options.loss_scale;
    c.loss_scale_window = options.loss_scale_window;
    c.backward_once = options.backward_once;
    c.gradient_sum_dtype = options.gradient_sum_dtype;
    c.tf32 = options.tf32;
    c.recompute = options.recompute;
    c.keep_device_aux = options.keep_device_aux;
    adopt(make<Handle>(cohort_manager_create, symbol.get(), detail::c_contexts(contexts).data(), contexts.size(),
                       batch_size, data.get(), label.get(), options.param_names ? param_names.data() : nullptr,
                       param_names.size(), &c)
              .release());
  }

  /** cohort_manager_num_contexts(). */
  size_t num_contexts() const { return query<size_t>(cohort_manager_num_contexts, get()); }
  /** The slice of a device: cohort_manager_slice(). */
  Slice slice(size_t device) const {
    Slice found;
    check(cohort_manager_slice(get(), device, &found.begin, &found.end));
    return found;
  }
  /** The slices of all devices. */
  std::vector<Slice> slices() const {
    std::vector<Slice> all(num_contexts());
    for (size_t device = 0; device < all.size(); ++device) all[device] = slice(device);
    return all;
  }
  /** How many buckets have been made: cohort_manager_num_buckets(). */
  size_t num_buckets() const { return query<size_t>(cohort_manager_num_buckets, get()); }
  /** A bucket that has been made, by place: cohort_manager_bucket(). */
  Bucket bucket(size_t index) const {
    const char *key = nullptr;
    cohort_group *group = nullptr;
    check(cohort_manager_bucket(get(), index, &key, &group));
    Bucket found;
    found.group = with_closures(Group(group));
    found.key = key;
    return found;
  }
  /** cohort_manager_main_group(). */
  Group main_group() const { return with_closures(make<Group>(cohort_manager_main_group, get())); }
  /** The group of the batch loaded last: cohort_manager_current_group(). */
  Group current_group() const { return with_closures(make<Group>(cohort_manager_current_group, get())); }

  /**
   * Makes the bucket of a batch current and splits the batch over the devices: cohort_manager_load_data_batch().
   *
   * @param bucket_key   nullopt: none, for a manager without bucket symbols.
   * @param data_descs   Needed if the bucket is new.
   */
  void load_data_batch(Span<NDArray> data, Span<NDArray> label = {},
                       const std::optional<std::string> &bucket_key = std::nullopt,
                       const Descs &data_descs = Descs(nullptr), const Descs &label_descs = Descs(nullptr)) {
    check(cohort_manager_load_data_batch(
        get(), detail::raw(data).data(), data.size(), Group::c_labels(detail::raw(label)), label.size(),
        bucket_key ? bucket_key->c_str() : nullptr, data_descs.get(), label_descs.get()));
  }
  /** A forward pass of the current group: cohort_manager_forward(). */
  void forward(std::optional<bool> is_train = std::nullopt) {
    check(cohort_manager_forward(get(), detail::c_is_train(is_train)));
  }
  /** cohort_manager_backward(). */
  void backward() { check(cohort_manager_backward(get())); }
  /** cohort_manager_update(). */
  void update(Optimizer &optimizer, cohort_update_mode mode = COHORT_UPDATE_ON_STORE) {
    check(cohort_manager_update(get(), optimizer.get(), mode));
  }
  /** cohort_manager_loss_scale(). */
  LossScale loss_scale() const {
    LossScale found;
    check(cohort_manager_loss_scale(get(), &found.scale, &found.num_good, &found.num_skipped));
    return found;
  }
  /** cohort_manager_set_loss_scale(). */
  void set_loss_scale(double scale, int32_t num_good = 0) {
    check(cohort_manager_set_loss_scale(get(), scale, num_good));
  }
  /** cohort_manager_resume(). */
  void resume(Optimizer &optimizer) { check(cohort_manager_resume(get(), optimizer.get())); }
  /** cohort_manager_update_metric(). */
  void update_metric(Metric &metric, Span<NDArray> labels) {
    check(cohort_manager_update_metric(get(), metric.get(), detail::raw(labels).data(), labels.size()));
  }
  /** A list of labels for each device: cohort_manager_update_metric_presliced(). */
  void update_metric_presliced(Metric &metric, Span<std::vector<NDArray>> labels) {
    const std::vector<NDArray> all = detail::flatten("labels", labels);
    check(cohort_manager_update_metric_presliced(get(), metric.get(), labels.size(), detail::raw<NDArray>(all).data(),
                                                 labels.empty() ? 0 : labels[0].size()));
  }
  /** cohort_manager_num_arrays(). */
  size_t num_arrays(cohort_group_list list) const { return query<size_t>(cohort_manager_num_arrays, get(), list); }
  /** cohort_manager_name(). */
  std::string name(cohort_group_list list, size_t index) const {
    return query<const char *>(cohort_manager_name, get(), list, index);
  }
  /** The live array of one device: cohort_manager_array(). */
  NDArray array(cohort_group_list list, size_t index, size_t device) const {
    return make<NDArray>(cohort_manager_array, get(), list, index, device);
  }
  /** cohort_manager_arrays(). */
  Arrays arrays(cohort_group_list list, size_t device) const {
    return make<Arrays>(cohort_manager_arrays, get(), list, device);
  }
  /** cohort_manager_merged(). */
  NDArray merged(cohort_group_list list, size_t index) const {
    return make<NDArray>(cohort_manager_merged, get(), list, index);
  }
  /** A merged output of the current group. */
  NDArray output(size_t index = 0) const { return merged(COHORT_GROUP_OUTPUTS, index); }
  /** cohort_manager_set_params(). */
  void set_params(const Arrays &arg_params, const Arrays &aux_params = Arrays(nullptr)) {
    check(cohort_manager_set_params(get(), arg_params.get(), aux_params.get()));
  }
  /** Returns the parameters that were not given: cohort_manager_assign_params(). */
  Descs assign_params(const Arrays &arg_params, const Arrays &aux_params = Arrays(nullptr), bool allow_missing = false,
                      bool allow_extra = false) {
    return make<Descs>(cohort_manager_assign_params, get(), arg_params.get(), aux_params.get(),
                       cohort_bool{allow_missing}, cohort_bool{allow_extra});
  }
  /** The mean over the devices into given arrays: cohort_manager_copy_to(). */
  void copy_to(const Arrays &arg_params, const Arrays &aux_params = Arrays(nullptr)) const {
    check(cohort_manager_copy_to(get(), arg_params.get(), aux_params.get()));
  }
  /** For each state a list of one array for each device: cohort_manager_set_states(). */
  void set_states(Span<std::vector<NDArray>> states) {
    const std::vector<NDArray> all = detail::flatten("states", states);
    check(cohort_manager_set_states(get(), detail::raw<NDArray>(all).data(), states.size(),
                                    states.empty() ? num_contexts() : states[0].size(), nullptr));
  }
  /** Fills all states with a value. */
  void set_states(double value) { check(cohort_manager_set_states(get(), nullptr, 0, 0, &value)); }
  /** cohort_manager_memory(). */
  cohort_memory_info memory() const {
    cohort_memory_info info = COHORT_MEMORY_INFO_INIT;
    check(cohort_manager_memory(get(), &info));
    return info;
  }
  /** On the main group: cohort_manager_set_monitor(). */
  void set_monitor(MonitorFunction callback, bool monitor_all = false) {
    detail::set_monitor(get(), cohort_manager_set_monitor, monitor_, std::move(callback), monitor_all);
  }

 private:
  static int32_t call_bucket_symbol(const char *bucket_key, cohort_symbol **out_symbol, void *user_data) {
    const bool done = detail::run_closure<BucketSymbolFunction>(
        user_data, [&](BucketSymbolFunction &function) { *out_symbol = function(bucket_key).release(); });
    return done ? 0 : 1;
  }
  Group with_closures(Group group) const {
    group.closures_ = closures_;
    group.monitor_ = monitor_;
    return group;
  }

  detail::Closures closures_, monitor_;
};

}  // namespace abi0
}  // namespace cohort

#endif /* COHORT_CPP_MANAGERS_HPP */
