// SPDX-License-Identifier: Apache-2.0
// Tests the simulator: plants a bug of each kind and checks that it is reported, and that correct code is not. Linked
// to the simulator, with kernels compiled like those of cuda/.
#include <cublasLt.h>
#include <nccl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "cuda/cuda_cublas.hpp"
#include "cuda/cuda_launch.hpp"
#include "cudasim.h"
#include "support/unit.hpp"

using namespace cohort;

namespace {

// A stream and arrays of a device, which is current while this object exists.
struct On {
  explicit On(int id = 0) {
    CUDA_CHECK(cudaSetDevice(id));
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  ~On() {
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
  }
  void sync() const { CUDA_CHECK(cudaStreamSynchronize(stream)); }
  cudaStream_t stream = nullptr;
};

template <typename T = float>
T *on_device(int64_t count) {
  void *data = nullptr;
  CUDA_CHECK(cudaMalloc(&data, size_t(count) * sizeof(T)));
  return static_cast<T *>(data);
}

template <typename T = float>
T *pinned(int64_t count) {
  void *data = nullptr;
  CUDA_CHECK(cudaHostAlloc(&data, size_t(count) * sizeof(T), 0));
  return static_cast<T *>(data);
}

template <typename T>
void to_device(T *to, const std::vector<T> &from, const On &on) {
  CUDA_CHECK(cudaMemcpyAsync(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice, on.stream));
}

template <typename T>
std::vector<T> from_device(const T *from, int64_t count, const On &on) {
  std::vector<T> values(static_cast<size_t>(count));
  CUDA_CHECK(cudaMemcpyAsync(values.data(), from, values.size() * sizeof(T), cudaMemcpyDeviceToHost, on.stream));
  return values;
}

std::vector<float> counting(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

bool reported(const char *words) { return std::strstr(cudasim_reports(), words) != nullptr; }

// A fault makes a device unusable in its process, so tests that cause one run in a child process that has not used
// CUDA. The reports of the child must contain the expected words.
void expect_in_child(void (*plant)(), const char *words) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  std::fflush(nullptr);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    try {
      plant();
    } catch (const std::exception &error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    _exit(0);
  }
  close(ends[1]);
  std::string all;
  char bytes[512];
  for (ssize_t count; (count = read(ends[0], bytes, sizeof bytes)) > 0;) all.append(bytes, size_t(count));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (all.find(words) == std::string::npos)
    unit::fail(__FILE__, __LINE__, "expected '" + std::string(words) + "', found '" + all + "'");
}

// The number of seeds for which `is_right` held, out of enough seeds to show a dependence on the order.
template <typename IsRight>
int times_right(int seeds, const IsRight &is_right) {
  int right = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    cudasim_seed(uint64_t(seed));
    right += is_right();
  }
  return right;
}
constexpr int kSeeds = 40;

__global__ void add_one(const float *x, float *y, int64_t count) {
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += int64_t(gridDim.x) * blockDim.x) {
    y[i] = x[i] + 1;
  }
}

__global__ void add_one_without_mask(const float *x, float *y) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  y[i] = x[i] + 1;
}

// y = x in reverse, through shared memory. `waits`: with the necessary barrier.
template <bool waits>
__global__ void reverse_block(const float *x, float *y) {
  COHORT_SHARED(float, tile, [64]);
  tile[threadIdx.x] = x[threadIdx.x];
  if (waits) __syncthreads();
  y[threadIdx.x] = tile[63 - threadIdx.x];
}

__global__ void barrier_for_some(float *y) {
  if (threadIdx.x < 16) return;
  __syncthreads();
  y[threadIdx.x] = 1;
}

// One pass over the sum of a warp in shared memory, by shuffles and without them.
__global__ void sum_warp(const float *x, float *y) {
  float sum = x[threadIdx.x];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  const unsigned large = __ballot_sync(0xffffffffu, x[threadIdx.x] > 30);
  if (threadIdx.x == 0) y[0] = sum, y[1] = float(large);
}

__global__ void shuffle_without_all(float *y) {
  if (threadIdx.x == 7) return;
  y[threadIdx.x] = __shfl_xor_sync(0xffffffffu, float(threadIdx.x), 1);
}

__global__ void double_vector(float *x) {
  Vector<float> values = load_vector(x);
  for (float &value : values.at) value *= 2;
  store_vector(x, values);
}

__global__ void read_unwritten(float *y) {
  COHORT_SHARED(float, tile, [32]);
  y[threadIdx.x] = tile[threadIdx.x];
}

void launch_add(const float *x, float *y, int64_t count, const On &on) {
  launch(add_one, flat_grid(count), on.stream, x, y, count);
}

// The second kernel reads what the first writes.
cudaGraphExec_t graph_of_two(const float *x, float *y, const On &on) {
  launch_add(x, y, 8, on);  // loads it
  CUDA_CHECK(cudaStreamBeginCapture(on.stream, cudaStreamCaptureModeThreadLocal));
  launch_add(x, y, 8, on);
  launch_add(y, y, 8, on);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  CUDA_CHECK(cudaStreamEndCapture(on.stream, &graph));
  size_t num_nodes = 0;
  CUDA_CHECK(cudaGraphGetNodes(graph, nullptr, &num_nodes));
  CHECK_EQ(num_nodes, size_t(2));
  CUDA_CHECK(cudaGraphInstantiate(&ready, graph, 0));
  CUDA_CHECK(cudaGraphDestroy(graph));
  return ready;
}

}  // namespace

// ---- those that leave a device with a fault, in processes that have not used CUDA before

TEST(a_tail_that_is_not_masked_is_seen) {
  expect_in_child(
      [] {
        const On on;
        float *const x = on_device(1024), *const y = on_device(1000);
        launch(add_one_without_mask, {dim3(4), dim3(256)}, on.stream, x, y);
        on.sync();
      },
#ifdef UNDER_ASAN
      "use-after-poison"
#else
      "something was written beside byte 0 of 4000 live ones of gpu(0)"
#endif
  );
}

TEST(a_write_far_beyond_an_array_is_seen) {
  expect_in_child(
      [] {
        cudasim_seed(1);
        const On on;
        float *const x = on_device(4096), *const y = on_device(16);
        launch(add_one_without_mask, {dim3(16), dim3(256)}, on.stream, x, y);
        on.sync();
      },
      "device memory between two arrays");
}

TEST(memory_that_is_freed_too_early_is_seen) {
  expect_in_child(
      [] {
        cudasim_seed(2);
        const On on;
        float *const x = on_device(100), *const y = on_device(100);
        launch_add(x, y, 100, on);
        CUDA_CHECK(cudaFree(x));
        on.sync();
      },
      "argument 0 points to byte 0 of 400 freed ones of gpu(0)");
  expect_in_child(
      [] {
        cudasim_seed(2);
        const On on;
        float *const x = on_device(100), *const y = pinned(100);
        CUDA_CHECK(cudaMemcpyAsync(x, y, 400, cudaMemcpyHostToDevice, on.stream));
        CUDA_CHECK(cudaFreeHost(y));
        on.sync();
      },
      "a copy reads from: memory of the host");
}

TEST(a_graph_that_uses_memory_that_is_gone_is_found) {
  expect_in_child(
      [] {
        const On on;
        float *const x = on_device(8), *const y = on_device(8);
        to_device(x, counting(8), on);
        const cudaGraphExec_t ready = graph_of_two(x, y, on);
        CUDA_CHECK(cudaGraphLaunch(ready, on.stream));
        CUDA_CHECK(cudaStreamSynchronize(on.stream));
        CUDA_CHECK(cudaFree(x));
        CUDA_CHECK(cudaGraphLaunch(ready, on.stream));
        cudaStreamSynchronize(on.stream);
      },
      "argument 0 points to byte 0 of 32 freed ones of gpu(0)");
}

TEST(memory_of_the_host_and_of_other_devices_is_out_of_a_kernels_reach) {
  expect_in_child(
      [] {
        const On on;
        std::vector<float> x(100);
        launch_add(x.data(), on_device(100), 100, on);
        on.sync();
      },
      "argument 0 points to memory of the host");
  expect_in_child(
      [] {
        const On other(1);
        float *const x = on_device(100);
        const On on(0);
        launch_add(x, on_device(100), 100, on);
        on.sync();
      },
      "argument 0 points to byte 0 of 400 live ones of gpu(1)");
}

TEST(the_host_cannot_touch_device_memory) {
  expect_in_child(
      [] {
        const On on;
        volatile float *const x = on_device(100);
        x[3] = 1;
      },
      "the host touches byte 12 of 400 live ones of gpu(0)");
}

TEST(a_vector_that_is_not_aligned_is_seen) {
  expect_in_child(
      [] {
        const On on;
        launch(double_vector, {dim3(1), dim3(1)}, on.stream, on_device(8) + 1);
        on.sync();
      },
      "a load or store of 16 bytes at byte 4 of 32 live ones of gpu(0) is misaligned");
}

TEST(a_barrier_that_some_threads_never_reach_is_seen) {
  expect_in_child(
      [] {
        const On on;
        launch(barrier_for_some, {dim3(1), dim3(64)}, on.stream, on_device(64));
        on.sync();
      },
      "of 64 threads of a block, 48 wait at a barrier, 0 in a warp, and 16 have ended");
}

TEST(a_shuffle_that_a_lane_does_not_take_part_in_is_seen) {
  expect_in_child(
      [] {
        const On on;
        launch(shuffle_without_all, {dim3(1), dim3(32)}, on.stream, on_device(32));
        on.sync();
      },
      "a shuffle's mask has a lane whose thread has ended");
}

// The product of two 8 x 8 matrices, written with this row stride.
void multiply_into(float *y, uint64_t step, const On &on) {
  cublasLtHandle_t handle;
  cublasLtMatmulDescOpaque_t product;
  cublasLtMatrixLayoutOpaque_t square, wide;
  cublasLtMatmulPreferenceOpaque_t preference;
  cublasLtMatmulHeuristicResult_t found;
  int count = 0;
  CUBLAS_CHECK(cublasLtCreate(&handle));
  CUBLAS_CHECK(cublasLtMatmulDescInit(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  CUBLAS_CHECK(cublasLtMatmulPreferenceInit(&preference));
  CUBLAS_CHECK(cublasLtMatrixLayoutInit(&square, CUDA_R_32F, 8, 8, 8));
  CUBLAS_CHECK(cublasLtMatrixLayoutInit(&wide, CUDA_R_32F, 8, 8, int64_t(step)));
  CUBLAS_CHECK(
      cublasLtMatmulAlgoGetHeuristic(handle, &product, &square, &square, &wide, &wide, &preference, 1, &found, &count));
  float *const x = on_device(64);
  const float one = 1, zero = 0;
  CUBLAS_CHECK(cublasLtMatmul(handle, &product, &one, x, &square, x, &square, &zero, y, &wide, y, &wide, &found.algo,
                              nullptr, 0, on.stream));
  on.sync();
}

TEST(a_wrong_leading_dimension_is_seen) {
  expect_in_child(
      [] {
        const On on;
        multiply_into(on_device(64), 12, on);
      },
      "cublasLtMatmul: D is byte 0 of 256 live ones of gpu(0), over its end with 368");
}

// Whether cuBLASLt has an algorithm for int8 matrices (8, depth) times (depth, 8).
bool takes_bytes(cublasOperation_t transpose, uint64_t depth, uint32_t alignment) {
  cublasLtHandle_t handle;
  cublasLtMatmulDescOpaque_t product;
  cublasLtMatrixLayoutOpaque_t a, b, c;
  cublasLtMatmulPreferenceOpaque_t preference;
  cublasLtMatmulHeuristicResult_t found;
  int count = 0;
  CUBLAS_CHECK(cublasLtCreate(&handle));
  CUBLAS_CHECK(cublasLtMatmulDescInit(&product, CUBLAS_COMPUTE_32I, CUDA_R_32I));
  CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(&product, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof transpose));
  CUBLAS_CHECK(cublasLtMatmulPreferenceInit(&preference));
  CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &alignment,
                                                    sizeof alignment));
  const bool turned = transpose == CUBLAS_OP_T;
  CUBLAS_CHECK(
      cublasLtMatrixLayoutInit(&a, CUDA_R_8I, turned ? depth : 8, turned ? 8 : depth, int64_t(turned ? depth : 8)));
  CUBLAS_CHECK(cublasLtMatrixLayoutInit(&b, CUDA_R_8I, depth, 8, int64_t(depth)));
  CUBLAS_CHECK(cublasLtMatrixLayoutInit(&c, CUDA_R_32I, 8, 8, 8));
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle, &product, &a, &b, &c, &c, &preference, 1, &found, &count);
  return status == CUBLAS_STATUS_SUCCESS && count == 1;
}

TEST(int8_is_multiplied_by_whole_words_along_the_depth_alone) {
  expect_in_child(
      [] {
        std::fprintf(stderr, "taken: %d%d%d%d", takes_bytes(CUBLAS_OP_T, 16, 4), takes_bytes(CUBLAS_OP_N, 16, 4),
                     takes_bytes(CUBLAS_OP_T, 18, 4), takes_bytes(CUBLAS_OP_T, 16, 1));
      },
      "taken: 1000");
}

TEST(kernels_that_are_to_do_nothing_are_counted_and_do_nothing) {
  expect_in_child(
      [] {
        setenv("CUDASIM_EMPTY", "1", 1);
        const On on;
        float *const x = on_device(64), *const y = on_device(64);
        to_device(y, std::vector<float>(64, 3), on);
        launch_add(x, y, 64, on);
        multiply_into(y, 8, on);
        const std::vector<float> values = from_device(y, 64, on);
        std::printf("%d launches, %g\n", int(cudasim_num_launches()), double(values[63]));
        std::fflush(stdout);
      },
      "2 launches, 3\n");
}

TEST(a_fault_stays_and_leaves_other_devices_alone) {
  expect_in_child(
      [] {
        const On other(1), on(0);
        float *const x = on_device(4);
        cudasim_break_device(0);
        const bool stays = cudaStreamSynchronize(on.stream) == cudaErrorIllegalAddress &&
                           cudaMemsetAsync(x, 0, 16, on.stream) == cudaErrorIllegalAddress;
        CUDA_CHECK(cudaSetDevice(1));
        other.sync();
        if (stays) std::puts("stays");
        std::fflush(stdout);
      },
      "stays");
}

TEST(a_collective_never_meets_a_device_that_stands_still_or_has_failed) {
  expect_in_child(
      [] {
        const On on(0), other(1);
        const int devices[] = {0, 1};
        ncclComm_t comms[2];
        ncclCommInitAll(comms, 2, devices);
        float *const y = on_device(4);
        cudaSetDevice(0);
        float *const x = on_device(4);
        on.sync();
        cudasim_stop_device(1, 1);
        ncclGroupStart();
        ncclAllReduce(x, x, 4, ncclFloat32, ncclSum, comms[0], on.stream);
        ncclAllReduce(y, y, 4, ncclFloat32, ncclSum, comms[1], other.stream);
        ncclGroupEnd();
        cudaEvent_t event;
        cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
        cudaEventRecord(event, on.stream);
        const auto is_over = [event] {  // each query may run some work
          for (int i = 0; i < 1000; ++i)
            if (cudaEventQuery(event) == cudaSuccess) return true;
          return false;
        };
        const bool met_while_it_stood_still = is_over();
        cudasim_break_device(1);
        cudasim_stop_device(1, 0);
        if (!met_while_it_stood_still && !is_over() && cudasim_num_collectives() == 0) std::puts("never met");
        std::fflush(stdout);
      },
      "never met");
}

TEST(a_child_process_cannot_go_on_with_cuda) {
  expect_in_child(
      [] {
        const On on;
        expect_in_child(
            [] {
              int device;
              cudaGetDevice(&device);
              std::fprintf(stderr, "%s", cudaGetErrorString(cudaGetLastError()));
            },
            "initialization error");
        std::puts("as it should");
        std::fflush(stdout);
      },
      "as it should");
}

// ---- the others

TEST(a_missing_wait_is_seen) {
  const auto is_right = [](bool waits) {
    const On first, second;
    float *const x = on_device(8), *const y = on_device(8), *const back = pinned(8);
    to_device(x, counting(8), first);
    launch_add(x, y, 8, first);
    cudaEvent_t event = nullptr;
    CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CUDA_CHECK(cudaEventRecord(event, first.stream));
    if (waits) CUDA_CHECK(cudaStreamWaitEvent(second.stream, event, 0));
    CUDA_CHECK(cudaMemcpyAsync(back, y, 32, cudaMemcpyDeviceToHost, second.stream));
    second.sync();
    const bool right = back[7] == 9;
    first.sync();
    CUDA_CHECK(cudaEventDestroy(event));
    CUDA_CHECK(cudaFree(x));
    CUDA_CHECK(cudaFree(y));
    CUDA_CHECK(cudaFreeHost(back));
    return right;
  };
  CHECK_EQ(times_right(kSeeds, [&] { return is_right(true); }), kSeeds);
  CHECK(times_right(kSeeds, [&] { return is_right(false); }) < kSeeds);
}

TEST(a_host_that_does_not_wait_for_a_copy_finds_nothing) {
  cudasim_seed(2);
  const On on;
  float *const x = on_device(8), *const back = pinned(8);
  CUDA_CHECK(cudaMemsetAsync(x, 0, 32, on.stream));
  CUDA_CHECK(cudaMemcpyAsync(back, x, 32, cudaMemcpyDeviceToHost, on.stream));
  CHECK(!(back[0] == 0));
  on.sync();
  CHECK(back[0] == 0);
  CUDA_CHECK(cudaFree(x));
  CUDA_CHECK(cudaFreeHost(back));
}

TEST(a_barrier_left_out_is_seen) {
  const On on;
  float *const x = on_device(64), *const y = on_device(64);
  to_device(x, counting(64), on);
  const auto is_right = [&](auto kernel) {
    launch(kernel, {dim3(1), dim3(64)}, on.stream, x, y);
    const std::vector<float> values = from_device(y, 64, on);
    for (int i = 0; i < 64; ++i)
      if (values[size_t(i)] != float(64 - i)) return false;
    return true;
  };
  CHECK_EQ(times_right(kSeeds, [&] { return is_right(reverse_block<true>); }), kSeeds);
  CHECK_EQ(times_right(kSeeds, [&] { return is_right(reverse_block<false>); }), 0);
  CUDA_CHECK(cudaFree(x));
  CUDA_CHECK(cudaFree(y));
}

TEST(lanes_exchange_values_and_votes) {
  const On on;
  float *const x = on_device(32), *const y = on_device(2);
  to_device(x, counting(32), on);
  launch(sum_warp, {dim3(1), dim3(32)}, on.stream, x, y);
  const std::vector<float> values = from_device(y, 2, on);
  CHECK_EQ(values[0], 528.0f);
  CHECK_EQ(values[1], float(3u << 30));
  CUDA_CHECK(cudaFree(x));
  CUDA_CHECK(cudaFree(y));
}

TEST(fresh_memory_is_full_of_nan) {
  const On on;
  float *const x = on_device(32);
  CHECK(from_device(x, 32, on)[5] != from_device(x, 32, on)[5]);
  CUDA_CHECK(cudaMemsetAsync(x, 0, 128, on.stream));
  launch(read_unwritten, {dim3(1), dim3(32)}, on.stream, x);
  const float value = from_device(x, 32, on)[5];
  CHECK(value != value);
  CUDA_CHECK(cudaFree(x));
}

TEST(a_launch_beyond_the_limits_or_on_another_device_is_refused) {
  const On other(1), on(0);
  float *const x = on_device(4);
  CHECK_THROWS(launch(read_unwritten, {dim3(1), dim3(1025)}, on.stream, x), Error, "cudaErrorInvalidConfiguration");
  CHECK_THROWS(launch(read_unwritten, {dim3(0), dim3(32)}, on.stream, x), Error, "cudaErrorInvalidConfiguration");
  CHECK_THROWS(launch(read_unwritten, {dim3(1, 65536), dim3(32)}, on.stream, x), Error,
               "cudaErrorInvalidConfiguration");
  CHECK_THROWS(launch(read_unwritten, {dim3(1), dim3(32)}, other.stream, x), Error, "cudaErrorInvalidResourceHandle");
  CUDA_CHECK(cudaFree(x));
}

TEST(the_nth_call_fails_when_it_is_asked_to) {
  cudasim_fail_call(2, cudaErrorMemoryAllocation);
  float *const x = on_device(4);
  CHECK_THROWS(on_device(4), Error, "out of memory");
  cudasim_fail_call(0, 0);
  CUDA_CHECK(cudaFree(x));
}

TEST(a_device_has_only_so_much_memory) {
  CUDA_CHECK(cudaSetDevice(0));
  const size_t before = cudasim_bytes_in_use(0);
  cudasim_set_memory(before + 4000);
  float *const x = on_device(1000);
  CHECK_THROWS(on_device(1), Error, "out of memory");
  CUDA_CHECK(cudaFree(x));
  CHECK_EQ(cudasim_bytes_in_use(0), before);
  cudasim_set_memory(size_t(1) << 30);
}

TEST(memory_in_the_order_of_a_stream_is_there_in_that_order_only) {
  cudasim_seed(2);
  const On on;
  void *data = nullptr;
  CUDA_CHECK(cudaMallocAsync(&data, 64, on.stream));
  CUDA_CHECK(cudaMemsetAsync(data, 0, 64, on.stream));
  CHECK_EQ(from_device(static_cast<float *>(data), 16, on)[15], 0.0f);
  const size_t before = cudasim_bytes_in_use(0);
  CUDA_CHECK(cudaFreeAsync(data, on.stream));
  CHECK_EQ(cudasim_bytes_in_use(0), before);
  on.sync();
  CHECK_EQ(cudasim_bytes_in_use(0), before - 64);
}

TEST(a_function_of_the_host_in_a_stream_must_not_call_cuda) {
  const On on;
  CUDA_CHECK(cudaLaunchHostFunc(
      on.stream,
      [](void *) {
        int device;
        cudaGetDevice(&device);
      },
      nullptr));
  on.sync();
  CHECK(reported("cudaGetDevice is called by a function of the host in a stream"));
}

TEST(a_graph_does_again_what_was_captured) {
  const On on, beside;
  float *const x = on_device(8), *const y = on_device(8), *const z = on_device(8);
  to_device(x, counting(8), on);
  cudaEvent_t begun = nullptr, done = nullptr;
  CUDA_CHECK(cudaEventCreateWithFlags(&begun, cudaEventDisableTiming));
  CUDA_CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  CUDA_CHECK(cudaStreamBeginCapture(on.stream, cudaStreamCaptureModeGlobal));
  launch_add(x, y, 8, on);
  CUDA_CHECK(cudaEventRecord(begun, on.stream));
  CUDA_CHECK(cudaStreamWaitEvent(beside.stream, begun, 0));
  launch_add(y, z, 8, beside);
  CUDA_CHECK(cudaEventRecord(done, beside.stream));
  CUDA_CHECK(cudaStreamWaitEvent(on.stream, done, 0));
  launch_add(z, x, 8, on);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  CUDA_CHECK(cudaStreamEndCapture(on.stream, &graph));
  CHECK_EQ(from_device(x, 8, on)[0], 1.0f);  // no kernel has run
  CUDA_CHECK(cudaGraphInstantiate(&ready, graph, 0));
  CUDA_CHECK(cudaGraphDestroy(graph));
  for (int i = 0; i < 10; ++i) CUDA_CHECK(cudaGraphLaunch(ready, on.stream));
  CHECK_EQ(from_device(x, 8, on)[0], 31.0f);
  CUDA_CHECK(cudaGraphExecDestroy(ready));
  CUDA_CHECK(cudaEventDestroy(begun));
  CUDA_CHECK(cudaEventDestroy(done));
  for (float *data : {x, y, z}) CUDA_CHECK(cudaFree(data));
}

TEST(a_graph_that_is_destroyed_before_it_is_done_is_reported) {
  const On on;
  float *const x = on_device(8), *const y = on_device(8);
  to_device(x, counting(8), on);
  const cudaGraphExec_t ready = graph_of_two(x, y, on);
  cudasim_seed(2);
  CUDA_CHECK(cudaGraphLaunch(ready, on.stream));
  CUDA_CHECK(cudaGraphExecDestroy(ready));
  CHECK(reported("cudaGraphExecDestroy of a graph that has not been done"));
  on.sync();
  for (float *data : {x, y}) CUDA_CHECK(cudaFree(data));
}

TEST(a_capture_of_its_own_thread_is_spoilt_by_that_thread_or_by_whoever_waits_for_the_stream) {
  const On on, other;
  float *const x = on_device(8), *const y = on_device(8);
  to_device(x, counting(8), on);
  const auto captured_while = [&](const std::function<void()> &elsewhere) {
    cudaGraph_t graph = nullptr;
    CUDA_CHECK(cudaStreamBeginCapture(on.stream, cudaStreamCaptureModeThreadLocal));
    launch_add(x, y, 8, on);
    std::thread(elsewhere).join();
    const cudaError_t status = cudaStreamEndCapture(on.stream, &graph);
    if (graph) CUDA_CHECK(cudaGraphDestroy(graph));
    return status;
  };
  CHECK(captured_while([&] {
          CUDA_CHECK(cudaSetDevice(0));
          CUDA_CHECK(cudaFree(on_device(4)));
          CUDA_CHECK(cudaStreamSynchronize(other.stream));
        }) == cudaSuccess);
  CHECK(captured_while([&] { CHECK(cudaStreamSynchronize(on.stream) == cudaErrorStreamCaptureUnsupported); }) ==
        cudaErrorStreamCaptureInvalidated);
  CHECK(reported("cudaStreamSynchronize in a stream that is captured"));
  CUDA_CHECK(cudaStreamBeginCapture(on.stream, cudaStreamCaptureModeThreadLocal));
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamSynchronize(other.stream) == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamEndCapture(on.stream, &graph) == cudaErrorStreamCaptureInvalidated);
  CHECK(reported("cudaStreamSynchronize is called while a stream is captured"));
  for (float *data : {x, y}) CUDA_CHECK(cudaFree(data));
}

TEST(what_a_capture_forbids_spoils_it) {
  const On on;
  cudaGraph_t graph = nullptr;
  CUDA_CHECK(cudaStreamBeginCapture(on.stream, cudaStreamCaptureModeGlobal));
  CHECK_THROWS(on_device(4), Error, "cudaError");
  CHECK(cudaStreamEndCapture(on.stream, &graph) == cudaErrorStreamCaptureInvalidated);
  CHECK(reported("cudaMalloc is called while a stream is captured"));
  const On beside;
  cudaEvent_t begun = nullptr;
  CUDA_CHECK(cudaEventCreateWithFlags(&begun, cudaEventDisableTiming));
  CUDA_CHECK(cudaStreamBeginCapture(on.stream, cudaStreamCaptureModeGlobal));
  CUDA_CHECK(cudaEventRecord(begun, on.stream));
  CUDA_CHECK(cudaStreamWaitEvent(beside.stream, begun, 0));
  launch(read_unwritten, {dim3(1), dim3(32)}, beside.stream, static_cast<float *>(nullptr));
  CHECK(cudaStreamEndCapture(on.stream, &graph) == cudaErrorStreamCaptureUnjoined);
  CUDA_CHECK(cudaEventDestroy(begun));
}

// The driver loads code at its first launch, and may wait for the device then.
__global__ void launched_in_a_capture(float *y) { y[threadIdx.x] = 1; }

TEST(code_that_is_launched_for_the_first_time_in_a_capture_spoils_it) {
  const On on;
  float *const y = on_device(32);
  const auto capture = [&] {
    cudaGraph_t graph = nullptr;
    CUDA_CHECK(cudaStreamBeginCapture(on.stream, cudaStreamCaptureModeThreadLocal));
    launch(launched_in_a_capture, {dim3(1), dim3(32)}, on.stream, y);
    const cudaError_t status = cudaStreamEndCapture(on.stream, &graph);
    if (graph) CUDA_CHECK(cudaGraphDestroy(graph));
    return status;
  };
  CHECK(capture() == cudaErrorStreamCaptureInvalidated);
  CHECK(reported("a kernel is loaded while its stream is captured"));
  CHECK(capture() == cudaSuccess);
  CUDA_CHECK(cudaFree(y));
}

TEST(a_wait_for_what_never_comes_is_reported) {
  const On on(0), other(1);
  float *const y = on_device(4);
  CUDA_CHECK(cudaSetDevice(0));
  float *const x = on_device(4);
  const int devices[] = {0, 1};
  ncclComm_t comms[2];
  CHECK(ncclCommInitAll(comms, 2, devices) == ncclSuccess);
  // Outside a group.
  CHECK(ncclAllReduce(x, x, 4, ncclFloat32, ncclSum, comms[0], on.stream) == ncclInvalidUsage);
  CHECK(reported("a collective call of one thread for several devices is in no group"));
  // In one group, which is correct.
  to_device(x, {1, 2, 3, 4}, on);
  CUDA_CHECK(cudaMemcpyAsync(y, std::vector<float>{10, 20, 30, 40}.data(), 16, cudaMemcpyHostToDevice, other.stream));
  CHECK(ncclGroupStart() == ncclSuccess);
  CHECK(ncclAllReduce(x, x, 4, ncclFloat32, ncclSum, comms[0], on.stream) == ncclSuccess);
  CHECK(ncclAllReduce(y, y, 4, ncclFloat32, ncclSum, comms[1], other.stream) == ncclSuccess);
  CHECK(ncclGroupEnd() == ncclSuccess);
  CHECK_EQ(from_device(x, 4, on)[3], 44.0f);
  CHECK_EQ(from_device(y, 4, other)[0], 11.0f);
  CHECK_EQ(std::string(cudasim_reports()), std::string());
  // In a group without the other device.
  CHECK(ncclGroupStart() == ncclSuccess);
  CHECK(ncclAllReduce(x, x, 4, ncclFloat32, ncclSum, comms[0], on.stream) == ncclSuccess);
  CHECK(ncclGroupEnd() == ncclSuccess);
  CHECK(cudaStreamSynchronize(on.stream) != cudaSuccess);
  CHECK(reported("nothing of what is queued can go on: a collective on gpu(0)"));
  CHECK(ncclCommAbort(comms[0]) == ncclSuccess);
  CHECK(ncclCommDestroy(comms[1]) == ncclSuccess);
  on.sync();
  CUDA_CHECK(cudaFree(x));
  CUDA_CHECK(cudaFree(y));
}

// Two devices sum the outputs of their kernels, on streams of their own.
float sum_of_what_kernels_write(bool waits, uint64_t seed) {
  cudasim_seed(seed);
  const int devices[] = {0, 1};
  ncclComm_t comms[2];
  CHECK(ncclCommInitAll(comms, 2, devices) == ncclSuccess);
  const On work[] = {On(0), On(1)}, sums[] = {On(0), On(1)};
  float *x[2];
  cudaEvent_t written[2];
  for (int d = 0; d < 2; ++d) {
    CUDA_CHECK(cudaSetDevice(d));
    x[d] = on_device(4);
    CUDA_CHECK(cudaEventCreateWithFlags(&written[d], cudaEventDisableTiming));
    CUDA_CHECK(cudaMemsetAsync(x[d], 0, 16, work[d].stream));
    CUDA_CHECK(cudaEventRecord(written[d], work[d].stream));
    if (waits) CUDA_CHECK(cudaStreamWaitEvent(sums[d].stream, written[d], 0));
  }
  CHECK(ncclGroupStart() == ncclSuccess);
  for (int d = 0; d < 2; ++d)
    CHECK(ncclAllReduce(x[d], x[d], 4, ncclFloat32, ncclSum, comms[d], sums[d].stream) == ncclSuccess);
  CHECK(ncclGroupEnd() == ncclSuccess);
  const float result = from_device(x[0], 4, sums[0])[3];
  for (int d = 0; d < 2; ++d) {
    CUDA_CHECK(cudaSetDevice(d));
    work[d].sync();
    sums[d].sync();
    CUDA_CHECK(cudaFree(x[d]));
    CUDA_CHECK(cudaEventDestroy(written[d]));
    CHECK(ncclCommDestroy(comms[d]) == ncclSuccess);
  }
  CUDA_CHECK(cudaSetDevice(0));
  return result;
}

TEST(a_collective_that_does_not_wait_for_what_it_sums_is_found) {
  int wrong = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    CHECK_EQ(sum_of_what_kernels_write(true, seed), 0.0f);
    wrong += sum_of_what_kernels_write(false, seed) != 0.0f;
  }
  CHECK(wrong > 3);
}

UNIT_MAIN()
