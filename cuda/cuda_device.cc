// SPDX-License-Identifier: Apache-2.0
// gpu(i), and the one symbol that libcohort_cuda.so exports.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

#include "cuda/cuda_communicator.hpp"
#include "cuda/cuda_context.hpp"
#include "cuda/cuda_memory.hpp"
#include "cuda/cuda_named.hpp"
#include "cuda/cuda_poll.hpp"
#include "cuda/cuda_queue.hpp"
#include "cuda/cuda_rates.hpp"
#include "cuda/cuda_upload.hpp"
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
  explicit CudaDevice(int id) : Device(Context{DeviceType::kGpu, id}), id_(id), pool_(id), ring_(id) {}

  size_t cached_bytes() const override { return pool_.cached_bytes(); }

  std::shared_ptr<void> host_memory(size_t bytes) override {
    return named(id_, [&] {
      const CurrentDevice current(id_);
      return need_pinned(bytes, "the host's");
    });
  }

  std::shared_ptr<Queue> create_queue(const QueueOptions &options) override {
    return named(id_,
                 [&] { return std::make_shared<CudaQueue>(shared_from_this(), pool_, ring_, id_, options.trace); });
  }

  std::shared_ptr<Communicator> make_communicator(const std::vector<Context> &contexts, std::string *why) override {
    return make_cuda_communicator(contexts, why);
  }

  const KernelTable &kernels() const override { return cuda_kernels(); }
  MachineRates rates(int) const override { return cuda_rates(id_); }

  std::unique_ptr<Kernel> make_reorder(const TensorSpec &from, const TensorSpec &to, int) override {
    StepSpec spec;
    spec.op = "_reorder";
    spec.inputs = {from};
    spec.outputs = {to};
    spec.constant = {false};
    spec.wanted = {true};
    return construct(*kernels().find(spec), spec);
  }

 protected:
  std::shared_ptr<Memory> obtain(size_t bytes) override {
    // The memory keeps the device object alive.
    const std::shared_ptr<void> data(named(id_, [&] { return pool_.take(bytes); }),
                                     [device = shared_from_this(), this](void *p) { pool_.give_back(p); });
    return std::make_shared<Memory>(context(), data.get(), bytes, [data](void *) {});
  }

  // Finished work may still hold memory until it has been polled.
  bool reclaim(int times) override { return times < 2 && finish_polled(); }

  std::unique_ptr<Kernel> construct(const KernelEntry &entry, StepSpec &spec) override {
    return named(id_, [&] {
      const CurrentDevice current(id_);
      return call_factory(entry, spec);
    });
  }

 private:
  const int id_;
  DevicePool pool_;
  PinnedRing ring_;
};

int count_gpus() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return count;
}

// Why the driver cannot be used.
const char *unusable(cudaError_t status) {
  static char reason[256];
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess) cudaGetLastError();
  const auto minor = [](int version) { return version % 1000 / 10; };
  if (status != cudaErrorInsufficientDriver) {
    std::snprintf(reason, sizeof reason, "the CUDA driver cannot be used: %s", cudaGetErrorString(status));
  } else if (driver == 0) {
    return "there is no CUDA driver";
  } else {
    std::snprintf(reason, sizeof reason,
                  "the CUDA driver is too old: it supports CUDA %d.%d, and must support %d.%d or later", driver / 1000,
                  minor(driver), CUDART_VERSION / 1000, minor(CUDART_VERSION));
  }
  return reason;
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
    return cohort::unusable(status);
  }
  backend->create = [](int32_t id) -> cohort::Device * { return new cohort::CudaDevice(id); };
  backend->count = cohort::count_gpus;
  return nullptr;
}
