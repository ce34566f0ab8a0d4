// SPDX-License-Identifier: Apache-2.0
// CTCLoss by the forward-backward recursion over labels with blanks in between, in logarithms and double. One block per
// sample, one thread per state; the threads synchronise at each step. Saves for the gradient: softmax minus the share
// of each class in all placements.
#include <cmath>

#include "cuda/op/expected.cuh"
#include "cuda/op/rows.cuh"
#include "device/kernel_table.hpp"
#include "kernels/scratch_layout.hpp"
#include "op/ctc_loss.hpp"

namespace cohort {
namespace {

constexpr int kCtcThreads = 128;

__device__ double log_of_zero() { return -double(INFINITY); }

__device__ double log_add(double a, double b) {
  const double high = a > b ? a : b, low = a > b ? b : a;
  return low == log_of_zero() ? high : high + log1p(exp(low - high));
}

struct CtcArrays {
  int64_t length, batch, classes, labels;
  double *scores;   // (length, batch, classes): logarithms of softmax, then the gradient
  double *alpha;    // (batch, length, states)
  double *beta;     // (batch, 2, states)
  int64_t *symbol;  // (batch, states): classes
  int64_t *next;    // (batch, states): the next state of the same class, or -1; ...
  int64_t *first;   // ... whether there is none before
  int64_t *counts;  // (batch, 2): steps and states; no steps where labels do not fit

  __device__ int64_t states() const { return 2 * labels + 1; }
};

// The labels of a sample. A length or label out of range is recorded as an InputError, and clamped.
struct CtcLabels {
  Elements labels, data_lengths, label_lengths;  // the latter two may have no data
  bool blank_last;

  __device__ int64_t length(const Elements &from, int64_t n, int64_t most) const {
    if (!from.data) return most;
    const double value = load<double>(from, n);
    return value >= 0 ? value <= double(most) ? int64_t(value) : most : 0;
  }
  // Checks number k of sample n: the length of its data, then that of its labels, then its labels up to that length.
  __device__ Finding look(int64_t n, int64_t k, int64_t steps, int64_t most_labels, int64_t classes) const {
    const auto length_at = [&](const Elements &from, int64_t most) -> Finding {
      if (!from.data) return {false, 0, 0, most};
      const double value = load<double>(from, n);
      return {!(value >= 0 && value <= double(most)), bits_of(value), 0, most};
    };
    if (k == 0) return length_at(data_lengths, steps);
    if (k == 1) return length_at(label_lengths, most_labels);
    const int64_t place = k - 2;
    const auto label_at = [&](int64_t i) { return trunc(load<double>(labels, n * most_labels + i)); };
    const double label = label_at(place);
    bool counts = place < length(label_lengths, n, most_labels);
    for (int64_t i = 0; counts && !label_lengths.data && i <= place; ++i) counts = label_at(i) != padding();
    return {counts && !(label >= 0 && label < double(classes)), bits_of(label), 0, classes - 1};
  }
  __device__ double padding() const { return blank_last ? -1 : 0; }
  __device__ void read(const CtcArrays &a, int64_t n) const {
    const int64_t blank = blank_last ? a.classes - 1 : 0, count = length(label_lengths, n, a.labels);
    int64_t *const symbol = a.symbol + n * a.states();
    int64_t i = 0, repeats = 0;
    for (; i < count; ++i) {
      const double label = trunc(load<double>(labels, n * a.labels + i));
      if (!label_lengths.data && label == padding()) break;
      symbol[2 * i] = blank;
      symbol[2 * i + 1] = label >= 0 ? label < double(a.classes) ? int64_t(label) : a.classes - 1 : 0;
      repeats += i > 0 && symbol[2 * i + 1] == symbol[2 * i - 1];
    }
    symbol[2 * i] = blank;
    const int64_t steps = length(data_lengths, n, a.length);
    a.counts[2 * n] = i + repeats > steps ? 0 : steps;
    a.counts[2 * n + 1] = 2 * i + 1;
  }
};

// Whether the state two places before may precede this one: neither is a blank, nor is the label repeated.
__device__ bool skips(const int64_t *symbol, int64_t s) { return s >= 2 && s % 2 == 1 && symbol[s] != symbol[s - 2]; }

__global__ void add_up_placements(CtcArrays a, Elements losses) {
  for (int64_t n = blockIdx.x; n < a.batch; n += gridDim.x) {
    const int64_t steps = a.counts[2 * n], states = a.counts[2 * n + 1], width = a.states();
    const int64_t *const symbol = a.symbol + n * width;
    int64_t *const next = a.next + n * width, *const first = a.first + n * width;
    double *const alpha = a.alpha + n * a.length * width, *const beta = a.beta + n * 2 * width;
    const auto scores = [&](int64_t t) { return a.scores + (t * a.batch + n) * a.classes; };
    for (int64_t s = threadIdx.x; s < states; s += blockDim.x) {
      next[s] = -1;
      for (int64_t other = s + 1; other < states && next[s] < 0; ++other) {
        if (symbol[other] == symbol[s]) next[s] = other;
      }
      first[s] = 1;
      for (int64_t other = 0; other < s; ++other) {
        if (symbol[other] == symbol[s]) first[s] = 0;
      }
    }
    for (int64_t t = 0; t < steps; ++t) {
      const double *const before = alpha + (t - 1) * width, *const y = scores(t);
      for (int64_t s = threadIdx.x; s < states; s += blockDim.x) {
        double sum = t == 0 ? (s < 2 ? 0.0 : log_of_zero()) : before[s];
        if (t > 0 && s > 0) sum = log_add(sum, before[s - 1]);
        if (t > 0 && skips(symbol, s)) sum = log_add(sum, before[s - 2]);
        alpha[t * width + s] = sum + y[symbol[s]];
      }
      __syncthreads();
    }
    const double *const last = alpha + (steps - 1) * width;
    const double total = steps == 0 ? 0 : states > 1 ? log_add(last[states - 1], last[states - 2]) : last[0];
    __syncthreads();  // before what all have read is written
    if (threadIdx.x == 0 && losses.data) store(losses, n, steps == 0 ? 0.0 : -total);
    for (int64_t t = steps - 1; t >= 0; --t) {
      double *const now = beta + t % 2 * width;
      const double *const after = beta + (t + 1) % 2 * width;  // with what its step emits
      double *const y = scores(t);
      for (int64_t s = threadIdx.x; s < states; s += blockDim.x) {
        double sum = t == steps - 1 ? (s >= states - 2 ? 0.0 : log_of_zero()) : after[s];
        if (t < steps - 1 && s + 1 < states) sum = log_add(sum, after[s + 1]);
        if (t < steps - 1 && s + 2 < states && skips(symbol, s + 2)) sum = log_add(sum, after[s + 2]);
        alpha[t * width + s] += sum - total;  // now the share of the state, as a logarithm
        now[s] = sum + y[symbol[s]];
      }
      __syncthreads();
      for (int64_t c = threadIdx.x; c < a.classes; c += blockDim.x) y[c] = exp(y[c]);
      __syncthreads();
      for (int64_t s = threadIdx.x; s < states; s += blockDim.x) {
        if (!first[s]) continue;
        double share = 0;
        for (int64_t same = s; same >= 0; same = next[same]) share += exp(alpha[t * width + same]);
        y[symbol[s]] -= share;
      }
      __syncthreads();
    }
    for (int64_t i = threadIdx.x; i < (a.length - steps) * a.classes; i += blockDim.x) {
      scores(steps + i / a.classes)[i % a.classes] = 0;
    }
  }
}

class CtcLossCuda final : public Kernel, public ReportsInputErrors {
 public:
  explicit CtcLossCuda(StepSpec &spec) : attrs_(spec.attrs_as<CtcLossAttrs>()), loss_(spec.outputs[0].dtype) {
    const Shape &data = spec.inputs[0].shape;
    a_ = {data[0], data[1], data[2], spec.inputs[1].shape[1], nullptr, nullptr, nullptr, nullptr,
          nullptr, nullptr, nullptr};
    if (a_.classes < 1) throw Error(Code::kShape, text("data: expected classes, found ", data), "data");
    for (const TensorSpec &t : spec.inputs) dtypes_.push_back(t.dtype);
    keeps_ = spec.keep_for_backward;
    const size_t states = size_t(2 * a_.labels + 1), batch = size_t(a_.batch);
    scores_ = book(keeps_ ? spec.saved_bytes : spec.scratch_bytes, size_t(data.size()) * sizeof(double));
    alpha_ = book(spec.scratch_bytes, batch * size_t(a_.length) * states * sizeof(double));
    beta_ = book(spec.scratch_bytes, batch * 2 * states * sizeof(double));
    states_ = book(spec.scratch_bytes, batch * (3 * states + 2) * sizeof(int64_t));
  }

  void run(const Args &args, const Lane &lane) const override {
    const auto at = [](void *memory, size_t place) { return static_cast<char *>(memory) + place; };
    CtcArrays a = a_;
    a.scores = reinterpret_cast<double *>(at(keeps_ ? args.saved : args.scratch, scores_));
    a.alpha = reinterpret_cast<double *>(at(args.scratch, alpha_));
    a.beta = reinterpret_cast<double *>(at(args.scratch, beta_));
    const int64_t states = a.batch * (2 * a.labels + 1);
    a.symbol = reinterpret_cast<int64_t *>(at(args.scratch, states_));
    a.next = a.symbol + states;
    a.first = a.next + states;
    a.counts = a.first + states;
    const auto in = [&](size_t i) { return elements_of(args.inputs[i], dtypes_[i]); };
    const Elements data = in(0), none{nullptr, int64_t(Dtype::kFloat32)};
    CtcLabels labels{in(1), none, none, attrs_.blank_last};
    size_t next = 2;
    if (attrs_.use_data_lengths) labels.data_lengths = in(next++);
    if (attrs_.use_label_lengths) labels.label_lengths = in(next++);
    for_each_row(lane, a.length * a.batch, [=] __device__(int64_t row) {
      const auto x = [=](int64_t c) { return load<double>(data, row * a.classes + c); };
      const double top = largest_along<double>(a.classes, x);
      const double sum = sum_along<double>(a.classes, [=](int64_t c) { return exp(x(c) - top); });
      const double norm = top + log(sum);
      each_along(a.classes, [=](int64_t c) { a.scores[row * a.classes + c] = x(c) - norm; });
    });
    const int64_t each = 2 + a.labels, steps = a.length, most_labels = a.labels, classes = a.classes;
    expect_each(lane, a.batch * each,
                [=] __device__(int64_t i) { return labels.look(i / each, i % each, steps, most_labels, classes); });
    for_each(lane, a.batch, [=] __device__(int64_t n) { labels.read(a, n); });
    if (a.batch == 0) return;
    const Grid grid{dim3(unsigned(std::min<int64_t>(a.batch, 132 * 16))), dim3(kCtcThreads)};
    launch(add_up_placements, grid, lane.stream, a, elements_of(args.outputs[0], loss_));
  }

  std::string in_words(const InputError &c) const override {
    const int64_t n = c.place / (2 + a_.labels), k = c.place % (2 + a_.labels);
    const std::string where = k == 0   ? text("data_lengths[", n, "]")
                              : k == 1 ? text("label_lengths[", n, "]")
                                       : text("label[", n, ", ", k - 2, "]");
    return text(where, ": expected 0 to ", c.most, ", found ", number_of(c.found));
  }

 private:
  const CtcLossAttrs attrs_;
  const Dtype loss_;
  CtcArrays a_;
  std::vector<Dtype> dtypes_;
  bool keeps_;
  size_t scores_, alpha_, beta_, states_;
};

// Each sample's saved gradient times its head gradient.
class CtcLossBackwardCuda final : public Kernel {
 public:
  explicit CtcLossBackwardCuda(const StepSpec &spec)
      : count_(spec.outputs[0].shape.size()),
        batch_(spec.outputs[0].shape[1]),
        classes_(spec.outputs[0].shape[2]),
        head_(spec.inputs[0].dtype),
        grad_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const auto *const saved = static_cast<const double *>(args.saved);
    const Elements head = elements_of(args.inputs[0], head_), grad = elements_of(args.outputs[0], grad_);
    const int64_t batch = batch_, classes = classes_;
    for_each(lane, count_,
             [=] __device__(int64_t i) { store(grad, i, load<double>(head, i / classes % batch) * saved[i]); });
  }

 private:
  const int64_t count_, batch_, classes_;
  const Dtype head_, grad_;
};

COHORT_KERNEL(cuda, CTCLoss, CtcLossCuda);
COHORT_KERNEL(cuda, _backward_CTCLoss, CtcLossBackwardCuda);

}  // namespace
}  // namespace cohort
