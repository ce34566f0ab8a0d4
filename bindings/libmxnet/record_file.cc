// SPDX-License-Identifier: Apache-2.0
#include "record_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "error_guard.hpp"

namespace cohort_mxnet {
namespace {

constexpr uint32_t kMagic = 0xced7230a;
constexpr uint32_t kLengthBits = 29;
constexpr uint32_t kMaxLength = (1u << kLengthBits) - 1;
// A damaged length is found at the end of the file, before more than this is allocated for it.
constexpr size_t kChunkBytes = size_t{1} << 20;

enum Kind : uint32_t { kWhole = 0, kFirst = 1, kMiddle = 2, kLast = 3 };

size_t padding(size_t bytes) { return (4 - bytes % 4) % 4; }

[[noreturn]] void fail_in(const std::string &path, const std::string &what) { fail(path + ": " + what); }

[[noreturn]] void fail_io(const std::string &path, const char *what) {
  fail_in(path, std::string(what) + ": " + std::strerror(errno));
}

uint64_t tell_file(const std::string &path, std::FILE *file) {
  const off_t position = ftello(file);
  if (position < 0) fail_io(path, "cannot tell the position");
  return static_cast<uint64_t>(position);
}

}  // namespace

File open_file(const std::string &uri, const char *mode) {
  constexpr std::string_view kFileScheme = "file://";
  const size_t scheme = uri.find("://");
  std::string path = uri;
  if (scheme != std::string::npos) {
    if (uri.compare(0, kFileScheme.size(), kFileScheme) != 0)
      fail_in(uri, "expected a local file, found another scheme");
    path = uri.substr(kFileScheme.size());
  }
  File file(std::fopen(path.c_str(), mode));
  if (!file) fail_io(path, "cannot open the file");
  struct stat status;
  if (fstat(fileno(file.get()), &status) == 0 && S_ISDIR(status.st_mode))
    fail_in(path, "expected a file, found a directory");
  return file;
}

RecordReader::RecordReader(const std::string &uri) : path_(uri), file_(open_file(uri, "rb")) {}

bool RecordReader::read(std::string *record) {
  const uint64_t begin = tell();
  try {
    return read_record(record);
  } catch (...) {
    std::clearerr(file_.get());
    fseeko(file_.get(), static_cast<off_t>(begin), SEEK_SET);
    throw;
  }
}

bool RecordReader::read_record(std::string *record) {
  if (record) record->clear();
  for (bool is_inside = false;;) {
    uint32_t header[2];
    const size_t read = std::fread(header, 1, sizeof header, file_.get());
    if (std::ferror(file_.get())) fail_io(path_, "cannot read the file");
    if (read == 0 && !is_inside) return false;
    if (read != sizeof header) fail_in(path_, "the file ends inside a record");
    if (header[0] != kMagic) fail_in(path_, "expected the beginning of a record, found other bytes");
    const uint32_t kind = header[1] >> kLengthBits;
    const uint32_t bytes = header[1] & kMaxLength;
    const bool continues = kind == kMiddle || kind == kLast;
    if (kind > kLast || continues != is_inside)
      fail_in(path_, is_inside ? "expected a further part of a record, found the beginning of another one"
                               : "expected the beginning of a record, found a further part of one");
    if (record) {
      if (is_inside) record->append(reinterpret_cast<const char *>(&kMagic), sizeof kMagic);
      read_part(*record, bytes);
    } else {
      skip_part(bytes);
    }
    if (kind == kWhole || kind == kLast) return true;
    is_inside = true;
  }
}

void RecordReader::read_part(std::string &record, uint32_t bytes) {
  for (size_t left = bytes; left > 0;) {
    const size_t chunk = std::min(left, kChunkBytes);
    const size_t begin = record.size();
    record.resize(begin + chunk);
    if (std::fread(&record[begin], 1, chunk, file_.get()) != chunk) fail_in(path_, "the file ends inside a record");
    left -= chunk;
  }
  char ignored[4];
  const size_t pad = padding(bytes);
  if (std::fread(ignored, 1, pad, file_.get()) != pad) fail_in(path_, "the file ends inside a record");
}

// Reads the last byte, because one can seek beyond the end of a file.
void RecordReader::skip_part(uint32_t bytes) {
  const size_t padded = bytes + padding(bytes);
  if (padded == 0) return;
  if (fseeko(file_.get(), static_cast<off_t>(padded) - 1, SEEK_CUR) != 0) fail_io(path_, "cannot seek");
  if (std::getc(file_.get()) == EOF) fail_in(path_, "the file ends inside a record");
}

void RecordReader::seek(uint64_t position) {
  if (position > static_cast<uint64_t>(INT64_MAX)) fail_in(path_, "a position beyond 2^63");
  if (fseeko(file_.get(), static_cast<off_t>(position), SEEK_SET) != 0) fail_io(path_, "cannot seek");
}

uint64_t RecordReader::tell() const { return tell_file(path_, file_.get()); }

RecordWriter::RecordWriter(const std::string &uri) : path_(uri), file_(open_file(uri, "wb")) {}

void RecordWriter::write(std::string_view record) {
  if (!file_) fail_in(path_, "the writer is closed");
  if (record.size() > kMaxLength)
    fail_in(path_, "expected a record of less than 2^29 bytes, found " + std::to_string(record.size()));
  size_t begin = 0;
  bool is_cut = false;
  for (size_t i = 0; i + sizeof kMagic <= record.size(); i += sizeof kMagic) {
    if (std::memcmp(&record[i], &kMagic, sizeof kMagic) != 0) continue;
    write_part(is_cut ? kMiddle : kFirst, record.substr(begin, i - begin));
    begin = i + sizeof kMagic;
    is_cut = true;
  }
  write_part(is_cut ? kLast : kWhole, record.substr(begin));
}

uint64_t RecordWriter::tell() const {
  if (!file_) fail_in(path_, "the writer is closed");
  return tell_file(path_, file_.get());
}

void RecordWriter::close() {
  if (file_ && std::fclose(file_.release()) != 0) fail_io(path_, "cannot write the file");
}

void RecordWriter::write_part(uint32_t kind, std::string_view part) {
  const uint32_t header[2] = {kMagic, kind << kLengthBits | static_cast<uint32_t>(part.size())};
  const char zeros[4] = {};
  write_bytes(header, sizeof header);
  write_bytes(part.data(), part.size());
  write_bytes(zeros, padding(part.size()));
}

void RecordWriter::write_bytes(const void *data, size_t bytes) {
  if (bytes != 0 && std::fwrite(data, 1, bytes, file_.get()) != bytes) fail_io(path_, "cannot write the file");
}

}  // namespace cohort_mxnet
