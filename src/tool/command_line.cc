// SPDX-License-Identifier: Apache-2.0
#include "tool/command_line.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace cohort::tool {
namespace {

const Option *find(const Command &command, const std::string &name) {
  for (const Option &option : command.options) {
    if (name == option.name || (name == "-o" && !std::strcmp(option.name, "--output"))) return &option;
  }
  return nullptr;
}

bool is_pair(const std::string &word) { return word[0] != '-' && word.find('=') != std::string::npos; }

}  // namespace

Arguments::Arguments(const Command &command, const std::vector<std::string> &words) {
  std::vector<std::string> positional;
  bool only_positional = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string &word = words[i];
    if (only_positional || word.size() < 2 || word[0] != '-') {
      positional.push_back(word);
      continue;
    }
    if (word == "--") {
      only_positional = true;
      continue;
    }
    const size_t equal = word.compare(0, 2, "--") == 0 ? word.find('=') : std::string::npos;
    const std::string name = word.substr(0, equal);
    const Option *option = find(command, name);
    if (!option) throw UsageError("unknown option " + name);
    std::vector<std::string> &values = given_[option->name];
    if (!*option->value) {
      if (equal != std::string::npos) throw UsageError(name + " takes no value");
      values.emplace_back();
    } else if (equal != std::string::npos) {
      values.push_back(word.substr(equal + 1));
    } else {
      if (i + 1 == words.size()) throw UsageError(name + " needs a value: " + option->value);
      values.push_back(words[++i]);
      while (option->times == Option::kPairs && i + 1 < words.size() && !words[i + 1].empty() &&
             is_pair(words[i + 1])) {
        values.push_back(words[++i]);
      }
    }
    if (option->times == Option::kOnce && values.size() > 1) {
      throw UsageError(name + " is given twice");
    }
  }
  if (positional.empty()) throw UsageError(std::string(command.positional) + " is missing");
  if (positional.size() > 1)
    throw UsageError("expected one " + std::string(command.positional) + ", found also '" + positional[1] + "'");
  file_ = positional[0];
}

std::string Arguments::one(const std::string &option, const std::string &otherwise) const {
  const auto found = given_.find(option);
  return found == given_.end() ? otherwise : found->second.back();
}

std::vector<std::string> Arguments::all(const std::string &option) const {
  const auto found = given_.find(option);
  return found == given_.end() ? std::vector<std::string>() : found->second;
}

std::vector<std::pair<std::string, std::string>> Arguments::pairs(const std::string &option) const {
  std::vector<std::pair<std::string, std::string>> result;
  for (const std::string &word : all(option)) {
    const size_t equal = word.find('=');
    if (equal == 0 || equal == std::string::npos) {
      throw UsageError(option + ": expected NAME=VALUE, found '" + word + "'");
    }
    const std::string name = word.substr(0, equal);
    for (const auto &pair : result) {
      if (pair.first == name) throw UsageError(option + ": '" + name + "' is given twice");
    }
    result.emplace_back(name, word.substr(equal + 1));
  }
  return result;
}

int64_t Arguments::number(const std::string &option, int64_t otherwise, int64_t low, int64_t high) const {
  return has(option) ? parse_number(one(option), low, high, option) : otherwise;
}

std::string help(const Command &command) {
  std::string text = "usage: cohort " + std::string(command.name) + " " + command.positional + " [OPTION...]\n\n" +
                     command.summary + "\n" + command.details + "\n";
  size_t width = 0;
  for (const Option &option : command.options) {
    width = std::max(width, std::strlen(option.name) + std::strlen(option.value) + 1);
  }
  for (const Option &option : command.options) {
    std::string left = std::string(option.name) + (*option.value ? " " : "") + option.value;
    left.resize(width, ' ');
    std::string line = "  " + left + "  ";
    for (const char *c = option.help; *c; ++c) {
      line += *c;
      if (*c == '\n') line += std::string(width + 4, ' ');
    }
    text += line + "\n";
  }
  return text;
}

std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0;;) {
    const size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

int64_t parse_number(const std::string &text, int64_t low, int64_t high, const std::string &what) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    throw UsageError(what + ": expected a whole number from " + std::to_string(low) + " to " + std::to_string(high) +
                     ", found '" + text + "'");
  }
  return value;
}

}  // namespace cohort::tool
