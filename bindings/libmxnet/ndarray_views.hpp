// SPDX-License-Identifier: Apache-2.0
// Arrays that share memory with others.
#pragma once

#include "ndarray_handle.hpp"

namespace cohort_mxnet {

// The same elements as another array's, of which autograd knows the same.
std::shared_ptr<NDArray> view_of(const NDArray &original, cohort::NDArray array);
// Some of its elements.
std::shared_ptr<NDArray> part_of(const NDArray &original, cohort::NDArray array);

// The shape that MXNet's rules for reshaping make of `target`, in which 0 keeps an axis, -1 follows from the others, -2
// keeps all that remain, -3 joins two axes, and -4 splits one into the two lengths that follow. `reverse`: from the
// last axis on.
cohort::Shape resolve_shape(const cohort::Shape &source, const cohort::Shape &target, bool reverse);

}  // namespace cohort_mxnet
