// SPDX-License-Identifier: Apache-2.0
#include "cohort/error.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <utility>

#include "api/api.hpp"
#include "base/utf8.hpp"

struct cohort_error {
  int32_t unused;
};

namespace cohort::api {
namespace {

thread_local CallScope *innermost = nullptr;

// A queue of calls. It has no destructor: a thread-local object with one allocates memory when the thread first uses
// it.
struct HostCalls {
  HostCall *first = nullptr, *last = nullptr;

  void add(std::unique_ptr<HostCall> call) {
    HostCall *const added = call.get();
    if (last) {
      last->next = std::move(call);
    } else {
      first = call.release();
    }
    last = added;
  }
  std::unique_ptr<HostCall> take() {
    last = nullptr;
    return std::unique_ptr<HostCall>(std::exchange(first, nullptr));
  }
};

void run(std::unique_ptr<HostCall> call) {
  for (; call; call = std::move(call->next)) call->function();
}

thread_local HostCalls after_this_call;

struct DeferredCalls {
  std::mutex mutex;  // guards calls
  HostCalls calls;
  std::atomic<bool> any{false};
};

// Never destroyed: other threads may release objects while the process exits.
DeferredCalls &deferred_calls() {
  alignas(DeferredCalls) static char memory[sizeof(DeferredCalls)];  // not on the heap, which may be exhausted
  static DeferredCalls *const instance = new (memory) DeferredCalls;
  return *instance;
}

void run_later(std::unique_ptr<HostCall> call) noexcept {
  DeferredCalls &p = deferred_calls();
  const std::lock_guard<std::mutex> lock(p.mutex);
  p.calls.add(std::move(call));
  p.any.store(true, std::memory_order_release);
}

bool run_deferred() {  // returns whether there were any
  DeferredCalls &p = deferred_calls();
  if (!p.any.load(std::memory_order_acquire)) return false;
  std::unique_ptr<HostCall> call;
  {
    const std::lock_guard<std::mutex> lock(p.mutex);
    call = p.calls.take();
    p.any.store(false, std::memory_order_relaxed);
  }
  run(std::move(call));
  return true;
}

cohort_error out_of_memory_error{0};

// Null for NULL, for the out-of-memory error and for pointers that are no error.
const ErrorObject *object_of(const cohort_error *error) {
  return static_cast<const ErrorObject *>(peek_object(HandleKind::kError, error));
}

}  // namespace

CallScope::CallScope() noexcept : outer_(innermost) { innermost = this; }

CallScope::~CallScope() {
  num_used_ = 0;
  group_ = nullptr;
  for (bool more = !outer_; more;) {  // each may add more of the others
    more = end_removed();
    if (after_this_call.first) run(after_this_call.take()), more = true;
    more = run_deferred() || more;
  }
  innermost = outer_;
}

void CallScope::note_used(const void *handle) noexcept {
  if (!innermost) return;
  size_t &num = innermost->num_used_;
  if (num < kMostNoted) innermost->used_[num] = handle;
  if (num <= kMostNoted) ++num;
}

bool CallScope::used_by_outer_call(const void *handle) noexcept {
  for (const CallScope *scope = innermost ? innermost->outer_ : nullptr; scope; scope = scope->outer_) {
    if (scope->num_used_ > kMostNoted) return true;
    const void *const *const end = scope->used_ + scope->num_used_;
    if (std::find(scope->used_, end, handle) != end) return true;
  }
  return false;
}

void CallScope::use_group(const void *group) {
  if (!innermost) return;
  for (const CallScope *scope = innermost->outer_; scope; scope = scope->outer_) {
    if (scope->group_ == group)
      throw Error(Code::kState, "group: a callback cannot use the group whose call it runs in", "group");
  }
  innermost->group_ = group;
}

void run_inside_call(std::unique_ptr<HostCall> call) noexcept {
  if (innermost) {
    call->function();
  } else {
    run_later(std::move(call));
  }
}

HostRelease::~HostRelease() {
  if (!taken_) return;
  if (innermost) {
    after_this_call.add(std::move(call_));
  } else {
    run_later(std::move(call_));
  }
}

cohort_error *out_of_memory() noexcept { return &out_of_memory_error; }

cohort_error *error_handle(Code code, const char *message, const std::string &subject) noexcept {
  try {
    // Messages quote text of the host, which may be any bytes; hosts decode messages as UTF-8 and write them to logs.
    return make_handle<cohort_error>(ErrorObject{code, message_line(message), plain_line(subject)});
  } catch (...) {
    return out_of_memory();
  }
}

}  // namespace cohort::api

using namespace cohort::api;

int32_t cohort_error_code(const cohort_error *error) {
  if (!error) return COHORT_SUCCESS;
  if (error == out_of_memory()) return COHORT_ERROR_OUT_OF_MEMORY;
  const ErrorObject *object = object_of(error);
  return object ? int32_t(object->code) : COHORT_ERROR_INVALID_ARGUMENT;
}

const char *cohort_error_message(const cohort_error *error) {
  if (!error) return "";
  if (error == out_of_memory()) return "out of memory on the host";
  const ErrorObject *object = object_of(error);
  return object ? object->message.c_str() : "error: expected an error handle that is not freed, found another pointer";
}

const char *cohort_error_subject(const cohort_error *error) {
  const ErrorObject *object = object_of(error);
  return object ? object->subject.c_str() : "";
}

const char *cohort_error_code_text(int32_t code) {
  static constexpr const char *kNames[] = {"success",       "invalid argument", "name",    "shape",  "dtype",
                                           "state",         "unsupported",      "device",  "format", "io",
                                           "out of memory", "execution",        "internal"};
  return code >= 0 && size_t(code) < std::size(kNames) ? kNames[code] : "unknown";
}

void cohort_error_free(cohort_error *error) {
  const CallScope inside;
  free_handle(error);
}
