// SPDX-License-Identifier: Apache-2.0
// Kernels of _contrib_hawkesll. Each row of events is processed in the order of time.
#pragma once

#include <cmath>

#include "base/dtype_cast.hpp"
#include "kernels/backend.hpp"
#include "kernels/compute.hpp"

namespace cohort {
namespace {

// The forward step carries the state of each mark; the backward step also carries the state's derivatives by beta and
// by its initial value. Inputs of the backward step begin with the head gradients of both outputs. Rows share alpha
// and beta: their contributions to those gradients are added in the order of the rows.
template <typename Backend, typename C, bool kBackward>
class Hawkes {
 public:
  explicit Hawkes(const StepSpec &spec) {
    const Shape &lda = spec.inputs[kFirst].shape;
    rows_ = lda[0], marks_ = lda[1], events_ = spec.inputs[kFirst + 4].shape[1];
  }
  size_t extra() const { return size_t(rows_ * room()); }

  void run(const BodyInputs<C> &all, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    Backend::parallel_for(lane, rows_, 1 + Backend::kExpensiveGrain / (events_ + marks_ + 1),
                          [=, *this] COHORT_DEVICE(int64_t begin, int64_t end) {
                            for (int64_t row = begin; row < end; ++row) one_row(all, out, extra + row * room(), row);
                          });
    if (!kBackward || !(out[1] || out[2])) return;
    const int64_t rows = rows_, marks = marks_, step = room();
    Backend::parallel_for_2d(lane, 2, marks, [=] COHORT_DEVICE(int64_t which, int64_t m) {
      if (!out[1 + which]) return;
      C sum = 0;
      for (int64_t row = 0; row < rows; ++row) sum += extra[row * step + (4 + which) * marks + m];
      out[1 + which][m] = sum;
    });
  }

 private:
  static constexpr int kFirst = kBackward ? 2 : 0;

  // Scratch elements of a row: state and time of the last event of each mark; in the backward step also derivatives
  // and contributions to the gradients of alpha and beta.
  COHORT_HOST_DEVICE int64_t room() const { return marks_ * (kBackward ? 6 : 2); }
  struct Row {
    C *states, *lasts;
    C *of_beta, *of_state;             // derivatives of the state
    C *lda, *alpha, *beta, *at_start;  // gradients, null where unwanted
  };

  COHORT_HOST_DEVICE void one_row(const BodyInputs<C> &all, const BodyOutputs<C> &out, C *extra, int64_t row) const {
    Row r{extra, extra + marks_, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
    copy_elements(all[kFirst + 3] + row * marks_, marks_, r.states);
    fill_elements(r.lasts, marks_, C(0));
    if constexpr (kBackward) {
      r.of_beta = extra + 2 * marks_, r.of_state = extra + 3 * marks_;
      r.alpha = extra + 4 * marks_, r.beta = extra + 5 * marks_;
      if (out[0]) r.lda = out[0] + row * marks_;
      if (out[3]) r.at_start = out[3] + row * marks_;
      fill_elements(r.of_beta, marks_, C(0));
      fill_elements(r.of_state, marks_, C(1));
      fill_elements(r.alpha, 2 * marks_, C(0));  // fills beta, too, which follows alpha
      if (r.lda) fill_elements(r.lda, marks_, C(0));
      if (r.at_start) fill_elements(r.at_start, marks_, C(0));
    }
    const int64_t length = to_index(all[kFirst + 6][row]), valid = length < events_ ? length : events_;
    C time = 0, likelihood = 0;
    for (int64_t e = 0; e < valid; ++e) {
      const int64_t m = to_index(all[kFirst + 5][row * events_ + e]);
      time += all[kFirst + 4][row * events_ + e];
      if (m < 0 || m >= marks_) {
        Backend::fail("marks: expected 0 to ", marks_ - 1, ", found ", m, " in row ", row);
        continue;
      }
      likelihood += pass(all, r, row, m, time, true);
    }
    for (int64_t m = 0; m < marks_; ++m) likelihood += pass(all, r, row, m, all[kFirst + 7][row], false);
    if constexpr (!kBackward) {
      out[0][row] = likelihood;
      if (out[1]) copy_elements(r.states, marks_, out[1] + row * marks_);
    }
  }

  // Advances a mark to time `now`, at which it has an event or not. Returns the contribution to the log likelihood.
  COHORT_HOST_DEVICE C pass(const BodyInputs<C> &all, const Row &r, int64_t row, int64_t m, C now, bool event) const {
    const C lda = all[kFirst][row * marks_ + m], alpha = all[kFirst + 1][m], beta = all[kFirst + 2][m];
    const C s = r.states[m], d = now - r.lasts[m];
    const C decay = std::exp(-beta * d), rate = lda + alpha * beta * s * decay;
    const C added = (event ? std::log(rate) : C(0)) - lda * d - alpha * s * (1 - decay);
    if constexpr (kBackward) {
      // The derivative by each parameter: the direct part, and the part through the state.
      const C head = all[0][row];
      const C through = (event ? alpha * beta * decay / rate : C(0)) - alpha * (1 - decay);
      C own_alpha = -s * (1 - decay), own_beta = -alpha * s * d * decay, own_lda = -d;
      if (event) {
        own_lda += 1 / rate;
        own_alpha += beta * s * decay / rate;
        own_beta += alpha * s * decay * (1 - beta * d) / rate;
      }
      if (r.lda) r.lda[m] += head * own_lda;
      r.alpha[m] += head * own_alpha;
      r.beta[m] += head * (own_beta + through * r.of_beta[m]);
      if (r.at_start) r.at_start[m] += head * through * r.of_state[m];
      r.of_beta[m] = r.of_beta[m] * decay - s * d * decay;
      r.of_state[m] *= decay;
      if (!event) {  // add the gradient of the state that the step returns
        const C head_state = all[1][row * marks_ + m];
        r.beta[m] += head_state * r.of_beta[m];
        if (r.at_start) r.at_start[m] += head_state * r.of_state[m];
      }
    }
    r.states[m] = s * decay + (event ? C(1) : C(0));
    r.lasts[m] = now;
    return added;
  }

  int64_t rows_, marks_, events_;
};

template <typename Backend, typename C>
using HawkesForward = Hawkes<Backend, C, false>;
template <typename Backend, typename C>
using HawkesBackward = Hawkes<Backend, C, true>;

template <typename Backend>
void register_hawkes_kernels() {
  KernelTable &table = backend_kernels();
  table.add("_contrib_hawkesll", make_compute<Backend, HawkesForward>).dtypes(kFloatTypes);
  table.add("_backward__contrib_hawkesll", make_compute<Backend, HawkesBackward>);
}

}  // namespace
}  // namespace cohort
