// SPDX-License-Identifier: Apache-2.0
// Kernels that every backend has for arrays themselves, and their attributes. The host needs none: it reads and writes
// its arrays directly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cohort {

// "_fill_elements": writes one value to all elements of output 0.
struct ElementFill {
  uint64_t value = 0;  // the bytes of the element, the first one lowest
};

// "_copy_rows": copies between rows of which only a part is taken or written. Row r of `length` elements begins at
// element from + r * from_stride of input 0, and at to + r * to_stride of output 0.
struct RowCopy {
  int64_t num_rows = 0, length = 0;
  int64_t from = 0, from_stride = 0, to = 0, to_stride = 0;
};

}  // namespace cohort
