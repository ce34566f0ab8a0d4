// SPDX-License-Identifier: Apache-2.0
// Operators over rows (softmax, SoftmaxOutput, LayerNorm) on the simulated runtime: results and gradients are those of
// the CPU for all types and lengths, and those of views have the bits of those of whole arrays.
#include <cmath>
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

// Numbers from -2 to 2; an array that begins `first` elements into its memory.
NDArray random_of(const Context &context, const Shape &shape, Dtype dtype, uint64_t seed, int64_t first) {
  const NDArray wide = NDArray::create(shape, Dtype::kFloat32, kCpu);
  wide.fill_uniform(-2, 2, seed);
  const NDArray whole = NDArray::create({shape.size() + 8}, dtype, context);
  const NDArray part = whole.slice(first, first + shape.size()).reshape(shape);
  part.copy_from(wide);
  return part;
}

struct Case {
  const char *op;
  AttrMap attrs;
  int num_params;  // of the length of a row: gamma, beta
  bool labels;     // a class for each row
};

// Output and gradients, all in one list.
std::vector<float> pass_on(const Context &context, const Case &of, const Shape &shape, Dtype dtype, int64_t first) {
  const int64_t rows = shape[0], length = shape[1];
  std::vector<Symbol> inputs{Symbol::variable("data")};
  std::vector<NDArray> args{random_of(context, shape, dtype, 1, first)};
  std::vector<GradReq> reqs{GradReq::kWrite};
  for (int i = 0; i < of.num_params; ++i) {
    inputs.push_back(Symbol::variable(text("param", i)));
    args.push_back(random_of(context, {length}, dtype, uint64_t(2 + i), first));
    reqs.push_back(GradReq::kWrite);
  }
  if (of.labels) {
    const NDArray labels = NDArray::create({rows}, Dtype::kFloat32, kCpu);
    for (int64_t i = 0; i < rows; ++i) labels.data_as<float>()[i] = float(i * 7 % length);
    inputs.push_back(Symbol::variable("label"));
    args.push_back(NDArray::create({rows}, dtype, context));
    args.back().copy_from(labels);
    reqs.push_back(GradReq::kNull);
  }
  std::vector<NDArray> grads;
  for (size_t i = 0; i < args.size(); ++i) {
    grads.push_back(reqs[i] == GradReq::kNull ? NDArray() : random_of(context, args[i].shape(), dtype, 5, first));
  }
  ExecutorOptions options;
  options.context = context;
  const auto exec = Executor::bind(Symbol::create(of.op, of.attrs, "node", {}, inputs), args, grads, reqs, {}, options);
  exec->forward(true);
  exec->backward({random_of(context, shape, dtype, 6, first)});
  std::vector<float> all = values_of(exec->outputs()[0]);
  for (size_t i = 0; i < grads.size(); ++i) {
    if (reqs[i] == GradReq::kNull) continue;
    for (const float value : values_of(grads[i])) all.push_back(value);
  }
  return all;
}

const std::vector<Case> kCases{
    {"softmax", {}, 0, false},
    {"softmax", {{"temperature", "0.5"}}, 0, false},
    {"softmin", {}, 0, false},
    {"log_softmax", {}, 0, false},
    {"LayerNorm", {}, 2, false},
    {"SoftmaxOutput", {}, 0, true},
    {"SoftmaxOutput", {{"normalization", "valid"}, {"use_ignore", "1"}, {"ignore_label", "0"}}, 0, true},
    {"SoftmaxOutput", {{"out_grad", "1"}, {"smooth_alpha", "0.1"}}, 0, true},
};

std::string name_of(const Case &of, const Shape &shape, Dtype dtype) {
  std::string name = text(of.op, " of ", dtype, " ", shape);
  for (const auto &[key, value] : of.attrs) name += text(", ", key, " ", value);
  return name;
}

}  // namespace

TEST(rows_of_all_lengths_and_types_are_as_on_the_cpu) {
  for (const Case &of : kCases) {
    // The first two of each type are no whole vectors, or few; then rows of a warp, several and a block.
    for (const Shape &shape : {Shape{5, 3}, Shape{9, 8}, Shape{17, 40}, Shape{3, 800}, Shape{2, 5000}}) {
      for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kBfloat16}) {
        const std::vector<float> expected = pass_on(kCpu, of, shape, dtype, 0),
                                 found = pass_on(kGpu, of, shape, dtype, 0);
        // Gradients of gamma and beta are sums over rows.
        const double tolerance = dtype == Dtype::kBfloat16 ? 1.0 / 64 : dtype == Dtype::kFloat16 ? 1.0 / 512 : 1e-5;
        CHECK_EQ(found.size(), expected.size());
        for (size_t i = 0; i < found.size(); ++i) {
          if (std::fabs(found[i] - expected[i]) <= tolerance * (1 + std::fabs(expected[i]))) continue;
          unit::fail(
              __FILE__, __LINE__,
              text(name_of(of, shape, dtype), ", element ", i, ": expected ", expected[i], ", found ", found[i]));
        }
      }
    }
  }
  CHECK_EQ(std::string(reports()), "");
}

TEST(rows_that_begin_anywhere_have_the_bits_of_whole_ones) {
  for (const Case &of : kCases) {
    for (const Dtype dtype : {Dtype::kFloat32, Dtype::kBfloat16}) {
      const Shape shape{3, 1000};
      const std::vector<float> whole = pass_on(kGpu, of, shape, dtype, 0), view = pass_on(kGpu, of, shape, dtype, 1);
      if (whole != view) unit::fail(__FILE__, __LINE__, name_of(of, shape, dtype));
    }
  }
  CHECK_EQ(std::string(reports()), "");
}

UNIT_MAIN()
