// SPDX-License-Identifier: Apache-2.0
// SoftmaxOutput: softmax forward, softmax minus one-hot label backward.
#include <cmath>

#include "cuda/cuda_launch.hpp"
#include "device/kernel_table.hpp"
#include "op/softmax_output.hpp"

namespace cohort {
namespace {

// The classes of one sample lie `inner` elements apart: (outer, classes, inner).
struct Extent {
  int64_t outer, classes, inner;
};

Extent extent_of(const SoftmaxOutputAttrs &attrs, const Shape &shape) {
  if (attrs.multi_output) return {shape[0], shape[1], shape.size(2, shape.rank())};
  if (attrs.preserve_shape) {
    const int64_t classes = shape[shape.rank() - 1];
    return {classes ? shape.size() / classes : 0, classes, 1};
  }
  return {shape[0], shape.size(1, shape.rank()), 1};
}

__device__ float warp_max(float value) {
  for (int offset = 16; offset > 0; offset /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// One warp a sample. y may be x. Sums run in lane order, the same at every launch.
__global__ void softmax_samples(const float *x, float *y, Extent extent) {
  const int64_t sample = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  if (sample >= extent.outer * extent.inner) return;  // a whole warp leaves
  const int64_t base = sample / extent.inner * extent.classes * extent.inner + sample % extent.inner;
  float top = -INFINITY;
  for (int64_t c = threadIdx.x; c < extent.classes; c += 32) top = fmaxf(top, x[base + c * extent.inner]);
  top = warp_max(top);
  float sum = 0;
  for (int64_t c = threadIdx.x; c < extent.classes; c += 32) sum += expf(x[base + c * extent.inner] - top);
  sum = warp_sum(sum);
  for (int64_t c = threadIdx.x; c < extent.classes; c += 32) {
    y[base + c * extent.inner] = expf(x[base + c * extent.inner] - top) / sum;
  }
}

// valid[0] = number of labels that are not ignored, at least 1. One block.
__global__ void count_valid(const float *label, int64_t samples, float ignore_label, float *valid) {
  __shared__ int counts[kBlockThreads];
  int count = 0;
  for (int64_t i = threadIdx.x; i < samples; i += blockDim.x) count += label[i] != ignore_label;
  counts[threadIdx.x] = count;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int t = 1; t < kBlockThreads; ++t) count += counts[t];
  valid[0] = float(count > 0 ? count : 1);
}

struct GradientNumbers {
  float scale, ignore_label, smooth_alpha;
  bool use_ignore;
};

// gradient = (output - target) * scale / valid, zero for ignored samples; one thread an element.
__global__ void softmax_gradient(const float *label, const float *output, const float *head, const float *valid,
                                 float *gradient, Extent extent, GradientNumbers n) {
  const int64_t count = extent.outer * extent.classes * extent.inner;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += int64_t(gridDim.x) * blockDim.x) {
    const int64_t outer = i / (extent.classes * extent.inner), within = i % extent.inner;
    const int64_t c = i / extent.inner % extent.classes;
    const float target_class = label[outer * extent.inner + within];
    float value = 0;
    if (!n.use_ignore || target_class != n.ignore_label) {
      const bool hit = c == int64_t(target_class);
      const float other = extent.classes > 1 ? n.smooth_alpha / float(extent.classes - 1) : 0.0f;
      value = (output[i] - (hit ? 1.0f - n.smooth_alpha : other)) * n.scale;
      if (valid) value /= valid[0];
      if (head) value *= head[i];
    }
    gradient[i] = value;
  }
}

class SoftmaxOutputCuda final : public Kernel {
 public:
  explicit SoftmaxOutputCuda(StepSpec &spec)
      : extent_(extent_of(spec.attrs_as<SoftmaxOutputAttrs>(), spec.inputs[0].shape)) {}

  void run(const Args &args, const Lane &lane) const override {
    const int64_t samples = extent_.outer * extent_.inner;
    if (samples == 0) return;
    softmax_samples<<<unsigned((samples + 7) / 8), dim3(32, 8), 0, static_cast<cudaStream_t>(lane.stream)>>>(
        args.in<float>(0), args.out<float>(0), extent_);
  }

 private:
  const Extent extent_;
};

// Inputs: the head gradient if out_grad, label, output.
class SoftmaxOutputBackwardCuda final : public Kernel {
 public:
  explicit SoftmaxOutputBackwardCuda(StepSpec &spec)
      : attrs_(spec.attrs_as<SoftmaxOutputAttrs>()), extent_(extent_of(attrs_, spec.inputs.back().shape)) {
    if (attrs_.normalization == SoftmaxOutputAttrs::kValid) spec.scratch_bytes = sizeof(float);
  }

  void run(const Args &args, const Lane &lane) const override {
    const auto stream = static_cast<cudaStream_t>(lane.stream);
    const int first = attrs_.out_grad ? 1 : 0;
    const int64_t count = extent_.outer * extent_.classes * extent_.inner;
    if (count == 0) return;
    const float *label = args.in<float>(first);
    float *valid = nullptr;
    GradientNumbers numbers{attrs_.grad_scale, attrs_.ignore_label, attrs_.smooth_alpha, attrs_.use_ignore};
    if (attrs_.normalization == SoftmaxOutputAttrs::kBatch) numbers.scale /= float(extent_.outer);
    if (attrs_.multi_output && attrs_.normalization != SoftmaxOutputAttrs::kValid)
      numbers.scale /= float(extent_.inner);
    if (attrs_.normalization == SoftmaxOutputAttrs::kValid) {
      valid = static_cast<float *>(args.scratch);
      const float ignored = attrs_.use_ignore ? attrs_.ignore_label : NAN;
      count_valid<<<1, kBlockThreads, 0, stream>>>(label, extent_.outer * extent_.inner, ignored, valid);
    }
    softmax_gradient<<<blocks_for(count), kBlockThreads, 0, stream>>>(label, args.in<float>(first + 1),
                                                                      attrs_.out_grad ? args.in<float>(0) : nullptr,
                                                                      valid, args.out<float>(0), extent_, numbers);
  }

 private:
  const SoftmaxOutputAttrs attrs_;
  const Extent extent_;
};

COHORT_KERNEL(cuda, SoftmaxOutput, SoftmaxOutputCuda).one_dtype({Dtype::kFloat32});
COHORT_KERNEL(cuda, _backward_SoftmaxOutput, SoftmaxOutputBackwardCuda).one_dtype({Dtype::kFloat32});

}  // namespace
}  // namespace cohort
