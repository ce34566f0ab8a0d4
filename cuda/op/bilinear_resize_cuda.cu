// SPDX-License-Identifier: Apache-2.0
// _contrib_BilinearResize2D. Gradients are gathered: each element finds the places that read it.
#include "cuda/op/cuda_backend.cuh"
#include "kernels/backend.hpp"
#include "kernels/resized_images.hpp"

namespace cohort {
namespace {

template <typename C>
class BilinearResizeCuda {
 public:
  explicit BilinearResizeCuda(const StepSpec &spec) : s_(spec, spec.inputs[0], spec.outputs[0]) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const BilinearImages<C> s = s_;
    CudaBackend::parallel_for_2d(lane, s.planes * s.tall, s.wide, [=] __device__(int64_t line, int64_t j) {
      const auto y = s.rows.at(line % s.tall), x = s.columns.at(j);
      const C *const from = in[0] + line / s.tall * s.height * s.width;
      const C *const low = from + y.low * s.width, *const high = from + y.high * s.width;
      const C v = y.weight, u = x.weight;
      out[0][line * s.wide + j] =
          (1 - v) * ((1 - u) * low[x.low] + u * low[x.high]) + v * ((1 - u) * high[x.low] + u * high[x.high]);
    });
  }

 private:
  const BilinearImages<C> s_;
};

template <typename C>
class BilinearResizeBackwardCuda {
 public:
  explicit BilinearResizeBackwardCuda(const StepSpec &spec) : s_(spec, spec.outputs[0], spec.inputs[0]), like_(spec) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    like_.write(out[1], lane);
    if (!out[0]) return;
    const BilinearImages<C> s = s_;
    CudaBackend::parallel_for_2d(lane, s.planes * s.height, s.width, [=] __device__(int64_t line, int64_t x) {
      const int64_t y = line % s.height;
      const C *const head = in[0] + line / s.height * s.tall * s.wide;
      C sum = 0;
      for (int64_t i = s.rows.first_over(y); i < s.rows.behind_over(y); ++i) {
        const C share = s.rows.share(i, y);
        if (share == 0) continue;
        for (int64_t j = s.columns.first_over(x); j < s.columns.behind_over(x); ++j) {
          const C both = share * s.columns.share(j, x);
          if (both != 0) sum += both * head[i * s.wide + j];
        }
      }
      out[0][line * s.width + x] = sum;
    });
  }

 private:
  const BilinearImages<C> s_;
  const LikeGradient like_;
};

COHORT_KERNEL_BY(backend, _contrib_BilinearResize2D, make_compute<BilinearResizeCuda>);
COHORT_KERNEL_BY(backend, _backward__contrib_BilinearResize2D, make_compute<BilinearResizeBackwardCuda>);

}  // namespace
}  // namespace cohort
