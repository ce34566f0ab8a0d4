// SPDX-License-Identifier: Apache-2.0
// Little-endian bytes of saved states, written and read with bounds.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "base/error.hpp"
#include "base/utf8.hpp"

namespace cohort {

template <typename T>
void put(std::string *to, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) to->push_back(char(uint64_t(value) >> (8 * i)));
}

inline void put_real(std::string *to, double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  put(to, bits);
}

inline void put_text(std::string *to, const std::string &words) {
  put(to, uint32_t(words.size()));
  *to += words;
}

// Reads within bounds; kFormat with the offset for anything that does not fit.
class ByteReader {
 public:
  ByteReader(const void *data, size_t bytes, const std::string &source)
      : data_(static_cast<const char *>(data)), bytes_(bytes), source_(source) {}

  template <typename T>
  T number() {
    need(sizeof(T));
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) value |= uint64_t(static_cast<unsigned char>(data_[at_ + i])) << (8 * i);
    at_ += sizeof(T);
    return T(value);
  }
  double real() {
    const auto bits = number<uint64_t>();
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  std::string words(size_t length) {
    need(length);
    std::string result(data_ + at_, length);
    at_ += length;
    return result;
  }
  std::string counted_words() {
    const auto length = number<uint32_t>();
    return words(length);
  }
  const char *here() const { return data_ + at_; }
  size_t left() const { return bytes_ - at_; }
  const std::string &source() const { return source_; }
  [[noreturn]] void fail(const std::string &what) const {
    throw Error(Code::kFormat, text(source_, ": ", plain_line(what), " at byte ", at_, " of ", bytes_), source_);
  }

 private:
  void need(size_t length) const {
    if (length > left()) fail(text("expected ", length, " bytes more"));
  }

  const char *const data_;
  const size_t bytes_;
  const std::string source_;
  size_t at_ = 0;
};

}  // namespace cohort
