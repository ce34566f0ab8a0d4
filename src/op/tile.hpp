// SPDX-License-Identifier: Apache-2.0
// Arrays repeated: tile (whole, along axes) and repeat (each element, along one).
#pragma once

#include "op/op.hpp"

namespace cohort {

struct TileAttrs {  // backward: head gradient
  Tuple reps;
};

struct RepeatAttrs {  // backward: head gradient
  int32_t repeats;
  std::optional<int32_t> axis;  // none: of the flattened array
};

// The output of either with its axes divided into those of data and those along which data is repeated.
struct Repetition {
  std::vector<int64_t> lengths;
  std::vector<bool> repeated;
  std::vector<int64_t> shape;  // of the output
};
Repetition repetition_of(const TileAttrs &a, const Shape &data);
Repetition repetition_of(const RepeatAttrs &a, const Shape &data);

}  // namespace cohort
