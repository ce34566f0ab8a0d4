// SPDX-License-Identifier: Apache-2.0
// Checks and cleans UTF-8 text from the host. Used by symbol, which writes it to files, and by api and log, whose
// messages quote it.
#pragma once

#include <cstddef>
#include <string>

namespace cohort {

// The length of the UTF-8 sequence at `at`, or 0 if the bytes there are not valid UTF-8.
size_t utf8_length(const std::string &source, size_t at);

// The text as one line of valid UTF-8: invalid bytes, control characters and line separators become \xNN.
std::string plain_line(const std::string &source);

// The same for a message, in which the middle of long quotations is left out, and that of a very long message: names in
// files may have megabytes.
std::string message_line(const std::string &source);

}  // namespace cohort
