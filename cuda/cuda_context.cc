// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_context.hpp"

#include <cuda.h>

#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace cohort {
namespace {

struct Driver {
  CUresult (*init)(unsigned) = nullptr;
  CUresult (*get_device)(CUdevice *, int) = nullptr;
  CUresult (*retain)(CUcontext *, CUdevice) = nullptr;
  CUresult (*push)(CUcontext) = nullptr;
  CUresult (*pop)(CUcontext *) = nullptr;

  Driver() {
    find("cuInit", &init);
    find("cuDeviceGet", &get_device);
    find("cuDevicePrimaryCtxRetain", &retain);
    find("cuCtxPushCurrent", &push);
    find("cuCtxPopCurrent", &pop);
    check(init(0), "cuInit");
  }
  static void check(CUresult result, const char *call) {
    if (result == CUDA_SUCCESS) return;
    const Code code = result == CUDA_ERROR_OUT_OF_MEMORY ? Code::kOutOfMemory : Code::kDevice;
    throw Error(code, text("CUDA: error ", int(result), " of the driver in ", call), "cuda");
  }

 private:
  template <typename Function>
  static void find(const char *name, Function *function) {
    *function = reinterpret_cast<Function>(driver_function(name));
  }
};

const Driver &driver() {
  static const auto *const instance = new Driver;  // devices outlive static objects
  return *instance;
}

struct Contexts {
  std::mutex mutex;                  // guards primary
  std::map<int, CUcontext> primary;  // the contexts that the runtime uses; retained until the process ends
};

CUcontext context_of(int id) {
  static auto *const all = new Contexts;
  const std::lock_guard<std::mutex> lock(all->mutex);
  CUcontext &context = all->primary[id];
  if (!context) {
    CUdevice device = 0;
    Driver::check(driver().get_device(&device, id), "cuDeviceGet");
    Driver::check(driver().retain(&context, device), "cuDevicePrimaryCtxRetain");
  }
  return context;
}

}  // namespace

void *driver_function(const char *name) {
  void *found = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
  constexpr unsigned kVersion = 12000;  // of the functions' parameters
  CUDA_CHECK(cudaGetDriverEntryPointByVersion(name, &found, kVersion, cudaEnableDefault, &status));
  if (!found) throw Error(Code::kDevice, text("CUDA: the driver has no ", name, "; it is too old"), "cuda");
  return found;
}

std::mutex &launch_order() {
  static auto *const mutex = new std::mutex;
  return *mutex;
}

namespace {

thread_local int current_id = -1;

}  // namespace

int CurrentDevice::id() { return current_id; }

CurrentDevice::CurrentDevice(int id) { push(id); }

CurrentDevice::CurrentDevice(int id, std::nothrow_t) noexcept {
  try {
    push(id);
  } catch (const std::exception &) {
  }
}

void CurrentDevice::push(int id) {
  Driver::check(driver().push(context_of(id)), "cuCtxPushCurrent");
  pushed_ = true;
  outer_ = std::exchange(current_id, id);
}

CurrentDevice::~CurrentDevice() {
  if (!pushed_) return;
  CUcontext ours = nullptr;
  driver().pop(&ours);
  current_id = outer_;
}

namespace {

// A kernel on a device.
using KernelOnDevice = std::pair<int, const void *>;
struct UsedCode {
  std::mutex mutex;  // guards all
  std::set<KernelOnDevice> all;
};
UsedCode &used_code() {
  static auto *const instance = new UsedCode;
  return *instance;
}

// A cache of used_code() per thread: each launch asks.
KernelOnDevice &lately_found(const KernelOnDevice &code) {
  constexpr size_t kMost = 256;
  static thread_local KernelOnDevice found[kMost];
  return found[(reinterpret_cast<uintptr_t>(code.second) / 16 + size_t(code.first)) % kMost];
}

}  // namespace

bool was_used(const void *kernel) {
  const KernelOnDevice code(current_id, kernel);
  KernelOnDevice &lately = lately_found(code);
  if (lately == code) return true;
  const std::lock_guard<std::mutex> lock(used_code().mutex);
  if (used_code().all.count(code) == 0) return false;
  lately = code;
  return true;
}

void note_use(const void *kernel) {
  const std::lock_guard<std::mutex> lock(used_code().mutex);
  used_code().all.emplace(current_id, kernel);
}

}  // namespace cohort
