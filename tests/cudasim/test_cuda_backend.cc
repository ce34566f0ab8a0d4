// SPDX-License-Identifier: Apache-2.0
// The CUDA backend on the simulated runtime: order, lifetimes, failures, and the state of a host that uses CUDA itself.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "cuda_control.hpp"
#include "device_arrays.hpp"
#include "executor/executor.hpp"
#include "executor/invoke.hpp"
#include "support/unit.hpp"

using namespace cohort;
using namespace device_tests;

namespace {

const Context kCpu, kGpu0{DeviceType::kGpu, 0}, kGpu1{DeviceType::kGpu, 1}, kGpu2{DeviceType::kGpu, 2},
    kGpu3{DeviceType::kGpu, 3};

// How a process exits that ends with unfinished work; other processes check the outcome.
bool ends_with_work = false;
const struct Last {
  ~Last() {
    if (ends_with_work) usleep(200000);
  }
} last;

// This file tests our own convolutions; test_cuda_convolution tests those of cuDNN.
[[maybe_unused]] const int without_cudnn = setenv("CUDASIM_CUDNN", "8907", /* overwrite */ 0);
const auto seed_anew = CONTROL(cudasim_seed);  // before the first use of a device

void same(const char *what, const NDArray &found, const NDArray &expected) {
  const std::vector<double> a = values_of<double>(found), b = values_of<double>(expected);
  CHECK_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(std::fabs(a[i] - b[i]) <= 1e-5 * (1 + std::fabs(b[i]))))
      unit::fail(__FILE__, __LINE__, unit::difference(what, a[i], b[i]));
  }
}

struct Bound {
  std::vector<NDArray> args, grads;
  std::shared_ptr<Executor> exec;
};

// The same numbers on any device; gradients are written.
Bound bind_on(const Context &context, const Symbol &symbol, const std::vector<NDArray> &host_args) {
  Bound bound;
  for (const NDArray &arg : host_args) {
    bound.args.push_back(arg.copy_to(context));
    bound.grads.push_back(NDArray::create(arg.shape(), arg.dtype(), context));
  }
  ExecutorOptions options;
  options.context = context;
  const std::vector<GradReq> reqs(host_args.size(), GradReq::kWrite);
  bound.exec = Executor::bind(symbol, bound.args, bound.grads, reqs, {}, options);
  return bound;
}

// Checks that outputs and gradients of a pass on a GPU equal those on the CPU. Head gradients come last; none for a
// loss.
void same_on_both(const Symbol &symbol, const std::vector<NDArray> &args, const NDArray &head = NDArray()) {
  const Bound gpu = bind_on(kGpu0, symbol, args), cpu = bind_on(kCpu, symbol, args);
  for (const Bound *bound : {&gpu, &cpu}) {
    bound->exec->forward(true);
    std::vector<ArraySlice> heads;
    if (head) heads.push_back(head.copy_to(bound->args[0].context()));
    bound->exec->backward(heads);
  }
  same("output", gpu.exec->outputs()[0], cpu.exec->outputs()[0]);
  for (size_t i = 0; i < args.size(); ++i) same("gradient", gpu.grads[i], cpu.grads[i]);
}

}  // namespace

// ---- the state of the host; must be the first test, while no device is in use

TEST(the_hosts_context_is_restored_and_no_other_is_created) {
  const auto use = [] {
    const NDArray x = random_on(kGpu1, {8}, 1);
    const NDArray y = invoke("square", {}, {x}, {}, kGpu1)[0];
    values_of<double>(y);
    std::vector<std::shared_ptr<void>> pinned;  // more than the cache keeps
    for (int i = 0; i < 5; ++i) pinned.push_back(get_device(kGpu1)->host_memory(size_t(64) << 20));
  };
  const auto current = CONTROL(cudasim_current_context);
  const auto contexts = CONTROL(cudasim_num_contexts);
  int mark = 0;
  void *after = &mark;
  std::thread([&] { use(), after = current(); }).join();
  CHECK(after == nullptr);
  CHECK_EQ(contexts(0), 0);
  CHECK_EQ(contexts(1), 1);
  void *own = nullptr;
  std::thread([&] {
    own = CONTROL(cudasim_create_context)(1);
    use();
    after = current();
    CONTROL(cudasim_destroy_context)(own);
  }).join();
  CHECK(after == own);
  CHECK_EQ(contexts(0), 0);
  release_invoked();
}

// ---- kernels

TEST(fully_connected_without_rows_depth_or_units_is_that_of_the_cpu) {
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64}) {
    for (const auto &[rows, depth, units] :
         {std::tuple<int64_t, int64_t, int64_t>{4, 0, 3}, {0, 5, 3}, {4, 5, 3}, {1, 1, 1}, {9, 7, 33}}) {
      for (const bool bias : {true, false}) {
        std::vector<NDArray> args = {random_on(kCpu, {rows, depth}, 1, dtype),
                                     random_on(kCpu, {units, depth}, 2, dtype)};
        std::vector<std::string> names = {"data", "weight"};
        if (bias) args.push_back(random_on(kCpu, {units}, 3, dtype)), names.push_back("bias");
        const AttrMap attrs = {{"num_hidden", std::to_string(units)}, {"no_bias", bias ? "0" : "1"}};
        same_on_both(node("FullyConnected", attrs, names), args, random_on(kCpu, {rows, units}, 4, dtype));
      }
    }
  }
}

TEST(a_product_whose_bias_the_library_refuses_is_added_to_apart) {
  find_control<void(int)>("cudasim_refuse_epilogues")(1);
  const std::vector<NDArray> args = {random_on(kCpu, {4, 6}, 1), random_on(kCpu, {5, 6}, 2), random_on(kCpu, {5}, 3)};
  same_on_both(node("FullyConnected", {{"num_hidden", "5"}}, {"data", "weight", "bias"}), args,
               random_on(kCpu, {4, 5}, 4));
  find_control<void(int)>("cudasim_refuse_epilogues")(0);
  CHECK(CONTROL(cudasim_num_cublas_handles)() <= 4);
}

// The algorithm is chosen at bind, before the address of the bias is known.
TEST(a_bias_may_begin_anywhere_in_an_array) {
  for (const int64_t first : {0, 4, 5}) {
    std::vector<NDArray> results;
    for (const Context &context : {kCpu, kGpu0}) {
      const NDArray bias = random_on(context, {16}, 3).slice(first, first + 6);
      const std::vector<NDArray> inputs{random_on(context, {3, 8}, 1), random_on(context, {6, 8}, 2), bias};
      results.push_back(invoke("FullyConnected", {{"num_hidden", "6"}}, inputs, {}, context)[0]);
    }
    same("output", results[1], results[0]);
  }
  CHECK_EQ(std::string(CONTROL(cudasim_reports)()), "");
}

namespace {

NDArray narrow_of(const Shape &shape, const std::vector<float> &numbers, Dtype dtype) {
  const NDArray array = NDArray::create(shape, Dtype::kFloat32, kCpu);
  std::copy(numbers.begin(), numbers.end(), array.data_as<float>());
  const NDArray narrow = NDArray::create(shape, dtype, kCpu);
  narrow.copy_from(array);
  return narrow.copy_to(kGpu0);
}

}  // namespace

// The library may cut the depth into parts.
TEST(a_sum_of_products_of_16_bits_is_not_rounded_on_its_way) {
  for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBfloat16}) {
    const NDArray x = narrow_of({1, 4}, {2048, 1, -2048, 0}, dtype), ones = narrow_of({4, 1}, {1, 1, 1, 1}, dtype);
    CHECK_EQ(values_of<double>(invoke("dot", {}, {x, ones}, {}, kGpu0)[0])[0], 1.0);
  }
  release_invoked();
}

// Whether the library adds it or not.
TEST(a_bias_is_added_before_a_product_is_rounded_to_16_bits) {
  for (const int refuses : {0, 1}) {
    find_control<void(int)>("cudasim_refuse_epilogues")(refuses);
    for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBfloat16}) {
      const size_t units = refuses ? 3 : 2;  // another plan
      const NDArray x = narrow_of({1, 2}, {2048, 1}, dtype);
      const NDArray w = narrow_of({int64_t(units), 2}, std::vector<float>(2 * units, 1), dtype);
      const NDArray bias = narrow_of({int64_t(units)}, std::vector<float>(units, -2048), dtype);
      const AttrMap attrs = {{"num_hidden", std::to_string(units)}};
      for (const double y : values_of<double>(invoke("FullyConnected", attrs, {x, w, bias}, {}, kGpu0)[0]))
        CHECK_EQ(y, 1.0);
    }
    release_invoked();
  }
  find_control<void(int)>("cudasim_refuse_epilogues")(0);
  CHECK_EQ(std::string(CONTROL(cudasim_reports)()), "");
}

TEST(softmax_output_is_that_of_the_cpu) {
  const auto labels = [](const Shape &shape, const std::vector<float> &of) {
    const NDArray label = NDArray::create(shape, Dtype::kFloat32, kCpu);
    for (int64_t i = 0; i < label.size(); ++i) label.data_as<float>()[i] = of[size_t(i) % of.size()];
    return label;
  };
  const std::vector<float> odd = {2, -0.5f, 1, 0, 7, -3, NAN, 2.75f};
  const std::vector<AttrMap> all = {
      {},
      {{"smooth_alpha", "0.3"}},
      {{"use_ignore", "1"}, {"ignore_label", "0"}},
      {{"use_ignore", "1"}, {"ignore_label", "2"}, {"normalization", "valid"}},
      {{"normalization", "valid"}, {"ignore_label", "1"}},
      {{"normalization", "batch"}, {"grad_scale", "3"}},
  };
  for (AttrMap attrs : all) {
    same_on_both(node("SoftmaxOutput", attrs, {"data", "label"}), {random_on(kCpu, {8, 4}, 1), labels({8}, odd)});
    same_on_both(node("SoftmaxOutput", attrs, {"data", "label"}), {random_on(kCpu, {8, 1}, 1), labels({8}, odd)});
    same_on_both(node("SoftmaxOutput", attrs, {"data", "label"}),
                 {random_on(kCpu, {8, 4}, 1), random_on(kCpu, {8, 4}, 2)});
    attrs["multi_output"] = "1";
    same_on_both(node("SoftmaxOutput", attrs, {"data", "label"}), {random_on(kCpu, {2, 4, 4}, 1), labels({2, 4}, odd)});
    attrs.erase("multi_output");
    attrs["preserve_shape"] = "1";
    same_on_both(node("SoftmaxOutput", attrs, {"data", "label"}), {random_on(kCpu, {2, 4, 4}, 1), labels({2, 4}, odd)});
  }
}

// Shapes of up to six axes, each in one operand, in the other, or in both.
TEST(arrays_without_elements_are_not_indexed) {
  const auto zeros = [](const Shape &shape) {
    const NDArray array = NDArray::create(shape, Dtype::kFloat32, kCpu);
    array.fill(0);
    return array.copy_to(kGpu0);
  };
  const NDArray nothing = NDArray::create({0, 3}, Dtype::kFloat32, kGpu0);
  const auto applied = [&](const char *op, const AttrMap &attrs, const std::vector<NDArray> &inputs) {
    values_of<double>(invoke(op, attrs, inputs, {}, kGpu0)[0]);
  };
  CHECK_THROWS(applied("gather_nd", {}, {nothing, zeros({1, 2})}), Error, "expected elements to index");
  CHECK_THROWS(applied("take", {}, {nothing, zeros({2})}), Error, "expected elements to index");
  CHECK_THROWS(applied("SequenceLast", {}, {NDArray::create({0, 3, 2}, Dtype::kFloat32, kGpu0)}), Error,
               "expected steps");
  // A sample that is matched to an object where there is none is refused, as on the CPU.
  const NDArray one = NDArray::create({1, 1}, Dtype::kFloat32, kCpu);
  one.fill(1);
  const auto codes = invoke("_contrib_box_encode", {},
                            {one.copy_to(kGpu0), zeros({1, 1}), zeros({1, 1, 4}),
                             NDArray::create({1, 0, 4}, Dtype::kFloat32, kGpu0), zeros({4}), zeros({4})},
                            {}, kGpu0);
  std::string error;
  try {
    values_of<double>(codes[0]);
  } catch (const Error &e) {
    error = e.what();
  }
  CHECK(error.find("matches[0, 0]: expected 0 to -1 where samples is 1, found 0") != std::string::npos);
}

TEST(operators_that_broadcast_are_those_of_the_cpu) {
  std::minstd_rand random(7);
  const char *const ops[] = {"broadcast_add", "broadcast_mul", "broadcast_div", "broadcast_maximum", "broadcast_hypot"};
  for (int i = 0; i < 60; ++i) {
    std::vector<int64_t> a, b, both;
    for (auto axes = random() % 7; axes > 0; --axes) {
      const int64_t length = random() % 9 == 0 ? 0 : 1 + int64_t(random() % 4);
      const auto who = random() % 3;
      a.push_back(who == 0 ? 1 : length);
      b.push_back(who == 1 ? 1 : length);
      both.push_back(length);
    }
    if (both.empty()) continue;
    const Dtype dtype = i % 2 ? Dtype::kFloat64 : Dtype::kFloat32;
    same_on_both(node(ops[size_t(i) % 5], {}, {"a", "b"}),
                 {random_on(kCpu, Shape(a), 1, dtype), random_on(kCpu, Shape(b), 2, dtype)},
                 random_on(kCpu, Shape(both), 3, dtype));
  }
}

TEST(reductions_are_those_of_the_cpu) {
  const Shape shape{3, 4, 1, 5, 2};
  const std::pair<const char *, Shape> axes[] = {
      {"()", {1}}, {"(1,)", {3, 1, 5, 2}}, {"(0,3)", {4, 1, 2}}, {"(4,)", {3, 4, 1, 5}}, {"(2,)", {3, 4, 5, 2}}};
  for (const char *op : {"sum", "mean", "prod", "nansum", "nanprod", "max", "min", "norm"}) {
    for (const auto &[axis, result] : axes) {
      if (std::string(op) == "norm" && axis[1] == '0') continue;  // norm takes one axis or all
      same_on_both(node(op, {{"axis", axis}}, {"x"}), {random_on(kCpu, shape, 1)}, random_on(kCpu, result, 2));
    }
  }
  same_on_both(node("sum", {{"axis", "1"}}, {"x"}), {random_on(kCpu, {3, 0}, 1)}, random_on(kCpu, {3}, 2));
  same_on_both(node("sum", {}, {"x"}), {random_on(kCpu, {700, 3}, 1)}, random_on(kCpu, {1}, 2));
}

// One row has one zero, one two, one none.
TEST(gradients_of_products_with_zeros_are_those_of_the_cpu) {
  for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBfloat16, Dtype::kFloat32, Dtype::kFloat64}) {
    const NDArray x = NDArray::create({3, 2, 2}, Dtype::kFloat32, kCpu, true);
    const float values[] = {1, 2, 0, 4, 0, 3, 2, 0, 2, 3, 4, 1};
    x.write(values, sizeof values);
    const NDArray typed = NDArray::create({3, 2, 2}, dtype, kCpu, true);
    typed.copy_from(x);
    for (const char *op : {"prod", "nanprod"}) {
      same_on_both(node(op, {{"axis", "(1,2)"}}, {"x"}), {typed}, random_on(kCpu, {3}, 2, dtype));
      same_on_both(node(op, {{"axis", "1"}}, {"x"}), {typed}, random_on(kCpu, {3, 2}, 2, dtype));
      same_on_both(node(op, {{"axis", "(0,2)"}}, {"x"}), {typed}, random_on(kCpu, {2}, 2, dtype));
    }
  }
}

// More than one tile in each direction, with partial tiles.
TEST(convolutions_over_several_tiles_are_those_of_the_cpu) {
  const auto conv = [](const char *op, const AttrMap &attrs) { return node(op, attrs, {"x", "w", "b"}); };
  const NDArray x = random_on(kCpu, {2, 10, 9, 8}, 1), w = random_on(kCpu, {70, 10, 3, 3}, 2);
  same_on_both(conv("Convolution", {{"kernel", "(3,3)"}, {"num_filter", "70"}, {"pad", "(1,1)"}}),
               {x, w, random_on(kCpu, {70}, 3)}, random_on(kCpu, {2, 70, 9, 8}, 4));
  same_on_both(conv("Convolution", {{"kernel", "(3,3)"},
                                    {"num_filter", "16"},
                                    {"num_group", "2"},
                                    {"stride", "(2,3)"},
                                    {"dilate", "(2,1)"},
                                    {"pad", "(2,0)"}}),
               {random_on(kCpu, {2, 20, 9, 8}, 1), random_on(kCpu, {16, 10, 3, 3}, 2), random_on(kCpu, {16}, 3)},
               random_on(kCpu, {2, 16, 5, 2}, 4));
  same_on_both(conv("Deconvolution", {{"kernel", "(3,3)"}, {"num_filter", "9"}, {"stride", "(2,2)"}, {"no_bias", "0"}}),
               {x, random_on(kCpu, {10, 9, 3, 3}, 2), random_on(kCpu, {9}, 3)}, random_on(kCpu, {2, 9, 19, 17}, 4));
}

TEST(groups_of_few_channels_alone_are_left_to_tiles) {
  AttrMap attrs{{"kernel", "(3,3)"}, {"num_filter", "16"}, {"no_bias", "1"}};
  // Forward and backward use that kernel, or cuDNN if it is installed.
  const auto are_by = [&](const std::string &kernel, const Shape &data, const Shape &filters) {
    const Bound bound =
        bind_on(kGpu0, node("Convolution", attrs, {"x", "w"}), {random_on(kCpu, data, 1), random_on(kCpu, filters, 2)});
    bound.exec->forward(true);
    const std::string text = bound.exec->debug_text();
    int count = 0;
    for (const std::string &by : {" by " + kernel, std::string(" by cudnn")}) {
      for (size_t at = 0; (at = text.find(by, at)) != std::string::npos; ++at) ++count;
    }
    return count == 2;
  };
  CHECK(are_by("columns", {2, 16, 6, 5}, {16, 16, 3, 3}));
  CHECK(are_by("columns", {2, 3, 6, 5}, {16, 3, 3, 3}));
  attrs["num_group"] = "16";
  CHECK(are_by("tiles", {2, 16, 6, 5}, {16, 1, 3, 3}));
}

TEST(lines_that_are_cut_into_parts_are_those_of_the_cpu) {
  const NDArray lines = random_on(kCpu, {2, 3000}, 1);
  for (const auto &[op, attrs] : std::vector<std::pair<std::string, AttrMap>>{
           {"argmax", {{"axis", "1"}}}, {"argmin", {}}, {"_np_cumsum", {{"axis", "1"}}}, {"_np_cumsum", {}}}) {
    const Bound gpu = bind_on(kGpu0, node(op, attrs, {"x"}), {lines}),
                cpu = bind_on(kCpu, node(op, attrs, {"x"}), {lines});
    gpu.exec->forward(false);
    cpu.exec->forward(false);
    same(op.c_str(), gpu.exec->outputs()[0], cpu.exec->outputs()[0]);
  }
  same_on_both(node("_np_cumsum", {{"axis", "1"}}, {"x"}), {lines}, random_on(kCpu, {2, 3000}, 2));
}

TEST(floats_of_16_bits_are_computed_as_on_the_cpu) {
  for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBfloat16}) {
    const NDArray a = random_on(kCpu, {7, 5}, 1, dtype), b = random_on(kCpu, {7, 5}, 2, dtype);
    const NDArray row = random_on(kCpu, {1, 5}, 3, dtype), head = random_on(kCpu, {7, 5}, 4, dtype);
    for (const char *op : {"elemwise_add", "elemwise_mul", "elemwise_div"}) {
      same_on_both(node(op, {}, {"a", "b"}), {a, b}, head);
    }
    for (const char *op : {"tanh", "sigmoid", "square", "exp", "abs"}) same_on_both(node(op, {}, {"a"}), {a}, head);
    same_on_both(node("_mul_scalar", {{"scalar", "0.3"}}, {"a"}), {a}, head);
    same_on_both(node("broadcast_mul", {}, {"a", "b"}), {a, row}, head);
    same_on_both(node("mean", {{"axis", "(0,)"}}, {"a"}), {a}, random_on(kCpu, {5}, 5, dtype));
  }
}

// With arrays that fill whole vectors, that do not, and that begin inside a vector.
TEST(gradients_of_several_uses_are_summed_as_on_the_cpu) {
  for (const int64_t length : {1, 3, 4, 16, 1001}) {
    for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64}) {
      const Symbol x = Symbol::variable("x");
      const Symbol twice = Symbol::create("elemwise_mul", {}, "a", {}, {x, x});
      const Symbol uses =
          Symbol::create("elemwise_add", {}, "b", {}, {Symbol::create("tanh", {}, "c", {}, {x}), twice});
      same_on_both(uses, {random_on(kCpu, {length}, 1, dtype)}, random_on(kCpu, {length}, 2, dtype));
    }
  }
}

// ---- order and lifetimes

// Values are copied to the GPU and back, forward and backward, by the queue of the GPU.
TEST(a_network_over_a_cpu_and_a_gpu_gives_what_one_device_gives) {
  const auto part = [](const std::string &group, const std::string &op, AttrMap attrs, const Symbol &input,
                       const std::string &name) {
    attrs["__ctx_group__"] = group;
    std::vector<Symbol> inputs = {input};
    if (op == "FullyConnected") inputs.push_back(Symbol::variable(name + "_weight"));
    return Symbol::create(op, attrs, name, {}, inputs);
  };
  Symbol net = Symbol::variable("data");
  net = part("a", "FullyConnected", {{"num_hidden", "6"}, {"no_bias", "1"}}, net, "one");
  net = part("b", "Activation", {{"act_type", "tanh"}}, net, "two");
  net = part("a", "FullyConnected", {{"num_hidden", "3"}, {"no_bias", "1"}}, net, "three");
  net = part("b", "square", {}, net, "four");
  const std::vector<NDArray> args = {random_on(kCpu, {5, 4}, 1), random_on(kCpu, {6, 4}, 2),
                                     random_on(kCpu, {3, 6}, 3)};
  const NDArray head = random_on(kCpu, {5, 3}, 4);
  const Bound expected = bind_on(kCpu, net, args);
  expected.exec->forward(true);
  expected.exec->backward({head});
  for (int seed = 0; seed < 12; ++seed) {
    seed_anew(uint64_t(seed));
    for (const bool swapped : {false, true}) {
      ExecutorOptions options;
      options.context = seed % 2 ? kCpu : kGpu0;
      options.group2ctx = {{"a", swapped ? kGpu0 : kCpu}, {"b", swapped ? kCpu : kGpu0}};
      SimpleBind what;
      what.shapes = {{"data", Shape{5, 4}}};
      what.grad_reqs.assign(args.size(), GradReq::kWrite);
      const std::shared_ptr<Executor> exec = Executor::simple_bind(net, what, options);
      for (size_t i = 0; i < args.size(); ++i) exec->args()[i].copy_from(args[i]);
      for (int pass = 0; pass < 3; ++pass) {
        exec->forward(true);
        exec->backward({head});
      }
      same("output", exec->outputs()[0], expected.exec->outputs()[0]);
      for (size_t i = 0; i < args.size(); ++i) same("gradient", exec->grads()[i], expected.grads[i]);
    }
  }
}

TEST(copies_from_and_to_the_host_do_not_make_the_caller_wait) {
  const std::shared_ptr<Device> device = get_device(kGpu0);
  const std::shared_ptr<Queue> queue = device->create_queue(QueueOptions());
  const std::shared_ptr<Memory> there = device->allocate(1 << 20);
  const auto host = std::make_shared<std::vector<char>>(1 << 20, 'a'),
             back = std::make_shared<std::vector<char>>(1 << 20);
  CONTROL(cudasim_stop_device)(0, 1);  // a wait for it would not end
  queue->copy(there->data(), host->data(), host->size(), host);
  queue->copy(back->data(), there->data(), back->size(), back);
  CHECK(!queue->idle());
  CONTROL(cudasim_stop_device)(0, 0);
  queue->sync();
  CHECK(*back == *host);
}

TEST(arrays_are_zeroed_filled_sliced_and_joined_where_they_are) {
  const auto host_bytes = CONTROL(cudasim_host_bytes);
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kUint8}) {
    const auto on_both = [&](const auto &make) {
      const uint64_t before = host_bytes();
      const NDArray found = make(kGpu0);
      immediate_timeline(kGpu0)->sync();
      CHECK_EQ(host_bytes(), before);
      CHECK(values_of(found) == values_of(make(kCpu)));
    };
    for (const Shape &shape : {Shape{3}, Shape{2, 5, 3}, Shape{300, 70}}) {
      on_both([&](const Context &context) { return NDArray::create(shape, dtype, context); });
      on_both([&](const Context &context) {
        const NDArray filled = NDArray::create(shape, dtype, context);
        filled.fill(3);
        return filled;
      });
    }
    const NDArray cpu = NDArray::create({4, 6, 5}, dtype, kCpu);
    cpu.copy_from(random_on(kCpu, cpu.shape(), 1));
    const NDArray gpu = cpu.copy_to(kGpu0);
    for (int axis = 0; axis < 3; ++axis) {
      const auto array_on = [&](const Context &context) { return context == kCpu ? cpu : gpu; };
      on_both([&](const Context &context) { return array_on(context).slice_axis(axis, 1, 3); });
      on_both([&](const Context &context) {
        const NDArray array = array_on(context);
        return concatenate({array.slice_axis(axis, 1, 3), array, array.slice_axis(axis, 0, 1)}, axis);
      });
    }
  }
}

TEST(a_released_executor_ends_without_a_wait) {
  seed_anew(2);
  const auto in_use = CONTROL(cudasim_bytes_in_use);
  const size_t before = in_use(1);
  {
    const Bound bound = bind_on(kGpu1, node("square", {}, {"x"}), {random_on(kCpu, {1000}, 1)});
    bound.exec->forward(true);
  }
  for (int i = 0; i < 500 && in_use(1) > before; ++i) usleep(10000);
  CHECK_EQ(in_use(1), before);
}

// Even if releasing that memory takes long.
TEST(allocations_wait_for_memory_that_finished_work_holds) {
  struct Held {
    std::shared_ptr<Memory> memory;
    std::vector<char> from;
    ~Held() { usleep(300000); }
  };
  const std::shared_ptr<Device> device = get_device(kGpu2);
  const std::shared_ptr<Queue> queue = device->create_queue(QueueOptions());
  constexpr size_t kBytes = size_t(48) << 20;
  CONTROL(cudasim_set_memory)(CONTROL(cudasim_bytes_in_use)(2) + kBytes + kBytes / 2);
  {
    auto held = std::make_shared<Held>();
    held->memory = device->allocate(kBytes);
    held->from = std::vector<char>(64);
    queue->copy(held->memory->data(), held->from.data(), held->from.size(), held);
  }
  CHECK_EQ(device->allocate(kBytes)->bytes(), kBytes);
  CONTROL(cudasim_set_memory)(size_t(1) << 30);
}

// The copy goes through host memory, which is written and read in the order of the two queues.
TEST(arrays_go_from_gpu_to_gpu_while_nobody_waits) {
  for (int seed = 0; seed < 12; ++seed) {
    seed_anew(uint64_t(seed));
    const NDArray x = random_on(kGpu0, {3000}, 1), y = random_on(kGpu1, {3000}, 2);
    const std::vector<double> first = values_of<double>(x);
    for (int i = 0; i < 4; ++i) {
      const NDArray next = invoke("square", {}, {x}, {}, kGpu0)[0];
      y.copy_from(next);
      x.copy_from(y);
    }
    const std::vector<double> last = values_of<double>(x);
    for (size_t i = 0; i < last.size(); ++i) CHECK_NEAR(last[i], std::pow(first[i], 16), 1e-5);
  }
}

// A process can have about 65,000 mappings; the simulator needs two for each array that kernels access in a row.
TEST(very_many_arrays_are_touched_one_after_the_other) {
  seed_anew(2);
  const NDArray x = random_on(kGpu0, {1, 36000}, 1);
  const std::vector<NDArray> parts = invoke("SliceChannel", {{"num_outputs", "36000"}}, {x}, {}, kGpu0);
  const std::vector<double> all = values_of<double>(x);
  CHECK_EQ(parts.size(), all.size());
  for (const size_t i : {size_t(0), all.size() / 2, all.size() - 1})
    CHECK_NEAR(values_of<double>(parts[i])[0], all[i], 0);
}

// One thread waits repeatedly while another one enqueues work and releases its arrays.
TEST(a_wait_does_not_free_work_enqueued_meanwhile) {
  seed_anew(2);
  const std::shared_ptr<Queue> queue = get_device(kGpu0)->create_queue(QueueOptions());
  std::atomic<bool> over{false};
  std::thread waits([&] {
    while (!over) queue->sync();
  });
  for (int i = 0; i < 2000; ++i) {
    const auto both = std::make_shared<std::pair<std::shared_ptr<Memory>, std::shared_ptr<Memory>>>(
        get_device(kGpu0)->allocate(64), get_device(kGpu0)->allocate(64));
    queue->copy(both->first->data(), both->second->data(), 64, both);
  }
  over = true;
  waits.join();
  queue->sync();
  CHECK_EQ(std::string(CONTROL(cudasim_reports)()), std::string());
}

// ---- failures

TEST(whichever_call_of_cuda_fails_it_is_an_error_and_all_goes_on_afterwards) {
  const auto fail_call = CONTROL(cudasim_fail_call);
  const auto in_use = CONTROL(cudasim_bytes_in_use);
  const auto objects = CONTROL(cudasim_num_objects);
  const auto pass = [] {
    const NDArray x = random_on(kGpu1, {4, 3}, 1);
    const NDArray w = random_on(kGpu1, {2, 3}, 2), b = random_on(kGpu1, {2}, 3);
    const Bound bound =
        bind_on(kGpu1, node("FullyConnected", {{"num_hidden", "2"}}, {"x", "w", "b"}), {x.copy_to(kCpu), w, b});
    bound.exec->forward(true);
    bound.exec->backward({random_on(kGpu1, {4, 2}, 4)});
    values_of<double>(bound.grads[1]);
  };
  pass();
  const auto fail_each_call = [&] {
    int num_failed = 0;
    for (uint64_t nth = 1; nth < 400; ++nth) {
      fail_call(nth, nth % 2 ? 2 : 999);  // cudaErrorMemoryAllocation, cudaErrorUnknown
      try {
        pass();
        fail_call(0, 0);
        if (nth > 150) break;
      } catch (const Error &error) {
        fail_call(0, 0);
        ++num_failed;
        const std::string what = error.what();
        CHECK(what.size() > 5);
        if (what.find("was not written") == std::string::npos && what.find("out of memory") != std::string::npos)
          CHECK_EQ(int(error.code()), int(Code::kOutOfMemory));
      }
    }
    return num_failed;
  };
  CHECK(fail_each_call() > 30);
  pass();
  const auto fail_and_pass = [&] {
    fail_each_call();
    pass();
  };
  CHECK(leaves_nothing(fail_and_pass, objects, [&] { return in_use(1); }));
  CONTROL(cudasim_reports)();
}

// The host uses CUDA itself, on another device. Checked after each of our calls, and for each CUDA call that can fail
// in them.
TEST(the_hosts_context_and_last_error_are_as_they_were_whatever_fails) {
  const auto fail_call = CONTROL(cudasim_fail_call);
  const auto current = CONTROL(cudasim_current_context);
  const auto last_error = CONTROL(cudasim_last_error);
  int num_failed = 0;
  bool kept = true, clean = true;
  std::thread([&] {
    void *const own = CONTROL(cudasim_create_context)(3);
    const auto look = [&] { kept = kept && current() == own, clean = clean && last_error() == 0; };
    for (uint64_t nth = 0; nth < 200; ++nth) {
      fail_call(nth, nth % 2 ? 2 : 999);  // the first time no call fails
      try {
        const NDArray x = random_on(kGpu1, {4, 3}, 1), head = random_on(kGpu1, {4, 2}, 4);
        look();
        const Bound bound = bind_on(kGpu1, node("FullyConnected", {{"num_hidden", "2"}}, {"x", "w", "b"}),
                                    {x.copy_to(kCpu), random_on(kCpu, {2, 3}, 2), random_on(kCpu, {2}, 3)});
        look();
        bound.exec->forward(true);
        look();
        bound.exec->backward({head});
        look();
        values_of<double>(bound.grads[1]);
        look();
      } catch (const Error &) {
        ++num_failed;
      }
      look();  // everything has been released
    }
    fail_call(0, 0);
    CONTROL(cudasim_destroy_context)(own);
  }).join();
  CHECK(kept);
  CHECK(clean);
  CHECK(num_failed > 20);
  CONTROL(cudasim_reports)();
}

TEST(a_device_that_breaks_says_so_and_leaves_its_arrays_marked_and_others_alone) {
  seed_anew(2);
  const Bound there = bind_on(kGpu3, node("square", {}, {"x"}), {random_on(kCpu, {64}, 1)});
  const Bound here = bind_on(kGpu0, node("square", {}, {"x"}), {random_on(kCpu, {64}, 1)});
  there.exec->forward(true);
  here.exec->forward(true);
  CONTROL(cudasim_break_device)(3);
  CHECK_THROWS(there.exec->wait(), Error,
               "illegal memory access was encountered on gpu(3), in forward (square 'node')");
  CHECK_THROWS(values_of<double>(there.exec->outputs()[0]), Error, "illegal memory access");
  CHECK_THROWS(values_of<double>(there.exec->outputs()[0]), Error, "");
  CHECK_THROWS(random_on(kGpu3, {4}, 1), Error, "gpu(3)");
  CHECK_EQ(values_of<double>(here.exec->outputs()[0]).size(), size_t(64));
}

// Host functions that the driver calls after their device has failed, or never.
TEST(a_failed_device_writes_to_no_memory_that_was_freed) {
  seed_anew(2);
  struct Copied {
    std::vector<char> bytes = std::vector<char>(1000, 'a');
    std::atomic<bool> failed{false};
  };
  const auto failed = [](const void *owner, const char *) {
    const_cast<Copied *>(static_cast<const Copied *>(owner))->failed = true;
  };
  const std::shared_ptr<Device> device = get_device(kGpu2);
  const std::shared_ptr<Queue> queue = device->create_queue(QueueOptions());
  const std::shared_ptr<Memory> there = device->allocate(1000);
  std::vector<std::shared_ptr<Copied>> read;
  CONTROL(cudasim_stop_device)(2, 1);  // no work runs before it breaks
  for (int i = 0; i < 20; ++i) {
    read.push_back(std::make_shared<Copied>());
    queue->copy(read.back()->bytes.data(), there->data(), 1000, read.back(), failed);
    const auto written = std::make_shared<Copied>();
    queue->copy(there->data(), written->bytes.data(), 1000, written, failed);
  }
  CONTROL(cudasim_break_device)(2);
  for (int i = 0; i < 1000 && !read.back()->failed; ++i) usleep(10000);
  for (const auto &copied : read) {
    CHECK(copied->failed.load());
    copied->bytes.assign(1000, 'b');
  }
  CONTROL(cudasim_stop_device)(2, 0);
  const NDArray here = random_on(kGpu0, {4}, 1);
  for (int i = 0; i < 200; ++i) values_of<double>(here.copy_to(kCpu));  // each call lets the streams run
  for (const auto &copied : read) CHECK(copied->bytes == std::vector<char>(1000, 'b'));
}

TEST(take_in_mode_raise_has_the_error_that_it_has_on_the_cpu_and_all_goes_on_afterwards) {
  seed_anew(3);
  const std::vector<float> far{1, 7, 0, -1};
  const NDArray at = NDArray::create({4}, Dtype::kFloat32, kCpu), near = random_on(kCpu, {4}, 2);  // 0, or just below
  at.write(far.data(), at.bytes());
  for (const Context &context : {kCpu, kGpu0}) {
    const Bound bound =
        bind_on(context, node("take", {{"mode", "raise"}}, {"x", "at"}), {random_on(kCpu, {5, 3}, 1), at});
    bound.exec->forward(false);
    CHECK_THROWS(bound.exec->outputs()[0].wait(), Error, "indices[1]: expected 0 to 4, found 7");
    bound.args[1].copy_from(near);
    bound.exec->forward(false);
    CHECK_EQ(values_of<double>(bound.exec->outputs()[0]).size(), size_t(12));
  }
}

TEST(a_forked_child_is_refused) {
  values_of<double>(random_on(kGpu0, {4}, 1));
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    try {
      get_device(kGpu0)->allocate(4);
      _exit(1);
    } catch (const Error &) {
      _exit(0);
    }
  }
  int status = 1;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
}

// Runs in a process of its own: leaves work queued that the device never runs.
static void end_with_work() {
  const std::shared_ptr<Device> device = get_device(kGpu0);
  static const auto *const queue = new std::shared_ptr<Queue>(device->create_queue(QueueOptions()));
  static const auto *const there = new std::shared_ptr<Memory>(device->allocate(64));
  static const auto *const here = new std::vector<char>(64);
  CONTROL(cudasim_stop_device)(0, 1);
  (*queue)->copy((*there)->data(), here->data(), 64, std::make_shared<int>(0),
                 [](const void *, const char *) { _exit(1); });
}

TEST(a_process_may_end_with_work_that_is_not_done) {
  // It makes no CUDA call after that.
  const std::string command =
      "said=$('" + own_path() + "' end_with_work 2>&1) && case $said in *cudasim:*) false ;; esac";
  CHECK_EQ(std::system(command.c_str()), 0);
}

int main(int argc, char **argv) {
  ends_with_work = argc == 2 && std::string(argv[1]) == "end_with_work";
  if (!ends_with_work) return unit::run_all(argc, argv);
  end_with_work();
  return 0;
}
