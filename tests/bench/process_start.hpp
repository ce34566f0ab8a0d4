// SPDX-License-Identifier: Apache-2.0
// W11: from the start of a process to the first answer of a network that it has loaded. For cohort_bench.
#pragma once

#include "measured.hpp"

namespace bench {

struct StartTimes {
  double total_ms = 0, import_ms = 0, load_ms = 0, bind_ms = 0, first_ms = 0;  // import: until main() runs
  double rss_mb = 0, library_mb = 0;                                           // peak; before anything is loaded
};

// Starts this program anew, once more than options.repeats: the first one warms the page cache and is not told.
std::vector<StartTimes> start_processes(const Options &options, char **argv);
std::string start_figures(const std::vector<StartTimes> &starts);  // as members of a JSON object

// The work of such a process.
int answer_once(const Options &options);

}  // namespace bench
