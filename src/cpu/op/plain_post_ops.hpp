// SPDX-License-Identifier: Apache-2.0
// Post-operations that a primitive could not do, and those of layers that oneDNN lacks.
#pragma once

#include <vector>

#include "base/dtype.hpp"
#include "device/kernel.hpp"

namespace cohort {

// Does post-operations on `count` elements of `result` in place. Addends are args.inputs from `first_extra` on, and lie
// as the result does.
void apply_post_ops(const std::vector<PostOp> &post, Dtype dtype, void *result, int64_t count, const Args &args,
                    int first_extra, const Lane &lane);

}  // namespace cohort
