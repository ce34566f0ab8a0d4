// SPDX-License-Identifier: Apache-2.0
// What text of the host's may hold. Used by symbol, which writes it to files, and by api, whose messages quote it.
#pragma once

#include <cstddef>
#include <string>

namespace cohort {

// The length of the UTF-8 sequence at `at`, or 0 if there is none.
size_t utf8_length(const std::string &source, size_t at);

// The text as one line of UTF-8: other bytes, control characters and separators of lines as \xNN.
std::string plain_line(const std::string &source);

}  // namespace cohort
