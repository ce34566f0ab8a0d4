// SPDX-License-Identifier: Apache-2.0
// Learning rates as a function of the number of updates. Used by Optimizer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/attributes.hpp"

namespace cohort {

class LrSchedule {
 public:
  // `name` is "constant", "factor", "multifactor", "poly" or "cosine"; base_lr is the rate at the start. Throws kName,
  // kInvalidArgument.
  static std::unique_ptr<LrSchedule> create(const std::string &name, const AttrMap &settings, double base_lr);
  virtual ~LrSchedule() = default;

  // The rate of update number num_update, the first being 1.
  double at(int64_t num_update) const;

 protected:
  virtual double after_warmup(int64_t num_update) const = 0;

  double base_lr_ = 0;
  int64_t warmup_steps_ = 0;

 private:
  double warmup_begin_lr_ = 0;
  bool warmup_linear_ = true;
};

}  // namespace cohort
