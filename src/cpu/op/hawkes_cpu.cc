// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/dtype_cast.hpp"
#include "cpu/op/compute_kernel.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

// Forward carries the state of each mark, and backward its slopes along its beta and its first state beside it. Inputs
// of the backward step begin with the head gradients of both outputs.
template <typename C, bool kBackward>
class Hawkes {
 public:
  explicit Hawkes(const StepSpec &spec) {
    const Shape &lda = spec.inputs[kFirst].shape;
    rows_ = lda[0], marks_ = lda[1], events_ = spec.inputs[kFirst + 4].shape[1];
  }
  size_t extra() const { return size_t(rows_ * marks_) * (kBackward ? 4 : 2); }

  void run(const C *const *all, C *const *out, C *extra, const Lane &) const {
    const C *const *const in = all + kFirst;
    if constexpr (kBackward) {
      for (int k = 0; k < 4; ++k) {
        if (out[k]) std::fill_n(out[k], k == 1 || k == 2 ? marks_ : rows_ * marks_, C(0));
      }
    }
    for (int64_t row = 0; row < rows_; ++row) one_row(in, all, out, extra + row * marks_ * (kBackward ? 4 : 2), row);
  }

 private:
  static constexpr size_t kFirst = kBackward ? 2 : 0;

  void one_row(const C *const *in, const C *const *heads, C *const *out, C *extra, int64_t row) const {
    C *const states = extra, *const lasts = extra + marks_, *const slopes = extra + 2 * marks_;
    for (int64_t m = 0; m < marks_; ++m) {
      states[m] = in[3][row * marks_ + m];
      lasts[m] = 0;
      if constexpr (kBackward) {
        slopes[m] = 0;
        slopes[marks_ + m] = 1;
      }
    }
    const int64_t valid = std::clamp<int64_t>(to_index(in[6][row]), 0, events_);
    C time = 0, likelihood = 0;
    for (int64_t e = 0; e < valid; ++e) {
      const int64_t m = to_index(in[5][row * events_ + e]);
      if (m < 0 || m >= marks_) {
        throw Error(Code::kExecution, text("marks: expected 0 to ", marks_ - 1, ", found ", m, " in row ", row),
                    "marks");
      }
      time += in[4][row * events_ + e];
      likelihood += pass(in, heads, out, states, lasts, slopes, row, m, time, true);
    }
    for (int64_t m = 0; m < marks_; ++m) {
      likelihood += pass(in, heads, out, states, lasts, slopes, row, m, in[7][row], false);
    }
    if constexpr (!kBackward) {
      out[0][row] = likelihood;
      if (out[1]) std::copy_n(states, marks_, out[1] + row * marks_);
    }
  }

  // Time passes for a mark up to `now`, where there is an event of it or not. What it adds to the log likelihood.
  C pass(const C *const *in, const C *const *heads, C *const *out, C *states, C *lasts, C *slopes, int64_t row,
         int64_t m, C now, bool event) const {
    const C lda = in[0][row * marks_ + m], alpha = in[1][m], beta = in[2][m], s = states[m], d = now - lasts[m];
    const C decay = std::exp(-beta * d), rate = lda + alpha * beta * s * decay;
    const C added = (event ? std::log(rate) : C(0)) - lda * d - alpha * s * (1 - decay);
    if constexpr (kBackward) {
      // Along each parameter: its own part, and that through the state.
      const C head = heads[0][row];
      const C through = (event ? alpha * beta * decay / rate : C(0)) - alpha * (1 - decay);
      C own_alpha = -s * (1 - decay), own_beta = -alpha * s * d * decay, own_lda = -d;
      if (event) {
        own_lda += 1 / rate;
        own_alpha += beta * s * decay / rate;
        own_beta += alpha * s * decay * (1 - beta * d) / rate;
      }
      C *const of_beta = slopes, *const of_state = slopes + marks_;
      give(out, 0, row * marks_ + m, head * own_lda);
      give(out, 1, m, head * own_alpha);
      give(out, 2, m, head * (own_beta + through * of_beta[m]));
      give(out, 3, row * marks_ + m, head * through * of_state[m]);
      of_beta[m] = of_beta[m] * decay - s * d * decay;
      of_state[m] *= decay;
      if (!event) {  // the state of the output
        const C head_state = heads[1][row * marks_ + m];
        give(out, 2, m, head_state * of_beta[m]);
        give(out, 3, row * marks_ + m, head_state * of_state[m]);
      }
    }
    states[m] = s * decay + (event ? C(1) : C(0));
    lasts[m] = now;
    return added;
  }

  static void give(C *const *out, int k, int64_t at, C value) {
    if (out[k]) out[k][at] += value;
  }

  int64_t rows_, marks_, events_;
};

template <typename C>
using HawkesForward = Hawkes<C, false>;
template <typename C>
using HawkesBackward = Hawkes<C, true>;

COHORT_KERNEL_BY(cpu, _contrib_hawkesll, make_compute<HawkesForward>).dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, _backward__contrib_hawkesll, make_compute<HawkesBackward>);

}  // namespace
}  // namespace cohort
