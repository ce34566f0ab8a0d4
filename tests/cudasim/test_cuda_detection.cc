// SPDX-License-Identifier: Apache-2.0
// Operators of detection and flow that read images at places given by arrays: results and gradients equal those of the
// CPU, with the same bits each time.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cuda_control.hpp"
#include "executor/executor.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

const Context kCpu, kGpu0{DeviceType::kGpu, 0};
const auto reports = CONTROL(cudasim_reports);  // before the first use of a device
const auto seed_anew = CONTROL(cudasim_seed);

struct Input {
  Shape shape;
  double low = -1, high = 1;
  std::vector<double> values = {};  // in place of random values in that range
};

struct Case {
  std::string op;
  AttrMap attrs;
  std::vector<Input> inputs;
  std::string fixed = "";  // the digits of inputs without a gradient
};

NDArray array_of(const Input &input, uint64_t seed, Dtype dtype) {
  const NDArray wide = NDArray::create(input.shape, Dtype::kFloat64, kCpu),
                array = NDArray::create(input.shape, dtype, kCpu);
  if (wide.size() == 0) return array;
  if (input.values.empty()) {
    wide.fill_uniform(input.low, input.high, seed);
  } else {
    wide.write(input.values.data(), wide.bytes());
  }
  array.copy_from(wide);
  return array;
}

std::vector<double> values(const NDArray &array) {
  const NDArray wide = NDArray::create(array.shape(), Dtype::kFloat64, kCpu);
  std::vector<double> all(static_cast<size_t>(array.size()));
  if (all.empty()) return all;
  wide.copy_from(array);
  wide.wait();
  wide.read(all.data(), wide.bytes());
  return all;
}

// Output and gradients of `passes` passes; checks that they are the same each time.
std::vector<std::vector<double>> results(const Context &context, const Case &of, Dtype dtype, int passes) {
  std::vector<Symbol> variables;
  std::vector<NDArray> args, grads;
  std::vector<GradReq> reqs;
  for (size_t i = 0; i < of.inputs.size(); ++i) {
    const bool fixed = of.fixed.find(char('0' + i)) != std::string::npos;
    variables.push_back(Symbol::variable("x" + std::to_string(i)));
    args.push_back(array_of(of.inputs[i], i + 1, dtype).copy_to(context));
    grads.push_back(fixed ? NDArray() : NDArray::create(of.inputs[i].shape, dtype, context));
    reqs.push_back(fixed ? GradReq::kNull : GradReq::kWrite);
  }
  ExecutorOptions options;
  options.context = context;
  const auto exec =
      Executor::bind(Symbol::create(of.op, of.attrs, "node", {}, variables), args, grads, reqs, {}, options);
  if (context != kCpu) CHECK(exec->debug_text().find(" by host") == std::string::npos);
  std::vector<std::vector<double>> found;
  for (int pass = 0; pass < passes; ++pass) {
    std::vector<std::vector<double>> now;
    exec->forward(true);
    exec->backward({array_of({exec->outputs()[0].shape()}, 99, dtype).copy_to(context)});
    now.push_back(values(exec->outputs()[0]));
    for (const NDArray &grad : grads) now.push_back(grad ? values(grad) : std::vector<double>());
    CHECK(pass == 0 || now == found);
    found = now;
  }
  return found;
}

// The tolerance: sums run in another order; with 16-bit floats also the columns are rounded, each term by half a unit.
double tolerance(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat16:
      return 0x1p-9;
    case Dtype::kBfloat16:
      return 0x1p-6;
    case Dtype::kFloat32:
      return 1e-5;
    default:
      return 1e-13;
  }
}

void same_on_both(const Case &of, Dtype dtype, int passes = 3) {
  const auto cpu = results(kCpu, of, dtype, 1), gpu = results(kGpu0, of, dtype, passes);
  for (size_t i = 0; i < cpu.size(); ++i) {
    CHECK_EQ(gpu[i].size(), cpu[i].size());
    double most = 1;
    for (const double value : cpu[i]) most = std::max(most, std::fabs(value));
    for (size_t k = 0; k < cpu[i].size(); ++k) {
      if (std::fabs(gpu[i][k] - cpu[i][k]) <= tolerance(dtype) * most) continue;
      unit::fail(__FILE__, __LINE__,
                 text(of.op, ", ", dtype, ", ", i == 0 ? text("output") : text("gradient ", i - 1), "[", k,
                      "]: expected ", cpu[i][k], ", found ", gpu[i][k]));
    }
  }
}

void same_in_all_types(const Case &of) {
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kBfloat16})
    same_on_both(of, dtype);
}

AttrMap correlation(const char *kernel, const char *most, const char *stride1, const char *stride2, const char *pad,
                    const char *multiply) {
  return {{"kernel_size", kernel}, {"max_displacement", most}, {"stride1", stride1},
          {"stride2", stride2},    {"pad_size", pad},          {"is_multiply", multiply}};
}

// With a mask or without.
Case deformable(bool modulated, AttrMap attrs, const Shape &data, const Shape &offset, double low, double high,
                const Shape &weight) {
  Case made{modulated ? "_contrib_ModulatedDeformableConvolution" : "_contrib_DeformableConvolution", attrs, {{data}}};
  made.inputs.push_back({offset, low, high});
  if (modulated) made.inputs.push_back({{offset[0], offset[1] / 2, offset[2], offset[3]}, 0, 1});
  made.inputs.push_back({weight});
  if (!attrs.count("no_bias")) made.inputs.push_back({{weight[0]}});
  return made;
}

}  // namespace

TEST(likeness_of_patches_is_that_of_the_cpu) {
  for (uint64_t seed = 1; seed < 4; ++seed) {
    seed_anew(seed);
    for (const char *multiply : {"1", "0"}) {
      for (const auto &[attrs, data] :
           std::vector<std::pair<AttrMap, Shape>>{{correlation("1", "2", "1", "1", "2", multiply), {2, 3, 6, 7}},
                                                  {correlation("3", "3", "2", "2", "4", multiply), {2, 3, 9, 8}},
                                                  {correlation("5", "1", "1", "1", "0", multiply), {1, 2, 9, 10}},
                                                  {correlation("3", "0", "3", "1", "0", multiply), {2, 2, 8, 7}},
                                                  {correlation("1", "4", "1", "3", "9", multiply), {1, 2, 3, 4}},
                                                  {correlation("1", "1", "1", "1", "1", multiply), {0, 3, 6, 7}}}) {
        same_in_all_types({"Correlation", attrs, {{data}, {data}}});
      }
    }
  }
  CHECK_EQ(std::string(reports()), std::string());
}

TEST(convolutions_whose_windows_move_are_those_of_the_cpu) {
  const AttrMap groups = {{"kernel", "(3, 2)"}, {"stride", "(1, 2)"}, {"pad", "(1, 1)"},
                          {"num_filter", "4"},  {"num_group", "2"},   {"num_deformable_group", "2"}};
  const AttrMap dilated = {{"kernel", "(2, 3)"}, {"stride", "(2, 1)"},         {"pad", "(0, 2)"},
                           {"dilate", "(2, 1)"}, {"num_filter", "6"},          {"num_group", "2"},
                           {"no_bias", "1"},     {"num_deformable_group", "2"}};
  const AttrMap one = {{"kernel", "(1, 1)"}, {"num_filter", "2"}};
  const AttrMap wide = {{"kernel", "(3, 3)"}, {"pad", "(1, 1)"}, {"num_filter", "3"}, {"no_bias", "1"}};
  for (uint64_t seed = 1; seed < 4; ++seed) {
    seed_anew(seed);
    for (const bool modulated : {false, true}) {
      same_in_all_types(deformable(modulated, groups, {2, 4, 5, 6}, {2, 24, 5, 4}, -1.7, 1.7, {4, 2, 3, 2}));
      same_in_all_types(deformable(modulated, dilated, {3, 4, 7, 8}, {3, 24, 3, 10}, -9, 9, {6, 2, 2, 3}));
      same_in_all_types(deformable(modulated, one, {2, 5, 4, 4}, {2, 2, 4, 4}, -3, 3, {2, 5, 1, 1}));
      // More channels than one thread handles; all windows moved to one place, moved outside, and unmoved.
      for (const auto &[low, high] : {std::pair<double, double>{-1, 1}, {100, 200}, {0, 1e-9}}) {
        same_in_all_types(deformable(modulated, wide, {1, 20, 4, 5}, {1, 18, 4, 5}, low, high, {3, 20, 3, 3}));
      }
      same_in_all_types(deformable(modulated, wide, {0, 20, 4, 5}, {0, 18, 4, 5}, -1, 1, {3, 20, 3, 3}));
    }
    Case alone = deformable(true, groups, {2, 4, 5, 6}, {2, 24, 5, 4}, -1.7, 1.7, {4, 2, 3, 2});
    for (const char *fixed : {"0", "1", "12", "3", "34", "012", "0123", "1234"}) {
      alone.fixed = fixed;
      same_on_both(alone, Dtype::kFloat32);
    }
  }
  CHECK_EQ(std::string(reports()), std::string());
}

// Chunks of several samples, the last with fewer; and chunks of some places of one sample.
TEST(convolutions_whose_windows_move_are_cut_where_they_are_large) {
  const AttrMap large = {{"kernel", "(7, 7)"}, {"pad", "(3, 3)"}, {"num_filter", "1"}, {"no_bias", "1"}};
  same_on_both(deformable(false, large, {5, 64, 36, 36}, {5, 98, 36, 36}, -3, 3, {1, 64, 7, 7}), Dtype::kFloat64, 1);
  same_on_both(deformable(true, large, {1, 64, 72, 72}, {1, 98, 72, 72}, -3, 3, {1, 64, 7, 7}), Dtype::kFloat64, 1);
  CHECK_EQ(std::string(reports()), std::string());
}

TEST(rotated_regions_are_those_of_the_cpu) {
  const Input data{{2, 11, 8, 9}}, none{{0, 6}};
  const Input regions{{9, 6}, 0, 0, {0, 4,   4,    5,   3,   0,   1, 3.5, 4.25, 6.5, 7,  30,  1,  4,  3,  3, 8, -75,
                                     0, 0.5, 7.75, 4,   2,   200, 1, 20,  30,   4,   5,  45,  -1, 4,  4,  5, 3, 10,
                                     0, 4,   4,    0.1, 0.2, 12,  1, 4.5, 4,    24,  22, 300, 0,  -1, -1, 2, 2, 90}};
  for (uint64_t seed = 1; seed < 4; ++seed) {
    seed_anew(seed);
    for (const AttrMap &attrs :
         std::vector<AttrMap>{{{"pooled_size", "(2, 3)"}, {"spatial_scale", "1"}},
                              {{"pooled_size", "(3, 2)"}, {"spatial_scale", "0.5"}, {"sampling_ratio", "2"}},
                              {{"pooled_size", "(1, 1)"}, {"spatial_scale", "1"}, {"sampling_ratio", "5"}},
                              {{"pooled_size", "(7, 7)"}, {"spatial_scale", "0.75"}}}) {
      same_in_all_types({"_contrib_RROIAlign", attrs, {data, regions}, "1"});
      same_in_all_types({"_contrib_RROIAlign", attrs, {data, none}, "1"});
    }
  }
  CHECK_EQ(std::string(reports()), std::string());
}

UNIT_MAIN()
