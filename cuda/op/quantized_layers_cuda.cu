// SPDX-License-Identifier: Apache-2.0
// Layers on bytes: those that are the same for all backends, products and rows of a table.
#include "cuda/op/byte_sums.cuh"
#include "cuda/op/cuda_backend.cuh"
#include "kernels/quantized_kernels.hpp"

namespace cohort {
namespace {

struct Bias {
  const int8_t *bias;  // null: none
  BoundsIn data, weight, of_bias;
  Dtype dtype;
  __device__ int32_t operator()(int64_t channel) const {
    return bias ? product_bias(dtype, data.larger(), weight.larger(), bias[channel], of_bias.larger()) : 0;
  }
};

struct StoreSum {
  int32_t *to;
  __device__ void operator()(int64_t, int64_t at, int32_t sum) const { to[at] = sum; }
};

struct BoundsOfProduct {
  Dtype dtype;
  BoundsIn data, weight;
  BoundsOut out;
  __device__ void operator()(int64_t) const {
    const float bound = product_bound(dtype, data.larger(), Dtype::kInt8, weight.larger());
    out.write(-bound, bound);
  }
};

// Inputs data, weight[, bias], and the bounds of each.
class QuantizedProduct final : public Kernel {
 public:
  QuantizedProduct(StepSpec &spec, const ConvolutionSizes &sizes, bool has_bias)
      : dtype_(spec.inputs[0].dtype), has_bias_(has_bias), sums_(sizes, dtype_, &spec.scratch_bytes) {}
  void run(const Args &args, const Lane &lane) const override {
    const int first = has_bias_ ? 3 : 2;
    const BoundsIn data = bounds_in(args, first), weight = bounds_in(args, first + 2);
    Bias bias{nullptr, data, weight, {}, dtype_};
    if (has_bias_) bias.bias = args.in<int8_t>(2), bias.of_bias = bounds_in(args, first + 4);
    sums_.run(lane, args.inputs[0], args.inputs[1], args.scratch, bias, StoreSum{args.out<int32_t>(0)});
    for_each(lane, 1, BoundsOfProduct{dtype_, data, weight, bounds_out(args)});
  }

 private:
  const Dtype dtype_;
  const bool has_bias_;
  const ByteSums sums_;
};

std::unique_ptr<Kernel> make_convolution(StepSpec &spec) {
  const auto &a = spec.attrs_as<ConvolutionAttrs>();
  const ConvolutionSizes sizes = convolution_sizes(spec.inputs[0].shape, spec.inputs[1].shape, spec.outputs[0].shape,
                                                   a.stride, a.dilate, a.pad, a.num_group, channels_last(a.layout));
  return std::make_unique<QuantizedProduct>(spec, sizes, !a.no_bias);
}

std::unique_ptr<Kernel> make_fully_connected(StepSpec &spec) {
  const int64_t units = spec.inputs[1].shape[0], features = spec.inputs[1].shape[1];
  const int64_t rows = spec.outputs[0].shape.size() / std::max<int64_t>(units, 1);
  return std::make_unique<QuantizedProduct>(spec, sizes_of_layer(rows, units, features),
                                            !spec.attrs_as<FullyConnectedAttrs>().no_bias);
}

struct TakeRows {
  Elements indices;
  const int8_t *table;
  int8_t *to;
  int64_t rows, width, count;
  BoundsIn in;
  BoundsOut out;
  __device__ void operator()(int64_t i) const {
    if (i == count) return out.write(*in.low, *in.high);
    const int64_t index = load_index(indices, i / width);
    to[i] = table[(index < 0 ? 0 : index < rows ? index : rows - 1) * width + i % width];
  }
};

class QuantizedEmbeddingCuda final : public Kernel {
 public:
  explicit QuantizedEmbeddingCuda(const StepSpec &spec)
      : rows_(spec.inputs[1].shape[0]),
        width_(spec.inputs[1].shape[1]),
        count_(spec.outputs[0].shape.size()),
        dtype_(spec.inputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    for_each(lane, count_ + 1,
             TakeRows{elements_of(args.inputs[0], dtype_), args.in<int8_t>(1), args.out<int8_t>(0), rows_, width_,
                      count_, bounds_in(args, 2), bounds_out(args)});
  }

 private:
  const int64_t rows_, width_, count_;
  const Dtype dtype_;
};

COHORT_KERNEL_BY(cuda, _contrib_quantized_conv, make_convolution);
COHORT_KERNEL_BY(cuda, _contrib_quantized_fully_connected, make_fully_connected);
COHORT_KERNEL(cuda, _contrib_quantized_embedding, QuantizedEmbeddingCuda);
COHORT_KERNEL(cuda, _int8_Pooling, PoolingOfBytes<CudaBackend>)
    .dtypes({Dtype::kInt8, Dtype::kUint8})
    .when([](const StepSpec &spec) -> std::string {
      const auto &a = spec.attrs_as<PoolingAttrs>();
      if (a.v1 && a.pool_type == PoolingAttrs::kMax) return "maxima of Pooling_v1 are others";
      return a.pool_type == PoolingAttrs::kMax || a.pool_type == PoolingAttrs::kAvg ? ""
                                                                                    : "takes maxima and means alone";
    });

const bool registered = [] {
  register_quantized_kernels<CudaBackend>();
  return true;
}();

}  // namespace
}  // namespace cohort
