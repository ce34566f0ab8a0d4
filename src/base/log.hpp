// SPDX-License-Identifier: Apache-2.0
// Log messages go to the registered sinks. While there are none, warnings and errors go to stderr.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace cohort {

enum class LogLevel : int { kDebug = 0, kInfo = 1, kWarning = 2, kError = 3 };

// Called on the thread that logs, possibly by several threads at once, with no lock held. A sink that is being removed
// may still be called by a thread that had already started to log.
using LogFunction = std::function<void(LogLevel level, const std::string &message)>;

struct LogSink {
  LogLevel lowest;
  LogFunction function;
};

void add_log_sink(std::shared_ptr<const LogSink> sink);
void remove_log_sink(const LogSink *sink) noexcept;
// Sets the one default sink, replacing the previous one. Null removes it; `lowest` then applies to stderr.
void set_log(LogFunction function, LogLevel lowest);
void log(LogLevel level, const std::string &message);  // one whole line without newline; callable from any thread

}  // namespace cohort
