// SPDX-License-Identifier: Apache-2.0
// The forward pass works on padded images; the backward pass skips what is outside of the images.
#include "op/correlation.hpp"

#include <algorithm>
#include <cmath>

#include "cpu/op/cpu_backend.hpp"
#include "cpu/parallel.hpp"
#include "cpu/simd.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

// sums[x] += a[x * stride] * b[x * stride], or the distance.
template <typename C>
struct AddLine {
  static void run(const C *a, const C *b, int64_t stride, bool multiply, int64_t count, C *sums) {
    if (multiply && stride == 1) {
      for (int64_t x = 0; x < count; ++x) sums[x] += a[x] * b[x];
    } else if (multiply) {
      for (int64_t x = 0; x < count; ++x) sums[x] += a[x * stride] * b[x * stride];
    } else {
      for (int64_t x = 0; x < count; ++x) sums[x] += std::abs(a[x * stride] - b[x * stride]);
    }
  }
};

template <typename C, bool kBackward>
class CorrelationBody {
 public:
  explicit CorrelationBody(const StepSpec &spec)
      : a_(spec.attrs_as<CorrelationAttrs>()),
        data_(spec.inputs[kBackward ? 1 : 0].shape),
        result_((kBackward ? spec.inputs : spec.outputs)[0].shape) {}
  size_t extra() const { return kBackward ? 0 : size_t(2 * data_[0] * padded()); }
  void run(const C *const *in, C *const *out, C *extra, const Lane &lane) const {
    const int64_t image = data_.size(1, 4), result = result_.size(1, 4);
    parallel_for(lane, data_[0], 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        if constexpr (kBackward) {
          C *const d1 = out[0] ? out[0] + n * image : nullptr, *const d2 = out[1] ? out[1] + n * image : nullptr;
          if (d1) std::fill_n(d1, image, C(0));
          if (d2) std::fill_n(d2, image, C(0));
          backward(in[0] + n * result, in[1] + n * image, in[2] + n * image, d1, d2);
        } else {
          C *const x1 = extra + 2 * n * padded(), *const x2 = x1 + padded();
          pad(in[0] + n * image, x1);
          pad(in[1] + n * image, x2);
          forward(x1, x2, out[0] + n * result);
        }
      }
    });
  }

 private:
  // Calls fn(element of data1, element of data2) for the patches of output element i; -1 stands for an element in the
  // padding. Skips pairs with both in the padding.
  // in the padding: not at all.
  template <typename Fn>
  void pairs(int64_t i, Fn &&fn) const {
    const int64_t height = data_[2], width = data_[3], wide = 2 * a_.reach() + 1, area = result_[2] * result_[3];
    const int64_t shift_y = (i / area / wide - a_.reach()) * a_.stride2;
    const int64_t shift_x = (i / area % wide - a_.reach()) * a_.stride2;
    const int64_t top = i % area / result_[3] * a_.stride1 + a_.max_displacement - a_.pad_size;
    const int64_t left = i % result_[3] * a_.stride1 + a_.max_displacement - a_.pad_size;
    const auto place = [=](int64_t y, int64_t x) {
      return y >= 0 && y < height && x >= 0 && x < width ? y * width + x : int64_t(-1);
    };
    for (int64_t v = 0; v < a_.kernel_size; ++v) {
      for (int64_t u = 0; u < a_.kernel_size; ++u) {
        const int64_t first = place(top + v, left + u), second = place(top + v + shift_y, left + u + shift_x);
        if (first < 0 && second < 0) continue;
        for (int64_t c = 0; c < data_[1]; ++c) {
          const int64_t plane = c * height * width;
          fn(first < 0 ? first : plane + first, second < 0 ? second : plane + second);
        }
      }
    }
  }
  C patch() const { return C(int64_t(a_.kernel_size) * a_.kernel_size * data_[1]); }

  int64_t tall() const { return data_[2] + 2 * a_.pad_size; }
  int64_t wide() const { return data_[3] + 2 * a_.pad_size; }
  int64_t padded() const { return data_[1] * tall() * wide(); }
  void pad(const C *image, C *to) const {
    std::fill_n(to, padded(), C(0));
    to += a_.pad_size * (wide() + 1);
    for (int64_t c = 0; c < data_[1]; ++c, to += tall() * wide()) {
      for (int64_t y = 0; y < data_[2]; ++y, image += data_[3]) std::copy_n(image, data_[3], to + y * wide());
    }
  }
  // The number of lines of output elements that are computed at once, on padded images.
  void forward(const C *x1, const C *x2, C *y) const {
    const int64_t lines = 2 * a_.reach() + 1, width = result_[3];
    for (int64_t i = 0; i < lines * lines; ++i) {
      const int64_t shift = ((i / lines - a_.reach()) * wide() + i % lines - a_.reach()) * a_.stride2;
      for (int64_t line = 0; line < result_[2]; ++line, y += width) {
        std::fill_n(y, width, C(0));
        const int64_t first = (line * a_.stride1 + a_.max_displacement) * wide() + a_.max_displacement;
        for (int64_t v = 0; v < a_.kernel_size; ++v) {
          for (int64_t u = 0; u < a_.kernel_size; ++u) {
            for (int64_t c = 0; c < data_[1]; ++c) {
              const int64_t at = c * tall() * wide() + first + v * wide() + u;
              add_line_(x1 + at, x2 + at + shift, a_.stride1, a_.is_multiply, width, y);
            }
          }
        }
        for (int64_t x = 0; x < width; ++x) y[x] /= patch();
      }
    }
  }
  void backward(const C *head, const C *x1, const C *x2, C *d1, C *d2) const {
    for (int64_t i = 0; i < result_.size(1, 4); ++i) {
      const C g = head[i] / patch();
      pairs(i, [&](int64_t k1, int64_t k2) {
        const C a = k1 < 0 ? C(0) : x1[k1], b = k2 < 0 ? C(0) : x2[k2];
        const C sign = a >= b ? C(1) : C(-1);
        if (d1 && k1 >= 0) d1[k1] += g * (a_.is_multiply ? b : sign);
        if (d2 && k2 >= 0) d2[k2] += g * (a_.is_multiply ? a : -sign);
      });
    }
  }

  const CorrelationAttrs a_;
  const Shape data_, result_;
  void (*const add_line_)(const C *, const C *, int64_t, bool, int64_t, C *) = best_version<AddLine<C>>();
};

template <typename C>
using CorrelationForward = CorrelationBody<C, false>;
template <typename C>
using CorrelationBackward = CorrelationBody<C, true>;

COHORT_KERNEL_BY(cpu, Correlation, make_compute<CorrelationForward>);
COHORT_KERNEL_BY(cpu, _backward_Correlation, make_compute<CorrelationBackward>);

}  // namespace
}  // namespace cohort
