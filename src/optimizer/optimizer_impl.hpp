// SPDX-License-Identifier: Apache-2.0
// The inside of an optimizer, shared by the files of this folder.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "optimizer/lr_schedule.hpp"
#include "optimizer/optimizer.hpp"

namespace cohort {

// What tells one optimizer from another: its settings and the operator that its settings choose.
struct OptimizerKind {
  const char *name;
  std::vector<std::pair<const char *, double>> settings;  // beyond those that all have
  // The operator of the formula under these settings.
  const UpdateOp &(*op)(const std::map<std::string, double> &settings);
  // Fills in what is more than a setting of the same name: bias corrections and the like. `count` is that of the
  // parameter, 1 at its first update.
  void (*correct)(const std::map<std::string, double> &settings, int64_t count, UpdateValues *values, double lr);
};
const OptimizerKind *find_optimizer_kind(const std::string &name);  // null: none
std::string list_optimizer_kinds();

struct Optimizer::Slot {
  std::string param;
  size_t copy = 0;
  double lr_mult = 1, wd_mult = 1;  // those that hold
  int64_t count = 0;
  std::vector<NDArray> states;  // none until the first update, or as loaded
  bool has_master = false;      // the last of them is the weight in float32
  bool ready = false;           // states are in place beside the weight
};

struct Optimizer::Impl {
  const OptimizerKind *kind = nullptr;
  std::string name;
  std::map<std::string, double> settings;
  std::unique_ptr<LrSchedule> schedule;
  std::map<std::string, double> symbol_lr_mult, symbol_wd_mult, own_lr_mult, own_wd_mult;
  std::map<std::pair<std::string, size_t>, std::unique_ptr<Slot>> slots;  // their addresses stay
  int64_t num_update = 0;
  uint64_t generation = 1;
  std::optional<LossScaleState> loss_scale;
  bool loss_scale_is_loaded = false;  // no group has taken it yet
  // What the settings say to every update: read when they change, for small networks have an update in a microsecond.
  UpdateValues common;
  double learning_rate = 0, wd = 0;

  const UpdateOp &op() const { return kind->op(settings); }
  double setting(const char *key) const {
    const auto found = settings.find(key);
    return found == settings.end() ? 0 : found->second;
  }
  bool wants_master(Dtype dtype) const {
    return setting("multi_precision") != 0 && (dtype == Dtype::kFloat16 || dtype == Dtype::kBfloat16);
  }
  double rate(int64_t update) const { return schedule ? schedule->at(update) : learning_rate; }
  void read_settings();  // after each change
  void refresh_mults();
  std::string kind_text() const;  // "sgd/1/0": name, states of a parameter, multi_precision
};

}  // namespace cohort
