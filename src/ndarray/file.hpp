// SPDX-License-Identifier: Apache-2.0
// Files for the readers and writers of .params. All errors are kIo and name the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace cohort {

// A file opened for random access. Pipes and the like are read to their end first.
class InputFile {
 public:
  explicit InputFile(const std::string &path);
  ~InputFile();
  InputFile(const InputFile &) = delete;
  InputFile &operator=(const InputFile &) = delete;

  const std::string &path() const { return path_; }
  uint64_t size() const { return size_; }
  void read(uint64_t offset, void *to, size_t bytes);  // within size(); small pieces come from a buffer
  std::string read_whole();

 private:
  void read_through(uint64_t offset, char *to, size_t bytes) const;

  const std::string path_;
  int descriptor_ = -1;  // -1: everything is in buffer_
  uint64_t size_ = 0;
  std::string buffer_;  // from buffer_begin_
  uint64_t buffer_begin_ = 0;
};

// A regular file mapped to memory privately: pages load on access, and writes stay in this process.
class MappedFile {
 public:
  // Null if it is not a regular file, or the file system does not support mapping.
  static std::shared_ptr<const MappedFile> open(const std::string &path);
  MappedFile(void *data, size_t bytes) : data_(data), bytes_(bytes) {}
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  char *data() const { return static_cast<char *>(data_); }
  size_t bytes() const { return bytes_; }

 private:
  void *const data_;
  const size_t bytes_;
};

// Writes a file atomically: to a temporary file beside it, flushed, then renamed. Keeps the permissions of a file that
// it replaces, and replaces the target of a link. Devices and pipes are written directly.
class OutputFile {
 public:
  explicit OutputFile(const std::string &path);
  ~OutputFile();  // without commit(), nothing has changed
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  void append(const void *data, size_t bytes);
  void commit();

 private:
  [[noreturn]] void fail(const char *what) const;  // with errno
  void flush();
  void write_through(const char *data, size_t bytes);

  const std::string path_;  // as the caller named it
  std::string target_, temporary_;
  int descriptor_ = -1;
  std::string buffer_;
};

}  // namespace cohort
