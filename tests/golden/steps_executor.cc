// SPDX-License-Identifier: Apache-2.0
// Steps on executors.
#include <algorithm>

#include "scenario.hpp"

namespace golden {
namespace {

const cohort_context kDefault = {COHORT_DEVICE_CPU, 0};

cohort_context default_context(const Scenario &scenario, const Value &step) {
  const Value &text = step.get("context");
  if (text.is_text()) return context_of(text.as_text(), scenario.settings);
  return scenario.settings.contexts.empty() ? kDefault : scenario.settings.contexts[0];
}

size_t num_arrays(const cohort_executor *executor, int32_t list) {
  return query<size_t>(cohort_executor_num_arrays, executor, list);
}

std::string name_at(const cohort_executor *executor, int32_t list, size_t index) {
  return query<const char *>(cohort_executor_name, executor, list, index);
}

NDArray array_at(const cohort_executor *executor, int32_t list, size_t index) {
  return make<NDArray>(cohort_executor_array, executor, list, index);
}

Value shapes_of(const cohort_executor *executor, int32_t list, bool by_name) {
  Value shapes = by_name ? Value::object() : Value::list();
  for (size_t i = 0; i < num_arrays(executor, list); ++i) {
    const Value shape = Value::integers(shape_of(array_at(executor, list, i).get()));
    by_name ? shapes.set(name_at(executor, list, i), shape) : shapes.add(shape);
  }
  return shapes;
}

// The result of a step that binds: shapes, types, and which arguments have gradients.
Value describe(const cohort_executor *executor) {
  Value types = Value::object(), has_grad = Value::list(), found = Value::object();
  for (size_t i = 0; i < num_arrays(executor, COHORT_EXECUTOR_ARGS); ++i) {
    const std::string name = name_at(executor, COHORT_EXECUTOR_ARGS, i);
    const NDArray array = array_at(executor, COHORT_EXECUTOR_ARGS, i);
    types.set(name, Value::text(dtype_text(query<int32_t>(cohort_ndarray_dtype, array.get()))));
    if (array_at(executor, COHORT_EXECUTOR_GRADS, i)) has_grad.add(Value::text(name));
  }
  found.set("arg_shapes", shapes_of(executor, COHORT_EXECUTOR_ARGS, true));
  found.set("arg_types", types);
  found.set("has_grad", has_grad);
  found.set("aux_shapes", shapes_of(executor, COHORT_EXECUTOR_AUX, true));
  found.set("output_shapes", shapes_of(executor, COHORT_EXECUTOR_OUTPUTS, false));
  return found;
}

Value store(Scenario &scenario, const std::string &name, ExecutorObject made) {
  ExecutorObject &stored = scenario.executors[name] = std::move(made);
  return describe(stored.handle.get());
}

Value exec_simple_bind(Scenario &scenario, const Value &step) {
  const Descs known = known_descs(step.get("shapes"), step.get("types"));
  const cohort_context context = default_context(scenario, step);
  const GradReq grad_req(step.get("grad_req"));
  const std::vector<std::string> shared_names = step.get("shared_arg_names").as_texts();
  const std::vector<const char *> shared_names_c = c_strings(shared_names);
  const Arrays pool = make<Arrays>(cohort_arrays_create);
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  grad_req.fill(options);
  if (!step.get("shared_exec").is_null()) {
    options.shared_executor = scenario.executor(step, "shared_exec").handle.get();
    options.shared_arg_names = shared_names_c.data();
    options.num_shared_arg_names = shared_names_c.size();
    options.shared_data = pool.get();
  }
  ExecutorObject made;
  made.handle = make<Executor>(cohort_executor_simple_bind, scenario.symbol(step.at("symbol").as_text()), &context,
                               known.get(), &options);
  return store(scenario, step.at("exec").as_text(), std::move(made));
}

// Copies of the arrays of a map, in the order of a list of names.
std::vector<NDArray> copies_in_order(Scenario &scenario, const Value &map, const std::vector<std::string> &names,
                                     bool required, const cohort_context &context) {
  std::vector<NDArray> copies;
  for (const std::string &name : names) {
    const Value *reference = map.is_null() ? nullptr : map.find(name);
    if (!reference && required) throw CallError(COHORT_ERROR_NAME, "no array is given for '" + name + "'");
    copies.push_back(reference ? copy_of(scenario.files.array(*reference).get(), context) : NDArray());
  }
  return copies;
}

int32_t grad_code(const std::string &word) {
  if (word == "null") return COHORT_GRAD_NULL;
  if (word == "write") return COHORT_GRAD_WRITE;
  if (word == "add") return COHORT_GRAD_ADD;
  throw CallError(COHORT_ERROR_INVALID_ARGUMENT, "grad_req '" + word + "' is not null, write or add");
}

std::vector<int32_t> grad_codes(const Value &grad_req, const std::vector<std::string> &names) {
  std::vector<int32_t> codes(names.size(), grad_code(grad_req.is_text() ? grad_req.as_text() : "write"));
  if (grad_req.is_list()) {
    if (grad_req.items().size() != names.size())
      throw CallError(COHORT_ERROR_INVALID_ARGUMENT, "grad_req does not have one entry per argument");
    for (size_t i = 0; i < names.size(); ++i) codes[i] = grad_code(grad_req.items()[i].as_text());
  } else if (grad_req.is_object()) {
    for (size_t i = 0; i < names.size(); ++i) codes[i] = grad_code(grad_req.word(names[i], "null"));
  }
  return codes;
}

Value exec_bind(Scenario &scenario, const Value &step) {
  const cohort_symbol *symbol = scenario.symbol(step.at("symbol").as_text());
  const cohort_context context = default_context(scenario, step);
  const std::vector<std::string> names = symbol_names(symbol, COHORT_SYMBOL_ARGUMENTS);
  const std::vector<NDArray> args = copies_in_order(scenario, step.at("args"), names, true, context);
  const std::vector<NDArray> grads = copies_in_order(scenario, step.get("args_grad"), names, false, context);
  const std::vector<NDArray> aux =
      copies_in_order(scenario, step.get("aux"), symbol_names(symbol, COHORT_SYMBOL_AUX), true, context);
  const std::vector<int32_t> codes = grad_codes(step.get("grad_req"), names);
  ExecutorObject made;
  made.handle = make<Executor>(cohort_executor_bind, symbol, &context, raw(args).data(), args.size(), raw(grads).data(),
                               codes.data(), raw(aux).data(), aux.size(), nullptr);
  return store(scenario, step.at("exec").as_text(), std::move(made));
}

Value exec_set(Scenario &scenario, const Value &step) {
  const cohort_executor *executor = scenario.executor(step).handle.get();
  const std::pair<const char *, int32_t> lists[] = {
      {"arg", COHORT_EXECUTOR_ARGS}, {"grad", COHORT_EXECUTOR_GRADS}, {"aux", COHORT_EXECUTOR_AUX}};
  for (const auto &list : lists) {
    const Value &map = step.get(list.first);
    for (size_t i = 0; !map.is_null() && i < map.keys().size(); ++i) {
      const auto target = make<NDArray>(cohort_executor_array_named, executor, list.second, map.keys()[i].c_str());
      if (!target) throw BadCase("argument '" + map.keys()[i] + "' has no gradient to set");
      check(cohort_ndarray_copy_to(scenario.files.array(map.items()[i]).get(), target.get()));
    }
  }
  return Value();
}

Value exec_copy_params(Scenario &scenario, const Value &step) {
  const Arrays arg = scenario.files.named(step.get("arg")), aux = scenario.files.named(step.get("aux"));
  check(cohort_executor_copy_params_from(scenario.executor(step).handle.get(), arg.get(), aux.get(),
                                         step.flag("allow_extra", false)));
  return Value();
}

Value values(Value all) {
  Value found = Value::object();
  found.set("values", std::move(all));
  return found;
}

Value exec_outputs(Scenario &scenario, const Value &step) {
  const cohort_executor *executor = scenario.executor(step).handle.get();
  Value all = Value::list();
  for (size_t i = 0; i < num_arrays(executor, COHORT_EXECUTOR_OUTPUTS); ++i)
    all.add(Value::array(array_at(executor, COHORT_EXECUTOR_OUTPUTS, i).get()));
  return values(all);
}

Value exec_forward(Scenario &scenario, const Value &step) {
  cohort_executor *executor = scenario.executor(step).handle.get();
  if (!step.get("inputs").is_null())
    check(cohort_executor_set_inputs(executor, scenario.files.named(step.at("inputs")).get()));
  check(cohort_executor_forward(executor, step.flag("is_train", false)));
  return exec_outputs(scenario, step);
}

Value exec_partial_forward(Scenario &scenario, const Value &step) {
  int32_t step_left = -1;
  check(cohort_executor_partial_forward(scenario.executor(step).handle.get(), step.flag("is_train", false),
                                        static_cast<int32_t>(step.at("step").as_integer()), &step_left));
  Value found = Value::object();
  found.set("step_left", Value::integer(step_left));
  return found;
}

Value exec_backward(Scenario &scenario, const Value &step) {
  cohort_executor *executor = scenario.executor(step).handle.get();
  const Value &given = step.get("head_grads");
  std::vector<NDArray> head_grads;
  if (given.is_object()) {
    for (size_t i = 0; i < num_arrays(executor, COHORT_EXECUTOR_OUTPUTS); ++i) {
      const std::string name = name_at(executor, COHORT_EXECUTOR_OUTPUTS, i);
      const Value *reference = given.find(name);
      if (!reference) throw CallError(COHORT_ERROR_NAME, "no head gradient is given for '" + name + "'");
      head_grads.push_back(scenario.files.array(*reference));
    }
  } else {
    head_grads = scenario.files.arrays(given);
  }
  check(
      cohort_executor_backward(executor, head_grads.empty() ? nullptr : raw(head_grads).data(), head_grads.size(), 1));
  return Value();
}

// Arrays of a list by name (null if there is none): all, or those that the step names.
Value list_values(Scenario &scenario, const Value &step, int32_t list) {
  const cohort_executor *executor = scenario.executor(step).handle.get();
  const std::vector<std::string> wanted = step.get("names").as_texts();
  Value all = Value::object();
  for (size_t i = 0; i < num_arrays(executor, list); ++i) {
    const std::string name = name_at(executor, list, i);
    if (step.get("names").is_null() || std::find(wanted.begin(), wanted.end(), name) != wanted.end())
      all.set(name, Value::array(array_at(executor, list, i).get()));
  }
  return values(all);
}

Value exec_args(Scenario &scenario, const Value &step) { return list_values(scenario, step, COHORT_EXECUTOR_ARGS); }
Value exec_grads(Scenario &scenario, const Value &step) { return list_values(scenario, step, COHORT_EXECUTOR_GRADS); }
Value exec_aux(Scenario &scenario, const Value &step) { return list_values(scenario, step, COHORT_EXECUTOR_AUX); }

Value exec_reshape(Scenario &scenario, const Value &step) {
  const ExecutorObject &parent = scenario.executor(step);
  const Descs known = known_descs(step.at("shapes"), Value());
  cohort_reshape_options options = COHORT_RESHAPE_OPTIONS_INIT;
  options.partial_shaping = step.flag("partial_shaping", false);
  options.allow_up_sizing = step.flag("allow_up_sizing", false);
  ExecutorObject made;
  made.handle = make<Executor>(cohort_executor_reshape, parent.handle.get(), known.get(), &options);
  made.monitored = parent.monitored;  // the new executor has taken over the callback
  return store(scenario, step.at("as").as_text(), std::move(made));
}

void append_name(const char *name, cohort_ndarray *, void *names) {
  static_cast<std::vector<std::string> *>(names)->push_back(name);
}

Value exec_set_monitor(Scenario &scenario, const Value &step) {
  ExecutorObject &executor = scenario.executor(step);
  auto names = std::make_shared<std::vector<std::string>>();
  check(cohort_executor_set_monitor(executor.handle.get(), append_name, names.get(), step.flag("monitor_all", false)));
  executor.monitored = std::move(names);
  return Value();
}

Value exec_monitor_names(Scenario &scenario, const Value &step) {
  const ExecutorObject &executor = scenario.executor(step);
  if (!executor.monitored) throw BadCase("no monitor is set on this executor");
  Value found = Value::object();
  found.set("names", Value::texts(*executor.monitored));
  executor.monitored->clear();
  return found;
}

}  // namespace

void add_executor_steps(StepTable &table) {
  table["exec_simple_bind"] = exec_simple_bind;
  table["exec_bind"] = exec_bind;
  table["exec_set"] = exec_set;
  table["exec_copy_params"] = exec_copy_params;
  table["exec_forward"] = exec_forward;
  table["exec_partial_forward"] = exec_partial_forward;
  table["exec_backward"] = exec_backward;
  table["exec_outputs"] = exec_outputs;
  table["exec_args"] = exec_args;
  table["exec_grads"] = exec_grads;
  table["exec_aux"] = exec_aux;
  table["exec_reshape"] = exec_reshape;
  table["exec_set_monitor"] = exec_set_monitor;
  table["exec_monitor_names"] = exec_monitor_names;
}

}  // namespace golden
