// SPDX-License-Identifier: Apache-2.0
// Operators applied to arrays at once, for the boundary and whoever has no graph. Applied ones are queued, all of a
// device on one queue, and compiled at the first use for operator, attributes, shapes and types (applied_program.hpp).
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
  // One for each visible output, of the inferred shape and dtype (kShape, kDtype), null ones to be made; or none at
  // all. They may be inputs or overlap them: the result is as if it were computed before any of it is written.
  const NDArray *const *outputs = nullptr;
  size_t num_outputs = 0;
  Context context;  // where an operator without inputs runs
  bool is_train = false;
  uint64_t seed = 0;  // of random operators: the same seed gives the same numbers
};

// Queues the work and puts the outputs, given or new, into `results`. Errors of the work come out where an output, or
// an input that is written, is waited for. Any thread.
void invoke(const Invocation &call, std::vector<NDArray> *results);
// The same for those who have attributes as a map. `outputs` may be empty and have null arrays.
std::vector<NDArray> invoke(const std::string &op, const AttrMap &attrs, const std::vector<NDArray> &inputs,
                            const std::vector<NDArray> &outputs, const Context &context, bool is_train = false,
                            uint64_t seed = 0);

// Kernels of the caller's own making among applied operators: what a tape computes backwards. A derived class keeps
// what its steps point to. Work whose inputs were not written fails, and what it was to write is then bad.
class AppliedWork : public Kernel {
 public:
  std::vector<NDArray> reads, changes, writes;  // changed in place: among those that are read, too
  bool brief = false;                           // so little that no thread is to be woken for it
  bool calls_host = false;                      // an operator of the host's is in it

  void add(const Kernel &kernel, const Args &args, const WorkInfo *info = nullptr) {
    steps_.push_back({&kernel, args, label_.c_str(), info});
    on_caller_ = on_caller_ || kernel.on_caller();
  }
  void run(const Args &, const Lane &) const override;  // its own first step: looks after the inputs
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
  std::vector<NDArray> were_bad_;  // of those that are to be written
  const Timeline *by_ = nullptr;   // only compared
};
// Where a kernel runs on the caller's thread, or the caller is at work for a queue, it has finished when this returns.
void enqueue_applied(const std::shared_ptr<AppliedWork> &work, const Context &context);
int num_applied_threads(const Context &context);  // of kernels that run there

// Ends the threads of applied operators and frees their working memory, when nobody has an array any more; waits for
// what is queued. Programs stay.
void release_invoked() noexcept;

// Of the programs kept for operators applied on a device.
struct InvokedPrograms {
  size_t kept = 0;
  uint64_t made = 0;  // so far
};
InvokedPrograms invoked_programs(const Context &context);

}  // namespace cohort
