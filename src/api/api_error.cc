// SPDX-License-Identifier: Apache-2.0
#include "cohort/error.h"

#include <atomic>
#include <mutex>
#include <new>

#include "api/api.hpp"
#include "base/utf8.hpp"

struct cohort_error {
  int32_t unused;
};

namespace cohort::api {
namespace {

thread_local int call_depth = 0;

struct PutOff {
  std::mutex mutex;  // guards first and last
  std::unique_ptr<HostCall> first;
  HostCall *last = nullptr;
  std::atomic<bool> any{false};
};

// Lives on while other threads release at exit.
PutOff &put_off() {
  alignas(PutOff) static char memory[sizeof(PutOff)];  // not of the heap, which may be exhausted
  static PutOff *const instance = new (memory) PutOff;
  return *instance;
}

void run_put_off() {
  PutOff &p = put_off();
  while (p.any.load(std::memory_order_acquire)) {
    std::unique_ptr<HostCall> call;
    {
      const std::lock_guard<std::mutex> lock(p.mutex);
      call = std::move(p.first);
      p.last = nullptr;
      p.any.store(false, std::memory_order_relaxed);
    }
    for (; call; call = std::move(call->next)) call->function();
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
  if (call_depth == 1) run_put_off();
  --call_depth;
}

void run_inside_call(std::unique_ptr<HostCall> call) noexcept {
  if (call_depth > 0) return call->function();
  PutOff &p = put_off();
  const std::lock_guard<std::mutex> lock(p.mutex);
  HostCall *const added = call.get();
  (p.last ? p.last->next : p.first) = std::move(call);
  p.last = added;
  p.any.store(true, std::memory_order_release);
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
