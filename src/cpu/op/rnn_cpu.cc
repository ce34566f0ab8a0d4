// SPDX-License-Identifier: Apache-2.0
// RNN: layers of vanilla, LSTM or GRU cells over a sequence (time, batch, inputs), by matrix products: one for the
// inputs of all steps of a layer, one a step for the state. Computed in double for float64, else in float; arrays of
// 16-bit types are converted in scratch memory.
//
// The equations, with x W = x Wx^T + bx, h U = h Wh^T + bh and the gates in MXNet's order:
//   vanilla: h' = act(x W + h U)
//   lstm:    i, f, g, o = x W + h U; c' = sigmoid(f) c + sigmoid(i) tanh(g); h' = sigmoid(o) tanh(c')
//   gru:     r, z = sigmoid(x W + h U); n = tanh(x Wn + r (h Un)); h' = (1 - z) n + z h
// Where a sequence has ended (sequence_length), the state stays and the output is 0.
#include "op/rnn.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/random.hpp"
#include "cpu/dnnl_kernel.hpp"
#include "cpu/op/pointwise_loops.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

using dnn::book;

struct Sizes {
  int64_t time, batch, inputs, state, out, gates;  // out: of one direction's hidden state; gates: gates * state
  int layers, directions;
  RNNAttrs::Mode mode;
  bool projects;

  int64_t rows() const { return time * batch; }
  int64_t layer_inputs(int layer) const { return layer == 0 ? inputs : out * directions; }
  int64_t width() const { return out * directions; }
};

Sizes sizes_of(const RNNAttrs &a, const Shape &data) {
  Sizes s;
  s.time = data[0];
  s.batch = data[1];
  s.inputs = data[2];
  s.state = a.state_size;
  s.out = a.output_size();
  s.gates = int64_t(a.gates()) * a.state_size;
  s.layers = a.num_layers;
  s.directions = a.directions();
  s.mode = a.mode;
  s.projects = a.projection_size.has_value();
  return s;
}

// Where the parameters of a layer and direction lie in the packed vector, in elements.
struct Parameters {
  int64_t input_weight, state_weight, input_bias, state_bias, projection;
};

Parameters parameters_of(const Sizes &s, int layer, int direction) {
  Parameters p;
  int64_t at = 0;
  for (int l = 0; l < s.layers; ++l) {
    for (int d = 0; d < s.directions; ++d) {
      if (l == layer && d == direction) p.input_weight = at, p.state_weight = at + s.gates * s.layer_inputs(l);
      at += s.gates * (s.layer_inputs(l) + s.out);
    }
  }
  const int64_t cell = int64_t(layer) * s.directions + direction, cells = int64_t(s.layers) * s.directions;
  p.input_bias = at + cell * 2 * s.gates;
  p.state_bias = p.input_bias + s.gates;
  p.projection = at + cells * 2 * s.gates + cell * s.out * s.state;
  return p;
}

// c (m, n) = op(a) (m, k) * op(b) (k, n) + beta c, row-major with rows lda, ldb, ldc apart.
void product(char turn_a, char turn_b, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *b,
             int64_t ldb, float beta, float *c, int64_t ldc, const Lane &) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    for (int64_t i = 0; beta == 0 && i < m; ++i) std::fill_n(c + i * ldc, n, 0.0f);
    return;
  }
  const dnnl_status_t status = dnnl_sgemm(turn_a, turn_b, m, n, k, 1.0f, a, lda, b, ldb, beta, c, ldc);
  if (status != dnnl_success) dnn::fail(status, "RNN");
}

void product(char turn_a, char turn_b, int64_t m, int64_t n, int64_t k, const double *a, int64_t lda, const double *b,
             int64_t ldb, double beta, double *c, int64_t ldc, const Lane &lane) {
  const int64_t a_row = turn_a == 'N' ? lda : 1, a_step = turn_a == 'N' ? 1 : lda;
  const int64_t b_column = turn_b == 'N' ? 1 : ldb, b_step = turn_b == 'N' ? ldb : 1;
  parallel_for(lane, m * n, 1 + 16384 / (k + 1), [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      double *const to = c + i / n * ldc + i % n;
      double sum = beta == 0 ? 0 : beta * *to;
      for (int64_t j = 0; j < k; ++j) sum += a[i / n * a_row + j * a_step] * b[i % n * b_column + j * b_step];
      *to = sum;
    }
  });
}

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

// Places, in bytes, of what the forward pass keeps for each cell (a layer and direction) and for each layer.
struct Store {
  struct Cell {
    size_t gates;   // (time, batch, gates): after their activations
    size_t hidden;  // (time, batch, out): h'
    size_t cell;    // (time, batch, state): lstm's c'
    size_t linear;  // (time, batch, state): gru's h Un
    size_t whole;   // (time, batch, state): with a projection, h' before it
  };
  std::vector<Cell> cells;
  std::vector<size_t> inputs;  // of layers 1 and up: (time, batch, directions * out)
  std::vector<size_t> masks;   // the same as bytes, with dropout
};

// A pass that keeps nothing reuses the places of a cell for the next.
Store store_of(const Sizes &s, bool keeps, bool drops, size_t element, size_t *bytes) {
  Store store;
  const size_t rows = size_t(s.rows());
  Store::Cell cell{};
  for (int l = 0; l < s.layers; ++l) {
    for (int d = 0; d < s.directions; ++d) {
      if (keeps || (l == 0 && d == 0)) {
        cell.gates = book(*bytes, rows * size_t(s.gates) * element);
        cell.hidden = book(*bytes, rows * size_t(s.out) * element);
        if (s.mode == RNNAttrs::kLstm) cell.cell = book(*bytes, rows * size_t(s.state) * element);
        if (s.mode == RNNAttrs::kGru) cell.linear = book(*bytes, rows * size_t(s.state) * element);
        if (s.projects) cell.whole = book(*bytes, rows * size_t(s.state) * element);
      }
      store.cells.push_back(cell);
    }
    const bool fresh = keeps || l <= 2;  // layers 1 and 2 take turns
    const size_t count = l == 0 ? 0 : rows * size_t(s.width());
    store.inputs.push_back(fresh ? book(*bytes, count * element) : store.inputs[size_t(l - 2)]);
    store.masks.push_back(drops ? book(*bytes, count) : 0);
  }
  return store;
}

template <typename C>
struct Functions {
  PointwiseLoop<C> sigmoid = pointwise_loop<C>(PointwiseCode::kSigmoid);
  PointwiseLoop<C> tanh = pointwise_loop<C>(PointwiseCode::kTanh);
  static void apply(PointwiseLoop<C> loop, const C *x, C *y, int64_t count) {
    loop(x, nullptr, nullptr, C(0), C(0), y, count);
  }
};

// Arrays of the operator as arrays of C: themselves, or copies in scratch memory.
template <typename C>
class Converter {
 public:
  explicit Converter(Dtype dtype) : dtype_(dtype) {
    load_ = load_block(dtype, dtype_of<C>());
    store_ = store_block(dtype_of<C>(), dtype);
  }
  // Books the copy of an array of `count` elements, if one is needed.
  size_t book_copy(size_t &scratch_bytes, int64_t count) const {
    return same() ? 0 : book(scratch_bytes, size_t(count) * sizeof(C));
  }
  bool same() const { return dtype_ == dtype_of<C>(); }
  const C *read(const void *array, size_t place, int64_t count, const Args &args) const {
    if (same() || !array) return static_cast<const C *>(array);
    C *const copy = at(place, args);
    load_(array, 0, copy, count);
    return copy;
  }
  C *written(void *array, size_t place, const Args &args) const {
    return same() || !array ? static_cast<C *>(array) : at(place, args);
  }
  void write_back(void *array, size_t place, int64_t count, const Args &args) const {
    if (!same() && array) store_(at(place, args), array, 0, count);
  }

 private:
  static C *at(size_t place, const Args &args) {
    return reinterpret_cast<C *>(static_cast<char *>(args.scratch) + place);
  }
  const Dtype dtype_;
  LoadBlock load_;
  StoreBlock store_;
};

// What forward and backward pass share.
template <typename C>
class RnnKernel : public Kernel {
 protected:
  RnnKernel(StepSpec &spec, const Shape &data, Dtype dtype)
      : attrs_(spec.attrs_as<RNNAttrs>()),
        s_(sizes_of(attrs_, data)),
        num_threads_(dnn::threads_for_work(spec, 2.0 * double(s_.batch) * double(s_.gates) * double(s_.out))),
        convert_(dtype) {
    parameter_count_ = rnn_parameter_size(attrs_, s_.inputs);
    if (attrs_.use_sequence_length) lengths_place_ = book(spec.scratch_bytes, size_t(s_.batch) * sizeof(double));
  }

  int64_t state_count(int64_t width) const { return int64_t(s_.layers) * s_.directions * s_.batch * width; }
  bool drops(const StepSpec &spec) const { return spec.is_train && attrs_.p > 0 && s_.layers > 1; }
  // The steps of a direction in the order in which it runs.
  int64_t step(int direction, int64_t k) const { return direction == 0 ? k : s_.time - 1 - k; }

  const double *lengths(const void *array, LoadBlock load, const Args &args) const {
    if (!attrs_.use_sequence_length) return nullptr;
    auto *const lengths = reinterpret_cast<double *>(static_cast<char *>(args.scratch) + lengths_place_);
    load(array, 0, lengths, s_.batch);
    return lengths;
  }

  template <typename T = C>
  static T *at(void *base, size_t place) {
    return reinterpret_cast<T *>(static_cast<char *>(base) + place);
  }

  const RNNAttrs attrs_;
  const Sizes s_;
  const int num_threads_;
  const Converter<C> convert_;
  const Functions<C> functions_;
  int64_t parameter_count_;
  size_t lengths_place_ = 0;
};

// ---- forward ------------------------------------------------------------------------------------------------------

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
      : Base(spec, spec.inputs[0].shape, spec.inputs[0].dtype), keeps_(spec.is_train), seed_(spec.seed) {
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
    p.stream = num_runs_++;
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
    uint64_t stream = 0;
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

  void run_cell(const Pass &p, int layer, int direction, const C *x) const {
    const size_t index = size_t(layer * s_.directions + direction);
    const Store::Cell &cell = store_.cells[index];
    const Parameters at_parameter = parameters_of(s_, layer, direction);
    const int64_t inputs = s_.layer_inputs(layer);
    const C *const weight = p.parameters + at_parameter.input_weight;
    const C *const state_weight = p.parameters + at_parameter.state_weight;
    const C *const input_bias = p.parameters + at_parameter.input_bias;
    const C *const state_bias = p.parameters + at_parameter.state_bias;
    C *const gates = at(p.store, cell.gates), *const hidden = at(p.store, cell.hidden);
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
    product('N', 'T', s_.rows(), s_.gates, inputs, x, inputs, weight, inputs, C(1), gates, s_.gates, p.lane);

    const int64_t state_at = int64_t(index) * s_.batch;
    const C *h = p.state + state_at * s_.out, *c = p.cell ? p.cell + state_at * s_.state : nullptr;
    C *const state_gates = at(p.args.scratch, state_gates_);
    for (int64_t k = 0; k < s_.time; ++k) {
      const int64_t t = this->step(direction, k), row = t * s_.batch;
      C *const g = gates + row * s_.gates, *const next = hidden + row * s_.out;
      C *const next_c = c ? at(p.store, cell.cell) + row * s_.state : nullptr;
      C *const whole = s_.projects ? at(p.store, cell.whole) + row * s_.state : next;
      if (gru) {
        for (int64_t n = 0; n < s_.batch; ++n) std::copy_n(state_bias, s_.gates, state_gates + n * s_.gates);
        product('N', 'N', s_.batch, s_.gates, s_.out, h, s_.out, turned, s_.gates, C(1), state_gates, s_.gates, p.lane);
      } else {
        product('N', 'N', s_.batch, s_.gates, s_.out, h, s_.out, turned, s_.gates, C(1), g, s_.gates, p.lane);
      }
      parallel_for(p.lane, s_.batch, 1 + 2048 / s_.gates, [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n) {
          if (s_.mode == RNNAttrs::kLstm) {
            lstm_row(g + n * s_.gates, c + n * s_.state, next_c + n * s_.state, whole + n * s_.state);
          } else if (gru) {
            gru_row(g + n * s_.gates, state_gates + n * s_.gates, h + n * s_.out,
                    at(p.store, cell.linear) + (row + n) * s_.state, next + n * s_.out);
          } else {
            vanilla_row(g + n * s_.gates, next + n * s_.out);
          }
        }
      });
      if (s_.projects) {
        product('N', 'T', s_.batch, s_.out, s_.state, whole, s_.state, p.parameters + at_parameter.projection, s_.state,
                C(0), next, s_.out, p.lane);
      }
      for (int64_t n = 0; p.lengths && n < s_.batch; ++n) {
        if (double(t) < p.lengths[n]) continue;
        std::copy_n(h + n * s_.out, s_.out, next + n * s_.out);
        if (c) std::copy_n(c + n * s_.state, s_.state, next_c + n * s_.state);
      }
      h = next;
      if (c) c = next_c;
    }
    if (p.state_out) std::copy_n(h, s_.batch * s_.out, p.state_out + state_at * s_.out);
    if (p.cell_out) std::copy_n(c, s_.batch * s_.state, p.cell_out + state_at * s_.state);
    if (C *const result = layer_result(p, layer)) {
      const int64_t width = s_.width(), column = direction * s_.out;
      for (int64_t row = 0; row < s_.rows(); ++row) {
        C *const to = result + row * width + column;
        if (p.lengths && double(row / s_.batch) >= p.lengths[row % s_.batch]) {
          std::fill_n(to, s_.out, C(0));
        } else {
          std::copy_n(hidden + row * s_.out, s_.out, to);
        }
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
    const uint64_t stream = p.stream * uint64_t(s_.layers) + uint64_t(layer);
    parallel_for(p.lane, (count + 3) / 4, 1024, [=](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        const Philox random = Philox::at(seed_, uint64_t(block), stream);
        for (int64_t i = block * 4; i < std::min(block * 4 + 4, count); ++i) {
          mask[i] = random.word[i % 4] < threshold;
          result[i] = mask[i] ? result[i] * scale : C(0);
        }
      }
    });
  }

  const bool keeps_;
  const uint64_t seed_;
  bool drops_;
  Store store_;
  size_t turned_, bias_, state_gates_;
  size_t data_copy_, parameter_copy_, state_copy_, cell_copy_, output_copy_, state_out_copy_, cell_out_copy_;
  LoadBlock load_length_ = nullptr;
  int length_input_;
  mutable uint64_t num_runs_ = 0;
};

// ---- backward -----------------------------------------------------------------------------------------------------

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

  void run_cell(const Pass &p, int layer, int direction, const C *dy, C *dx) const {
    const size_t index = size_t(layer * s_.directions + direction);
    const Store::Cell &cell = store_.cells[index];
    const Parameters place = parameters_of(s_, layer, direction);
    const int64_t inputs = s_.layer_inputs(layer), state_at = int64_t(index) * s_.batch, width = s_.width();
    void *const saved = p.args.saved, *const scratch = p.args.scratch;
    const C *const gates = at(saved, cell.gates), *const hidden = at(saved, cell.hidden);
    const C *const state_weight = p.parameters + place.state_weight;
    const C *const projection = p.parameters + place.projection;
    C *const gate_grads = at(scratch, gate_grads_), *const state_grads = at(scratch, state_grads_);
    C *const dh = at(scratch, h_grad_), *const dc = at(scratch, c_grad_);
    const bool lstm = s_.mode == RNNAttrs::kLstm, gru = s_.mode == RNNAttrs::kGru;
    const C *const h0 = p.state + state_at * s_.out, *const c0 = lstm ? p.cell + state_at * s_.state : nullptr;
    const auto start = [&](C *to, const C *from, int64_t columns) {
      if (from) {
        std::copy_n(from + state_at * columns, s_.batch * columns, to);
      } else {
        std::fill_n(to, s_.batch * columns, C(0));
      }
    };
    start(dh, p.state_head, s_.out);
    if (lstm) start(dc, p.cell_head, s_.state);

    for (int64_t k = s_.time; k-- > 0;) {
      const int64_t t = this->step(direction, k), row = t * s_.batch;
      const int64_t before = k > 0 ? this->step(direction, k - 1) * s_.batch : 0;
      const C *const g = gates + row * s_.gates, *const h = k > 0 ? hidden + before * s_.out : h0;
      const C *const c = !lstm ? nullptr : k > 0 ? at(saved, cell.cell) + before * s_.state : c0;
      const auto ended = [&](int64_t n) { return p.lengths && double(t) >= p.lengths[n]; };
      for (int64_t n = 0; n < s_.batch; ++n) {
        if (ended(n)) continue;
        const C *const from = dy + (row + n) * width + direction * s_.out;
        for (int64_t i = 0; i < s_.out; ++i) dh[n * s_.out + i] += from[i];
      }
      const C *whole = dh;  // the gradient of h' before the projection
      if (s_.projects) {
        C *const kept = at(scratch, out_grads_) + row * s_.out, *const grad = at(scratch, whole_grad_);
        std::copy_n(dh, s_.batch * s_.out, kept);
        for (int64_t n = 0; n < s_.batch; ++n) {
          if (ended(n)) std::fill_n(kept + n * s_.out, s_.out, C(0));
        }
        product('N', 'N', s_.batch, s_.state, s_.out, kept, s_.out, projection, s_.state, C(0), grad, s_.state, p.lane);
        whole = grad;
      }
      parallel_for(p.lane, s_.batch, 1 + 2048 / s_.gates, [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n) {
          C *const dg = gate_grads + (row + n) * s_.gates, *const du = state_grads + (row + n) * s_.gates;
          if (ended(n)) {
            std::fill_n(dg, s_.gates, C(0));
            std::fill_n(du, s_.gates, C(0));
          } else if (lstm) {
            lstm_row(g + n * s_.gates, c + n * s_.state, at(saved, cell.cell) + (row + n) * s_.state,
                     whole + n * s_.state, dc + n * s_.state, at(scratch, row_) + n * s_.state, dg);
          } else if (gru) {
            gru_row(g + n * s_.gates, h + n * s_.out, at(saved, cell.linear) + (row + n) * s_.state, dh + n * s_.out,
                    dg, du);
          } else {
            vanilla_row(g + n * s_.gates, dh + n * s_.out, dg);
          }
        }
      });
      // The gradient of the state before: through the recurrent weights and, for gru, straight on (in dh already).
      if (p.lengths) {
        for (int64_t n = 0; n < s_.batch; ++n) {
          if (!ended(n) && !gru) std::fill_n(dh + n * s_.out, s_.out, C(0));
        }
      }
      product('N', 'N', s_.batch, s_.out, s_.gates, state_grads + row * s_.gates, s_.gates, state_weight, s_.out,
              gru || p.lengths ? C(1) : C(0), dh, s_.out, p.lane);
    }
    if (p.state_grad) std::copy_n(dh, s_.batch * s_.out, p.state_grad + state_at * s_.out);
    if (p.cell_grad) std::copy_n(dc, s_.batch * s_.state, p.cell_grad + state_at * s_.state);

    const C *const x = layer == 0 ? p.data : at(saved, store_.inputs[size_t(layer)]);
    if (dx) {
      product('N', 'N', s_.rows(), inputs, s_.gates, gate_grads, s_.gates, p.parameters + place.input_weight, inputs,
              direction == 0 ? C(0) : C(1), dx, inputs, p.lane);
    }
    if (!p.parameter_grad) return;
    product('T', 'N', s_.gates, inputs, s_.rows(), gate_grads, s_.gates, x, inputs, C(0),
            p.parameter_grad + place.input_weight, inputs, p.lane);
    // States before each step: the given one, and the hidden states of the steps before.
    C *const state_weight_grad = p.parameter_grad + place.state_weight;
    const int64_t first = s_.time > 0 ? this->step(direction, 0) * s_.batch : 0, rest = s_.rows() - s_.batch;
    const int64_t later = direction == 0 ? s_.batch : 0, earlier = direction == 0 ? 0 : s_.batch;
    product('T', 'N', s_.gates, s_.out, s_.time > 0 ? s_.batch : 0, state_grads + first * s_.gates, s_.gates, h0,
            s_.out, C(0), state_weight_grad, s_.out, p.lane);
    if (rest > 0) {
      product('T', 'N', s_.gates, s_.out, rest, state_grads + later * s_.gates, s_.gates, hidden + earlier * s_.out,
              s_.out, C(1), state_weight_grad, s_.out, p.lane);
    }
    sum_rows(gate_grads, s_.rows(), s_.gates, p.parameter_grad + place.input_bias, p.lane);
    sum_rows(state_grads, s_.rows(), s_.gates, p.parameter_grad + place.state_bias, p.lane);
    if (s_.projects) {
      product('T', 'N', s_.out, s_.state, s_.rows(), at(scratch, out_grads_), s_.out, at(saved, cell.whole), s_.state,
              C(0), p.parameter_grad + place.projection, s_.state, p.lane);
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

std::unique_ptr<Kernel> make_forward(StepSpec &spec) {
  if (spec.inputs[0].dtype == Dtype::kFloat64) return std::make_unique<RnnForward<double>>(spec);
  return std::make_unique<RnnForward<float>>(spec);
}

std::unique_ptr<Kernel> make_backward(StepSpec &spec) {
  const auto &a = spec.attrs_as<RNNAttrs>();
  const int num_heads = !a.state_outputs ? 1 : a.mode == RNNAttrs::kLstm ? 3 : 2;
  if (spec.inputs[0].dtype == Dtype::kFloat64) return std::make_unique<RnnBackward<double>>(spec, num_heads);
  return std::make_unique<RnnBackward<float>>(spec, num_heads);
}

COHORT_KERNEL_EX(cpu, RNN, make_forward, false, 0u);
COHORT_KERNEL_EX(cpu, _backward_RNN, make_backward, false, 0u);

}  // namespace
}  // namespace cohort
