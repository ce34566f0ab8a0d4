// SPDX-License-Identifier: Apache-2.0
// Owners for handles of the C ABI, and exceptions for its errors. For cohort_bench.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cohort/cohort.h"

namespace bench {

inline void ok(cohort_error *error) {
  if (!error) return;
  const std::string text =
      std::string(cohort_error_code_text(cohort_error_code(error))) + ": " + cohort_error_message(error);
  cohort_error_free(error);
  throw std::runtime_error(text);
}

template <typename T, void (*release)(T *)>
struct Release {
  void operator()(T *handle) const { release(handle); }
};
template <typename T, void (*release)(T *)>
using Handle = std::unique_ptr<T, Release<T, release>>;

using Array = Handle<cohort_ndarray, cohort_ndarray_free>;
using Arrays = Handle<cohort_arrays, cohort_arrays_free>;
using Descs = Handle<cohort_descs, cohort_descs_free>;
using Symbol = Handle<cohort_symbol, cohort_symbol_free>;
using Group = Handle<cohort_group, cohort_group_free>;
using Executor = Handle<cohort_executor, cohort_executor_free>;
using Calibration = Handle<cohort_calibration, cohort_calibration_free>;
using Optimizer = Handle<cohort_optimizer, cohort_optimizer_free>;

// make<Symbol>(cohort_symbol_load, path): calls it with an out parameter at the end, and owns what comes out.
template <typename H, typename F, typename... A>
H make(F function, A... arguments) {
  typename H::pointer handle = nullptr;
  ok(function(arguments..., &handle));
  return H(handle);
}

inline Array array_of(const std::vector<float> &values, const std::vector<int64_t> &shape) {
  return make<Array>(cohort_ndarray_from_host, values.data(), values.size() * sizeof(float), shape.data(),
                     int32_t(shape.size()), int32_t(COHORT_DTYPE_FLOAT32), nullptr);
}

inline std::vector<int64_t> shape_of(const cohort_ndarray *array) {
  std::vector<int64_t> shape(COHORT_MAX_AXES);
  int32_t num_axes = 0;
  ok(cohort_ndarray_shape(array, shape.data(), shape.size(), &num_axes));
  shape.resize(size_t(num_axes));
  return shape;
}

inline std::vector<float> read(const cohort_ndarray *array) {
  int64_t size = 0;
  ok(cohort_ndarray_size(array, &size));
  std::vector<float> values(static_cast<size_t>(size));
  ok(cohort_ndarray_read(array, values.data(), values.size() * sizeof(float)));
  return values;
}

}  // namespace bench
