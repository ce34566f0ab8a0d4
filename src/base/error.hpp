// SPDX-License-Identifier: Apache-2.0
// The one exception type of the library. Every room throws Error; the boundary (src/api) turns it into a cohort_error.
#pragma once

#include <locale>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace cohort {

// Error classes of contract section 16; the values equal COHORT_ERROR_* in include/cohort/error.h.
enum class Code : int {
  kInvalidArgument = 1,  // ARG
  kName = 2,
  kShape = 3,
  kDtype = 4,
  kState = 5,
  kUnsupported = 6,
  kDevice = 7,
  kFormat = 8,
  kIo = 9,
  kOutOfMemory = 10,
  kExecution = 11,
  kInternal = 12,
};

// Formats numbers independently of the host's locale.
class TextStream : public std::ostringstream {
 public:
  TextStream() {
    imbue(std::locale::classic());
    exceptions(std::ios_base::badbit);  // without this, a stream swallows std::bad_alloc
  }
};

// Concatenates anything that has operator<< into one string: text("shape ", shape, " is not ", other).
template <typename... Parts>
std::string text(const Parts &...parts) {
  TextStream out;
  (out << ... << parts);
  return out.str();
}

// `subject` names the operator, argument, array or file concerned, or is empty. The message is one line.
class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string &message, std::string subject = "")
      : std::runtime_error(message), code_(code), subject_(std::move(subject)) {}
  Code code() const noexcept { return code_; }
  const std::string &subject() const noexcept { return subject_; }

 private:
  Code code_;
  std::string subject_;
};

}  // namespace cohort
