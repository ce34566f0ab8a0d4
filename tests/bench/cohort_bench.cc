// SPDX-License-Identifier: Apache-2.0
// Measures one workload through the C ABI and prints one JSON line, in the form that the runners of other engines print
// it, so that they can be set side by side: milliseconds a step, samples a second, memory, and a check of the results.
//
// train: data into the group, forward, backward, update; one wait at the end of a block of steps.
// infer: data into the group, forward, and a wait for the output, every step.
// W12 has no network: operators applied at once.
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "applied.hpp"
#include "measured.hpp"
#include "params_in_out.hpp"
#include "process_start.hpp"
#include "roofline.hpp"

namespace bench {
namespace {

const char kHelp[] =
    "cohort-bench --workload W [flags]: measures one workload and prints one JSON line\n"
    "  --workload W      %s\n"
    "  --variant V       of W5: fused, unroll or bucket; of W9: mlp or chain\n"
    "  --mode M          train or infer; the default is train, of W6, W9 and W11 infer\n"
    "  --batch N         samples of the whole group a step; 0: the workload's own\n"
    "  --contexts K      devices of the group (1)\n"
    "  --threads T       processors the whole process may use (1), shared out among the contexts\n"
    "  --steps S         steps in a timed block; 0: the workload's own\n"
    "  --repeats R       timed blocks (5)\n"
    "  --warmup W        steps before the first block; -1: two or more\n"
    "  --quick           a hundredth of the steps, two blocks: does it run?\n"
    "  --api A           group, or executor: one bound executor without a group, inference only\n"
    "  --device D        cpu or gpu\n"
    "  --compute-dtype T float32, bfloat16 or, in inference, int8: what layers multiply in\n"
    "  --tf32            GPUs may round factors of products of float32 to TF32\n"
    "  --recompute       backward makes again what is cheap, in the place of keeping it\n"
    "  --roofline        beside it what a step does, and what the device would take for that at least\n"
    "  --symbols DIR     where the graphs are\n";

[[noreturn]] void usage(const std::string &text) {
  std::fprintf(stderr, "cohort-bench: %s; see --help\n", text.c_str());
  std::exit(2);
}

int whole_number(const std::string &flag, const std::string &text) {
  char *end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end || value < -1 || value > 1000000000)
    usage(flag + " takes a whole number, found '" + text + "'");
  return int(value);
}

// Whether value is the first of two words.
bool is_first(const std::string &flag, const std::string &value, const char *first, const char *second) {
  if (value != first && value != second) usage(flag + " is " + first + " or " + second + ", found '" + value + "'");
  return value == first;
}

// The flags as given; what was left open is filled in by complete().
struct Flags {
  std::string workload, variant, mode;
  bool quick = false;
  Options options;
};

bool set_number(const std::string &flag, const std::string &value, Options *options) {
  const std::pair<const char *, int *> numbers[] = {
      {"--contexts", &options->contexts}, {"--threads", &options->threads}, {"--steps", &options->steps},
      {"--repeats", &options->repeats},   {"--warmup", &options->warmup},
  };
  for (const auto &[name, number] : numbers) {
    if (flag != name) continue;
    *number = whole_number(flag, value);
    return true;
  }
  return false;
}

void set(const std::string &flag, const std::string &value, Flags *flags) {
  Options &options = flags->options;
  if (flag == "--workload") {
    flags->workload = value;
  } else if (flag == "--variant") {
    flags->variant = value;
  } else if (flag == "--mode") {
    flags->mode = is_first(flag, value, "train", "infer") ? "train" : "infer";
  } else if (flag == "--batch") {
    options.batch = whole_number(flag, value);
  } else if (flag == "--api") {
    options.executor = is_first(flag, value, "executor", "group");
  } else if (flag == "--device") {
    options.gpu = is_first(flag, value, "gpu", "cpu");
  } else if (flag == "--compute-dtype") {
    options.compute_dtype = value == "int8"                                ? COHORT_DTYPE_INT8
                            : is_first(flag, value, "bfloat16", "float32") ? COHORT_DTYPE_BFLOAT16
                                                                           : COHORT_DTYPE_FLOAT32;
  } else if (flag == "--started-by") {  // the program itself: W11's processes
    options.started_by = value;
  } else if (flag == "--symbols") {
    options.symbols = value;
  } else if (!set_number(flag, value, &options)) {
    usage("there is no flag " + flag);
  }
}

Options complete(const Flags &flags) {
  Options options = flags.options;
  options.workload = find_workload(flags.workload, flags.variant);
  if (!options.workload)
    usage("no workload '" + flags.workload + "' '" + flags.variant + "'; there are " + list_workloads());
  const Workload &workload = *options.workload;
  options.train = flags.mode.empty() ? !workload.infer_by_default : flags.mode == "train";
  if (options.train && !workload.has_label()) usage(flags.workload + " " + workload.variant + " has nothing to train");
  if (options.train && options.executor) usage("--api executor goes with --mode infer");
  if (options.contexts < 1 || options.threads < 1 || options.repeats < 1)
    usage("--contexts, --threads and --repeats are at least 1");
  if (options.compute_dtype == COHORT_DTYPE_INT8 && (options.train || workload.form != Form::kGraph))
    usage("--compute-dtype int8 goes with --mode infer of a network of one shape");
  if (workload.form == Form::kStart && options.train) usage("W11 goes with --mode infer");
  if (workload.form == Form::kParams) options.train = true;
  if (options.batch <= 0) options.batch = options.train ? workload.train_batch : workload.infer_batch;
  if (options.steps <= 0) {
    options.steps = options.train ? workload.train_steps : workload.infer_steps;
    if (flags.workload == "W4" && !options.train && options.batch == 1) options.steps = 10;
  }
  if (flags.quick) {
    options.steps = std::max(1, options.steps / 100);
    options.repeats = std::min(options.repeats, 2);
  }
  const int num_buckets = workload.form == Form::kBuckets ? int(std::size(kBuckets)) : 1;  // whole rounds of them
  options.steps = std::max(1, options.steps / num_buckets) * num_buckets;
  if (options.warmup < 0 && num_buckets > 1) options.warmup = num_buckets;
  if (options.warmup < 0) options.warmup = std::max(2, std::min(options.steps / 5, 50));
  return options;
}

Options parse(int argc, char **argv) {
  Flags flags;
  flags.options.symbols = COHORT_BENCH_SYMBOLS;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--help") {
      std::printf(kHelp, list_workloads().c_str());
      std::exit(0);
    }
    if (flag == "--quick") {
      flags.quick = true;
    } else if (flag == "--tf32") {
      flags.options.tf32 = true;
    } else if (flag == "--recompute") {
      flags.options.recompute = true;
    } else if (flag == "--roofline") {
      flags.options.roofline = true;
    } else if (++i < argc) {
      set(flag, argv[i], &flags);
    } else {
      usage(flag + " needs a value");
    }
  }
  return complete(flags);
}

std::vector<int> processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> list;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) list.push_back(cpu);
  return list;
}

// Keeps to the first of the processors that this process was given. Before the library starts its threads.
void pin(int threads) {
  const std::vector<int> given = processors();
  if (int(given.size()) <= threads) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int i = 0; i < threads; ++i) CPU_SET(given[size_t(i)], &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) throw std::runtime_error("the processors cannot be narrowed");
}

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Milliseconds of a step, by a block of them.
template <typename Step, typename Wait>
double time_block(int steps, Step &&step, Wait &&wait) {
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < steps; ++i) step();
  wait();
  return seconds_since(start) / steps * 1e3;
}

// Milliseconds per step of each block, sorted.
std::vector<double> time_blocks(Measured &work, const Options &options) {
  for (int i = 0; i < options.warmup; ++i) work.step();
  work.wait();
  std::vector<double> blocks;
  for (int block = 0; block < options.repeats; ++block) {
    blocks.push_back(time_block(
        options.steps, [&] { work.step(); }, [&] { work.wait(); }));
  }
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

double median(const std::vector<double> &sorted) {
  const size_t middle = sorted.size() / 2;
  return sorted.size() % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

double peak_rss_mb() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return double(usage.ru_maxrss) / 1024.0;
}

// `figures`: what else there is to say, as members of a JSON object.
void print_line(const Options &options, const char *config, const std::vector<double> &blocks, const std::string &check,
                double setup, const std::string &figures, const char *own_variant = nullptr) {
  const Workload &workload = *options.workload;
  std::string variant = own_variant ? own_variant : workload.variant;
  const auto add_case = [&](const char *name) { variant += variant.empty() ? name : std::string("-") + name; };
  if (options.compute_dtype == COHORT_DTYPE_BFLOAT16) add_case("bf16");
  if (options.compute_dtype == COHORT_DTYPE_INT8) add_case("int8");
  if (options.tf32) add_case("tf32");
  if (options.recompute) add_case("recompute");
  const double middle = median(blocks);
  double load = 0;
  getloadavg(&load, 1);
  std::string cpus;
  for (const int cpu : processors()) cpus += format("%s%d", cpus.empty() ? "" : ", ", cpu);
  std::string line = format(
      "{\"peer\": \"cohort\", \"config\": \"%s%s\", \"version\": \"%s\", \"workload\": \"%s\", \"variant\": \"%s\", "
      "\"mode\": \"%s\", \"batch\": %lld, \"contexts\": %d, \"threads\": %d, \"steps\": %d, \"repeats\": %zu, ",
      config, options.gpu ? "+gpu" : "", cohort_version(), workload.name, variant.c_str(),
      options.train ? "train" : "infer", static_cast<long long>(options.batch), options.contexts, options.threads,
      options.steps, blocks.size());
  line += format(
      "\"samples_per_s\": %.3f, \"ms_min\": %.5f, \"ms_median\": %.5f, \"ms_max\": %.5f, \"rss_mb\": %.1f, "
      "\"cpus\": [%s], \"load1\": %.2f, \"omp\": %d, \"setup_s\": %.3f, ",
      double(options.batch) / middle * 1e3, blocks.front(), middle, blocks.back(), peak_rss_mb(), cpus.c_str(), load,
      options.executor ? options.threads : options.threads_of_context(), setup);
  line += figures + ", \"check\": " + check + "}";
  std::puts(line.c_str());
}

// The chain's time is that of a step; beside it the sum's, and that of the same sum by hand, taken in turn.
int run_applied(const Options &options) {
  const Clock::time_point start = Clock::now();
  AppliedChain chain;
  AppliedSum sum;
  const std::string check = chain.check();
  const double setup = seconds_since(start);
  const auto none = [] {};
  std::vector<double> chains, sums, by_hand;
  for (int i = 0; i < options.warmup; ++i) chain.step(), sum.step(), sum.step_by_hand();
  for (int block = 0; block < options.repeats; ++block) {
    chains.push_back(time_block(
        options.steps, [&] { chain.step(); }, none));
    sums.push_back(time_block(
        options.steps, [&] { sum.step(); }, none));
    by_hand.push_back(time_block(
        options.steps, [&] { sum.step_by_hand(); }, none));
  }
  for (std::vector<double> *times : {&chains, &sums, &by_hand}) std::sort(times->begin(), times->end());
  const auto figures_of = [](const std::vector<double> &times) {
    return format("{\"ms_min\": %.5f, \"ms_median\": %.5f, \"gb_per_s\": %.2f}", times.front(), median(times),
                  AppliedSum::kBytes / times.front() / 1e6);
  };
  const double per_operator = 1e3 / AppliedChain::kOperators;
  print_line(options, "applied", chains, check, setup,
             format("\"us_per_operator\": {\"min\": %.4f, \"median\": %.4f}, ", chains.front() * per_operator,
                    median(chains) * per_operator) +
                 "\"add_16_mib\": " + figures_of(sums) + ", \"add_by_hand\": " + figures_of(by_hand));
  return 0;
}

// Parameters out of a group's devices and into them, a line each.
int run_params(const Options &options) {
  const Clock::time_point start = Clock::now();
  GroupParams work(options);
  const double setup = seconds_since(start);
  const std::string size = format("\"params_mb\": %.1f", work.megabytes());
  for (const bool get : {true, false}) {
    std::vector<double> blocks;
    for (int block = -1; block < options.repeats; ++block) {
      const double ms = time_block(
          block < 0 ? options.warmup : options.steps, [&] { get ? work.get() : work.set(); }, [&] { work.wait(); });
      if (block >= 0) blocks.push_back(ms);
    }
    std::sort(blocks.begin(), blocks.end());
    print_line(options, "group", blocks, "null", setup, size, get ? "get" : "set");
  }
  return 0;
}

// Starts a process for each repeat, and one before them that warms the page cache.
int run_starts(const Options &options, char **argv) {
  const std::vector<StartTimes> starts = start_processes(options, argv);
  std::vector<double> all;
  for (const StartTimes &one : starts) all.push_back(one.total_ms);
  std::sort(all.begin(), all.end());
  print_line(options, "executor", all, "null", 0, start_figures(starts));
  return 0;
}

int run(const Options &options, char **argv) {
  if (!options.started_by.empty()) return answer_once(options);
  pin(options.threads);
  const Form form = options.workload->form;
  if (form == Form::kApplied) return run_applied(options);
  if (form == Form::kParams) return run_params(options);
  if (form == Form::kStart) return run_starts(options, argv);
  const Clock::time_point start = Clock::now();
  const std::unique_ptr<Measured> work =
      form == Form::kBuckets ? make_measured_buckets(options) : make_measured(options);
  const std::string check = work->check();
  const double setup = seconds_since(start);
  const std::vector<double> blocks = time_blocks(*work, options);
  const char *const config = form == Form::kBuckets ? "manager" : options.executor ? "executor" : "group";
  std::string figures = "\"memory\": " + work->memory();
  if (options.roofline) figures += ", \"roofline\": " + roofline_of(*work, options, median(blocks));
  print_line(options, config, blocks, check, setup, figures);
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char **argv) {
  try {
    return bench::run(bench::parse(argc, argv), argv);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "cohort-bench: %s\n", error.what());
    return 1;
  }
}
