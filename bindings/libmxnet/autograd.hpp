// SPDX-License-Identifier: Apache-2.0
// Recording of operators and gradients. MXNet's flags belong to a thread, and what was recorded to the arrays; Cohort's
// tapes are objects. So each thread records on a tape of its own, which the recorded arrays refer to: another thread
// may go on with them, and may run the backward pass.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "ndarray_handle.hpp"

namespace cohort_mxnet {

// A tape, used by one thread at a time: the mutex is held by a thread while it works on the tape. It is recursive, for
// a backward pass calls functions of the host, which may apply operators.
struct SharedTape {
  std::recursive_mutex mutex;  // guards tape
  cohort::Tape tape;
};

// Where an array comes from: a variable with a gradient, or an operator recorded on a tape.
struct Origin {
  Origin() = default;
  Origin(const Origin &) = delete;
  Origin &operator=(const Origin &) = delete;
  ~Origin();

  std::shared_ptr<SharedTape> tape;              // null: a variable
  std::vector<std::shared_ptr<Origin>> parents;  // of the operator's inputs, until a backward pass has released them

  // These belong to a variable.
  cohort::NDArray array;     // the whole of it, for its views
  cohort::NDArray gradient;  // empty: none
  cohort_grad_req req = COHORT_GRAD_NULL;
  std::atomic<int> is_fresh{0};                      // set by a backward pass, and by the host
  std::mutex mutex;                                  // guards marked_on
  std::vector<std::weak_ptr<SharedTape>> marked_on;  // the tapes that know of the variable
};

bool is_recording();
bool is_training();
bool set_recording(bool recording);
bool set_training(bool training);

// Sets both for a time: while a callback of the host runs, what it applies is not recorded.
class ScopedFlags {
 public:
  ScopedFlags(bool recording, bool training)
      : recording_(set_recording(recording)), training_(set_training(training)) {}
  ScopedFlags(const ScopedFlags &) = delete;
  ScopedFlags &operator=(const ScopedFlags &) = delete;
  ~ScopedFlags() {
    set_recording(recording_);
    set_training(training_);
  }

 private:
  const bool recording_, training_;
};

using ArrayList = std::vector<std::shared_ptr<NDArray>>;

// The tape on which an application to these inputs is recorded; null if it is not: the thread does not record, or
// nothing that it is applied to has an origin.
std::shared_ptr<SharedTape> tape_for(const ArrayList &inputs);

// A handle of the library's on an input of an operator that is recorded.
cohort::NDArray recorded_input(NDArray &input, const std::shared_ptr<SharedTape> &tape);

// Notes that arrays were made from others on a tape.
void set_origin(const ArrayList &outputs, const ArrayList &inputs, const std::shared_ptr<SharedTape> &tape);

// A lock on a tape whose flags are those of the thread. A call on a tape may run functions of the host, which may
// record and compute gradients themselves: meanwhile the thread records on another tape.
class TapeUse {
 public:
  explicit TapeUse(const std::shared_ptr<SharedTape> &tape);
  TapeUse(const TapeUse &) = delete;
  TapeUse &operator=(const TapeUse &) = delete;
  cohort::Tape &tape() { return shared_->tape; }

 private:
  std::shared_ptr<SharedTape> shared_;
  std::unique_lock<std::recursive_mutex> lock_;

  class OtherTape {
   public:
    OtherTape();
    OtherTape(const OtherTape &) = delete;
    OtherTape &operator=(const OtherTape &) = delete;
    ~OtherTape();

   private:
    std::weak_ptr<SharedTape> outer_;
  } other_tape_;
};

}  // namespace cohort_mxnet
