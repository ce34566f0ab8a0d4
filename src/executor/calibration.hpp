// SPDX-License-Identifier: Apache-2.0
// Finds the range in which each value of a network lies, over the batches that it is shown: what inference in bytes
// goes by (ComputeTypes::ranges). For the boundary.
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
    kMinMax = 0,   // from the least to the largest number
    kEntropy = 1,  // cut off where bytes tell most of how the numbers are distributed
  };
  explicit Calibration(Method method) : method_(method) {}
  // One that has found these, and observes no more: kState.
  explicit Calibration(ValueRanges ranges) : ranges_(std::make_shared<ValueRanges>(std::move(ranges))) {}

  // Runs a forward pass of inference on what the arguments hold, and notes what each node gives. kExecution, and
  // nothing of it is noted: a value is infinite or no number.
  void observe(Executor &executor);
  // What was found so far, by name: "conv0_output", or that of an argument. kState: nothing was observed.
  std::shared_ptr<const ValueRanges> ranges() const;

 private:
  struct Observed {
    float low = 0, high = 0;
    double reach = 0;            // of the histogram, on both sides of 0
    std::vector<double> counts;  // an odd number of bins, the middle one around 0
  };
  void note(Observed *seen, const std::vector<float> &values) const;
  ValueRange range_of(const Observed &seen) const;

  const std::optional<Method> method_;  // none: it was given its ranges
  std::map<std::string, Observed> seen_;
  mutable std::shared_ptr<const ValueRanges> ranges_;  // null: to be made anew
};

// By name, the least and the largest number of each as an array; and back. Throws what cohort_calibration_create_from()
// returns.
NamedArrays to_arrays(const ValueRanges &ranges);
ValueRanges read_ranges(const NamedArrays &arrays);

}  // namespace cohort
