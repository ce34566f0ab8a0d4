// SPDX-License-Identifier: Apache-2.0
// How a batch is split over devices, and how the batch axis is read from a layout (contract WRK-01..08, DSC-02..06).
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "group/slices.hpp"
#include "support/unit.hpp"

using namespace cohort;

namespace {

constexpr Rounding kUp = Rounding::kHalfUp, kEven = Rounding::kHalfEven, kBalanced = Rounding::kBalanced;

// Lengths of the slices as text, "3 2"; checks that the split covers the batch without gaps.
std::string sizes(int64_t batch, const std::vector<double> &workload, Rounding rounding, size_t n = 0) {
  const std::vector<BatchSlice> slices = split_batch(batch, workload, n ? n : workload.size(), rounding);
  std::string out;
  int64_t end = 0;
  for (const BatchSlice &slice : slices) {
    CHECK_EQ(slice.begin, end);
    end = slice.end;
    out += (out.empty() ? "" : " ") + std::to_string(slice.size());
  }
  CHECK_EQ(end, batch);
  return out;
}

std::string equal(int64_t batch, size_t n, Rounding rounding) { return sizes(batch, {}, rounding, n); }

Code code_of(int64_t batch, const std::vector<double> &workload, size_t n, Rounding rounding) {
  try {
    split_batch(batch, workload, n, rounding);
  } catch (const Error &error) {
    return error.code();
  }
  return Code(0);
}

}  // namespace

TEST(exact_halves_go_up_or_to_the_even_number) {
  CHECK_EQ(equal(5, 2, kEven), "2 3");
  CHECK_EQ(equal(5, 2, kUp), "3 2");
  CHECK_EQ(equal(9, 2, kEven), "4 5");
  CHECK_EQ(equal(9, 2, kUp), "5 4");
  CHECK_EQ(equal(10, 4, kEven), "2 2 2 4");
  CHECK_EQ(equal(10, 4, kUp), "3 3 3 1");
  CHECK_EQ(equal(18, 4, kEven), "4 4 4 6");
  CHECK_EQ(equal(18, 4, kUp), "5 5 5 3");
}

TEST(shares_follow_the_workload) {
  for (Rounding rounding : {kUp, kEven}) {
    CHECK_EQ(sizes(10, {1, 2}, rounding), "3 7");
    CHECK_EQ(sizes(10, {1, 1, 1}, rounding), "3 3 4");
    CHECK_EQ(sizes(7, {1, 1, 1, 1}, rounding), "2 2 2 1");
    CHECK_EQ(sizes(100, {1, 1, 1}, rounding), "33 33 34");
    CHECK_EQ(sizes(64, {3, 1, 1, 1}, rounding), "32 11 11 10");
    CHECK_EQ(sizes(7, {1, 2}, rounding), "2 5");
  }
  CHECK_EQ(sizes(10, {.5, .25, .25}, kEven), "5 2 3");
  CHECK_EQ(sizes(10, {3, 1}, kEven), "8 2");
}

TEST(only_ratios_of_workloads_matter) {
  CHECK_EQ(sizes(10, {2e-300, 4e-300}, kUp), "3 7");
  CHECK_EQ(sizes(10, {8e307, 1.6e308}, kUp), "3 7");
}

TEST(an_empty_split_is_refused) {
  for (Rounding rounding : {kUp, kEven}) {
    CHECK(code_of(3, {}, 4, rounding) == Code::kInvalidArgument);
    CHECK(code_of(6, {}, 4, rounding) == Code::kInvalidArgument);
    CHECK(code_of(4, {1e-9, 1}, 2, rounding) == Code::kInvalidArgument);
    CHECK(code_of(0, {}, 1, rounding) == Code::kInvalidArgument);
    CHECK(code_of(4, {0, 1}, 2, rounding) == Code::kInvalidArgument);
    CHECK(code_of(4, {-1, 2}, 2, rounding) == Code::kInvalidArgument);
  }
  CHECK(code_of(2, {1, 3}, 2, kEven) == Code::kInvalidArgument);
  CHECK_EQ(sizes(2, {1, 3}, kUp), "1 1");
}

TEST(a_refusal_names_batch_contexts_and_workloads) {
  CHECK_THROWS(split_batch(4, {}, 8, kUp), Error, "batch of 4 over 8 contexts");
  CHECK_THROWS(split_batch(4, {1e-9, 1}, 2, kUp), Error, "[1e-09, 1]");
}

TEST(workloads_that_are_no_numbers_are_refused) {
  CHECK(code_of(4, {0, 0}, 2, kUp) == Code::kInvalidArgument);
  CHECK(code_of(4, {std::nan(""), 1}, 2, kUp) == Code::kInvalidArgument);
  CHECK(code_of(4, {std::numeric_limits<double>::infinity(), 1}, 2, kBalanced) == Code::kInvalidArgument);
}

TEST(there_is_one_workload_a_context) {
  CHECK(code_of(8, {1}, 2, kUp) == Code::kInvalidArgument);
  CHECK(code_of(8, {1, 1, 1}, 2, kUp) == Code::kInvalidArgument);
  CHECK(code_of(8, {}, 0, kUp) == Code::kInvalidArgument);
}

TEST(balanced_gives_every_device_a_sample) {
  CHECK_EQ(equal(6, 4, kBalanced), "2 2 1 1");
  CHECK_EQ(equal(4, 4, kBalanced), "1 1 1 1");
  CHECK_EQ(sizes(4, {1e-9, 1}, kBalanced), "1 3");
  CHECK_EQ(sizes(5, {1e-9, 1, 1e-9}, kBalanced), "1 3 1");
  CHECK_EQ(sizes(10, {1, 2}, kBalanced), "3 7");
  CHECK_EQ(sizes(64, {3, 1, 1, 1}, kBalanced), "32 11 11 10");
  CHECK(code_of(3, {}, 4, kBalanced) == Code::kInvalidArgument);
  CHECK(code_of(4, {0, 1}, 2, kBalanced) == Code::kInvalidArgument);
  for (int64_t n = 1; n <= 7; ++n) {
    for (int64_t batch = n; batch <= 17; ++batch) CHECK(!equal(batch, size_t(n), kBalanced).empty());
  }
}

TEST(given_slices_are_contiguous_from_zero) {
  check_slices({{0, 2}, {2, 7}}, 2);
  CHECK_THROWS(check_slices({{0, 2}, {3, 7}}, 2), Error, "slice 1 to begin at 2");
  CHECK_THROWS(check_slices({{1, 2}}, 1), Error, "slice 0 to begin at 0");
  CHECK_THROWS(check_slices({{0, 2}, {2, 2}}, 2), Error, "not to be empty");
  CHECK_THROWS(check_slices({{0, 2}}, 2), Error, "each of 2 contexts");
}

TEST(the_batch_axis_is_the_first_n_of_the_layout) {
  CHECK_EQ(batch_axis("NCHW"), 0);
  CHECK_EQ(batch_axis("TN"), 1);
  CHECK_EQ(batch_axis("NTN"), 0);
  CHECK_EQ(batch_axis("TC"), -1);
  CHECK_EQ(batch_axis(""), -1);
  CHECK_EQ(batch_axis("nc"), -1);
}

TEST(all_batched_descriptors_share_one_batch_size) {
  int64_t batch = 0;
  const DataDescs descs = {{"table", Shape{5, 5}, Dtype::kFloat32, "TC"},
                           {"data", Shape{3, 8, 2}, Dtype::kFloat32, "TNC"},
                           {"label", Shape{8}}};
  CHECK(batch_axes(descs, &batch) == (std::vector<int>{-1, 1, 0}));
  CHECK_EQ(batch, 8);
  CHECK_THROWS(batch_axes({{"label", Shape{7}}}, &batch), Error, "'label' of shape (7,) has 7");
  CHECK_EQ(batch, 8);
  CHECK_THROWS(batch_axes({{"x", Shape{7}, Dtype::kFloat32, "TN"}}, &batch), Error, "has no axis 1");
  int64_t none = 0;
  CHECK(batch_axes({{"table", Shape{5, 5}, Dtype::kFloat32, ""}}, &none) == (std::vector<int>{-1}));
  CHECK_EQ(none, 0);
}

TEST(sliced_descriptors_have_the_length_of_the_slice) {
  const DataDescs descs = {{"data", Shape{3, 8, 2}, Dtype::kUint8, "TNC"}, {"table", Shape{5}, Dtype::kFloat32, ""}};
  const DataDescs sliced = slice_descs(descs, {1, -1}, {2, 7});
  CHECK_EQ(sliced[0].shape, (Shape{3, 5, 2}));
  CHECK(sliced[0].dtype == Dtype::kUint8);
  CHECK_EQ(sliced[0].layout, "TNC");
  CHECK(sliced[1] == descs[1]);
}

UNIT_MAIN()
