// SPDX-License-Identifier: Apache-2.0
// The inside of an optimizer, shared by the files of this folder.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/names.hpp"
#include "optimizer/lr_schedule.hpp"
#include "optimizer/optimizer.hpp"

namespace cohort {

using OptimizerSettings = std::map<std::string, double>;

// What tells one optimizer from another: its settings, and the operators of which they choose one.
struct OptimizerKind {
  const char *name;
  std::vector<std::pair<const char *, double>> settings;  // beyond those that all have
  std::vector<UpdateOp> ops;
  size_t (*choose)(const OptimizerSettings &settings) = nullptr;  // one of the operators; null: the first
  // Fills in what is more than a setting of the same name: when settings change; and for each update, where
  // slot.count is 1 at a parameter's first one, and `rate` the learning rate before lr_mult. Either may be null.
  void (*settle)(const OptimizerSettings &settings, UpdateValues *values) = nullptr;
  void (*correct)(const OptimizerSettings &settings, Optimizer::Slot &slot, double rate,
                  UpdateValues *values) = nullptr;
  enum Trait : unsigned {
    kCarries = 1,     // Slot::carried is of use: it is saved with the states
    kRateBefore = 2,  // the learning rate is that of as many updates as were done before this one
    kNoDecay = 4,     // it knows no weight decay
    kDraws = 8,       // it draws noise
    kGammaStays = 16  // weight decay is not for names that end in _gamma
  };
  unsigned traits = 0;
  double carried = 0;  // Slot::carried before a parameter's first update

  bool has(Trait trait) const { return (traits & trait) != 0; }
  const UpdateOp &op(const OptimizerSettings &values) const { return ops[choose ? choose(values) : 0]; }
};
const OptimizerKind *find_optimizer_kind(const std::string &name);  // null: none
std::string list_optimizer_kinds();
const std::vector<std::string> &warmup_strategies();  // of lbsgd: the setting is a place in it

struct Optimizer::Slot {
  std::string param;
  size_t copy = 0;
  double lr_mult = 1, wd_mult = 1;  // those that hold
  int64_t count = 0;
  double carried = 0, carried_before = 0;  // a number that goes on from update to update; as it was before the latest
  std::vector<NDArray> states;             // none until the first update, or as loaded
  bool has_master = false;                 // the last of them is the weight in float32
  bool ready = false;                      // states are in place beside the weight
};

struct Optimizer::Impl {
  const OptimizerKind *kind = nullptr;
  std::string name;
  OptimizerSettings settings;
  std::unique_ptr<LrSchedule> schedule;
  std::map<std::string, double> symbol_lr_mult, symbol_wd_mult, own_lr_mult, own_wd_mult;
  std::map<std::pair<std::string, size_t>, std::unique_ptr<Slot>> slots;  // their addresses stay
  int64_t num_update = 0;
  uint64_t generation = 1;
  std::optional<LossScaleState> loss_scale;
  bool loss_scale_is_loaded = false;  // no group has taken it yet
  // What the settings say to every update: read when they change, for small networks have an update in a microsecond.
  UpdateValues common;
  double learning_rate = 0, wd = 0, gradient_scale = 1;

  const UpdateOp &op() const { return kind->op(settings); }
  double setting(const char *key) const {
    const auto found = settings.find(key);
    return found == settings.end() ? 0 : found->second;
  }
  bool wants_master(Dtype dtype) const {
    return setting("multi_precision") != 0 && (dtype == Dtype::kFloat16 || dtype == Dtype::kBfloat16);
  }
  double rate(int64_t update) const { return schedule ? schedule->at(update) : learning_rate; }
  double next_rate() const { return rate(num_update + (kind->has(OptimizerKind::kRateBefore) ? 0 : 1)); }
  void read_settings();  // after each change
  void refresh_mults();
  double default_wd_mult(const std::string &param) const;
  std::string kind_text() const;  // "sgd/1/0": name, states of a parameter, multi_precision
};

}  // namespace cohort
