// SPDX-License-Identifier: Apache-2.0
// The language model of W5, cell by cell, for a length of sentences. For cohort_bench.
#pragma once

#include <cohort/cohort.hpp>

namespace bench {

cohort::Symbol unrolled_lstm(int64_t length);

}  // namespace bench
