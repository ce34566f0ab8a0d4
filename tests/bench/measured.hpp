// SPDX-License-Identifier: Apache-2.0
// What cohort_bench measures: a bound network with its first parameters, the one batch, and a step over it.
#pragma once

#include <string>
#include <vector>

#include "bench_handles.hpp"
#include "workload.hpp"

namespace bench {

struct Options {
  const Workload *workload = nullptr;
  bool train = true;
  int64_t batch = 0;
  int contexts = 1, threads = 1, steps = 0, repeats = 5, warmup = -1;
  bool executor = false;  // one bound executor in place of a group; inference only
  bool gpu = false;
  std::string symbols;  // folder of the graphs

  int threads_of_context() const { return threads > contexts ? threads / contexts : 1; }
};

class Measured {
 public:
  explicit Measured(const Options &options);

  void step();
  void wait();

  // What was computed, to compare engines by, as JSON: the losses of three steps, or figures of the output.
  std::string check();
  // What the library takes of memory over all devices, in bytes, as JSON.
  std::string memory() const;

 private:
  void bind_group();
  void bind_executor();
  Arrays first_values(const Arrays &bound) const;
  void forward();
  void train_step();
  Array output() const;
  double loss() const;

  const Options options_;
  const Symbol symbol_;
  Descs data_descs_, label_descs_;
  Array data_, label_;
  std::vector<float> host_label_;

  Group group_;
  Optimizer optimizer_;

  Executor executor_;
  Array executor_data_, executor_output_;
};

// printf into a string.
std::string format(const char *pattern, ...) __attribute__((format(printf, 1, 2)));

}  // namespace bench
