// SPDX-License-Identifier: Apache-2.0
// Convolution on oneDNN for float32 and bfloat16, in float32 for 16-bit floats that oneDNN lacks, by columns for
// float64.
#include "op/convolution.hpp"

#include <algorithm>
#include <cstring>

#include "cpu/dnnl_kernel.hpp"
#include "cpu/dnnl_post_ops.hpp"
#include "cpu/op/grouped_gradients.hpp"
#include "cpu/op/image_convolution.hpp"
#include "cpu/op/in_float32.hpp"
#include "cpu/op/plain_convolution.hpp"
#include "cpu/op/plain_post_ops.hpp"
#include "cpu/op/winograd.hpp"
#include "device/kernel_table.hpp"
#include "kernels/linear_inputs.hpp"

namespace cohort {
namespace {

using namespace dnn;

// The tensors of one convolution with oneDNN's axes: channels in front and, for groups, the group first.
struct Problem {
  Dims data, weight, result, bias;
  Desc plain_data, plain_weight, plain_result;  // the row-major layouts
  Dims stride, dilate, pad;                     // oneDNN counts the dilation from 0
  bool last;                                    // the layout attribute puts channels behind the spatial axes
  Dtype dtype;

  double operations() const {
    double count = 2;
    for (int64_t n : result) count *= double(n);
    for (size_t i = weight.size() - data.size() + 1; i < weight.size(); ++i) count *= double(weight[i]);
    return count;
  }
  // In bfloat16 with windows of one element, the gradient of the data consists of sums over the output channels. If
  // their number is odd, oneDNN 2.6 computes them wrong for some numbers of elements, unless channels are padded to
  // blocks.
  bool has_odd_sums() const {
    const bool is_point =
        weight.size() == data.size() && std::all_of(weight.begin() + 2, weight.end(), [](int64_t n) { return n == 1; });
    return dtype == Dtype::kBfloat16 && is_point && weight[0] % 2 != 0;
  }
};

Dims channels_in_front(const Shape &shape, bool last) {
  Dims dims(shape.begin(), shape.end());
  if (last) std::rotate(dims.begin() + 1, dims.end() - 1, dims.end());
  return dims;
}

Problem problem_of(const ConvolutionAttrs &a, const TensorSpec &data, const TensorSpec &weight,
                   const TensorSpec &result) {
  Problem p;
  p.dtype = data.dtype;
  p.last = channels_last(a.layout);
  p.data = channels_in_front(data.shape, p.last);
  p.weight = channels_in_front(weight.shape, p.last);
  p.result = channels_in_front(result.shape, p.last);
  p.bias = {a.num_filter};
  const auto plain = [&](const Dims &dims) {
    return p.last ? dnn::channels_last(dims, p.dtype) : row_major(dims, p.dtype);
  };
  p.plain_data = plain(p.data);
  p.plain_result = plain(p.result);
  p.plain_weight = plain(p.weight);
  if (a.num_group > 1) {
    p.weight[0] /= a.num_group;
    p.weight.insert(p.weight.begin(), a.num_group);
    Dims axes(p.weight.size());
    for (size_t i = 0; i < axes.size(); ++i) axes[i] = int64_t(i);
    if (p.last) std::rotate(axes.begin() + 2, axes.begin() + 3, axes.end());
    p.plain_weight = ordered(p.weight, p.dtype, axes);
  }
  p.stride.assign(a.stride.begin(), a.stride.end());
  p.pad.assign(a.pad.begin(), a.pad.end());
  for (int64_t d : a.dilate) p.dilate.push_back(d - 1);
  return p;
}

using ForwardDesc = dnnl::convolution_forward::primitive_desc;

std::optional<ForwardDesc> forward_of(const Problem &p, algorithm alg, const std::pair<Desc, Desc> &layouts,
                                      bool has_bias, bool is_train, const primitive_attr &attr) {
  const Desc weight = any_of(p.weight, p.dtype);
  const Desc bias = has_bias ? row_major(p.bias, p.dtype) : Desc();
  return attempt([&] {
    return forward_desc<dnnl::convolution_forward>(
        engine(), attr, is_train ? prop_kind::forward_training : prop_kind::forward_inference, alg, layouts.first,
        weight, bias, layouts.second, p.stride, p.dilate, p.pad, p.pad);
  });
}

// An implementation by matrix products over columns of the image. With channels last and few channels, it adds wrong
// elements of a binary post-operation's tensor (oneDNN 2.6).
bool is_by_gemm(const ForwardDesc &desc) { return std::strstr(desc.impl_info_str(), "gemm") != nullptr; }

bool is_blocked(const Desc &desc) { return !blocking_of(desc).inner_blocks.empty() && !is_padded(desc); }

// Layouts of data and result to try, best first. Activations must not be padded: multiples of oneDNN's block of
// channels use its blocked layout, in training and in inference alike; other channel counts, and data that already
// lie channels-last, use channels-last.
std::vector<std::pair<Desc, Desc>> candidates(const Problem &p, const TensorSpec &data) {
  if (p.last) return {{p.plain_data, p.plain_result}};
  const Desc lies = data.layout ? desc_of(data) : p.plain_data;
  const Desc any_data = any_of(p.data, p.dtype), any_result = any_of(p.result, p.dtype);
  std::vector<std::pair<Desc, Desc>> list;
  if (p.result[1] % 16 == 0 && !is_channels_last(lies)) {
    const auto liked = forward_of(p, algorithm::convolution_direct, {any_data, any_result}, /* has_bias */ false,
                                  /* is_train */ true, attributes());
    if (liked && is_blocked(liked->dst_desc())) {
      if (p.data[1] <= 4) list.push_back({lies, liked->dst_desc()});  // read images row-major, as they arrive
      if (is_blocked(liked->src_desc())) list.push_back({liked->src_desc(), liked->dst_desc()});
    }
  }
  list.push_back({dnn::channels_last(p.data, p.dtype), dnn::channels_last(p.result, p.dtype)});
  list.push_back({any_data, any_result});
  list.push_back({p.plain_data, p.plain_result});
  return list;
}

// Whether to use Winograd's method: tiles of 4 x 4 results from 36 products per channel in place of 144. Measured
// with oneDNN 2.6 on AVX-512, it takes half the time of a direct 3 x 3 convolution with 64 channels, 0.6 with 32, and
// no less with 16. Where few tiles share the transformed weights, which are four times as large, a step takes 0.95,
// while ResNet-50's first answer to one image takes a tenth longer and 16 MB more. Its rounding errors are some ten
// times those of the direct method, about 1e-6 of the largest result.
bool suits_winograd(const Problem &p) {
  if (p.data.size() != 4 || p.weight.size() != 4 || p.last) return false;
  const int64_t in = p.data[1], out = p.result[1];
  const int64_t tiles = p.result[0] * ((p.result[2] + 3) / 4) * ((p.result[3] + 3) / 4);
  return p.dtype == Dtype::kFloat32 && p.weight[2] == 3 && p.weight[3] == 3 && p.stride == Dims{1, 1} &&
         p.dilate == Dims{0, 0} && in % 16 == 0 && out % 16 == 0 && in * out >= 1024 && tiles >= 64;
}

struct Choice {
  ForwardDesc desc;
  algorithm alg;
};

// The first candidate with an optimised implementation and no padding in its activations; else the last one.
std::optional<Choice> choose(const Problem &p, const TensorSpec &data, bool has_bias, bool is_train) {
  std::optional<Choice> found;
  for (const auto &layouts : candidates(p, data)) {
    const algorithm direct = algorithm::convolution_direct;
    const auto pd = forward_of(p, direct, layouts, has_bias, is_train, attributes());
    if (!pd || is_padded(pd->src_desc()) || is_padded(pd->dst_desc())) continue;
    if (is_reference(*pd) && p.dtype != Dtype::kFloat32) continue;
    found = Choice{*pd, direct};
    if (!is_reference(*pd)) break;
  }
  if (found && suits_winograd(p)) {
    const algorithm winograd = algorithm::convolution_winograd;
    const auto pd =
        forward_of(p, winograd, {found->desc.src_desc(), found->desc.dst_desc()}, has_bias, is_train, attributes());
    if (pd && !is_reference(*pd)) found = Choice{*pd, winograd};
  }
  return found;
}

class ConvolutionForward final : public Kernel {
 public:
  ConvolutionForward(StepSpec &spec, const Problem &p, const Choice &chosen, int num_threads)
      : choice_(chosen),
        dtype_(p.dtype),
        num_threads_(num_threads),
        first_extra_(spec.attrs_as<ConvolutionAttrs>().no_bias ? 2 : 3) {
    const bool has_bias = first_extra_ == 3;
    std::vector<DnnlArg> operands;
    if (!spec.post.empty() && !fuse(spec, p, operands)) {
      operands.clear();
      post_ = spec.post;
    }
    const ForwardDesc &desc = choice_.desc;
    operands.push_back({DNNL_ARG_SRC, desc.src_desc(), BufferRef::input(0)});
    operands.push_back({DNNL_ARG_WEIGHTS, desc.weights_desc(), BufferRef::input(1)});
    if (has_bias) operands.push_back({DNNL_ARG_BIAS, desc.bias_desc(), BufferRef::input(2)});
    operands.push_back({DNNL_ARG_DST, desc.dst_desc(), BufferRef::output(0)});
    call_ = DnnlCall(desc, name_of(spec), std::move(operands), spec);
    spec.inputs[0].layout = layout_of(desc.src_desc(), p.plain_data);
    spec.inputs[1].layout = layout_of(desc.weights_desc(), p.plain_weight);
    spec.outputs[0].layout = layout_of(desc.dst_desc(), p.plain_result);
    result_bytes_ = desc.dst_desc().get_size();
  }

  void run(const Args &args, const Lane &lane) const override {
    const ThreadsScope threads(num_threads_);
    const char *const addend = adds_to_result_ ? args.in<char>(first_extra_) : nullptr;
    char *const result = args.out<char>(0);
    if (addend && addend != result) {
      parallel_for(lane, int64_t(result_bytes_), 1 << 16, [=](int64_t begin, int64_t end) {
        std::memcpy(result + begin, addend + begin, size_t(end - begin));
      });
    }
    call_.run(args);
    if (post_.empty()) return;
    apply_post_ops(post_, dtype_, result, int64_t(result_bytes_ / dtype_size(dtype_)), args, first_extra_, lane);
  }
  const Choice &choice() const { return choice_; }

 private:
  // Fuses the post-operations into the primitive where it computes them right. A sum reads its addend in place or,
  // where the implementation can only add to the destination, from the destination.
  bool fuse(StepSpec &spec, const Problem &p, std::vector<DnnlArg> &operands) {
    const Desc src = choice_.desc.src_desc(), dst = choice_.desc.dst_desc();
    const auto attempt_with = [&](const dnnl::post_ops &post) {
      auto pd = forward_of(p, choice_.alg, {src, dst}, first_extra_ == 3, spec.is_train, attributes(post));
      if (!pd || is_reference(*pd) || is_by_gemm(*pd)) return false;
      choice_.desc = *pd;
      return true;
    };
    if (attempt_with(post_ops_of(spec, size_t(first_extra_), dst, p.plain_result, operands))) return true;
    const auto is_sum = [](const PostOp &op) { return op.kind == kSum; };
    if (!is_sum(spec.post[0]) || std::any_of(spec.post.begin() + 1, spec.post.end(), is_sum)) return false;
    dnnl::post_ops post;
    post.append_sum(1.0f);
    for (size_t i = 1; i < spec.post.size(); ++i) append_activation(post, spec.post[i]);
    operands.clear();
    adds_to_result_ = attempt_with(post);
    if (adds_to_result_) spec.inplace.emplace_back(first_extra_, 0);
    return adds_to_result_;
  }

  Choice choice_;
  const Dtype dtype_;
  const int num_threads_, first_extra_;
  std::vector<PostOp> post_;  // post-operations that oneDNN cannot fuse
  bool adds_to_result_ = false;
  size_t result_bytes_ = 0;
  DnnlCall call_;
};

class ConvolutionBackward final : public Kernel {
 public:
  using DataDesc = dnnl::convolution_backward_data::primitive_desc;
  using WeightsDesc = dnnl::convolution_backward_weights::primitive_desc;

  // oneDNN or, where it has no implementation, loops of our own compute each gradient.
  ConvolutionBackward(StepSpec &spec, const Problem &p, const ForwardDesc &hint, const std::optional<DataDesc> &data,
                      const std::optional<WeightsDesc> &weights, std::unique_ptr<const GroupedGradients> own,
                      int num_threads)
      : num_threads_(num_threads), wanted_(spec.wanted), own_(std::move(own)) {
    wanted_.resize(3);
    const bool by_data = wanted_[0], by_weights = wanted_[1] || wanted_[2];
    spec.unread = unread_by_linear(by_weights, by_data);
    const Desc head = hint.dst_desc(), src = hint.src_desc();
    size_t for_data = 0;
    spec.inputs[0].layout = layout_of(head, p.plain_result);
    if (by_weights) spec.inputs[1].layout = layout_of(src, p.plain_data);
    if (by_data && !data) {
      spec.inputs[2].layout = nullptr;
      spec.outputs[0].layout = layout_of(src, p.plain_data);
    }
    if (data) {
      const Desc grad = data->diff_src_desc();
      const bool padded = is_padded(grad);
      const BufferRef place =
          padded ? BufferRef::scratch(book(spec.scratch_bytes, grad.get_size())) : BufferRef::output(0);
      const Desc read = data->diff_dst_desc();
      BufferRef from = BufferRef::input(0);
      if (read != head) {
        from = BufferRef::scratch(book(spec.scratch_bytes, read.get_size()));
        const dnnl::reorder::primitive_desc reorder(engine(), head, engine(), read, attributes());
        turn_ = DnnlCall(reorder, name_of(spec),
                         {{DNNL_ARG_FROM, head, BufferRef::input(0)}, {DNNL_ARG_TO, read, from}}, spec);
      }
      by_data_ = DnnlCall(*data, name_of(spec),
                          {{DNNL_ARG_DIFF_DST, read, from},
                           {DNNL_ARG_WEIGHTS, data->weights_desc(), BufferRef::input(2)},
                           {DNNL_ARG_DIFF_SRC, grad, place}},
                          spec);
      if (padded) {
        const dnnl::reorder::primitive_desc reorder(engine(), grad, engine(), p.plain_data, attributes());
        strip_ = DnnlCall(reorder, name_of(spec),
                          {{DNNL_ARG_FROM, grad, place}, {DNNL_ARG_TO, p.plain_data, BufferRef::output(0)}}, spec);
      }
      for_data = spec.scratch_bytes;
      spec.inputs[2].layout = layout_of(data->weights_desc(), p.plain_weight);
      spec.outputs[0].layout = padded ? nullptr : layout_of(grad, p.plain_data);
    }
    if (!weights) {
      if (wanted_[1]) spec.outputs[1].layout = nullptr;
      return;
    }
    spec.scratch_bytes = 0;  // the two passes use the same memory in turn
    const Desc grad = weights->diff_weights_desc();
    const BufferRef grad_place =
        spec.wanted[1] ? BufferRef::output(1) : BufferRef::scratch(book(spec.scratch_bytes, grad.get_size()));
    if (spec.wanted[1]) {
      // The plan reorders it into the memory of the weight, which has been read by then.
      spec.outputs[1].layout = layout_of(grad, p.plain_weight);
      if (data) spec.inplace.emplace_back(2, 1);
    }
    std::vector<DnnlArg> operands = {{DNNL_ARG_DIFF_DST, head, BufferRef::input(0)},
                                     {DNNL_ARG_SRC, src, BufferRef::input(1)},
                                     {DNNL_ARG_DIFF_WEIGHTS, grad, grad_place}};
    if (!is_empty(weights->diff_bias_desc())) {
      const BufferRef bias = spec.wanted[2]
                                 ? BufferRef::output(2)
                                 : BufferRef::scratch(book(spec.scratch_bytes, weights->diff_bias_desc().get_size()));
      operands.push_back({DNNL_ARG_DIFF_BIAS, weights->diff_bias_desc(), bias});
    }
    by_weights_ = DnnlCall(*weights, name_of(spec), std::move(operands), spec);
    spec.scratch_bytes = std::max(spec.scratch_bytes, for_data);
  }

  void run(const Args &args, const Lane &lane) const override {
    const ThreadsScope threads(num_threads_);
    const void *const head = args.in<void>(0);
    if (turn_) turn_.run(args);
    if (by_data_) by_data_.run(args);
    if (strip_) strip_.run(args);
    if (wanted_[0] && !by_data_) own_->of_data(head, args.in<void>(2), args.out<void>(0), lane);
    if (by_weights_) return by_weights_.run(args);
    if (wanted_[1]) own_->of_weight(head, args.in<void>(1), args.out<void>(1), lane);
    if (wanted_[2]) own_->of_bias(/* of_data */ false, head, args.out<void>(2), lane);
  }

 private:
  const int num_threads_;
  std::vector<bool> wanted_;
  const std::unique_ptr<const GroupedGradients> own_;
  DnnlCall turn_, by_data_, strip_, by_weights_;
};

ConvolutionSizes sizes_of(const ConvolutionAttrs &a, const TensorSpec &data, const TensorSpec &weight,
                          const TensorSpec &result) {
  return convolution_sizes(data.shape, weight.shape, result.shape, a.stride, a.dilate, a.pad, a.num_group,
                           channels_last(a.layout));
}
// The sizes of a backward step. Inputs: head gradient, data, weight.
ConvolutionSizes sizes_of(const StepSpec &spec) {
  return sizes_of(spec.attrs_as<ConvolutionAttrs>(), spec.inputs[1], spec.inputs[2], spec.inputs[0]);
}

// Windows of 5 x 5 by Winograd's method, in the layouts of data and result that oneDNN prefers. Measured against its
// direct convolutions on AVX-512, it takes a third to a half of the time from 16 channels on, except where too few
// tiles share the transformed weights.
std::unique_ptr<Winograd> winograd_of(const Problem &p, const ConvolutionSizes &sizes, const ForwardDesc &layouts) {
  if (p.data.size() != 4 || p.weight.size() != 4 || p.dtype != Dtype::kFloat32) return nullptr;
  const int64_t pairs = p.data[1] * p.result[1];
  const int64_t tiles = p.result[0] * ((p.result[2] + 3) / 4) * ((p.result[3] + 3) / 4);
  if (pairs < 256 || tiles < std::max<int64_t>(32, pairs / 256)) return nullptr;
  return Winograd::make(sizes, channel_runs(layouts.src_desc()), channel_runs(layouts.dst_desc()));
}

std::unique_ptr<ImageConvolution> image_convolution_of(const Problem &p, const ConvolutionSizes &sizes,
                                                       const ForwardDesc &layouts) {
  if (p.dtype != Dtype::kFloat32) return nullptr;
  return ImageConvolution::make(sizes, channel_runs(layouts.src_desc()), channel_runs(layouts.dst_desc()));
}

Lane narrowed(Lane lane, int num_threads) {
  lane.num_threads = std::min(lane.num_threads, num_threads);
  return lane;
}

// A forward pass by loops of our own (class Way), in the layouts of data and result that oneDNN prefers.
template <typename Way>
class OwnForward final : public Kernel {
 public:
  OwnForward(StepSpec &spec, const Problem &p, const ForwardDesc &layouts, std::unique_ptr<const Way> way,
             int num_threads)
      : way_(std::move(way)),
        has_bias_(!spec.attrs_as<ConvolutionAttrs>().no_bias),
        num_threads_(num_threads),
        count_(spec.outputs[0].shape.size()) {
    spec.inputs[0].layout = layout_of(layouts.src_desc(), p.plain_data);
    spec.inputs[1].layout = nullptr;
    spec.outputs[0].layout = layout_of(layouts.dst_desc(), p.plain_result);
    int extra = has_bias_ ? 3 : 2;
    for (const PostOp &op : spec.post) {
      followers_.push_back({{op}, extra, curve_of(op, spec)});
      if (op.kind == kSum) spec.inputs[size_t(extra++)].layout = spec.outputs[0].layout;
    }
    scratch_at_ = book(spec.scratch_bytes, way_->scratch_bytes(num_threads));
  }
  void run(const Args &args, const Lane &lane) const override {
    const ThreadsScope threads(num_threads_);
    float *const result = args.out<float>(0);
    way_->forward(args.in<float>(0), args.in<float>(1), has_bias_ ? args.in<float>(2) : nullptr, result,
                  static_cast<char *>(args.scratch) + scratch_at_, narrowed(lane, num_threads_));
    for (const Follower &one : followers_) {
      if (one.curve) {
        one.curve.run(args);
      } else {
        apply_post_ops(one.plain, Dtype::kFloat32, result, count_, args, one.extra, lane);
      }
    }
  }

 private:
  struct Follower {
    std::vector<PostOp> plain;
    int extra;  // the input that a sum adds
    DnnlCall curve;
  };

  // Makes the call that the layer makes as a step of its own, for the same bits. Empty for layers that can be
  // computed in one way only.
  DnnlCall curve_of(const PostOp &op, StepSpec &spec) const {
    if (op.kind != kActivation || op.activation == ActivationAttrs::kRelu) return DnnlCall();
    const Desc flat = row_major({count_}, Dtype::kFloat32);
    const Eltwise eltwise = eltwise_of(op.activation);
    const auto pd =
        eltwise_desc(engine(), attributes(), prop_kind::forward_inference, eltwise.forward, flat, eltwise.alpha);
    return DnnlCall(pd, name_of(spec),
                    {{DNNL_ARG_SRC, flat, BufferRef::output(0)}, {DNNL_ARG_DST, flat, BufferRef::output(0)}}, spec);
  }

  const std::unique_ptr<const Way> way_;
  const bool has_bias_;
  const int num_threads_;
  const int64_t count_;
  std::vector<Follower> followers_;
  size_t scratch_at_ = 0;
};

class WinogradBackward final : public Kernel {
 public:
  WinogradBackward(StepSpec &spec, const Problem &p, const ForwardDesc &layouts, std::unique_ptr<const Winograd> way,
                   int num_threads)
      : way_(std::move(way)), wanted_(spec.wanted), num_threads_(num_threads) {
    wanted_.resize(3);
    spec.unread = unread_by_linear(wanted_[1], wanted_[0]);
    spec.inputs[0].layout = layout_of(layouts.dst_desc(), p.plain_result);
    spec.inputs[1].layout = layout_of(layouts.src_desc(), p.plain_data);
    spec.inputs[2].layout = nullptr;
    spec.outputs[0].layout = spec.inputs[1].layout;
    spec.scratch_bytes = way_->scratch_bytes(num_threads, /* for_sums */ wanted_[1] || wanted_[2]);
  }
  void run(const Args &args, const Lane &lane) const override {
    const auto gradient = [&](int i) { return wanted_[size_t(i)] ? args.out<float>(i) : nullptr; };
    way_->backward(args.in<float>(0), args.in<float>(1), args.in<float>(2), gradient(0), gradient(1), gradient(2),
                   args.scratch, narrowed(lane, num_threads_));
  }

 private:
  const std::unique_ptr<const Winograd> way_;
  std::vector<bool> wanted_;
  const int num_threads_;
};

class ConvolutionByColumns final : public Kernel {
 public:
  explicit ConvolutionByColumns(StepSpec &spec)
      : post_(spec.post),
        count_(spec.outputs[0].shape.size()),
        has_bias_(!spec.attrs_as<ConvolutionAttrs>().no_bias),
        way_(sizes_of(spec.attrs_as<ConvolutionAttrs>(), spec.inputs[0], spec.inputs[1], spec.outputs[0]),
             spec.inputs[0].dtype, spec.num_threads) {
    spec.scratch_bytes = way_.forward_scratch_bytes();
  }
  void run(const Args &args, const Lane &lane) const override {
    way_.forward(args.in<void>(0), args.in<void>(1), has_bias_ ? args.in<void>(2) : nullptr, args.out<void>(0),
                 args.scratch, lane);
    apply_post_ops(post_, way_.dtype(), args.out<void>(0), count_, args, has_bias_ ? 3 : 2, lane);
  }

 private:
  const std::vector<PostOp> post_;
  const int64_t count_;
  const bool has_bias_;
  const PlainConvolution way_;
};

class ConvolutionByColumnsBackward final : public Kernel {
 public:
  explicit ConvolutionByColumnsBackward(StepSpec &spec)
      : wanted_(spec.wanted), way_(sizes_of(spec), spec.inputs[0].dtype, spec.num_threads) {
    spec.unread = unread_by_linear(wanted_[1], wanted_[0]);
    if (wanted_[0]) spec.scratch_bytes = way_.data_scratch_bytes();
    if (wanted_[1]) spec.scratch_bytes = std::max(spec.scratch_bytes, way_.weight_scratch_bytes());
  }
  void run(const Args &args, const Lane &lane) const override {
    const void *const head = args.in<void>(0);
    if (wanted_[0]) way_.backward_data(head, args.in<void>(2), nullptr, args.out<void>(0), args.scratch, lane);
    if (wanted_[1]) way_.backward_weight(head, args.in<void>(1), args.out<void>(1), args.scratch, lane);
    if (wanted_.size() > 2 && wanted_[2]) {
      sum_channels(way_.sizes(), way_.dtype(), false, head, args.out<void>(2), lane);
    }
  }

 private:
  const std::vector<bool> wanted_;
  const PlainConvolution way_;
};

std::string refuses_backward(const StepSpec &spec) {
  const bool by_data_alone = !spec.wanted[1] && !(spec.wanted.size() > 2 && spec.wanted[2]);
  const std::string refusal = refuses_layer(spec);
  if (!refusal.empty() || by_data_alone) return refusal;
  return lacks_weight_gradient(sizes_of(spec), spec.inputs[1].shape.rank() - 2, spec.inputs[0].dtype);
}

std::unique_ptr<Kernel> make_forward(StepSpec &spec) {
  const auto &a = spec.attrs_as<ConvolutionAttrs>();
  const Problem p = problem_of(a, spec.inputs[0], spec.inputs[1], spec.outputs[0]);
  const int num_threads = threads_for_work(spec, p.operations());
  const ThreadsScope threads(num_threads);
  const auto chosen = choose(p, spec.inputs[0], !a.no_bias, spec.is_train);
  if (!chosen) return nullptr;
  const ConvolutionSizes sizes = sizes_of(a, spec.inputs[0], spec.inputs[1], spec.outputs[0]);
  if (auto way = winograd_of(p, sizes, chosen->desc)) {
    return std::make_unique<OwnForward<Winograd>>(spec, p, chosen->desc, std::move(way), num_threads);
  }
  if (auto way = image_convolution_of(p, sizes, chosen->desc)) {
    return std::make_unique<OwnForward<ImageConvolution>>(spec, p, chosen->desc, std::move(way), num_threads);
  }
  return std::make_unique<ConvolutionForward>(spec, p, *chosen, num_threads);
}

std::unique_ptr<Kernel> make_backward(StepSpec &spec) {
  const auto &a = spec.attrs_as<ConvolutionAttrs>();
  const Problem p = problem_of(a, spec.inputs[1], spec.inputs[2], spec.inputs[0]);
  const int num_threads = threads_for_work(spec, p.operations());
  const ThreadsScope threads(num_threads);
  const auto *forward = dynamic_cast<const ConvolutionForward *>(spec.forward);
  const auto choice =
      forward ? std::optional<Choice>(forward->choice()) : choose(p, spec.inputs[1], !a.no_bias, /* is_train */ true);
  if (!choice) return nullptr;

  const ForwardDesc &hint = choice->desc;
  if (auto way = winograd_of(p, sizes_of(spec), hint)) {
    return std::make_unique<WinogradBackward>(spec, p, hint, std::move(way), num_threads);
  }
  const Desc src = hint.src_desc(), head = hint.dst_desc(), any_weight = any_of(p.weight, p.dtype);
  const bool by_data = spec.wanted[0];
  const bool by_weights = spec.wanted[1] || (spec.wanted.size() > 2 && spec.wanted[2]);
  std::optional<ConvolutionBackward::DataDesc> data;
  std::optional<ConvolutionBackward::WeightsDesc> weights;
  const auto data_gradient = [&](algorithm alg, const Desc &grad, const Desc &from) {
    return attempt([&] {
      return backward_desc<dnnl::convolution_backward_data>(engine(), attributes(), hint, alg, grad, any_weight, from,
                                                            p.stride, p.dilate, p.pad, p.pad);
    });
  };
  // Uses the method of the forward pass, or else the direct one.
  for (const algorithm alg : {choice->alg, algorithm::convolution_direct}) {
    if (by_data && !data && !p.has_odd_sums()) data = data_gradient(alg, src, head);
    if (by_weights && !weights) {
      const Desc bias = a.no_bias ? Desc() : row_major(p.bias, p.dtype);
      weights = attempt([&] {
        return backward_desc<dnnl::convolution_backward_weights>(engine(), attributes(), hint, alg, src, any_weight,
                                                                 bias, head, p.stride, p.dilate, p.pad, p.pad);
      });
    }
  }
  if (by_data && p.has_odd_sums() && !p.last) {
    data = data_gradient(algorithm::convolution_direct, any_of(p.data, p.dtype), any_of(p.result, p.dtype));
    if (data && !is_padded(data->diff_dst_desc())) data.reset();
  }
  auto own = GroupedGradients::make(sizes_of(spec), p.dtype, src, head);
  if (own && weights && own->suits(*weights)) weights.reset();
  if (own && own->has_data_gradient() && data && own->suits(*data)) data.reset();
  const auto is_slow = [&] { return !data ? !own || !own->has_data_gradient() : is_reference(*data); };
  // Images are read row-major, but only the reference implementation writes their gradient so.
  if (by_data && !p.last && !p.has_odd_sums() && is_slow()) {
    const auto liked = data_gradient(algorithm::convolution_direct, any_of(p.data, p.dtype), head);
    if (liked && !is_reference(*liked)) data = liked;
  }
  // Large windows over few channels only have an implementation by matrix products, on row-major arrays.
  if (by_data && data && is_slow()) {
    const auto rows = forward_of(p, algorithm::convolution_direct, {p.plain_data, p.plain_result}, !a.no_bias,
                                 /* is_train */ true, attributes());
    const auto plain = !rows ? std::nullopt : attempt([&] {
      return backward_desc<dnnl::convolution_backward_data>(engine(), attributes(), *rows,
                                                            algorithm::convolution_direct, p.plain_data, any_weight,
                                                            p.plain_result, p.stride, p.dilate, p.pad, p.pad);
    });
    if (plain && !is_reference(*plain)) data = plain;
  }
  if ((by_data && !data && !(own && own->has_data_gradient())) || (by_weights && !weights && !own)) return nullptr;
  return std::make_unique<ConvolutionBackward>(spec, p, hint, data, weights, std::move(own), num_threads);
}

COHORT_KERNEL_BY(cpu, Convolution, make_forward)
    .named("onednn")
    .dtypes(kLayerTypes)
    .when(refuses_layer)
    .fuses({kActivation, kClip, kSum})
    .any_layout();
COHORT_KERNEL_BY(cpu, Convolution, make_in_float32)
    .named("float32", /* tuned */ false)
    .dtypes(kNarrowTypes)
    .fuses({kActivation, kClip, kSum});
COHORT_KERNEL(cpu, Convolution, ConvolutionByColumns).dtypes(kWideFloatTypes).fuses({kActivation, kClip, kSum});
COHORT_KERNEL_BY(cpu, _backward_Convolution, make_backward)
    .named("onednn")
    .dtypes(kLayerTypes)
    .when(refuses_backward)
    .any_layout();
COHORT_KERNEL_BY(cpu, _backward_Convolution, make_in_float32).named("float32", /* tuned */ false).dtypes(kNarrowTypes);
COHORT_KERNEL(cpu, _backward_Convolution, ConvolutionByColumnsBackward).dtypes(kWideFloatTypes);

}  // namespace
}  // namespace cohort
