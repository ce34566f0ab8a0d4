// SPDX-License-Identifier: Apache-2.0
// .params files: MXNet's format for lists and maps of arrays (contract PAR-01..09). Files are hostile until proven.
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
// The same, where the file can be mapped with large arrays in the pages of the mapping: read when they are used.
NamedArrays map_params(const std::string &path);
NamedArrays map_params(std::shared_ptr<const MappedFile> file, const std::string &path);
NamedArrays load_params(const void *data, size_t bytes, const std::string &name);
NamedArrays on_context(NamedArrays loaded, const Context &context);
// kInvalidArgument: an entry has no array. For callers who have no use for empty records.
void check_whole(const NamedArrays &arrays);
// Atomic: a temporary file beside the target, flushed, then renamed.
void save_params(const std::string &path, const NamedArrays &arrays);
std::string params_bytes(const NamedArrays &arrays);

// The same atomic write for any content.
void write_file(const std::string &path, const void *data, size_t bytes);
std::string read_file(const std::string &path);  // throws kIo

}  // namespace cohort
