// SPDX-License-Identifier: Apache-2.0
// The backward pass of RNN: through the steps in turn to the gradients of the gates, then one product a layer for all
// steps to those of weights and inputs.
#include <algorithm>

#include "cpu/op/gemm.hpp"
#include "cpu/op/rnn_layers.hpp"
#include "device/kernel_table.hpp"

namespace cohort::rnn {
namespace {

// sums[j] = sum over i of values[i][j]
template <typename C>
void sum_rows(const C *values, int64_t rows, int64_t columns, C *sums, const Lane &lane) {
  parallel_for(lane, columns, 1 + 65536 / (rows + 1), [=](int64_t begin, int64_t end) {
    std::fill(sums + begin, sums + end, C(0));
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = begin; j < end; ++j) sums[j] += values[i * columns + j];
    }
  });
}

// Inputs: head gradients of output, state, state_cell; data, parameters, state, state_cell, sequence_length as far as
// present; output.
template <typename C>
class RnnBackward final : public RnnKernel<C> {
  using Base = RnnKernel<C>;
  using Base::at;
  using Base::attrs_;
  using Base::convert_;
  using Base::functions_;
  using Base::s_;

 public:
  RnnBackward(StepSpec &spec, int num_heads)
      : Base(spec, spec.inputs[size_t(num_heads)].shape, spec.inputs[size_t(num_heads)].dtype), heads_(num_heads) {
    drops_ = this->drops(spec);
    size_t ignored = 0;
    store_ = store_of(s_, true, drops_, sizeof(C), &ignored);
    const size_t rows = size_t(s_.rows()), width = size_t(std::max(s_.width(), s_.inputs));
    gate_grads_ = book(spec.scratch_bytes, rows * size_t(s_.gates) * sizeof(C));
    state_grads_ = gate_grads_;
    if (s_.mode == RNNAttrs::kGru) state_grads_ = book(spec.scratch_bytes, rows * size_t(s_.gates) * sizeof(C));
    for (size_t &place : layer_grads_) place = book(spec.scratch_bytes, rows * width * sizeof(C));
    h_grad_ = book(spec.scratch_bytes, size_t(s_.batch * s_.out) * sizeof(C));
    c_grad_ = book(spec.scratch_bytes, size_t(s_.batch * s_.state) * sizeof(C));
    if (s_.projects) {
      out_grads_ = book(spec.scratch_bytes, rows * size_t(s_.out) * sizeof(C));
      whole_grad_ = book(spec.scratch_bytes, size_t(s_.batch * s_.state) * sizeof(C));
    }
    row_ = book(spec.scratch_bytes, size_t(s_.batch * s_.state) * sizeof(C));
    data_copy_ = convert_.book_copy(spec.scratch_bytes, s_.rows() * s_.inputs);
    parameter_copy_ = convert_.book_copy(spec.scratch_bytes, this->parameter_count_);
    state_copy_ = convert_.book_copy(spec.scratch_bytes, this->state_count(s_.out));
    cell_copy_ = convert_.book_copy(spec.scratch_bytes, this->state_count(s_.state));
    head_copy_ = convert_.book_copy(spec.scratch_bytes, s_.rows() * s_.width());
    state_head_copy_ = convert_.book_copy(spec.scratch_bytes, this->state_count(s_.out));
    cell_head_copy_ = convert_.book_copy(spec.scratch_bytes, this->state_count(s_.state));
    data_grad_copy_ = convert_.book_copy(spec.scratch_bytes, s_.rows() * s_.inputs);
    parameter_grad_copy_ = convert_.book_copy(spec.scratch_bytes, this->parameter_count_);
    state_grad_copy_ = convert_.book_copy(spec.scratch_bytes, this->state_count(s_.out));
    cell_grad_copy_ = convert_.book_copy(spec.scratch_bytes, this->state_count(s_.state));
    length_input_ = heads_ + (s_.mode == RNNAttrs::kLstm ? 4 : 3);
    if (attrs_.use_sequence_length)
      load_length_ = load_block(spec.inputs[size_t(length_input_)].dtype, Dtype::kFloat64);
  }

  void run(const Args &args, const Lane &given) const override {
    const ThreadsScope threads(this->num_threads_);
    const Lane lane{std::min(given.num_threads, this->num_threads_), given.stream};
    const bool lstm = s_.mode == RNNAttrs::kLstm;
    Pass p{args, lane};
    const int64_t output_count = s_.rows() * s_.width();
    const C *const head = convert_.read(args.inputs[0], head_copy_, output_count, args);
    if (heads_ > 1) {
      p.state_head = convert_.read(args.inputs[1], state_head_copy_, this->state_count(s_.out), args);
    }
    if (heads_ > 2) p.cell_head = convert_.read(args.inputs[2], cell_head_copy_, this->state_count(s_.state), args);
    p.data = convert_.read(args.inputs[heads_], data_copy_, s_.rows() * s_.inputs, args);
    p.parameters = convert_.read(args.inputs[heads_ + 1], parameter_copy_, this->parameter_count_, args);
    p.state = convert_.read(args.inputs[heads_ + 2], state_copy_, this->state_count(s_.out), args);
    if (lstm) p.cell = convert_.read(args.inputs[heads_ + 3], cell_copy_, this->state_count(s_.state), args);
    void *const cell_array = lstm ? args.outputs[3] : nullptr;
    p.data_grad = convert_.written(args.outputs[0], data_grad_copy_, args);
    p.parameter_grad = convert_.written(args.outputs[1], parameter_grad_copy_, args);
    p.state_grad = convert_.written(args.outputs[2], state_grad_copy_, args);
    p.cell_grad = convert_.written(cell_array, cell_grad_copy_, args);
    p.lengths = this->lengths(attrs_.use_sequence_length ? args.inputs[length_input_] : nullptr, load_length_, args);
    const C *dy = head;
    for (int layer = s_.layers; layer-- > 0;) {
      C *const dx = layer > 0 ? at(args.scratch, layer_grads_[layer % 2]) : p.data_grad;
      for (int direction = 0; direction < s_.directions; ++direction) run_cell(p, layer, direction, dy, dx);
      if (drops_ && layer > 0) undrop(p, layer, dx);
      dy = dx;
    }
    convert_.write_back(args.outputs[0], data_grad_copy_, s_.rows() * s_.inputs, args);
    convert_.write_back(args.outputs[1], parameter_grad_copy_, this->parameter_count_, args);
    convert_.write_back(args.outputs[2], state_grad_copy_, this->state_count(s_.out), args);
    convert_.write_back(cell_array, cell_grad_copy_, this->state_count(s_.state), args);
  }

 private:
  struct Pass {
    const Args &args;
    const Lane &lane;
    const C *state_head = nullptr, *cell_head = nullptr;
    const C *data = nullptr, *parameters = nullptr, *state = nullptr, *cell = nullptr;
    C *data_grad = nullptr, *parameter_grad = nullptr, *state_grad = nullptr, *cell_grad = nullptr;
    const double *lengths = nullptr;
  };

  // One layer in one direction, with the states before its first step.
  struct Cell {
    int layer, direction;
    const Store::Cell &place;
    Parameters parameter;
    const C *h0, *c0;
  };

  void run_cell(const Pass &p, int layer, int direction, const C *dy, C *dx) const {
    const int index = layer * s_.directions + direction;
    const int64_t first_h = index * s_.batch * s_.out, first_c = index * s_.batch * s_.state;
    const Cell cell{layer,
                    direction,
                    store_.cells[size_t(index)],
                    parameters_of(s_, layer, direction),
                    p.state + first_h,
                    p.cell ? p.cell + first_c : nullptr};
    C *const dh = at(p.args.scratch, h_grad_), *const dc = at(p.args.scratch, c_grad_);
    const auto start = [](C *to, const C *from, int64_t first, int64_t count) {
      if (from) {
        std::copy_n(from + first, count, to);
      } else {
        std::fill_n(to, count, C(0));
      }
    };
    start(dh, p.state_head, first_h, s_.batch * s_.out);
    if (p.cell) start(dc, p.cell_head, first_c, s_.batch * s_.state);
    for (int64_t k = s_.time; k-- > 0;) run_step(p, cell, k, dy);
    if (p.state_grad) std::copy_n(dh, s_.batch * s_.out, p.state_grad + first_h);
    if (p.cell_grad) std::copy_n(dc, s_.batch * s_.state, p.cell_grad + first_c);
    if (dx) {
      gemm(false, false, s_.rows(), s_.layer_inputs(layer), s_.gates, at(p.args.scratch, gate_grads_),
           p.parameters + cell.parameter.input_weight, direction == 0 ? C(0) : C(1), dx);
    }
    if (p.parameter_grad) parameter_grads(p, cell);
  }

  // The gradients of the gates at the k-th step of the cell's direction; those of the states are carried in scratch.
  void run_step(const Pass &p, const Cell &cell, int64_t k, const C *dy) const {
    void *const saved = p.args.saved, *const scratch = p.args.scratch;
    const int64_t t = this->step(cell.direction, k), row = t * s_.batch;
    const int64_t before = k > 0 ? this->step(cell.direction, k - 1) * s_.batch : 0;
    const bool lstm = s_.mode == RNNAttrs::kLstm, gru = s_.mode == RNNAttrs::kGru;
    const C *const g = at(saved, cell.place.gates) + row * s_.gates;
    const C *const h = k > 0 ? at(saved, cell.place.hidden) + before * s_.out : cell.h0;
    const C *const c = !lstm ? nullptr : k > 0 ? at(saved, cell.place.cell) + before * s_.state : cell.c0;
    C *const dh = at(scratch, h_grad_), *const dc = at(scratch, c_grad_);
    C *const gate_grads = at(scratch, gate_grads_) + row * s_.gates;
    C *const state_grads = at(scratch, state_grads_) + row * s_.gates;
    const auto ended = [&](int64_t n) { return p.lengths && double(t) >= p.lengths[n]; };
    for (int64_t n = 0; n < s_.batch; ++n) {
      if (ended(n)) continue;
      const C *const from = dy + (row + n) * s_.width() + cell.direction * s_.out;
      for (int64_t i = 0; i < s_.out; ++i) dh[n * s_.out + i] += from[i];
    }
    const C *whole = dh;  // the gradient of h' before the projection
    if (s_.projects) {
      C *const kept = at(scratch, out_grads_) + row * s_.out, *const grad = at(scratch, whole_grad_);
      std::copy_n(dh, s_.batch * s_.out, kept);
      for (int64_t n = 0; n < s_.batch; ++n) {
        if (ended(n)) std::fill_n(kept + n * s_.out, s_.out, C(0));
      }
      gemm(false, false, s_.batch, s_.state, s_.out, kept, p.parameters + cell.parameter.projection, C(0), grad);
      whole = grad;
    }
    parallel_for(p.lane, s_.batch, 1 + 2048 / s_.gates, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        C *const dg = gate_grads + n * s_.gates, *const du = state_grads + n * s_.gates;
        if (ended(n)) {
          std::fill_n(dg, s_.gates, C(0));
          std::fill_n(du, s_.gates, C(0));
        } else if (lstm) {
          lstm_row(g + n * s_.gates, c + n * s_.state, at(saved, cell.place.cell) + (row + n) * s_.state,
                   whole + n * s_.state, dc + n * s_.state, at(scratch, row_) + n * s_.state, dg);
        } else if (gru) {
          gru_row(g + n * s_.gates, h + n * s_.out, at(saved, cell.place.linear) + (row + n) * s_.state,
                  dh + n * s_.out, dg, du);
        } else {
          vanilla_row(g + n * s_.gates, dh + n * s_.out, dg);
        }
      }
    });
    // The gradient of the state before: through the recurrent weights and, for gru, straight on (in dh already).
    for (int64_t n = 0; p.lengths && !gru && n < s_.batch; ++n) {
      if (!ended(n)) std::fill_n(dh + n * s_.out, s_.out, C(0));
    }
    gemm(false, false, s_.batch, s_.out, s_.gates, state_grads, p.parameters + cell.parameter.state_weight,
         gru || p.lengths ? C(1) : C(0), dh);
  }

  // From the gradients of the gates of all steps.
  void parameter_grads(const Pass &p, const Cell &cell) const {
    const Parameters &place = cell.parameter;
    const C *const gate_grads = at(p.args.scratch, gate_grads_), *const state_grads = at(p.args.scratch, state_grads_);
    const C *const x = cell.layer == 0 ? p.data : at(p.args.saved, store_.inputs[size_t(cell.layer)]);
    gemm(true, false, s_.gates, s_.layer_inputs(cell.layer), s_.rows(), gate_grads, x, C(0),
         p.parameter_grad + place.input_weight);
    // States before each step: the given one, and the hidden states of the steps before.
    C *const state_weight_grad = p.parameter_grad + place.state_weight;
    const C *const hidden = at(p.args.saved, cell.place.hidden);
    const bool forwards = cell.direction == 0;
    const int64_t first = s_.time > 0 ? this->step(cell.direction, 0) * s_.batch : 0, rest = s_.rows() - s_.batch;
    const int64_t later = forwards ? s_.batch : 0, earlier = forwards ? 0 : s_.batch;
    gemm(true, false, s_.gates, s_.out, s_.time > 0 ? s_.batch : 0, state_grads + first * s_.gates, cell.h0, C(0),
         state_weight_grad);
    if (rest > 0) {
      gemm(true, false, s_.gates, s_.out, rest, state_grads + later * s_.gates, hidden + earlier * s_.out, C(1),
           state_weight_grad);
    }
    sum_rows(gate_grads, s_.rows(), s_.gates, p.parameter_grad + place.input_bias, p.lane);
    sum_rows(state_grads, s_.rows(), s_.gates, p.parameter_grad + place.state_bias, p.lane);
    if (s_.projects) {
      gemm(true, false, s_.out, s_.state, s_.rows(), at(p.args.scratch, out_grads_), at(p.args.saved, cell.place.whole),
           C(0), p.parameter_grad + place.projection);
    }
  }

  // dc: in, the gradient of c'; out, that of c.
  void lstm_row(const C *g, const C *c, const C *next_c, const C *dh, C *dc, C *tanh_c, C *dg) const {
    const int64_t n = s_.state;
    functions_.apply(functions_.tanh, next_c, tanh_c, n);
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

  // dh: in, the gradient of h'; out, the part of that of h which goes round the gates.
  void gru_row(const C *g, const C *h, const C *linear, C *dh, C *dg, C *du) const {
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

  void vanilla_row(const C *g, const C *dh, C *dg) const {
    if (s_.mode == RNNAttrs::kRnnTanh) {
      for (int64_t k = 0; k < s_.state; ++k) dg[k] = dh[k] * (1 - g[k] * g[k]);
    } else {
      for (int64_t k = 0; k < s_.state; ++k) dg[k] = g[k] > 0 ? dh[k] : C(0);
    }
  }

  void undrop(const Pass &p, int layer, C *dx) const {
    const auto *const mask = Base::template at<uint8_t>(p.args.saved, store_.masks[size_t(layer)]);
    const C scale = attrs_.p < 1 ? 1 / (1 - C(attrs_.p)) : C(0);
    parallel_for(p.lane, s_.rows() * s_.width(), 8192, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) dx[i] = mask[i] ? dx[i] * scale : C(0);
    });
  }

  const int heads_;
  bool drops_;
  Store store_;
  size_t gate_grads_, state_grads_, layer_grads_[2], h_grad_, c_grad_, out_grads_ = 0, whole_grad_ = 0, row_;
  size_t data_copy_, parameter_copy_, state_copy_, cell_copy_, head_copy_, state_head_copy_, cell_head_copy_;
  size_t data_grad_copy_, parameter_grad_copy_, state_grad_copy_, cell_grad_copy_;
  LoadBlock load_length_ = nullptr;
  int length_input_;
};

std::unique_ptr<Kernel> make_backward(StepSpec &spec) {
  const auto &a = spec.attrs_as<RNNAttrs>();
  const int num_heads = !a.state_outputs ? 1 : a.mode == RNNAttrs::kLstm ? 3 : 2;
  if (spec.inputs[0].dtype == Dtype::kFloat64) return std::make_unique<RnnBackward<double>>(spec, num_heads);
  return std::make_unique<RnnBackward<float>>(spec, num_heads);
}

COHORT_KERNEL_BY(cpu, _backward_RNN, make_backward);

}  // namespace
}  // namespace cohort::rnn
