// SPDX-License-Identifier: Apache-2.0
// Applies operators to arrays immediately, for callers without a graph. The work is queued, on one queue per device,
// and compiled when an operator is first used with these attributes, shapes and types (applied_program.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ndarray/ndarray.hpp"
#include "op/op.hpp"

namespace cohort {

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
};

// Queues the work and puts the outputs, given or new, into `results`. Errors of the work are thrown when an output, or
// an input that is written, is waited for. Thread-safe.
void invoke(const Invocation &call, std::vector<NDArray> *results);
// The same with attributes as a map. `outputs` may be empty and have null arrays.
std::vector<NDArray> invoke(const std::string &op, const AttrMap &attrs, const std::vector<NDArray> &inputs,
                            const std::vector<NDArray> &outputs, const Context &context, bool is_train = false,
                            uint64_t seed = 0, bool frozen = false);

// Work made of the caller's own kernels, queued among applied operators: the backward pass of a tape. A derived class
// keeps everything that its steps point to. If an input was not written, the work fails and its results are marked as
// failed.
class AppliedWork : public Kernel {
 public:
  std::vector<NDArray> reads, changes, writes;  // `changes` are written in place, and are among `reads`, too
  bool brief = false;                           // too little work to wake a thread for
  bool calls_host = false;                      // it has an operator that the host implements

  void add(const Kernel &kernel, const Args &args, const WorkInfo *info = nullptr) {
    steps_.push_back({&kernel, args, label_.c_str(), info});
    on_caller_ = on_caller_ || kernel.on_caller();
  }
  void run(const Args &, const Lane &) const override;  // the first step: checks the inputs
  void not_queued(const char *why) const;

 protected:
  explicit AppliedWork(std::string label) : label_(std::move(label)) { add(*this, Args()); }

 private:
  friend void enqueue_applied(const std::shared_ptr<AppliedWork> &work, const Context &context);
  void begin(const std::shared_ptr<Timeline> &by);
  void run_here(const std::function<void(const Step *steps, size_t count)> &run) const;
  static void failed(const void *owner, const char *message);

  const std::string label_;
  std::vector<Step> steps_;
  bool on_caller_ = false;
  std::vector<NDArray> were_bad_;  // arrays of `writes` that were marked as failed before
  const Timeline *by_ = nullptr;   // only compared
};
// If a kernel runs on the caller's thread, or the caller is itself running queued work, the work is done when this
// returns.
void enqueue_applied(const std::shared_ptr<AppliedWork> &work, const Context &context);
int num_applied_threads(const Context &context);  // of kernels on this context

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
