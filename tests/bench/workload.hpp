// SPDX-License-Identifier: Apache-2.0
// The fixed workloads that Cohort is measured with beside other engines: sizes, data, first parameters. For
// cohort_bench. Changing one makes every earlier figure incomparable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

// How a workload is trained.
enum class Rule { kSgd, kSgdWithDecay, kPlainSgd, kAdam };
// Input and labels: a class for each sample, a word for each word, or numbers like those of the input.
enum class Task { kClasses, kWords, kNumbers };
// How its network comes about and is bound.
enum class Form { kGraph, kUnrolled, kBuckets, kParams, kStart, kApplied };

struct Workload {
  const char *name;
  const char *variant;  // "" where there is one form only
  const char *model;    // seeds the data, with ".data" and ".label"
  const char *graph;    // file in symbols/, without .json; "": the program composes it, or there is none
  std::vector<int64_t> sample;
  int64_t train_batch, infer_batch;
  int64_t num_classes;  // 0: no label
  Rule rule;
  int train_steps, infer_steps;
  bool infer_by_default;
  Task task = Task::kClasses;
  Form form = Form::kGraph;

  const char *label_name() const { return task == Task::kNumbers ? "lro_label" : "softmax_label"; }
  bool has_label() const { return num_classes > 0 || task == Task::kNumbers; }
};

// The language model of W5.
constexpr int64_t kWords = 10000, kHidden = 200, kLayers = 2;
constexpr int64_t kBuckets[] = {10, 20, 30, 40};

// The first of a workload's variants if variant is ""; null if there is no such workload or variant.
const Workload *find_workload(const std::string &name, const std::string &variant);
std::string list_workloads();  // "W1, W2, ..."

// First value of the parameter or auxiliary state of this name: the same in every engine.
std::vector<float> first_value(const std::string &name, const std::vector<int64_t> &shape);

// The one batch that every step runs on; `length`: of sentences of words.
struct Batch {
  std::vector<float> data, label;
  std::vector<int64_t> data_shape, label_shape;
};
Batch make_batch(const Workload &workload, int64_t batch, int64_t length = 0);

}  // namespace bench
