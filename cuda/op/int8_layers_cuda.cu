// SPDX-License-Identifier: Apache-2.0
// Layers on bytes (op/int8_layer.hpp): casts, weights with one scale per channel, and layers that convert their sums of
// products to bytes or floats when they write them.
#include <cmath>

#include "cuda/op/byte_sums.cuh"
#include "device/kernel_table.hpp"
#include "kernels/quantized_numbers.hpp"
#include "op/activation.hpp"
#include "op/convolution.hpp"
#include "op/fully_connected.hpp"
#include "op/int8_layer.hpp"

namespace cohort {
namespace {

constexpr DtypeSet kBytes{Dtype::kInt8, Dtype::kUint8};

// ---- casts

template <typename T>
struct QuantizeBytes {
  const float *from;
  T *to;
  float factor;
  __device__ void operator()(int64_t i) const { to[i] = quantized::nearest_byte<T>(from[i] * factor); }
};

template <typename T>
struct DequantizeBytes {
  const T *from;
  float *to;
  float scale;
  __device__ void operator()(int64_t i) const { to[i] = float(from[i]) * scale; }
};

template <typename T, bool kToBytes>
class Int8CastCuda final : public Kernel {
 public:
  explicit Int8CastCuda(const StepSpec &spec)
      : count_(spec.inputs[0].shape.size()), scale_(spec.attrs_as<Int8CastAttrs>().scale) {}
  void run(const Args &args, const Lane &lane) const override {
    if constexpr (kToBytes) {
      for_each(lane, count_, QuantizeBytes<T>{args.in<float>(0), args.out<T>(0), 1 / scale_});
    } else {
      for_each(lane, count_, DequantizeBytes<T>{args.in<T>(0), args.out<float>(0), scale_});
    }
  }

 private:
  const int64_t count_;
  const float scale_;
};

template <bool kToBytes>
std::unique_ptr<Kernel> make_cast(StepSpec &spec) {
  const Dtype bytes = (kToBytes ? spec.outputs : spec.inputs)[0].dtype;
  if (bytes == Dtype::kInt8) return std::make_unique<Int8CastCuda<int8_t, kToBytes>>(spec);
  return std::make_unique<Int8CastCuda<uint8_t, kToBytes>>(spec);
}

// ---- weights

// One warp per channel.
struct ScaleWeights {
  const float *weight, *bias;  // bias may be null
  int8_t *bytes;
  float *factors, *new_bias;
  int64_t row;
  double data_scale, unit;
  __device__ void operator()(int64_t channel) const {
    const float *const from = weight + channel * row;
    const float largest = largest_along<float>(row, [=](int64_t i) { return fabsf(from[i]); });
    const double scale = quantized::weight_scale(largest);
    each_along(row, [=](int64_t i) { bytes[channel * row + i] = quantized::weight_byte(from[i], scale); });
    if (threadIdx.x != 0) return;
    const double product = scale * data_scale;
    factors[channel] = float(product / unit);
    new_bias[channel] = bias ? float(double(bias[channel]) / product) : 0.0f;
  }
};

class Int8WeightsCuda final : public Kernel {
 public:
  explicit Int8WeightsCuda(const StepSpec &spec)
      : attrs_(spec.attrs_as<Int8LayerAttrs>()),
        channels_(spec.inputs[0].shape[0]),
        row_(spec.inputs[0].shape.size() / std::max<int64_t>(1, channels_)) {}
  void run(const Args &args, const Lane &lane) const override {
    for_each_row(
        lane, channels_,
        ScaleWeights{args.in<float>(0), attrs_.has_bias ? args.in<float>(1) : nullptr, args.out<int8_t>(0),
                     args.out<float>(1), args.out<float>(2), row_, double(attrs_.data_scale), double(attrs_.unit)});
  }

 private:
  const Int8LayerAttrs attrs_;
  const int64_t channels_, row_;
};

// ---- layers

enum { kData, kWeight, kFactors, kBias, kAddend };  // inputs

struct Nothing {
  __device__ int32_t operator()(int64_t) const { return 0; }
};

struct FinishLayer {
  const float *factors, *bias;
  Elements addend, to;  // an addend without data: none
  float last, low, high;
  __device__ void operator()(int64_t channel, int64_t at, int32_t sum) const {
    float y = (float(sum) + bias[channel]) * factors[channel];
    if (addend.data) y = (y + load<float>(addend, at)) * last;
    y = y < low ? low : y > high ? high : y;
    if (Dtype(to.dtype) == Dtype::kFloat32) {
      static_cast<float *>(to.data)[at] = y;
    } else if (Dtype(to.dtype) == Dtype::kInt8) {
      static_cast<int8_t *>(to.data)[at] = quantized::byte_of<int8_t>(double(y));
    } else {
      static_cast<uint8_t *>(to.data)[at] = quantized::byte_of<uint8_t>(double(y));
    }
  }
};

class Int8LayerCuda final : public Kernel {
 public:
  Int8LayerCuda(StepSpec &spec, const ConvolutionSizes &sizes)
      : last_(spec.attrs_as<Int8LayerAttrs>().last),
        addend_(spec.inputs.size() > size_t(kAddend) ? spec.inputs[kAddend].dtype : Dtype::kNone),
        result_(spec.outputs[0].dtype),
        sums_(sizes, spec.inputs[kData].dtype, &spec.scratch_bytes) {
    const auto &a = spec.attrs_as<Int8LayerAttrs>();
    const double units = double(a.last) / double(a.unit);  // of the output
    for (const PostOp &op : spec.post) {
      if (op.kind == PostOp::Kind::kSum) continue;
      const bool clips = op.kind == PostOp::Kind::kClip;
      const float low = clips ? float(op.low * units) : 0, high = clips ? float(op.high * units) : INFINITY;
      low_ = std::clamp(low_, low, high), high_ = std::clamp(high_, low, high);
    }
  }
  void run(const Args &args, const Lane &lane) const override {
    const Elements addend = elements_of(addend_ == Dtype::kNone ? nullptr : args.inputs[kAddend], addend_);
    sums_.run(lane, args.inputs[kData], args.inputs[kWeight], args.scratch, Nothing{},
              FinishLayer{args.in<float>(kFactors), args.in<float>(kBias), addend,
                          elements_of(args.outputs[0], result_), last_, low_, high_});
  }

 private:
  const float last_;
  const Dtype addend_, result_;
  const ByteSums sums_;
  float low_ = -INFINITY, high_ = INFINITY;  // of what is given away
};

std::unique_ptr<Kernel> make_convolution(StepSpec &spec) {
  const auto &a = spec.attrs_as<Int8LayerAttrs>().layer.get<ConvolutionAttrs>();
  return std::make_unique<Int8LayerCuda>(
      spec, convolution_sizes(spec.inputs[kData].shape, spec.inputs[kWeight].shape, spec.outputs[0].shape, a.stride,
                              a.dilate, a.pad, a.num_group, false));
}

std::unique_ptr<Kernel> make_fully_connected(StepSpec &spec) {
  const Shape &weight = spec.inputs[kWeight].shape;
  const int64_t rows = spec.outputs[0].shape.size() / std::max<int64_t>(weight[0], 1);
  return std::make_unique<Int8LayerCuda>(spec, sizes_of_layer(rows, weight[0], weight[1]));
}

// Only the plan makes these steps: among their post-ops a sum comes first, and relu is the only activation.
std::string refuses_post(const StepSpec &spec) {
  for (size_t i = 0; i < spec.post.size(); ++i) {
    const PostOp &op = spec.post[i];
    if (op.kind == PostOp::Kind::kSum && i > 0) return "a sum comes first";
    if (op.kind == PostOp::Kind::kActivation && op.activation != ActivationAttrs::kRelu) return "fuses relu alone";
  }
  return "";
}

std::string refuses_convolution(const StepSpec &spec) {
  const auto &a = spec.attrs_as<Int8LayerAttrs>().layer.get<ConvolutionAttrs>();
  if (channels_last(a.layout)) return "takes channels before the spatial axes alone";
  return refuses_post(spec);
}

COHORT_KERNEL_BY(cuda, _int8_quantize, make_cast<true>).output_dtypes(kBytes);
COHORT_KERNEL_BY(cuda, _int8_dequantize, make_cast<false>).dtypes(kBytes);
COHORT_KERNEL(cuda, _int8_weights, Int8WeightsCuda).dtypes({Dtype::kFloat32});
COHORT_KERNEL_BY(cuda, _int8_Convolution, make_convolution)
    .named("bytes")
    .dtypes(kBytes)
    .when(refuses_convolution)
    .fuses({PostOp::Kind::kActivation, PostOp::Kind::kClip, PostOp::Kind::kSum});
COHORT_KERNEL_BY(cuda, _int8_FullyConnected, make_fully_connected)
    .named("bytes")
    .dtypes(kBytes)
    .when(refuses_post)
    .fuses({PostOp::Kind::kActivation, PostOp::Kind::kClip, PostOp::Kind::kSum});

}  // namespace
}  // namespace cohort
