// SPDX-License-Identifier: Apache-2.0
#include "cohort/group.h"

#include "api/objects.hpp"

using namespace cohort;
using namespace cohort::api;

namespace cohort::api {

DataDescs to_data_descs(const cohort_descs *descs, const char *what) {
  DataDescs result;
  if (!descs) return result;
  for (const Desc &desc : deref(descs, what)) {
    if (desc.name.empty()) throw Error(Code::kInvalidArgument, text(what, ": expected a name for each entry"), what);
    if (!desc.shape.rank_known()) {
      throw Error(Code::kInvalidArgument, text(what, " '", desc.name, "': expected a shape, found none"), desc.name);
    }
    DataDesc &added = result.emplace_back();
    added.name = desc.name;
    added.shape = desc.shape;
    if (desc.dtype != Dtype::kNone) added.dtype = desc.dtype;
    added.layout = desc.layout;
  }
  return result;
}

std::function<void(LogLevel, const std::string &)> to_log(cohort_log_fn log, void *user_data) {
  if (!log) return nullptr;
  return [log, user_data](LogLevel level, const std::string &message) {
    send_inside_call(log, int(level), message, user_data);
  };
}

std::vector<double> to_workload(const double *workload, size_t num_workloads) {
  require(workload, num_workloads, "workload");
  return std::vector<double>(workload, workload + num_workloads);
}

std::vector<std::vector<NDArray>> deref_matrix(cohort_ndarray *const *arrays, size_t num_outer, size_t num_inner,
                                               const char *what) {
  size_t count;
  if (__builtin_mul_overflow(num_outer, num_inner, &count)) {
    throw Error(Code::kInvalidArgument, text(what, ": ", num_outer, " times ", num_inner, " arrays"), what);
  }
  require(arrays, count, what);
  std::vector<std::vector<NDArray>> matrix;
  matrix.reserve(num_outer);
  for (size_t i = 0; i < num_outer; ++i) matrix.push_back(deref_all(arrays + i * num_inner, num_inner, what));
  return matrix;
}

DescList to_desc_list(const DataDescs &descs) {
  DescList list;
  for (const DataDesc &desc : descs) list.push_back({desc.name, desc.shape, desc.dtype, desc.layout});
  return list;
}

}  // namespace cohort::api

namespace {

Group &group_of(const cohort_group *group) {
  Group &found = *deref(group, "group").group;
  CallScope::use_group(&found);
  return found;
}

cohort_descs *descs_handle(const DataDescs &descs) { return make_handle<cohort_descs>(to_desc_list(descs)); }

std::vector<std::map<std::string, Context>> to_group2ctx(const cohort_group_options &set, size_t num_contexts) {
  const auto names = to_texts(set.ctx_group_names, set.num_ctx_groups, "ctx_group_names");
  if (names.empty()) return {};
  const size_t num_maps = set.contexts_per_ctx_group ? set.contexts_per_ctx_group : 1;
  if (num_maps != 1 && num_maps != num_contexts) {  // check before that many are read
    throw Error(Code::kInvalidArgument,
                text("contexts_per_ctx_group: expected 1 or ", num_contexts, ", found ", num_maps),
                "contexts_per_ctx_group");
  }
  require(set.ctx_group_contexts, names.size() * num_maps, "ctx_group_contexts");
  std::vector<std::map<std::string, Context>> maps(num_maps);
  for (size_t i = 0; i < names.size(); ++i) {
    for (size_t k = 0; k < num_maps; ++k) {
      const cohort_context &context = set.ctx_group_contexts[i * num_maps + k];
      if (context.device_type == 0) continue;
      if (!maps[k].emplace(names[i], to_context(&context)).second) {
        throw Error(Code::kName, text("ctx_group_names: '", names[i], "' is given twice"), names[i]);
      }
    }
  }
  return maps;
}

std::map<std::string, NDArray> to_given(const cohort_arrays *arrays, bool for_training, const char *what) {
  std::map<std::string, NDArray> given;
  if (!arrays) return given;
  if (for_training) {
    throw Error(Code::kInvalidArgument, text(what, ": expected none where for_training is 1, found a list"), what);
  }
  for (const auto &[name, array] : deref(arrays, what)) {
    if (!array) throw Error(Code::kInvalidArgument, text(what, ": '", name, "' has no array"), name);
    given[name] = array;
  }
  return given;
}

GroupOptions to_group_options(const cohort_group_options &set, const cohort_context *contexts, size_t num_contexts,
                              const char *const *param_names, size_t num_param_names, int32_t for_training) {
  GroupOptions options;
  options.contexts = to_contexts(contexts, num_contexts, "contexts");
  options.workload = to_workload(set.workload, set.num_workloads);
  options.rounding = make_rounding(set.rounding);
  require(set.slices, set.num_slices, "slices");
  for (size_t i = 0; i < set.num_slices; ++i) options.slices.push_back({set.slices[2 * i], set.slices[2 * i + 1]});
  options.param_names = to_texts(param_names, num_param_names, "param_names");
  options.all_params = !param_names;
  options.for_training = to_bool(for_training, "for_training");
  options.inputs_need_grad = to_bool(set.inputs_need_grad, "inputs_need_grad");
  options.fixed_param_names = to_texts(set.fixed_param_names, set.num_fixed_param_names, "fixed_param_names");
  options.grad_req = to_grad_reqs(set);
  options.state_names = to_texts(set.state_names, set.num_state_names, "state_names");
  const auto dtype_names = to_texts(set.input_dtype_names, set.num_input_dtypes, "input_dtype_names");
  require(set.input_dtypes, set.num_input_dtypes, "input_dtypes");
  for (size_t i = 0; i < dtype_names.size(); ++i) {
    options.input_dtypes.emplace_back(dtype_names[i], to_dtype(set.input_dtypes[i]));
  }
  options.group2ctx = to_group2ctx(set, num_contexts);
  options.num_threads = set.num_threads;
  options.compute = to_compute_types(set);
  options.backward_once = to_bool(set.backward_once, "backward_once");
  options.recompute = to_bool(set.recompute, "recompute");
  options.stop_if_not_finite = to_bool(set.stop_if_not_finite, "stop_if_not_finite");
  options.strict_names = to_bool(set.strict_names, "strict_names");
  options.keep_device_aux = to_bool(set.keep_device_aux, "keep_device_aux");
  options.loss_scale = to_loss_scale(set);
  options.gradient_bucket_bytes = set.gradient_bucket_bytes;
  options.gradient_sum_dtype = to_gradient_sum_dtype(set.gradient_sum_dtype);
  options.seed = set.seed;
  options.log = to_log(set.log, set.log_user_data);
  options.given_params = to_given(set.arg_params, options.for_training, "arg_params");
  options.given_aux = to_given(set.aux_params, options.for_training, "aux_params");
  options.arg_names = to_texts(set.arg_names, set.num_arg_names, "arg_names");
  return options;
}

std::shared_ptr<Group> to_shared_group(cohort_group *group) {
  return group ? deref(group, "shared_group").group : nullptr;
}

}  // namespace

cohort_error *cohort_layout_batch_axis(const char *layout, int32_t *out_axis) {
  return guard([&] {
    require(out_axis, "out_axis");
    *out_axis = layout ? batch_axis(layout) : 0;
  });
}

cohort_error *cohort_split_slices(int64_t batch_size, const double *workload, size_t num_contexts, int32_t rounding,
                                  int64_t *out_begin, int64_t *out_end) {
  return guard([&] {
    require(out_begin, "out_begin");
    require(out_end, "out_end");
    std::vector<double> weights;
    if (workload) weights.assign(workload, workload + num_contexts);
    const std::vector<BatchSlice> slices = split_batch(batch_size, weights, num_contexts, make_rounding(rounding));
    for (size_t i = 0; i < slices.size(); ++i) {
      out_begin[i] = slices[i].begin;
      out_end[i] = slices[i].end;
    }
  });
}

void cohort_group_options_init(cohort_group_options *options, size_t struct_size) { init_struct(options, struct_size); }

cohort_error *cohort_group_create(const cohort_symbol *symbol, const cohort_context *contexts, size_t num_contexts,
                                  const cohort_descs *data, const cohort_descs *label, const char *const *param_names,
                                  size_t num_param_names, int32_t for_training, const cohort_group_options *options,
                                  cohort_group **out_group) {
  return guard([&] {
    require(out_group, "out_group");
    const Symbol &graph = deref(symbol, "symbol").symbol;
    const cohort_group_options set = read_options(options, "options");
    const GroupOptions how = to_group_options(set, contexts, num_contexts, param_names, num_param_names, for_training);
    *out_group = make_handle<cohort_group>({Group::create(
        graph, to_data_descs(data, "data"), to_data_descs(label, "label"), how, to_shared_group(set.shared_group))});
  });
}

void cohort_group_free(cohort_group *group) {
  const CallScope inside;
  free_handle(group);
}

cohort_error *cohort_group_bind(cohort_group *group, const cohort_descs *data, const cohort_descs *label,
                                cohort_group *shared_group, int32_t rebind) {
  return guard([&] {
    group_of(group).bind(to_data_descs(data, "data"), to_data_descs(label, "label"), to_shared_group(shared_group),
                         to_bool(rebind, "rebind"));
  });
}

cohort_error *cohort_group_reshape(cohort_group *group, const cohort_descs *data, const cohort_descs *label) {
  return guard([&] { group_of(group).reshape(to_data_descs(data, "data"), to_data_descs(label, "label")); });
}

cohort_error *cohort_group_num_contexts(const cohort_group *group, size_t *out_num) {
  return guard([&] {
    require(out_num, "out_num");
    *out_num = group_of(group).num_devices();
  });
}

cohort_error *cohort_group_context(const cohort_group *group, size_t device, cohort_context *out_context) {
  return guard([&] {
    require(out_context, "out_context");
    const Group &source = group_of(group);
    *out_context = from_context(source.context(device));
  });
}

cohort_error *cohort_group_executor(const cohort_group *group, size_t device, cohort_executor **out_executor) {
  return guard([&] {
    require(out_executor, "out_executor");
    const Group &source = group_of(group);
    *out_executor = executor_handle(source.executor(device));
  });
}

cohort_error *cohort_group_batch_size(const cohort_group *group, int64_t *out_batch_size) {
  return guard([&] {
    require(out_batch_size, "out_batch_size");
    *out_batch_size = group_of(group).batch_size();
  });
}

cohort_error *cohort_group_slice(const cohort_group *group, size_t device, int64_t *out_begin, int64_t *out_end) {
  return guard([&] {
    require(out_begin, "out_begin");
    require(out_end, "out_end");
    const Group &source = group_of(group);
    const BatchSlice slice = source.slice(device);
    *out_begin = slice.begin;
    *out_end = slice.end;
  });
}

cohort_error *cohort_group_decide_slices(const cohort_group *group, const cohort_descs *descs, int32_t *out_axes) {
  return guard([&] {
    require(out_axes, "out_axes");
    require(descs, "descs");
    const std::vector<int> axes = group_of(group).decide_slices(to_data_descs(descs, "descs"));
    for (size_t i = 0; i < axes.size(); ++i) out_axes[i] = axes[i];
  });
}

cohort_error *cohort_group_sliced_shape(const cohort_group *group, const cohort_descs *descs, size_t device,
                                        const int32_t *axes, cohort_descs **out_descs) {
  return guard([&] {
    require(out_descs, "out_descs");
    require(descs, "descs");
    const Group &source = group_of(group);
    const DataDescs whole = to_data_descs(descs, "descs");
    std::vector<int> given;
    if (axes) given.assign(axes, axes + whole.size());
    *out_descs = descs_handle(source.sliced_shape(whole, device, axes ? &given : nullptr));
  });
}

cohort_error *cohort_group_descs(const cohort_group *group, int32_t list, cohort_descs **out_descs) {
  return guard([&] {
    require(out_descs, "out_descs");
    *out_descs = descs_handle(group_of(group).descs(make_group_list(list)));
  });
}

cohort_error *cohort_group_output_shapes(const cohort_group *group, cohort_descs **out_descs) {
  return guard([&] {
    require(out_descs, "out_descs");
    *out_descs = descs_handle(group_of(group).output_shapes());
  });
}

cohort_error *cohort_group_num_arrays(const cohort_group *group, int32_t list, size_t *out_num) {
  return guard([&] {
    require(out_num, "out_num");
    *out_num = group_of(group).num_arrays(make_group_list(list));
  });
}

cohort_error *cohort_group_name(const cohort_group *group, int32_t list, size_t index, const char **out_name) {
  return guard([&] {
    require(out_name, "out_name");
    *out_name = group_of(group).name(make_group_list(list), index).c_str();
  });
}

cohort_error *cohort_group_axis(const cohort_group *group, int32_t list, size_t index, int32_t *out_axis) {
  return guard([&] {
    require(out_axis, "out_axis");
    *out_axis = group_of(group).axis(make_group_list(list), index);
  });
}

cohort_error *cohort_group_array(const cohort_group *group, int32_t list, size_t index, size_t device,
                                 cohort_ndarray **out_array) {
  return guard([&] {
    require(out_array, "out_array");
    *out_array = array_handle(group_of(group).array(make_group_list(list), index, device));
  });
}

cohort_error *cohort_group_arrays(const cohort_group *group, int32_t list, size_t device, cohort_arrays **out_arrays) {
  return guard([&] {
    require(out_arrays, "out_arrays");
    *out_arrays = make_handle<cohort_arrays>(group_of(group).arrays(make_group_list(list), device));
  });
}

cohort_error *cohort_group_merged(const cohort_group *group, int32_t list, size_t index, cohort_ndarray **out_array) {
  return guard([&] {
    require(out_array, "out_array");
    *out_array = array_handle(group_of(group).merged(make_group_list(list), index));
  });
}

cohort_error *cohort_group_shared_data(const cohort_group *group, size_t device, cohort_arrays **out_arrays) {
  return guard([&] {
    require(out_arrays, "out_arrays");
    const Group &source = group_of(group);
    *out_arrays = make_handle<cohort_arrays>(source.shared_data(device));
  });
}

cohort_error *cohort_group_set_params(cohort_group *group, const cohort_arrays *arg_params,
                                      const cohort_arrays *aux_params, int32_t allow_extra) {
  return guard([&] {
    group_of(group).set_params(deref(arg_params, "arg_params"), aux_params ? &deref(aux_params, "aux_params") : nullptr,
                               to_bool(allow_extra, "allow_extra"));
  });
}

cohort_error *cohort_group_assign_params(cohort_group *group, const cohort_arrays *arg_params,
                                         const cohort_arrays *aux_params, cohort_bool allow_missing,
                                         cohort_bool allow_extra, cohort_descs **out_missing) {
  return guard(
      [&] { assign_params(group_of(group), arg_params, aux_params, allow_missing, allow_extra, out_missing); });
}

cohort_error *cohort_group_get_params(const cohort_group *group, const cohort_arrays *arg_params,
                                      const cohort_arrays *aux_params) {
  return guard([&] {
    group_of(group).get_params(deref(arg_params, "arg_params"),
                               aux_params ? &deref(aux_params, "aux_params") : nullptr);
  });
}

cohort_error *cohort_group_copy_params(const cohort_group *group, cohort_arrays **out_arg_params,
                                       cohort_arrays **out_aux_params) {
  return guard([&] {
    require(out_arg_params, "out_arg_params");
    require(out_aux_params, "out_aux_params");
    NamedArrays args, aux;
    group_of(group).copy_params(&args, &aux);
    ScopedHandle<cohort_arrays> arg_params(std::move(args)), aux_params(std::move(aux));
    *out_arg_params = arg_params.release();
    *out_aux_params = aux_params.release();
  });
}

cohort_error *cohort_group_load(cohort_group *group, cohort_ndarray *const *data, size_t num_data,
                                cohort_ndarray *const *label, size_t num_label) {
  return guard([&] { group_of(group).load(deref_all(data, num_data, "data"), deref_all(label, num_label, "label")); });
}

cohort_error *cohort_group_run(cohort_group *group, int32_t is_train) {
  return guard([&] { group_of(group).run(is_train); });
}

cohort_error *cohort_group_forward(cohort_group *group, cohort_ndarray *const *data, size_t num_data,
                                   cohort_ndarray *const *label, size_t num_label, int32_t is_train) {
  return guard([&] {
    group_of(group).forward(deref_all(data, num_data, "data"), deref_all(label, num_label, "label"), is_train);
  });
}

cohort_error *cohort_group_forward_presliced(cohort_group *group, size_t num_slices, cohort_ndarray *const *data,
                                             size_t num_data, cohort_ndarray *const *label, size_t num_label,
                                             int32_t is_train) {
  return guard([&] {
    Group &target = group_of(group);
    const auto labels =
        num_label ? deref_matrix(label, num_slices, num_label, "label") : std::vector<std::vector<NDArray>>();
    target.forward_presliced(deref_matrix(data, num_slices, num_data, "data"), labels, is_train);
  });
}

cohort_error *cohort_group_backward(cohort_group *group, cohort_ndarray *const *head_grads, size_t num_head_grads) {
  return guard([&] { group_of(group).backward(deref_all_or_null(head_grads, num_head_grads, "head_grads")); });
}

cohort_error *cohort_group_update(cohort_group *group, cohort_optimizer *optimizer, int32_t mode) {
  return guard([&] { group_of(group).update(deref(optimizer, "optimizer").optimizer, make_update_mode(mode)); });
}

cohort_error *cohort_group_loss_scale(const cohort_group *group, double *out_scale, int32_t *out_num_good,
                                      uint64_t *out_num_skipped) {
  return guard([&] { write_loss_scale(*deref(group, "group").group, out_scale, out_num_good, out_num_skipped); });
}

cohort_error *cohort_group_set_loss_scale(cohort_group *group, double scale, int32_t num_good) {
  return guard([&] { (*deref(group, "group").group).set_loss_scale(scale, num_good); });
}

cohort_error *cohort_group_update_metric(cohort_group *group, cohort_metric *metric, cohort_ndarray *const *labels,
                                         size_t num_labels) {
  return guard(
      [&] { group_of(group).update_metric(*deref(metric, "metric").metric, deref_all(labels, num_labels, "labels")); });
}

cohort_error *cohort_group_update_metric_presliced(cohort_group *group, cohort_metric *metric, size_t num_slices,
                                                   cohort_ndarray *const *labels, size_t num_labels) {
  return guard([&] {
    Group &source = group_of(group);
    source.update_metric_presliced(*deref(metric, "metric").metric,
                                   deref_matrix(labels, num_slices, num_labels, "labels"));
  });
}

cohort_error *cohort_group_set_states(cohort_group *group, cohort_ndarray *const *states, size_t num_states,
                                      size_t num_devices, const double *value) {
  return guard([&] {
    Group &target = group_of(group);
    if (!states) return target.set_states(nullptr, value);
    const auto given = deref_matrix(states, num_states, num_devices, "states");
    target.set_states(&given, value);
  });
}

cohort_error *cohort_group_random_state(const cohort_group *group, void *out_data, size_t capacity, size_t *out_bytes) {
  return guard([&] {
    const std::string bytes = random_state_bytes(group_of(group).random_state());
    write_bytes(bytes.data(), bytes.size(), out_data, capacity, out_bytes);
  });
}

cohort_error *cohort_group_set_random_state(cohort_group *group, const void *data, size_t bytes) {
  return guard([&] {
    require(data, bytes, "data");
    group_of(group).set_random_state(random_state_of(data, bytes, "data"));
  });
}

cohort_error *cohort_group_resume(cohort_group *group, cohort_optimizer *optimizer) {
  return guard([&] { group_of(group).resume(*deref(optimizer, "optimizer").optimizer); });
}

cohort_error *cohort_group_set_monitor(cohort_group *group, cohort_monitor_fn callback, void *user_data,
                                       int32_t monitor_all) {
  return guard(
      [&] { group_of(group).set_monitor(to_monitor(callback, user_data), to_bool(monitor_all, "monitor_all")); });
}

cohort_error *cohort_group_wait(cohort_group *group) {
  return guard([&] { group_of(group).wait(); });
}

cohort_error *cohort_group_memory(const cohort_group *group, size_t device, cohort_memory_info *out_info) {
  return guard([&] {
    const Group &source = group_of(group);
    const cohort_memory_info info = memory_info(source.memory(device));
    write_struct(&info, sizeof(info), out_info, "out_info");
  });
}
