// SPDX-License-Identifier: Apache-2.0
#include "op/pad.hpp"

#include <algorithm>

#include "base/dtype_cast.hpp"
#include "cpu/op/pointwise_loops.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

// One axis: the source of each padded element, and for each element of data the padded elements that copy it.
struct PaddedAxis {
  std::vector<int64_t> from;        // -1: the constant
  std::vector<int64_t> first, all;  // copies of element i: all[first[i]] to all[first[i + 1]]

  int64_t before;  // number of padded elements before the data

  PaddedAxis(PadAttrs::Mode mode, int64_t before, int64_t length, int64_t padded)
      : first(size_t(length) + 1, 0), before(before) {
    for (int64_t at = 0; at < padded; ++at) {
      from.push_back(padded_from(mode, at, before, length));
      if (from.back() >= 0) ++first[size_t(from.back()) + 1];
    }
    for (size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
    all.resize(size_t(first.back()));
    std::vector<int64_t> next = first;
    for (int64_t at = 0; at < padded; ++at) {
      if (from[size_t(at)] >= 0) all[size_t(next[size_t(from[size_t(at)])]++)] = at;
    }
  }
  int64_t length() const { return int64_t(first.size()) - 1; }
  int64_t padded() const { return int64_t(from.size()); }
};

// Planes of three axes, one after the other: data (planes, D, H, W).
class PadKernel : public Kernel {
 protected:
  PadKernel(const PadAttrs &a, const Shape &data, const Shape &padded) : planes_(data.size(0, 2)) {
    for (int axis = data.rank() - 3; axis < data.rank(); ++axis) {
      if (axis < 2) {
        axes_.emplace_back(a.mode, 0, 1, 1);
      } else {
        axes_.emplace_back(a.mode, a.pad_width[size_t(2 * axis)], data[axis], padded[axis]);
      }
    }
  }
  int64_t grain() const {
    const int64_t plane = axes_[0].padded() * axes_[1].padded() * axes_[2].padded();
    return std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(plane, 1));
  }
  const int64_t planes_;
  std::vector<PaddedAxis> axes_;
};

template <typename T>
class Pad final : public PadKernel {
 public:
  explicit Pad(const StepSpec &spec)
      : PadKernel(spec.attrs_as<PadAttrs>(), spec.inputs[0].shape, spec.outputs[0].shape),
        value_(cast_element<T>(spec.attrs_as<PadAttrs>().constant_value)) {}
  void run(const Args &args, const Lane &lane) const override {
    const PaddedAxis &d = axes_[0], &h = axes_[1], &w = axes_[2];
    parallel_for(lane, planes_, grain(), [&](int64_t begin, int64_t end) {
      T *y = args.out<T>(0) + begin * d.padded() * h.padded() * w.padded();
      for (int64_t plane = begin; plane < end; ++plane) {
        for (int64_t i : d.from) {
          for (int64_t j : h.from) {
            const T *const row = args.in<T>(0) + ((plane * d.length() + i) * h.length() + j) * w.length();
            for (int64_t k : w.from) *y++ = i < 0 || j < 0 || k < 0 ? value_ : row[k];
          }
        }
      }
    });
  }

 private:
  const T value_;
};

// Each element gets the sum of the head gradients of its copies.
template <typename T>
class PadBackward final : public PadKernel {
 public:
  explicit PadBackward(const StepSpec &spec)
      : PadKernel(spec.attrs_as<PadAttrs>(), spec.outputs[0].shape, spec.inputs[0].shape) {}
  void run(const Args &args, const Lane &lane) const override {
    const PaddedAxis &d = axes_[0], &h = axes_[1], &w = axes_[2];
    parallel_for(lane, planes_, grain(), [&](int64_t begin, int64_t end) {
      std::vector<Sum> sums(size_t(w.length()));
      T *dx = args.out<T>(0) + begin * d.length() * h.length() * w.length();
      for (int64_t plane = begin; plane < end; ++plane) {
        const T *const head = args.in<T>(0) + plane * d.padded() * h.padded() * w.padded();
        for (int64_t i = 0; i < d.length(); ++i) {
          for (int64_t j = 0; j < h.length(); ++j) {
            gather_row(head, i, j, sums.data());
            for (int64_t k = 0; k < w.length(); ++k) *dx++ = T(sums[size_t(k)]);
          }
        }
      }
    });
  }

 private:
  using Sum = typename Accumulator<T>::type;
  void gather_row(const T *head, int64_t i, int64_t j, Sum *sums) const {
    const PaddedAxis &d = axes_[0], &h = axes_[1], &w = axes_[2];
    std::fill_n(sums, w.length(), Sum(0));
    for (int64_t a = d.first[size_t(i)]; a < d.first[size_t(i) + 1]; ++a) {
      for (int64_t b = h.first[size_t(j)]; b < h.first[size_t(j) + 1]; ++b) {
        const T *const row = head + (d.all[size_t(a)] * h.padded() + h.all[size_t(b)]) * w.padded();
        const auto add_copies = [&](int64_t from, int64_t to) {
          for (int64_t at = from; at < to; ++at) {
            const int64_t k = w.from[size_t(at)];
            if (k >= 0) sums[k] = pointwise::add(sums[k], Sum(row[at]));
          }
        };
        add_copies(0, w.before);
        for (int64_t k = 0; k < w.length(); ++k) sums[k] = pointwise::add(sums[k], Sum(row[w.before + k]));
        add_copies(w.before + w.length(), w.padded());
      }
    }
  }
};

std::unique_ptr<Kernel> make_pad(StepSpec &spec) {
  return dispatch(spec.inputs[0].dtype,
                  [&](auto t) -> std::unique_ptr<Kernel> { return std::make_unique<Pad<decltype(t)>>(spec); });
}
std::unique_ptr<Kernel> make_pad_backward(StepSpec &spec) {
  return dispatch(spec.outputs[0].dtype,
                  [&](auto t) -> std::unique_ptr<Kernel> { return std::make_unique<PadBackward<decltype(t)>>(spec); });
}

COHORT_KERNEL_BY(cpu, Pad, make_pad);
COHORT_KERNEL_BY(cpu, _backward_Pad, make_pad_backward);

}  // namespace
}  // namespace cohort
