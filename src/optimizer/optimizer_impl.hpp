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

using OptimizerSettings = std::map<std::string, double, std::less<>>;  // look-up by text that does not allocate

// One kind of optimizer: its settings, and the operators from which they choose one.
struct OptimizerKind {
  const char *name;
  std::vector<std::pair<const char *, double>> settings;  // in addition to those of all optimizers
  std::vector<UpdateOp> ops;
  size_t (*choose)(const OptimizerSettings &settings) = nullptr;  // chooses one of the operators; null: the first
  // Fill in numbers that are not simply a setting of the same name. settle() runs when settings change; correct() runs
  // for each update, where slot.count is 1 at a parameter's first one, and `rate` is the learning rate before lr_mult.
  // Either may be null.
  void (*settle)(const OptimizerSettings &settings, UpdateValues *values) = nullptr;
  void (*correct)(const OptimizerSettings &settings, Optimizer::Slot &slot, double rate,
                  UpdateValues *values) = nullptr;
  enum Trait : unsigned {
    kCarries = 1,     // Slot::carried is used, and saved with the states
    kRateBefore = 2,  // the learning rate is taken at the number of updates before this one
    kNoDecay = 4,     // there is no weight decay
    kDraws = 8,       // updates draw noise
    kGammaStays = 16  // weight decay leaves out names that end in _gamma
  };
  unsigned traits = 0;
  double carried = 0;  // Slot::carried before a parameter's first update

  bool has(Trait trait) const { return (traits & trait) != 0; }
  const UpdateOp &op(const OptimizerSettings &values) const { return ops[choose ? choose(values) : 0]; }
};
const OptimizerKind *find_optimizer_kind(const std::string &name);  // null: none
std::string list_optimizer_kinds();
const std::vector<std::string> &warmup_strategies();  // of lbsgd: the setting is an index in this list

struct Optimizer::Slot {
  std::string param;
  size_t copy = 0;
  double lr_mult = 1, wd_mult = 1;  // the multipliers in effect
  int64_t count = 0;
  // A number that is carried from update to update; its value before the latest.
  double carried = 0, carried_before = 0;
  std::vector<NDArray> states;  // empty until the first update or until they are loaded
  bool has_master = false;      // the last state is the weight in float32
  bool ready = false;           // states are on the weight's context
};

struct Optimizer::Impl {
  const OptimizerKind *kind = nullptr;
  std::string name;
  OptimizerSettings settings;
  std::unique_ptr<LrSchedule> schedule;
  std::map<std::string, double> symbol_lr_mult, symbol_wd_mult, own_lr_mult, own_wd_mult;
  std::map<std::pair<std::string, size_t>, std::unique_ptr<Slot>> slots;  // their addresses do not change
  int64_t num_update = 0;
  uint64_t generation = 1;
  std::map<std::string, std::shared_ptr<const TrainingSource>> sources;  // by bucket, of the groups updated
  std::shared_ptr<const TrainingSource> latest_source;
  TrainingState training;           // as loaded; holds for buckets that are not in `sources`
  bool training_is_loaded = false;  // and there was no update since
  std::optional<LossScaleState> loss_scale;
  bool loss_scale_is_loaded = false;  // and no group has taken it yet
  // The numbers that all updates share. They are computed when settings change, as updates of small networks take about
  // a microsecond.
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
  TrainingState training_now() const;
  void read_settings();  // after each change of a setting
  void refresh_mults();
  double default_wd_mult(const std::string &param) const;
  std::string kind_text() const;  // "sgd/1/0": name, states of a parameter, multi_precision
};

}  // namespace cohort
