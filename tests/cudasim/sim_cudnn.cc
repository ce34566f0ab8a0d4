// SPDX-License-Identifier: Apache-2.0
// The interface of cuDNN, as far as cuda/cuda_cudnn.hpp declares it: descriptors of convolutions, their gradients, and
// graphs that add an array, a bias and relu to a convolution; engines and plans. It enforces what the descriptors say,
// and first recommends engines that a caller must not take: some round or order sums differently, some cannot be used,
// some need more memory than there is. sim_cudnn_compute.cc runs the plans.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cuda/cuda_cudnn.hpp"
#include "cudasim.h"
#include "sim.hpp"
#include "sim_cudnn_compute.hpp"
#include "sim_numbers.hpp"

using namespace cudasim;
using namespace cudasim::cudnn;
using cohort::Cudnn;

namespace {

constexpr int kWinograd = 5;
const std::vector<Engine> &engines() {
  static const auto *const all = new std::vector<Engine>{
      {0, {Cudnn::kStrictNanPropagation}, 0, 0},
      {1, {}, 1003, 0},
      {10, {Cudnn::kTensorCore}, 4227, 16},
      {11, {Cudnn::kTensorCore}, 515, 16, true, false, true},
      {20, {Cudnn::kNondeterministic}, 0, 0, true, true},
      {21, {Cudnn::kTensorCore, Cudnn::kReducedPrecisionReduction}, 64, 0, true, true},
      {22, {Cudnn::kDownConvertInputs}, 64, 0, true, true},
      {30, {kWinograd}, 2048, 0, true, true},
      {31, {}, 4 << 20, 0, true, true},  // Winograd's transform, too, though it does not say so
      {40, {}, 0, 0, false},
      {41, {}, int64_t(1) << 40, 0},
      {42, {Cudnn::kStrictNanPropagation, 77}, 0, 0, true, true},  // a note that nobody knows yet
  };
  return *all;
}
const Engine &engine_of(int64_t index) {
  return *std::find_if(engines().begin(), engines().end(), [&](const Engine &e) { return e.index == index; });
}

// Whether there are engines for the operations on the result: it must be an array of its shape or nothing that is added
// first, then a bias, then relu or nothing.
bool has_engines(const Problem &p) {
  if (p.then.empty()) return true;
  if (p.of != Cudnn::kForward) return false;
  Numbers bias(p.result.lengths.size(), 1);
  bias[1] = p.result.lengths[1];
  std::vector<const Pointwise *> sums;
  for (const Pointwise &then : p.then) {
    if (then.mode == Cudnn::kAdd) sums.push_back(&then);
  }
  const bool has_relu = p.then.back().mode == Cudnn::kRelu;
  if (sums.size() + (has_relu ? 1 : 0) != p.then.size() || sums.empty() || sums.size() > 2) return false;
  if (sums.size() == 2 && sums[0]->second.lengths != p.result.lengths) return false;
  return sums.back()->second.lengths == bias &&
         std::all_of(sums.begin(), sums.end(), [&](const Pointwise *sum) { return sum->second.type == p.data.type; });
}

// In the order of recommendation.
Numbers recommended(const Problem &p, int mode) {
  if (!has_engines(p)) return {};
  const bool aligned = std::min({p.data.alignment, p.filters.alignment, p.result.alignment}) >= 16;
  if (mode == Cudnn::kFallback) return {20, 40, 0};
  Numbers all{20, 21, 40, 30, 42};
  const auto are_all = [](auto begin, auto end, int64_t value) {
    return std::all_of(begin, end, [=](int64_t n) { return n == value; });
  };
  if (p.data.type == Cudnn::kFloat && p.stride.size() == 2 && are_all(p.stride.begin(), p.stride.end(), 1) &&
      are_all(p.filters.lengths.begin() + 2, p.filters.lengths.end(), 3)) {
    all.push_back(31);
  }
  if (p.data.type != Cudnn::kFloat) {
    if (aligned) all.push_back(10);
  } else {
    all.push_back(22);
    if (aligned) all.push_back(11);
  }
  all.push_back(41);
  if (p.data.lengths[1] % 2 == 0) all.push_back(1);  // the fallback lists the others
  return all;
}

struct Attribute {
  int of, type;  // the type of descriptor that has it; -1: any operation
  int64_t most;  // elements
};
const Attribute *known_attribute(int name) {
  static const auto *const all = new std::map<int, Attribute>{
      {Cudnn::kConvolutionComputeType, {Cudnn::kConvolution, Cudnn::kDataTypeType, 1}},
      {Cudnn::kConvolutionConvolutionMode, {Cudnn::kConvolution, Cudnn::kConvolutionModeType, 1}},
      {Cudnn::kConvolutionDilations, {Cudnn::kConvolution, Cudnn::kInt64Type, 3}},
      {Cudnn::kConvolutionStrides, {Cudnn::kConvolution, Cudnn::kInt64Type, 3}},
      {Cudnn::kConvolutionPrePaddings, {Cudnn::kConvolution, Cudnn::kInt64Type, 3}},
      {Cudnn::kConvolutionPostPaddings, {Cudnn::kConvolution, Cudnn::kInt64Type, 3}},
      {Cudnn::kConvolutionNumAxes, {Cudnn::kConvolution, Cudnn::kInt64Type, 1}},
      {Cudnn::kPointwiseMode, {Cudnn::kPointwise, Cudnn::kPointwiseModeType, 1}},
      {Cudnn::kPointwiseComputeType, {Cudnn::kPointwise, Cudnn::kDataTypeType, 1}},
      {Cudnn::kPointwiseNanPropagation, {Cudnn::kPointwise, Cudnn::kNanPropagationType, 1}},
      {Cudnn::kPointwiseDescriptor, {Cudnn::kPointwiseOperation, Cudnn::kDescriptorType, 1}},
      {Cudnn::kPointwiseInput, {Cudnn::kPointwiseOperation, Cudnn::kDescriptorType, 1}},
      {Cudnn::kPointwiseSecondInput, {Cudnn::kPointwiseOperation, Cudnn::kDescriptorType, 1}},
      {Cudnn::kPointwiseOutput, {Cudnn::kPointwiseOperation, Cudnn::kDescriptorType, 1}},
      {Cudnn::kHeuristicsMode, {Cudnn::kHeuristics, Cudnn::kHeuristicModeType, 1}},
      {Cudnn::kHeuristicsGraph, {Cudnn::kHeuristics, Cudnn::kDescriptorType, 1}},
      {Cudnn::kPlanHandle, {Cudnn::kExecutionPlan, Cudnn::kHandleType, 1}},
      {Cudnn::kPlanEngineConfig, {Cudnn::kExecutionPlan, Cudnn::kDescriptorType, 1}},
      {Cudnn::kForwardAlpha, {Cudnn::kForward, Cudnn::kFloatType, 1}},
      {Cudnn::kForwardBeta, {Cudnn::kForward, Cudnn::kFloatType, 1}},
      {Cudnn::kForwardConvolution, {Cudnn::kForward, Cudnn::kDescriptorType, 1}},
      {Cudnn::kForwardFilters, {Cudnn::kForward, Cudnn::kDescriptorType, 1}},
      {Cudnn::kForwardData, {Cudnn::kForward, Cudnn::kDescriptorType, 1}},
      {Cudnn::kForwardResult, {Cudnn::kForward, Cudnn::kDescriptorType, 1}},
      {Cudnn::kDataAlpha, {Cudnn::kBackwardData, Cudnn::kFloatType, 1}},
      {Cudnn::kDataBeta, {Cudnn::kBackwardData, Cudnn::kFloatType, 1}},
      {Cudnn::kDataConvolution, {Cudnn::kBackwardData, Cudnn::kDescriptorType, 1}},
      {Cudnn::kDataFilters, {Cudnn::kBackwardData, Cudnn::kDescriptorType, 1}},
      {Cudnn::kDataData, {Cudnn::kBackwardData, Cudnn::kDescriptorType, 1}},
      {Cudnn::kDataResult, {Cudnn::kBackwardData, Cudnn::kDescriptorType, 1}},
      {Cudnn::kFilterAlpha, {Cudnn::kBackwardFilter, Cudnn::kFloatType, 1}},
      {Cudnn::kFilterBeta, {Cudnn::kBackwardFilter, Cudnn::kFloatType, 1}},
      {Cudnn::kFilterConvolution, {Cudnn::kBackwardFilter, Cudnn::kDescriptorType, 1}},
      {Cudnn::kFilterFilters, {Cudnn::kBackwardFilter, Cudnn::kDescriptorType, 1}},
      {Cudnn::kFilterData, {Cudnn::kBackwardFilter, Cudnn::kDescriptorType, 1}},
      {Cudnn::kFilterResult, {Cudnn::kBackwardFilter, Cudnn::kDescriptorType, 1}},
      {Cudnn::kGraphHandle, {Cudnn::kOperationGraph, Cudnn::kHandleType, 1}},
      {Cudnn::kGraphOperations, {Cudnn::kOperationGraph, Cudnn::kDescriptorType, 8}},
      {Cudnn::kTensorAlignment, {Cudnn::kTensor, Cudnn::kInt64Type, 1}},
      {Cudnn::kTensorDataType, {Cudnn::kTensor, Cudnn::kDataTypeType, 1}},
      {Cudnn::kTensorDimensions, {Cudnn::kTensor, Cudnn::kInt64Type, 8}},
      {Cudnn::kTensorStrides, {Cudnn::kTensor, Cudnn::kInt64Type, 8}},
      {Cudnn::kTensorId, {Cudnn::kTensor, Cudnn::kInt64Type, 1}},
      {Cudnn::kTensorIsVirtual, {Cudnn::kTensor, Cudnn::kBooleanType, 1}},
      {Cudnn::kPackIds, {Cudnn::kVariantPack, Cudnn::kInt64Type, 8}},
      {Cudnn::kPackPointers, {Cudnn::kVariantPack, Cudnn::kPointerType, 8}},
      {Cudnn::kPackWorkspace, {Cudnn::kVariantPack, Cudnn::kPointerType, 1}},
  };
  const auto found = all->find(name);
  return found == all->end() ? nullptr : &found->second;
}

size_t element_bytes(int type) {
  if (type == Cudnn::kBooleanType) return 1;
  return type == Cudnn::kInt64Type || type == Cudnn::kPointerType || type == Cudnn::kDescriptorType ||
                 type == Cudnn::kHandleType
             ? 8
             : 4;
}

thread_local std::string last_error;
int wrong(const std::string &what, int status = Cudnn::kBadParameter) {
  last_error = what;
  return status;
}
// Reports a call that is an error of the caller in any case.
int reported(const std::string &what) {
  sim().report("cudnn: " + what);
  return wrong(what);
}

}  // namespace

struct cohort::CudnnHandle {
  int device;
  CUstream_st *stream = nullptr;
  std::thread::id set_by = {};  // its stream
  bool in_use = false;          // from then on until something is executed
};

struct cohort::CudnnDescriptor {
  int type;
  bool finalized = false;
  std::map<int, std::vector<char>> values = {};
  std::shared_ptr<Problem> problem = nullptr;  // if it has one
  int64_t engine = -1;
  CudnnHandle *handle = nullptr;  // of a plan
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);

  bool has(int name) const { return values.count(name) != 0; }
  template <typename T>
  std::vector<T> all(int name) const {
    const auto found = values.find(name);
    std::vector<T> read(found == values.end() ? 0 : found->second.size() / sizeof(T));
    if (!read.empty()) std::memcpy(read.data(), found->second.data(), read.size() * sizeof(T));
    return read;
  }
  template <typename T>
  T one(int name) const {
    const std::vector<T> read = all<T>(name);
    return read.size() == 1 ? read[0] : T();
  }
};

namespace {

using cohort::CudnnDescriptor;
using cohort::CudnnHandle;

struct Library {
  std::set<const CudnnDescriptor *> descriptors;
  std::set<const CudnnHandle *> handles;
};
Library &library() {  // under the simulator's lock
  static auto *const all = new Library;
  return *all;
}

const CudnnDescriptor *finished(const CudnnDescriptor *of, int name, int type) {
  const auto *const found = of->one<const CudnnDescriptor *>(name);
  if (!found || !library().descriptors.count(found)) {
    reported("a descriptor is meant that is not alive");
    return nullptr;
  }
  if (found->type != type || !found->finalized) return nullptr;
  return found;
}

int finish_tensor(CudnnDescriptor *d) {
  Tensor t;
  t.id = d->one<int64_t>(Cudnn::kTensorId);
  t.alignment = d->one<int64_t>(Cudnn::kTensorAlignment);
  t.type = d->one<int>(Cudnn::kTensorDataType);
  t.is_virtual = d->one<uint8_t>(Cudnn::kTensorIsVirtual) != 0;
  t.lengths = d->all<int64_t>(Cudnn::kTensorDimensions);
  t.strides = d->all<int64_t>(Cudnn::kTensorStrides);
  if (!d->has(Cudnn::kTensorDataType) || !d->has(Cudnn::kTensorId)) return wrong("a tensor has no type or no id");
  if (t.type != Cudnn::kFloat && t.type != Cudnn::kHalf && t.type != Cudnn::kBfloat16) return wrong("type of a tensor");
  const auto bytes = int64_t(size_of(cuda_type(t.type)));
  if (t.alignment <= 0 || t.alignment % bytes != 0) return wrong("alignment of a tensor");
  if (t.lengths.size() < 4 || t.lengths.size() > 5 || t.strides.size() != t.lengths.size()) return wrong("axes");
  for (const Numbers *numbers : {&t.lengths, &t.strides}) {
    for (const int64_t n : *numbers) {
      if (n <= 0) return wrong("a length or a stride is not positive");
    }
  }
  d->problem = std::make_shared<Problem>();
  d->problem->data = t;
  return Cudnn::kSuccess;
}

int finish_convolution(CudnnDescriptor *d) {
  const auto n = size_t(d->one<int64_t>(Cudnn::kConvolutionNumAxes));
  if (!d->has(Cudnn::kConvolutionComputeType) || d->one<int>(Cudnn::kConvolutionComputeType) != Cudnn::kFloat ||
      d->one<int>(Cudnn::kConvolutionConvolutionMode) != Cudnn::kCrossCorrelation || n < 2 || n > 3) {
    return wrong("a convolution", Cudnn::kNotSupported);
  }
  auto made = std::make_shared<Problem>();
  made->stride = d->all<int64_t>(Cudnn::kConvolutionStrides);
  made->dilate = d->all<int64_t>(Cudnn::kConvolutionDilations);
  made->pad = d->all<int64_t>(Cudnn::kConvolutionPrePaddings);
  if (made->stride.size() != n || made->dilate.size() != n || made->pad.size() != n ||
      made->pad != d->all<int64_t>(Cudnn::kConvolutionPostPaddings)) {
    return wrong("axes of a convolution");
  }
  for (size_t a = 0; a < n; ++a) {
    if (made->stride[a] < 1 || made->dilate[a] < 1 || made->pad[a] < 0) return wrong("numbers of a convolution");
  }
  d->problem = made;
  return Cudnn::kSuccess;
}

int finish_operation(CudnnDescriptor *d) {
  struct Names {
    int alpha, beta, convolution, data, filters, result;
  };
  const Names names =
      d->type == Cudnn::kForward ? Names{Cudnn::kForwardAlpha, Cudnn::kForwardBeta,    Cudnn::kForwardConvolution,
                                         Cudnn::kForwardData,  Cudnn::kForwardFilters, Cudnn::kForwardResult}
      : d->type == Cudnn::kBackwardData ? Names{Cudnn::kDataAlpha, Cudnn::kDataBeta,    Cudnn::kDataConvolution,
                                                Cudnn::kDataData,  Cudnn::kDataFilters, Cudnn::kDataResult}
                                        : Names{Cudnn::kFilterAlpha, Cudnn::kFilterBeta,    Cudnn::kFilterConvolution,
                                                Cudnn::kFilterData,  Cudnn::kFilterFilters, Cudnn::kFilterResult};
  const CudnnDescriptor *const convolution = finished(d, names.convolution, Cudnn::kConvolution);
  const CudnnDescriptor *const data = finished(d, names.data, Cudnn::kTensor);
  const CudnnDescriptor *const filters = finished(d, names.filters, Cudnn::kTensor);
  const CudnnDescriptor *const result = finished(d, names.result, Cudnn::kTensor);
  if (!convolution || !data || !filters || !result) return wrong("an operation has a part that is not finalized");
  if (d->one<float>(names.alpha) != 1 || !d->has(names.beta) || d->one<float>(names.beta) != 0) {
    return wrong("alpha and beta", Cudnn::kNotSupported);
  }
  Problem p = *convolution->problem;
  p.of = d->type;
  p.data = data->problem->data, p.filters = filters->problem->data, p.result = result->problem->data;
  const size_t n = p.stride.size();
  const Numbers &x = p.data.lengths, &w = p.filters.lengths, &y = p.result.lengths;
  if (x.size() != n + 2 || w.size() != n + 2 || y.size() != n + 2) return wrong("axes of an operation's tensors");
  const Tensor &made = d->type == Cudnn::kForward ? p.result : d->type == Cudnn::kBackwardData ? p.data : p.filters;
  for (const Tensor *t : {&p.data, &p.filters, &p.result}) {
    if (t->is_virtual && t != &made) return wrong("a virtual tensor that nothing has written");
    if (t->type != (t->is_virtual ? int(Cudnn::kFloat) : p.result.is_virtual ? p.data.type : p.result.type))
      return wrong("types", Cudnn::kNotSupported);
  }
  if (p.data.id == p.filters.id || p.data.id == p.result.id || p.filters.id == p.result.id) return wrong("ids");
  if (x[0] != y[0] || x[1] % w[1] != 0 || w[0] != y[1] || w[0] % (x[1] / w[1]) != 0) return wrong("channels");
  for (size_t a = 0; a < n; ++a) {
    const int64_t room = x[a + 2] + 2 * p.pad[a] - p.dilate[a] * (w[a + 2] - 1) - 1;
    if (room < 0 || y[a + 2] != room / p.stride[a] + 1) return wrong("lengths of a result");
  }
  d->problem = p.self();
  return Cudnn::kSuccess;
}

int finish_pointwise(CudnnDescriptor *d) {
  const CudnnDescriptor *const what = finished(d, Cudnn::kPointwiseDescriptor, Cudnn::kPointwise);
  const CudnnDescriptor *const from = finished(d, Cudnn::kPointwiseInput, Cudnn::kTensor);
  const CudnnDescriptor *const to = finished(d, Cudnn::kPointwiseOutput, Cudnn::kTensor);
  if (!what || !from || !to) return wrong("a pointwise operation has a part that is not finalized");
  const int mode = what->one<int>(Cudnn::kPointwiseMode);
  Problem p;
  p.of = d->type;
  p.data = from->problem->data, p.result = to->problem->data;
  Pointwise then{mode, what->one<int>(Cudnn::kPointwiseNanPropagation) == Cudnn::kPropagateNan, {}};
  if ((mode == Cudnn::kAdd) != d->has(Cudnn::kPointwiseSecondInput)) return wrong("inputs of a pointwise operation");
  if (mode == Cudnn::kAdd) {
    const CudnnDescriptor *const second = finished(d, Cudnn::kPointwiseSecondInput, Cudnn::kTensor);
    if (!second || second->problem->data.is_virtual) return wrong("a pointwise operation has no second input");
    then.second = second->problem->data;
    for (size_t a = 0; a < p.data.lengths.size(); ++a) {
      const int64_t length = a < then.second.lengths.size() ? then.second.lengths[a] : 0;
      if (length != 1 && length != p.data.lengths[a]) return wrong("lengths of an addend");
    }
  }
  if (p.data.lengths != p.result.lengths) return wrong("lengths of a pointwise operation");
  p.then = {then};
  d->problem = p.self();
  return Cudnn::kSuccess;
}

// Takes over the contents of the descriptor that it refers to.
int inherit(CudnnDescriptor *d, const CudnnDescriptor *from, const char *what) {
  if (!from) return wrong(what);
  d->problem = from->problem;
  d->engine = from->engine;
  return Cudnn::kSuccess;
}

// Whether it can be used to create a graph or a plan, on this thread.
int check_handle(const CudnnHandle *handle, const CUctx_st *context) {
  if (!library().handles.count(handle)) return reported("a graph or a plan has no handle");
  if (handle->device != context->device) return reported("the handle of a graph or a plan is of another device");
  if (handle->in_use && handle->set_by != std::this_thread::get_id()) {
    return reported("a handle is used by two threads at once");
  }
  CUstream_st *const stream = handle->stream;
  if (stream && (!sim().streams.count(stream) || stream->destroyed)) {
    return reported("a handle is used whose stream is no more");
  }
  return Cudnn::kSuccess;
}

int finish_graph(CudnnDescriptor *d, const CUctx_st *context) {
  const int refused = check_handle(d->one<const CudnnHandle *>(Cudnn::kGraphHandle), context);
  if (refused) return refused;
  const auto operations = d->all<const CudnnDescriptor *>(Cudnn::kGraphOperations);
  for (const CudnnDescriptor *operation : operations) {
    if (!library().descriptors.count(operation)) return reported("a graph's operation is not alive");
    if (!operation->finalized || !operation->problem || operation->problem->of == 0) return wrong("a graph");
  }
  if (operations.empty() || operations[0]->problem->of == Cudnn::kPointwiseOperation) return wrong("a graph");
  Problem p = *operations[0]->problem;
  p.output = p.of == Cudnn::kForward ? p.result : p.of == Cudnn::kBackwardData ? p.data : p.filters;
  std::set<int64_t> ids{p.data.id, p.filters.id, p.result.id};
  for (size_t i = 1; i < operations.size(); ++i) {
    const Problem &next = *operations[i]->problem;
    if (next.of != Cudnn::kPointwiseOperation || !p.output.is_virtual || next.data.id != p.output.id)
      return wrong("operations of a graph that do not follow each other");
    const Pointwise &then = next.then[0];
    if (!ids.insert(next.result.id).second || (then.mode == Cudnn::kAdd && !ids.insert(then.second.id).second))
      return wrong("ids of a graph");
    p.then.push_back(then);
    p.output = next.result;
  }
  if (p.output.is_virtual) return wrong("a graph whose output is virtual");
  if (p.output.type != p.filters.type) return wrong("types of a graph", Cudnn::kNotSupported);
  d->problem = p.self();
  return Cudnn::kSuccess;
}

int finish_plan(CudnnDescriptor *d, const CUctx_st *context) {
  sim().check_no_launch("cudnnBackendFinalize of a plan");
  const int status = inherit(d, finished(d, Cudnn::kPlanEngineConfig, Cudnn::kEngineConfig), "a plan");
  if (status) return status;
  d->handle = d->one<CudnnHandle *>(Cudnn::kPlanHandle);
  const int refused = check_handle(d->handle, context);
  if (refused) return refused;
  return engine_of(d->engine).supported ? int(Cudnn::kSuccess) : wrong("no such engine", Cudnn::kNotSupported);
}

int failed(cudaError_t refused) {
  last_error = "CUDA says " + std::to_string(int(refused));
  return refused == cudaErrorMemoryAllocation ? Cudnn::kDeviceAllocationFailed : Cudnn::kExecutionFailed;
}

bool is_aligned(const void *data, int64_t alignment) {
  return reinterpret_cast<uintptr_t>(data) % uint64_t(alignment) == 0;
}

}  // namespace

extern "C" {

#define CUDNN_API __attribute__((visibility("default")))  // found by name, as the real ones are

int cudasim_num_cudnn_descriptors(void) {
  const std::lock_guard<std::mutex> lock(sim().mutex);
  return int(library().descriptors.size());
}
int cudasim_num_cudnn_handles(void) {
  const std::lock_guard<std::mutex> lock(sim().mutex);
  return int(library().handles.size());
}

CUDNN_API size_t cudnnGetVersion() { return sim().cudnn_version; }
CUDNN_API const char *cudnnGetErrorString(int status) {
  return status == Cudnn::kSuccess          ? "CUDNN_STATUS_SUCCESS"
         : status < Cudnn::kNotSupported    ? "CUDNN_STATUS_BAD_PARAM"
         : status < Cudnn::kExecutionFailed ? "CUDNN_STATUS_NOT_SUPPORTED"
                                            : "CUDNN_STATUS_EXECUTION_FAILED";
}
CUDNN_API void cudnnGetLastErrorString(char *message, size_t bytes) {
  std::strncpy(message, last_error.c_str(), bytes);
  last_error.clear();
}

CUDNN_API int cudnnCreate(CudnnHandle **handle) {
  const Call call("cudnnCreate", Call::kContext, true);
  if (call.refused) return failed(call.refused);
  sim().check_no_launch("cudnnCreate");
  *handle = new CudnnHandle{call.context->device};
  library().handles.insert(*handle);
  return Cudnn::kSuccess;
}

CUDNN_API int cudnnSetStream(CudnnHandle *handle, CUstream_st *stream) {
  Call call("cudnnSetStream", Call::kContext);
  if (call.refused) return failed(call.refused);
  if (!library().handles.count(handle)) return reported("no handle");
  if (stream && (!sim().streams.count(stream) || stream->context->device != handle->device)) {
    return reported("the stream is of another device than the handle");
  }
  handle->stream = stream;  // null: the default stream
  handle->set_by = std::this_thread::get_id();
  handle->in_use = stream != nullptr;
  call.lock.unlock();
  std::this_thread::yield();  // lets another thread come in between
  return Cudnn::kSuccess;
}

CUDNN_API int cudnnBackendCreateDescriptor(int type, CudnnDescriptor **descriptor) {
  const Call call("cudnnBackendCreateDescriptor", Call::kNothing);
  if (call.refused) return failed(call.refused);
  *descriptor = new CudnnDescriptor{type};
  library().descriptors.insert(*descriptor);
  return Cudnn::kSuccess;
}

CUDNN_API int cudnnBackendDestroyDescriptor(CudnnDescriptor *descriptor) {
  const Call call("cudnnBackendDestroyDescriptor", Call::kNothing);
  if (call.refused) return failed(call.refused);
  if (!library().descriptors.erase(descriptor)) return reported("a descriptor is destroyed that is not alive");
  if (descriptor->type == Cudnn::kExecutionPlan && descriptor->finalized) {  // its code is unloaded
    sim().check_no_launch("cudnnBackendDestroyDescriptor of a plan");
    sim().check_current(descriptor->handle->device, "cudnnBackendDestroyDescriptor of a plan");
  }
  *descriptor->alive = false;
  delete descriptor;
  return Cudnn::kSuccess;
}

CUDNN_API int cudnnBackendSetAttribute(CudnnDescriptor *descriptor, int name, int type, int64_t count,
                                       const void *elements) {
  const Call call("cudnnBackendSetAttribute", Call::kNothing);
  if (call.refused) return failed(call.refused);
  if (!library().descriptors.count(descriptor)) return reported("a descriptor is set that is not alive");
  if (descriptor->finalized) return reported("a descriptor is set that is finalized");
  const Attribute *const known = known_attribute(name);
  if (!known || known->of != descriptor->type || known->type != type || count < 1 || count > known->most) {
    return reported("attribute " + std::to_string(name) + " of a descriptor " + std::to_string(descriptor->type));
  }
  const auto *const bytes = static_cast<const char *>(elements);
  descriptor->values[name].assign(bytes, bytes + size_t(count) * element_bytes(type));
  return Cudnn::kSuccess;
}

CUDNN_API int cudnnBackendFinalize(CudnnDescriptor *descriptor) {
  const bool of_device = descriptor->type == Cudnn::kOperationGraph || descriptor->type == Cudnn::kExecutionPlan;
  const Call call("cudnnBackendFinalize", of_device ? Call::kContext : Call::kNothing);
  if (call.refused) return failed(call.refused);
  if (!library().descriptors.count(descriptor)) return reported("a descriptor is finalized that is not alive");
  if (descriptor->finalized) return reported("a descriptor is finalized twice");
  int status = Cudnn::kSuccess;
  switch (descriptor->type) {
    case Cudnn::kTensor:
      status = finish_tensor(descriptor);
      break;
    case Cudnn::kConvolution:
      status = finish_convolution(descriptor);
      break;
    case Cudnn::kPointwise:
      if (!descriptor->has(Cudnn::kPointwiseMode) ||
          descriptor->one<int>(Cudnn::kPointwiseComputeType) != Cudnn::kFloat) {
        status = wrong("a pointwise descriptor", Cudnn::kNotSupported);
      }
      break;
    case Cudnn::kPointwiseOperation:
      status = finish_pointwise(descriptor);
      break;
    case Cudnn::kForward:
    case Cudnn::kBackwardData:
    case Cudnn::kBackwardFilter:
      status = finish_operation(descriptor);
      break;
    case Cudnn::kOperationGraph:
      status = finish_graph(descriptor, call.context);
      break;
    case Cudnn::kHeuristics:
      status = inherit(descriptor, finished(descriptor, Cudnn::kHeuristicsGraph, Cudnn::kOperationGraph), "heuristics");
      break;
    case Cudnn::kExecutionPlan:
      status = finish_plan(descriptor, call.context);
      break;
    case Cudnn::kVariantPack:
      if (descriptor->all<int64_t>(Cudnn::kPackIds).size() != descriptor->all<void *>(Cudnn::kPackPointers).size())
        status = wrong("a pack");
      break;
    default:
      status = reported("a descriptor is finalized that only the library makes");
  }
  descriptor->finalized = status == Cudnn::kSuccess;
  return status;
}

CUDNN_API int cudnnBackendGetAttribute(const CudnnDescriptor *descriptor, int name, int type, int64_t room,
                                       int64_t *count, void *elements) {
  const Call call("cudnnBackendGetAttribute", Call::kNothing);
  if (call.refused) return failed(call.refused);
  if (!library().descriptors.count(descriptor)) return reported("a descriptor is asked that is not alive");
  if (!descriptor->finalized) return reported("a descriptor is asked that is not finalized");
  const auto into = [&](int64_t i, int expected) {  // a descriptor created by the caller
    auto *const made = static_cast<CudnnDescriptor **>(elements)[i];
    if (!library().descriptors.count(made) || made->type != expected || made->finalized)
      return (CudnnDescriptor *)nullptr;
    return made;
  };
  const auto tell = [&](CudnnDescriptor *made, int64_t engine) {
    made->problem = descriptor->problem;
    made->engine = engine;
    made->finalized = true;
  };
  if (descriptor->type == Cudnn::kHeuristics && name == Cudnn::kHeuristicsResults && type == Cudnn::kDescriptorType) {
    const Numbers all = recommended(*descriptor->problem, descriptor->one<int>(Cudnn::kHeuristicsMode));
    *count = int64_t(all.size()) + (room == 0 ? 2 : 0);  // at most so many, then
    for (int64_t i = 0; i < std::min(room, int64_t(all.size())); ++i) {
      CudnnDescriptor *const made = into(i, Cudnn::kEngineConfig);
      if (!made) return reported("results are wanted in descriptors of another kind");
      tell(made, all[size_t(i)]);
    }
    return Cudnn::kSuccess;
  }
  if (descriptor->type == Cudnn::kEngineConfig && name == Cudnn::kEngineConfigEngine && room == 1) {
    CudnnDescriptor *const made = into(0, Cudnn::kEngine);
    if (!made) return reported("an engine is wanted in a descriptor of another kind");
    tell(made, descriptor->engine);
    *count = 1;
    return Cudnn::kSuccess;
  }
  if (descriptor->type == Cudnn::kEngine && name == Cudnn::kEngineNotes && type == Cudnn::kNoteType) {
    const std::vector<int> &notes = engine_of(descriptor->engine).notes;
    *count = int64_t(notes.size());
    std::copy_n(notes.begin(), std::min(size_t(room), notes.size()), static_cast<int *>(elements));
    return Cudnn::kSuccess;
  }
  int64_t number = -1;
  if (descriptor->type == Cudnn::kEngine && name == Cudnn::kEngineIndex) number = descriptor->engine;
  if (descriptor->type == Cudnn::kExecutionPlan && name == Cudnn::kPlanWorkspace) {
    number = engine_of(descriptor->engine).workspace;
  }
  if (number < 0 || type != Cudnn::kInt64Type || room != 1) return reported("what is asked for is not known");
  *static_cast<int64_t *>(elements) = number;
  *count = 1;
  return Cudnn::kSuccess;
}

CUDNN_API int cudnnBackendExecute(CudnnHandle *handle, CudnnDescriptor *plan, CudnnDescriptor *pack) {
  const Call call("cudnnBackendExecute", Call::kContext);
  if (call.refused) return failed(call.refused);
  for (const CudnnDescriptor *descriptor : {plan, pack}) {
    if (!library().descriptors.count(descriptor) || !descriptor->finalized)
      return reported("a descriptor is not ready");
  }
  if (plan->type != Cudnn::kExecutionPlan || pack->type != Cudnn::kVariantPack) return reported("no plan or no pack");
  if (!library().handles.count(handle) || plan->handle != handle) return reported("a plan runs by another handle");
  handle->in_use = false;
  if (handle->device != call.context->device) return reported("another device is current than the handle's");
  if (!handle->stream || handle->set_by != std::this_thread::get_id()) {
    return reported("the stream was set by another thread");
  }
  Run run;
  run.p = *plan->problem, run.engine = engine_of(plan->engine);
  run.workspace = pack->one<void *>(Cudnn::kPackWorkspace), run.plan = plan->alive;
  const std::vector<int64_t> ids = pack->all<int64_t>(Cudnn::kPackIds);
  const std::vector<const void *> pointers = pack->all<const void *>(Cudnn::kPackPointers);
  const auto arrays = run.arrays();
  if (ids.size() != arrays.size()) return reported("a pack has other arrays than the graph");
  for (const auto &[described, place] : arrays) {
    const Tensor &tensor = *described;
    const auto found = std::find(ids.begin(), ids.end(), tensor.id);
    if (found == ids.end()) return reported("a pack lacks an array");
    *place = pointers[size_t(found - ids.begin())];
    if (!is_aligned(*place, tensor.alignment)) return reported("an array is not aligned as its descriptor says");
  }
  if (run.engine.workspace && (!run.workspace || !is_aligned(run.workspace, 256))) {
    return reported("the workspace is missing, or not aligned");
  }
  // One code for all problems of a type; odd, so that it differs from every code address.
  sim().use_code(2 * (uint64_t(run.engine.index) * 64 + uint64_t(run.p.of) * 4 + uint64_t(run.p.data.type)) + 1,
                 handle->stream, "a convolution");
  sim().launch(handle->stream, {"a convolution", run});
  return Cudnn::kSuccess;
}

}  // extern "C"
