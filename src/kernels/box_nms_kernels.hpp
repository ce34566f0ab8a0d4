// SPDX-License-Identifier: Apache-2.0
// The backward step of op/box_nms.hpp, for all backends.
#pragma once

#include "kernels/backend.hpp"
#include "kernels/box_rows.hpp"
#include "kernels/compute.hpp"

namespace cohort {
namespace {

// Each head gradient goes to the box that the row is.
template <typename C>
class BoxNmsBackward {
 public:
  explicit BoxNmsBackward(const StepSpec &spec) : e_(spec.outputs[0].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const int64_t rows = e_.batch * e_.boxes, grain = 1 + kCheapGrain / e_.width;
    parallel_for(
        lane, rows, grain, COHORT_BODY(int64_t begin, int64_t end) {
          fill_elements(out[0] + begin * e_.width, (end - begin) * e_.width, C(0));
        });
    parallel_for(
        lane, rows, grain, COHORT_BODY(int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t from = int64_t(in[1][i]);
            if (from < 0) continue;
            copy_elements(in[0] + i * e_.width, e_.width, out[0] + (i / e_.boxes * e_.boxes + from) * e_.width);
          }
        });
  }

 private:
  const BoxNmsExtent e_;
};

COHORT_KERNEL_BY(backend, _backward__contrib_box_nms, make_compute<BoxNmsBackward>);

}  // namespace
}  // namespace cohort
