// SPDX-License-Identifier: Apache-2.0
// The backward kernel of RNN. It goes back through the steps to compute the gradients of the gates; one product per
// layer then gives the gradients of weights and inputs of all steps.
#pragma once

#include "kernels/rnn_pass.hpp"

namespace cohort::rnn {
namespace {

// Inputs: the head gradients of output, state and state_cell; data, parameters, state, state_cell and
// sequence_length, as far as present; output.
template <typename Backend, typename C>
class RnnBackward final : public RnnKernel<Backend, C> {
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
  RnnBackward(StepSpec &spec, int num_heads)
      : Base(spec, spec.inputs[size_t(num_heads)].shape, spec.inputs[size_t(num_heads)].dtype),
        heads_(num_heads),
        input_products_{{input_product(0, C(0)), input_product(0, C(1))},
                        {input_product(1, C(0)), input_product(1, C(1))}},
        weight_products_{weight_product(0), weight_product(1)},
        step_product_(this->product(false, false, s_.batch, s_.out, s_.gates,
                                    s_.mode == RNNAttrs::kGru || attrs_.use_sequence_length ? C(1) : C(0))),
        first_product_(this->product(true, false, s_.gates, s_.out, s_.time > 0 ? s_.batch : 0, C(0))),
        rest_product_(this->product(true, false, s_.gates, s_.out, s_.time > 1 ? s_.rows() - s_.batch : 0, C(1))),
        projection_(this->product(false, false, s_.batch, s_.projects ? s_.state : 0, s_.out, C(0))),
        projection_grad_(this->product(true, false, s_.projects ? s_.out : 0, s_.state, s_.rows(), C(0))) {
    drops_ = this->drops(spec);
    size_t ignored = 0;
    store_ = store_of(s_, true, drops_, sizeof(C), &ignored);
    const size_t rows = size_t(s_.rows()), width = size_t(s_.width() > s_.inputs ? s_.width() : s_.inputs);
    gate_grads_ = book(spec.scratch_bytes, rows * size_t(s_.gates) * sizeof(C));
    state_grads_ = gate_grads_;
    if (s_.mode == RNNAttrs::kGru) state_grads_ = book(spec.scratch_bytes, rows * size_t(s_.gates) * sizeof(C));
    for (size_t &place : layer_grads_) place = book(spec.scratch_bytes, rows * width * sizeof(C));
    held_weight_ = this->book_held(spec, step_product_);
    held_projection_ = this->book_held(spec, projection_);
    h_grad_ = book(spec.scratch_bytes, size_t(s_.batch * s_.out) * sizeof(C));
    c_grad_ = book(spec.scratch_bytes, size_t(s_.batch * s_.state) * sizeof(C));
    if (s_.projects) {
      out_grads_ = book(spec.scratch_bytes, rows * size_t(s_.out) * sizeof(C));
      whole_grad_ = book(spec.scratch_bytes, size_t(s_.batch * s_.state) * sizeof(C));
    }
    tanh_ = book(spec.scratch_bytes, size_t(s_.batch * s_.state) * sizeof(C));
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
    if (attrs_.use_sequence_length) length_dtype_ = spec.inputs[size_t(length_input_)].dtype;
    this->book_work(spec);
  }

  void run(const Args &args, const Lane &given) const override {
    const typename Backend::Team::Scope team(this->team_, given);
    const Lane &lane = team.lane;
    const bool lstm = s_.mode == RNNAttrs::kLstm;
    BackwardPass p{args, lane};
    const int64_t output_count = s_.rows() * s_.width();
    const C *const head = convert_.read(lane, args.inputs[0], head_copy_, output_count, args);
    if (heads_ > 1) {
      p.state_head = convert_.read(lane, args.inputs[1], state_head_copy_, this->state_count(s_.out), args);
    }
    if (heads_ > 2)
      p.cell_head = convert_.read(lane, args.inputs[2], cell_head_copy_, this->state_count(s_.state), args);
    p.data = convert_.read(lane, args.inputs[heads_], data_copy_, s_.rows() * s_.inputs, args);
    p.parameters = convert_.read(lane, args.inputs[heads_ + 1], parameter_copy_, this->parameter_count_, args);
    p.state = convert_.read(lane, args.inputs[heads_ + 2], state_copy_, this->state_count(s_.out), args);
    if (lstm) p.cell = convert_.read(lane, args.inputs[heads_ + 3], cell_copy_, this->state_count(s_.state), args);
    void *const cell_array = lstm ? args.outputs[3] : nullptr;
    p.data_grad = convert_.written(args.outputs[0], data_grad_copy_, args);
    p.parameter_grad = convert_.written(args.outputs[1], parameter_grad_copy_, args);
    p.state_grad = convert_.written(args.outputs[2], state_grad_copy_, args);
    p.cell_grad = convert_.written(cell_array, cell_grad_copy_, args);
    p.lengths =
        this->lengths(lane, attrs_.use_sequence_length ? args.inputs[length_input_] : nullptr, length_dtype_, args);
    const C *dy = head;
    for (int layer = s_.layers; layer-- > 0;) {
      C *const dx = layer > 0 ? at(args.scratch, layer_grads_[layer % 2]) : p.data_grad;
      for (int direction = 0; direction < s_.directions; ++direction) run_cell(p, layer, direction, dy, dx);
      if (drops_ && layer > 0) undrop(p, layer, dx);
      dy = dx;
    }
    convert_.write_back(lane, args.outputs[0], data_grad_copy_, s_.rows() * s_.inputs, args);
    convert_.write_back(lane, args.outputs[1], parameter_grad_copy_, this->parameter_count_, args);
    convert_.write_back(lane, args.outputs[2], state_grad_copy_, this->state_count(s_.out), args);
    convert_.write_back(lane, cell_array, cell_grad_copy_, this->state_count(s_.state), args);
  }

 private:
  Product input_product(int layer, C beta) {
    const bool there = layer < s_.layers && (beta == C(0) || s_.directions > 1);
    return this->product(false, false, there ? s_.rows() : 0, s_.layer_inputs(layer), s_.gates, beta);
  }
  Product weight_product(int layer) {
    return this->product(true, false, layer < s_.layers ? s_.gates : 0, s_.layer_inputs(layer), s_.rows(), C(0));
  }

  // The members below are public because nvcc refuses extended lambdas in private functions.
 public:
  struct BackwardPass {
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
    CellParameters parameter;
    const C *h0, *c0;
    const C *state_weight = nullptr, *projection = nullptr;  // prepared once for all steps (held())
  };

  void run_cell(const BackwardPass &p, int layer, int direction, const C *dy, C *dx) const {
    const int index = layer * s_.directions + direction;
    const int64_t first_h = index * s_.batch * s_.out, first_c = index * s_.batch * s_.state;
    Cell cell{layer,
              direction,
              store_.cells[size_t(index)],
              parameters_of(s_, layer, direction),
              p.state + first_h,
              p.cell ? p.cell + first_c : nullptr};
    cell.state_weight = held(step_product_, p.parameters + cell.parameter.state_weight, held_weight_, p.args, p.lane);
    if (s_.projects) {
      cell.projection = held(projection_, p.parameters + cell.parameter.projection, held_projection_, p.args, p.lane);
    }
    C *const dh = at(p.args.scratch, h_grad_), *const dc = at(p.args.scratch, c_grad_);
    const auto start = [&](C *to, const C *from, int64_t first, int64_t count) {
      if (from) return copy_bytes(p.lane, to, from + first, size_t(count) * sizeof(C));
      zero_bytes(p.lane, to, size_t(count) * sizeof(C));
    };
    start(dh, p.state_head, first_h, s_.batch * s_.out);
    if (p.cell) start(dc, p.cell_head, first_c, s_.batch * s_.state);
    for (int64_t k = s_.time; k-- > 0;) run_step(p, cell, k, dy);
    if (p.state_grad) copy_bytes(p.lane, p.state_grad + first_h, dh, size_t(s_.batch * s_.out) * sizeof(C));
    if (p.cell_grad) copy_bytes(p.lane, p.cell_grad + first_c, dc, size_t(s_.batch * s_.state) * sizeof(C));
    if (dx) {
      multiply(input_products_[layer > 0][direction > 0], at(p.args.scratch, gate_grads_),
               p.parameters + cell.parameter.input_weight, dx, p.args, p.lane);
    }
    if (p.parameter_grad) parameter_grads(p, cell);
  }

  // Computes the gradients of the gates at the k-th step of the cell's direction. The gradients of the states are
  // carried in scratch memory.
  void run_step(const BackwardPass &p, const Cell &cell, int64_t k, const C *dy) const {
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
    const Ended ended{p.lengths, t};
    const int64_t out = s_.out, width = s_.width();
    const C *const from = dy + row * width + cell.direction * out;
    Backend::parallel_for_2d(p.lane, s_.batch, out, [=] COHORT_DEVICE(int64_t n, int64_t i) {
      if (!ended(n)) dh[n * out + i] += from[n * width + i];
    });
    const C *whole = dh;  // the gradient of h', before the projection if there is one
    if (s_.projects) {
      C *const kept = at(scratch, out_grads_) + row * s_.out, *const grad = at(scratch, whole_grad_);
      Backend::parallel_for_2d(p.lane, s_.batch, out, [=] COHORT_DEVICE(int64_t n, int64_t i) {
        kept[n * out + i] = ended(n) ? C(0) : dh[n * out + i];
      });
      multiply_held(projection_, kept, cell.projection, grad, p.args, p.lane);
      whole = grad;
    }
    if (lstm) {
      cells_.lstm_backward(p.lane, ended, g, c, at(saved, cell.place.cell) + row * s_.state, whole, dc,
                           at(scratch, tanh_), gate_grads);
    } else if (gru) {
      cells_.gru_backward(p.lane, ended, g, h, at(saved, cell.place.linear) + row * s_.state, dh, gate_grads,
                          state_grads);
    } else {
      cells_.vanilla_backward(p.lane, ended, g, dh, gate_grads);
    }
    // The gradient of the state before this step: through the recurrent weights and, for gru or in sequences that
    // have ended, also directly (already in dh).
    if (p.lengths && !gru) {
      Backend::parallel_for_2d(p.lane, s_.batch, out, [=] COHORT_DEVICE(int64_t n, int64_t i) {
        if (!ended(n)) dh[n * out + i] = C(0);
      });
    }
    multiply_held(step_product_, state_grads, cell.state_weight, dh, p.args, p.lane);
  }

  // Computes the gradients of a cell's parameters from the gradients of the gates of all steps.
  void parameter_grads(const BackwardPass &p, const Cell &cell) const {
    const CellParameters &place = cell.parameter;
    const C *const gate_grads = at(p.args.scratch, gate_grads_), *const state_grads = at(p.args.scratch, state_grads_);
    const C *const x = cell.layer == 0 ? p.data : at(p.args.saved, store_.inputs[size_t(cell.layer)]);
    multiply(weight_products_[cell.layer > 0], gate_grads, x, p.parameter_grad + place.input_weight, p.args, p.lane);
    // The states before each step are the given one, then the hidden states of the steps before.
    C *const state_weight_grad = p.parameter_grad + place.state_weight;
    const C *const hidden = at(p.args.saved, cell.place.hidden);
    const bool forwards = cell.direction == 0;
    const int64_t first = s_.time > 0 ? this->step(cell.direction, 0) * s_.batch : 0;
    const int64_t later = forwards ? s_.batch : 0, earlier = forwards ? 0 : s_.batch;
    multiply(first_product_, state_grads + first * s_.gates, cell.h0, state_weight_grad, p.args, p.lane);
    if (s_.time > 1) {
      multiply(rest_product_, state_grads + later * s_.gates, hidden + earlier * s_.out, state_weight_grad, p.args,
               p.lane);
    }
    Backend::sum_rows(p.lane, gate_grads, s_.rows(), s_.gates, p.parameter_grad + place.input_bias);
    Backend::sum_rows(p.lane, state_grads, s_.rows(), s_.gates, p.parameter_grad + place.state_bias);
    if (s_.projects) {
      multiply(projection_grad_, at(p.args.scratch, out_grads_), at(p.args.saved, cell.place.whole),
               p.parameter_grad + place.projection, p.args, p.lane);
    }
  }

  void undrop(const BackwardPass &p, int layer, C *dx) const {
    const auto *const mask = Base::template at<uint8_t>(p.args.saved, store_.masks[size_t(layer)]);
    const C scale = attrs_.p < 1 ? 1 / (1 - C(attrs_.p)) : C(0);
    Backend::parallel_for(p.lane, s_.rows() * s_.width(), 8192, [=] COHORT_DEVICE(int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) dx[i] = mask[i] ? dx[i] * scale : C(0);
    });
  }

 private:
  const int heads_;
  const Product input_products_[2][2];  // [first layer or later][second direction, which adds to the first]
  const Product weight_products_[2];
  const Product step_product_, first_product_, rest_product_, projection_, projection_grad_;
  bool drops_;
  Store store_;
  size_t held_weight_, held_projection_;
  size_t gate_grads_, state_grads_, layer_grads_[2], h_grad_, c_grad_, out_grads_ = 0, whole_grad_ = 0, tanh_;
  size_t data_copy_, parameter_copy_, state_copy_, cell_copy_, head_copy_, state_head_copy_, cell_head_copy_;
  size_t data_grad_copy_, parameter_grad_copy_, state_grad_copy_, cell_grad_copy_;
  Dtype length_dtype_ = Dtype::kNone;
  int length_input_;
};

template <typename Backend>
std::unique_ptr<Kernel> make_backward(StepSpec &spec) {
  const auto &a = spec.attrs_as<RNNAttrs>();
  const int num_heads = !a.state_outputs ? 1 : a.mode == RNNAttrs::kLstm ? 3 : 2;
  if (spec.inputs[0].dtype == Dtype::kFloat64) return std::make_unique<RnnBackward<Backend, double>>(spec, num_heads);
  return std::make_unique<RnnBackward<Backend, float>>(spec, num_heads);
}

}  // namespace
}  // namespace cohort::rnn
