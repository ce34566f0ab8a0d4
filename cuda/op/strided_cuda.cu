// SPDX-License-Identifier: Apache-2.0
// The kernels of strided_cuda.hpp. One kernel interprets all functors; the branch is the same for all threads.
#include <algorithm>
#include <cmath>
#include <vector>

#include "cuda/op/elements.cuh"
#include "cuda/op/strided_cuda.hpp"

namespace cohort {
namespace strided {

namespace {

// Strides of the operands along the axes of an index, the outermost first; a stride of 0 repeats.
struct Walk {
  int64_t num_axes = 0;
  int64_t lengths[kMaxAxes] = {}, strides[3][kMaxAxes] = {};
};

struct Operands {
  Elements at[3];
};

template <typename C>
struct Functor {
  PointwiseCode code;
  C s, t;
};

// On int64_t, only functors that are defined for integers.
template <typename F, typename C, bool kInteger>
__device__ C apply(const Functor<C> &f, C a, C b, C c) {
  if constexpr (kInteger || !std::is_integral_v<C>) return F::template of<C>(a, b, c, f.s, f.t);
  return C(0);
}

template <typename C>
__device__ C interpret(const Functor<C> &f, C a, C b, C c) {
  switch (f.code) {
#define COHORT_CASE(name, operands, integer, vector) \
  case PointwiseCode::k##name:                       \
    return apply<pointwise::name, C, integer>(f, a, b, c);
    COHORT_POINTWISE_LIST(COHORT_CASE)
#undef COHORT_CASE
  }
  return C(0);
}

// Adds the offset of element `index` to the offset of each operand.
__device__ void step_to(const Walk &walk, int64_t index, int64_t (&offsets)[3]) {
  for (int axis = int(walk.num_axes) - 1; axis > 0; --axis) {
    const int64_t along = index % walk.lengths[axis];
    index /= walk.lengths[axis];
    for (int k = 0; k < 3; ++k) offsets[k] += along * walk.strides[k][axis];
  }
  for (int k = 0; k < 3; ++k) offsets[k] += index * walk.strides[k][0];  // without axes, index and strides are 0
}

template <typename C>
__device__ C value_at(const Functor<C> &f, const Operands &operands, const int64_t (&offsets)[3]) {
  const auto read = [&](int k) { return operands.at[k].data ? load<C>(operands.at[k], offsets[k]) : C(0); };
  return interpret(f, read(0), read(1), read(2));
}

template <typename C>
__global__ void broadcast(Functor<C> f, Operands operands, Walk walk, Elements out, int64_t count) {
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += int64_t(gridDim.x) * blockDim.x) {
    int64_t offsets[3] = {0, 0, 0};
    step_to(walk, i, offsets);
    store(out, i, value_at(f, operands, offsets));
  }
}

// Floats are added up in double, integers in int64_t.
template <typename C>
using Wide = std::conditional_t<std::is_same_v<C, int64_t>, int64_t, double>;
using Combine = Reduction::Combine;
using Finish = Reduction::Finish;

template <typename A>
__device__ A neutral(Combine combine) {
  constexpr bool kWhole = std::is_integral_v<A>;
  switch (combine) {
    case Combine::kProduct:
      return A(1);
    case Combine::kMaximum:
      return kWhole ? A(INT64_MIN) : A(-INFINITY);
    case Combine::kMinimum:
      return kWhole ? A(INT64_MAX) : A(INFINITY);
    default:
      return A(0);
  }
}

template <typename A>
__device__ A combined(Combine combine, A a, A b) {
  switch (combine) {
    case Combine::kProduct:
      return pointwise::mul(a, b);
    case Combine::kMaximum:
      return b > a || b != b ? b : a;
    case Combine::kMinimum:
      return b < a || b != b ? b : a;
    default:
      return pointwise::add(a, b);
  }
}

template <typename A>
__device__ A finished(Finish finish, A result, int64_t terms) {
  if (finish == Finish::kNone) return result;
  return A(finish == Finish::kRoot ? sqrt(double(result)) : double(result) / double(terms));
}

// How the terms of each result are divided: into `parts`, each of which `width` neighbouring threads sum.
struct Share {
  int64_t width, parts, terms;
};

// Each thread of a part combines every width-th term in order, then the threads combine their values as a tree; the
// parts of a result are joined in order (join_parts). Every launch gives the same bits.
template <typename C>
__global__ void reduce(Functor<C> f, Reduction reduction, Operands operands, Walk kept, Walk reduced, Share share,
                       Elements out, Wide<C> *parts, int64_t count) {
  using A = Wide<C>;
  COHORT_SHARED(A, partial, [kBlockThreads]);
  const int64_t width = share.width, units = count * share.parts, per_block = kBlockThreads / width;
  for (int64_t first = blockIdx.x * per_block; first < units; first += gridDim.x * per_block) {
    const int64_t unit = first + threadIdx.x / width, lane = threadIdx.x % width;
    const int64_t j = unit / share.parts, part = unit % share.parts;
    A all = neutral<A>(reduction.combine);
    if (unit < units) {
      int64_t begin[3] = {0, 0, 0};
      step_to(kept, j, begin);
      const int64_t end = share.terms * (part + 1) / share.parts;
      for (int64_t i = share.terms * part / share.parts + lane; i < end; i += width) {
        int64_t offsets[3] = {begin[0], begin[1], begin[2]};
        step_to(reduced, i, offsets);
        const A value = A(value_at(f, operands, offsets));
        if (!reduction.skips_nan || value == value) all = combined(reduction.combine, all, value);
      }
    }
    if (width > 1) {
      partial[threadIdx.x] = all;
      for (int64_t half = width / 2; half > 0; half /= 2) {
        __syncthreads();
        if (lane >= half) continue;
        partial[threadIdx.x] = combined(reduction.combine, partial[threadIdx.x], partial[threadIdx.x + half]);
      }
      all = partial[threadIdx.x];
    }
    if (lane == 0 && unit < units) {
      if (share.parts > 1) {
        parts[unit] = all;
      } else {
        store(out, j, finished(reduction.finish, all, share.terms));
      }
    }
    if (width > 1) __syncthreads();  // before the next ones
  }
}

template <typename A>
__global__ void join_parts(Reduction reduction, Share share, const A *parts, Elements out, int64_t count) {
  for (int64_t j = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; j < count; j += int64_t(gridDim.x) * blockDim.x) {
    A all = parts[j * share.parts];
    for (int64_t p = 1; p < share.parts; ++p) all = combined(reduction.combine, all, parts[j * share.parts + p]);
    store(out, j, finished(reduction.finish, all, share.terms));
  }
}

int64_t length_of(const Shape &shape, int axis, int rank) {
  const int missing = rank - shape.rank();
  return axis < missing ? 1 : shape[axis - missing];
}

// Walks over the axes of `large` that `out` has or, with `reduced`, lacks. Throws if there are too many.
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
    int last = int(walk.num_axes) - 1;
    bool joins = last >= 0;
    for (int k = 0; k < 3 && joins; ++k) joins = walk.strides[k][last] == strides[k][size_t(axis)] * length;
    if (!joins) {
      last = int(walk.num_axes++);
      walk.lengths[last] = 1;
    }
    walk.lengths[last] *= length;
    for (int k = 0; k < 3; ++k) walk.strides[k][last] = strides[k][size_t(axis)];
  }
  return walk;
}

// Enough threads to keep the device busy, but no more per result than it has terms.
Share share_of(int64_t count, int64_t terms) {
  constexpr int64_t kBusy = 132 * 1024, kTermsPerPart = 16384, kMostParts = 512;
  Share share{1, 1, terms};
  while (share.width < kBlockThreads && share.width < terms && count * share.width < kBusy) share.width *= 2;
  if (share.width == kBlockThreads) {
    share.parts = std::clamp<int64_t>(std::min(kBusy / (count * share.width), terms / kTermsPerPart), 1, kMostParts);
  }
  return share;
}

template <typename C>
class StridedResult {
 public:
  StridedResult(const StepSpec &spec, const StridedCall &source, const Reduction &reduction, int output)
      : reduction_(reduction),
        inputs_{source.call.a, source.call.b, source.call.c},
        output_(output),
        dtype_(spec.outputs[size_t(output)].dtype),
        kept_(make_walk(source.large, source.out, false, source.operands)),
        reduced_(make_walk(source.large, source.out, true, source.operands)),
        count_(source.out.size()) {
    const bool whole = !dtype_is_float(dtype_);  // for integers the numbers lose their fractions
    const auto number = [=](double value) { return cast_element<C>(whole ? std::trunc(value) : value); };
    functor_ = {source.call.code, number(source.call.s), number(source.call.t)};
    int64_t terms = 1;
    for (int64_t axis = 0; axis < reduced_.num_axes; ++axis) terms *= reduced_.lengths[axis];
    share_ = share_of(std::max<int64_t>(count_, 1), terms);
    for (int k = 0; k < 3; ++k) {
      if (inputs_[k] >= 0) dtypes_[k] = spec.inputs[size_t(inputs_[k])].dtype;
    }
  }
  size_t scratch_bytes() const { return share_.parts > 1 ? size_t(count_ * share_.parts) * sizeof(Wide<C>) : 0; }

  void run(const Args &args, const Lane &lane) const {
    if (count_ == 0 || !args.outputs[output_]) return;
    Operands operands{};
    for (int k = 0; k < 3; ++k) {
      if (inputs_[k] >= 0) operands.at[k] = elements_of(args.inputs[inputs_[k]], dtypes_[k]);
    }
    const Elements out = elements_of(args.outputs[output_], dtype_);
    if (reduced_.num_axes == 0 && reduction_.finish == Finish::kNone && !reduction_.skips_nan) {
      return launch(broadcast<C>, flat_grid(count_), lane.stream, functor_, operands, kept_, out, count_);
    }
    auto *const parts = static_cast<Wide<C> *>(args.scratch);
    launch(reduce<C>, flat_grid(count_ * share_.parts * share_.width), lane.stream, functor_, reduction_, operands,
           kept_, reduced_, share_, out, parts, count_);
    if (share_.parts > 1) {
      launch(join_parts<Wide<C>>, flat_grid(count_), lane.stream, reduction_, share_, parts, out, count_);
    }
  }

 private:
  Functor<C> functor_;
  const Reduction reduction_;
  const int inputs_[3], output_;
  const Dtype dtype_;
  Dtype dtypes_[3] = {};
  const Walk kept_, reduced_;
  const int64_t count_;
  Share share_{};
};

}  // namespace

void StridedCuda::add(StepSpec &spec, Dtype dtype, const StridedCall &source, int output, const Reduction &reduction) {
  dispatch_compute(dtype, pointwise_in_integers(source.call.code), [&](auto c) {
    auto result = std::make_shared<StridedResult<decltype(c)>>(spec, source, reduction, output);
    spec.scratch_bytes = std::max(spec.scratch_bytes, result->scratch_bytes());
    runs_.push_back([result](const Args &args, const Lane &lane) { result->run(args, lane); });
  });
}

StridedCall source_of(const StepSpec &spec, const PointwiseCall &call, const Shape &large, size_t output) {
  const auto shape = [&](int input) { return input < 0 ? nullptr : &spec.inputs[size_t(input)].shape; };
  return {call, {shape(call.a), shape(call.b), shape(call.c)}, large, spec.outputs[output].shape};
}

std::unique_ptr<Kernel> make_repeated(StepSpec &spec, const Shape &data, const Shape &repeated) {
  auto kernel = std::make_unique<StridedCuda>();
  kernel->add(spec, spec.outputs[0].dtype, {{PointwiseCode::kCopy, 0}, {&data, nullptr, nullptr}, repeated, repeated},
              0);
  return kernel;
}
std::unique_ptr<Kernel> make_repeated_backward(StepSpec &spec, const Shape &data, const Shape &repeated) {
  auto kernel = std::make_unique<StridedCuda>();
  kernel->add(spec, spec.outputs[0].dtype, {{PointwiseCode::kCopy, 0}, {&repeated, nullptr, nullptr}, repeated, data},
              0);
  return kernel;
}

}  // namespace strided
}  // namespace cohort
