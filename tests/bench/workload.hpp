// SPDX-License-Identifier: Apache-2.0
// The fixed workloads that Cohort is measured with beside other engines: sizes, data, first parameters. For
// cohort_bench. Changing one makes every earlier figure incomparable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

struct Workload {
  const char *name;
  const char *variant;  // "" where there is one form only
  const char *model;    // seeds the data, with ".data" and ".label"
  const char *graph;    // file in symbols/, without .json; "": no network, operators applied at once
  std::vector<int64_t> sample;
  int64_t train_batch, infer_batch;
  int64_t num_classes;  // 0: no label
  double wd;            // weight decay; all train by SGD with learning rate 0.01 and momentum 0.9
  int train_steps, infer_steps;
  bool infer_by_default;
};

// The first of a workload's variants if variant is ""; null if there is no such workload or variant.
const Workload *find_workload(const std::string &name, const std::string &variant);
std::string list_workloads();  // "W1, W2, ..."

// First value of the parameter or auxiliary state of this name: the same in every engine.
std::vector<float> first_value(const std::string &name, const std::vector<int64_t> &shape);

// The one batch that every step runs on.
std::vector<float> batch_data(const Workload &workload, int64_t batch);
std::vector<float> batch_label(const Workload &workload, int64_t batch);

}  // namespace bench
