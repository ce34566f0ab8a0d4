// SPDX-License-Identifier: Apache-2.0
// Kernels that copy, cast, add up or fill whole arrays.
#include <algorithm>
#include <cstring>

#include "base/dtype_cast.hpp"
#include "cpu/op/pointwise_loops.hpp"
#include "cpu/parallel.hpp"
#include "cpu/simd.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

constexpr int64_t kCopyGrainBytes = 262144;

// Copies input i to output i.
class CopyInputs final : public Kernel {
 public:
  explicit CopyInputs(const StepSpec &spec) {
    for (const TensorSpec &out : spec.outputs) bytes_.push_back(int64_t(out.bytes()));
  }
  void run(const Args &args, const Lane &lane) const override {
    for (size_t i = 0; i < bytes_.size(); ++i) {
      char *const to = static_cast<char *>(args.outputs[i]);
      const char *const from = static_cast<const char *>(args.inputs[i]);
      if (!to || to == from) continue;
      parallel_for(lane, bytes_[i], kCopyGrainBytes,
                   [&](int64_t begin, int64_t end) { std::memcpy(to + begin, from + begin, size_t(end - begin)); });
    }
  }

 private:
  std::vector<int64_t> bytes_;
};

template <typename U, typename T>
struct CastRange {
  static void run(const void *from, void *to, int64_t begin, int64_t end) {
    const T *const x = static_cast<const T *>(from);
    U *const y = static_cast<U *>(to);
    if constexpr (std::is_same_v<U, T>) {
      if (to != from) std::memcpy(y + begin, x + begin, size_t(end - begin) * sizeof(T));
    } else {
      for (int64_t i = begin; i < end; ++i) y[i] = cast_element<U>(x[i]);
    }
  }
};

// Uses the vectorised conversions of blocks for large arrays.
template <typename T>
constexpr bool kIsUsual = std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, int32_t> ||
                          std::is_same_v<T, int64_t> || std::is_same_v<T, uint8_t>;
template <typename U, typename T>
auto cast_range() {
  if constexpr (kIsUsual<T> && kIsUsual<U> && !std::is_same_v<T, U>) return best_version<CastRange<U, T>>();
  return &CastRange<U, T>::run;
}

// Casts input i to the type of output i.
class CastCopy final : public Kernel {
 public:
  explicit CastCopy(const StepSpec &spec) {
    for (size_t i = 0; i < spec.outputs.size(); ++i) {
      const Dtype from = spec.inputs[i].dtype, to = spec.outputs[i].dtype;
      counts_.push_back(spec.outputs[i].shape.size());
      // Converts between 16-bit floats and float by blocks.
      const bool half = from == Dtype::kFloat16 || from == Dtype::kBfloat16;
      load_.push_back(half && to == Dtype::kFloat32 ? load_block(from, to) : nullptr);
      const bool to_half = to == Dtype::kFloat16 || to == Dtype::kBfloat16;
      store_.push_back(to_half && from == Dtype::kFloat32 ? store_block(from, to) : nullptr);
      cast_.push_back(dispatch(from, [&](auto t) {
        return dispatch(to, [&](auto u) -> Range { return cast_range<decltype(u), decltype(t)>(); });
      }));
    }
  }
  void run(const Args &args, const Lane &lane) const override {
    for (size_t i = 0; i < counts_.size(); ++i) {
      if (!args.outputs[i]) continue;
      parallel_for(lane, counts_[i], kCheapGrain, [&](int64_t begin, int64_t end) {
        if (load_[i]) {
          load_[i](args.inputs[i], begin, args.out<float>(int(i)) + begin, end - begin);
        } else if (store_[i]) {
          store_[i](args.in<float>(int(i)) + begin, args.outputs[i], begin, end - begin);
        } else {
          cast_[i](args.inputs[i], args.outputs[i], begin, end);
        }
      });
    }
  }

 private:
  using Range = void (*)(const void *from, void *to, int64_t begin, int64_t end);
  std::vector<int64_t> counts_;
  std::vector<LoadBlock> load_;
  std::vector<StoreBlock> store_;
  std::vector<Range> cast_;
};

// out = in0 + in1 + ..., from left to right. out may be in0. 16-bit floats are added in float; where the output is one,
// inputs may be float, and the reverse.
template <typename C>
class Sum final : public Kernel {
 public:
  explicit Sum(const StepSpec &spec)
      : count_(spec.outputs[0].shape.size()),
        num_inputs_(int(spec.inputs.size())),
        direct_(spec.outputs[0].dtype == dtype_of<C>() &&
                std::all_of(spec.inputs.begin(), spec.inputs.end(),
                            [](const TensorSpec &input) { return input.dtype == dtype_of<C>(); })),
        add_(pointwise_loop<C>(PointwiseCode::kAdd)),
        store_(store_block(dtype_of<C>(), spec.outputs[0].dtype)) {
    for (const TensorSpec &input : spec.inputs) load_.push_back(load_block(input.dtype, dtype_of<C>()));
  }

  void run(const Args &args, const Lane &lane) const override {
    parallel_for(lane, count_, kCheapGrain, [&](int64_t begin, int64_t end) {
      const int64_t block = num_inputs_ == 2 && direct_ ? end - begin : kPointwiseBlock;
      for (int64_t i = begin; i < end; i += block) add_block(args, i, std::min(block, end - i));
    });
  }

 private:
  void add_block(const Args &args, int64_t begin, int64_t count) const {
    if (direct_) {
      C *const out = args.out<C>(0) + begin;
      if (num_inputs_ == 1) {
        if (args.outputs[0] != args.inputs[0]) std::memcpy(out, args.in<C>(0) + begin, size_t(count) * sizeof(C));
        return;
      }
      const C *sum = args.in<C>(0) + begin;
      for (int i = 1; i < num_inputs_; ++i) {
        add_(sum, args.in<C>(i) + begin, nullptr, C(0), C(0), out, count);
        sum = out;
      }
      return;
    }
    C sum[kPointwiseBlock], next[kPointwiseBlock];
    load_[0](args.inputs[0], begin, sum, count);
    for (int i = 1; i < num_inputs_; ++i) {
      load_[size_t(i)](args.inputs[i], begin, next, count);
      add_(sum, next, nullptr, C(0), C(0), sum, count);
    }
    store_(sum, args.outputs[0], begin, count);
  }

  const int64_t count_;
  const int num_inputs_;
  const bool direct_;
  const PointwiseLoop<C> add_;
  const StoreBlock store_;
  std::vector<LoadBlock> load_;
};

std::unique_ptr<Kernel> make_sum(StepSpec &spec) {
  return dispatch_compute(spec.outputs[0].dtype, true,
                          [&](auto c) -> std::unique_ptr<Kernel> { return std::make_unique<Sum<decltype(c)>>(spec); });
}

class FillZero final : public Kernel {
 public:
  explicit FillZero(const StepSpec &spec) {
    for (const TensorSpec &out : spec.outputs) bytes_.push_back(int64_t(out.bytes()));
  }
  void run(const Args &args, const Lane &lane) const override {
    for (size_t i = 0; i < bytes_.size(); ++i) {
      char *const to = static_cast<char *>(args.outputs[i]);
      if (!to) continue;
      parallel_for(lane, bytes_[i], kCopyGrainBytes,
                   [&](int64_t begin, int64_t end) { std::memset(to + begin, 0, size_t(end - begin)); });
    }
  }

 private:
  std::vector<int64_t> bytes_;
};

COHORT_KERNEL(cpu, _copy, CopyInputs);
COHORT_KERNEL(cpu, _identity_with_attr_like_rhs, CopyInputs);
COHORT_KERNEL(cpu, _CrossDeviceCopy, CopyInputs);
COHORT_KERNEL(cpu, BlockGrad, CopyInputs);
COHORT_KERNEL(cpu, make_loss, CopyInputs);
COHORT_KERNEL(cpu, MakeLoss, CopyInputs);
COHORT_KERNEL(cpu, _cast_copy, CastCopy);
COHORT_KERNEL(cpu, Cast, CastCopy);
COHORT_KERNEL(cpu, _copyto, CastCopy);
COHORT_KERNEL(cpu, _backward_Cast, CastCopy);
COHORT_KERNEL(cpu, amp_cast, CastCopy);
COHORT_KERNEL(cpu, _backward_amp_cast, CastCopy);
COHORT_KERNEL(cpu, amp_multicast, CastCopy);
COHORT_KERNEL(cpu, _backward_amp_multicast, CastCopy);
COHORT_KERNEL_BY(cpu, add_n, make_sum);
COHORT_KERNEL_BY(cpu, _sum_gradients, make_sum);
COHORT_KERNEL(cpu, _fill_zero, FillZero);

}  // namespace
}  // namespace cohort
