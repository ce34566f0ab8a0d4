// SPDX-License-Identifier: Apache-2.0
// cohort.hpp: the members of MXNet's mxnet::Executor, each by what it gives.
#include <cohort/cohort.hpp>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "cpp_support.hpp"

using namespace cohort;
using cpp_test::error_of;

namespace {

// y = x w^T + b over two samples of two numbers.
const std::vector<float> kX = {1, 2, 3, 4}, kW = {10, 1};
const std::vector<float> kY = {13, 35};

Symbol layer() { return Symbol::create("FullyConnected", "fc", {{"num_hidden", 1}}, {Symbol::variable("x")}); }

struct BoundLayer {
  explicit BoundLayer(const ExecutorOptions &options = {})
      : args{NDArray::from_host(kX, {2, 2}), NDArray::from_host(kW, {1, 2}), NDArray::from_host({1.0f}, {1})},
        grads{NDArray(), NDArray::zeros({1, 2}), NDArray::zeros({1})},
        executor(Executor::bind(layer(), cpu(), args, grads, {}, {}, options)) {}
  std::vector<NDArray> args, grads;
  Executor executor;
};

}  // namespace

HANDLE_TEST(bind_uses_the_callers_arrays) {
  BoundLayer bound;
  bound.executor.forward();
  CHECK(bound.executor.outputs().at(0).read<float>() == kY);
  bound.args[2].fill(2);
  bound.executor.forward();
  CHECK_EQ(bound.executor.outputs().at(0).read<float>().at(0), 14.0f);
  CHECK_EQ(error_of([&] { Executor::bind(layer(), cpu(), {bound.args[0]}); }).code(), COHORT_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(error_of([&] { Executor::bind(layer(), cpu(1), bound.args); }).code(), COHORT_ERROR_DEVICE);
}

HANDLE_TEST(backward_writes_or_adds_as_grad_req_says) {
  BoundLayer bound;
  const NDArray ones = NDArray::full({2, 1}, 1);
  bound.executor.forward(true);
  bound.executor.backward({ones});
  bound.executor.backward({ones});
  CHECK(bound.grads[1].read<float>() == (std::vector<float>{4, 6}));
  CHECK_EQ(bound.executor.grad_req(0), COHORT_GRAD_NULL);
  CHECK_EQ(bound.executor.grad_req(1), COHORT_GRAD_WRITE);

  Executor adding =
      Executor::bind(layer(), cpu(), bound.args, bound.grads, {COHORT_GRAD_NULL, COHORT_GRAD_ADD, COHORT_GRAD_NULL});
  adding.forward(true);
  adding.backward({ones});
  CHECK(bound.grads[1].read<float>() == (std::vector<float>{8, 12}));
  CHECK_EQ(error_of([&] { adding.backward(); }).code(), COHORT_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(error_of([&] { adding.backward({NDArray::zeros({3, 1})}); }).code(), COHORT_ERROR_SHAPE);
}

HANDLE_TEST(simple_bind_makes_zeros_and_the_gradients_asked_for) {
  ExecutorOptions options;
  options.grad_req = std::map<std::string, std::string>{{"fc_weight", "write"}};
  Executor executor = Executor::simple_bind(layer(), "cpu(1)", {{"x", {2, 2}}}, options);
  CHECK(executor.context() == cpu(1));
  CHECK(executor.array(COHORT_EXECUTOR_ARGS, "fc_weight").shape() == (Shape{1, 2}));
  CHECK_EQ(executor.grad_map().size(), 1u);
  CHECK_EQ(executor.grad_map().count("fc_weight"), 1u);
  CHECK(!executor.array(COHORT_EXECUTOR_GRADS, 0));
  executor.set_inputs(Arrays{{"x", NDArray::from_host(kX, {2, 2})}});
  executor.copy_params_from(Arrays{{"fc_weight", NDArray::from_host(kW, {1, 2})}, {"more", NDArray::zeros({1})}},
                            Arrays(nullptr), true);
  executor.forward();
  CHECK(executor.outputs().at(0).read<float>() == (std::vector<float>{12, 34}));
  options.grad_req = std::vector<std::string>{"null", "write"};
  CHECK_EQ(error_of([&] {
             Executor::simple_bind(layer(), cpu(), {{"x", {2, 2}}}, options);
           }).code(),
           COHORT_ERROR_INVALID_ARGUMENT);
  options.grad_req = "sometimes";
  CHECK_EQ(error_of([&] {
             Executor::simple_bind(layer(), cpu(), {{"x", {2, 2}}}, options);
           }).code(),
           COHORT_ERROR_INVALID_ARGUMENT);
}

HANDLE_TEST(maps_hold_live_arrays_by_name) {
  const Symbol net = Symbol::create("BatchNorm", "bn", {}, {Symbol::variable("x")});
  Executor executor = Executor::simple_bind(net, cpu(), {{"x", {2, 3}}});
  CHECK_EQ(executor.arg_map().size(), 3u);
  CHECK_EQ(executor.aux_map().count("bn_moving_mean"), 1u);
  executor.aux_map().at("bn_moving_mean").fill(7);
  CHECK_EQ(executor.array(COHORT_EXECUTOR_AUX, "bn_moving_mean").read<float>().at(2), 7.0f);
  CHECK_EQ(executor.num_arrays(COHORT_EXECUTOR_OUTPUTS), 1u);
  CHECK_EQ(executor.name(COHORT_EXECUTOR_OUTPUTS, 0), "bn_output");
  CHECK_EQ(executor.symbol().to_json(), net.to_json());
}

HANDLE_TEST(partial_forward_counts_down_to_the_same_outputs) {
  BoundLayer bound;
  int32_t left = 1;
  for (int32_t step = 0; left > 0; ++step) left = bound.executor.partial_forward(false, step);
  CHECK_EQ(left, 0);
  CHECK(bound.executor.outputs().at(0).read<float>() == kY);
  CHECK_EQ(bound.executor.partial_forward(false, 1000), 0);
}

HANDLE_TEST(reshape_shares_parameters_and_takes_the_monitor_over) {
  BoundLayer bound;
  std::vector<std::string> seen;
  bound.executor.set_monitor([&](const std::string &name, const NDArray &array) {
    seen.push_back(name);
    CHECK_EQ(array.shape().size(), 2u);
  });
  Executor smaller = bound.executor.reshape({{"x", {1, 2}}});
  { const Executor gone = std::move(bound.executor); }
  smaller.forward();
  CHECK(smaller.outputs().at(0).read<float>() == (std::vector<float>{13}));
  CHECK(seen == (std::vector<std::string>{"fc_output"}));
  CHECK_EQ(error_of([&] { smaller.reshape({{"x", {3, 2}}}); }).code(), COHORT_ERROR_SHAPE);
  ReshapeOptions growing;
  growing.allow_up_sizing = true;
  CHECK(smaller.reshape({{"x", {3, 2}}}, growing).outputs().at(0).shape() == (Shape{3, 1}));
}

HANDLE_TEST(what_a_monitor_throws_comes_out_of_the_pass) {
  BoundLayer bound;
  bound.executor.set_monitor([](const std::string &name, const NDArray &) { throw std::runtime_error("saw " + name); });
  CHECK_THROWS(bound.executor.forward(), std::runtime_error, "saw fc_output");
  bound.executor.set_monitor({});
  bound.executor.forward();
  CHECK(bound.executor.outputs().at(0).read<float>() == kY);
}

HANDLE_TEST(the_plan_is_printed) {
  BoundLayer bound;
  bound.executor.forward();
  std::ostringstream out;
  bound.executor.print(out);
  CHECK(out.str().find("fc") != std::string::npos);
  CHECK(out.str().find("Total") != std::string::npos);
  CHECK(bound.executor.memory().argument_bytes > 0);
}

HANDLE_TEST(layers_are_placed_by_group2ctx) {
  const Symbol lower = Symbol::create("exp", "a", {{"__ctx_group__", "lower"}}, {Symbol::variable("x")});
  const Symbol upper = Symbol::create("negative", "b", {{"__ctx_group__", "upper"}}, {lower});
  ExecutorOptions options;
  options.group2ctx = {{"lower", cpu(0)}, {"upper", cpu(1)}};
  Executor executor = Executor::simple_bind(upper, cpu(), {{"x", {1}}}, options);
  executor.forward();
  CHECK(executor.outputs().at(0).context() == cpu(1));
  CHECK_EQ(executor.outputs().at(0).read<float>().at(0), -1.0f);
  options.group2ctx.erase("upper");
  CHECK_EQ(error_of([&] { Executor::simple_bind(upper, cpu(), {{"x", {1}}}, options); }).code(), COHORT_ERROR_DEVICE);
}

HANDLE_TEST(executors_share_memory_and_pools_of_arrays) {
  ExecutorOptions options;
  Arrays pool;
  options.shared_data = &pool;
  Executor first = Executor::simple_bind(layer(), cpu(), {{"x", {4, 2}}}, options);
  CHECK_EQ(pool.num(), 3u);
  options.shared_executor = &first;
  options.shared_arg_names = {"fc_weight", "fc_bias"};
  Executor second = Executor::simple_bind(layer(), cpu(), {{"x", {2, 2}}}, options);
  first.array(COHORT_EXECUTOR_ARGS, "fc_weight").fill(3);
  CHECK_EQ(second.array(COHORT_EXECUTOR_ARGS, "fc_weight").read<float>().at(0), 3.0f);
  CHECK_EQ(second.array(COHORT_EXECUTOR_ARGS, 0).data(), first.array(COHORT_EXECUTOR_ARGS, 0).data());
}

HANDLE_TEST(a_calibration_notes_the_ranges_of_values) {
  BoundLayer bound;
  Calibration calibration(COHORT_CALIBRATION_MIN_MAX);
  CHECK_EQ(error_of([&] { calibration.ranges(); }).code(), COHORT_ERROR_STATE);
  calibration.observe(bound.executor);
  CHECK_EQ(calibration.range("fc_output").second, 35.0);
  CHECK_EQ(Calibration::from(calibration.ranges()).range("x").second, 4.0);
}

TEST(no_handle_is_left) { CHECK_EQ(live_handles(), 0u); }

UNIT_MAIN()
