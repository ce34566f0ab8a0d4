// SPDX-License-Identifier: Apache-2.0
// The second translation unit of each program, so that all of cohort.hpp is linked twice.
#include "cpp_support.hpp"

namespace cpp_test {

cohort::Symbol line_network() {
  using namespace cohort;
  const Symbol fc = Symbol::create("FullyConnected", "fc", {{"num_hidden", 1}});
  return Symbol::create("LinearRegressionOutput", "fit", {}, {fc});
}

void run_without_leak(void (*body)()) {
  const size_t before = cohort::live_handles();
  body();
  CHECK_EQ(cohort::live_handles(), before);
}

}  // namespace cpp_test
