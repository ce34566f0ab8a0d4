// SPDX-License-Identifier: Apache-2.0
// Arrays lent to and from other libraries as DLPack's DLManagedTensorVersioned, version 1, or as the DLManagedTensor
// that there was before. Used by the boundary.
#pragma once

#include <memory>

#include "ndarray/ndarray.hpp"

namespace cohort {

// A new struct that keeps the array's memory alive until its deleter is called. Waits for the array.
void *to_dlpack(const NDArray &array);
void *to_dlpack_unversioned(const NDArray &array);
// The array that another library lends. Where it is a view of the lent memory it keeps `owner`; where it had to be
// copied (strided, read-only, or misaligned) it does not. Throws kUnsupported (version, element type, strides on a
// GPU), kDevice.
NDArray from_dlpack(const void *managed, std::shared_ptr<const void> owner);
NDArray from_dlpack_unversioned(const void *managed, std::shared_ptr<const void> owner);
void delete_dlpack(void *managed);  // calls its deleter, if it has one
void delete_dlpack_unversioned(void *managed);

}  // namespace cohort
