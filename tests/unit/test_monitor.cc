// SPDX-License-Identifier: Apache-2.0
// The monitor object: what it reports, when, and in which order (contract MON-06..10).
#include "executor/monitor.hpp"

#include "base/error.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

std::shared_ptr<Executor> bound() {
  const Symbol fc =
      Symbol::create("FullyConnected", {{"num_hidden", "2"}, {"no_bias", "1"}}, "fc", {}, {Symbol::variable("data")});
  const Symbol act = Symbol::create("Activation", {{"act_type", "relu"}}, "act", {}, {fc});
  SimpleBind what;
  what.shapes = {{"data", Shape{1, 2}}};
  what.grad_reqs = {GradReq::kNull, GradReq::kNull};
  const auto executor = Executor::simple_bind(act, what, ExecutorOptions());
  const float data[] = {3, 4}, weight[] = {1, 0, 0, 1};
  executor->args()[0].write(data, sizeof data);
  executor->args()[1].write(weight, sizeof weight);
  return executor;
}

std::string names_of(const std::vector<MonitorEntry> &entries) {
  std::string names;
  for (const MonitorEntry &entry : entries) names += (names.empty() ? "" : " ") + entry.name;
  return names;
}

std::string watch(const MonitorOptions &options) {
  const auto executor = bound();
  Monitor monitor(options);
  executor->set_monitor(monitor.function(), false);
  monitor.add([executor] { return executor; });
  monitor.tic();
  executor->forward(false);
  return names_of(monitor.toc());
}

}  // namespace

TEST(outputs_come_first_then_arguments) {
  CHECK_EQ(watch({}), "fc_output act_output data fc_weight");
  MonitorOptions sorted;
  sorted.sort = true;
  CHECK_EQ(watch(sorted), "act_output data fc_output fc_weight");
}

TEST(a_pattern_matches_from_the_start_or_anywhere) {
  MonitorOptions options;
  options.pattern = "fc_w";
  CHECK_EQ(watch(options), "fc_weight");
  options.pattern = "output";
  CHECK_EQ(watch(options), "");
  options.anchored = false;
  CHECK_EQ(watch(options), "fc_output act_output");
  options.pattern_of_toc = false;
  CHECK_EQ(watch(options), "fc_output act_output data fc_weight");
  options.pattern = "(";
  CHECK_THROWS(Monitor{options}, Error, "pattern");
  MonitorOptions never;
  never.interval = 0;
  CHECK_THROWS(Monitor{never}, Error, "at least 1");
}

TEST(the_statistic_is_the_norm_over_the_root_of_the_size) {
  const auto executor = bound();
  Monitor monitor({});
  monitor.add([executor] { return executor; });
  monitor.tic();
  const std::vector<MonitorEntry> entries = monitor.toc();
  CHECK_EQ(entries[0].name, "data");
  CHECK_NEAR(double(entries[0].values[0].data_as<float>()[0]), 3.5355339, 1e-6);
  CHECK_EQ(entries[0].text().back(), '\t');
  MonitorOptions whole;
  whole.statistic = [](const NDArray &array) { return std::vector<NDArray>{array, array}; };
  Monitor other(whole);
  other.add([executor] { return executor; });
  other.tic();
  CHECK_EQ(other.toc()[0].text(), "[3 4]\t[3 4]\t");
}

TEST(only_batches_on_the_interval_are_reported) {
  const auto executor = bound();
  MonitorOptions options;
  options.interval = 2;
  Monitor monitor(options);
  monitor.add([executor] { return executor; });
  for (int64_t batch = 1; batch <= 4; ++batch) {
    monitor.tic();
    const std::vector<MonitorEntry> entries = monitor.toc();
    CHECK_EQ(entries.empty(), batch % 2 == 0);
    if (!entries.empty()) CHECK_EQ(entries[0].step, batch);
    CHECK(monitor.toc().empty());
  }
  CHECK_EQ(monitor.step(), 4);
}

TEST(an_executor_bound_anew_is_followed) {
  std::shared_ptr<Executor> executor = bound();
  Monitor monitor({});
  monitor.add([&executor] { return executor; });
  executor = bound();
  executor->args()[0].fill(2);
  monitor.tic();
  CHECK_NEAR(double(monitor.toc()[0].values[0].data_as<float>()[0]), 2, 1e-6);
}

UNIT_MAIN()
