// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy and .npz. What was loaded from an archive must be lost with its last byte.
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size >= 2 && data[0] != 'P' && data[0] != 0x93) return 0;
  load_and_save(data, size);
  cohort_arrays *whole = nullptr, *part = nullptr;
  if (size > 0 && good(cohort_arrays_load_memory(data, size, nullptr, &whole)) &&
      good(cohort_arrays_load_memory(data, size - 1, nullptr, &part))) {
    found("loaded without its last byte", std::to_string(size) + " bytes");
  }
  cohort_arrays_free(whole);
  return 0;
}
