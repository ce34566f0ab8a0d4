// SPDX-License-Identifier: Apache-2.0
#include "optimizer/lr_schedule.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.hpp"
#include "base/setting_reader.hpp"

namespace cohort {
namespace {

class ConstantRate final : public LrSchedule {
  double after_warmup(int64_t) const override { return base_lr_; }
};

// Multiplies by `factor` after every `step` updates, not below stop_factor_lr.
class Factor final : public LrSchedule {
 public:
  explicit Factor(SettingReader &settings) {
    step_ = settings.integer("step", 1);
    factor_ = settings.number("factor", 1);
    stop_factor_lr_ = settings.number("stop_factor_lr", 1e-8);
    if (step_ < 1) settings.fail("step", "at least 1", std::to_string(step_));
    if (!(factor_ > 0 && factor_ <= 1)) settings.fail("factor", "above 0 and at most 1", text(factor_));
  }

 private:
  double after_warmup(int64_t num_update) const override {
    const int64_t times = num_update > 0 ? (num_update - 1) / step_ : 0;
    if (times == 0) return base_lr_;
    return std::max(base_lr_ * std::pow(factor_, double(times)), stop_factor_lr_);
  }

  int64_t step_;
  double factor_, stop_factor_lr_;
};

// Multiplies by `factor` after each of the given numbers of updates.
class MultiFactor final : public LrSchedule {
 public:
  explicit MultiFactor(SettingReader &settings) {
    const std::string steps = settings.text_of("step").value_or("");
    for (const auto &step : parse_tuple("step", steps)) steps_.push_back(step.value_or(0));
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (steps_[i] < 1 || (i > 0 && steps_[i] <= steps_[i - 1])) {
        settings.fail("step", "ascending numbers of at least 1", steps);
      }
    }
    if (steps_.empty()) settings.fail("step", "at least one number", steps);
    factor_ = settings.number("factor", 1);
    if (!(factor_ > 0 && factor_ <= 1)) settings.fail("factor", "above 0 and at most 1", text(factor_));
  }

 private:
  double after_warmup(int64_t num_update) const override {
    double lr = base_lr_;
    for (int64_t step : steps_)
      if (num_update > step) lr *= factor_;
    return lr;
  }

  std::vector<int64_t> steps_;
  double factor_;
};

// From base_lr to final_lr over max_update updates, along (1 - t)^pwr or half a cosine.
class Decay final : public LrSchedule {
 public:
  Decay(bool cosine, SettingReader &settings) : cosine_(cosine) {
    max_update_ = settings.integer("max_update", 0);
    final_lr_ = settings.number("final_lr", 0);
    if (!cosine) pwr_ = settings.number("pwr", 2);
    if (max_update_ < 1) settings.fail("max_update", "at least 1", std::to_string(max_update_));
  }
  int64_t max_update() const { return max_update_; }

 private:
  double after_warmup(int64_t num_update) const override {
    const int64_t done = std::min(num_update, max_update_) - warmup_steps_, all = max_update_ - warmup_steps_;
    const double part = all > 0 ? double(done) / double(all) : 1;
    const double left = cosine_ ? (1 + std::cos(M_PI * part)) / 2 : std::pow(1 - part, pwr_);
    return final_lr_ + (base_lr_ - final_lr_) * left;
  }

  const bool cosine_;
  int64_t max_update_;
  double final_lr_, pwr_ = 1;
};

}  // namespace

std::unique_ptr<LrSchedule> LrSchedule::create(const std::string &name, const AttrMap &settings, double base_lr) {
  SettingReader reader("learning rate schedule '" + name + "'", settings);
  const std::string kind = lower_case(name);
  std::unique_ptr<LrSchedule> schedule;
  int64_t most_warmup = INT64_MAX;
  if (kind == "constant") {
    schedule = std::make_unique<ConstantRate>();
  } else if (kind == "factor") {
    schedule = std::make_unique<Factor>(reader);
  } else if (kind == "multifactor") {
    schedule = std::make_unique<MultiFactor>(reader);
  } else if (kind == "poly" || kind == "cosine") {
    auto decay = std::make_unique<Decay>(kind == "cosine", reader);
    most_warmup = decay->max_update() - 1;
    schedule = std::move(decay);
  } else {
    throw Error(Code::kName,
                text("there is no learning rate schedule '", name,
                     "'; there are constant, factor, multifactor, poly and cosine"),
                name);
  }
  schedule->base_lr_ = base_lr;
  schedule->warmup_steps_ = reader.integer("warmup_steps", 0);
  schedule->warmup_begin_lr_ = reader.number("warmup_begin_lr", 0);
  schedule->warmup_linear_ = reader.word("warmup_mode", {"linear", "constant"}) == "linear";
  if (schedule->warmup_steps_ < 0 || schedule->warmup_steps_ > most_warmup) {
    reader.fail("warmup_steps", text("0 to ", most_warmup), std::to_string(schedule->warmup_steps_));
  }
  if (schedule->warmup_begin_lr_ > base_lr) {
    reader.fail("warmup_begin_lr", text("at most the learning rate ", base_lr), text(schedule->warmup_begin_lr_));
  }
  reader.finish();
  return schedule;
}

double LrSchedule::at(int64_t num_update) const {
  if (num_update >= warmup_steps_) return after_warmup(num_update);
  if (!warmup_linear_) return warmup_begin_lr_;
  return warmup_begin_lr_ + (base_lr_ - warmup_begin_lr_) * double(num_update) / double(warmup_steps_);
}

}  // namespace cohort
