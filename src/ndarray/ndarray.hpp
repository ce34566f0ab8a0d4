// SPDX-License-Identifier: Apache-2.0
// Arrays: views of shared storage, row-major and dense, on one device. Copies of an NDArray object refer to the same
// array.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/context.hpp"
#include "base/dtype.hpp"
#include "base/error.hpp"
#include "base/shape.hpp"
#include "ndarray/storage.hpp"

namespace cohort {

class NDArray {
 public:
  NDArray() = default;  // no array
  // Zero-filled unless `zero` is false. Throws kDevice, kOutOfMemory, kShape (negative or too large).
  static NDArray create(const Shape &shape, Dtype dtype, const Context &context, bool zero = true);
  static NDArray wrap(std::shared_ptr<Memory> memory, const Shape &shape, Dtype dtype);
  // Wraps host memory, which stays valid until `owner` is released. kUnsupported: not a CPU context; kInvalidArgument:
  // a misaligned address.
  static NDArray wrap_host(void *data, size_t bytes, const Shape &shape, Dtype dtype, const Context &context,
                           std::shared_ptr<const void> owner);
  // A view of storage, starting `offset` bytes in.
  NDArray(std::shared_ptr<Storage> storage, size_t offset, Shape shape, Dtype dtype)
      : storage_(std::move(storage)), offset_(offset), shape_(std::move(shape)), dtype_(dtype) {}

  explicit operator bool() const { return storage_ != nullptr; }
  const Shape &shape() const { return shape_; }
  Dtype dtype() const { return dtype_; }
  const Context &context() const { return storage_->context(); }
  int64_t size() const { return shape_.size(); }
  size_t bytes() const { return size_t(size()) * dtype_size(dtype_); }
  size_t capacity_bytes() const { return storage_->bytes() - offset_; }
  const std::shared_ptr<Storage> &storage() const { return storage_; }
  // The address on its device; does not wait.
  void *data() const { return static_cast<char *>(storage_->data()) + offset_; }
  template <typename T>
  T *data_as() const {
    return static_cast<T *>(data());
  }

  // Views. kInvalidArgument / kShape as NDA-03..06 say.
  NDArray slice(int64_t begin, int64_t end) const;  // axis 0
  NDArray at(int64_t index) const;
  NDArray reshape(const Shape &shape) const;  // same number of elements; one -1 is inferred (kUnknown)
  NDArray window(const Shape &shape) const;   // the first elements, at most as many as it has (pools, up-sizing)
  NDArray slice_axis(int axis, int64_t begin, int64_t end) const;  // a copy unless axis is 0; INT64_MAX: to the end

  // The owner of a timeline calls these before its work uses an array (hazards.hpp); reading memory that was not
  // written fails now or when the work starts. They return true if the work waits for another timeline.
  bool begin_read(const std::shared_ptr<Timeline> &by) const {
    return !hazards().begins_read_alone(by.get()) && begin_read_among_others(by);
  }
  bool begin_write(const std::shared_ptr<Timeline> &by) const {
    return !hazards().begins_write_alone(by.get()) && begin_write_among_others(by);
  }
  // For changes in place: read and write. Does not clear failures.
  bool begin_change(const std::shared_ptr<Timeline> &by) const {
    const bool waits = begin_read(by);
    if (hazards().begins_write_alone(by.get())) return waits;
    return hazards().begin_write(range(), by, /* overwrites */ false) != Hazards::Before::kNothing || waits;
  }
  void wait() const { hazards().wait_to_read(range()); }  // before the host reads
  void wait_to_write() const { hazards().wait_to_write(range()); }
  void written() const { hazards().written(range()); }              // by the host
  void check_written() const { hazards().check_written(range()); }  // call in the order of the work
  // Call before work is enqueued on `by`; checks what is known so far.
  void check_known(const Timeline *by = nullptr) const {
    if (hazards().any_failed()) hazards().check_known(range(), by);
  }
  void clear_failure() const { hazards().clear_failure(range()); }
  void fail(const char *message, const Timeline *by = nullptr) const noexcept { hazards().fail(range(), message, by); }
  void revoke(const char *message) const noexcept { hazards().revoke(message); }
  bool failed() const { return hazards().any_failed() && hazards().failed(range()); }
  uint64_t version() const { return hazards().version(); }
  uint64_t own_version() const { return hazards().version(range()); }  // of this range, unaffected by changes around it
  void expose() const { hazards().expose(); }
  void *host_data() const;  // waits, and marks the array as exposed; kUnsupported: not a CPU context
  bool exposed() const { return hazards().exposed(); }
  AddressRange range() const { return AddressRange(data(), bytes()); }
  bool overlaps(const NDArray &other) const { return range().overlaps(other.range()); }
  bool same_memory(const NDArray &other) const { return storage_ == other.storage_ && offset_ == other.offset_; }

  // Requires the same shape (kShape); casts; works between any two contexts (NDA-07, 08). Queued if either is in use.
  void copy_from(const NDArray &source) const;
  // These wait for what they need, and have finished when they return.
  void read(void *to, size_t bytes) const;  // to host memory; bytes must be bytes() (kInvalidArgument)
  void write(const void *from, size_t bytes) const;
  void fill(double value) const;
  // By base/random.hpp; floating types. kInvalidArgument: bounds that are not a finite range, a negative deviation.
  void fill_uniform(double low, double high, uint64_t seed) const;
  void fill_normal(double mean, double deviation, uint64_t seed) const;
  NDArray copy_to(const Context &context) const;  // a new array
  NDArray cast(Dtype dtype) const;                // a new array on the same context
  NDArray on_host() const;                        // this array if the host can read it, otherwise a copy on cpu(0)

 private:
  Hazards &hazards() const { return storage_->hazards(); }
  bool begin_read_among_others(const std::shared_ptr<Timeline> &by) const;
  bool begin_write_among_others(const std::shared_ptr<Timeline> &by) const;

  std::shared_ptr<Storage> storage_;
  size_t offset_ = 0;
  Shape shape_;
  Dtype dtype_ = Dtype::kFloat32;
};

// Adds the array's name to errors about its contents.
template <typename Fn>
auto with_array_name(const char *what, const std::string &name, Fn &&fn) {
  try {
    return fn();
  } catch (const Error &e) {
    throw Error(e.code(), text(what, " '", name, "': ", e.what()), name);
  }
}

// Size of a dense array. Throws kShape (unknown, negative or too large lengths), kDtype.
size_t dense_bytes(const Shape &shape, Dtype dtype);

NDArray concatenate(const std::vector<NDArray> &arrays, int axis);  // NDA-09

// Element-wise conversion in host memory, used by copies. `from` and `to` may overlap only if the types are equal.
void cast_elements(const void *from, Dtype from_dtype, void *to, Dtype to_dtype, int64_t count);
// Copies rows [begin, end) along `axis` of a row-major array `from` of shape `shape` to dense `to`, with cast.
void copy_slice(const void *from, const Shape &shape, Dtype from_dtype, int axis, int64_t begin, int64_t end, void *to,
                Dtype to_dtype);
// The inverse: copies dense `from`, of that slice's shape, to rows [begin, end) of `to`.
void paste_slice(const void *from, Dtype from_dtype, void *to, const Shape &shape, Dtype to_dtype, int axis,
                 int64_t begin, int64_t end);

using NamedArrays = std::vector<std::pair<std::string, NDArray>>;  // ordered; names empty in a list without names

}  // namespace cohort
