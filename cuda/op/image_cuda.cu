// SPDX-License-Identifier: Apache-2.0
// Kernels over windows of images and along their channels: Pad, UpSampling, LRN, im2col and col2im, and simple
// transforms of images. One thread an element, backward passes as gathers.
#include <algorithm>
#include <cmath>

#include "cuda/op/elements.cuh"
#include "device/kernel_table.hpp"
#include "device/run_value.hpp"
#include "op/im2col.hpp"
#include "op/image_transforms.hpp"
#include "op/lrn.hpp"
#include "op/pad.hpp"
#include "op/pointwise_math.hpp"
#include "op/random_math.hpp"
#include "op/upsampling.hpp"

namespace cohort {
namespace {

template <template <typename> class K>
std::unique_ptr<Kernel> make_computed(StepSpec &spec, bool integer) {
  return dispatch_compute(spec.outputs[0].dtype, integer,
                          [&](auto c) -> std::unique_ptr<Kernel> { return std::make_unique<K<decltype(c)>>(spec); });
}

// ---- Pad: data as (planes, D, H, W), missing axes of length 1

struct PadAxes {
  int64_t planes = 1, lengths[3] = {1, 1, 1}, padded[3] = {1, 1, 1}, before[3] = {0, 0, 0};
  PadAttrs::Mode mode;
  PadAxes(const PadAttrs &a, const Shape &data, const Shape &out) : planes(data.size(0, 2)), mode(a.mode) {
    for (int axis = std::max(2, data.rank() - 3); axis < data.rank(); ++axis) {
      const int to = axis - (data.rank() - 3);
      lengths[to] = data[axis];
      padded[to] = out[axis];
      before[to] = a.pad_width[size_t(2 * axis)];
    }
  }
  int64_t data_size() const { return planes * lengths[0] * lengths[1] * lengths[2]; }
  int64_t padded_size() const { return planes * padded[0] * padded[1] * padded[2]; }
  __device__ int64_t source(int axis, int64_t at) const {
    const int64_t from = at - before[axis], last = lengths[axis] - 1;
    if (from >= 0 && from <= last) return from;
    if (mode == PadAttrs::Mode::kConstant) return -1;
    if (mode == PadAttrs::Mode::kEdge) return from < 0 ? 0 : last;
    return from < 0 ? -from : 2 * last - from;
  }
};

class PadCuda final : public Kernel {
 public:
  explicit PadCuda(const StepSpec &spec)
      : e_(spec.attrs_as<PadAttrs>(), spec.inputs[0].shape, spec.outputs[0].shape),
        value_(spec.attrs_as<PadAttrs>().constant_value),
        dtype_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const Cells from = cells_of(args.inputs[0], dtype_), to = cells_of(args.outputs[0], dtype_);
    const Elements out = elements_of(args.outputs[0], dtype_);
    const PadAxes e = e_;
    const double value = value_;
    for_each(lane, e.padded_size(), [=] __device__(int64_t i) {
      const int64_t z = e.source(0, i / e.padded[2] / e.padded[1] % e.padded[0]);
      const int64_t y = e.source(1, i / e.padded[2] % e.padded[1]), x = e.source(2, i % e.padded[2]);
      if (z < 0 || y < 0 || x < 0) return store(out, i, value);
      const int64_t plane = i / e.padded[2] / e.padded[1] / e.padded[0];
      move_cell(to, i, from, ((plane * e.lengths[0] + z) * e.lengths[1] + y) * e.lengths[2] + x);
    });
  }

 private:
  const PadAxes e_;
  const double value_;
  const Dtype dtype_;
};

// Each element gets the sum of the head gradients of its copies, in their order.
template <typename C>
class PadBackwardCuda final : public Kernel {
 public:
  explicit PadBackwardCuda(const StepSpec &spec)
      : e_(spec.attrs_as<PadAttrs>(), spec.outputs[0].shape, spec.inputs[0].shape), dtype_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const Elements head = elements_of(args.inputs[0], dtype_), to = elements_of(args.outputs[0], dtype_);
    const PadAxes e = e_;
    for_each(lane, e.data_size(), [=] __device__(int64_t i) {
      const int64_t where[3] = {i / e.lengths[2] / e.lengths[1] % e.lengths[0], i / e.lengths[2] % e.lengths[1],
                                i % e.lengths[2]};
      const int64_t plane = i / e.lengths[2] / e.lengths[1] / e.lengths[0] * e.padded[0];
      C sum = 0;
      for (int64_t z = 0; z < e.padded[0]; ++z) {
        if (e.source(0, z) != where[0]) continue;
        for (int64_t y = 0; y < e.padded[1]; ++y) {
          if (e.source(1, y) != where[1]) continue;
          for (int64_t x = 0; x < e.padded[2]; ++x) {
            if (e.source(2, x) != where[2]) continue;
            sum = pointwise::add(sum, load<C>(head, ((plane + z) * e.padded[1] + y) * e.padded[2] + x));
          }
        }
      }
      store(to, i, sum);
    });
  }

 private:
  const PadAxes e_;
  const Dtype dtype_;
};
std::unique_ptr<Kernel> make_pad_backward(StepSpec &spec) { return make_computed<PadBackwardCuda>(spec, true); }

COHORT_KERNEL(cuda, Pad, PadCuda);
COHORT_KERNEL_BY(cuda, _backward_Pad, make_pad_backward);

// ---- UpSampling, nearest: inputs side by side or added up; bilinear: each small element puts the filter on the large
// image from its place * scale - pad on

struct Enlarged {
  int64_t channels, height, width, first, repeat_y, repeat_x;
};

template <typename C>
class UpNearestCuda final : public Kernel {
 public:
  UpNearestCuda(const StepSpec &spec, bool backward)
      : backward_(backward), sums_(spec.attrs_as<UpSamplingAttrs>().sums), dtype_(spec.inputs[0].dtype) {
    const Shape &large = (backward ? spec.inputs : spec.outputs)[0].shape;
    batch_ = large[0], channels_ = large[1], height_ = large[2], width_ = large[3];
    int64_t first = 0;
    for (const TensorSpec &t : backward ? spec.outputs : spec.inputs) {
      const Shape &s = t.shape;
      images_.push_back({s[1], s[2], s[3], sums_ ? 0 : first, s[2] ? height_ / s[2] : 1, s[3] ? width_ / s[3] : 1});
      first += s[1];
    }
  }
  void run(const Args &args, const Lane &lane) const override {
    const int64_t height = height_, width = width_, channels = channels_;
    for (size_t k = 0; k < images_.size(); ++k) {
      const Enlarged e = images_[k];
      if (backward_ && !args.outputs[k]) continue;
      const Elements small = elements_of(backward_ ? args.outputs[k] : args.inputs[k], dtype_);
      const Elements large = elements_of(backward_ ? args.inputs[0] : args.outputs[0], dtype_);
      if (backward_) {
        for_each(lane, batch_ * e.channels * e.height * e.width, [=] __device__(int64_t i) {
          const int64_t x = i % e.width, y = i / e.width % e.height, p = i / e.width / e.height;
          const int64_t at = (p / e.channels * channels + e.first + p % e.channels) * height;
          C sum = 0;
          for (int64_t v = 0; v < e.repeat_y; ++v) {
            for (int64_t u = 0; u < e.repeat_x; ++u) {
              sum += load<C>(large, (at + y * e.repeat_y + v) * width + x * e.repeat_x + u);
            }
          }
          store(small, i, sum);
        });
        continue;
      }
      const bool adds = sums_ && k > 0;
      for_each(lane, batch_ * e.channels * height * width, [=] __device__(int64_t i) {
        const int64_t x = i % width, y = i / width % height, p = i / width / height;
        const int64_t to = ((p / e.channels * channels + e.first + p % e.channels) * height + y) * width + x;
        const C value = load<C>(small, (p * e.height + y / e.repeat_y) * e.width + x / e.repeat_x);
        store(large, to, adds ? load<C>(large, to) + value : value);
      });
    }
  }

 private:
  const bool backward_, sums_;
  const Dtype dtype_;
  int64_t batch_, channels_, height_, width_;
  std::vector<Enlarged> images_;
};

struct Filtered {
  int64_t batch, channels, height, width, scale, kernel, pad;
  Filtered(const UpSamplingAttrs &a, const Shape &small)
      : batch(small[0]),
        channels(small[1]),
        height(small[2]),
        width(small[3]),
        scale(a.scale),
        kernel(a.kernel()),
        pad(a.pad()) {}
  COHORT_HOST_DEVICE int64_t tall() const { return height * scale; }
  COHORT_HOST_DEVICE int64_t wide() const { return width * scale; }
};

// Backward: head gradient, data, weight.
template <typename C>
class UpBilinearCuda final : public Kernel {
 public:
  UpBilinearCuda(const StepSpec &spec, bool backward)
      : backward_(backward),
        e_(spec.attrs_as<UpSamplingAttrs>(), spec.inputs[backward ? 1 : 0].shape),
        dtype_(spec.inputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const Filtered e = e_;
    const auto in = [&](int i) { return elements_of(args.inputs[i], dtype_); };
    const Elements x = in(backward_ ? 1 : 0), w = in(backward_ ? 2 : 1), head = in(0);
    const Elements first = elements_of(args.outputs[0], dtype_);
    if (!backward_) {
      return for_each(lane, e.batch * e.channels * e.tall() * e.wide(), [=] __device__(int64_t i) {
        const int64_t column = i % e.wide(), row = i / e.wide() % e.tall(), p = i / e.wide() / e.tall();
        C sum = 0;
        for (int64_t v = (row + e.pad) % e.scale; v < e.kernel; v += e.scale) {
          const int64_t y = (row + e.pad - v) / e.scale;
          if (row + e.pad < v || y >= e.height) continue;
          for (int64_t u = (column + e.pad) % e.scale; u < e.kernel; u += e.scale) {
            const int64_t place = (column + e.pad - u) / e.scale;
            if (column + e.pad < u || place >= e.width) continue;
            sum += load<C>(x, (p * e.height + y) * e.width + place) *
                   load<C>(w, (p % e.channels * e.kernel + v) * e.kernel + u);
          }
        }
        store(first, i, sum);
      });
    }
    if (first.data) {
      for_each(lane, e.batch * e.channels * e.height * e.width, [=] __device__(int64_t i) {
        const int64_t left = i % e.width * e.scale - e.pad, top = i / e.width % e.height * e.scale - e.pad;
        const int64_t p = i / e.width / e.height;
        C sum = 0;
        for (int64_t v = top < 0 ? -top : 0; v < e.kernel && top + v < e.tall(); ++v) {
          for (int64_t u = left < 0 ? -left : 0; u < e.kernel && left + u < e.wide(); ++u) {
            sum += load<C>(head, (p * e.tall() + top + v) * e.wide() + left + u) *
                   load<C>(w, (p % e.channels * e.kernel + v) * e.kernel + u);
          }
        }
        store(first, i, sum);
      });
    }
    const Elements second = elements_of(args.outputs[1], dtype_);
    if (!second.data) return;
    for_each(lane, e.channels * e.kernel * e.kernel, [=] __device__(int64_t i) {
      const int64_t u = i % e.kernel, v = i / e.kernel % e.kernel, c = i / e.kernel / e.kernel;
      C sum = 0;
      for (int64_t p = c; p < e.batch * e.channels; p += e.channels) {
        for (int64_t y = 0; y < e.height; ++y) {
          const int64_t row = y * e.scale - e.pad + v;
          if (row < 0 || row >= e.tall()) continue;
          for (int64_t place = 0; place < e.width; ++place) {
            const int64_t column = place * e.scale - e.pad + u;
            if (column < 0 || column >= e.wide()) continue;
            sum += load<C>(head, (p * e.tall() + row) * e.wide() + column) *
                   load<C>(x, (p * e.height + y) * e.width + place);
          }
        }
      }
      store(second, i, sum);
    });
  }

 private:
  const bool backward_;
  const Filtered e_;
  const Dtype dtype_;
};

template <bool kBackward>
std::unique_ptr<Kernel> make_upsampling(StepSpec &spec) {
  return dispatch_compute(spec.inputs[0].dtype, false, [&](auto c) -> std::unique_ptr<Kernel> {
    using C = std::conditional_t<std::is_integral_v<decltype(c)>, double, decltype(c)>;
    if (spec.attrs_as<UpSamplingAttrs>().bilinear) return std::make_unique<UpBilinearCuda<C>>(spec, kBackward);
    return std::make_unique<UpNearestCuda<C>>(spec, kBackward);
  });
}

COHORT_KERNEL_BY(cuda, UpSampling, make_upsampling<false>);
COHORT_KERNEL_BY(cuda, _backward_UpSampling, make_upsampling<true>);

// ---- LRN of data as (batch, channels, places): norm = knorm + alpha / nsize * sum(x^2) over neighbouring channels

template <typename C>
struct LrnNumbers {
  int64_t channels, places, reach;
  C knorm, factor, beta;
  __device__ int64_t channel(int64_t i) const { return i / places % channels; }
  // The sum of fn(place) over the neighbours of the element.
  template <typename Fn>
  __device__ C neighbours(int64_t i, const Fn &fn) const {
    const int64_t c = channel(i), low = c < reach ? 0 : c - reach,
                  high = c + reach < channels ? c + reach : channels - 1;
    C sum = 0;
    for (int64_t k = low; k <= high; ++k) sum += fn(i + (k - c) * places);
    return sum;
  }
  __device__ C norm(const Elements &x, int64_t i) const {
    return knorm + factor * neighbours(i, [&](int64_t at) { return load<C>(x, at) * load<C>(x, at); });
  }
  __device__ C power(C norm) const { return pointwise::exp_of(-beta * pointwise::log_of(norm)); }
};

// Backward: head gradient, data. dx = dy norm^-beta - 2 alpha beta / nsize x sum(dy x norm^(-beta - 1)).
template <typename C, bool kBackward>
class LrnCuda final : public Kernel {
 public:
  explicit LrnCuda(StepSpec &spec) : count_(spec.outputs[0].shape.size()), dtype_(spec.outputs[0].dtype) {
    const auto &a = spec.attrs_as<LrnAttrs>();
    const Shape &shape = spec.inputs[0].shape;
    n_ = {shape[1], shape.size(2, 4), (a.nsize - 1) / 2, C(a.knorm), C(a.alpha) / C(a.nsize), C(a.beta)};
    if (kBackward) spec.scratch_bytes = size_t(count_) * sizeof(C);
  }
  void run(const Args &args, const Lane &lane) const override {
    const Elements first = elements_of(args.inputs[0], dtype_), to = elements_of(args.outputs[0], dtype_);
    const LrnNumbers<C> n = n_;
    if constexpr (kBackward) {
      const Elements x = elements_of(args.inputs[1], dtype_);
      C *const ratios = static_cast<C *>(args.scratch);
      for_each(lane, count_, [=] __device__(int64_t i) {
        const C norm = n.norm(x, i);
        ratios[i] = load<C>(first, i) * n.power(norm) * load<C>(x, i) / norm;
      });
      for_each(lane, count_, [=] __device__(int64_t i) {
        const C sum = n.neighbours(i, [&](int64_t at) { return ratios[at]; });
        store(to, i, load<C>(first, i) * n.power(n.norm(x, i)) - 2 * n.factor * n.beta * load<C>(x, i) * sum);
      });
    } else {
      for_each(lane, count_,
               [=] __device__(int64_t i) { store(to, i, load<C>(first, i) * n.power(n.norm(first, i))); });
    }
  }

 private:
  const int64_t count_;
  const Dtype dtype_;
  LrnNumbers<C> n_;
};

template <bool kBackward>
std::unique_ptr<Kernel> make_lrn(StepSpec &spec) {
  return dispatch_compute(spec.inputs[0].dtype, false, [&](auto c) -> std::unique_ptr<Kernel> {
    if constexpr (std::is_floating_point_v<decltype(c)>) return std::make_unique<LrnCuda<decltype(c), kBackward>>(spec);
    return nullptr;
  });
}

COHORT_KERNEL_BY(cuda, LRN, make_lrn<false>);
COHORT_KERNEL_BY(cuda, _backward_LRN, make_lrn<true>);

// ---- im2col and col2im: planes of images (planes, D, H, W) and their columns (planes, kernel, windows)

struct WindowSizes {
  int64_t planes, length[3], kernel[3], stride[3], dilate[3], pad[3], windows[3];
  WindowSizes(const WindowAttrs &a, const Shape &images) : planes(images.size(0, 2)) {
    std::vector<WindowAxis> axes = window_axes(a, {images.begin() + 2, images.end()});
    axes.insert(axes.begin(), 3 - axes.size(), WindowAxis{1, 1, 1, 1, 0});
    for (size_t i = 0; i < 3; ++i) {
      length[i] = axes[i].length, kernel[i] = axes[i].kernel, stride[i] = axes[i].stride, dilate[i] = axes[i].dilate;
      pad[i] = axes[i].pad, windows[i] = axes[i].windows();
    }
  }
  COHORT_HOST_DEVICE static int64_t product(const int64_t (&of)[3]) { return of[0] * of[1] * of[2]; }
  // The window in which element `element` of it lies at `at`; -1: there is none.
  __device__ int64_t window_at(int axis, int64_t at, int64_t element) const {
    const int64_t start = at + pad[axis] - element * dilate[axis];
    return start >= 0 && start % stride[axis] == 0 && start / stride[axis] < windows[axis] ? start / stride[axis] : -1;
  }
};

// Also the backward step of col2im.
class ColumnsCuda final : public Kernel {
 public:
  explicit ColumnsCuda(const StepSpec &spec)
      : e_(spec.attrs_as<WindowAttrs>(), spec.inputs[0].shape), dtype_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const Cells from = cells_of(args.inputs[0], dtype_), to = cells_of(args.outputs[0], dtype_);
    const Cells zero{nullptr, to.bytes};
    const WindowSizes e = e_;
    const int64_t kernel = e.product(e.kernel), windows = e.product(e.windows), image = e.product(e.length);
    for_each(lane, e.planes * kernel * windows, [=] __device__(int64_t i) {
      const int64_t window = i % windows, element = i / windows % kernel, plane = i / windows / kernel;
      const int64_t w[3] = {window / (e.windows[1] * e.windows[2]), window / e.windows[2] % e.windows[1],
                            window % e.windows[2]};
      const int64_t k[3] = {element / (e.kernel[1] * e.kernel[2]), element / e.kernel[2] % e.kernel[1],
                            element % e.kernel[2]};
      int64_t place = 0;
      bool inside = true;
      for (int a = 0; a < 3; ++a) {
        const int64_t at = w[a] * e.stride[a] - e.pad[a] + k[a] * e.dilate[a];
        inside = inside && at >= 0 && at < e.length[a];
        place = place * e.length[a] + at;
      }
      move_cell(to, i, inside ? from : zero, plane * image + place);
    });
  }

 private:
  const WindowSizes e_;
  const Dtype dtype_;
};

// Each pixel gathers its elements of all windows, in the order of the window. Also the backward step of im2col.
template <typename C>
class ImagesCuda final : public Kernel {
 public:
  explicit ImagesCuda(const StepSpec &spec)
      : e_(spec.attrs_as<WindowAttrs>(), spec.outputs[0].shape), dtype_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const Elements columns = elements_of(args.inputs[0], dtype_), to = elements_of(args.outputs[0], dtype_);
    const WindowSizes e = e_;
    const int64_t kernel = e.product(e.kernel), windows = e.product(e.windows), image = e.product(e.length);
    for_each(lane, e.planes * image, [=] __device__(int64_t i) {
      const int64_t at = i % image, base = i / image * kernel * windows;
      const int64_t z = at / (e.length[1] * e.length[2]), y = at / e.length[2] % e.length[1], x = at % e.length[2];
      C sum = 0;
      for (int64_t a = 0; a < e.kernel[0]; ++a) {
        const int64_t in_d = e.window_at(0, z, a);
        if (in_d < 0) continue;
        for (int64_t b = 0; b < e.kernel[1]; ++b) {
          const int64_t in_h = e.window_at(1, y, b);
          if (in_h < 0) continue;
          for (int64_t c = 0; c < e.kernel[2]; ++c) {
            const int64_t in_w = e.window_at(2, x, c);
            if (in_w < 0) continue;
            const int64_t element = (a * e.kernel[1] + b) * e.kernel[2] + c;
            const int64_t window = (in_d * e.windows[1] + in_h) * e.windows[2] + in_w;
            sum = pointwise::add(sum, load<C>(columns, base + element * windows + window));
          }
        }
      }
      store(to, i, sum);
    });
  }

 private:
  const WindowSizes e_;
  const Dtype dtype_;
};
std::unique_ptr<Kernel> make_images(StepSpec &spec) { return make_computed<ImagesCuda>(spec, true); }

COHORT_KERNEL(cuda, im2col, ColumnsCuda);
COHORT_KERNEL_BY(cuda, _backward_im2col, make_images);
COHORT_KERNEL_BY(cuda, col2im, make_images);
COHORT_KERNEL(cuda, _backward_col2im, ColumnsCuda);

// ---- images as (height, width, channels), or several of them

struct ImageSizes {
  int64_t count, height, width, channels;
  explicit ImageSizes(const Shape &s)
      : count(s.rank() == 4 ? s[0] : 1), height(s[s.rank() - 3]), width(s[s.rank() - 2]), channels(s[s.rank() - 1]) {}
  int64_t size() const { return count * height * width * channels; }
};

// Channels first, divided by 255, in float; backward from there.
template <bool kBackward>
class ToTensorCuda final : public Kernel {
 public:
  explicit ToTensorCuda(const StepSpec &spec)
      : e_((kBackward ? spec.outputs : spec.inputs)[0].shape),
        from_(spec.inputs[0].dtype),
        to_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const Elements from = elements_of(args.inputs[0], from_), to = elements_of(args.outputs[0], to_);
    const ImageSizes e = e_;
    const int64_t pixels = e.height * e.width;
    for_each(lane, e.size(), [=] __device__(int64_t i) {
      const int64_t pixel = i / e.channels;
      const int64_t place = (pixel / pixels * e.channels + i % e.channels) * pixels + pixel % pixels;
      store(to, kBackward ? i : place, load<float>(from, kBackward ? place : i) / 255.0f);
    });
  }

 private:
  const ImageSizes e_;
  const Dtype from_, to_;
};

// A window of the larger image and the smaller one; backward the rest of the larger one is zeros.
template <bool kBackward>
class CropWindowCuda final : public Kernel {
 public:
  explicit CropWindowCuda(const StepSpec &spec)
      : large_((kBackward ? spec.outputs : spec.inputs)[0].shape),
        small_((kBackward ? spec.inputs : spec.outputs)[0].shape),
        x_(spec.attrs_as<ImageCropAttrs>().x),
        y_(spec.attrs_as<ImageCropAttrs>().y),
        dtype_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const Cells from = cells_of(args.inputs[0], dtype_), to = cells_of(args.outputs[0], dtype_);
    const Cells zero{nullptr, to.bytes};
    const ImageSizes l = large_, s = small_;
    const int64_t left = x_, top = y_;
    if constexpr (kBackward) {
      for_each(lane, l.size(), [=] __device__(int64_t i) {
        const int64_t c = i % l.channels, x = i / l.channels % l.width - left, row = i / l.channels / l.width;
        const int64_t y = row % l.height - top;
        const bool inside = x >= 0 && x < s.width && y >= 0 && y < s.height;
        move_cell(to, i, inside ? from : zero, ((row / l.height * s.height + y) * s.width + x) * s.channels + c);
      });
    } else {
      for_each(lane, s.size(), [=] __device__(int64_t i) {
        const int64_t c = i % s.channels, x = i / s.channels % s.width + left, row = i / s.channels / s.width;
        const int64_t y = row % s.height + top;
        move_cell(to, i, from, ((row / s.height * l.height + y) * l.width + x) * l.channels + c);
      });
    }
  }

 private:
  const ImageSizes large_, small_;
  const int64_t x_, y_;
  const Dtype dtype_;
};

template <bool kColumns, bool kRandom>
class FlipCuda final : public Kernel {
 public:
  explicit FlipCuda(const StepSpec &spec) : e_(spec.inputs[0].shape), dtype_(spec.inputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    bool flips = true;
    if (kRandom) {
      const RandomStream drawn = next_draw(args, lane).value;
      flips = Dice(drawn.seed, drawn.draws, 0).below(2) != 0;
    }
    const Cells from = cells_of(args.inputs[0], dtype_), to = cells_of(args.outputs[0], dtype_);
    const ImageSizes e = e_;
    for_each(lane, e.height * e.width * e.channels, [=] __device__(int64_t i) {
      const int64_t c = i % e.channels, x = i / e.channels % e.width, y = i / e.channels / e.width;
      const int64_t column = flips && kColumns ? e.width - 1 - x : x, row = flips && !kColumns ? e.height - 1 - y : y;
      move_cell(to, i, from, (row * e.width + column) * e.channels + c);
    });
  }
  bool replays() const override { return !kRandom; }  // the host throws the dice

 private:
  const ImageSizes e_;
  const Dtype dtype_;
};

COHORT_KERNEL(cuda, _image_to_tensor, ToTensorCuda<false>);
COHORT_KERNEL(cuda, _backward__image_to_tensor, ToTensorCuda<true>);
COHORT_KERNEL(cuda, _image_crop, CropWindowCuda<false>);
COHORT_KERNEL(cuda, _backward__image_crop, CropWindowCuda<true>);
using FlipColumns = FlipCuda<true, false>;
using FlipRows = FlipCuda<false, false>;
using FlipColumnsAtRandom = FlipCuda<true, true>;
using FlipRowsAtRandom = FlipCuda<false, true>;
COHORT_KERNEL(cuda, _image_flip_left_right, FlipColumns);
COHORT_KERNEL(cuda, _image_flip_top_bottom, FlipRows);
COHORT_KERNEL(cuda, _backward__image_flip_left_right, FlipColumns);
COHORT_KERNEL(cuda, _backward__image_flip_top_bottom, FlipRows);
COHORT_KERNEL(cuda, _image_random_flip_left_right, FlipColumnsAtRandom);
COHORT_KERNEL(cuda, _image_random_flip_top_bottom, FlipRowsAtRandom);

}  // namespace
}  // namespace cohort
