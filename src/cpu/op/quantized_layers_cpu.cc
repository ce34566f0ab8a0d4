// SPDX-License-Identifier: Apache-2.0
// Layers on bytes. Products are added up in int32 as whole numbers, so that results do not depend on the order.
#include <algorithm>
#include <cstring>

#include "base/dtype_cast.hpp"
#include "cpu/op/pointwise_loops.hpp"
#include "cpu/op/quantized_numbers.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"
#include "op/quantization.hpp"

namespace cohort {
namespace {

using quantized::byte_of;
using quantized::bytes_of;

float bound_at(const Args &args, int first) {
  return larger_bound(args.in<float>(first)[0], args.in<float>(first + 1)[0]);
}

void write_bounds(const Args &args, float low, float high) {
  if (args.outputs[1]) args.out<float>(1)[0] = low;
  if (args.outputs[2]) args.out<float>(2)[0] = high;
}

template <typename Fn>
void with_bytes(Dtype dtype, Fn &&fn) {
  dtype == Dtype::kUint8 ? fn(uint8_t()) : fn(int8_t());
}

// What a convolution and a fully connected layer have in common: inputs data, weight[, bias], and the bounds of each.
class Products {
 public:
  Products(const StepSpec &spec, bool no_bias) : dtype_(spec.inputs[0].dtype), has_bias_(!no_bias) {}
  Dtype dtype() const { return dtype_; }
  // The bias in units of the product, by channel; 0 without one.
  int32_t bias(const Args &args, int64_t channel) const {
    if (!has_bias_) return 0;
    const double data = quantum(dtype_, bound_at(args, 3)), weight = quantum(Dtype::kInt8, bound_at(args, 5));
    const double unit = data * weight,
                 bias = double(args.in<int8_t>(2)[channel]) * quantum(Dtype::kInt8, bound_at(args, 7));
    return unit > 0 ? int32_t(std::clamp(bias / unit, -2147483648.0, 2147483647.0)) : 0;
  }
  void bounds(const Args &args) const {
    const int first = has_bias_ ? 3 : 2;
    const float bound = product_bound(dtype_, bound_at(args, first), Dtype::kInt8, bound_at(args, first + 2));
    write_bounds(args, -bound, bound);
  }

 private:
  const Dtype dtype_;
  const bool has_bias_;
};

class QuantizedFullyConnected final : public Kernel {
 public:
  explicit QuantizedFullyConnected(const StepSpec &spec)
      : products_(spec, spec.attrs_as<FullyConnectedAttrs>().no_bias),
        units_(spec.inputs[1].shape[0]),
        features_(spec.inputs[1].shape[1]),
        rows_(spec.outputs[0].shape.size() / std::max<int64_t>(units_, 1)) {}
  void run(const Args &args, const Lane &lane) const override {
    with_bytes(products_.dtype(), [&](auto byte) {
      using T = decltype(byte);
      const T *const data = args.in<T>(0);
      const int8_t *const weight = args.in<int8_t>(1);
      parallel_for(lane, rows_ * units_, 1 + kCheapGrain / (features_ + 1), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T *const x = data + i / units_ * features_;
          const int8_t *const w = weight + i % units_ * features_;
          auto sum = uint32_t(products_.bias(args, i % units_));
          for (int64_t k = 0; k < features_; ++k) sum += uint32_t(int32_t(x[k]) * int32_t(w[k]));
          args.out<int32_t>(0)[i] = int32_t(sum);
        }
      });
    });
    products_.bounds(args);
  }

 private:
  const Products products_;
  const int64_t units_, features_, rows_;
};

// Up to three spatial axes; missing ones have length 1. A row of the output is added up at a time, a number of the
// filter after the other.
class QuantizedConvolution final : public Kernel {
 public:
  explicit QuantizedConvolution(const StepSpec &spec)
      : products_(spec, spec.attrs_as<ConvolutionAttrs>().no_bias),
        groups_(spec.attrs_as<ConvolutionAttrs>().num_group) {
    const auto &a = spec.attrs_as<ConvolutionAttrs>();
    const Shape &in = spec.inputs[0].shape, &filter = spec.inputs[1].shape, &out = spec.outputs[0].shape;
    const int axes = in.rank() - 2;
    const bool last = channels_last(a.layout);
    const int channels = channel_axis(a.layout, in.rank()), first = spatial_axis(a.layout);
    batch_ = in[0], in_channels_ = in[channels], out_channels_ = out[channels];
    const int filter_channels = last ? filter.rank() - 1 : 1, filter_first = last ? 1 : 2;
    const auto strides_of = [](const Shape &s) {
      std::vector<int64_t> strides(size_t(s.rank()), 1);
      for (int i = s.rank() - 2; i >= 0; --i) strides[size_t(i)] = strides[size_t(i + 1)] * s[i + 1];
      return strides;
    };
    const auto in_strides = strides_of(in), filter_strides = strides_of(filter), out_strides = strides_of(out);
    in_ = {in_strides[0], in_strides[size_t(channels)], {}, {}};
    out_ = {out_strides[0], out_strides[size_t(channels)], {}, {}};
    filter_ = {filter_strides[0], filter_strides[size_t(filter_channels)], {}, {}};
    for (int i = 0; i < 3; ++i) {
      const int axis = i - (3 - axes);
      const bool there = axis >= 0;
      const size_t at = size_t(std::max(axis, 0)), k = size_t(i);
      in_.length[k] = there ? in[first + axis] : 1, in_.step[k] = there ? in_strides[size_t(first) + at] : 0;
      out_.length[k] = there ? out[first + axis] : 1, out_.step[k] = there ? out_strides[size_t(first) + at] : 0;
      filter_.length[k] = there ? filter[filter_first + axis] : 1;
      filter_.step[k] = there ? filter_strides[size_t(filter_first) + at] : 0;
      stride_[k] = there ? a.stride[at] : 1;
      dilate_[k] = there ? a.dilate[at] : 1;
      pad_[k] = there ? a.pad[at] : 0;
    }
  }
  void run(const Args &args, const Lane &lane) const override {
    with_bytes(products_.dtype(), [&](auto byte) {
      using T = decltype(byte);
      const int64_t lines = out_.length[0] * out_.length[1];
      parallel_for(lane, batch_ * out_channels_ * lines, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          add_line(args, args.in<T>(0), i / (out_channels_ * lines), i / lines % out_channels_, i % lines);
        }
      });
    });
    products_.bounds(args);
  }

 private:
  struct Place {
    int64_t outer, channel;  // steps of axis 0 and of the channels
    int64_t length[3], step[3];
  };

  template <typename T>
  void add_line(const Args &args, const T *data, int64_t sample, int64_t channel, int64_t line) const {
    const int64_t z = line / out_.length[1], y = line % out_.length[1], width = out_.length[2];
    int32_t *const out =
        args.out<int32_t>(0) + sample * out_.outer + channel * out_.channel + z * out_.step[0] + y * out_.step[1];
    const int64_t out_step = out_.step[2] > 0 ? out_.step[2] : 1;
    const int32_t bias = products_.bias(args, channel);
    for (int64_t x = 0; x < width; ++x) out[x * out_step] = bias;
    const int64_t per_group = in_channels_ / groups_, group = channel / (out_channels_ / groups_);
    for (int64_t c = 0; c < per_group; ++c) {
      for (int64_t i = 0; i < filter_.length[0]; ++i) {
        const int64_t from_z = z * stride_[0] - pad_[0] + i * dilate_[0];
        if (from_z < 0 || from_z >= in_.length[0]) continue;
        for (int64_t j = 0; j < filter_.length[1]; ++j) {
          const int64_t from_y = y * stride_[1] - pad_[1] + j * dilate_[1];
          if (from_y < 0 || from_y >= in_.length[1]) continue;
          const T *const row = data + sample * in_.outer + (group * per_group + c) * in_.channel +
                               from_z * in_.step[0] + from_y * in_.step[1];
          const int8_t *const weights = args.in<int8_t>(1) + channel * filter_.outer + c * filter_.channel +
                                        i * filter_.step[0] + j * filter_.step[1];
          for (int64_t k = 0; k < filter_.length[2]; ++k) add_row(row, weights[k * filter_.step[2]], k, out, out_step);
        }
      }
    }
  }

  // out[x] += weight * row[x * stride - pad + k * dilate], where that is inside.
  template <typename T>
  void add_row(const T *row, int32_t weight, int64_t k, int32_t *out, int64_t out_step) const {
    const int64_t shift = k * dilate_[2] - pad_[2], stride = stride_[2], width = in_.length[2];
    const int64_t begin = shift < 0 ? (-shift + stride - 1) / stride : 0;
    const int64_t end = std::min(out_.length[2], width - shift > 0 ? (width - shift + stride - 1) / stride : 0);
    const int64_t step = in_.step[2];
    for (int64_t x = begin; x < end; ++x) {
      const int32_t product = int32_t(row[(x * stride + shift) * step]) * weight;
      out[x * out_step] = int32_t(uint32_t(out[x * out_step]) + uint32_t(product));
    }
  }

  const Products products_;
  const int64_t groups_;
  int64_t batch_, in_channels_, out_channels_;
  Place in_, out_, filter_;
  int64_t stride_[3], dilate_[3], pad_[3];
};

class QuantizedPooling final : public Kernel {
 public:
  explicit QuantizedPooling(const StepSpec &spec)
      : attrs_(spec.attrs_as<PoolingAttrs>()), dtype_(spec.inputs[0].dtype), planes_(spec.inputs[0].shape.size(0, 2)) {
    const Shape &in = spec.inputs[0].shape, &out = spec.outputs[0].shape;
    const PoolingWindow window = pooling_window(attrs_, in);
    for (int i = 0; i < 3; ++i) {
      const int axis = i - (5 - in.rank());
      const size_t k = size_t(i), at = size_t(std::max(axis, 0));
      in_[k] = axis >= 0 ? in[2 + axis] : 1, out_[k] = axis >= 0 ? out[2 + axis] : 1;
      kernel_[k] = axis >= 0 ? window.kernel[at] : 1;
      stride_[k] = axis >= 0 ? window.stride[at] : 1;
      pad_[k] = axis >= 0 ? window.pad[at] : 0;
    }
  }
  void run(const Args &args, const Lane &lane) const override {
    with_bytes(dtype_, [&](auto byte) {
      using T = decltype(byte);
      const int64_t places = out_[0] * out_[1] * out_[2], pixels = in_[0] * in_[1] * in_[2];
      parallel_for(lane, planes_, 1, [&](int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; ++plane) {
          for (int64_t place = 0; place < places; ++place) {
            args.out<T>(0)[plane * places + place] = pooled(args.in<T>(0) + plane * pixels, place);
          }
        }
      });
    });
    write_bounds(args, args.in<float>(1)[0], args.in<float>(2)[0]);
  }

 private:
  template <typename T>
  T pooled(const T *plane, int64_t place) const {
    const int64_t at[3] = {place / (out_[1] * out_[2]), place / out_[2] % out_[1], place % out_[2]};
    int64_t begin[3], end[3], padded = 1, inside = 1;
    for (size_t a = 0; a < 3; ++a) {
      const int64_t start = at[a] * stride_[a] - pad_[a], stop = std::min(start + kernel_[a], in_[a] + pad_[a]);
      padded *= stop - start;
      begin[a] = std::max<int64_t>(start, 0);
      end[a] = std::min(stop, in_[a]);
      inside *= std::max<int64_t>(end[a] - begin[a], 0);
    }
    int64_t sum = 0, top = std::is_same_v<T, int8_t> ? -128 : 0;
    for (int64_t i = begin[0]; i < end[0]; ++i) {
      for (int64_t j = begin[1]; j < end[1]; ++j) {
        for (int64_t k = begin[2]; k < end[2]; ++k) {
          const int64_t value = plane[(i * in_[1] + j) * in_[2] + k];
          sum += value;
          top = std::max(top, value);
        }
      }
    }
    if (attrs_.pool_type == PoolingAttrs::kMax) return T(top);
    const int64_t divisor = attrs_.count_include_pad.value_or(true) ? padded : inside;
    return byte_of<T>(double(sum) / double(std::max<int64_t>(divisor, 1)));
  }

  const PoolingAttrs attrs_;
  const Dtype dtype_;
  const int64_t planes_;
  int64_t in_[3], out_[3], kernel_[3], stride_[3], pad_[3];
};

// What keeps its range: relu, and other shapes, which are not of bytes alone.
template <bool kRelu>
class SameBytes final : public Kernel {
 public:
  explicit SameBytes(const StepSpec &spec)
      : count_(int64_t(spec.inputs[0].bytes())), cuts_(kRelu && spec.inputs[0].dtype == Dtype::kInt8) {}
  void run(const Args &args, const Lane &) const override {
    const int8_t *const x = args.in<int8_t>(0);
    int8_t *const y = args.out<int8_t>(0);
    for (int64_t i = 0; i < count_; ++i) y[i] = cuts_ ? std::max<int8_t>(x[i], 0) : x[i];
    write_bounds(args, args.in<float>(1)[0], args.in<float>(2)[0]);
  }

 private:
  const int64_t count_;
  const bool cuts_;
};

// y = gamma / sqrt(var + eps) * (x - mean) + beta, x and y in units of their ranges, of which one is 1 / 127.5. A uint8
// counts as half of it, rounded down. The factor is divided by sqrt(1 + eps) once more: so are the numbers that MXNet's
// quantized networks were calibrated with.
class QuantizedBatchNorm final : public Kernel {
 public:
  explicit QuantizedBatchNorm(const StepSpec &spec) : attrs_(spec.attrs_as<QuantizedBatchNormAttrs>()) {
    const Shape &shape = spec.inputs[0].shape;
    const int axis = normalize_axis(attrs_.axis, shape.rank(), "axis");
    outer_ = shape.size(0, axis);
    channels_ = shape[axis];
    inner_ = shape.size(axis + 1, shape.rank());
    dtype_ = spec.inputs[0].dtype;
  }
  void run(const Args &args, const Lane &lane) const override {
    const float low = *attrs_.min_calib_range, high = *attrs_.max_calib_range;
    const float from = bound_at(args, 5), to = larger_bound(low, high);
    parallel_for(lane, outer_ * channels_, 1 + kCheapGrain / (inner_ + 1), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t c = row % channels_;
        const float inverse = 1.0f / std::sqrt(args.in<float>(4)[c] + float(attrs_.eps));
        const float gamma = args.in<float>(1)[c] * inverse;
        const float scale = gamma * from / to / std::sqrt(1.0f + float(attrs_.eps));
        const float shift = (args.in<float>(2)[c] - args.in<float>(3)[c] * gamma) * 127.5f / to;
        int8_t *const y = args.out<int8_t>(0) + row * inner_;
        with_bytes(dtype_, [&](auto zero) {
          using T = decltype(zero);
          const T *const x = args.in<T>(0) + row * inner_;
          for (int64_t i = 0; i < inner_; ++i) {
            y[i] = byte_of<int8_t>(double(scale) * (std::is_same_v<T, uint8_t> ? x[i] >> 1 : x[i]) + double(shift));
          }
        });
      }
    });
    write_bounds(args, low, high);
  }

 private:
  const QuantizedBatchNormAttrs attrs_;
  int64_t outer_, channels_, inner_;
  Dtype dtype_;
};

class QuantizedConcat final : public Kernel {
 public:
  explicit QuantizedConcat(const StepSpec &spec) : num_(int(spec.inputs.size() / 3)), to_(spec.outputs[0].dtype) {
    const Shape &out = spec.outputs[0].shape;
    const int axis = normalize_axis(spec.attrs_as<QuantizedConcatAttrs>().dim, out.rank(), "dim");
    outer_ = out.size(0, axis);
    row_ = out.size(axis, out.rank());
    for (int i = 0; i < num_; ++i) {
      dtypes_.push_back(spec.inputs[size_t(i)].dtype);
      widths_.push_back(spec.inputs[size_t(i)].shape.size(axis, out.rank()));
    }
  }
  void run(const Args &args, const Lane &) const override {
    float low = INFINITY, high = -INFINITY;
    for (int i = 0; i < num_; ++i) {
      low = std::min(low, args.in<float>(num_ + 2 * i)[0]);
      high = std::max(high, args.in<float>(num_ + 2 * i + 1)[0]);
    }
    const double unit = quantum(to_, larger_bound(low, high));
    int64_t at = 0;
    for (int i = 0; i < num_; ++i) {
      const double own = quantum(dtypes_[size_t(i)], bound_at(args, num_ + 2 * i)), factor = unit > 0 ? own / unit : 0;
      const int64_t width = widths_[size_t(i)];
      with_bytes(dtypes_[size_t(i)], [&](auto byte) {
        using T = decltype(byte);
        for (int64_t o = 0; o < outer_; ++o) {
          bytes_of(args.in<T>(i) + o * width, factor, to_, args.out<char>(0) + o * row_ + at, 0, width);
        }
      });
      at += width;
    }
    write_bounds(args, low, high);
  }

 private:
  const int num_;
  const Dtype to_;
  int64_t outer_, row_;
  std::vector<Dtype> dtypes_;
  std::vector<int64_t> widths_;
};

// Sums, and products, of two arrays of bytes.
template <bool kProduct>
class QuantizedPair final : public Kernel {
 public:
  explicit QuantizedPair(const StepSpec &spec)
      : attrs_(spec.attrs_as<QuantizeAttrs>()),
        left_(spec.inputs[0].dtype),
        right_(spec.inputs[1].dtype),
        to_(spec.outputs[0].dtype),
        count_(spec.inputs[0].shape.size()),
        load_left_(load_block(left_, Dtype::kFloat64)),
        load_right_(load_block(right_, Dtype::kFloat64)) {}
  void run(const Args &args, const Lane &lane) const override {
    const float left = bound_at(args, 2), right = bound_at(args, 4);
    const double unit_left = quantum(left_, left), unit_right = quantum(right_, right);
    float low = 0, high = 0;
    double factor = 1;
    if (attrs_.calibrated() && to_ != Dtype::kFloat32) {
      low = *attrs_.min_calib_range, high = *attrs_.max_calib_range;
      const double unit = quantum(to_, larger_bound(low, high));
      factor = unit > 0 ? 1 / unit : 0;
    } else if (to_ == Dtype::kInt32) {
      high = kProduct ? product_bound(left_, left, right_, right) : left + right;
      low = -high;
      const double unit = kProduct ? unit_left * unit_right : quantum(to_, high);  // products are whole numbers
      factor = unit > 0 ? 1 / unit : 0;
    }
    parallel_for(lane, count_, kCheapGrain, [&](int64_t begin, int64_t end) {
      double a[kPointwiseBlock], b[kPointwiseBlock];
      for (int64_t i = begin; i < end; i += kPointwiseBlock) {
        const int64_t count = std::min(kPointwiseBlock, end - i);
        load_left_(args.inputs[0], i, a, count);
        load_right_(args.inputs[1], i, b, count);
        for (int64_t k = 0; k < count; ++k) {
          a[k] = kProduct ? a[k] * unit_left * (b[k] * unit_right) : a[k] * unit_left + b[k] * unit_right;
        }
        if (kProduct && to_ == Dtype::kInt8) {  // cut, not rounded, as in MXNet
          for (int64_t k = 0; k < count; ++k) a[k] = std::trunc(a[k] * factor);
          store(a, 1, args.outputs[0], i, count);
        } else {
          store(a, factor, args.outputs[0], i, count);
        }
      }
    });
    if (to_ != Dtype::kFloat32) write_bounds(args, low, high);
  }

 private:
  void store(const double *values, double factor, void *to, int64_t at, int64_t count) const {
    if (to_ == Dtype::kFloat32) {
      for (int64_t k = 0; k < count; ++k) static_cast<float *>(to)[at + k] = float(values[k]);
    } else if (to_ == Dtype::kInt32) {
      for (int64_t k = 0; k < count; ++k) {
        const double value = std::nearbyint(values[k] * factor);
        static_cast<int32_t *>(to)[at + k] = int32_t(std::clamp(value, -2147483648.0, 2147483647.0));
      }
    } else {
      bytes_of(values, factor, to_, static_cast<char *>(to) + at, 0, count);
    }
  }

  const QuantizeAttrs attrs_;
  const Dtype left_, right_, to_;
  const int64_t count_;
  const LoadBlock load_left_, load_right_;
};

class QuantizedEmbedding final : public Kernel {
 public:
  explicit QuantizedEmbedding(const StepSpec &spec)
      : rows_(spec.inputs[1].shape[0]),
        width_(spec.inputs[1].shape[1]),
        count_(spec.inputs[0].shape.size()),
        load_(load_indices(spec.inputs[0].dtype)) {}
  void run(const Args &args, const Lane &) const override {
    for (int64_t i = 0; i < count_; ++i) {
      int64_t index = 0;
      load_(args.inputs[0], i, &index, 1);
      index = std::clamp<int64_t>(index, 0, rows_ - 1);
      std::memcpy(args.out<char>(0) + i * width_, args.in<char>(1) + index * width_, size_t(width_));
    }
    write_bounds(args, args.in<float>(2)[0], args.in<float>(3)[0]);
  }

 private:
  const int64_t rows_, width_, count_;
  const LoadBlock load_;
};

COHORT_KERNEL(cpu, _contrib_quantized_fully_connected, QuantizedFullyConnected);
COHORT_KERNEL(cpu, _contrib_quantized_conv, QuantizedConvolution);
COHORT_KERNEL(cpu, _contrib_quantized_pooling, QuantizedPooling);
COHORT_KERNEL(cpu, _contrib_quantized_act, SameBytes<true>);
COHORT_KERNEL(cpu, _contrib_quantized_flatten, SameBytes<false>);
COHORT_KERNEL(cpu, _contrib_quantized_batch_norm, QuantizedBatchNorm);
COHORT_KERNEL(cpu, _contrib_quantized_concat, QuantizedConcat);
COHORT_KERNEL(cpu, _contrib_quantized_elemwise_add, QuantizedPair<false>);
COHORT_KERNEL(cpu, _contrib_quantized_elemwise_mul, QuantizedPair<true>);
COHORT_KERNEL(cpu, _contrib_quantized_embedding, QuantizedEmbedding);

}  // namespace
}  // namespace cohort
