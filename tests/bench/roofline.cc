// SPDX-License-Identifier: Apache-2.0
#include "roofline.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace bench {
namespace {

struct Sum {
  double count = 0, flops = 0, bytes = 0, bound_ms = 0;
  void add(const Sum &other) {
    count += other.count, flops += other.flops, bytes += other.bytes, bound_ms += other.bound_ms;
  }
};

bool is_work(cohort_span_kind kind) {
  return kind == COHORT_SPAN_OPERATOR || kind == COHORT_SPAN_COPY || kind == COHORT_SPAN_EXCHANGE ||
         kind == COHORT_SPAN_UPDATE;
}

// A step as it is measured: "launches" of kernels and graphs, where the backend is the simulated one, which counts
// them.
std::string launches_of(Measured &work, int steps) {
  void *const backend = dlopen("libcohort_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
  const auto counted = backend ? reinterpret_cast<uint64_t (*)()>(dlsym(backend, "cudasim_num_launches")) : nullptr;
  if (!counted) return "";
  const uint64_t before = counted();
  for (int i = 0; i < steps; ++i) work.step();
  work.wait();
  return format("\"launches\": %.1f, ", double(counted() - before) / steps);
}

}  // namespace

std::string roofline_of(Measured &work, const Options &options, double ms_of_step) {
  const int steps = std::max(1, std::min(options.steps, 10));
  const std::string launches = launches_of(work, steps);
  Trace trace;
  trace.start();
  for (int i = 0; i < steps; ++i) work.step();
  work.wait();
  trace.stop();
  Sum all;
  std::fprintf(stderr, "%-36s %8s %12s %12s %12s\n", "a step", "times", "MFLOP", "MB", "least us");
  for (const auto &[name, op, total] : trace.totals(COHORT_TOTALS_BY_OPERATOR)) {
    if (!is_work(total.kind)) continue;
    const Sum one{double(total.count) / steps, total.flops / steps, total.bytes / steps, total.bound_ns / steps / 1e6};
    all.add(one);
    std::fprintf(stderr, "%-36s %8.1f %12.3f %12.3f %12.2f\n", (op.empty() ? name : op).c_str(), one.count,
                 one.flops / 1e6, one.bytes / 1e6, one.bound_ms * 1e3);
  }
  return "{" + launches +
         format("\"works\": %.1f, \"mflop\": %.3f, \"mb\": %.3f, \"bound_ms\": %.5f, \"share_of_bound\": %.4f}",
                all.count, all.flops / 1e6, all.bytes / 1e6, all.bound_ms,
                ms_of_step > 0 ? all.bound_ms / options.contexts / ms_of_step : 0);
}

}  // namespace bench
