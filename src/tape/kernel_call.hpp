// SPDX-License-Identifier: Apache-2.0
// Runs one kernel on arrays and keeps what its backward step needs: for operators whose forward and backward kernels
// belong together.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "device/trace.hpp"
#include "ndarray/ndarray.hpp"
#include "op/gradient_graph.hpp"

namespace cohort {

// The result of a forward kernel that its backward step uses.
struct Kept {
  std::shared_ptr<const Kernel> kernel;
  NDArray saved;  // as bytes; null: none
};

struct KernelCall {
  const Application *what = nullptr;
  uint64_t seed = 0;
  std::vector<NDArray> inputs;
  std::vector<NDArray> outputs;         // a null one is not wanted
  std::vector<TensorType> types;        // of all outputs
  bool frozen = false;                  // as in an Invocation
  std::shared_ptr<const Kept> forward;  // for a backward step: what the forward pass kept, or null
};

class KernelRunner {
 public:
  // Queues the kernel among applied operators. After a forward step, returns what its backward step needs.
  std::shared_ptr<const Kept> run(const KernelCall &call, const Context &context);

 private:
  // A kernel with the specification that its factory completed, and the reorders that this asks for: null where a
  // tensor is row-major.
  struct CachedKernel {
    StepSpec spec;
    std::shared_ptr<const Kernel> kernel;
    std::shared_ptr<const Kernel> forward;  // the hint, kept so that its address is not used again
    std::vector<std::unique_ptr<Kernel>> from_inputs, to_outputs;
    std::unique_ptr<WorkInfo> info, reorder_info;  // for traces
  };
  static constexpr size_t kMostCached = 1024;

  std::shared_ptr<const CachedKernel> cached_kernel(const KernelCall &call, const Context &context, Device &device);

  std::unordered_map<std::string, std::shared_ptr<const CachedKernel>>
      cache_;  // by everything that the kernel depends on
};

}  // namespace cohort
