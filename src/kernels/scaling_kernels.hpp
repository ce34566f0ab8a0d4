// SPDX-License-Identifier: Apache-2.0
// Kernels of op/scaling.hpp.
#pragma once

#include "op/scaling.hpp"

#include <cmath>

#include "kernels/backend.hpp"
#include "kernels/compute.hpp"

namespace cohort {
namespace {

template <typename Backend, typename C, bool kBackward>
class Quadratic {
 public:
  explicit Quadratic(const StepSpec &spec) : a_(spec.attrs_as<QuadraticAttrs>()), count_(spec.inputs[0].shape.size()) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    Backend::parallel_for(lane, count_, Backend::kCheapGrain, [=, *this] COHORT_DEVICE(int64_t begin, int64_t end) {
      const C a = C(a_.a), b = C(a_.b), c = C(a_.c);
      for (int64_t i = begin; i < end; ++i) {
        const C x = in[kBackward ? 1 : 0][i];
        out[0][i] = kBackward ? in[0][i] * (2 * a * x + b) : a * x * x + b * x + c;
      }
    });
  }

 private:
  const QuadraticAttrs a_;
  const int64_t count_;
};

// Both the forward and the backward kernel. The divisor has the type of the array: integers divide by the root rounded
// down, as in MXNet.
template <typename Backend, typename C>
class DivSqrtDim {
 public:
  explicit DivSqrtDim(const StepSpec &spec) : count_(spec.inputs[0].shape.size()), divisor_(divisor_for(spec)) {}
  size_t extra() const { return 0; }
  void run(const BodyInputs<C> &in, const BodyOutputs<C> &out, C *, const Lane &lane) const {
    Backend::parallel_for(lane, count_, Backend::kCheapGrain, [=, *this] COHORT_DEVICE(int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[0][i] = in[0][i] / divisor_;
    });
  }

 private:
  static C divisor_for(const StepSpec &spec) {
    const Shape &shape = spec.inputs[0].shape;
    const C root = std::sqrt(C(shape[shape.rank() - 1]));
    return dtype_is_float(spec.inputs[0].dtype) ? root : std::floor(root);
  }

  const int64_t count_;
  const C divisor_;
};

template <typename Backend, typename C>
using QuadraticForward = Quadratic<Backend, C, false>;
template <typename Backend, typename C>
using QuadraticBackward = Quadratic<Backend, C, true>;

template <typename Backend>
void register_scaling_kernels() {
  KernelTable &table = backend_kernels();
  table.add("_contrib_quadratic", make_compute<Backend, QuadraticForward>);
  table.add("_backward__contrib_quadratic", make_compute<Backend, QuadraticBackward>);
  table.add("_contrib_div_sqrt_dim", make_compute<Backend, DivSqrtDim>);
  table.add("_backward__contrib_div_sqrt_dim", make_compute<Backend, DivSqrtDim>);
}

}  // namespace
}  // namespace cohort
