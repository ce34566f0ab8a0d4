// SPDX-License-Identifier: Apache-2.0
// Shared by the fuzzers: what errors a hostile input may lead to, and what is done with what was loaded. Each fuzzer is
// a program over the C ABI; libFuzzer calls LLVMFuzzerTestOneInput() with inputs that it derives from a corpus.
#pragma once

#include <cohort/cohort.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

[[noreturn]] inline void found(const char *what, const std::string &detail) {
  std::fprintf(stderr, "%s: %.2000s\n", what, detail.c_str());
  std::abort();
}

// Whether the call succeeded. An error must be one that its input can cause, with a message of one line.
inline bool good(cohort_error *error) {
  if (!error) return true;
  const std::string message = cohort_error_message(error);
  const int32_t code = cohort_error_code(error);
  if (code == COHORT_ERROR_INTERNAL) found("internal error", message);
  if (message.empty() || message.find('\n') != message.npos || message.size() > (size_t(1) << 20))
    found("unfit message", message);
  cohort_error_free(error);
  return false;
}

// For calls that an input must not make fail.
inline void must(cohort_error *error) {
  if (error) found("unexpected error", cohort_error_message(error));
}

// Held all along: with the last handle the library ends its threads, and the next input would start them again.
inline cohort_ndarray *const held = [] {
  cohort_ndarray *array = nullptr;
  must(cohort_ndarray_zeros(nullptr, 0, COHORT_DTYPE_FLOAT32, nullptr, &array));
  return array;
}();

inline void expect_no_handles() {
  if (held && cohort_live_handles() != 1) found("handles are left", std::to_string(cohort_live_handles() - 1));
}

// Waits for the arrays, and frees the list.
inline void wait_for(cohort_arrays *list) {
  size_t num = 0;
  must(cohort_arrays_num(list, &num));
  for (size_t i = 0; i < num; ++i) {
    cohort_ndarray *array = nullptr;
    must(cohort_arrays_get(list, i, &array));
    good(cohort_ndarray_wait(array));
    cohort_ndarray_free(array);
  }
  cohort_arrays_free(list);
}

// Loads a list of arrays; if that succeeds, saved and loaded again it must be the same.
inline void load_and_save(const uint8_t *data, size_t size) {
  cohort_arrays *list = nullptr, *again = nullptr;
  if (good(cohort_arrays_load_memory(data, size, nullptr, &list))) {
    size_t num = 0, bytes = 0, bytes_again = 0;
    must(cohort_arrays_num(list, &num));
    bool whole = true;  // an entry without an array cannot be saved
    for (size_t i = 0; i < num && whole; ++i) {
      cohort_ndarray *array = nullptr;
      must(cohort_arrays_get(list, i, &array));
      whole = array != nullptr;
      cohort_ndarray_free(array);
    }
    if (whole) {
      must(cohort_arrays_save_memory(list, nullptr, 0, &bytes));
      std::vector<char> saved(bytes), saved_again;
      must(cohort_arrays_save_memory(list, saved.data(), saved.size(), &bytes));
      must(cohort_arrays_load_memory(saved.data(), saved.size(), nullptr, &again));
      must(cohort_arrays_save_memory(again, nullptr, 0, &bytes_again));
      saved_again.resize(bytes_again);
      must(cohort_arrays_save_memory(again, saved_again.data(), saved_again.size(), &bytes_again));
      if (saved != saved_again) found("saved and loaded again", "other bytes");
    }
  }
  cohort_arrays_free(again);
  cohort_arrays_free(list);
  expect_no_handles();
}
