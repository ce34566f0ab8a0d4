// SPDX-License-Identifier: Apache-2.0
// cpu(i): any number of devices that share the host's memory and kernels and differ in their queues.
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.hpp"
#include "cpu/cpu_queue.hpp"
#include "cpu/machine_rates.hpp"
#include "cpu/parallel.hpp"
#include "device/device.hpp"
#include "device/kernel_table.hpp"
#include "kernels/backend.hpp"

namespace cohort {
namespace {

constexpr size_t kAlignment = 64, kHugePage = 2 << 20;
// An allocation that no machine can serve: an overflowed size is refused without asking the system.
constexpr size_t kMostBytes = size_t(1) << 46;

class CpuDevice final : public Device {
 public:
  using Device::Device;
  std::shared_ptr<Memory> obtain(size_t bytes) override;
  std::shared_ptr<Queue> create_queue(const QueueOptions &options) override {
    if (options.num_threads < 0) {
      throw Error(Code::kInvalidArgument,
                  text(context(), ": the number of threads must not be negative, found ", options.num_threads),
                  text(context()));
    }
    return std::make_shared<CpuQueue>(context(), options);
  }
  const KernelTable &kernels() const override { return cpu_kernels(); }
  MachineRates rates(int num_threads) const override { return cpu_rates(num_threads); }
  std::unique_ptr<Kernel> make_reorder(const TensorSpec &from, const TensorSpec &to, int num_threads) override;

 protected:
  std::unique_ptr<Kernel> construct(const KernelEntry &entry, StepSpec &spec) override {
    // oneDNN divides the work of a primitive among threads when it is made: if OMP_THREAD_LIMIT lets fewer run, parts
    // of the work would never be done.
    spec.num_threads = std::min(spec.num_threads, omp_get_thread_limit());
    const FloatModeScope mode;
    const ThreadsScope threads(spec.num_threads);
    return call_factory(entry, spec);
  }
};

std::shared_ptr<Memory> CpuDevice::obtain(size_t bytes) {
  // Rounded up so that vectors may be read whole at the end. Large blocks start at a huge page.
  const bool huge = bytes >= 2 * kHugePage;
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void *data = nullptr;
  if (bytes > kMostBytes || posix_memalign(&data, huge ? kHugePage : kAlignment, rounded ? rounded : kAlignment) != 0) {
    throw Error(Code::kOutOfMemory, text(context(), ": no memory for ", bytes, " bytes"), text(context()));
  }
  // Huge pages: fewer page faults and TLB misses. A refusal only costs speed.
  if (huge) madvise(data, rounded / kHugePage * kHugePage, MADV_HUGEPAGE);
  std::unique_ptr<void, void (*)(void *)> guard(data, std::free);
  auto memory = std::make_shared<Memory>(context(), data, bytes, std::free);
  guard.release();
  return memory;
}

// Kernels of src/cpu register changes of layout as an operator with one input and one output.
std::unique_ptr<Kernel> CpuDevice::make_reorder(const TensorSpec &from, const TensorSpec &to, int num_threads) {
  StepSpec spec = StepSpec::of("_reorder", nullptr, {from}, {to}, num_threads);
  return make_kernel(spec);
}

}  // namespace

KernelTable &backend_kernels() { return cpu_kernels(); }

KernelTable &cpu_kernels() {
  static auto *const table = new KernelTable;  // kernels register before main, in any order of files
  return *table;
}

BackendFactory cpu_backend() {
  return [](int32_t id) -> std::shared_ptr<Device> {
    return std::make_shared<CpuDevice>(Context{DeviceType::kCpu, id});
  };
}

}  // namespace cohort
