// SPDX-License-Identifier: Apache-2.0
// CTCLoss by the forward-backward recursion over labels with blanks between, in logarithms and double, a sample at a
// time. The forward step saves what the gradient needs: softmax minus the share of each class in all alignments.
#include "op/ctc_loss.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cpu/op/pointwise_loops.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

using A = CtcLossAttrs;

constexpr double kZero = -std::numeric_limits<double>::infinity();  // the logarithm of 0

double log_add(double a, double b) {
  const double high = std::max(a, b), low = std::min(a, b);
  return low == kZero ? high : high + std::log1p(std::exp(low - high));
}

struct CtcSizes {
  int64_t length, batch, classes, labels;

  int64_t states() const { return 2 * labels + 1; }
  // Scratch memory of one sample, in doubles: log-softmax, forward variables, backward variables of two steps,
  // emission probabilities of the later step, shares of classes, and the labels with blanks between.
  int64_t scratch() const { return length * classes + length * states() + 4 * states() + classes; }
};

// The recursion for one sample. Its pointers point into scratch memory.
class CtcSample {
 public:
  CtcSample(const CtcSizes &sizes, double *scratch)
      : s_(sizes),
        log_y_(scratch),
        alpha_(log_y_ + s_.length * s_.classes),
        beta_(alpha_ + s_.length * s_.states()),
        emitted_(beta_ + 2 * s_.states()),
        symbol_(emitted_ + s_.states()),
        share_(symbol_ + s_.states()) {}

  double *scores() const { return log_y_; }  // (length, classes), filled in by the caller
  double *symbols() const { return symbol_; }

  // Returns the loss for `steps` steps and `labels` labels; leaves softmax minus shares in scores(), with zeros
  // behind the steps. Labels that do not fit into the steps have loss 0.
  double run(int64_t steps, int64_t labels) {
    const int64_t states = 2 * labels + 1;
    int64_t repeats = 0;
    for (int64_t s = 3; s < states; s += 2) repeats += symbol_[s] == symbol_[s - 2];
    if (labels + repeats > steps || steps == 0) {
      std::fill_n(log_y_, s_.length * s_.classes, 0.0);
      return 0;
    }
    for (int64_t t = 0; t < steps; ++t) normalise(log_y_ + t * s_.classes);
    forward(steps, states);
    const double *last = alpha_ + (steps - 1) * s_.states();
    const double total = states > 1 ? log_add(last[states - 1], last[states - 2]) : last[0];
    backward(steps, states, total);
    std::fill_n(log_y_ + steps * s_.classes, (s_.length - steps) * s_.classes, 0.0);
    return -total;
  }

 private:
  void normalise(double *row) const {
    const double top = *std::max_element(row, row + s_.classes);
    double sum = 0;
    for (int64_t c = 0; c < s_.classes; ++c) sum += std::exp(row[c] - top);
    const double norm = top + std::log(sum);
    for (int64_t c = 0; c < s_.classes; ++c) row[c] -= norm;
  }
  int64_t symbol(int64_t state) const { return int64_t(symbol_[state]); }
  // Whether the state two before can directly precede this one: it is neither a blank nor a repeated label.
  bool skips(int64_t s) const { return s >= 2 && s % 2 == 1 && symbol_[s] != symbol_[s - 2]; }

  void forward(int64_t steps, int64_t states) {
    for (int64_t t = 0; t < steps; ++t) {
      double *const now = alpha_ + t * s_.states();
      const double *const before = now - s_.states();
      for (int64_t s = 0; s < states; ++s) {
        double sum = t == 0 ? (s < 2 ? 0.0 : kZero) : before[s];
        if (t > 0 && s > 0) sum = log_add(sum, before[s - 1]);
        if (t > 0 && skips(s)) sum = log_add(sum, before[s - 2]);
        now[s] = sum + log_y_[t * s_.classes + symbol(s)];
      }
    }
  }

  void backward(int64_t steps, int64_t states, double total) {
    double *now = beta_, *after = beta_ + s_.states();
    for (int64_t t = steps - 1; t >= 0; --t, std::swap(now, after)) {
      double *const row = log_y_ + t * s_.classes;
      const auto come = [&](int64_t s) { return after[s] + emitted_[s]; };
      for (int64_t s = 0; s < states; ++s) {
        double sum = t == steps - 1 ? (s >= states - 2 ? 0.0 : kZero) : come(s);
        if (t < steps - 1 && s + 1 < states) sum = log_add(sum, come(s + 1));
        if (t < steps - 1 && s + 2 < states && skips(s + 2)) sum = log_add(sum, come(s + 2));
        now[s] = sum;
      }
      for (int64_t s = 0; s < states; ++s) emitted_[s] = row[symbol(s)];  // before the row becomes the gradient
      std::fill_n(share_, s_.classes, 0.0);
      for (int64_t s = 0; s < states; ++s) {
        share_[symbol(s)] += std::exp(alpha_[t * s_.states() + s] + now[s] - total);
      }
      for (int64_t c = 0; c < s_.classes; ++c) row[c] = std::exp(row[c]) - share_[c];
    }
  }

  const CtcSizes s_;
  double *const log_y_, *const alpha_, *const beta_, *const emitted_, *const symbol_, *const share_;
};

class CtcForward final : public Kernel {
 public:
  explicit CtcForward(StepSpec &spec)
      : a_(spec.attrs_as<A>()),
        s_{spec.inputs[0].shape[0], spec.inputs[0].shape[1], spec.inputs[0].shape[2], spec.inputs[1].shape[1]},
        keeps_(spec.keep_for_backward),
        store_(store_block(Dtype::kFloat64, spec.inputs[0].dtype)) {
    if (s_.classes < 1) throw Error(Code::kShape, text("data: expected classes, found ", spec.inputs[0].shape), "data");
    for (const TensorSpec &t : spec.inputs) load_.push_back(load_block(t.dtype, Dtype::kFloat64));
    spec.scratch_bytes = size_t(std::min<int64_t>(s_.batch, spec.num_threads) * s_.scratch()) * sizeof(double);
    if (keeps_) spec.saved_bytes = size_t(spec.inputs[0].shape.size()) * sizeof(double);
  }

  void run(const Args &args, const Lane &lane) const override {
    parallel_ranges(lane, s_.batch, 1, [&](int64_t range, int64_t begin, int64_t end) {
      double *const scratch = static_cast<double *>(args.scratch) + range * s_.scratch();
      for (int64_t n = begin; n < end; ++n) one(args, n, scratch);
    });
  }

 private:
  double read(const Args &args, size_t input, int64_t at) const {
    double value = 0;
    load_[input](args.inputs[input], at, &value, 1);
    return value;
  }
  // Reads a length from an input, which must be 0 to `most`.
  int64_t read_length(const Args &args, size_t input, const char *name, int64_t n, int64_t most) const {
    const double value = read(args, input, n);
    if (value >= 0 && value <= double(most)) return int64_t(value);
    throw Error(Code::kExecution, text(name, "[", n, "]: expected 0 to ", most, ", found ", value));
  }
  // Writes sample n's labels with blanks between into `symbols`; returns the number of labels.
  int64_t read_labels(const Args &args, int64_t n, double *symbols) const {
    const double blank = a_.blank_last ? double(s_.classes - 1) : 0, padding = a_.blank_last ? -1 : 0;
    int64_t count = s_.labels;
    if (a_.use_label_lengths) {
      count = read_length(args, a_.use_data_lengths ? 3 : 2, "label_lengths", n, s_.labels);
    }
    int64_t i = 0;
    for (; i < count; ++i) {
      const double label = std::trunc(read(args, 1, n * s_.labels + i));
      if (!a_.use_label_lengths && label == padding) break;
      if (!(label >= 0 && label < double(s_.classes))) {
        throw Error(Code::kExecution,
                    text("label[", n, ", ", i, "]: expected 0 to ", s_.classes - 1, ", found ", label));
      }
      symbols[2 * i] = blank;
      symbols[2 * i + 1] = label;
    }
    symbols[2 * i] = blank;
    return i;
  }

  void one(const Args &args, int64_t n, double *scratch) const {
    CtcSample sample(s_, scratch);
    for (int64_t t = 0; t < s_.length; ++t) {
      load_[0](args.inputs[0], (t * s_.batch + n) * s_.classes, sample.scores() + t * s_.classes, s_.classes);
    }
    const int64_t steps = a_.use_data_lengths ? read_length(args, 2, "data_lengths", n, s_.length) : s_.length;
    const int64_t labels = read_labels(args, n, sample.symbols());
    const double loss = sample.run(steps, labels);
    if (args.outputs[0]) store_(&loss, args.outputs[0], n, 1);
    if (!keeps_) return;
    double *const saved = static_cast<double *>(args.saved);
    for (int64_t t = 0; t < s_.length; ++t) {
      std::copy_n(sample.scores() + t * s_.classes, s_.classes, saved + (t * s_.batch + n) * s_.classes);
    }
  }

  const A a_;
  const CtcSizes s_;
  const bool keeps_;
  const StoreBlock store_;
  std::vector<LoadBlock> load_;
};

// Multiplies each sample's saved gradient by its head gradient.
class CtcBackward final : public Kernel {
 public:
  explicit CtcBackward(StepSpec &spec)
      : length_(spec.outputs[0].shape[0]),
        batch_(spec.outputs[0].shape[1]),
        classes_(spec.outputs[0].shape[2]),
        load_(load_block(spec.inputs[0].dtype, Dtype::kFloat64)),
        store_(store_block(Dtype::kFloat64, spec.outputs[0].dtype)) {}

  void run(const Args &args, const Lane &lane) const override {
    double *const saved = static_cast<double *>(args.saved);
    parallel_for(lane, length_ * batch_, 1 + 16384 / (classes_ + 1), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        double head = 0, block[kPointwiseBlock];
        load_(args.inputs[0], row % batch_, &head, 1);
        for (int64_t c = 0; c < classes_; c += kPointwiseBlock) {
          const int64_t count = std::min(kPointwiseBlock, classes_ - c), at = row * classes_ + c;
          for (int64_t i = 0; i < count; ++i) block[i] = head * saved[at + i];
          store_(block, args.outputs[0], at, count);
        }
      }
    });
  }

 private:
  const int64_t length_, batch_, classes_;
  const LoadBlock load_;
  const StoreBlock store_;
};

COHORT_KERNEL(cpu, CTCLoss, CtcForward);
COHORT_KERNEL(cpu, _backward_CTCLoss, CtcBackward);

}  // namespace
}  // namespace cohort
