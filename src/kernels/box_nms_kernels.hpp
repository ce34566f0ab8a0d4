// SPDX-License-Identifier: Apache-2.0
// The backward kernel of op/box_nms.hpp.
#pragma once

#include "kernels/backend.hpp"
#include "kernels/box_rows.hpp"
#include "kernels/compute.hpp"

namespace cohort {
namespace {

// Adds each row of the head gradient to the box that this row of the output was copied from.
template <typename Backend, typename C>
class BoxNmsBackward {
 public:
  explicit BoxNmsBackward(const StepSpec &spec) : e_(spec.outputs[0].shape) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    const int64_t rows = e_.batch * e_.boxes, grain = 1 + Backend::kCheapGrain / e_.width;
    Backend::parallel_for(lane, rows, grain, [=, *this] COHORT_DEVICE(int64_t begin, int64_t end) {
      fill_elements(out[0] + begin * e_.width, (end - begin) * e_.width, C(0));
    });
    Backend::parallel_for(lane, rows, grain, [=, *this] COHORT_DEVICE(int64_t begin, int64_t end) {
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

template <typename Backend>
void register_box_nms_kernels() {
  KernelTable &table = backend_kernels();
  table.add("_backward__contrib_box_nms", make_compute<Backend, BoxNmsBackward>);
}

}  // namespace
}  // namespace cohort
