// SPDX-License-Identifier: Apache-2.0
#include "process_start.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>

namespace bench {
namespace {

double now_ms() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return double(now.tv_sec) * 1e3 + double(now.tv_nsec) / 1e6;
}

// When main() could begin, before anything else of this program.
const double main_ms = now_ms();

double peak_mb() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return double(usage.ru_maxrss) / 1024;
}

// Where the checkpoint is kept from run to run.
std::string prefix() {
  const char *const own = std::getenv("XDG_CACHE_HOME"), *const home = std::getenv("HOME");
  const std::string folder = own ? own : home ? std::string(home) + "/.cache" : "/tmp";
  mkdir(folder.c_str(), 0777);
  mkdir((folder + "/cohort-bench").c_str(), 0777);
  return folder + "/cohort-bench/resnet50";
}

std::string batch_file() { return prefix() + "-batch.params"; }

// The network with its first parameters, and its batch.
void save_model(const Options &options) {
  if (access((prefix() + "-0000.params").c_str(), R_OK) == 0 && access(batch_file().c_str(), R_OK) == 0) return;
  const Workload &workload = *options.workload;
  const Symbol symbol = load_graph(options);
  const Batch batch = make_batch(workload, 1);
  const Descs data = one_desc("data", batch.data_shape);
  const Executor executor = Executor::simple_bind(symbol, cpu(), data);
  Checkpoint::save(prefix(), 0, symbol,
                   {first_values(workload, executor.arrays(COHORT_EXECUTOR_ARGS)),
                    first_values(workload, executor.arrays(COHORT_EXECUTOR_AUX))});
  Arrays{{"data", NDArray::from_host(batch.data, batch.data_shape)}}.save(batch_file());
}

double median_of(const std::vector<StartTimes> &starts, const std::function<double(const StartTimes &)> &figure) {
  std::vector<double> all;
  for (const StartTimes &one : starts) all.push_back(figure(one));
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

}  // namespace

std::vector<StartTimes> start_processes(const Options &options, char **argv) {
  save_model(options);
  std::vector<StartTimes> starts;
  for (int i = 0; i <= options.repeats; ++i) {
    const std::string command = format("'%s' --workload W11 --threads %d%s --started-by %.6f", argv[0], options.threads,
                                       options.compute_dtype ? " --compute-dtype bfloat16" : "", now_ms());
    FILE *const child = popen(command.c_str(), "r");
    if (!child) throw std::runtime_error("no process can be started");
    StartTimes one;
    const int found = std::fscanf(child, "%lf %lf %lf %lf %lf %lf %lf", &one.total_ms, &one.import_ms, &one.load_ms,
                                  &one.bind_ms, &one.first_ms, &one.rss_mb, &one.library_mb);
    if (pclose(child) != 0 || found != 7) throw std::runtime_error("a started process failed");
    if (i > 0) starts.push_back(one);
  }
  return starts;
}

std::string start_figures(const std::vector<StartTimes> &starts) {
  return format(
      "\"import_ms\": %.2f, \"load_ms\": %.2f, \"bind_ms\": %.2f, \"first_ms\": %.2f, \"peak_mb\": %.1f, "
      "\"library_mb\": %.1f, \"params_mb\": %.1f",
      median_of(starts, [](const auto &s) { return s.import_ms; }),
      median_of(starts, [](const auto &s) { return s.load_ms; }),
      median_of(starts, [](const auto &s) { return s.bind_ms; }),
      median_of(starts, [](const auto &s) { return s.first_ms; }),
      median_of(starts, [](const auto &s) { return s.rss_mb; }),
      median_of(starts, [](const auto &s) { return s.library_mb; }), 25610152 * 4.0 / (1 << 20));
}

int answer_once(const Options &options) {
  const double started = std::atof(options.started_by.c_str()), library_mb = peak_mb(), begin = now_ms();
  const Checkpoint model = Checkpoint::map(prefix(), 0);
  const double has_params = now_ms();
  const std::vector<int64_t> shape = {1, 3, 224, 224};
  const Descs data = one_desc("data", shape);
  GroupOptions set;
  set.num_threads = options.threads;
  set.compute_dtype = options.compute_dtype;
  set.arg_params = &model.params.arg;
  set.aux_params = &model.params.aux;
  Group group(model.symbol, {cpu()}, data, Descs(nullptr), false, set);
  const double is_bound = now_ms();
  const NDArray batch = Arrays::load(batch_file()).array(0);
  group.forward({&batch, 1}, {}, false);
  group.output().read<float>();
  const double end = now_ms();
  std::printf("%.3f %.3f %.3f %.3f %.3f %.1f %.1f\n", end - started, main_ms - started, has_params - begin,
              is_bound - has_params, end - is_bound, peak_mb(), library_mb);
  return 0;
}

}  // namespace bench
