// SPDX-License-Identifier: Apache-2.0
// Joining and cutting along one axis: Concat, SliceChannel, stack. Each is the backward step of another.
#include <algorithm>
#include <cstring>

#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"
#include "op/concat.hpp"
#include "op/indexing.hpp"
#include "op/slice_channel.hpp"

namespace cohort {
namespace {

constexpr int64_t kGrainBytes = 131072;

// An array of `outer` rows, each of which is made of one stretch of every part.
struct Parts {
  int64_t outer = 1, row_bytes = 0;
  std::vector<int64_t> bytes, offsets;

  Parts(int64_t num_rows, const std::vector<TensorSpec> &parts) : outer(num_rows) {
    for (const TensorSpec &part : parts) {
      bytes.push_back(outer > 0 ? int64_t(part.bytes()) / outer : 0);
      offsets.push_back(row_bytes);
      row_bytes += bytes.back();
    }
  }

  // num_parts equal parts: those that nobody wants come without a shape.
  Parts(int64_t num_rows, const TensorSpec &whole, size_t num_parts) : outer(num_rows) {
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
    if (outer == 1) {            // few long stretches: shared out by bytes
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
};

class Join final : public Kernel {
 public:
  Join(const StepSpec &spec, int64_t outer) : parts_(outer, spec.inputs) {}
  void run(const Args &args, const Lane &lane) const override {
    char *const whole = args.out<char>(0);
    parts_.for_each(lane, [&](size_t i, int64_t at_part, int64_t at_whole, size_t bytes) {
      std::memcpy(whole + at_whole, args.in<char>(int(i)) + at_part, bytes);
    });
  }

 private:
  const Parts parts_;
};

class Cut final : public Kernel {
 public:
  explicit Cut(Parts parts) : parts_(std::move(parts)) {}
  void run(const Args &args, const Lane &lane) const override {
    const char *const whole = args.in<char>(0);
    parts_.for_each(lane, [&](size_t i, int64_t at_part, int64_t at_whole, size_t bytes) {
      if (char *const part = args.out<char>(int(i))) std::memcpy(part + at_part, whole + at_whole, bytes);
    });
  }

 private:
  const Parts parts_;
};

int64_t rows_before(const Shape &whole, int64_t axis, const char *op) {
  return whole.size(0, normalize_axis(axis, whole.rank(), op));
}

std::unique_ptr<Kernel> make_concat(StepSpec &spec) {
  const int64_t axis = spec.attrs_as<ConcatAttrs>().dim;
  return std::make_unique<Join>(spec, rows_before(spec.outputs[0].shape, axis, "Concat"));
}
std::unique_ptr<Kernel> make_concat_backward(StepSpec &spec) {
  const int64_t axis = spec.attrs_as<ConcatAttrs>().dim;
  return std::make_unique<Cut>(Parts(rows_before(spec.inputs[0].shape, axis, "Concat"), spec.outputs));
}
std::unique_ptr<Kernel> make_slice_channel(StepSpec &spec) {
  const int64_t axis = spec.attrs_as<SliceChannelAttrs>().axis;
  return std::make_unique<Cut>(
      Parts(rows_before(spec.inputs[0].shape, axis, "SliceChannel"), spec.inputs[0], spec.outputs.size()));
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
      Parts(rows_before(spec.inputs[0].shape, axis, "stack"), spec.inputs[0], spec.outputs.size()));
}

COHORT_KERNEL_BY(cpu, stack, make_stack);
COHORT_KERNEL_BY(cpu, _backward_stack, make_stack_backward);
COHORT_KERNEL_BY(cpu, Concat, make_concat);
COHORT_KERNEL_BY(cpu, _backward_Concat, make_concat_backward);
COHORT_KERNEL_BY(cpu, SliceChannel, make_slice_channel);
COHORT_KERNEL_BY(cpu, _backward_SliceChannel, make_slice_channel_backward);

}  // namespace
}  // namespace cohort
