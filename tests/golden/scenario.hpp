// SPDX-License-Identifier: Apache-2.0
// A scenario of the format cohort-golden-group-1: its objects, and the steps that work on them. Each family of steps is
// a file, steps_*.cc.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "case_files.hpp"
#include "value.hpp"

namespace golden {

// Options of the runner that all kinds of cases follow.
struct Settings {
  std::vector<cohort_context> contexts;  // replace cpu(0), cpu(1) and so on of the cases, in turn; empty: as named
  std::set<std::string> lacking;         // a case that lacks a kernel for one of these operators is skipped
  bool verbose = false;
  bool partial_runs = false;  // --parts: runs operator cases with subsets of gradients and outputs
  int num_runs = 1;           // of an operator case, each from the same arrays; the last one is compared
};

// The context that replaces the one a case names.
cohort_context context_of(const std::string &text, const Settings &settings);
// Whether this machine has the device.
bool exists(const cohort_context &context);
struct NoDevice {};  // thrown by a case whose devices do not exist: it is skipped

struct ExecutorObject {
  std::shared_ptr<std::vector<std::string>> monitored;  // reported names not yet read; NULL: no monitor is set
  Executor handle;
};

struct OptimizerObject {
  Optimizer handle;
  int32_t mode = COHORT_UPDATE_ON_STORE;
};

struct ManagerObject {
  Manager handle;
  Group main;
};

// The host-side helper of level "module": a group, host copies of its parameters, and one optimizer.
struct Module {
  std::string symbol;
  std::vector<cohort_context> contexts;
  std::vector<double> workload;
  std::vector<std::string> data_names, label_names, param_names;
  Value data_shapes, label_shapes;  // as bound
  Group group;
  Arrays arg_params, aux_params;  // host copies
  bool has_params = false;        // whether they were set
  bool host_is_stale = false;     // whether the devices have newer values than the host copies
  OptimizerObject optimizer;
};

struct Scenario {
  Scenario(const GoldenCase &golden_case, const Value &head, const Settings &replay);

  const cohort_symbol *symbol(const std::string &key);
  cohort_group *group(const Value &step);  // named by "group", "module" or "manager" (its main group)
  ExecutorObject &executor(const Value &step, const char *member = "exec");
  cohort_metric *metric(const Value &step);
  OptimizerObject &optimizer(const Value &step);
  Module &module(const Value &step);
  cohort_manager *manager(const Value &step);
  cohort_monitor *monitor(const Value &step);
  std::vector<cohort_context> contexts(const Value &list) const;

  Settings settings;
  CaseFiles files;
  std::map<std::string, std::string> symbol_files;
  std::map<std::string, Symbol> symbols;
  std::map<std::string, Group> groups;
  std::map<std::string, ExecutorObject> executors;
  std::map<std::string, Metric> metrics;
  std::map<std::string, OptimizerObject> optimizers;
  std::map<std::string, Module> modules;
  std::map<std::string, ManagerObject> managers;
  std::map<std::string, Monitor> monitors;
};

// Runs a step and returns its results in the form of the step's expectations.
using StepFunction = Value (*)(Scenario &, const Value &step);
using StepTable = std::map<std::string, StepFunction>;

void add_symbol_steps(StepTable &table);
void add_group_steps(StepTable &table);
void add_state_steps(StepTable &table);
void add_metric_steps(StepTable &table);
void add_update_steps(StepTable &table);
void add_executor_steps(StepTable &table);
void add_module_steps(StepTable &table);
void add_manager_steps(StepTable &table);
void add_monitor_steps(StepTable &table);

// Helpers that several files of steps share.

struct GroupRequest {  // arguments of make_group; `step` gives the remaining ones, as in create_group
  std::string symbol;
  std::vector<cohort_context> contexts;
  std::vector<double> workload;
  std::vector<std::string> param_names;
  Value step;
};

Group make_group(Scenario &scenario, const GroupRequest &request);
Descs make_descs(const Value &list);
Descs known_descs(const Value &shapes, const Value &types);  // by name; each may be null
std::vector<std::string> group_names(const cohort_group *group, int32_t list);
size_t num_devices(const cohort_group *group);
std::vector<NDArray> device_arrays(const cohort_group *group, int32_t list, size_t index);
Value slices_of(const cohort_group *group);
Value merged_or_not(const cohort_group *group, int32_t list, bool merge, size_t begin, size_t end);
Value values_by_name(const cohort_arrays *arrays);
Value metric_values(const cohort_metric *metric, bool global);
void forward_group(Scenario &scenario, cohort_group *group, const Value &step);

// Labels of a metric update in one list: whole arrays, or the slices of device 0, then of device 1 and so on.
struct MetricLabels {
  std::vector<NDArray> arrays;
  bool is_sliced = false;
  size_t num_slices = 0, num_labels = 0;  // if sliced: devices, and labels per device
};
MetricLabels metric_labels(Scenario &scenario, const Value &step);
void update_metric_of(Scenario &scenario, cohort_group *group, const Value &step);
// New arrays of zeros that receive the means of a list's arrays, for the names and with the dtypes that the step gives.
Arrays make_targets(const cohort_group *group, int32_t list, const Value &step);
std::vector<std::string> symbol_names(const cohort_symbol *symbol, int32_t list);
OptimizerObject make_sgd(const cohort_symbol *symbol, int32_t mode, const Value &step, double rescale_grad);

// A step's grad_req in one of the three forms of the option structs: a word, a list, or a map from names to words.
struct GradReq {
  explicit GradReq(const Value &value);
  std::string word;                // of the first form
  std::vector<std::string> words;  // of the others
  std::vector<std::string> names;  // of the third
  std::vector<const char *> words_c, names_c;
  bool is_word = false, is_map = false;

  template <typename Options>
  void fill(Options &options) const {
    if (is_word) {
      options.grad_req = word.c_str();
      return;
    }
    static const char *const kEmpty[] = {nullptr};
    options.grad_req_list = words_c.empty() ? kEmpty : words_c.data();
    options.grad_req_names = !is_map ? nullptr : names_c.empty() ? kEmpty : names_c.data();
    options.num_grad_reqs = words.size();
  }
};

// Runs all steps. Returns a line for each difference; none: the case passed.
std::vector<std::string> run_scenario(const GoldenCase &golden_case, const Settings &settings);

}  // namespace golden
