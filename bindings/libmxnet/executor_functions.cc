// SPDX-License-Identifier: Apache-2.0
// The functions of executors: binding in all forms, passes, outputs, monitors.
#include "executor_handle.hpp"

#include "symbol_graph.hpp"

namespace cohort_mxnet {

std::vector<cohort::NDArray> Executor::arrays(cohort_executor_list list) const {
  std::vector<cohort::NDArray> all(cohort::query<size_t>(cohort_executor_num_arrays, executor.get(), list));
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = cohort::make<cohort::NDArray>(cohort_executor_array, executor.get(), list, i);
  return all;
}

void Executor::follow_seed() {
  const uint64_t generation = seed_generation(context);
  if (generation == generation_) return;
  // The state of a new executor of the same network.
  const auto symbol = cohort::make<cohort::Symbol>(cohort_executor_symbol, executor.get());
  const std::vector<cohort::NDArray> args = arrays(COHORT_EXECUTOR_ARGS), aux = arrays(COHORT_EXECUTOR_AUX);
  const cohort::detail::CStrings names(groups.names);
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  options.ctx_group_names = names.data();
  options.ctx_group_contexts = groups.contexts.data();
  options.num_ctx_groups = groups.contexts.size();
  options.seed = next_seed(context);
  const auto arg_handles = cohort::detail::raw(cohort::Span<cohort::NDArray>(args)),
             aux_handles = cohort::detail::raw(cohort::Span<cohort::NDArray>(aux));
  cohort_executor *made = nullptr;
  cohort::check(cohort_executor_bind(symbol.get(), &context, arg_handles.data(), arg_handles.size(), nullptr, nullptr,
                                     aux_handles.data(), aux_handles.size(), &options, &made));
  const cohort::Executor fresh(made);
  size_t bytes = 0;
  cohort::check(cohort_executor_random_state(fresh.get(), nullptr, 0, &bytes));
  std::string seeded(bytes, '\0');
  cohort::check(cohort_executor_random_state(fresh.get(), seeded.data(), seeded.size(), &bytes));
  cohort::check(cohort_executor_set_random_state(executor.get(), seeded.data(), bytes));
  generation_ = generation;
}

namespace {

// Contexts of nodes by their group, as C of both interfaces takes them.
struct Groups {
  Groups(uint32_t num, const char **keys, const int *device_types, const int *device_ids)
      : names(keys), num_groups(num) {
    if (num == 0) return;
    require(keys, "map_keys"), require(device_types, "map_dev_types"), require(device_ids, "map_dev_ids");
    for (uint32_t i = 0; i < num; ++i) contexts.push_back({device_types[i], device_ids[i]});
  }
  template <typename Options>
  void fill(Options &options) const {
    options.ctx_group_names = names;
    options.ctx_group_contexts = contexts.data();
    options.num_ctx_groups = num_groups;
  }
  NodeGroups kept() const {
    NodeGroups groups;
    for (size_t i = 0; i < num_groups; ++i) groups.names.emplace_back(&required(names[i], "the name of a group"));
    groups.contexts = contexts;
    return groups;
  }
  const char **names;
  size_t num_groups;
  std::vector<cohort_context> contexts;
};

template <typename Length>
void add_shapes(cohort::Descs &known, uint32_t num, const char **names, const Length *lengths, const uint32_t *begins) {
  if (num == 0) return;
  require(names, "provided_arg_shape_names"), require(begins, "provided_arg_shape_idx");
  for (uint32_t i = 0; i < num; ++i) {
    if (begins[i + 1] < begins[i] || begins[i + 1] - begins[i] > COHORT_MAX_AXES)
      fail("the shape of '" + std::string(&required(names[i], "a name")) + "': a number of axes out of range");
    if (begins[i + 1] > begins[i]) require(lengths, "provided_arg_shape_data");
    cohort::Shape shape;
    for (uint32_t a = begins[i]; a < begins[i + 1]; ++a)
      shape.push_back(static_cast<int64_t>(lengths[a]) < 0 ? 0 : static_cast<int64_t>(lengths[a]));
    if (!shape.empty() || is_numpy_shape()) known.add(cohort::Desc(names[i], shape));
  }
}

void add_dtypes(cohort::Descs &known, uint32_t num, const char **names, const int *dtypes) {
  if (num == 0) return;
  require(names, "provided_arg_dtype_names"), require(dtypes, "provided_arg_dtypes");
  cohort::Descs merged;
  std::vector<bool> used(num, false);
  for (cohort::Desc &desc : known.list()) {
    for (uint32_t i = 0; i < num; ++i) {
      if (desc.name != &required(names[i], "a name")) continue;
      desc.dtype = dtypes[i];
      used[i] = true;
    }
    merged.add(desc);
  }
  for (uint32_t i = 0; i < num; ++i)
    if (!used[i]) merged.add(cohort::Desc::of_dtype(&required(names[i], "a name"), dtypes[i]));
  known = std::move(merged);
}

// Lists of handles of the thread's last executor.
struct GivenArrays {
  std::vector<void *> args, grads, aux;

  void give(const Executor &executor, uint32_t *num_in_args, void ***in_args, void ***arg_grads,
            uint32_t *num_aux_states, void ***aux_states) {
    NewHandles new_args, new_grads, new_aux;
    add_handles(executor, COHORT_EXECUTOR_ARGS, new_args);
    add_handles(executor, COHORT_EXECUTOR_GRADS, new_grads);
    add_handles(executor, COHORT_EXECUTOR_AUX, new_aux);
    args = new_args.release();
    grads = new_grads.release();
    aux = new_aux.release();
    *num_in_args = static_cast<uint32_t>(args.size());
    *in_args = args.data();
    *arg_grads = grads.data();
    *num_aux_states = static_cast<uint32_t>(aux.size());
    *aux_states = aux.data();
  }

 private:
  static void add_handles(const Executor &executor, cohort_executor_list list, NewHandles &handles) {
    for (cohort::NDArray &array : executor.arrays(list))
      handles.add(array ? std::make_shared<NDArray>(std::move(array)) : nullptr);
  }
};

GivenArrays &given_arrays() {
  static thread_local GivenArrays of_thread;
  return of_thread;
}

cohort::Symbol bound_symbol(const void *handle) {
  cohort::Symbol symbol = from_handle<Symbol>(handle)->get();
  if (!symbol) fail("a symbol without outputs cannot be bound");
  return symbol;
}

void bind(void *symbol_handle, const cohort_context &context, const Groups &groups, uint32_t num_args, void **in_args,
          void **arg_grads, const uint32_t *grad_reqs, uint32_t num_aux, void **aux_states, void *shared_exec,
          void **out) {
  require(out, "out");
  const cohort::Symbol symbol = bound_symbol(symbol_handle);
  const auto shared = from_handle_or_null<Executor>(shared_exec);
  std::vector<cohort::NDArray> kept;
  std::vector<cohort_ndarray *> args, grads, aux;
  const auto keep = [&](const void *handle) {
    kept.push_back(ndarray(handle)->share());
    return kept.back().get();
  };
  if (num_args > 0) require(in_args, "in_args");
  if (num_aux > 0) require(aux_states, "aux_states");
  for (uint32_t i = 0; i < num_args; ++i) args.push_back(keep(in_args[i]));
  for (uint32_t i = 0; i < num_aux; ++i) aux.push_back(keep(aux_states[i]));
  std::vector<cohort_grad_req> reqs;
  for (uint32_t i = 0; i < num_args; ++i) {
    const void *const grad = arg_grads ? arg_grads[i] : nullptr;
    uint32_t req = grad ? COHORT_GRAD_WRITE : COHORT_GRAD_NULL;
    if (grad_reqs) req = grad_reqs[i];
    if (req == 2) req = COHORT_GRAD_WRITE;  // in place
    if (!grad) req = COHORT_GRAD_NULL;
    reqs.push_back(static_cast<cohort_grad_req>(req));
    grads.push_back(req == COHORT_GRAD_NULL ? nullptr : keep(grad));
  }
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  groups.fill(options);
  options.seed = next_seed(context);
  if (shared) options.shared_executor = shared->executor.get();
  cohort_executor *made = nullptr;
  const size_t num_expected = symbol.names(COHORT_SYMBOL_ARGUMENTS).size();
  if (num_expected != num_args)
    fail("expected " + std::to_string(num_expected) + " arrays for arguments, found " + std::to_string(num_args));
  cohort::check(cohort_executor_bind(symbol.get(), &context, args.data(), args.size(), grads.data(), reqs.data(),
                                     aux.data(), aux.size(), &options, &made));
  *out = publish(std::make_shared<Executor>(nullptr, cohort::Executor(made), context, groups.kept()));
}

template <typename Length>
void simple_bind(void *symbol_handle, const cohort_context &context, const Groups &groups, uint32_t num_grad_reqs,
                 const char **grad_req_names, const char **grad_req_types, uint32_t num_shapes,
                 const char **shape_names, const Length *lengths, const uint32_t *begins, uint32_t num_dtypes,
                 const char **dtype_names, const int *dtypes, uint32_t num_stypes, const char **stype_names,
                 const int *stypes, uint32_t num_shared_args, const char **shared_arg_names, int *num_shared_arrays,
                 const char **shared_names, void **shared_handles, const char ***updated_names, void ***updated_handles,
                 uint32_t *num_in_args, void ***in_args, void ***arg_grads, uint32_t *num_aux_states,
                 void ***aux_states, void *shared_exec, void **out) {
  require(out, "out"), require(num_in_args, "num_in_args"), require(in_args, "in_args");
  require(arg_grads, "arg_grads"), require(num_aux_states, "num_aux_states"), require(aux_states, "aux_states");
  const cohort::Symbol symbol = bound_symbol(symbol_handle);
  const auto shared = from_handle_or_null<Executor>(shared_exec);
  cohort::Descs known;
  add_shapes(known, num_shapes, shape_names, lengths, begins);
  add_dtypes(known, num_dtypes, dtype_names, dtypes);

  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  groups.fill(options);
  options.seed = next_seed(context);
  if (shared) options.shared_executor = shared->executor.get();
  if (num_grad_reqs == 0) {
    if (grad_req_types) options.grad_req = &required(grad_req_types[0], "the gradient request");
  } else {
    options.grad_req_list = grad_req_types;
    options.grad_req_names = grad_req_names;
    options.num_grad_reqs = num_grad_reqs;
  }
  std::vector<cohort_storage_type> storage;
  for (uint32_t i = 0; i < num_stypes; ++i) storage.push_back((&required(stypes, "provided_arg_stypes"))[i]);
  options.storage_names = stype_names;
  options.storage_types = storage.data();
  options.num_storage_types = num_stypes;
  options.shared_arg_names = shared_arg_names;
  options.num_shared_arg_names = num_shared_args;
  cohort::Arrays pool;
  const bool has_pool = num_shared_arrays && *num_shared_arrays >= 0;
  if (has_pool) {
    for (int i = 0; i < *num_shared_arrays; ++i)
      pool.add(&required((&required(shared_names, "shared_buffer_name_list"))[i], "a name"),
               ndarray((&required(shared_handles, "shared_buffer_handle_list"))[i])->array());
    options.shared_data = pool.get();
  }
  cohort_executor *made = nullptr;
  cohort::check(cohort_executor_simple_bind(symbol.get(), &context, known.get(), &options, &made));
  const auto executor = std::make_shared<Executor>(nullptr, cohort::Executor(made), context, groups.kept());
  if (has_pool) {
    static thread_local Texts names;
    static thread_local std::vector<void *> handles;
    NewHandles new_handles;
    for (cohort::NDArray &array : pool.list()) new_handles.add(std::make_shared<NDArray>(std::move(array)));
    const char **const pointers = names.assign(pool.names());
    handles = new_handles.release();
    *num_shared_arrays = static_cast<int>(handles.size());
    if (updated_names) *updated_names = pointers;
    if (updated_handles) *updated_handles = handles.data();
  }
  given_arrays().give(*executor, num_in_args, in_args, arg_grads, num_aux_states, aux_states);
  *out = publish(executor);
}

template <typename Length>
void reshape(int partial_shaping, int allow_up_sizing, const cohort_context &context, const Groups &groups,
             uint32_t num_shapes, const char **shape_names, const Length *lengths, const uint32_t *begins,
             uint32_t *num_in_args, void ***in_args, void ***arg_grads, uint32_t *num_aux_states, void ***aux_states,
             void *handle, void **out) {
  require(out, "out"), require(num_in_args, "num_in_args"), require(in_args, "in_args");
  require(arg_grads, "arg_grads"), require(num_aux_states, "num_aux_states"), require(aux_states, "aux_states");
  const auto source = from_handle<Executor>(handle);
  cohort::Descs known;
  add_shapes(known, num_shapes, shape_names, lengths, begins);
  cohort_reshape_options options = COHORT_RESHAPE_OPTIONS_INIT;
  options.partial_shaping = partial_shaping != 0;
  options.allow_up_sizing = allow_up_sizing != 0;
  options.context = &context;
  groups.fill(options);
  cohort_executor *made = nullptr;
  cohort::check(cohort_executor_reshape(source->executor.get(), known.get(), &options, &made));
  const auto executor = std::make_shared<Executor>(source->monitor, cohort::Executor(made), context,
                                                   groups.num_groups > 0 ? groups.kept() : source->groups);
  given_arrays().give(*executor, num_in_args, in_args, arg_grads, num_aux_states, aux_states);
  *out = publish(executor);
}

// The host owns the handle that it is given.
void show(const char *name, cohort_ndarray *array, void *user_data) {
  const HostMonitor monitor = *static_cast<const HostMonitor *>(user_data);
  guarded([&] {
    monitor.callback(name, new_ndarray(cohort::make<cohort::NDArray>(cohort_ndarray_share, array)), monitor.user_data);
  });
}

int set_monitor(void *handle, ExecutorMonitorCallback callback, void *callback_handle, bool monitor_all) {
  return guarded([&] {
    const auto executor = from_handle<Executor>(handle);
    auto monitor = callback ? std::make_shared<HostMonitor>(HostMonitor{callback, callback_handle}) : nullptr;
    cohort::check(
        cohort_executor_set_monitor(executor->executor.get(), callback ? show : nullptr, monitor.get(), monitor_all));
    executor->monitor = std::move(monitor);
  });
}

}  // namespace

}  // namespace cohort_mxnet

using namespace cohort_mxnet;

extern "C" {

int MXExecutorBindEX(SymbolHandle symbol_handle, int dev_type, int dev_id, uint32_t num_map_keys, const char **map_keys,
                     const int *map_dev_types, const int *map_dev_ids, uint32_t len, NDArrayHandle *in_args,
                     NDArrayHandle *arg_grad_store, uint32_t *grad_req_type, uint32_t aux_states_len,
                     NDArrayHandle *aux_states, ExecutorHandle shared_exec, ExecutorHandle *out) {
  return guarded([&] {
    const Groups groups(num_map_keys, map_keys, map_dev_types, map_dev_ids);
    bind(symbol_handle, {dev_type, dev_id}, groups, len, in_args, arg_grad_store, grad_req_type, aux_states_len,
         aux_states, shared_exec, out);
  });
}

int MXExecutorBindX(SymbolHandle symbol_handle, int dev_type, int dev_id, uint32_t num_map_keys, const char **map_keys,
                    const int *map_dev_types, const int *map_dev_ids, uint32_t len, NDArrayHandle *in_args,
                    NDArrayHandle *arg_grad_store, uint32_t *grad_req_type, uint32_t aux_states_len,
                    NDArrayHandle *aux_states, ExecutorHandle *out) {
  return MXExecutorBindEX(symbol_handle, dev_type, dev_id, num_map_keys, map_keys, map_dev_types, map_dev_ids, len,
                          in_args, arg_grad_store, grad_req_type, aux_states_len, aux_states, nullptr, out);
}

int MXExecutorBind(SymbolHandle symbol_handle, int dev_type, int dev_id, uint32_t len, NDArrayHandle *in_args,
                   NDArrayHandle *arg_grad_store, uint32_t *grad_req_type, uint32_t aux_states_len,
                   NDArrayHandle *aux_states, ExecutorHandle *out) {
  return MXExecutorBindEX(symbol_handle, dev_type, dev_id, 0, nullptr, nullptr, nullptr, len, in_args, arg_grad_store,
                          grad_req_type, aux_states_len, aux_states, nullptr, out);
}

int MXExecutorSimpleBind(SymbolHandle symbol_handle, int dev_type, int dev_id, const uint32_t num_g2c_keys,
                         const char **g2c_keys, const int *g2c_dev_types, const int *g2c_dev_ids,
                         const uint32_t provided_grad_req_list_len, const char **provided_grad_req_names,
                         const char **provided_grad_req_types, const uint32_t num_provided_arg_shapes,
                         const char **provided_arg_shape_names, const uint32_t *provided_arg_shape_data,
                         const uint32_t *provided_arg_shape_idx, const uint32_t num_provided_arg_dtypes,
                         const char **provided_arg_dtype_names, const int *provided_arg_dtypes,
                         const uint32_t num_provided_arg_stypes, const char **provided_arg_stype_names,
                         const int *provided_arg_stypes, const uint32_t num_shared_arg_names,
                         const char **shared_arg_name_list, int *shared_buffer_len,
                         const char **shared_buffer_name_list, NDArrayHandle *shared_buffer_handle_list,
                         const char ***updated_shared_buffer_name_list,
                         NDArrayHandle **updated_shared_buffer_handle_list, uint32_t *num_in_args,
                         NDArrayHandle **in_args, NDArrayHandle **arg_grads, uint32_t *num_aux_states,
                         NDArrayHandle **aux_states, ExecutorHandle shared_exec_handle, ExecutorHandle *out) {
  return guarded([&] {
    const Groups groups(num_g2c_keys, g2c_keys, g2c_dev_types, g2c_dev_ids);
    simple_bind(symbol_handle, {dev_type, dev_id}, groups, provided_grad_req_list_len, provided_grad_req_names,
                provided_grad_req_types, num_provided_arg_shapes, provided_arg_shape_names, provided_arg_shape_data,
                provided_arg_shape_idx, num_provided_arg_dtypes, provided_arg_dtype_names, provided_arg_dtypes,
                num_provided_arg_stypes, provided_arg_stype_names, provided_arg_stypes, num_shared_arg_names,
                shared_arg_name_list, shared_buffer_len, shared_buffer_name_list, shared_buffer_handle_list,
                updated_shared_buffer_name_list, updated_shared_buffer_handle_list, num_in_args, in_args, arg_grads,
                num_aux_states, aux_states, shared_exec_handle, out);
  });
}

int MXExecutorSimpleBindEx(
    SymbolHandle symbol_handle, int dev_type, int dev_id, const uint32_t num_g2c_keys, const char **g2c_keys,
    const int *g2c_dev_types, const int *g2c_dev_ids, const uint32_t provided_grad_req_list_len,
    const char **provided_grad_req_names, const char **provided_grad_req_types, const uint32_t num_provided_arg_shapes,
    const char **provided_arg_shape_names, const int *provided_arg_shape_data, const uint32_t *provided_arg_shape_idx,
    const uint32_t num_provided_arg_dtypes, const char **provided_arg_dtype_names, const int *provided_arg_dtypes,
    const uint32_t num_provided_arg_stypes, const char **provided_arg_stype_names, const int *provided_arg_stypes,
    const uint32_t num_shared_arg_names, const char **shared_arg_name_list, int *shared_buffer_len,
    const char **shared_buffer_name_list, NDArrayHandle *shared_buffer_handle_list,
    const char ***updated_shared_buffer_name_list, NDArrayHandle **updated_shared_buffer_handle_list,
    uint32_t *num_in_args, NDArrayHandle **in_args, NDArrayHandle **arg_grads, uint32_t *num_aux_states,
    NDArrayHandle **aux_states, ExecutorHandle shared_exec_handle, ExecutorHandle *out) {
  return guarded([&] {
    const Groups groups(num_g2c_keys, g2c_keys, g2c_dev_types, g2c_dev_ids);
    simple_bind(symbol_handle, {dev_type, dev_id}, groups, provided_grad_req_list_len, provided_grad_req_names,
                provided_grad_req_types, num_provided_arg_shapes, provided_arg_shape_names, provided_arg_shape_data,
                provided_arg_shape_idx, num_provided_arg_dtypes, provided_arg_dtype_names, provided_arg_dtypes,
                num_provided_arg_stypes, provided_arg_stype_names, provided_arg_stypes, num_shared_arg_names,
                shared_arg_name_list, shared_buffer_len, shared_buffer_name_list, shared_buffer_handle_list,
                updated_shared_buffer_name_list, updated_shared_buffer_handle_list, num_in_args, in_args, arg_grads,
                num_aux_states, aux_states, shared_exec_handle, out);
  });
}

int MXExecutorSimpleBindEx64(SymbolHandle symbol_handle, int dev_type, int dev_id, const uint32_t num_g2c_keys,
                             const char **g2c_keys, const int *g2c_dev_types, const int *g2c_dev_ids,
                             const uint32_t provided_grad_req_list_len, const char **provided_grad_req_names,
                             const char **provided_grad_req_types, const uint32_t num_provided_arg_shapes,
                             const char **provided_arg_shape_names, const int64_t *provided_arg_shape_data,
                             const uint32_t *provided_arg_shape_idx, const uint32_t num_provided_arg_dtypes,
                             const char **provided_arg_dtype_names, const int *provided_arg_dtypes,
                             const uint32_t num_provided_arg_stypes, const char **provided_arg_stype_names,
                             const int *provided_arg_stypes, const uint32_t num_shared_arg_names,
                             const char **shared_arg_name_list, int *shared_buffer_len,
                             const char **shared_buffer_name_list, NDArrayHandle *shared_buffer_handle_list,
                             const char ***updated_shared_buffer_name_list,
                             NDArrayHandle **updated_shared_buffer_handle_list, uint32_t *num_in_args,
                             NDArrayHandle **in_args, NDArrayHandle **arg_grads, uint32_t *num_aux_states,
                             NDArrayHandle **aux_states, ExecutorHandle shared_exec_handle, ExecutorHandle *out) {
  return guarded([&] {
    const Groups groups(num_g2c_keys, g2c_keys, g2c_dev_types, g2c_dev_ids);
    simple_bind(symbol_handle, {dev_type, dev_id}, groups, provided_grad_req_list_len, provided_grad_req_names,
                provided_grad_req_types, num_provided_arg_shapes, provided_arg_shape_names, provided_arg_shape_data,
                provided_arg_shape_idx, num_provided_arg_dtypes, provided_arg_dtype_names, provided_arg_dtypes,
                num_provided_arg_stypes, provided_arg_stype_names, provided_arg_stypes, num_shared_arg_names,
                shared_arg_name_list, shared_buffer_len, shared_buffer_name_list, shared_buffer_handle_list,
                updated_shared_buffer_name_list, updated_shared_buffer_handle_list, num_in_args, in_args, arg_grads,
                num_aux_states, aux_states, shared_exec_handle, out);
  });
}

int MXExecutorReshape(int partial_shaping, int allow_up_sizing, int dev_type, int dev_id, uint32_t num_map_keys,
                      const char **map_keys, const int *map_dev_types, const int *map_dev_ids,
                      const uint32_t num_provided_arg_shapes, const char **provided_arg_shape_names,
                      const uint32_t *provided_arg_shape_data, const uint32_t *provided_arg_shape_idx,
                      uint32_t *num_in_args, NDArrayHandle **in_args, NDArrayHandle **arg_grads,
                      uint32_t *num_aux_states, NDArrayHandle **aux_states, ExecutorHandle shared_exec,
                      ExecutorHandle *out) {
  return guarded([&] {
    const Groups groups(num_map_keys, map_keys, map_dev_types, map_dev_ids);
    reshape(partial_shaping, allow_up_sizing, {dev_type, dev_id}, groups, num_provided_arg_shapes,
            provided_arg_shape_names, provided_arg_shape_data, provided_arg_shape_idx, num_in_args, in_args, arg_grads,
            num_aux_states, aux_states, shared_exec, out);
  });
}

int MXExecutorReshapeEx(int partial_shaping, int allow_up_sizing, int dev_type, int dev_id, uint32_t num_map_keys,
                        const char **map_keys, const int *map_dev_types, const int *map_dev_ids,
                        const uint32_t num_provided_arg_shapes, const char **provided_arg_shape_names,
                        const int *provided_arg_shape_data, const uint32_t *provided_arg_shape_idx,
                        uint32_t *num_in_args, NDArrayHandle **in_args, NDArrayHandle **arg_grads,
                        uint32_t *num_aux_states, NDArrayHandle **aux_states, ExecutorHandle shared_exec,
                        ExecutorHandle *out) {
  return guarded([&] {
    const Groups groups(num_map_keys, map_keys, map_dev_types, map_dev_ids);
    reshape(partial_shaping, allow_up_sizing, {dev_type, dev_id}, groups, num_provided_arg_shapes,
            provided_arg_shape_names, provided_arg_shape_data, provided_arg_shape_idx, num_in_args, in_args, arg_grads,
            num_aux_states, aux_states, shared_exec, out);
  });
}

int MXExecutorFree(ExecutorHandle handle) {
  return guarded([&] { free_handle<Executor>(handle); });
}

int MXExecutorForward(ExecutorHandle handle, int is_train) {
  return guarded([&] {
    const auto executor = from_handle<Executor>(handle);
    executor->follow_seed();
    cohort::check(cohort_executor_forward(executor->executor.get(), is_train != 0));
  });
}

int MXExecutorBackwardEx(ExecutorHandle handle, uint32_t len, NDArrayHandle *head_grads, int is_train) {
  return guarded([&] {
    const auto executor = from_handle<Executor>(handle);
    std::vector<std::shared_ptr<NDArray>> kept;
    std::vector<cohort_ndarray *> handles;
    if (len > 0) require(head_grads, "head_grads");
    for (uint32_t i = 0; i < len; ++i) {
      kept.push_back(from_handle_or_null<NDArray>(head_grads[i]));
      handles.push_back(kept.back() ? kept.back()->array().get() : nullptr);
    }
    cohort::check(cohort_executor_backward(executor->executor.get(), handles.data(), handles.size(), is_train != 0));
  });
}

int MXExecutorBackward(ExecutorHandle handle, uint32_t len, NDArrayHandle *head_grads) {
  return MXExecutorBackwardEx(handle, len, head_grads, 1);
}

int MXExecutorOutputs(ExecutorHandle handle, uint32_t *out_size, NDArrayHandle **out) {
  return guarded([&] {
    static thread_local std::vector<void *> handles;
    require(out_size, "out_size"), require(out, "out");
    NewHandles new_handles;
    for (cohort::NDArray &array : from_handle<Executor>(handle)->arrays(COHORT_EXECUTOR_OUTPUTS))
      new_handles.add(array ? std::make_shared<NDArray>(std::move(array)) : std::make_shared<NDArray>());
    handles = new_handles.release();
    *out_size = static_cast<uint32_t>(handles.size());
    *out = handles.data();
  });
}

int MXExecutorPrint(ExecutorHandle handle, const char **out_str) {
  return guarded([&] {
    static thread_local std::string text;
    require(out_str, "out_str");
    text = cohort::query<const char *>(cohort_executor_debug_text, from_handle<Executor>(handle)->executor.get());
    *out_str = text.c_str();
  });
}

int MXExecutorGetOptimizedSymbol(ExecutorHandle handle, SymbolHandle *out) {
  return guarded([&] {
    required(out, "out") =
        new_symbol(cohort::make<cohort::Symbol>(cohort_executor_symbol, from_handle<Executor>(handle)->executor.get()));
  });
}

int MXExecutorSetMonitorCallback(ExecutorHandle handle, ExecutorMonitorCallback callback, void *callback_handle) {
  return set_monitor(handle, callback, callback_handle, false);
}

int MXExecutorSetMonitorCallbackEX(ExecutorHandle handle, ExecutorMonitorCallback callback, void *callback_handle,
                                   bool monitor_all) {
  return set_monitor(handle, callback, callback_handle, monitor_all);
}

}  // extern "C"
