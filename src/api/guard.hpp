// SPDX-License-Identifier: Apache-2.0
// The one place where an exception becomes an error, and where a call of ours begins and ends.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "cohort/error.h"

namespace cohort::api {

// While one exists, the thread is inside a call of ours: callbacks may run on it. Leaving the outermost one, where no
// lock is held any more, runs what was put off, by this thread first.
class CallScope {
 public:
  CallScope() noexcept;
  ~CallScope();
  CallScope(const CallScope &) = delete;
  CallScope &operator=(const CallScope &) = delete;

  // What the innermost one works on: a callback may free the handle, and the object then stays until the outermost one
  // is left.
  static void note_used(const void *handle) noexcept;
  static bool outer_ones_use(const void *handle) noexcept;

 private:
  static constexpr size_t kMostNoted = 8;  // with more, all that callbacks free counts as used

  CallScope *const outer_;
  size_t num_used_ = 0;
  const void *used_[kMostNoted];
};

// A call of a function of the host's, made beforehand so that making it cannot fail.
struct HostCall {
  std::function<void()> function;
  std::unique_ptr<HostCall> next;  // while it is put off
};
// Makes the call now if the thread is inside a call of ours, else at the end of the next call of any thread.
void run_inside_call(std::unique_ptr<HostCall> call) noexcept;

// Tells the host, when it goes, that something is not needed any more, if the call that took it has succeeded. Objects
// go under whatever locks, where no function of the host's may run: it does at the end of this thread's call, or, if
// that is none, of the next one of any thread.
class HostRelease {
 public:
  explicit HostRelease(std::function<void()> function) : call_(new HostCall{std::move(function), nullptr}) {}
  HostRelease(const HostRelease &) = delete;
  HostRelease &operator=(const HostRelease &) = delete;
  ~HostRelease();
  void take() { taken_.store(true); }

 private:
  std::unique_ptr<HostCall> call_;
  std::atomic<bool> taken_{false};
};

cohort_error *error_handle(Code code, const char *message, const std::string &subject) noexcept;
cohort_error *out_of_memory() noexcept;  // a static object: reporting needs no memory

template <typename Fn>
cohort_error *guard(Fn &&fn) noexcept {
  const CallScope inside;
  try {
    fn();
    return nullptr;
  } catch (const Error &e) {
    return error_handle(e.code(), e.what(), e.subject());
  } catch (const std::bad_alloc &) {
    return out_of_memory();
  } catch (const std::length_error &) {  // more elements than any memory holds
    return out_of_memory();
  } catch (const std::exception &e) {
    return error_handle(Code::kInternal, e.what(), std::string());
  } catch (...) {
    return error_handle(Code::kInternal, "unknown exception", std::string());
  }
}

}  // namespace cohort::api
