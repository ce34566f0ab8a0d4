// SPDX-License-Identifier: Apache-2.0
// cohort.hpp: groups, managers, what training needs beside, callbacks, threads.
#include <cohort/cohort.hpp>

#include <unistd.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cpp_support.hpp"

using namespace cohort;
using cpp_test::error_of;

namespace {

const std::vector<float> kX = {-4, -3, -2, -1, 1, 2, 3, 4}, kY = {-9, -7, -5, -3, 1, 3, 5, 7};

NDArray column(const std::vector<float> &values) { return NDArray::from_host(values, {int64_t(values.size()), 1}); }

Group line_group(Span<Context> contexts, const GroupOptions &options = {}) {
  return Group(cpp_test::line_network(), contexts, {{"fc_data", {8, 1}, COHORT_DTYPE_FLOAT32, "NC"}},
               {{"fit_label", {8, 1}, COHORT_DTYPE_FLOAT32, "NC"}}, true, options);
}

void train(Group &group, Optimizer &optimizer, int num_steps) {
  for (int i = 0; i < num_steps; ++i) {
    group.forward({column(kX)}, {column(kY)}, true);
    group.backward();
    group.update(optimizer);
  }
}

std::vector<float> params_of(const Group &group) {
  std::vector<float> values;
  const Params params = group.copy_params();
  for (const NDArray &array : params.arg.list())
    for (const float value : array.read<float>()) values.push_back(value);
  return values;
}

// A folder of this test's own, which is empty before and gone after.
struct Folder {
  Folder() {
    const char *const tmp = std::getenv("TMPDIR");
    path = std::string(tmp ? tmp : "/tmp") + "/cohort_cpp_XXXXXX";
    CHECK(mkdtemp(path.data()) != nullptr);
  }
  ~Folder() {
    for (const char *name : {"/line-symbol.json", "/line-0003.params", "/line.states", "/trace.json"})
      unlink((path + name).c_str());
    rmdir(path.c_str());
  }
  std::string path;
};

// A sum over the time axis, of any length: a symbol for each bucket.
Symbol any_length() {
  const Symbol sum = Symbol::create("sum", "total", {{"axis", 1}, {"keepdims", true}}, {Symbol::variable("data")});
  const Symbol fc = Symbol::create("FullyConnected", "fc", {{"num_hidden", 1}}, {sum});
  return Symbol::create("LinearRegressionOutput", "fit", {}, {fc, Symbol::variable("label")});
}

}  // namespace

HANDLE_TEST(a_group_of_two_devices_fits_a_line) {
  Group group = line_group({"cpu(0)", "cpu(1)"});
  Optimizer sgd("sgd", {{"learning_rate", 0.01}});
  train(group, sgd, 200);
  const std::vector<float> line = params_of(group);
  CHECK_NEAR(line.at(0), 2, 0.01);
  CHECK_NEAR(line.at(1), -1, 0.01);
  CHECK_EQ(sgd.get("num_update"), 200.0);
  sgd.set("learning_rate", 0.5);
  CHECK_EQ(sgd.get("learning_rate"), 0.5);
}

HANDLE_TEST(training_goes_on_from_a_checkpoint_to_the_same_bits) {
  const Folder folder;
  const Attrs settings = {{"learning_rate", 0.01}, {"momentum", 0.9}};
  Group whole = line_group({"cpu(0)", "cpu(1)"});
  Optimizer steady("sgd", settings);
  train(whole, steady, 3);
  Checkpoint::save(folder.path + "/line", 3, cpp_test::line_network(), whole.copy_params());
  steady.save_states(folder.path + "/line.states");
  train(whole, steady, 4);

  const Checkpoint loaded = Checkpoint::load(folder.path + "/line", 3);
  CHECK_EQ(loaded.symbol.to_json(), cpp_test::line_network().to_json());
  Group resumed = line_group({"cpu(0)", "cpu(1)"});
  CHECK_EQ(resumed.assign_params(loaded.params.arg, loaded.params.aux).num(), 0u);
  Optimizer again("sgd", settings);
  again.load_states(folder.path + "/line.states");
  train(resumed, again, 4);
  CHECK(params_of(resumed) == params_of(whole));

  Optimizer third("sgd", settings);
  third.load_states_memory(again.save_states_memory());
  CHECK_EQ(third.get("num_update"), 7.0);
  CHECK_EQ(error_of([&] { third.load_states_memory("no states"); }).code(), COHORT_ERROR_FORMAT);
  CHECK_EQ(Checkpoint::map(folder.path + "/line", 3, false).params.arg.num(), 2u);
  CHECK_EQ(error_of([&] { Checkpoint::load(folder.path + "/line", 4); }).code(), COHORT_ERROR_IO);
}

HANDLE_TEST(a_group_says_what_it_is_bound_to) {
  GroupOptions options;
  options.workload = {1, 3};
  options.inputs_need_grad = true;
  Group group = line_group({cpu(0), cpu(1)}, options);
  CHECK_EQ(group.num_contexts(), 2u);
  CHECK(group.context(1) == cpu(1));
  CHECK_EQ(group.batch_size(), 8);
  CHECK(group.slices() == (std::vector<Slice>{{0, 2}, {2, 8}}));
  CHECK(group.names(COHORT_GROUP_PARAMS) == (std::vector<std::string>{"fc_weight", "fc_bias"}));
  CHECK_EQ(group.descs(COHORT_GROUP_DATA).at(0).layout, "NC");
  CHECK(group.output_shapes().at(0).shape == (Shape{8, 1}));
  CHECK_EQ(group.axis(COHORT_GROUP_OUTPUTS, 0), 0);
  CHECK(group.decide_slices({{"a", {8, 2}}}) == (std::vector<int32_t>{0}));
  CHECK(group.sliced_shape({{"a", {8, 2}}}, 1).at(0).shape == (Shape{6, 2}));
  CHECK_EQ(group.executor(0).arg_map().count("fc_weight"), 1u);
  CHECK(group.memory(0).argument_bytes > 0);
  CHECK_EQ(error_of([&] { group.slice(2); }).code(), COHORT_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(error_of([&] { group.backward(); }).code(), COHORT_ERROR_STATE);

  group.forward_presliced({{column({1, 2})}, {column({3, 4, 5, 6, 7, 8})}},
                          {{column({1, 2})}, {column({3, 4, 5, 6, 7, 8})}}, true);
  group.backward();
  CHECK_EQ(group.output().read<float>().size(), 8u);
  CHECK_EQ(group.device_arrays(COHORT_GROUP_OUTPUTS, 0).at(1).read<float>().size(), 6u);
  CHECK(group.merged(COHORT_GROUP_INPUT_GRADS, 0).shape() == (Shape{8, 1}));
  CHECK_EQ(error_of([&] { group.forward_presliced({{column({1})}, {}}); }).code(), COHORT_ERROR_INVALID_ARGUMENT);

  group.reshape({{"fc_data", {4, 1}}}, {{"fit_label", {4, 1}}});
  CHECK_EQ(group.batch_size(), 4);
  CHECK_EQ(error_of([&] { group.bind({{"fc_data", {4, 1}}}); }).code(), COHORT_ERROR_STATE);
  group.bind({{"fc_data", {6, 1}}}, {{"fit_label", {6, 1}}}, true);
  CHECK_EQ(group.batch_size(), 6);
  group.wait();
}

HANDLE_TEST(slices_are_split_as_a_group_does) {
  CHECK(split_slices(7, {1, 2}, 2) == (std::vector<Slice>{{0, 2}, {2, 7}}));
  CHECK(split_slices(4, {}, 2) == (std::vector<Slice>{{0, 2}, {2, 4}}));
  CHECK_EQ(error_of([] { split_slices(4, {}, 8); }).code(), COHORT_ERROR_INVALID_ARGUMENT);
}

HANDLE_TEST(metrics_count_and_a_composite_keeps_its_childrens_closures) {
  Metric both("composite");
  both.add(Metric("mse"));
  both.add(Metric::custom(
      "largest",
      [](const std::vector<NDArray> &, const std::vector<NDArray> &preds) {
        return MetricSum{preds.at(0).read<float>().at(1), 1};
      },
      true));
  both.update({NDArray::from_host({1.0f, 2.0f}, {2})}, {NDArray::from_host({1.0f, 4.0f}, {2})});
  CHECK_EQ(both.num_children(), 2u);
  const std::vector<MetricValue> values = both.values();
  CHECK_EQ(values.at(0).name, "mse");
  CHECK_EQ(values.at(0).value, 2.0);
  CHECK_EQ(values.at(1).value, 4.0);
  CHECK_EQ(both.counters(1).num, 1.0);
  Metric child = both.child(1);
  both.reset();
  CHECK(std::isnan(child.value().value));
  both = Metric();
  child.update({}, {NDArray::from_host({1.0f, 6.0f}, {2})});
  CHECK_EQ(child.value().value, 6.0);
}

HANDLE_TEST(what_a_metric_throws_comes_out_of_the_update) {
  Metric bad = Metric::custom("bad", [](const auto &, const auto &) -> MetricSum { throw std::out_of_range("bad"); });
  Group group = line_group({"cpu(0)"});
  group.forward({column(kX)}, {column(kY)}, false);
  CHECK_THROWS(group.update_metric(bad, {column(kY)}), std::out_of_range, "bad");
  Metric mse("mse");
  group.update_metric(mse, {column(kY)});
  group.update_metric_presliced(mse, {{column(kY)}});
  CHECK_EQ(mse.counters().num, 2.0);
}

HANDLE_TEST(initializers_fill_by_name) {
  Group group = line_group({"cpu(0)", "cpu(1)"});
  const Initializer ones("one");
  for (size_t device = 0; device < 2; ++device) ones.apply(group.arrays(COHORT_GROUP_PARAMS, device));
  CHECK(params_of(group) == (std::vector<float>{1, 0}));
  NDArray weight = NDArray::zeros({2, 2});
  Initializer("xavier", {{"magnitude", 2}}, 5).fill("w", weight);
  CHECK(weight.read<float>().at(0) != 0);
  CHECK_EQ(error_of([] { Initializer("magic"); }).code(), COHORT_ERROR_NAME);
}

HANDLE_TEST(multipliers_and_schedules_decide_the_rate) {
  Optimizer sgd("sgd", {{"learning_rate", 1}});
  sgd.set_mult("w", 0.5, 0);
  CHECK_EQ(sgd.mult("w").lr_mult, 0.5);
  sgd.set_lr_schedule("factor", {{"step", 1}, {"factor", 0.5}});
  NDArray w = NDArray::full({1}, 1);
  sgd.update("w", w, NDArray::full({1}, 1));
  CHECK_EQ(w.read<float>().at(0), 0.5f);
  CHECK_EQ(error_of([&] { sgd.set("learning_rate", 1); }).code(), COHORT_ERROR_STATE);
  sgd.clear_lr_schedule();
  sgd.set("learning_rate", 1);
  CHECK_EQ(sgd.loss_scale().scale, 1.0);
}

HANDLE_TEST(a_manager_makes_a_bucket_when_its_key_comes) {
  int num_asked = 0;
  ManagerOptions options;
  options.default_bucket_key = "4";
  options.bucket_symbol = [&](const std::string &key) {
    ++num_asked;
    if (key == "9") throw std::out_of_range("no bucket 9");
    return any_length();
  };
  Manager manager(any_length(), {"cpu(0)", "cpu(1)"}, 2, {{"data", {2, 4}}}, {{"label", {2, 1}}}, options);
  const auto load = [&](const std::string &key, int64_t length) {
    manager.load_data_batch({NDArray::full({2, length}, 1)}, {NDArray::zeros({2, 1})}, key, {{"data", {2, length}}},
                            {{"label", {2, 1}}});
  };
  CHECK_EQ(error_of([&] { manager.forward(); }).code(), COHORT_ERROR_STATE);
  manager.set_params(Arrays{{"fc_weight", NDArray::full({1, 1}, 2)}, {"fc_bias", NDArray::zeros({1})}});
  load("3", 3);
  manager.forward(true);
  CHECK_EQ(manager.output().read<float>().at(0), 6.0f);
  manager.backward();
  Optimizer sgd("sgd", {{"learning_rate", 0.5}});
  manager.update(sgd);
  CHECK_EQ(num_asked, 1);
  CHECK_EQ(manager.num_buckets(), 2u);
  CHECK_EQ(manager.bucket(0).key, "3");
  CHECK_EQ(manager.current_group().num_contexts(), 2u);
  CHECK(manager.slices() == (std::vector<Slice>{{0, 1}, {1, 2}}));
  CHECK_EQ(manager.main_group().array(COHORT_GROUP_PARAMS, 0, 0).read<float>().at(0),
           manager.array(COHORT_GROUP_PARAMS, 0, 1).read<float>().at(0));
  CHECK_THROWS(load("9", 9), std::out_of_range, "no bucket 9");
  load("4", 4);
  CHECK_EQ(num_asked, 2);
  Metric mse("mse");
  manager.forward(false);
  manager.update_metric(mse, {NDArray::zeros({2, 1})});
  CHECK(mse.value().value > 0);
  const Arrays arg{{"fc_weight", NDArray::zeros({1, 1})}, {"fc_bias", NDArray::zeros({1})}};
  manager.copy_to(arg);
  CHECK(arg.array("fc_bias").read<float>().at(0) != 0);
  CHECK(manager.memory().argument_bytes > 0);
  CHECK_EQ(error_of([&] { manager.set_monitor([](const std::string &, const NDArray &) {}); }).code(),
           COHORT_ERROR_UNSUPPORTED);
}

HANDLE_TEST(monitors_report_what_ran) {
  Group group = line_group({"cpu(0)"});
  MonitorOptions options;
  options.filter = [](const std::string &name) { return name == "fc_output"; };
  options.statistic = [](const NDArray &array) { return invoke("max", {array}); };
  Monitor monitor(1, options);
  monitor.install(group);
  monitor.tic();
  group.forward({column(kX)}, {column(kY)}, true);
  const std::vector<MonitorEntry> entries = monitor.toc();
  CHECK_EQ(entries.size(), 1u);
  CHECK_EQ(entries[0].name, "fc_output");
  CHECK_EQ(entries[0].step, 1);
  CHECK_EQ(entries[0].values.at(0).size(), 1);
  CHECK_EQ(monitor.step(), 1);
  CHECK_EQ(error_of([] { Monitor(int64_t{0}); }).code(), COHORT_ERROR_INVALID_ARGUMENT);
}

HANDLE_TEST(a_groups_monitor_sees_each_device) {
  Group group = line_group({"cpu(0)", "cpu(1)"});
  int num_seen = 0;
  group.set_monitor([&](const std::string &, const NDArray &) { ++num_seen; });
  group.forward({column(kX)}, {column(kY)}, false);
  CHECK_EQ(num_seen, 4);
  Executor executor = group.executor(0);
  group = Group();
  executor.forward(false);
  CHECK_EQ(num_seen, 6);
}

HANDLE_TEST(traces_record_what_ran) {
  const Folder folder;
  TraceOptions options;
  options.flop_per_s = options.bfloat16_flop_per_s = options.byte_per_s = 1e9;
  Trace trace(options);
  Group group = line_group({"cpu(0)"});
  trace.start();
  trace.begin("training", "epoch 1");
  group.forward({column(kX)}, {column(kY)}, true);
  group.wait();
  trace.mark("training", "half");
  trace.counter("loss", 0.5);
  trace.end("training");
  trace.stop();
  CHECK(trace.info().num_events > 0);
  CHECK(trace.json().find("epoch 1") != std::string::npos);
  CHECK(!trace.totals(COHORT_TOTALS_BY_OPERATOR).empty());
  CHECK(!trace.table().empty());
  trace.write(folder.path + "/trace.json");
  trace.clear();
  CHECK_EQ(trace.info().num_events, 0u);
  CHECK_EQ(error_of([&] { trace.stop(); }).code(), COHORT_ERROR_STATE);
}

HANDLE_TEST(messages_come_to_each_receiver_and_closures_are_freed) {
  const auto counts = std::make_shared<std::array<std::atomic<int>, 3>>();
  const auto counting = [counts](size_t receiver) {
    return [counts, receiver](cohort_log_level, const std::string &) { ++(*counts)[receiver]; };
  };
  const auto make_manager = [](LogFunction log) {  // it logs its contexts
    ManagerOptions options;
    options.log = std::move(log);
    Manager(any_length(), {"cpu(0)"}, 2, {{"data", {2, 4}}}, {{"label", {2, 1}}}, options);
  };
  {
    const Log log(COHORT_LOG_INFO, counting(0));
    set_log(COHORT_LOG_INFO, counting(1));
    make_manager({});
    CHECK((*counts)[0] > 0);
    CHECK_EQ((*counts)[1].load(), (*counts)[0].load());
    const int before = (*counts)[0];
    make_manager(counting(2));
    CHECK((*counts)[2] > 0);
    CHECK_EQ((*counts)[0].load(), before);
    set_log(COHORT_LOG_WARNING, {});
  }
  CHECK_EQ(counts.use_count(), 2);  // here, and in `counting`
}

HANDLE_TEST(operators_of_the_callers_are_nodes_like_others) {
  const auto num_states = std::make_shared<int>(0);
  CustomOperator op;
  op.declare = [](const Attrs &) { return CustomNames{{"data"}, {}, {"output"}}; };
  op.infer_shape = [](const Attrs &, const std::vector<Desc> &known) { return CustomDescs{{}, {}, {known.at(0)}}; };
  op.create = [num_states](const Attrs &attrs, const Context &) {
    ++*num_states;
    return std::make_shared<double>(std::atof(attrs.at(0).value.c_str()));
  };
  const auto scale = [](const CustomPass &pass, const NDArray &from, NDArray &to) {
    invoke_into({to}, "_mul_scalar", {from}, {{"scalar", *static_cast<double *>(pass.state)}});
  };
  op.forward = [scale](CustomPass &pass) { scale(pass, pass.inputs.at(0), pass.outputs.at(0)); };
  op.backward = [scale](CustomPass &pass) { scale(pass, pass.head_grads.at(0), pass.gradients.at(0)); };
  register_custom("cpp_scale", op);
  CHECK_EQ(error_of([&] { register_custom("cpp_scale", op); }).code(), COHORT_ERROR_NAME);
  {
    const Symbol node =
        Symbol::create("Custom", "scaled", {{"op_type", "cpp_scale"}, {"factor", 3}}, {Symbol::variable("x")});
    NDArray x = NDArray::from_host({2.0f}, {1}), gradient = NDArray::zeros({1});
    Executor executor = Executor::bind(node, cpu(), {x}, {gradient});
    executor.forward(true);
    CHECK_EQ(executor.outputs().at(0).read<float>().at(0), 6.0f);
    executor.backward({NDArray::full({1}, 1)});
    CHECK_EQ(gradient.read<float>().at(0), 3.0f);
  }
  unregister_custom("cpp_scale");
  op = CustomOperator();
  CHECK(*num_states > 0);
  CHECK_EQ(num_states.use_count(), 1);

  CustomOperator bad;
  bad.declare = [](const Attrs &) -> CustomNames { throw std::out_of_range("undecided"); };
  bad.forward = [](CustomPass &) {};
  register_custom("cpp_bad", std::move(bad));
  CHECK_THROWS(Symbol::create("Custom", "b", {{"op_type", "cpp_bad"}}), std::out_of_range, "undecided");
  unregister_custom("cpp_bad");
}

// One set of parameters, an executor for each thread: all see the same numbers.
HANDLE_TEST(threads_run_executors_on_the_same_parameters) {
  const Symbol fc = Symbol::create("FullyConnected", "fc", {{"num_hidden", 4}}, {Symbol::variable("x")});
  NDArray weight = NDArray::zeros({4, 16});
  weight.fill_uniform(-1, 1, 3);
  const NDArray bias = NDArray::zeros({4}), x = NDArray::full({2, 16}, 1);
  std::vector<std::vector<float>> found(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < found.size(); ++i)
    threads.emplace_back([&, i] {
      Executor executor = Executor::bind(
          fc, cpu(int32_t(i)), {x.copy(cpu(int32_t(i))), weight.copy(cpu(int32_t(i))), bias.copy(cpu(int32_t(i)))});
      for (int pass = 0; pass < 20; ++pass) executor.forward(false);
      found[i] = executor.outputs().at(0).read<float>();
    });
  for (std::thread &thread : threads) thread.join();
  for (const std::vector<float> &values : found) CHECK(values == found[0]);
}

TEST(no_handle_is_left) {
  CHECK_EQ(live_handles(), 0u);
  CHECK_EQ(detail::closure_table().closures.size(), 0u);
}

UNIT_MAIN()
