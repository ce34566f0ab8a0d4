// SPDX-License-Identifier: Apache-2.0
// Reads and writes archives of .npy entries, with minizip on memory.
#include <minizip/unzip.h>
#include <minizip/zip.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "ndarray/npy.hpp"

namespace cohort {
namespace {

constexpr uint64_t kMostEntries = uint64_t(1) << 20;
constexpr uint64_t kMostRatio = 1032;  // of deflate
constexpr size_t kPiece = size_t(1) << 30;

// A file in memory, for minizip's callbacks, which must not throw.
struct MemoryFile {
  const char *data = nullptr;      // to read from, or
  std::string *written = nullptr;  // to write to
  uint64_t size = 0, at = 0;
  bool failed = false;
};

MemoryFile &file_of(voidpf stream) { return *static_cast<MemoryFile *>(stream); }

voidpf open_memory(voidpf opaque, const void *, int) { return opaque; }
uLong read_memory(voidpf, voidpf stream, void *to, uLong bytes) {
  MemoryFile &file = file_of(stream);
  const char *const source = file.written ? file.written->data() : file.data;
  const uint64_t size = file.written ? file.written->size() : file.size;
  const uint64_t count = file.at < size ? std::min<uint64_t>(bytes, size - file.at) : 0;
  if (count > 0) std::memcpy(to, source + file.at, size_t(count));
  file.at += count;
  return uLong(count);
}
uLong write_memory(voidpf, voidpf stream, const void *from, uLong bytes) {
  MemoryFile &file = file_of(stream);
  try {
    if (file.at + bytes > file.written->size()) file.written->resize(size_t(file.at + bytes));
  } catch (const std::exception &) {
    file.failed = true;
    return 0;
  }
  std::memcpy(&(*file.written)[size_t(file.at)], from, bytes);
  file.at += bytes;
  return bytes;
}
ZPOS64_T tell_memory(voidpf, voidpf stream) { return file_of(stream).at; }
long seek_memory(voidpf, voidpf stream, ZPOS64_T offset, int origin) {
  MemoryFile &file = file_of(stream);
  const uint64_t size = file.written ? file.written->size() : file.size;
  const uint64_t from = origin == ZLIB_FILEFUNC_SEEK_SET ? 0 : origin == ZLIB_FILEFUNC_SEEK_CUR ? file.at : size;
  if (offset > size - std::min(from, size)) return -1;
  file.at = from + offset;
  return 0;
}
int close_memory(voidpf, voidpf) { return 0; }
int error_of_memory(voidpf, voidpf stream) { return file_of(stream).failed; }

zlib_filefunc64_def functions_on(MemoryFile *file) {
  return {open_memory, read_memory, write_memory, tell_memory, seek_memory, close_memory, error_of_memory, file};
}

class Archive {
 public:
  Archive(const void *data, size_t bytes, const std::string &name) : name_(name) {
    file_.data = static_cast<const char *>(data);
    file_.size = bytes;
    find_directory();
    zlib_filefunc64_def functions = functions_on(&file_);
    if (directory_.bytes == 0) return;  // Minizip rejects an archive that is only an end record
    zip_ = unzOpen2_64(nullptr, &functions);
    if (!zip_) fail("is not a zip archive, or is damaged");
  }
  ~Archive() {
    if (zip_) unzClose(zip_);
  }
  Archive(const Archive &) = delete;
  Archive &operator=(const Archive &) = delete;

  NamedArrays load() {
    if (directory_.num_entries > kMostEntries) fail(text("expected at most ", kMostEntries, " entries"));
    NamedArrays arrays;
    std::set<std::string> names;
    uint64_t at = directory_.begin;
    for (uint64_t i = 0; i < directory_.num_entries; ++i) {
      check(i == 0 ? unzGoToFirstFile(zip_) : unzGoToNextFile(zip_), "the directory");
      if (uint64_t(unzGetOffset64(zip_)) != at) fail("the directory is damaged");
      auto entry = load_entry(&at);
      if (!names.insert(entry.first).second) fail(text("two entries are named '", entry.first, "'"));
      arrays.push_back(std::move(entry));
    }
    if (at != directory_.end())
      fail(text("expected more than the ", directory_.num_entries, " entries of its directory"));
    return arrays;
  }

 private:
  [[noreturn]] void fail(const std::string &what) const {
    throw Error(Code::kFormat, text("'", name_, "': ", plain_line(what)), name_);
  }
  void check(int status, const std::string &what) const {
    if (status < 0) fail(text(what, " is damaged (", status, ")"));
  }

  template <typename T>
  T number_at(uint64_t at) const {  // numbers are little-endian
    uint64_t value = 0;
    for (size_t i = sizeof(T); i-- > 0;) value = value << 8 | static_cast<unsigned char>(file_.data[at + i]);
    return T(value);
  }
  bool is_at(uint64_t at, const char *signature) const { return std::memcmp(file_.data + at, signature, 4) == 0; }

  // Reads the records at the end of the archive. Minizip reads those cut short as if zeros followed, and believes any
  // number of entries: then arrays would be missing.
  void find_directory() {
    constexpr uint64_t kEndBytes = 22, kLocatorBytes = 20, kEnd64Bytes = 56;
    const uint64_t size = file_.size;
    uint64_t comment = 0;  // bytes behind the end record, which has their number
    const auto is_end = [&](uint64_t at) { return is_at(at, "PK\5\6") && number_at<uint16_t>(at + 20) == comment; };
    while (comment + kEndBytes <= size && comment <= UINT16_MAX && !is_end(size - kEndBytes - comment)) ++comment;
    if (comment + kEndBytes > size || comment > UINT16_MAX) fail("is truncated: the archive's end record is missing");
    uint64_t end = size - kEndBytes - comment;
    directory_ = {number_at<uint16_t>(end + 10), number_at<uint32_t>(end + 16), number_at<uint32_t>(end + 12)};
    if (end >= kLocatorBytes + kEnd64Bytes && is_at(end - kLocatorBytes, "PK\6\7")) {
      const uint64_t locator = end - kLocatorBytes;
      end = number_at<uint64_t>(locator + 8);
      if (end > locator - kEnd64Bytes || !is_at(end, "PK\6\6")) fail("the end record is damaged");
      directory_ = {number_at<uint64_t>(end + 32), number_at<uint64_t>(end + 48), number_at<uint64_t>(end + 40)};
    }
    if (directory_.begin > end || directory_.bytes != end - directory_.begin || (directory_.bytes == 0 && end > 0))
      fail("the end record is damaged");
  }

  // Adds what the entry takes in the directory to *directory_at.
  std::pair<std::string, NDArray> load_entry(uint64_t *directory_at) {
    unz_file_info64 info{};
    check(unzGetCurrentFileInfo64(zip_, &info, nullptr, 0, nullptr, 0, nullptr, 0), "the directory");
    constexpr uint64_t kHeaderBytes = 46;
    *directory_at += kHeaderBytes + info.size_filename + info.size_file_extra + info.size_file_comment;
    std::string name(info.size_filename, '\0');
    check(unzGetCurrentFileInfo64(zip_, &info, &name[0], uLong(name.size()), nullptr, 0, nullptr, 0), "the directory");
    constexpr size_t kEnding = 4;
    if (name.size() <= kEnding || name.compare(name.size() - kEnding, kEnding, ".npy") != 0 ||
        name.find('\0') != name.npos) {
      fail(text("entry '", name, "': expected NAME.npy"));
    }
    const std::string called = text(name_, ", ", name);
    if (info.flag & 1) throw Error(Code::kUnsupported, text("'", called, "' is encrypted"), name_);
    if (info.compression_method != 0 && info.compression_method != Z_DEFLATED) {
      throw Error(Code::kUnsupported,
                  text("'", called, "': expected it stored or deflated, found the method ", info.compression_method),
                  name_);
    }
    // The declared sizes must be possible for the number of bytes present,
    if (info.compressed_size > file_.size || info.uncompressed_size / kMostRatio > info.compressed_size + 1) {
      fail(text("entry '", name, "': its declared sizes do not fit the file"));
    }
    // and entries must not overlap, or a small file could expand without limit.
    taken_ += info.compressed_size;
    if (taken_ > file_.size) fail(text("entry '", name, "': entries overlap"));
    check(unzOpenCurrentFile(zip_), name);
    const auto read = [&](char *to, size_t count) {
      for (size_t done = 0; done < count;) {
        const int got = unzReadCurrentFile(zip_, to + done, unsigned(std::min(kPiece, count - done)));
        if (got <= 0) fail(text("entry '", name, "' is damaged"));
        done += size_t(got);
      }
    };
    NDArray array = read_npy(info.uncompressed_size, read, called);
    check(unzCloseCurrentFile(zip_), text("entry '", name, "'"));
    return {name.substr(0, name.size() - kEnding), std::move(array)};
  }

  struct Directory {
    uint64_t num_entries, begin, bytes;
    uint64_t end() const { return begin + bytes; }
  };

  const std::string &name_;
  MemoryFile file_;
  Directory directory_ = {};
  unzFile zip_ = nullptr;
  uint64_t taken_ = 0;  // compressed bytes of the entries so far
};

class ArchiveWriter {
 public:
  ArchiveWriter() {
    file_.written = &bytes_;
    zlib_filefunc64_def functions = functions_on(&file_);
    zip_ = zipOpen2_64(nullptr, APPEND_STATUS_CREATE, nullptr, &functions);
    check(zip_ ? ZIP_OK : ZIP_INTERNALERROR);
  }
  ~ArchiveWriter() {
    if (zip_) zipClose(zip_, nullptr);
  }
  ArchiveWriter(const ArchiveWriter &) = delete;
  ArchiveWriter &operator=(const ArchiveWriter &) = delete;

  void add(const std::string &name, const std::string &content) {
    if (name.size() > UINT16_MAX) {
      throw Error(Code::kName, text("name: expected at most ", UINT16_MAX, " bytes, found ", name.size()), "arrays");
    }
    zip_fileinfo info{};
    info.tmz_date.tm_year = 1980;  // fixed, so that the same arrays give the same bytes
    info.tmz_date.tm_mday = 1;
    constexpr uLong kMadeBy = 45, kUtf8 = 1 << 11;
    const bool large = content.size() >= UINT32_MAX;
    check(zipOpenNewFileInZip4_64(zip_, name.c_str(), &info, nullptr, 0, nullptr, 0, nullptr, 0, 0, 0, -MAX_WBITS,
                                  DEF_MEM_LEVEL, Z_DEFAULT_STRATEGY, nullptr, 0, kMadeBy, kUtf8, large));
    for (size_t done = 0; done < content.size();) {
      const size_t count = std::min(kPiece, content.size() - done);
      check(zipWriteInFileInZip(zip_, content.data() + done, unsigned(count)));
      done += count;
    }
    check(zipCloseFileInZip(zip_));
  }
  std::string finish() {
    check(zipClose(std::exchange(zip_, nullptr), nullptr));
    return std::move(bytes_);
  }

 private:
  void check(int status) const {
    if (file_.failed) throw std::bad_alloc();
    if (status != ZIP_OK) throw Error(Code::kInternal, text("minizip: the archive cannot be made (", status, ")"));
  }

  std::string bytes_;
  MemoryFile file_;
  zipFile zip_ = nullptr;
};

}  // namespace

bool is_npz(const void *data, size_t bytes) {
  // An archive without entries starts with its end record.
  return bytes >= 4 && (std::memcmp(data, "PK\3\4", 4) == 0 || std::memcmp(data, "PK\5\6", 4) == 0);
}

NamedArrays parse_npz(const void *data, size_t bytes, const std::string &name) {
  return Archive(data, bytes, name).load();
}

std::string npz_bytes(const NamedArrays &arrays) {
  ArchiveWriter writer;
  std::set<std::string> names;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const std::string name = arrays[i].first.empty() ? text("arr_", i) : arrays[i].first;
    if (!names.insert(name).second) throw Error(Code::kName, text("two arrays are named '", name, "'"), name);
    writer.add(name + ".npy", npy_bytes(arrays[i].second));
  }
  return writer.finish();
}

}  // namespace cohort
