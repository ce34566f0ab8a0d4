// SPDX-License-Identifier: Apache-2.0
// JSON to values and back: the only file that includes the JSON library.
#include <fstream>
#include <nlohmann/json.hpp>

#include "value.hpp"

namespace golden {
namespace {

using Json = nlohmann::ordered_json;

Value to_value(const Json &json) {
  switch (json.type()) {
    case Json::value_t::boolean:
      return Value::boolean(json.get<bool>());
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return Value::integer(json.get<int64_t>());
    case Json::value_t::number_float:
      return Value::real(json.get<double>());
    case Json::value_t::string:
      return Value::text(json.get<std::string>());
    case Json::value_t::array: {
      Value list = Value::list();
      for (const Json &item : json) list.add(to_value(item));
      return list;
    }
    case Json::value_t::object: {
      Value object = Value::object();
      for (const auto &item : json.items()) object.set(item.key(), to_value(item.value()));
      return object;
    }
    default:
      return Value();
  }
}

Json from_value(const Value &value) {
  switch (value.kind()) {
    case Value::Kind::kNull:
      return nullptr;
    case Value::Kind::kBool:
      return value.as_bool();
    case Value::Kind::kInteger:
      return value.as_integer();
    case Value::Kind::kReal:
      return value.as_real();
    case Value::Kind::kText:
      return value.as_text();
    case Value::Kind::kList: {
      Json list = Json::array();
      for (const Value &item : value.items()) list.push_back(from_value(item));
      return list;
    }
    case Value::Kind::kObject: {
      Json object = Json::object();
      for (size_t i = 0; i < value.keys().size(); ++i) object[value.keys()[i]] = from_value(value.items()[i]);
      return object;
    }
    case Value::Kind::kArray:
      break;
  }
  throw BadCase(value.describe() + " has no form in JSON");
}

}  // namespace

Value parse_json(const std::string &text, const std::string &source) {
  try {
    return to_value(Json::parse(text));
  } catch (const Json::exception &error) {
    throw BadCase(source + ": " + error.what());
  }
}

Value read_json(const std::string &path) {
  std::ifstream file(path);
  if (!file) throw BadCase("cannot read " + path);
  return parse_json({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()}, path);
}

std::string to_json(const Value &value) { return from_value(value).dump(); }

}  // namespace golden
