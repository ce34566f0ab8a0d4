// SPDX-License-Identifier: Apache-2.0
#include "op/transpose.hpp"

#include <numeric>

namespace cohort {

std::vector<int> permutation(const SwapAxisAttrs &a, int rank) {
  std::vector<int> order(size_t(rank), 0);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[size_t(normalize_axis(a.dim1, rank, "dim1"))], order[size_t(normalize_axis(a.dim2, rank, "dim2"))]);
  return order;
}

std::vector<int> permutation(const TransposeAttrs &a, int rank) {
  std::vector<int> order(size_t(rank), 0);
  if (a.axes.empty()) {
    for (int i = 0; i < rank; ++i) order[size_t(i)] = rank - 1 - i;
    return order;
  }
  std::vector<bool> seen(size_t(rank), false);
  bool good = int(a.axes.size()) == rank;
  for (size_t i = 0; good && i < a.axes.size(); ++i) {
    order[i] = normalize_axis(a.axes[i], rank, "axes");
    good = !seen[size_t(order[i])];
    seen[size_t(order[i])] = true;
  }
  if (!good) {
    throw Error(Code::kShape,
                text("attribute 'axes': expected each of ", rank, " axes once, found ", print_tuple(a.axes)), "axes");
  }
  return order;
}

namespace {

template <typename A>
void infer_shape(const A &a, Shapes &in, Shapes &out) {
  const int rank = in[0].rank_known() ? in[0].rank() : out[0].rank_known() ? out[0].rank() : -1;
  if (rank < 0) return;
  const std::vector<int> order = permutation(a, rank);
  unify(in[0], Shape::of_rank(rank), "data");
  unify(out[0], Shape::of_rank(rank), "output");
  Shape there = Shape::of_rank(rank), back = Shape::of_rank(rank);
  for (int i = 0; i < rank; ++i) there[i] = in[0][order[size_t(i)]];
  unify(out[0], there, "output");
  for (int i = 0; i < rank; ++i) back[order[size_t(i)]] = out[0][i];
  unify(in[0], back, "data");
}

Gradient gradient() { return Gradient::by_kernel({0}); }

COHORT_OPERATOR(SwapAxis, SwapAxisAttrs)
    .alias("swapaxes")
    .alias("_npi_swapaxes")
    .doc("Exchanges two axes.")
    .attr(&SwapAxisAttrs::dim1, "dim1", 0, "The first axis.")
    .attr(&SwapAxisAttrs::dim2, "dim2", 0, "The second axis.")
    .input("data", "Any shape.")
    .infer_shape(infer_shape<SwapAxisAttrs>)
    .gradient(gradient())
    .follows()
    .names_only_input();

COHORT_OPERATOR(transpose, TransposeAttrs)
    .doc("Permutes the axes.")
    .attr(&TransposeAttrs::axes, "axes", Tuple(), "The axes of data in their new order; default: reversed.")
    .input("data", "Any shape.")
    .infer_shape(infer_shape<TransposeAttrs>)
    .gradient(gradient())
    .follows();

}  // namespace
}  // namespace cohort
