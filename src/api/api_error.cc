// SPDX-License-Identifier: Apache-2.0
#include "cohort/error.h"

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

thread_local int call_depth = 0;

// Calls in their order. Without a destructor: one of a thread would take memory before the thread's first error.
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

thread_local HostCalls behind_this_call;

struct PutOff {
  std::mutex mutex;  // guards calls
  HostCalls calls;
  std::atomic<bool> any{false};
};

// Lives on while other threads release at exit.
PutOff &put_off() {
  alignas(PutOff) static char memory[sizeof(PutOff)];  // not of the heap, which may be exhausted
  static PutOff *const instance = new (memory) PutOff;
  return *instance;
}

void run_later(std::unique_ptr<HostCall> call) noexcept {
  PutOff &p = put_off();
  const std::lock_guard<std::mutex> lock(p.mutex);
  p.calls.add(std::move(call));
  p.any.store(true, std::memory_order_release);
}

void run_put_off() {
  PutOff &p = put_off();
  while (p.any.load(std::memory_order_acquire)) {
    std::unique_ptr<HostCall> call;
    {
      const std::lock_guard<std::mutex> lock(p.mutex);
      call = p.calls.take();
      p.any.store(false, std::memory_order_relaxed);
    }
    run(std::move(call));
  }
}

cohort_error out_of_memory_error{0};

// "" and "out of memory" need no object; anything that is no error says so itself.
const ErrorObject *object_of(const cohort_error *error) {
  return static_cast<const ErrorObject *>(peek_object(Kind::kError, error));
}

}  // namespace

CallScope::CallScope() noexcept { ++call_depth; }

CallScope::~CallScope() {
  if (call_depth == 1) {
    while (behind_this_call.first) run(behind_this_call.take());
    run_put_off();
  }
  --call_depth;
}

void run_inside_call(std::unique_ptr<HostCall> call) noexcept {
  if (call_depth > 0) {
    call->function();
  } else {
    run_later(std::move(call));
  }
}

HostRelease::~HostRelease() {
  if (!taken_) return;
  if (call_depth > 0) {
    behind_this_call.add(std::move(call_));
  } else {
    run_later(std::move(call_));
  }
}

cohort_error *out_of_memory() noexcept { return &out_of_memory_error; }

cohort_error *error_handle(Code code, const char *message, const std::string &subject) noexcept {
  try {
    // Messages quote what the host gave, which may be any bytes; hosts decode them as UTF-8 and write them to logs.
    return make_handle<cohort_error>(ErrorObject{code, plain_line(message), plain_line(subject)});
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
  return object ? object->message.c_str() : "error: expected an error that is not freed, found another pointer";
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
