// SPDX-License-Identifier: Apache-2.0
// cohort.hpp: lifetimes of objects, errors, arrays, lists, symbols, operators applied at once.
#include <cohort/cohort.hpp>

#include <cstdlib>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "cpp_support.hpp"

using namespace cohort;
using cpp_test::error_of;

static_assert(std::is_nothrow_move_constructible_v<Group> && std::is_nothrow_move_assignable_v<Group>);
static_assert(!std::is_copy_constructible_v<Executor> && !std::is_copy_constructible_v<Optimizer>);
static_assert(std::is_copy_constructible_v<NDArray> && std::is_copy_constructible_v<Symbol>);
static_assert(std::is_nothrow_copy_constructible_v<Error>);

HANDLE_TEST(a_moved_from_object_is_empty_and_says_so) {
  NDArray a = NDArray::full({2}, 3);
  NDArray b = std::move(a);
  CHECK(!a && b);
  CHECK_EQ(error_of([&] { a.shape(); }).code(), COHORT_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(b.read<float>().at(1), 3.0f);
  a = std::move(b);
  CHECK(a && !b);
  NDArray &same = a;
  a = std::move(same);  // onto itself
  CHECK_EQ(a.size(), 2);
}

HANDLE_TEST(a_copied_array_is_a_second_handle_on_the_same_one) {
  const size_t before = live_handles();
  NDArray a = NDArray::zeros({2, 2}), b = a;
  CHECK_EQ(live_handles(), before + 2);
  a.fill(5);
  CHECK_EQ(b.read<float>().at(3), 5.0f);
  NDArray none, copy_of_none = none;
  CHECK(!copy_of_none);
  a = none;
  CHECK(!a && b);
}

HANDLE_TEST(a_copied_symbol_keeps_its_attributes) {
  const Symbol first = Symbol::variable("x", {{"__lr_mult__", 0.5}});
  Symbol second = first;
  second.set_attrs({{"__lr_mult__", 2}});
  CHECK_EQ(first.attr("__lr_mult__").value(), "0.5");
  CHECK_EQ(second.attr("__lr_mult__").value(), "2");
  CHECK(!first.attr("__wd_mult__"));
}

HANDLE_TEST(objects_may_be_destroyed_in_any_order_and_on_any_thread) {
  Symbol net = cpp_test::line_network();
  Executor executor = Executor::simple_bind(net, cpu(), {{"fc_data", {4, 2}}}, [] {
    ExecutorOptions options;
    options.grad_req = "write";
    return options;
  }());
  NDArray output = executor.outputs().at(0), weight = executor.array(COHORT_EXECUTOR_ARGS, "fc_weight");
  NDArray row = weight.at(0);
  executor.forward(true);
  { const Symbol gone = std::move(net); }
  std::thread([gone = std::move(executor)]() mutable { Executor last = std::move(gone); }).join();
  weight.fill(2);
  CHECK_EQ(row.read<float>().at(1), 2.0f);
  CHECK_EQ(output.read<float>().size(), 4u);
}

HANDLE_TEST(a_released_handle_is_the_callers) {
  NDArray array = NDArray::zeros({1});
  cohort_ndarray *const raw = array.release();
  CHECK(!array);
  const NDArray owner(raw);
  CHECK_EQ(owner.get(), raw);
}

HANDLE_TEST(errors_have_class_message_and_subject) {
  const Error shape = error_of([] { NDArray::from_host({1.0f, 2.0f}, {3}); });
  CHECK_EQ(shape.code(), COHORT_ERROR_SHAPE);
  CHECK_EQ(std::string(shape.code_text()), "shape");
  CHECK_EQ(std::string(shape.message()), std::string(shape.what()));
  CHECK(!std::string(shape.what()).empty());

  const Error name = error_of([] { Symbol::create("NoSuchOperator", "x"); });
  CHECK_EQ(name.code(), COHORT_ERROR_NAME);
  CHECK_EQ(name.subject(), "NoSuchOperator");
  const Error copied = name;
  CHECK_EQ(copied.subject(), name.subject());

  CHECK_EQ(error_of([] { NDArray::zeros({1}, 99); }).code(), COHORT_ERROR_DTYPE);
  CHECK_EQ(error_of([] { Context("tpu(0)"); }).code(), COHORT_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(error_of([] { NDArray::zeros({1}).slice(0, 2); }).code(), COHORT_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(error_of([] { Symbol::from_json("{"); }).code(), COHORT_ERROR_FORMAT);
  CHECK_EQ(error_of([] { Symbol::load("/no/such/file"); }).code(), COHORT_ERROR_IO);
  CHECK_EQ(error_of([] { NDArray::zeros({1}, COHORT_DTYPE_FLOAT32, gpu(1000)); }).code(), COHORT_ERROR_DEVICE);
  CHECK_EQ(error_of([] { NDArray::zeros({INT64_MAX / 8}); }).code(), COHORT_ERROR_OUT_OF_MEMORY);
  CHECK_EQ(error_of([] {
             ExecutorOptions options;
             options.grad_req = "write";
             Executor::simple_bind(cpp_test::line_network(), cpu(), {{"fc_data", {4, 2}}}, options).backward();
           }).code(),
           COHORT_ERROR_STATE);
  CHECK_EQ(error_of([] {
             ExecutorOptions options;
             options.compute_dtype = COHORT_DTYPE_FLOAT16;
             Executor::simple_bind(cpp_test::line_network(), cpu(), {{"fc_data", {4, 2}}}, options);
           }).code(),
           COHORT_ERROR_UNSUPPORTED);
}

// The library reads the name of a node whose step is to fail from the environment: see main().
HANDLE_TEST(work_that_fails_is_an_error_where_it_is_waited_for) {
  const Symbol bad = Symbol::create("exp", "faulty_node", {}, {Symbol::variable("x")});
  Executor executor = Executor::bind(bad, cpu(), {NDArray::zeros({2})});
  executor.forward();
  const Error error = error_of([&] { executor.outputs().at(0).wait(); });
  CHECK_EQ(error.code(), COHORT_ERROR_EXECUTION);
  CHECK_EQ(error.subject(), "exp 'faulty_node'");
}

HANDLE_TEST(lists_of_the_wrong_length_never_reach_the_library) {
  const NDArray x = NDArray::zeros({1});
  const Symbol net = Symbol::create("exp", "e", {}, {Symbol::variable("x")});
  const Error error = error_of([&] { Executor::bind(net, cpu(), {x}, {x, x}); });
  CHECK_EQ(error.code(), COHORT_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(std::string(error.what()), "grads: expected 1 entries, found 2");
  CHECK_EQ(error_of([&] { net.compose({net}, {"a", "b"}); }).code(), COHORT_ERROR_INVALID_ARGUMENT);
  Tape tape;
  CHECK_EQ(error_of([&] { tape.mark({x}, {x, x}); }).code(), COHORT_ERROR_INVALID_ARGUMENT);
}

HANDLE_TEST(arrays_go_in_and_out_of_vectors) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  NDArray a = NDArray::from_host(values, {2, 3}, "cpu(1)");
  CHECK(a.shape() == (Shape{2, 3}));
  CHECK_EQ(a.dtype(), COHORT_DTYPE_FLOAT32);
  CHECK(a.context() == cpu(1));
  CHECK_EQ(a.context().text(), "cpu(1)");
  CHECK_EQ(a.size(), 6);
  CHECK_EQ(a.bytes(), 24u);
  CHECK(a.read<float>() == values);
  CHECK(a.read<int64_t>() == (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
  a.write(std::vector<double>{6, 5, 4, 3, 2, 1});
  CHECK_EQ(a.at(1).read<float>().at(0), 3.0f);
  CHECK(a.slice(0, 1).shape() == (Shape{1, 3}));
  CHECK(a.slice_axis(1, 1).shape() == (Shape{2, 2}));
  CHECK(a.reshape({3, -1}).shape() == (Shape{3, 2}));
  CHECK(a.reshape_prefix({2}).shape() == (Shape{2}));
  CHECK_EQ(static_cast<const float *>(a.data())[0], 6.0f);
  CHECK(NDArray::concat({a, a}, 0).shape() == (Shape{4, 3}));
  CHECK_EQ(a.cast(COHORT_DTYPE_FLOAT16).dtype(), COHORT_DTYPE_FLOAT16);
  CHECK_EQ(a.copy(cpu()).read<float>().at(5), 1.0f);
  CHECK(NDArray::zeros({}).shape().empty());
  CHECK_EQ(NDArray::from_host({int8_t{1}}, {1}).dtype(), COHORT_DTYPE_INT8);
  NDArray noise = NDArray::zeros({8}, COHORT_DTYPE_FLOAT64);
  noise.fill_uniform(0, 1, 7);
  NDArray again = NDArray::empty({8}, COHORT_DTYPE_FLOAT64);
  again.fill_uniform(0, 1, 7);
  CHECK(noise.read<double>() == again.read<double>());
  const NDArray through_dlpack = NDArray::from_dlpack(a.to_dlpack());
  CHECK_EQ(through_dlpack.data(), a.data());
}

HANDLE_TEST(the_deleter_of_wrapped_memory_runs_once) {
  std::vector<float> memory = {1, 2};
  int num_deleted = 0;
  {
    const NDArray array = NDArray::wrap(memory.data(), {2}, COHORT_DTYPE_FLOAT32, cpu(), [&] { ++num_deleted; });
    const NDArray view = array.slice(1, 2);
    CHECK_EQ(array.data(), static_cast<void *>(memory.data()));
    CHECK_EQ(num_deleted, 0);
  }
  CHECK_EQ(num_deleted, 1);
  CHECK_EQ(error_of([&] {
             NDArray::wrap(memory.data(), {2}, COHORT_DTYPE_FLOAT32, gpu(1000), [&] { ++num_deleted; });
           }).code() == COHORT_SUCCESS,
           false);
  CHECK_EQ(num_deleted, 1);
}

HANDLE_TEST(lists_hold_arrays_and_descriptors) {
  Arrays list{{"w", NDArray::full({2}, 1)}, {"b", NDArray::full({1}, 2)}};
  list.set("b", NDArray::full({1}, 3));
  list.add("none", NDArray());
  CHECK_EQ(list.num(), 3u);
  CHECK(list.names() == (std::vector<std::string>{"w", "b", "none"}));
  CHECK_EQ(list.array("b").read<float>().at(0), 3.0f);
  CHECK(list.has("w") && !list.has("c"));
  CHECK(!list.array(2));
  CHECK_EQ(list.by_name().size(), 2u);
  CHECK_EQ(error_of([&] { list.find("c"); }).code(), COHORT_ERROR_NAME);
  CHECK_EQ(error_of([&] { list.save_memory(); }).code(), COHORT_ERROR_INVALID_ARGUMENT);
  const std::string bytes = Arrays{{"w", list.array(0)}}.save_memory();
  CHECK_EQ(Arrays::load_memory(bytes.data(), bytes.size()).array("w").read<float>().at(1), 1.0f);
  CHECK_EQ(Arrays::of({list.array(0), list.array(1)}).num(), 2u);

  const Descs descs{{"data", {8, 1}}, {"mask", {8}, COHORT_DTYPE_BOOL, "N"}, Desc::of_dtype("x", COHORT_DTYPE_INT32)};
  CHECK_EQ(descs.num(), 3u);
  CHECK(descs.at("mask").shape == Shape{8});
  CHECK_EQ(descs.at(1).layout, "N");
  CHECK_EQ(descs.at(1).dtype, COHORT_DTYPE_BOOL);
  CHECK(!descs.at(2).shape);
  CHECK_EQ(descs.list().at(0).name, "data");
}

HANDLE_TEST(attributes_are_written_as_mxnet_writes_them) {
  CHECK_EQ(Attr("a", true).value, "True");
  CHECK_EQ(Attr("a", 10).value, "10");
  CHECK_EQ(Attr("a", 0.1).value, "0.1");
  CHECK_EQ(Attr("a", 0.5f).value, "0.5");
  CHECK_EQ(Attr("a", Shape{3, 3}).value, "(3, 3)");
  CHECK_EQ(Attr("a", Shape{3}).value, "(3,)");
  CHECK_EQ(Attr("a", "relu").value, "relu");
}

HANDLE_TEST(symbols_are_composed_inferred_and_read) {
  const Symbol net = cpp_test::line_network();
  CHECK(net.list_arguments() == (std::vector<std::string>{"fc_data", "fc_weight", "fc_bias", "fit_label"}));
  CHECK(net.list_outputs() == (std::vector<std::string>{"fit_output"}));
  CHECK(net.list_aux().empty());
  CHECK(net.names(COHORT_SYMBOL_LABELS) == (std::vector<std::string>{"fit_label"}));
  CHECK_EQ(net.name().value(), "fit");
  CHECK_EQ(Symbol::from_json(net.to_json()).to_json(), net.to_json());

  const Inferred found = net.infer_shape({{"fc_data", {4, 2}}});
  CHECK(found.complete);
  CHECK(found.args.at("fc_weight").shape == (Shape{1, 2}));
  CHECK(found.outputs.at(0).shape == (Shape{4, 1}));
  CHECK(!net.infer_shape().complete);
  CHECK(net.infer_shape({}, true).args);
  CHECK_EQ(net.infer_dtype({Desc::of_dtype("fc_data", COHORT_DTYPE_FLOAT64)}).args.at("fc_bias").dtype,
           COHORT_DTYPE_FLOAT64);
  CHECK_EQ(error_of([&] { net.infer_shape({{"fc_data", {4, 2}}, {"fc_bias", {2}}}); }).code(), COHORT_ERROR_SHAPE);

  const Symbol fc = net.internals().output("fc_output");
  const Symbol both = Symbol::group({fc, net});
  CHECK_EQ(both.list_outputs().size(), 2u);
  CHECK(!both.name());
  CHECK_EQ(both.output(1).name().value(), "fit");
  CHECK_EQ(net.children().list_outputs().size(), 2u);
  CHECK(!Symbol::variable("x").children());
  const Symbol twice = fc.compose({fc}, {"fc_data"}, "again");
  CHECK_EQ(twice.name().value(), "again");
  CHECK_EQ(fc.attrs().at(0).key, "num_hidden");
  CHECK_EQ(net.copy().num_nodes(), net.num_nodes());
}

HANDLE_TEST(operators_are_applied_at_once) {
  const NDArray x = NDArray::from_host({1.0f, -2.0f}, {2});
  CHECK(invoke("abs", {x}).at(0).read<float>() == (std::vector<float>{1, 2}));
  NDArray y = NDArray::zeros({2});
  invoke_into({y}, "_plus_scalar", {x}, {{"scalar", 1}});
  CHECK(y.read<float>() == (std::vector<float>{2, -1}));
  InvokeOptions options;
  options.context = cpu(1);
  CHECK(invoke("_ones", {}, {{"shape", Shape{2}}}, options).at(0).context() == cpu(1));
  CHECK_EQ(error_of([&] { invoke("abs", {x, x}); }).code(), COHORT_ERROR_INVALID_ARGUMENT);
}

HANDLE_TEST(the_registry_tells_what_operators_are) {
  const std::vector<std::string> names = operator_names();
  CHECK(names.size() > 100);
  const OperatorInfo info = operator_info("FullyConnected");
  CHECK_EQ(info.canonical, "FullyConnected");
  CHECK_EQ(info.inputs.at(1).name, "weight");
  CHECK(info.inputs.at(1).has_gradient && !info.inputs.at(1).is_aux);
  CHECK_EQ(info.precision, COHORT_PRECISION_NARROW);
  const auto num_hidden = std::find_if(info.attrs.begin(), info.attrs.end(),
                                       [](const OperatorAttr &attr) { return attr.name == "num_hidden"; });
  CHECK(num_hidden != info.attrs.end() && !num_hidden->default_value && num_hidden->low == 1);
}

HANDLE_TEST(tapes_record_and_go_back) {
  const NDArray x = NDArray::from_host({3.0f}, {1});
  NDArray gradient = NDArray::zeros({1});
  Tape tape;
  CHECK(tape.is_recording() && tape.is_training());
  tape.mark({x}, {gradient});
  const NDArray y = tape.invoke("square", {x}).at(0);
  CHECK_EQ(tape.num_recorded(), 1u);
  CHECK_EQ(tape.symbol(y).list_arguments().size(), 1u);
  tape.backward({y});
  CHECK_EQ(gradient.read<float>().at(0), 6.0f);
  CHECK(tape.set_recording(false) && !tape.is_recording());
  CHECK(tape.set_training(false) && !tape.is_training());
  tape.set_recording(true);

  BackwardOptions twice;
  twice.create_graph = true;
  const NDArray cube = tape.invoke("_power_scalar", {x}, {{"scalar", 3}}).at(0);
  const NDArray slope = tape.grad({cube}, {x}, {}, twice).at(0);
  CHECK_EQ(tape.grad({slope}, {x}).at(0).read<float>().at(0), 18.0f);
}

HANDLE_TEST(a_function_of_the_callers_has_its_own_gradient_and_is_released) {
  const auto factor = std::make_shared<float>(10.0f);
  {
    const NDArray x = NDArray::from_host({3.0f}, {1}), y = NDArray::from_host({30.0f}, {1});
    NDArray gradient = NDArray::zeros({1});
    Tape tape;
    tape.mark({x}, {gradient});
    tape.function({x}, {y}, [factor](const std::vector<NDArray> &heads) {
      return invoke("_mul_scalar", {heads.at(0)}, {{"scalar", *factor}});
    });
    tape.backward({y});
    CHECK_EQ(gradient.read<float>().at(0), 10.0f);
    tape.function({x}, {y}, [factor](const std::vector<NDArray> &) -> std::vector<NDArray> {
      throw std::out_of_range("no gradient today");
    });
    CHECK_THROWS(tape.backward({y}), std::out_of_range, "no gradient today");
    tape.set_recording(false);
    tape.function({x}, {y}, [factor](const std::vector<NDArray> &) { return std::vector<NDArray>(); });
  }
  CHECK_EQ(factor.use_count(), 1);
}

TEST(no_handle_is_left) { CHECK_EQ(live_handles(), 0u); }

int main(int argc, char **argv) {
  setenv("COHORT_FAULT", "faulty_node", 1);
  return unit::run_all(argc, argv);
}
