// SPDX-License-Identifier: Apache-2.0
// Metrics, accumulated from labels and predictions (contract section 10). Sums are in double precision: since the last
// reset and, globally, since the last full reset. Used by the API layer and by group.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/attributes.hpp"
#include "ndarray/ndarray.hpp"

namespace cohort {

// Sum and number of instances; the value is their quotient, for most metrics.
struct MetricCounters {
  double sum = 0;
  double num = 0;
};

// A metric that the host computes: returns what to add for one update. Throws to fail the update.
using MetricFunction =
    std::function<MetricCounters(const std::vector<NDArray> &labels, const std::vector<NDArray> &preds)>;

class Metric {
 public:
  // Takes the kinds, aliases and settings of MXNet's Python package. Throws kName, kInvalidArgument.
  static std::shared_ptr<Metric> create(const std::string &kind, const AttrMap &settings);
  static std::shared_ptr<Metric> custom(const std::string &name, MetricFunction function, bool allow_extra_outputs);
  virtual ~Metric() = default;

  // Waits for the arrays. An update that fails adds nothing.
  virtual void update(const std::vector<NDArray> &labels, const std::vector<NDArray> &preds) = 0;
  // Updates with the labels and outputs that set_names() chose, or all; kName if one is missing (MET-06).
  virtual void update_named(const NamedArrays &labels, const NamedArrays &preds) = 0;
  virtual void set_names(std::vector<std::string> label_names, std::vector<std::string> output_names) = 0;

  virtual void reset() = 0;        // local and global counters
  virtual void reset_local() = 0;  // only local counters

  virtual void add(std::shared_ptr<Metric> child) = 0;  // kState unless composite; kInvalidArgument for a cycle
  virtual bool contains(const Metric &other) const { return this == &other; }  // it is this one, or among its children
  virtual size_t num_children() const = 0;
  virtual std::shared_ptr<Metric> child(size_t index) const = 0;  // kInvalidArgument

  // Values: one, or those of all children. kInvalidArgument if the index is too large.
  virtual size_t num_values() const = 0;
  virtual const std::string &name(size_t index) const = 0;
  virtual double value(size_t index, bool global) const = 0;  // NaN if nothing was counted
  virtual MetricCounters counters(size_t index, bool global) const = 0;

  // A copy of the counters, to be restored if a later one of several updates fails.
  class Snapshot {
   public:
    virtual ~Snapshot() = default;
  };
  virtual std::unique_ptr<Snapshot> snapshot() const = 0;
  virtual void restore(const Snapshot &snapshot) = 0;
};

}  // namespace cohort
