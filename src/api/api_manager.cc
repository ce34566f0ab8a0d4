// SPDX-License-Identifier: Apache-2.0
#include "cohort/manager.h"

#include "api/objects.hpp"

using namespace cohort;
using namespace cohort::api;

namespace {

Manager &manager_of(const cohort_manager *manager) {
  Manager &found = *deref(manager, "manager").manager;
  CallScope::use_group(found.main().get());
  return found;
}

std::map<std::string, Symbol> to_bucket_symbols(const cohort_manager_options &set) {
  const std::vector<std::string> keys = to_texts(set.bucket_keys, set.num_buckets, "bucket_keys");
  require(set.bucket_symbols, set.num_buckets, "bucket_symbols");
  std::map<std::string, Symbol> symbols;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!symbols.emplace(keys[i], deref(set.bucket_symbols[i], "bucket_symbols").symbol).second) {
      throw Error(Code::kName, text("bucket_keys: '", keys[i], "' is given twice"), keys[i]);
    }
  }
  return symbols;
}

SymbolGenerator to_generator(cohort_bucket_symbol_fn callback, void *user_data) {
  if (!callback) return nullptr;
  return [callback, user_data](const std::string &key) {
    cohort_symbol *made = nullptr;
    const int32_t status = callback(key.c_str(), &made, user_data);
    if (status) throw Error(Code::kExecution, text("bucket '", key, "': the callback returned ", status), key);
    const std::unique_ptr<cohort_symbol, void (*)(cohort_symbol *)> owned(made, free_handle<cohort_symbol>);
    return deref(made, "symbol of the bucket").symbol;
  };
}

}  // namespace

void cohort_manager_options_init(cohort_manager_options *options, size_t struct_size) {
  init_struct(options, struct_size);
}

cohort_error *cohort_manager_create(const cohort_symbol *symbol, const cohort_context *contexts, size_t num_contexts,
                                    int64_t batch_size, const cohort_descs *data, const cohort_descs *label,
                                    const char *const *param_names, size_t num_param_names,
                                    const cohort_manager_options *options, cohort_manager **out_manager) {
  return guard([&] {
    require(out_manager, "out_manager");
    const Symbol &graph = deref(symbol, "symbol").symbol;
    const cohort_manager_options set = read_options(options, "options");
    ManagerOptions how;
    how.contexts = to_contexts(contexts, num_contexts, "contexts");
    how.workload = to_workload(set.workload, set.num_workloads);
    how.param_names = to_texts(param_names, num_param_names, "param_names");
    how.all_params = !param_names;
    how.batch_size = batch_size;
    how.symbols = to_bucket_symbols(set);
    how.generator = to_generator(set.bucket_symbol, set.bucket_symbol_user_data);
    if (set.default_bucket_key) how.default_bucket_key = set.default_bucket_key;
    how.num_threads = set.num_threads;
    how.compute = to_compute_types(set);
    how.backward_once = to_bool(set.backward_once, "backward_once");
    how.recompute = to_bool(set.recompute, "recompute");
    how.keep_device_aux = to_bool(set.keep_device_aux, "keep_device_aux");
    how.loss_scale = to_loss_scale(set);
    how.gradient_sum_dtype = to_gradient_sum_dtype(set.gradient_sum_dtype);
    how.seed = set.seed;
    how.log = to_log(set.log, set.log_user_data);
    how.state_names = to_texts(set.state_names, set.num_state_names, "state_names");
    *out_manager = make_handle<cohort_manager>(
        {std::make_shared<Manager>(graph, to_data_descs(data, "data"), to_data_descs(label, "label"), how)});
  });
}

void cohort_manager_free(cohort_manager *manager) {
  const CallScope inside;
  free_handle(manager);
}

cohort_error *cohort_manager_num_contexts(const cohort_manager *manager, size_t *out_num) {
  return guard([&] {
    require(out_num, "out_num");
    *out_num = manager_of(manager).main()->num_devices();
  });
}

cohort_error *cohort_manager_slice(const cohort_manager *manager, size_t device, int64_t *out_begin, int64_t *out_end) {
  return guard([&] {
    require(out_begin, "out_begin");
    require(out_end, "out_end");
    const std::vector<BatchSlice> &slices = manager_of(manager).slices();
    check_index(device, slices.size(), "device");
    *out_begin = slices[device].begin;
    *out_end = slices[device].end;
  });
}

cohort_error *cohort_manager_num_buckets(const cohort_manager *manager, size_t *out_num) {
  return guard([&] {
    require(out_num, "out_num");
    *out_num = manager_of(manager).buckets().size();
  });
}

cohort_error *cohort_manager_bucket(const cohort_manager *manager, size_t index, const char **out_key,
                                    cohort_group **out_group) {
  return guard([&] {
    const auto &buckets = manager_of(manager).buckets();
    check_index(index, buckets.size(), "index");
    const auto &[key, group] = *std::next(buckets.begin(), std::ptrdiff_t(index));
    if (out_group) *out_group = make_handle<cohort_group>({group});
    if (out_key) *out_key = key.c_str();
  });
}

cohort_error *cohort_manager_main_group(const cohort_manager *manager, cohort_group **out_group) {
  return guard([&] {
    require(out_group, "out_group");
    *out_group = make_handle<cohort_group>({manager_of(manager).main()});
  });
}

cohort_error *cohort_manager_current_group(const cohort_manager *manager, cohort_group **out_group) {
  return guard([&] {
    require(out_group, "out_group");
    *out_group = make_handle<cohort_group>({manager_of(manager).current()});
  });
}

cohort_error *cohort_manager_load_data_batch(cohort_manager *manager, cohort_ndarray *const *data, size_t num_data,
                                             cohort_ndarray *const *label, size_t num_label, const char *bucket_key,
                                             const cohort_descs *data_descs, const cohort_descs *label_descs) {
  return guard([&] {
    Manager &target = manager_of(manager);
    ManagerBatch batch;
    batch.data = deref_all(data, num_data, "data");
    batch.labels = deref_all(label, num_label, "label");
    if (bucket_key) batch.bucket_key = bucket_key;
    batch.data_descs = to_data_descs(data_descs, "data_descs");
    batch.label_descs = to_data_descs(label_descs, "label_descs");
    target.load(batch);
  });
}

cohort_error *cohort_manager_forward(cohort_manager *manager, int32_t is_train) {
  return guard([&] { manager_of(manager).forward(is_train); });
}

cohort_error *cohort_manager_backward(cohort_manager *manager) {
  return guard([&] { manager_of(manager).backward(); });
}

cohort_error *cohort_manager_update(cohort_manager *manager, cohort_optimizer *optimizer, int32_t mode) {
  return guard([&] { manager_of(manager).update(deref(optimizer, "optimizer").optimizer, make_update_mode(mode)); });
}

cohort_error *cohort_manager_loss_scale(const cohort_manager *manager, double *out_scale, int32_t *out_num_good,
                                        uint64_t *out_num_skipped) {
  return guard([&] { write_loss_scale(*manager_of(manager).main(), out_scale, out_num_good, out_num_skipped); });
}

cohort_error *cohort_manager_set_loss_scale(cohort_manager *manager, double scale, int32_t num_good) {
  return guard([&] { (*manager_of(manager).main()).set_loss_scale(scale, num_good); });
}

cohort_error *cohort_manager_update_metric(cohort_manager *manager, cohort_metric *metric,
                                           cohort_ndarray *const *labels, size_t num_labels) {
  return guard([&] {
    manager_of(manager).update_metric(*deref(metric, "metric").metric, deref_all(labels, num_labels, "labels"));
  });
}

cohort_error *cohort_manager_update_metric_presliced(cohort_manager *manager, cohort_metric *metric, size_t num_slices,
                                                     cohort_ndarray *const *labels, size_t num_labels) {
  return guard([&] {
    Manager &target = manager_of(manager);
    target.update_metric_presliced(*deref(metric, "metric").metric,
                                   deref_matrix(labels, num_slices, num_labels, "labels"));
  });
}

cohort_error *cohort_manager_num_arrays(const cohort_manager *manager, int32_t list, size_t *out_num) {
  return guard([&] {
    require(out_num, "out_num");
    const GroupList which = make_group_list(list);
    *out_num = manager_of(manager).group_of(which).num_arrays(which);
  });
}

cohort_error *cohort_manager_name(const cohort_manager *manager, int32_t list, size_t index, const char **out_name) {
  return guard([&] {
    require(out_name, "out_name");
    const GroupList which = make_group_list(list);
    *out_name = manager_of(manager).group_of(which).name(which, index).c_str();
  });
}

cohort_error *cohort_manager_array(const cohort_manager *manager, int32_t list, size_t index, size_t device,
                                   cohort_ndarray **out_array) {
  return guard([&] {
    require(out_array, "out_array");
    const GroupList which = make_group_list(list);
    *out_array = array_handle(manager_of(manager).group_of(which).array(which, index, device));
  });
}

cohort_error *cohort_manager_arrays(const cohort_manager *manager, int32_t list, size_t device,
                                    cohort_arrays **out_arrays) {
  return guard([&] {
    require(out_arrays, "out_arrays");
    const GroupList which = make_group_list(list);
    *out_arrays = make_handle<cohort_arrays>(manager_of(manager).group_of(which).arrays(which, device));
  });
}

cohort_error *cohort_manager_merged(const cohort_manager *manager, int32_t list, size_t index,
                                    cohort_ndarray **out_array) {
  return guard([&] {
    require(out_array, "out_array");
    const GroupList which = make_group_list(list);
    *out_array = array_handle(manager_of(manager).group_of(which).merged(which, index));
  });
}

cohort_error *cohort_manager_set_params(cohort_manager *manager, const cohort_arrays *arg_params,
                                        const cohort_arrays *aux_params) {
  return guard([&] {
    manager_of(manager).set_params(deref(arg_params, "arg_params"),
                                   aux_params ? &deref(aux_params, "aux_params") : nullptr);
  });
}

cohort_error *cohort_manager_assign_params(cohort_manager *manager, const cohort_arrays *arg_params,
                                           const cohort_arrays *aux_params, cohort_bool allow_missing,
                                           cohort_bool allow_extra, cohort_descs **out_missing) {
  return guard([&] {
    assign_params(*manager_of(manager).main(), arg_params, aux_params, allow_missing, allow_extra, out_missing);
  });
}

cohort_error *cohort_manager_copy_to(const cohort_manager *manager, const cohort_arrays *arg_params,
                                     const cohort_arrays *aux_params) {
  return guard([&] {
    manager_of(manager).copy_to(deref(arg_params, "arg_params"),
                                aux_params ? &deref(aux_params, "aux_params") : nullptr);
  });
}

cohort_error *cohort_manager_set_states(cohort_manager *manager, cohort_ndarray *const *states, size_t num_states,
                                        size_t num_devices, const double *value) {
  return guard([&] {
    Group &target = *manager_of(manager).current();
    if (!states) return target.set_states(nullptr, value);
    const auto given = deref_matrix(states, num_states, num_devices, "states");
    target.set_states(&given, value);
  });
}

cohort_error *cohort_manager_resume(cohort_manager *manager, cohort_optimizer *optimizer) {
  return guard([&] { manager_of(manager).resume(*deref(optimizer, "optimizer").optimizer); });
}

cohort_error *cohort_manager_memory(const cohort_manager *manager, cohort_memory_info *out_info) {
  return guard([&] {
    const cohort_memory_info info = memory_info(manager_of(manager).memory());
    write_struct(&info, sizeof(info), out_info, "out_info");
  });
}

cohort_error *cohort_manager_set_monitor(cohort_manager *manager, cohort_monitor_fn callback, void *user_data,
                                         int32_t monitor_all) {
  return guard(
      [&] { manager_of(manager).set_monitor(to_monitor(callback, user_data), to_bool(monitor_all, "monitor_all")); });
}
