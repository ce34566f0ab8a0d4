// SPDX-License-Identifier: Apache-2.0
// Output of the tool: tables and numbers for people, JSON for programs, files that appear whole or not at all, and a
// progress bar on a terminal.
#pragma once

#include <chrono>
#include <fstream>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cohort/cohort.hpp"

namespace cohort::tool {

// Prints to standard output. An error is a Failure, at the latest in finish_output().
void print(const std::string &text);
void print(const nlohmann::ordered_json &json);
void finish_output();

// A table with columns as wide as needed, aligned to the left, or to the right where `to_the_right` says so.
class TextTable {
 public:
  explicit TextTable(std::vector<bool> to_the_right) : right_(std::move(to_the_right)) {}
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

// Calls `write` with the name of a file beside `path`, then renames that file: it appears whole or not at all.
void write_whole(const std::string &path, const std::function<void(const std::string &beside)> &write);
void write_text(const std::string &path, const std::string &text);
std::ifstream open_to_read(const std::string &path);  // a file or a pipe, else a Failure
std::string read_text(const std::string &path);

// "Measuring [#####     ] 3/10" on standard error, if that is a terminal. The destructor clears it.
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
