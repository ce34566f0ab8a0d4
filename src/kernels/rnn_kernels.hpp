// SPDX-License-Identifier: Apache-2.0
// The forward kernel of RNN: layers of vanilla, LSTM or GRU cells over a sequence (time, batch, inputs), as matrix
// products: one for the inputs of all steps of a layer, and one per step for the state. The backend computes what
// follows the product in a step (rnn_pass.hpp).
#pragma once

#include <utility>
#include <vector>

#include "base/random.hpp"
#include "kernels/rnn_pass.hpp"

namespace cohort::rnn {
namespace {

template <typename Backend, typename C>
class RnnForward final : public RnnKernel<Backend, C> {
  using Base = RnnKernel<Backend, C>;
  using Base::at;
  using Base::attrs_;
  using Base::cells_;
  using Base::convert_;
  using Base::held;
  using Base::multiply;
  using Base::multiply_held;
  using Base::s_;
  using typename Base::Product;

 public:
  explicit RnnForward(StepSpec &spec)
      : Base(spec, spec.inputs[0].shape, spec.inputs[0].dtype),
        keeps_(spec.is_train || spec.keep_for_backward),
        first_product_(this->product(false, true, s_.rows(), s_.gates, s_.layer_inputs(0), C(1))),
        later_product_(this->product(false, true, s_.layers > 1 ? s_.rows() : 0, s_.gates, s_.layer_inputs(1), C(1))),
        step_product_(this->product(false, false, s_.batch, s_.gates, s_.out, C(1))),
        projection_(this->product(false, true, s_.batch, s_.projects ? s_.out : 0, s_.state, C(0))) {
    drops_ = this->drops(spec);
    store_ = store_of(s_, keeps_, drops_, sizeof(C), keeps_ ? &spec.saved_bytes : &spec.scratch_bytes);
    transposed_weight_ = book(spec.scratch_bytes, size_t(s_.gates * s_.out) * sizeof(C));
    held_weight_ = this->book_held(spec, step_product_);
    held_projection_ = this->book_held(spec, projection_);
    bias_ = book(spec.scratch_bytes, size_t(s_.gates) * sizeof(C));
    state_gates_ = book(spec.scratch_bytes, size_t(s_.batch * s_.gates) * sizeof(C));
    data_copy_ = convert_.book_copy(spec.scratch_bytes, s_.rows() * s_.inputs);
    parameter_copy_ = convert_.book_copy(spec.scratch_bytes, this->parameter_count_);
    state_copy_ = convert_.book_copy(spec.scratch_bytes, this->state_count(s_.out));
    cell_copy_ = convert_.book_copy(spec.scratch_bytes, this->state_count(s_.state));
    output_copy_ = convert_.book_copy(spec.scratch_bytes, s_.rows() * s_.width());
    state_out_copy_ = convert_.book_copy(spec.scratch_bytes, this->state_count(s_.out));
    cell_out_copy_ = convert_.book_copy(spec.scratch_bytes, this->state_count(s_.state));
    length_input_ = spec.inputs.size() - 1;
    length_dtype_ = spec.inputs.back().dtype;
    this->book_work(spec);
  }

  void run(const Args &args, const Lane &given) const override {
    const typename Backend::Team::Scope team(this->team_, given);
    const Lane &lane = team.lane;
    const bool lstm = s_.mode == RNNAttrs::kLstm;
    ForwardPass p{args, lane};
    if (drops_) p.draw = next_draw(args, lane);
    p.data = convert_.read(lane, args.inputs[0], data_copy_, s_.rows() * s_.inputs, args);
    p.parameters = convert_.read(lane, args.inputs[1], parameter_copy_, this->parameter_count_, args);
    p.state = convert_.read(lane, args.inputs[2], state_copy_, this->state_count(s_.out), args);
    p.cell = lstm ? convert_.read(lane, args.inputs[3], cell_copy_, this->state_count(s_.state), args) : nullptr;
    void *const state_array = attrs_.state_outputs ? args.outputs[1] : nullptr;
    void *const cell_array = attrs_.state_outputs && lstm ? args.outputs[2] : nullptr;
    p.state_out = convert_.written(state_array, state_out_copy_, args);
    p.cell_out = convert_.written(cell_array, cell_out_copy_, args);
    p.store = keeps_ ? args.saved : args.scratch;
    p.lengths = this->lengths(lane, args.inputs[length_input_], length_dtype_, args);
    for (int layer = 0; layer < s_.layers; ++layer) {
      const C *const x = layer == 0 ? p.data : at(p.store, store_.inputs[size_t(layer)]);
      for (int direction = 0; direction < s_.directions; ++direction) run_cell(p, layer, direction, x);
      if (drops_ && layer + 1 < s_.layers) drop(p, layer);
    }
    convert_.write_back(lane, args.outputs[0], output_copy_, s_.rows() * s_.width(), args);
    convert_.write_back(lane, state_array, state_out_copy_, this->state_count(s_.out), args);
    convert_.write_back(lane, cell_array, cell_out_copy_, this->state_count(s_.state), args);
  }

  // The members below are public because nvcc refuses extended lambdas in private functions.
  struct ForwardPass {
    const Args &args;
    const Lane &lane;
    RunValue<RandomStream> draw{};  // with dropout only
    const C *data = nullptr, *parameters = nullptr, *state = nullptr, *cell = nullptr;
    C *state_out = nullptr, *cell_out = nullptr;
    void *store = nullptr;
    const double *lengths = nullptr;
  };

  // The result of a layer: (time, batch, directions * out).
  C *layer_result(const ForwardPass &p, int layer) const {
    if (layer + 1 < s_.layers) return at(p.store, store_.inputs[size_t(layer + 1)]);
    return convert_.written(p.args.outputs[0], output_copy_, p.args);
  }

  // One layer in one direction.
  struct Cell {
    int layer, direction;
    int64_t first_state;  // row of its first state among the states of all cells
    const Store::Cell &place;
    CellParameters parameter;
    const C *state_weight = nullptr, *projection = nullptr;  // prepared once for all steps (held())
  };

  void run_cell(const ForwardPass &p, int layer, int direction, const C *x) const {
    const int index = layer * s_.directions + direction;
    Cell cell{layer, direction, index * s_.batch, store_.cells[size_t(index)], parameters_of(s_, layer, direction)};
    start_gates(p, cell, x);
    cell.state_weight = held(step_product_, at(p.args.scratch, transposed_weight_), held_weight_, p.args, p.lane);
    if (s_.projects) {
      cell.projection = held(projection_, p.parameters + cell.parameter.projection, held_projection_, p.args, p.lane);
    }
    const C *h = p.state + cell.first_state * s_.out;
    const C *c = p.cell ? p.cell + cell.first_state * s_.state : nullptr;
    for (int64_t k = 0; k < s_.time; ++k) run_step(p, cell, this->step(direction, k), &h, &c);
    const auto give = [&](C *to, const C *from, int64_t width) {
      if (to) copy_bytes(p.lane, to + cell.first_state * width, from, size_t(s_.batch * width) * sizeof(C));
    };
    give(p.state_out, h, s_.out);
    give(p.cell_out, c, s_.state);
    if (C *const result = layer_result(p, layer)) write_result(p, cell, result);
  }

  // Starts the gates of all steps with the contribution of the inputs, and prepares what all steps read of the
  // parameters.
  void start_gates(const ForwardPass &p, const Cell &cell, const C *x) const {
    const C *const state_weight = p.parameters + cell.parameter.state_weight;
    const C *const input_bias = p.parameters + cell.parameter.input_bias;
    const C *const state_bias = p.parameters + cell.parameter.state_bias;
    C *const gates = at(p.store, cell.place.gates);
    // Transposes the recurrent weights once: products with them are then cheaper in each step.
    C *const transposed = at(p.args.scratch, transposed_weight_), *const bias = at(p.args.scratch, bias_);
    const int64_t num_gates = s_.gates, out = s_.out;
    Backend::parallel_for_2d(p.lane, num_gates, out, [=] COHORT_DEVICE(int64_t i, int64_t j) {
      transposed[j * num_gates + i] = state_weight[i * out + j];
    });
    // gru adds the recurrent bias of n inside the reset gate, so it keeps the recurrent biases separate.
    const bool gru = s_.mode == RNNAttrs::kGru;
    Backend::parallel_for_2d(p.lane, 1, num_gates, [=] COHORT_DEVICE(int64_t, int64_t i) {
      bias[i] = gru ? input_bias[i] : input_bias[i] + state_bias[i];
    });
    repeat_row(p, bias, s_.rows(), gates);
    multiply(cell.layer == 0 ? first_product_ : later_product_, x, p.parameters + cell.parameter.input_weight, gates,
             p.args, p.lane);
  }

  // Copies `row`, of all gates, to each of `rows` rows.
  void repeat_row(const ForwardPass &p, const C *row, int64_t rows, C *to) const {
    const int64_t width = s_.gates;
    Backend::parallel_for_2d(p.lane, rows, width,
                             [=] COHORT_DEVICE(int64_t n, int64_t i) { to[n * width + i] = row[i]; });
  }

  // h_state and c_state: in, the states before step t; out, those after it.
  void run_step(const ForwardPass &p, const Cell &cell, int64_t t, const C **h_state, const C **c_state) const {
    const int64_t row = t * s_.batch;
    const C *const h = *h_state, *const c = *c_state;
    C *const g = at(p.store, cell.place.gates) + row * s_.gates;
    C *const next = at(p.store, cell.place.hidden) + row * s_.out;
    C *const next_c = c ? at(p.store, cell.place.cell) + row * s_.state : nullptr;
    C *const whole = s_.projects ? at(p.store, cell.place.whole) + row * s_.state : next;
    const bool gru = s_.mode == RNNAttrs::kGru;
    C *const sums = gru ? at(p.args.scratch, state_gates_) : g;
    if (gru) repeat_row(p, p.parameters + cell.parameter.state_bias, s_.batch, sums);
    multiply_held(step_product_, h, cell.state_weight, sums, p.args, p.lane);
    if (s_.mode == RNNAttrs::kLstm) {
      cells_.lstm(p.lane, g, c, next_c, whole);
    } else if (gru) {
      cells_.gru(p.lane, g, sums, h, at(p.store, cell.place.linear) + row * s_.state, next);
    } else {
      cells_.vanilla(p.lane, g, next);
    }
    if (s_.projects) {
      multiply_held(projection_, whole, cell.projection, next, p.args, p.lane);
    }
    if (p.lengths) {
      stay(p, t, h, s_.out, next);
      if (c) stay(p, t, c, s_.state, next_c);
    }
    *h_state = next;
    *c_state = next_c;
  }

  void stay(const ForwardPass &p, int64_t t, const C *before, int64_t width, C *next) const {
    const Ended ended{p.lengths, t};
    Backend::parallel_for_2d(p.lane, s_.batch, width, [=] COHORT_DEVICE(int64_t n, int64_t i) {
      if (ended(n)) next[n * width + i] = before[n * width + i];
    });
  }

  // Copies the hidden states into this direction's columns of the layer's result.
  void write_result(const ForwardPass &p, const Cell &cell, C *result) const {
    const C *const hidden = at(p.store, cell.place.hidden);
    const double *const lengths = p.lengths;
    const int64_t batch = s_.batch, out = s_.out, width = s_.width();
    C *const to = result + cell.direction * out;
    Backend::parallel_for_2d(p.lane, s_.rows(), out, [=] COHORT_DEVICE(int64_t row, int64_t i) {
      to[row * width + i] = Ended{lengths, row / batch}(row % batch) ? C(0) : hidden[row * out + i];
    });
  }

  // Applies dropout to the input of the next layer.
  void drop(const ForwardPass &p, int layer) const {
    C *const result = layer_result(p, layer);
    auto *const mask = Base::template at<uint8_t>(p.store, store_.masks[size_t(layer + 1)]);
    const int64_t count = s_.rows() * s_.width();
    const auto threshold = uint64_t((1.0 - double(attrs_.p)) * 4294967296.0);
    const C scale = attrs_.p < 1 ? 1 / (1 - C(attrs_.p)) : C(0);
    const RunValue<RandomStream> draw = p.draw;
    const auto layers = uint64_t(s_.layers), own = uint64_t(layer);
    Backend::parallel_for(p.lane, (count + 3) / 4, 1024, [=] COHORT_DEVICE(int64_t begin, int64_t end) {
      const RandomStream drawn = draw.get();
      for (int64_t block = begin; block < end; ++block) {
        const Philox random = Philox::at(drawn.seed, uint64_t(block), drawn.draws * layers + own);
        for (int64_t i = block * 4; i < block * 4 + 4 && i < count; ++i) {
          mask[i] = random.word[i % 4] < threshold;
          result[i] = mask[i] ? result[i] * scale : C(0);
        }
      }
    });
  }

 private:
  const bool keeps_;
  bool drops_;
  const Product first_product_, later_product_, step_product_, projection_;
  Store store_;
  size_t transposed_weight_, held_weight_, held_projection_, bias_, state_gates_;
  size_t data_copy_, parameter_copy_, state_copy_, cell_copy_, output_copy_, state_out_copy_, cell_out_copy_;
  Dtype length_dtype_;
  size_t length_input_;
};

template <typename Backend>
std::unique_ptr<Kernel> make_forward(StepSpec &spec) {
  if (spec.inputs[0].dtype == Dtype::kFloat64) return std::make_unique<RnnForward<Backend, double>>(spec);
  return std::make_unique<RnnForward<Backend, float>>(spec);
}

}  // namespace
}  // namespace cohort::rnn
