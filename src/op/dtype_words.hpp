// SPDX-License-Identifier: Apache-2.0
// Words of attributes that name an element type: the types such an attribute accepts.
#pragma once

#include <utility>
#include <vector>

#include "base/dtype.hpp"

namespace cohort {

using DtypeWords = std::vector<std::pair<const char *, Dtype>>;

inline DtypeWords dtype_words(const std::vector<Dtype> &types) {
  DtypeWords words;
  for (const Dtype dtype : types) words.emplace_back(dtype == Dtype::kNone ? "None" : dtype_name(dtype), dtype);
  return words;
}

}  // namespace cohort
