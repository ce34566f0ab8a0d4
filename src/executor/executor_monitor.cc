// SPDX-License-Identifier: Apache-2.0
// Forward and backward under a monitor: node by node, waiting after each, on a plan that fuses nothing, so that names
// and values are those of the symbol as bound (MON-01..05). Also the debug text.
#include <map>
#include <sstream>

#include "executor/executor.hpp"
#include "executor/planned_network.hpp"

namespace cohort {

void Executor::set_monitor(MonitorFunction function, bool all) {
  check_idle("set_monitor");  // a running monitor must not be replaced
  impl_->monitor = std::move(function);
  impl_->monitor_all = all;
}

void Executor::forward_observed(const MonitorFunction &function) {
  Impl &self = *impl_;
  check_idle("forward");
  check_arguments();
  for (size_t i = 0; i < self.arg_names.size(); ++i) function(self.arg_names[i], self.arrays.args[i]);
  for (size_t i = 0; i < self.aux_names.size(); ++i) function(self.aux_names[i], self.arrays.aux[i]);
  const MonitorFunction before = std::move(self.monitor);
  const bool all_before = self.monitor_all;
  set_monitor(function, false);  // inputs of a node are outputs of another
  try {
    forward(false);
  } catch (...) {
    set_monitor(before, all_before);
    throw;
  }
  set_monitor(before, all_before);
}

void PlannedNetwork::report_output(BoundPlan &program, int node, int output) {
  const int slot = program.plan().node_slots[size_t(node)][size_t(output)];
  const Node &n = *bound_.graph.nodes[size_t(node)];
  bound_.monitor(n.name + "_" + n.op->output_name(n.parsed, output), program.snapshot(slot));
}

void PlannedNetwork::monitored_forward(size_t end) {
  BoundPlan &program = *pass_.program;
  const Plan &plan = program.plan();
  size_t &begin = pass_.progress.step;
  for (size_t &i = pass_.progress.node; i < bound_.graph.nodes.size() && plan.node_end[i] <= end; ++i) {
    const Node &node = *bound_.graph.nodes[i];
    if (node.is_variable()) continue;
    if (bound_.monitor_all) {
      std::vector<std::string> names = node.op->input_names(node.parsed, int(node.inputs.size()));
      if (names.size() == 1 && node.op->variadic.empty() && !node.op->names_only_input) names[0] = "input0";
      for (size_t k = 0; k < bound_.graph.inputs[i].size(); ++k) {
        const Graph::Input &input = bound_.graph.inputs[i][k];
        const NDArray value = program.snapshot(plan.node_slots[size_t(input.node)][size_t(input.index)]);
        const Node &from = *bound_.graph.nodes[size_t(input.node)];
        if (from.is_variable() && !bound_.is_cut_input(input.node))
          bound_.monitor(from.name, value);  // the other part reports a cut edge
        bound_.monitor(node.name + "_" + names[k], value);
      }
    }
    program.run_forward(begin, plan.node_end[i]);
    begin = plan.node_end[i];
    for (int o = 0; o < node.num_outputs(); ++o) report_output(program, int(i), o);
  }
  program.run_forward(begin, end);
  begin = end;
}

void PlannedNetwork::monitored_backward(size_t end) {
  BoundPlan &program = *pass_.program;
  const Plan &plan = program.plan();
  size_t &begin = pass_.progress.step;
  for (size_t &r = pass_.progress.report; r < plan.reports.size(); ++r) {
    const GradientReport &report = plan.reports[r];
    const size_t made = size_t(report.step) + 1 - plan.num_forward;
    if (made > end) break;
    if (made > begin) {
      program.run_backward(begin, made);
      begin = made;
    }
    const Node &node = *bound_.graph.nodes[size_t(report.node)];
    bound_.monitor(node.name + "_backward_output" + std::to_string(report.input), program.snapshot(report.slot));
  }
  program.run_backward(begin, end);
  begin = end;
}

std::string Executor::debug_text() const {
  const Impl &self = *impl_;
  const Graph &graph = self.graph;
  TextStream out;
  out << "Symbol Outputs:\n";
  for (size_t h = 0; h < graph.heads.size(); ++h) {
    out << "\toutput[" << h << "]=" << graph.nodes[size_t(graph.heads[h].node)]->name << '(' << graph.heads[h].index
        << ")\n";
  }
  size_t gradients = 0;
  for (size_t i = 0; i < self.arg_names.size(); ++i) {
    if (self.reqs[i] == GradReq::kNull) continue;
    out << "\toutput[" << graph.heads.size() + gradients++ << "]=" << self.arg_names[i] << "_grad(0)\n";
  }
  const std::vector<bool> narrow = self.network->narrow_nodes();
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node &node = *graph.nodes[n];
    if (node.is_variable()) {
      out << "Variable:" << node.name << '\n';
      continue;
    }
    out << "--------------------\nOp:" << node.op->name << ", Name=" << node.name << "\nInputs:\n";
    for (size_t k = 0; k < graph.inputs[n].size(); ++k) {
      const Node &from = *graph.nodes[size_t(graph.inputs[n][k].node)];
      out << "\targ[" << k << "]=" << from.name << '(' << graph.inputs[n][k].index << ')';
      if (from.is_variable()) out << " version=0";
      out << '\n';
    }
    if (narrow[n]) out << "Computes in " << self.options.compute.dtype << '\n';
    if (!node.attrs.empty()) out << "Attrs:\n";
    for (const auto &[key, value] : node.attrs) out << '\t' << key << '=' << value << '\n';
  }
  self.network->each_planned([&](const PlannedNetwork &planned) { out << planned.roofline(); });
  out << "Total " << (memory().planned_bytes >> 20) << " MB allocated\n";
  out << "Total 11 TempSpace resource requested\n";
  return out.str();
}

}  // namespace cohort
