// SPDX-License-Identifier: Apache-2.0
// Fourier transforms of any length, in double whatever the type of the arrays.
#include "op/spectral.hpp"

#include <algorithm>
#include <vector>

#include "cpu/op/cpu_backend.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"
#include "kernels/spectral_math.hpp"

namespace cohort {
namespace {

using spectral::Complex;

// A transform by butterflies, of a power of two.
class Butterflies {
 public:
  explicit Butterflies(int64_t n) : n_(n) {
    for (int64_t k = 0; k < n / 2; ++k) turns_.push_back(spectral::turn(2 * k, n));
  }
  int64_t size() const { return n_; }
  void run(Complex *x) const {
    for (int64_t i = 1, j = 0; i < n_; ++i) {
      int64_t bit = n_ >> 1;
      for (; j & bit; bit >>= 1) j ^= bit;
      j ^= bit;
      if (i < j) std::swap(x[i], x[j]);
    }
    for (int64_t width = 2; width <= n_; width *= 2) {
      for (int64_t first = 0; first < n_; first += width) {
        for (int64_t k = 0; k < width / 2; ++k) {
          const Complex a = x[first + k], b = x[first + k + width / 2] * turns_[size_t(k * (n_ / width))];
          x[first + k] = a + b;
          x[first + k + width / 2] = a - b;
        }
      }
    }
  }

 private:
  const int64_t n_;
  std::vector<Complex> turns_;
};

// x_k = sum of x_j e^(-2 pi i j k / n).
class Transform {
 public:
  explicit Transform(int64_t n)
      : n_(n), butterflies_(spectral::transform_length(n)), direct_(butterflies_.size() == n) {
    if (direct_) return;
    filter_.assign(size_t(butterflies_.size()), Complex{0, 0});
    for (int64_t k = 0; k < n; ++k) {
      chirp_.push_back(spectral::chirp(k, n));
      filter_[size_t(k)] = filter_[size_t((butterflies_.size() - k) % butterflies_.size())] = chirp_.back().conjugate();
    }
    butterflies_.run(filter_.data());
  }
  int64_t work() const { return butterflies_.size(); }  // numbers that run() needs; the first n are data and result
  void run(Complex *x) const {
    if (direct_) return butterflies_.run(x);
    const int64_t m = butterflies_.size();
    for (int64_t k = 0; k < n_; ++k) x[k] = x[k] * chirp_[size_t(k)];
    std::fill(x + n_, x + m, Complex{0, 0});
    butterflies_.run(x);
    for (int64_t k = 0; k < m; ++k) x[k] = (x[k] * filter_[size_t(k)]).conjugate();
    butterflies_.run(x);                 // of the conjugate, which gives the inverse
    const double share = 1 / double(m);  // of a power of two, so it is exact
    for (int64_t k = 0; k < n_; ++k) x[k] = Complex{x[k].real * share, -x[k].imag * share} * chirp_[size_t(k)];
  }

 private:
  const int64_t n_;
  const Butterflies butterflies_;
  const bool direct_;
  std::vector<Complex> chirp_, filter_;
};

// kForward: from real numbers to pairs. Else from pairs to the real parts of the inverse. Each is the gradient of the
// other.
template <bool kForward>
class Spectrum final : public Kernel {
 public:
  explicit Spectrum(StepSpec &spec)
      : length_(spec.inputs[0].shape[spec.inputs[0].shape.rank() - 1] / (kForward ? 1 : 2)),
        rows_(length_ > 0 ? spec.inputs[0].shape.size() / length_ / (kForward ? 1 : 2) : 0),
        transform_(std::max<int64_t>(length_, 1)),
        load_(load_block(spec.inputs[0].dtype, Dtype::kFloat64)),
        store_(store_block(Dtype::kFloat64, spec.outputs[0].dtype)) {
    spec.scratch_bytes = size_t(std::min<int64_t>(rows_, spec.num_threads) * row_bytes());
  }
  void run(const Args &args, const Lane &lane) const override {
    parallel_ranges(lane, rows_, 1 + kExpensiveGrain / (length_ + 1), [&](int64_t range, int64_t begin, int64_t end) {
      auto *const x = reinterpret_cast<Complex *>(static_cast<char *>(args.scratch) + range * row_bytes());
      for (int64_t row = begin; row < end; ++row) {
        auto *const numbers = reinterpret_cast<double *>(x + transform_.work());
        load_(args.inputs[0], row * in_width(), numbers, in_width());
        for (int64_t k = 0; k < length_; ++k) {
          x[k] = kForward ? Complex{numbers[k], 0} : Complex{numbers[2 * k], -numbers[2 * k + 1]};
        }
        transform_.run(x);
        for (int64_t k = 0; k < length_; ++k) {
          if (kForward) {
            numbers[2 * k] = x[k].real;
            numbers[2 * k + 1] = x[k].imag;
          } else {
            numbers[k] = x[k].real;
          }
        }
        store_(numbers, args.outputs[0], row * out_width(), out_width());
      }
    });
  }

 private:
  int64_t in_width() const { return kForward ? length_ : 2 * length_; }
  int64_t out_width() const { return kForward ? 2 * length_ : length_; }
  int64_t row_bytes() const {
    return transform_.work() * int64_t(sizeof(Complex)) + 2 * length_ * int64_t(sizeof(double));
  }

  const int64_t length_, rows_;
  const Transform transform_;
  const LoadBlock load_;
  const StoreBlock store_;
};

// out[h[j]] += s[j] x[j]; backward dx[j] = s[j] dout[h[j]].
template <typename C, bool kBackward>
class Sketch {
 public:
  explicit Sketch(const StepSpec &spec)
      : places_(spec.attrs_as<CountSketchAttrs>().out_dim),
        width_(spec.inputs[1].shape.size()),
        rows_((kBackward ? spec.inputs : spec.outputs)[0].shape.size() / places_) {}
  size_t extra() const { return 0; }
  void run(const C *const *in, C *const *out, C *, const Lane &lane) const {
    for (int64_t j = 0; j < width_; ++j) {
      if (in[1][j] >= 0 && in[1][j] < C(places_)) continue;
      throw Error(Code::kExecution, text("h[", j, "]: expected 0 to ", places_ - 1, ", found ", in[1][j]), "h");
    }
    parallel_for(lane, rows_, 1 + kCheapGrain / (width_ + places_), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        if (!kBackward) std::fill_n(out[0] + row * places_, places_, C(0));
        for (int64_t j = 0; j < width_; ++j) {
          const int64_t place = row * places_ + int64_t(in[1][j]), at = row * width_ + j;
          if (kBackward) {
            out[0][at] = in[2][j] * in[0][place];
          } else {
            out[0][place] += in[2][j] * in[0][at];
          }
        }
      }
    });
  }

 private:
  const int64_t places_, width_, rows_;
};

template <typename C>
using SketchForward = Sketch<C, false>;
template <typename C>
using SketchBackward = Sketch<C, true>;

COHORT_KERNEL(cpu, _contrib_fft, Spectrum<true>).dtypes(kFloatTypes);
COHORT_KERNEL(cpu, _backward__contrib_fft, Spectrum<false>);
COHORT_KERNEL(cpu, _contrib_ifft, Spectrum<false>).dtypes(kFloatTypes);
COHORT_KERNEL(cpu, _backward__contrib_ifft, Spectrum<true>);
COHORT_KERNEL_BY(cpu, _contrib_count_sketch, make_compute<SketchForward>).dtypes(kFloatTypes);
COHORT_KERNEL_BY(cpu, _backward__contrib_count_sketch, make_compute<SketchBackward>);

}  // namespace
}  // namespace cohort
