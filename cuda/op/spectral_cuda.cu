// SPDX-License-Identifier: Apache-2.0
// The operators of op/spectral.hpp. A transform takes one launch per width of butterflies, over many rows at once, in
// double.
#include "op/spectral.hpp"

#include <algorithm>

#include "cuda/op/cuda_backend.cuh"
#include "cuda/op/expected.cuh"
#include "cuda/op/sorting.cuh"
#include "kernels/scratch_layout.hpp"
#include "kernels/spectral_math.hpp"
#include "op/checked_length.hpp"

namespace cohort {
namespace {

using spectral::Complex;

// Rows of m = 2^bits numbers, in bit-reversed order before the butterflies.
struct SpectrumRows {
  Complex *x;
  const Complex *turns;  // e^(-2 pi i k / m) for k < m / 2
  int64_t rows, m, bits;

  int64_t size() const { return rows * m; }
  COHORT_HOST_DEVICE int64_t place(int64_t i) const {
    const int64_t k = i & (m - 1);
    uint64_t turned = 0;
    for (int64_t bit = 0; bit < bits; ++bit) turned |= uint64_t(k >> bit & 1) << (bits - 1 - bit);
    return i - k + int64_t(turned);
  }
  void transform(const Lane &lane) const {
    const SpectrumRows r = *this;
    for (int64_t half = 1; half < m; half *= 2) {
      const int64_t step = m / (2 * half);
      for_each(lane, size() / 2, [=] __device__(int64_t i) {
        const int64_t k = i & (half - 1);
        Complex *const at = r.x + (i - k) * 2 + k;
        const Complex a = at[0], b = at[half] * r.turns[k * step];
        at[0] = a + b;
        at[half] = a - b;
      });
    }
  }
};

// kForward: real numbers to complex pairs; else pairs to the real parts of the inverse. Each is the other's gradient.
template <bool kForward>
class SpectrumCuda final : public Kernel {
 public:
  explicit SpectrumCuda(StepSpec &spec)
      : n_(spec.inputs[0].shape[spec.inputs[0].shape.rank() - 1] / (kForward ? 1 : 2)),
        rows_(n_ > 0 ? spec.inputs[0].shape.size() / n_ / (kForward ? 1 : 2) : 0),
        m_(spectral::transform_length(std::max<int64_t>(n_, 1))),
        together_(std::min(rows_, std::max<int64_t>(1, kTogether / m_))),
        dtype_(spec.inputs[0].dtype) {
    while (int64_t(1) << bits_ < m_) ++bits_;
    const auto numbers = [&](int64_t count) {
      return book(spec.scratch_bytes, size_t(checked_times(count, int64_t(sizeof(Complex)))));
    };
    turns_at_ = numbers(m_ / 2);
    if (m_ != n_) {
      chirp_at_ = numbers(n_);
      filter_at_ = numbers(m_);
    }
    rows_at_ = numbers(checked_times(together_, m_));
  }

  void run(const Args &args, const Lane &lane) const override {
    if (rows_ == 0) return;
    char *const room = static_cast<char *>(args.scratch);
    const auto at = [=](size_t offset) { return reinterpret_cast<Complex *>(room + offset); };
    Complex *const turns = at(turns_at_), *const chirps = m_ == n_ ? nullptr : at(chirp_at_),
                   *const filter = m_ == n_ ? nullptr : at(filter_at_);
    make_tables(lane, turns, chirps, filter);
    const Elements from = elements_of(args.inputs[0], dtype_), to = elements_of(args.outputs[0], dtype_);
    for (int64_t first = 0; first < rows_; first += together_) {
      const SpectrumRows rows{at(rows_at_), turns, std::min(together_, rows_ - first), m_, bits_};
      load_rows(lane, from, first, chirps, rows);
      rows.transform(lane);
      if (filter) {
        convolve(lane, filter, rows);
        rows.transform(lane);
      }
      store_rows(lane, rows, chirps, to, first);
    }
  }

  void make_tables(const Lane &lane, Complex *turns, Complex *chirps, Complex *filter) const {
    const int64_t n = n_, m = m_;
    for_each(lane, m / 2, [=] __device__(int64_t k) { turns[k] = spectral::turn(2 * k, m); });
    if (!filter) return;
    for_each(lane, n, [=] __device__(int64_t k) { chirps[k] = spectral::chirp(k, n); });
    const SpectrumRows row{filter, turns, 1, m, bits_};
    for_each(lane, m, [=] __device__(int64_t k) {
      const int64_t distance = k < n ? k : m - k;
      row.x[row.place(k)] = distance < n ? chirps[distance].conjugate() : Complex{0, 0};
    });
    row.transform(lane);
  }

  void load_rows(const Lane &lane, const Elements &from, int64_t first, const Complex *chirps,
                 const SpectrumRows &rows) const {
    const int64_t n = n_;
    for_each(lane, rows.size(), [=] __device__(int64_t i) {
      const int64_t k = i & (rows.m - 1), number = (first + (i >> rows.bits)) * n + k;
      Complex x{0, 0};
      if (k < n && kForward) x = {load<double>(from, number), 0};
      if (k < n && !kForward) x = {load<double>(from, 2 * number), -load<double>(from, 2 * number + 1)};
      rows.x[rows.place(i)] = chirps && k < n ? x * chirps[k] : x;
    });
  }

  // Multiplies by the filter and brings the places into bit-reversed order, one thread per pair of places. Stores the
  // conjugates: their forward transform is the conjugate of the inverse transform.
  static void convolve(const Lane &lane, const Complex *filter, const SpectrumRows &rows) {
    for_each(lane, rows.size(), [=] __device__(int64_t i) {
      const int64_t j = rows.place(i);
      if (j < i) return;
      const Complex a = rows.x[i] * filter[i & (rows.m - 1)], b = rows.x[j] * filter[j & (rows.m - 1)];
      rows.x[j] = a.conjugate();
      rows.x[i] = b.conjugate();
    });
  }

  void store_rows(const Lane &lane, const SpectrumRows &rows, const Complex *chirps, const Elements &to,
                  int64_t first) const {
    const int64_t n = n_;
    const double share = 1 / double(m_);  // of a power of two: exact
    for_each(lane, rows.rows * n, [=] __device__(int64_t i) {
      const int64_t k = i % n, number = first * n + i;
      Complex x = rows.x[i / n * rows.m + k];
      if (chirps) x = Complex{x.real * share, -x.imag * share} * chirps[k];
      store(to, kForward ? 2 * number : number, x.real);
      if (kForward) store(to, 2 * number + 1, x.imag);
    });
  }

 private:
  static constexpr int64_t kTogether = int64_t(1) << 22;  // numbers: 64 MiB
  const int64_t n_, rows_, m_, together_;
  int64_t bits_ = 0;
  const Dtype dtype_;
  size_t turns_at_, chirp_at_ = 0, filter_at_ = 0, rows_at_;
};

// out[h[j]] += s[j] x[j], in the order of j: each place finds its numbers in a list sorted by place. Numbers without a
// place are left out. Inputs: data, h, s.
template <typename C>
class SketchForward {
 public:
  explicit SketchForward(const StepSpec &spec)
      : places_(spec.attrs_as<CountSketchAttrs>().out_dim),
        width_(spec.inputs[1].shape.size()),
        rows_(spec.outputs[0].shape.size() / places_) {}
  size_t extra() const { return size_t(2 * width_ * kItem + (places_ + 1) * int64_t(sizeof(int64_t) / sizeof(C))); }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *extra, const Lane &lane) const {
    const int64_t places = places_, width = width_;
    auto *const items = reinterpret_cast<Ranked<int64_t> *>(extra);
    auto *const starts = reinterpret_cast<int64_t *>(items + 2 * width);
    for_each(lane, width, [=] __device__(int64_t j) {
      const double place = double(in[1][j]);
      items[j] = {place >= 0 && place < double(places) ? int64_t(place) : places, j};
    });
    const Ranked<int64_t> *const sorted = sort_rows<true>(lane, items, items + width, 1, width);
    for_each(lane, places + 1, [=] __device__(int64_t place) {
      int64_t low = 0, high = width;
      while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (sorted[middle].key < place) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      starts[place] = low;
    });
    for_each(lane, rows_ * places, [=] __device__(int64_t i) {
      const C *const x = in[0] + i / places * width;
      C sum = 0;
      for (int64_t k = starts[i % places]; k < starts[i % places + 1]; ++k) {
        sum += in[2][sorted[k].index] * x[sorted[k].index];
      }
      out[0][i] = sum;
    });
  }

 private:
  static constexpr int64_t kItem = int64_t(sizeof(Ranked<int64_t>) / sizeof(C));
  const int64_t places_, width_, rows_;
};

// dx[j] = s[j] dout[h[j]]. Inputs: dout, h, s.
template <typename C>
class SketchBackward {
 public:
  explicit SketchBackward(const StepSpec &spec)
      : places_(spec.attrs_as<CountSketchAttrs>().out_dim), width_(spec.inputs[1].shape.size()) {
    rows_ = spec.inputs[0].shape.size() / places_;
  }
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const int64_t places = places_, width = width_;
    for_each(lane, rows_ * width, [=] __device__(int64_t i) {
      const int64_t j = i % width;
      const double place = double(in[1][j]);
      const bool there = place >= 0 && place < double(places);
      out[0][i] = there ? in[2][j] * in[0][i / width * places + int64_t(place)] : C(0);
    });
  }

 private:
  const int64_t places_, width_;
  int64_t rows_;
};

// Checks that each number has a place.
class PlacesCheck {
 public:
  explicit PlacesCheck(const StepSpec &spec)
      : places_(spec.attrs_as<CountSketchAttrs>().out_dim),
        count_(spec.inputs[1].shape.size()),
        dtype_(spec.inputs[1].dtype) {}
  struct ElementCheck {
    Elements h;
    int64_t places;
    __device__ Finding operator()(int64_t j) const {
      const double place = load<double>(h, j);
      return {!(place >= 0 && place < double(places)), bits_of(place), 0, places - 1};
    }
  };
  int64_t count() const { return count_; }
  ElementCheck element_check(const Args &args) const { return {elements_of(args.inputs[1], dtype_), places_}; }
  std::string in_words(const InputError &c) const {
    return text("h[", c.place, "]: expected 0 to ", c.most, ", found ", number_of(c.found));
  }

 private:
  const int64_t places_, count_;
  const Dtype dtype_;
};

COHORT_KERNEL(cuda, _contrib_fft, SpectrumCuda<true>).dtypes(kFloatTypes);
COHORT_KERNEL(cuda, _backward__contrib_fft, SpectrumCuda<false>);
COHORT_KERNEL(cuda, _contrib_ifft, SpectrumCuda<false>).dtypes(kFloatTypes);
COHORT_KERNEL(cuda, _backward__contrib_ifft, SpectrumCuda<true>);
COHORT_KERNEL_BY(cuda, _contrib_count_sketch, make_checked<PlacesCheck, make_compute<SketchForward>>)
    .dtypes(kFloatTypes);
COHORT_KERNEL_BY(cuda, _backward__contrib_count_sketch, make_checked<PlacesCheck, make_compute<SketchBackward>>);

}  // namespace
}  // namespace cohort
