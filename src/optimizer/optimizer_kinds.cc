// SPDX-License-Identifier: Apache-2.0
// The optimizers: settings, operators and corrections of each.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/random.hpp"
#include "optimizer/optimizer_impl.hpp"

namespace cohort {
namespace {

using Settings = OptimizerSettings;
using Slot = Optimizer::Slot;

double at(const Settings &settings, const char *key) { return settings.find(key)->second; }

// Rounds a number to float, the precision that kernels get.
double rounded(double value) { return double(float(value)); }

enum WarmupStrategy { kLinear, kPower2, kSqrt, kLars };  // in the order of warmup_strategies()

size_t by_momentum(const Settings &s) { return at(s, "momentum") != 0 ? 1 : 0; }
size_t by_centered(const Settings &s) { return at(s, "centered") != 0 ? 1 : 0; }
// An operator that gathers gradients has a momentum state even if momentum is 0, so the number of states tells the
// operators apart.
size_t by_batches(const Settings &s) {
  return (at(s, "batch_scale") > 1 ? 2 : by_momentum(s)) + (at(s, "warmup_strategy") == kLars ? 3 : 0);
}

// Corrects the bias of the moving averages, which start at zero.
double bias_correction(const Settings &s, int64_t count) {
  const double first = 1 - std::pow(at(s, "beta1"), double(count)),
               second = 1 - std::pow(at(s, "beta2"), double(count));
  return std::sqrt(second) / first;
}

void correct_adam(const Settings &s, Slot &slot, double rate, UpdateValues *values) {
  values->lr = rounded(rate * slot.lr_mult * bias_correction(s, slot.count));
}

// Weight decay is scaled only by the learning rate: w -= eta * (lr * m / (sqrt(v) + epsilon) + wd * w).
void correct_adamw(const Settings &s, Slot &slot, double, UpdateValues *values) {
  values->eta = values->lr;
  values->lr = rounded(bias_correction(s, slot.count));
}

void settle_rmsprop(const Settings &s, UpdateValues *values) {
  values->beta1 = rounded(at(s, "gamma1"));
  values->beta2 = rounded(at(s, "gamma2"));
  const double limit = at(s, "clip_weights");
  values->clip_weights = limit > 0 ? rounded(limit) : double(INFINITY);
}

void correct_averages(const Settings &, Slot &slot, double, UpdateValues *values) {
  values->correction1 = 1 - std::pow(values->beta1, double(slot.count));
  values->correction2 = 1 - std::pow(values->beta2, double(slot.count));
}

void settle_adadelta(const Settings &s, UpdateValues *values) {
  values->beta1 = rounded(at(s, "rho"));
  values->rest1 = 1 - at(s, "rho");
}

void settle_averages(const Settings &s, UpdateValues *values) {
  values->rest1 = 1 - at(s, "beta1");
  values->rest2 = 1 - at(s, "beta2");
}

void correct_adamax(const Settings &s, Slot &slot, double rate, UpdateValues *values) {
  values->lr = rounded(rate * slot.lr_mult / (1 - std::pow(at(s, "beta1"), double(slot.count))));
}

// Momentum grows with the number of updates; `carried` is the product of all momenta so far.
void correct_nadam(const Settings &s, Slot &slot, double, UpdateValues *values) {
  const auto momentum = [&s](double count) {
    return at(s, "beta1") * (1 - 0.5 * std::pow(0.96, count * at(s, "schedule_decay")));
  };
  const double now = momentum(double(slot.count)), next = momentum(double(slot.count + 1));
  slot.carried *= now;
  values->gradient_part = (1 - now) / (1 - slot.carried);
  values->mean_part = next / (1 - slot.carried * next);
  values->correction2 = 1 - std::pow(at(s, "beta2"), double(slot.count));
}

void settle_dcasgd(const Settings &s, UpdateValues *values) { values->lamda1 = rounded(at(s, "lamda")); }

void settle_lamb(const Settings &s, UpdateValues *values) {
  const double upper = at(s, "upper_bound");
  values->lower = std::max(at(s, "lower_bound"), 0.0);
  values->upper = upper > 0 ? upper : double(INFINITY);
}

void correct_lamb(const Settings &s, Slot &slot, double rate, UpdateValues *values) {
  if (at(s, "bias_correction") != 0) correct_averages(s, slot, rate, values);
}

void settle_eta(const Settings &s, UpdateValues *values) { values->eta = rounded(at(s, "eta")); }

// For kernels that divide out the gradient scale themselves.
void leave_scale(const Settings &s, UpdateValues *values) { values->rescale = rounded(at(s, "rescale_grad")); }

// Momentum is scaled when the learning rate changes; `carried` is the rate of the previous update.
void correct_lars(const Settings &s, Slot &slot, double rate, UpdateValues *values) {
  const double before = std::exchange(slot.carried, rate);
  leave_scale(s, values);
  for (const char *end : {"gamma", "beta", "bias"})
    if (ends_with(slot.param, end)) values->by_norms = 0;
  if (at(s, "momentum_correction") != 0 && before != 0) {
    values->momentum = rounded(at(s, "momentum") * (rate / before));
  }
}

// `carried` is the number of gradients so far.
void correct_lbsgd(const Settings &s, Slot &slot, double rate, UpdateValues *values) {
  const double scale = at(s, "batch_scale"), strategy = at(s, "warmup_strategy"),
               warmup = at(s, "warmup_epochs") * at(s, "updates_per_epoch");
  const double num = ++slot.carried + at(s, "begin_epoch") * at(s, "updates_per_epoch"), part = num / warmup;
  double mult = 1;
  if (strategy == kLars) {  // the kernel computes the factor from weight and gradient
  } else if (num >= warmup) {
    mult = scale;
  } else if (warmup > 1) {
    mult += (scale - 1) * (strategy == kLinear ? part : strategy == kPower2 ? part * part : std::sqrt(part));
  }
  values->lr = rounded(rate * slot.lr_mult * mult);
  values->gathered = scale;
  values->due = std::fmod(num, scale) == 0 ? 1 : 0;
  if (by_batches(s) > 1) leave_scale(s, values);
}

// The noise depends on the parameter's name, so that it is the same on all devices.
void correct_sgld(const Settings &s, Slot &slot, double rate, UpdateValues *values) {
  const double lr = rate * slot.lr_mult;
  values->deviation = lr > 0 ? std::sqrt(lr) : 0;
  values->seed = stream_seed(uint64_t(at(s, "seed")), name_stream(slot.param), 0);
  values->draw = uint64_t(slot.count);
}

const OptimizerKind kKinds[] = {
    {"sgd", {{"momentum", 0}, {"lazy_update", 1}}, {{"sgd_update", 0}, {"sgd_mom_update", 1}}, by_momentum},
    {"ccsgd",  // an older name of sgd
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
    {"adadelta", {{"rho", 0.9}, {"epsilon", 1e-5}}, {{"_adadelta_update", 2}}, nullptr, settle_adadelta},
    {"adamax",
     {{"learning_rate", 0.002}, {"beta1", 0.9}, {"beta2", 0.999}},
     {{"_adamax_update", 2}},
     nullptr,
     settle_averages,
     correct_adamax},
    {"nadam",
     {{"learning_rate", 0.001}, {"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}, {"schedule_decay", 0.004}},
     {{"_nadam_update", 2}},
     nullptr,
     settle_averages,
     correct_nadam,
     OptimizerKind::kCarries,
     /* carried */ 1},
    {"dcasgd",
     {{"momentum", 0}, {"lamda", 0.04}},
     {{"_dcasgd_update", 1, false, false, 0}, {"_dcasgd_mom_update", 2, false, false, 0}},
     by_momentum,
     settle_dcasgd},
    {"test", {}, {{"_test_update", 1}}},
    {"groupadagrad",
     {{"epsilon", 1e-5}},
     {{"_contrib_group_adagrad_update", 1, /* whole */ true, /* by_rows */ true}},
     nullptr,
     nullptr,
     nullptr,
     OptimizerKind::kNoDecay},
    {"lamb",
     {{"learning_rate", 0.001},
      {"beta1", 0.9},
      {"beta2", 0.999},
      {"epsilon", 1e-6},
      {"lower_bound", -1},
      {"upper_bound", -1},
      {"bias_correction", 1}},
     {{"_multi_lamb_update", 2, true}},
     nullptr,
     settle_lamb,
     correct_lamb},
    {"lars",
     {{"momentum", 0}, {"lazy_update", 1}, {"eta", 0.001}, {"epsilon", 0}, {"momentum_correction", 1}},
     {{"_lars_update", 0, true}, {"_lars_mom_update", 1, true}},
     by_momentum,
     settle_eta,
     correct_lars,
     OptimizerKind::kCarries | OptimizerKind::kGammaStays},
    {"lbsgd",
     {{"momentum", 0},
      {"warmup_strategy", kLinear},
      {"warmup_epochs", 5},
      {"batch_scale", 1},
      {"updates_per_epoch", 32},
      {"begin_epoch", 0},
      {"num_epochs", 60}},
     {{"sgd_update", 0},  // in the order of by_batches()
      {"sgd_mom_update", 1},
      {"_gathered_sgd_update", 2},
      {"_lbsgd_update", 0, true},
      {"_lbsgd_mom_update", 1, true},
      {"_gathered_lbsgd_update", 2, true}},
     by_batches,
     nullptr,
     correct_lbsgd,
     OptimizerKind::kCarries | OptimizerKind::kRateBefore},
    {"sgld", {{"seed", 0}}, {{"_sgld_update", 0}}, nullptr, nullptr, correct_sgld, OptimizerKind::kDraws},
};

}  // namespace

const std::vector<std::string> &warmup_strategies() {
  static const std::vector<std::string> words{"linear", "power2", "sqrt", "lars"};
  return words;
}

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
