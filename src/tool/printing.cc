// SPDX-License-Identifier: Apache-2.0
#include "tool/printing.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tool/command_line.hpp"

namespace cohort::tool {
namespace {

size_t width_of(const std::string &text) {  // characters of UTF-8
  return size_t(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

[[noreturn]] void fail(const std::string &path) { throw Failure(path + ": " + std::strerror(errno)); }

}  // namespace

void print(const std::string &text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail("standard output");
}

void print(const nlohmann::ordered_json &json) {
  print(json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void finish_output() {
  if (std::fflush(stdout) || std::ferror(stdout)) fail("standard output");
}

std::string TextTable::text() const {
  std::vector<size_t> widths(right_.size(), 0);
  for (const auto &row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  size_t whole = 2 * (widths.size() - 1);
  for (const size_t width : widths) whole += width;
  std::string text;
  for (const auto &row : rows_) {
    std::string line = row.empty() ? std::string(whole, '-') : "";
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - width_of(row[i]), ' ');
      line += (i ? "  " : "") + (right_[i] ? space + row[i] : row[i] + space);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string printable(const std::string &text) {
  std::string result = text;
  for (char &c : result) {
    if (static_cast<unsigned char>(c) < ' ' || c == 127) c = '?';
  }
  return result;
}

std::string with_commas(int64_t number) {
  std::string digits = std::to_string(number);
  for (int at = int(digits.size()) - 3; at > (number < 0); at -= 3) digits.insert(size_t(at), 1, ',');
  return digits;
}

std::string bytes_text(double bytes) {
  const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit < 4; ++unit) bytes /= 1024;
  return number_text(unit ? "%.2f " : "%.0f ", bytes) + units[unit];
}

std::string plural(size_t number, const char *noun) {
  return with_commas(int64_t(number)) + " " + noun + (number == 1 ? "" : "s");
}

std::string number_text(const char *format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string dtype_text(cohort_dtype dtype) { return dtype == COHORT_DTYPE_NONE ? "?" : cohort::dtype_text(dtype); }

std::string joined(const std::vector<std::string> &parts, const char *separator) {
  std::string text;
  for (const std::string &part : parts) text += (text.empty() ? "" : separator) + part;
  return text;
}

void write_whole(const std::string &path, const std::function<void(const std::string &)> &write) {
  const std::string beside = path + ".part" + std::to_string(getpid());
  try {
    write(beside);
    if (std::rename(beside.c_str(), path.c_str())) fail(path);
  } catch (...) {
    std::remove(beside.c_str());
    throw;
  }
}

void write_text(const std::string &path, const std::string &text) {
  write_whole(path, [&](const std::string &beside) {
    std::ofstream file(beside, std::ios::binary);
    file << text;
    file.close();
    if (!file) fail(path);
  });
}

std::ifstream open_to_read(const std::string &path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) fail(path);
  if (S_ISDIR(status.st_mode)) errno = EISDIR, fail(path);
  if (S_ISCHR(status.st_mode)) throw Failure(path + ": expected a file or a pipe");
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path);
  return file;
}

std::string read_text(const std::string &path) {
  std::ifstream file = open_to_read(path);
  std::ostringstream text;
  if (!(text << file.rdbuf()) && text.tellp() > 0) fail(path);
  if (file.bad()) fail(path);
  return text.str();
}

Progress::Progress(const char *label, size_t total) : label_(label), total_(total), shown_(isatty(STDERR_FILENO)) {
  draw();
}

Progress::~Progress() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void Progress::step() {
  ++done_;
  if (std::chrono::steady_clock::now() - drawn_ > std::chrono::milliseconds(100)) draw();
}

void Progress::draw() {
  if (!shown_) return;
  constexpr size_t kWidth = 30;
  const size_t full = total_ ? std::min(kWidth, kWidth * done_ / total_) : 0;
  std::fprintf(stderr, "\r%s [%s%s] %zu/%zu\033[K", label_, std::string(full, '#').c_str(),
               std::string(kWidth - full, ' ').c_str(), done_, total_);
  drawn_ = std::chrono::steady_clock::now();
}

}  // namespace cohort::tool
