// SPDX-License-Identifier: Apache-2.0
// Pad: one thread per element, also backward, where an element gathers the gradients of its copies.
#include <algorithm>

#include "cuda/op/elements.cuh"
#include "device/kernel_table.hpp"
#include "op/pad.hpp"
#include "op/pointwise_math.hpp"

namespace cohort {
namespace {

// ---- Pad: data as (planes, D, H, W), missing axes of length 1

struct PadAxes {
  int64_t planes = 1, lengths[3] = {1, 1, 1}, padded[3] = {1, 1, 1}, before[3] = {0, 0, 0};
  PadAttrs::Mode mode;
  PadAxes(const PadAttrs &a, const Shape &data, const Shape &out) : planes(data.size(0, 2)), mode(a.mode) {
    for (int axis = std::max(2, data.rank() - 3); axis < data.rank(); ++axis) {
      const int to = axis - (data.rank() - 3);
      lengths[to] = data[axis];
      padded[to] = out[axis];
      before[to] = a.pad_width[size_t(2 * axis)];
    }
  }
  int64_t data_size() const { return planes * lengths[0] * lengths[1] * lengths[2]; }
  int64_t padded_size() const { return planes * padded[0] * padded[1] * padded[2]; }
  __device__ int64_t source(int axis, int64_t at) const {
    const int64_t from = at - before[axis], last = lengths[axis] - 1;
    if (from >= 0 && from <= last) return from;
    if (mode == PadAttrs::Mode::kConstant) return -1;
    if (mode == PadAttrs::Mode::kEdge) return from < 0 ? 0 : last;
    return from < 0 ? -from : 2 * last - from;
  }
};

class PadCuda final : public Kernel {
 public:
  explicit PadCuda(const StepSpec &spec)
      : e_(spec.attrs_as<PadAttrs>(), spec.inputs[0].shape, spec.outputs[0].shape),
        value_(spec.attrs_as<PadAttrs>().constant_value),
        dtype_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const RawElements from = raw_elements(args.inputs[0], dtype_), to = raw_elements(args.outputs[0], dtype_);
    const Elements out = elements_of(args.outputs[0], dtype_);
    const PadAxes e = e_;
    const double value = value_;
    for_each(lane, e.padded_size(), [=] __device__(int64_t i) {
      const int64_t z = e.source(0, i / e.padded[2] / e.padded[1] % e.padded[0]);
      const int64_t y = e.source(1, i / e.padded[2] % e.padded[1]), x = e.source(2, i % e.padded[2]);
      if (z < 0 || y < 0 || x < 0) return store(out, i, value);
      const int64_t plane = i / e.padded[2] / e.padded[1] / e.padded[0];
      copy_element(to, i, from, ((plane * e.lengths[0] + z) * e.lengths[1] + y) * e.lengths[2] + x);
    });
  }

 private:
  const PadAxes e_;
  const double value_;
  const Dtype dtype_;
};

// Sums the head gradients of the copies of each element, in order.
template <typename C>
class PadBackwardCuda final : public Kernel {
 public:
  explicit PadBackwardCuda(const StepSpec &spec)
      : e_(spec.attrs_as<PadAttrs>(), spec.outputs[0].shape, spec.inputs[0].shape), dtype_(spec.outputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const Elements head = elements_of(args.inputs[0], dtype_), to = elements_of(args.outputs[0], dtype_);
    const PadAxes e = e_;
    for_each(lane, e.data_size(), [=] __device__(int64_t i) {
      const int64_t where[3] = {i / e.lengths[2] / e.lengths[1] % e.lengths[0], i / e.lengths[2] % e.lengths[1],
                                i % e.lengths[2]};
      const int64_t plane = i / e.lengths[2] / e.lengths[1] / e.lengths[0] * e.padded[0];
      C sum = 0;
      for (int64_t z = 0; z < e.padded[0]; ++z) {
        if (e.source(0, z) != where[0]) continue;
        for (int64_t y = 0; y < e.padded[1]; ++y) {
          if (e.source(1, y) != where[1]) continue;
          for (int64_t x = 0; x < e.padded[2]; ++x) {
            if (e.source(2, x) != where[2]) continue;
            sum = pointwise::add(sum, load<C>(head, ((plane + z) * e.padded[1] + y) * e.padded[2] + x));
          }
        }
      }
      store(to, i, sum);
    });
  }

 private:
  const PadAxes e_;
  const Dtype dtype_;
};
std::unique_ptr<Kernel> make_pad_backward(StepSpec &spec) { return make_computed<PadBackwardCuda>(spec, true); }

COHORT_KERNEL(cuda, Pad, PadCuda);
COHORT_KERNEL_BY(cuda, _backward_Pad, make_pad_backward);

}  // namespace
}  // namespace cohort
