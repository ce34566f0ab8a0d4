// SPDX-License-Identifier: Apache-2.0
// BatchNorm in float32 and bfloat16 by oneDNN, in the layout in which the data lie.
#include <algorithm>
#include <cstring>

#include "cpu/dnnl_kernel.hpp"
#include "cpu/op/batch_norm_passes.hpp"
#include "device/restoring.hpp"

namespace cohort {
namespace {

using namespace batch_norm;
using namespace dnn;

struct Problem {
  Desc data, plain;
  int64_t channels;
  dnnl::normalization_flags flags;
  float eps;
};

Problem problem_of(const StepSpec &spec, const TensorSpec &data) {
  const auto &a = spec.attrs_as<BatchNormAttrs>();
  Problem p;
  const BatchNormExtent e = extent_of(a, data.shape);
  const bool channels_second = normalize_axis(a.axis, data.shape.rank(), "BatchNorm") == 1;
  if (data.layout && channels_second) {
    p.data = desc_of(data);
    p.plain = row_major(dims_of(data.shape), data.dtype);
  } else {
    // Channels that are contiguous are declared as those of one image: oneDNN's loops over pixels are faster than
    // those over samples.
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
    std::vector<DnnlArg> operands = {
        {DNNL_ARG_SRC, p.data, BufferRef::input(0)},
        {DNNL_ARG_SCALE, vector, a.fix_gamma ? BufferRef::own(ones_.data()) : BufferRef::input(1)},
        {DNNL_ARG_SHIFT, vector, BufferRef::input(2)},
        {DNNL_ARG_MEAN, vector, global_ ? BufferRef::input(3) : BufferRef::saved(mean_)},
        {DNNL_ARG_VARIANCE, vector, global_ ? BufferRef::input(4) : BufferRef::saved(variance_)},
        {DNNL_ARG_DST, p.data, BufferRef::output(0)}};
    if (keeps_ && !is_empty(pd.workspace_desc())) {
      workspace_ = book(spec.saved_bytes, pd.workspace_desc().get_size());
      operands.push_back({DNNL_ARG_WORKSPACE, pd.workspace_desc(), BufferRef::saved(workspace_)});
    }
    if (keeps_) make_restoring_call(spec, operands);
    call_ = DnnlCall(pd, name_of(spec), std::move(operands), spec);
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
  BufferRef mean() const { return BufferRef::saved(mean_); }
  BufferRef variance() const { return BufferRef::saved(variance_); }
  BufferRef workspace() const { return BufferRef::saved(workspace_); }

 private:
  // The same call with the saved gamma, beta and statistics. It does not compute the statistics again where an
  // implementation with given ones has the same loops.
  void make_restoring_call(StepSpec &spec, std::vector<DnnlArg> operands) {
    const auto known = attempt([&] {
      return norm_desc<dnnl::batch_normalization_forward>(engine(), attributes(), prop_kind::forward_inference,
                                                          problem_.data, problem_.eps,
                                                          problem_.flags | dnnl::normalization_flags::use_global_stats);
    });
    const bool same_loops = known && std::strcmp(known->impl_info_str(), pd_.impl_info_str()) == 0;
    const size_t bytes = size_t(problem_.channels) * sizeof(float);
    if (ones_.empty()) gamma_ = book(spec.saved_bytes, bytes);
    beta_ = book(spec.saved_bytes, bytes);
    for (DnnlArg &operand : operands) {
      if (operand.arg == DNNL_ARG_SCALE && ones_.empty()) operand.buffer = BufferRef::saved(gamma_);
      if (operand.arg == DNNL_ARG_SHIFT) operand.buffer = BufferRef::saved(beta_);
      if (operand.arg == DNNL_ARG_MEAN) operand.buffer = mean();
      if (operand.arg == DNNL_ARG_VARIANCE) operand.buffer = variance();
    }
    const auto is_workspace = [](const DnnlArg &operand) { return operand.arg == DNNL_ARG_WORKSPACE; };
    if (same_loops) operands.erase(std::remove_if(operands.begin(), operands.end(), is_workspace), operands.end());
    const size_t scratch_bytes = spec.scratch_bytes;  // both calls use it
    restoring_call_ = DnnlCall(same_loops ? *known : pd_, name_of(spec), std::move(operands), spec);
    spec.scratch_bytes = scratch_bytes;
  }

  const Problem problem_;
  const Pd pd_;
  const int num_threads_;
  const bool keeps_, global_;
  std::vector<float> ones_;  // the scale with fix_gamma
  BatchStatistics<float> statistics_;
  size_t mean_ = 0, variance_ = 0, workspace_ = 0, gamma_ = 0, beta_ = 0;
  DnnlCall call_, restoring_call_;
};

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
    const BufferRef scale = a.fix_gamma ? BufferRef::own(ones_.data()) : BufferRef::input(gamma);
    const Desc vector = row_major({p.channels}, Dtype::kFloat32);
    const auto place = [&](int output, size_t bytes) {
      const bool direct = spec.wanted[size_t(output)] && !(output == 1 && a.fix_gamma);
      return direct ? BufferRef::output(output) : BufferRef::scratch(book(spec.scratch_bytes, bytes));
    };
    const size_t vector_bytes = size_t(p.channels) * sizeof(float);
    std::vector<DnnlArg> operands = {{DNNL_ARG_SRC, p.data, BufferRef::input(data)},
                                     {DNNL_ARG_DIFF_DST, p.data, BufferRef::input(0)},
                                     {DNNL_ARG_SCALE, vector, scale},
                                     {DNNL_ARG_MEAN, vector, forward.mean()},
                                     {DNNL_ARG_VARIANCE, vector, forward.variance()},
                                     {DNNL_ARG_DIFF_SRC, p.data, place(0, p.data.get_size())},
                                     {DNNL_ARG_DIFF_SCALE, vector, place(1, vector_bytes)},
                                     {DNNL_ARG_DIFF_SHIFT, vector, place(2, vector_bytes)}};
    if (!kDnnl3)
      operands.push_back({DNNL_ARG_SHIFT, vector, BufferRef::input(gamma)});  // 2.6 counts it, but does not read it
    if (!is_empty(pd.workspace_desc())) {
      operands.push_back({DNNL_ARG_WORKSPACE, pd.workspace_desc(), forward.workspace()});
    }
    call_ = DnnlCall(pd, name_of(spec), std::move(operands), spec);
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
  int fixed_gamma_ = -1;     // the input that is set to 1
  std::vector<float> ones_;  // the scale with fix_gamma
  DnnlCall call_;
};

std::string refuses_layer_or_shared(const StepSpec &spec) {
  const std::string empty = refuses_layer(spec);
  return empty.empty() ? refuses_shared(spec) : empty;
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
  // Channels that fill no block, with a fused relu: our loops are faster than oneDNN's reference loops.
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
  // The plain kernel cannot use what the forward pass saved.
  if (!pd) throw Error(Code::kUnsupported, text(name_of(spec), ": oneDNN has no backward pass"));
  return std::make_unique<BatchNormBackward>(spec, forward, *pd, num_threads);
}

// Asked before the plain loops, which take the same steps.
#define COHORT_BATCH_NORM_ONEDNN(op, forward, backward) \
  COHORT_KERNEL_BY(cpu, op, forward)                    \
      .named("onednn")                                  \
      .dtypes(kLayerTypes)                              \
      .when(refuses_layer_or_shared)                    \
      .fuses({kTrainRelu})                              \
      .any_layout()                                     \
      .preference(1);                                   \
  COHORT_KERNEL_BY(cpu, _backward_##op, backward)       \
      .named("onednn")                                  \
      .dtypes(kLayerTypes)                              \
      .when(refuses_backward)                           \
      .fuses({kTrainRelu})                              \
      .any_layout()                                     \
      .preference(1)

COHORT_BATCH_NORM_ONEDNN(BatchNorm, make_forward, make_backward);
COHORT_BATCH_NORM_ONEDNN(_contrib_SyncBatchNorm, make_forward, make_backward);
COHORT_BATCH_NORM_ONEDNN(_contrib_BatchNormWithReLU, make_with_relu<make_forward>, make_with_relu<make_backward>);

}  // namespace
}  // namespace cohort
