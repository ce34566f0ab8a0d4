// SPDX-License-Identifier: Apache-2.0
// Shared by the programs in tests/cpp: small networks, and a test that leaves no handle behind.
#pragma once

#include <cohort/cohort.hpp>
#include <string>
#include <vector>

#include "support/unit.hpp"

namespace cpp_test {

// y = x w^T + b, and its squared distance from labels: arguments fc_data, fc_weight, fc_bias, fit_label.
cohort::Symbol line_network();

// Runs a test's body. Fails if it leaves handles alive.
void run_without_leak(void (*body)());

// Runs a call that must fail, and returns what it threw.
template <typename Call>
cohort::Error error_of(const Call &call) {
  try {
    call();
  } catch (const cohort::Error &error) {
    return error;
  }
  unit::fail(__FILE__, __LINE__, "the call did not fail");
}

}  // namespace cpp_test

// As TEST, of which no handle may be left.
#define HANDLE_TEST(name)                                 \
  static void name##_body();                              \
  TEST(name) { cpp_test::run_without_leak(name##_body); } \
  static void name##_body()
