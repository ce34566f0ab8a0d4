// SPDX-License-Identifier: Apache-2.0
// _contrib_hawkesll: the log likelihood of events of K marks in a Hawkes process with exponential decay, and the final
// state of each mark. For an event of mark c at time d after the last one of that mark, where s is the mark's state
// before: intensity lda + alpha beta s e^(-beta d), compensator lda d + alpha s (1 - e^(-beta d)), and the state
// becomes 1 + s e^(-beta d). The remaining time up to max_time adds to the compensator.
#include "op/op.hpp"

namespace cohort {
namespace {

COHORT_OPERATOR(_contrib_hawkesll, NoAttrs)
    .doc("The log likelihood of events in a Hawkes process, and the final states of its marks.")
    .input("lda", "Background intensities, (N, K).")
    .input("alpha", "Branching ratios, (K,).")
    .input("beta", "Decays, (K,).")
    .input("state", "Initial states of the marks, (N, K).")
    .input("lags", "Times since the previous event, (N, T).")
    .input("marks", "Marks of the events, int32, (N, T).")
    .input("valid_length", "Number of valid events, (N,).")
    .input("max_time", "End of the observation, (N,).")
    .outputs([](const NoAttrs &) { return 2; })
    .output_names([](const NoAttrs &) {
      return std::vector<std::string>{"output", "out_state"};
    })
    .infer_shape([](const NoAttrs &, Shapes &in, Shapes &out) {
      for (size_t i : {size_t(0), size_t(3), size_t(4), size_t(5)}) unify(in[i], Shape::of_rank(2), i);
      for (size_t i : {size_t(1), size_t(2), size_t(6), size_t(7)}) unify(in[i], Shape::of_rank(1), i);
      Shape rows{in[0][0]}, marks{in[0][1]}, events{in[4][1]};
      for (size_t i : {size_t(3), size_t(4), size_t(5), size_t(6), size_t(7)}) unify(rows, Shape{in[i][0]}, "rows");
      unify(marks, Shape{in[3][1]}, "marks");
      for (size_t i : {size_t(1), size_t(2)}) unify(marks, in[i], "marks");
      unify(events, Shape{in[5][1]}, "events");
      for (size_t i : {size_t(0), size_t(3)}) unify(in[i], Shape{rows[0], marks[0]}, i);
      for (size_t i : {size_t(1), size_t(2)}) unify(in[i], marks, i);
      for (size_t i : {size_t(4), size_t(5)}) unify(in[i], Shape{rows[0], events[0]}, i);
      for (size_t i : {size_t(6), size_t(7)}) unify(in[i], rows, i);
      unify(out[0], rows, "output");
      unify(out[1], in[3], "out_state");
    })
    .infer_dtype([](const NoAttrs &, Dtypes &in, Dtypes &out) {
      unify(in[5], Dtype::kInt32, "marks");
      Dtype all = Dtype::kNone;
      for (size_t i = 0; i < in.size(); ++i) {
        if (i != 5) unify(all, in[i], i);
      }
      for (const Dtype t : out) unify(all, t, "output");
      for (size_t i = 0; i < in.size(); ++i) {
        if (i != 5) unify(in[i], all, i);
      }
      for (Dtype &t : out) unify(t, all, "output");
    })
    .gradient(Gradient::by_kernel({0, 1, 2, 3}, {0, 1, 2, 3, 4, 5, 6, 7}));

}  // namespace
}  // namespace cohort
