// SPDX-License-Identifier: Apache-2.0
// The executor over point-wise graphs: gradients, grad_req, views, repeated and partial runs, reshape, failures.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/settings.hpp"
#include "executor/executor.hpp"
#include "executor/invoke.hpp"

#include "support/unit.hpp"

using namespace cohort;

namespace {

NDArray floats(const Shape &shape, const std::vector<float> &values) {
  NDArray array = NDArray::create(shape, Dtype::kFloat32, Context{});
  array.write(values.data(), values.size() * sizeof(float));
  return array;
}

std::vector<float> values_of(const NDArray &array) {
  std::vector<float> values(size_t(array.size()));
  array.read(values.data(), values.size() * sizeof(float));
  return values;
}

void assert_floats(const NDArray &array, const std::vector<float> &expected) {
  const std::vector<float> found = values_of(array);
  CHECK_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    if (!(std::abs(found[i] - expected[i]) <= 1e-5f * (1 + std::abs(expected[i])))) {
      unit::fail(__FILE__, __LINE__, text("element ", i, ": expected ", expected[i], ", found ", found[i]));
    }
  }
}

Symbol op(const std::string &name, const std::vector<Symbol> &inputs, const AttrMap &attrs = {},
          const std::string &as = "") {
  return Symbol::create(name, attrs, as, {}, inputs);
}

struct Bound {
  std::vector<NDArray> args, grads;
  std::shared_ptr<Executor> executor;
};

Bound bind(const Symbol &symbol, std::vector<NDArray> args, GradReq req, ExecutorOptions options = {}) {
  Bound bound;
  bound.args = args;
  for (const NDArray &a : args) bound.grads.push_back(NDArray::create(a.shape(), a.dtype(), a.context()));
  options.num_threads = 1;
  bound.executor = Executor::bind(symbol, args, bound.grads, std::vector<GradReq>(args.size(), req), {}, options);
  return bound;
}

template <typename Fn>
Error error_of(Fn fn) {
  try {
    fn();
  } catch (const Error &e) {
    return e;
  }
  unit::fail(__FILE__, __LINE__, "expected an error");
}

const Symbol kA = Symbol::variable("a"), kB = Symbol::variable("b");

TEST(a_product_and_its_gradients) {
  // (a * b + a)^2: d/da = 2 (a b + a)(b + 1), d/db = 2 (a b + a) a
  const Symbol y = op("square", {op("elemwise_add", {op("elemwise_mul", {kA, kB}), kA})});
  Bound b = bind(y, {floats({2}, {1, 2}), floats({2}, {3, 4})}, GradReq::kWrite);
  b.executor->forward(true);
  assert_floats(b.executor->outputs()[0], {16, 100});
  b.executor->backward({floats({2}, {1, 1})});
  assert_floats(b.grads[0], {2 * 4 * 4, 2 * 10 * 5});
  assert_floats(b.grads[1], {2 * 4 * 1, 2 * 10 * 2});
}

TEST(add_accumulates_and_backward_may_be_repeated) {
  const Symbol y = op("elemwise_mul", {op("tanh", {kA}), kB});
  Bound b = bind(y, {floats({1}, {0.5f}), floats({1}, {2})}, GradReq::kAdd);
  b.executor->forward(true);
  const NDArray head = floats({1}, {1});
  for (int i = 0; i < 3; ++i) b.executor->backward({head});
  const float t = std::tanh(0.5f);
  assert_floats(b.grads[0], {3 * 2 * (1 - t * t)});
  assert_floats(b.grads[1], {3 * t});
}

TEST(a_view_is_no_step_and_gradients_pass_through_it) {
  const Symbol y = op("square", {op("Reshape", {kA}, {{"shape", "(3, 2)"}})});
  Bound b = bind(y, {floats({2, 3}, {1, 2, 3, 4, 5, 6})}, GradReq::kWrite);
  b.executor->forward(true);
  assert_floats(b.executor->outputs()[0], {1, 4, 9, 16, 25, 36});
  b.executor->backward({floats({3, 2}, {1, 1, 1, 1, 1, 1})});
  assert_floats(b.grads[0], {2, 4, 6, 8, 10, 12});
}

TEST(one_output_listed_twice_gets_the_sum_of_its_head_gradients) {
  const Symbol y = op("square", {kA});
  Bound b = bind(Symbol::group({y, y, kA}), {floats({1}, {3})}, GradReq::kWrite);
  b.executor->forward(true);
  assert_floats(b.executor->outputs()[0], {9});
  assert_floats(b.executor->outputs()[1], {9});
  CHECK(b.executor->outputs()[2].same_memory(b.args[0]));
  b.executor->backward({floats({1}, {10}), floats({1}, {1}), floats({1}, {5})});
  assert_floats(b.grads[0], {11 * 6 + 5});
}

TEST(an_argument_without_a_path_gets_zeros) {
  const Symbol y = op("elemwise_add", {op("BlockGrad", {kA}), kB});
  Bound b = bind(y, {floats({1}, {3}), floats({1}, {4})}, GradReq::kWrite);
  b.grads[0].fill(7);
  b.executor->forward(true);
  b.executor->backward({floats({1}, {2})});
  assert_floats(b.grads[0], {0});
  assert_floats(b.grads[1], {2});
}

TEST(backward_after_an_inference_pass_and_before_any) {
  const Symbol y = op("exp", {kA});
  Bound b = bind(y, {floats({1}, {1})}, GradReq::kWrite);
  CHECK_EQ(int(error_of([&] { b.executor->backward({floats({1}, {1})}); }).code()), int(Code::kState));
  b.executor->forward(false);
  b.executor->backward({floats({1}, {2})});
  assert_floats(b.grads[0], {2 * std::exp(1.0f)});
}

TEST(head_gradients_are_checked) {
  const Symbol y = op("exp", {kA}, {}, "y");
  Bound b = bind(y, {floats({2}, {1, 1})}, GradReq::kWrite);
  b.executor->forward(true);
  CHECK_EQ(int(error_of([&] { b.executor->backward({}); }).code()), int(Code::kInvalidArgument));
  CHECK_EQ(int(error_of([&] { b.executor->backward({floats({3}, {1, 1, 1})}); }).code()), int(Code::kShape));
  const NDArray one = floats({2}, {1, 1});
  CHECK_EQ(int(error_of([&] { b.executor->backward({one, one}); }).code()), int(Code::kInvalidArgument));
  b.executor->backward({one});
  assert_floats(b.grads[0], {std::exp(1.0f), std::exp(1.0f)});
}

TEST(partial_forward_runs_node_by_node) {
  const Symbol y = op("elemwise_add", {op("square", {kA}), op("exp", {kB})});  // nodes: a, square, b, exp, add
  Bound b = bind(y, {floats({1}, {2}), floats({1}, {0})}, GradReq::kWrite);
  int step = 0, left = 1;
  while (left > 0) left = b.executor->partial_forward(true, step++);
  CHECK_EQ(step, 5);
  assert_floats(b.executor->outputs()[0], {5});
  CHECK_EQ(b.executor->partial_forward(true, 5), 0);
  b.executor->backward({floats({1}, {1})});
  assert_floats(b.grads[0], {4});
}

TEST(a_pass_that_is_abandoned_fails_what_it_would_have_written) {
  const Bound f = bind(op("elemwise_mul", {kA, kB}), {floats({2}, {1, 2}), floats({2}, {3, 4})}, GradReq::kWrite);
  const NDArray output = f.executor->outputs()[0];
  f.executor->prepare_forward(true);
  CHECK(error_of([&] { f.executor->forward(true); }).code() == Code::kState);
  f.executor->abandon("not begun");
  f.executor->forward(true);
  assert_floats(output, {3, 8});
  f.executor->prepare_forward(true);
  f.executor->begin();
  f.executor->abandon("another device failed");
  const Error unwritten = error_of([&] { values_of(output); });
  CHECK(unwritten.code() == Code::kExecution);
  CHECK(std::string(unwritten.what()).find("another device failed") != std::string::npos);
  CHECK(error_of([&] { f.executor->backward({floats({2}, {1, 1})}); }).code() == Code::kState);
  f.executor->prepare_forward(true);
  f.executor->begin();
  CHECK(f.executor->sync_nodes().empty());
  CHECK(f.executor->advance() == PassStop::kEnd);
  assert_floats(output, {3, 8});
}

TEST(a_monitor_sees_every_node_of_the_symbol) {
  const Symbol y = op("exp", {op("square", {kA}, {}, "sq")}, {}, "y");
  Bound b = bind(y, {floats({1}, {2})}, GradReq::kWrite);
  std::vector<std::string> names;
  b.executor->set_monitor([&](const std::string &name, const NDArray &) { names.push_back(name); }, true);
  b.executor->forward(true);
  b.executor->backward({floats({1}, {1})});
  const std::vector<std::string> expected = {"a",        "sq_input0",          "sq_output",          "y_input0",
                                             "y_output", "y_backward_output0", "sq_backward_output0"};
  CHECK_EQ(names.size(), expected.size());
  for (size_t i = 0; i < names.size(); ++i) {
    // The name of a single input is the operator's own.
    if (expected[i].find("input0") == std::string::npos) CHECK_EQ(names[i], expected[i]);
  }
  assert_floats(b.grads[0], {4 * std::exp(4.0f)});
}

TEST(reshape_shares_what_it_can) {
  const Symbol y = op("elemwise_add", {kA, kB});
  Bound b = bind(y, {floats({4}, {1, 2, 3, 4}), floats({4}, {5, 6, 7, 8})}, GradReq::kWrite);
  ReshapeOptions how;
  how.shapes = {{"a", Shape{2}}};
  CHECK_EQ(int(error_of([&] { b.executor->reshape(how); }).code()), int(Code::kShape));
  how.partial_shaping = true;
  const auto smaller = b.executor->reshape(how);
  smaller->forward(false);
  assert_floats(smaller->outputs()[0], {6, 8});
  how.shapes = {{"a", Shape{8}}};
  CHECK_EQ(int(error_of([&] { b.executor->reshape(how); }).code()), int(Code::kShape));
  how.allow_up_sizing = true;
  const auto larger = b.executor->reshape(how);
  larger->forward(false);
  assert_floats(larger->outputs()[0], {0, 0, 0, 0, 0, 0, 0, 0});
  b.executor->forward(false);
  assert_floats(b.executor->outputs()[0], {6, 8, 10, 12});
}

TEST(queued_failures_come_out_once_and_mark_what_they_left) {
  setenv("COHORT_FAULT", "broken", 1);
  const Symbol y = op("exp", {kA}, {}, "broken");
  Bound b = bind(y, {floats({1}, {1})}, GradReq::kNull);
  unsetenv("COHORT_FAULT");
  b.executor->forward(false);
  const Error first = error_of([&] { b.executor->wait(); });
  CHECK_EQ(int(first.code()), int(Code::kExecution));
  CHECK(strstr(first.what(), "exp 'broken'") != nullptr);
  b.executor->wait();
  CHECK_EQ(int(error_of([&] { values_of(b.executor->outputs()[0]); }).code()), int(Code::kExecution));
  assert_floats(b.args[0], {1});
}

TEST(waiting_goes_on_to_the_other_contexts_whatever_one_throws) {
  const Symbol lower = Symbol::create("softmax", {{"__ctx_group__", "lower"}}, "", {}, {Symbol::variable("a")});
  const Symbol upper = Symbol::create("softmax", {{"__ctx_group__", "upper"}}, "", {}, {lower});
  const Context contexts[] = {{DeviceType::kCpu, 0}, {DeviceType::kCpu, 1}};
  ExecutorOptions options;
  options.group2ctx = {{"lower", contexts[0]}, {"upper", contexts[1]}};
  const NDArray a = NDArray::create(Shape{2, 3}, Dtype::kFloat32, contexts[0]);
  const auto exec = Executor::bind(upper, {a}, {}, {}, {}, options);
  CHECK(exec->queue_on(contexts[0]) == exec->queue());
  CHECK(exec->queue_on({DeviceType::kCpu, 2}) == nullptr);
  for (const Context &context : contexts) {
    exec->queue_on(context)->call([] { throw Error(Code::kExecution, "planted"); }, "step");
  }
  CHECK_THROWS(exec->wait(), Error, "planted");
  for (const Context &context : contexts) CHECK(exec->queue_on(context)->idle());
  exec->wait();
}

TEST(a_chain_of_fifty_operators_is_right) {
  Symbol y = kA;
  for (int i = 0; i < 25; ++i) y = op("relu", {op("_plus_scalar", {y}, {{"scalar", "0.01"}})});
  std::vector<float> x(32), expected(32);
  for (int i = 0; i < 32; ++i) {
    x[size_t(i)] = float(i - 16) / 16;
    float v = x[size_t(i)];
    for (int k = 0; k < 25; ++k) v = std::max(0.0f, v + 0.01f);
    expected[size_t(i)] = v;
  }
  Bound b = bind(y, {floats({32}, x)}, GradReq::kNull);
  b.executor->forward(false);
  assert_floats(b.executor->outputs()[0], expected);
}

TEST(operators_can_be_called_at_once) {
  const std::vector<NDArray> y = invoke("elemwise_mul", {}, {floats({2}, {2, 3}), floats({2}, {5, 7})}, {}, Context{});
  assert_floats(y[0], {10, 21});
  CHECK_EQ(int(error_of([] { invoke("no_such", {}, {}, {}, Context{}); }).code()), int(Code::kName));
}

}  // namespace

TEST(the_trace_setting_logs_plans_and_steps) {
  static std::vector<std::string> logged;
  set_log([](LogLevel, const std::string &message) { logged.push_back(message); }, LogLevel::kDebug);
  setenv(kTrace.name, "plan,step", 1);
  const Symbol x = Symbol::variable("x", {});
  const Bound bound = bind(op("sqrt", {x}, {}, "root"), {floats({2}, {4, 9})}, GradReq::kNull);
  bound.executor->forward(false);
  unsetenv(kTrace.name);
  bound.executor->wait();
  set_log(nullptr, LogLevel::kWarning);
  const auto starts = [](const std::string &words) {
    return std::count_if(logged.begin(), logged.end(),
                         [&](const std::string &line) { return line.rfind(words, 0) == 0; });
  };
  CHECK_EQ(starts("plan: forward sqrt 'root' on cpu(0) from [0: float32 (2,)] to ["), 1);
  CHECK_EQ(starts("step: sqrt 'root'"), 1);
}

namespace {

bool folds = false;

// Convolution 1 x 1 of a (2, 3, 4, 2) array into 2 filters, in one layout, and BatchNorm along `axis` in inference;
// with `apart`, the convolution's output is also read otherwise, so that nothing can be folded.
std::vector<float> normed(const char *layout, const char *axis, bool apart) {
  const bool last = std::string(layout) == "NHWC";
  const Symbol conv = op("Convolution", {Symbol::variable("x")},
                         {{"kernel", "(1, 1)"}, {"num_filter", "2"}, {"layout", layout}}, "conv");
  const Symbol norm = op("BatchNorm", {conv}, {{"axis", axis}, {"fix_gamma", "False"}}, "norm");
  const auto counted = [](const Shape &shape, float first, float step) {
    std::vector<float> values(size_t(shape.size()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = first + step * float(i);
    return floats(shape, values);
  };
  const Shape data{2, 3, 4, 2}, weight = last ? Shape{2, 1, 1, 2} : Shape{2, 3, 1, 1};
  const std::vector<NDArray> args = {counted(data, -1, 0.1f), counted(weight, 0.5f, 0.25f), counted({2}, 1, -2),
                                     counted({2}, 2, 1.5f), counted({2}, -1, 3)},
                             aux = {counted({2}, 0.5f, 1), counted({2}, 1, 3)};
  folds = false;
  set_log(
      [](LogLevel, const std::string &message) { folds = folds || message.find("_fold_batch_norm") != message.npos; },
      LogLevel::kDebug);
  setenv(kTrace.name, "plan", 1);
  const auto executor =
      Executor::bind(apart ? Symbol::group({conv, norm}) : norm, args, std::vector<NDArray>(args.size()),
                     std::vector<GradReq>(args.size(), GradReq::kNull), aux, ExecutorOptions());
  executor->forward(false);
  unsetenv(kTrace.name);
  std::vector<float> values = values_of(executor->outputs().back());
  set_log(nullptr, LogLevel::kWarning);
  return values;
}

}  // namespace

TEST(a_norm_along_the_channels_of_a_convolution_goes_into_its_weights) {
  const struct {
    const char *layout, *axis;
    bool folds;
  } cases[] = {
      {"NCHW", "1", true}, {"NCHW", "-3", true}, {"NHWC", "3", true}, {"NHWC", "-1", true}, {"NCHW", "3", false}};
  for (const auto &c : cases) {
    const std::vector<float> expected = normed(c.layout, c.axis, true);
    CHECK(!folds);
    const std::vector<float> found = normed(c.layout, c.axis, false);
    CHECK_EQ(folds, c.folds);
    assert_floats(floats({int64_t(found.size())}, found), expected);
  }
}

UNIT_MAIN()
