// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include <cstdio>
#include <mutex>

namespace cohort {
namespace {

struct Sink {
  std::mutex mutex;  // guards the three below, and keeps messages whole
  LogFunction function = nullptr;
  void *user_data = nullptr;
  LogLevel lowest = LogLevel::kWarning;
};

Sink &sink() {
  static Sink *const instance = new Sink;  // lives on while other threads log at exit
  return *instance;
}

}  // namespace

void set_log(LogFunction function, void *user_data, LogLevel lowest) {
  Sink &s = sink();
  std::lock_guard<std::mutex> lock(s.mutex);
  s.function = function;
  s.user_data = user_data;
  s.lowest = lowest;
}

void log(LogLevel level, const std::string &message) {
  Sink &s = sink();
  std::lock_guard<std::mutex> lock(s.mutex);
  if (level < s.lowest) return;
  if (s.function) {
    s.function(int(level), message.c_str(), s.user_data);
  } else if (level >= LogLevel::kWarning) {
    std::fprintf(stderr, "cohort: %s\n", message.c_str());
  }
}

}  // namespace cohort
