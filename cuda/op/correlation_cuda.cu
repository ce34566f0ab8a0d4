// SPDX-License-Identifier: Apache-2.0
// Correlation: forward, one thread sums one element of the output; backward, one thread per element of either image
// finds the patches that hold it. Sums run in the same order as on the CPU.
#include "cuda/op/add_product.cuh"
#include "cuda/op/cuda_backend.cuh"
#include "op/correlation.hpp"

namespace cohort {
namespace {

struct CorrelationSizes {
  int64_t batch, channels, height, width, rows, columns;  // rows and columns: of the output
  int64_t kernel, stride, step, reach, start;  // start: of the first patch in data1, below 0 where it is in the padding
  bool multiply;

  CorrelationSizes(const CorrelationAttrs &a, const Shape &data, const Shape &output)
      : batch(data[0]),
        channels(data[1]),
        height(data[2]),
        width(data[3]),
        rows(output[2]),
        columns(output[3]),
        kernel(a.kernel_size),
        stride(a.stride1),
        step(a.stride2),
        reach(a.reach()),
        start(int64_t(a.max_displacement) - a.pad_size),
        multiply(a.is_multiply) {}

  __device__ int64_t wide() const { return 2 * reach + 1; }  // displacements along an axis
  __device__ int64_t shift(int64_t displacement) const { return (displacement - reach) * step; }
  __device__ bool has(int64_t y, int64_t x) const { return y >= 0 && y < height && x >= 0 && x < width; }
  template <typename C>
  __device__ C patch() const {
    return C(kernel * kernel * channels);
  }

  struct Range {
    int64_t begin, end;
  };
  // Along one axis: the patches, out of so many, that hold place `at` of data1.
  __device__ Range holding(int64_t at, int64_t count) const {
    const int64_t last = at - start, first = last - kernel + 1;
    if (last < 0) return {0, 0};
    const int64_t end = last / stride + 1;
    return {first > 0 ? (first + stride - 1) / stride : 0, end < count ? end : count};
  }
};

template <typename C>
class CorrelationCuda {
 public:
  explicit CorrelationCuda(const StepSpec &spec)
      : s_(spec.attrs_as<CorrelationAttrs>(), spec.inputs[0].shape, spec.outputs[0].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const CorrelationSizes s = s_;
    const int64_t wide = 2 * s.reach + 1;
    for_each(lane, s.batch * wide * wide * s.rows * s.columns, [=] __device__(int64_t at) {
      const int64_t column = at % s.columns, row = at / s.columns % s.rows, shifts = at / s.columns / s.rows;
      const int64_t down = s.shift(shifts / wide % wide), right = s.shift(shifts % wide);
      const int64_t plane = s.height * s.width, sample = shifts / (wide * wide) * s.channels * plane;
      C sum = 0;
      for (int64_t v = 0; v < s.kernel; ++v) {
        for (int64_t u = 0; u < s.kernel; ++u) {
          const int64_t y = row * s.stride + s.start + v, x = column * s.stride + s.start + u;
          const bool first = s.has(y, x), second = s.has(y + down, x + right);
          if (!first && !second) continue;
          const C *const a = in[0] + sample + y * s.width + x;
          const C *const b = in[1] + sample + (y + down) * s.width + x + right;
          for (int64_t c = 0; c < s.channels * plane; c += plane) {
            const C left = first ? a[c] : C(0), other = second ? b[c] : C(0);
            sum = s.multiply ? add_product(sum, left, other) : sum + std::fabs(left - other);
          }
        }
      }
      out[0][at] = sum / s.patch<C>();
    });
  }

 private:
  const CorrelationSizes s_;
};

// The gradient of one image; `other` is the image that it is compared with.
template <typename C, bool kSecond>
struct CorrelatedImage {
  CorrelationSizes s;
  const C *head, *own, *other;
  C *grad;

  __device__ void operator()(int64_t at) const {
    const int64_t x = at % s.width, y = at / s.width % s.height, plane = s.height * s.width;
    const int64_t wide = s.wide(), sample = at / plane / s.channels;
    const C *const others = other + at / plane * plane, value = own[at], patch = s.patch<C>();
    const C *from = head + sample * wide * wide * s.rows * s.columns;
    C sum = 0;
    for (int64_t i = 0; i < wide; ++i) {
      const int64_t down = s.shift(i), v = kSecond ? y - down : y + down;
      const auto rows = s.holding(kSecond ? v : y, s.rows);
      for (int64_t j = 0; j < wide; ++j, from += s.rows * s.columns) {
        const int64_t right = s.shift(j), u = kSecond ? x - right : x + right;
        const C facing = s.has(v, u) ? others[v * s.width + u] : C(0);
        const bool rises = kSecond ? !(facing >= value) : value >= facing;  // with this image's element
        const auto columns = s.holding(kSecond ? u : x, s.columns);
        for (int64_t row = rows.begin; row < rows.end; ++row) {
          for (int64_t column = columns.begin; column < columns.end; ++column) {
            const C share = from[row * s.columns + column] / patch;
            sum = s.multiply ? add_product(sum, share, facing) : sum + (rises ? share : -share);
          }
        }
      }
    }
    grad[at] = sum;
  }
};

template <typename C>
class CorrelationBackwardCuda {
 public:
  explicit CorrelationBackwardCuda(const StepSpec &spec)
      : s_(spec.attrs_as<CorrelationAttrs>(), spec.inputs[1].shape, spec.inputs[0].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const int64_t count = s_.batch * s_.channels * s_.height * s_.width;
    if (out[0]) for_each(lane, count, CorrelatedImage<C, false>{s_, in[0], in[1], in[2], out[0]});
    if (out[1]) for_each(lane, count, CorrelatedImage<C, true>{s_, in[0], in[2], in[1], out[1]});
  }

 private:
  const CorrelationSizes s_;
};

COHORT_KERNEL_BY(cuda, Correlation, make_compute<CorrelationCuda>);
COHORT_KERNEL_BY(cuda, _backward_Correlation, make_compute<CorrelationBackwardCuda>);

}  // namespace
}  // namespace cohort
