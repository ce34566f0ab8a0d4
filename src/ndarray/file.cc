// SPDX-License-Identifier: Apache-2.0
#include "ndarray/file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/error.hpp"
#include "ndarray/params.hpp"

namespace cohort {
namespace {

constexpr size_t kBufferBytes = 64 << 10;
constexpr size_t kMostAtOnce = size_t(1) << 30;  // the kernel transfers at most 2 GiB per call

[[noreturn]] void fail_with_errno(const std::string &path, const char *what) {
  const int error = errno;
  throw Error(Code::kIo, text("'", path, "' ", what, ": ", std::strerror(error)), path);
}

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

// Best effort: after a crash of the machine the name may still refer to the old file.
void flush_folder_of(const std::string &path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const Descriptor descriptor(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.get() >= 0) fsync(descriptor.get());
}

// In the target's folder: a rename works only within a file system.
std::string temporary_name(const std::string &target) {
  static std::atomic<uint64_t> counter{0};
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const size_t slash = target.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : target.substr(0, slash + 1);
  return text(folder, ".cohort-", getpid(), "-", now.tv_nsec, "-", counter.fetch_add(1), ".tmp");
}

}  // namespace

// ---- reading ------------------------------------------------------------------------------------------------------

InputFile::InputFile(const std::string &path) : path_(path) {
  Descriptor descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status;
  if (descriptor.get() < 0 || fstat(descriptor.get(), &status) != 0) fail_with_errno(path, "cannot be opened");
  if (S_ISDIR(status.st_mode)) {
    errno = EISDIR;
    fail_with_errno(path, "cannot be read");
  }
  if (S_ISREG(status.st_mode)) {
    size_ = uint64_t(status.st_size);
    descriptor_ = descriptor.release();
    return;
  }
  if (S_ISCHR(status.st_mode)) throw Error(Code::kIo, text("'", path, "': expected a file or a pipe"), path);
  std::string piece(kBufferBytes, 0);
  for (;;) {
    const ssize_t got = ::read(descriptor.get(), &piece[0], piece.size());
    if (got < 0 && errno != EINTR) fail_with_errno(path, "cannot be read");
    if (got == 0) break;
    if (got > 0) buffer_.append(piece, 0, size_t(got));
  }
  size_ = buffer_.size();
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void InputFile::read_through(uint64_t offset, char *to, size_t bytes) const {
  while (bytes > 0) {
    const ssize_t got = pread(descriptor_, to, std::min(bytes, kMostAtOnce), off_t(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_with_errno(path_, "cannot be read");
    if (got == 0) throw Error(Code::kIo, text("'", path_, "' became shorter while it was read"), path_);
    to += got;
    offset += uint64_t(got);
    bytes -= size_t(got);
  }
}

void InputFile::read(uint64_t offset, void *to, size_t bytes) {
  const bool buffered = offset >= buffer_begin_ && offset - buffer_begin_ <= buffer_.size() &&
                        bytes <= buffer_.size() - (offset - buffer_begin_);
  if (!buffered) {
    if (bytes >= kBufferBytes) return read_through(offset, static_cast<char *>(to), bytes);
    std::string next(size_t(std::min<uint64_t>(kBufferBytes, size_ - offset)), 0);
    read_through(offset, &next[0], next.size());
    buffer_.swap(next);
    buffer_begin_ = offset;
  }
  if (bytes > 0) std::memcpy(to, &buffer_[size_t(offset - buffer_begin_)], bytes);
}

std::string InputFile::read_whole() {
  std::string content(size_t(size_), 0);
  read(0, &content[0], content.size());
  return content;
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::string &path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) fail_with_errno(path, "cannot be opened");
  if (!S_ISREG(status.st_mode)) return nullptr;  // not opened: the content of a pipe goes to the first reader
  const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (descriptor.get() < 0 || fstat(descriptor.get(), &status) != 0) fail_with_errno(path, "cannot be opened");
  if (!S_ISREG(status.st_mode) || status.st_size == 0) return nullptr;
  const size_t bytes = size_t(status.st_size);
  void *const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, descriptor.get(), 0);
  if (data == MAP_FAILED) return nullptr;
  try {
    return std::make_shared<const MappedFile>(data, bytes);
  } catch (...) {
    munmap(data, bytes);
    throw;
  }
}

MappedFile::~MappedFile() { munmap(data_, bytes_); }

// ---- writing ------------------------------------------------------------------------------------------------------

OutputFile::OutputFile(const std::string &path) : path_(path), target_(path) {
  char whole[PATH_MAX];
  struct stat status;
  const bool exists = stat(path.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) {
    descriptor_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail("cannot be opened for writing");
    return;
  }
  if (exists && realpath(path.c_str(), whole)) target_ = whole;
  for (int attempt = 0; descriptor_ < 0; ++attempt) {
    temporary_ = temporary_name(target_);
    descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && (errno != EEXIST || attempt == 100)) {
      temporary_.clear();
      fail("cannot be written");
    }
  }
  if (exists) (void)!fchmod(descriptor_, status.st_mode & 0777);  // if refused, the usual permissions stay
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void OutputFile::fail(const char *what) const { fail_with_errno(path_, what); }

void OutputFile::write_through(const char *data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t put = ::write(descriptor_, data, std::min(bytes, kMostAtOnce));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail("cannot be written");
    data += put;
    bytes -= size_t(put);
  }
}

void OutputFile::flush() {
  write_through(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void OutputFile::append(const void *data, size_t bytes) {
  if (buffer_.size() + bytes > kBufferBytes) flush();
  if (bytes >= kBufferBytes) {
    write_through(static_cast<const char *>(data), bytes);
  } else {
    buffer_.append(static_cast<const char *>(data), bytes);
  }
}

void OutputFile::commit() {
  flush();
  if (!temporary_.empty() && fsync(descriptor_) != 0) fail("cannot be written");
  const int descriptor = std::exchange(descriptor_, -1);
  if (close(descriptor) != 0 && errno != EINTR) fail("cannot be written");
  if (temporary_.empty()) return;
  if (rename(temporary_.c_str(), target_.c_str()) != 0) fail("cannot be replaced");
  temporary_.clear();
  flush_folder_of(target_);
}

void write_file(const std::string &path, const void *data, size_t bytes) {
  OutputFile file(path);
  file.append(data, bytes);
  file.commit();
}

std::string read_file(const std::string &path) { return InputFile(path).read_whole(); }

}  // namespace cohort
