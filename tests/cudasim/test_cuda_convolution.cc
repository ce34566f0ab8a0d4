// SPDX-License-Identifier: Apache-2.0
// Convolutions on the simulated runtime, with its simulated cuDNN: which kernel is chosen, and that results equal the
// CPU's.
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "cuda_control.hpp"
#include "executor/executor.hpp"
#include "executor/invoke.hpp"
#include "op/activation.hpp"
#include "op/convolution.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

const Context kCpu, kGpu0{DeviceType::kGpu, 0}, kGpu1{DeviceType::kGpu, 1};

[[maybe_unused]] const int cudnn_is_there = setenv("CUDASIM_CUDNN", "92600", /* overwrite */ 0);  // with any seed
const auto reports = CONTROL(cudasim_reports);  // before the first use of a device
const auto num_convolutions = CONTROL(cudasim_num_convolutions);
const auto num_descriptors = CONTROL(cudasim_num_cudnn_descriptors);

NDArray random_of(const Shape &shape, uint64_t seed, Dtype dtype = Dtype::kFloat32) {
  const NDArray array = NDArray::create(shape, dtype, kCpu);
  array.fill_uniform(-1, 1, seed);
  return array;
}

std::vector<double> values(const NDArray &array) {
  const NDArray wide = NDArray::create(array.shape(), Dtype::kFloat64, kCpu);
  wide.copy_from(array);
  wide.wait();
  std::vector<double> all(static_cast<size_t>(array.size()));
  wide.read(all.data(), wide.bytes());
  return all;
}

double farthest(const NDArray &found, const NDArray &expected) {
  const std::vector<double> a = values(found), b = values(expected);
  CHECK_EQ(a.size(), b.size());
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::fabs(a[i] - b[i]) / (1 + std::fabs(b[i])));
  return most;
}

// The tolerance for sums of float32 in another order, rounded to 16 bits.
double tolerance(Dtype dtype) { return dtype == Dtype::kFloat16 ? 0x1p-10 : dtype == Dtype::kBfloat16 ? 0x1p-7 : 1e-5; }

struct Case {
  const char *op;
  AttrMap attrs;
  Shape data, weight, result;
  int64_t biases;  // 0: none
};

Symbol node_of(const Case &of, const std::string &name = "node") {
  std::vector<Symbol> inputs{Symbol::variable("x"), Symbol::variable("w")};
  if (of.biases) inputs.push_back(Symbol::variable("b"));
  AttrMap attrs = of.attrs;
  attrs["no_bias"] = of.biases ? "0" : "1";
  return Symbol::create(of.op, attrs, name, {}, inputs);
}

struct Bound {
  std::vector<NDArray> args, grads;
  std::shared_ptr<Executor> exec;
  NDArray head;

  void pass() const {
    exec->forward(true);
    exec->backward({head});
  }
};

Bound bind_on(const Context &context, const Case &of, Dtype dtype = Dtype::kFloat32, bool tf32 = false) {
  Bound bound;
  std::vector<Shape> shapes{of.data, of.weight};
  if (of.biases) shapes.push_back(Shape{of.biases});
  for (size_t i = 0; i < shapes.size(); ++i) {
    bound.args.push_back(random_of(shapes[i], i + 1, dtype).copy_to(context));
    bound.grads.push_back(NDArray::create(shapes[i], dtype, context));
  }
  bound.head = random_of(of.result, 9, dtype).copy_to(context);
  ExecutorOptions options;
  options.context = context;
  options.compute.tf32 = tf32;
  const std::vector<GradReq> reqs(shapes.size(), GradReq::kWrite);
  bound.exec = Executor::bind(node_of(of), bound.args, bound.grads, reqs, {}, options);
  return bound;
}

void same_as_on_the_cpu(const Bound &gpu, const Case &of, Dtype dtype) {
  const Bound cpu = bind_on(kCpu, of, dtype);
  cpu.pass();
  const auto check = [&](const char *what, const NDArray &found, const NDArray &expected) {
    const double far = farthest(found, expected);
    if (!(far <= tolerance(dtype))) unit::fail(__FILE__, __LINE__, text(of.op, ", ", dtype, ": ", what, ": ", far));
  };
  check("output", gpu.exec->outputs()[0], cpu.exec->outputs()[0]);
  for (size_t i = 0; i < gpu.grads.size(); ++i) check("gradient", gpu.grads[i], cpu.grads[i]);
}

const std::vector<Case> &cases() {
  static const auto *const all = new std::vector<Case>{
      {"Convolution",
       {{"kernel", "(3,)"}, {"stride", "(2,)"}, {"pad", "(1,)"}, {"num_filter", "6"}},
       {2, 4, 11},
       {6, 4, 3},
       {2, 6, 6},
       6},
      {"Convolution",
       {{"kernel", "(3,3)"}, {"pad", "(1,1)"}, {"num_filter", "8"}, {"num_group", "2"}},
       {2, 4, 6, 5},
       {8, 2, 3, 3},
       {2, 8, 6, 5},
       8},
      {"Convolution",
       {{"kernel", "(3,2)"},
        {"stride", "(2,3)"},
        {"dilate", "(2,1)"},
        {"pad", "(2,0)"},
        {"num_filter", "5"},
        {"num_group", "5"}},
       {2, 5, 9, 8},
       {5, 1, 3, 2},
       {2, 5, 5, 3},
       0},
      {"Convolution",
       {{"kernel", "(3,3)"}, {"stride", "(2,1)"}, {"layout", "NHWC"}, {"num_filter", "4"}, {"num_group", "2"}},
       {2, 7, 6, 6},
       {4, 3, 3, 3},
       {2, 3, 4, 4},
       4},
      {"Convolution",
       {{"kernel", "(2,3,3)"}, {"pad", "(0,1,1)"}, {"num_filter", "3"}},
       {1, 2, 4, 5, 3},
       {3, 2, 2, 3, 3},
       {1, 3, 3, 5, 3},
       3},
      {"Convolution",
       {{"kernel", "(2,2,1)"}, {"layout", "NDHWC"}, {"num_filter", "3"}},
       {1, 3, 4, 2, 2},
       {3, 2, 2, 1, 2},
       {1, 2, 3, 2, 3},
       0},
      {"Deconvolution",
       {{"kernel", "(3,)"}, {"stride", "(2,)"}, {"adj", "(1,)"}, {"pad", "(1,)"}, {"num_filter", "4"}},
       {2, 6, 5},
       {6, 4, 3},
       {2, 4, 10},
       4},
      {"Deconvolution",
       {{"kernel", "(3,3)"}, {"stride", "(2,2)"}, {"num_filter", "6"}, {"num_group", "2"}},
       {2, 4, 4, 3},
       {4, 3, 3, 3},
       {2, 6, 9, 7},
       6},
      {"Deconvolution",
       {{"kernel", "(4,4)"}, {"stride", "(2,2)"}, {"target_shape", "(8,8)"}, {"num_filter", "2"}},
       {1, 3, 4, 4},
       {3, 2, 4, 4},
       {1, 2, 8, 8},
       0},
  };
  return *all;
}

}  // namespace

TEST(convolutions_of_each_kind_are_computed_by_cudnn_as_on_the_cpu) {
  for (const Case &of : cases()) {
    for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat16, Dtype::kBfloat16}) {
      const Bound gpu = bind_on(kGpu0, of, dtype);
      const uint64_t before = num_convolutions();
      gpu.pass();
      same_as_on_the_cpu(gpu, of, dtype);
      // A bias is rounded with the sum, and cuDNN has no such graph of a gradient.
      const bool elsewhere = of.biases && dtype != Dtype::kFloat32 && of.op == std::string("Deconvolution");
      CHECK_EQ(num_convolutions(), before + (elsewhere ? 2 : 3));
    }
  }
  CHECK_EQ(std::string(reports()), std::string());
}

TEST(repeated_passes_are_replayed_with_the_same_numbers) {
  const auto num_replays = CONTROL(cudasim_num_replays);
  for (const Case &of : {cases()[1], cases()[7]}) {
    const Bound gpu = bind_on(kGpu0, of);
    const uint64_t before = num_convolutions(), replays = num_replays();
    for (int i = 0; i < 5; ++i) gpu.pass();
    same_as_on_the_cpu(gpu, of, Dtype::kFloat32);
    CHECK_EQ(num_convolutions(), before + 15);
    CHECK(num_replays() > replays);
  }
  CHECK_EQ(std::string(reports()), std::string());
}

// Arrays are views that begin at any element.
TEST(arrays_that_begin_anywhere_are_taken) {
  const auto within = [](const Context &context, const Shape &shape, uint64_t seed, int64_t first) {
    return random_of({shape.size() + 8}, seed).copy_to(context).slice(first, first + shape.size()).reshape(shape);
  };
  const uint64_t before = num_convolutions();
  for (const int64_t first : {0, 1, 4}) {
    std::vector<NDArray> results;
    for (const Context &context : {kCpu, kGpu0}) {
      const std::vector<NDArray> inputs{within(context, {2, 4, 6, 5}, 1, first), within(context, {3, 4, 3, 3}, 2, 3),
                                        random_of({3}, 3).copy_to(context)};
      results.push_back(invoke("Convolution", {{"kernel", "(3,3)"}, {"num_filter", "3"}}, inputs, {}, context)[0]);
    }
    CHECK(farthest(results[1], results[0]) < 1e-5);
  }
  CHECK_EQ(num_convolutions(), before + 3);
  CHECK_EQ(std::string(reports()), std::string());
}

namespace {

// Whole numbers from -2 to 2, so that sums are exact.
void fill_with_whole_numbers(const NDArray &array, uint64_t seed) {
  const NDArray numbers = random_of(array.shape(), seed);
  for (int64_t i = 0; i < numbers.size(); ++i) {
    float &number = numbers.data_as<float>()[i];
    number = std::round(2 * number);
  }
  array.copy_from(numbers);
}

}  // namespace

// In float32 gradients of small filters are summed by a kernel of our own, over several tiles of channels and places
// and several parts, some of them short.
TEST(gradients_of_small_filters_are_summed_by_a_kernel_of_our_own) {
  struct Size {
    int64_t batch, in, out, height, width, side, stride;
  };
  for (const Size &s : {Size{2, 3, 5, 5, 4, 3, 1}, Size{3, 20, 33, 9, 40, 3, 1}, Size{50, 16, 16, 65, 32, 3, 1},
                        Size{1, 17, 16, 1, 8, 3, 1}, Size{3, 20, 33, 9, 20, 3, 2}, Size{50, 16, 8, 65, 16, 3, 2},
                        Size{3, 20, 33, 9, 20, 1, 2}, Size{50, 16, 8, 65, 16, 1, 2}}) {
    const auto pair_of = [](int64_t n) { return text("(", n, ",", n, ")"); };
    const Case of{"Convolution",
                  {{"kernel", pair_of(s.side)},
                   {"stride", pair_of(s.stride)},
                   {"pad", pair_of(s.side / 2)},
                   {"num_filter", std::to_string(s.out)}},
                  {s.batch, s.in, s.height * s.stride, s.width * s.stride},
                  {s.out, s.in, s.side, s.side},
                  {s.batch, s.out, s.height, s.width},
                  0};
    const Bound gpu = bind_on(kGpu0, of), cpu = bind_on(kCpu, of);
    const uint64_t before = num_convolutions();
    for (const Bound *bound : {&gpu, &cpu}) {
      for (size_t i = 0; i < 2; ++i) fill_with_whole_numbers(bound->args[i], i + 1);
      fill_with_whole_numbers(bound->head, 9);
      bound->pass();
    }
    CHECK(values(gpu.grads[1]) == values(cpu.grads[1]));
    CHECK_EQ(num_convolutions(), before + 2);
  }
  CHECK_EQ(std::string(reports()), std::string());
}

// Arrays are views that begin at any element, and results have the bits of those of whole arrays.
TEST(gradients_of_filters_have_the_same_bits_for_views) {
  const Shape shape{2, 3, 6, 8}, filters{4, 3, 3, 3}, result{2, 4, 6, 8};
  const auto within = [](const Shape &of, uint64_t seed, int64_t first) {
    const NDArray whole = NDArray::create({of.size() + 8}, Dtype::kFloat32, kGpu0);
    const NDArray part = whole.slice(first, first + of.size()).reshape(of);
    part.copy_from(random_of(of, seed));
    return part;
  };
  std::vector<std::vector<double>> found;
  for (const int64_t first : {0, 1}) {
    const std::vector<NDArray> args{within(shape, 1, first), within(filters, 2, first)};
    const std::vector<NDArray> grads{within(shape, 3, first), within(filters, 4, first)};
    ExecutorOptions options;
    options.context = kGpu0;
    const Case of{
        "Convolution", {{"kernel", "(3,3)"}, {"pad", "(1,1)"}, {"num_filter", "4"}}, shape, filters, result, 0};
    const auto exec = Executor::bind(node_of(of), args, grads, {GradReq::kWrite, GradReq::kWrite}, {}, options);
    exec->forward(true);
    exec->backward({within(result, 5, first)});
    found.push_back(values(grads[1]));
  }
  CHECK(found[0] == found[1]);
  CHECK_EQ(std::string(reports()), std::string());
}

TEST(factors_are_rounded_to_tf32_where_that_is_allowed_alone) {
  const Case &of = cases()[1];
  const Bound exact = bind_on(kGpu0, of), rounded = bind_on(kGpu0, of, Dtype::kFloat32, true);
  exact.pass();
  rounded.pass();
  const auto far = [&](const NDArray &a, const NDArray &b) { return farthest(a, b); };
  CHECK(far(rounded.exec->outputs()[0], exact.exec->outputs()[0]) > 1e-5);
  CHECK(far(rounded.exec->outputs()[0], exact.exec->outputs()[0]) < 1e-2);
  for (const size_t i : {0, 1}) {
    CHECK(far(rounded.grads[i], exact.grads[i]) > 1e-5);
    CHECK(far(rounded.grads[i], exact.grads[i]) < 1e-2);
  }
}

// ---- layers with a bias, a sum and relu

namespace {

// relu(Convolution(x, w, b) + z), or without z.
Symbol layer_of(const Case &of, bool adds) {
  const Symbol layer = node_of(of);
  const Symbol sum = adds ? Symbol::create("elemwise_add", {}, "sum", {}, {layer, Symbol::variable("z")}) : layer;
  return Symbol::create("Activation", {{"act_type", "relu"}}, "relu", {}, {sum});
}

NDArray infer(const Context &context, const Case &of, Dtype dtype, bool adds, bool tf32 = false) {
  std::vector<NDArray> args{random_of(of.data, 1, dtype), random_of(of.weight, 2, dtype),
                            random_of({of.biases}, 3, dtype)};
  if (adds) args.push_back(random_of(of.result, 4, dtype));
  for (NDArray &arg : args) arg = arg.copy_to(context);
  ExecutorOptions options;
  options.context = context;
  options.compute.tf32 = tf32;
  const auto exec =
      Executor::bind(layer_of(of, adds), args, {}, std::vector<GradReq>(args.size(), GradReq::kNull), {}, options);
  const std::string plan = exec->debug_text();
  CHECK(plan.find("Convolution 'node'") != std::string::npos && plan.find("'relu'") == std::string::npos);
  CHECK(plan.find("'sum'") == std::string::npos);
  exec->forward(false);
  return exec->outputs()[0];
}

}  // namespace

// In 16 bits and TF32 cuDNN runs all of it; in float32 a pass of our own comes after the convolution.
TEST(bias_sum_and_relu_are_one_step_with_the_convolution) {
  for (const Case &of : cases()) {
    if (!of.biases || of.op != std::string("Convolution")) continue;
    for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat16, Dtype::kBfloat16}) {
      for (const bool adds : {false, true}) {
        const uint64_t before = num_convolutions();
        const double far = farthest(infer(kGpu0, of, dtype, adds), infer(kCpu, of, dtype, adds));
        if (!(far <= tolerance(dtype))) unit::fail(__FILE__, __LINE__, text(dtype, adds ? ", sum: " : ": ", far));
        CHECK_EQ(num_convolutions(), before + 1);
      }
    }
    CHECK(farthest(infer(kGpu0, of, Dtype::kFloat32, true, true), infer(kCpu, of, Dtype::kFloat32, true)) < 1e-2);
  }
  CHECK_EQ(std::string(reports()), std::string());
}

namespace {

NDArray array_of(const Shape &shape, Dtype dtype, const std::function<float(int64_t)> &at) {
  const NDArray wide = NDArray::create(shape, Dtype::kFloat32, kCpu), narrow = NDArray::create(shape, dtype, kCpu);
  for (int64_t i = 0; i < shape.size(); ++i) wide.data_as<float>()[i] = at(i);
  narrow.copy_from(wide);
  return narrow.copy_to(kGpu0);
}

// Sums that 16 bits do not hold, from which a bias leaves 1: 0 if they are rounded before it is added.
void bias_is_rounded_with_the_sum() {
  struct Layout {
    Shape data;
    int64_t groups;
    bool last;
  };
  for (const Layout &l : {Layout{{2, 16, 3, 5}, 1, false},
                          {{2, 16, 16, 16}, 1, false},
                          {{2, 16, 3, 5}, 2, false},
                          {{2, 3, 5, 16}, 1, true},
                          {{2, 3, 5, 16}, 2, true}}) {
    for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBfloat16}) {
      const float even = dtype == Dtype::kFloat16 ? 2048 : 256;  // the odd number behind it has a bit too many
      const int64_t inner = l.last ? 1 : l.data[2] * l.data[3], depth = 16 / l.groups;
      const NDArray data = array_of(l.data, dtype, [&](int64_t i) {
        const int64_t channel = i / inner % depth;
        return channel == 0 ? even : channel == 1 ? 1.0f : 0.0f;
      });
      const Shape filters = l.last ? Shape{16, 1, 1, depth} : Shape{16, depth, 1, 1};
      const NDArray ones = array_of(filters, dtype, [](int64_t) { return 1.0f; });
      const NDArray bias = array_of({16}, dtype, [&](int64_t) { return -even; });
      const AttrMap attrs{{"kernel", "(1,1)"},
                          {"num_filter", "16"},
                          {"num_group", std::to_string(l.groups)},
                          {"layout", l.last ? "NHWC" : "NCHW"}};
      for (const double y : values(invoke("Convolution", attrs, {data, ones, bias}, {}, kGpu0)[0])) CHECK_EQ(y, 1.0);
    }
  }
}

}  // namespace

TEST(a_bias_is_rounded_with_the_sum) { bias_is_rounded_with_the_sum(); }

// ---- which kernel is chosen

namespace {

KernelChoice choice_for(const Shape &data, const Shape &weight, const Shape &result, Dtype dtype, const AttrMap &attrs,
                        const std::vector<PostOp> &post = {}) {
  StepSpec spec;
  spec.op = "Convolution";
  spec.attrs = get_op(spec.op).parse(attrs).pointer();
  spec.context = kGpu0;
  spec.inputs = {{data, dtype, nullptr}, {weight, dtype, nullptr}};
  if (!spec.attrs_as<ConvolutionAttrs>().no_bias) spec.inputs.push_back({{weight[0]}, dtype, nullptr});
  spec.outputs = {{result, dtype, nullptr}};
  spec.wanted = {true};
  spec.post = post;
  KernelChoice choice;
  get_device(kGpu0)->make_kernel(spec, &choice);
  return choice;
}

}  // namespace

// Runs in a process of its own, with the setting in its environment.
TEST(where_cudnn_is_too_old_other_kernels_serve_and_the_reason_is_known) {
  if (std::string(std::getenv("CUDASIM_CUDNN")) != "8907") {
    CHECK(passes_again_with("CUDASIM_CUDNN=8907", __func__));
    return;
  }
  const KernelChoice choice =
      choice_for({1, 2, 4, 4}, {3, 2, 3, 3}, {1, 3, 2, 2}, Dtype::kFloat32, {{"kernel", "(3,3)"}, {"num_filter", "3"}});
  CHECK(choice.name != "cudnn");
  CHECK(choice.refusals.find("cudnn: libcudnn.so.9 is of version 8907, and must be of 90000 or later") == 0);
  for (const Case &of : cases()) {
    for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat16, Dtype::kBfloat16}) {
      const Bound gpu = bind_on(kGpu0, of, dtype);
      gpu.pass();
      same_as_on_the_cpu(gpu, of, dtype);
      if (!of.biases || of.op != std::string("Convolution")) continue;
      const double far = farthest(infer(kGpu0, of, dtype, true), infer(kCpu, of, dtype, true));
      if (!(far <= 2 * tolerance(dtype))) unit::fail(__FILE__, __LINE__, text(dtype, ": ", far));  // rounded twice
    }
  }
  bias_is_rounded_with_the_sum();
  CHECK_EQ(num_convolutions(), uint64_t(0));
}

TEST(problems_that_cudnn_does_not_take_are_refused_with_the_reason) {
  const AttrMap attrs = {{"kernel", "(3,3)"}, {"num_filter", "3"}, {"no_bias", "1"}};
  const auto choose = [&](const Shape &data, const Shape &result, Dtype dtype) {
    return choice_for(data, {3, 2, 3, 3}, result, dtype, attrs);
  };
  CHECK_EQ(choose({1, 2, 4, 4}, {1, 3, 2, 2}, Dtype::kFloat16).name, std::string("cudnn"));
  const auto refuses = [](const KernelChoice &choice, const char *why) {
    CHECK(choice.name != "cudnn");
    if (choice.refusals.find(text("cudnn: ", why)) == std::string::npos)
      unit::fail(__FILE__, __LINE__, unit::difference("reasons", choice.refusals, why));
  };
  refuses(choose({1, 2, 4, 4}, {1, 3, 2, 2}, Dtype::kFloat64), "expected float32, float16 or bfloat16 for input 0");
  refuses(choose({0, 2, 4, 4}, {0, 3, 2, 2}, Dtype::kFloat32), "an array has no elements");
  refuses(choose({1 << 20, 2, 32, 34}, {1 << 20, 3, 30, 32}, Dtype::kFloat32),
          "an array has more than 2^31 - 1 elements");
  // An activation that it has no graph for here, and one without a bias.
  const auto with_activation = [&](int type, const char *no_bias) {
    return choice_for({1, 2, 4, 4}, {3, 2, 3, 3}, {1, 3, 2, 2}, Dtype::kFloat16,
                      {{"kernel", "(3,3)"}, {"num_filter", "3"}, {"no_bias", no_bias}},
                      {{PostOp::Kind::kActivation, type}});
  };
  CHECK_EQ(with_activation(ActivationAttrs::kRelu, "0").name, std::string("cudnn"));
  CHECK_THROWS(with_activation(ActivationAttrs::kTanh, "0"), Error, "cudnn: fuses relu alone");
  CHECK_THROWS(with_activation(ActivationAttrs::kRelu, "1"), Error, "cudnn: fuses behind a bias alone");
  // An error that only the library detects.
  refuses(choose({1, 2, 4, 4}, {1, 3, 5, 2}, Dtype::kFloat32), "cuDNN: CUDNN_STATUS_BAD_PARAM in cudnnBackendFinalize");
}

TEST(columns_of_a_window_that_is_too_large_are_refused) {
  const AttrMap attrs{{"kernel", "(64,64)"}, {"num_filter", "8"}, {"no_bias", "1"}};
  const auto choose = [&](int64_t channels) {
    return choice_for({1, channels, 65, 64}, {8, channels, 64, 64}, {1, 8, 2, 1}, Dtype::kFloat64, attrs);
  };
  CHECK_EQ(choose(1 << 11).name, std::string("columns"));
  const KernelChoice refused = choose(1 << 13);
  CHECK_EQ(refused.name, std::string("tiles"));
  CHECK(refused.refusals.find("columns: expected at most 1073741824 bytes of columns at a time, found 2147484160") !=
        std::string::npos);
}

// ---- plans and handles

TEST(equal_problems_of_a_device_share_a_plan) {
  const Case of{"Convolution", {{"kernel", "(3,3)"}, {"num_filter", "5"}}, {3, 4, 7, 7}, {5, 4, 3, 3}, {3, 5, 5, 5}, 0};
  const auto choose = [&](const Context &context) {
    StepSpec spec;
    spec.op = of.op;
    spec.attrs = get_op(spec.op).parse({{"kernel", "(3,3)"}, {"num_filter", "5"}, {"no_bias", "1"}}).pointer();
    spec.inputs = {{of.data, Dtype::kFloat32, nullptr}, {of.weight, Dtype::kFloat32, nullptr}};
    spec.outputs = {{of.result, Dtype::kFloat32, nullptr}};
    spec.wanted = {true};
    return get_device(context)->make_kernel(spec);
  };
  wait_until_released();
  const int before = num_descriptors();
  {
    const auto first = choose(kGpu0);
    const int with_one = num_descriptors();
    CHECK(with_one > before);
    const auto second = choose(kGpu0);
    CHECK_EQ(num_descriptors(), with_one);
    const auto elsewhere = choose(kGpu1);
    CHECK_EQ(num_descriptors() - with_one, with_one - before);
  }
  CHECK_EQ(num_descriptors(), before);
  CHECK(CONTROL(cudasim_num_cudnn_handles)() <= 4);
  CHECK_EQ(std::string(reports()), std::string());
}

TEST(several_threads_run_a_plan_at_once) {
  const Case &of = cases()[1];
  std::vector<Bound> bound;
  for (int i = 0; i < 4; ++i) bound.push_back(bind_on(i < 3 ? kGpu0 : kGpu1, of));
  std::vector<std::thread> threads;
  for (const Bound &own : bound) {
    threads.emplace_back([&own] {
      for (int i = 0; i < 8; ++i) own.pass();
    });
  }
  for (std::thread &thread : threads) thread.join();
  for (const Bound &own : bound) same_as_on_the_cpu(own, of, Dtype::kFloat32);
  CHECK_EQ(std::string(reports()), std::string());
}

// One thread at a time uses a handle, and plans are destroyed on their device, like modules.
TEST(plans_are_created_and_freed_while_another_thread_runs_some) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    const std::vector<NDArray> inputs{random_of({1, 2, 6, 6}, 1).copy_to(kGpu0),
                                      random_of({3, 2, 3, 3}, 2).copy_to(kGpu0)};
    while (!stop) {
      const AttrMap attrs{{"kernel", "(3,3)"}, {"num_filter", "3"}, {"no_bias", "1"}};
      invoke("Convolution", attrs, inputs, {}, kGpu0)[0].wait();
    }
  });
  int num_made = 0;
  for (int64_t side = 8; side < 72; ++side) {
    const KernelChoice choice = choice_for({1, 4, side, 9}, {3, 4, 3, 3}, {1, 3, side - 2, 7}, Dtype::kFloat32,
                                           {{"kernel", "(3,3)"}, {"num_filter", "3"}, {"no_bias", "1"}});
    num_made += choice.name == std::string("cudnn");
  }
  stop = true;
  other.join();
  CHECK_EQ(std::string(reports()), std::string());
  CHECK_EQ(num_made, 64);
}

// ---- failures

TEST(a_call_of_cudnn_that_fails_is_an_error_with_the_nodes_name) {
  const auto fail_call = CONTROL(cudasim_fail_call);
  const Case &of = cases()[1];
  const Bound gpu = bind_on(kGpu0, of);
  gpu.pass();
  values(gpu.grads[0]);
  int num_named = 0;
  for (uint64_t nth = 1; nth < 40; ++nth) {
    fail_call(nth, 999);  // cudaErrorUnknown
    std::string what;
    try {
      gpu.exec->forward(true);
      values(gpu.exec->outputs()[0]);
    } catch (const Error &error) {
      what = error.what();
    }
    fail_call(0, 0);
    if (what.find("cuDNN: CUDNN_STATUS_EXECUTION_FAILED in cudnn") == std::string::npos) continue;
    ++num_named;
    CHECK(what.find("Convolution 'node': ") != std::string::npos);
  }
  CHECK(num_named >= 1);
  for (int times = 8;; --times) {  // queues still report earlier failures
    try {
      const Bound anew = bind_on(kGpu0, of);
      anew.pass();
      return same_as_on_the_cpu(anew, of, Dtype::kFloat32);
    } catch (const Error &) {
      if (times == 0) throw;
    }
  }
}

// Also while a kernel is made: an allocation or the device may fail at any call.
TEST(a_call_that_fails_at_bind_is_an_error_and_leaves_nothing) {
  const auto fail_call = CONTROL(cudasim_fail_call);
  wait_until_released();  // memory of the passes before
  const int before = num_descriptors();
  int num_failed = 0;
  for (uint64_t nth = 1; nth < 60; ++nth) {
    const int64_t side = 8 + int64_t(nth);  // a size without a plan yet
    fail_call(nth, nth % 2 ? 2 : 999);      // cudaErrorMemoryAllocation, cudaErrorUnknown
    try {
      const KernelChoice choice = choice_for({1, 4, side, 8}, {3, 4, 3, 3}, {1, 3, side - 2, 6}, Dtype::kFloat32,
                                             {{"kernel", "(3,3)"}, {"num_filter", "3"}});
      CHECK_EQ(choice.name, std::string("cudnn"));
    } catch (const Error &error) {
      ++num_failed;
      CHECK_EQ(int(error.code()), int(nth % 2 ? Code::kOutOfMemory : Code::kDevice));
    }
    fail_call(0, 0);
    CHECK_EQ(num_descriptors(), before);
  }
  CHECK(num_failed >= 4);
  CHECK_EQ(std::string(reports()), std::string());
}

UNIT_MAIN()
