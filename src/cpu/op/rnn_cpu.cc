// SPDX-License-Identifier: Apache-2.0
// What the kernels of RNN find on the CPU: a cell works on rows, with the loops of point-wise functions.
#include <algorithm>

#include "cpu/dnnl_kernel.hpp"
#include "cpu/op/compute_kernel.hpp"
#include "kernels/rnn_layers.hpp"

namespace cohort::rnn {
namespace {

template <typename C>
class Product {
 public:
  Product(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, C beta)
      : transpose_a_(transpose_a), transpose_b_(transpose_b), m_(m), n_(n), k_(k), beta_(beta) {}
  size_t scratch_bytes() const { return 0; }
  void run(const Lane &, const C *a, const C *b, C *c, void *) const {
    gemm(transpose_a_, transpose_b_, m_, n_, k_, a, b, beta_, c);
  }

 private:
  const bool transpose_a_, transpose_b_;
  const int64_t m_, n_, k_;
  const C beta_;
};

class Team {
 public:
  Team(const StepSpec &spec, double operations) : num_threads_(dnn::threads_for_work(spec, operations)) {}
  struct Scope {
    const ThreadsScope threads;
    const Lane lane;
    Scope(const Team &team, const Lane &given)
        : threads(team.num_threads_), lane{std::min(given.num_threads, team.num_threads_), given.stream} {}
  };

 private:
  const int num_threads_;
};

template <typename C>
void sum_rows(const Lane &lane, const C *values, int64_t rows, int64_t columns, C *sums) {
  parallel_for(lane, columns, 1 + 65536 / (rows + 1), [=](int64_t begin, int64_t end) {
    std::fill(sums + begin, sums + end, C(0));
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = begin; j < end; ++j) sums[j] += values[i * columns + j];
    }
  });
}

template <typename C>
class Cells {
 public:
  Cells(const RNNAttrs &attrs, const Sizes &s) : attrs_(attrs), s_(s) {}

  // g: in, the gates' sums; out, the gates.
  void lstm(const Lane &lane, C *g, const C *c, C *next_c, C *h) const {
    each_row(lane,
             [=](int64_t n) { lstm_row(g + n * s_.gates, c + n * s_.state, next_c + n * s_.state, h + n * s_.state); });
  }
  void gru(const Lane &lane, C *g, const C *u, const C *h, C *linear, C *next) const {
    each_row(lane, [=](int64_t n) {
      gru_row(g + n * s_.gates, u + n * s_.gates, h + n * s_.out, linear + n * s_.state, next + n * s_.out);
    });
  }
  void vanilla(const Lane &lane, C *g, C *next) const {
    each_row(lane, [=](int64_t n) { vanilla_row(g + n * s_.gates, next + n * s_.out); });
  }

  // dc: in, the gradient of c'; out, that of c.
  void lstm_backward(const Lane &lane, const Ended &ended, const C *g, const C *c, const C *next_c, const C *dh, C *dc,
                     C *tanh_c, C *dg) const {
    each_row(lane, [=](int64_t n) {
      if (ended(n)) return clear(dg + n * s_.gates);
      lstm_row_backward(g + n * s_.gates, c + n * s_.state, next_c + n * s_.state, dh + n * s_.state, dc + n * s_.state,
                        tanh_c + n * s_.state, dg + n * s_.gates);
    });
  }
  // dh: in, the gradient of h'; out, the part of that of h which goes round the gates.
  void gru_backward(const Lane &lane, const Ended &ended, const C *g, const C *h, const C *linear, C *dh, C *dg,
                    C *du) const {
    each_row(lane, [=](int64_t n) {
      if (ended(n)) return clear(dg + n * s_.gates), clear(du + n * s_.gates);
      gru_row_backward(g + n * s_.gates, h + n * s_.out, linear + n * s_.state, dh + n * s_.out, dg + n * s_.gates,
                       du + n * s_.gates);
    });
  }
  void vanilla_backward(const Lane &lane, const Ended &ended, const C *g, const C *dh, C *dg) const {
    each_row(lane, [=](int64_t n) {
      if (ended(n)) return clear(dg + n * s_.gates);
      vanilla_row_backward(g + n * s_.gates, dh + n * s_.out, dg + n * s_.gates);
    });
  }

 private:
  template <typename Fn>
  void each_row(const Lane &lane, const Fn &fn) const {
    parallel_for(lane, s_.batch, 1 + 2048 / s_.gates, [&fn](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) fn(n);
    });
  }
  void clear(C *gates) const { std::fill_n(gates, s_.gates, C(0)); }
  static void apply(PointwiseLoop<C> loop, const C *x, C *y, int64_t count) {
    loop(x, nullptr, nullptr, C(0), C(0), y, count);
  }

  void lstm_row(C *g, const C *c, C *next_c, C *h) const {
    const int64_t n = s_.state;
    apply(sigmoid_, g, g, 2 * n);
    apply(tanh_, g + 2 * n, g + 2 * n, n);
    apply(sigmoid_, g + 3 * n, g + 3 * n, n);
    for (int64_t i = 0; i < n; ++i) next_c[i] = g[n + i] * c[i] + g[i] * g[2 * n + i];
    if (attrs_.lstm_state_clip_min) {
      const C low = C(*attrs_.lstm_state_clip_min), high = C(*attrs_.lstm_state_clip_max);
      for (int64_t i = 0; i < n; ++i) {
        const bool nan = next_c[i] != next_c[i];
        if (nan ? attrs_.lstm_state_clip_nan : next_c[i] < low) next_c[i] = low;
        if (next_c[i] > high) next_c[i] = high;
      }
    }
    apply(tanh_, next_c, h, n);
    for (int64_t i = 0; i < n; ++i) h[i] *= g[3 * n + i];
  }

  void gru_row(C *g, const C *u, const C *h, C *linear, C *next) const {
    const int64_t n = s_.state;
    for (int64_t i = 0; i < 2 * n; ++i) g[i] += u[i];
    apply(sigmoid_, g, g, 2 * n);
    for (int64_t i = 0; i < n; ++i) {
      linear[i] = u[2 * n + i];
      g[2 * n + i] += g[i] * linear[i];
    }
    apply(tanh_, g + 2 * n, g + 2 * n, n);
    for (int64_t i = 0; i < n; ++i) next[i] = (1 - g[n + i]) * g[2 * n + i] + g[n + i] * h[i];
  }

  void vanilla_row(C *g, C *next) const {
    if (s_.mode == RNNAttrs::kRnnTanh) {
      apply(tanh_, g, g, s_.state);
    } else {
      for (int64_t i = 0; i < s_.state; ++i) g[i] = g[i] < 0 ? C(0) : g[i];
    }
    std::copy_n(g, s_.state, next);
  }

  void lstm_row_backward(const C *g, const C *c, const C *next_c, const C *dh, C *dc, C *tanh_c, C *dg) const {
    const int64_t n = s_.state;
    apply(tanh_, next_c, tanh_c, n);
    const bool clips = attrs_.lstm_state_clip_min.has_value();
    const C low = clips ? C(*attrs_.lstm_state_clip_min) : C(0), high = clips ? C(*attrs_.lstm_state_clip_max) : C(0);
    for (int64_t k = 0; k < n; ++k) {
      const C i = g[k], f = g[n + k], u = g[2 * n + k], o = g[3 * n + k];
      C grad = dc[k] + dh[k] * o * (1 - tanh_c[k] * tanh_c[k]);
      if (clips && (next_c[k] <= low || next_c[k] >= high)) grad = 0;
      dg[k] = grad * u * i * (1 - i);
      dg[n + k] = grad * c[k] * f * (1 - f);
      dg[2 * n + k] = grad * i * (1 - u * u);
      dg[3 * n + k] = dh[k] * tanh_c[k] * o * (1 - o);
      dc[k] = grad * f;
    }
  }

  void gru_row_backward(const C *g, const C *h, const C *linear, C *dh, C *dg, C *du) const {
    const int64_t n = s_.state;
    for (int64_t k = 0; k < n; ++k) {
      const C r = g[k], z = g[n + k], u = g[2 * n + k];
      const C d = dh[k] * (1 - z) * (1 - u * u);
      dg[k] = du[k] = d * linear[k] * r * (1 - r);
      dg[n + k] = du[n + k] = dh[k] * (h[k] - u) * z * (1 - z);
      dg[2 * n + k] = d;
      du[2 * n + k] = d * r;
      dh[k] *= z;
    }
  }

  void vanilla_row_backward(const C *g, const C *dh, C *dg) const {
    if (s_.mode == RNNAttrs::kRnnTanh) {
      for (int64_t k = 0; k < s_.state; ++k) dg[k] = dh[k] * (1 - g[k] * g[k]);
    } else {
      for (int64_t k = 0; k < s_.state; ++k) dg[k] = g[k] > 0 ? dh[k] : C(0);
    }
  }

  const RNNAttrs attrs_;
  const Sizes s_;
  const PointwiseLoop<C> sigmoid_ = pointwise_loop<C>(PointwiseCode::kSigmoid);
  const PointwiseLoop<C> tanh_ = pointwise_loop<C>(PointwiseCode::kTanh);
};

}  // namespace
}  // namespace cohort::rnn

#include "kernels/rnn_backward_kernels.hpp"
#include "kernels/rnn_kernels.hpp"
