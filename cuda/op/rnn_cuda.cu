// SPDX-License-Identifier: Apache-2.0
// What the kernels of RNN find on CUDA: products by the library, and a cell as one launch, a thread for each element of
// the state.
#include "cuda/op/cuda_backend.cuh"
#include "cuda/op/matrix_product.hpp"
#include "cuda/op/rows.cuh"
#include "kernels/rnn_backward_kernels.hpp"
#include "kernels/rnn_kernels.hpp"
#include "kernels/rnn_layers.hpp"
#include "kernels/scratch_layout.hpp"
#include "op/float_math.hpp"

namespace cohort::rnn {
namespace {

using pointwise::sigmoid_of;
using pointwise::tanh_of;

struct Team {
  Team(const StepSpec &spec, double) : tf32(spec.tf32) {}
  const bool tf32;
  struct Scope {
    const Lane lane;
    Scope(const Team &, const Lane &given) : lane(given) {}
  };
};

// For arrays of 16-bit floats, factors are rounded to that type; sums and results are float.
template <typename C>
class Product {
 public:
  Product(const Team &team, Dtype dtype, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, C beta)
      : factors_(dtype == Dtype::kFloat16 || dtype == Dtype::kBfloat16 ? dtype : dtype_of<C>()),
        of_a_(m * k),
        of_b_(k * n),
        product_({factors_, dtype_of<C>(), team.tf32}, {1, m, n, k, transpose_a, transpose_b}, false,
                 beta == C(0) ? MatrixProduct::kOver : MatrixProduct::kAdding) {
    if (!rounds()) return;
    a_at_ = book(scratch_bytes_, size_t(of_a_) * dtype_size(factors_));
    b_at_ = book(scratch_bytes_, held_bytes());
    scratch_bytes_ = (scratch_bytes_ + 63) / 64 * 64;
  }
  size_t scratch_bytes() const { return scratch_bytes_ + product_.scratch_bytes(); }
  void run(const Lane &lane, const C *a, const C *b, C *c, void *scratch) const {
    if (!rounds()) return product_.run(lane, a, b, c, nullptr, scratch);
    void *const rounded = static_cast<char *>(scratch) + b_at_;
    hold(lane, b, rounded, scratch);
    run_held(lane, a, static_cast<const C *>(rounded), c, scratch);
  }
  size_t held_bytes() const { return rounds() ? size_t(of_b_) * dtype_size(factors_) : 0; }
  void hold(const Lane &lane, const C *b, void *to, void *) const { narrow(lane, b, to, factors_, of_b_); }
  void run_held(const Lane &lane, const C *a, const C *held, C *c, void *scratch) const {
    if (!rounds()) return run(lane, a, held, c, scratch);
    char *const memory = static_cast<char *>(scratch);
    narrow(lane, a, memory + a_at_, factors_, of_a_);
    product_.run(lane, memory + a_at_, held, c, nullptr, memory + scratch_bytes_);
  }

 private:
  bool rounds() const { return factors_ != dtype_of<C>(); }
  const Dtype factors_;
  const int64_t of_a_, of_b_;
  size_t a_at_ = 0, b_at_ = 0, scratch_bytes_ = 0;
  MatrixProduct product_;
};

template <typename C>
void sum_rows(const Lane &lane, const C *values, int64_t rows, int64_t columns, C *sums) {
  cohort::sum_rows<C>(lane, elements_of(const_cast<C *>(values), dtype_of<C>()), rows, columns,
                      elements_of(sums, dtype_of<C>()));
}

template <typename C>
class Cells {
 public:
  Cells(const RNNAttrs &attrs, const RnnSizes &s)
      : batch_(s.batch),
        state_(s.state),
        clips_(attrs.lstm_state_clip_min.has_value()),
        clips_nan_(attrs.lstm_state_clip_nan),
        low_(clips_ ? C(*attrs.lstm_state_clip_min) : C(0)),
        high_(clips_ ? C(*attrs.lstm_state_clip_max) : C(0)),
        tanh_(attrs.mode == RNNAttrs::kRnnTanh) {}

  // g: in, the gates' sums; out, the gates.
  void lstm(const Lane &lane, C *g, const C *c, C *next_c, C *h) const {
    const int64_t state = state_;
    const bool clips = clips_, clips_nan = clips_nan_;
    const C low = low_, high = high_;
    for_each(lane, batch_ * state, [=] __device__(int64_t at) {
      C *const own = g + at / state * 4 * state + at % state;
      const C i = own[0] = sigmoid_of(own[0]), f = own[state] = sigmoid_of(own[state]);
      const C u = own[2 * state] = tanh_of(own[2 * state]), o = own[3 * state] = sigmoid_of(own[3 * state]);
      C next = f * c[at] + i * u;
      if (clips) {
        if (next != next ? clips_nan : next < low) next = low;
        if (next > high) next = high;
      }
      next_c[at] = next;
      h[at] = tanh_of(next) * o;
    });
  }
  void gru(const Lane &lane, C *g, const C *u, const C *h, C *linear, C *next) const {
    const int64_t state = state_;
    for_each(lane, batch_ * state, [=] __device__(int64_t at) {
      const int64_t first = at / state * 3 * state + at % state;
      C *const own = g + first;
      const C *const add = u + first;
      const C r = own[0] = sigmoid_of(own[0] + add[0]), z = own[state] = sigmoid_of(own[state] + add[state]);
      linear[at] = add[2 * state];
      const C n = own[2 * state] = tanh_of(own[2 * state] + r * add[2 * state]);
      next[at] = (1 - z) * n + z * h[at];
    });
  }
  void vanilla(const Lane &lane, C *g, C *next) const {
    const bool tanh = tanh_;
    for_each(lane, batch_ * state_, [=] __device__(int64_t at) {
      next[at] = g[at] = tanh ? tanh_of(g[at]) : g[at] < 0 ? C(0) : g[at];
    });
  }

  // dc: in, the gradient of c'; out, that of c.
  void lstm_backward(const Lane &lane, const Ended &ended, const C *g, const C *c, const C *next_c, const C *dh, C *dc,
                     C *, C *dg) const {
    const int64_t state = state_;
    const bool clips = clips_;
    const C low = low_, high = high_;
    for_each(lane, batch_ * state, [=] __device__(int64_t at) {
      const int64_t n = at / state, first = n * 4 * state + at % state;
      const bool idle = ended(n);
      const C *const own = g + first;
      const C i = own[0], f = own[state], u = own[2 * state], o = own[3 * state], tanh_c = tanh_of(next_c[at]);
      C grad = dc[at] + dh[at] * o * (1 - tanh_c * tanh_c);
      if (clips && (next_c[at] <= low || next_c[at] >= high)) grad = 0;
      C *const to = dg + first;
      to[0] = idle ? C(0) : grad * u * i * (1 - i);
      to[state] = idle ? C(0) : grad * c[at] * f * (1 - f);
      to[2 * state] = idle ? C(0) : grad * i * (1 - u * u);
      to[3 * state] = idle ? C(0) : dh[at] * tanh_c * o * (1 - o);
      if (!idle) dc[at] = grad * f;
    });
  }
  // dh: in, the gradient of h'; out, the part of that of h which goes round the gates.
  void gru_backward(const Lane &lane, const Ended &ended, const C *g, const C *h, const C *linear, C *dh, C *dg,
                    C *du) const {
    const int64_t state = state_;
    for_each(lane, batch_ * state, [=] __device__(int64_t at) {
      const int64_t n = at / state, first = n * 3 * state + at % state;
      const bool idle = ended(n);
      const C *const own = g + first;
      const C r = own[0], z = own[state], u = own[2 * state];
      const C d = dh[at] * (1 - z) * (1 - u * u);
      dg[first] = du[first] = idle ? C(0) : d * linear[at] * r * (1 - r);
      dg[first + state] = du[first + state] = idle ? C(0) : dh[at] * (h[at] - u) * z * (1 - z);
      dg[first + 2 * state] = idle ? C(0) : d;
      du[first + 2 * state] = idle ? C(0) : d * r;
      if (!idle) dh[at] *= z;
    });
  }
  void vanilla_backward(const Lane &lane, const Ended &ended, const C *g, const C *dh, C *dg) const {
    const int64_t state = state_;
    const bool tanh = tanh_;
    for_each(lane, batch_ * state, [=] __device__(int64_t at) {
      const C slope = tanh ? 1 - g[at] * g[at] : g[at] > 0 ? C(1) : C(0);
      dg[at] = ended(at / state) ? C(0) : dh[at] * slope;
    });
  }

 private:
  const int64_t batch_, state_;
  const bool clips_, clips_nan_;
  const C low_, high_;
  const bool tanh_;
};

// CudaBackend with what kernels/rnn_pass.hpp asks for.
struct CudaRnnBackend : CudaBackend {
  using Team = rnn::Team;
  template <typename C>
  using Product = rnn::Product<C>;
  template <typename C>
  using Cells = rnn::Cells<C>;
  template <typename C>
  static void sum_rows(const Lane &lane, const C *values, int64_t rows, int64_t columns, C *sums) {
    rnn::sum_rows(lane, values, rows, columns, sums);
  }
};

COHORT_KERNEL_BY(cuda, RNN, make_forward<CudaRnnBackend>);
COHORT_KERNEL_BY(cuda, _backward_RNN, make_backward<CudaRnnBackend>);
// Products in the units for 16-bit floats, as above.
COHORT_KERNEL_BY(cuda, RNN, make_forward<CudaRnnBackend>)
    .named("cublaslt")
    .dtypes({Dtype::kFloat16, Dtype::kBfloat16})
    .preference(1);
COHORT_KERNEL_BY(cuda, _backward_RNN, make_backward<CudaRnnBackend>)
    .named("cublaslt")
    .dtypes({Dtype::kFloat16, Dtype::kBfloat16})
    .preference(1);

}  // namespace
}  // namespace cohort::rnn
