// SPDX-License-Identifier: Apache-2.0
#include "cohort/initializer.h"

#include "api/objects.hpp"

using namespace cohort;
using namespace cohort::api;

cohort_error *cohort_initializer_create(const char *name, const char *const *keys, const char *const *values,
                                        size_t num_attrs, uint64_t seed, cohort_initializer **out_initializer) {
  return guard([&] {
    require(out_initializer, "out_initializer");
    *out_initializer = make_handle<cohort_initializer>(
        {Initializer::create(to_text(name, "name"), to_attrs(keys, values, num_attrs), seed)});
  });
}

void cohort_initializer_free(cohort_initializer *initializer) {
  const CallScope inside;
  free_handle(initializer);
}

cohort_error *cohort_initializer_apply(const cohort_initializer *initializer, const cohort_symbol *symbol,
                                       const cohort_arrays *arrays) {
  return guard([&] {
    deref(initializer, "initializer")
        .initializer->apply(symbol ? &deref(symbol, "symbol").symbol : nullptr, deref(arrays, "arrays"));
  });
}

cohort_error *cohort_initializer_fill(const cohort_initializer *initializer, const char *name, cohort_ndarray *array) {
  return guard(
      [&] { deref(initializer, "initializer").initializer->fill(to_text(name, "name"), deref(array, "array")); });
}
