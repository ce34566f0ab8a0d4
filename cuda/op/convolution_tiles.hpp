// SPDX-License-Identifier: Apache-2.0
// Convolution and its gradients as products of gathered matrices, or one thread per element: what convolution_cuda.cu
// computes, for Convolution and Deconvolution, each of which is the gradient of the other.
#pragma once

#include "cuda/op/elements.cuh"
#include "kernels/convolution_sizes.hpp"

namespace cohort {
namespace tiles {

constexpr Elements kNothing{nullptr, int64_t(Dtype::kFloat32)};

// How a step is computed, and what it takes of the scratch memory: taps, then parts of sums.
struct TilePlan {
  enum Of { kResult, kDataGradient, kFilterGradient };
  bool narrow;
  int64_t parts = 1;
  size_t taps_bytes = 0, scratch_bytes = 0;

  TilePlan(const ConvolutionSizes &s, Of of, size_t element);
};

// C: float or double. `scratch` has the bytes that the plan of the step says.
template <typename C>
void convolve(const ConvolutionSizes &s, const Elements &data, const Elements &weight, const Elements &bias,
              const Elements &result, void *scratch, const Lane &lane);
template <typename C>
void convolve_backward_data(const ConvolutionSizes &s, const Elements &head, const Elements &weight,
                            const Elements &bias, const Elements &grad, void *scratch, const Lane &lane);
template <typename C>
void convolve_backward_weight(const ConvolutionSizes &s, const Elements &head, const Elements &data,
                              const Elements &grad, void *scratch, const Lane &lane);
// The sum of each channel of `values`, which has the sizes of the convolution's result or, with of_data, of its data.
// One warp per channel.
template <typename C>
void sum_channels(const ConvolutionSizes &s, bool of_data, const Elements &values, const Elements &sums,
                  const Lane &lane);

template <template <typename> class K>
std::unique_ptr<Kernel> make_tiles(StepSpec &spec) {
  spec.tf32 = false;
  if (spec.inputs[0].dtype == Dtype::kFloat64) return std::make_unique<K<double>>(spec);
  return std::make_unique<K<float>>(spec);
}

}  // namespace tiles
}  // namespace cohort
