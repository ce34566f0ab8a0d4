// SPDX-License-Identifier: Apache-2.0
// Constant arrays: _zeros, _ones, _full, _set_value, _arange, _linspace, _eye; and _contrib_arange_like, which takes
// its shape from an array.
#pragma once

#include "op/op.hpp"

namespace cohort {

struct FillAttrs {
  Tuple shape;
  Dtype dtype;
  double value;  // for _full and _set_value
};

struct UntypedAttrs {  // _zeros_without_dtype
  std::optional<Tuple> shape;
  int32_t dtype;  // a code of Dtype; -1: none
};

struct RangeAttrs {
  double start;
  std::optional<double> stop;  // none: the range is [0, start)
  double step;
  int32_t repeat;    // each number is repeated so often
  int32_t num;       // _linspace: how many numbers
  bool endpoint;     // _linspace: whether the last number is stop
  bool infer_range;  // the length is inferred from the graph
  Dtype dtype;
};

struct EyeAttrs {
  int64_t N, M, k;  // rows, columns (0: as many as rows), the diagonal
  Dtype dtype;
};

struct ArangeLikeAttrs {
  double start, step;
  int32_t repeat;               // each number is repeated so often
  std::optional<int32_t> axis;  // none: as many numbers as elements, in the shape of data
};

}  // namespace cohort
