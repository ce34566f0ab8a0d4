// SPDX-License-Identifier: Apache-2.0
// The only place where an exception becomes an error, and where a call of the library begins and ends.
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

// While one exists, the thread is inside a call of the library and callbacks may run on it. When the outermost one
// ends, no lock is held any more: it then runs deferred calls, those of this thread first.
class CallScope {
 public:
  CallScope() noexcept;
  ~CallScope();
  CallScope(const CallScope &) = delete;
  CallScope &operator=(const CallScope &) = delete;

  // Notes that the innermost call uses this handle: if a callback frees it, the object stays until the outermost call
  // ends.
  static void note_used(const void *handle) noexcept;
  static bool used_by_outer_call(const void *handle) noexcept;
  // Notes the group that the innermost call works on. kState if an outer call works on it, too: then a callback has
  // made the call, in the middle of what the group is doing.
  static void use_group(const void *group);

 private:
  static constexpr size_t kMostNoted = 8;  // beyond this number, everything that callbacks free counts as used

  CallScope *const outer_;
  const void *group_ = nullptr;
  size_t num_used_ = 0;
  const void *used_[kMostNoted];
};

// A call of a host function, prepared so that making it cannot fail.
struct HostCall {
  std::function<void()> function;
  std::unique_ptr<HostCall> next;  // while it is deferred
};
// Makes the call now if the thread is inside a call of the library, else at the end of the next call of any thread.
void run_inside_call(std::unique_ptr<HostCall> call) noexcept;

// Its destructor tells the host that something is no longer needed, if the call that took it over has succeeded.
// Objects may be destroyed under locks, where no host function may run: it runs at the end of this thread's call or,
// outside of a call, at the end of the next call of any thread.
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
