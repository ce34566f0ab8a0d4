// SPDX-License-Identifier: Apache-2.0
// Common code of the three kernels of BatchNorm on the CPU: batch_norm_onednn_cpu.cc; batch_norm_cpu.cc, whose loops
// take any floating-point type; sync_batch_norm_cpu.cc, with the statistics of all devices of a group.
// Inputs: data, gamma, beta, moving mean, moving variance. Outputs: result, mean, 1 / sqrt(variance + eps). A
// training pass saves the mean and the variance for the backward pass, and so does an inference pass that a backward
// pass follows; with a fused relu it also saves which elements the relu let through.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "base/dtype_cast.hpp"
#include "device/kernel_table.hpp"
#include "op/batch_norm.hpp"

namespace cohort::batch_norm {

// A tensor as (outer, channels, inner).
struct BatchNormExtent {
  int64_t outer, channels, inner;
};

inline BatchNormExtent extent_of(const BatchNormAttrs &a, const Shape &data) {
  const int axis = normalize_axis(a.axis, data.rank(), "BatchNorm");
  return {data.size(0, axis), data[axis], data.size(axis + 1, data.rank())};
}

// With fix_gamma the backward pass of training sets gamma to 1, whether gamma is trained or not. Forward passes then
// read no gamma and write none: the array may be shared, or lie in memory that cannot be written, which is also why
// only elements other than 1 are written here.
template <typename S>
void fix_gamma(S *gamma, int64_t count) {
  for (int64_t c = 0; c < count; ++c) {
    if (gamma[c] != S(1)) gamma[c] = S(1);
  }
}
inline bool fixes_gamma(const StepSpec &backward) {
  return backward.is_train && backward.attrs_as<BatchNormAttrs>().fix_gamma;
}

// Writes the outputs of a training pass that follow from its statistics, and updates the moving ones.
template <typename S>
struct BatchStatistics {
  int64_t channels;
  S momentum, eps;
  bool updates;         // the moving statistics
  bool gives_variance;  // in place of 1 / sqrt(variance + eps)

  void publish(const S *mean, const S *variance, const Args &args) const {
    S *const mean_out = args.out<S>(1), *const inverse_out = args.out<S>(2);
    for (int64_t c = 0; mean_out && c < channels; ++c) mean_out[c] = mean[c];
    for (int64_t c = 0; inverse_out && c < channels; ++c) {
      inverse_out[c] = gives_variance ? variance[c] : S(1) / std::sqrt(variance[c] + eps);
    }
    if (!updates) return;
    S *const moving_mean = args.mutable_in<S>(3), *const moving_variance = args.mutable_in<S>(4);
    for (int64_t c = 0; c < channels; ++c) {
      moving_mean[c] = momentum * moving_mean[c] + (1 - momentum) * mean[c];
      moving_variance[c] = momentum * moving_variance[c] + (1 - momentum) * variance[c];
    }
  }
};

// T: type of the data. Statistics and parameters are float for the 16-bit types, T for the others.
template <typename T>
using StatisticsOf = typename Accumulator<T>::type;

inline bool has_relu(const StepSpec &spec) { return !spec.post.empty(); }
// Whether mean and variance are saved for a backward pass.
inline bool keeps(const StepSpec &spec) { return spec.is_train || spec.keep_for_backward; }
// Whether the moving statistics are updated.
inline bool moves(const StepSpec &spec) {
  return spec.is_train && !spec.attrs_as<BatchNormAttrs>().use_global_stats && !spec.frozen;
}
// Whether the moving statistics are used in place of those of the batch.
inline bool is_global(const StepSpec &spec) {
  return !spec.is_train || spec.attrs_as<BatchNormAttrs>().use_global_stats;
}
// Whether the statistics are those of all devices of a group.
inline bool is_shared(const StepSpec &forward) { return forward.num_replicas > 1 && !is_global(forward); }
inline std::string refuses_shared(const StepSpec &spec) {
  return is_shared(spec) ? "the statistics are those of several devices" : "";
}

// The number of head gradients; data and gamma follow them.
inline int num_heads(const BatchNormAttrs &a) { return a.output_mean_var ? 3 : 1; }

inline constexpr auto kTrainRelu = PostOp::Kind::kTrainRelu;

// Makes the kernel of a BatchNorm step with a relu fused in.
template <KernelFactory kMake>
std::unique_ptr<Kernel> make_with_relu(StepSpec &spec) {
  StepSpec relu = spec;
  if (relu.post.empty()) relu.post.push_back({kTrainRelu});  // a second one changes nothing
  auto kernel = kMake(relu);
  if (!kernel) return nullptr;
  relu.post = spec.post;
  spec = std::move(relu);
  return kernel;
}

}  // namespace cohort::batch_norm
