// SPDX-License-Identifier: Apache-2.0
// _contrib_BilinearResize2D. Gradients are gathered: an element looks for the places that read it.
#include "cuda/op/compute.cuh"
#include "kernels/backend.hpp"
#include "kernels/resized_images.hpp"

namespace cohort {
namespace {

template <typename C>
class BilinearResize {
 public:
  explicit BilinearResize(const StepSpec &spec)
      : s_(spec.inputs[0].shape, spec.outputs[0].shape),
        rows_(s_.height, s_.tall, spec.attrs_as<BilinearResizeAttrs>().align_corners),
        columns_(s_.width, s_.wide, spec.attrs_as<BilinearResizeAttrs>().align_corners) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const ImagePair s = s_;
    const ResizeAxis<C> rows = rows_, columns = columns_;
    each_place(
        lane, s.planes * s.tall, s.wide, COHORT_LOOP_BODY(int64_t line, int64_t j) {
          const auto y = rows.at(line % s.tall), x = columns.at(j);
          const C *const from = in[0] + line / s.tall * s.height * s.width;
          const C *const low = from + y.low * s.width, *const high = from + y.high * s.width;
          const C v = y.weight, u = x.weight;
          out[0][line * s.wide + j] =
              (1 - v) * ((1 - u) * low[x.low] + u * low[x.high]) + v * ((1 - u) * high[x.low] + u * high[x.high]);
        });
  }

 private:
  const ImagePair s_;
  const ResizeAxis<C> rows_, columns_;
};

template <typename C>
class BilinearResizeBackward {
 public:
  explicit BilinearResizeBackward(const StepSpec &spec)
      : s_(spec.outputs[0].shape, spec.inputs[0].shape),
        like_bytes_(spec.outputs.size() > 1 ? size_t(spec.outputs[1].shape.size()) * sizeof(C) : 0),
        rows_(s_.height, s_.tall, spec.attrs_as<BilinearResizeAttrs>().align_corners),
        columns_(s_.width, s_.wide, spec.attrs_as<BilinearResizeAttrs>().align_corners) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    if (out[1]) zero_bytes(lane, out[1], like_bytes_);
    if (!out[0]) return;
    const ImagePair s = s_;
    const ResizeAxis<C> rows = rows_, columns = columns_;
    each_place(
        lane, s.planes * s.height, s.width, COHORT_LOOP_BODY(int64_t line, int64_t x) {
          const int64_t y = line % s.height;
          const C *const head = in[0] + line / s.height * s.tall * s.wide;
          C sum = 0;
          for (int64_t i = rows.first_over(y); i < rows.behind_over(y); ++i) {
            const C share = rows.share(i, y);
            if (share == 0) continue;
            for (int64_t j = columns.first_over(x); j < columns.behind_over(x); ++j) {
              const C both = share * columns.share(j, x);
              if (both != 0) sum += both * head[i * s.wide + j];
            }
          }
          out[0][line * s.width + x] = sum;
        });
  }

 private:
  const ImagePair s_;
  const size_t like_bytes_;
  const ResizeAxis<C> rows_, columns_;
};

COHORT_KERNEL_BY(backend, _contrib_BilinearResize2D, make_compute<BilinearResize>);
COHORT_KERNEL_BY(backend, _backward__contrib_BilinearResize2D, make_compute<BilinearResizeBackward>);

}  // namespace
}  // namespace cohort
