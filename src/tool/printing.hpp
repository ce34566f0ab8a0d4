// SPDX-License-Identifier: Apache-2.0
// What the tool writes: tables and numbers for a person, JSON for a program, files that appear whole, and a bar on a
// terminal while one waits.
#pragma once

#include <chrono>
#include <fstream>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tool/tool_handles.hpp"

namespace cohort::tool {

// To standard output. What cannot be written is a Failure, at the latest in finish_output().
void print(const std::string &text);
void print(const nlohmann::ordered_json &json);
void finish_output();

// Columns, as wide as what is in them: text to the left, the columns named to the right. The first row is the heading.
class Table {
 public:
  explicit Table(std::vector<bool> to_the_right) : right_(std::move(to_the_right)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  void line() { rows_.emplace_back(); }
  std::string text() const;

 private:
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

std::string printable(const std::string &text);       // names come from files: control characters are written as '?'
std::string with_commas(int64_t number);              // 25,557,032
std::string bytes_text(double bytes);                 // 1.64 MiB
std::string plural(size_t number, const char *noun);  // "1 layer", "2 layers"
std::string number_text(const char *format, double value);
std::string dtype_text(cohort_dtype dtype);  // "?" if it is not known
std::string joined(const std::vector<std::string> &parts, const char *separator);

// Lets `write` make a file beside `path`, and renames it when it is done: the file appears whole or not at all.
void write_whole(const std::string &path, const std::function<void(const std::string &beside)> &write);
void write_text(const std::string &path, const std::string &text);
std::ifstream open_to_read(const std::string &path);  // a file or a pipe; all else is a Failure
std::string read_text(const std::string &path);

// "Measuring [#####     ] 3/10" on standard error, if that is a terminal; gone when the object is.
class Progress {
 public:
  Progress(const char *label, size_t total);
  ~Progress();
  void step();

 private:
  void draw();

  const char *label_;
  size_t done_ = 0, total_;
  bool shown_;
  std::chrono::steady_clock::time_point drawn_;
};

}  // namespace cohort::tool
