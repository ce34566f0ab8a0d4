// SPDX-License-Identifier: Apache-2.0
// Convolution and Deconvolution by cuDNN, if it is installed and has an engine that gives the same result each time.
// Deconvolution is the data gradient of a convolution, and its own gradient is a convolution.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "cuda/cuda_layout.hpp"
#include "cuda/op/channel_sums.cuh"
#include "cuda/op/convolution_plan.hpp"
#include "cuda/op/filter_gradient.hpp"
#include "cuda/op/finish_sums.hpp"
#include "device/kernel_table.hpp"
#include "op/convolution.hpp"
#include "op/deconvolution.hpp"

namespace cohort {
namespace {

// ---- plans: one for all equal problems of a device

// The handle of a device, kept until the process ends.
struct DeviceHandle {
  std::mutex mutex;  // held while cuDNN uses the handle, which has one stream at a time, and one thread
  CudnnHandle *handle = nullptr;
};

class SharedPlan {
 public:
  // For the current device. If cuDNN has no plan, there is none afterwards, and *why gives the reason.
  SharedPlan(DeviceHandle *on, const Cudnn &cudnn, const ConvolutionProblem &problem, std::string *why)
      : device_(CurrentDevice::id()), on_(*on), cudnn_(cudnn) {
    const std::lock_guard<std::mutex> alone(launch_order());  // it may load code
    const std::lock_guard<std::mutex> held(on_.mutex);
    if (!on_.handle) {
      CudnnHandle *made = nullptr;
      const int status = cudnn_.create(&made);
      if (is_cudnn_refusal(status)) {
        *why = cudnn_error(cudnn_, status, "cudnnCreate");
        return;
      }
      check_cudnn(cudnn_, status, "cudnnCreate");
      on_.handle = made;
    }
    set_stream(nullptr);  // that of the last run may be no more
    plan_ = ConvolutionPlan::find(cudnn_, problem, {on_.handle, nullptr}, why);
  }
  // Destroying a plan unloads code from the current device, and may wait for that device.
  ~SharedPlan() {
    if (!plan_) return;
    const CurrentDevice current(device_, std::nothrow);
    const std::lock_guard<std::mutex> alone(launch_order());
    const std::lock_guard<std::mutex> held(on_.mutex);
    plan_.reset();
  }
  SharedPlan(const SharedPlan &) = delete;
  SharedPlan &operator=(const SharedPlan &) = delete;

  bool is_there() const { return plan_ != nullptr; }
  size_t workspace_bytes() const { return plan_->workspace_bytes(); }
  void run(const ConvolutionArrays &arrays, void *workspace, void *stream) const {
    use_code(&used_, [&] {
      const std::lock_guard<std::mutex> held(on_.mutex);
      set_stream(stream);
      plan_->run(on_.handle, arrays, workspace);
    });
  }

 private:
  void set_stream(void *stream) const {
    check_cudnn(cudnn_, cudnn_.set_stream(on_.handle, static_cast<cudaStream_t>(stream)), "cudnnSetStream");
  }
  const int device_;
  DeviceHandle &on_;
  const Cudnn &cudnn_;
  std::unique_ptr<ConvolutionPlan> plan_;
  mutable std::atomic<bool> used_{false};
};

std::vector<int64_t> key_of(const ConvolutionProblem &p) {
  std::vector<int64_t> key(5 + sizeof p.sizes / sizeof(int64_t));
  key[0] = CurrentDevice::id();
  const ConvolutionEpilogue &e = p.epilogue;
  const int64_t epilogue = int64_t(e.addend) << 2 | int64_t(e.bias) << 1 | int64_t(e.relu);
  key[1] = int64_t(p.of) << 32 | int64_t(p.dtype) << 16 | epilogue << 1 | int64_t(p.tf32);
  key[2] = p.num_axes, key[3] = int64_t(p.alignment), key[4] = int64_t(p.most_workspace);
  static_assert(sizeof p.sizes % sizeof(int64_t) == 0);
  std::memcpy(key.data() + 5, &p.sizes, sizeof p.sizes);
  return key;
}

// The plan for the current device. Null, and *why, if cuDNN has none.
std::shared_ptr<const SharedPlan> plan_of(const Cudnn &cudnn, const ConvolutionProblem &problem, std::string *why) {
  struct Known {
    std::mutex mutex;  // guards the others
    std::map<int, DeviceHandle> handles;
    std::map<std::vector<int64_t>, std::weak_ptr<const SharedPlan>> plans;
  };
  static auto *const known = new Known;
  const std::lock_guard<std::mutex> lock(known->mutex);
  const std::vector<int64_t> key = key_of(problem);
  const auto place = known->plans.find(key);
  if (place != known->plans.end()) {
    if (auto plan = place->second.lock()) return plan;
  }
  for (auto at = known->plans.begin(); at != known->plans.end();) {
    at = at->second.expired() ? known->plans.erase(at) : std::next(at);
  }
  auto plan = std::make_shared<const SharedPlan>(&known->handles[CurrentDevice::id()], cudnn, problem, why);
  if (!plan->is_there()) return nullptr;
  known->plans[key] = plan;
  return plan;
}

// ---- one convolution, or one of its gradients

constexpr size_t kAlignment = 16;  // of whole arrays, at least; views may begin at any element
constexpr size_t kWorkspaceAlignment = 256;

// The workspace limit: room for a copy of each array in another layout, and some more.
size_t most_workspace(const ConvolutionSizes &s, Dtype dtype) {
  using convolution::volume;
  const int64_t elements = s.batch * s.groups * (s.in_channels * volume(s.in) + s.out_channels * volume(s.out)) +
                           s.groups * s.out_channels * s.in_channels * volume(s.kernel);
  return (size_t(32) << 20) + size_t(elements) * dtype_size(dtype);
}

class CudnnConvolution {
 public:
  // If cuDNN has no plan, there is none afterwards, and *why gives the reason.
  CudnnConvolution(const StepSpec &spec, ConvolutionProblem::Of of, const ConvolutionSizes &sizes,
                   const ConvolutionEpilogue &epilogue, std::string *why) {
    const Cudnn *const cudnn = find_cudnn(why);
    if (!cudnn) return;
    const Dtype dtype = spec.inputs[0].dtype;
    ConvolutionProblem problem{
        of,    dtype,   spec.tf32, spec.inputs[0].shape.rank() - 2, kAlignment, most_workspace(sizes, dtype),
        sizes, epilogue};
    aligned_ = plan_of(*cudnn, problem, why);
    if (!aligned_) return;
    // So seldom used that it is not to take more memory.
    problem.alignment = dtype_size(dtype);
    problem.most_workspace = std::max(aligned_->workspace_bytes(), size_t(1) << 20);
    any_ = plan_of(*cudnn, problem, why);
  }
  bool is_there() const { return aligned_ && any_; }
  size_t scratch_bytes() const {
    return std::max(aligned_->workspace_bytes(), any_->workspace_bytes()) + kWorkspaceAlignment;
  }
  void run(const ConvolutionArrays &a, void *scratch, const Lane &lane) const {
    const uintptr_t at = (reinterpret_cast<uintptr_t>(scratch) + kWorkspaceAlignment - 1) & ~(kWorkspaceAlignment - 1);
    const SharedPlan &plan = can_be_vectors({a.data, a.filters, a.result, a.addend, a.bias}) ? *aligned_ : *any_;
    plan.run(a, reinterpret_cast<void *>(at), lane.stream);
  }

 private:
  std::shared_ptr<const SharedPlan> aligned_, any_;
};

// ---- kernels

// The sizes of the convolution; for a deconvolution, those of the convolution whose data are its output.
// `as_channels_last`: images and filters lie with their channels last although their shapes say otherwise.
ConvolutionSizes sizes_of(const StepSpec &spec, bool of_deconvolution, bool as_channels_last, const Shape &data,
                          const Shape &weight, const Shape &made) {
  const auto lie = [=](const Shape &shape) { return as_channels_last ? channels_last_shape(shape) : shape; };
  if (of_deconvolution) {
    const auto &a = spec.attrs_as<DeconvolutionAttrs>();
    return convolution_sizes(lie(made), lie(weight), lie(data), a.stride, a.dilate, deconvolution_padding(a, data).pad,
                             a.num_group, as_channels_last || channels_last(a.layout));
  }
  const auto &a = spec.attrs_as<ConvolutionAttrs>();
  return convolution_sizes(lie(data), lie(weight), lie(made), a.stride, a.dilate, a.pad, a.num_group,
                           as_channels_last || channels_last(a.layout));
}

// Sets the layouts of images and filters, which are all arrays but that of the bias.
void set_layouts(StepSpec *spec, bool as_channels_last) {
  const int rank = spec->inputs[0].shape.rank();
  for (std::vector<TensorSpec> *list : {&spec->inputs, &spec->outputs}) {
    for (TensorSpec &tensor : *list) {
      tensor.layout = as_channels_last && tensor.shape.rank() == rank ? channels_last_layout(tensor) : nullptr;
    }
  }
}

// Tensor cores prefer channels last. Computations without them keep the layout of the data.
bool likes_channels_last(const StepSpec &spec, const TensorSpec &data) {
  return dtype_size(data.dtype) == 2 || spec.tf32 || lies_channels_last(data);
}

template <bool kOfDeconvolution>
class CudnnForward final : public Kernel {
  using Attrs = std::conditional_t<kOfDeconvolution, DeconvolutionAttrs, ConvolutionAttrs>;

 public:
  CudnnForward(StepSpec &spec, bool as_channels_last, std::string *why)
      : dtype_(spec.inputs[0].dtype),
        end_(spec.post),
        has_bias_(!spec.attrs_as<Attrs>().no_bias),
        as_channels_last_(as_channels_last),
        sizes_(sizes_of(spec, kOfDeconvolution, as_channels_last, spec.inputs[0].shape, spec.inputs[1].shape,
                        spec.outputs[0].shape)),
        count_(spec.outputs[0].shape.size()) {
    constexpr auto kOf = kOfDeconvolution ? ConvolutionProblem::kDataGradient : ConvolutionProblem::kResult;
    // In full float32, bias and post-operations are a pass of their own: no engine is lost that way.
    const bool by_tensor_cores = dtype_size(dtype_) == 2 || spec.tf32;
    const bool may_be_graph = !kOfDeconvolution && has_bias_ && by_tensor_cores;
    if (may_be_graph) convolution_.emplace(spec, kOf, sizes_, ConvolutionEpilogue{end_.addend, true, end_.relu}, why);
    // Where a graph has no engine, a bias could only be added to what has been rounded to 16 bits.
    finishes_ = !is_there() && (has_bias_ || !spec.post.empty());
    if (!is_there() && !(has_bias_ && dtype_size(dtype_) == 2))
      convolution_.emplace(spec, kOf, sizes_, ConvolutionEpilogue{}, why);
    if (is_there()) spec.scratch_bytes = convolution_->scratch_bytes();
  }
  static bool may_be_channels_last(const StepSpec &spec) { return likes_channels_last(spec, spec.inputs[0]); }
  bool is_there() const { return convolution_ && convolution_->is_there(); }
  bool is_channels_last() const { return as_channels_last_; }
  void run(const Args &args, const Lane &lane) const override {
    const void *const data = args.inputs[0], *const made = args.outputs[0];
    const void *const bias = has_bias_ ? args.inputs[2] : nullptr;
    const void *const addend = end_.addend ? args.inputs[has_bias_ ? 3 : 2] : nullptr;
    ConvolutionArrays arrays{kOfDeconvolution ? made : data, args.inputs[1], kOfDeconvolution ? data : made};
    if (!finishes_) arrays.addend = addend, arrays.bias = bias;
    convolution_->run(arrays, args.scratch, lane);
    if (!finishes_) return;
    const int64_t channels = sizes_.groups * (kOfDeconvolution ? sizes_.in_channels : sizes_.out_channels);
    const int64_t inner = kOfDeconvolution ? sizes_.in_channel_step : sizes_.out_channel_step;
    finish_sums(lane,
                {args.outputs[0], args.outputs[0], dtype_, dtype_, count_, addend, bias, end_.relu, channels, inner});
  }

 private:
  const Dtype dtype_;
  const LayerEnd end_;
  const bool has_bias_, as_channels_last_;
  const ConvolutionSizes sizes_;
  const int64_t count_;
  std::optional<CudnnConvolution> convolution_;
  bool finishes_ = false;  // a pass of our own adds bias and addend, and applies relu
};

// Inputs: head gradient, data, weight.
template <bool kOfDeconvolution>
class CudnnBackward final : public Kernel {
 public:
  CudnnBackward(StepSpec &spec, bool as_channels_last, std::string *why)
      : dtype_(spec.inputs[0].dtype),
        sizes_(sizes_of(spec, kOfDeconvolution, as_channels_last, spec.inputs[1].shape, spec.inputs[2].shape,
                        spec.inputs[0].shape)) {
    size_t scratch = 0;
    const auto find = [&](size_t output, ConvolutionProblem::Of of, std::optional<CudnnConvolution> *found) {
      if (!spec.wanted[output] || !is_there_) return;
      found->emplace(spec, of, sizes_, ConvolutionEpilogue{}, why);
      is_there_ = (*found)->is_there();
      if (is_there_) scratch = std::max(scratch, (*found)->scratch_bytes());
    };
    find(0, kOfDeconvolution ? ConvolutionProblem::kResult : ConvolutionProblem::kDataGradient, &data_gradient_);
    if (spec.wanted[1] && dtype_ == Dtype::kFloat32 && !spec.tf32 && FilterGradient::applies(sizes_)) {
      own_filter_gradient_.emplace(sizes_);
      scratch = std::max(scratch, own_filter_gradient_->scratch_bytes());
    } else {
      find(1, ConvolutionProblem::kFilterGradient, &filter_gradient_);
    }
    if (spec.wanted.size() > 2 && spec.wanted[2]) {
      bias_gradient_.emplace(sizes_, kOfDeconvolution);
      scratch = std::max(scratch, bias_gradient_->scratch_bytes(sizeof(float)));
    }
    if (is_there_) spec.scratch_bytes = scratch;
  }
  // Follows the forward step: the outputs of kernels other than cuDNN's are row-major.
  static bool may_be_channels_last(const StepSpec &spec) {
    const auto *const forward = dynamic_cast<const CudnnForward<kOfDeconvolution> *>(spec.forward);
    return spec.forward ? forward && forward->is_channels_last() : likes_channels_last(spec, spec.inputs[1]);
  }
  bool is_there() const { return is_there_; }
  void run(const Args &args, const Lane &lane) const override {
    const void *const head = args.inputs[0], *const data = args.inputs[1];
    if (data_gradient_) {
      const void *const made = args.outputs[0];
      data_gradient_->run({kOfDeconvolution ? head : made, args.inputs[2], kOfDeconvolution ? made : head},
                          args.scratch, lane);
    }
    if (filter_gradient_) {
      filter_gradient_->run({kOfDeconvolution ? head : data, args.outputs[1], kOfDeconvolution ? data : head},
                            args.scratch, lane);
    }
    if (own_filter_gradient_) {
      own_filter_gradient_->run(lane, static_cast<const float *>(kOfDeconvolution ? data : head),
                                static_cast<const float *>(kOfDeconvolution ? head : data),
                                static_cast<float *>(args.outputs[1]), args.scratch);
    }
    if (bias_gradient_) {
      bias_gradient_->run<float>(lane, elements_of(args.inputs[0], dtype_), elements_of(args.outputs[2], dtype_),
                                 args.scratch);
    }
  }

 private:
  const Dtype dtype_;
  const ConvolutionSizes sizes_;
  bool is_there_ = true;
  std::optional<CudnnConvolution> data_gradient_, filter_gradient_;
  std::optional<FilterGradient> own_filter_gradient_;
  std::optional<ChannelSums> bias_gradient_;
};

std::string refusal(const StepSpec &spec) {
  std::string why;
  for (const std::vector<TensorSpec> *list : {&spec.inputs, &spec.outputs}) {
    for (const TensorSpec &tensor : *list) {
      if (tensor.shape.size() == 0) return "an array has no elements";
      if (tensor.shape.size() > INT32_MAX) return "an array has more than 2^31 - 1 elements";
    }
  }
  find_cudnn(&why);
  return why;
}

std::string convolution_refusal(const StepSpec &spec) {
  const std::string why = refuses_post(spec, !spec.attrs_as<ConvolutionAttrs>().no_bias);
  return why.empty() ? refusal(spec) : why;
}

// cuDNN has no graph of a gradient of data and a bias.
std::string deconvolution_refusal(const StepSpec &spec) {
  if (!spec.attrs_as<DeconvolutionAttrs>().no_bias && dtype_size(spec.outputs[0].dtype) == 2) {
    return "a result of 16 bits with a bias would be rounded twice";
  }
  return refusal(spec);
}

template <typename K, typename A>
std::unique_ptr<Kernel> make(StepSpec &spec) {
  const bool may_be_channels_last = !channels_last(spec.attrs_as<A>().layout) && K::may_be_channels_last(spec);
  for (const bool as_channels_last : {true, false}) {
    if (as_channels_last && !may_be_channels_last) continue;
    auto made = std::make_unique<K>(spec, as_channels_last, &spec.refused);
    if (!made->is_there()) continue;
    set_layouts(&spec, as_channels_last);
    spec.refused.clear();
    return made;
  }
  return nullptr;
}

#define COHORT_CUDNN_KERNEL(op, why_not, ...)                       \
  COHORT_KERNEL_BY(cuda, op, make<__VA_ARGS__>)                     \
      .named("cudnn")                                               \
      .dtypes({Dtype::kFloat32, Dtype::kFloat16, Dtype::kBfloat16}) \
      .when(why_not)                                                \
      .any_layout()                                                 \
      .preference(2)
COHORT_CUDNN_KERNEL(Convolution, convolution_refusal, CudnnForward<false>, ConvolutionAttrs)
    .fuses({PostOp::Kind::kActivation, PostOp::Kind::kSum});
COHORT_CUDNN_KERNEL(_backward_Convolution, refusal, CudnnBackward<false>, ConvolutionAttrs);
COHORT_CUDNN_KERNEL(Deconvolution, deconvolution_refusal, CudnnForward<true>, DeconvolutionAttrs);
COHORT_CUDNN_KERNEL(_backward_Deconvolution, refusal, CudnnBackward<true>, DeconvolutionAttrs);

}  // namespace
}  // namespace cohort
