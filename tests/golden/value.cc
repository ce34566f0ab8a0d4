// SPDX-License-Identifier: Apache-2.0
#include "value.hpp"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <utility>

namespace golden {
namespace {

template <typename T>
T element(const HostArray &array, int64_t index) {
  T value;
  std::memcpy(&value, array.bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

double float16(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 31) return fraction ? std::numeric_limits<double>::quiet_NaN() : sign * HUGE_VAL;
  return sign * (exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24));
}

double bfloat16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

}  // namespace

int64_t HostArray::size() const {
  int64_t size = 1;
  for (const int64_t length : shape) size *= length;
  return size;
}

bool HostArray::is_integer() const {
  switch (dtype) {
    case COHORT_DTYPE_UINT8:
    case COHORT_DTYPE_INT8:
    case COHORT_DTYPE_INT32:
    case COHORT_DTYPE_INT64:
    case COHORT_DTYPE_BOOL:
      return true;
    default:
      return false;
  }
}

double HostArray::real(int64_t index) const {
  switch (dtype) {
    case COHORT_DTYPE_FLOAT32:
      return element<float>(*this, index);
    case COHORT_DTYPE_FLOAT64:
      return element<double>(*this, index);
    case COHORT_DTYPE_FLOAT16:
      return float16(element<uint16_t>(*this, index));
    case COHORT_DTYPE_BFLOAT16:
      return bfloat16(element<uint16_t>(*this, index));
    default:
      return static_cast<double>(integer(index));
  }
}

int64_t HostArray::integer(int64_t index) const {
  switch (dtype) {
    case COHORT_DTYPE_UINT8:
    case COHORT_DTYPE_BOOL:
      return element<uint8_t>(*this, index);
    case COHORT_DTYPE_INT8:
      return element<int8_t>(*this, index);
    case COHORT_DTYPE_INT32:
      return element<int32_t>(*this, index);
    case COHORT_DTYPE_INT64:
      return element<int64_t>(*this, index);
    default:
      throw BadCase("array of dtype " + dtype_text(dtype) + " where integers are meant");
  }
}

HostArray read_array(const NDArray &array) {
  HostArray host;
  host.shape = array.shape();
  host.dtype = array.dtype();
  host.bytes.resize(array.bytes());
  array.read(host.bytes.data(), host.bytes.size());
  return host;
}

Value Value::boolean(bool flag) {
  Value value(Kind::kBool);
  value.flag_ = flag;
  return value;
}

Value Value::integer(int64_t number) {
  Value value(Kind::kInteger);
  value.integer_ = number;
  return value;
}

Value Value::real(double number) {
  Value value(Kind::kReal);
  value.real_ = number;
  return value;
}

Value Value::text(std::string text) {
  Value value(Kind::kText);
  value.text_ = std::move(text);
  return value;
}

Value Value::list(std::vector<Value> items) {
  Value value(Kind::kList);
  value.items_ = std::move(items);
  return value;
}

Value Value::object() { return Value(Kind::kObject); }

Value Value::array(const NDArray &array) {
  if (!array) return Value();
  Value value(Kind::kArray);
  value.array_ = std::make_shared<const HostArray>(read_array(array));
  return value;
}

Value Value::integers(const std::vector<int64_t> &numbers) {
  Value value = list();
  for (const int64_t number : numbers) value.add(integer(number));
  return value;
}

Value Value::texts(const std::vector<std::string> &texts) {
  Value value = list();
  for (const std::string &item : texts) value.add(text(item));
  return value;
}

const Value &Value::expect(Kind kind, const char *what) const {
  if (kind_ != kind) throw BadCase(describe() + " where " + what + " is meant");
  return *this;
}

bool Value::as_bool() const { return expect(Kind::kBool, "true or false").flag_; }

int64_t Value::as_integer() const { return expect(Kind::kInteger, "an integer").integer_; }

double Value::as_real() const {
  if (kind_ == Kind::kInteger) return static_cast<double>(integer_);
  if (kind_ == Kind::kText && text_ == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (kind_ == Kind::kText && text_ == "inf") return HUGE_VAL;
  if (kind_ == Kind::kText && text_ == "-inf") return -HUGE_VAL;
  return expect(Kind::kReal, "a number").real_;
}

const std::string &Value::as_text() const { return expect(Kind::kText, "a text").text_; }

const HostArray &Value::as_array() const { return *expect(Kind::kArray, "an array").array_; }

const std::vector<Value> &Value::items() const {
  return kind_ == Kind::kObject ? items_ : expect(Kind::kList, "a list").items_;
}

const std::vector<std::string> &Value::keys() const { return expect(Kind::kObject, "an object").keys_; }

std::vector<std::string> Value::as_texts() const {
  std::vector<std::string> texts;
  if (!is_null())
    for (const Value &item : items()) texts.push_back(item.as_text());
  return texts;
}

std::vector<int64_t> Value::as_integers() const {
  std::vector<int64_t> numbers;
  if (!is_null())
    for (const Value &item : items()) numbers.push_back(item.as_integer());
  return numbers;
}

std::vector<double> Value::as_reals() const {
  std::vector<double> numbers;
  if (!is_null())
    for (const Value &item : items()) numbers.push_back(item.as_real());
  return numbers;
}

const Value *Value::find(const std::string &key) const {
  const std::vector<std::string> &all = keys();
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i] == key) return &items_[i];
  return nullptr;
}

const Value &Value::at(const std::string &key) const {
  const Value *value = find(key);
  if (!value) throw BadCase("there is no '" + key + "' in " + describe());
  return *value;
}

const Value &Value::get(const std::string &key) const {
  static const Value none;
  const Value *value = find(key);
  return value ? *value : none;
}

bool Value::flag(const std::string &key, bool otherwise) const {
  const Value &value = get(key);
  return value.is_null() ? otherwise : value.as_bool();
}

double Value::number(const std::string &key, double otherwise) const {
  const Value &value = get(key);
  return value.is_null() ? otherwise : value.as_real();
}

std::string Value::word(const std::string &key, const std::string &otherwise) const {
  const Value &value = get(key);
  return value.is_null() ? otherwise : value.as_text();
}

void Value::add(Value item) {
  expect(Kind::kList, "a list");
  items_.push_back(std::move(item));
}

void Value::set(const std::string &key, Value value) {
  expect(Kind::kObject, "an object");
  keys_.push_back(key);
  items_.push_back(std::move(value));
}

std::string Value::describe() const {
  constexpr size_t kLongest = 200;
  std::string text;
  switch (kind_) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return flag_ ? "true" : "false";
    case Kind::kInteger:
      return std::to_string(integer_);
    case Kind::kReal:
      return number_text(real_);
    case Kind::kText:
      return '"' + text_ + '"';
    case Kind::kArray:
      return "array of " + dtype_text(array_->dtype) + ' ' + shape_text(array_->shape);
    case Kind::kList:
    case Kind::kObject:
      text = kind_ == Kind::kList ? "[" : "{";
      for (size_t i = 0; i < items_.size() && text.size() < kLongest; ++i) {
        if (i) text += ", ";
        if (kind_ == Kind::kObject) text += keys_[i] + ": ";
        text += items_[i].describe();
      }
      if (text.size() >= kLongest) text = text.substr(0, kLongest) + " ...";
      return text + (kind_ == Kind::kList ? "]" : "}");
  }
  return text;
}

std::string shape_text(const std::vector<int64_t> &shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

std::string dtype_text(int32_t dtype) {
  const char *text = "?";
  cohort_error *error = cohort_dtype_text(dtype, &text);
  cohort_error_free(error);
  return error ? "unknown dtype" : text;
}

std::string number_text(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", number);
  return text;
}

}  // namespace golden
