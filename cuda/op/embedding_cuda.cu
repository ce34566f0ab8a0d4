// SPDX-License-Identifier: Apache-2.0
// Embedding: rows of the weight by their indices; backward, the sum of the head gradients of each row.
#include "cuda/op/indexed_parts.cuh"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

using namespace indexing;

std::unique_ptr<Kernel> make_embedding(StepSpec &spec) {
  const PartIndex index = index_of(spec.inputs[0], spec.inputs[1].shape[0], false);
  return make_gather(spec, 1, index, places_of(index, spec.inputs[1].shape, 0));
}
std::unique_ptr<Kernel> make_embedding_backward(StepSpec &spec) {
  const PartIndex index = index_of(spec.inputs[1], spec.outputs[0].shape[0], false);
  return make_add_up(spec, index, places_of(index, spec.outputs[0].shape, 0));
}

COHORT_KERNEL_BY(cuda, Embedding, make_embedding);
COHORT_KERNEL_BY(cuda, _backward_Embedding, make_embedding_backward);

}  // namespace
}  // namespace cohort
