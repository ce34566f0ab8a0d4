// SPDX-License-Identifier: Apache-2.0
#include "op/im2col.hpp"

#include <algorithm>
#include <type_traits>

#include "cpu/op/pointwise_loops.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"
#include "kernels/convolution_sizes.hpp"

namespace cohort {
namespace {

// Images as planes (planes, D, H, W) and their columns (planes, kernel, windows), each with three axes: missing ones
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

// The windows along an axis whose element lies in [begin, end); in the first window it lies at x0.
convolution::KernelRange windows_in(const WindowAxis &axis, int64_t x0, int64_t begin, int64_t end) {
  const convolution::KernelRange range = convolution::inside(x0 - begin, axis.stride, axis.windows(), end - begin);
  return {std::min(range.begin, range.end), range.end};
}

// Windows with stride 1 have a loop of their own, which is vectorised.
template <typename Fn>
void with_stride(int64_t stride, Fn &&fn) {
  if (stride == 1) return fn(std::integral_constant<int64_t, 1>());
  fn(stride);
}

// A row of columns holds one element of all windows of a plane. Also the backward step of col2im.
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
    const convolution::KernelRange inside = windows_in(w, x0, 0, w.length);
    for (int64_t i = 0; i < d.windows(); ++i) {
      const int64_t z = z0 + i * d.stride;
      for (int64_t j = 0; j < h.windows(); ++j, to += w.windows()) {
        const int64_t y = y0 + j * h.stride;
        if (z < 0 || z >= d.length || y < 0 || y >= h.length) {
          std::fill_n(to, w.windows(), T());
          continue;
        }
        const T *const line = image + (z * h.length + y) * w.length;
        std::fill_n(to, inside.begin, T());
        with_stride(w.stride, [&, x0](auto stride) {
          for (int64_t k = inside.begin; k < inside.end; ++k) to[k] = line[x0 + k * stride];
        });
        std::fill_n(to + inside.end, w.windows() - inside.end, T());
      }
    }
  }
};

// Each pixel gathers its elements from all windows, in the order of the window; neighbours are computed together.
// Also the backward step of im2col.
template <typename T>
class Images final : public WindowKernel {
 public:
  Images(const WindowAttrs &a, const Shape &images) : WindowKernel(a, images) {}
  void run(const Args &args, const Lane &lane) const override {
    const int64_t width = axes_[2].length, lines = axes_[0].length * axes_[1].length;
    parallel_for(lane, planes_ * lines, std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(width * kernel_, 1)),
                 [&](int64_t begin, int64_t end) {
                   Sum sums[kPointwiseBlock];
                   for (int64_t line = begin; line < end; ++line) {
                     const T *const columns = args.in<T>(0) + line / lines * kernel_ * windows_;
                     for (int64_t first = 0; first < width; first += kPointwiseBlock) {
                       const int64_t count = std::min(kPointwiseBlock, width - first);
                       gather(columns, line % lines, first, count, sums);
                       T *const to = args.out<T>(0) + line * width + first;
                       for (int64_t x = 0; x < count; ++x) to[x] = T(sums[x]);
                     }
                   }
                 });
  }

 private:
  using Sum = typename Accumulator<T>::type;
  // The window whose element `element` lies at `at`; -1: none.
  static int64_t window_at(const WindowAxis &axis, int64_t at, int64_t element) {
    const int64_t start = at + axis.pad - element * axis.dilate;
    return start >= 0 && start % axis.stride == 0 && start / axis.stride < axis.windows() ? start / axis.stride : -1;
  }
  // Computes `count` pixels of a line, from `first` on.
  void gather(const T *columns, int64_t line, int64_t first, int64_t count, Sum *sums) const {
    const WindowAxis &d = axes_[0], &h = axes_[1], &w = axes_[2];
    std::fill_n(sums, count, Sum(0));
    for (int64_t i = 0; i < d.kernel; ++i) {
      const int64_t in_d = window_at(d, line / h.length, i);
      if (in_d < 0) continue;
      for (int64_t j = 0; j < h.kernel; ++j) {
        const int64_t in_h = window_at(h, line % h.length, j);
        if (in_h < 0) continue;
        for (int64_t k = 0; k < w.kernel; ++k) {
          const T *const from =
              columns + ((i * h.kernel + j) * w.kernel + k) * windows_ + (in_d * h.windows() + in_h) * w.windows();
          const int64_t x0 = k * w.dilate - w.pad;
          const convolution::KernelRange windows = windows_in(w, x0, first, first + count);
          Sum *const at = sums + (x0 - first);
          with_stride(w.stride, [&, at](auto stride) {
            for (int64_t n = windows.begin; n < windows.end; ++n) {
              at[n * stride] = pointwise::add(at[n * stride], Sum(from[n]));
            }
          });
        }
      }
    }
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
