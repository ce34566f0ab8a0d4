// SPDX-License-Identifier: Apache-2.0
// Steps that update parameters.
#include <cstdio>

#include "scenario.hpp"

namespace golden {
namespace {

int32_t mode_of(const std::string &word) {
  if (word == "on_store") return COHORT_UPDATE_ON_STORE;
  if (word == "per_device") return COHORT_UPDATE_PER_DEVICE;
  if (word == "no_store") return COHORT_UPDATE_NO_STORE;
  throw BadCase("there is no update mode '" + word + "'");
}

Value create_sgd(Scenario &scenario, const Value &step) {
  cohort_group *group = scenario.group(step);
  OptimizerObject made = make_sgd(scenario.symbol(step.at("symbol").as_text()), mode_of(step.at("mode").as_text()),
                                  step, step.number("rescale_grad", 1));
  // The store starts with the parameters of device 0 and copies them to all devices.
  if (made.mode == COHORT_UPDATE_ON_STORE) {
    const auto first = make<Arrays>(cohort_group_arrays, group, COHORT_GROUP_PARAMS, 0);
    check(cohort_group_set_params(group, first.get(), nullptr, 0));
  }
  Value lr_mult = Value::object(), wd_mult = Value::object();
  for (const std::string &name : group_names(group, COHORT_GROUP_PARAMS)) {
    double lr = 0, wd = 0;
    check(cohort_optimizer_mult(made.handle.get(), name.c_str(), &lr, &wd));
    lr_mult.set(name, Value::real(lr));
    wd_mult.set(name, step.number("wd", 0) == 0 ? Value() : Value::real(wd));
  }
  scenario.optimizers[step.at("optimizer").as_text()] = std::move(made);
  Value found = Value::object();
  found.set("lr_mult", lr_mult);
  found.set("wd_mult", wd_mult);
  return found;
}

Value sgd_update(Scenario &scenario, const Value &step) {
  const OptimizerObject &optimizer = scenario.optimizer(step);
  if (!step.get("learning_rate").is_null())
    check(cohort_optimizer_set(optimizer.handle.get(), "learning_rate", step.at("learning_rate").as_real()));
  check(step.find("manager") ? cohort_manager_update(scenario.manager(step), optimizer.handle.get(), optimizer.mode)
                             : cohort_group_update(scenario.group(step), optimizer.handle.get(), optimizer.mode));
  return Value();
}

}  // namespace

OptimizerObject make_sgd(const cohort_symbol *symbol, int32_t mode, const Value &step, double rescale_grad) {
  std::vector<std::string> keys, texts;
  const auto add = [&](const char *key, double value) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.17g", value);
    keys.push_back(key);
    texts.push_back(text);
  };
  add("learning_rate", step.at("learning_rate").as_real());
  add("momentum", step.number("momentum", 0));
  add("wd", step.number("wd", 0));
  add("rescale_grad", rescale_grad);
  if (!step.get("clip_gradient").is_null()) add("clip_gradient", step.at("clip_gradient").as_real());
  OptimizerObject made;
  made.mode = mode;
  made.handle =
      make<Optimizer>(cohort_optimizer_create, "sgd", c_strings(keys).data(), c_strings(texts).data(), keys.size());
  check(cohort_optimizer_use_symbol(made.handle.get(), symbol));
  return made;
}

void add_update_steps(StepTable &table) {
  table["create_sgd"] = create_sgd;
  table["sgd_update"] = sgd_update;
}

}  // namespace golden
