// SPDX-License-Identifier: Apache-2.0
// Concat, SliceChannel and stack: joining and cutting.
#include <algorithm>
#include <vector>

#include "cuda/cuda_layout.hpp"
#include "device/kernel_table.hpp"
#include "kernels/strided_copy.hpp"
#include "op/concat.hpp"
#include "op/indexing.hpp"
#include "op/slice_channel.hpp"

namespace cohort {
namespace {

// ---- Concat, SliceChannel, stack: an array of `outer` rows, each of which holds one piece of every part. Each is the
// backward step of another.

class JoinedParts {
 public:
  JoinedParts(int64_t outer, const TensorSpec &whole, const std::vector<int64_t> &parts, bool joins)
      : joins_(joins), element_bytes_(dtype_size(whole.dtype)) {
    const int64_t row = outer > 0 ? whole.shape.size() / outer : 0;
    int64_t offset = 0;
    for (int64_t size : parts) {
      const int64_t length = outer > 0 ? size / outer : 0;
      offsets_.push_back(offset);
      offset += length;
      copies_.push_back(joins ? StridedCopy({{outer, length, row}, {length, 1, 1}}, element_bytes_)
                              : StridedCopy({{outer, row, length}, {length, 1, 1}}, element_bytes_));
    }
  }
  void run(const Args &args, const Lane &lane) const {
    for (size_t i = 0; i < copies_.size(); ++i) {
      const size_t at = size_t(offsets_[i]) * element_bytes_;
      if (joins_) {
        copies_[i].run(args.inputs[i], args.out<char>(0) + at, lane);
      } else if (args.outputs[i]) {
        copies_[i].run(args.in<char>(0) + at, args.outputs[i], lane);
      }
    }
  }

 private:
  const bool joins_;
  const size_t element_bytes_;
  std::vector<int64_t> offsets_;
  std::vector<StridedCopy> copies_;
};

class JoinedPartsCuda final : public Kernel {
 public:
  explicit JoinedPartsCuda(JoinedParts parts) : parts_(std::move(parts)) {}
  void run(const Args &args, const Lane &lane) const override { parts_.run(args, lane); }

 private:
  const JoinedParts parts_;
};

// `axis`: in the order of the layout.
std::unique_ptr<Kernel> make_join(StepSpec &spec, int64_t axis, const char *op) {
  const Shape whole = lying_shape(spec.outputs[0]);
  std::vector<int64_t> parts;
  for (const TensorSpec &part : spec.inputs) parts.push_back(part.shape.size());
  return std::make_unique<JoinedPartsCuda>(
      JoinedParts(whole.size(0, normalize_axis(axis, whole.rank(), op)), spec.outputs[0], parts, true));
}
// `equal`: the parts are equal; unwanted outputs then have no shape.
std::unique_ptr<Kernel> make_cut(StepSpec &spec, int64_t axis, const char *op, bool equal) {
  const Shape whole = lying_shape(spec.inputs[0]);
  std::vector<int64_t> parts;
  for (const TensorSpec &part : spec.outputs) {
    parts.push_back(equal ? whole.size() / int64_t(spec.outputs.size()) : part.shape.size());
  }
  return std::make_unique<JoinedPartsCuda>(
      JoinedParts(whole.size(0, normalize_axis(axis, whole.rank(), op)), spec.inputs[0], parts, false));
}

// Whether images are channels last and are joined or cut along their channels: then each place holds one piece of every
// part. Sets the layouts of all tensors accordingly.
bool settle_layouts(StepSpec *spec, const Shape &whole) {
  const std::vector<TensorSpec> &inputs = spec->inputs;
  const bool last = normalize_axis(spec->attrs_as<ConcatAttrs>().dim, whole.rank(), "Concat") == 1 &&
                    std::any_of(inputs.begin(), inputs.end(), lies_channels_last);
  for (TensorSpec &tensor : spec->inputs) tensor.layout = last ? channels_last_layout(tensor) : nullptr;
  for (TensorSpec &tensor : spec->outputs) tensor.layout = last ? channels_last_layout(tensor) : nullptr;
  return last;
}

std::unique_ptr<Kernel> make_concat(StepSpec &spec) {
  const bool last = settle_layouts(&spec, spec.outputs[0].shape);
  return make_join(spec, last ? -1 : spec.attrs_as<ConcatAttrs>().dim, "Concat");
}
std::unique_ptr<Kernel> make_concat_backward(StepSpec &spec) {
  const bool last = settle_layouts(&spec, spec.inputs[0].shape);
  return make_cut(spec, last ? -1 : spec.attrs_as<ConcatAttrs>().dim, "Concat", false);
}
std::unique_ptr<Kernel> make_slice_channel(StepSpec &spec) {
  return make_cut(spec, spec.attrs_as<SliceChannelAttrs>().axis, "SliceChannel", true);
}
std::unique_ptr<Kernel> make_slice_channel_backward(StepSpec &spec) {
  return make_join(spec, spec.attrs_as<SliceChannelAttrs>().axis, "SliceChannel");
}
std::unique_ptr<Kernel> make_stack(StepSpec &spec) {
  return make_join(spec, spec.attrs_as<StackAttrs>().axis, "stack");
}
std::unique_ptr<Kernel> make_stack_backward(StepSpec &spec) {
  return make_cut(spec, spec.attrs_as<StackAttrs>().axis, "stack", true);
}

COHORT_KERNEL_BY(cuda, Concat, make_concat).any_layout();
COHORT_KERNEL_BY(cuda, _backward_Concat, make_concat_backward).any_layout();
COHORT_KERNEL_BY(cuda, SliceChannel, make_slice_channel);
COHORT_KERNEL_BY(cuda, _backward_SliceChannel, make_slice_channel_backward);
COHORT_KERNEL_BY(cuda, stack, make_stack);
COHORT_KERNEL_BY(cuda, _backward_stack, make_stack_backward);

}  // namespace
}  // namespace cohort
