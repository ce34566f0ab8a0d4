// SPDX-License-Identifier: Apache-2.0
// gpu(i), and the one symbol that libcohort_cuda.so exports.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

#include "cuda/cuda_context.hpp"
#include "cuda/cuda_queue.hpp"
#include "device/device.hpp"
#include "device/kernel_table.hpp"
#include "kernels/backend.hpp"

#ifndef COHORT_BUILD_ID
#define COHORT_BUILD_ID "dev"
#endif

namespace cohort {

KernelTable &backend_kernels() { return cuda_kernels(); }

KernelTable &cuda_kernels() {
  static KernelTable *const table = new KernelTable;
  return *table;
}

namespace {

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int id) : Device(Context{DeviceType::kGpu, id}), id_(id) {
    const CurrentDevice current(id_);
    CUDA_CHECK(cudaFree(nullptr));  // makes the device's context here, where its failure can be told
  }

  std::shared_ptr<Memory> allocate(size_t bytes) override {
    const CurrentDevice current(id_);
    void *data = nullptr;
    const cudaError_t status = cudaMalloc(&data, bytes ? bytes : 1);
    if (status != cudaSuccess) {
      cudaGetLastError();
      size_t free_bytes = 0, total_bytes = 0;
      cudaMemGetInfo(&free_bytes, &total_bytes);
      throw Error(Code::kOutOfMemory,
                  text(context(), ": no room for ", bytes, " bytes; ", free_bytes, " of ", total_bytes, " are free (",
                       cudaGetErrorString(status), ")"),
                  text(context()));
    }
    // The device object lives as long as its memory.
    return std::make_shared<Memory>(context(), data, bytes, [device = shared_from_this(), id = id_](void *p) {
      const CurrentDevice current(id, std::nothrow);
      cudaFree(p);
    });
  }

  std::shared_ptr<Queue> create_queue(const QueueOptions &) override {
    return std::make_shared<CudaQueue>(shared_from_this(), id_);
  }

  const KernelTable &kernels() const override { return cuda_kernels(); }

  std::unique_ptr<Kernel> make_reorder(const TensorSpec &from, const TensorSpec &, int) override {
    throw Error(Code::kInternal, text("cuda kernels keep every tensor row-major, found ", from.layout->describe()));
  }

 protected:
  std::unique_ptr<Kernel> construct(const KernelEntry &entry, StepSpec &spec) override {
    const CurrentDevice current(id_);
    return call_factory(entry, spec);
  }

 private:
  const int id_;
};

int count_gpus() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return count;
}

}  // namespace
}  // namespace cohort

extern "C" __attribute__((visibility("default"))) const char *cohort_backend(int interface_version,
                                                                             const char *build_id,
                                                                             cohort::BackendExports *backend) {
  if (interface_version != cohort::kBackendInterface || std::strcmp(build_id, COHORT_BUILD_ID) != 0) {
    return "libcohort_cuda.so is of another version than libcohort.so; install the two together";
  }
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    cudaGetLastError();
    static char reason[256];
    std::snprintf(reason, sizeof reason, "the CUDA driver cannot be used: %s", cudaGetErrorString(status));
    return reason;
  }
  backend->create = [](int32_t id) -> cohort::Device * { return new cohort::CudaDevice(id); };
  backend->count = cohort::count_gpus;
  return nullptr;
}
