// SPDX-License-Identifier: Apache-2.0
// Arrays in memory that processes share, by the descriptor of a file without a name: how frontends hand arrays from
// loading processes to the one that trains. The receiver maps the memory; the sender keeps it as long as its array's
// handle lives.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // memfd_create
#endif
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "mxnet/c_api.h"
#include "ndarray_handle.hpp"

namespace cohort_mxnet {
namespace {

[[noreturn]] void fail_errno(const char *what) { fail(std::string(what) + ": " + std::strerror(errno)); }

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// The descriptors of mappings by address. Never destroyed: arrays are freed while the process ends.
struct Mappings {
  std::mutex mutex;  // guards descriptors
  std::map<const void *, int> descriptors;

  static Mappings &instance() {
    static Mappings &mappings = *std::make_unique<Mappings>().release();
    return mappings;
  }
};

size_t bytes_of(const cohort::Shape &shape, cohort_dtype dtype) {
  uint64_t bytes = cohort::query<size_t>(cohort_dtype_bytes, dtype);
  for (const int64_t length : shape) {
    if (length < 0) fail("expected lengths of 0 or more, found " + std::to_string(length));
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(length), &bytes) || bytes > PTRDIFF_MAX)
      fail("an array of this shape does not fit into memory");
  }
  return bytes;
}

// An array of the memory behind a descriptor. If this succeeds, the array owns the descriptor.
cohort::NDArray map_array(int fd, const cohort::Shape &shape, cohort_dtype dtype) {
  const size_t bytes = bytes_of(shape, dtype), mapped = std::max<size_t>(bytes, 1);
  struct stat status;
  if (fstat(fd, &status) != 0) fail_errno("shared_id is not a descriptor of shared memory");
  if (static_cast<uint64_t>(status.st_size) < mapped)
    fail("shared memory: expected " + std::to_string(mapped) + " bytes, found " + std::to_string(status.st_size));
  void *const data = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) fail_errno("shared memory cannot be mapped");
  Mappings &mappings = Mappings::instance();
  try {
    {
      const std::lock_guard<std::mutex> lock(mappings.mutex);
      mappings.descriptors[data] = fd;
    }
    return cohort::NDArray::wrap(data, shape, dtype, cohort::Context(cohort_context{COHORT_DEVICE_CPU_SHARED, 0}),
                                 [data, mapped, fd] {
                                   Mappings &all = Mappings::instance();
                                   {
                                     const std::lock_guard<std::mutex> lock(all.mutex);
                                     all.descriptors.erase(data);
                                   }
                                   munmap(data, mapped);
                                   close(fd);
                                 });
  } catch (...) {
    {
      const std::lock_guard<std::mutex> lock(mappings.mutex);
      mappings.descriptors.erase(data);
    }
    munmap(data, mapped);
    throw;
  }
}

// The descriptor of the memory that an array lies at the beginning of; -1: it is not shared.
int descriptor_of(const cohort::NDArray &array) {
  if (array.context().device_type == COHORT_DEVICE_GPU) return -1;
  Mappings &mappings = Mappings::instance();
  const void *const data = array.data();
  const std::lock_guard<std::mutex> lock(mappings.mutex);
  const auto found = mappings.descriptors.find(data);
  return found == mappings.descriptors.end() ? -1 : found->second;
}

cohort::NDArray shared_copy_of(const cohort::NDArray &array) {
  const cohort::Shape shape = array.shape();
  const size_t bytes = std::max<size_t>(array.bytes(), 1);
  Descriptor fd(memfd_create("array", MFD_CLOEXEC));
  if (fd.get() < 0 || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) fail_errno("shared memory cannot be made");
  cohort::NDArray copy = map_array(fd.get(), shape, array.dtype());
  fd.release();
  array.copy_to(copy);
  copy.wait();
  return copy;
}

template <typename Length>
int create_from(int shared_pid, int shared_id, const Length *lengths, int64_t num_axes, int dtype, NDArrayHandle *out) {
  return guarded([&] {
    require(out, "out");
    if (shared_pid != -1)
      fail("shared_pid: expected -1, and a descriptor as shared_id, found " + std::to_string(shared_pid));
    if (num_axes < 0 || num_axes > COHORT_MAX_AXES)
      fail("expected 0 to " + std::to_string(COHORT_MAX_AXES) + " axes, found " + std::to_string(num_axes));
    if (num_axes != 0) require(lengths, "shape");
    *out = new_ndarray(map_array(shared_id, cohort::Shape(lengths, lengths + num_axes), dtype));
  });
}

}  // namespace
}  // namespace cohort_mxnet

using namespace cohort_mxnet;

extern "C" {

int MXNDArrayGetSharedMemHandle(NDArrayHandle handle, int *shared_pid, int *shared_id) {
  return guarded([&] {
    require(shared_pid, "shared_pid"), require(shared_id, "shared_id");
    const std::shared_ptr<NDArray> array = ndarray(handle);
    int fd = descriptor_of(array->array());
    if (fd < 0) {
      array->shared_copy = shared_copy_of(array->array());
      fd = descriptor_of(array->shared_copy);
    }
    *shared_pid = -1;
    *shared_id = fd;
  });
}

int MXNDArrayCreateFromSharedMem(int shared_pid, int shared_id, const uint32_t *shape, uint32_t ndim, int dtype,
                                 NDArrayHandle *out) {
  return create_from(shared_pid, shared_id, shape, ndim, dtype, out);
}

int MXNDArrayCreateFromSharedMemEx(int shared_pid, int shared_id, const int *shape, int ndim, int dtype,
                                   NDArrayHandle *out) {
  return create_from(shared_pid, shared_id, shape, ndim, dtype, out);
}

}  // extern "C"
