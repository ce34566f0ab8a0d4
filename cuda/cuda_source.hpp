// SPDX-License-Identifier: Apache-2.0
// Machine code from source text while a program runs, by NVRTC, which is found when it is first needed: where there is
// none, kernels that were compiled before do the same.
#pragma once

#include <string>

namespace cohort {

// For GPUs of this capability (90: 9.0), as the driver loads it. Includes are those of source_headers(). Empty, and
// why, where there is no NVRTC or it refuses. Code that was made before, by any process, is taken from the folder that
// COHORT_CUDA_CACHE names.
std::string compile_source(const std::string &source, int capability, std::string *why);

}  // namespace cohort
