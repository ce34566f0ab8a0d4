// SPDX-License-Identifier: Apache-2.0
// Files as the readers and writers of .params need them. All errors are kIo and name the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace cohort {

// A file open for reading at any place. Pipes and the like are read to their end first.
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

// A regular file in memory, page by page as it is read; what is written there stays with this process.
class MappedFile {
 public:
  // Null: it is no regular file, or the file system does not map.
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

// A file that appears under its name whole or not at all: written beside it, flushed, then renamed. The permissions of
// a file that it replaces are kept; of a link, the file it leads to is replaced. What is no file but a device or a pipe
// is written directly.
class OutputFile {
 public:
  explicit OutputFile(const std::string &path);
  ~OutputFile();  // without commit(): nothing has happened
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
