// SPDX-License-Identifier: Apache-2.0
#include "executor/calibration.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "executor/invoke.hpp"

namespace cohort {
namespace {

constexpr int kHalf = 1000;  // bins on either side of the middle one

// Bins twice as wide: the middle one stays in the middle.
void widen_bins(std::vector<double> *counts) {
  std::vector<double> wide(counts->size(), 0);
  for (int i = -kHalf; i <= kHalf; ++i)
    wide[size_t(kHalf + (i >= 0 ? (i + 1) / 2 : -((1 - i) / 2)))] += (*counts)[size_t(kHalf + i)];
  *counts = std::move(wide);
}

}  // namespace

void Calibration::note(Seen *seen, const std::vector<float> &values) const {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  seen->low = std::min(seen->low, *low);
  seen->high = std::max(seen->high, *high);
  if (method_ == Method::kMinMax) return;
  const double largest = std::max(std::fabs(double(seen->low)), std::fabs(double(seen->high)));
  if (seen->counts.empty()) seen->counts.assign(2 * kHalf + 1, 0);
  if (seen->reach == 0) {
    seen->counts[kHalf] = std::max(seen->counts[kHalf], 0.0);  // all 0 so far
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
  std::map<std::string, Seen> seen = seen_;
  executor.forward_watched([&](const std::string &name, const NDArray &array) {
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

ValueRange Calibration::range_of(const Seen &seen) const {
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
  // Bytes without a sign have twice as many numbers above 0.
  const AttrMap attrs{{"num_quantized_bins", seen.low >= 0 ? "511" : "255"}};
  float threshold = 0;
  invoke("_contrib_calibrate_entropy", attrs, {array(counts), array(edges)}, {}, Context())[0].read(&threshold,
                                                                                                    sizeof threshold);
  return {std::max(seen.low, -threshold), std::min(seen.high, threshold)};
}

std::shared_ptr<const ValueRanges> Calibration::ranges() const {
  if (seen_.empty()) {
    throw Error(Code::kState, "calibration: no batch was observed: show it some with cohort_calibration_observe()",
                "calibration");
  }
  if (!ranges_) {
    auto made = std::make_shared<ValueRanges>();
    for (const auto &[name, seen] : seen_) made->emplace(name, range_of(seen));
    ranges_ = std::move(made);
  }
  return ranges_;
}

}  // namespace cohort
