// SPDX-License-Identifier: Apache-2.0
// Post-operations as loops: those that a primitive cannot do, and those of layers that oneDNN lacks.
#pragma once

#include <vector>

#include "base/dtype.hpp"
#include "device/kernel.hpp"

namespace cohort {

// Applies post-operations to `count` elements of `result` in place. Addends are args.inputs from `first_extra` on, in
// the layout of the result.
void apply_post_ops(const std::vector<PostOp> &post, Dtype dtype, void *result, int64_t count, const Args &args,
                    int first_extra, const Lane &lane);

}  // namespace cohort
