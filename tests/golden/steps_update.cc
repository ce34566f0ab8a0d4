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
  Group &group = scenario.group(step);
  OptimizerObject made = make_sgd(scenario.symbol(step.at("symbol").as_text()), mode_of(step.at("mode").as_text()),
                                  step, step.number("rescale_grad", 1));
  // The store starts with the parameters of device 0 and copies them to all devices.
  if (made.mode == COHORT_UPDATE_ON_STORE) {
    group.set_params(group.arrays(COHORT_GROUP_PARAMS, 0));
  }
  Value lr_mult = Value::object(), wd_mult = Value::object();
  for (const std::string &name : group.names(COHORT_GROUP_PARAMS)) {
    const Multipliers mult = made.handle.mult(name);
    lr_mult.set(name, Value::real(mult.lr_mult));
    wd_mult.set(name, step.number("wd", 0) == 0 ? Value() : Value::real(mult.wd_mult));
  }
  scenario.optimizers[step.at("optimizer").as_text()] = std::move(made);
  Value found = Value::object();
  found.set("lr_mult", lr_mult);
  found.set("wd_mult", wd_mult);
  return found;
}

Value sgd_update(Scenario &scenario, const Value &step) {
  OptimizerObject &optimizer = scenario.optimizer(step);
  if (!step.get("learning_rate").is_null()) optimizer.handle.set("learning_rate", step.at("learning_rate").as_real());
  if (step.find("manager"))
    scenario.manager(step).update(optimizer.handle, optimizer.mode);
  else
    scenario.group(step).update(optimizer.handle, optimizer.mode);
  return Value();
}

}  // namespace

OptimizerObject make_sgd(const Symbol &symbol, int32_t mode, const Value &step, double rescale_grad) {
  Attrs settings;
  const auto add = [&](const char *key, double value) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.17g", value);
    settings.emplace_back(key, text);
  };
  add("learning_rate", step.at("learning_rate").as_real());
  add("momentum", step.number("momentum", 0));
  add("wd", step.number("wd", 0));
  add("rescale_grad", rescale_grad);
  if (!step.get("clip_gradient").is_null()) add("clip_gradient", step.at("clip_gradient").as_real());
  OptimizerObject made;
  made.mode = mode;
  made.handle = Optimizer("sgd", settings);
  made.handle.use_symbol(symbol);
  return made;
}

void add_update_steps(StepTable &table) {
  table["create_sgd"] = create_sgd;
  table["sgd_update"] = sgd_update;
}

}  // namespace golden
