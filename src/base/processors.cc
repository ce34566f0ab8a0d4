// SPDX-License-Identifier: Apache-2.0
#include "base/processors.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

namespace cohort {
namespace {

int processors_in_mask() {
  // sched_getaffinity refuses a mask smaller than the kernel's own; no kernel can be built for more than 2^16
  // processors.
  for (size_t num_bits = 1024; num_bits <= 65536; num_bits *= 4) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t *)> mask(CPU_ALLOC(num_bits),
                                                                 [](cpu_set_t *m) { CPU_FREE(m); });
    const size_t bytes = CPU_ALLOC_SIZE(num_bits);
    if (mask && sched_getaffinity(0, bytes, mask.get()) == 0) return CPU_COUNT_S(bytes, mask.get());
  }
  return int(std::thread::hardware_concurrency());
}

std::string read_line(const std::string &path, const char *prefix = "") {
  const std::unique_ptr<FILE, int (*)(FILE *)> file(std::fopen(path.c_str(), "re"), std::fclose);
  char line[4096];
  while (file && std::fgets(line, sizeof line, file.get())) {
    if (std::strncmp(line, prefix, std::strlen(prefix)) != 0) continue;
    line[std::strcspn(line, "\n")] = 0;
    return line + std::strlen(prefix);
  }
  return "";
}

// Whole processors granted by "quota period"; 0 if there is no limit ("max", "-1").
int whole_processors(const std::string &quota, const std::string &period) {
  const long long q = std::atoll(quota.c_str()), p = std::atoll(period.c_str());
  return q > 0 && p > 0 ? int(std::max(1LL, std::min(q / p, 1LL << 20))) : 0;
}

// The quota of this process's control group, or of the group mounted as root here; 0 if there is none.
int processors_by_quota() {
  const std::string unified = read_line("/proc/self/cgroup", "0::");
  for (const std::string &folder : {unified, std::string()}) {
    const std::string both = read_line("/sys/fs/cgroup" + folder + "/cpu.max");
    const size_t space = both.find(' ');
    if (space != std::string::npos) return whole_processors(both.substr(0, space), both.substr(space + 1));
  }
  return whole_processors(read_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
                          read_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us"));
}

}  // namespace

int usable_processors() {
  const int mask = std::max(1, processors_in_mask()), quota = processors_by_quota();
  return quota > 0 ? std::min(mask, quota) : mask;
}

int default_threads(int num_devices) {
  const int share = std::max(1, usable_processors() / num_devices);
  // May be a list, one number per nesting level; the first counts.
  const char *const wanted = std::getenv("OMP_NUM_THREADS");
  const long bound = wanted ? std::strtol(wanted, nullptr, 10) : 0;
  return bound > 0 && bound < share ? int(bound) : share;
}

}  // namespace cohort
