// SPDX-License-Identifier: Apache-2.0
// What a model case keeps of a large array, and the losses of its networks.
#pragma once

#include <string>
#include <vector>

#include "value.hpp"

namespace golden {

// Euclidean norm, sum of absolute values, largest absolute value, sum, a product with fixed numbers, eight elements.
std::vector<double> digest_of(const HostArray &array);

// The largest of the relative differences of two digests; what one of them lacks at the end is not compared. NaN, which
// is no error below anything, if a number is.
double digest_error(const std::vector<double> &expected, const std::vector<double> &found);

// The errors of a list of tensors by name, and what is allowed: 95 % of them, or all but one, keep within `rtol`, all
// within `rtol_all`.
class DigestErrors {
 public:
  void add(const std::string &name, const std::vector<double> &expected, const HostArray &found);
  // A line for each tensor that is wrong.
  void report(const std::string &what, const Value &tolerance, std::vector<std::string> &failures) const;

 private:
  struct Entry {
    std::string name;
    double error;
  };
  std::vector<Entry> entries_;
};

// Of outputs, by name, and inputs, by name: how `loss` says.
struct NamedArray {
  std::string name;
  HostArray array;
};
double loss_of(const Value &loss, const std::vector<HostArray> &outputs, const std::vector<NamedArray> &inputs);

// The part [begin, end) along an axis.
HostArray part_of(const HostArray &array, size_t axis, int64_t begin, int64_t end);

// Rows of class -1 with -1 throughout: what else stands in them has no meaning.
void blank_rows(HostArray &detections);

}  // namespace golden
