// SPDX-License-Identifier: Apache-2.0
// Layers on bytes (op/int8_layer.hpp), on oneDNN: convolutions and FullyConnected with weights in int8, one scale per
// channel, and sums in int32. Activations lie channels-last, which is fastest with oneDNN's kernels for bytes. The
// factors of the channels depend on weights that are known only at run time: they are a tensor that a post-operation
// multiplies by.
#include "op/int8_layer.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpu/dnnl_kernel.hpp"
#include "cpu/dnnl_post_ops.hpp"
#include "cpu/op/plain_convolution.hpp"
#include "cpu/op/pointwise_loops.hpp"
#include "cpu/simd.hpp"
#include "device/kernel_table.hpp"
#include "kernels/quantized_numbers.hpp"
#include "op/convolution.hpp"
#include "op/fully_connected.hpp"

namespace cohort {
namespace {

using namespace dnn;

// ---- casts
// -----------------------------------------------------------------------------------------------------------

// An array between two steps of which one is in bytes, in any order of its axes: input and output have the same
// layout.
int64_t take_order(StepSpec &spec) {
  TensorSpec &from = spec.inputs[0], &to = spec.outputs[0];
  const Desc lies = desc_of(from);
  const Blocking b = blocking_of(lies);
  if (from.layout && b.blocked && b.inner_blocks.empty() && !is_padded(lies) &&
      from.shape.rank() == int(b.dims.size())) {
    to.layout = layout_of(Desc(b.dims, type_of(to.dtype), b.strides), row_major(b.dims, to.dtype));
  } else {
    from.layout = nullptr;
  }
  return from.shape.size();
}

// Rounds to the nearest byte, ties to even.
template <typename T>
struct QuantizeLoop {
  static void run(const float *x, float factor, T *to, int64_t count) {
    COHORT_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) to[i] = quantized::nearest_byte<T>(x[i] * factor);
  }
};

template <typename T>
struct DequantizeLoop {
  static void run(const T *x, float scale, float *to, int64_t count) {
    COHORT_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) to[i] = float(x[i]) * scale;
  }
};

template <typename T>
class Quantize final : public Kernel {
 public:
  explicit Quantize(StepSpec &spec)
      : count_(take_order(spec)),
        factor_(1 / spec.attrs_as<Int8CastAttrs>().scale),
        loop_(best_version<QuantizeLoop<T>>()) {}
  void run(const Args &args, const Lane &lane) const override {
    parallel_for(lane, count_, kCheapGrain, [&](int64_t begin, int64_t end) {
      loop_(args.in<float>(0) + begin, factor_, args.out<T>(0) + begin, end - begin);
    });
  }

 private:
  const int64_t count_;
  const float factor_;
  void (*const loop_)(const float *, float, T *, int64_t);
};

template <typename T>
class Dequantize final : public Kernel {
 public:
  explicit Dequantize(StepSpec &spec)
      : count_(take_order(spec)),
        scale_(spec.attrs_as<Int8CastAttrs>().scale),
        loop_(best_version<DequantizeLoop<T>>()) {}
  void run(const Args &args, const Lane &lane) const override {
    parallel_for(lane, count_, kCheapGrain, [&](int64_t begin, int64_t end) {
      loop_(args.in<T>(0) + begin, scale_, args.out<float>(0) + begin, end - begin);
    });
  }

 private:
  const int64_t count_;
  const float scale_;
  void (*const loop_)(const T *, float, float *, int64_t);
};

template <template <typename> class K>
std::unique_ptr<Kernel> make_cast(StepSpec &spec) {
  const bool is_signed = spec.inputs[0].dtype == Dtype::kInt8 || spec.outputs[0].dtype == Dtype::kInt8;
  if (is_signed) return std::make_unique<K<int8_t>>(spec);
  return std::make_unique<K<uint8_t>>(spec);
}

// ---- weights
// ---------------------------------------------------------------------------------------------------------

class QuantizeWeights final : public Kernel {
 public:
  explicit QuantizeWeights(const StepSpec &spec)
      : attrs_(spec.attrs_as<Int8LayerAttrs>()),
        channels_(spec.inputs[0].shape[0]),
        row_(spec.inputs[0].shape.size() / std::max<int64_t>(1, channels_)) {}
  void run(const Args &args, const Lane &lane) const override {
    const float *const weight = args.in<float>(0), *const bias = attrs_.has_bias ? args.in<float>(1) : nullptr;
    int8_t *const bytes = args.out<int8_t>(0);
    float *const factors = args.out<float>(1), *const new_bias = args.out<float>(2);
    parallel_for(lane, channels_, 1 + 65536 / (row_ + 1), [=](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        const float *const row = weight + c * row_;
        float largest = 0;
        for (int64_t i = 0; i < row_; ++i) largest = std::max(largest, std::fabs(row[i]));
        const double scale = quantized::weight_scale(largest);
        for (int64_t i = 0; i < row_; ++i) bytes[c * row_ + i] = quantized::weight_byte(row[i], scale);
        const double product = scale * double(attrs_.data_scale);
        factors[c] = float(product / double(attrs_.unit));
        new_bias[c] = bias ? float(double(bias[c]) / product) : 0.0f;
      }
    });
  }

 private:
  const Int8LayerAttrs attrs_;
  const int64_t channels_, row_;
};

// ---- layers
// ----------------------------------------------------------------------------------------------------------

enum { kData, kWeight, kFactors, kBias, kAddend };  // inputs

struct Layer {
  Dims data, weight, result;
  Desc data_desc, result_desc;
  Desc plain_data, plain_weight, plain_result;
  double operations;
};

PostOp in_output_units(PostOp clip, const Int8LayerAttrs &a) {
  const double factor = double(a.last) / double(a.unit);
  clip.low *= factor, clip.high *= factor;
  return clip;
}

// Describes the factors as a tensor with one number for each channel of the result.
Desc factors_desc(const Dims &result) {
  Dims dims(result.size(), 1);
  dims[1] = result[1];
  return row_major(dims, Dtype::kFloat32);
}

class DnnlInt8Layer final : public Kernel {
 public:
  explicit DnnlInt8Layer(int num_threads) : num_threads_(num_threads) {}
  void run(const Args &args, const Lane &) const override {
    const ThreadsScope threads(num_threads_);
    call_.run(args);
  }

  // Makes the post-operations that follow the sum of products.
  static dnnl::post_ops post_of(const StepSpec &spec, const Layer &layer, std::vector<DnnlArg> &operands) {
    const auto &a = spec.attrs_as<Int8LayerAttrs>();
    dnnl::post_ops post;
    const auto binary = [&](algorithm alg, const Desc &desc, int input) {
      operands.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(post.len()) | DNNL_ARG_SRC_1, desc, BufferRef::input(input)});
      post.append_binary(alg, desc);
    };
    binary(algorithm::binary_mul, factors_desc(layer.result), kFactors);
    for (const PostOp &op : spec.post) {
      if (op.kind == kSum) {
        binary(algorithm::binary_add, with_type(layer.result_desc, spec.inputs[kAddend].dtype), kAddend);
        if (a.last != 1) append_eltwise(post, algorithm::eltwise_linear, a.last, 0);
      } else {
        append_activation(post, in_output_units(op, a));
      }
    }
    return post;
  }

  // The same layout for elements of another type.
  static Desc with_type(const Desc &desc, Dtype dtype) {
    const Blocking b = blocking_of(desc);
    return Desc(b.dims, type_of(dtype), b.strides);
  }

  template <typename Pd>
  void finish(const Pd &pd, const Layer &layer, std::vector<DnnlArg> operands, StepSpec &spec) {
    operands.push_back({DNNL_ARG_SRC, layer.data_desc, BufferRef::input(kData)});
    operands.push_back({DNNL_ARG_WEIGHTS, pd.weights_desc(), BufferRef::input(kWeight)});
    operands.push_back({DNNL_ARG_BIAS, pd.bias_desc(), BufferRef::input(kBias)});
    operands.push_back({DNNL_ARG_DST, layer.result_desc, BufferRef::output(0)});
    call_ = DnnlCall(pd, name_of(spec), std::move(operands), spec);
    spec.inputs[kData].layout = layout_of(layer.data_desc, layer.plain_data);
    spec.inputs[kWeight].layout = layout_of(pd.weights_desc(), layer.plain_weight);
    spec.inputs[kFactors].layout = spec.inputs[kBias].layout = nullptr;
    spec.outputs[0].layout = layout_of(layer.result_desc, layer.plain_result);
    if (spec.inputs.size() > size_t(kAddend)) {
      const Dtype dtype = spec.inputs[kAddend].dtype;
      spec.inputs[kAddend].layout =
          layout_of(with_type(layer.result_desc, dtype), with_type(layer.plain_result, dtype));
    }
  }

 private:
  const int num_threads_;
  DnnlCall call_;
};

std::unique_ptr<Kernel> make_convolution(StepSpec &spec) {
  const auto &a = spec.attrs_as<Int8LayerAttrs>().layer.get<ConvolutionAttrs>();
  const TensorSpec &data = spec.inputs[kData], &weight = spec.inputs[kWeight], &result = spec.outputs[0];
  Layer p;
  p.data = dims_of(data.shape);
  p.weight = dims_of(weight.shape);
  p.result = dims_of(result.shape);
  if (a.num_group > 1) {
    p.weight[0] /= a.num_group;
    p.weight.insert(p.weight.begin(), a.num_group);
  }
  p.plain_data = row_major(p.data, data.dtype);
  p.plain_weight = row_major(p.weight, Dtype::kInt8);
  p.plain_result = row_major(p.result, result.dtype);
  p.data_desc = channels_last(p.data, data.dtype);
  p.result_desc = channels_last(p.result, result.dtype);
  p.operations =
      2.0 * double(result.shape.size()) * double(weight.shape.size() / std::max<int64_t>(1, weight.shape[0]));
  const int num_threads = threads_for_work(spec, p.operations);
  const ThreadsScope threads(num_threads);
  std::vector<DnnlArg> operands;
  const primitive_attr attr = attributes(DnnlInt8Layer::post_of(spec, p, operands));
  Dims dilate;
  for (const int64_t d : a.dilate) dilate.push_back(d - 1);
  const Dims stride(a.stride.begin(), a.stride.end()), pad(a.pad.begin(), a.pad.end());
  const auto pd = attempt([&] {
    return forward_desc<dnnl::convolution_forward>(
        engine(), attr, prop_kind::forward_inference, algorithm::convolution_direct, p.data_desc,
        any_of(p.weight, Dtype::kInt8), row_major({a.num_filter}, Dtype::kFloat32), p.result_desc, stride, dilate, pad,
        pad);
  });
  // Implementations by matrix products use a wrong factor where there are few channels (oneDNN 2.6).
  if (!pd || is_reference(*pd) || std::strstr(pd->impl_info_str(), "gemm") == pd->impl_info_str()) return nullptr;
  auto kernel = std::make_unique<DnnlInt8Layer>(num_threads);
  kernel->finish(*pd, p, std::move(operands), spec);
  return kernel;
}

std::unique_ptr<Kernel> make_fully_connected(StepSpec &spec) {
  const auto &a = spec.attrs_as<Int8LayerAttrs>().layer.get<FullyConnectedAttrs>();
  const TensorSpec &data = spec.inputs[kData], &weight = spec.inputs[kWeight], &result = spec.outputs[0];
  const int64_t out = weight.shape[0], in = weight.shape[1];
  const int64_t rows = a.flatten ? data.shape[0] : data.shape.size(0, data.shape.rank() - 1);
  Layer p;
  p.data = {rows, in};
  p.weight = {out, in};
  p.result = {rows, out};
  p.data_desc = p.plain_data = row_major(p.data, data.dtype);
  p.plain_weight = row_major(p.weight, Dtype::kInt8);
  p.result_desc = p.plain_result = row_major(p.result, result.dtype);
  p.operations = 2.0 * double(rows) * double(in) * double(out);
  const int num_threads = threads_for_work(spec, p.operations);
  const ThreadsScope threads(num_threads);
  std::vector<DnnlArg> operands;
  const primitive_attr attr = attributes(DnnlInt8Layer::post_of(spec, p, operands));
  const auto pd = attempt([&] {
    return forward_desc<dnnl::inner_product_forward>(engine(), attr, prop_kind::forward_inference, p.data_desc,
                                                     any_of(p.weight, Dtype::kInt8), row_major({out}, Dtype::kFloat32),
                                                     p.result_desc);
  });
  if (!pd || is_reference(*pd)) return nullptr;
  auto kernel = std::make_unique<DnnlInt8Layer>(num_threads);
  kernel->finish(*pd, p, std::move(operands), spec);
  return kernel;
}

// A product over the numbers that the bytes stand for, where oneDNN has no implementation.
class PlainInt8Convolution final : public Kernel {
 public:
  explicit PlainInt8Convolution(StepSpec &spec)
      : attrs_(spec.attrs_as<Int8LayerAttrs>()),
        post_(spec.post),
        data_(spec.inputs[kData]),
        weight_(spec.inputs[kWeight]),
        result_(spec.outputs[0]),
        addend_(spec.inputs.size() > size_t(kAddend) ? spec.inputs[kAddend].dtype : Dtype::kNone) {
    const auto &a = attrs_.layer.get<ConvolutionAttrs>();
    const ConvolutionSizes sizes =
        convolution_sizes(data_.shape, weight_.shape, result_.shape, a.stride, a.dilate, a.pad, a.num_group, false);
    way_ = std::make_unique<const PlainConvolution>(sizes, Dtype::kFloat32, spec.num_threads);
    way_at_ = book(spec.scratch_bytes, way_->forward_scratch_bytes());
    data_at_ = book(spec.scratch_bytes, size_t(data_.shape.size()) * sizeof(float));
    weight_at_ = book(spec.scratch_bytes, size_t(weight_.shape.size()) * sizeof(float));
    result_at_ = book(spec.scratch_bytes, size_t(result_.shape.size()) * sizeof(float));
  }
  void run(const Args &args, const Lane &lane) const override {
    char *const scratch = static_cast<char *>(args.scratch);
    load_block(data_.dtype, Dtype::kFloat32)(args.inputs[kData], 0, scratch + data_at_, data_.shape.size());
    load_block(Dtype::kInt8, Dtype::kFloat32)(args.inputs[kWeight], 0, scratch + weight_at_, weight_.shape.size());
    float *const y = reinterpret_cast<float *>(scratch + result_at_);
    way_->forward(scratch + data_at_, scratch + weight_at_, args.in<float>(kBias), y, scratch + way_at_, lane);
    const int64_t channels = result_.shape[1], area = result_.shape.size(2, result_.shape.rank());
    for (int64_t i = 0; i < result_.shape.size(); ++i) {
      y[i] *= args.in<float>(kFactors)[i / area % channels];
      for (const PostOp &op : post_) {
        if (op.kind == kSum) {
          y[i] += addend_ == Dtype::kUint8 ? args.in<uint8_t>(kAddend)[i] : args.in<int8_t>(kAddend)[i];
          y[i] *= attrs_.last;
        } else if (op.kind == kClip) {
          const PostOp clip = in_output_units(op, attrs_);
          y[i] = std::min(std::max(y[i], float(clip.low)), float(clip.high));
        } else {
          y[i] = std::max(y[i], 0.0f);
        }
      }
    }
    if (result_.dtype == Dtype::kFloat32) {
      std::copy_n(y, result_.shape.size(), args.out<float>(0));
    } else {
      quantized::bytes_of(y, 1.0, result_.dtype, args.outputs[0], 0, result_.shape.size());
    }
  }

 private:
  const Int8LayerAttrs attrs_;
  const std::vector<PostOp> post_;
  const TensorSpec data_, weight_, result_;
  const Dtype addend_;
  std::unique_ptr<const PlainConvolution> way_;
  size_t data_at_, weight_at_, result_at_, way_at_;
};

// Without instructions for products of bytes, oneDNN adds them in 16 bits, which overflow.
std::string refuses_bytes(const StepSpec &spec) {
  const auto found = unsigned(dnnl::get_effective_cpu_isa());
  const auto has = [&](dnnl::cpu_isa isa) { return (found & unsigned(isa)) == unsigned(isa); };
  if (!has(dnnl::cpu_isa::avx512_core_vnni) && !has(dnnl::cpu_isa::avx2_vnni)) {
    return "this processor has no units for products of bytes";
  }
  return refuses_layer(spec);
}

std::string refuses_convolution(const StepSpec &spec) {
  const auto &a = spec.attrs_as<Int8LayerAttrs>().layer.get<ConvolutionAttrs>();
  if (channels_last(a.layout)) return "takes channels before the spatial axes alone";
  return refuses_bytes(spec);
}

constexpr DtypeSet kBytes{Dtype::kInt8, Dtype::kUint8};

COHORT_KERNEL_BY(cpu, _int8_quantize, make_cast<Quantize>).output_dtypes(kBytes).any_layout();
COHORT_KERNEL_BY(cpu, _int8_dequantize, make_cast<Dequantize>).dtypes(kBytes).any_layout();
COHORT_KERNEL(cpu, _int8_weights, QuantizeWeights).dtypes({Dtype::kFloat32});
COHORT_KERNEL_BY(cpu, _int8_Convolution, make_convolution)
    .named("onednn")
    .dtypes(kBytes)
    .when(refuses_convolution)
    .fuses({kActivation, kClip, kSum})
    .any_layout();
COHORT_KERNEL(cpu, _int8_Convolution, PlainInt8Convolution)
    .dtypes(kBytes)
    .when(refuses_bytes)
    .fuses({kActivation, kClip, kSum});
COHORT_KERNEL_BY(cpu, _int8_FullyConnected, make_fully_connected)
    .named("onednn")
    .dtypes(kBytes)
    .when(refuses_bytes)
    .fuses({kActivation, kClip, kSum})
    .any_layout();

}  // namespace
}  // namespace cohort
