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
  std::vector<Context> contexts;  // replace cpu(0), cpu(1) and so on of the cases, in turn; empty: as named
  std::set<std::string> lacking;  // a case that lacks a kernel for one of these operators is skipped
  bool verbose = false;
  bool partial_runs = false;  // --parts: runs operator cases with subsets of gradients and outputs
  int num_runs = 1;           // of an operator case, each from the same arrays; the last one is compared
};

// The context that replaces the one a case names.
Context context_of(const std::string &text, const Settings &settings);
// Whether this machine has the device.
bool exists(const Context &context);
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
  std::vector<Context> contexts;
  std::vector<double> workload;
  std::vector<std::string> data_names, label_names, param_names;
  Value data_shapes, label_shapes;  // as bound
  Group group;
  Params params;               // host copies
  bool has_params = false;     // whether they were set
  bool host_is_stale = false;  // whether the devices have newer values than the host copies
  OptimizerObject optimizer;
};

struct Scenario {
  Scenario(const GoldenCase &golden_case, const Value &head, const Settings &replay);

  const Symbol &symbol(const std::string &key);
  Group &group(const Value &step);  // named by "group", "module" or "manager" (its main group)
  ExecutorObject &executor(const Value &step, const char *member = "exec");
  Metric &metric(const Value &step);
  OptimizerObject &optimizer(const Value &step);
  Module &module(const Value &step);
  Manager &manager(const Value &step);
  Monitor &monitor(const Value &step);
  std::vector<Context> contexts(const Value &list) const;

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
  std::vector<Context> contexts;
  std::vector<double> workload;
  std::vector<std::string> param_names;
  Value step;
};

Group make_group(Scenario &scenario, const GroupRequest &request);
Descs make_descs(const Value &list);
Descs known_descs(const Value &shapes, const Value &types);  // by name; each may be null
Value slices_of(const Group &group);
Value merged_or_not(const Group &group, int32_t list, bool merge, size_t begin, size_t end);
Value values_by_name(const Arrays &arrays);
Value metric_values(const Metric &metric, bool global);
void forward_group(Scenario &scenario, Group &group, const Value &step);

// Labels of a metric's update: whole, or a list for each device.
struct MetricLabels {
  std::vector<NDArray> whole;
  std::vector<std::vector<NDArray>> sliced;
  bool is_sliced = false;
};
MetricLabels metric_labels(Scenario &scenario, const Value &step);
void update_metric_of(Scenario &scenario, Group &group, const Value &step);
// New arrays of zeros that receive the means of a list's arrays, for the names and with the dtypes that the step gives.
Arrays make_targets(const Group &group, int32_t list, const Value &step);
OptimizerObject make_sgd(const Symbol &symbol, int32_t mode, const Value &step, double rescale_grad);

// A grad_req as a step writes it; null is "write".
GradReq grad_req_of(const Value &value);

// Runs all steps. Returns a line for each difference; none: the case passed.
std::vector<std::string> run_scenario(const GoldenCase &golden_case, const Settings &settings);

}  // namespace golden
