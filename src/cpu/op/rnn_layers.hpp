// SPDX-License-Identifier: Apache-2.0
// What the forward and the backward pass of RNN share: sizes, where parameters lie and where a pass keeps its values.
//
// The equations, with x W = x Wx^T + bx, h U = h Wh^T + bh and the gates in MXNet's order:
//   vanilla: h' = act(x W + h U)
//   lstm:    i, f, g, o = x W + h U; c' = sigmoid(f) c + sigmoid(i) tanh(g); h' = sigmoid(o) tanh(c')
//   gru:     r, z = sigmoid(x W + h U); n = tanh(x Wn + r (h Un)); h' = (1 - z) n + z h
// Where a sequence has ended (sequence_length), the state stays and the output is 0.
#pragma once

#include <algorithm>
#include <vector>

#include "cpu/dnnl_kernel.hpp"
#include "cpu/op/pointwise_loops.hpp"
#include "op/rnn.hpp"

namespace cohort::rnn {

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

Sizes sizes_of(const RNNAttrs &a, const Shape &data);

// Where the parameters of a layer and direction lie in the packed vector, in elements.
struct Parameters {
  int64_t input_weight, state_weight, input_bias, state_bias, projection;
};

Parameters parameters_of(const Sizes &s, int layer, int direction);

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
Store store_of(const Sizes &s, bool keeps, bool drops, size_t element, size_t *bytes);

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

}  // namespace cohort::rnn
