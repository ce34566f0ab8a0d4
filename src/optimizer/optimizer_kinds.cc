// SPDX-License-Identifier: Apache-2.0
// The optimizers: settings, operators and corrections of each.
#include <cmath>
#include <cstdint>

#include "op/update.hpp"
#include "optimizer/optimizer_impl.hpp"

namespace cohort {
namespace {

using Settings = OptimizerSettings;
using Slot = Optimizer::Slot;

double at(const Settings &settings, const char *key) { return settings.find(key)->second; }

// A number as kernels are given it.
double rounded(double value) { return double(float(value)); }

size_t by_momentum(const Settings &s) { return at(s, "momentum") != 0 ? 1 : 0; }
size_t by_centered(const Settings &s) { return at(s, "centered") != 0 ? 1 : 0; }

// The bias of the moving averages, which start at zero.
double bias_correction(const Settings &s, int64_t count) {
  const double first = 1 - std::pow(at(s, "beta1"), double(count)),
               second = 1 - std::pow(at(s, "beta2"), double(count));
  return std::sqrt(second) / first;
}

void correct_adam(const Settings &s, const Slot &slot, double lr, UpdateValues *values) {
  values->lr = rounded(lr * bias_correction(s, slot.count));
}

// Decay is of the learning rate alone: w -= eta * (lr * m / (sqrt(v) + epsilon) + wd * w).
void correct_adamw(const Settings &s, const Slot &slot, double lr, UpdateValues *values) {
  values->eta = rounded(lr);
  values->lr = rounded(bias_correction(s, slot.count));
}

void settle_rmsprop(const Settings &s, UpdateValues *values) {
  values->beta1 = rounded(at(s, "gamma1"));
  values->beta2 = rounded(at(s, "gamma2"));
  values->clip_weights = clip_limit(float(at(s, "clip_weights")));
}

void correct_averages(const Settings &, const Slot &slot, double, UpdateValues *values) {
  values->correction1 = 1 - std::pow(values->beta1, double(slot.count));
  values->correction2 = 1 - std::pow(values->beta2, double(slot.count));
}

const OptimizerKind kKinds[] = {
    {"sgd", {{"momentum", 0}, {"lazy_update", 1}}, {{"sgd_update", 0}, {"sgd_mom_update", 1}}, by_momentum},
    {"ccsgd",  // the same by an older name
     {{"momentum", 0}, {"lazy_update", 1}},
     {{"sgd_update", 0}, {"sgd_mom_update", 1}},
     by_momentum},
    {"nag", {{"momentum", 0}}, {{"sgd_update", 0}, {"nag_mom_update", 1}}, by_momentum},
    {"adam",
     {{"learning_rate", 0.001}, {"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}, {"lazy_update", 1}},
     {{"adam_update", 2}},
     nullptr,
     nullptr,
     correct_adam},
    {"adamw",
     {{"learning_rate", 0.001}, {"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}},
     {{"_adamw_update", 2}},
     nullptr,
     nullptr,
     correct_adamw},
    {"rmsprop",
     {{"learning_rate", 0.001},
      {"gamma1", 0.9},
      {"gamma2", 0.9},
      {"epsilon", 1e-8},
      {"centered", 0},
      {"clip_weights", -1}},
     {{"rmsprop_update", 1}, {"rmspropalex_update", 3}},
     by_centered,
     settle_rmsprop},
    {"adagrad", {{"learning_rate", 0.01}, {"epsilon", 1e-7}}, {{"_adagrad_update", 1}}},
    {"ftrl", {{"learning_rate", 0.1}, {"lamda1", 0.01}, {"beta", 1}}, {{"ftrl_update", 2}}},
    {"ftml",
     {{"beta1", 0.6}, {"beta2", 0.999}, {"epsilon", 1e-8}},
     {{"ftml_update", 3}},
     nullptr,
     nullptr,
     correct_averages},
    {"signum",
     {{"learning_rate", 0.01}, {"momentum", 0.9}, {"wd_lh", 0}},
     {{"signsgd_update", 0}, {"signum_update", 1}},
     by_momentum},
};

}  // namespace

const OptimizerKind *find_optimizer_kind(const std::string &name) {
  for (const OptimizerKind &kind : kKinds)
    if (name == kind.name) return &kind;
  return nullptr;
}

std::string list_optimizer_kinds() {
  std::string all;
  for (const OptimizerKind &kind : kKinds) all += (all.empty() ? "" : ", ") + std::string(kind.name);
  return all;
}

}  // namespace cohort
