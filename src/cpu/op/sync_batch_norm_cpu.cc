// SPDX-License-Identifier: Apache-2.0
// BatchNorm with the statistics of all devices of a group, which each have a part of the batch.
#include <cmath>

#include "cpu/op/batch_norm_passes.hpp"
#include "cpu/parallel.hpp"

namespace cohort {
namespace {

using namespace batch_norm;

ChannelStats found_of(const Args &args, size_t device) { return {static_cast<double *>(args.shares->blocks[device])}; }
ChannelStats own_found(const Args &args) { return found_of(args, args.shares->own); }
size_t found_bytes(int64_t channels) { return sizeof(double) * size_t(ChannelStats::size(channels)); }

template <typename Fn>
void for_channel(const BatchNormExtent &e, int64_t c, Fn &&fn) {
  for (int64_t o = 0; o < e.outer; ++o) {
    for (int64_t i = 0; i < e.inner; ++i) fn((o * e.channels + c) * e.inner + i);
  }
}

class SyncBatchNorm final : public Kernel {
 public:
  explicit SyncBatchNorm(StepSpec &spec)
      : attrs_(spec.attrs_as<BatchNormAttrs>()),
        extent_(extent_of(attrs_, spec.inputs[0].shape)),
        dtype_(spec.inputs[0].dtype),
        moves_(moves(spec)) {
    spec.share_bytes = found_bytes(extent_.channels);
    spec.saved_bytes = size_t(extent_.channels) * 2 * sizeof(double);
  }
  void publish_share(const Args &args, const Lane &lane) const override {
    dispatch_float(dtype_, "SyncBatchNorm", [&](auto type) {
      using T = decltype(type);
      const T *x = args.in<T>(0);
      const ChannelStats found = own_found(args);
      const auto count = double(extent_.outer * extent_.inner);
      found.count() = count;
      parallel_for(lane, extent_.channels, 1, [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
          double sum = 0, squares = 0;
          for_channel(extent_, c, [&](int64_t at) { sum += cast_element<double>(x[at]); });
          const double mean = count > 0 ? sum / count : 0;
          for_channel(extent_, c, [&](int64_t at) {
            const double distance = cast_element<double>(x[at]) - mean;
            squares += distance * distance;
          });
          found.first(c) = mean, found.second(c) = squares;
        }
      });
    });
  }
  void run(const Args &args, const Lane &lane) const override {
    dispatch_float(dtype_, "SyncBatchNorm", [&](auto type) { normalise<decltype(type)>(args, lane); });
  }

 private:
  template <typename T>
  void normalise(const Args &args, const Lane &lane) const {
    using S = StatisticsOf<T>;
    auto *const mean = static_cast<S *>(args.saved), *const variance = mean + extent_.channels;
    const S *const gamma = args.in<S>(1), *const beta = args.in<S>(2), eps = S(attrs_.eps);
    const T *x = args.in<T>(0);
    T *y = args.out<T>(0);
    parallel_for(lane, extent_.channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        JoinedMoments joined;
        for (size_t d = 0; d < args.shares->blocks.size(); ++d) joined.add(found_of(args, d), c);
        mean[c] = S(joined.mean);
        variance[c] = S(joined.variance());
        const S scale = (attrs_.fix_gamma ? S(1) : gamma[c]) / std::sqrt(variance[c] + eps), shift = beta[c];
        for_channel(extent_, c,
                    [&](int64_t at) { y[at] = cast_element<T>((cast_element<S>(x[at]) - mean[c]) * scale + shift); });
      }
    });
    BatchStatistics<S>{extent_.channels, S(attrs_.momentum), eps, moves_, attrs_.gives_variance}.publish(mean, variance,
                                                                                                         args);
  }

  const BatchNormAttrs attrs_;
  const BatchNormExtent extent_;
  const Dtype dtype_;
  const bool moves_;
};

class SyncBatchNormBackward final : public Kernel {
 public:
  explicit SyncBatchNormBackward(StepSpec &spec)
      : attrs_(spec.attrs_as<BatchNormAttrs>()),
        extent_(extent_of(attrs_, spec.inputs[0].shape)),
        dtype_(spec.inputs[0].dtype),
        fixes_gamma_(fixes_gamma(spec)) {
    spec.share_bytes = found_bytes(extent_.channels);
    if (spec.wanted[0]) spec.inplace.emplace_back(0, 0);
  }
  void publish_share(const Args &args, const Lane &lane) const override {
    dispatch_float(dtype_, "_backward_SyncBatchNorm", [&](auto type) {
      using T = decltype(type);
      const ChannelStats found = own_found(args);
      found.count() = double(extent_.outer * extent_.inner);
      for_channels<T>(args, lane, [&](int64_t c, auto gradient, auto normal, auto) {
        double sum = 0, product = 0;
        for_channel(extent_, c, [&](int64_t at) {
          sum += double(gradient(at));
          product += double(gradient(at)) * double(normal(at));
        });
        found.first(c) = sum, found.second(c) = product;
      });
    });
  }
  void run(const Args &args, const Lane &lane) const override {
    dispatch_float(dtype_, "_backward_SyncBatchNorm", [&](auto type) { differentiate<decltype(type)>(args, lane); });
  }

 private:
  // Calls fn(channel, gradient(at), normalised data(at), 1 / deviation) for each channel.
  template <typename T, typename Fn>
  void for_channels(const Args &args, const Lane &lane, Fn &&fn) const {
    using S = StatisticsOf<T>;
    const T *head = args.in<T>(0), *x = args.in<T>(num_heads(attrs_));
    const auto *mean = static_cast<const S *>(args.saved), *variance = mean + extent_.channels;
    parallel_for(lane, extent_.channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        const S inverse = S(1) / std::sqrt(variance[c] + S(attrs_.eps));
        fn(
            c, [&](int64_t at) { return cast_element<S>(head[at]); },
            [&](int64_t at) { return (cast_element<S>(x[at]) - mean[c]) * inverse; }, inverse);
      }
    });
  }

  // Gradients of gamma and beta are those of the device's own part: the group adds them up.
  template <typename T>
  void differentiate(const Args &args, const Lane &lane) const {
    using S = StatisticsOf<T>;
    const int heads = num_heads(attrs_);
    const S *gamma = args.in<S>(heads + 1);
    T *dx = args.out<T>(0);
    S *dgamma = args.out<S>(1), *dbeta = args.out<S>(2);
    for_channels<T>(args, lane, [&](int64_t c, auto gradient, auto normal, S inverse) {
      JoinedSums joined;
      for (size_t d = 0; d < args.shares->blocks.size(); ++d) joined.add(found_of(args, d), c);
      const S scale = (attrs_.fix_gamma ? S(1) : gamma[c]) * inverse;
      const S mean_gradient = S(joined.gradients / joined.count), mean_product = S(joined.products / joined.count);
      if (dx) {
        for_channel(extent_, c, [&](int64_t at) {
          dx[at] = cast_element<T>((gradient(at) - mean_gradient - normal(at) * mean_product) * scale);
        });
      }
      if (dgamma) dgamma[c] = attrs_.fix_gamma ? S(0) : S(own_found(args).second(c));
      if (dbeta) dbeta[c] = S(own_found(args).first(c));
    });
    if (fixes_gamma_) fix_gamma(args.mutable_in<S>(heads + 1), extent_.channels);
  }

  const BatchNormAttrs attrs_;
  const BatchNormExtent extent_;
  const Dtype dtype_;
  const bool fixes_gamma_;
};

std::string refuses_own(const StepSpec &spec) { return is_shared(spec) ? "" : "the statistics are the device's own"; }
std::string refuses_backward_of_own(const StepSpec &spec) {
  return dynamic_cast<const SyncBatchNorm *>(spec.forward) ? "" : "the statistics are the device's own";
}

// Asked first: the other kernels would take the backward step of this one.
COHORT_KERNEL(cpu, _contrib_SyncBatchNorm, SyncBatchNorm)
    .named("shared")
    .dtypes(kFloatTypes)
    .when(refuses_own)
    .preference(2);
COHORT_KERNEL(cpu, _backward__contrib_SyncBatchNorm, SyncBatchNormBackward)
    .named("shared")
    .dtypes(kFloatTypes)
    .when(refuses_backward_of_own)
    .preference(2);

}  // namespace
}  // namespace cohort
