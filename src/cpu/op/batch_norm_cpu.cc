// SPDX-License-Identifier: Apache-2.0
// BatchNorm: float32 through oneDNN in the layout in which the data lie, all else as plain loops over row-major data.
//
// Inputs data, gamma, beta, moving mean, moving variance; outputs result, mean, 1 / sqrt(variance + eps). What saves
// the mean and the variance for the backward pass - a training pass, or one of inference that a backward pass follows -
// saves with a relu fused in also which elements it let through.
#include "op/batch_norm.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "cpu/dnnl_kernel.hpp"
#include "cpu/simd.hpp"
#include "device/kernel_table.hpp"
#include "device/restoring.hpp"
#include "kernels/partial_sums.hpp"
#include "op/activation.hpp"

namespace cohort {
namespace {

using namespace dnn;

// A tensor as (outer, channels, inner).
struct Extent {
  int64_t outer, channels, inner;
};

Extent extent_of(const BatchNormAttrs &a, const Shape &data) {
  const int axis = normalize_axis(a.axis, data.rank(), "BatchNorm");
  return {data.size(0, axis), data[axis], data.size(axis + 1, data.rank())};
}

// With fix_gamma the backward pass of training makes gamma 1, trained or not: forward passes read no gamma then, and
// write none, for the array may be shared or lie in memory that cannot be written. Read first for the same reason.
template <typename S>
void fix_gamma(S *gamma, int64_t count) {
  for (int64_t c = 0; c < count; ++c) {
    if (gamma[c] != S(1)) gamma[c] = S(1);
  }
}
bool fixes_gamma(const StepSpec &backward) {
  return backward.is_train && backward.attrs_as<BatchNormAttrs>().fix_gamma;
}

// What follows the statistics of a training pass: the moving ones and the outputs.
template <typename S>
struct Statistics {
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

bool has_relu(const StepSpec &spec) { return !spec.post.empty(); }
bool keeps(const StepSpec &spec) { return spec.is_train || spec.keep_for_backward; }
bool moves(const StepSpec &spec) {  // the moving statistics
  return spec.is_train && !spec.attrs_as<BatchNormAttrs>().use_global_stats && !spec.frozen;
}
bool is_global(const StepSpec &spec) { return !spec.is_train || spec.attrs_as<BatchNormAttrs>().use_global_stats; }

// ---- oneDNN -------------------------------------------------------------------------------------------------------

struct Problem {
  Desc data, plain;
  int64_t channels;
  dnnl::normalization_flags flags;
  float eps;
};

Problem problem_of(const StepSpec &spec, const TensorSpec &data) {
  const auto &a = spec.attrs_as<BatchNormAttrs>();
  Problem p;
  const Extent e = extent_of(a, data.shape);
  const bool channels_second = normalize_axis(a.axis, data.shape.rank(), "BatchNorm") == 1;
  if (data.layout && channels_second) {
    p.data = desc_of(data);
    p.plain = row_major(dims_of(data.shape), data.dtype);
  } else {
    // Channels that lie side by side are those of one image: oneDNN has faster loops for its pixels than for samples.
    p.data = p.plain = e.inner == 1 ? channels_last({1, e.channels, 1, e.outer}, data.dtype)
                                    : row_major({e.outer, e.channels, e.inner}, data.dtype);
  }
  p.channels = e.channels;
  p.flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
  if (is_global(spec)) p.flags |= dnnl::normalization_flags::use_global_stats;
  if (has_relu(spec)) p.flags |= dnnl::normalization_flags::fuse_norm_relu;
  p.eps = float(a.eps);
  return p;
}

class BatchNormForward final : public RestoringKernel {
 public:
  using Pd = dnnl::batch_normalization_forward::primitive_desc;

  BatchNormForward(StepSpec &spec, const Problem &p, const Pd &pd, int num_threads)
      : problem_(p), pd_(pd), num_threads_(num_threads), keeps_(keeps(spec)), global_(is_global(spec)) {
    const auto &a = spec.attrs_as<BatchNormAttrs>();
    if (a.fix_gamma) ones_.assign(size_t(p.channels), 1.0f);
    statistics_ = {p.channels, a.momentum, p.eps, moves(spec), a.gives_variance};
    size_t &store = keeps_ ? spec.saved_bytes : spec.scratch_bytes;
    mean_ = book(store, size_t(p.channels) * sizeof(float));
    variance_ = book(store, size_t(p.channels) * sizeof(float));
    const Desc vector = row_major({p.channels}, Dtype::kFloat32);
    std::vector<Operand> operands = {
        {DNNL_ARG_SRC, p.data, Place::input(0)},
        {DNNL_ARG_SCALE, vector, a.fix_gamma ? Place::mine(ones_.data()) : Place::input(1)},
        {DNNL_ARG_SHIFT, vector, Place::input(2)},
        {DNNL_ARG_MEAN, vector, global_ ? Place::input(3) : Place::saved(mean_)},
        {DNNL_ARG_VARIANCE, vector, global_ ? Place::input(4) : Place::saved(variance_)},
        {DNNL_ARG_DST, p.data, Place::output(0)}};
    if (keeps_ && !is_empty(pd.workspace_desc())) {
      workspace_ = book(spec.saved_bytes, pd.workspace_desc().get_size());
      operands.push_back({DNNL_ARG_WORKSPACE, pd.workspace_desc(), Place::saved(workspace_)});
    }
    if (keeps_) make_restoring_call(spec, operands);
    call_ = Call(pd, name_of(spec), std::move(operands), spec);
    spec.inputs[0].layout = spec.outputs[0].layout = layout_of(p.data, p.plain);
  }

  void restore(const Args &args, const Lane &) const override {
    const ThreadsScope threads(num_threads_);
    restoring_call_.run(args);
  }

  void run(const Args &args, const Lane &) const override {
    const ThreadsScope threads(num_threads_);
    call_.run(args);
    char *const saved = static_cast<char *>(args.saved);
    const float *mean = args.in<float>(3), *variance = args.in<float>(4);
    if (keeps_) {
      auto *const kept_mean = reinterpret_cast<float *>(saved + mean_);
      auto *const kept_variance = reinterpret_cast<float *>(saved + variance_);
      if (global_) {
        std::memcpy(kept_mean, mean, size_t(problem_.channels) * sizeof(float));
        std::memcpy(kept_variance, variance, size_t(problem_.channels) * sizeof(float));
      }
      mean = kept_mean;
      variance = kept_variance;
      const size_t bytes = size_t(problem_.channels) * sizeof(float);
      if (ones_.empty()) std::memcpy(saved + gamma_, args.in<float>(1), bytes);
      std::memcpy(saved + beta_, args.in<float>(2), bytes);
    }
    statistics_.publish(mean, variance, args);
  }

  const Problem &problem() const { return problem_; }
  const Pd &desc() const { return pd_; }
  Place mean() const { return Place::saved(mean_); }
  Place variance() const { return Place::saved(variance_); }
  Place workspace() const { return Place::saved(workspace_); }

 private:
  // The same with gamma, beta and statistics as they were, which are not sought again where the same loops can do
  // without.
  void make_restoring_call(StepSpec &spec, std::vector<Operand> operands) {
    const auto known = attempt([&] {
      return norm_desc<dnnl::batch_normalization_forward>(engine(), attributes(), prop_kind::forward_inference,
                                                          problem_.data, problem_.eps,
                                                          problem_.flags | dnnl::normalization_flags::use_global_stats);
    });
    const bool same_loops = known && std::strcmp(known->impl_info_str(), pd_.impl_info_str()) == 0;
    const size_t bytes = size_t(problem_.channels) * sizeof(float);
    if (ones_.empty()) gamma_ = book(spec.saved_bytes, bytes);
    beta_ = book(spec.saved_bytes, bytes);
    for (Operand &operand : operands) {
      if (operand.arg == DNNL_ARG_SCALE && ones_.empty()) operand.place = Place::saved(gamma_);
      if (operand.arg == DNNL_ARG_SHIFT) operand.place = Place::saved(beta_);
      if (operand.arg == DNNL_ARG_MEAN) operand.place = mean();
      if (operand.arg == DNNL_ARG_VARIANCE) operand.place = variance();
    }
    const auto is_workspace = [](const Operand &operand) { return operand.arg == DNNL_ARG_WORKSPACE; };
    if (same_loops) operands.erase(std::remove_if(operands.begin(), operands.end(), is_workspace), operands.end());
    const size_t scratch_bytes = spec.scratch_bytes;  // of either call
    restoring_call_ = Call(same_loops ? *known : pd_, name_of(spec), std::move(operands), spec);
    spec.scratch_bytes = scratch_bytes;
  }

  const Problem problem_;
  const Pd pd_;
  const int num_threads_;
  const bool keeps_, global_;
  std::vector<float> ones_;  // the scale with fix_gamma
  Statistics<float> statistics_;
  size_t mean_ = 0, variance_ = 0, workspace_ = 0, gamma_ = 0, beta_ = 0;
  Call call_, restoring_call_;
};

// The number of head gradients; data and gamma follow them.
int num_heads(const BatchNormAttrs &a) { return a.output_mean_var ? 3 : 1; }

class BatchNormBackward final : public Kernel {
 public:
  BatchNormBackward(StepSpec &spec, const BatchNormForward &forward,
                    const dnnl::batch_normalization_backward::primitive_desc &pd, int num_threads)
      : channels_(forward.problem().channels), num_threads_(num_threads) {
    const auto &a = spec.attrs_as<BatchNormAttrs>();
    const Problem &p = forward.problem();
    const int data = num_heads(a), gamma = data + 1;
    clears_gradient_ = a.fix_gamma && spec.wanted[1];
    if (fixes_gamma(spec)) fixed_gamma_ = gamma;
    if (a.fix_gamma) ones_.assign(size_t(p.channels), 1.0f);
    const Place scale = a.fix_gamma ? Place::mine(ones_.data()) : Place::input(gamma);
    const Desc vector = row_major({p.channels}, Dtype::kFloat32);
    const auto place = [&](int output, size_t bytes) {
      const bool direct = spec.wanted[size_t(output)] && !(output == 1 && a.fix_gamma);
      return direct ? Place::output(output) : Place::scratch(book(spec.scratch_bytes, bytes));
    };
    const size_t vector_bytes = size_t(p.channels) * sizeof(float);
    std::vector<Operand> operands = {{DNNL_ARG_SRC, p.data, Place::input(data)},
                                     {DNNL_ARG_DIFF_DST, p.data, Place::input(0)},
                                     {DNNL_ARG_SCALE, vector, scale},
                                     {DNNL_ARG_MEAN, vector, forward.mean()},
                                     {DNNL_ARG_VARIANCE, vector, forward.variance()},
                                     {DNNL_ARG_DIFF_SRC, p.data, place(0, p.data.get_size())},
                                     {DNNL_ARG_DIFF_SCALE, vector, place(1, vector_bytes)},
                                     {DNNL_ARG_DIFF_SHIFT, vector, place(2, vector_bytes)}};
    if (!kDnnl3) operands.push_back({DNNL_ARG_SHIFT, vector, Place::input(gamma)});  // counted by 2.6, though not read
    if (!is_empty(pd.workspace_desc())) {
      operands.push_back({DNNL_ARG_WORKSPACE, pd.workspace_desc(), forward.workspace()});
    }
    call_ = Call(pd, name_of(spec), std::move(operands), spec);
    if (spec.wanted[0]) spec.inplace.emplace_back(0, 0);
    spec.inputs[0].layout = spec.inputs[size_t(data)].layout = spec.outputs[0].layout = layout_of(p.data, p.plain);
  }

  void run(const Args &args, const Lane &) const override {
    const ThreadsScope threads(num_threads_);
    call_.run(args);
    if (clears_gradient_) std::memset(args.out<float>(1), 0, size_t(channels_) * sizeof(float));
    if (fixed_gamma_ >= 0) fix_gamma(args.mutable_in<float>(fixed_gamma_), channels_);
  }

 private:
  const int64_t channels_;
  const int num_threads_;
  bool clears_gradient_;
  int fixed_gamma_ = -1;     // the input that becomes 1
  std::vector<float> ones_;  // the scale with fix_gamma
  Call call_;
};

// ---- plain loops --------------------------------------------------------------------------------------------------

// T: type of the data; statistics and parameters of the 16-bit types are float, those of the others T.
template <typename T>
using StatisticsOf = typename Accumulator<T>::type;

// The elements of a channel: rows of `length`, `step` apart; a column counts as one row.
struct ChannelRows {
  int64_t count, stride, length, step, inner;

  explicit ChannelRows(const Extent &e)
      : count(e.inner == 1 ? 1 : e.outer),
        stride(e.channels * e.inner),
        length(e.inner == 1 ? e.outer : e.inner),
        step(e.inner == 1 ? e.channels : 1),
        inner(e.inner) {}
  int64_t size() const { return count * length; }
  // fn(where a row begins, how far its elements are apart), for each of one channel.
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
    S mean, inverse, factor;  // of the result
    bool global;
  };
  static Sums run(const ChannelRows &rows, int64_t c, const Arrays &arrays) {
    return arrays.mask ? of(rows, c, arrays, [mask = arrays.mask](int64_t at) { return mask[at] != 0; })
                       : of(rows, c, arrays, [](int64_t) { return std::true_type(); });
  }

 private:
  template <typename Passes>
  static Sums of(const ChannelRows &rows, int64_t c, const Arrays &a, Passes &&passes) {
    // Chosen by a number of the type that is chosen: by bytes, GCC 12 loses elements of vectorized sums for AVX2.
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
    const Extent e = extent_;
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
    Statistics<S>{e.channels, S(attrs_.momentum), eps, moves_, attrs_.gives_variance}.publish(mean, variance, args);
  }

  const BatchNormAttrs attrs_;
  const Extent extent_;
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
    if (relu_ && !forward) throw Error(Code::kInternal, text(name_of(spec), ": relu without a forward pass"));
    mask_ = relu_ ? forward->mask() : 0;
    if (spec.wanted[0])
      spec.inplace.emplace_back(0, 0);  // the sums of a channel are there before its gradient is written
  }
  void run(const Args &args, const Lane &lane) const override {
    dispatch_float(dtype_, "_backward_BatchNorm", [&](auto type) { differentiate<decltype(type)>(args, lane); });
  }

 private:
  template <typename T>
  void differentiate(const Args &args, const Lane &lane) const {
    using S = StatisticsOf<T>;
    const Extent e = extent_;
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
  const Extent extent_;
  const Dtype dtype_;
  const bool global_, fixes_gamma_, relu_;
  size_t mask_;
};

// ---- statistics of all devices of a group --------------------------------------------------------------------------

ChannelStats found_of(const Args &args, size_t device) { return {static_cast<double *>(args.shares->blocks[device])}; }
ChannelStats own_found(const Args &args) { return found_of(args, args.shares->own); }
size_t found_bytes(int64_t channels) { return sizeof(double) * size_t(ChannelStats::size(channels)); }

template <typename Fn>
void for_channel(const Extent &e, int64_t c, Fn &&fn) {
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
    Statistics<S>{extent_.channels, S(attrs_.momentum), eps, moves_, attrs_.gives_variance}.publish(mean, variance,
                                                                                                    args);
  }

  const BatchNormAttrs attrs_;
  const Extent extent_;
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
  // fn(channel, gradient(at), normalised data(at), 1 / deviation).
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

  // Gradients of gamma and beta are of the own part: a group adds them up.
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
  const Extent extent_;
  const Dtype dtype_;
  const bool fixes_gamma_;
};

bool is_shared(const StepSpec &forward) { return forward.num_replicas > 1 && !is_global(forward); }
std::string refuses_own(const StepSpec &spec) { return is_shared(spec) ? "" : "the statistics are the device's own"; }
std::string refuses_shared(const StepSpec &spec) {
  return is_shared(spec) ? "the statistics are those of several devices" : "";
}
std::string refuses_layer_or_shared(const StepSpec &spec) {
  const std::string empty = refuses_layer(spec);
  return empty.empty() ? refuses_shared(spec) : empty;
}
std::string refuses_backward_of_own(const StepSpec &spec) {
  return dynamic_cast<const SyncBatchNorm *>(spec.forward) ? "" : "the statistics are the device's own";
}

std::optional<dnnl::batch_normalization_backward::primitive_desc> backward_of(const Problem &p,
                                                                              const BatchNormForward::Pd &forward) {
  return attempt([&] {
    return norm_backward_desc<dnnl::batch_normalization_backward>(engine(), attributes(), forward, p.data, p.data,
                                                                  p.eps, p.flags);
  });
}

template <typename Pd>
bool is_plain_loop(const Pd &pd) {
  return std::strstr(pd.impl_info_str(), "ref") != nullptr;
}

std::unique_ptr<Kernel> make_forward(StepSpec &spec) {
  const Problem p = problem_of(spec, spec.inputs[0]);
  const int num_threads = threads_for_elements(spec, double(spec.inputs[0].shape.size()));
  const ThreadsScope threads(num_threads);
  const auto pd = attempt([&] {
    return norm_desc<dnnl::batch_normalization_forward>(
        engine(), attributes(), keeps(spec) ? prop_kind::forward_training : prop_kind::forward_inference, p.data, p.eps,
        p.flags);
  });
  if (!pd) return nullptr;
  // Channels that fill no block, with a relu fused in: our loops are faster than oneDNN's, which know any layout.
  if (!spec.inputs[0].layout) {
    if (is_plain_loop(*pd)) return nullptr;
    const auto back = keeps(spec) ? backward_of(p, *pd) : std::nullopt;
    if (keeps(spec) && (!back || is_plain_loop(*back))) return nullptr;
  }
  return std::make_unique<BatchNormForward>(spec, p, *pd, num_threads);
}

std::string refuses_backward(const StepSpec &spec) {
  return dynamic_cast<const BatchNormForward *>(spec.forward) ? "" : "the forward pass is not oneDNN's";
}

std::unique_ptr<Kernel> make_backward(StepSpec &spec) {
  const auto &forward = dynamic_cast<const BatchNormForward &>(*spec.forward);
  const Problem &p = forward.problem();
  const int num_threads = threads_for_elements(spec, double(spec.inputs[0].shape.size()));
  const ThreadsScope threads(num_threads);
  const auto pd = backward_of(p, forward.desc());
  // What the forward pass saved is of no use to the plain kernel.
  if (!pd) throw Error(Code::kUnsupported, text(name_of(spec), ": oneDNN has no backward pass"));
  return std::make_unique<BatchNormBackward>(spec, forward, *pd, num_threads);
}

constexpr auto kTrainRelu = PostOp::Kind::kTrainRelu;

// The steps of BatchNorm with a relu behind it.
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

#define COHORT_BATCH_NORM(op, forward, backward, plain, plain_backward)                          \
  COHORT_KERNEL_BY(cpu, op, forward)                                                             \
      .named("onednn")                                                                           \
      .dtypes(kLayerTypes)                                                                       \
      .when(refuses_layer_or_shared)                                                             \
      .fuses({kTrainRelu})                                                                       \
      .any_layout();                                                                             \
  COHORT_KERNEL_BY(cpu, op, plain).dtypes(kFloatTypes).when(refuses_shared).fuses({kTrainRelu}); \
  COHORT_KERNEL_BY(cpu, _backward_##op, backward)                                                \
      .named("onednn")                                                                           \
      .dtypes(kLayerTypes)                                                                       \
      .when(refuses_backward)                                                                    \
      .fuses({kTrainRelu})                                                                       \
      .any_layout();                                                                             \
  COHORT_KERNEL_BY(cpu, _backward_##op, plain_backward).dtypes(kFloatTypes).fuses({kTrainRelu})

COHORT_BATCH_NORM(BatchNorm, make_forward, make_backward, make_kernel_of<PlainBatchNorm>,
                  make_kernel_of<PlainBatchNormBackward>);
COHORT_KERNEL(cpu, _contrib_SyncBatchNorm, SyncBatchNorm).named("shared").dtypes(kFloatTypes).when(refuses_own);
COHORT_KERNEL(cpu, _backward__contrib_SyncBatchNorm, SyncBatchNormBackward)
    .named("shared")
    .dtypes(kFloatTypes)
    .when(refuses_backward_of_own);
COHORT_BATCH_NORM(_contrib_SyncBatchNorm, make_forward, make_backward, make_kernel_of<PlainBatchNorm>,
                  make_kernel_of<PlainBatchNormBackward>);
COHORT_BATCH_NORM(_contrib_BatchNormWithReLU, make_with_relu<make_forward>, make_with_relu<make_backward>,
                  make_with_relu<make_kernel_of<PlainBatchNorm>>,
                  make_with_relu<make_kernel_of<PlainBatchNormBackward>>);

}  // namespace
}  // namespace cohort
