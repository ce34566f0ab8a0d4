// SPDX-License-Identifier: Apache-2.0
// Pooling on the simulated runtime: results and gradients are those of the CPU for all kinds, types, layouts and
// windows.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "cuda_control.hpp"
#include "device_arrays.hpp"
#include "executor/executor.hpp"
#include "support/unit.hpp"

using namespace cohort;
using device_tests::values_of;

namespace {

const Context kCpu, kGpu{DeviceType::kGpu, 0};
const auto reports = CONTROL(cudasim_reports);  // before the first use of a device

NDArray of_values(const Shape &shape, Dtype dtype, const std::vector<float> &values) {
  const NDArray wide = NDArray::create(shape, Dtype::kFloat32, kCpu), array = NDArray::create(shape, dtype, kCpu);
  wide.write(values.data(), wide.bytes());
  array.copy_from(wide);
  return array;
}

// Multiples of 1/4, so that there are equal maxima and sums are exact.
std::vector<float> random_values(const Shape &shape, uint64_t seed) {
  const NDArray array = NDArray::create(shape, Dtype::kFloat32, kCpu);
  array.fill_uniform(-2, 2, seed);
  std::vector<float> values = values_of(array);
  for (float &value : values) value = std::round(value * 4) / 4;
  return values;
}

struct ResultAndGradient {
  std::vector<float> result, gradient;
};

ResultAndGradient pass_on(const Context &context, const std::string &op, const AttrMap &attrs, const Shape &shape,
                          Dtype dtype, const std::vector<float> &data) {
  SimpleBind what;
  what.shapes = {{"data", shape}};
  what.dtypes = {{"data", dtype}};
  what.grad_req.all = "write";
  ExecutorOptions options;
  options.context = context;
  const auto exec =
      Executor::simple_bind(Symbol::create(op, attrs, "pool", {}, {Symbol::variable("data")}), what, options);
  exec->args()[0].copy_from(of_values(shape, dtype, data));
  exec->forward(true);
  const Shape result = exec->outputs()[0].shape();
  const NDArray head = of_values(result, dtype, random_values(result, 2)).copy_to(context);
  exec->backward({ArraySlice(head)});
  return {values_of(exec->outputs()[0]), values_of(exec->grads()[0])};
}

void same(const std::string &what, const std::vector<float> &found, const std::vector<float> &expected,
          double tolerance) {
  CHECK_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(found[i]) && std::isnan(expected[i])) continue;
    if (found[i] == expected[i] || std::fabs(found[i] - expected[i]) <= tolerance * (1 + std::fabs(expected[i])))
      continue;
    unit::fail(__FILE__, __LINE__, text(what, ", element ", i, ": expected ", expected[i], ", found ", found[i]));
  }
}

void same_on_both(const std::string &op, const AttrMap &attrs, const Shape &shape, Dtype dtype,
                  const std::vector<float> &data) {
  std::string what = text(op, " of ", dtype, " ", shape);
  for (const auto &[name, value] : attrs) what += text(", ", name, " ", value);
  const ResultAndGradient cpu = pass_on(kCpu, op, attrs, shape, dtype, data),
                          gpu = pass_on(kGpu, op, attrs, shape, dtype, data);
  // Quotients and roots may be rounded another way.
  const double tolerance = dtype == Dtype::kBfloat16 ? 1.0 / 128 : dtype == Dtype::kFloat16 ? 1.0 / 1024 : 1e-6;
  same(what + ": result", gpu.result, cpu.result, tolerance);
  same(what + ": gradient", gpu.gradient, cpu.gradient, tolerance);
  CHECK_EQ(std::string(reports()), "");
}

void all_kinds(const AttrMap &window, const Shape &shape, const std::vector<Dtype> &dtypes) {
  const std::vector<AttrMap> kinds{{{"pool_type", "max"}},
                                   {{"pool_type", "avg"}},
                                   {{"pool_type", "avg"}, {"count_include_pad", "0"}},
                                   {{"pool_type", "sum"}},
                                   {{"pool_type", "lp"}, {"p_value", "2"}},
                                   {{"pool_type", "lp"}, {"p_value", "3"}}};
  for (const AttrMap &kind : kinds) {
    AttrMap attrs = window;
    attrs.insert(kind.begin(), kind.end());
    for (const Dtype dtype : dtypes) same_on_both("Pooling", attrs, shape, dtype, random_values(shape, 1));
  }
}

const std::vector<Dtype> kAll{Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kBfloat16};

}  // namespace

// The windows that are compiled with constant sizes, and others, over channels that fill vectors and that do not.
TEST(windows_of_all_sizes_in_all_layouts) {
  const std::vector<AttrMap> windows{
      {{"kernel", "(2,2)"}, {"stride", "(2,2)"}},
      {{"kernel", "(3,3)"}, {"stride", "(2,2)"}, {"pad", "(1,1)"}},
      {{"kernel", "(3,3)"}, {"stride", "(2,2)"}, {"pooling_convention", "full"}},
      {{"kernel", "(3,3)"}, {"pad", "(1,1)"}},
      {{"kernel", "(2,3)"}, {"stride", "(3,1)"}, {"pad", "(1,2)"}},
      {{"kernel", "(5,5)"}, {"pad", "(2,2)"}},
      {{"kernel", "(2,2)"}, {"stride", "(5,4)"}, {"pooling_convention", "same"}},
      {{"kernel", "(7,6)"}},
  };
  for (AttrMap window : windows) {
    all_kinds(window, {2, 3, 7, 6}, kAll);
    window["layout"] = "NHWC";
    for (const int64_t channels : {3, 12, 16}) all_kinds(window, {2, 7, 6, channels}, kAll);
  }
}

TEST(windows_along_one_axis_and_three) {
  const std::vector<Dtype> dtypes{Dtype::kFloat32, Dtype::kBfloat16};
  for (const std::string layout : {"NCW", "NWC"}) {
    all_kinds({{"kernel", "(3,)"}, {"stride", "(2,)"}, {"pad", "(1,)"}, {"layout", layout}}, {3, 8, 8}, dtypes);
  }
  for (const std::string layout : {"NCDHW", "NDHWC"}) {
    all_kinds({{"kernel", "(2,3,3)"}, {"stride", "(1,2,2)"}, {"pad", "(1,1,1)"}, {"layout", layout}}, {1, 4, 5, 6, 8},
              dtypes);
  }
}

// Threads share planes from some hundred elements on.
TEST(windows_that_are_the_plane) {
  for (const auto &[height, width] : {std::pair<int64_t, int64_t>{1, 1}, {2, 3}, {7, 7}, {40, 31}}) {
    all_kinds({{"global_pool", "1"}}, {2, 5, height, width}, kAll);
    for (const int64_t channels : {1, 5, 24, 264}) {
      all_kinds({{"global_pool", "1"}, {"layout", "NHWC"}}, {3, height, width, channels},
                {Dtype::kFloat32, Dtype::kFloat16});
    }
  }
}

TEST(windows_of_more_than_256_elements) {
  all_kinds({{"kernel", "(17,16)"}, {"stride", "(2,3)"}, {"pad", "(3,2)"}}, {1, 2, 22, 21}, kAll);
  all_kinds({{"kernel", "(17,16)"}, {"stride", "(2,3)"}, {"layout", "NHWC"}}, {1, 22, 21, 8}, kAll);
}

TEST(each_of_several_maxima_in_Pooling_v1) {
  const Shape shape{2, 3, 8, 7};
  for (const std::string kind : {"max", "avg", "sum"}) {
    for (const AttrMap &window : {AttrMap{{"kernel", "(3,3)"}, {"stride", "(2,2)"}, {"pad", "(1,1)"}},
                                  AttrMap{{"kernel", "(2,2)"}, {"stride", "(2,2)"}, {"pooling_convention", "full"}},
                                  AttrMap{{"kernel", "(8,7)"}}}) {
      AttrMap attrs = window;
      attrs["pool_type"] = kind;
      for (const Dtype dtype : kAll) same_on_both("Pooling_v1", attrs, shape, dtype, random_values(shape, 1));
    }
  }
}

// In 16 bits, where the CPU computes them by the same rule, too.
TEST(values_that_are_not_finite) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (const std::string layout : {"NHWC", "NCHW"}) {
    const Shape shape{2, 8, 8, 8};
    std::vector<float> data = random_values(shape, 1);
    for (size_t i = 0; i < data.size(); i += 1 + i % 7) data[i] = i % 5 == 0 ? nan : i % 5 == 1 ? infinity : -infinity;
    for (const AttrMap &window : {AttrMap{{"kernel", "(3,3)"}, {"stride", "(2,2)"}, {"pad", "(1,1)"}},
                                  AttrMap{{"kernel", "(4,3)"}, {"stride", "(4,3)"}}, AttrMap{{"global_pool", "1"}}}) {
      for (const std::string kind : {"max", "sum"}) {
        AttrMap attrs = window;
        attrs.insert({{"layout", layout}, {"pool_type", kind}});
        same_on_both("Pooling", attrs, shape, Dtype::kFloat16, data);
        same_on_both("Pooling", attrs, shape, Dtype::kBfloat16, std::vector<float>(data.size(), -infinity));
      }
    }
  }
}

TEST(images_without_elements) {
  for (const Shape &shape : {Shape{0, 4, 8, 8}, Shape{2, 0, 8, 8}}) {
    all_kinds({{"kernel", "(3,3)"}, {"stride", "(2,2)"}}, shape, {Dtype::kFloat32, Dtype::kBfloat16});
    all_kinds({{"global_pool", "1"}}, shape, {Dtype::kFloat32});
  }
}

TEST(too_large_a_window_is_refused) {
  const Shape shape{1, 1, 4, 4};
  CHECK_THROWS(pass_on(kGpu, "Pooling", {{"kernel", "(65536,65536)"}, {"pooling_convention", "same"}}, shape,
                       Dtype::kFloat32, random_values(shape, 1)),
               Error, "found 4294967296");
}

UNIT_MAIN()
