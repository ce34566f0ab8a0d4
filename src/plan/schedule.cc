// SPDX-License-Identifier: Apache-2.0
// Orders steps over several devices: a device that would wait for another continues with a later step that is ready.
// The pass simulates the devices in time with estimated costs; each device starts the first ready step in list order.
// If every device's steps stay in order, nothing changes.
#include <algorithm>
#include <functional>
#include <queue>

#include "plan/ir.hpp"

namespace cohort::plan {
namespace {

using StepOrder = std::vector<size_t>;

class Scheduler {
 public:
  Scheduler(const Ir &ir, const std::vector<double> &costs) : ir_(ir), costs_(costs) {}

  // Appends the steps [begin, end) to *order.
  void run(size_t begin, size_t end, StepOrder *order) {
    begin_ = begin;
    end_ = end;
    find_links();
    const std::vector<StepOrder> sequences = act_out();
    const bool same = std::all_of(sequences.begin(), sequences.end(),
                                  [](const StepOrder &steps) { return std::is_sorted(steps.begin(), steps.end()); });
    if (same) {
      for (size_t s = begin; s < end; ++s) order->push_back(s);
    } else {
      merge(sequences, order);
    }
  }

 private:
  struct Later {  // orders pairs of (time or step, step)
    bool operator()(const std::pair<double, size_t> &a, const std::pair<double, size_t> &b) const { return a > b; }
  };
  using Heap = std::priority_queue<std::pair<double, size_t>, std::vector<std::pair<double, size_t>>, Later>;

  size_t device(size_t step) const { return size_t(ir_.steps[step].device); }

  // Links each reader to its writer. If a step changes an array that it reads, the order of all uses of it is kept.
  void find_links() {
    followers_.assign(end_ - begin_, {});
    num_before_.assign(end_ - begin_, 0);
    std::vector<long> writer(ir_.values.size(), -1);
    std::vector<std::vector<size_t>> readers(ir_.values.size());
    const auto link = [&](long before, size_t after) {
      if (before < 0 || size_t(before) == after) return;
      followers_[size_t(before) - begin_].push_back(after);
      ++num_before_[after - begin_];
    };
    const auto write = [&](size_t value, size_t s) {
      link(writer[value], s);
      for (size_t reader : readers[value]) link(long(reader), s);
      readers[value].clear();
      writer[value] = long(s);
    };
    for (size_t s = begin_; s < end_; ++s) {
      const IrStep &step = ir_.steps[s];
      std::vector<int> changed;
      if (step.op) {
        const size_t num_inputs = ir_.num_node_inputs(step);
        changed = step.backward ? step.op->mutated_backward(step.attrs, num_inputs)
                                : step.op->mutated(step.attrs, num_inputs);
      }
      for (size_t k = 0; k < step.inputs.size(); ++k) {
        const size_t root = size_t(ir_.memory(step.inputs[k]));
        link(writer[root], s);
        if (std::count(changed.begin(), changed.end(), int(k)) > 0) {
          write(root, s);
        } else {
          readers[root].push_back(s);
        }
      }
      for (int v : step.outputs) {
        if (v >= 0) write(size_t(ir_.root(v)), s);
      }
    }
  }

  // Simulates the execution: the steps of each device in the order in which they start.
  std::vector<StepOrder> act_out() const {
    const size_t num_devices = ir_.request->devices.size();
    std::vector<StepOrder> sequences(num_devices);
    std::vector<Heap> known(num_devices), startable(num_devices);  // by earliest start; by position in the list
    std::vector<double> free(num_devices, 0), ready(end_ - begin_, 0);
    std::vector<int> waits_for = num_before_;
    for (size_t s = begin_; s < end_; ++s) {
      if (waits_for[s - begin_] == 0) known[device(s)].emplace(0.0, s);
    }
    for (size_t done = begin_; done < end_; ++done) {
      // Choose the device that can start a step first.
      size_t next = num_devices;
      double start = 0;
      for (size_t d = 0; d < num_devices; ++d) {
        while (!known[d].empty() && known[d].top().first <= free[d]) {
          startable[d].emplace(double(known[d].top().second), known[d].top().second);
          known[d].pop();
        }
        if (startable[d].empty() && known[d].empty()) continue;
        const double at = startable[d].empty() ? known[d].top().first : free[d];
        if (next == num_devices || at < start) {
          next = d;
          start = at;
        }
      }
      Heap &from = startable[next].empty() ? known[next] : startable[next];
      const size_t s = from.top().second;
      from.pop();
      sequences[next].push_back(s);
      free[next] = start + costs_[s];
      for (size_t after : followers_[s - begin_]) {
        ready[after - begin_] = std::max(ready[after - begin_], free[next]);
        if (--waits_for[after - begin_] == 0) known[device(after)].emplace(ready[after - begin_], after);
      }
    }
    return sequences;
  }

  // Merges the sequences to one list in which each step follows those it waits for, with few changes of device.
  void merge(const std::vector<StepOrder> &sequences, StepOrder *order) const {
    std::vector<size_t> at(sequences.size(), 0);
    std::vector<int> waits_for = num_before_;
    for (size_t left = end_ - begin_; left > 0;) {
      for (size_t d = 0; d < sequences.size(); ++d) {
        for (; at[d] < sequences[d].size() && waits_for[sequences[d][at[d]] - begin_] == 0; ++at[d], --left) {
          const size_t s = sequences[d][at[d]];
          order->push_back(s);
          for (size_t after : followers_[s - begin_]) --waits_for[after - begin_];
        }
      }
    }
  }

  const Ir &ir_;
  const std::vector<double> &costs_;
  size_t begin_ = 0, end_ = 0;
  std::vector<std::vector<size_t>> followers_;  // per step from begin_
  std::vector<int> num_before_;
};

}  // namespace

void schedule(Ir &ir, const std::vector<double> &costs) {
  const auto on_first = [&](const IrStep &step) { return step.device == ir.steps[0].device; };
  if (std::all_of(ir.steps.begin(), ir.steps.end(), on_first)) return;
  StepOrder order;
  Scheduler scheduler(ir, costs);
  scheduler.run(0, ir.num_forward, &order);
  scheduler.run(ir.num_forward, ir.steps.size(), &order);
  std::vector<int> moved(ir.steps.size());
  std::vector<IrStep> steps;
  for (size_t s : order) {
    moved[s] = int(steps.size());
    steps.push_back(std::move(ir.steps[s]));
  }
  for (IrStep &step : steps) {
    if (step.forward_step >= 0) step.forward_step = moved[size_t(step.forward_step)];
  }
  ir.steps = std::move(steps);
}

}  // namespace cohort::plan
