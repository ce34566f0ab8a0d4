// SPDX-License-Identifier: Apache-2.0
// Finds the range of each value of a network over the observed batches. Int8 inference quantizes by these ranges
// (ComputeTypes::ranges). Used by the API layer.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/executor.hpp"

namespace cohort {

class Calibration {
 public:
  enum class Method : int32_t {
    kMinMax = 0,   // from the smallest to the largest number
    kEntropy = 1,  // cut off where int8 numbers keep most of the distribution (least divergence)
  };
  explicit Calibration(Method method) : method_(method) {}
  // A calibration with these ranges, for which observe() throws kState.
  explicit Calibration(ValueRanges ranges) : ranges_(std::make_shared<ValueRanges>(std::move(ranges))) {}

  // Runs an inference forward pass on the current arguments and records the values of each node. If a value is infinite
  // or NaN, throws kExecution and records nothing of this pass.
  void observe(Executor &executor);
  // The ranges found so far by name: "conv0_output", or the name of an argument. kState if nothing was observed.
  std::shared_ptr<const ValueRanges> ranges() const;

 private:
  struct Observed {
    float low = 0, high = 0;
    double reach = 0;            // half the width of the histogram, which is centred on 0
    std::vector<double> counts;  // an odd number of bins, the middle one around 0
  };
  void note(Observed *seen, const std::vector<float> &values) const;
  ValueRange range_of(const Observed &seen) const;

  const std::optional<Method> method_;  // none: made from ranges
  std::map<std::string, Observed> seen_;
  mutable std::shared_ptr<const ValueRanges> ranges_;  // null: must be computed again
};

// Converts ranges to arrays by name, each with the smallest and the largest number; and back. Throws the errors that
// cohort_calibration_create_from() returns.
NamedArrays to_arrays(const ValueRanges &ranges);
ValueRanges read_ranges(const NamedArrays &arrays);

}  // namespace cohort
