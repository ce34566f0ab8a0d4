// SPDX-License-Identifier: Apache-2.0
// What cohort_bench measures: a bound network with its first parameters, its batches, and a step over one of them.
#pragma once

#include <cohort/cohort.hpp>
#include <memory>
#include <string>
#include <vector>

#include "workload.hpp"

namespace bench {

using namespace cohort;

struct Options {
  const Workload *workload = nullptr;
  bool train = true;
  int64_t batch = 0;
  int contexts = 1, threads = 1, steps = 0, repeats = 5, warmup = -1;
  bool executor = false;  // one bound executor in place of a group; inference only
  bool gpu = false, tf32 = false, recompute = false;
  bool roofline = false;           // say beside it what the machine can do
  cohort_dtype compute_dtype = 0;  // 0: that of the arrays
  std::string symbols;             // folder of the graphs
  std::string started_by;          // the time at which W11's parent started this process

  int threads_of_context() const { return threads > contexts ? threads / contexts : 1; }
};

class Measured {
 public:
  virtual ~Measured() = default;
  virtual void step() = 0;
  virtual void wait() = 0;
  // The results, for comparison between engines, as JSON: the losses of three steps, or figures of the output.
  virtual std::string check() = 0;
  // The memory that the library uses over all devices, in bytes, as JSON.
  virtual std::string memory() const = 0;
};

std::unique_ptr<Measured> make_measured(const Options &options);          // a group or an executor
std::unique_ptr<Measured> make_measured_buckets(const Options &options);  // a manager of buckets: measured_buckets.cc

// ---- what these have in common --------------------------------------------------------------------------------------

Descs one_desc(const char *name, const std::vector<int64_t> &shape);
std::vector<std::string> param_names(const Symbol &symbol, const Workload &workload);
std::vector<Context> contexts_of(const Options &options);
Optimizer make_optimizer(const Options &options);
Symbol load_graph(const Options &options);
// Arrays of the first values of what is bound, but for data and label.
Arrays first_values(const Workload &workload, const Arrays &bound);
// As the losses of all engines are told.
double loss_of(const Workload &workload, const std::vector<float> &out, const std::vector<float> &label);
std::string losses_text(const double (&losses)[3]);
std::string output_text(const std::vector<float> &out);
std::string memory_text(const cohort_memory_info &memory);

// printf into a string.
std::string format(const char *pattern, ...) __attribute__((format(printf, 1, 2)));

}  // namespace bench
