// SPDX-License-Identifier: Apache-2.0
// Messages to those who want to hear them. As long as there is nobody, warnings go to stderr and the rest nowhere.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace cohort {

enum class LogLevel : int { kDebug = 0, kInfo = 1, kWarning = 2, kError = 3 };

// Called on the thread that logs, by several at once, with no lock held. One that is removed may still be called by
// threads that had begun to.
using LogFunction = std::function<void(LogLevel level, const std::string &message)>;

struct LogSink {
  LogLevel lowest;
  LogFunction function;
};

void add_log_sink(std::shared_ptr<const LogSink> sink);
void remove_log_sink(const LogSink *sink) noexcept;
// One more sink, of which there is one: it replaces the one before. Null: none; `lowest` is then that of stderr.
void set_log(LogFunction function, LogLevel lowest);
void log(LogLevel level, const std::string &message);  // one whole line without newline; callable from any thread

}  // namespace cohort
