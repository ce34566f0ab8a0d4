// SPDX-License-Identifier: Apache-2.0
// Steps on executors.
#include <algorithm>

#include "scenario.hpp"

namespace golden {
namespace {

Context default_context(const Scenario &scenario, const Value &step) {
  const Value &text = step.get("context");
  if (text.is_text()) return context_of(text.as_text(), scenario.settings);
  return scenario.settings.contexts.empty() ? cpu() : scenario.settings.contexts[0];
}

Value shapes_of(const Executor &executor, int32_t list, bool by_name) {
  Value shapes = by_name ? Value::object() : Value::list();
  for (size_t i = 0; i < executor.num_arrays(list); ++i) {
    const Value shape = Value::integers(executor.array(list, i).shape());
    by_name ? shapes.set(executor.name(list, i), shape) : shapes.add(shape);
  }
  return shapes;
}

// The result of a step that binds: shapes, types, and which arguments have gradients.
Value describe(const Executor &executor) {
  Value types = Value::object(), has_grad = Value::list(), found = Value::object();
  for (size_t i = 0; i < executor.num_arrays(COHORT_EXECUTOR_ARGS); ++i) {
    const std::string name = executor.name(COHORT_EXECUTOR_ARGS, i);
    const NDArray array = executor.array(COHORT_EXECUTOR_ARGS, i);
    types.set(name, Value::text(dtype_text(array.dtype())));
    if (executor.array(COHORT_EXECUTOR_GRADS, i)) has_grad.add(Value::text(name));
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
  return describe(stored.handle);
}

Value exec_simple_bind(Scenario &scenario, const Value &step) {
  Arrays pool;
  ExecutorOptions options;
  options.grad_req = grad_req_of(step.get("grad_req"));
  if (!step.get("shared_exec").is_null()) {
    options.shared_executor = &scenario.executor(step, "shared_exec").handle;
    options.shared_arg_names = step.get("shared_arg_names").as_texts();
    options.shared_data = &pool;
  }
  ExecutorObject made;
  made.handle = Executor::simple_bind(scenario.symbol(step.at("symbol").as_text()), default_context(scenario, step),
                                      known_descs(step.get("shapes"), step.get("types")), options);
  return store(scenario, step.at("exec").as_text(), std::move(made));
}

// Copies of the arrays of a map, in the order of a list of names.
std::vector<NDArray> copies_in_order(Scenario &scenario, const Value &map, const std::vector<std::string> &names,
                                     bool required, const Context &context) {
  std::vector<NDArray> copies;
  for (const std::string &name : names) {
    const Value *reference = map.is_null() ? nullptr : map.find(name);
    if (!reference && required) throw Error(COHORT_ERROR_NAME, "no array is given for '" + name + "'");
    copies.push_back(reference ? scenario.files.array(*reference).copy(context) : NDArray());
  }
  return copies;
}

int32_t grad_code(const std::string &word) {
  if (word == "null") return COHORT_GRAD_NULL;
  if (word == "write") return COHORT_GRAD_WRITE;
  if (word == "add") return COHORT_GRAD_ADD;
  throw Error(COHORT_ERROR_INVALID_ARGUMENT, "grad_req '" + word + "' is not null, write or add");
}

std::vector<int32_t> grad_codes(const Value &grad_req, const std::vector<std::string> &names) {
  std::vector<int32_t> codes(names.size(), grad_code(grad_req.is_text() ? grad_req.as_text() : "write"));
  if (grad_req.is_list()) {
    if (grad_req.items().size() != names.size())
      throw Error(COHORT_ERROR_INVALID_ARGUMENT, "grad_req does not have one entry per argument");
    for (size_t i = 0; i < names.size(); ++i) codes[i] = grad_code(grad_req.items()[i].as_text());
  } else if (grad_req.is_object()) {
    for (size_t i = 0; i < names.size(); ++i) codes[i] = grad_code(grad_req.word(names[i], "null"));
  }
  return codes;
}

Value exec_bind(Scenario &scenario, const Value &step) {
  const Symbol &symbol = scenario.symbol(step.at("symbol").as_text());
  const Context context = default_context(scenario, step);
  const std::vector<std::string> names = symbol.list_arguments();
  const std::vector<NDArray> args = copies_in_order(scenario, step.at("args"), names, true, context);
  const std::vector<NDArray> grads = copies_in_order(scenario, step.get("args_grad"), names, false, context);
  const std::vector<NDArray> aux = copies_in_order(scenario, step.get("aux"), symbol.list_aux(), true, context);
  const std::vector<int32_t> codes = grad_codes(step.get("grad_req"), names);
  ExecutorObject made;
  made.handle = Executor::bind(symbol, context, args, grads, codes, aux);
  return store(scenario, step.at("exec").as_text(), std::move(made));
}

Value exec_set(Scenario &scenario, const Value &step) {
  const Executor &executor = scenario.executor(step).handle;
  const std::pair<const char *, int32_t> lists[] = {
      {"arg", COHORT_EXECUTOR_ARGS}, {"grad", COHORT_EXECUTOR_GRADS}, {"aux", COHORT_EXECUTOR_AUX}};
  for (const auto &list : lists) {
    const Value &map = step.get(list.first);
    for (size_t i = 0; !map.is_null() && i < map.keys().size(); ++i) {
      NDArray target = executor.array(list.second, map.keys()[i]);
      if (!target) throw BadCase("argument '" + map.keys()[i] + "' has no gradient to set");
      scenario.files.array(map.items()[i]).copy_to(target);
    }
  }
  return Value();
}

Value exec_copy_params(Scenario &scenario, const Value &step) {
  const Arrays arg = scenario.files.named(step.get("arg")), aux = scenario.files.named(step.get("aux"));
  scenario.executor(step).handle.copy_params_from(arg, aux, step.flag("allow_extra", false));
  return Value();
}

Value values(Value all) {
  Value found = Value::object();
  found.set("values", std::move(all));
  return found;
}

Value exec_outputs(Scenario &scenario, const Value &step) {
  const Executor &executor = scenario.executor(step).handle;
  Value all = Value::list();
  for (const NDArray &output : executor.outputs()) all.add(Value::array(output));
  return values(all);
}

Value exec_forward(Scenario &scenario, const Value &step) {
  Executor &executor = scenario.executor(step).handle;
  if (!step.get("inputs").is_null()) executor.set_inputs(scenario.files.named(step.at("inputs")));
  executor.forward(step.flag("is_train", false));
  return exec_outputs(scenario, step);
}

Value exec_partial_forward(Scenario &scenario, const Value &step) {
  const int32_t step_left = scenario.executor(step).handle.partial_forward(
      step.flag("is_train", false), static_cast<int32_t>(step.at("step").as_integer()));
  Value found = Value::object();
  found.set("step_left", Value::integer(step_left));
  return found;
}

Value exec_backward(Scenario &scenario, const Value &step) {
  Executor &executor = scenario.executor(step).handle;
  const Value &given = step.get("head_grads");
  std::vector<NDArray> head_grads;
  if (given.is_object()) {
    for (size_t i = 0; i < executor.num_arrays(COHORT_EXECUTOR_OUTPUTS); ++i) {
      const std::string name = executor.name(COHORT_EXECUTOR_OUTPUTS, i);
      const Value *reference = given.find(name);
      if (!reference) throw Error(COHORT_ERROR_NAME, "no head gradient is given for '" + name + "'");
      head_grads.push_back(scenario.files.array(*reference));
    }
  } else {
    head_grads = scenario.files.arrays(given);
  }
  executor.backward(head_grads);
  return Value();
}

// Arrays of a list by name (null if there is none): all, or those that the step names.
Value list_values(Scenario &scenario, const Value &step, int32_t list) {
  const Executor &executor = scenario.executor(step).handle;
  const std::vector<std::string> wanted = step.get("names").as_texts();
  Value all = Value::object();
  for (size_t i = 0; i < executor.num_arrays(list); ++i) {
    const std::string name = executor.name(list, i);
    if (step.get("names").is_null() || std::find(wanted.begin(), wanted.end(), name) != wanted.end())
      all.set(name, Value::array(executor.array(list, i)));
  }
  return values(all);
}

Value exec_args(Scenario &scenario, const Value &step) { return list_values(scenario, step, COHORT_EXECUTOR_ARGS); }
Value exec_grads(Scenario &scenario, const Value &step) { return list_values(scenario, step, COHORT_EXECUTOR_GRADS); }
Value exec_aux(Scenario &scenario, const Value &step) { return list_values(scenario, step, COHORT_EXECUTOR_AUX); }

Value exec_reshape(Scenario &scenario, const Value &step) {
  const ExecutorObject &parent = scenario.executor(step);
  ReshapeOptions options;
  options.partial_shaping = step.flag("partial_shaping", false);
  options.allow_up_sizing = step.flag("allow_up_sizing", false);
  ExecutorObject made;
  made.handle = parent.handle.reshape(known_descs(step.at("shapes"), Value()), options);
  made.monitored = parent.monitored;  // the new executor has taken over the callback
  return store(scenario, step.at("as").as_text(), std::move(made));
}

Value exec_set_monitor(Scenario &scenario, const Value &step) {
  ExecutorObject &executor = scenario.executor(step);
  auto names = std::make_shared<std::vector<std::string>>();
  executor.handle.set_monitor([names](const std::string &name, const NDArray &) { names->push_back(name); },
                              step.flag("monitor_all", false));
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
