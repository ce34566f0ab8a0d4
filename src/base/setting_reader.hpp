// SPDX-License-Identifier: Apache-2.0
// Reads an object's settings, given as text by name. Each setting is read once with its default; finish() reports
// settings that were never read. Used by optimizer and metric.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/attributes.hpp"
#include "base/error.hpp"

namespace cohort {

inline std::string lower_case(std::string word) {
  for (char &c : word) c = c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;  // tolower() follows the host's locale
  return word;
}

class SettingReader {
 public:
  // `what` describes the object in messages: "optimizer 'sgd'".
  SettingReader(std::string what, AttrMap settings) : what_(std::move(what)), settings_(std::move(settings)) {}

  std::optional<std::string> text_of(const std::string &key) {
    known_.push_back(key);
    const auto found = settings_.find(key);
    if (found == settings_.end()) return std::nullopt;
    std::string value = found->second;
    settings_.erase(found);
    return value;
  }
  double number(const std::string &key, double value) {
    const auto found = text_of(key);
    return found ? parse_float(key, *found) : value;
  }
  std::optional<double> number_or_none(const std::string &key) {
    const auto found = text_of(key);
    if (!found || is_none(*found)) return std::nullopt;
    return parse_float(key, *found);
  }
  int64_t integer(const std::string &key, int64_t value) {
    const auto found = text_of(key);
    return found ? parse_int(key, *found) : value;
  }
  bool boolean(const std::string &key, bool value) {
    const auto found = text_of(key);
    return found ? parse_bool(key, *found) : value;
  }
  // One of `words`, of which the first is the default.
  std::string word(const std::string &key, const std::vector<std::string> &words) {
    const auto found = text_of(key);
    if (!found) return words.front();
    if (std::find(words.begin(), words.end(), *found) != words.end()) return *found;
    fail(key, "one of " + join(words), *found);
  }
  // Call after all settings have been read: throws kName if an unknown one remains.
  void finish() const {
    if (settings_.empty()) return;
    const std::string &key = settings_.begin()->first;
    throw Error(Code::kName, text(what_, " has no setting '", key, "'; it has ", join(known_)), key);
  }
  [[noreturn]] void fail(const std::string &key, const std::string &expected, const std::string &found) const {
    throw Error(Code::kInvalidArgument, text(where(key), ": expected ", expected, ", found '", found, "'"), key);
  }

 private:
  std::string where(const std::string &key) const { return what_ + ", setting '" + key + "'"; }
  static std::string join(const std::vector<std::string> &words) {
    std::string all;
    for (const std::string &word : words) all += (all.empty() ? "'" : ", '") + word + "'";
    return all.empty() ? "none" : all;
  }

  const std::string what_;
  AttrMap settings_;
  std::vector<std::string> known_;
};

}  // namespace cohort
