// SPDX-License-Identifier: Apache-2.0
// Joins and splits along one axis: Concat, SliceChannel, stack. Each is the backward step of another. Concat joins
// images in their layout, unless all of them are row-major.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "cpu/dnnl_kernel.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"
#include "op/concat.hpp"
#include "op/indexing.hpp"
#include "op/slice_channel.hpp"

namespace cohort {
namespace {

constexpr int64_t kGrainBytes = 131072;

// An array of `outer` rows, each of which consists of a contiguous piece of every part.
struct RowParts {
  int64_t outer = 1, row_bytes = 0;
  std::vector<int64_t> bytes, offsets;

  RowParts(int64_t num_rows, const std::vector<TensorSpec> &parts) : outer(num_rows) {
    for (const TensorSpec &part : parts) {
      bytes.push_back(outer > 0 ? int64_t(part.bytes()) / outer : 0);
      offsets.push_back(row_bytes);
      row_bytes += bytes.back();
    }
  }

  // num_parts equal parts: unwanted parts have no shape.
  RowParts(int64_t num_rows, const TensorSpec &whole, size_t num_parts) : outer(num_rows) {
    row_bytes = outer > 0 ? int64_t(whole.bytes()) / outer : 0;
    for (size_t i = 0; i < num_parts; ++i) {
      bytes.push_back(row_bytes / int64_t(num_parts));
      offsets.push_back(int64_t(i) * bytes.back());
    }
  }

  // Calls copy(part, offset in the part, offset in the whole, bytes).
  template <typename Fn>
  void for_each(const Lane &lane, Fn &&copy) const {
    if (row_bytes == 0) return;  // parts without elements may have no memory
    if (outer == 1) {            // few long pieces: share them out by bytes
      for (size_t i = 0; i < bytes.size(); ++i) {
        parallel_for(lane, bytes[i], kGrainBytes,
                     [&](int64_t begin, int64_t end) { copy(i, begin, offsets[i] + begin, size_t(end - begin)); });
      }
      return;
    }
    parallel_for(lane, outer, std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(row_bytes, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (size_t i = 0; i < bytes.size(); ++i) {
                     for (int64_t row = begin; row < end; ++row) {
                       copy(i, row * bytes[i], row * row_bytes + offsets[i], size_t(bytes[i]));
                     }
                   }
                 });
  }

  void join(const Args &args, const Lane &lane) const {
    char *const whole = args.out<char>(0);
    for_each(lane, [&](size_t i, int64_t at_part, int64_t at_whole, size_t num_bytes) {
      std::memcpy(whole + at_whole, args.in<char>(int(i)) + at_part, num_bytes);
    });
  }
};

class Join final : public Kernel {
 public:
  Join(const StepSpec &spec, int64_t outer) : parts_(outer, spec.inputs) {}
  void run(const Args &args, const Lane &lane) const override { parts_.join(args, lane); }

 private:
  const RowParts parts_;
};

class Cut final : public Kernel {
 public:
  explicit Cut(RowParts parts) : parts_(std::move(parts)) {}
  void run(const Args &args, const Lane &lane) const override {
    const char *const whole = args.in<char>(0);
    parts_.for_each(lane, [&](size_t i, int64_t at_part, int64_t at_whole, size_t bytes) {
      if (char *const part = args.out<char>(int(i))) std::memcpy(part + at_part, whole + at_whole, bytes);
    });
  }

 private:
  const RowParts parts_;
};

// ---- images in their layout ---------------------------------------------------------------------------------------

// A layout of images: channels in blocks of a given size, or last. Joined along the channels, each image (in blocks)
// or place (channels last) consists of a contiguous piece of every part.
struct Images {
  int64_t block = 0;  // 0: channels last

  std::shared_ptr<const Layout> layout(const TensorSpec &images) const {
    const dnn::Dims dims = dnn::dims_of(images.shape);
    return dnn::layout_of(
        block ? dnn::channels_in_blocks(dims, images.dtype, block) : dnn::channels_last(dims, images.dtype),
        dnn::row_major(dims, images.dtype));
  }
  int64_t outer(const Shape &shape) const { return shape[0] * (block ? 1 : shape.size(2, shape.rank())); }
  static std::optional<Images> of(const TensorSpec &images) {
    if (!images.layout) return std::nullopt;
    const dnn::Desc desc = dnn::desc_of(images);
    if (dnn::is_channels_last(desc)) return Images{};
    const dnn::Blocking blocking = dnn::blocking_of(desc);
    if (!blocking.blocked || blocking.inner_axes != dnn::Dims{1}) return std::nullopt;
    return Images{blocking.inner_blocks[0]};
  }
};

// The layout of most of the parts, by bytes. Blocks are used only if the channels of each part fill whole blocks.
std::optional<Images> common_images(const std::vector<TensorSpec> &parts) {
  std::map<int64_t, size_t> bytes;
  size_t rows = 0;
  for (const TensorSpec &part : parts) {
    const auto images = Images::of(part);
    (images ? bytes[images->block] : rows) += part.bytes();
  }
  for (auto lies = bytes.begin(); lies != bytes.end();) {
    const bool whole = std::all_of(parts.begin(), parts.end(), [&](const TensorSpec &part) {
      return lies->first == 0 || part.shape[1] % lies->first == 0;
    });
    if (!whole) bytes[0] += lies->second;
    lies = whole ? std::next(lies) : bytes.erase(lies);
  }
  const auto most =
      std::max_element(bytes.begin(), bytes.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
  if (most == bytes.end() || most->second < rows) return std::nullopt;
  return Images{most->first};
}

class JoinImages final : public Kernel {
 public:
  JoinImages(StepSpec &spec, const Images &images)
      : images_(images), parts_(images.outer(spec.outputs[0].shape), spec.inputs) {
    for (TensorSpec &part : spec.inputs) part.layout = images.layout(part);
    spec.outputs[0].layout = images.layout(spec.outputs[0]);
  }
  void run(const Args &args, const Lane &lane) const override { parts_.join(args, lane); }
  const Images &images() const { return images_; }

 private:
  const Images images_;
  const RowParts parts_;
};

std::string refuses_images(const StepSpec &spec) {
  const Shape &whole = spec.outputs[0].shape;
  if (whole.rank() < 3 || normalize_axis(spec.attrs_as<ConcatAttrs>().dim, whole.rank(), "Concat") != 1) {
    return "joins along the channels of images alone";
  }
  return "";
}

std::unique_ptr<Kernel> make_images(StepSpec &spec) {
  const auto images = common_images(spec.inputs);
  return images ? std::make_unique<JoinImages>(spec, *images) : nullptr;
}

// Splits the gradient into the layouts of the parts in the forward pass.
std::string refuses_cut_images(const StepSpec &spec) {
  return dynamic_cast<const JoinImages *>(spec.forward) ? "" : "the forward pass joined row-major arrays";
}
std::unique_ptr<Kernel> make_cut_images(StepSpec &spec) {
  const Images &images = dynamic_cast<const JoinImages &>(*spec.forward).images();
  spec.inputs[0].layout = images.layout(spec.inputs[0]);
  for (TensorSpec &part : spec.outputs) part.layout = images.layout(part);
  return std::make_unique<Cut>(RowParts(images.outer(spec.inputs[0].shape), spec.outputs));
}

// ---- row-major ------------------------------------------------------------------------------------------------------

int64_t rows_before(const Shape &whole, int64_t axis, const char *op) {
  return whole.size(0, normalize_axis(axis, whole.rank(), op));
}

std::unique_ptr<Kernel> make_concat(StepSpec &spec) {
  const int64_t axis = spec.attrs_as<ConcatAttrs>().dim;
  return std::make_unique<Join>(spec, rows_before(spec.outputs[0].shape, axis, "Concat"));
}
std::unique_ptr<Kernel> make_concat_backward(StepSpec &spec) {
  const int64_t axis = spec.attrs_as<ConcatAttrs>().dim;
  return std::make_unique<Cut>(RowParts(rows_before(spec.inputs[0].shape, axis, "Concat"), spec.outputs));
}
std::unique_ptr<Kernel> make_slice_channel(StepSpec &spec) {
  const int64_t axis = spec.attrs_as<SliceChannelAttrs>().axis;
  return std::make_unique<Cut>(
      RowParts(rows_before(spec.inputs[0].shape, axis, "SliceChannel"), spec.inputs[0], spec.outputs.size()));
}
std::unique_ptr<Kernel> make_slice_channel_backward(StepSpec &spec) {
  const int64_t axis = spec.attrs_as<SliceChannelAttrs>().axis;
  return std::make_unique<Join>(spec, rows_before(spec.outputs[0].shape, axis, "SliceChannel"));
}

std::unique_ptr<Kernel> make_stack(StepSpec &spec) {
  const int64_t axis = spec.attrs_as<StackAttrs>().axis;
  return std::make_unique<Join>(spec, rows_before(spec.outputs[0].shape, axis, "stack"));
}
std::unique_ptr<Kernel> make_stack_backward(StepSpec &spec) {
  const int64_t axis = spec.attrs_as<StackAttrs>().axis;
  return std::make_unique<Cut>(
      RowParts(rows_before(spec.inputs[0].shape, axis, "stack"), spec.inputs[0], spec.outputs.size()));
}

COHORT_KERNEL_BY(cpu, stack, make_stack);
COHORT_KERNEL_BY(cpu, _backward_stack, make_stack_backward);
COHORT_KERNEL_BY(cpu, Concat, make_images).named("images").dtypes(dnn::kLayerTypes).when(refuses_images).any_layout();
COHORT_KERNEL_BY(cpu, Concat, make_concat);
COHORT_KERNEL_BY(cpu, _backward_Concat, make_cut_images)
    .named("images")
    .dtypes(dnn::kLayerTypes)
    .when(refuses_cut_images)
    .any_layout();
COHORT_KERNEL_BY(cpu, _backward_Concat, make_concat_backward);
COHORT_KERNEL_BY(cpu, SliceChannel, make_slice_channel);
COHORT_KERNEL_BY(cpu, _backward_SliceChannel, make_slice_channel_backward);

}  // namespace
}  // namespace cohort
