// SPDX-License-Identifier: Apache-2.0
// _contrib_calibrate_entropy. For each window around the middle of the histogram, computes the Kullback-Leibler
// divergence of its counts (with the outliers added at its ends) from the same counts quantized into few bins. The
// bound is that of the window with the least divergence.
#include <algorithm>
#include <cmath>

#include "cpu/op/pointwise_loops.hpp"
#include "device/kernel_table.hpp"
#include "op/quantization.hpp"

namespace cohort {
namespace {

// Moves a little weight from entries that are not 0 to those that are. False if there is nothing to move.
bool smooth(double *values, int64_t count) {
  constexpr double kLittle = 1e-4;
  const int64_t zeros = std::count(values, values + count, 0.0), others = count - zeros;
  if (others == 0 || kLittle * double(zeros) >= double(others)) return false;
  const double taken = kLittle * double(zeros) / double(others);
  for (int64_t i = 0; i < count; ++i) values[i] += values[i] == 0 ? kLittle : -taken;
  return true;
}

double divergence(const double *p, const double *q, int64_t count) {
  double sum_p = 0, sum_q = 0, result = 0;
  for (int64_t i = 0; i < count; ++i) sum_p += p[i], sum_q += q[i];
  for (int64_t i = 0; i < count; ++i) {
    if (p[i] > 0 && q[i] > 0) result += p[i] / sum_p * std::log(p[i] / sum_p / (q[i] / sum_q));
  }
  return result;
}

class CalibrateEntropy final : public Kernel {
 public:
  explicit CalibrateEntropy(StepSpec &spec)
      : bins_(spec.inputs[0].shape[0]),
        few_(spec.attrs_as<CalibrateAttrs>().num_quantized_bins),
        load_(load_block(spec.inputs[0].dtype, Dtype::kFloat64)) {
    spec.scratch_bytes = size_t(3 * bins_) * sizeof(double);
  }
  void run(const Args &args, const Lane &) const override {
    double *const hist = static_cast<double *>(args.scratch), *const p = hist + bins_, *const q = p + bins_;
    load_(args.inputs[0], 0, hist, bins_);
    const int64_t middle = bins_ / 2;
    double least = INFINITY;
    int64_t bound = std::min(middle + few_ / 2 + 1, bins_);
    for (int64_t half = few_ / 2; half <= middle; ++half) {
      const int64_t begin = middle - half, end = std::min(middle + half + 1, bins_);
      const double found = of_window(hist, begin, end, p, q);
      if (found < least) least = found, bound = end;
    }
    double threshold;
    load_(args.inputs[1], bound, &threshold, 1);
    args.out<float>(0)[0] = float(threshold);
    if (args.outputs[1]) args.out<float>(1)[0] = float(least);
  }

 private:
  double of_window(const double *hist, int64_t begin, int64_t end, double *p, double *q) const {
    const int64_t count = end - begin, merged = count / few_;
    // The first bin counts as an outlier.
    const auto inside = [&](int64_t k) { return k == 0 ? 0.0 : hist[begin + k]; };
    std::copy(hist + begin, hist + end, p);
    for (int64_t i = 0; i < begin; ++i) p[0] += hist[i];
    for (int64_t i = end; i < bins_; ++i) p[count - 1] += hist[i];
    for (int64_t j = 0; j < few_; ++j) {
      const int64_t first = j * merged, last = j + 1 == few_ ? count : first + merged;
      double sum = 0, filled = 0;
      for (int64_t k = first; k < last; ++k) {
        sum += inside(k);
        filled += inside(k) != 0;
      }
      for (int64_t k = first; k < last; ++k) q[k] = filled > 0 && p[k] != 0 ? sum / filled : 0;
    }
    if (!smooth(p, count) || !smooth(q, count)) return INFINITY;
    return divergence(p, q, count);
  }

  const int64_t bins_, few_;
  const LoadBlock load_;
};

COHORT_KERNEL(cpu, _contrib_calibrate_entropy, CalibrateEntropy);

}  // namespace
}  // namespace cohort
