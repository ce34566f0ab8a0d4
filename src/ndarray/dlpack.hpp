// SPDX-License-Identifier: Apache-2.0
// Exchange of arrays with other libraries as DLPack's DLManagedTensorVersioned (version 1) or the older
// DLManagedTensor. Used by the boundary.
#pragma once

#include <memory>

#include "ndarray/ndarray.hpp"

namespace cohort {

// Waits for the array, then returns a new struct that keeps its memory alive until its deleter is called.
void *to_dlpack(const NDArray &array);
void *to_dlpack_unversioned(const NDArray &array);
// An array from another library. A view of its memory keeps `owner`; a copy (made if it is strided, read-only, or
// misaligned) does not. Throws kUnsupported (version, element type, strides on a GPU), kDevice.
NDArray from_dlpack(const void *managed, std::shared_ptr<const void> owner);
NDArray from_dlpack_unversioned(const void *managed, std::shared_ptr<const void> owner);
void delete_dlpack(void *managed);  // calls its deleter, if any
void delete_dlpack_unversioned(void *managed);

}  // namespace cohort
