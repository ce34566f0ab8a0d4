// SPDX-License-Identifier: Apache-2.0
// Repeats arrays: tile (the whole array along axes) and repeat (each element along one axis).
#pragma once

#include "op/op.hpp"

namespace cohort {

struct TileAttrs {  // backward: head gradient
  Tuple reps;
};

struct RepeatAttrs {  // backward: head gradient
  int32_t repeats;
  std::optional<int32_t> axis;  // none: over the flattened array
};

// The output's axes, split into those of data and those along which data is repeated.
struct Repetition {
  std::vector<int64_t> lengths;
  std::vector<bool> repeated;
  std::vector<int64_t> shape;  // of the output
};
Repetition repetition_of(const TileAttrs &a, const Shape &data);
Repetition repetition_of(const RepeatAttrs &a, const Shape &data);

}  // namespace cohort
