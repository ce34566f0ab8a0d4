// SPDX-License-Identifier: Apache-2.0
// NumPy's files: .npy, one array, and .npz, an archive of them by name. Files are hostile until proven.
// Formats: NEP 1 (versions 1 to 3 of .npy); .npz is a zip archive of entries NAME.npy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "ndarray/ndarray.hpp"

namespace cohort {

// By its first bytes.
bool is_npy(const void *data, size_t bytes);
bool is_npz(const void *data, size_t bytes);

// `name` names the source in errors: kFormat, kUnsupported for an element type that arrays do not have.
NDArray parse_npy(const void *data, size_t bytes, const std::string &name);
// The same of what `read` gives piece by piece, straight into the array: no more memory than its header asks for.
using ReadBytes = std::function<void(char *to, size_t count)>;
NDArray read_npy(uint64_t bytes, const ReadBytes &read, const std::string &name);
NamedArrays parse_npz(const void *data, size_t bytes, const std::string &name);

// kDtype: NumPy has no such type.
std::string npy_bytes(const NDArray &array);
// Entries without a name are "arr_0", "arr_1", .. by their place. kName: two of one name.
std::string npz_bytes(const NamedArrays &arrays);

// Whatever of .params, .npy and .npz the content is; the array of .npy has no name.
NamedArrays load_arrays(const std::string &path);
NamedArrays map_arrays(const std::string &path);  // with .params as map_params() has them
NamedArrays parse_arrays(const void *data, size_t bytes, const std::string &name);

}  // namespace cohort
