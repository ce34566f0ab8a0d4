// SPDX-License-Identifier: Apache-2.0
#include "executor/calibration.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "executor/invoke.hpp"

namespace cohort {
namespace {

constexpr int kHalf = 1000;  // bins on either side of the middle one

// Makes the bins twice as wide: the middle one stays in the middle.
void widen_bins(std::vector<double> *counts) {
  std::vector<double> wide(counts->size(), 0);
  for (int i = -kHalf; i <= kHalf; ++i)
    wide[size_t(kHalf + (i >= 0 ? (i + 1) / 2 : -((1 - i) / 2)))] += (*counts)[size_t(kHalf + i)];
  *counts = std::move(wide);
}

}  // namespace

void Calibration::note(Observed *seen, const std::vector<float> &values) const {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  seen->low = std::min(seen->low, *low);
  seen->high = std::max(seen->high, *high);
  if (method_ == Method::kMinMax) return;
  const double largest = std::max(std::fabs(double(seen->low)), std::fabs(double(seen->high)));
  if (seen->counts.empty()) seen->counts.assign(2 * kHalf + 1, 0);
  if (seen->reach == 0) {
    seen->counts[kHalf] = std::max(seen->counts[kHalf], 0.0);  // all values so far were 0
    seen->reach = largest;
  }
  if (largest == 0) {
    seen->counts[kHalf] += double(values.size());
    return;
  }
  for (; seen->reach < largest; seen->reach *= 2) widen_bins(&seen->counts);
  const double bins = (2 * kHalf + 1) / (2 * seen->reach);
  for (const float value : values) {
    const int bin = int(std::floor((double(value) + seen->reach) * bins));
    seen->counts[size_t(std::clamp(bin, 0, 2 * kHalf))] += 1;
  }
}

void Calibration::observe(Executor &executor) {
  if (!method_) {
    throw Error(Code::kState, "calibration: it was made from ranges and cannot observe batches", "calibration");
  }
  std::map<std::string, Observed> seen = seen_;
  executor.forward_observed([&](const std::string &name, const NDArray &array) {
    if (array.dtype() != Dtype::kFloat32 || array.size() == 0) return;
    const NDArray here = array.on_host();
    std::vector<float> values(size_t(here.size()));
    here.read(values.data(), values.size() * sizeof(float));
    for (const float value : values) {
      if (std::isfinite(value)) continue;
      throw Error(Code::kExecution, text("calibration: '", name, "' holds ", value), name);
    }
    note(&seen[name], values);
  });
  seen_ = std::move(seen);
  ranges_ = nullptr;
}

ValueRange Calibration::range_of(const Observed &seen) const {
  if (method_ == Method::kMinMax || seen.reach == 0) return {seen.low, seen.high};
  const int64_t num_bins = int64_t(seen.counts.size());
  std::vector<float> counts(seen.counts.begin(), seen.counts.end()), edges;
  for (int64_t i = 0; i <= num_bins; ++i)
    edges.push_back(float(-seen.reach + 2 * seen.reach * double(i) / double(num_bins)));
  const auto array = [](const std::vector<float> &values) {
    NDArray made = NDArray::create(Shape{int64_t(values.size())}, Dtype::kFloat32, Context());
    made.write(values.data(), values.size() * sizeof(float));
    return made;
  };
  // Unsigned bytes have twice as many numbers above 0.
  const AttrMap attrs{{"num_quantized_bins", seen.low >= 0 ? "511" : "255"}};
  float threshold = 0;
  invoke("_contrib_calibrate_entropy", attrs, {array(counts), array(edges)}, {}, Context())[0].read(&threshold,
                                                                                                    sizeof threshold);
  return {std::max(seen.low, -threshold), std::min(seen.high, threshold)};
}

std::shared_ptr<const ValueRanges> Calibration::ranges() const {
  if (!ranges_ && seen_.empty()) {
    throw Error(Code::kState, "calibration: no batch was observed yet; call cohort_calibration_observe()",
                "calibration");
  }
  if (!ranges_) {
    auto made = std::make_shared<ValueRanges>();
    for (const auto &[name, seen] : seen_) made->emplace(name, range_of(seen));
    ranges_ = std::move(made);
  }
  return ranges_;
}

NamedArrays to_arrays(const ValueRanges &ranges) {
  NamedArrays arrays;
  for (const auto &[name, range] : ranges) {
    const float ends[] = {range.low, range.high};
    NDArray array = NDArray::create(Shape{2}, Dtype::kFloat32, Context());
    array.write(ends, sizeof ends);
    arrays.emplace_back(name, std::move(array));
  }
  return arrays;
}

ValueRanges read_ranges(const NamedArrays &arrays) {
  ValueRanges ranges;
  if (arrays.empty()) throw Error(Code::kInvalidArgument, "ranges: expected at least one, found none", "ranges");
  for (const auto &[name, array] : arrays) {
    const auto refuse = [&, &name = name](Code code, const std::string &why) {
      throw Error(code, text("ranges, '", name, "': ", why), name);
    };
    if (name.empty()) refuse(Code::kInvalidArgument, "expected the name of a value, found none");
    if (!array) refuse(Code::kInvalidArgument, "expected the least and the largest number, found no array");
    if (array.dtype() != Dtype::kFloat32) refuse(Code::kDtype, text("expected float32, found ", array.dtype()));
    if (array.shape() != Shape{2}) refuse(Code::kShape, text("expected ", Shape{2}, ", found ", array.shape()));
    float ends[2];
    array.on_host().read(ends, sizeof ends);
    if (!std::isfinite(ends[0]) || !std::isfinite(ends[1]) || ends[0] > ends[1]) {
      refuse(Code::kInvalidArgument,
             text("expected the least and the largest number, found ", ends[0], " and ", ends[1]));
    }
    const ValueRange range{std::min(ends[0], 0.0f), std::max(ends[1], 0.0f)};
    if (!ranges.emplace(name, range).second) refuse(Code::kName, "it is listed twice");
  }
  return ranges;
}

}  // namespace cohort
