// SPDX-License-Identifier: Apache-2.0
// .params files: MXNet's format for lists and maps of arrays (contract PAR-01..09). Files are untrusted.
#pragma once

#include <memory>
#include <string>

#include "ndarray/ndarray.hpp"

namespace cohort {

class InputFile;
class MappedFile;

// Throw kFormat (content), kIo (file system) or kUnsupported (sparse), naming file, entry and byte offset.
NamedArrays load_params(const std::string &path);
NamedArrays load_params(InputFile &file);
// Likewise, mapping the file if possible: large arrays are views of the mapping, whose pages load on use.
NamedArrays map_params(const std::string &path);
NamedArrays map_params(std::shared_ptr<const MappedFile> file, const std::string &path);
NamedArrays load_params(const void *data, size_t bytes, const std::string &name);
NamedArrays on_context(NamedArrays loaded, const Context &context);
// Throws kInvalidArgument if an entry has no array. For callers that do not accept empty records.
void check_whole(const NamedArrays &arrays);
// Atomic: writes a temporary file beside the target, flushes it, then renames.
void save_params(const std::string &path, const NamedArrays &arrays);
std::string params_bytes(const NamedArrays &arrays);

// The same atomic write for any content.
void write_file(const std::string &path, const void *data, size_t bytes);
std::string read_file(const std::string &path);  // throws kIo

}  // namespace cohort
