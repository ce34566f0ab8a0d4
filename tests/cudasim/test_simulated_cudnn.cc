// SPDX-License-Identifier: Apache-2.0
// Tests that the simulated cuDNN reports misuse. Linked to the simulator and to the code that calls cuDNN.
#include <cmath>
#include <map>
#include <set>
#include <thread>

#include "cuda/cuda_check.hpp"
#include "cuda/op/convolution_plan.hpp"
#include "cudasim.h"
#include "support/unit.hpp"

using namespace cohort;

extern "C" {
size_t cudnnGetVersion();
const char *cudnnGetErrorString(int);
void cudnnGetLastErrorString(char *, size_t);
int cudnnCreate(CudnnHandle **);
int cudnnSetStream(CudnnHandle *, CUstream_st *);
int cudnnBackendCreateDescriptor(int, CudnnDescriptor **);
int cudnnBackendDestroyDescriptor(CudnnDescriptor *);
int cudnnBackendSetAttribute(CudnnDescriptor *, int, int, int64_t, const void *);
int cudnnBackendGetAttribute(const CudnnDescriptor *, int, int, int64_t, int64_t *, void *);
int cudnnBackendFinalize(CudnnDescriptor *);
int cudnnBackendExecute(CudnnHandle *, CudnnDescriptor *, CudnnDescriptor *);
}

namespace {

// The simulated cuDNN is part of this program, so there is no library to load.
const Cudnn &cudnn() {
  static const Cudnn functions{cudnnGetVersion,
                               cudnnGetErrorString,
                               cudnnGetLastErrorString,
                               cudnnCreate,
                               cudnnSetStream,
                               cudnnBackendCreateDescriptor,
                               cudnnBackendDestroyDescriptor,
                               cudnnBackendSetAttribute,
                               cudnnBackendGetAttribute,
                               cudnnBackendFinalize,
                               cudnnBackendExecute};
  return functions;
}

bool reported(const char *words) { return std::strstr(cudasim_reports(), words) != nullptr; }

// Two samples of four channels of 5 x 5, three filters of 3 x 3.
ConvolutionProblem a_problem(ConvolutionProblem::Of of = ConvolutionProblem::kResult) {
  ConvolutionProblem p{of, Dtype::kFloat32, false, 2, 16, 1 << 20, {}, {}};
  ConvolutionSizes &s = p.sizes;
  s.batch = 2, s.groups = 1, s.in_channels = 4, s.out_channels = 3;
  s.in = {1, 5, 5}, s.out = {1, 3, 3}, s.kernel = {1, 3, 3};
  s.stride = s.dilate = {1, 1, 1}, s.pad = {0, 0, 0};
  s.in_batch_step = 100, s.in_channel_step = 25, s.in_step = {0, 5, 1};
  s.out_batch_step = 27, s.out_channel_step = 9, s.out_step = {0, 3, 1};
  s.weight_out_step = 36, s.weight_in_step = 9, s.weight_step = {0, 3, 1};
  return p;
}

// A device with arrays, a handle and a plan.
struct On {
  explicit On(int id = 0, const Cudnn &library = cudnn(), const ConvolutionProblem &problem = a_problem())
      : device(id) {
    CUDA_CHECK(cudaSetDevice(id));
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    check_cudnn(library, library.create(&handle), "cudnnCreate");
    check_cudnn(library, library.set_stream(handle, stream), "cudnnSetStream");
    data = filled(200), filters = filled(108), result = filled(54), workspace = filled(4096);
    std::string why;
    plan = ConvolutionPlan::find(library, problem, {handle, nullptr}, &why);
    if (!plan) throw std::runtime_error(why);
  }
  ~On() {
    cudaSetDevice(device);
    cudaStreamSynchronize(stream);
    plan.reset();
    cudaStreamDestroy(stream);
  }
  float *filled(int64_t count) const {
    std::vector<float> values(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); ++i) values[i] = 1.0f / float(i % 23 + 3);
    void *made = nullptr;
    CUDA_CHECK(cudaMalloc(&made, values.size() * sizeof(float)));
    CUDA_CHECK(cudaMemcpyAsync(made, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    return static_cast<float *>(made);
  }
  std::vector<float> read(const float *from, size_t count) const {
    std::vector<float> values(count);
    CUDA_CHECK(cudaMemcpyAsync(values.data(), from, count * sizeof(float), cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    return values;
  }
  void run() const { plan->run(handle, {data, filters, result}, workspace); }

  const int device;
  cudaStream_t stream = nullptr;
  CudnnHandle *handle = nullptr;
  float *data, *filters, *result, *workspace;
  std::unique_ptr<ConvolutionPlan> plan;
};

std::vector<float> expected() {
  const auto at = [](int i) { return 1.0f / float(i % 23 + 3); };
  std::vector<float> values;
  for (int n = 0; n < 2; ++n)
    for (int o = 0; o < 3; ++o)
      for (int p = 0; p < 9; ++p) {
        double sum = 0;
        for (int c = 0; c < 4; ++c)
          for (int q = 0; q < 9; ++q)
            sum += double(at(n * 100 + c * 25 + (p / 3 + q / 3) * 5 + p % 3 + q % 3)) * double(at(o * 36 + c * 9 + q));
        values.push_back(float(sum));
      }
  return values;
}

double farthest(const std::vector<float> &a, const std::vector<float> &b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::fabs(double(a[i]) / double(b[i]) - 1));
  return most;
}

TEST(a_plan_computes_a_convolution_and_nothing_is_reported) {
  const On on;
  CHECK_EQ(on.plan->engine(), int64_t(1));
  on.run();
  CHECK(farthest(on.read(on.result, 54), expected()) < 1e-6);
  CHECK_EQ(std::string(cudasim_reports()), std::string());
}

// The addend comes before the bias; relu keeps NaN.
TEST(a_graph_adds_an_array_and_a_bias_and_applies_relu) {
  ConvolutionProblem problem = a_problem();
  problem.epilogue = {true, true, true};
  const On on(0, cudnn(), problem);
  std::vector<float> addend(54), bias{-1, 0.5f, -2};
  for (size_t i = 0; i < addend.size(); ++i) addend[i] = float(i % 7) - 3;
  addend[20] = NAN;
  float *const added = on.filled(54), *const added_bias = on.filled(3);
  CUDA_CHECK(cudaMemcpyAsync(added, addend.data(), 54 * sizeof(float), cudaMemcpyHostToDevice, on.stream));
  CUDA_CHECK(cudaMemcpyAsync(added_bias, bias.data(), 3 * sizeof(float), cudaMemcpyHostToDevice, on.stream));
  on.plan->run(on.handle, {on.data, on.filters, on.result, added, added_bias}, on.workspace);
  const std::vector<float> found = on.read(on.result, 54), sums = expected();
  int num_zero = 0;
  for (size_t i = 0; i < 54; ++i) {
    const float y = sums[i] + addend[i] + bias[i / 9 % 3];
    if (y != y) {
      CHECK(found[i] != found[i]);
      continue;
    }
    CHECK(std::fabs(found[i] - std::max(y, 0.0f)) < 1e-5);
    num_zero += found[i] == 0;
  }
  CHECK(num_zero > 0 && num_zero < 53);
  CHECK_EQ(std::string(cudasim_reports()), std::string());
}

TEST(an_engine_that_may_transform_arrays_is_not_chosen) {
  ConvolutionProblem problem = a_problem();
  problem.most_workspace = size_t(64) << 20;
  const On on(0, cudnn(), problem);
  CHECK_EQ(on.plan->engine(), int64_t(1));
}

TEST(graphs_without_a_bias_have_no_engines) {
  for (const ConvolutionEpilogue &epilogue :
       {ConvolutionEpilogue{true, false, false}, {false, false, true}, {true, false, true}}) {
    ConvolutionProblem problem = a_problem();
    problem.epilogue = epilogue;
    CHECK_THROWS(On(0, cudnn(), problem), std::runtime_error, "of the 0 configurations");
  }
  ConvolutionProblem gradient = a_problem(ConvolutionProblem::kDataGradient);
  gradient.epilogue.bias = true;
  CHECK_THROWS(On(0, cudnn(), gradient), std::runtime_error, "of the 0 configurations");
  CHECK_EQ(std::string(cudasim_reports()), std::string());
}

TEST(an_engine_overwrites_its_workspace) {
  const On on;
  const std::vector<float> before = on.read(on.workspace, on.plan->workspace_bytes() / sizeof(float));
  on.run();
  const std::vector<float> after = on.read(on.workspace, before.size());
  CHECK(!before.empty());
  for (size_t i = 0; i < before.size(); ++i) CHECK(before[i] != after[i]);
}

// The engine whose notes are hidden.
int64_t wanted_engine;
int lie(const CudnnDescriptor *descriptor, int name, int type, int64_t room, int64_t *count, void *elements) {
  const int status = cudnn().get_attribute(descriptor, name, type, room, count, elements);
  if (name != Cudnn::kEngineNotes) return status;
  int64_t index = -1, one = 0;
  cudnn().get_attribute(descriptor, Cudnn::kEngineIndex, Cudnn::kInt64Type, 1, &one, &index);
  *count = index == wanted_engine ? 0 : 1;
  static_cast<int *>(elements)[0] = Cudnn::kNondeterministic;
  return status;
}

// Only its notes distinguish an engine with wrong numbers; a caller that ignores them gets those numbers.
TEST(engines_that_nobody_may_choose_give_other_numbers) {
  Cudnn lying = cudnn();
  lying.get_attribute = lie;
  for (const int64_t right : {0, 1}) {
    wanted_engine = right;
    const On on(0, lying);
    CHECK_EQ(on.plan->engine(), right);
    on.run();
    CHECK(farthest(on.read(on.result, 54), expected()) < 1e-6);
  }
  for (const int64_t wrong : {11, 20, 21, 22, 30, 42}) {
    wanted_engine = wrong;
    const On on(0, lying);
    CHECK_EQ(on.plan->engine(), wrong);
    on.run();
    CHECK(farthest(on.read(on.result, 54), expected()) > 1e-5);
  }
  for (const int64_t unusable : {40, 41}) {  // one is refused, one needs too much workspace
    wanted_engine = unusable;
    CHECK_THROWS(On(0, lying), std::runtime_error, "cannot be used");
  }
  CHECK_EQ(std::string(cudasim_reports()), std::string());
}

TEST(an_array_that_is_not_aligned_as_it_was_said_is_reported) {
  const On on;
  CHECK_THROWS(on.plan->run(on.handle, {on.data + 1, on.filters, on.result}, on.workspace), Error,
               "CUDNN_STATUS_BAD_PARAM in cudnnBackendExecute");
  CHECK(reported("not aligned as its descriptor says"));
}

TEST(a_workspace_that_is_missing_or_not_aligned_is_reported) {
  const On on;
  for (float *const workspace : {static_cast<float *>(nullptr), on.workspace + 4}) {
    CHECK_THROWS(on.plan->run(on.handle, {on.data, on.filters, on.result}, workspace), Error,
                 "CUDNN_STATUS_BAD_PARAM in cudnnBackendExecute");
    CHECK(reported("the workspace is missing, or not aligned"));
  }
}

TEST(another_threads_stream_and_another_devices_are_reported) {
  const On on;
  std::thread([&] { cudnn().set_stream(on.handle, on.stream); }).join();
  CHECK_THROWS(on.run(), Error, "CUDNN_STATUS_BAD_PARAM in cudnnBackendExecute");
  CHECK(reported("the stream was set by another thread"));
  const On other(1);
  CHECK(cudnn().set_stream(on.handle, other.stream) != Cudnn::kSuccess);
  CHECK(reported("the stream is of another device"));
  CHECK_THROWS(on.plan->run(other.handle, {on.data, on.filters, on.result}, on.workspace), Error,
               "CUDNN_STATUS_BAD_PARAM in cudnnBackendExecute");
  CHECK(reported("a plan runs by another handle"));
}

TEST(a_plan_that_is_let_go_of_too_early_is_reported) {
  cudasim_seed(2);
  On on;
  on.run();
  on.plan.reset();
  CUDA_CHECK(cudaStreamSynchronize(on.stream));
  CHECK(reported("a plan is let go of before it has run"));
  cudasim_seed(1);
}

TEST(a_plan_that_is_let_go_of_on_another_device_is_reported) {
  On on;
  CUDA_CHECK(cudaSetDevice(1));
  on.plan.reset();
  CHECK(reported("cudnnBackendDestroyDescriptor of a plan where its device is not current"));
}

TEST(a_handle_that_is_used_by_two_threads_or_without_its_stream_is_reported) {
  const On on;
  const auto finds_none = [&] {
    CUDA_CHECK(cudaSetDevice(0));
    std::string why;
    CHECK(!ConvolutionPlan::find(cudnn(), a_problem(), {on.handle, nullptr}, &why));
  };
  check_cudnn(cudnn(), cudnn().set_stream(on.handle, on.stream), "cudnnSetStream");
  std::thread(finds_none).join();
  CHECK(reported("a handle is used by two threads at once"));
  on.run();
  cudaStream_t other = nullptr;
  CUDA_CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  check_cudnn(cudnn(), cudnn().set_stream(on.handle, other), "cudnnSetStream");
  CUDA_CHECK(cudaStreamDestroy(other));
  finds_none();
  CHECK(reported("a handle is used whose stream is no more"));
}

// Heuristics of these modes are refused.
std::set<int> refused_modes;
std::map<const CudnnDescriptor *, int> modes;
int note_mode(CudnnDescriptor *descriptor, int name, int type, int64_t count, const void *elements) {
  if (name == Cudnn::kHeuristicsMode) modes[descriptor] = *static_cast<const int *>(elements);
  return cudnn().set_attribute(descriptor, name, type, count, elements);
}
int refuse_mode(CudnnDescriptor *descriptor) {
  const auto found = modes.find(descriptor);
  const int mode = found == modes.end() ? -1 : found->second;
  modes.erase(descriptor);
  return refused_modes.count(mode) ? int(Cudnn::kNotSupported) : cudnn().finalize(descriptor);
}

TEST(where_a_mode_of_heuristics_is_refused_the_other_one_is_asked) {
  Cudnn refusing = cudnn();
  refusing.set_attribute = note_mode;
  refusing.finalize = refuse_mode;
  refused_modes = {Cudnn::kModeA};
  {
    const On on(0, refusing);
    CHECK_EQ(on.plan->engine(), int64_t(0));
    on.run();
    CHECK(farthest(on.read(on.result, 54), expected()) < 1e-6);
  }
  ConvolutionProblem small = a_problem();
  small.most_workspace = 0;  // the engine of mode A that does not round needs some
  refused_modes = {Cudnn::kFallback};
  CHECK_THROWS(On(0, refusing, small), std::runtime_error, "configurations of engines that cuDNN has");
  refused_modes = {Cudnn::kModeA, Cudnn::kFallback};
  CHECK_THROWS(On(0, refusing), std::runtime_error, "cuDNN: CUDNN_STATUS_NOT_SUPPORTED in cudnnBackendFinalize");
  CHECK_EQ(std::string(cudasim_reports()), std::string());
}

TEST(descriptors_are_used_in_their_order) {
  CudnnDescriptor *tensor = nullptr;
  check_cudnn(cudnn(), cudnn().create_descriptor(Cudnn::kTensor, &tensor), "create");
  CHECK(is_cudnn_refusal(cudnn().finalize(tensor)));  // it has no attributes
  CHECK_EQ(std::string(cudasim_reports()), std::string());
  int64_t number = 3, count = 0;
  CHECK(cudnn().get_attribute(tensor, Cudnn::kTensorId, Cudnn::kInt64Type, 1, &count, &number) != Cudnn::kSuccess);
  CHECK(reported("is asked that is not finalized"));
  CHECK(cudnn().set_attribute(tensor, Cudnn::kPlanWorkspace, Cudnn::kInt64Type, 1, &number) != Cudnn::kSuccess);
  CHECK(reported("attribute 402 of a descriptor 17"));
  CHECK(cudnn().set_attribute(tensor, Cudnn::kTensorId, Cudnn::kFloatType, 1, &number) != Cudnn::kSuccess);
  CHECK(reported("attribute 906"));
  cudnn().destroy_descriptor(tensor);
  CHECK(cudnn().set_attribute(tensor, Cudnn::kTensorId, Cudnn::kInt64Type, 1, &number) != Cudnn::kSuccess);
  CHECK(reported("is set that is not alive"));
}

TEST(descriptors_are_let_go_of) {
  const int before = cudasim_num_cudnn_descriptors();
  {
    const On on;
    CHECK(cudasim_num_cudnn_descriptors() > before);
    on.run();
  }
  ConvolutionProblem wrong = a_problem();
  wrong.sizes.out[2] = 4;  // no such result
  std::string why;
  const On on;
  const int with_a_plan = cudasim_num_cudnn_descriptors();
  CHECK(!ConvolutionPlan::find(cudnn(), wrong, {on.handle, nullptr}, &why));
  CHECK_EQ(why, std::string("cuDNN: CUDNN_STATUS_BAD_PARAM in cudnnBackendFinalize: lengths of a result"));
  wrong = a_problem();
  wrong.most_workspace = 0;
  wrong.sizes.groups = 1;
  CHECK(ConvolutionPlan::find(cudnn(), wrong, {on.handle, nullptr}, &why) != nullptr);  // the fallback needs none
  CHECK_EQ(cudasim_num_cudnn_descriptors(), with_a_plan);
}

// Must be the last test: the device fails.
TEST(an_array_that_is_too_short_is_a_fault) {
  const On on(1);
  on.plan->run(on.handle, {on.data, on.filters, on.filled(20)}, on.workspace);
  CHECK(cudaStreamSynchronize(on.stream) != cudaSuccess);
  CHECK(reported("cudnn: the result is"));
}

}  // namespace

UNIT_MAIN()
