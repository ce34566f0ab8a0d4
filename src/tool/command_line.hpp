// SPDX-License-Identifier: Apache-2.0
// The words of a command line: what a command takes, what was given, and the text of --help made from the same lists.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace cohort::tool {

// What the caller wrote cannot be meant: exit status 2. All other exceptions are 1.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What was asked for cannot be had.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Option {
  const char *name;   // "--shape"
  const char *value;  // what stands for its value in --help; "" if it takes none
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
  const char *positional;  // what stands for it in --help: "FILE"
  const char *summary;     // one line
  const char *details;     // further lines, each ended
  std::vector<Option> options;
  void (*run)(const Arguments &);
};

// What was given for a command.
class Arguments {
 public:
  // Throws UsageError: an unknown option, a value missing or too much, another number of positional words than one.
  Arguments(const Command &command, const std::vector<std::string> &words);

  const std::string &file() const { return file_; }
  bool has(const std::string &option) const { return given_.count(option) != 0; }
  std::string one(const std::string &option, const std::string &otherwise = "") const;  // the last one given
  std::vector<std::string> all(const std::string &option) const;
  // Of options of pairs, in the order given. A name given twice is a UsageError.
  std::vector<std::pair<std::string, std::string>> pairs(const std::string &option) const;
  int64_t number(const std::string &option, int64_t otherwise, int64_t low, int64_t high) const;

 private:
  std::string file_;
  std::map<std::string, std::vector<std::string>> given_;
};

std::string help(const Command &command);

std::vector<std::string> split(const std::string &text, char separator);
// A whole number from low to high, or a UsageError that says what it is for.
int64_t parse_number(const std::string &text, int64_t low, int64_t high, const std::string &what);

}  // namespace cohort::tool
