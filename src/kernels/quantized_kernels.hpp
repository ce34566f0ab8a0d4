// SPDX-License-Identifier: Apache-2.0
// Kernels of layers on bytes (op/quantization.hpp) that move or scale them. Bounds lie in memory of the device, and
// only bodies can read them: a body computes a range of elements, and one further index calls write_bounds().
#pragma once

#include <vector>

#include "kernels/backend.hpp"
#include "kernels/compute.hpp"
#include "kernels/pooling_windows.hpp"
#include "kernels/quantized_numbers.hpp"
#include "op/quantization.hpp"

namespace cohort {
namespace {

using quantized::byte_of;

struct BoundsIn {
  const float *low, *high;
  COHORT_HOST_DEVICE float larger() const { return larger_bound(*low, *high); }
};
inline BoundsIn bounds_in(const Args &args, int first) { return {args.in<float>(first), args.in<float>(first + 1)}; }

struct BoundsOut {
  float *low, *high;  // null: not wanted
  COHORT_HOST_DEVICE void write(float new_low, float new_high) const {
    if (low) *low = new_low;
    if (high) *high = new_high;
  }
};
inline BoundsOut bounds_out(const Args &args) { return {args.out<float>(1), args.out<float>(2)}; }

template <typename Body>
struct WithBounds {
  Body body;
  int64_t count;
  COHORT_DEVICE void operator()(int64_t begin, int64_t end) const {
    if (begin < count) body(begin, end < count ? end : count);
    if (end > count) body.write_bounds();
  }
};

template <typename Backend, typename Body>
void run_with_bounds(const Lane &lane, int64_t count, const Body &body) {
  Backend::parallel_for(lane, count + 1, Backend::kCheapGrain, WithBounds<Body>{body, count});
}

template <typename Fn>
void with_bytes(Dtype dtype, Fn &&fn) {
  dtype == Dtype::kUint8 ? fn(uint8_t()) : fn(int8_t());
}

// ---- layers that keep the range of their input: relu, and reshapes, which take any type

struct CutBytes {
  const int8_t *from;
  int8_t *to;
  BoundsIn in;
  BoundsOut out;
  COHORT_DEVICE void operator()(int64_t begin, int64_t end) const {
    const int8_t *const x = from;
    int8_t *const y = to;
    COHORT_INDEPENDENT_ITERATIONS
    for (int64_t i = begin; i < end; ++i) y[i] = x[i] > 0 ? x[i] : int8_t(0);
  }
  COHORT_DEVICE void write_bounds() const { out.write(*in.low, *in.high); }
};

template <typename Backend, bool kRelu>
class SameBytes final : public Kernel {
 public:
  explicit SameBytes(const StepSpec &spec)
      : bytes_(spec.inputs[0].bytes()), cuts_(kRelu && spec.inputs[0].dtype == Dtype::kInt8) {}
  void run(const Args &args, const Lane &lane) const override {
    if (!cuts_) copy_bytes(lane, args.outputs[0], args.inputs[0], bytes_);
    run_with_bounds<Backend>(lane, cuts_ ? int64_t(bytes_) : 0,
                             CutBytes{args.in<int8_t>(0), args.out<int8_t>(0), bounds_in(args, 1), bounds_out(args)});
  }

 private:
  const size_t bytes_;
  const bool cuts_;
};

// ---- maxima and means of windows, with bounds and without

template <typename T>
struct PoolBytes {
  pooling::PoolRun pool;
  const T *from;
  T *to;
  BoundsIn in;
  BoundsOut out;
  COHORT_DEVICE void operator()(int64_t begin, int64_t end) const {
    const int64_t places = pool.num_places();
    for (int64_t i = begin; i < end;) {
      const int64_t plane = i / places, first = plane * places, stop = first + places < end ? first + places : end;
      const T *const data = from + pool.in_plane(plane);
      T *const result = to + pool.out_plane(plane);
      for (; i < stop; ++i) {
        const pooling::WindowExtent window = pooling::window_at(pool.windows, i - first);
        int64_t sum = 0;
        T top = std::is_same_v<T, int8_t> ? T(-128) : T(0);
        pooling::for_each_in(pool.windows, window, [&](int64_t at) {
          sum += data[at];
          top = data[at] > top ? data[at] : top;
        });
        result[(i - first) * pool.windows.out_step] =
            pool.type == PoolingAttrs::kMax ? top : byte_of<T>(double(sum) / double(window.divisor));
      }
    }
  }
  COHORT_DEVICE void write_bounds() const {
    if (in.low) out.write(*in.low, *in.high);
  }
};

template <typename Backend>
class PoolingOfBytes final : public Kernel {
 public:
  explicit PoolingOfBytes(const StepSpec &spec)
      : pool_(pooling::pool_run_of(spec.attrs_as<PoolingAttrs>(), spec.inputs[0].shape, spec.outputs[0].shape)),
        dtype_(spec.inputs[0].dtype),
        has_bounds_(spec.inputs.size() > 1) {}
  void run(const Args &args, const Lane &lane) const override {
    with_bytes(dtype_, [&](auto byte) {
      using T = decltype(byte);
      PoolBytes<T> body{pool_, args.in<T>(0), args.out<T>(0), {}, {}};
      if (has_bounds_) body.in = bounds_in(args, 1), body.out = bounds_out(args);
      run_with_bounds<Backend>(lane, pool_.windows.planes * pool_.num_places(), body);
    });
  }

 private:
  const pooling::PoolRun pool_;
  const Dtype dtype_;
  const bool has_bounds_;
};

// ---- batch norm

// y = gamma / sqrt(var + eps) * (x - mean) + beta, with x and y in units of their ranges / 127.5. A uint8 x is halved
// first, rounded down. The factor is divided by sqrt(1 + eps) a second time, because MXNet's quantized networks were
// calibrated with that.
template <typename T>
struct NormBytes {
  const T *from;
  int8_t *to;
  const float *gammas, *betas, *means, *variances;
  int64_t channels, inner;
  float low, high, eps;
  BoundsIn in;
  BoundsOut out;
  COHORT_DEVICE void operator()(int64_t begin, int64_t end) const {
    const float own = in.larger(), new_bound = larger_bound(low, high);
    for (int64_t i = begin; i < end;) {
      const int64_t row = i / inner, c = row % channels, stop = (row + 1) * inner < end ? (row + 1) * inner : end;
      const float gamma = gammas[c] * (1.0f / std::sqrt(variances[c] + eps));
      const float scale = gamma * own / new_bound / std::sqrt(1.0f + eps);
      const float shift = (betas[c] - means[c] * gamma) * 127.5f / new_bound;
      const T *const data = from;
      int8_t *const result = to;
      COHORT_INDEPENDENT_ITERATIONS
      for (; i < stop; ++i) {
        const int x = std::is_same_v<T, uint8_t> ? data[i] >> 1 : data[i];
        result[i] = byte_of<int8_t>(double(scale) * x + double(shift));
      }
    }
  }
  COHORT_DEVICE void write_bounds() const { out.write(low, high); }
};

template <typename Backend>
class QuantizedBatchNorm final : public Kernel {
 public:
  explicit QuantizedBatchNorm(const StepSpec &spec)
      : attrs_(spec.attrs_as<QuantizedBatchNormAttrs>()), dtype_(spec.inputs[0].dtype) {
    const Shape &shape = spec.inputs[0].shape;
    const int axis = normalize_axis(attrs_.axis, shape.rank(), "axis");
    channels_ = shape[axis];
    inner_ = shape.size(axis + 1, shape.rank());
    count_ = shape.size();
  }
  void run(const Args &args, const Lane &lane) const override {
    with_bytes(dtype_, [&](auto byte) {
      using T = decltype(byte);
      run_with_bounds<Backend>(
          lane, count_,
          NormBytes<T>{args.in<T>(0), args.out<int8_t>(0), args.in<float>(1), args.in<float>(2), args.in<float>(3),
                       args.in<float>(4), channels_, inner_, *attrs_.min_calib_range, *attrs_.max_calib_range,
                       float(attrs_.eps), bounds_in(args, 5), bounds_out(args)});
    });
  }

 private:
  const QuantizedBatchNormAttrs attrs_;
  const Dtype dtype_;
  int64_t channels_, inner_, count_;
};

// ---- joining

// Computes the widest of some ranges and, unless is_first, of the range found so far.
struct WidestRange {
  static constexpr int kMost = 16;
  const float *low[kMost], *high[kMost];
  int64_t count, is_first;
  quantized::Bounds *found;
  BoundsOut out;
  COHORT_DEVICE void operator()(int64_t, int64_t) const {
    quantized::Bounds all = is_first ? quantized::Bounds{INFINITY, -INFINITY} : *found;
    for (int64_t i = 0; i < count; ++i) {
      if (*low[i] < all.low) all.low = *low[i];
      if (*high[i] > all.high) all.high = *high[i];
    }
    *found = all;
    out.write(all.low, all.high);
  }
};

template <typename From, typename To>
struct JoinBytes {
  const From *from;
  To *to;
  BoundsIn own;
  const quantized::Bounds *joined;
  Dtype from_type, to_type;
  int64_t width, row, at;
  COHORT_DEVICE void operator()(int64_t begin, int64_t end) const {
    const double unit = quantum(to_type, larger_bound(joined->low, joined->high));
    const double factor = unit > 0 ? quantum(from_type, own.larger()) / unit : 0;
    for (int64_t i = begin; i < end;) {
      const int64_t o = i / width, stop = (o + 1) * width < end ? (o + 1) * width : end;
      const From *const own_row = from;
      To *const joined_row = to + o * (row - width) + at;
      COHORT_INDEPENDENT_ITERATIONS
      for (; i < stop; ++i) joined_row[i] = byte_of<To>(double(own_row[i]) * factor);
    }
  }
};

template <typename Backend>
class QuantizedConcat final : public Kernel {
 public:
  explicit QuantizedConcat(StepSpec &spec) : num_(int(spec.inputs.size() / 3)), to_(spec.outputs[0].dtype) {
    const Shape &out = spec.outputs[0].shape;
    const int axis = normalize_axis(spec.attrs_as<QuantizedConcatAttrs>().dim, out.rank(), "dim");
    outer_ = out.size(0, axis);
    row_ = out.size(axis, out.rank());
    for (int i = 0; i < num_; ++i) {
      dtypes_.push_back(spec.inputs[size_t(i)].dtype);
      widths_.push_back(spec.inputs[size_t(i)].shape.size(axis, out.rank()));
    }
    spec.scratch_bytes = sizeof(quantized::Bounds);
  }
  void run(const Args &args, const Lane &lane) const override {
    auto *const joined = static_cast<quantized::Bounds *>(args.scratch);
    for (int first = 0; first < num_; first += WidestRange::kMost) {
      WidestRange range{{}, {}, std::min(num_ - first, WidestRange::kMost), first == 0, joined, bounds_out(args)};
      for (int i = 0; i < int(range.count); ++i) {
        const BoundsIn own = bounds_in(args, num_ + 2 * (first + i));
        range.low[i] = own.low, range.high[i] = own.high;
      }
      Backend::parallel_for(lane, 1, 1, range);
    }
    int64_t at = 0;
    for (int i = 0; i < num_; ++i) {
      const Dtype from = dtypes_[size_t(i)];
      const int64_t width = widths_[size_t(i)];
      with_bytes(from, [&](auto own) {
        with_bytes(to_, [&](auto byte) {
          using From = decltype(own);
          using To = decltype(byte);
          Backend::parallel_for(lane, outer_ * width, Backend::kCheapGrain,
                                JoinBytes<From, To>{args.in<From>(i), args.out<To>(0), bounds_in(args, num_ + 2 * i),
                                                    joined, from, to_, width, row_, at});
        });
      });
      at += width;
    }
  }

 private:
  const int num_;
  const Dtype to_;
  int64_t outer_, row_;
  std::vector<Dtype> dtypes_;
  std::vector<int64_t> widths_;
};

// ---- sums, and products, of two arrays

// Reads int8 or uint8 as numbers.
struct EitherBytes {
  const uint8_t *data;
  int64_t is_signed;
  COHORT_HOST_DEVICE double operator[](int64_t i) const {
    const int sign = is_signed ? 128 : 0;
    return double((data[i] ^ sign) - sign);
  }
};

template <typename To, bool kProduct>
struct PairOfBytes {
  EitherBytes left, right;
  BoundsIn left_in, right_in;
  To *to;
  BoundsOut out;
  Dtype left_type, right_type, to_type;
  bool calibrated;
  float low, high;  // range of the output, if it is calibrated

  // The range of the output, and the factor that turns values into it.
  struct Scale {
    float low, high;
    double factor;
  };
  COHORT_DEVICE Scale scale() const {
    if (std::is_same_v<To, float>) return {0, 0, 1};
    if (calibrated) {
      const double unit = quantum(to_type, larger_bound(low, high));
      return {low, high, unit > 0 ? 1 / unit : 0};
    }
    const float a = left_in.larger(), b = right_in.larger();
    const float bound = kProduct ? product_bound(left_type, a, right_type, b) : a + b;
    // Products are whole numbers.
    const double unit = kProduct ? quantum(left_type, a) * quantum(right_type, b) : quantum(to_type, bound);
    return {-bound, bound, unit > 0 ? 1 / unit : 0};
  }
  COHORT_DEVICE static To stored(double value, double factor) {
    if constexpr (std::is_same_v<To, float>) {
      return float(value);
    } else if constexpr (std::is_same_v<To, int32_t>) {
      const double whole = std::nearbyint(value * factor);
      return int32_t(whole < -2147483648.0 ? -2147483648.0 : whole > 2147483647.0 ? 2147483647.0 : whole);
    } else {
      return byte_of<To>(kProduct ? std::trunc(value * factor) : value * factor);  // cut, not rounded, as in MXNet
    }
  }
  COHORT_DEVICE void operator()(int64_t begin, int64_t end) const {
    const double a = quantum(left_type, left_in.larger()), b = quantum(right_type, right_in.larger());
    const double factor = scale().factor;
    const EitherBytes x = left, y = right;  // copies: a byte that is written could alias a member
    To *const sums = to;
    COHORT_INDEPENDENT_ITERATIONS
    for (int64_t i = begin; i < end; ++i) {
      const double value = kProduct ? x[i] * a * (y[i] * b) : x[i] * a + y[i] * b;
      sums[i] = stored(value, factor);
    }
  }
  COHORT_DEVICE void write_bounds() const {
    const Scale found = scale();
    out.write(found.low, found.high);
  }
};

template <typename Backend, bool kProduct>
class QuantizedPair final : public Kernel {
 public:
  explicit QuantizedPair(const StepSpec &spec)
      : attrs_(spec.attrs_as<QuantizeAttrs>()),
        left_(spec.inputs[0].dtype),
        right_(spec.inputs[1].dtype),
        to_(spec.outputs[0].dtype),
        count_(spec.inputs[0].shape.size()) {}
  void run(const Args &args, const Lane &lane) const override {
    if (to_ == Dtype::kInt32) return combine<int32_t>(args, lane);
    if (to_ == Dtype::kInt8) return combine<int8_t>(args, lane);
    if constexpr (kProduct) {
      combine<float>(args, lane);
    } else {
      combine<uint8_t>(args, lane);
    }
  }

 private:
  template <typename To>
  void combine(const Args &args, const Lane &lane) const {
    const auto bytes = [&](int i, Dtype dtype) { return EitherBytes{args.in<uint8_t>(i), dtype == Dtype::kInt8}; };
    const BoundsOut out = std::is_same_v<To, float> ? BoundsOut{} : bounds_out(args);
    run_with_bounds<Backend>(
        lane, count_,
        PairOfBytes<To, kProduct>{bytes(0, left_), bytes(1, right_), bounds_in(args, 2), bounds_in(args, 4),
                                  args.out<To>(0), out, left_, right_, to_, attrs_.calibrated(),
                                  attrs_.min_calib_range.value_or(0), attrs_.max_calib_range.value_or(0)});
  }

  const QuantizeAttrs attrs_;
  const Dtype left_, right_, to_;
  const int64_t count_;
};

template <typename Backend>
void register_quantized_kernels() {
  KernelTable &table = backend_kernels();
  table.add("_contrib_quantized_act", make_kernel_of<SameBytes<Backend, true>>);
  table.add("_contrib_quantized_flatten", make_kernel_of<SameBytes<Backend, false>>);
  table.add("_contrib_quantized_pooling", make_kernel_of<PoolingOfBytes<Backend>>);
  table.add("_contrib_quantized_batch_norm", make_kernel_of<QuantizedBatchNorm<Backend>>);
  table.add("_contrib_quantized_concat", make_kernel_of<QuantizedConcat<Backend>>);
  table.add("_contrib_quantized_elemwise_add", make_kernel_of<QuantizedPair<Backend, false>>);
  table.add("_contrib_quantized_elemwise_mul", make_kernel_of<QuantizedPair<Backend, true>>);
}

}  // namespace
}  // namespace cohort
