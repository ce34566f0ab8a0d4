// SPDX-License-Identifier: Apache-2.0
// Layers on bytes on the simulated runtime: products of bytes, whose sums must equal those of the CPU to the bit by
// every method, and networks that are bound to compute in int8.
#include <cmath>
#include <random>
#include <vector>

#include "cuda_control.hpp"
#include "executor/calibration.hpp"
#include "executor/executor.hpp"
#include "executor/invoke.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

const Context kCpu, kGpu{DeviceType::kGpu, 0};
const auto reports = CONTROL(cudasim_reports);  // before the first use of a device

NDArray array_of(const Shape &shape, Dtype dtype, const std::function<int(std::mt19937 &)> &draw, unsigned seed = 1) {
  std::mt19937 random(seed);
  const NDArray array = NDArray::create(shape, dtype, kCpu);
  for (int64_t i = 0; i < array.size(); ++i) array.data_as<int8_t>()[i] = int8_t(draw(random));
  return array;
}

NDArray any_bytes(const Shape &shape, Dtype dtype, unsigned seed) {
  return array_of(
      shape, dtype, [](std::mt19937 &random) { return int(random() >> 24); }, seed);
}

NDArray number(float value) {
  const NDArray array = NDArray::create({1}, Dtype::kFloat32, kCpu);
  array.fill(value);
  return array;
}

struct Layer {
  std::string op;
  AttrMap attrs;
  NDArray data, weight, bias;  // bias: none if null
};

std::vector<char> bytes_of(const NDArray &array) {
  std::vector<char> all(array.bytes());
  array.wait();
  if (!all.empty()) array.read(all.data(), all.size());
  return all;
}

void same_on_both(const Layer &layer) {
  AttrMap attrs = layer.attrs;
  attrs["no_bias"] = layer.bias ? "0" : "1";
  std::vector<std::vector<char>> found[2];
  for (const Context &context : {kCpu, kGpu}) {
    std::vector<NDArray> inputs{layer.data, layer.weight};
    if (layer.bias) inputs.push_back(layer.bias);
    for (const float bound : {-2.0f, 3.0f, -0.75f, 0.5f}) inputs.push_back(number(bound));
    if (layer.bias) inputs.push_back(number(-11)), inputs.push_back(number(10));
    for (NDArray &input : inputs) input = input.copy_to(context);
    for (const NDArray &output : invoke(layer.op, attrs, inputs, {}, context)) {
      found[context == kGpu].push_back(bytes_of(output));
    }
  }
  CHECK_EQ(found[0].size(), size_t(3));
  for (size_t i = 0; i < 3; ++i) {
    if (found[0][i] != found[1][i]) unit::fail(__FILE__, __LINE__, text(layer.op, ": output ", i, " differs"));
  }
  CHECK_EQ(std::string(reports()), "");
}

void convolution_is_the_same(const Shape &data, const Shape &weight, AttrMap attrs) {
  attrs["num_filter"] = std::to_string(weight[0]);
  for (const Dtype dtype : {Dtype::kInt8, Dtype::kUint8}) {
    for (const bool with_bias : {true, false}) {
      const NDArray bias = with_bias ? any_bytes({weight[0]}, Dtype::kInt8, 3) : NDArray();
      same_on_both(
          {"_contrib_quantized_conv", attrs, any_bytes(data, dtype, 1), any_bytes(weight, Dtype::kInt8, 2), bias});
    }
  }
}

}  // namespace

TEST(convolutions_of_bytes_are_those_of_the_cpu) {
  convolution_is_the_same({2, 4, 11}, {6, 4, 3}, {{"kernel", "(3,)"}, {"stride", "(2,)"}, {"pad", "(1,)"}});
  convolution_is_the_same({2, 3, 9, 8}, {5, 3, 3, 2},
                          {{"kernel", "(3,2)"}, {"stride", "(2,3)"}, {"dilate", "(2,1)"}, {"pad", "(2,0)"}});
  convolution_is_the_same({3, 16, 5, 4}, {8, 16, 1, 1}, {{"kernel", "(1,1)"}});
  convolution_is_the_same({1, 2, 4, 5, 3}, {3, 2, 2, 3, 3}, {{"kernel", "(2,3,3)"}, {"pad", "(0,1,1)"}});
  convolution_is_the_same({2, 6, 7, 5}, {9, 2, 3, 3}, {{"kernel", "(3,3)"}, {"num_group", "3"}});
  convolution_is_the_same({2, 16, 6, 5}, {24, 8, 3, 3}, {{"kernel", "(3,3)"}, {"num_group", "2"}, {"pad", "(1,1)"}});
  convolution_is_the_same({2, 8, 6, 5}, {8, 1, 3, 3}, {{"kernel", "(3,3)"}, {"num_group", "8"}, {"pad", "(1,1)"}});
}

TEST(channels_may_come_last) {
  const AttrMap attrs{{"kernel", "(3,3)"}, {"layout", "NHWC"}, {"stride", "(2,1)"}, {"pad", "(1,1)"}};
  convolution_is_the_same({2, 7, 6, 6}, {4, 3, 3, 6}, attrs);
  convolution_is_the_same({2, 5, 6, 16}, {4, 3, 3, 16}, attrs);
  AttrMap in_groups = attrs;
  in_groups["num_group"] = "2";
  convolution_is_the_same({2, 5, 6, 32}, {16, 3, 3, 16}, in_groups);
  convolution_is_the_same({2, 5, 6, 18}, {16, 3, 3, 9}, in_groups);
}

TEST(layers_of_any_size_are_those_of_the_cpu) {
  for (const auto &[rows, features, units] :
       {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {4, 16, 16}, {9, 7, 33}, {0, 5, 3}, {4, 0, 3}, {17, 80, 10}}) {
    for (const Dtype dtype : {Dtype::kInt8, Dtype::kUint8}) {
      for (const bool with_bias : {true, false}) {
        same_on_both({"_contrib_quantized_fully_connected",
                      {{"num_hidden", std::to_string(units)}},
                      any_bytes({rows, features}, dtype, 1),
                      any_bytes({units, features}, Dtype::kInt8, 2),
                      with_bias ? any_bytes({units}, Dtype::kInt8, 3) : NDArray()});
      }
    }
  }
}

// The tiles compute it, as the library refuses such an address.
TEST(bytes_may_begin_anywhere_in_an_array) {
  for (const int64_t first : {0, 4, 5}) {
    const NDArray data = any_bytes({400}, Dtype::kUint8, 1).slice(first, first + 96).reshape({3, 32});
    std::vector<std::vector<char>> found;
    for (const Context &context : {kCpu, kGpu}) {
      const NDArray weight = any_bytes({400}, Dtype::kInt8, 2).copy_to(context).slice(first, first + 192);
      std::vector<NDArray> inputs{data.copy_to(context), weight.reshape({6, 32})};
      for (const float bound : {-2.0f, 3.0f, -0.75f, 0.5f}) inputs.push_back(number(bound).copy_to(context));
      found.push_back(bytes_of(invoke("_contrib_quantized_fully_connected", {{"num_hidden", "6"}, {"no_bias", "1"}},
                                      inputs, {}, context)[0]));
    }
    CHECK(found[0] == found[1]);
  }
  CHECK_EQ(std::string(reports()), "");
}

// More columns than are gathered at a time: chunks begin and end within a sample.
TEST(columns_are_gathered_in_chunks) {
  same_on_both({"_contrib_quantized_conv",
                {{"kernel", "(3,)"}, {"num_filter", "1"}, {"pad", "(1,)"}},
                any_bytes({3, 64, 57001}, Dtype::kUint8, 1),
                any_bytes({1, 64, 3}, Dtype::kInt8, 2),
                any_bytes({1}, Dtype::kInt8, 3)});
}

TEST(sums_that_int32_does_not_hold_are_the_same_too) {
  const auto all = [](int value) { return [value](std::mt19937 &) { return value; }; };
  const auto depth = int64_t(1) << 18;
  for (const Dtype dtype : {Dtype::kInt8, Dtype::kUint8}) {
    same_on_both({"_contrib_quantized_fully_connected",
                  {{"num_hidden", "2"}},
                  array_of({1, depth}, dtype, all(dtype == Dtype::kInt8 ? -128 : 255)),
                  array_of({2, depth}, Dtype::kInt8, all(-128)),
                  any_bytes({2}, Dtype::kInt8, 3)});
  }
}

TEST(very_many_arrays_are_joined) {
  std::vector<NDArray> arrays, bounds;
  for (int i = 0; i < 40; ++i) {
    arrays.push_back(any_bytes({2, i % 3 + 1}, i % 5 ? Dtype::kUint8 : Dtype::kInt8, unsigned(i)));
    bounds.push_back(number(-1.0f - float(i % 7)));
    bounds.push_back(number(1.0f + float(i % 11)));
  }
  arrays.insert(arrays.end(), bounds.begin(), bounds.end());
  std::vector<std::vector<char>> found[2];
  for (const Context &context : {kCpu, kGpu}) {
    std::vector<NDArray> inputs;
    for (const NDArray &array : arrays) inputs.push_back(array.copy_to(context));
    for (const NDArray &output :
         invoke("_contrib_quantized_concat", {{"num_args", "40"}, {"dim", "1"}}, inputs, {}, context)) {
      found[context == kGpu].push_back(bytes_of(output));
    }
  }
  CHECK(found[0] == found[1]);
}

// ---- networks that compute in int8

namespace {

Symbol node(const std::string &op, const std::string &name, const AttrMap &attrs, const std::vector<Symbol> &inputs) {
  return Symbol::create(op, attrs, name, {}, inputs);
}

Symbol layer(const std::string &name, const Symbol &data, const std::string &filters, const std::string &groups) {
  return node("Convolution", name,
              {{"kernel", "(3,3)"}, {"pad", "(1,1)"}, {"num_filter", filters}, {"num_group", groups}},
              {data, Symbol::variable(name + "_weight"), Symbol::variable(name + "_bias")});
}

// Sums, relu and clip after layers of several kinds, both poolings, and a layer on their outputs.
Symbol network() {
  const Symbol first = node("relu", "bent", {}, {layer("first", Symbol::variable("data"), "16", "1")});
  const Symbol deep = node("clip", "cut", {{"a_min", "-1"}, {"a_max", "6"}}, {layer("deep", first, "16", "16")});
  const Symbol flat =
      node("relu", "top", {}, {node("elemwise_add", "sum", {}, {layer("flat", deep, "16", "2"), first})});
  const Symbol max = node("Pooling", "max", {{"kernel", "(2,2)"}, {"stride", "(2,2)"}, {"pool_type", "max"}}, {flat});
  const Symbol mean = node("Pooling", "mean", {{"kernel", "(3,3)"}, {"pad", "(1,1)"}, {"pool_type", "avg"}},
                           {layer("last", max, "9", "1")});
  return node("FullyConnected", "fc", {{"num_hidden", "10"}},
              {mean, Symbol::variable("fc_weight"), Symbol::variable("fc_bias")});
}

const std::vector<Shape> &shapes() {
  static const auto *const all = new std::vector<Shape>{
      {3, 5, 8, 6}, {16, 5, 3, 3}, {16}, {16, 1, 3, 3}, {16}, {16, 8, 3, 3}, {16}, {9, 16, 3, 3}, {9}, {10, 108}, {10}};
  return *all;
}

std::shared_ptr<Executor> bound(const Context &context, std::shared_ptr<const ValueRanges> ranges) {
  std::vector<NDArray> args;
  for (size_t i = 0; i < shapes().size(); ++i) {
    const NDArray array = NDArray::create(shapes()[i], Dtype::kFloat32, kCpu);
    array.fill_uniform(-1, i == 0 ? 2 : 1, i + 1);
    args.push_back(array.copy_to(context));
  }
  ExecutorOptions options;
  options.context = context;
  if (ranges) options.compute.dtype = Dtype::kInt8, options.compute.ranges = std::move(ranges);
  return Executor::bind(network(), args, std::vector<NDArray>(args.size()),
                        std::vector<GradReq>(args.size(), GradReq::kNull), {}, options);
}

size_t count_of(const std::string &text, const std::string &words) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(words, at)) != std::string::npos; ++at) ++count;
  return count;
}

std::vector<float> answer_of(const std::shared_ptr<Executor> &executor) {
  executor->forward(false);
  const NDArray output = executor->outputs()[0];
  std::vector<float> answer(size_t(output.size()));
  output.wait();
  output.read(answer.data(), output.bytes());
  return answer;
}

}  // namespace

// Sums, relu and clip are fused into its layers, unlike in layers on floats.
TEST(a_network_in_int8_gives_what_it_gives_on_the_cpu) {
  for (const auto method : {Calibration::Method::kMinMax, Calibration::Method::kEntropy}) {
    const auto wide = bound(kCpu, nullptr);
    Calibration calibration(method);
    calibration.observe(*wide);
    const auto cpu = bound(kCpu, calibration.ranges()), gpu = bound(kGpu, calibration.ranges());
    CHECK_EQ(count_of(gpu->debug_text(), "Computes in int8"), size_t(7));
    const std::vector<float> exact = answer_of(wide), expected = answer_of(cpu), found = answer_of(gpu);
    float largest = 0, far = 0, off = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      largest = std::max(largest, std::fabs(exact[i]));
      far = std::max(far, std::fabs(found[i] - expected[i]));
      off = std::max(off, std::fabs(found[i] - exact[i]));
    }
    CHECK(off > 0);
    // Calibration by entropy would cut off most of numbers that are so few and even.
    if (method == Calibration::Method::kMinMax) CHECK(off < 0.05f * largest);
    // A processor without instructions for products of bytes computes in floats.
    if (count_of(cpu->debug_text(), "Computes in int8") == 7) CHECK(far <= 1e-6f * largest);
  }
  CHECK_EQ(std::string(reports()), "");
}

UNIT_MAIN()
