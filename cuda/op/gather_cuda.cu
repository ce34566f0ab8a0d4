// SPDX-License-Identifier: Apache-2.0
// gather_nd, scatter_nd, _scatter_set_nd and _contrib_index_copy.
#include "cuda/op/indexed_parts.cuh"
#include "device/kernel_table.hpp"
#include "op/gather.hpp"

namespace cohort {
namespace {

using namespace indexing;

// The gradient of a replaced row goes to the row that was put in its place. Inputs: head gradient, index.
class IndexCopyBackwardCuda final : public Kernel {
 public:
  explicit IndexCopyBackwardCuda(StepSpec &spec)
      : index_(index_of(spec.inputs[1], spec.inputs[0].shape[0], false)),
        places_(places_of(index_, spec.inputs[0].shape, 0)),
        dtype_(spec.inputs[0].dtype) {
    spec.scratch_bytes = sorting_bytes(index_.count);
  }
  void run(const Args &args, const Lane &lane) const override {
    PartIndex index = index_;
    index.indices.data = args.inputs[1];
    const RawElements head = raw_elements(args.inputs[0], dtype_), before = raw_elements(args.outputs[0], dtype_);
    if (args.outputs[1]) gather(lane, places_, index, head, raw_elements(args.outputs[1], dtype_));
    if (!before.data) return;
    put(lane, places_, sort_places(lane, index, args.scratch), index.count, {nullptr, head.bytes}, head, before);
  }

 private:
  const PartIndex index_;
  const PartExtent places_;
  const Dtype dtype_;
};

std::unique_ptr<Kernel> make_gather_nd(StepSpec &spec) {
  const PartIndex index = columns_of(spec.inputs[1], spec.inputs[0].shape, true);
  return make_gather(spec, 0, index, places_of(index, spec.inputs[0].shape, 0), kColumns);
}
std::unique_ptr<Kernel> make_gather_nd_backward(StepSpec &spec) {
  const PartIndex index = columns_of(spec.inputs[1], spec.outputs[0].shape, true);
  return make_add_up(spec, index, places_of(index, spec.outputs[0].shape, 0));
}
std::unique_ptr<Kernel> make_scatter_nd(StepSpec &spec) {
  const PartIndex index = columns_of(spec.inputs[1], spec.outputs[0].shape, false);
  return make_put(spec, -1, 0, 1, index, places_of(index, spec.outputs[0].shape, 0), kColumns);
}
std::unique_ptr<Kernel> make_scatter_nd_backward(StepSpec &spec) {
  const PartIndex index = columns_of(spec.inputs[1], spec.inputs[0].shape, false);
  return make_gather(spec, 0, index, places_of(index, spec.inputs[0].shape, 0), kColumns);
}
std::unique_ptr<Kernel> make_scatter_set_nd(StepSpec &spec) {
  const PartIndex index = columns_of(spec.inputs[2], spec.outputs[0].shape, false);
  return make_put(spec, 0, 1, 2, index, places_of(index, spec.outputs[0].shape, 0), kColumns);
}
std::unique_ptr<Kernel> make_index_copy(StepSpec &spec) {
  const PartIndex index = index_of(spec.inputs[1], spec.inputs[0].shape[0], false);
  return make_put(spec, 0, 2, 1, index, places_of(index, spec.inputs[0].shape, 0), IndexRange{"index_vector"});
}

COHORT_KERNEL_BY(cuda, gather_nd, make_gather_nd);
COHORT_KERNEL_BY(cuda, _backward_gather_nd, make_gather_nd_backward);
COHORT_KERNEL_BY(cuda, scatter_nd, make_scatter_nd);
COHORT_KERNEL_BY(cuda, _backward_scatter_nd, make_scatter_nd_backward);
COHORT_KERNEL_BY(cuda, _scatter_set_nd, make_scatter_set_nd);
COHORT_KERNEL_BY(cuda, _contrib_index_copy, make_index_copy);
COHORT_KERNEL(cuda, _backward__contrib_index_copy, IndexCopyBackwardCuda);

}  // namespace
}  // namespace cohort
