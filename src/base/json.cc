// SPDX-License-Identifier: Apache-2.0
#include "base/json.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/utf8.hpp"

namespace cohort {
namespace {

using NlohmannJson = nlohmann::json;

// The text with control characters inside strings escaped, as the parser wants them: MXNet writes all but \n, \r and \t
// bare. Bare line ends stay, which MXNet does not read either, and so does a zero byte.
struct EscapedControls {
  static constexpr size_t kAddedBytes = 5;  // per control character

  explicit EscapedControls(const std::string &original) : text(original) {
    const auto is_bare = [](char c) { return uint8_t(c) < 0x20 && c != '\n' && c != '\r' && c != '\0'; };
    bool in_string = false, after_backslash = false;
    size_t copied = 0;
    std::string out;
    for (size_t i = 0; i < original.size(); ++i) {
      const char c = original[i];
      if (!in_string) {
        in_string = c == '"';
      } else if (after_backslash) {
        after_backslash = false;
      } else if (c == '"') {
        in_string = false;
      } else if (c == '\\') {
        after_backslash = true;
      } else if (is_bare(c)) {
        static const char kHex[] = "0123456789abcdef";
        out.append(original, copied, i - copied).append("\\u00") += kHex[uint8_t(c) >> 4];
        out += kHex[uint8_t(c) & 15];
        positions.push_back(out.size());
        copied = i + 1;
      }
    }
    if (!positions.empty()) text = out.append(original, copied, std::string::npos);
  }

  std::string text;
  std::vector<size_t> positions;  // in `text`, behind each escaped character
};

// Builds the tree from the parser's callbacks.
class JsonTreeBuilder final : public nlohmann::json_sax<NlohmannJson> {
 public:
  // `escaped`: where EscapedControls escaped a byte.
  JsonTreeBuilder(const std::string &source, int most_depth, const std::vector<size_t> &escaped)
      : source_(source), most_depth_(most_depth), escaped_(escaped) {}

  bool null() override { return add(Json()); }
  bool boolean(bool value) override { return add(Json::Kind::kBoolean, value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return add(Json::Kind::kInteger, std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value <= INT64_MAX) return number_integer(int64_t(value));
    return add(Json::Kind::kNumber, std::to_string(value));
  }
  bool number_float(number_float_t, const string_t &digits) override { return add(Json::Kind::kNumber, digits); }
  bool string(string_t &value) override {
    refuse_zero(value);
    return add(Json::Kind::kString, std::move(value));
  }
  bool binary(binary_t &) override { return false; }  // does not occur in JSON text
  bool start_array(size_t) override { return enter(Json::Kind::kArray); }
  bool end_array() override { return leave(); }
  bool start_object(size_t) override { return enter(Json::Kind::kObject); }
  bool end_object() override { return leave(); }
  bool key(string_t &name) override {
    refuse_zero(name);
    if (!open_.back().keys.insert(name).second) {
      throw Error(Code::kFormat, cohort::text(source_, ": key '", name, "' comes twice in one object"), source_);
    }
    return add(Json::Kind::kString, std::move(name));
  }
  bool parse_error(size_t position, const std::string &, const NlohmannJson::exception &) override {
    const auto before = std::lower_bound(escaped_.begin(), escaped_.end(), position);
    position -= size_t(before - escaped_.begin()) * EscapedControls::kAddedBytes;
    throw Error(Code::kFormat, cohort::text(source_, ": expected JSON, found a syntax error at byte ", position),
                source_);
  }

  Json take() { return std::move(root_); }

 private:
  struct Open {
    Json value;
    std::set<std::string> keys;
  };

  // In C the text would end there, and texts that differ behind it would be equal.
  void refuse_zero(const std::string &value) const {
    if (value.find('\0') == value.npos) return;
    throw Error(Code::kFormat,
                cohort::text(source_, ": expected text without zero bytes, found '", plain_line(value), "'"), source_);
  }
  bool add(Json value) {
    (open_.empty() ? root_ : open_.back().value.elements.emplace_back()) = std::move(value);
    return true;
  }
  bool add(Json::Kind kind, std::string words) {
    Json value;
    value.kind = kind;
    value.text = std::move(words);
    return add(std::move(value));
  }
  bool enter(Json::Kind kind) {
    if (int(open_.size()) == most_depth_) {
      throw Error(Code::kFormat,
                  cohort::text(source_, ": expected at most ", most_depth_, " levels of nesting, found more"), source_);
    }
    open_.emplace_back();
    open_.back().value.kind = kind;
    return true;
  }
  bool leave() {
    constexpr size_t kFew = 16;  // a vector has room for almost twice as many
    Json value = std::move(open_.back().value);
    open_.pop_back();
    if (value.elements.size() <= kFew) value.elements.shrink_to_fit();
    return add(std::move(value));
  }

  const std::string &source_;
  const int most_depth_;
  const std::vector<size_t> &escaped_;
  Json root_;
  std::vector<Open> open_;  // from the root inward
};

}  // namespace

int64_t Json::integer() const {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

const Json *Json::find(const std::string &wanted) const {
  if (!is(Kind::kObject)) return nullptr;
  for (size_t i = 0; i < num_keys(); ++i)
    if (key(i) == wanted) return &value(i);
  return nullptr;
}

Json parse_json(const std::string &text, const std::string &source, int most_depth) {
  const EscapedControls escaped(text);
  JsonTreeBuilder builder(source, most_depth, escaped.positions);
  NlohmannJson::sax_parse(escaped.text.begin(), escaped.text.end(), &builder);
  return builder.take();
}

}  // namespace cohort
