// SPDX-License-Identifier: Apache-2.0
#include "scenario.hpp"

#include <algorithm>
#include <cstdio>

#include "compare.hpp"

namespace golden {
namespace {

const StepTable &steps() {
  static const StepTable table = [] {
    StepTable all;
    add_symbol_steps(all);
    add_group_steps(all);
    add_state_steps(all);
    add_metric_steps(all);
    add_update_steps(all);
    add_executor_steps(all);
    add_module_steps(all);
    add_manager_steps(all);
    add_monitor_steps(all);
    return all;
  }();
  return table;
}

// The error code of each error class of the format.
int32_t error_code(const std::string &word) {
  static const std::map<std::string, int32_t> codes = {
      {"too_many_slices", COHORT_ERROR_INVALID_ARGUMENT},
      {"empty_data_shapes", COHORT_ERROR_INVALID_ARGUMENT},
      {"bad_grad_req", COHORT_ERROR_INVALID_ARGUMENT},
      {"head_grad_required", COHORT_ERROR_INVALID_ARGUMENT},
      {"no_such_output", COHORT_ERROR_INVALID_ARGUMENT},
      {"count_mismatch", COHORT_ERROR_INVALID_ARGUMENT},
      {"not_binary", COHORT_ERROR_INVALID_ARGUMENT},
      {"bad_arguments", COHORT_ERROR_INVALID_ARGUMENT},
      {"unknown_input", COHORT_ERROR_NAME},
      {"unknown_parameter", COHORT_ERROR_NAME},
      {"missing_parameter", COHORT_ERROR_NAME},
      {"missing_argument", COHORT_ERROR_NAME},
      {"missing_target", COHORT_ERROR_NAME},
      {"batch_size_mismatch", COHORT_ERROR_SHAPE},
      {"shape_mismatch", COHORT_ERROR_SHAPE},
      {"incomplete_shapes", COHORT_ERROR_SHAPE},
      {"unspecified_shape_changed", COHORT_ERROR_SHAPE},
      {"up_sizing_not_allowed", COHORT_ERROR_SHAPE},
      {"type_mismatch", COHORT_ERROR_DTYPE},
      {"already_bound", COHORT_ERROR_STATE},
      {"not_for_training", COHORT_ERROR_STATE},
      {"inputs_need_grad_false", COHORT_ERROR_STATE},
      {"no_labels", COHORT_ERROR_STATE},
      {"not_supported", COHORT_ERROR_UNSUPPORTED},
  };
  const auto code = codes.find(word);
  if (code == codes.end()) throw BadCase("there is no error class '" + word + "'");
  return code->second;
}

std::map<std::string, std::string> texts_by_key(const Value &object) {
  std::map<std::string, std::string> texts;
  if (object.is_null()) return texts;
  for (size_t i = 0; i < object.keys().size(); ++i) texts[object.keys()[i]] = object.items()[i].as_text();
  return texts;
}

std::string quoted(const Error &error) { return std::string(error.code_text()) + " '" + error.what() + "'"; }

// Runs one step and compares. Returns false if it failed unexpectedly: later steps depend on its effect.
bool run_step(Scenario &scenario, const Value &step, const Tolerance &tolerance, std::vector<std::string> &failures) {
  const Value &expected = step.get("expect");
  const Value *error = expected.is_object() ? expected.find("error") : nullptr;
  const auto function = steps().find(step.at("op").as_text());
  if (function == steps().end()) throw BadCase("there is no step '" + step.at("op").as_text() + "'");
  Value found;
  try {
    found = function->second(scenario, step);
  } catch (const Error &thrown) {
    if (!error) {
      failures.push_back("expected success, found " + quoted(thrown));
      return false;
    }
    const std::string &word = error->at("class").as_text();
    if (thrown.code() != error_code(word))
      failures.push_back("expected an error of class " + std::string(cohort_error_code_text(error_code(word))) + " (" +
                         word + "), found " + quoted(thrown));
    return true;
  }
  if (error) {
    failures.push_back("expected an error (" + error->at("class").as_text() + "), found success");
    return true;
  }
  const ArrayReader read = [&](const Value &reference) { return scenario.files.host(reference); };
  if (!expected.is_null()) compare(expected, found, "", tolerance, read, failures);
  return true;
}

bool has_devices(const Value &description, const Settings &settings) {
  for (const Value &step : description.at("steps").items()) {
    if (!step.get("contexts").is_null())
      for (const std::string &text : step.get("contexts").as_texts())
        if (!exists(context_of(text, settings))) return false;
  }
  return std::all_of(settings.contexts.begin(), settings.contexts.end(), exists);
}

}  // namespace

Context context_of(const std::string &text, const Settings &settings) {
  const Context named(text);
  return settings.contexts.empty() ? named : settings.contexts[size_t(named.device_id) % settings.contexts.size()];
}

bool exists(const Context &context) {
  if (context.device_type != COHORT_DEVICE_GPU) return true;
  return static_cast<size_t>(context.device_id) < num_devices(context.device_type);
}

Scenario::Scenario(const GoldenCase &golden_case, const Value &description, const Settings &replay)
    : settings(replay),
      files(golden_case, texts_by_key(description.get("files"))),
      symbol_files(texts_by_key(description.get("symbols"))) {}

const Symbol &Scenario::symbol(const std::string &key) {
  const auto loaded = symbols.find(key);
  if (loaded != symbols.end()) return loaded->second;
  const auto file = symbol_files.find(key);
  if (file == symbol_files.end()) throw BadCase("the scenario has no symbol '" + key + "'");
  return symbols[key] = Symbol::load(files.path_of(file->second));
}

template <typename Object>
static Object &object_of(std::map<std::string, Object> &objects, const Value &step, const char *member) {
  const std::string &name = step.at(member).as_text();
  const auto object = objects.find(name);
  if (object == objects.end()) throw BadCase(std::string("there is no ") + member + " '" + name + "' at this step");
  return object->second;
}

Group &Scenario::group(const Value &step) {
  if (step.find("group")) return object_of(groups, step, "group");
  if (step.find("module")) return module(step).group;
  return object_of(managers, step, "manager").main;
}

ExecutorObject &Scenario::executor(const Value &step, const char *member) { return object_of(executors, step, member); }
Metric &Scenario::metric(const Value &step) { return object_of(metrics, step, "metric"); }
OptimizerObject &Scenario::optimizer(const Value &step) { return object_of(optimizers, step, "optimizer"); }
Module &Scenario::module(const Value &step) { return object_of(modules, step, "module"); }
Manager &Scenario::manager(const Value &step) { return object_of(managers, step, "manager").handle; }
Monitor &Scenario::monitor(const Value &step) { return object_of(monitors, step, "monitor"); }

std::vector<Context> Scenario::contexts(const Value &list) const {
  std::vector<Context> contexts;
  for (const std::string &text : list.as_texts()) contexts.push_back(context_of(text, settings));
  return contexts;
}

std::vector<std::string> run_scenario(const GoldenCase &golden_case, const Settings &settings) {
  const Value description = read_json(golden_case.path + "/scenario.json");
  if (description.at("format").as_text() != "cohort-golden-group-1")
    throw BadCase("format '" + description.at("format").as_text() + "', not 'cohort-golden-group-1'");
  if (!has_devices(description, settings)) throw NoDevice();
  Scenario scenario(golden_case, description, settings);
  std::vector<std::string> failures;
  const std::vector<Value> &all = description.at("steps").items();
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string prefix = "step " + std::to_string(i) + ' ' + all[i].at("op").as_text() + ": ";
    const Tolerance tolerance = {all[i].number("rtol", description.number("rtol", 0)),
                                 all[i].number("atol", description.number("atol", 0))};
    if (settings.verbose)
      std::printf("  %s: step %zu %s\n", golden_case.name.c_str(), i, all[i].at("op").as_text().c_str());
    std::vector<std::string> differences;
    bool may_continue = false;
    try {
      may_continue = run_step(scenario, all[i], tolerance, differences);
    } catch (const std::exception &error) {  // from the runner or the case; run_step handles the library's errors
      differences.push_back(error.what());
    }
    for (const std::string &difference : differences) failures.push_back(prefix + difference);
    if (!may_continue) break;
  }
  return failures;
}

}  // namespace golden
