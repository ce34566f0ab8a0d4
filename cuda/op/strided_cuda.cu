// SPDX-License-Identifier: Apache-2.0
// Any functor of op/pointwise.hpp on operands that broadcast to one shape, and the sum (or product, maximum ...) of its
// results over axes: the kernels of the broadcasting rules and of the reductions, and of the gradients of both; of
// 16-bit floats, which are computed in float, also those of the rules without broadcasting. One kernel interprets all
// functors; the choice is the same for all threads.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "cuda/cuda_launch.hpp"
#include "device/kernel_table.hpp"
#include "op/pointwise.hpp"
#include "op/reduce.hpp"

namespace cohort {
namespace {

constexpr int kMostAxes = 8;  // after neighbours have been joined

// How operands lie as an index goes over axes, the outermost first: a stride of 0 repeats.
struct Walk {
  int num_axes = 0;
  int64_t lengths[kMostAxes], strides[3][kMostAxes];
};

// 16-bit floats are computed in float.
template <typename T>
struct ComputeOf {
  using Type = float;
};
template <>
struct ComputeOf<double> {
  using Type = double;
};
template <typename T>
using Compute = typename ComputeOf<T>::Type;

template <typename T>
__device__ Compute<T> load(const T &x) {
  if constexpr (std::is_same_v<T, Float16>) {
    __half_raw raw;
    raw.x = x.bits;
    return __half2float(__half(raw));
  } else if constexpr (std::is_same_v<T, Bfloat16>) {
    __nv_bfloat16_raw raw;
    raw.x = x.bits;
    return __bfloat162float(__nv_bfloat16(raw));
  } else {
    return x;
  }
}

template <typename T>
__device__ void store(T *to, Compute<T> value) {
  if constexpr (std::is_same_v<T, Float16>) {
    to->bits = __half_raw(__float2half_rn(value)).x;
  } else if constexpr (std::is_same_v<T, Bfloat16>) {
    to->bits = __nv_bfloat16_raw(__float2bfloat16_rn(value)).x;
  } else {
    *to = value;
  }
}

template <typename T>
struct Operands {
  const T *at[3];
};

template <typename C>
struct Functor {
  PointwiseCode code;
  C s, t;
};

template <typename C>
__device__ C interpret(const Functor<C> &f, C a, C b, C c) {
  switch (f.code) {
#define COHORT_CASE(name, operands, integer, vector) \
  case PointwiseCode::k##name:                       \
    return pointwise::name::of<C>(a, b, c, f.s, f.t);
    COHORT_POINTWISE_LIST(COHORT_CASE)
#undef COHORT_CASE
  }
  return C(0);
}

// Adds to each operand's offset what the index is away along the walk.
__device__ void step_to(const Walk &walk, int64_t index, int64_t (&offsets)[3]) {
  for (int axis = walk.num_axes - 1; axis >= 0; --axis) {
    const int64_t along = index % walk.lengths[axis];
    index /= walk.lengths[axis];
    for (int k = 0; k < 3; ++k) offsets[k] += along * walk.strides[k][axis];
  }
}

template <typename T>
__device__ Compute<T> value_at(const Functor<Compute<T>> &f, const Operands<T> &operands, const int64_t (&offsets)[3]) {
  const auto read = [&](int k) { return operands.at[k] ? load(operands.at[k][offsets[k]]) : Compute<T>(0); };
  return interpret(f, read(0), read(1), read(2));
}

template <typename T>
__global__ void broadcast(Functor<Compute<T>> f, Operands<T> operands, Walk walk, T *out, int64_t count) {
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += int64_t(gridDim.x) * blockDim.x) {
    int64_t offsets[3] = {0, 0, 0};
    step_to(walk, i, offsets);
    store(&out[i], value_at(f, operands, offsets));
  }
}

enum class Combine : uint8_t { kSum, kProduct, kMaximum, kMinimum };  // NaN wins
enum class Finish : uint8_t { kNone, kDivide, kRoot };

struct Reduction {
  Combine combine = Combine::kSum;
  bool skips_nan = false;
  Finish finish = Finish::kNone;
};

__device__ double neutral(Combine combine) {
  switch (combine) {
    case Combine::kProduct:
      return 1;
    case Combine::kMaximum:
      return -INFINITY;
    case Combine::kMinimum:
      return INFINITY;
    default:
      return 0;
  }
}

__device__ double combined(Combine combine, double a, double b) {
  switch (combine) {
    case Combine::kProduct:
      return a * b;
    case Combine::kMaximum:
      return b > a || b != b ? b : a;
    case Combine::kMinimum:
      return b < a || b != b ? b : a;
    default:
      return a + b;
  }
}

// out[j] of `terms` values; a block an element. Its threads combine every 256th value in order, then what they have is
// combined as a tree: the same bits at every launch.
template <typename T>
__global__ void reduce(Functor<Compute<T>> f, Reduction reduction, Operands<T> operands, Walk kept, Walk reduced,
                       T *out, int64_t count, int64_t terms) {
  COHORT_SHARED(double, partial, [kBlockThreads]);
  for (int64_t j = blockIdx.x; j < count; j += gridDim.x) {
    int64_t begin[3] = {0, 0, 0};
    step_to(kept, j, begin);
    double all = neutral(reduction.combine);
    for (int64_t i = threadIdx.x; i < terms; i += kBlockThreads) {
      int64_t offsets[3] = {begin[0], begin[1], begin[2]};
      step_to(reduced, i, offsets);
      const double value = double(value_at(f, operands, offsets));
      if (!reduction.skips_nan || value == value) all = combined(reduction.combine, all, value);
    }
    partial[threadIdx.x] = all;
    for (int half = kBlockThreads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (int(threadIdx.x) >= half) continue;
      partial[threadIdx.x] = combined(reduction.combine, partial[threadIdx.x], partial[threadIdx.x + half]);
    }
    if (threadIdx.x == 0) {
      const double result = partial[0];
      store(&out[j], Compute<T>(reduction.finish == Finish::kRoot     ? sqrt(result)
                                : reduction.finish == Finish::kDivide ? result / double(terms)
                                                                      : result));
    }
    __syncthreads();  // before the next element's
  }
}

int64_t length_of(const Shape &shape, int axis, int rank) {
  const int missing = rank - shape.rank();
  return axis < missing ? 1 : shape[axis - missing];
}

// Over the axes of `large` that `out` has, or (reduced) lacks. Throws where there are too many.
Walk make_walk(const Shape &large, const Shape &out, bool reduced, const Shape *const (&operands)[3]) {
  const int rank = large.rank();
  std::vector<int64_t> strides[3];
  for (int k = 0; k < 3; ++k) {
    strides[k].assign(size_t(rank), 0);
    int64_t stride = 1;
    for (int axis = rank; operands[k] && axis-- > 0;) {
      const int64_t length = length_of(*operands[k], axis, rank);
      strides[k][size_t(axis)] = length == large[axis] ? stride : 0;
      stride *= length;
    }
  }
  Walk walk;
  for (int axis = 0; axis < rank; ++axis) {
    const int64_t length = large[axis];
    if (length == 1 || (length_of(out, axis, rank) != length) != reduced) continue;
    int last = walk.num_axes - 1;
    bool joins = last >= 0;
    for (int k = 0; k < 3 && joins; ++k) joins = walk.strides[k][last] == strides[k][size_t(axis)] * length;
    if (!joins) {
      if (walk.num_axes == kMostAxes) {
        throw Error(Code::kUnsupported,
                    text("broadcasting along more than ", kMostAxes, " groups of axes, to ", large));
      }
      last = walk.num_axes++;
      walk.lengths[last] = 1;
    }
    walk.lengths[last] *= length;
    for (int k = 0; k < 3; ++k) walk.strides[k][last] = strides[k][size_t(axis)];
  }
  return walk;
}

// A functor of inputs, which have these shapes (null: not used), broadcast to `large` and reduced to `out`.
struct Source {
  PointwiseCall call;
  const Shape *operands[3];
  Shape large, out;
};

template <typename T>
class StridedResult {
 public:
  StridedResult(const Source &source, const Reduction &reduction, int output)
      : functor_{source.call.code, Compute<T>(source.call.s), Compute<T>(source.call.t)},
        reduction_(reduction),
        inputs_{source.call.a, source.call.b, source.call.c},
        output_(output),
        kept_(make_walk(source.large, source.out, false, source.operands)),
        reduced_(make_walk(source.large, source.out, true, source.operands)),
        count_(source.out.size()) {
    terms_ = 1;
    for (int axis = 0; axis < reduced_.num_axes; ++axis) terms_ *= reduced_.lengths[axis];
  }

  void run(const Args &args, const Lane &lane) const {
    if (count_ == 0) return;
    Operands<T> operands{};
    for (int k = 0; k < 3; ++k) operands.at[k] = inputs_[k] < 0 ? nullptr : args.in<T>(inputs_[k]);
    T *const out = args.out<T>(output_);
    if (reduced_.num_axes == 0 && reduction_.finish == Finish::kNone && !reduction_.skips_nan) {
      return launch(broadcast<T>, flat_grid(count_), lane.stream, functor_, operands, kept_, out, count_);
    }
    const Grid grid{dim3(unsigned(std::min<int64_t>(count_, 132 * 16))), dim3(kBlockThreads)};
    launch(reduce<T>, grid, lane.stream, functor_, reduction_, operands, kept_, reduced_, out, count_, terms_);
  }

 private:
  const Functor<Compute<T>> functor_;
  const Reduction reduction_;
  const int inputs_[3], output_;
  const Walk kept_, reduced_;
  const int64_t count_;
  int64_t terms_;
};

template <typename T>
class StridedCuda final : public Kernel {
 public:
  void add(const Source &source, int output, const Reduction &reduction = {}) {
    results_.emplace_back(source, reduction, output);
  }
  // The last output first: the first one may lie where an input is.
  void run(const Args &args, const Lane &lane) const override {
    for (size_t i = results_.size(); i-- > 0;) results_[i].run(args, lane);
  }

 private:
  std::vector<StridedResult<T>> results_;
};

// Calls `make` with an empty kernel of the step's type.
template <typename Make>
std::unique_ptr<Kernel> of_type(const StepSpec &spec, const Make &make) {
  const auto made = [&](auto kernel) -> std::unique_ptr<Kernel> {
    make(*kernel);
    return kernel;
  };
  switch (spec.outputs[0].dtype) {
    case Dtype::kFloat64:
      return made(std::make_unique<StridedCuda<double>>());
    case Dtype::kFloat16:
      return made(std::make_unique<StridedCuda<Float16>>());
    case Dtype::kBfloat16:
      return made(std::make_unique<StridedCuda<Bfloat16>>());
    default:
      return made(std::make_unique<StridedCuda<float>>());
  }
}

// ---- the broadcasting rules

Source source_of(const StepSpec &spec, const PointwiseCall &call, const Shape &large, size_t output) {
  const auto shape = [&](int input) { return input < 0 ? nullptr : &spec.inputs[size_t(input)].shape; };
  return {call, {shape(call.a), shape(call.b), shape(call.c)}, large, spec.outputs[output].shape};
}

std::unique_ptr<Kernel> make_rule(StepSpec &spec) {
  const PointwiseRule &rule = *find_pointwise_rule(spec.op);
  return of_type(spec, [&](auto &kernel) {
    if (spec.op == rule.name) {
      return kernel.add(source_of(spec, rule.forward_call(spec.attrs.get()), spec.outputs[0].shape, 0), 0);
    }
    for (size_t i = 0; i < rule.backward.size(); ++i) {
      if (!spec.wanted[i]) continue;
      kernel.add(source_of(spec, rule.backward_call(spec.attrs.get(), int(i)), spec.inputs[0].shape, i), int(i));
    }
  });
}

// ---- reductions

PointwiseCall call_of(PointwiseCode code, double s = 0) {
  const int operands = pointwise_operands(code);
  return {code, 0, operands > 1 ? 1 : -1, operands > 2 ? 2 : -1, s, 0};
}

std::unique_ptr<Kernel> make_reduce_of(const StepSpec &spec, const std::vector<bool> &reduced, PointwiseCode code,
                                       const Reduction &reduction) {
  const Shape &shape = spec.inputs[0].shape;
  return of_type(spec, [&](auto &kernel) {
    kernel.add({call_of(code), {&shape, nullptr, nullptr}, shape, kept_shape(shape, reduced)}, 0, reduction);
  });
}

// A functor of the head gradient, an element, and the result it went into, repeated over the reduced axes.
std::unique_ptr<Kernel> make_backward_of(const StepSpec &spec, const std::vector<bool> &reduced, PointwiseCode code,
                                         double s = 0) {
  const Shape &shape = spec.outputs[0].shape, kept = kept_shape(shape, reduced);
  return of_type(spec, [&](auto &kernel) { kernel.add({call_of(code, s), {&kept, &shape, &kept}, shape, shape}, 0); });
}

std::vector<bool> reduced_of(const StepSpec &spec, const Shape &shape) {
  const auto &a = spec.attrs_as<ReduceAttrs>();
  return axes_to_reduce(a.axis, a.exclude, shape.rank(), spec.op.c_str());
}

template <PointwiseCode kCode, Combine kCombine, bool kSkipsNan = false, Finish kFinish = Finish::kNone>
std::unique_ptr<Kernel> make_reduce(StepSpec &spec) {
  return make_reduce_of(spec, reduced_of(spec, spec.inputs[0].shape), kCode, {kCombine, kSkipsNan, kFinish});
}

template <PointwiseCode kCode>
std::unique_ptr<Kernel> make_reduce_backward(StepSpec &spec) {
  return make_backward_of(spec, reduced_of(spec, spec.outputs[0].shape), kCode);
}

std::unique_ptr<Kernel> make_mean_backward(StepSpec &spec) {
  const double elements = double(spec.outputs[0].shape.size()), results = double(spec.inputs[0].shape.size());
  return make_backward_of(spec, reduced_of(spec, spec.outputs[0].shape), PointwiseCode::kDivScalar,
                          results > 0 ? elements / results : 1);
}

std::vector<bool> norm_axes(const StepSpec &spec, const Shape &shape) {
  return axes_to_reduce(spec.attrs_as<NormAttrs>().axis, false, shape.rank(), "norm");
}

std::unique_ptr<Kernel> make_norm(StepSpec &spec) {
  const bool ones = spec.attrs_as<NormAttrs>().ord == 1;
  return make_reduce_of(spec, norm_axes(spec, spec.inputs[0].shape),
                        ones ? PointwiseCode::kAbs : PointwiseCode::kSquare,
                        {Combine::kSum, false, ones ? Finish::kNone : Finish::kRoot});
}

std::unique_ptr<Kernel> make_norm_backward(StepSpec &spec) {
  const bool ones = spec.attrs_as<NormAttrs>().ord == 1;
  return make_backward_of(spec, norm_axes(spec, spec.outputs[0].shape),
                          ones ? PointwiseCode::kAbsGrad : PointwiseCode::kNormGrad);
}

#define COHORT_CUDA_REDUCTION(op, ...) COHORT_KERNEL_BY(cuda, op, __VA_ARGS__).one_dtype(kFloatTypes)
COHORT_CUDA_REDUCTION(sum, make_reduce<PointwiseCode::kCopy, Combine::kSum>);
COHORT_CUDA_REDUCTION(mean, make_reduce<PointwiseCode::kCopy, Combine::kSum, false, Finish::kDivide>);
COHORT_CUDA_REDUCTION(prod, make_reduce<PointwiseCode::kCopy, Combine::kProduct>);
COHORT_CUDA_REDUCTION(nansum, make_reduce<PointwiseCode::kCopy, Combine::kSum, true>);
COHORT_CUDA_REDUCTION(nanprod, make_reduce<PointwiseCode::kCopy, Combine::kProduct, true>);
COHORT_CUDA_REDUCTION(max, make_reduce<PointwiseCode::kCopy, Combine::kMaximum>);
COHORT_CUDA_REDUCTION(min, make_reduce<PointwiseCode::kCopy, Combine::kMinimum>);
COHORT_CUDA_REDUCTION(_square_sum, make_reduce<PointwiseCode::kSquare, Combine::kSum>);
COHORT_CUDA_REDUCTION(norm, make_norm);
COHORT_CUDA_REDUCTION(_backward_sum, make_reduce_backward<PointwiseCode::kCopy>);
COHORT_CUDA_REDUCTION(_backward_mean, make_mean_backward);
COHORT_CUDA_REDUCTION(_backward_prod, make_reduce_backward<PointwiseCode::kProdGrad>);
COHORT_CUDA_REDUCTION(_backward_nansum, make_reduce_backward<PointwiseCode::kNanSumGrad>);
COHORT_CUDA_REDUCTION(_backward_nanprod, make_reduce_backward<PointwiseCode::kNanProdGrad>);
COHORT_CUDA_REDUCTION(_backward_max, make_reduce_backward<PointwiseCode::kMaskEqual>);
COHORT_CUDA_REDUCTION(_backward_min, make_reduce_backward<PointwiseCode::kMaskEqual>);
COHORT_CUDA_REDUCTION(_backward__square_sum, make_reduce_backward<PointwiseCode::kSquareGrad>);
COHORT_CUDA_REDUCTION(_backward_norm, make_norm_backward);

const bool rules_registered = [] {
  for (const auto &rule : pointwise_rules()) {
    const bool broadcasts = rule->form == PointwiseRule::Form::kBroadcast;
    // The others have kernels of their own for wide types (pointwise_cuda.cu).
    const DtypeSet dtypes = broadcasts ? kFloatTypes : DtypeSet{Dtype::kFloat16, Dtype::kBfloat16};
    cuda_kernels().add(rule->name, make_rule).named("strided").one_dtype(dtypes);
    if (!rule->backward.empty()) cuda_kernels().add(rule->backward_name, make_rule).named("strided").one_dtype(dtypes);
  }
  return true;
}();

}  // namespace
}  // namespace cohort
