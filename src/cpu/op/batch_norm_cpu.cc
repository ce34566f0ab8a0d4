// SPDX-License-Identifier: Apache-2.0
// BatchNorm as loops over row-major data of any floating-point type.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "cpu/op/batch_norm_passes.hpp"
#include "cpu/parallel.hpp"
#include "cpu/simd.hpp"
#include "device/restoring.hpp"
#include "kernels/partial_sums.hpp"
#include "kernels/scratch_layout.hpp"

namespace cohort {
namespace {

using namespace batch_norm;

// The elements of a channel, as rows of `length` elements that lie `step` apart. If inner is 1, the channel is one
// row.
struct ChannelRows {
  int64_t count, stride, length, step, inner;

  explicit ChannelRows(const BatchNormExtent &e)
      : count(e.inner == 1 ? 1 : e.outer),
        stride(e.channels * e.inner),
        length(e.inner == 1 ? e.outer : e.inner),
        step(e.inner == 1 ? e.channels : 1),
        inner(e.inner) {}
  int64_t size() const { return count * length; }
  // Calls fn(offset of a row, distance of its elements) for each row of a channel.
  template <typename Fn>
  void each(int64_t channel, Fn &&fn) const {
    for (int64_t r = 0; r < count; ++r) {
      const int64_t first = r * stride + channel * inner;
      if (step == 1)
        fn(first, std::integral_constant<int64_t, 1>());
      else
        fn(first, step);
    }
  }
  template <typename S, typename Fn>
  S sum(int64_t channel, Fn &&fn) const {
    S total = 0;
    each(channel, [&](int64_t first, auto apart) {
      total += sum_over<S>(length, [&](int64_t i) { return fn(first + i * apart); });
    });
    return total;
  }
  template <typename Fn>
  void write(int64_t channel, Fn &&fn) const {
    each(channel, [&](int64_t first, auto apart) {
      COHORT_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < length; ++i) fn(first + i * apart);
    });
  }
};

template <typename T>
struct ChannelMoments {
  using S = StatisticsOf<T>;
  static void run(const ChannelRows &rows, int64_t c, const T *x, S *mean, S *variance) {
    const int64_t count = std::max<int64_t>(1, rows.size());
    const S middle = rows.sum<S>(c, [=](int64_t at) { return cast_element<S>(x[at]); }) / S(count);
    *mean = middle;
    *variance = rows.sum<S>(c, [=](int64_t at) {
      const S distance = cast_element<S>(x[at]) - middle;
      return distance * distance;
    }) / S(count);
  }
};

template <typename T>
struct ChannelResult {
  using S = StatisticsOf<T>;
  static void run(const ChannelRows &rows, int64_t c, const T *x, S mean, S scale, S shift, bool relu, uint8_t *mask,
                  T *y) {
    const auto normal = [=](int64_t at) { return (cast_element<S>(x[at]) - mean) * scale + shift; };
    if (mask) rows.write(c, [=](int64_t at) { mask[at] = normal(at) > 0; });
    if (relu) {
      rows.write(c, [=](int64_t at) {
        const S value = normal(at);
        y[at] = cast_element<T>(value < 0 ? S(0) : value);
      });
    } else {
      rows.write(c, [=](int64_t at) { y[at] = cast_element<T>(normal(at)); });
    }
  }
};

template <typename T>
struct ChannelGradient {
  using S = StatisticsOf<T>;
  struct Sums {
    S heads, products;
  };
  struct Arrays {
    const T *head, *x;
    const uint8_t *mask;
    T *dx;
    S mean, inverse, factor;  // factor: of the result
    bool global;
  };
  static Sums run(const ChannelRows &rows, int64_t c, const Arrays &arrays) {
    return arrays.mask ? of(rows, c, arrays, [mask = arrays.mask](int64_t at) { return mask[at] != 0; })
                       : of(rows, c, arrays, [](int64_t) { return std::true_type(); });
  }

 private:
  template <typename Passes>
  static Sums of(const ChannelRows &rows, int64_t c, const Arrays &a, Passes &&passes) {
    // Selects by a number of the type of `value`: if it selects by bytes, GCC 12 loses elements of vectorised sums
    // for AVX2.
    const auto gradient = [head = a.head, &passes](int64_t at) {
      const S value = cast_element<S>(head[at]), passed = S(int(passes(at)));
      return passed > 0 ? value : S(0);
    };
    const auto normal = [x = a.x, mean = a.mean, inverse = a.inverse](int64_t at) {
      return (cast_element<S>(x[at]) - mean) * inverse;
    };
    const Sums sums = {rows.sum<S>(c, gradient), rows.sum<S>(c, [&](int64_t at) { return gradient(at) * normal(at); })};
    if (!a.dx) return sums;
    const S count = S(rows.size()), mean = a.global ? S(0) : sums.heads / count,
            slope = a.global ? S(0) : sums.products / count;
    rows.write(c, [&, dx = a.dx, factor = a.factor](int64_t at) {
      dx[at] = cast_element<T>((gradient(at) - (mean + normal(at) * slope)) * factor);
    });
    return sums;
  }
};

class PlainBatchNorm final : public RestoringKernel {
 public:
  explicit PlainBatchNorm(StepSpec &spec)
      : attrs_(spec.attrs_as<BatchNormAttrs>()),
        extent_(extent_of(attrs_, spec.inputs[0].shape)),
        dtype_(spec.inputs[0].dtype),
        keeps_(keeps(spec)),
        global_(is_global(spec)),
        moves_(moves(spec)),
        relu_(has_relu(spec)) {
    size_t &store = keeps_ ? spec.saved_bytes : spec.scratch_bytes;
    book(store, size_t(extent_.channels) * 4 * sizeof(double));  // mean, variance, scale and shift
    mask_ = keeps_ && relu_ ? book(spec.saved_bytes, size_t(spec.inputs[0].shape.size())) : 0;
  }

  void run(const Args &args, const Lane &lane) const override {
    dispatch_float(dtype_, "BatchNorm", [&](auto type) { normalise<decltype(type)>(args, lane); });
  }
  void restore(const Args &args, const Lane &lane) const override {
    dispatch_float(dtype_, "BatchNorm", [&](auto type) {
      using T = decltype(type);
      using S = StatisticsOf<T>;
      const auto *const mean = static_cast<const S *>(args.saved), *const scale = mean + 2 * extent_.channels,
                        *const shift = scale + extent_.channels;
      const auto result = best_version<ChannelResult<T>>();
      const ChannelRows rows(extent_);
      parallel_for(lane, extent_.channels, 1, [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
          result(rows, c, args.in<T>(0), mean[c], scale[c], shift[c], relu_, nullptr, args.out<T>(0));
        }
      });
    });
  }
  size_t mask() const { return mask_; }

 private:
  template <typename T>
  void normalise(const Args &args, const Lane &lane) const {
    using S = StatisticsOf<T>;
    const BatchNormExtent e = extent_;
    const S *const gamma = args.in<S>(1), *const beta = args.in<S>(2);
    auto *const mean = static_cast<S *>(keeps_ ? args.saved : args.scratch), *const variance = mean + e.channels,
                *const scale = variance + e.channels, *const shift = scale + e.channels;
    uint8_t *const mask = keeps_ && relu_ ? static_cast<uint8_t *>(args.saved) + mask_ : nullptr;
    const S eps = S(attrs_.eps);
    const T *x = args.in<T>(0);
    T *y = args.out<T>(0);
    const auto moments = best_version<ChannelMoments<T>>();
    const auto result = best_version<ChannelResult<T>>();
    const ChannelRows rows(e);
    parallel_for(lane, e.channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        if (global_) {
          mean[c] = args.in<S>(3)[c];
          variance[c] = args.in<S>(4)[c];
        } else {
          moments(rows, c, x, mean + c, variance + c);
        }
        scale[c] = (attrs_.fix_gamma ? S(1) : gamma[c]) / std::sqrt(variance[c] + eps);
        shift[c] = beta[c];
        result(rows, c, x, mean[c], scale[c], shift[c], relu_, mask, y);
      }
    });
    BatchStatistics<S>{e.channels, S(attrs_.momentum), eps, moves_, attrs_.gives_variance}.publish(mean, variance,
                                                                                                   args);
  }

  const BatchNormAttrs attrs_;
  const BatchNormExtent extent_;
  const Dtype dtype_;
  const bool keeps_, global_, moves_, relu_;
  size_t mask_;
};

class PlainBatchNormBackward final : public Kernel {
 public:
  explicit PlainBatchNormBackward(StepSpec &spec)
      : attrs_(spec.attrs_as<BatchNormAttrs>()),
        extent_(extent_of(attrs_, spec.inputs[0].shape)),
        dtype_(spec.inputs[0].dtype),
        global_(is_global(spec)),
        fixes_gamma_(fixes_gamma(spec)),
        relu_(has_relu(spec)) {
    const auto *forward = dynamic_cast<const PlainBatchNorm *>(spec.forward);
    if (relu_ && !forward) throw Error(Code::kInternal, text(spec.op, ": relu without a forward pass"));
    mask_ = relu_ ? forward->mask() : 0;
    if (spec.wanted[0])
      spec.inplace.emplace_back(0, 0);  // the sums of a channel are complete before its gradient is written
  }
  void run(const Args &args, const Lane &lane) const override {
    dispatch_float(dtype_, "_backward_BatchNorm", [&](auto type) { differentiate<decltype(type)>(args, lane); });
  }

 private:
  template <typename T>
  void differentiate(const Args &args, const Lane &lane) const {
    using S = StatisticsOf<T>;
    const BatchNormExtent e = extent_;
    const int heads = num_heads(attrs_);
    const T *head = args.in<T>(0), *x = args.in<T>(heads);
    const S *gamma = args.in<S>(heads + 1);
    const auto *mean = static_cast<const S *>(args.saved), *variance = mean + e.channels;
    const uint8_t *mask = relu_ ? static_cast<const uint8_t *>(args.saved) + mask_ : nullptr;
    T *dx = args.out<T>(0);
    S *dgamma = args.out<S>(1), *dbeta = args.out<S>(2);
    const S eps = S(attrs_.eps);
    const auto gradient = best_version<ChannelGradient<T>>();
    const ChannelRows rows(e);
    parallel_for(lane, e.channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        const S inverse = S(1) / std::sqrt(variance[c] + eps), scale = attrs_.fix_gamma ? S(1) : gamma[c];
        const auto sums = gradient(rows, c, {head, x, mask, dx, mean[c], inverse, scale * inverse, global_});
        if (dgamma) dgamma[c] = attrs_.fix_gamma ? S(0) : sums.products;
        if (dbeta) dbeta[c] = sums.heads;
      }
    });
    if (fixes_gamma_) fix_gamma(args.mutable_in<S>(heads + 1), e.channels);
  }

  const BatchNormAttrs attrs_;
  const BatchNormExtent extent_;
  const Dtype dtype_;
  const bool global_, fixes_gamma_, relu_;
  size_t mask_;
};

#define COHORT_BATCH_NORM_PLAIN(op, forward, backward)                                             \
  COHORT_KERNEL_BY(cpu, op, forward).dtypes(kFloatTypes).when(refuses_shared).fuses({kTrainRelu}); \
  COHORT_KERNEL_BY(cpu, _backward_##op, backward).dtypes(kFloatTypes).fuses({kTrainRelu})

COHORT_BATCH_NORM_PLAIN(BatchNorm, make_kernel_of<PlainBatchNorm>, make_kernel_of<PlainBatchNormBackward>);
COHORT_BATCH_NORM_PLAIN(_contrib_SyncBatchNorm, make_kernel_of<PlainBatchNorm>, make_kernel_of<PlainBatchNormBackward>);
COHORT_BATCH_NORM_PLAIN(_contrib_BatchNormWithReLU, make_with_relu<make_kernel_of<PlainBatchNorm>>,
                        make_with_relu<make_kernel_of<PlainBatchNormBackward>>);

}  // namespace
}  // namespace cohort
