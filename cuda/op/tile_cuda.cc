// SPDX-License-Identifier: Apache-2.0
// tile and repeat: copies that repeat, whose gradients are sums.
#include "cuda/op/strided_cuda.hpp"
#include "device/kernel_table.hpp"
#include "op/tile.hpp"

namespace cohort {
namespace {

using namespace strided;

template <typename A>
std::unique_ptr<Kernel> make_tile(StepSpec &spec) {
  const Repetition r = repetition_of(spec.attrs_as<A>(), spec.inputs[0].shape);
  return make_repeated(spec, kept_shape(Shape(r.lengths), r.repeated), Shape(r.lengths));
}
template <typename A>
std::unique_ptr<Kernel> make_tile_backward(StepSpec &spec) {
  const Repetition r = repetition_of(spec.attrs_as<A>(), spec.outputs[0].shape);
  return make_repeated_backward(spec, kept_shape(Shape(r.lengths), r.repeated), Shape(r.lengths));
}

COHORT_KERNEL_BY(cuda, tile, make_tile<TileAttrs>);
COHORT_KERNEL_BY(cuda, _backward_tile, make_tile_backward<TileAttrs>);
COHORT_KERNEL_BY(cuda, repeat, make_tile<RepeatAttrs>);
COHORT_KERNEL_BY(cuda, _backward_repeat, make_tile_backward<RepeatAttrs>);

}  // namespace
}  // namespace cohort
