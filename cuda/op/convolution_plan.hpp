// SPDX-License-Identifier: Apache-2.0
// One convolution, or one of its gradients, as an engine of cuDNN computes it, with operations on its result. Used by
// convolution_cudnn_cuda.cu.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "cuda/cuda_cudnn.hpp"
#include "kernels/convolution_sizes.hpp"

namespace cohort {

// Operations on the sums of a convolution before they are rounded to the result's type, in the order of members: the
// only order for which cuDNN has engines.
struct ConvolutionEpilogue {
  bool addend = false;  // adds an array like the result
  bool bias = false;    // adds one element per channel
  bool relu = false;
  bool empty() const { return !addend && !bias && !relu; }
};

struct ConvolutionProblem {
  enum Of : uint8_t { kResult, kDataGradient, kFilterGradient } of;
  Dtype dtype;            // float32, float16 or bfloat16; summed in float32
  bool tf32;              // factors of float32 may be rounded to TF32
  int num_axes;           // 1 to 3: the last ones of the sizes
  size_t alignment;       // of all arrays, in bytes
  size_t most_workspace;  // an engine that takes more is not chosen
  ConvolutionSizes sizes;
  ConvolutionEpilogue epilogue;  // not for gradients of filters
};

// The arrays of the convolution: a gradient is passed in place of the array that it belongs to.
struct ConvolutionArrays {
  const void *data, *filters, *result;
  const void *addend = nullptr, *bias = nullptr;  // if the epilogue has them
};

// The device for which a plan is made, given by its handle; or by finalized device properties, to find out without a
// device what cuDNN would do on it. The latter plan cannot be run.
struct CudnnTarget {
  CudnnHandle *handle = nullptr;
  CudnnDescriptor *properties = nullptr;
};

// A descriptor that is destroyed with this object.
class CudnnOwned {
 public:
  CudnnOwned() = default;
  CudnnOwned(const Cudnn &cudnn, CudnnDescriptor *descriptor) : cudnn_(&cudnn), descriptor_(descriptor) {}
  CudnnOwned(CudnnOwned &&other) noexcept : cudnn_(other.cudnn_), descriptor_(other.descriptor_) {
    other.descriptor_ = nullptr;
  }
  CudnnOwned &operator=(CudnnOwned &&) = delete;
  ~CudnnOwned() {
    if (descriptor_) cudnn_->destroy_descriptor(descriptor_);
  }
  CudnnDescriptor *get() const { return descriptor_; }

 private:
  const Cudnn *cudnn_ = nullptr;
  CudnnDescriptor *descriptor_ = nullptr;
};

// Descriptors in order of creation; destroyed in reverse, as later ones may refer to earlier ones.
struct CudnnDescriptors {
  std::vector<CudnnOwned> all;
  CudnnDescriptors() = default;
  CudnnDescriptors(CudnnDescriptors &&) = default;
  ~CudnnDescriptors() {
    while (!all.empty()) all.pop_back();
  }
};

class ConvolutionPlan {
 public:
  // Takes the first engine that cuDNN recommends among those that are deterministic, round nothing but the result (and
  // factors to TF32, if the problem allows it), and use no transform, which would spread numbers that are not finite.
  // Null, and *why, if there is none.
  static std::unique_ptr<ConvolutionPlan> find(const Cudnn &cudnn, const ConvolutionProblem &problem,
                                               const CudnnTarget &target, std::string *why);
  size_t workspace_bytes() const { return workspace_bytes_; }
  int64_t engine() const { return engine_; }  // cuDNN's index

  // The stream of the handle must be set; the workspace must be aligned to 256 bytes.
  void run(CudnnHandle *handle, const ConvolutionArrays &arrays, void *workspace) const;

 private:
  class Builder;
  ConvolutionPlan(const Cudnn &cudnn, const ConvolutionEpilogue &epilogue, CudnnDescriptors described)
      : cudnn_(cudnn), epilogue_(epilogue), described_(std::move(described)) {}

  const Cudnn &cudnn_;
  ConvolutionEpilogue epilogue_;
  CudnnDescriptors described_;  // what the plan was made from, and last the plan
  size_t workspace_bytes_ = 0;
  int64_t engine_ = -1;
};

}  // namespace cohort
