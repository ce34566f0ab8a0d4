// SPDX-License-Identifier: Apache-2.0
// Applies operators to arrays immediately, for callers without a graph. The work is queued, on one queue per device,
// and compiled when an operator is first used with these attributes, shapes and types (applied_program.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ndarray/ndarray.hpp"
#include "op/gradient_graph.hpp"

namespace cohort {

class AppliedProgram;

// Kept from an applied operator for its backward step, besides the arrays that this reads.
struct Kept {
  std::shared_ptr<const AppliedProgram> program;  // null: nothing was kept
  NDArray saved;                                  // null: the kernel saves nothing
};

struct Invocation {
  std::string_view op;
  const char *const *keys = nullptr;  // of the attributes
  const char *const *values = nullptr;
  size_t num_attrs = 0;
  const NDArray *const *inputs =
      nullptr;  // auxiliary states last; those that the operator mutates are written in place
  size_t num_inputs = 0;
  // One for each visible output, of the inferred shape and dtype (else kShape, kDtype); null ones, or all if there are
  // none, are allocated. They may be inputs or overlap them: the result is as if all were computed before any is
  // written.
  const NDArray *const *outputs = nullptr;
  size_t num_outputs = 0;
  Context context;  // where an operator without inputs runs
  bool is_train = false;
  uint64_t seed = 0;    // of random operators: the same seed gives the same numbers
  bool frozen = false;  // training does not change auxiliary states: no gradient flows back through the operator
  bool keeps = false;   // a backward step may follow; results are also hidden outputs and, last, what is saved for it
  const Attrs *parsed = nullptr;  // the attributes, if the caller has parsed them
};

// Queues the work and puts the outputs, given or new, into `results`. Errors of the work are thrown when an output, or
// an input that is written, is waited for. Returns the program that runs. Thread-safe.
std::shared_ptr<const AppliedProgram> invoke(const Invocation &call, std::vector<NDArray> *results);
// The same with attributes as a map. `outputs` may be empty and have null arrays.
std::vector<NDArray> invoke(const std::string &op, const AttrMap &attrs, const std::vector<NDArray> &inputs,
                            const std::vector<NDArray> &outputs, const Context &context, bool is_train = false,
                            uint64_t seed = 0, bool frozen = false);

// The same for an operator whose attributes may be parsed already. With `kept`, a backward step may follow: the results
// are all outputs, hidden ones too, and *kept gets what the step needs besides arrays.
std::vector<NDArray> invoke(const Application &what, const std::vector<NDArray> &inputs,
                            const std::vector<NDArray> &outputs, const Context &context, uint64_t seed, bool frozen,
                            Kept *kept);
// Applies a backward step, or an operator, as its kernels take it: nothing is inferred. `kept` is of the step's
// operator, or empty if that was not kept. The outputs have these types and are on the context; null ones in `outputs`
// are made, those that are not wanted stay null. One may be an input if the operator works in place.
std::vector<NDArray> invoke_as(const Application &what, const Kept &kept, const std::vector<NDArray> &inputs,
                               const std::vector<NDArray> &outputs, const std::vector<TensorType> &types,
                               const std::vector<bool> &wanted, const Context &context);

// Ends the threads of applied operators and frees their working memory when no array is left; waits for queued work.
// Compiled programs stay.
void release_invoked() noexcept;

// Counts of the programs for operators applied on a device.
struct InvokedPrograms {
  size_t kept = 0;
  uint64_t made = 0;  // since the process began
};
InvokedPrograms invoked_programs(const Context &context);

}  // namespace cohort
