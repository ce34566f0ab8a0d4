// SPDX-License-Identifier: Apache-2.0
// Assigns steps to devices: by __ctx_group__ if a map is given (EXE-10), otherwise all to the default device. A value
// read on another device is copied by a step on the reader's device, or on the GPU if only one of the two is one.
#include <map>

#include "base/error.hpp"
#include "plan/ir.hpp"

namespace cohort::plan {
namespace {

// Returns -1 if the node names no group.
int group_device(const std::map<std::string, int> &group_devices, const Node &node) {
  const auto group = node.attrs.find("__ctx_group__");
  if (group_devices.empty() || group == node.attrs.end()) return -1;
  const auto found = group_devices.find(group->second);
  if (found == group_devices.end()) {
    throw Error(Code::kDevice, text("node '", node.name, "': no context is given for the group '", group->second, "'"),
                node.name);
  }
  return found->second;
}

}  // namespace
}  // namespace cohort::plan

namespace cohort {

std::vector<int> place_nodes(const Graph &graph, const std::map<std::string, int> &group_devices,
                             const std::map<int, int> &fixed) {
  std::vector<int> device(graph.nodes.size(), -1);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    device[n] = plan::group_device(group_devices, *graph.nodes[n]);
    const auto given = fixed.find(int(n));
    if (given != fixed.end() && device[n] < 0) device[n] = given->second;
    if (device[n] >= 0 || graph.nodes[n]->is_variable()) continue;
    for (const Graph::Input &input : graph.inputs[n]) {  // a node without a group follows its inputs
      if (device[n] < 0) device[n] = device[size_t(input.node)];
    }
    if (device[n] < 0) device[n] = 0;
  }
  for (size_t n = graph.nodes.size(); n-- > 0;) {  // a variable without a group follows its reader
    if (graph.nodes[n]->is_variable()) continue;
    for (const Graph::Input &input : graph.inputs[n]) {
      if (device[size_t(input.node)] < 0) device[size_t(input.node)] = device[n];
    }
  }
  for (int &d : device) d = d < 0 ? 0 : d;
  return device;
}

}  // namespace cohort

namespace cohort::plan {

void assign_devices(Ir &ir) {
  if (ir.request->devices.size() == 1) return;
  const std::vector<int> device = place_nodes(*ir.request->graph, ir.request->group_devices, ir.request->fixed_devices);
  for (size_t n = 0; n < device.size(); ++n) {
    for (int v : ir.node_values[n]) ir.values[size_t(v)].device = device[n];
  }
  for (IrValue &value : ir.values) {  // a view is on the device of its root
    if (value.alias >= 0) value.device = ir.values[size_t(ir.root(value.alias))].device;
  }
  std::map<std::pair<int, int>, int> copies;  // (value, device) -> its copy there
  std::vector<IrStep> steps;
  for (IrStep &step : ir.steps) {
    step.device = device[size_t(step.node)];
    for (int &input : step.inputs) {
      if (ir.values[size_t(input)].device == step.device) continue;
      const auto known = copies.find({input, step.device});
      if (known != copies.end() && !ir.changes(input)) {
        input = known->second;
        continue;
      }
      IrValue value;
      value.spec = ir.values[size_t(input)].spec;
      value.device = step.device;
      IrStep copy;
      copy.kernel = "_CrossDeviceCopy";
      copy.op = &get_op("_CrossDeviceCopy");
      copy.attrs = copy.op->parse({});
      copy.node = step.node;
      copy.device = ir.copying_device(ir.values[size_t(input)].device, step.device);
      copy.inputs = {input};
      copy.outputs = {ir.add_value(std::move(value))};
      copies[{input, step.device}] = copy.outputs[0];
      input = copy.outputs[0];
      steps.push_back(std::move(copy));
    }
    steps.push_back(std::move(step));
  }
  ir.steps = std::move(steps);
  ir.num_forward = ir.steps.size();
}

}  // namespace cohort::plan
