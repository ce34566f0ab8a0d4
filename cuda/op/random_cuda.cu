// SPDX-License-Identifier: Apache-2.0
// Random numbers by the CPU's counters: number i of draw r is a function of seed, r and i alone. Dropout, too. Uniform
// ones, integers and masks are the CPU's own; others go through the device's functions, which may round otherwise.
#include <algorithm>
#include <cmath>

#include "cuda/cuda_layout.hpp"
#include "cuda/op/elements.cuh"
#include "device/kernel_table.hpp"
#include "device/run_value.hpp"
#include "op/dropout.hpp"
#include "op/random_choice.hpp"
#include "op/random_draws.hpp"
#include "op/random_math.hpp"

namespace cohort {
namespace {

__device__ inline Dice dice_of(const RandomStream &drawn, uint64_t i) { return Dice(drawn.seed, drawn.draws, i); }

// Number i with these parameters; `kept` says how many values a uniform number has, 0: all.
template <typename D, typename C>
__device__ C number_of(const RandomStream &drawn, int64_t i, double a, double b, C kept) {
  if constexpr (D::kSource == draw::RandomSource::kDice) {
    Dice dice = dice_of(drawn, uint64_t(i));
    return C(D::of(dice, a, b));
  } else {
    constexpr int64_t kPerBlock = sizeof(C) == 4 ? 4 : 2;
    const Philox random = Philox::at(drawn.seed, uint64_t(i / kPerBlock), drawn.draws);
    C numbers[kPerBlock];
    if constexpr (D::kSource == draw::RandomSource::kNormal) {
      normals_of(random, numbers);
    } else {
      units_of(random, numbers);
    }
    C number = numbers[i % kPerBlock];
    if (D::kSource == draw::RandomSource::kUnit && kept != C(0)) number = std::floor(number * kept) / kept;
    return D::of(number, C(a), C(b));
  }
}

template <typename D, typename C>
class DrawCuda final : public Kernel {
 public:
  DrawCuda(const StepSpec &spec, bool from_arrays)
      : count_(spec.outputs[0].shape.size()), dtype_(spec.outputs[0].dtype) {
    if (from_arrays) {
      num_arrays_ = std::min<int>(2, int(spec.inputs.size()));
      for (int i = 0; i < num_arrays_; ++i) dtypes_[i] = spec.inputs[size_t(i)].dtype;
      each_ = count_ / std::max<int64_t>(spec.inputs[0].shape.size(), 1);
    } else {
      values_[0] = double(spec.attrs_as<DrawAttrs>().a), values_[1] = double(spec.attrs_as<DrawAttrs>().b);
    }
  }

  void run(const Args &args, const Lane &lane) const override {
    const auto draw = next_draw(args, lane);
    const Elements out = elements_of(args.outputs[0], dtype_);
    const Elements first = elements_of(num_arrays_ > 0 ? args.inputs[0] : nullptr, dtypes_[0]);
    const Elements second = elements_of(num_arrays_ > 1 ? args.inputs[1] : nullptr, dtypes_[1]);
    const double a_value = values_[0], b_value = values_[1];
    const int64_t each = each_;
    const C kept = C(draw::kept_values(dtype_));
    for_each(lane, count_, [=] __device__(int64_t i) {
      const double a = first.data ? load<double>(first, i / each) : a_value;
      const double b = second.data ? load<double>(second, i / each) : b_value;
      if (!D::fits(a, b)) return store(out, i, C(NAN));
      store(out, i, number_of<D, C>(draw.get(), i, a, b, kept));
    });
  }

 private:
  const int64_t count_;
  const Dtype dtype_;
  int num_arrays_ = 0;  // of parameters
  Dtype dtypes_[2] = {};
  double values_[2] = {0, 0};
  int64_t each_ = 1;  // so many numbers have the parameters of one element
};

template <typename D, bool kFromArrays>
std::unique_ptr<Kernel> make_draw(StepSpec &spec) {
  if (spec.outputs[0].dtype == Dtype::kFloat64) return std::make_unique<DrawCuda<D, double>>(spec, kFromArrays);
  return std::make_unique<DrawCuda<D, float>>(spec, kFromArrays);
}

class RandintCuda final : public Kernel {
 public:
  explicit RandintCuda(const StepSpec &spec)
      : low_(spec.attrs_as<RandintAttrs>().low),
        range_(uint64_t(spec.attrs_as<RandintAttrs>().high) - uint64_t(low_)),
        count_(spec.outputs[0].shape.size()),
        dtype_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const auto draw = next_draw(args, lane);
    const uint64_t range = range_;
    const int64_t low = low_;
    const Elements out = elements_of(args.outputs[0], dtype_);
    for_each(lane, count_, [=] __device__(int64_t i) {
      store(out, i, int64_t(uint64_t(low) + dice_of(draw.get(), uint64_t(i)).below(range)));
    });
  }

 private:
  const int64_t low_;
  const uint64_t range_;
  const int64_t count_;
  const Dtype dtype_;
};

const bool registered = [] {
  draw::for_each([](auto distribution, const std::string &name) {
    using D = decltype(distribution);
    cuda_kernels().add("_random_" + name, make_draw<D, false>).output_dtypes(kFloatTypes);
    cuda_kernels().add("_random_" + name + "_like", make_draw<D, false>).output_dtypes(kFloatTypes);
    cuda_kernels().add("_sample_" + name, make_draw<D, true>).output_dtypes(kFloatTypes);
  });
  return true;
}();
COHORT_KERNEL(cuda, _random_randint, RandintCuda);

// ---- choices

// Sums of the probabilities up to each class, in which each number is searched.
class MultinomialCuda final : public Kernel {
 public:
  explicit MultinomialCuda(StepSpec &spec)
      : classes_(spec.inputs[0].shape[spec.inputs[0].shape.rank() - 1]),
        rows_(spec.inputs[0].shape.size() / classes_),
        each_(spec.outputs[0].shape.size() / std::max<int64_t>(rows_, 1)),
        data_(spec.inputs[0].dtype),
        out_(spec.outputs[0].dtype),
        log_(spec.outputs.size() > 1 ? spec.outputs[1].dtype : Dtype::kNone) {
    spec.scratch_bytes = size_t(rows_ * classes_) * sizeof(double);
  }
  void run(const Args &args, const Lane &lane) const override {
    const auto draw = next_draw(args, lane);
    double *const sums = static_cast<double *>(args.scratch);
    const Elements data = elements_of(args.inputs[0], data_), out = elements_of(args.outputs[0], out_);
    const Elements log = elements_of(log_ == Dtype::kNone ? nullptr : args.outputs[1], log_);
    const int64_t classes = classes_, each = each_;
    for_each(lane, rows_, [=] __device__(int64_t row) {
      double sum = 0;
      for (int64_t c = row * classes; c < (row + 1) * classes; ++c) sums[c] = sum += load<double>(data, c);
    });
    for_each(lane, rows_ * each, [=] __device__(int64_t i) {
      const double *const up_to = sums + i / each * classes;
      const double u = dice_of(draw.get(), uint64_t(i)).unit();
      int64_t low = 0, high = classes - 1;
      while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (u < up_to[middle]) {
          high = middle;
        } else {
          low = middle + 1;
        }
      }
      store(out, i, low);
      if (log.data) store(log, i, std::log(load<double>(data, i / each * classes + low)));
    });
  }

 private:
  const int64_t classes_, rows_, each_;
  const Dtype data_, out_, log_;
};

// d log(p) = dp / p, of the classes that were chosen. Inputs: head gradients, data, numbers.
class MultinomialBackwardCuda final : public Kernel {
 public:
  explicit MultinomialBackwardCuda(StepSpec &spec)
      : classes_(spec.inputs[2].shape[spec.inputs[2].shape.rank() - 1]),
        rows_(spec.inputs[2].shape.size() / classes_),
        each_(spec.inputs[3].shape.size() / std::max<int64_t>(rows_, 1)),
        head_(spec.inputs[1].dtype),
        data_(spec.inputs[2].dtype),
        chosen_(spec.inputs[3].dtype),
        out_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const Elements head = elements_of(args.inputs[1], head_), data = elements_of(args.inputs[2], data_);
    const Elements chosen = elements_of(args.inputs[3], chosen_), out = elements_of(args.outputs[0], out_);
    const int64_t classes = classes_, each = each_;
    for_each(lane, rows_ * classes, [=] __device__(int64_t at) {
      const int64_t row = at / classes;
      double sum = 0;
      for (int64_t i = row * each; i < (row + 1) * each; ++i) {
        if (load_index(chosen, i) == at % classes) sum += load<double>(head, i) / load<double>(data, at);
      }
      store(out, at, sum);
    });
  }

 private:
  const int64_t classes_, rows_, each_;
  const Dtype head_, data_, chosen_, out_;
};

// An order by exchanges from the last part on, which is one thread's work, then one copy of each part.
class ShuffleCuda final : public Kernel {
 public:
  explicit ShuffleCuda(StepSpec &spec)
      : parts_(spec.inputs[0].shape[0]),
        width_(parts_ > 0 ? spec.inputs[0].shape.size() / parts_ : 0),
        dtype_(spec.inputs[0].dtype) {
    spec.scratch_bytes = size_t(parts_) * sizeof(int64_t);
  }
  void run(const Args &args, const Lane &lane) const override {
    const auto draw = next_draw(args, lane);
    int64_t *const order = static_cast<int64_t *>(args.scratch);
    const int64_t parts = parts_, width = width_;
    for_each(lane, 1, [=] __device__(int64_t) {
      for (int64_t i = 0; i < parts; ++i) order[i] = i;
      Dice dice = dice_of(draw.get(), 0);
      for (int64_t i = parts - 1; i > 0; --i) {
        const int64_t other = int64_t(dice.below(uint64_t(i) + 1)), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
      }
    });
    const Cells from = cells_of(args.inputs[0], dtype_), to = cells_of(args.outputs[0], dtype_);
    for_each(lane, parts * width,
             [=] __device__(int64_t i) { move_cell(to, i, from, order[i / width] * width + i % width); });
  }

 private:
  const int64_t parts_, width_;
  const Dtype dtype_;
};

// Numbers that were drawn already are found in a table of the row's own, of twice as many places or more.
class ZipfianCuda final : public Kernel {
 public:
  explicit ZipfianCuda(StepSpec &spec)
      : rows_(spec.outputs[0].shape[0]),
        cols_(spec.outputs[0].shape[1]),
        log_range_(std::log(double(spec.attrs_as<ZipfianAttrs>().range_max) + 1)),
        range_(spec.attrs_as<ZipfianAttrs>().range_max) {
    while (places_ < 2 * cols_) places_ *= 2;
    spec.scratch_bytes = size_t(rows_ * places_) * sizeof(int32_t);
  }
  void run(const Args &args, const Lane &lane) const override {
    const auto draw = next_draw(args, lane);
    const int64_t cols = cols_, range = range_, places = places_;
    const double log_range = log_range_;
    int64_t *const numbers = args.out<int64_t>(0), *const tries_out = args.out<int64_t>(1);
    int32_t *const tables = static_cast<int32_t *>(args.scratch);
    for_each(lane, rows_, [=] __device__(int64_t row) {
      Dice dice = dice_of(draw.get(), uint64_t(row) << 12);
      int32_t *const table = tables + row * places;
      for (int64_t i = 0; i < places; ++i) table[i] = -1;
      int64_t tries = 0;
      for (int64_t found = 0; found < cols;) {
        const auto drawn = int64_t(std::exp(dice.unit() * log_range)) - 1;
        const auto number = int32_t(drawn < 0 ? 0 : drawn < range ? drawn : range - 1);
        ++tries;
        int64_t place = int64_t(uint32_t(number) * 2654435761u) % places;
        while (table[place] >= 0 && table[place] != number) place = (place + 1) % places;
        if (table[place] == number) continue;
        table[place] = number;
        numbers[row * cols + found++] = number;
      }
      if (tries_out) tries_out[row] = tries;
    });
  }

 private:
  const int64_t rows_, cols_;
  const double log_range_;
  const int64_t range_;
  int64_t places_ = 1;
};

COHORT_KERNEL(cuda, _sample_multinomial, MultinomialCuda).dtypes(kFloatTypes);
COHORT_KERNEL(cuda, _backward__sample_multinomial, MultinomialBackwardCuda);
COHORT_KERNEL(cuda, _shuffle, ShuffleCuda);
COHORT_KERNEL(cuda, _sample_unique_zipfian, ZipfianCuda);

// ---- Dropout

// Where each element finds its draw in the mask, which has length 1 along the axes that drop together, and is row-major
// however the elements lie: draws are the same then.
struct MaskIndex {
  int64_t num_axes = 0, size = 1;
  int64_t channels = 0, places = 1;  // of images whose channels lie last; 0 channels: row-major
  bool whole = true;                 // one draw an element
  int64_t lengths[kMaxAxes], strides[kMaxAxes];

  MaskIndex(const TensorSpec &tensor, const Tuple &axes) {
    const Shape &shape = tensor.shape;
    if (lies_channels_last(tensor)) channels = shape[1], places = shape.size(2, shape.rank());
    std::fill_n(strides, kMaxAxes, int64_t(-1));
    for (int64_t axis : axes) strides[normalize_axis(axis, shape.rank(), "Dropout")] = 0;
    num_axes = shape.rank();
    for (int i = shape.rank(); i-- > 0;) {
      lengths[i] = shape[i];
      whole = whole && strides[i] < 0;
      if (strides[i] == 0) continue;
      strides[i] = size;
      size *= lengths[i];
    }
  }
  // Of the i-th element as they lie.
  __device__ int64_t of(int64_t i) const {
    int64_t element = i;
    if (channels > 0) {
      const int64_t place = i / channels;
      element = (place / places * channels + i % channels) * places + place % places;
    }
    if (whole) return element;
    int64_t index = 0;
    for (int i = int(num_axes); i-- > 0;) {
      index += element % lengths[i] * strides[i];
      element /= lengths[i];
    }
    return index;
  }
};

// out = in * mask / (1 - p); mask holds a byte a draw. Forward and backward alike.
template <typename C>
void apply_mask(const Lane &lane, int64_t count, const MaskIndex &index, const uint8_t *mask, float scale,
                const Elements &in, const Elements &out) {
  for_each(lane, count,
           [=] __device__(int64_t i) { store(out, i, mask[index.of(i)] ? load<C>(in, i) * C(scale) : C(0)); });
}

template <typename C, bool kBackward>
class DropoutCuda final : public Kernel {
 public:
  explicit DropoutCuda(StepSpec &spec)
      : count_(spec.outputs[0].shape.size()),
        index_(spec.inputs[0], spec.attrs_as<DropoutAttrs>().axes),
        dtype_(spec.outputs[0].dtype),
        scale_(spec.attrs_as<DropoutAttrs>().p < 1 ? 1 / (1 - spec.attrs_as<DropoutAttrs>().p) : 0),
        threshold_(uint64_t((1.0 - double(spec.attrs_as<DropoutAttrs>().p)) * 4294967296.0)),
        saved_(kBackward || spec.keep_for_backward) {
    if (!kBackward) (saved_ ? spec.saved_bytes : spec.scratch_bytes) = size_t(index_.size);
  }
  void run(const Args &args, const Lane &lane) const override {
    uint8_t *const mask = static_cast<uint8_t *>(saved_ ? args.saved : args.scratch);
    if constexpr (!kBackward) {
      const auto draw = next_draw(args, lane);
      const uint64_t threshold = threshold_;
      for_each(lane, index_.size, [=] __device__(int64_t i) {
        const RandomStream drawn = draw.get();
        mask[i] = Philox::at(drawn.seed, uint64_t(i / 4), drawn.draws).word[i % 4] < threshold;
      });
    }
    apply_mask<C>(lane, count_, index_, mask, scale_, elements_of(args.inputs[0], dtype_),
                  elements_of(args.outputs[0], dtype_));
  }

 private:
  const int64_t count_;
  const MaskIndex index_;
  const Dtype dtype_;
  const float scale_;
  const uint64_t threshold_;
  const bool saved_;
};

class IdentityCuda final : public Kernel {
 public:
  explicit IdentityCuda(const StepSpec &spec) : bytes_(spec.outputs[0].bytes()) {}
  void run(const Args &args, const Lane &lane) const override {
    if (bytes_ == 0 || args.inputs[0] == args.outputs[0]) return;
    CUDA_CHECK(cudaMemcpyAsync(args.outputs[0], args.inputs[0], bytes_, cudaMemcpyDeviceToDevice,
                               static_cast<cudaStream_t>(lane.stream)));
  }

 private:
  const size_t bytes_;
};

template <bool kBackward>
std::unique_ptr<Kernel> make_dropout(StepSpec &spec) {
  const auto &attrs = spec.attrs_as<DropoutAttrs>();
  spec.outputs[0].layout = spec.inputs[0].layout;  // head gradient and gradient of the backward step alike
  if (attrs.p <= 0 || !(spec.is_train || attrs.mode == DropoutAttrs::kAlways)) {
    return std::make_unique<IdentityCuda>(spec);
  }
  return dispatch_compute(spec.outputs[0].dtype, false, [&](auto c) -> std::unique_ptr<Kernel> {
    if constexpr (std::is_floating_point_v<decltype(c)>) {
      return std::make_unique<DropoutCuda<decltype(c), kBackward>>(spec);
    }
    return nullptr;
  });
}

COHORT_KERNEL_BY(cuda, Dropout, make_dropout<false>).any_layout();
COHORT_KERNEL_BY(cuda, _backward_Dropout, make_dropout<true>).any_layout();

}  // namespace
}  // namespace cohort
