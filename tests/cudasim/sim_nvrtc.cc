// SPDX-License-Identifier: Apache-2.0
// NVRTC by a command that compiles for the host, once a test has named one (cudasim.h), and the driver's functions for
// loading the result. Loaded kernels have one argument, FusedArrays (cuda/op/fused_source.hpp).
#include <cuda.h>
#include <dlfcn.h>
#pragma GCC visibility push(default)  // found by name, as the real ones are
#include <nvrtc.h>
#pragma GCC visibility pop
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "cuda/op/fused_source.hpp"
#include "cudasim.h"
#include "sim.hpp"
#include "sim_kernel.hpp"

using namespace cudasim;

struct _nvrtcProgram {
  std::string source, code;
};

struct CUmod_st {
  void *library;
  CUctx_st *context;
};

struct CUfunc_st {
  CUmod_st *module;
  void (*kernel)(cohort::FusedArrays);
  uint32_t *place;  // of the running thread: threadIdx, blockIdx, blockDim, gridDim
};

namespace {

std::string command;                        // empty: there is no NVRTC
std::atomic<uint64_t> num_compilations{0};  // since the start

// Definitions by which g++ compiles the source of a kernel.
constexpr char kBefore[] = R"(
#include <cstdint>
#define __global__
#define __device__
struct CudasimPlace { uint32_t x, y, z; };
extern "C" { CudasimPlace cudasim_place[4]; }
#define threadIdx cudasim_place[0]
#define blockIdx cudasim_place[1]
#define blockDim cudasim_place[2]
#define gridDim cudasim_place[3]
)";

std::string contents_of(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

extern "C" {

void cudasim_compile_with(const char *given) { command = given ? given : ""; }
uint64_t cudasim_num_compilations(void) { return num_compilations; }

const char *nvrtcGetErrorString(nvrtcResult result) {
  return result == NVRTC_SUCCESS ? "NVRTC_SUCCESS" : "NVRTC_ERROR_COMPILATION";
}
nvrtcResult nvrtcVersion(int *major, int *minor) {
  *major = 13, *minor = 0;
  return command.empty() ? NVRTC_ERROR_INTERNAL_ERROR : NVRTC_SUCCESS;
}
nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *, int, const char *const *,
                               const char *const *) {
  *program = new _nvrtcProgram{source, ""};
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program) {
  delete *program;
  *program = nullptr;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int, const char *const *) {
  const char *const folder = std::getenv("TMPDIR");
  const std::string base = std::string(folder ? folder : "/tmp") + "/cudasim-" + std::to_string(getpid()) + "-" +
                           std::to_string(++num_compilations);
  std::ofstream(base + ".cc") << kBefore << program->source;
  const int status = std::system((command + " -o " + base + ".so " + base + ".cc").c_str());
  if (status == 0) program->code = contents_of(base + ".so");
  std::remove((base + ".cc").c_str());
  std::remove((base + ".so").c_str());
  return status == 0 ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
}
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *bytes) {
  *bytes = program->code.size();
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *code) {
  std::memcpy(code, program->code.data(), program->code.size());
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram, size_t *bytes) {
  *bytes = 1;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetProgramLog(nvrtcProgram, char *log) {
  *log = 0;
  return NVRTC_SUCCESS;
}

// The size of the image, from its ELF header: the section headers come last.
CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  const Call call("cuModuleLoadData", Call::kContext, true);
  if (call.refused) return CUDA_ERROR_NOT_INITIALIZED;
  sim().check_no_launch("cuModuleLoadData");
  const char *const bytes = static_cast<const char *>(image);
  if (std::memcmp(bytes, "\177ELF", 4) != 0) return CUDA_ERROR_INVALID_IMAGE;
  uint64_t sections = 0;
  uint16_t size = 0, number = 0;
  std::memcpy(&sections, bytes + 40, sizeof sections);
  std::memcpy(&size, bytes + 58, sizeof size);
  std::memcpy(&number, bytes + 60, sizeof number);
  const int file = memfd_create("cudasim", 0);
  const size_t total = sections + size_t(size) * number;
  const bool written = file >= 0 && write(file, image, total) == ssize_t(total);
  void *const library =
      written ? dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (file >= 0) close(file);
  if (!library) return CUDA_ERROR_INVALID_IMAGE;
  *module = new CUmod_st{library, call.context};
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module) {
  const Call call("cuModuleUnload", Call::kNothing, true);
  sim().check_no_launch("cuModuleUnload");
  if (!call.refused) sim().check_current(module->context->device, "cuModuleUnload");
  dlclose(module->library);
  delete module;
  return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  static std::vector<std::unique_ptr<CUfunc_st>> all;  // never freed: they must outlive their modules
  const Call call("cuModuleGetFunction", Call::kContext, true);
  if (call.refused) return CUDA_ERROR_NOT_INITIALIZED;
  sim().check_no_launch("cuModuleGetFunction");
  const auto kernel = reinterpret_cast<void (*)(cohort::FusedArrays)>(dlsym(module->library, name));
  if (!kernel) return CUDA_ERROR_NOT_FOUND;
  all.push_back(std::unique_ptr<CUfunc_st>(
      new CUfunc_st{module, kernel, static_cast<uint32_t *>(dlsym(module->library, "cudasim_place"))}));
  *function = all.back().get();
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z,
                        unsigned threads_x, unsigned threads_y, unsigned threads_z, unsigned, CUstream stream,
                        void **arguments, void **) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks_x, blocks_y, blocks_z);
  config.blockDim = dim3(threads_x, threads_y, threads_z);
  config.stream = stream;
  cohort::FusedArrays arrays;
  std::memcpy(&arrays, arguments[0], sizeof arrays);
  std::vector<Argument> noted;
  note_arguments(arrays, 0, &noted);
  const auto one_thread = [kernel = *function, arrays] {
    const uint32_t place[] = {threadIdx.x, threadIdx.y, threadIdx.z, blockIdx.x, blockIdx.y, blockIdx.z,
                              blockDim.x,  blockDim.y,  blockDim.z,  gridDim.x,  gridDim.y,  gridDim.z};
    std::memcpy(kernel.place, place, sizeof place);
    kernel.kernel(arrays);
  };
  const cudaError_t status = enqueue_kernel(config, function, "compiled", one_thread, noted, sizeof arrays);
  return status == cudaSuccess ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
}

}  // extern "C"
