// SPDX-License-Identifier: Apache-2.0
// Passes of all executors of a group. Private to src/group.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "executor/executor.hpp"

namespace cohort {

using Executors = std::vector<std::shared_ptr<Executor>>;

// Executor::forward() and backward() of all. If one throws, the others still do their work unless it syncs with them;
// then the first error is thrown.
void forward_all(const Executors &executors, bool is_train);
// `head_grads` is indexed by executor; after_bucket() is called for an executor just before its pass is prepared.
void backward_all(const Executors &executors, const std::vector<std::vector<ArraySlice>> &head_grads,
                  const std::function<BucketPrograms(size_t executor)> &after_bucket);

}  // namespace cohort
