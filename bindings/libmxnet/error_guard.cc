// SPDX-License-Identifier: Apache-2.0
#include "error_guard.hpp"

#include <memory>
#include <stdexcept>

#include "mxnet/c_api.h"

namespace cohort_mxnet {

namespace {

// Hosts call the library while the process ends, after the main thread's variables are destroyed: then there is another
// message, which nobody destroys.
std::string &message_of_thread() {
  struct Message {
    std::string text;
    bool *is_gone;
    ~Message() { *is_gone = true; }
  };
  static thread_local bool is_gone = false;
  if (is_gone) {
    static thread_local std::string *const last = std::make_unique<std::string>().release();
    return *last;
  }
  static thread_local Message message{{}, &is_gone};
  return message.text;
}

}  // namespace

void set_last_error(const char *message) noexcept {
  try {
    message_of_thread() = message && *message ? message : "unknown error";
  } catch (...) {  // no memory even for the message: the old one stays
  }
}

const char *last_error() noexcept { return message_of_thread().c_str(); }

void fail(const std::string &message) { throw std::invalid_argument(message); }

int not_implemented(const char *function) noexcept {
  try {
    message_of_thread() = std::string(function) + ": not implemented in Cohort";
  } catch (...) {
    set_last_error("not implemented in Cohort");
  }
  return -1;
}

int report_current_exception() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc &) {
    set_last_error("out of memory");
  } catch (const std::exception &error) {
    set_last_error(error.what());
  } catch (...) {
    set_last_error("an exception that is no std::exception");
  }
  return -1;
}

}  // namespace cohort_mxnet

extern "C" {

const char *MXGetLastError() { return cohort_mxnet::last_error(); }

const char *NNGetLastError() { return cohort_mxnet::last_error(); }

void NNAPISetLastError(const char *message) { cohort_mxnet::set_last_error(message); }

}  // extern "C"
