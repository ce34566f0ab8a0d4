// SPDX-License-Identifier: Apache-2.0
// The kernel of "_reorder": copies its input in one layout to its output in another. Both describe one tensor; a null
// layout is row-major and dense. Device::make_reorder makes the step.
#include <algorithm>
#include <cstring>

#include "cpu/dnnl_kernel.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace dnn {
namespace {

// A reorder between layouts with equal offsets: a plain copy.
class CopyKernel final : public Kernel {
 public:
  explicit CopyKernel(size_t bytes) : bytes_(bytes) {}
  void run(const Args &args, const Lane &lane) const override {
    const char *from = args.in<char>(0);
    char *to = args.out<char>(0);
    if (from == to) return;
    parallel_for(lane, int64_t(bytes_), 1 << 16,
                 [=](int64_t begin, int64_t end) { std::memcpy(to + begin, from + begin, size_t(end - begin)); });
  }

 private:
  const size_t bytes_;
};

class ReorderKernel final : public Kernel {
 public:
  ReorderKernel(const Desc &from, const Desc &to, int num_threads, const std::string &what)
      : num_threads_(int64_t(to.get_size()) < 65536 ? 1 : num_threads) {
    const ThreadsScope threads(num_threads_);
    const auto pd = attempt([&] { return dnnl::reorder::primitive_desc(engine(), from, engine(), to, attributes()); });
    if (!pd) throw Error(Code::kUnsupported, text(what, ": oneDNN cannot change the layout"));
    StepSpec booked;
    call_ = DnnlCall(*pd, what, {{DNNL_ARG_FROM, from, BufferRef::input(0)}, {DNNL_ARG_TO, to, BufferRef::output(0)}},
                     booked);
    scratch_bytes_ = booked.scratch_bytes;
  }
  // Steps that are no operators have no scratch memory. What oneDNN would allocate belongs to the primitive, which
  // executors share.
  void run(const Args &args, const Lane &) const override {
    const ThreadsScope threads(num_threads_);
    if (scratch_bytes_ == 0) return call_.run(args);
    std::unique_ptr<Scratch> scratch = scratches_.acquire();
    if (!scratch) scratch = std::make_unique<Scratch>((scratch_bytes_ + sizeof(Line) - 1) / sizeof(Line));
    Args with_scratch = args;
    with_scratch.scratch = scratch->data();
    call_.run(with_scratch);
    scratches_.release(std::move(scratch));
  }

 private:
  struct alignas(64) Line {
    char bytes[64];
  };
  using Scratch = std::vector<Line>;
  const int num_threads_;
  size_t scratch_bytes_ = 0;
  DnnlCall call_;
  mutable ObjectPool<Scratch> scratches_;  // of runs that are not active
};

// The gradient of a 1 x 1 convolution's weight, transposed in squares of 16 x 16, which write whole lines of the
// target. oneDNN (2.6) alternates between single elements of 16 rows, which evict each other from the cache where
// rows are a multiple of 4096 bytes apart: 2.7 ms for 1024 x 1024; this takes 0.2 to 0.35.
class TurnedSquares final : public Kernel {
 public:
  static bool suits(const Desc &from, const Desc &to) {
    const Blocking squares = blocking_of(from);
    if (type_in(from) != memory::data_type::f32 || !squares.blocked || squares.dims.size() < 2 || is_padded(from) ||
        squares.inner_blocks != Dims{kSide, kSide} || squares.inner_axes != Dims{1, 0}) {
      return false;
    }
    const auto is_one = [](int64_t n) { return n == 1; };
    return std::all_of(squares.dims.begin() + 2, squares.dims.end(), is_one) && squares.strides[1] == kSide * kSide &&
           squares.strides[0] == squares.dims[1] * kSide && same_bytes(to, row_major(squares.dims, Dtype::kFloat32));
  }
  explicit TurnedSquares(const Desc &from) : rows_(blocking_of(from).dims[0]), columns_(blocking_of(from).dims[1]) {}

  void run(const Args &args, const Lane &lane) const override {
    const float *const from = args.in<float>(0);
    float *const to = args.out<float>(0);
    const int64_t in_a_row = columns_ / kSide;
    parallel_for(lane, rows_ / kSide * in_a_row, 256, [=](int64_t begin, int64_t end) {
      for (int64_t square = begin; square < end; ++square) {
        const float *const elements = from + square * kSide * kSide;
        float *const corner = to + square / in_a_row * kSide * columns_ + square % in_a_row * kSide;
        for (int64_t i = 0; i < kSide; ++i) {
          float line[kSide];
          for (int64_t j = 0; j < kSide; ++j) line[j] = elements[j * kSide + i];
          std::memcpy(corner + i * columns_, line, sizeof(line));
        }
      }
    });
  }

 private:
  static constexpr int64_t kSide = 16;
  const int64_t rows_, columns_;
};

std::unique_ptr<Kernel> make_reorder(StepSpec &spec) {
  const TensorSpec &from = spec.inputs[0], &to = spec.outputs[0];
  if (from.shape != to.shape) {
    throw Error(Code::kShape, text("reorder: expected shape ", from.shape, ", found ", to.shape));
  }
  if (from.dtype != to.dtype) {
    throw Error(Code::kDtype, text("reorder: expected ", from.dtype, ", found ", to.dtype));
  }
  if (same_layout(from.layout, to.layout)) return std::make_unique<CopyKernel>(from.bytes());
  const auto *source = static_cast<const DnnlLayout *>(from.layout.get());
  const auto *target = static_cast<const DnnlLayout *>(to.layout.get());
  const Desc source_desc = source ? source->desc() : target->plain();
  const Desc target_desc = target ? target->desc() : source->plain();
  if (same_bytes(source_desc, target_desc)) return std::make_unique<CopyKernel>(to.bytes());
  if (TurnedSquares::suits(source_desc, target_desc)) return std::make_unique<TurnedSquares>(source_desc);
  return std::make_unique<ReorderKernel>(source_desc, target_desc, spec.num_threads, text("reorder ", from.shape));
}

COHORT_KERNEL_BY(cpu, _reorder, make_reorder).any_layout();

}  // namespace
}  // namespace dnn
}  // namespace cohort
