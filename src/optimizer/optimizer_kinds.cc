// SPDX-License-Identifier: Apache-2.0
// The optimizers: settings, formulas and corrections of each.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "op/update.hpp"
#include "optimizer/optimizer_impl.hpp"

namespace cohort {
namespace {

using Settings = std::map<std::string, double>;

double at(const Settings &settings, const char *key) { return settings.find(key)->second; }

// ---- the attributes of each operator with the values of an update, for the numbers that they mean

template <typename A>
void fill_common(A *a, const UpdateValues &v) {
  a->lr = v.lr;
  a->wd = v.wd;
  a->rescale_grad = v.rescale_grad;
  a->clip_gradient = v.clip_gradient;
}

void fill(SgdAttrs *a, const UpdateValues &v) { fill_common(a, v); }

void fill(SgdMomAttrs *a, const UpdateValues &v) {
  fill_common(a, v);
  a->momentum = v.momentum;
  a->wd_lh = v.wd_lh;
}

void fill(AdamAttrs *a, const UpdateValues &v) {
  fill_common(a, v);
  a->beta1 = v.beta1;
  a->beta2 = v.beta2;
  a->epsilon = v.epsilon;
}

void fill(AdamWAttrs *a, const UpdateValues &v) {
  a->lr = v.lr;
  a->beta1 = v.beta1;
  a->beta2 = v.beta2;
  a->epsilon = v.epsilon;
  a->wd = v.wd;
  a->eta = v.eta;
  a->clip_gradient = v.clip_gradient;
}

void fill(RmsPropAttrs *a, const UpdateValues &v) {
  fill_common(a, v);
  a->gamma1 = v.gamma1;
  a->gamma2 = v.gamma2;
  a->epsilon = v.epsilon;
  a->clip_weights = v.clip_weights;
}

void fill(AdagradAttrs *a, const UpdateValues &v) {
  fill_common(a, v);
  a->epsilon = v.epsilon;
}

void fill(FtrlAttrs *a, const UpdateValues &v) {
  fill_common(a, v);
  a->lamda1 = v.lamda1;
  a->beta = v.beta;
}

void fill(FtmlAttrs *a, const UpdateValues &v) {
  a->lr = v.lr;
  a->wd = v.wd;
  a->rescale_grad = v.rescale_grad;
  a->clip_grad = v.clip_gradient;
  a->beta1 = v.beta1;
  a->beta2 = v.beta2;
  a->epsilon = double(v.epsilon);
  a->t = int32_t(std::min<int64_t>(v.count, INT32_MAX));
}

template <typename A>
UpdateOp update_op(const char *name, int num_states) {
  return {name, num_states, [](const UpdateValues &values) {
            A attrs{};
            fill(&attrs, values);
            UpdateNumbers<double> numbers = attrs.numbers();
            numbers.rescale = double(values.rescale_grad);  // adamw has no attribute for it
            return numbers;
          }};
}

const UpdateOp &sgd(const Settings &s) {
  static const UpdateOp plain = update_op<SgdAttrs>("sgd_update", 0);
  static const UpdateOp momentum = update_op<SgdMomAttrs>("sgd_mom_update", 1);
  return at(s, "momentum") != 0 ? momentum : plain;
}

const UpdateOp &nag(const Settings &s) {
  static const UpdateOp plain = update_op<SgdAttrs>("sgd_update", 0);
  static const UpdateOp momentum = update_op<SgdMomAttrs>("nag_mom_update", 1);
  return at(s, "momentum") != 0 ? momentum : plain;
}

const UpdateOp &adam(const Settings &) {
  static const UpdateOp op = update_op<AdamAttrs>("adam_update", 2);
  return op;
}

const UpdateOp &adamw(const Settings &) {
  static const UpdateOp op = update_op<AdamWAttrs>("_adamw_update", 2);
  return op;
}

const UpdateOp &rmsprop(const Settings &s) {
  static const UpdateOp plain = update_op<RmsPropAttrs>("rmsprop_update", 1);
  static const UpdateOp centered = update_op<RmsPropAttrs>("rmspropalex_update", 3);
  return at(s, "centered") != 0 ? centered : plain;
}

const UpdateOp &adagrad(const Settings &) {
  static const UpdateOp op = update_op<AdagradAttrs>("_adagrad_update", 1);
  return op;
}

const UpdateOp &signum(const Settings &s) {
  static const UpdateOp plain = update_op<SgdAttrs>("signsgd_update", 0);
  static const UpdateOp momentum = update_op<SgdMomAttrs>("signum_update", 1);
  return at(s, "momentum") != 0 ? momentum : plain;
}

const UpdateOp &ftrl(const Settings &) {
  static const UpdateOp op = update_op<FtrlAttrs>("ftrl_update", 2);
  return op;
}

const UpdateOp &ftml(const Settings &) {
  static const UpdateOp op = update_op<FtmlAttrs>("ftml_update", 3);
  return op;
}

// The bias of the moving averages, which start at zero.
double bias_correction(const Settings &s, int64_t count) {
  const double first = 1 - std::pow(at(s, "beta1"), double(count)),
               second = 1 - std::pow(at(s, "beta2"), double(count));
  return std::sqrt(second) / first;
}

void correct_adam(const Settings &s, int64_t count, UpdateValues *values, double lr) {
  values->lr = float(lr * bias_correction(s, count));
}

// Decay is of the learning rate alone: w -= eta * (lr * m / (sqrt(v) + epsilon) + wd * w).
void correct_adamw(const Settings &s, int64_t count, UpdateValues *values, double lr) {
  values->eta = float(lr);
  values->lr = float(bias_correction(s, count));
}

const OptimizerKind kKinds[] = {
    {"sgd", {{"momentum", 0}, {"lazy_update", 1}}, sgd, nullptr},
    {"ccsgd", {{"momentum", 0}, {"lazy_update", 1}}, sgd, nullptr},  // the same by an older name
    {"nag", {{"momentum", 0}}, nag, nullptr},
    {"adam",
     {{"learning_rate", 0.001}, {"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}, {"lazy_update", 1}},
     adam,
     correct_adam},
    {"adamw", {{"learning_rate", 0.001}, {"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}}, adamw, correct_adamw},
    {"rmsprop",
     {{"learning_rate", 0.001},
      {"gamma1", 0.9},
      {"gamma2", 0.9},
      {"epsilon", 1e-8},
      {"centered", 0},
      {"clip_weights", -1}},
     rmsprop,
     nullptr},
    {"adagrad", {{"learning_rate", 0.01}, {"epsilon", 1e-7}}, adagrad, nullptr},
    {"ftrl", {{"learning_rate", 0.1}, {"lamda1", 0.01}, {"beta", 1}}, ftrl, nullptr},
    {"ftml", {{"beta1", 0.6}, {"beta2", 0.999}, {"epsilon", 1e-8}}, ftml, nullptr},
    {"signum", {{"learning_rate", 0.01}, {"momentum", 0.9}, {"wd_lh", 0}}, signum, nullptr},
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
