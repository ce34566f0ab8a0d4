// SPDX-License-Identifier: Apache-2.0
// Pictures, decoded in gray or in colors.
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *const key = "flag", *const flags[] = {"0", "1"};
  const int64_t shape[] = {int64_t(size)};
  for (const char *const &flag : flags) {
    cohort_ndarray *bytes = nullptr, *pixels = nullptr;
    cohort_arrays *results = nullptr;
    must(cohort_ndarray_from_host(data, size, shape, 1, COHORT_DTYPE_UINT8, nullptr, &bytes));
    if (good(cohort_operator_invoke("_cvimdecode", &key, &flag, 1, &bytes, 1, nullptr, 0, nullptr, &results))) {
      must(cohort_arrays_get(results, 0, &pixels));
      good(cohort_ndarray_wait(pixels));
    }
    cohort_arrays_free(results);
    cohort_ndarray_free(pixels);
    cohort_ndarray_free(bytes);
  }
  expect_no_handles();
  return 0;
}
