// SPDX-License-Identifier: Apache-2.0
// One kernel on arrays, with what it keeps for its backward step: for operators whose two passes go together.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "device/trace.hpp"
#include "ndarray/ndarray.hpp"
#include "op/gradient_graph.hpp"

namespace cohort {

// What a forward kernel leaves to its backward step.
struct Kept {
  std::shared_ptr<const Kernel> kernel;
  NDArray saved;  // bytes; empty: none
};

struct KernelCall {
  const Application *what = nullptr;
  uint64_t seed = 0;
  std::vector<NDArray> inputs;
  std::vector<NDArray> outputs;         // an empty one is not wanted
  std::vector<TensorType> types;        // of all outputs
  std::shared_ptr<const Kept> forward;  // of a backward step: what the forward pass kept, or null
};

class KernelRunner {
 public:
  // Queued among applied operators. Of a forward pass: what it keeps.
  std::shared_ptr<const Kept> run(const KernelCall &call, const Context &context);

 private:
  // A kernel with what its factory answered, and the reorders that it asks for: null where a tensor lies row-major.
  struct Made {
    StepSpec spec;
    std::shared_ptr<const Kernel> kernel;
    std::shared_ptr<const Kernel> forward;  // the hint, kept so that its address is its own
    std::vector<std::unique_ptr<Kernel>> from_inputs, to_outputs;
    std::unique_ptr<WorkInfo> info, reorder_info;  // for traces
  };
  static constexpr size_t kMostMade = 1024;

  std::shared_ptr<const Made> made_for(const KernelCall &call, const Context &context, Device &device);

  std::unordered_map<std::string, std::shared_ptr<const Made>> made_;  // by all that the kernel depends on
};

}  // namespace cohort
