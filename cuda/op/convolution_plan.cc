// SPDX-License-Identifier: Apache-2.0
#include "cuda/op/convolution_plan.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace cohort {
namespace {

constexpr int64_t kIds[] = {1, 2, 3};  // of data, filters and result

int type_of(Dtype dtype) {
  return dtype == Dtype::kFloat16 ? Cudnn::kHalf : dtype == Dtype::kBfloat16 ? Cudnn::kBfloat16 : Cudnn::kFloat;
}

struct TensorExtent {
  std::vector<int64_t> lengths, strides;
};

// Lengths and strides with the last `num_axes` spatial axes. An axis that the image lacks has length 1, and gets the
// stride of a dense array.
TensorExtent extent_of(int64_t outer, int64_t channels, int64_t outer_step, int64_t channel_step,
                       const ConvolutionSizes::Axes &lengths, ConvolutionSizes::Axes steps, size_t num_axes) {
  TensorExtent e{{outer, channels}, {outer_step, channel_step}};
  for (size_t a = 2; a-- > 0;) {
    if (steps[a] == 0) steps[a] = lengths[a + 1] * steps[a + 1];
  }
  e.lengths.insert(e.lengths.end(), lengths.end() - ptrdiff_t(num_axes), lengths.end());
  e.strides.insert(e.strides.end(), steps.end() - ptrdiff_t(num_axes), steps.end());
  return e;
}

std::vector<int64_t> last(const ConvolutionSizes::Axes &values, size_t num_axes) {
  return {values.end() - ptrdiff_t(num_axes), values.end()};
}

// The names of an operation's attributes; each operation has its own.
struct Operation {
  Cudnn::DescriptorType type;
  Cudnn::Attribute alpha, beta, convolution, data, filters, result;
};
Operation operation_of(ConvolutionProblem::Of of) {
  switch (of) {
    case ConvolutionProblem::kResult:
      return {Cudnn::kForward,     Cudnn::kForwardAlpha,   Cudnn::kForwardBeta,  Cudnn::kForwardConvolution,
              Cudnn::kForwardData, Cudnn::kForwardFilters, Cudnn::kForwardResult};
    case ConvolutionProblem::kDataGradient:
      return {Cudnn::kBackwardData, Cudnn::kDataAlpha,   Cudnn::kDataBeta,  Cudnn::kDataConvolution,
              Cudnn::kDataData,     Cudnn::kDataFilters, Cudnn::kDataResult};
    case ConvolutionProblem::kFilterGradient:
      break;
  }
  return {Cudnn::kBackwardFilter, Cudnn::kFilterAlpha,   Cudnn::kFilterBeta,  Cudnn::kFilterConvolution,
          Cudnn::kFilterData,     Cudnn::kFilterFilters, Cudnn::kFilterResult};
}

}  // namespace

// Creates descriptors one after the other. After a call has failed, later ones do nothing until another heuristic mode
// is tried.
class ConvolutionPlan::Builder {
 public:
  Builder(const Cudnn &cudnn, const CudnnTarget &target) : cudnn_(cudnn), target_(target) {}

  std::unique_ptr<ConvolutionPlan> plan_of(const ConvolutionProblem &problem) {
    graph_ = describe(problem);
    if (!failure_.empty()) return nullptr;
    std::string refused;  // by the first heuristic mode
    for (const int mode : {Cudnn::kModeA, Cudnn::kFallback}) {
      for (CudnnOwned &config : configs_of(mode)) {
        if (auto plan = plan_by(std::move(config), problem)) return plan;
      }
      if (refused.empty()) refused = failure_;
      failure_.clear();  // the other mode may succeed
    }
    failure_ = refused;
    if (failure_.empty() || num_configs_ > 0) {
      failure_ = text("of the ", num_configs_, " configurations of engines that cuDNN has, ", num_inexact_,
                      " round or order sums in other ways than asked, ", num_large_, " take more than ",
                      problem.most_workspace, " bytes of workspace, ", num_refused_, " cannot be used");
    }
    return nullptr;
  }
  const std::string &failure() const { return failure_; }

 private:
  void check(int status, const char *call) {
    if (!is_cudnn_refusal(status))
      check_cudnn(cudnn_, status, call);
    else if (failure_.empty())
      failure_ = cudnn_error(cudnn_, status, call);
  }
  // The descriptor lives as long as the plan.
  CudnnDescriptor *make(Cudnn::DescriptorType type) {
    made_.all.push_back(make_alone(type));
    return made_.all.back().get();
  }
  CudnnOwned make_alone(Cudnn::DescriptorType type) {
    CudnnDescriptor *made = nullptr;
    if (failure_.empty()) check(cudnn_.create_descriptor(type, &made), "cudnnBackendCreateDescriptor");
    return {cudnn_, made};
  }
  void set(CudnnDescriptor *descriptor, Cudnn::Attribute name, Cudnn::AttributeType type, int64_t count,
           const void *elements) {
    if (!failure_.empty()) return;
    check(cudnn_.set_attribute(descriptor, name, type, count, elements), "cudnnBackendSetAttribute");
  }
  void set(CudnnDescriptor *descriptor, Cudnn::Attribute name, Cudnn::AttributeType type, int value) {
    set(descriptor, name, type, 1, &value);
  }
  void set(CudnnDescriptor *descriptor, Cudnn::Attribute name, const std::vector<int64_t> &values) {
    set(descriptor, name, Cudnn::kInt64Type, int64_t(values.size()), values.data());
  }
  void set(CudnnDescriptor *descriptor, Cudnn::Attribute name, CudnnDescriptor *value) {
    set(descriptor, name, Cudnn::kDescriptorType, 1, &value);
  }
  // A plan is made for a handle or for device properties; only one of the two attributes is set.
  void set_handle(CudnnDescriptor *descriptor, Cudnn::Attribute name) {
    if (target_.handle) set(descriptor, name, Cudnn::kHandleType, 1, &target_.handle);
  }
  void set_properties(CudnnDescriptor *descriptor, Cudnn::Attribute name) {
    if (target_.properties) set(descriptor, name, target_.properties);
  }
  CudnnDescriptor *finish(CudnnDescriptor *descriptor) {
    if (failure_.empty()) check(cudnn_.finalize(descriptor), "cudnnBackendFinalize");
    return descriptor;
  }

  CudnnDescriptor *tensor(const ConvolutionProblem &problem, int64_t id, const TensorExtent &extent) {
    CudnnDescriptor *const made = make(Cudnn::kTensor);
    set(made, Cudnn::kTensorDataType, Cudnn::kDataTypeType, type_of(problem.dtype));
    set(made, Cudnn::kTensorDimensions, extent.lengths);
    set(made, Cudnn::kTensorStrides, extent.strides);
    set(made, Cudnn::kTensorId, {id});
    set(made, Cudnn::kTensorAlignment, {int64_t(problem.alignment)});
    return finish(made);
  }

  // A graph of one operation.
  CudnnDescriptor *describe(const ConvolutionProblem &problem) {
    const ConvolutionSizes &s = problem.sizes;
    const auto n = size_t(std::max(problem.num_axes, 2));
    CudnnDescriptor *const data =
        tensor(problem, kIds[0],
               extent_of(s.batch, s.groups * s.in_channels, s.in_batch_step, s.in_channel_step, s.in, s.in_step, n));
    CudnnDescriptor *const filters = tensor(problem, kIds[1],
                                            extent_of(s.groups * s.out_channels, s.in_channels, s.weight_out_step,
                                                      s.weight_in_step, s.kernel, s.weight_step, n));
    CudnnDescriptor *const result = tensor(
        problem, kIds[2],
        extent_of(s.batch, s.groups * s.out_channels, s.out_batch_step, s.out_channel_step, s.out, s.out_step, n));

    CudnnDescriptor *const convolution = make(Cudnn::kConvolution);
    set(convolution, Cudnn::kConvolutionComputeType, Cudnn::kDataTypeType, Cudnn::kFloat);
    set(convolution, Cudnn::kConvolutionConvolutionMode, Cudnn::kConvolutionModeType, Cudnn::kCrossCorrelation);
    set(convolution, Cudnn::kConvolutionNumAxes, {int64_t(n)});
    set(convolution, Cudnn::kConvolutionDilations, last(s.dilate, n));
    set(convolution, Cudnn::kConvolutionStrides, last(s.stride, n));
    set(convolution, Cudnn::kConvolutionPrePaddings, last(s.pad, n));
    set(convolution, Cudnn::kConvolutionPostPaddings, last(s.pad, n));
    finish(convolution);

    const Operation names = operation_of(problem.of);
    const float one = 1, zero = 0;
    CudnnDescriptor *const operation = make(names.type);
    set(operation, names.alpha, Cudnn::kFloatType, 1, &one);
    set(operation, names.beta, Cudnn::kFloatType, 1, &zero);
    set(operation, names.convolution, convolution);
    set(operation, names.data, data);
    set(operation, names.filters, filters);
    set(operation, names.result, result);
    finish(operation);

    CudnnDescriptor *const graph = make(Cudnn::kOperationGraph);
    set_handle(graph, Cudnn::kGraphHandle);
    set(graph, Cudnn::kGraphOperations, operation);
    return finish(graph);
  }

  // In the order in which they are recommended.
  std::vector<CudnnOwned> configs_of(int mode) {
    CudnnDescriptor *const heuristics = make(Cudnn::kHeuristics);
    set(heuristics, Cudnn::kHeuristicsGraph, graph_);
    set(heuristics, Cudnn::kHeuristicsMode, Cudnn::kHeuristicModeType, mode);
    set_properties(heuristics, Cudnn::kHeuristicsDevice);
    finish(heuristics);
    std::vector<CudnnOwned> configs;
    int64_t count = 0;
    const auto get = [&](void *into) {
      if (!failure_.empty()) return;
      check(cudnn_.get_attribute(heuristics, Cudnn::kHeuristicsResults, Cudnn::kDescriptorType, int64_t(configs.size()),
                                 &count, into),
            "cudnnBackendGetAttribute");
    };
    get(nullptr);  // gets the maximum number
    std::vector<CudnnDescriptor *> into;
    for (int64_t i = 0; failure_.empty() && i < count; ++i) {
      configs.push_back(make_alone(Cudnn::kEngineConfig));
      into.push_back(configs.back().get());
    }
    if (!configs.empty()) get(into.data());
    if (!failure_.empty()) count = 0;
    while (int64_t(configs.size()) > count) configs.pop_back();
    return configs;
  }

  // False: refused; another configuration may work.
  bool does(int status, const char *call) const {
    if (is_cudnn_refusal(status)) return false;
    check_cudnn(cudnn_, status, call);
    return true;
  }
  bool gets(const CudnnDescriptor *descriptor, Cudnn::Attribute name, Cudnn::AttributeType type, int64_t room,
            int64_t *count, void *elements) const {
    return does(cudnn_.get_attribute(descriptor, name, type, room, count, elements), "cudnnBackendGetAttribute");
  }
  bool is_exact(CudnnDescriptor *engine, const ConvolutionProblem &problem) const {
    constexpr int64_t kRoom = 32;
    int notes[kRoom];
    int64_t count = 0;
    if (!gets(engine, Cudnn::kEngineNotes, Cudnn::kNoteType, kRoom, &count, notes) || count > kRoom) return false;
    return std::all_of(notes, notes + count, [&](int note) {
      // Tensor cores round float32 factors.
      if (note == Cudnn::kTensorCore) return problem.dtype != Dtype::kFloat32 || problem.tf32;
      return note == Cudnn::kStrictNanPropagation;
    });
  }

  std::unique_ptr<ConvolutionPlan> plan_by(CudnnOwned config, const ConvolutionProblem &problem) {
    ++num_configs_;
    const CudnnOwned engine = make_alone(Cudnn::kEngine);
    CudnnOwned plan = make_alone(Cudnn::kExecutionPlan);
    if (!failure_.empty()) return nullptr;
    CudnnDescriptor *into = engine.get();
    int64_t count = 0, index = 0, workspace = 0;
    if (!gets(config.get(), Cudnn::kEngineConfigEngine, Cudnn::kDescriptorType, 1, &count, &into) ||
        !gets(into, Cudnn::kEngineIndex, Cudnn::kInt64Type, 1, &count, &index)) {
      ++num_refused_;
      return nullptr;
    }
    if (!is_exact(into, problem)) {
      ++num_inexact_;
      return nullptr;
    }
    set(plan.get(), Cudnn::kPlanEngineConfig, config.get());
    set_handle(plan.get(), Cudnn::kPlanHandle);
    set_properties(plan.get(), Cudnn::kPlanDevice);
    if (!failure_.empty()) return nullptr;
    if (!does(cudnn_.finalize(plan.get()), "cudnnBackendFinalize") ||
        !gets(plan.get(), Cudnn::kPlanWorkspace, Cudnn::kInt64Type, 1, &count, &workspace)) {
      ++num_refused_;
      return nullptr;
    }
    if (size_t(workspace) > problem.most_workspace) {
      ++num_large_;
      return nullptr;
    }
    made_.all.push_back(std::move(config));
    made_.all.push_back(std::move(plan));
    std::unique_ptr<ConvolutionPlan> found(new ConvolutionPlan(cudnn_, std::move(made_)));
    found->workspace_bytes_ = size_t(workspace);
    found->engine_ = index;
    return found;
  }

  const Cudnn &cudnn_;
  const CudnnTarget target_;
  std::string failure_;
  CudnnDescriptors made_;
  CudnnDescriptor *graph_ = nullptr;
  int num_configs_ = 0, num_inexact_ = 0, num_large_ = 0, num_refused_ = 0;
};

std::unique_ptr<ConvolutionPlan> ConvolutionPlan::find(const Cudnn &cudnn, const ConvolutionProblem &problem,
                                                       const CudnnTarget &target, std::string *why) {
  Builder builder(cudnn, target);
  std::unique_ptr<ConvolutionPlan> found = builder.plan_of(problem);
  if (!found) *why = builder.failure();
  return found;
}

void ConvolutionPlan::run(CudnnHandle *handle, const void *data, const void *filters, const void *result,
                          void *workspace) const {
  CudnnDescriptor *made = nullptr;
  check_cudnn(cudnn_, cudnn_.create_descriptor(Cudnn::kVariantPack, &made), "cudnnBackendCreateDescriptor");
  const CudnnOwned pack(cudnn_, made);
  const void *const arrays[] = {data, filters, result};
  const auto set = [&](Cudnn::Attribute name, Cudnn::AttributeType type, int64_t count, const void *elements) {
    check_cudnn(cudnn_, cudnn_.set_attribute(made, name, type, count, elements), "cudnnBackendSetAttribute");
  };
  set(Cudnn::kPackIds, Cudnn::kInt64Type, 3, kIds);
  set(Cudnn::kPackPointers, Cudnn::kPointerType, 3, arrays);
  set(Cudnn::kPackWorkspace, Cudnn::kPointerType, 1, &workspace);
  check_cudnn(cudnn_, cudnn_.finalize(made), "cudnnBackendFinalize");
  check_cudnn(cudnn_, cudnn_.execute(handle, described_.all.back().get(), made), "cudnnBackendExecute");
}

}  // namespace cohort
