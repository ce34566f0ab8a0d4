// SPDX-License-Identifier: Apache-2.0
// Deconvolution on oneDNN for float32 and bfloat16, in float32 for 16-bit floats that oneDNN lacks, by columns for
// float64. It is the backward
// pass to the data of a convolution whose input is the output of the deconvolution, and uses the same loops.
#include "op/deconvolution.hpp"

#include <algorithm>
#include <numeric>

#include "cpu/dnnl_kernel.hpp"
#include "cpu/op/grouped_gradients.hpp"
#include "cpu/op/in_float32.hpp"
#include "cpu/op/plain_convolution.hpp"
#include "device/kernel_table.hpp"
#include "kernels/linear_inputs.hpp"

namespace cohort {
namespace {

using namespace dnn;

struct Problem {
  Dims data, weight, result;  // channels in front; weight as oneDNN expects it: (groups, out, in, kernel)
  Desc plain_data, plain_weight, plain_result;
  Dims stride, dilate, pad_begin, pad_end;
  int64_t num_filter;
  bool last, has_bias;
  Dtype dtype;
  double operations;
};

Dims channels_in_front(const Shape &shape, bool last) {
  Dims dims(shape.begin(), shape.end());
  if (last) std::rotate(dims.begin() + 1, dims.end() - 1, dims.end());
  return dims;
}

Problem problem_of(const DeconvolutionAttrs &a, const Shape &data, const Shape &weight, const Shape &result,
                   Dtype dtype) {
  Problem p;
  p.dtype = dtype;
  p.last = channels_last(a.layout);
  p.has_bias = !a.no_bias;
  p.num_filter = a.num_filter;
  p.data = channels_in_front(data, p.last);
  p.result = channels_in_front(result, p.last);
  const auto plain = [&](const Dims &dims) {
    return p.last ? dnn::channels_last(dims, p.dtype) : row_major(dims, p.dtype);
  };
  p.plain_data = plain(p.data);
  p.plain_result = plain(p.result);
  const Dims filters = channels_in_front(weight, p.last);  // (groups * in, out, kernel)
  p.weight = {a.num_group, filters[1], filters[0] / a.num_group};
  p.weight.insert(p.weight.end(), filters.begin() + 2, filters.end());
  Dims axes(p.weight.size());
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[1], axes[2]);
  if (p.last) std::rotate(axes.begin() + 2, axes.begin() + 3, axes.end());
  p.plain_weight = ordered(p.weight, p.dtype, axes);
  const DeconvolutionPadding padding = deconvolution_padding(a, data);
  p.stride.assign(a.stride.begin(), a.stride.end());
  p.pad_begin.assign(padding.pad.begin(), padding.pad.end());
  for (size_t k = 0; k < a.kernel.size(); ++k) {
    p.dilate.push_back(a.dilate[k] - 1);
    p.pad_end.push_back(padding.pad[k] - padding.adj[k]);
  }
  p.operations = 2.0 * double(data.size()) * double(weight.size() / std::max<int64_t>(1, weight[0]));
  return p;
}

using ForwardDesc = dnnl::deconvolution_forward::primitive_desc;

std::optional<ForwardDesc> forward_of(const Problem &p, bool is_train) {
  const Desc bias = p.has_bias ? row_major({p.num_filter}, p.dtype) : Desc();
  const Desc weight = any_of(p.weight, p.dtype);
  const Desc any_data = any_of(p.data, p.dtype), any_result = any_of(p.result, p.dtype);
  std::vector<std::pair<Desc, Desc>> candidates = {{p.plain_data, p.plain_result}};
  if (!p.last) candidates.insert(candidates.begin(), {any_data, any_result});
  for (const auto &layouts : candidates) {
    auto pd = attempt([&] {
      return forward_desc<dnnl::deconvolution_forward>(
          engine(), attributes(), is_train ? prop_kind::forward_training : prop_kind::forward_inference,
          algorithm::deconvolution_direct, layouts.first, weight, bias, layouts.second, p.stride, p.dilate, p.pad_begin,
          p.pad_end);
    });
    if (pd && is_reference(*pd) && p.dtype != Dtype::kFloat32) continue;
    if (pd && !is_padded(pd->src_desc()) && !is_padded(pd->dst_desc())) return pd;
  }
  return std::nullopt;
}

class DeconvolutionForward final : public Kernel {
 public:
  DeconvolutionForward(StepSpec &spec, const Problem &p, const ForwardDesc &pd, int num_threads)
      : pd_(pd), num_threads_(num_threads) {
    std::vector<DnnlArg> operands = {{DNNL_ARG_SRC, pd.src_desc(), BufferRef::input(0)},
                                     {DNNL_ARG_WEIGHTS, pd.weights_desc(), BufferRef::input(1)},
                                     {DNNL_ARG_DST, pd.dst_desc(), BufferRef::output(0)}};
    if (p.has_bias) operands.push_back({DNNL_ARG_BIAS, pd.bias_desc(), BufferRef::input(2)});
    call_ = DnnlCall(pd, name_of(spec), std::move(operands), spec);
    spec.inputs[0].layout = layout_of(pd.src_desc(), p.plain_data);
    spec.inputs[1].layout = layout_of(pd.weights_desc(), p.plain_weight);
    spec.outputs[0].layout = layout_of(pd.dst_desc(), p.plain_result);
  }
  void run(const Args &args, const Lane &) const override {
    const ThreadsScope threads(num_threads_);
    call_.run(args);
  }
  const ForwardDesc &desc() const { return pd_; }

 private:
  const ForwardDesc pd_;
  const int num_threads_;
  DnnlCall call_;
};

class DeconvolutionBackward final : public Kernel {
 public:
  using DataDesc = dnnl::deconvolution_backward_data::primitive_desc;
  using WeightsDesc = dnnl::deconvolution_backward_weights::primitive_desc;

  // oneDNN or, where it has no implementation, loops of our own compute the gradient of the weight.
  DeconvolutionBackward(StepSpec &spec, const Problem &p, const ForwardDesc &hint, const std::optional<DataDesc> &data,
                        const std::optional<WeightsDesc> &weights, std::unique_ptr<const GroupedGradients> own,
                        int num_threads)
      : num_threads_(num_threads), wanted_(spec.wanted), own_(std::move(own)) {
    wanted_.resize(3);
    spec.unread = unread_by_linear(wanted_[1] || wanted_[2], data.has_value());
    const Desc head = hint.dst_desc(), src = hint.src_desc();
    spec.inputs[0].layout = layout_of(head, p.plain_result);
    if (data) {
      by_data_ = DnnlCall(*data, name_of(spec),
                          {{DNNL_ARG_DIFF_DST, head, BufferRef::input(0)},
                           {DNNL_ARG_WEIGHTS, data->weights_desc(), BufferRef::input(2)},
                           {DNNL_ARG_DIFF_SRC, src, BufferRef::output(0)}},
                          spec);
      spec.inputs[2].layout = layout_of(data->weights_desc(), p.plain_weight);
      spec.outputs[0].layout = layout_of(src, p.plain_data);
    }
    if (wanted_[1] || wanted_[2]) spec.inputs[1].layout = layout_of(src, p.plain_data);
    if (!weights) {
      if (wanted_[1]) spec.outputs[1].layout = nullptr;
      return;
    }
    const Desc grad = weights->diff_weights_desc();
    const BufferRef place =
        spec.wanted[1] ? BufferRef::output(1) : BufferRef::scratch(book(spec.scratch_bytes, grad.get_size()));
    if (spec.wanted[1]) {
      // The plan reorders it into the memory of the weight, which has been read by then.
      spec.outputs[1].layout = layout_of(grad, p.plain_weight);
      if (data) spec.inplace.emplace_back(2, 1);
    }
    std::vector<DnnlArg> operands = {{DNNL_ARG_DIFF_DST, head, BufferRef::input(0)},
                                     {DNNL_ARG_SRC, src, BufferRef::input(1)},
                                     {DNNL_ARG_DIFF_WEIGHTS, grad, place}};
    if (p.has_bias) {
      const BufferRef bias =
          spec.wanted[2] ? BufferRef::output(2)
                         : BufferRef::scratch(book(spec.scratch_bytes, size_t(p.num_filter) * dtype_size(p.dtype)));
      operands.push_back({DNNL_ARG_DIFF_BIAS, weights->diff_bias_desc(), bias});
    }
    by_weights_ = DnnlCall(*weights, name_of(spec), std::move(operands), spec);
  }
  void run(const Args &args, const Lane &lane) const override {
    const ThreadsScope threads(num_threads_);
    if (by_data_) by_data_.run(args);
    if (by_weights_) return by_weights_.run(args);
    const void *const head = args.in<void>(0);
    if (wanted_[1]) own_->of_weight(args.in<void>(1), head, args.out<void>(1), lane);
    if (wanted_[2]) own_->of_bias(/* of_data */ true, head, args.out<void>(2), lane);
  }

 private:
  const int num_threads_;
  std::vector<bool> wanted_;
  const std::unique_ptr<const GroupedGradients> own_;
  DnnlCall by_data_, by_weights_;
};

// The convolution whose data is the result of a deconvolution, and whose result is its data.
ConvolutionSizes sizes_of(const DeconvolutionAttrs &a, const TensorSpec &result, const TensorSpec &weight,
                          const TensorSpec &data) {
  return convolution_sizes(result.shape, weight.shape, data.shape, a.stride, a.dilate,
                           deconvolution_padding(a, data.shape).pad, a.num_group, channels_last(a.layout));
}
// The sizes of a backward step. Inputs: head gradient, data, weight.
ConvolutionSizes sizes_of(const StepSpec &spec) {
  return sizes_of(spec.attrs_as<DeconvolutionAttrs>(), spec.inputs[0], spec.inputs[2], spec.inputs[1]);
}

class DeconvolutionByColumns final : public Kernel {
 public:
  explicit DeconvolutionByColumns(StepSpec &spec)
      : has_bias_(!spec.attrs_as<DeconvolutionAttrs>().no_bias),
        way_(sizes_of(spec.attrs_as<DeconvolutionAttrs>(), spec.outputs[0], spec.inputs[1], spec.inputs[0]),
             spec.inputs[0].dtype, spec.num_threads) {
    spec.scratch_bytes = way_.data_scratch_bytes();
  }
  void run(const Args &args, const Lane &lane) const override {
    way_.backward_data(args.in<void>(0), args.in<void>(1), has_bias_ ? args.in<void>(2) : nullptr, args.out<void>(0),
                       args.scratch, lane);
  }

 private:
  const bool has_bias_;
  const PlainConvolution way_;
};

class DeconvolutionByColumnsBackward final : public Kernel {
 public:
  explicit DeconvolutionByColumnsBackward(StepSpec &spec)
      : wanted_(spec.wanted), way_(sizes_of(spec), spec.inputs[0].dtype, spec.num_threads) {
    spec.unread = unread_by_linear(wanted_[1], wanted_[0]);
    if (wanted_[0]) spec.scratch_bytes = way_.forward_scratch_bytes();
    if (wanted_[1]) spec.scratch_bytes = std::max(spec.scratch_bytes, way_.weight_scratch_bytes());
  }
  void run(const Args &args, const Lane &lane) const override {
    const void *const head = args.in<void>(0);
    if (wanted_[0]) way_.forward(head, args.in<void>(2), nullptr, args.out<void>(0), args.scratch, lane);
    if (wanted_[1]) way_.backward_weight(args.in<void>(1), head, args.out<void>(1), args.scratch, lane);
    if (wanted_.size() > 2 && wanted_[2]) sum_channels(way_.sizes(), way_.dtype(), true, head, args.out<void>(2), lane);
  }

 private:
  const std::vector<bool> wanted_;
  const PlainConvolution way_;
};

std::unique_ptr<Kernel> make_forward(StepSpec &spec) {
  const Problem p = problem_of(spec.attrs_as<DeconvolutionAttrs>(), spec.inputs[0].shape, spec.inputs[1].shape,
                               spec.outputs[0].shape, spec.inputs[0].dtype);
  const int num_threads = threads_for_work(spec, p.operations);
  const ThreadsScope threads(num_threads);
  const auto pd = forward_of(p, spec.is_train);
  if (!pd) return nullptr;
  return std::make_unique<DeconvolutionForward>(spec, p, *pd, num_threads);
}

std::string refuses_backward(const StepSpec &spec) {
  if (!dynamic_cast<const DeconvolutionForward *>(spec.forward)) return "the forward pass is not oneDNN's";
  const bool by_data_alone = !spec.wanted[1] && !(spec.wanted.size() > 2 && spec.wanted[2]);
  const std::string refusal = refuses_layer(spec);
  if (!refusal.empty() || by_data_alone) return refusal;
  return lacks_weight_gradient(sizes_of(spec), spec.inputs[1].shape.rank() - 2, spec.inputs[0].dtype);
}

std::unique_ptr<Kernel> make_backward(StepSpec &spec) {
  const auto *forward = dynamic_cast<const DeconvolutionForward *>(spec.forward);
  const Problem p = problem_of(spec.attrs_as<DeconvolutionAttrs>(), spec.inputs[1].shape, spec.inputs[2].shape,
                               spec.inputs[0].shape, spec.inputs[0].dtype);
  const int num_threads = threads_for_work(spec, p.operations);
  const ThreadsScope threads(num_threads);
  const ForwardDesc &hint = forward->desc();
  const Desc src = hint.src_desc(), head = hint.dst_desc(), weight = any_of(p.weight, p.dtype);
  const bool by_data = spec.wanted[0];
  const bool by_weights = spec.wanted[1] || (spec.wanted.size() > 2 && spec.wanted[2]);
  std::optional<DeconvolutionBackward::DataDesc> data;
  std::optional<DeconvolutionBackward::WeightsDesc> weights;
  if (by_data) {
    data = attempt([&] {
      return backward_desc<dnnl::deconvolution_backward_data>(engine(), attributes(), hint,
                                                              algorithm::deconvolution_direct, src, weight, head,
                                                              p.stride, p.dilate, p.pad_begin, p.pad_end);
    });
  }
  if (by_weights) {
    const Desc bias = p.has_bias ? row_major({p.num_filter}, p.dtype) : Desc();
    weights = attempt([&] {
      return backward_desc<dnnl::deconvolution_backward_weights>(engine(), attributes(), hint,
                                                                 algorithm::deconvolution_direct, src, weight, bias,
                                                                 head, p.stride, p.dilate, p.pad_begin, p.pad_end);
    });
  }
  auto own = GroupedGradients::make(sizes_of(spec), p.dtype, head, src);
  if (own && weights && own->suits(*weights)) weights.reset();
  if ((by_data && !data) || (by_weights && !weights && !own)) return nullptr;
  return std::make_unique<DeconvolutionBackward>(spec, p, hint, data, weights, std::move(own), num_threads);
}

COHORT_KERNEL_BY(cpu, Deconvolution, make_forward).named("onednn").dtypes(kLayerTypes).when(refuses_layer).any_layout();
COHORT_KERNEL_BY(cpu, Deconvolution, make_in_float32).named("float32", /* tuned */ false).dtypes(kNarrowTypes);
COHORT_KERNEL(cpu, Deconvolution, DeconvolutionByColumns).dtypes(kWideFloatTypes);
COHORT_KERNEL_BY(cpu, _backward_Deconvolution, make_backward)
    .named("onednn")
    .dtypes(kLayerTypes)
    .when(refuses_backward)
    .any_layout();
COHORT_KERNEL_BY(cpu, _backward_Deconvolution, make_in_float32)
    .named("float32", /* tuned */ false)
    .dtypes(kNarrowTypes);
COHORT_KERNEL(cpu, _backward_Deconvolution, DeconvolutionByColumnsBackward).dtypes(kWideFloatTypes);

}  // namespace
}  // namespace cohort
