// SPDX-License-Identifier: Apache-2.0
// The CPU's part of the kernels of RNN (kernels/rnn_pass.hpp): a cell works on rows, with loops of point-wise
// functors.
#include <algorithm>

#include "cpu/dnnl_kernel.hpp"
#include "cpu/op/cpu_backend.hpp"
#include "device/kernel_table.hpp"
#include "kernels/rnn_backward_kernels.hpp"
#include "kernels/rnn_kernels.hpp"
#include "kernels/rnn_layers.hpp"

namespace cohort::rnn {
namespace {

class RnnThreads {
 public:
  RnnThreads(const StepSpec &spec, double operations) : num_threads_(dnn::threads_for_work(spec, operations)) {}
  int num_threads() const { return num_threads_; }
  struct Scope {
    const ThreadsScope threads;
    const Lane lane;
    Scope(const RnnThreads &team, const Lane &given)
        : threads(team.num_threads_), lane{std::min(given.num_threads, team.num_threads_), given.stream} {}
  };

 private:
  const int num_threads_;
};

// A product of float32 matrices with factors rounded to bfloat16: converts both to the formats that oneDNN
// multiplies.
class NarrowProduct {
 public:
  // Null if oneDNN only has reference loops for it.
  static std::shared_ptr<const NarrowProduct> make(int num_threads, bool transpose_a, bool transpose_b, int64_t m,
                                                   int64_t n, int64_t k, bool adds) {
    using namespace dnn;
    const ThreadsScope threads(num_threads);
    const auto matrix = [](int64_t rows, int64_t columns, bool transposed) {
      return ordered({rows, columns}, Dtype::kFloat32, transposed ? Dims{1, 0} : Dims{0, 1});
    };
    const Desc left = matrix(m, k, transpose_a), right = matrix(k, n, transpose_b), result = matrix(m, n, false);
    dnnl::post_ops post;
    if (adds) post.append_sum(1.0f);
    const auto product = attempt([&] {
      return forward_desc<dnnl::matmul>(engine(), attributes(post), any_of({m, k}, Dtype::kBfloat16),
                                        any_of({k, n}, Dtype::kBfloat16), Desc(), result);
    });
    if (!product || is_reference(*product)) return nullptr;
    auto made = std::make_shared<NarrowProduct>();
    const Desc a = product->src_desc(), b = product->weights_desc();
    made->held_bytes_ = b.get_size();
    StepSpec spec;  // collects its scratch memory: the factors, then that of the calls
    const size_t a_at = book(spec.scratch_bytes, a.get_size());
    made->b_at_ = book(spec.scratch_bytes, b.get_size());
    const auto bring = [&](const Desc &from, const Desc &to, dnn::BufferRef source, dnn::BufferRef target,
                           const char *what) {
      const auto reorder = attempt(
          [&] { return dnnl::reorder::primitive_desc(engine(), from, engine(), to, attributes(dnnl::post_ops())); });
      if (!reorder) throw Error(Code::kUnsupported, text(what, ": oneDNN cannot round it"));
      return DnnlCall(*reorder, what, {{DNNL_ARG_FROM, from, source}, {DNNL_ARG_TO, to, target}}, spec);
    };
    made->bring_a_ = bring(left, a, dnn::BufferRef::input(0), dnn::BufferRef::scratch(a_at), "RNN: left factor");
    made->bring_b_ = bring(right, b, dnn::BufferRef::input(1), dnn::BufferRef::output(0), "RNN: right factor");
    made->multiply_ = DnnlCall(*product, "RNN: product",
                               {{DNNL_ARG_SRC, a, dnn::BufferRef::scratch(a_at)},
                                {DNNL_ARG_WEIGHTS, b, dnn::BufferRef::input(1)},
                                {DNNL_ARG_DST, result, dnn::BufferRef::output(0)}},
                               spec);
    made->scratch_bytes_ = spec.scratch_bytes;
    return made;
  }

  size_t scratch_bytes() const { return scratch_bytes_; }
  size_t held_bytes() const { return held_bytes_; }
  void hold(const float *b, void *to, void *scratch) const { call(bring_b_, nullptr, b, to, scratch); }
  void run_held(const float *a, const void *held, float *c, void *scratch) const {
    call(bring_a_, a, nullptr, nullptr, scratch);
    call(multiply_, nullptr, held, c, scratch);
  }
  void run(const float *a, const float *b, float *c, void *scratch) const {
    void *const held = static_cast<char *>(scratch) + b_at_;
    hold(b, held, scratch);
    run_held(a, held, c, scratch);
  }

 private:
  static void call(const dnn::DnnlCall &call, const void *a, const void *b, void *c, void *scratch) {
    void *inputs[] = {const_cast<void *>(a), const_cast<void *>(b)};
    Args args;
    args.inputs = inputs;
    args.outputs = &c;
    args.scratch = scratch;
    call.run(args);
  }

  size_t scratch_bytes_ = 0, held_bytes_ = 0, b_at_ = 0;
  dnn::DnnlCall bring_a_, bring_b_, multiply_;
};

template <typename C>
class RnnProduct {
 public:
  RnnProduct(const RnnThreads &team, Dtype dtype, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
             C beta)
      : transpose_a_(transpose_a), transpose_b_(transpose_b), m_(m), n_(n), k_(k), beta_(beta) {
    if constexpr (std::is_same_v<C, float>) {
      if (dtype != Dtype::kBfloat16 || !dnn::has_bfloat16_units() || m == 0 || n == 0 || k == 0) return;
      narrow_ = NarrowProduct::make(team.num_threads(), transpose_a, transpose_b, m, n, k, beta != 0);
    }
  }
  size_t scratch_bytes() const { return narrow_ ? narrow_->scratch_bytes() : 0; }
  void run(const Lane &, const C *a, const C *b, C *c, void *scratch) const {
    if constexpr (std::is_same_v<C, float>) {
      if (narrow_) return narrow_->run(a, b, c, scratch);
    }
    gemm(transpose_a_, transpose_b_, m_, n_, k_, a, b, beta_, c);
  }
  size_t held_bytes() const { return narrow_ ? narrow_->held_bytes() : 0; }
  void hold(const Lane &, const C *b, void *to, void *scratch) const {
    if constexpr (std::is_same_v<C, float>) narrow_->hold(b, to, scratch);
  }
  void run_held(const Lane &lane, const C *a, const C *held, C *c, void *scratch) const {
    if constexpr (std::is_same_v<C, float>) {
      if (narrow_) return narrow_->run_held(a, held, c, scratch);
    }
    run(lane, a, held, c, scratch);
  }

 private:
  const bool transpose_a_, transpose_b_;
  const int64_t m_, n_, k_;
  const C beta_;
  std::shared_ptr<const NarrowProduct> narrow_;
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
class RowCells {
 public:
  RowCells(const RNNAttrs &attrs, const RnnSizes &s) : attrs_(attrs), s_(s) {}

  // g: in, the sums of the gates; out, the gates.
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
  // dh: in, the gradient of h'; out, the part of the gradient of h that does not go through the gates.
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
  const RnnSizes s_;
  const PointwiseLoop<C> sigmoid_ = pointwise_loop<C>(PointwiseCode::kSigmoid);
  const PointwiseLoop<C> tanh_ = pointwise_loop<C>(PointwiseCode::kTanh);
};

// CpuBackend with the members that kernels/rnn_pass.hpp needs.
struct CpuRnnBackend : CpuBackend {
  using Team = RnnThreads;
  template <typename C>
  using Product = RnnProduct<C>;
  template <typename C>
  using Cells = RowCells<C>;
  template <typename C>
  static void sum_rows(const Lane &lane, const C *values, int64_t rows, int64_t columns, C *sums) {
    rnn::sum_rows(lane, values, rows, columns, sums);
  }
};

// bfloat16 products where the processor has instructions for them; all else in float32. Asked before the plain
// kernels.
#define COHORT_NARROW_KERNEL(op, ...) \
  COHORT_KERNEL_BY(cpu, op, __VA_ARGS__).named("onednn").dtypes({Dtype::kBfloat16}).when(dnn::refuses_layer)

COHORT_NARROW_KERNEL(RNN, make_forward<CpuRnnBackend>);
COHORT_NARROW_KERNEL(_backward_RNN, make_backward<CpuRnnBackend>);
COHORT_KERNEL_BY(cpu, RNN, make_forward<CpuRnnBackend>);
COHORT_KERNEL_BY(cpu, _backward_RNN, make_backward<CpuRnnBackend>);

}  // namespace
}  // namespace cohort::rnn
