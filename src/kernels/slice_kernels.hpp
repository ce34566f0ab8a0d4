// SPDX-License-Identifier: Apache-2.0
// Kernels of op/slice.hpp: windows of arrays.
#pragma once

#include <algorithm>
#include <cstring>

#include "base/dtype_cast.hpp"
#include "kernels/backend.hpp"
#include "kernels/strided_copy.hpp"
#include "op/slice.hpp"

namespace cohort {
namespace {

// Copies between a window of an array and a dense array of the window's shape.
class WindowCopy {
 public:
  enum class Way { kOut, kIn };
  WindowCopy(const SliceWindow &w, const Shape &whole, Dtype dtype, Way way) {
    const std::vector<int64_t> outside = dense_strides(whole), inside = dense_strides(w.shape());
    std::vector<StridedCopy::Axis> axes;
    for (size_t i = 0; i < w.begin.size(); ++i) {
      offset_ += w.begin[i] * outside[i] * int64_t(dtype_size(dtype));
      const int64_t step = w.step[i] * outside[i];
      axes.push_back(way == Way::kOut ? StridedCopy::Axis{w.length[i], step, inside[i]}
                                      : StridedCopy::Axis{w.length[i], inside[i], step});
    }
    copy_ = StridedCopy(std::move(axes), dtype_size(dtype));
  }
  void out_of(const void *whole, void *window, const Lane &lane) const {
    copy_.run(static_cast<const char *>(whole) + offset_, window, lane);
  }
  void into(const void *window, void *whole, const Lane &lane) const {
    copy_.run(window, static_cast<char *>(whole) + offset_, lane);
  }
  void fill(const void *value, void *whole, const Lane &lane) const {
    copy_.fill(value, static_cast<char *>(whole) + offset_, lane);
  }

 private:
  int64_t offset_ = 0;
  StridedCopy copy_;
};

class CopyWindow final : public Kernel {
 public:
  CopyWindow(const StepSpec &spec, const SliceWindow &w)
      : copy_(w, spec.inputs[0].shape, spec.inputs[0].dtype, WindowCopy::Way::kOut) {}
  void run(const Args &args, const Lane &lane) const override { copy_.out_of(args.inputs[0], args.outputs[0], lane); }

 private:
  const WindowCopy copy_;
};

// Writes the head gradient into zeros. Further outputs, of inputs that only give a shape, are zeros.
class SliceBackward final : public Kernel {
 public:
  SliceBackward(const StepSpec &spec, const SliceWindow &w)
      : copy_(w, spec.outputs[0].shape, spec.outputs[0].dtype, WindowCopy::Way::kIn) {
    for (const TensorSpec &out : spec.outputs) bytes_.push_back(out.bytes());
  }
  void run(const Args &args, const Lane &lane) const override {
    for (size_t i = 0; i < bytes_.size(); ++i) {
      if (args.outputs[i]) zero_bytes(lane, args.outputs[i], bytes_[i]);
    }
    if (args.outputs[0]) copy_.into(args.inputs[0], args.outputs[0], lane);
  }

 private:
  const WindowCopy copy_;
  std::vector<size_t> bytes_;
};

template <typename A>
std::unique_ptr<Kernel> make_slice(StepSpec &spec) {
  return std::make_unique<CopyWindow>(spec, window_of(spec.attrs_as<A>(), spec.inputs[0].shape));
}
template <typename A>
std::unique_ptr<Kernel> make_slice_backward(StepSpec &spec) {
  return std::make_unique<SliceBackward>(spec, window_of(spec.attrs_as<A>(), spec.outputs[0].shape));
}
// A window at `begin` of the given shape.
SliceWindow window_at(std::vector<int64_t> begin, const Shape &shape) {
  return {std::move(begin), std::vector<int64_t>(shape.begin(), shape.end()),
          std::vector<int64_t>(size_t(shape.rank()), 1)};
}
std::unique_ptr<Kernel> make_slice_like(StepSpec &spec) {
  return std::make_unique<CopyWindow>(
      spec, window_at(std::vector<int64_t>(size_t(spec.inputs[0].shape.rank()), 0), spec.outputs[0].shape));
}
std::unique_ptr<Kernel> make_slice_like_backward(StepSpec &spec) {
  return std::make_unique<SliceBackward>(
      spec, window_at(std::vector<int64_t>(size_t(spec.outputs[0].shape.rank()), 0), spec.inputs[0].shape));
}
std::unique_ptr<Kernel> make_crop(StepSpec &spec) {
  return std::make_unique<CopyWindow>(
      spec, window_of(spec.attrs_as<CropAttrs>(), spec.inputs[0].shape, &spec.outputs[0].shape));
}
std::unique_ptr<Kernel> make_crop_backward(StepSpec &spec) {
  return std::make_unique<SliceBackward>(
      spec, window_of(spec.attrs_as<CropAttrs>(), spec.outputs[0].shape, &spec.inputs[0].shape));
}

COHORT_KERNEL_BY(backend, slice, make_slice<SliceAttrs>);
COHORT_KERNEL_BY(backend, _backward_slice, make_slice_backward<SliceAttrs>);
COHORT_KERNEL_BY(backend, slice_axis, make_slice<SliceAxisAttrs>);
COHORT_KERNEL_BY(backend, _backward_slice_axis, make_slice_backward<SliceAxisAttrs>);
COHORT_KERNEL_BY(backend, slice_like, make_slice_like);
COHORT_KERNEL_BY(backend, _backward_slice_like, make_slice_like_backward);
COHORT_KERNEL_BY(backend, Crop, make_crop);
COHORT_KERNEL_BY(backend, _backward_Crop, make_crop_backward);

// ---- _slice_assign, _slice_assign_scalar --------------------------------------------------------------------------

// Copies input 0 (or the head gradient), then writes another array or one value into a window of it.
class SliceAssign final : public Kernel {
 public:
  SliceAssign(const StepSpec &spec, double value, bool from_input)
      : bytes_(spec.inputs[0].bytes()),
        from_input_(from_input),
        copy_(window_of(spec.attrs_as<SliceAttrs>(), spec.inputs[0].shape), spec.inputs[0].shape, spec.inputs[0].dtype,
              WindowCopy::Way::kIn) {
    dispatch(spec.inputs[0].dtype, [&](auto t) {
      const auto element = cast_element<decltype(t)>(value);
      std::memcpy(value_, &element, sizeof element);
    });
  }
  void run(const Args &args, const Lane &lane) const override {
    if (!args.outputs[0]) return;
    copy_bytes(lane, args.outputs[0], args.inputs[0], bytes_);
    if (from_input_) {
      copy_.into(args.inputs[1], args.outputs[0], lane);
    } else {
      copy_.fill(value_, args.outputs[0], lane);
    }
  }

 private:
  const size_t bytes_;
  const bool from_input_;
  const WindowCopy copy_;
  alignas(8) char value_[8];
};

// The gradient of the array, with zeros in the window, and that of what was written into the window.
class SliceAssignBackward final : public Kernel {
 public:
  explicit SliceAssignBackward(const StepSpec &spec)
      : zeros_(spec, 0, false),
        out_(window_of(spec.attrs_as<SliceAttrs>(), spec.inputs[0].shape), spec.inputs[0].shape, spec.inputs[0].dtype,
             WindowCopy::Way::kOut),
        num_outputs_(spec.outputs.size()) {}
  void run(const Args &args, const Lane &lane) const override {
    if (num_outputs_ > 1 && args.outputs[1]) out_.out_of(args.inputs[0], args.outputs[1], lane);
    zeros_.run(args, lane);
  }

 private:
  const SliceAssign zeros_;
  const WindowCopy out_;
  const size_t num_outputs_;
};

std::unique_ptr<Kernel> make_slice_assign(StepSpec &spec) { return std::make_unique<SliceAssign>(spec, 0, true); }
std::unique_ptr<Kernel> make_slice_assign_scalar(StepSpec &spec) {
  return std::make_unique<SliceAssign>(spec, spec.attrs_as<SliceAttrs>().scalar, false);
}

COHORT_KERNEL_BY(backend, _slice_assign, make_slice_assign);
COHORT_KERNEL(backend, _backward__slice_assign, SliceAssignBackward);
COHORT_KERNEL_BY(backend, _slice_assign_scalar, make_slice_assign_scalar);
COHORT_KERNEL(backend, _backward__slice_assign_scalar, SliceAssignBackward);

// ---- _split_v2, reverse -------------------------------------------------------------------------------------------

class Split final : public Kernel {
 public:
  Split(const StepSpec &spec, const TensorSpec &whole, bool backward) : backward_(backward) {
    const auto &a = spec.attrs_as<SplitAttrs>();
    const int axis = normalize_axis(a.axis, whole.shape.rank(), "_split_v2");
    const std::vector<int64_t> points = split_points(a, whole.shape[axis]);
    for (size_t i = 0; i + 1 < points.size(); ++i) {
      std::vector<int64_t> begin(size_t(whole.shape.rank()), 0);
      Shape part = whole.shape;
      begin[size_t(axis)] = points[i];
      part[axis] = points[i + 1] - points[i];
      parts_.emplace_back(window_at(begin, part), whole.shape, whole.dtype,
                          backward ? WindowCopy::Way::kIn : WindowCopy::Way::kOut);
    }
  }
  void run(const Args &args, const Lane &lane) const override {
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (backward_) {
        parts_[i].into(args.inputs[i], args.outputs[0], lane);
      } else if (args.outputs[i]) {
        parts_[i].out_of(args.inputs[0], args.outputs[i], lane);
      }
    }
  }

 private:
  const bool backward_;
  std::vector<WindowCopy> parts_;
};

std::unique_ptr<Kernel> make_split(StepSpec &spec) { return std::make_unique<Split>(spec, spec.inputs[0], false); }
std::unique_ptr<Kernel> make_split_backward(StepSpec &spec) {
  return std::make_unique<Split>(spec, spec.outputs[0], true);
}

// reverse is its own backward step.
std::unique_ptr<Kernel> make_reverse(StepSpec &spec) {
  SliceWindow w = window_at(std::vector<int64_t>(size_t(spec.inputs[0].shape.rank()), 0), spec.inputs[0].shape);
  for (int64_t given : spec.attrs_as<ReverseAttrs>().axis) {
    const size_t axis = size_t(normalize_axis(given, spec.inputs[0].shape.rank(), "reverse"));
    w.step[axis] = -1;
    w.begin[axis] = std::max<int64_t>(spec.inputs[0].shape[int(axis)] - 1, 0);
  }
  return std::make_unique<CopyWindow>(spec, w);
}

COHORT_KERNEL_BY(backend, _split_v2, make_split);
COHORT_KERNEL_BY(backend, _backward__split_v2, make_split_backward);
COHORT_KERNEL_BY(backend, reverse, make_reverse);
COHORT_KERNEL_BY(backend, _backward_reverse, make_reverse);

}  // namespace
}  // namespace cohort
