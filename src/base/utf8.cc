// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.hpp"

#include <algorithm>
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

namespace {

// Control characters, including those beyond ASCII, and line and paragraph separators.
bool breaks_a_line(const std::string &character) {
  const uint8_t first = uint8_t(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return (first == 0xc2 && uint8_t(character[1]) < 0xa0) || character == "\u2028" || character == "\u2029";
}

}  // namespace

std::string plain_line(const std::string &source) {
  static const char kHex[] = "0123456789abcdef";
  std::string line;
  line.reserve(source.size());
  for (size_t i = 0; i < source.size();) {
    const size_t length = utf8_length(source, i), end = i + (length ? length : 1);
    const std::string character = source.substr(i, length);
    if (length && !breaks_a_line(character)) {
      line += character;
      i = end;
    }
    for (; i < end; ++i) line += {'\\', 'x', kHex[uint8_t(source[i]) >> 4], kHex[uint8_t(source[i]) & 15]};
  }
  return line;
}

namespace {

constexpr size_t kLongestQuotation = 4096, kLongestMessage = 256 << 10;  // bytes

// Appends source[begin, end), without its middle if it has more than `longest` bytes.
void append_ends(const std::string &source, size_t begin, size_t end, size_t longest, std::string *out) {
  const auto is_inside = [&](size_t i) { return i > begin && i < end && (uint8_t(source[i]) & 0xc0) == 0x80; };
  if (end - begin <= longest) {
    out->append(source, begin, end - begin);
    return;
  }
  size_t first_end = begin + longest / 4 * 3, last_begin = end - longest / 4;
  while (is_inside(first_end)) --first_end;
  while (is_inside(last_begin)) ++last_begin;
  out->append(source, begin, first_end - begin) += "[...]";
  out->append(source, last_begin, end - last_begin);
}

}  // namespace

std::string message_line(const std::string &source) {
  if (source.size() <= kLongestQuotation) return plain_line(source);
  std::string brief, line;
  for (size_t begin = 0; begin <= source.size();) {  // from quotation mark to quotation mark
    const size_t end = std::min(source.find('\'', begin), source.size());
    append_ends(source, begin, end, kLongestQuotation, &brief);
    if (end < source.size()) brief += '\'';
    begin = end + 1;
  }
  append_ends(brief, 0, brief.size(), kLongestMessage, &line);
  return plain_line(line);
}

}  // namespace cohort
