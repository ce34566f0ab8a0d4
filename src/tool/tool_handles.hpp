// SPDX-License-Identifier: Apache-2.0
// Smart pointers for the library's handles, and exceptions for its errors.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "cohort/cohort.h"

namespace cohort::tool {

// An error that a call of the library returned.
struct CallError : std::runtime_error {
  CallError(cohort_error_class error_code, const std::string &message)
      : std::runtime_error(message), code(error_code) {}
  cohort_error_class code;
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
using Trace = std::unique_ptr<cohort_trace, FreeBy<cohort_trace_free>>;
using Initializer = std::unique_ptr<cohort_initializer, FreeBy<cohort_initializer_free>>;

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

}  // namespace cohort::tool
