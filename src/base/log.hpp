// SPDX-License-Identifier: Apache-2.0
// Messages to the host. Without a callback warnings go to stderr and the rest nowhere.
#pragma once

#include <string>

namespace cohort {

enum class LogLevel : int { kDebug = 0, kInfo = 1, kWarning = 2, kError = 3 };

using LogFunction = void (*)(int level, const char *message, void *user_data);

void set_log(LogFunction function, void *user_data, LogLevel lowest);
void log(LogLevel level, const std::string &message);  // one whole line without newline; callable from any thread

}  // namespace cohort
