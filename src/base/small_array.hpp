// SPDX-License-Identifier: Apache-2.0
// A list of fixed length. Up to kInside elements are stored inline and need no allocation.
#pragma once

#include <cstddef>
#include <memory>

namespace cohort {

template <typename T, size_t kInside>
class SmallArray {
 public:
  explicit SmallArray(size_t size) : size_(size) {
    if (size <= kInside) return;
    more_ = std::make_unique<T[]>(size);
    data_ = more_.get();
  }
  SmallArray(const SmallArray &) = delete;
  SmallArray &operator=(const SmallArray &) = delete;

  size_t size() const { return size_; }
  T *data() { return data_; }
  const T *data() const { return data_; }
  T &operator[](size_t i) { return data_[i]; }
  const T &operator[](size_t i) const { return data_[i]; }
  T *begin() { return data_; }
  T *end() { return data_ + size_; }
  const T *begin() const { return data_; }
  const T *end() const { return data_ + size_; }

 private:
  const size_t size_;
  T inside_[kInside] = {};
  std::unique_ptr<T[]> more_;
  T *data_ = inside_;
};

}  // namespace cohort
