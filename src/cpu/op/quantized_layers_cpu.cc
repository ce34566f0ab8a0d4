// SPDX-License-Identifier: Apache-2.0
// Layers on bytes. Products are summed in int32 as integers, so that results do not depend on the order.
#include <algorithm>
#include <cstring>

#include "cpu/op/cpu_backend.hpp"
#include "kernels/quantized_kernels.hpp"

namespace cohort {
namespace {

float bound_at(const Args &args, int first) { return bounds_in(args, first).larger(); }

// Types and bounds that a convolution and a fully connected layer have in common. Inputs: data, weight[, bias], and
// the bounds of each.
class QuantizedProductBounds {
 public:
  QuantizedProductBounds(const StepSpec &spec, bool no_bias) : dtype_(spec.inputs[0].dtype), has_bias_(!no_bias) {}
  Dtype dtype() const { return dtype_; }
  // The bias of a channel in units of the product; 0 without one.
  int32_t bias(const Args &args, int64_t channel) const {
    if (!has_bias_) return 0;
    return product_bias(dtype_, bound_at(args, 3), bound_at(args, 5), args.in<int8_t>(2)[channel], bound_at(args, 7));
  }
  void bounds(const Args &args) const {
    const int first = has_bias_ ? 3 : 2;
    const float bound = product_bound(dtype_, bound_at(args, first), Dtype::kInt8, bound_at(args, first + 2));
    bounds_out(args).write(-bound, bound);
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
  const QuantizedProductBounds products_;
  const int64_t units_, features_, rows_;
};

// Up to three spatial axes; missing ones have length 1. Computes a row of the output at a time, one number of the
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
  struct WindowAxes {
    int64_t outer, channel;  // strides of axis 0 and of the channels
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

  // out[x] += weight * row[x * stride - pad + k * dilate], where that lies inside the row.
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

  const QuantizedProductBounds products_;
  const int64_t groups_;
  int64_t batch_, in_channels_, out_channels_;
  WindowAxes in_, out_, filter_;
  int64_t stride_[3], dilate_[3], pad_[3];
};

class QuantizedRows final : public Kernel {
 public:
  explicit QuantizedRows(const StepSpec &spec)
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
    bounds_out(args).write(args.in<float>(2)[0], args.in<float>(3)[0]);
  }

 private:
  const int64_t rows_, width_, count_;
  const LoadBlock load_;
};

COHORT_KERNEL(cpu, _contrib_quantized_fully_connected, QuantizedFullyConnected);
COHORT_KERNEL(cpu, _contrib_quantized_conv, QuantizedConvolution);
COHORT_KERNEL(cpu, _contrib_quantized_embedding, QuantizedRows);

const bool registered = [] {
  register_quantized_kernels<CpuBackend>();
  return true;
}();

}  // namespace
}  // namespace cohort
