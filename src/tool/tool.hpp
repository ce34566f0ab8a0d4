// SPDX-License-Identifier: Apache-2.0
// The command line tool, `cohort`, which uses the library only through include/cohort. Each command has a file of its
// own.
#pragma once

#include <vector>

#include "tool/command_line.hpp"

namespace cohort::tool {

Command inspect_command();
Command plot_command();
Command run_command();
Command bench_command();
Command convert_command();

// Options that several commands take.
inline const Option kParamsOption = {"--params", "FILE",
                                     "parameters: .params or .npz, names with or without arg: and aux:"};
inline const Option kShapeOption = {"--shape", "NAME=N,..",
                                    "shape of an input, such as data=1,3,224,224; NAME=N,.. of others may follow",
                                    Option::kPairs};
inline const Option kDtypeOption = {"--dtype", "NAME=DTYPE", "type of an input, such as data=uint8", Option::kPairs};
inline const Option kJsonOption = {"--json", "", "write JSON"};

}  // namespace cohort::tool
