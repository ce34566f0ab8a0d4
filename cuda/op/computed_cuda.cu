// SPDX-License-Identifier: Apache-2.0
// Kernels whose bodies are the same for all backends.
#include "cuda/op/cuda_backend.cuh"
#include "cuda/op/expected.cuh"
#include "kernels/box_coding_kernels.hpp"
#include "kernels/boxes_kernels.hpp"
#include "kernels/control_flow_kernels.hpp"
#include "kernels/image_resize_kernels.hpp"
#include "kernels/interleaved_attention_kernels.hpp"
#include "kernels/psroi_pooling_kernels.hpp"
#include "kernels/random_pdf_kernels.hpp"
#include "kernels/roi_pooling_kernels.hpp"
#include "kernels/scale_gradient_kernels.hpp"
#include "kernels/scaling_kernels.hpp"
#include "kernels/spatial_sampler_kernels.hpp"

namespace cohort {
namespace {

// Checks the object that each anchor is matched to, if its sample counts.
class MatchesCheck {
 public:
  explicit MatchesCheck(const StepSpec &spec)
      : anchors_(spec.inputs[0].shape[1]),
        count_(spec.inputs[0].shape.size()),
        objects_(spec.inputs[3].shape[1]),
        samples_(spec.inputs[0].dtype),
        matches_(spec.inputs[1].dtype) {}
  struct ElementCheck {
    Elements samples, matches;
    int64_t objects;
    __device__ Finding operator()(int64_t i) const {
      const double match = load<double>(matches, i);
      const bool counts = load<double>(samples, i) > 0.5, there = match > -1 && match < double(objects);
      return {counts && !there, bits_of(match), 0, objects - 1};
    }
  };
  int64_t count() const { return count_; }
  ElementCheck element_check(const Args &args) const {
    return {elements_of(args.inputs[0], samples_), elements_of(args.inputs[1], matches_), objects_};
  }
  std::string in_words(const InputError &c) const {
    return text("matches[", c.place / anchors_, ", ", c.place % anchors_, "]: expected 0 to ", c.most,
                " where samples is 1, found ", number_of(c.found));
  }

 private:
  const int64_t anchors_, count_, objects_;
  const Dtype samples_, matches_;
};

#define COHORT_CHECKED(op, check, body) \
  COHORT_KERNEL_BY(cuda, op, make_checked<check, make_compute<CudaBackend, body>>).named("checked").preference(1)

COHORT_CHECKED(_contrib_box_encode, MatchesCheck, BoxEncode);
COHORT_CHECKED(ROIPooling, RegionsCheck, RoiPoolingForward);
COHORT_CHECKED(_contrib_PSROIPooling, RegionsCheck, PsRoiPooling);
COHORT_CHECKED(_contrib_DeformablePSROIPooling, RegionsCheck, DeformablePsRoiPooling);

const bool registered = [] {
  register_adaptive_pooling_kernels<CudaBackend>();
  register_box_coding_kernels<CudaBackend>();
  register_boxes_kernels<CudaBackend>();
  register_interleaved_attention_kernels<CudaBackend>();
  register_psroi_pooling_kernels<CudaBackend>();
  register_random_pdf_kernels<CudaBackend>();
  register_roi_pooling_kernels<CudaBackend>();
  register_scale_gradient_kernels<CudaBackend>();
  register_scaling_kernels<CudaBackend>();
  register_spatial_sampler_kernels<CudaBackend>();
  return true;
}();

}  // namespace
}  // namespace cohort
