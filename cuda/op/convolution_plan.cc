// SPDX-License-Identifier: Apache-2.0
#include "cuda/op/convolution_plan.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace cohort {
namespace {

enum TensorIds : int64_t { kData = 1, kFilters, kResult, kAddend, kBias, kFirstVirtual };
constexpr size_t kMostArrays = 5;
constexpr int64_t kVirtualAlignment = 16;  // bytes

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

// Engines that use Winograd's transform do not always say so. Transformed arrays are larger than the arrays: 2.25 times
// at least, for filters of 3 x 3 with strides of 1, in float32.
bool winograd_applies(const ConvolutionProblem &p) {
  return p.dtype == Dtype::kFloat32 && p.sizes.kernel == ConvolutionSizes::Axes{1, 3, 3} &&
         p.sizes.stride == ConvolutionSizes::Axes{1, 1, 1};
}
// The workspace that copies of all arrays of float32 take, and some padding.
size_t bytes_of_copies(const ConvolutionProblem &p) {
  using convolution::volume;
  const ConvolutionSizes &s = p.sizes;
  const int64_t elements = s.batch * s.groups * (s.in_channels * volume(s.in) + s.out_channels * volume(s.out)) +
                           s.groups * s.out_channels * s.in_channels * volume(s.kernel);
  constexpr size_t kPadding = 4096;
  return size_t(elements) * sizeof(float) + kPadding;
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

  CudnnDescriptor *tensor(int type, int64_t alignment, int64_t id, const TensorExtent &extent, bool is_virtual) {
    CudnnDescriptor *const made = make(Cudnn::kTensor);
    set(made, Cudnn::kTensorDataType, Cudnn::kDataTypeType, type);
    set(made, Cudnn::kTensorDimensions, extent.lengths);
    set(made, Cudnn::kTensorStrides, extent.strides);
    set(made, Cudnn::kTensorId, {id});
    set(made, Cudnn::kTensorAlignment, {alignment});
    if (is_virtual) set(made, Cudnn::kTensorIsVirtual, Cudnn::kBooleanType, 1, &is_virtual);
    return finish(made);
  }
  CudnnDescriptor *array(const ConvolutionProblem &problem, int64_t id, const TensorExtent &extent) {
    return tensor(type_of(problem.dtype), int64_t(problem.alignment), id, extent, /* is_virtual */ false);
  }

  CudnnDescriptor *convolution_of(const ConvolutionSizes &s, size_t num_axes) {
    CudnnDescriptor *const made = make(Cudnn::kConvolution);
    set(made, Cudnn::kConvolutionComputeType, Cudnn::kDataTypeType, Cudnn::kFloat);
    set(made, Cudnn::kConvolutionConvolutionMode, Cudnn::kConvolutionModeType, Cudnn::kCrossCorrelation);
    set(made, Cudnn::kConvolutionNumAxes, {int64_t(num_axes)});
    set(made, Cudnn::kConvolutionDilations, last(s.dilate, num_axes));
    set(made, Cudnn::kConvolutionStrides, last(s.stride, num_axes));
    set(made, Cudnn::kConvolutionPrePaddings, last(s.pad, num_axes));
    set(made, Cudnn::kConvolutionPostPaddings, last(s.pad, num_axes));
    return finish(made);
  }

  CudnnDescriptor *pointwise(Cudnn::PointwiseMode mode, CudnnDescriptor *from, CudnnDescriptor *second,
                             CudnnDescriptor *to) {
    CudnnDescriptor *const what = make(Cudnn::kPointwise);
    set(what, Cudnn::kPointwiseMode, Cudnn::kPointwiseModeType, mode);
    set(what, Cudnn::kPointwiseComputeType, Cudnn::kDataTypeType, Cudnn::kFloat);
    if (mode == Cudnn::kRelu)
      set(what, Cudnn::kPointwiseNanPropagation, Cudnn::kNanPropagationType, Cudnn::kPropagateNan);
    finish(what);
    CudnnDescriptor *const operation = make(Cudnn::kPointwiseOperation);
    set(operation, Cudnn::kPointwiseDescriptor, what);
    set(operation, Cudnn::kPointwiseInput, from);
    if (second) set(operation, Cudnn::kPointwiseSecondInput, second);
    set(operation, Cudnn::kPointwiseOutput, to);
    return finish(operation);
  }

  // A graph of the convolution and the operations of its epilogue. What lies between two operations is a virtual
  // tensor of float32, which is never written to memory.
  CudnnDescriptor *describe(const ConvolutionProblem &problem) {
    const ConvolutionSizes &s = problem.sizes;
    const ConvolutionEpilogue &epilogue = problem.epilogue;
    const auto n = size_t(std::max(problem.num_axes, 2));
    const TensorExtent data =
        extent_of(s.batch, s.groups * s.in_channels, s.in_batch_step, s.in_channel_step, s.in, s.in_step, n);
    const TensorExtent filters = extent_of(s.groups * s.out_channels, s.in_channels, s.weight_out_step,
                                           s.weight_in_step, s.kernel, s.weight_step, n);
    const TensorExtent result =
        extent_of(s.batch, s.groups * s.out_channels, s.out_batch_step, s.out_channel_step, s.out, s.out_step, n);
    const bool of_data = problem.of == ConvolutionProblem::kDataGradient;
    const TensorExtent &made = of_data ? data : result;  // what the epilogue applies to

    std::vector<CudnnDescriptor *> operations;
    int num_left = int(epilogue.addend) + int(epilogue.bias) + int(epilogue.relu), num_virtual = 0;
    const auto next_output = [&] {
      if (num_left-- == 0) return array(problem, of_data ? kData : kResult, made);
      return tensor(Cudnn::kFloat, kVirtualAlignment, kFirstVirtual + num_virtual++, made, /* is_virtual */ true);
    };
    const auto output_if = [&](bool is_output, int64_t id, const TensorExtent &extent) {
      return is_output ? next_output() : array(problem, id, extent);
    };
    const Operation names = operation_of(problem.of);
    CudnnDescriptor *const from = output_if(of_data, kData, data);
    CudnnDescriptor *const to = output_if(problem.of == ConvolutionProblem::kResult, kResult, result);
    const float one = 1, zero = 0;
    CudnnDescriptor *const by = array(problem, kFilters, filters), *const convolution = convolution_of(s, n);
    operations.push_back(make(names.type));
    set(operations[0], names.alpha, Cudnn::kFloatType, 1, &one);
    set(operations[0], names.beta, Cudnn::kFloatType, 1, &zero);
    set(operations[0], names.convolution, convolution);
    set(operations[0], names.data, from);
    set(operations[0], names.filters, by);
    set(operations[0], names.result, to);
    finish(operations[0]);

    CudnnDescriptor *current = of_data ? from : to;
    const auto then = [&](Cudnn::PointwiseMode mode, CudnnDescriptor *second) {
      CudnnDescriptor *const output = next_output();
      operations.push_back(pointwise(mode, current, second, output));
      current = output;
    };
    if (epilogue.addend) then(Cudnn::kAdd, array(problem, kAddend, made));
    if (epilogue.bias) {
      const int64_t channels = made.lengths[1];
      TensorExtent bias{std::vector<int64_t>(n + 2, 1), std::vector<int64_t>(n + 2, channels)};
      bias.lengths[1] = channels, bias.strides[1] = 1;
      then(Cudnn::kAdd, array(problem, kBias, bias));
    }
    if (epilogue.relu) then(Cudnn::kRelu, nullptr);

    CudnnDescriptor *const graph = make(Cudnn::kOperationGraph);
    set_handle(graph, Cudnn::kGraphHandle);
    set(graph, Cudnn::kGraphOperations, Cudnn::kDescriptorType, int64_t(operations.size()), operations.data());
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
  // Also finds out whether the engine says that it keeps NaN in its place.
  bool is_exact(CudnnDescriptor *engine, const ConvolutionProblem &problem, bool *keeps_nan) const {
    constexpr int64_t kRoom = 32;
    int notes[kRoom];
    int64_t count = 0;
    if (!gets(engine, Cudnn::kEngineNotes, Cudnn::kNoteType, kRoom, &count, notes) || count > kRoom) return false;
    *keeps_nan = std::find(notes, notes + count, Cudnn::kStrictNanPropagation) != notes + count;
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
    bool keeps_nan = false;
    if (!is_exact(into, problem, &keeps_nan)) {
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
    const bool may_transform = !keeps_nan && winograd_applies(problem);
    const size_t most_workspace = may_transform ? bytes_of_copies(problem) : SIZE_MAX;
    if (size_t(workspace) > std::min(problem.most_workspace, most_workspace)) {
      ++num_large_;
      return nullptr;
    }
    made_.all.push_back(std::move(config));
    made_.all.push_back(std::move(plan));
    std::unique_ptr<ConvolutionPlan> found(new ConvolutionPlan(cudnn_, problem.epilogue, std::move(made_)));
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

void ConvolutionPlan::run(CudnnHandle *handle, const ConvolutionArrays &arrays, void *workspace) const {
  CudnnDescriptor *made = nullptr;
  check_cudnn(cudnn_, cudnn_.create_descriptor(Cudnn::kVariantPack, &made), "cudnnBackendCreateDescriptor");
  const CudnnOwned pack(cudnn_, made);
  int64_t ids[kMostArrays] = {kData, kFilters, kResult};
  const void *pointers[kMostArrays] = {arrays.data, arrays.filters, arrays.result};
  int64_t count = 3;
  if (epilogue_.addend) ids[count] = kAddend, pointers[count++] = arrays.addend;
  if (epilogue_.bias) ids[count] = kBias, pointers[count++] = arrays.bias;
  const auto set = [&](Cudnn::Attribute name, Cudnn::AttributeType type, int64_t length, const void *elements) {
    check_cudnn(cudnn_, cudnn_.set_attribute(made, name, type, length, elements), "cudnnBackendSetAttribute");
  };
  set(Cudnn::kPackIds, Cudnn::kInt64Type, count, ids);
  set(Cudnn::kPackPointers, Cudnn::kPointerType, count, pointers);
  set(Cudnn::kPackWorkspace, Cudnn::kPointerType, 1, &workspace);
  check_cudnn(cudnn_, cudnn_.finalize(made), "cudnnBackendFinalize");
  check_cudnn(cudnn_, cudnn_.execute(handle, described_.all.back().get(), made), "cudnnBackendExecute");
}

}  // namespace cohort
