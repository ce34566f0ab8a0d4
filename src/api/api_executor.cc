// SPDX-License-Identifier: Apache-2.0
#include "cohort/executor.h"

#include "api/objects.hpp"

using namespace cohort;
using namespace cohort::api;

namespace cohort::api {

cohort_executor *executor_handle(std::shared_ptr<Executor> executor) {
  return make_handle<cohort_executor>({std::move(executor), std::string()});
}

std::vector<std::pair<std::string, Shape>> to_known_shapes(const cohort_descs *known) {
  std::vector<std::pair<std::string, Shape>> shapes;
  if (!known) return shapes;
  for (const Desc &desc : deref(known, "known")) {
    if (desc.name.empty()) throw Error(Code::kInvalidArgument, "known: expected a name for each entry", "known");
    if (desc.shape.rank_known()) shapes.emplace_back(desc.name, unknown_from_zero(desc.shape));
  }
  return shapes;
}

std::vector<std::pair<std::string, Dtype>> to_known_dtypes(const cohort_descs *known) {
  std::vector<std::pair<std::string, Dtype>> dtypes;
  if (!known) return dtypes;
  for (const Desc &desc : deref(known, "known")) {
    if (desc.dtype != Dtype::kNone) dtypes.emplace_back(desc.name, desc.dtype);
  }
  return dtypes;
}

MonitorFunction to_monitor(cohort_monitor_fn callback, void *user_data) {
  if (!callback) return nullptr;
  return [callback, user_data](const std::string &name, const NDArray &array) {
    const ScopedHandle<cohort_ndarray> lent(array);
    callback(name.c_str(), lent.get(), user_data);
  };
}

cohort_memory_info memory_info(const MemoryUse &use) {
  cohort_memory_info info = COHORT_MEMORY_INFO_INIT;
  info.planned_bytes = use.planned_bytes;
  info.intermediate_bytes = use.intermediate_bytes;
  info.argument_bytes = use.argument_bytes;
  info.gradient_bytes = use.gradient_bytes;
  info.output_bytes = use.output_bytes;
  info.value_bytes = use.value_bytes;
  return info;
}

}  // namespace cohort::api

namespace {

Executor &executor_of(const cohort_executor *executor) { return *deref(executor, "executor").executor; }

std::map<std::string, Context> to_group2ctx(const char *const *names, const cohort_context *contexts, size_t count) {
  const std::vector<std::string> groups = to_texts(names, count, "ctx_group_names");
  const std::vector<Context> places = to_contexts(contexts, count, "ctx_group_contexts");
  std::map<std::string, Context> group2ctx;
  for (size_t i = 0; i < count; ++i) {
    if (!group2ctx.emplace(groups[i], places[i]).second) {
      throw Error(Code::kName, text("ctx_group_names: '", groups[i], "' is given twice"), groups[i]);
    }
  }
  return group2ctx;
}

ExecutorOptions to_executor_options(const cohort_executor_options &set, const cohort_context *context) {
  ExecutorOptions options;
  options.context = to_context(context);
  options.group2ctx = to_group2ctx(set.ctx_group_names, set.ctx_group_contexts, set.num_ctx_groups);
  options.num_threads = set.num_threads;
  options.compute = to_compute_types(set);
  options.backward_once = to_bool(set.backward_once, "backward_once");
  options.recompute = to_bool(set.recompute, "recompute");
  options.seed = set.seed;
  if (set.shared_executor) options.shared = deref(set.shared_executor, "shared_executor").executor;
  return options;
}

enum class List { kArgs, kGrads, kAux, kOutputs };

List to_list(int32_t list) {
  if (list < COHORT_EXECUTOR_ARGS || list > COHORT_EXECUTOR_OUTPUTS) {
    throw Error(Code::kInvalidArgument, text("list: expected a COHORT_EXECUTOR_ constant, found ", list), "list");
  }
  return List(list);
}

const std::vector<NDArray> &arrays_of(const Executor &executor, int32_t list) {
  switch (to_list(list)) {
    case List::kArgs:
      return executor.args();
    case List::kGrads:
      return executor.grads();
    case List::kAux:
      return executor.aux();
    default:
      return executor.outputs();
  }
}

const std::vector<std::string> &names_of(const Executor &executor, int32_t list) {
  switch (to_list(list)) {
    case List::kAux:
      return executor.aux_names();
    case List::kOutputs:
      return executor.output_names();
    default:
      return executor.arg_names();
  }
}

// There is a gradient for each argument, null where there is none, even if the list is empty.
NDArray array_at(const Executor &executor, int32_t list, size_t index) {
  check_index(index, names_of(executor, list).size(), "index");
  const std::vector<NDArray> &arrays = arrays_of(executor, list);
  return index < arrays.size() ? arrays[index] : NDArray();
}

}  // namespace

void cohort_executor_options_init(cohort_executor_options *options, size_t struct_size) {
  init_struct(options, struct_size);
}

void cohort_reshape_options_init(cohort_reshape_options *options, size_t struct_size) {
  init_struct(options, struct_size);
}

cohort_error *cohort_executor_bind(const cohort_symbol *symbol, const cohort_context *context,
                                   cohort_ndarray *const *args, size_t num_args, cohort_ndarray *const *grads,
                                   const int32_t *grad_req, cohort_ndarray *const *aux, size_t num_aux,
                                   const cohort_executor_options *options, cohort_executor **out_executor) {
  return guard([&] {
    require(out_executor, "out_executor");
    const Symbol &graph = deref(symbol, "symbol").symbol;
    const ExecutorOptions how = to_executor_options(read_options(options, "options"), context);
    std::vector<NDArray> arguments = deref_all(args, num_args, "args");
    std::vector<NDArray> gradients(num_args);
    if (grads) gradients = deref_all_or_null(grads, num_args, "grads");
    std::vector<GradReq> reqs(num_args, GradReq::kWrite);
    for (size_t k = 0; grad_req && k < num_args; ++k) reqs[k] = make_grad_req(grad_req[k]);
    *out_executor = executor_handle(Executor::bind(graph, std::move(arguments), std::move(gradients), std::move(reqs),
                                                   deref_all(aux, num_aux, "aux"), how));
  });
}

cohort_error *cohort_executor_simple_bind(const cohort_symbol *symbol, const cohort_context *context,
                                          const cohort_descs *known, const cohort_executor_options *options,
                                          cohort_executor **out_executor) {
  return guard([&] {
    require(out_executor, "out_executor");
    const Symbol &graph = deref(symbol, "symbol").symbol;
    const cohort_executor_options set = read_options(options, "options");
    const ExecutorOptions how = to_executor_options(set, context);
    const auto to_places = [](const cohort_context *contexts, const std::vector<std::string> &names,
                              const char *which) {
      return contexts ? to_contexts(contexts, names.size(), which) : std::vector<Context>();
    };
    const std::vector<std::string> arguments = graph.list_arguments();
    SimpleBind what;
    const auto names = to_texts(set.storage_names, set.num_storage_types, "storage_names");
    require(set.storage_types, names.size(), "storage_types");
    for (size_t i = 0; i < names.size(); ++i) what.storage_types.emplace_back(names[i], set.storage_types[i]);
    what.shapes = to_known_shapes(known);
    what.dtypes = to_known_dtypes(known);
    what.grad_req = to_grad_reqs(set);
    what.arg_contexts = to_places(set.arg_contexts, arguments, "arg_contexts");
    what.grad_contexts = to_places(set.grad_contexts, arguments, "grad_contexts");
    what.aux_contexts = to_places(set.aux_contexts, graph.list_auxiliary_states(), "aux_contexts");
    what.strict_dtypes = to_bool(set.strict_dtypes, "strict_dtypes");
    NamedArrays *shared = set.shared_data ? &deref(set.shared_data, "shared_data") : nullptr;
    ArrayPool pool;
    if (shared) {
      for (const std::string &name : to_texts(set.shared_arg_names, set.num_shared_arg_names, "shared_arg_names")) {
        what.param_names.insert(name);
      }
      for (const auto &[name, array] : *shared) {
        if (!array) throw Error(Code::kInvalidArgument, text("shared_data: '", name, "' has no array"), name);
        if (!pool.emplace(name, array).second) {
          throw Error(Code::kName, text("shared_data: '", name, "' is given twice"), name);
        }
      }
      what.pool = &pool;
    }
    ScopedHandle<cohort_executor> bound({Executor::simple_bind(graph, what, how), std::string()});
    if (shared) *shared = NamedArrays(pool.begin(), pool.end());
    *out_executor = bound.release();
  });
}

cohort_error *cohort_executor_reshape(const cohort_executor *executor, const cohort_descs *known,
                                      const cohort_reshape_options *options, cohort_executor **out_executor) {
  return guard([&] {
    require(out_executor, "out_executor");
    Executor &parent = executor_of(executor);
    const cohort_reshape_options set = read_options(options, "options");
    ReshapeOptions how;
    if (set.context) how.context = to_context(set.context);
    if (set.num_ctx_groups > 0) {
      how.group2ctx = to_group2ctx(set.ctx_group_names, set.ctx_group_contexts, set.num_ctx_groups);
    }
    how.partial_shaping = to_bool(set.partial_shaping, "partial_shaping");
    how.allow_up_sizing = to_bool(set.allow_up_sizing, "allow_up_sizing");
    how.shapes = to_known_shapes(known);
    *out_executor = executor_handle(parent.reshape(how));
  });
}

void cohort_executor_free(cohort_executor *executor) {
  const CallScope inside;
  free_handle(executor);
}

cohort_error *cohort_executor_symbol(const cohort_executor *executor, cohort_symbol **out_symbol) {
  return guard([&] {
    require(out_symbol, "out_symbol");
    *out_symbol = symbol_handle(executor_of(executor).symbol());
  });
}

cohort_error *cohort_executor_context(const cohort_executor *executor, cohort_context *out_context) {
  return guard([&] {
    require(out_context, "out_context");
    *out_context = from_context(executor_of(executor).options().context);
  });
}

cohort_error *cohort_executor_num_arrays(const cohort_executor *executor, int32_t list, size_t *out_num) {
  return guard([&] {
    require(out_num, "out_num");
    *out_num = names_of(executor_of(executor), list).size();
  });
}

cohort_error *cohort_executor_name(const cohort_executor *executor, int32_t list, size_t index, const char **out_name) {
  return guard([&] {
    require(out_name, "out_name");
    const std::vector<std::string> &names = names_of(executor_of(executor), list);
    check_index(index, names.size(), "index");
    *out_name = names[index].c_str();
  });
}

cohort_error *cohort_executor_array(const cohort_executor *executor, int32_t list, size_t index,
                                    cohort_ndarray **out_array) {
  return guard([&] {
    require(out_array, "out_array");
    *out_array = array_handle(array_at(executor_of(executor), list, index));
  });
}

cohort_error *cohort_executor_array_named(const cohort_executor *executor, int32_t list, const char *name,
                                          cohort_ndarray **out_array) {
  return guard([&] {
    require(out_array, "out_array");
    ExecutorObject &object = deref(executor, "executor");
    const Executor &source = *object.executor;
    const std::vector<std::string> &names = names_of(source, list);
    NameIndex &places = to_list(list) == List::kAux       ? object.aux
                        : to_list(list) == List::kOutputs ? object.outputs
                                                          : object.args;
    const size_t index = places.find(
        names.size(), [&](size_t i) -> const std::string & { return names[i]; }, to_text(name, "name"),
        "this list of the executor");
    *out_array = array_handle(array_at(source, list, index));
  });
}

cohort_error *cohort_executor_arrays(const cohort_executor *executor, int32_t list, cohort_arrays **out_arrays) {
  return guard([&] {
    require(out_arrays, "out_arrays");
    const Executor &source = executor_of(executor);
    const std::vector<std::string> &names = names_of(source, list);
    NamedArrays arrays;
    for (size_t i = 0; i < names.size(); ++i) arrays.emplace_back(names[i], array_at(source, list, i));
    *out_arrays = make_handle<cohort_arrays>(std::move(arrays));
  });
}

cohort_error *cohort_executor_grad_req(const cohort_executor *executor, size_t index, int32_t *out_grad_req) {
  return guard([&] {
    require(out_grad_req, "out_grad_req");
    const std::vector<GradReq> &reqs = executor_of(executor).grad_reqs();
    check_index(index, reqs.size(), "index");
    *out_grad_req = int32_t(reqs[index]);
  });
}

cohort_error *cohort_executor_set_inputs(cohort_executor *executor, const cohort_arrays *inputs) {
  return guard([&] { executor_of(executor).copy_params_from(deref(inputs, "inputs"), {}, false); });
}

cohort_error *cohort_executor_copy_params_from(cohort_executor *executor, const cohort_arrays *arg_params,
                                               const cohort_arrays *aux_params, int32_t allow_extra) {
  return guard([&] {
    executor_of(executor).copy_params_from(deref(arg_params, "arg_params"),
                                           aux_params ? deref(aux_params, "aux_params") : NamedArrays(),
                                           to_bool(allow_extra, "allow_extra"));
  });
}

cohort_error *cohort_executor_forward(cohort_executor *executor, int32_t is_train) {
  return guard([&] { executor_of(executor).forward(to_bool(is_train, "is_train")); });
}

cohort_error *cohort_executor_partial_forward(cohort_executor *executor, int32_t is_train, int32_t step,
                                              int32_t *out_step_left) {
  return guard([&] {
    require(out_step_left, "out_step_left");
    *out_step_left = executor_of(executor).partial_forward(to_bool(is_train, "is_train"), step);
  });
}

cohort_error *cohort_executor_backward(cohort_executor *executor, cohort_ndarray *const *head_grads,
                                       size_t num_head_grads, int32_t is_train) {
  return guard([&] {
    const std::vector<NDArray> grads = deref_all_or_null(head_grads, num_head_grads, "head_grads");
    executor_of(executor).backward({grads.begin(), grads.end()}, to_bool(is_train, "is_train"));
  });
}

cohort_error *cohort_executor_wait(cohort_executor *executor) {
  return guard([&] { executor_of(executor).wait(); });
}

cohort_error *cohort_executor_set_monitor(cohort_executor *executor, cohort_monitor_fn callback, void *user_data,
                                          int32_t monitor_all) {
  return guard(
      [&] { executor_of(executor).set_monitor(to_monitor(callback, user_data), to_bool(monitor_all, "monitor_all")); });
}

cohort_error *cohort_executor_random_state(const cohort_executor *executor, void *out_data, size_t capacity,
                                           size_t *out_bytes) {
  return guard([&] {
    const Executor &source = executor_of(executor);
    source.check_idle("random_state");
    const std::string bytes = random_state_bytes({source.stream_access().positions()});
    write_bytes(bytes.data(), bytes.size(), out_data, capacity, out_bytes);
  });
}

cohort_error *cohort_executor_set_random_state(cohort_executor *executor, const void *data, size_t bytes) {
  return guard([&] {
    require(data, bytes, "data");
    const Executor &target = executor_of(executor);
    target.check_idle("set_random_state");
    const std::vector<RandomPositions> devices = random_state_of(data, bytes, "data");
    if (devices.size() != 1) {
      throw Error(Code::kInvalidArgument, text("random state: expected that of one device, found ", devices.size()),
                  "data");
    }
    const StreamAccess streams = target.stream_access();
    streams.check(devices[0]);
    streams.set(devices[0]);
  });
}

cohort_error *cohort_executor_debug_text(const cohort_executor *executor, const char **out_text) {
  return guard([&] {
    require(out_text, "out_text");
    ExecutorObject &object = deref(executor, "executor");
    object.debug_text = object.executor->debug_text();
    *out_text = object.debug_text.c_str();
  });
}

cohort_error *cohort_executor_memory(const cohort_executor *executor, cohort_memory_info *out_info) {
  return guard([&] {
    const cohort_memory_info info = memory_info(executor_of(executor).memory());
    write_struct(&info, sizeof(info), out_info, "out_info");
  });
}
