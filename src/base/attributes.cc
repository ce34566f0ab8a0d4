// SPDX-License-Identifier: Apache-2.0
#include "base/attributes.hpp"

#include <charconv>
#include <cmath>
#include <string_view>

#include "base/error.hpp"
#include "base/setting_reader.hpp"
#include "base/text_list.hpp"

namespace cohort {
namespace {

std::string trimmed(const std::string &source) {
  const size_t first = source.find_first_not_of(" \t\n\r");
  if (first == std::string::npos) return "";
  return source.substr(first, source.find_last_not_of(" \t\n\r") - first + 1);
}

[[noreturn]] void refuse(const std::string &what, const char *expected, const std::string &source) {
  throw Error(Code::kInvalidArgument, text("attribute '", what, "': expected ", expected, ", found '", source, "'"),
              what);
}

// Accepts any case: Python writes "True", C "true", R "TRUE".
std::optional<bool> truth(const std::string &word) {
  const std::string lower = lower_case(word);
  if (lower == "true") return true;
  if (lower == "false") return false;
  return std::nullopt;
}

// Suffixes of a number that MXNet accepts: an exponent without digits, which counts as 0, and C's float suffix. They
// must follow a digit or a point, so that "inf" is not read as a number with a suffix.
bool may_follow_number(std::string_view number, std::string_view rest) {
  if (number.empty() || (number.back() != '.' && !(number.back() >= '0' && number.back() <= '9'))) return false;
  const auto skip = [&](std::string_view any_of) {
    const bool there = !rest.empty() && any_of.find(rest.front()) != std::string_view::npos;
    if (there) rest.remove_prefix(1);
    return there;
  };
  if (number.find_first_of("eE") == std::string_view::npos && skip("eE")) skip("+-");
  skip("fF");
  return rest.empty();
}

}  // namespace

// Numbers are read with from_chars, which ignores the host's locale.
int64_t parse_int(const std::string &what, const std::string &source) {
  std::string digits = trimmed(source);
  if (digits.size() > 1 && (digits.back() == 'L' || digits.back() == 'l')) digits.pop_back();
  const char *first = digits.data(), *last = first + digits.size();
  if (last - first > 1 && *first == '+' && first[1] != '-') ++first;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(first, last, value);
  if (error == std::errc() && end == last) return value;
  if (const auto word = truth(digits)) return *word ? 1 : 0;
  double real = 0;  // files written from Python sometimes hold "3.0"
  const auto [real_end, real_error] = std::from_chars(first, last, real);
  if (real_error == std::errc() && real_end == last && real == std::floor(real) && std::fabs(real) < 9e15) {
    return int64_t(real);
  }
  refuse(what, "an integer", source);
}

double parse_float(const std::string &what, const std::string &source) {
  const std::string digits = trimmed(source);
  const char *first = digits.data(), *const last = first + digits.size();
  if (last - first > 1 && *first == '+' && first[1] != '-') ++first;
  double value = 0;
  const auto [end, error] = std::from_chars(first, last, value);
  const bool is_whole = end == last || may_follow_number({first, size_t(end - first)}, {end, size_t(last - end)});
  if (error == std::errc() && is_whole && first != last) return value;
  if (error == std::errc::result_out_of_range && is_whole) {  // 1e-400 is 0, 1e400 is infinite
    const bool is_small = digits.find("e-") != std::string::npos || digits.find("E-") != std::string::npos;
    return std::copysign(is_small ? 0.0 : HUGE_VAL, *first == '-' ? -1.0 : 1.0);
  }
  if (const auto word = truth(digits)) return *word ? 1 : 0;
  refuse(what, "a number", source);
}

bool parse_bool(const std::string &what, const std::string &source) {
  const std::string word = trimmed(source);
  if (word == "1" || word == "0") return word == "1";
  if (const auto value = truth(word)) return *value;
  refuse(what, "True or False", source);
}

std::vector<std::string> parse_list(const std::string &what, const std::string &source) {
  std::string body = trimmed(source);
  if (!body.empty() &&
      (body.front() == '(' || body.front() == '[')) {  // as in MXNet, the closing bracket may be of either kind
    if (body.size() < 2 || (body.back() != ')' && body.back() != ']')) refuse(what, "a tuple", source);
    body = body.substr(1, body.size() - 2);
  }
  std::vector<std::string> elements;
  size_t begin = 0;
  while (begin <= body.size()) {
    const size_t comma = body.find(',', begin);
    const std::string element = trimmed(body.substr(begin, comma == std::string::npos ? comma : comma - begin));
    const bool last = comma == std::string::npos;
    if (!element.empty()) {
      elements.push_back(element);
    } else if (!last) {
      refuse(what, "a tuple", source);
    }
    if (last) break;
    begin = comma + 1;
  }
  return elements;
}

std::vector<std::optional<int64_t>> parse_tuple(const std::string &what, const std::string &source) {
  std::vector<std::optional<int64_t>> elements;
  for (const std::string &element : parse_list(what, source)) {
    if (element == "None") {
      elements.emplace_back(std::nullopt);
    } else {
      elements.emplace_back(parse_int(what, element));
    }
  }
  return elements;
}

bool is_none(const std::string &source) { return source == "None" || source == "none" || source.empty(); }

}  // namespace cohort
