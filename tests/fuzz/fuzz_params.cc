// SPDX-License-Identifier: Apache-2.0
// Files of parameters.
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  load_and_save(data, size);
  return 0;
}
