// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.hpp"

#include <cstdint>

namespace cohort {

size_t utf8_length(const std::string &source, size_t at) {
  const auto byte = [&](size_t i) { return i < source.size() ? uint8_t(source[i]) : uint8_t(0); };
  const auto follows = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const uint8_t first = byte(at), second = byte(at + 1);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(at + 1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool in_range = (first != 0xe0 || second >= 0xa0) && (first != 0xed || second <= 0x9f);
    return in_range && follows(at + 1) && follows(at + 2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool in_range = (first != 0xf0 || second >= 0x90) && (first != 0xf4 || second <= 0x8f);
    return in_range && follows(at + 1) && follows(at + 2) && follows(at + 3) ? 4 : 0;
  }
  return 0;
}

std::string plain_line(const std::string &source) {
  static const char kHex[] = "0123456789abcdef";
  std::string line;
  line.reserve(source.size());
  for (size_t i = 0; i < source.size();) {
    const size_t length = utf8_length(source, i);
    const uint8_t first = uint8_t(source[i]);
    if (length == 0 || first < 0x20 || first == 0x7f) {
      line += {'\\', 'x', kHex[first >> 4], kHex[first & 15]};
      ++i;
    } else {
      line.append(source, i, length);
      i += length;
    }
  }
  return line;
}

}  // namespace cohort
