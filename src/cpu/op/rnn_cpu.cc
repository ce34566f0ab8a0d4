// SPDX-License-Identifier: Apache-2.0
// RNN: layers of vanilla, LSTM or GRU cells over a sequence (time, batch, inputs), by matrix products: one for the
// inputs of all steps of a layer, one a step for the state. Computed in double for float64, else in float; arrays of
// 16-bit types are converted in scratch memory.
#include "op/rnn.hpp"

#include <algorithm>

#include "base/random.hpp"
#include "cpu/op/gemm.hpp"
#include "cpu/op/rnn_layers.hpp"
#include "device/kernel_table.hpp"

namespace cohort::rnn {
namespace {

template <typename C>
class RnnForward final : public RnnKernel<C> {
  using Base = RnnKernel<C>;
  using Base::at;
  using Base::attrs_;
  using Base::convert_;
  using Base::functions_;
  using Base::s_;

 public:
  explicit RnnForward(StepSpec &spec)
      : Base(spec, spec.inputs[0].shape, spec.inputs[0].dtype), keeps_(spec.is_train || spec.keep_for_backward) {
    drops_ = this->drops(spec);
    store_ = store_of(s_, keeps_, drops_, sizeof(C), keeps_ ? &spec.saved_bytes : &spec.scratch_bytes);
    turned_ = book(spec.scratch_bytes, size_t(s_.gates * s_.out) * sizeof(C));
    bias_ = book(spec.scratch_bytes, size_t(s_.gates) * sizeof(C));
    state_gates_ = book(spec.scratch_bytes, size_t(s_.batch * s_.gates) * sizeof(C));
    data_copy_ = convert_.book_copy(spec.scratch_bytes, s_.rows() * s_.inputs);
    parameter_copy_ = convert_.book_copy(spec.scratch_bytes, this->parameter_count_);
    state_copy_ = convert_.book_copy(spec.scratch_bytes, this->state_count(s_.out));
    cell_copy_ = convert_.book_copy(spec.scratch_bytes, this->state_count(s_.state));
    output_copy_ = convert_.book_copy(spec.scratch_bytes, s_.rows() * s_.width());
    state_out_copy_ = convert_.book_copy(spec.scratch_bytes, this->state_count(s_.out));
    cell_out_copy_ = convert_.book_copy(spec.scratch_bytes, this->state_count(s_.state));
    if (attrs_.use_sequence_length) load_length_ = load_block(spec.inputs.back().dtype, Dtype::kFloat64);
    length_input_ = int(spec.inputs.size()) - 1;
  }

  const Store &store() const { return store_; }

  void run(const Args &args, const Lane &given) const override {
    const ThreadsScope threads(this->num_threads_);
    const Lane lane{std::min(given.num_threads, this->num_threads_), given.stream};
    const bool lstm = s_.mode == RNNAttrs::kLstm;
    Pass p{args, lane};
    if (drops_) p.run = args.random->draws++;
    p.data = convert_.read(args.inputs[0], data_copy_, s_.rows() * s_.inputs, args);
    p.parameters = convert_.read(args.inputs[1], parameter_copy_, this->parameter_count_, args);
    p.state = convert_.read(args.inputs[2], state_copy_, this->state_count(s_.out), args);
    p.cell = lstm ? convert_.read(args.inputs[3], cell_copy_, this->state_count(s_.state), args) : nullptr;
    void *const state_array = attrs_.state_outputs ? args.outputs[1] : nullptr;
    void *const cell_array = attrs_.state_outputs && lstm ? args.outputs[2] : nullptr;
    p.state_out = convert_.written(state_array, state_out_copy_, args);
    p.cell_out = convert_.written(cell_array, cell_out_copy_, args);
    p.store = keeps_ ? args.saved : args.scratch;
    p.lengths = this->lengths(args.inputs[length_input_], load_length_, args);
    for (int layer = 0; layer < s_.layers; ++layer) {
      const C *const x = layer == 0 ? p.data : at(p.store, store_.inputs[size_t(layer)]);
      for (int direction = 0; direction < s_.directions; ++direction) run_cell(p, layer, direction, x);
      if (drops_ && layer + 1 < s_.layers) drop(p, layer);
    }
    convert_.write_back(args.outputs[0], output_copy_, s_.rows() * s_.width(), args);
    convert_.write_back(state_array, state_out_copy_, this->state_count(s_.out), args);
    convert_.write_back(cell_array, cell_out_copy_, this->state_count(s_.state), args);
  }

 private:
  struct Pass {
    const Args &args;
    const Lane &lane;
    uint64_t run = 0;  // of those that drop
    const C *data = nullptr, *parameters = nullptr, *state = nullptr, *cell = nullptr;
    C *state_out = nullptr, *cell_out = nullptr;
    void *store = nullptr;
    const double *lengths = nullptr;
  };

  // (time, batch, directions * out)
  C *layer_result(const Pass &p, int layer) const {
    if (layer + 1 < s_.layers) return at(p.store, store_.inputs[size_t(layer + 1)]);
    return convert_.written(p.args.outputs[0], output_copy_, p.args);
  }

  // One layer in one direction.
  struct Cell {
    int direction;
    int64_t first_state;  // row of its first state among those of all cells
    const Store::Cell &place;
    Parameters parameter;
  };

  void run_cell(const Pass &p, int layer, int direction, const C *x) const {
    const int index = layer * s_.directions + direction;
    const Cell cell{direction, index * s_.batch, store_.cells[size_t(index)], parameters_of(s_, layer, direction)};
    start_gates(p, cell, s_.layer_inputs(layer), x);
    const C *h = p.state + cell.first_state * s_.out;
    const C *c = p.cell ? p.cell + cell.first_state * s_.state : nullptr;
    for (int64_t k = 0; k < s_.time; ++k) run_step(p, cell, this->step(direction, k), &h, &c);
    if (p.state_out) std::copy_n(h, s_.batch * s_.out, p.state_out + cell.first_state * s_.out);
    if (p.cell_out) std::copy_n(c, s_.batch * s_.state, p.cell_out + cell.first_state * s_.state);
    if (C *const result = layer_result(p, layer)) write_result(p, cell, result);
  }

  // The inputs' part of the gates of all steps, and what all steps need of the parameters.
  void start_gates(const Pass &p, const Cell &cell, int64_t inputs, const C *x) const {
    const C *const state_weight = p.parameters + cell.parameter.state_weight;
    const C *const input_bias = p.parameters + cell.parameter.input_bias;
    const C *const state_bias = p.parameters + cell.parameter.state_bias;
    C *const gates = at(p.store, cell.place.gates);
    // The recurrent weights are turned once: a product with rows as they lie costs less at each step.
    C *const turned = at(p.args.scratch, turned_), *const bias = at(p.args.scratch, bias_);
    for (int64_t i = 0; i < s_.gates; ++i) {
      for (int64_t j = 0; j < s_.out; ++j) turned[j * s_.gates + i] = state_weight[i * s_.out + j];
    }
    // gru adds the recurrent bias of n inside the reset gate, so keeps all recurrent biases apart.
    const bool gru = s_.mode == RNNAttrs::kGru;
    for (int64_t i = 0; i < s_.gates; ++i) bias[i] = gru ? input_bias[i] : input_bias[i] + state_bias[i];
    parallel_for(p.lane, s_.rows(), 64, [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) std::copy_n(bias, s_.gates, gates + row * s_.gates);
    });
    gemm(false, true, s_.rows(), s_.gates, inputs, x, p.parameters + cell.parameter.input_weight, C(1), gates);
  }

  // h and c: in, the states before step t; out, those after it.
  void run_step(const Pass &p, const Cell &cell, int64_t t, const C **h_state, const C **c_state) const {
    const int64_t row = t * s_.batch;
    const C *const h = *h_state, *const c = *c_state;
    C *const g = at(p.store, cell.place.gates) + row * s_.gates;
    C *const next = at(p.store, cell.place.hidden) + row * s_.out;
    C *const next_c = c ? at(p.store, cell.place.cell) + row * s_.state : nullptr;
    C *const whole = s_.projects ? at(p.store, cell.place.whole) + row * s_.state : next;
    const bool gru = s_.mode == RNNAttrs::kGru;
    C *const sums = gru ? at(p.args.scratch, state_gates_) : g;
    if (gru) {
      const C *const bias = p.parameters + cell.parameter.state_bias;
      for (int64_t n = 0; n < s_.batch; ++n) std::copy_n(bias, s_.gates, sums + n * s_.gates);
    }
    gemm(false, false, s_.batch, s_.gates, s_.out, h, at(p.args.scratch, turned_), C(1), sums);
    parallel_for(p.lane, s_.batch, 1 + 2048 / s_.gates, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        if (s_.mode == RNNAttrs::kLstm) {
          lstm_row(g + n * s_.gates, c + n * s_.state, next_c + n * s_.state, whole + n * s_.state);
        } else if (gru) {
          gru_row(g + n * s_.gates, sums + n * s_.gates, h + n * s_.out,
                  at(p.store, cell.place.linear) + (row + n) * s_.state, next + n * s_.out);
        } else {
          vanilla_row(g + n * s_.gates, next + n * s_.out);
        }
      }
    });
    if (s_.projects) {
      gemm(false, true, s_.batch, s_.out, s_.state, whole, p.parameters + cell.parameter.projection, C(0), next);
    }
    for (int64_t n = 0; p.lengths && n < s_.batch; ++n) {
      if (double(t) < p.lengths[n]) continue;
      std::copy_n(h + n * s_.out, s_.out, next + n * s_.out);
      if (c) std::copy_n(c + n * s_.state, s_.state, next_c + n * s_.state);
    }
    *h_state = next;
    *c_state = next_c;
  }

  // The hidden states into this direction's columns of the layer's result.
  void write_result(const Pass &p, const Cell &cell, C *result) const {
    const C *const hidden = at(p.store, cell.place.hidden);
    for (int64_t row = 0; row < s_.rows(); ++row) {
      C *const to = result + row * s_.width() + cell.direction * s_.out;
      if (p.lengths && double(row / s_.batch) >= p.lengths[row % s_.batch]) {
        std::fill_n(to, s_.out, C(0));
      } else {
        std::copy_n(hidden + row * s_.out, s_.out, to);
      }
    }
  }

  void lstm_row(C *g, const C *c, C *next_c, C *h) const {
    const int64_t n = s_.state;
    functions_.apply(functions_.sigmoid, g, g, 2 * n);
    functions_.apply(functions_.tanh, g + 2 * n, g + 2 * n, n);
    functions_.apply(functions_.sigmoid, g + 3 * n, g + 3 * n, n);
    for (int64_t i = 0; i < n; ++i) next_c[i] = g[n + i] * c[i] + g[i] * g[2 * n + i];
    if (attrs_.lstm_state_clip_min) {
      const C low = C(*attrs_.lstm_state_clip_min), high = C(*attrs_.lstm_state_clip_max);
      for (int64_t i = 0; i < n; ++i) {
        const bool nan = next_c[i] != next_c[i];
        if (nan ? attrs_.lstm_state_clip_nan : next_c[i] < low) next_c[i] = low;
        if (next_c[i] > high) next_c[i] = high;
      }
    }
    functions_.apply(functions_.tanh, next_c, h, n);
    for (int64_t i = 0; i < n; ++i) h[i] *= g[3 * n + i];
  }

  void gru_row(C *g, const C *u, const C *h, C *linear, C *next) const {
    const int64_t n = s_.state;
    for (int64_t i = 0; i < 2 * n; ++i) g[i] += u[i];
    functions_.apply(functions_.sigmoid, g, g, 2 * n);
    for (int64_t i = 0; i < n; ++i) {
      linear[i] = u[2 * n + i];
      g[2 * n + i] += g[i] * linear[i];
    }
    functions_.apply(functions_.tanh, g + 2 * n, g + 2 * n, n);
    for (int64_t i = 0; i < n; ++i) next[i] = (1 - g[n + i]) * g[2 * n + i] + g[n + i] * h[i];
  }

  void vanilla_row(C *g, C *next) const {
    if (s_.mode == RNNAttrs::kRnnTanh) {
      functions_.apply(functions_.tanh, g, g, s_.state);
    } else {
      for (int64_t i = 0; i < s_.state; ++i) g[i] = g[i] < 0 ? C(0) : g[i];
    }
    std::copy_n(g, s_.state, next);
  }

  // Dropout on what the next layer reads.
  void drop(const Pass &p, int layer) const {
    C *const result = layer_result(p, layer);
    auto *const mask = Base::template at<uint8_t>(p.store, store_.masks[size_t(layer + 1)]);
    const int64_t count = s_.rows() * s_.width();
    const auto threshold = uint64_t((1.0 - double(attrs_.p)) * 4294967296.0);
    const C scale = attrs_.p < 1 ? 1 / (1 - C(attrs_.p)) : C(0);
    const uint64_t seed = p.args.random->seed, stream = p.run * uint64_t(s_.layers) + uint64_t(layer);
    parallel_for(p.lane, (count + 3) / 4, 1024, [=](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        const Philox random = Philox::at(seed, uint64_t(block), stream);
        for (int64_t i = block * 4; i < std::min(block * 4 + 4, count); ++i) {
          mask[i] = random.word[i % 4] < threshold;
          result[i] = mask[i] ? result[i] * scale : C(0);
        }
      }
    });
  }

  const bool keeps_;
  bool drops_;
  Store store_;
  size_t turned_, bias_, state_gates_;
  size_t data_copy_, parameter_copy_, state_copy_, cell_copy_, output_copy_, state_out_copy_, cell_out_copy_;
  LoadBlock load_length_ = nullptr;
  int length_input_;
};

std::unique_ptr<Kernel> make_forward(StepSpec &spec) {
  if (spec.inputs[0].dtype == Dtype::kFloat64) return std::make_unique<RnnForward<double>>(spec);
  return std::make_unique<RnnForward<float>>(spec);
}

COHORT_KERNEL_BY(cpu, RNN, make_forward);

}  // namespace
}  // namespace cohort::rnn
