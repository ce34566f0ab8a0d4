// SPDX-License-Identifier: Apache-2.0
// BatchNorm on the simulated runtime, with vectors of every size, against the CPU in float64.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "cuda_control.hpp"
#include "executor/executor.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

const Context kCpu, kGpu{DeviceType::kGpu, 0};
const auto reports = CONTROL(cudasim_reports);  // before the first use of a device

using Results = std::map<std::string, std::vector<double>>;

std::vector<double> values_of(const NDArray &array) {
  const NDArray wide = NDArray::create(array.shape(), Dtype::kFloat64, kCpu);
  wide.copy_from(array);
  wide.wait();
  std::vector<double> all(size_t(array.size()));
  if (!all.empty()) wide.read(all.data(), wide.bytes());
  return all;
}

struct Problem {
  Shape shape;
  int axis;
  bool relu = false;
  double mean = 0, first = 0;  // added to all elements, and to the first of each channel
};

// A pass of training in `dtype` on values that `rounded` holds, too.
Results trained(const Problem &of, const Context &context, Dtype dtype, Dtype rounded) {
  const Dtype parameters = dtype == Dtype::kFloat64 ? Dtype::kFloat64 : Dtype::kFloat32;
  const auto as_data = [&](const NDArray &values) {
    const NDArray narrow = NDArray::create(of.shape, rounded, kCpu), to = NDArray::create(of.shape, dtype, kCpu);
    narrow.copy_from(values);
    to.copy_from(narrow);
    return to.copy_to(context);
  };
  const Shape channels{of.shape[of.axis]};
  const NDArray data = NDArray::create(of.shape, Dtype::kFloat32, kCpu);
  data.fill_uniform(of.mean - 1, of.mean + 1, 1);
  std::vector<float> values(size_t(data.size()));
  if (!values.empty()) {
    data.read(values.data(), data.bytes());
    const int64_t inner = of.shape.size(of.axis + 1, of.shape.rank());
    for (int64_t c = 0; c < channels[0]; ++c) values[size_t(c * inner)] += float(of.first);
    data.write(values.data(), data.bytes());
  }
  const NDArray head = NDArray::create(of.shape, Dtype::kFloat32, kCpu);
  head.fill_uniform(-1, 1, 6);
  const auto parameter = [&](double low, double high, uint64_t seed) {
    const NDArray array = NDArray::create(channels, Dtype::kFloat32, kCpu),
                  to = NDArray::create(channels, parameters, kCpu);
    array.fill_uniform(low, high, seed);
    to.copy_from(array);
    return to.copy_to(context);
  };
  const std::vector<NDArray> args{as_data(data), parameter(0.5, 2, 2), parameter(-1, 1, 3)};
  const std::vector<NDArray> states{parameter(-1, 1, 4), parameter(1, 2, 5)};
  std::vector<NDArray> grads;
  for (const NDArray &arg : args) grads.push_back(NDArray::create(arg.shape(), arg.dtype(), context));
  Symbol net = Symbol::create("BatchNorm", {{"fix_gamma", "0"}, {"axis", text(of.axis)}}, "norm", {},
                              {Symbol::variable("data"), Symbol::variable("gamma"), Symbol::variable("beta"),
                               Symbol::variable("mean"), Symbol::variable("variance")});
  if (of.relu) net = Symbol::create("relu", {}, "relu", {}, {net});
  ExecutorOptions options;
  options.context = context;
  const auto exec = Executor::bind(net, args, grads, std::vector<GradReq>(3, GradReq::kWrite), states, options);
  exec->forward(true);
  exec->backward({ArraySlice(as_data(head))});
  return {{"output", values_of(exec->outputs()[0])},
          {"dx", values_of(grads[0])},
          {"dgamma", values_of(grads[1])},
          {"dbeta", values_of(grads[2])},
          {"mean", values_of(states[0])},
          {"variance", values_of(states[1])}};
}

// The errors allowed, relative to the largest value of a result.
struct Limits {
  double arrays, dgamma, channels;
  double of(const std::string &name) const {
    if (name == "dgamma") return dgamma;
    return name == "output" || name == "dx" ? arrays : channels;
  }
};

void same_as_on_the_cpu(const Problem &of, Dtype dtype, const Limits &limits) {
  const Results expected = trained(of, kCpu, Dtype::kFloat64, dtype), found = trained(of, kGpu, dtype, dtype);
  for (const auto &[name, values] : expected) {
    const std::vector<double> &own = found.at(name);
    double most = 0;
    for (const double value : values) most = std::max(most, std::fabs(value));
    const double limit = limits.of(name) * (1 + most);
    for (size_t i = 0; i < values.size(); ++i) {
      if (!(std::fabs(own[i] - values[i]) <= limit)) {
        unit::fail(__FILE__, __LINE__,
                   text(of.shape, " along ", of.axis, of.relu ? " with relu, " : ", ", dtype, ": ", name, ", element ",
                        i, ": expected ", values[i], ", found ", own[i]));
      }
    }
  }
  CHECK(trained(of, kGpu, dtype, dtype) == found);
}

// 16-bit results are rounded by half of a unit in the last place, after some roundings in float32.
Limits limits_of(Dtype dtype) {
  if (dtype == Dtype::kFloat64) return {1e-12, 1e-12, 1e-12};
  const double last = dtype == Dtype::kFloat16 ? 0x1p-11 : dtype == Dtype::kBfloat16 ? 0x1p-8 : 0;
  return {last + 1e-5, 1e-5, 1e-5};
}

}  // namespace

TEST(norms_of_any_size_are_those_of_the_cpu_and_the_same_each_time) {
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat16, Dtype::kBfloat16, Dtype::kFloat64}) {
    for (const bool relu : {false, true}) {
      for (const int64_t channels : {1, 3, 8, 64, 100, 2048}) {
        for (const int64_t rows : {1, 7, 1000}) {
          if (channels == 2048 && rows == 1000 && (relu || dtype != Dtype::kBfloat16)) continue;  // it takes long
          same_as_on_the_cpu({{rows, channels}, 1, relu}, dtype, limits_of(dtype));
        }
      }
      for (const Shape &shape :
           {Shape{0, 8}, Shape{2, 3, 64}, {5, 3, 49}, {9, 8, 7, 7}, {2, 3, 40, 50}, {3, 1, 5}, {300, 2, 2}}) {
        same_as_on_the_cpu({shape, 1, relu}, dtype, limits_of(dtype));
      }
    }
  }
  CHECK_EQ(std::string(reports()), std::string());
}

// A mean far above the deviation, or a first element far from all others, spoils no statistics. The mean is rounded to
// float32 before it is subtracted.
TEST(statistics_are_accurate_far_from_zero) {
  for (const Shape &shape : {Shape{4000, 8}, Shape{4, 8, 1000}}) {
    same_as_on_the_cpu({shape, 1, false, 1000}, Dtype::kFloat32, {1e-3, 1e-3, 1e-5});
    same_as_on_the_cpu({shape, 1, false, 1000, -1000}, Dtype::kFloat32, {1e-3, 1e-3, 1e-5});
    same_as_on_the_cpu({shape, 1, false, 0, 1e6}, Dtype::kFloat32, {1e-3, 1e-3, 1e-5});
  }
  CHECK_EQ(std::string(reports()), std::string());
}

TEST(arrays_may_begin_anywhere_and_the_bits_are_the_same) {
  for (const int64_t channels : {64, 100}) {
    std::vector<std::vector<double>> found;
    for (const int64_t first : {0, 1, 8}) {
      const Shape shape{40, channels};
      const NDArray wide = NDArray::create({first + shape.size()}, Dtype::kFloat32, kCpu);
      wide.fill(0);
      const NDArray data = wide.slice(first, first + shape.size());
      data.copy_from([&] {
        const NDArray values = NDArray::create({shape.size()}, Dtype::kFloat32, kCpu);
        values.fill_uniform(-1, 1, 7);
        return values;
      }());
      const NDArray there = NDArray::create(wide.shape(), Dtype::kBfloat16, kGpu);
      there.copy_from(wide);
      std::vector<NDArray> args{there.slice(first, first + shape.size()).reshape(shape)}, states;
      for (int i = 0; i < 4; ++i) {
        const NDArray ones = NDArray::create({channels}, Dtype::kFloat32, kCpu);
        ones.fill(1);
        (i < 2 ? args : states).push_back(ones.copy_to(kGpu));
      }
      ExecutorOptions options;
      options.context = kGpu;
      const Symbol net = Symbol::create("BatchNorm", {}, "norm", {},
                                        {Symbol::variable("data"), Symbol::variable("gamma"), Symbol::variable("beta"),
                                         Symbol::variable("mean"), Symbol::variable("variance")});
      const auto exec =
          Executor::bind(net, args, std::vector<NDArray>(3), std::vector<GradReq>(3, GradReq::kNull), states, options);
      exec->forward(true);
      found.push_back(values_of(exec->outputs()[0]));
    }
    CHECK(found[0] == found[1]);
    CHECK(found[0] == found[2]);
  }
  CHECK_EQ(std::string(reports()), std::string());
}

UNIT_MAIN()
