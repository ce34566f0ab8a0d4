// SPDX-License-Identifier: Apache-2.0
// A symbol from JSON and back, its lists, and inference.
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  cohort_symbol *symbol = nullptr, *again = nullptr, *internals = nullptr;
  if (good(cohort_symbol_from_json(reinterpret_cast<const char *>(data), size, &symbol))) {
    const char *json = nullptr, *json_again = nullptr;
    if (good(cohort_symbol_to_json(symbol, &json))) {
      must(cohort_symbol_from_json(json, std::strlen(json), &again));
      must(cohort_symbol_to_json(again, &json_again));
      if (std::strcmp(json, json_again) != 0) found("JSON of JSON", json);
    }
    good(cohort_symbol_internals(symbol, &internals));
    for (const cohort_symbol *of : {symbol, internals}) {
      for (int32_t list = COHORT_SYMBOL_ARGUMENTS; of && list <= COHORT_SYMBOL_LABELS; ++list) {
        size_t num = 0;
        const char *name = nullptr;
        good(cohort_symbol_num_names(of, list, &num));
        if (num > 0) must(cohort_symbol_name_at(of, list, num - 1, &name));
      }
    }
    size_t num_attrs = 0;
    good(cohort_symbol_num_attrs(symbol, 1, &num_attrs));
    cohort_bool complete = 0;
    cohort_descs *args = nullptr, *outputs = nullptr, *aux = nullptr;
    good(cohort_symbol_infer_shape(symbol, nullptr, 1, &complete, &args, &outputs, &aux));
    for (cohort_descs *list : {args, outputs, aux}) cohort_descs_free(list);
    good(cohort_symbol_infer_dtype(symbol, nullptr, 1, &complete, nullptr, nullptr, nullptr));
  }
  for (cohort_symbol *one : {symbol, again, internals}) cohort_symbol_free(one);
  expect_no_handles();
  return 0;
}
