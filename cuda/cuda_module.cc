// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_module.hpp"

#include "cuda/cuda_context.hpp"

namespace cohort {
namespace {

void check(CUresult result, const char *call) {
  if (result != CUDA_SUCCESS) throw Error(Code::kDevice, text("CUDA: error ", int(result), " of the driver in ", call));
}

struct Driver {
  CUresult (*load)(CUmodule *, const void *);
  CUresult (*unload)(CUmodule);
  CUresult (*get_function)(CUfunction *, CUmodule, const char *);
  CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                     void **, void **);
  Driver() {
    find("cuModuleLoadData", &load);
    find("cuModuleUnload", &unload);
    find("cuModuleGetFunction", &get_function);
    find("cuLaunchKernel", &launch);
  }

 private:
  template <typename Function>
  static void find(const char *name, Function *function) {
    *function = reinterpret_cast<Function>(driver_function(name));
  }
};

const Driver &driver() {
  static const auto *const instance = new Driver;  // modules outlive static objects
  return *instance;
}

}  // namespace

CudaModule::CudaModule(int device, const std::string &code) : device_(device) {
  const CurrentDevice current(device_);
  const std::lock_guard<std::mutex> alone(launch_order());
  check(driver().load(&module_, code.data()), "cuModuleLoadData");
}

CudaModule::~CudaModule() {
  const CurrentDevice current(device_, std::nothrow);
  const std::lock_guard<std::mutex> alone(launch_order());
  driver().unload(module_);
}

// This loads the code if the driver has deferred that.
CudaModule::Function::Function(const CudaModule &module, const char *kernel) {
  const CurrentDevice current(module.device_);
  const std::lock_guard<std::mutex> alone(launch_order());
  check(driver().get_function(&function_, module.module_, kernel), "cuModuleGetFunction");
}

void CudaModule::Function::launch_with(const Grid &grid, void *stream, void **arguments) const {
  const dim3 &blocks = grid.blocks, &threads = grid.threads;
  check(driver().launch(function_, blocks.x, blocks.y, blocks.z, threads.x, threads.y, threads.z, 0,
                        static_cast<CUstream>(stream), arguments, nullptr),
        "cuLaunchKernel");
}

}  // namespace cohort
