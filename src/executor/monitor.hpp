// SPDX-License-Identifier: Apache-2.0
// Statistics of arrays while a network runs, every so many batches (contract MON-06..10). Installed on executors by the
// boundary, on those of a group through functions that give the present ones.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/executor.hpp"

namespace cohort {

struct MonitorOptions {
  int64_t interval = 1;        // batches; at least 1
  std::string pattern;         // regular expression (NamePattern) of the names to report; empty: all
  bool anchored = true;        // it matches from the start of a name; else anywhere in it
  bool pattern_of_toc = true;  // it chooses among arguments and auxiliary states, too
  bool sort = false;           // by name; else in the order of execution
  // Says whether to report an array of this name, in place of the pattern; empty: the pattern does.
  std::function<bool(const std::string &name)> filter;
  // What is reported of an array; empty: its Euclidean norm over the root of its size.
  std::function<std::vector<NDArray>(const NDArray &array)> statistic;
};

struct MonitorEntry {
  int64_t step;  // of the batch, the first being 1
  std::string name;
  std::vector<NDArray> values;
  std::string text() const;  // each value followed by a tab; one of a single element as a number
};

class Monitor {
 public:
  explicit Monitor(const MonitorOptions &options);  // kInvalidArgument: interval, pattern

  // What an executor is to be given as its monitor (Executor::set_monitor, Group::set_monitor). It does nothing once
  // this monitor is gone: it must not keep it alive, which by add() may keep the executor alive.
  MonitorFunction function() const;
  void check_idle() const;  // kState: its own callback calls
  // toc() reports the arguments and auxiliary states of the executor that this gives then.
  void add(std::function<std::shared_ptr<Executor>()> executor);

  void tic();                       // before a batch
  std::vector<MonitorEntry> toc();  // after it; empty unless its tic fell on the interval. Throws with nothing changed
  int64_t step() const;             // batches begun

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace cohort
