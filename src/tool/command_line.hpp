// SPDX-License-Identifier: Apache-2.0
// Command lines: the options of a command, the arguments that were given, and the text of --help.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace cohort::tool {

// The command line is wrong: exit status 2. All other exceptions are exit status 1.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The command cannot be carried out.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Option {
  const char *name;   // "--shape"
  const char *value;  // the name of its value in --help; "" if it takes none
  const char *help;
  enum Times {
    kOnce,
    kRepeated,
    kPairs,  // values are NAME=VALUE, and further ones may follow without the option's name
  } times = kOnce;
};

class Arguments;

struct Command {
  const char *name;
  const char *positional;  // its name in --help: "FILE"
  const char *summary;     // one line
  const char *details;     // further lines, each ended
  std::vector<Option> options;
  void (*run)(const Arguments &);
};

// The arguments that were given for a command.
class Arguments {
 public:
  // Throws UsageError for an unknown option, a missing or unexpected value, and unless there is one positional word.
  Arguments(const Command &command, const std::vector<std::string> &words);

  const std::string &file() const { return file_; }
  bool has(const std::string &option) const { return given_.count(option) != 0; }
  std::string one(const std::string &option, const std::string &otherwise = "") const;  // the last one given
  std::vector<std::string> all(const std::string &option) const;
  // The values of an option of pairs, in the order given. A name given twice is a UsageError.
  std::vector<std::pair<std::string, std::string>> pairs(const std::string &option) const;
  int64_t number(const std::string &option, int64_t otherwise, int64_t low, int64_t high) const;

 private:
  std::string file_;
  std::map<std::string, std::vector<std::string>> given_;
};

std::string help(const Command &command);

std::vector<std::string> split(const std::string &text, char separator);
// A whole number from low to high, or a UsageError that begins with `what`.
int64_t parse_number(const std::string &text, int64_t low, int64_t high, const std::string &what);

}  // namespace cohort::tool
