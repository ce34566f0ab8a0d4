// SPDX-License-Identifier: Apache-2.0
// RecordIO files: records one after the other, each with a magic number and its length, padded to four bytes. A record
// that contains the magic number on such a boundary is cut there into several parts, so that a reader which looks for
// the magic number finds only beginnings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace cohort_mxnet {

struct CloseFile {
  void operator()(std::FILE *file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// Opens a local file, by its path or as file://PATH. Directories and other schemes are refused.
File open_file(const std::string &uri, const char *mode);

class RecordReader {
 public:
  explicit RecordReader(const std::string &uri);

  // Reads the next record into `record`. False at the end of the file. Throws for a damaged file, after which the
  // reader stands where the damaged record began.
  bool next(std::string &record) { return read(&record); }
  // Goes behind the next record without reading it.
  bool skip() { return read(nullptr); }
  void seek(uint64_t position);
  uint64_t tell() const;

 private:
  bool read(std::string *record);
  bool read_record(std::string *record);
  void read_part(std::string &record, uint32_t bytes);
  void skip_part(uint32_t bytes);

  std::string path_;
  File file_;
};

class RecordWriter {
 public:
  explicit RecordWriter(const std::string &uri);

  void write(std::string_view record);
  uint64_t tell() const;
  // Writes what is buffered, and throws if that fails. Nothing may be written afterwards.
  void close();

 private:
  void write_part(uint32_t kind, std::string_view part);
  void write_bytes(const void *data, size_t bytes);

  std::string path_;
  File file_;
};

}  // namespace cohort_mxnet
