// SPDX-License-Identifier: Apache-2.0
#include "compare.hpp"

#include <cmath>

namespace golden {
namespace {

// The difference in multiples of the allowed one: up to 1 passes, infinity fails under any tolerance.
double excess(double expected, double found, const Tolerance &tolerance) {
  if (std::isnan(expected) || std::isnan(found)) return std::isnan(expected) == std::isnan(found) ? 0 : HUGE_VAL;
  if (expected == found) return 0;
  if (std::isinf(expected) || std::isinf(found)) return HUGE_VAL;
  const double allowed = tolerance.atol + tolerance.rtol * std::fabs(expected);
  const double off = std::fabs(found - expected);
  return allowed > 0 ? off / allowed : HUGE_VAL;
}

std::string tolerance_text(const Tolerance &tolerance) {
  return number_text(tolerance.atol) + " + " + number_text(tolerance.rtol) + " * |expected|";
}

std::string index_text(int64_t index, const std::vector<int64_t> &shape) {
  std::vector<int64_t> position(shape.size());
  for (size_t axis = shape.size(); axis-- > 0;) {
    position[axis] = index % shape[axis];
    index /= shape[axis];
  }
  return shape_text(position);
}

std::string difference(const std::string &what, const std::string &expected, const std::string &found) {
  return what + ": expected " + expected + ", found " + found;
}

bool names_array(const Value &expected) { return expected.is_object() && expected.find("array"); }

bool stands_for_number(const Value &expected, const Value &found) {
  if (expected.kind() == Value::Kind::kReal) return true;
  if (!expected.is_text() || found.is_text()) return false;
  const std::string &text = expected.as_text();
  return text == "nan" || text == "inf" || text == "-inf";
}

void compare_numbers(const Value &expected, const Value &found, const std::string &what, const Tolerance &tolerance,
                     std::vector<std::string> &differences) {
  if (found.kind() != Value::Kind::kReal && found.kind() != Value::Kind::kInteger)
    differences.push_back(difference(what, expected.describe(), found.describe()));
  else if (excess(expected.as_real(), found.as_real(), tolerance) > 1)
    differences.push_back(difference(what, number_text(expected.as_real()), number_text(found.as_real())) +
                          ", tolerance " + tolerance_text(tolerance));
}

bool equal_scalars(const Value &expected, const Value &found) {
  if (expected.kind() == Value::Kind::kInteger && found.kind() == Value::Kind::kReal)
    return found.as_real() == expected.as_real();
  if (expected.kind() != found.kind()) return false;
  switch (expected.kind()) {
    case Value::Kind::kBool:
      return expected.as_bool() == found.as_bool();
    case Value::Kind::kInteger:
      return expected.as_integer() == found.as_integer();
    case Value::Kind::kText:
      return expected.as_text() == found.as_text();
    default:
      return true;
  }
}

}  // namespace

void compare_arrays(const HostArray &expected, const HostArray &found, const std::string &what,
                    const Tolerance &tolerance, std::vector<std::string> &differences) {
  if (expected.shape != found.shape || expected.dtype != found.dtype) {
    differences.push_back(difference(what, dtype_text(expected.dtype) + ' ' + shape_text(expected.shape),
                                     dtype_text(found.dtype) + ' ' + shape_text(found.shape)));
    return;
  }
  const int64_t size = expected.size();
  int64_t num_wrong = 0, worst = 0;
  double worst_excess = 0;
  for (int64_t i = 0; i < size; ++i) {
    // Compare integers as integers: a double cannot represent all of them.
    if (expected.is_integer() && expected.integer(i) == found.integer(i)) continue;
    double off = excess(expected.real(i), found.real(i), tolerance);
    if (expected.is_integer() && off == 0) off = HUGE_VAL;
    if (off <= 1) continue;
    ++num_wrong;
    if (off > worst_excess) {
      worst_excess = off;
      worst = i;
    }
  }
  if (!num_wrong) return;
  differences.push_back(difference(what, number_text(expected.real(worst)), number_text(found.real(worst))) +
                        ", tolerance " + tolerance_text(tolerance) + ", worst at " + index_text(worst, expected.shape) +
                        ", " + std::to_string(num_wrong) + " of " + std::to_string(size) + " wrong");
}

void compare(const Value &expected, const Value &found, const std::string &what, const Tolerance &tolerance,
             const ArrayReader &read, std::vector<std::string> &differences) {
  if (names_array(expected)) {
    Tolerance own = tolerance;
    own.atol = expected.number("atol", tolerance.atol);
    const std::string name = what + " (" + expected.at("array").as_text() + ')';
    if (found.kind() != Value::Kind::kArray)
      differences.push_back(difference(name, "an array", found.describe()));
    else
      compare_arrays(read(expected), found.as_array(), name, own, differences);
  } else if (stands_for_number(expected, found)) {
    compare_numbers(expected, found, what, tolerance, differences);
  } else if (expected.is_list()) {
    if (!found.is_list() || found.items().size() != expected.items().size()) {
      differences.push_back(difference(what, expected.describe(), found.describe()));
      return;
    }
    for (size_t i = 0; i < expected.items().size(); ++i)
      compare(expected.items()[i], found.items()[i], what + '[' + std::to_string(i) + ']', tolerance, read,
              differences);
  } else if (expected.is_object()) {
    for (size_t i = 0; i < expected.keys().size(); ++i) {
      const std::string member = what.empty() ? expected.keys()[i] : what + '.' + expected.keys()[i];
      const Value *value = found.is_object() ? found.find(expected.keys()[i]) : nullptr;
      if (value)
        compare(expected.items()[i], *value, member, tolerance, read, differences);
      else
        differences.push_back(difference(member, expected.items()[i].describe(), "nothing of that name"));
    }
  } else if (!equal_scalars(expected, found)) {
    differences.push_back(difference(what, expected.describe(), found.describe()));
  }
}

}  // namespace golden
