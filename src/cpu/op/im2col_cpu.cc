// SPDX-License-Identifier: Apache-2.0
#include "op/im2col.hpp"

#include <algorithm>

#include "cpu/op/pointwise_loops.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

// Planes of images (planes, D, H, W) and their columns (planes, kernel, windows), each of three axes: missing ones
// lead, with length 1.
class WindowKernel : public Kernel {
 protected:
  WindowKernel(const WindowAttrs &a, const Shape &images) : planes_(images.size(0, 2)) {
    axes_ = window_axes(a, {images.begin() + 2, images.end()});
    axes_.insert(axes_.begin(), 3 - axes_.size(), WindowAxis{1, 1, 1, 1, 0});
    for (const WindowAxis &axis : axes_) {
      image_ *= axis.length;
      kernel_ *= axis.kernel;
      windows_ *= axis.windows();
    }
  }
  const int64_t planes_;
  std::vector<WindowAxis> axes_;
  int64_t image_ = 1, kernel_ = 1, windows_ = 1;
};

// A row of columns is one element of all windows of a plane. Also the backward step of col2im.
template <typename T>
class Columns final : public WindowKernel {
 public:
  Columns(const WindowAttrs &a, const Shape &images) : WindowKernel(a, images) {}
  void run(const Args &args, const Lane &lane) const override {
    parallel_for(lane, planes_ * kernel_, std::max<int64_t>(1, kCheapGrain / windows_),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row) {
                     fill(args.in<T>(0) + row / kernel_ * image_, row % kernel_, args.out<T>(0) + row * windows_);
                   }
                 });
  }

 private:
  void fill(const T *image, int64_t element, T *to) const {
    const WindowAxis &d = axes_[0], &h = axes_[1], &w = axes_[2];
    const int64_t z0 = element / (h.kernel * w.kernel) * d.dilate - d.pad;
    const int64_t y0 = element / w.kernel % h.kernel * h.dilate - h.pad, x0 = element % w.kernel * w.dilate - w.pad;
    for (int64_t i = 0; i < d.windows(); ++i) {
      const int64_t z = z0 + i * d.stride;
      for (int64_t j = 0; j < h.windows(); ++j) {
        const int64_t y = y0 + j * h.stride;
        const bool inside = z >= 0 && z < d.length && y >= 0 && y < h.length;
        for (int64_t k = 0; k < w.windows(); ++k) {
          const int64_t x = x0 + k * w.stride;
          *to++ = inside && x >= 0 && x < w.length ? image[(z * h.length + y) * w.length + x] : T();
        }
      }
    }
  }
};

// Each pixel gathers its elements of all windows, in the order of the window. Also the backward step of im2col.
template <typename T>
class Images final : public WindowKernel {
 public:
  Images(const WindowAttrs &a, const Shape &images) : WindowKernel(a, images) {}
  void run(const Args &args, const Lane &lane) const override {
    const WindowAxis &h = axes_[1], &w = axes_[2];
    const int64_t rows = planes_ * axes_[0].length * h.length;
    parallel_for(lane, rows, std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(w.length * kernel_, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row) {
                     const int64_t plane = row / (axes_[0].length * h.length), at = row % (axes_[0].length * h.length);
                     const T *const columns = args.in<T>(0) + plane * kernel_ * windows_;
                     for (int64_t x = 0; x < w.length; ++x) {
                       args.out<T>(0)[row * w.length + x] = T(sum(columns, at / h.length, at % h.length, x));
                     }
                   }
                 });
  }

 private:
  using Sum = typename Accumulator<T>::type;
  // The window in which element `element` of it lies at `at`; -1: there is none.
  static int64_t window_at(const WindowAxis &axis, int64_t at, int64_t element) {
    const int64_t start = at + axis.pad - element * axis.dilate;
    return start >= 0 && start % axis.stride == 0 && start / axis.stride < axis.windows() ? start / axis.stride : -1;
  }
  Sum sum(const T *columns, int64_t z, int64_t y, int64_t x) const {
    const WindowAxis &d = axes_[0], &h = axes_[1], &w = axes_[2];
    Sum result = 0;
    for (int64_t i = 0; i < d.kernel; ++i) {
      const int64_t in_d = window_at(d, z, i);
      if (in_d < 0) continue;
      for (int64_t j = 0; j < h.kernel; ++j) {
        const int64_t in_h = window_at(h, y, j);
        if (in_h < 0) continue;
        const int64_t base = (in_d * h.windows() + in_h) * w.windows();
        for (int64_t k = 0; k < w.kernel; ++k) {
          const int64_t in_w = window_at(w, x, k);
          if (in_w < 0) continue;
          result = pointwise::add(result, Sum(columns[((i * h.kernel + j) * w.kernel + k) * windows_ + base + in_w]));
        }
      }
    }
    return result;
  }
};

template <template <typename> class K, bool kImagesAreOutput>
std::unique_ptr<Kernel> make_windows(StepSpec &spec) {
  const Shape &images = (kImagesAreOutput ? spec.outputs : spec.inputs)[0].shape;
  return dispatch(spec.outputs[0].dtype, [&](auto t) -> std::unique_ptr<Kernel> {
    return std::make_unique<K<decltype(t)>>(spec.attrs_as<WindowAttrs>(), images);
  });
}

COHORT_KERNEL_BY(cpu, im2col, make_windows<Columns, false>);
COHORT_KERNEL_BY(cpu, _backward_im2col, make_windows<Images, true>);
COHORT_KERNEL_BY(cpu, col2im, make_windows<Images, true>);
COHORT_KERNEL_BY(cpu, _backward_col2im, make_windows<Columns, false>);

}  // namespace
}  // namespace cohort
