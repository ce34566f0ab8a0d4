// SPDX-License-Identifier: Apache-2.0
#include "cuda/op/finish_sums.hpp"

#include "cuda/op/compute_type.cuh"
#include "cuda/op/divisor.cuh"
#include "op/activation.hpp"

namespace cohort {
namespace {

// The channel of an element: arrays are [..][channels][inner].
struct ChannelOf {
  Divisor inner, channels;
  int64_t wide_inner, wide_channels, is_wide;  // is_wide: indices do not fit 32 bits

  ChannelOf(int64_t each, int64_t many, int64_t elements)
      : wide_inner(each), wide_channels(many), is_wide(elements > INT32_MAX) {
    if (!is_wide) inner = Divisor(each), channels = Divisor(many);
  }
  __device__ int64_t operator()(int64_t i) const {
    if (is_wide) return i / wide_inner % wide_channels;
    uint32_t channel = inner.quotient(uint32_t(i));
    return channels.split(&channel);
  }
};

// S: type of the sums. T: type of the result, the addend and the bias.
template <typename S, typename T>
struct FinishElements {
  using C = ComputeOf<T>;

  const S *sums;
  const T *addend, *bias;  // or null
  T *to;
  int64_t relu;
  ChannelOf channel_of;

  __device__ int64_t channel(int64_t i) const { return bias ? channel_of(i) : 0; }
  __device__ void finish(T *result, C sum, T added, int64_t channel) const {
    C y = addend ? sum + to_compute(added) : sum;
    if (bias) y += to_compute(bias[channel]);
    *result = from_compute<T>(relu && y < C(0) ? C(0) : y);  // NaN stays
  }
  __device__ void operator()(int64_t i) const {
    finish(to + i, to_compute(sums[i]), addend ? addend[i] : T(), channel(i));
  }
};

// One vector of the result per call. Its elements are of one channel or, with channels last, of channels in a row.
template <typename S, typename T, bool kLast>
struct FinishVectors {
  static constexpr int kSize = Vector<T>::kSize, kOfSums = Vector<S>::kSize;
  FinishElements<S, T> elements;

  __device__ void operator()(int64_t unit) const {
    const int64_t i = unit * kSize, channel = elements.channel(i);
    Vector<S> sums[kSize / kOfSums];
    Vector<T> addend{}, made;
    for (int v = 0; v < kSize / kOfSums; ++v) sums[v] = load_vector(elements.sums + i + v * kOfSums);
    if (elements.addend) addend = load_vector(elements.addend + i);
    for (int e = 0; e < kSize; ++e) {
      elements.finish(&made.at[e], to_compute(sums[e / kOfSums].at[e % kOfSums]), addend.at[e],
                      kLast ? channel + e : channel);
    }
    store_vector(elements.to + i, made);
  }
};

template <typename S, typename T>
void finish(const Lane &lane, const FinishArrays &a) {
  constexpr int64_t kSize = Vector<T>::kSize;
  const FinishElements<S, T> elements{static_cast<const S *>(a.sums),
                                      static_cast<const T *>(a.addend),
                                      static_cast<const T *>(a.bias),
                                      static_cast<T *>(a.to),
                                      int64_t(a.relu),
                                      ChannelOf(a.inner, a.channels, a.count)};
  const bool last = a.inner == 1;
  const bool whole = a.count % kSize == 0 && (!a.bias || (last ? a.channels : a.inner) % kSize == 0);
  if (!whole || !can_be_vectors({a.sums, a.addend, a.to})) return for_each(lane, a.count, elements);
  if (last) return for_each(lane, a.count / kSize, FinishVectors<S, T, true>{elements});
  for_each(lane, a.count / kSize, FinishVectors<S, T, false>{elements});
}

class WithPostOps final : public Kernel {
 public:
  WithPostOps(std::unique_ptr<Kernel> layer, const StepSpec &spec, int addend)
      : layer_(std::move(layer)),
        dtype_(spec.outputs[0].dtype),
        count_(spec.outputs[0].shape.size()),
        end_(spec.post),
        addend_(addend) {}
  bool on_caller() const override { return layer_->on_caller(); }
  bool replays() const override { return layer_->replays(); }
  void run(const Args &args, const Lane &lane) const override {
    layer_->run(args, lane);
    FinishArrays arrays{args.outputs[0], args.outputs[0], dtype_, dtype_, count_};
    if (end_.addend) arrays.addend = args.inputs[addend_];
    arrays.relu = end_.relu;
    finish_sums(lane, arrays);
  }

 private:
  const std::unique_ptr<Kernel> layer_;
  const Dtype dtype_;
  const int64_t count_;
  const LayerEnd end_;
  const int addend_;  // the input, if there is one
};

}  // namespace

void finish_sums(const Lane &lane, const FinishArrays &arrays) {
  if (arrays.count == 0) return;
  const bool rounded = arrays.sums_dtype == arrays.dtype;
  switch (arrays.dtype) {
    case Dtype::kFloat16:
      return rounded ? finish<Float16, Float16>(lane, arrays) : finish<float, Float16>(lane, arrays);
    case Dtype::kBfloat16:
      return rounded ? finish<Bfloat16, Bfloat16>(lane, arrays) : finish<float, Bfloat16>(lane, arrays);
    case Dtype::kFloat64:
      return finish<double, double>(lane, arrays);
    default:
      return finish<float, float>(lane, arrays);
  }
}

LayerEnd::LayerEnd(const std::vector<PostOp> &post) {
  for (const PostOp &op : post) (op.kind == PostOp::Kind::kSum ? addend : relu) = true;
}

std::string refuses_post(const StepSpec &spec, bool has_bias) {
  if (!spec.post.empty() && !has_bias) return "fuses behind a bias alone";
  for (size_t i = 0; i < spec.post.size(); ++i) {
    const PostOp &op = spec.post[i];
    if (op.kind == PostOp::Kind::kSum && i > 0) return "a sum comes first";
    if (op.kind == PostOp::Kind::kActivation && op.activation != ActivationAttrs::kRelu) return "fuses relu alone";
  }
  return "";
}

std::unique_ptr<Kernel> make_with_post_ops(StepSpec &spec, KernelFactory make) {
  if (spec.post.empty()) return make(spec);
  const std::vector<PostOp> post = std::move(spec.post);
  const std::vector<TensorSpec> inputs = spec.inputs;
  const size_t num_inputs = inputs.size() - (LayerEnd(post).addend ? 1 : 0);
  spec.post.clear();
  spec.inputs.resize(num_inputs);
  std::unique_ptr<Kernel> layer = make(spec);
  spec.post = post;
  spec.inputs.insert(spec.inputs.end(), inputs.begin() + ptrdiff_t(num_inputs), inputs.end());
  if (!layer) return nullptr;
  return std::make_unique<WithPostOps>(std::move(layer), spec, int(num_inputs));
}

}  // namespace cohort
