// SPDX-License-Identifier: Apache-2.0
// Digests, which model cases store in place of large arrays, and the losses of their networks.
#pragma once

#include <string>
#include <vector>

#include "value.hpp"

namespace golden {

// Euclidean norm, sum of absolute values, largest absolute value, sum, a product with fixed numbers, eight elements.
std::vector<double> digest_of(const HostArray &array);

// The largest relative difference between two digests, compared up to the end of the shorter one. NaN, which no
// tolerance allows, if any number is NaN.
double digest_error(const std::vector<double> &expected, const std::vector<double> &found);

// The digest errors of a list of tensors. 95 % of them, or all but one, must be within `rtol`, all within `rtol_all`.
class DigestErrors {
 public:
  void add(const std::string &name, const std::vector<double> &expected, const HostArray &found);
  // Appends a line for each tensor whose error is too large.
  void report(const std::string &what, const Value &tolerance, std::vector<std::string> &failures) const;

 private:
  struct Entry {
    std::string name;
    double error;
  };
  std::vector<Entry> entries_;
};

struct NamedArray {
  std::string name;
  HostArray array;
};
// The loss that `loss` describes.
double loss_of(const Value &loss, const std::vector<HostArray> &outputs, const std::vector<NamedArray> &inputs);

// The slice [begin, end) along an axis.
HostArray slice_of(const HostArray &array, size_t axis, int64_t begin, int64_t end);

// Fills each row whose class is -1 with -1: its other numbers have no meaning.
void blank_rows(HostArray &detections);

}  // namespace golden
