// SPDX-License-Identifier: Apache-2.0
// JSON to values and back: the only file that includes the JSON library.
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "value.hpp"

namespace golden {
namespace {

using Json = nlohmann::ordered_json;

// Builds a value from the events of the parser, without a tree of the JSON library in between.
class ValueBuilder : public nlohmann::json_sax<Json> {
 public:
  Value take() { return std::move(root_); }
  const std::string &error() const { return error_; }

  bool null() override { return add(Value()); }
  bool boolean(bool flag) override { return add(Value::boolean(flag)); }
  bool number_integer(int64_t number) override { return add(Value::integer(number)); }
  bool number_unsigned(uint64_t number) override { return add(Value::integer(static_cast<int64_t>(number))); }
  bool number_float(double number, const std::string &) override { return add(Value::real(number)); }
  bool string(std::string &text) override { return add(Value::text(std::move(text))); }
  bool binary(binary_t &) override { return false; }  // not in JSON text
  bool start_object(size_t) override { return open(Value::object()); }
  bool start_array(size_t) override { return open(Value::list()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string &text) override {
    open_.back().key = std::move(text);
    return true;
  }
  bool parse_error(size_t, const std::string &, const Json::exception &error) override {
    error_ = error.what();
    return false;
  }

 private:
  struct OpenValue {
    Value value;      // a list or an object
    std::string key;  // of an object's next member
  };

  bool add(Value value) {
    if (open_.empty())
      root_ = std::move(value);
    else if (open_.back().value.is_list())
      open_.back().value.add(std::move(value));
    else
      open_.back().value.set(open_.back().key, std::move(value));
    return true;
  }

  bool open(Value value) {
    open_.push_back({std::move(value), ""});
    return true;
  }

  bool close() {
    Value value = std::move(open_.back().value);
    open_.pop_back();
    return add(std::move(value));
  }

  Value root_;
  std::vector<OpenValue> open_;  // the containers around the next value, outermost first
  std::string error_;
};

void write_json(const Value &value, std::string &text) {
  switch (value.kind()) {
    case Value::Kind::kNull:
      text += "null";
      return;
    case Value::Kind::kBool:
      text += value.as_bool() ? "true" : "false";
      return;
    case Value::Kind::kInteger:
      text += std::to_string(value.as_integer());
      return;
    case Value::Kind::kReal:
      text += Json(value.as_real()).dump();
      return;
    case Value::Kind::kText:
      text += Json(value.as_text()).dump();
      return;
    case Value::Kind::kArray:
      throw BadCase(value.describe() + " has no form in JSON");
    case Value::Kind::kList:
    case Value::Kind::kObject:
      break;
  }
  text += value.is_list() ? '[' : '{';
  for (size_t i = 0; i < value.items().size(); ++i) {
    if (i) text += ',';
    if (value.is_object()) text += Json(value.keys()[i]).dump() + ':';
    write_json(value.items()[i], text);
  }
  text += value.is_list() ? ']' : '}';
}

}  // namespace

Value parse_json(const std::string &text, const std::string &source) {
  ValueBuilder builder;
  if (!Json::sax_parse(text, &builder)) throw BadCase(source + ": " + builder.error());
  return builder.take();
}

Value read_json(const std::string &path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw BadCase("cannot read " + path);
  std::string text(static_cast<size_t>(file.tellg()), '\0');
  file.seekg(0);
  file.read(&text[0], static_cast<std::streamsize>(text.size()));
  if (!file) throw BadCase("cannot read " + path);
  return parse_json(text, path);
}

std::string to_json(const Value &value) {
  std::string text;
  write_json(value, text);
  return text;
}

}  // namespace golden
