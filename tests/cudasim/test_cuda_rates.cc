// SPDX-License-Identifier: Apache-2.0
// The rates of a device, and the least times of steps that follow from them.
#include <memory>
#include <string>
#include <vector>

#include "cuda_control.hpp"
#include "device/recording.hpp"
#include "device_arrays.hpp"
#include "executor/executor.hpp"
#include "support/unit.hpp"

using namespace cohort;
using namespace device_tests;

namespace {

const Context kGpu0{DeviceType::kGpu, 0}, kGpu1{DeviceType::kGpu, 1};

// Our own convolutions are among the steps.
[[maybe_unused]] const int without_cudnn = setenv("CUDASIM_CUDNN", "8907", /* overwrite */ 0);
const auto set_machine = CONTROL(cudasim_set_machine);  // before the first use of a device

// A product of 1024 x 1024 by 64 x 1024.
std::shared_ptr<Executor> bound_product() {
  ExecutorOptions options;
  options.context = kGpu0;
  const std::vector<NDArray> args{random_on(kGpu0, {1024, 1024}, 1), random_on(kGpu0, {64, 1024}, 2)};
  return Executor::bind(node("FullyConnected", {{"num_hidden", "64"}, {"no_bias", "1"}}, {"x", "w"}), args,
                        std::vector<NDArray>(2), {GradReq::kNull, GradReq::kNull}, {}, options);
}

}  // namespace

// The simulated device has the clocks and units of an H100 SXM: 66.9 Tflop/s, 3.35 TB/s.
TEST(steps_are_shown_beside_the_rates_of_the_device) {
  const MachineRates rates = get_device(kGpu0)->rates(1);
  CHECK_NEAR(rates.flops_per_s / 1e12, 66.9, 0.05);
  CHECK_NEAR(rates.narrow_flops_per_s / rates.flops_per_s, 16, 1e-9);
  CHECK_NEAR(rates.tf32_flops_per_s / rates.flops_per_s, 8, 1e-9);
  CHECK_NEAR(rates.bytes_per_s / 1e12, 3.352, 0.001);
  const std::shared_ptr<Executor> product = bound_product();
  product->forward(false);
  const std::string text = product->debug_text();
  CHECK(text.find("FullyConnected 'node' by cublaslt: 134.218 MFLOP, 4.719 MB, 2.01 us by flops") != std::string::npos);
}

// A trace has the host's time of a step, which must not be compared with the least time on the device.
TEST(a_trace_shows_the_least_time_a_device_would_take) {
  const std::shared_ptr<Executor> product = bound_product();
  const auto recording = std::make_shared<Recording>(Recording::Options{});
  recording->start();
  for (int i = 0; i < 3; ++i) product->forward(false);
  product->wait();
  recording->stop();
  double bound_ns = 0;
  for (const SpanTotal &total : *recording->take_totals(/* by_operator */ true))
    if (total.op == "FullyConnected") bound_ns += total.bound_ns;
  CHECK_NEAR(bound_ns, 3 * 2 * 1024.0 * 1024 * 64 / get_device(kGpu0)->rates(1).flops_per_s * 1e9, 1e-3);
  const std::string json = recording->json(), table = recording->table(true);
  CHECK(json.find("\"bound\":\"flops\",\"bound_us\":2.00") != std::string::npos);
  CHECK(json.find("cohort_machine") != std::string::npos);
  for (const char *of_time : {"of_bound", "gflop_per_s", "gbyte_per_s"}) CHECK(json.find(of_time) == std::string::npos);
  CHECK(table.find("FullyConnected") != std::string::npos);
  CHECK(table.find('%') == std::string::npos);
  CHECK(table.find("gpu(0) enqueued: the machine does 66") != std::string::npos);
}

// A B200: 75 Tflop/s, 2.25 Pflop/s at the lower clock of the tensor cores, 8 TB/s.
TEST(the_rates_of_a_blackwell_device_are_known) {
  const auto now = [] { return get_device(kGpu1)->rates(1); };
  const MachineRates before = now();
  set_machine(100, 148, 1980000, 3996000, 8192);
  const MachineRates rates = now();
  set_machine(90, 132, 1980000, 2619000, 5120);
  CHECK_NEAR(rates.flops_per_s / 1e12, 75.0, 0.05);
  CHECK_NEAR(rates.narrow_flops_per_s / 1e15 * 1860 / 1980, 2.25, 0.01);
  CHECK_NEAR(rates.bytes_per_s / 1e12, 8.18, 0.01);
  CHECK_EQ(now().flops_per_s, before.flops_per_s);
}

// From NVIDIA's data sheets; for the H100 at the highest clock of its tensor cores.
TEST(rates_of_tf32_are_those_of_data_sheets) {
  const auto now = [] { return get_device(kGpu1)->rates(1).tf32_flops_per_s / 1e12; };
  CHECK_NEAR(now() * 1830 / 1980, 495, 0.5);
  set_machine(80, 108, 1410000, 1215000, 5120);
  CHECK_NEAR(now(), 156, 0.1);
  set_machine(70, 80, 1530000, 877000, 4096);
  CHECK_EQ(now(), 0.0);
  set_machine(90, 132, 1980000, 2619000, 5120);
}

// On a device so slow that products dominate the time: 256 float32 operations per microsecond.
TEST(products_are_held_against_the_rate_of_the_units_that_make_them) {
  set_machine(90, 1, 1000, 2619000, 5120);
  const auto steps = [](const Symbol &net, const Shape &data, const Shape &weight, Dtype dtype, bool tf32) {
    ExecutorOptions options;
    options.context = kGpu0;
    options.compute.tf32 = tf32;
    const std::vector<NDArray> args{random_on(kGpu0, data, 1, dtype), random_on(kGpu0, weight, 2, dtype)};
    const auto exec = Executor::bind(net, args, std::vector<NDArray>(2), {GradReq::kNull, GradReq::kNull}, {}, options);
    exec->forward(false);
    return exec->debug_text();
  };
  const auto product = [&](Dtype dtype, bool tf32) {
    const Symbol net = node("FullyConnected", {{"num_hidden", "64"}, {"no_bias", "1"}}, {"x", "w"});
    return steps(net, {64, 64}, {64, 64}, dtype, tf32);
  };
  const auto has = [](const std::string &text, const std::string &part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(has(product(Dtype::kFloat32, false), " 2048.00 us by flops"));
  CHECK(has(product(Dtype::kFloat32, true), " 256.00 us by flops"));
  for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBfloat16})
    for (const bool tf32 : {false, true}) CHECK(has(product(dtype, tf32), " 128.00 us by flops"));
  // Our own kernels round nothing to TF32.
  const AttrMap each{{"kernel", "(3,3)"}, {"num_filter", "16"}, {"num_group", "16"}, {"no_bias", "1"}};
  const auto apart = [&](bool tf32) {
    const std::string text =
        steps(node("Convolution", each, {"x", "w"}), {2, 16, 6, 5}, {16, 1, 3, 3}, Dtype::kFloat32, tf32);
    return text.substr(text.find("by tiles: "));
  };
  CHECK_EQ(apart(true), apart(false));
  set_machine(90, 132, 1980000, 2619000, 5120);
}

UNIT_MAIN()
