// SPDX-License-Identifier: Apache-2.0
// Compiles source text at run time by NVRTC, which is loaded when it is first needed. Without NVRTC, kernels that are
// compiled into this library do the same work.
#pragma once

#include <string>

namespace cohort {

// Machine code for GPUs of this capability (90: 9.0), for the driver to load. The source may include source_headers().
// Empty, and *why, if there is no NVRTC or if it reports an error. Compiled code is cached in the folder that
// COHORT_CUDA_CACHE names, for all processes.
std::string compile_source(const std::string &source, int capability, std::string *why);

}  // namespace cohort
