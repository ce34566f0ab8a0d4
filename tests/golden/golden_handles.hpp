// SPDX-License-Identifier: Apache-2.0
// Owners of the library's handles for the golden runner, and its errors as exceptions.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cohort/cohort.h"

namespace golden {

// A call that failed, in the library or in what the runner does for a step itself.
struct CallError : std::runtime_error {
  CallError(int32_t error_code, const std::string &message) : std::runtime_error(message), code(error_code) {}
  int32_t code;  // COHORT_ERROR_ constant
};

template <auto free_function>
struct FreeBy {
  template <typename T>
  void operator()(T *handle) const {
    free_function(handle);
  }
};

using NDArray = std::unique_ptr<cohort_ndarray, FreeBy<cohort_ndarray_free>>;
using Arrays = std::unique_ptr<cohort_arrays, FreeBy<cohort_arrays_free>>;
using Descs = std::unique_ptr<cohort_descs, FreeBy<cohort_descs_free>>;
using Symbol = std::unique_ptr<cohort_symbol, FreeBy<cohort_symbol_free>>;
using Executor = std::unique_ptr<cohort_executor, FreeBy<cohort_executor_free>>;
using Group = std::unique_ptr<cohort_group, FreeBy<cohort_group_free>>;
using Optimizer = std::unique_ptr<cohort_optimizer, FreeBy<cohort_optimizer_free>>;
using Manager = std::unique_ptr<cohort_manager, FreeBy<cohort_manager_free>>;
using Monitor = std::unique_ptr<cohort_monitor, FreeBy<cohort_monitor_free>>;
using Metric = std::unique_ptr<cohort_metric, FreeBy<cohort_metric_free>>;

inline void check(cohort_error *error) {
  if (!error) return;
  const std::unique_ptr<cohort_error, FreeBy<cohort_error_free>> owner(error);
  throw CallError(cohort_error_code(error), cohort_error_message(error));
}

// Calls a function whose last parameter is an out handle.
template <typename Handle, typename Fn, typename... Args>
Handle make(Fn function, Args... args) {
  typename Handle::pointer raw = nullptr;
  check(function(args..., &raw));
  return Handle(raw);
}

// Calls a function whose last parameter is an out value.
template <typename T, typename Fn, typename... Args>
T query(Fn function, Args... args) {
  T value{};
  check(function(args..., &value));
  return value;
}

template <typename Handle>
std::vector<typename Handle::pointer> raw(const std::vector<Handle> &handles) {
  std::vector<typename Handle::pointer> pointers;
  for (const Handle &handle : handles) pointers.push_back(handle.get());
  return pointers;
}

inline std::vector<const char *> c_strings(const std::vector<std::string> &texts) {
  std::vector<const char *> pointers;
  pointers.reserve(texts.size() + 1);  // never NULL: no names, not all there are
  for (const std::string &text : texts) pointers.push_back(text.c_str());
  return pointers;
}

std::vector<int64_t> shape_of(const cohort_ndarray *array);
NDArray share(const cohort_ndarray *array);
NDArray copy_of(const cohort_ndarray *array, const cohort_context &context);
NDArray zeros_like(const cohort_ndarray *array, int32_t dtype, const cohort_context &context);

}  // namespace golden
