// SPDX-License-Identifier: Apache-2.0
// Pooling of all kinds. Forward: one thread per element of the result; backward: one thread per element of the
// gradient, which gathers from the windows that contain it, in order.
#include "cuda/cuda_layout.hpp"
#include "cuda/op/elements.cuh"
#include "device/kernel_table.hpp"
#include "kernels/pooling_windows.hpp"

namespace cohort {
namespace {

using pooling::PoolRun;
using pooling::WindowExtent;

// The start value of a maximum, which an empty window keeps: for 16-bit floats, the lowest of their type.
template <typename C>
C lowest_of(Dtype dtype) {
  return dtype == Dtype::kFloat16    ? C(pooling::lowest<Float16>())
         : dtype == Dtype::kBfloat16 ? C(pooling::lowest<Bfloat16>())
                                     : pooling::lowest<C>();
}

// Gives all images the layout of the input `data`. Returns whether that is channels last although their shapes say
// otherwise.
bool settle_layouts(StepSpec *spec, size_t data) {
  const bool turned = !channels_last(spec->attrs_as<PoolingAttrs>().layout) && lies_channels_last(spec->inputs[data]);
  for (TensorSpec &tensor : spec->inputs) tensor.layout = turned ? channels_last_layout(tensor) : nullptr;
  spec->outputs[0].layout = turned ? channels_last_layout(spec->outputs[0]) : nullptr;
  return turned;
}

template <typename C>
class PoolingCuda final : public Kernel {
 public:
  explicit PoolingCuda(StepSpec &spec)
      : pool_(pooling::pool_run_of(spec.attrs_as<PoolingAttrs>(), spec.inputs[0].shape, spec.outputs[0].shape,
                                   settle_layouts(&spec, 0))),
        dtype_(spec.inputs[0].dtype) {}
  void run(const Args &args, const Lane &lane) const override {
    const Elements data = elements_of(args.inputs[0], dtype_), result = elements_of(args.outputs[0], dtype_);
    const PoolRun pool = pool_;
    const C lowest = lowest_of<C>(dtype_);
    for_each(lane, pool.windows.planes * pool.num_places(), [=] __device__(int64_t i) {
      const auto [plane, place] = pool.at(i, pool.num_places());
      const int64_t first = pool.in_plane(plane);
      const WindowExtent window = pooling::window_at(pool.windows, place);
      C value = pool.type == PoolingAttrs::kMax && !window.has_zeros ? lowest : C(0);
      pooling::for_each_in(pool.windows, window, [&](int64_t at) {
        const C element = load<C>(data, first + at);
        if (pool.type == PoolingAttrs::kMax) {
          value = element > value || element != element ? element : value;
        } else if (pool.type == PoolingAttrs::kLp) {
          value += pooling::power(element, pool.p);
        } else {
          value += element;
        }
      });
      if (pool.type == PoolingAttrs::kAvg) value /= C(window.divisor);
      if (pool.type == PoolingAttrs::kLp) value = pooling::root(value, pool.p);
      store(result, pool.out_plane(plane) + place * pool.windows.out_step, value);
    });
  }

 private:
  const PoolRun pool_;
  const Dtype dtype_;
};

// The share of the window's head gradient g for element `at` of a plane, which has value x and lies in the window. y is
// the window's result, `best` its first maximum, which takes the whole gradient except in Pooling_v1.
template <typename C>
__device__ C share_of(const PoolRun &pool, const WindowExtent &window, int64_t at, C g, C x, C y, int64_t best) {
  switch (pool.type) {
    case PoolingAttrs::kMax:
      return (pool.windows.v1 ? x == y : best == at) ? g : C(0);
    case PoolingAttrs::kLp: {
      if (y == C(0) && pool.p > 1) return C(0);
      const C share = x / y;
      return g * (pool.p == 1 ? C(1) : pool.p == 2 ? share : share * share);
    }
    case PoolingAttrs::kAvg:
      return g / C(window.divisor);
    default:
      return g;
  }
}

// Inputs: head gradient, data, output.
template <typename C>
class PoolingBackwardCuda final : public Kernel {
 public:
  explicit PoolingBackwardCuda(StepSpec &spec)
      : pool_(pooling::pool_run_of(spec.attrs_as<PoolingAttrs>(), spec.inputs[1].shape, spec.inputs[0].shape,
                                   settle_layouts(&spec, 1))),
        dtype_(spec.inputs[0].dtype),
        looks_(pool_.type == PoolingAttrs::kMax && !pool_.windows.v1) {
    if (looks_) spec.scratch_bytes = size_t(pool_.windows.planes * pool_.num_places()) * sizeof(int64_t);
  }
  void run(const Args &args, const Lane &lane) const override {
    const Elements head = elements_of(args.inputs[0], dtype_), data = elements_of(args.inputs[1], dtype_);
    const Elements result = elements_of(args.inputs[2], dtype_), grad = elements_of(args.outputs[0], dtype_);
    const PoolRun pool = pool_;
    // Places within their planes, in the order of the results.
    int64_t *const maxima = looks_ ? static_cast<int64_t *>(args.scratch) : nullptr;
    if (looks_) {
      for_each(lane, pool.windows.planes * pool.num_places(), [=] __device__(int64_t i) {
        const auto [plane, place] = pool.at(i, pool.num_places());
        const int64_t first = pool.in_plane(plane);
        C top = 0;
        int64_t best = -1;
        pooling::for_each_in(pool.windows, pooling::window_at(pool.windows, place), [&](int64_t at) {
          const C element = load<C>(data, first + at);
          if (best < 0 || element > top) top = element, best = at;
        });
        maxima[pool.out_plane(plane) + place * pool.windows.out_step] = best;
      });
    }
    for_each(lane, pool.windows.planes * pool.num_elements(), [=] __device__(int64_t i) {
      const auto &w = pool.windows;
      const auto [plane, element] = pool.at(i, pool.num_elements());
      const int64_t in = pool.in_plane(plane), out = pool.out_plane(plane), at = element * w.in_step;
      const int64_t where[3] = {element / (w.in[1] * w.in[2]), element / w.in[2] % w.in[1], element % w.in[2]};
      int64_t begin[3], end[3];  // the windows that may contain it
      for (int a = 0; a < 3; ++a) {
        const int64_t shifted = where[a] + w.pad[a], behind = shifted - w.kernel[a];
        begin[a] = behind < 0 ? 0 : behind / w.stride[a] + 1;
        end[a] = shifted / w.stride[a] + 1 < w.out[a] ? shifted / w.stride[a] + 1 : w.out[a];
      }
      const C x = load<C>(data, in + at);
      C sum = 0;
      for (int64_t a = begin[0]; a < end[0]; ++a) {
        for (int64_t b = begin[1]; b < end[1]; ++b) {
          for (int64_t c = begin[2]; c < end[2]; ++c) {
            const int64_t place = (a * w.out[1] + b) * w.out[2] + c;
            const WindowExtent window = pooling::window_at(w, place);
            const int64_t lies = out + place * w.out_step;
            const C g = load<C>(head, lies), y = load<C>(result, lies);
            const int64_t best = maxima ? maxima[lies] : -1;
            sum += share_of(pool, window, at, g, x, y, best);
          }
        }
      }
      store(grad, in + at, sum);
    });
  }

 private:
  const PoolRun pool_;
  const Dtype dtype_;
  const bool looks_;  // for the maxima, in a separate launch
};

template <template <typename> class K>
std::unique_ptr<Kernel> make(StepSpec &spec) {
  if (spec.inputs[0].dtype == Dtype::kFloat64) return std::make_unique<K<double>>(spec);
  return std::make_unique<K<float>>(spec);
}

COHORT_KERNEL_BY(cuda, Pooling, make<PoolingCuda>).dtypes(kFloatTypes).any_layout();
COHORT_KERNEL_BY(cuda, Pooling_v1, make<PoolingCuda>).dtypes(kFloatTypes).any_layout();
COHORT_KERNEL_BY(cuda, _backward_Pooling, make<PoolingBackwardCuda>).any_layout();
COHORT_KERNEL_BY(cuda, _backward_Pooling_v1, make<PoolingBackwardCuda>).any_layout();

}  // namespace
}  // namespace cohort
