// SPDX-License-Identifier: Apache-2.0
// COHORT_CHECK=outputs detects kernels that leave output elements unwritten, and no others.
#include "device/output_check.hpp"

#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "support/unit.hpp"

namespace cohort {
namespace {

using Work = std::function<void(const Args &)>;

class Lambda final : public Kernel {
 public:
  explicit Lambda(Work work) : work_(std::move(work)) {}
  void run(const Args &args, const Lane &) const override { work_(args); }

 private:
  const Work work_;
};

// One input and two outputs of six elements each; returns the check's complaint about the kernel, "" if none.
std::string verdict(Dtype dtype, const Work &work, std::vector<char> *result = nullptr, bool in_place = false) {
  StepSpec spec;
  const TensorSpec six{Shape{6}, dtype, nullptr};
  spec.inputs = {six};
  spec.outputs = {six, six};
  spec.scratch_bytes = 16;
  const auto kernel = with_checked_outputs(std::make_unique<Lambda>(work), spec);
  std::vector<char> in(six.bytes()), first(six.bytes()), second(six.bytes()), scratch(16);
  std::iota(in.begin(), in.end(), char(1));
  void *inputs[] = {in.data()}, *outputs[] = {in_place ? in.data() : first.data(), second.data()};
  Args args;
  args.inputs = inputs;
  args.outputs = outputs;
  args.scratch = scratch.data();
  std::string said;
  try {
    kernel->run(args, Lane{1, nullptr});
  } catch (const Error &e) {
    said = e.what();
  }
  if (result) *result = second;
  return said;
}

constexpr Dtype kDtypes[] = {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kInt32,
                             Dtype::kInt64,   Dtype::kUint8,   Dtype::kInt8};

TEST(what_is_not_written_is_named) {
  for (Dtype dtype : kDtypes) {
    const size_t size = dtype_size(dtype);
    CHECK_EQ(verdict(dtype, [&](const Args &args) { std::memset(args.outputs[0], 0, 6 * size); }),
             "output 1: 6 of 6 elements were not written, first element 0");
    CHECK_EQ(verdict(dtype,
                     [&](const Args &args) {
                       std::memset(args.outputs[0], 0, 3 * size);
                       std::memset(args.out<char>(0) + 4 * size, 0, 2 * size);
                       std::memset(args.outputs[1], 0, 6 * size);
                     }),
             "output 0: 1 of 6 elements were not written, first element 3");
  }
}

TEST(what_is_written_passes_whatever_it_is) {
  for (Dtype dtype : kDtypes) {
    const size_t size = dtype_size(dtype);
    CHECK_EQ(verdict(dtype,
                     [&](const Args &args) {
                       std::memcpy(args.outputs[0], args.inputs[0], 6 * size);
                       std::memset(args.outputs[1], 0x5a, 6 * size);
                     }),
             "");
  }
}

TEST(numbers_of_one_byte_may_be_the_pattern) {
  for (int value = 0; value < 256; ++value) {
    std::vector<char> result;
    CHECK_EQ(verdict(
                 Dtype::kUint8,
                 [&](const Args &args) {
                   std::memset(args.outputs[0], value, 6);
                   for (int i = 0; i < 6; ++i) args.out<char>(1)[i] = args.mutable_in<char>(0)[i]++;  // not twice
                 },
                 &result),
             "");
    CHECK_EQ(int(result[0]), 1);
  }
}

TEST(an_output_in_the_memory_of_an_input_keeps_it) {
  std::vector<char> result;
  CHECK_EQ(verdict(
               Dtype::kUint8,
               [](const Args &args) {
                 for (int i = 0; i < 6; ++i) args.out<char>(0)[i] = args.in<char>(0)[i] + 1;
                 std::memcpy(args.outputs[1], args.outputs[0], 6);
               },
               &result, true),
           "");
  CHECK_EQ(int(result[5]), 7);
}

TEST(scratch_memory_is_not_cleared) {
  CHECK_EQ(verdict(Dtype::kFloat32,
                   [](const Args &args) {
                     for (int j = 0; j < 2; ++j) std::memset(args.outputs[j], 0, 24);
                     float found;
                     std::memcpy(&found, args.scratch, sizeof found);
                     CHECK(found != found);
                   }),
           "");
}

}  // namespace
}  // namespace cohort

UNIT_MAIN()
