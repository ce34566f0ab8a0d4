// SPDX-License-Identifier: Apache-2.0
// Statistics of arrays while a network runs, every so many batches (contract MON-06..10). The API layer installs a
// monitor on executors, and on groups through functions that return a group's current executors.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/executor.hpp"

namespace cohort {

struct MonitorOptions {
  int64_t interval = 1;             // batches; at least 1
  std::string pattern;              // regular expression (NamePattern) of the names to report; empty: all
  bool anchored = true;             // it matches from the start of a name; else anywhere in it
  bool pattern_of_toc = true;       // it also selects among arguments and auxiliary states
  bool sort = false;                // by name; else in the order of execution
  bool stop_if_not_finite = false;  // a pass fails at the first output or gradient with an infinity or a NaN
  // Decides whether to report an array of this name, instead of the pattern; empty: the pattern decides.
  std::function<bool(const std::string &name)> filter;
  // Computes the values reported for an array; empty: its Euclidean norm over the root of its size.
  std::function<std::vector<NDArray>(const NDArray &array)> statistic;
};

struct MonitorEntry {
  int64_t step;  // of the batch, the first being 1
  std::string name;
  std::vector<NDArray> values;
  std::string text() const;  // each value followed by a tab; one of a single element as a number
};

// kExecution if a float array has an infinity or a NaN: how many, and where the first is.
void refuse_not_finite(const std::string &name, const NDArray &array);

class Monitor {
 public:
  explicit Monitor(const MonitorOptions &options);  // kInvalidArgument: interval, pattern

  // The function to install on an executor or group (Executor::set_monitor, Group::set_monitor). It refers to this
  // monitor weakly and does nothing once the monitor is gone: owning it could make a cycle, as add() may keep the
  // executor alive.
  MonitorFunction function() const;
  void check_idle() const;  // kState if called from its own callback
  // toc() reports the arguments and auxiliary states of the executor that this function then returns.
  void add(std::function<std::shared_ptr<Executor>()> executor);

  void tic();                       // before a batch
  std::vector<MonitorEntry> toc();  // after it; empty unless its tic fell on the interval. Throws with nothing changed
  int64_t step() const;             // batches begun

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace cohort
