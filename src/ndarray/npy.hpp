// SPDX-License-Identifier: Apache-2.0
// NumPy's files: .npy (one array) and .npz (arrays by name). Files are untrusted.
// Formats: NEP 1 (versions 1 to 3 of .npy); .npz is a zip archive of entries NAME.npy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "ndarray/ndarray.hpp"

namespace cohort {

// Detect the format by its first bytes.
bool is_npy(const void *data, size_t bytes);
bool is_npz(const void *data, size_t bytes);

// `name` identifies the source in errors: kFormat; kUnsupported for an element type that arrays do not support.
NDArray parse_npy(const void *data, size_t bytes, const std::string &name);
// Likewise, with data read piece by piece directly into the array; allocates no more than the header states.
using ReadBytes = std::function<void(char *to, size_t count)>;
NDArray read_npy(uint64_t bytes, const ReadBytes &read, const std::string &name);
NamedArrays parse_npz(const void *data, size_t bytes, const std::string &name);

// Throws kDtype if NumPy has no such type.
std::string npy_bytes(const NDArray &array);
// Entries without a name become "arr_0", "arr_1", ... by position. Throws kName for duplicate names.
std::string npz_bytes(const NamedArrays &arrays);

// Reads .params, .npy or .npz, detected by content; the array of .npy has no name.
NamedArrays load_arrays(const std::string &path);
NamedArrays map_arrays(const std::string &path);  // maps .params as map_params() does
NamedArrays parse_arrays(const void *data, size_t bytes, const std::string &name);

}  // namespace cohort
