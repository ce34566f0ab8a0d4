// SPDX-License-Identifier: Apache-2.0
// Shared by kernels of parameter updates: the formulas of op/update_math.hpp over the arrays of one weight, one thread
// per element, with numbers that are passed with a run or are in device memory; and sums of squares.
#pragma once

#include <cmath>

#include "cuda/op/rows.cuh"
#include "device/run_value.hpp"
#include "op/update_math.hpp"

namespace cohort {

using RunNumbers = RunValue<UpdateNumbers<double>>;

// Numbers in device memory; null: the number of the run is used.
struct DeviceNumbers {
  const float *lr, *wd, *rescale;
  Elements weight_norm, step_norm;  // by which lr is scaled, as the update's Scale has it
};

struct UpdateArrays {
  Elements weight, grad, states[3], out;
  bool master;  // the new weight is also written to `weight`
};

struct NoScale {
  __device__ static double of(double, double, const UpdateNumbers<double> &) { return 1; }
};
struct LambNorms {
  __device__ static double of(double weight, double step, const UpdateNumbers<double> &n) {
    return update::LambScale::of_norms(weight, step, n);
  }
};

// `scaled` updates do nothing if the scale is 0 or not finite: the output is the weight.
template <typename Formula, typename C, typename Scale>
__global__ void update_elements(UpdateArrays arrays, RunNumbers given, DeviceNumbers device, bool scaled,
                                int64_t count) {
  const UpdateNumbers<double> all = given.get();
  UpdateNumbers<C> numbers = all.as<C>();
  if (device.lr) numbers.lr = C(*device.lr);
  if (device.wd) numbers.wd = C(*device.wd);
  if (device.rescale) numbers.rescale = C(*device.rescale);
  const bool skips = scaled && (!isfinite(numbers.rescale) || numbers.rescale == C(0));
  if (device.weight_norm.data) {
    const double weight = load<double>(device.weight_norm, 0), step = load<double>(device.step_norm, 0);
    numbers.lr = C(double(numbers.lr) * Scale::of(weight, step, all));
  }
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += int64_t(gridDim.x) * blockDim.x) {
    C weight = load<C>(arrays.weight, i);
    if (!skips) {
      C state[Formula::kStates > 0 ? Formula::kStates : 1] = {};
      for (int k = 0; k < Formula::kStates; ++k) state[k] = load<C>(arrays.states[k], i);
      weight = Formula::of(weight, load<C>(arrays.grad, i), state, numbers);
      for (int k = 0; k < Formula::kStates; ++k) store(arrays.states[k], i, state[k]);
      if (arrays.master) store(arrays.weight, i, weight);
    }
    store(arrays.out, i, weight);
  }
}

// The positions of the arrays of one weight among inputs and outputs.
struct WeightUpdate {
  int weight, grad, first_state, num_states, output;
  bool master;
  Dtype dtypes[6];  // weight, gradient, states, output
  int64_t count;

  WeightUpdate(const StepSpec &spec, int states, bool has_master, int first, int out)
      : weight(has_master ? first + 2 + states : first),
        grad(first + 1),
        first_state(first + 2),
        num_states(states),
        output(out),
        master(has_master),
        count(spec.inputs[size_t(first)].shape.size()) {
    dtypes[0] = spec.inputs[size_t(weight)].dtype;
    dtypes[1] = spec.inputs[size_t(grad)].dtype;
    for (int k = 0; k < states; ++k) dtypes[2 + k] = spec.inputs[size_t(first_state + k)].dtype;
    dtypes[5] = spec.outputs[size_t(out)].dtype;
  }
  UpdateArrays arrays(const Args &args) const {
    UpdateArrays a{};
    a.weight = elements_of(args.inputs[weight], dtypes[0]);
    a.grad = elements_of(args.inputs[grad], dtypes[1]);
    for (int k = 0; k < num_states; ++k) {
      a.states[k] = elements_of(args.inputs[first_state + k], dtypes[2 + k]);
    }
    a.out = elements_of(args.outputs[output], dtypes[5]);
    a.master = master;
    return a;
  }
};

template <typename Formula, typename C, typename Scale = NoScale>
void launch_update(const UpdateArrays &arrays, const RunNumbers &numbers, const DeviceNumbers &device, bool scaled,
                   int64_t count, const Lane &lane) {
  if (count == 0) return;
  launch(update_elements<Formula, C, Scale>, flat_grid(count), lane.stream, arrays, numbers, device, scaled, count);
}
inline RunNumbers fixed(const UpdateNumbers<double> &numbers) { return {nullptr, numbers}; }

// ---- sums of squares: in parts, one warp each, which are added up in order

constexpr int64_t kSquareParts = 512;

// *sum, in device memory, of value(i) for i < count; its root if `root`. `parts` has kSquareParts elements.
template <typename Value>
void sum_squares_of(const Lane &lane, int64_t count, double *parts, const Elements &sum, bool root,
                    const Value &value) {
  for_each_row(lane, kSquareParts, [=] __device__(int64_t part) {
    const int64_t begin = count * part / kSquareParts, end = count * (part + 1) / kSquareParts;
    const double all = sum_along<double>(end - begin, [=](int64_t i) {
      const double x = value(begin + i);
      return x * x;
    });
    if (threadIdx.x == 0) parts[part] = all;
  });
  for_each_row(lane, 1, [=] __device__(int64_t) {
    const double all = sum_along<double>(kSquareParts, [=](int64_t i) { return parts[i]; });
    if (threadIdx.x == 0) store(sum, 0, root ? std::sqrt(all) : all);
  });
}

inline void sum_squares(const Lane &lane, const Elements &x, int64_t count, double *parts, const Elements &sum,
                        bool root) {
  sum_squares_of(lane, count, parts, sum, root, [=] __device__(int64_t i) { return load<double>(x, i); });
}

}  // namespace cohort
