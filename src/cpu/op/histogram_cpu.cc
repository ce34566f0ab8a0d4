// SPDX-License-Identifier: Apache-2.0
#include "op/histogram.hpp"

#include <algorithm>

#include "cpu/op/pointwise_loops.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

// Edges are compared as the second output holds them, rounded to its type; in double, which represents every type but
// the largest int64. Each element searches its bin, so that no edges can cause a write out of bounds.
class Histogram final : public Kernel {
 public:
  explicit Histogram(StepSpec &spec)
      : attrs_(spec.attrs_as<HistogramAttrs>()),
        count_(spec.inputs[0].shape.size()),
        bins_(spec.outputs[0].shape[0]),
        load_(load_block(spec.inputs[0].dtype, Dtype::kFloat64)),
        store_(store_block(Dtype::kFloat64, spec.outputs[1].dtype)),
        edge_bytes_(dtype_size(spec.outputs[1].dtype)) {
    spec.scratch_bytes = size_t(bins_ + 1) * (sizeof(double) + edge_bytes_);
  }
  void run(const Args &args, const Lane &) const override {
    double *const edges = static_cast<double *>(args.scratch);
    if (attrs_.bin_cnt) {
      for (int64_t i = 0; i <= bins_; ++i) {
        edges[i] = i == bins_ ? attrs_.high : attrs_.low + double(i) * (attrs_.high - attrs_.low) / double(bins_);
      }
      void *const rounded = edges + bins_ + 1;
      store_(edges, rounded, 0, bins_ + 1);
      load_(rounded, 0, edges, bins_ + 1);
    } else {
      load_(args.inputs[1], 0, edges, bins_ + 1);
    }
    if (args.outputs[1]) store_(edges, args.outputs[1], 0, bins_ + 1);
    if (args.outputs[0]) count(args, edges);
  }

 private:
  void count(const Args &args, const double *edges) const {
    int64_t *const counts = args.out<int64_t>(0);
    std::fill_n(counts, bins_, 0);
    // For even bins the position is estimated first, then corrected by the edges.
    const double per_bin = double(bins_) / (edges[bins_] - edges[0]);
    const bool even = attrs_.bin_cnt && per_bin > 0 && per_bin < 1e300;
    double block[kPointwiseBlock];
    for (int64_t at = 0; at < count_; at += kPointwiseBlock) {
      const int64_t n = std::min(kPointwiseBlock, count_ - at);
      load_(args.inputs[0], at, block, n);
      for (int64_t i = 0; i < n; ++i) {
        if (!(block[i] >= edges[0] && block[i] <= edges[bins_])) continue;  // NaN belongs to no bin
        int64_t bin;
        if (even) {
          bin = std::clamp<int64_t>(int64_t((block[i] - edges[0]) * per_bin), 0, bins_ - 1);
          while (bin > 0 && block[i] < edges[bin]) --bin;
          while (bin + 1 < bins_ && block[i] >= edges[bin + 1]) ++bin;
        } else {
          bin = std::upper_bound(edges, edges + bins_ + 1, block[i]) - edges - 1;
        }
        ++counts[std::clamp<int64_t>(bin, 0, bins_ - 1)];
      }
    }
  }

  const HistogramAttrs attrs_;
  const int64_t count_, bins_;
  const LoadBlock load_;
  const StoreBlock store_;
  const size_t edge_bytes_;
};

COHORT_KERNEL(cpu, _histogram, Histogram);

}  // namespace
}  // namespace cohort
