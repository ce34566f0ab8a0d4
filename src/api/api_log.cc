// SPDX-License-Identifier: Apache-2.0
#include "cohort/log.h"

#include <mutex>

#include "api/api.hpp"
#include "base/log.hpp"

namespace cohort::api {
namespace {

// The host's callback, called only on threads that are inside a call: messages of worker threads wait for one.
struct Sink {
  std::mutex mutex;  // guards the two below, and keeps messages apart
  cohort_log_fn callback = nullptr;
  void *user_data = nullptr;

  void set(cohort_log_fn new_callback, void *new_user_data) {
    const std::lock_guard<std::mutex> lock(mutex);
    callback = new_callback;
    user_data = new_user_data;
  }
  void send(int level, const char *message) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (callback) callback(level, message, user_data);
  }
};

Sink &sink() {
  static Sink *const instance = new Sink;  // lives on while other threads log at exit
  return *instance;
}

void send(int level, const char *message, void *) {
  send_inside_call([](int32_t l, const char *m, void *) { sink().send(l, m); }, level, message, nullptr);
}

}  // namespace

void send_inside_call(cohort_log_fn log, int level, const std::string &message, void *user_data) noexcept {
  try {
    run_inside_call(
        std::unique_ptr<HostCall>(new HostCall{[=] { log(int32_t(level), message.c_str(), user_data); }, nullptr}));
  } catch (const std::bad_alloc &) {  // a message less
  }
}

}  // namespace cohort::api

using namespace cohort;
using namespace cohort::api;

cohort_error *cohort_set_log(int32_t lowest, cohort_log_fn callback, void *user_data) {
  return guard([&] {
    if (lowest < COHORT_LOG_DEBUG || lowest > COHORT_LOG_OFF) {
      throw Error(Code::kInvalidArgument,
                  text("lowest: expected ", int(COHORT_LOG_DEBUG), " to ", int(COHORT_LOG_OFF), ", found ", lowest),
                  "lowest");
    }
    // Not under the lock of the sink: a message on its way takes the log's lock first, then the sink's.
    sink().set(callback, user_data);
    set_log(callback ? send : nullptr, nullptr, LogLevel(lowest));
  });
}
