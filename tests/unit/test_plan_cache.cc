// SPDX-License-Identifier: Apache-2.0
// One plan for all that bind a network for the same shapes: what counts as the same, how long plans are kept, and that
// those who share one do not affect each other, even when they run at the same time.
#include "plan/plan_cache.hpp"

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "executor/executor.hpp"
#include "executor/invoke.hpp"
#include "group/group.hpp"

#include "support/unit.hpp"

using namespace cohort;

namespace {

Symbol op(const std::string &name, const AttrMap &attrs, const std::string &as, const std::vector<Symbol> &inputs) {
  return Symbol::create(name, attrs, as, {}, inputs);
}

// Has oneDNN primitives, a prologue in inference, and draws random numbers in training.
Symbol network(const std::string &filters = "8", const std::string &name = "conv") {
  Symbol net = op("Convolution", {{"kernel", "(3, 3)"}, {"num_filter", filters}}, name, {Symbol::variable("data")});
  net = op("BatchNorm", {{"fix_gamma", "False"}}, "norm", {net});
  net = op("Activation", {{"act_type", "relu"}}, "relu", {net});
  net = op("Dropout", {{"p", "0.5"}}, "drop", {net});
  net = op("FullyConnected", {{"num_hidden", "5"}}, "fc", {net});
  return op("SoftmaxOutput", {}, "softmax", {net});
}

std::shared_ptr<Executor> bind(const Symbol &symbol, int64_t batch, ExecutorOptions options = {},
                               GradReq req = GradReq::kWrite, Dtype dtype = Dtype::kFloat32) {
  SimpleBind what;
  what.shapes = {{"data", Shape{batch, 3, 9, 7}}};
  what.dtypes = {{"data", dtype}};
  what.grad_reqs.assign(symbol.list_arguments().size(), req);
  what.grad_reqs[0] = GradReq::kNull;
  options.num_threads = options.num_threads ? options.num_threads : 1;
  const auto executor = Executor::simple_bind(symbol, what, options);
  for (size_t i = 0; i < executor->args().size(); ++i) executor->args()[i].fill_uniform(-0.5, 0.5, i + 1);
  for (const NDArray &state : executor->aux()) state.fill(1);
  return executor;
}

// How many plans fn has compiled.
uint64_t compiled_by(const std::function<void()> &fn) {
  const uint64_t before = plan_cache_use().compiled;
  fn();
  return plan_cache_use().compiled - before;
}

// All results of one training step and one inference pass after it.
std::string bytes_after_step(Executor &executor) {
  std::string bytes;
  const auto add = [&](const std::vector<NDArray> &arrays) {
    for (const NDArray &array : arrays) {
      if (!array) continue;
      std::string part(array.bytes(), '\0');
      array.read(&part[0], part.size());
      bytes += part;
    }
  };
  executor.forward(true);
  executor.backward({});
  add(executor.outputs());
  add(executor.grads());
  add(executor.aux());
  executor.forward(false);
  add(executor.outputs());
  return bytes;
}

TEST(a_network_bound_twice_is_compiled_once) {
  release_plans();
  const Symbol symbol = network();
  std::vector<std::shared_ptr<Executor>> bound;
  CHECK_EQ(compiled_by([&] { bound.push_back(bind(symbol, 4)); }), 1u);
  CHECK_EQ(compiled_by([&] { bound.push_back(bind(symbol, 4)); }), 0u);
  CHECK_EQ(compiled_by([&] { bound.push_back(bind(network(), 4)); }), 0u);  // the same network, built again
  const auto differs = [&](const Symbol &net, int64_t batch, ExecutorOptions options = {},
                           GradReq req = GradReq::kWrite, Dtype dtype = Dtype::kFloat32) {
    return compiled_by([&] { bound.push_back(bind(net, batch, options, req, dtype)); });
  };
  CHECK_EQ(differs(symbol, 5), 1u);
  CHECK_EQ(differs(network("9"), 4), 1u);
  CHECK_EQ(differs(network("8", "other"), 4), 1u);  // errors name nodes
  CHECK_EQ(differs(symbol, 4, {}, GradReq::kAdd), 1u);
  CHECK_EQ(differs(symbol, 4, {}, GradReq::kNull), 1u);
  CHECK_EQ(differs(symbol, 4, {}, GradReq::kWrite, Dtype::kFloat64), 1u);
  ExecutorOptions options;
  options.num_threads = 2;
  const uint64_t for_two_threads = differs(symbol, 4, options);
  CHECK_EQ(for_two_threads, bound.back()->queue()->num_threads() > 1 ? 1u : 0u);
  options.num_threads = 0;
  options.context = {DeviceType::kCpu, 3};
  options.seed = 9;
  CHECK_EQ(differs(symbol, 4, options), 0u);
  CHECK_EQ(compiled_by([&] { bound[0]->forward(false); }), 1u);
  CHECK_EQ(compiled_by([&] { bound[1]->forward(false); }), 0u);
  options.constants = {"data"};
  CHECK_EQ(differs(symbol, 4, options), 1u);
}

// A loop is one step; its plan counts with as many steps as its body has.
TEST(plans_inside_nodes_are_counted) {
  const auto kept_by = [](int length) {
    release_plans();
    Symbol body = Symbol::variable("row");
    for (int i = 0; i < length; ++i) body = op("softmax", {}, "s" + std::to_string(i), {body});
    const Symbol loop = op("_foreach",
                           {{"num_outputs", "1"},
                            {"num_out_data", "1"},
                            {"in_data_locs", "(0,)"},
                            {"in_state_locs", "()"},
                            {"remain_locs", "()"}},
                           "loop", {body, Symbol::variable("data")});
    const Symbol net = op("_foreach",
                          {{"num_outputs", "1"},
                           {"num_out_data", "1"},
                           {"in_data_locs", "(0,)"},
                           {"in_state_locs", "()"},
                           {"remain_locs", "()"}},
                          "outer", {loop, Symbol::variable("all")});
    SimpleBind what;
    what.shapes = {{"all", Shape{2, 3, 4}}};
    what.grad_reqs = {GradReq::kNull};
    ExecutorOptions options;
    options.num_threads = 1;
    Executor::simple_bind(net, what, options);
    return plan_cache_use().kept_steps;
  };
  CHECK_EQ(kept_by(7) - kept_by(3), 4u);
}

TEST(placements_are_told_apart) {
  const Symbol a = op("relu", {{"__ctx_group__", "left"}}, "a", {Symbol::variable("x")});
  const auto net = [&](const char *group) { return op("sigmoid", {{"__ctx_group__", group}}, "b", {a}); };
  std::vector<std::shared_ptr<Executor>> bound;
  const auto compiled = [&](const char *group, const std::map<std::string, Context> &group2ctx) {
    SimpleBind what;
    what.shapes = {{"x", Shape{3}}};
    what.grad_reqs = {GradReq::kNull};
    ExecutorOptions options;
    options.group2ctx = group2ctx;
    options.num_threads = 1;
    return compiled_by([&] { bound.push_back(Executor::simple_bind(net(group), what, options)); });
  };
  const Context first{DeviceType::kCpu, 1}, second{DeviceType::kCpu, 2};
  CHECK_EQ(compiled("left", {{"left", first}, {"right", second}}), 1u);
  CHECK_EQ(compiled("right", {{"left", first}, {"right", second}}), 1u);
  CHECK_EQ(compiled("right", {{"left", second}, {"right", first}}), 0u);  // the same, on other devices
  CHECK_EQ(compiled("right", {{"left", first}, {"right", first}}), 1u);
}

TEST(devices_of_a_group_share_a_plan) {
  release_plans();
  GroupOptions options;
  for (int32_t d = 0; d < 4; ++d) options.contexts.push_back({DeviceType::kCpu, d});
  const Symbol symbol = network();
  for (const std::string &name : symbol.list_arguments()) {
    if (name != "data" && name != "softmax_label") options.param_names.push_back(name);
  }
  options.num_threads = 1;
  std::shared_ptr<Group> group;
  CHECK_EQ(compiled_by([&] {
             group = Group::create(symbol, {{"data", Shape{8, 3, 9, 7}}}, {{"softmax_label", Shape{8}}}, options);
           }),
           1u);
  const auto reshape = [&](int64_t batch) {
    return compiled_by([&] { group->reshape({{"data", Shape{batch, 3, 9, 7}}}, {{"softmax_label", Shape{batch}}}); });
  };
  CHECK_EQ(reshape(12), 1u);
  CHECK_EQ(reshape(8), 0u);
  CHECK_EQ(reshape(9), 0u);  // slices of 2, 2, 2 and 3 samples: these two plans
}

TEST(reshaping_back_compiles_nothing) {
  auto executor = bind(network(), 6);
  const auto reshape = [&](int64_t batch) {
    ReshapeOptions how;
    how.partial_shaping = how.allow_up_sizing = true;
    how.shapes = {{"data", Shape{batch, 3, 9, 7}}};
    return compiled_by([&] { executor = executor->reshape(how); });
  };
  CHECK_EQ(reshape(7), 1u);
  CHECK_EQ(reshape(6), 0u);
  CHECK_EQ(reshape(7), 0u);
}

TEST(applied_operators_share_plans_too) {
  const NDArray x = NDArray::create(Shape{7, 5}, Dtype::kFloat32, Context{});
  const auto apply = [&](const AttrMap &attrs) {
    return compiled_by([&] { invoke("_plus_scalar", attrs, {x}, {}, Context{}); });
  };
  CHECK_EQ(apply({{"scalar", "21"}}), 1u);
  CHECK_EQ(apply({{"scalar", "21"}}), 0u);
  CHECK_EQ(apply({{"scalar", "22"}}), 1u);
}

TEST(kept_plans_are_bounded_and_those_in_use_stay_known) {
  release_plans();
  const Symbol symbol = network();
  const auto used = bind(symbol, 2);
  for (int64_t batch = 3; plan_cache_use().kept_steps + 40 < kKeptSteps; ++batch) bind(symbol, batch);
  for (int64_t batch = 1000; batch < 1040; ++batch) bind(symbol, batch);
  const PlanCacheUse use = plan_cache_use();
  CHECK(use.kept_steps <= kKeptSteps);
  CHECK(use.plans > 40);
  CHECK_EQ(compiled_by([&] { bind(symbol, 1039); }), 0u);
  CHECK_EQ(compiled_by([&] { bind(symbol, 3); }), 1u);
  CHECK_EQ(compiled_by([&] { bind(symbol, 2); }), 0u);
  release_plans();
  CHECK_EQ(plan_cache_use().plans, 0u);
  CHECK_EQ(bytes_after_step(*used), bytes_after_step(*bind(symbol, 2)));
}

TEST(random_numbers_belong_to_who_binds) {
  ExecutorOptions options;
  options.seed = 1;
  const auto first = bind(network(), 4, options), same = bind(network(), 4, options);
  options.seed = 2;
  const auto other = bind(network(), 4, options);
  const std::string one = bytes_after_step(*first), two = bytes_after_step(*first);
  CHECK(one != two);
  CHECK(bytes_after_step(*other) != one);
  CHECK_EQ(bytes_after_step(*same), one);  // whatever numbers others have drawn
  CHECK_EQ(bytes_after_step(*same), two);
}

TEST(those_who_share_a_plan_run_at_the_same_time) {
  constexpr size_t kThreads = 4;
  constexpr int kSteps = 20;
  const Symbol symbol = network();
  std::vector<std::string> alone;
  const auto reference = bind(symbol, 4);
  for (int step = 0; step < kSteps; ++step) alone.push_back(bytes_after_step(*reference));

  std::vector<std::shared_ptr<Executor>> executors;
  for (size_t i = 0; i < kThreads; ++i) {
    ExecutorOptions options;
    options.context = {DeviceType::kCpu, int32_t(i)};
    executors.push_back(bind(symbol, 4, options));
  }
  std::vector<int> wrong(kThreads, 0);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int step = 0; step < kSteps; ++step) wrong[i] += bytes_after_step(*executors[i]) != alone[size_t(step)];
    });
  }
  for (std::thread &thread : threads) thread.join();
  for (const int count : wrong) CHECK_EQ(count, 0);
}

TEST(threads_that_bind_at_once_share_a_plan) {
  release_plans();
  const Symbol symbol = network();
  std::vector<std::shared_ptr<Executor>> executors(4);
  std::vector<std::thread> threads;
  for (auto &executor : executors) threads.emplace_back([&] { executor = bind(symbol, 3); });
  for (std::thread &thread : threads) thread.join();
  CHECK_EQ(plan_cache_use().plans, 1u);
  CHECK_EQ(compiled_by([&] { bind(symbol, 3); }), 0u);
}

}  // namespace

UNIT_MAIN()
