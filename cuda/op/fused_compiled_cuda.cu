// SPDX-License-Identifier: Apache-2.0
// _fused_pointwise, compiled at bind (fused_source.hpp) if NVRTC is found, so that values stay in registers. Otherwise
// it is interpreted (fused_pointwise_cuda.cu).
#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "cuda/cuda_host.hpp"
#include "cuda/cuda_layout.hpp"
#include "cuda/cuda_module.hpp"
#include "cuda/cuda_source.hpp"
#include "cuda/op/fused_source.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

int capability_of(int device) {
  int major = 0, minor = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  return 10 * major + minor;
}

// The loaded module for a source; equal sources share one while it is in use. Null, and *why, if it does not compile.
std::shared_ptr<const CudaModule> module_for(int device, const std::string &source, std::string *why) {
  struct Known {
    std::mutex mutex;  // guards the rest; held while a program is compiled: the others are likely to want the same
    std::map<std::pair<int, std::string>, std::weak_ptr<const CudaModule>> modules;
    size_t num_to_look = 64;  // at this size, entries of unloaded modules are removed
  };
  static auto *const known = new Known;
  const std::lock_guard<std::mutex> lock(known->mutex);
  auto &modules = known->modules;
  if (modules.size() >= known->num_to_look) {
    for (auto it = modules.begin(); it != modules.end();) it = it->second.expired() ? modules.erase(it) : std::next(it);
    known->num_to_look = std::max<size_t>(64, 2 * modules.size());
  }
  std::weak_ptr<const CudaModule> &latest = modules[{device, source}];
  std::shared_ptr<const CudaModule> module = latest.lock();
  if (module) return module;
  const std::string code = compile_source(source, capability_of(device), why);
  if (code.empty()) return nullptr;
  module = std::make_shared<CudaModule>(device, code);
  latest = module;
  return module;
}

class FusedCompiled final : public Kernel {
 public:
  FusedCompiled(const StepSpec &spec, std::shared_ptr<const CudaModule> module)
      : module_(std::move(module)),
        plain_(*module_, kFusedPlain),
        vectors_(*module_, kFusedVectors),
        num_inputs_(spec.attrs_as<FusedPointwiseAttrs>().num_inputs),
        num_outputs_(spec.outputs.size()),
        count_(spec.outputs[0].shape.size()),
        width_(int64_t(16 / dtype_size(spec.outputs[0].dtype))) {}

  void run(const Args &args, const Lane &lane) const override {
    if (count_ == 0) return;
    FusedArrays arrays{};
    std::copy_n(args.inputs, num_inputs_, arrays.inputs);
    std::copy_n(args.outputs, num_outputs_, arrays.outputs);
    arrays.count = count_;
    const auto at_vector = [](const void *address) { return can_be_vectors({address}); };
    const bool vectors = std::all_of(args.inputs, args.inputs + num_inputs_, at_vector) &&
                         std::all_of(args.outputs, args.outputs + num_outputs_, at_vector);
    const int64_t threads = vectors ? (count_ + width_ - 1) / width_ : count_;
    (vectors ? vectors_ : plain_).launch(flat_grid(threads), lane.stream, arrays);
  }

 private:
  const std::shared_ptr<const CudaModule> module_;
  const CudaModule::Function plain_, vectors_;
  const int num_inputs_;
  const size_t num_outputs_;
  const int64_t count_, width_;
};

void tell_once(const Context &context, const std::string &why) {
  static std::once_flag told;
  std::call_once(told, [&] {
    host_services().log(LogLevel::kInfo, text(context, ": fused operators are interpreted, not compiled: ", why));
  });
}

std::unique_ptr<Kernel> make_compiled(StepSpec &spec) {
  const auto &attrs = spec.attrs_as<FusedPointwiseAttrs>();
  if (attrs.num_inputs > FusedArrays::kMostInputs || attrs.outputs.size() > size_t(FusedArrays::kMostOutputs)) {
    return nullptr;
  }
  std::string why;
  try {
    const auto module = module_for(spec.context.id, fused_source(attrs, spec.wanted, spec.outputs[0].dtype), &why);
    if (module) return std::make_unique<FusedCompiled>(spec, module);
  } catch (const Error &error) {
    why = error.what();
  }
  tell_once(spec.context, why);
  return nullptr;
}

COHORT_KERNEL_BY(cuda, _fused_pointwise, flat<make_compiled>)
    .named("nvrtc")
    .dtypes(kFloatTypes)
    .preference(1)
    .any_layout();

}  // namespace
}  // namespace cohort
