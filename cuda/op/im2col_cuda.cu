// SPDX-License-Identifier: Apache-2.0
// im2col and col2im: one thread per element of the output.
#include <vector>

#include "cuda/op/elements.cuh"
#include "device/kernel_table.hpp"
#include "op/im2col.hpp"
#include "op/pointwise_math.hpp"

namespace cohort {
namespace {

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
  // The window whose element `element` lies at `at`; -1: none.
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
    const RawElements from = raw_elements(args.inputs[0], dtype_), to = raw_elements(args.outputs[0], dtype_);
    const RawElements zero{nullptr, to.bytes};
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
      copy_element(to, i, inside ? from : zero, plane * image + place);
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

}  // namespace
}  // namespace cohort
