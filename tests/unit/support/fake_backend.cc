// SPDX-License-Identifier: Apache-2.0
// A backend without hardware, for tests of how backends are loaded and how arrays are moved: built as a separate
// libcohort_cuda.so. Its memory is at addresses that fault when touched, and its queues do nothing before sync(), so
// that a missing copy or wait fails the test. COHORT_FAKE_GPU: the number of its GPUs, or "stale".
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "device/array_work.hpp"
#include "device/device.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

constexpr uintptr_t kMark = uintptr_t(1) << 62;  // offset of device addresses, beyond those of any process

std::string setting() {
  const char *value = std::getenv("COHORT_FAKE_GPU");
  return value ? value : "0";
}

char *real_address(const void *address) {
  return reinterpret_cast<char *>(reinterpret_cast<uintptr_t>(address) & ~kMark);
}

class FakeEvent final : public Event {
 public:
  bool done() const override { return true; }
  void wait() const override {}
};

class FakeQueue final : public Queue {
 public:
  ~FakeQueue() override { work_off(); }
  void run(const Program &program, std::shared_ptr<const void> owner) override {  // of the host's making: it has none
    work_.push_back([program, owner = std::move(owner)] {
      for (size_t s = 0; s < program.count; ++s) program.steps[s].kernel->run(program.steps[s].args, Lane{1, nullptr});
    });
  }
  void call(std::function<void()> fn, const char *) override { work_.push_back(std::move(fn)); }
  void copy(void *to, const void *from, size_t bytes, std::shared_ptr<const void> owner,
            void (*)(const void *owner, const char *message)) override {
    work_.push_back(
        [to, from, bytes, owner = std::move(owner)] { std::memcpy(real_address(to), real_address(from), bytes); });
  }
  std::shared_ptr<Event> record() override {
    work_off();
    return std::make_shared<FakeEvent>();
  }
  void wait(std::shared_ptr<Event> event) override { event->wait(); }
  void sync() override { work_off(); }
  void finish() noexcept override { work_off(); }
  void check() const override {}
  bool idle() const override { return work_.empty(); }
  int num_threads() const override { return 1; }

 private:
  void work_off() {
    for (const auto &piece : work_) piece();
    work_.clear();
  }
  std::vector<std::function<void()>> work_;
};

// The kernels of array_work.hpp, as plain loops.
class Fill final : public Kernel {
 public:
  explicit Fill(const StepSpec &spec)
      : value_(spec.attrs_as<ElementFill>().value),
        count_(spec.outputs[0].shape.size()),
        bytes_(dtype_size(spec.outputs[0].dtype)) {}
  void run(const Args &args, const Lane &) const override {
    char *const to = real_address(args.outputs[0]);
    for (int64_t i = 0; i < count_; ++i) std::memcpy(to + size_t(i) * bytes_, &value_, bytes_);
  }

 private:
  const uint64_t value_;
  const int64_t count_;
  const size_t bytes_;
};

class CopyOfRows final : public Kernel {
 public:
  explicit CopyOfRows(const StepSpec &spec)
      : rows_(spec.attrs_as<RowCopy>()), bytes_(dtype_size(spec.inputs[0].dtype)) {}
  void run(const Args &args, const Lane &) const override {
    for (int64_t row = 0; row < rows_.num_rows; ++row) {
      std::memcpy(real_address(args.outputs[0]) + size_t(rows_.to + row * rows_.to_stride) * bytes_,
                  real_address(args.inputs[0]) + size_t(rows_.from + row * rows_.from_stride) * bytes_,
                  size_t(rows_.length) * bytes_);
    }
  }

 private:
  const RowCopy rows_;
  const size_t bytes_;
};

class FakeDevice final : public Device {
 public:
  using Device::Device;
  std::shared_ptr<Memory> obtain(size_t bytes) override {
    char *const real = new char[bytes + 1];
    std::memset(real, 0x55, bytes);
    auto *const marked = reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(real) | kMark);
    return std::make_shared<Memory>(context(), marked, bytes, [](void *data) { delete[] real_address(data); });
  }
  std::shared_ptr<Queue> create_queue(const QueueOptions &) override { return std::make_shared<FakeQueue>(); }
  const KernelTable &kernels() const override {
    static const auto *const table = [] {
      auto *const made = new KernelTable;
      made->add("_fill_elements", make_kernel_of<Fill>);
      made->add("_copy_rows", make_kernel_of<CopyOfRows>);
      return made;
    }();
    return *table;
  }
  std::unique_ptr<Kernel> make_reorder(const TensorSpec &, const TensorSpec &, int) override { return nullptr; }

 protected:
  std::unique_ptr<Kernel> construct(const KernelEntry &entry, StepSpec &spec) override {
    return call_factory(entry, spec);
  }
};

}  // namespace
}  // namespace cohort

extern "C" __attribute__((visibility("default"))) const char *cohort_backend(int interface_version,
                                                                             const char *build_id,
                                                                             cohort::BackendExports *backend) {
  const std::string mine = cohort::setting() == "stale" ? "of another day" : COHORT_BUILD_ID;
  if (interface_version != cohort::kBackendInterface || build_id != mine) return "the fake backend is stale";
  backend->create = [](int32_t id) -> cohort::Device * {
    return new cohort::FakeDevice(cohort::Context{cohort::DeviceType::kGpu, id});
  };
  backend->count = [] { return std::atoi(cohort::setting().c_str()); };
  return nullptr;
}
