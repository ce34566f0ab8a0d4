// SPDX-License-Identifier: Apache-2.0
// The cache of operators applied at once: programs by operator, attributes, shapes and types, limited in number.
#include <algorithm>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "executor/applied_program.hpp"
#include "executor/invoke.hpp"

#include "support/unit.hpp"

using namespace cohort;

namespace {

NDArray zeros(const Shape &shape, Dtype dtype = Dtype::kFloat32) { return NDArray::create(shape, dtype, Context{}); }

NDArray apply(const std::string &op, const std::vector<NDArray> &inputs, const AttrMap &attrs = {},
              bool is_train = false, uint64_t seed = 0) {
  return invoke(op, attrs, inputs, {}, Context{}, is_train, seed)[0];
}

// How many programs fn has made.
template <typename Fn>
uint64_t made_by(Fn &&fn) {
  const uint64_t before = invoked_programs(Context{}).made;
  fn();
  return invoked_programs(Context{}).made - before;
}

TEST(a_program_is_made_once_for_operator_attributes_shapes_and_types) {
  const NDArray x = zeros({3}), y = zeros({3}), matrix = zeros({3, 1}), doubles = zeros({3}, Dtype::kFloat64);
  CHECK_EQ(made_by([&] { apply("relu", {x}); }), 1u);
  CHECK_EQ(made_by([&] {
             for (int i = 0; i < 10; ++i) apply("relu", {i % 2 ? x : y});
           }),
           0u);
  CHECK_EQ(made_by([&] { apply("relu", {matrix}); }), 1u);
  CHECK_EQ(made_by([&] { apply("relu", {doubles}); }), 1u);
  CHECK_EQ(made_by([&] { apply("sigmoid", {x}); }), 1u);
  CHECK_EQ(made_by([&] { apply("_plus_scalar", {x}, {{"scalar", "1"}}); }), 1u);
  CHECK_EQ(made_by([&] { apply("_plus_scalar", {x}, {{"scalar", "2"}}); }), 1u);
  CHECK_EQ(made_by([&] { apply("_plus_scalar", {x}, {{"scalar", "1"}}); }), 0u);
  CHECK_EQ(made_by([&] { apply("Dropout", {x}, {}, true, 1); }), 1u);
  CHECK_EQ(made_by([&] { apply("Dropout", {x}, {}, true, 2); }), 0u);
  CHECK_EQ(made_by([&] { apply("Dropout", {x}, {}, false, 2); }), 1u);
}

TEST(what_is_refused_is_not_kept) {
  const NDArray x = zeros({2}), y = zeros({3});
  const size_t before = invoked_programs(Context{}).kept;
  for (int i = 0; i < 3; ++i) {
    CHECK_THROWS(apply("elemwise_add", {x, y}), Error, "elemwise_add");
    CHECK_THROWS(apply("Dropout", {x}, {{"no_such", "1"}}), Error, "no_such");
  }
  CHECK_EQ(invoked_programs(Context{}).kept, before);
}

TEST(programs_are_bounded_and_the_oldest_go) {
  const NDArray x = zeros({1}), y = zeros({2});
  apply("tanh", {x});
  for (size_t i = 0; i < AppliedPrograms::kMost + 10; ++i) {
    apply("_mul_scalar", {x}, {{"scalar", std::to_string(i)}});
    if (i % 100 == 0) CHECK_EQ(made_by([&] { apply("tanh", {x}); }), 0u);  // in use: it stays
  }
  CHECK_EQ(invoked_programs(Context{}).kept, AppliedPrograms::kMost);
  CHECK_EQ(made_by([&] { apply("tanh", {x}); }), 0u);
  CHECK_EQ(made_by([&] { apply("_mul_scalar", {x}, {{"scalar", "0"}}); }), 1u);
  CHECK_EQ(invoked_programs(Context{}).kept, AppliedPrograms::kMost);
}

TEST(programs_stay_when_threads_are_let_go) {
  const NDArray x = zeros({3}), large = zeros({1 << 20});
  apply("exp", {x});
  apply("exp", {large});
  release_invoked();
  CHECK_EQ(made_by([&] { apply("exp", {x}).wait(); }), 0u);
  CHECK_EQ(made_by([&] { apply("exp", {large}).wait(); }), 0u);
}

// If the caller runs in an OpenMP parallel region, each of its threads may apply operators: each has another number in
// the team, and each uses the scratch of one thread.
TEST(threads_of_a_team_of_the_hosts_apply_operators) {
  constexpr int kThreads = 8;
  constexpr int64_t kLength = 600, kBoxes = 100;
  int wrong = 0;
#pragma omp parallel for num_threads(kThreads) schedule(static, 1) reduction(+ : wrong)
  for (int t = 0; t < kThreads; ++t) {
    NDArray line = zeros({kLength}), boxes = zeros({kBoxes, 6}), matrix = zeros({3, 3});
    std::vector<float> numbers(kLength), sorted(kLength), corners(kBoxes * 6);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = float((i * 7919 + size_t(t) * 31) % 1009);
    for (size_t i = 0; i < corners.size(); ++i) corners[i] = float(i % 6 < 4 ? i % 6 / 2 + i / 6 * 2 : 1);
    line.write(numbers.data(), numbers.size() * sizeof(float));
    boxes.write(corners.data(), corners.size() * sizeof(float));
    std::sort(numbers.begin(), numbers.end());
    for (int turn = 0; turn < 20; ++turn) {
      apply("sort", {line}).read(sorted.data(), sorted.size() * sizeof(float));
      wrong += sorted != numbers;
      apply("_contrib_box_nms", {boxes}).wait();
      apply("_linalg_syevd", {matrix}).wait();
      apply("_linalg_gelqf", {matrix}).wait();
    }
  }
  CHECK_EQ(wrong, 0);
}

}  // namespace

UNIT_MAIN()
