// SPDX-License-Identifier: Apache-2.0
// Point-wise functions, sums and casts on the simulated runtime: arrays that do not fill vectors or are not aligned to
// them give the numbers of the CPU.
#include <cmath>
#include <string>
#include <vector>

#include "cuda_control.hpp"
#include "device_arrays.hpp"
#include "executor/executor.hpp"
#include "executor/invoke.hpp"
#include "support/unit.hpp"

using namespace cohort;
using device_tests::values_of;

namespace {

const Context kCpu, kGpu{DeviceType::kGpu, 0};
const auto reports = CONTROL(cudasim_reports);  // before the first use of a device
const std::vector<Dtype> kFloats{Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kBfloat16};
const std::vector<int64_t> kCounts{0, 1, 3, 8, 15, 64, 1031};

// Multiples of 1/4 or, for integers, whole numbers.
NDArray random_array(int64_t count, Dtype dtype, uint64_t seed) {
  const NDArray wide = NDArray::create({count}, Dtype::kFloat32, kCpu), array = NDArray::create({count}, dtype, kCpu);
  wide.fill_uniform(-4, 4, seed);
  std::vector<float> values(static_cast<size_t>(count));
  wide.read(values.data(), wide.bytes());
  const float steps = dtype_is_float(dtype) ? 4 : 1, least = dtype == Dtype::kUint8 ? 4 : 0;
  for (float &value : values) value = std::round(value * steps) / steps + least;
  wide.write(values.data(), wide.bytes());
  array.copy_from(wide);
  return array;
}

void same(const std::string &what, const NDArray &found, const NDArray &expected) {
  const std::vector<float> own = values_of(found), values = values_of(expected);
  CHECK_EQ(own.size(), values.size());
  for (size_t i = 0; i < own.size(); ++i) {
    if (!(std::fabs(own[i] - values[i]) <= 0.01f * std::fabs(values[i])))
      unit::fail(__FILE__, __LINE__, text(what, ", element ", i, ": expected ", values[i], ", found ", own[i]));
  }
}

// With arrays that begin at a vector, and with arrays that begin one element later.
void same_on_both(const std::string &op, const AttrMap &attrs, const std::vector<Dtype> &dtypes, int64_t count) {
  for (const int64_t begin : {0, 1}) {
    std::vector<NDArray> inputs[2];
    for (size_t i = 0; i < dtypes.size(); ++i) {
      const NDArray whole = random_array(begin + count, dtypes[i], i + 1);
      inputs[0].push_back(whole.slice(begin, begin + count));
      inputs[1].push_back(whole.copy_to(kGpu).slice(begin, begin + count));
    }
    const NDArray cpu = invoke(op, attrs, inputs[0], {}, kCpu)[0], gpu = invoke(op, attrs, inputs[1], {}, kGpu)[0];
    CHECK_EQ(gpu.dtype(), cpu.dtype());
    same(text(op, " of ", count, " elements of ", dtypes[0], " from ", begin), gpu, cpu);
  }
  CHECK_EQ(std::string(reports()), "");
}

NDArray gradient(const Context &context, const std::string &op, const AttrMap &attrs, Dtype dtype, int64_t count) {
  SimpleBind what;
  what.shapes = {{"data", {count}}};
  what.dtypes = {{"data", dtype}};
  what.grad_req.all = "write";
  ExecutorOptions options;
  options.context = context;
  const auto exec =
      Executor::simple_bind(Symbol::create(op, attrs, "node", {}, {Symbol::variable("data")}), what, options);
  exec->args()[0].copy_from(random_array(count, dtype, 1));
  exec->forward(true);
  exec->backward({ArraySlice(random_array(count, dtype, 2).copy_to(context))});
  return exec->grads()[0];
}

}  // namespace

TEST(functions_of_any_number_of_elements) {
  for (const Dtype dtype : kFloats) {
    for (const int64_t count : kCounts) {
      for (const std::string op : {"relu", "sigmoid", "erf", "negative"}) same_on_both(op, {}, {dtype}, count);
      same_on_both("_mul_scalar", {{"scalar", "1.5"}}, {dtype}, count);
      same_on_both("elemwise_sub", {}, {dtype, dtype}, count);
      same_on_both("where", {}, {dtype, dtype, dtype}, count);
    }
  }
}

TEST(gradients_of_any_number_of_elements) {
  for (const Dtype dtype : kFloats) {
    for (const int64_t count : kCounts) {
      for (const std::string type : {"relu", "tanh", "softsign"}) {
        const AttrMap attrs{{"act_type", type}};
        same(text(type, " of ", count, " elements of ", dtype), gradient(kGpu, "Activation", attrs, dtype, count),
             gradient(kCpu, "Activation", attrs, dtype, count));
      }
    }
  }
  CHECK_EQ(std::string(reports()), "");
}

TEST(sums_of_any_number_of_arrays) {
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kBfloat16, Dtype::kInt32,
                            Dtype::kInt64, Dtype::kInt8, Dtype::kUint8}) {
    for (const size_t number : {1, 2, 4, 5, 9}) {
      for (const int64_t count : kCounts) {
        same_on_both("add_n", {{"num_args", std::to_string(number)}}, std::vector<Dtype>(number, dtype), count);
      }
    }
  }
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kBfloat16}) {
    same_on_both("add_n", {{"num_args", "130"}}, std::vector<Dtype>(130, dtype), 21);
  }
}

TEST(casts_of_any_number_of_elements) {
  std::vector<Dtype> dtypes = kFloats;
  dtypes.push_back(Dtype::kInt32);
  for (const Dtype from : dtypes) {
    for (const Dtype to : dtypes) {
      for (const int64_t count : kCounts) same_on_both("Cast", {{"dtype", dtype_name(to)}}, {from}, count);
    }
  }
}

UNIT_MAIN()
