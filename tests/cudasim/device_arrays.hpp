// SPDX-License-Identifier: Apache-2.0
// Arrays and networks for tests that compare devices.
#pragma once

#include <string>
#include <vector>

#include "ndarray/ndarray.hpp"
#include "symbol/symbol.hpp"

namespace device_tests {

inline cohort::NDArray random_on(const cohort::Context &context, const cohort::Shape &shape, uint64_t seed,
                                 cohort::Dtype dtype = cohort::Dtype::kFloat32) {
  const cohort::NDArray array = cohort::NDArray::create(shape, dtype, cohort::Context());
  if (array.size() > 0) array.fill_uniform(-1, 1, seed);
  return context == cohort::Context() ? array : array.copy_to(context);
}

// The elements of an array on any device, converted to T.
template <typename T = float>
std::vector<T> values_of(const cohort::NDArray &array) {
  const auto type = sizeof(T) == 8 ? cohort::Dtype::kFloat64 : cohort::Dtype::kFloat32;
  const cohort::NDArray wide = cohort::NDArray::create(array.shape(), type, cohort::Context());
  wide.copy_from(array);
  wide.wait();
  std::vector<T> all(static_cast<size_t>(array.size()));
  if (!all.empty()) wide.read(all.data(), wide.bytes());
  return all;
}

inline cohort::Symbol node(const std::string &op, const cohort::AttrMap &attrs,
                           const std::vector<std::string> &inputs) {
  std::vector<cohort::Symbol> variables;
  for (const std::string &name : inputs) variables.push_back(cohort::Symbol::variable(name));
  return cohort::Symbol::create(op, attrs, "node", {}, variables);
}

}  // namespace device_tests
