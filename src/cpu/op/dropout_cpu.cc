// SPDX-License-Identifier: Apache-2.0
#include "op/dropout.hpp"

#include <algorithm>
#include <cstring>

#include "base/dtype_cast.hpp"
#include "base/random.hpp"
#include "cpu/op/philox_words.hpp"
#include "cpu/op/pointwise_loops.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

bool drops(const StepSpec &spec) {
  const auto &attrs = spec.attrs_as<DropoutAttrs>();
  return attrs.p > 0 && (spec.is_train || attrs.mode == DropoutAttrs::kAlways);
}

// Maps each element to its draw in the mask, which has length 1 along the axes that share draws.
class MaskDrawIndex {
 public:
  MaskDrawIndex(const Shape &shape, const Tuple &axes) : dims_(shape.begin(), shape.end()), strides_(dims_.size(), 0) {
    std::vector<bool> together(dims_.size(), false);
    for (int64_t axis : axes) together[size_t(normalize_axis(axis, shape.rank(), "Dropout"))] = true;
    for (size_t i = dims_.size(); i-- > 0;) {
      if (together[i]) continue;
      strides_[i] = size_;
      size_ *= dims_[i];
    }
    whole_ = std::find(together.begin(), together.end(), true) == together.end();
  }
  bool whole() const { return whole_; }  // one draw per element
  int64_t size() const { return size_; }
  int64_t of(int64_t element) const {
    int64_t index = 0;
    for (size_t i = dims_.size(); i-- > 0;) {
      index += element % dims_[i] * strides_[i];
      element /= dims_[i];
    }
    return index;
  }

 private:
  std::vector<int64_t> dims_, strides_;
  int64_t size_ = 1;
  bool whole_ = true;
};

template <typename T>
T masked(uint8_t kept, T value, float scale) {
  using C = std::conditional_t<kIsHalf<T>, float, std::conditional_t<std::is_floating_point_v<T>, T, double>>;
  return cast_element<T>(kept ? C(value) * C(scale) : C(0));
}

template <typename T>
struct MaskLoop {
  static void run(const uint8_t *mask, float scale, const T *in, T *out, int64_t count) {
    COHORT_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) out[i] = masked(mask[i], in[i], scale);
  }
};

// out = in * mask / (1 - p); mask holds a byte per draw. Used by the forward and the backward step.
template <typename T>
void apply_mask(const MaskDrawIndex &index, const uint8_t *mask, float scale, const T *in, T *out, int64_t begin,
                int64_t end) {
  static const auto loop = best_version<MaskLoop<T>>();
  if (index.whole()) return loop(mask + begin, scale, in + begin, out + begin, end - begin);
  for (int64_t i = begin; i < end; ++i) out[i] = masked(mask[index.of(i)], in[i], scale);
}

// Writes whether each of the four words of `count` blocks is at most `limit`, in the order of the draws.
struct DrawLoop {
  static void run(const PhiloxWords *words, uint32_t limit, uint8_t *mask, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      for (int w = 0; w < 4; ++w) mask[4 * i + w] = words->words[w][i] <= limit;
    }
  }
};

float scale_of(const StepSpec &spec) {
  const float p = spec.attrs_as<DropoutAttrs>().p;
  return p < 1 ? 1 / (1 - p) : 0;
}

// An element is kept if its word is at most this. With p 1, one in 2^32 is kept, and multiplied by 0.
uint32_t limit_of(float p) {
  const auto kept = uint64_t((1.0 - double(p)) * 4294967296.0);
  return uint32_t(kept > 0 ? kept - 1 : 0);
}

template <typename T>
class Drop final : public Kernel {
 public:
  explicit Drop(StepSpec &spec)
      : count_(spec.outputs[0].shape.size()),
        index_(spec.outputs[0].shape, spec.attrs_as<DropoutAttrs>().axes),
        scale_(scale_of(spec)),
        limit_(limit_of(spec.attrs_as<DropoutAttrs>().p)),
        saved_(spec.keep_for_backward) {
    (saved_ ? spec.saved_bytes : spec.scratch_bytes) = size_t((index_.size() + 3) / 4 * 4);  // whole blocks
  }

  // Draw i of draw r comes from block i / 4 of stream r, however many threads share the work.
  void run(const Args &args, const Lane &lane) const override {
    const uint64_t seed = args.random->seed, stream = args.random->draws++;
    uint8_t *const mask = static_cast<uint8_t *>(saved_ ? args.saved : args.scratch);
    const auto draw = [&](int64_t begin, int64_t end) {
      static const auto compare = best_version<DrawLoop>();
      PhiloxWords words;
      for (int64_t block = begin; block < end; block += PhiloxWords::kBlocks) {
        words.draw(seed, uint64_t(block), stream);
        compare(&words, limit_, mask + block * 4, std::min(PhiloxWords::kBlocks, end - block));
      }
    };
    const int64_t num_blocks = (index_.size() + 3) / 4;
    if (index_.whole()) {
      parallel_for(lane, num_blocks, kExpensiveGrain / 4, [&](int64_t begin, int64_t end) {
        draw(begin, end);
        apply_mask(index_, mask, scale_, args.in<T>(0), args.out<T>(0), begin * 4, std::min(end * 4, count_));
      });
      return;
    }
    parallel_for(lane, num_blocks, kExpensiveGrain / 4, draw);
    parallel_for(lane, count_, kExpensiveGrain, [&](int64_t begin, int64_t end) {
      apply_mask(index_, mask, scale_, args.in<T>(0), args.out<T>(0), begin, end);
    });
  }

 private:
  const int64_t count_;
  const MaskDrawIndex index_;
  const float scale_;
  const uint32_t limit_;
  const bool saved_;
};

template <typename T>
class DropBackward final : public Kernel {
 public:
  explicit DropBackward(const StepSpec &spec)
      : count_(spec.outputs[0].shape.size()),
        index_(spec.outputs[0].shape, spec.attrs_as<DropoutAttrs>().axes),
        scale_(scale_of(spec)) {}
  void run(const Args &args, const Lane &lane) const override {
    parallel_for(lane, count_, kCheapGrain, [&](int64_t begin, int64_t end) {
      apply_mask(index_, static_cast<const uint8_t *>(args.saved), scale_, args.in<T>(0), args.out<T>(0), begin, end);
    });
  }

 private:
  const int64_t count_;
  const MaskDrawIndex index_;
  const float scale_;
};

class Identity final : public Kernel {
 public:
  explicit Identity(const StepSpec &spec) : bytes_(int64_t(spec.outputs[0].bytes())) {}
  void run(const Args &args, const Lane &lane) const override {
    if (args.inputs[0] == args.outputs[0]) return;
    parallel_for(lane, bytes_, 262144, [&](int64_t begin, int64_t end) {
      std::memcpy(args.out<char>(0) + begin, args.in<char>(0) + begin, size_t(end - begin));
    });
  }

 private:
  const int64_t bytes_;
};

template <template <typename> class K>
std::unique_ptr<Kernel> make(StepSpec &spec) {
  if (!drops(spec)) return std::make_unique<Identity>(spec);
  return dispatch(spec.outputs[0].dtype,
                  [&](auto t) -> std::unique_ptr<Kernel> { return std::make_unique<K<decltype(t)>>(spec); });
}

COHORT_KERNEL_BY(cpu, Dropout, make<Drop>);
COHORT_KERNEL_BY(cpu, _backward_Dropout, make<DropBackward>);

}  // namespace
}  // namespace cohort
