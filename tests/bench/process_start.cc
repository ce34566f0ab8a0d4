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
  const cohort_context cpu = {COHORT_DEVICE_CPU, 0};
  const Executor executor = make<Executor>(cohort_executor_simple_bind, symbol.get(), &cpu, data.get(), nullptr);
  const auto bound = [&](int32_t list) { return make<Arrays>(cohort_executor_arrays, executor.get(), list); };
  const Arrays args = first_values(workload, bound(COHORT_EXECUTOR_ARGS)),
               aux = first_values(workload, bound(COHORT_EXECUTOR_AUX));
  ok(cohort_checkpoint_save(prefix().c_str(), 0, symbol.get(), args.get(), aux.get()));
  const Arrays batches = make<Arrays>(cohort_arrays_create);
  ok(cohort_arrays_add(batches.get(), "data", array_of(batch.data, batch.data_shape).get()));
  ok(cohort_arrays_save(batches.get(), batch_file().c_str()));
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
  cohort_symbol *loaded = nullptr;
  cohort_arrays *loaded_args = nullptr, *loaded_aux = nullptr;
  ok(cohort_checkpoint_map(prefix().c_str(), 0, &loaded, &loaded_args, &loaded_aux));
  const Symbol symbol(loaded);
  const Arrays args(loaded_args), aux(loaded_aux);
  const double has_params = now_ms();
  const std::vector<int64_t> shape = {1, 3, 224, 224};
  const Descs data = one_desc("data", shape);
  const cohort_context cpu = {COHORT_DEVICE_CPU, 0};
  cohort_group_options set = COHORT_GROUP_OPTIONS_INIT;
  set.num_threads = options.threads;
  set.compute_dtype = options.compute_dtype;
  set.arg_params = args.get();
  set.aux_params = aux.get();
  const Group group =
      make<Group>(cohort_group_create, symbol.get(), &cpu, size_t(1), data.get(), nullptr, nullptr, size_t(0), 0, &set);
  const double is_bound = now_ms();
  const Arrays batches = make<Arrays>(cohort_arrays_load, batch_file().c_str(), nullptr);
  const Array batch = make<Array>(cohort_arrays_get, batches.get(), size_t(0));
  cohort_ndarray *const in = batch.get();
  ok(cohort_group_forward(group.get(), &in, 1, nullptr, 0, 0));
  read(make<Array>(cohort_group_merged, group.get(), int32_t(COHORT_GROUP_OUTPUTS), size_t(0)).get());
  const double end = now_ms();
  std::printf("%.3f %.3f %.3f %.3f %.3f %.1f %.1f\n", end - started, main_ms - started, has_params - begin,
              is_bound - has_params, end - is_bound, peak_mb(), library_mb);
  return 0;
}

}  // namespace bench
