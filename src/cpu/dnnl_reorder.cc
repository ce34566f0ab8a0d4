// SPDX-License-Identifier: Apache-2.0
// "_reorder": copies its input in one layout to its output in another. Both describe one tensor; a null layout is
// row-major and dense. Device::make_reorder makes the step.
#include <cstring>

#include "cpu/dnnl_kernel.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace dnn {
namespace {

// Both layouts put every element at the same place.
class CopyKernel final : public Kernel {
 public:
  explicit CopyKernel(size_t bytes) : bytes_(bytes) {}
  void run(const Args &args, const Lane &lane) const override {
    const char *from = args.in<char>(0);
    char *to = args.out<char>(0);
    if (from == to) return;
    parallel_for(lane, int64_t(bytes_), 1 << 16,
                 [=](int64_t begin, int64_t end) { std::memcpy(to + begin, from + begin, size_t(end - begin)); });
  }

 private:
  const size_t bytes_;
};

class ReorderKernel final : public Kernel {
 public:
  ReorderKernel(const Desc &from, const Desc &to, int num_threads, const std::string &what)
      : num_threads_(int64_t(to.get_size()) < 65536 ? 1 : num_threads) {
    const ThreadsScope threads(num_threads_);
    // The scratchpad, if it needs one, is oneDNN's own: a reorder has no step to book one in.
    const auto pd = attempt([&] { return dnnl::reorder::primitive_desc(engine(), from, engine(), to); });
    if (!pd) throw Error(Code::kUnsupported, text(what, ": oneDNN cannot change the layout"));
    call_ = Call(*pd, what, {{DNNL_ARG_FROM, from, Place::input(0)}, {DNNL_ARG_TO, to, Place::output(0)}});
  }
  void run(const Args &args, const Lane &) const override {
    const ThreadsScope threads(num_threads_);
    call_.run(args);
  }

 private:
  const int num_threads_;
  Call call_;
};

std::unique_ptr<Kernel> make_reorder(StepSpec &spec) {
  const TensorSpec &from = spec.inputs[0], &to = spec.outputs[0];
  if (from.shape != to.shape) {
    throw Error(Code::kShape, text("reorder: expected shape ", from.shape, ", found ", to.shape));
  }
  if (from.dtype != to.dtype) {
    throw Error(Code::kDtype, text("reorder: expected ", from.dtype, ", found ", to.dtype));
  }
  if (same_layout(from.layout, to.layout)) return std::make_unique<CopyKernel>(from.bytes());
  const auto *source = static_cast<const DnnlLayout *>(from.layout.get());
  const auto *target = static_cast<const DnnlLayout *>(to.layout.get());
  const Desc source_desc = source ? source->desc() : target->plain();
  const Desc target_desc = target ? target->desc() : source->plain();
  if (same_bytes(source_desc, target_desc)) return std::make_unique<CopyKernel>(to.bytes());
  return std::make_unique<ReorderKernel>(source_desc, target_desc, spec.num_threads, text("reorder ", from.shape));
}

COHORT_KERNEL_BY(cpu, _reorder, make_reorder).any_layout();

}  // namespace
}  // namespace dnn
}  // namespace cohort
