// SPDX-License-Identifier: Apache-2.0
// Checkpoints in MXNet's two files (contract PAR-08). Used by the boundary.
#pragma once

#include <string>

#include "ndarray/ndarray.hpp"
#include "symbol/symbol.hpp"

namespace cohort {

// Writes PREFIX-symbol.json unless symbol is null, and PREFIX-%04d.params. Throws kInvalidArgument (an entry without
// name or array, a negative epoch), kIo.
void save_checkpoint(const std::string &prefix, int epoch, const Symbol *symbol, const NamedArrays &args,
                     const NamedArrays &aux);
// Skips the symbol if it is null; `map`: maps the arrays as map_params() does. Throws kIo, kFormat, kUnsupported.
void load_checkpoint(const std::string &prefix, int epoch, bool map, Symbol *symbol, NamedArrays *args,
                     NamedArrays *aux);

}  // namespace cohort
