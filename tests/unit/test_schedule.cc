// SPDX-License-Identifier: Apache-2.0
// The order in which plans over several devices run their steps: a device does not wait while it has something to do;
// and which passes are worth several threads.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "executor/segments.hpp"
#include "plan/plan.hpp"

#include "support/unit.hpp"

namespace cohort {
namespace {

Symbol on(const char *group, Symbol symbol) { return symbol.with_attribute("__ctx_group__", group); }

// One layer at one time step.
Symbol layer(const char *group, const std::string &name, const Symbol &input) {
  return on(group, Symbol::create("FullyConnected", {{"num_hidden", "256"}, {"no_bias", "True"}}, name, {}, {input}));
}

struct Planned {
  Graph graph;
  Inferred inferred;
  Plan plan;
};

// Maps groups "even" and "odd" to cpu(0) and cpu(1).
Planned planned(const Symbol &symbol, const Shape &shape, bool separate_nodes = false) {
  Planned made;
  made.graph = Graph(symbol);
  std::vector<std::pair<std::string, Shape>> shapes;
  std::vector<std::pair<std::string, Dtype>> dtypes;
  for (const std::string &name : made.graph.argument_names()) {
    dtypes.emplace_back(name, Dtype::kFloat32);
    if (name.find("weight") == std::string::npos) shapes.emplace_back(name, shape);
  }
  infer_shapes(made.graph, shapes, &made.inferred);
  infer_dtypes(made.graph, dtypes, &made.inferred);
  PlanRequest request;
  request.graph = &made.graph;
  request.inferred = &made.inferred;
  request.grad_reqs.assign(made.graph.arguments.size(), GradReq::kWrite);
  request.devices = {get_device({DeviceType::kCpu, 0}), get_device({DeviceType::kCpu, 1})};
  request.group_devices = {{"even", 0}, {"odd", 1}};
  request.is_train = request.with_backward = true;
  request.separate_nodes = separate_nodes;
  made.plan = compile(request);
  return made;
}

// Layers 0, 2 on one device, 1, 3 on the other, for each of some inputs; listed input by input.
Symbol towers(int num_inputs) {
  std::vector<Symbol> heads;
  for (int t = 0; t < num_inputs; ++t) {
    Symbol at = Symbol::variable("x" + std::to_string(t), {});
    for (int l = 0; l < 4; ++l) {
      at = layer(l % 2 ? "odd" : "even", "t" + std::to_string(t) + "_layer" + std::to_string(l), at);
    }
    heads.push_back(at);
  }
  return Symbol::group(heads);
}

// The time that the steps [begin, end) take if a layer takes one second and everything else none, and devices overlap
// as their segments allow.
double seconds(const Plan &plan, size_t begin, size_t end) {
  std::map<int, double> free;
  std::vector<double> ends;
  double last = 0;
  for (const Segment &segment : cut_segments(plan, false)) {
    double &now = free[plan.steps[segment.begin].device];
    for (size_t before : segment.after) now = std::max(now, ends[before]);
    for (size_t s = segment.begin; s < segment.end; ++s) {
      if (s >= begin && s < end && plan.steps[s].label.find("FullyConnected") != std::string::npos) now += 1;
    }
    ends.push_back(now);
    last = std::max(last, now);
  }
  return last;
}

// Every value is made before it is read.
void check_order(const Plan &plan) {
  std::vector<size_t> made(plan.slots.size(), 0);
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    for (int v : plan.steps[s].outputs) {
      if (v >= 0) made[size_t(v)] = s + 1;
    }
  }
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    for (int v : plan.steps[s].inputs) {
      if (v >= 0) CHECK(made[size_t(v)] <= s);
    }
  }
}

TEST(a_pass_takes_several_threads_only_if_a_step_of_it_takes_some_hundred_microseconds) {
  const auto size_of = [](int64_t rows, int64_t columns) {
    return planned(layer("even", "fc", Symbol::variable("x", {})), Shape{rows, columns}).plan.forward_size;
  };
  CHECK(size_of(4, 32) == WorkSize::kBrief);
  CHECK(size_of(64, 64) == WorkSize::kSerial);  // 2 MFLOP
  CHECK(size_of(128, 128) == WorkSize::kSerial);
  CHECK(size_of(64, 1024) == WorkSize::kParallel);  // 34 MFLOP
}

TEST(a_pass_of_many_short_steps_takes_several_threads) {
  Symbol net = Symbol::variable("x", {});
  for (int i = 0; i < 30; ++i) net = layer("even", "fc" + std::to_string(i), net);  // 4 MFLOP each
  const Plan plan = planned(net, Shape{32, 256}).plan;
  CHECK(plan.forward_size == WorkSize::kParallel);
  CHECK(plan.backward_size == WorkSize::kParallel);
}

TEST(a_slow_operator_without_products_takes_several_threads_for_less) {
  const auto size_of = [](const char *op, int64_t rows) {
    return planned(Symbol::create(op, {}, "op", {}, {Symbol::variable("x", {})}), Shape{rows, 1000}).plan.forward_size;
  };
  CHECK(size_of("sort", 40) == WorkSize::kSerial);
  CHECK(size_of("sort", 100) == WorkSize::kParallel);
  CHECK(size_of("tanh", 80) == WorkSize::kSerial);
  CHECK(size_of("tanh", 200) == WorkSize::kParallel);
}

TEST(layers_that_alternate_between_devices_work_side_by_side) {
  const Planned made = planned(towers(6), Shape{64, 256});
  const Plan &plan = made.plan;
  check_order(plan);
  CHECK(plan.num_forward > 0);
  // 24 layers: two devices need 12 seconds, plus one to fill the pipeline. In the order of the list it would be 24.
  CHECK(seconds(plan, 0, plan.num_forward) <= 14);
  CHECK(seconds(plan, plan.num_forward, plan.steps.size()) <= 14);
}

TEST(devices_that_do_not_wait_keep_their_order) {
  Symbol left = Symbol::variable("x", {}), right = Symbol::variable("y", {});
  for (int l = 0; l < 4; ++l) {
    left = layer("even", "l" + std::to_string(l), left);
    right = layer("odd", "r" + std::to_string(l), right);
  }
  const Planned made = planned(Symbol::group({left, right}), Shape{64, 256});
  CHECK_EQ(seconds(made.plan, 0, made.plan.num_forward), 4.0);
  int last = -1;
  for (size_t s = 0; s < made.plan.num_forward; ++s) {
    CHECK(made.plan.steps[s].node > last);
    last = made.plan.steps[s].node;
  }
}

TEST(nodes_that_are_looked_at_one_by_one_keep_their_order) {
  const Planned made = planned(towers(6), Shape{64, 256}, true);
  for (size_t s = 1; s < made.plan.num_forward; ++s) {
    CHECK(made.plan.steps[s].node >= made.plan.steps[s - 1].node);
  }
}

TEST(the_same_network_is_planned_the_same_way) {
  const Planned one = planned(towers(5), Shape{64, 256}), two = planned(towers(5), Shape{64, 256});
  CHECK_EQ(one.plan.steps.size(), two.plan.steps.size());
  for (size_t s = 0; s < one.plan.steps.size(); ++s) CHECK_EQ(one.plan.steps[s].label, two.plan.steps[s].label);
}

}  // namespace
}  // namespace cohort

UNIT_MAIN()
