// SPDX-License-Identifier: Apache-2.0
// Values: what a case expects and what a step found, in one form so that they can be compared. JSON gives all kinds but
// arrays, which it refers to by name (see case_files.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cohort/cohort.hpp"

namespace golden {

using namespace cohort;

// Thrown for a case that does not follow its format.
struct BadCase : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An array on the host.
struct HostArray {
  std::vector<int64_t> shape;
  int32_t dtype = COHORT_DTYPE_FLOAT32;
  std::vector<unsigned char> bytes;

  int64_t size() const;
  bool is_integer() const;
  double real(int64_t index) const;
  int64_t integer(int64_t index) const;  // of integer dtypes, and bool
};

HostArray read_array(const NDArray &array);

class Value {
 public:
  enum class Kind { kNull, kBool, kInteger, kReal, kText, kList, kObject, kArray };

  Value() = default;
  static Value boolean(bool flag);
  static Value integer(int64_t number);
  static Value real(double number);
  static Value text(std::string text);
  static Value list(std::vector<Value> items = {});
  static Value object();
  static Value array(const NDArray &array);  // null for an empty object, else a copy of the contents
  static Value integers(const std::vector<int64_t> &numbers);
  static Value texts(const std::vector<std::string> &texts);

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::kNull; }
  bool is_list() const { return kind_ == Kind::kList; }
  bool is_object() const { return kind_ == Kind::kObject; }
  bool is_text() const { return kind_ == Kind::kText; }

  // Each throws BadCase if the value is of another kind.
  bool as_bool() const;
  int64_t as_integer() const;
  double as_real() const;  // also of an integer, "nan", "inf" and "-inf"
  const std::string &as_text() const;
  const HostArray &as_array() const;
  const std::vector<Value> &items() const;       // of a list, or of an object in the order of its keys
  const std::vector<std::string> &keys() const;  // of an object
  std::vector<std::string> as_texts() const;     // of a list, or none for null
  std::vector<int64_t> as_integers() const;      // likewise
  std::vector<double> as_reals() const;          // likewise

  const Value *find(const std::string &key) const;  // NULL if an object has no such key
  const Value &at(const std::string &key) const;    // throws BadCase if it has none
  const Value &get(const std::string &key) const;   // null if it has none
  bool flag(const std::string &key, bool otherwise) const;
  double number(const std::string &key, double otherwise) const;
  std::string word(const std::string &key, const std::string &otherwise) const;

  void add(Value item);                           // to a list
  void set(const std::string &key, Value value);  // of an object

  std::string describe() const;  // one line, cut when long

 private:
  explicit Value(Kind kind) : kind_(kind) {}
  const Value &expect(Kind kind, const char *what) const;

  Kind kind_ = Kind::kNull;
  bool flag_ = false;
  int64_t integer_ = 0;
  double real_ = 0;
  std::string text_;
  std::vector<Value> items_;
  std::vector<std::string> keys_;
  std::shared_ptr<const HostArray> array_;
};

// Parse JSON from a text or a file. Throw BadCase, naming the source.
Value parse_json(const std::string &text, const std::string &source);
Value read_json(const std::string &path);
// JSON that parses to an equal value. Throws BadCase for arrays.
std::string to_json(const Value &value);

std::string shape_text(const std::vector<int64_t> &shape);
std::string dtype_text(int32_t dtype);
std::string number_text(double number);

}  // namespace golden
