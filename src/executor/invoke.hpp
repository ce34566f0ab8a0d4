// SPDX-License-Identifier: Apache-2.0
// One operator on arrays, at once: imperative invocation. Inputs that the operator mutates are written in place.
#pragma once

#include <string>
#include <vector>

#include "ndarray/ndarray.hpp"
#include "op/op.hpp"

namespace cohort {

// outputs empty: new arrays; else one array per visible output, of the inferred shape and dtype (kShape, kDtype), null
// entries to be made. An operator without inputs runs on `context`. Has finished when it returns.
std::vector<NDArray> invoke(const std::string &op, const AttrMap &attrs, const std::vector<NDArray> &inputs,
                            const std::vector<NDArray> &outputs, const Context &context, bool is_train = false,
                            uint64_t seed = 0);

}  // namespace cohort
