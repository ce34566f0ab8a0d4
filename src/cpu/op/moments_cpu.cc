// SPDX-License-Identifier: Apache-2.0
#include "op/moments.hpp"

#include <algorithm>

#include "cpu/op/broadcast_operand.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"
#include "op/reduce.hpp"

namespace cohort {
namespace {

std::vector<bool> reduced_of(const StepSpec &spec, const Shape &data) {
  return axes_to_reduce(spec.attrs_as<MomentsAttrs>().axes, false, data.rank(), "axes");
}

// In double, first the means and then the squares, because a single pass would cancel digits. A unit of work is one
// result, or a block of neighbouring ones if the innermost axis is kept.
class MomentsOfAxes final : public Kernel {
 public:
  explicit MomentsOfAxes(const StepSpec &spec)
      : axes_(spec.inputs[0].shape, reduced_of(spec, spec.inputs[0].shape)),
        blocks_(axes_.inner_kept ? (axes_.inner + kPointwiseBlock - 1) / kPointwiseBlock : 1),
        load_(load_block(spec.inputs[0].dtype, Dtype::kFloat64)),
        store_(store_block(Dtype::kFloat64, spec.outputs[0].dtype)) {}
  void run(const Args &args, const Lane &lane) const override {
    const int64_t elements = axes_.num_dropped * std::max<int64_t>(axes_.inner / std::max<int64_t>(blocks_, 1), 1);
    parallel_for(lane, axes_.num_kept * blocks_, std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(elements, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t unit = begin; unit < end; ++unit) one(args, unit / blocks_, unit % blocks_);
                 });
  }

 private:
  void one(const Args &args, int64_t kept, int64_t block) const {
    const int64_t first = block * kPointwiseBlock;
    const int64_t width = std::min(kPointwiseBlock, axes_.inner - first), results = axes_.inner_kept ? width : 1;
    const int64_t at = axes_.inner_kept ? kept * axes_.inner + first : kept;
    double means[kPointwiseBlock] = {}, squares[kPointwiseBlock] = {};
    add_up(
        args, kept, first, means, [](double x, double) { return x; }, means);
    finish(means, width);
    add_up(
        args, kept, first, squares, [](double x, double mean) { return (x - mean) * (x - mean); }, means);
    finish(squares, width);
    if (args.outputs[0]) store_(means, args.outputs[0], at, results);
    if (args.outputs[1]) store_(squares, args.outputs[1], at, results);
  }

  // sums[i] += of(x, mean[i]) for all elements x of a unit. Contiguous elements are distributed over the sums in
  // turn.
  template <typename Of>
  void add_up(const Args &args, int64_t kept, int64_t first, double *sums, Of &&of, const double *mean) const {
    const int64_t base = ReduceAxes::offset(axes_.kept, kept);
    const int64_t end = axes_.inner_kept ? std::min(first + kPointwiseBlock, axes_.inner) : axes_.inner;
    double x[kPointwiseBlock];
    for (int64_t d = 0; d < axes_.num_dropped; ++d) {
      const int64_t row = base + ReduceAxes::offset(axes_.dropped, d);
      for (int64_t at = first; at < end; at += kPointwiseBlock) {
        const int64_t count = std::min(kPointwiseBlock, end - at);
        load_(args.inputs[0], row + at, x, count);
        for (int64_t i = 0; i < count; ++i) sums[i] += of(x[i], mean[i]);
      }
    }
  }
  // Divides sums to means. Partial sums of contiguous elements are combined into one mean, which is copied to all of
  // them.
  void finish(double *sums, int64_t width) const {
    double divisor = double(axes_.num_dropped);
    if (!axes_.inner_kept) {
      divisor *= double(axes_.inner);
      double sum = 0;
      for (int64_t i = 0; i < width; ++i) sum += sums[i];
      std::fill_n(sums, width, sum);
      if (width == 0) sums[0] = 0;
    }
    for (int64_t i = 0; i < std::max<int64_t>(width, 1); ++i) sums[i] /= divisor;
  }

  const ReduceAxes axes_;
  const int64_t blocks_;
  const LoadBlock load_;
  const StoreBlock store_;
};

// (g_mean + 2 g_variance (x - mean)) / elements per result.
class MomentsBackward final : public Kernel {
 public:
  explicit MomentsBackward(const StepSpec &spec)
      : shape_(spec.outputs[0].shape),
        kept_(kept_shape(shape_, reduced_of(spec, shape_))),
        mean_grad_(kept_, spec.inputs[0].dtype, shape_, Dtype::kFloat64),
        variance_grad_(kept_, spec.inputs[1].dtype, shape_, Dtype::kFloat64),
        data_(shape_, spec.inputs[2].dtype, shape_, Dtype::kFloat64),
        mean_(kept_, spec.inputs[3].dtype, shape_, Dtype::kFloat64),
        count_(shape_.size()),
        scale_(count_ > 0 ? double(kept_.size()) / double(count_) : 0),
        store_(store_block(Dtype::kFloat64, spec.outputs[0].dtype)) {}
  void run(const Args &args, const Lane &lane) const override {
    parallel_for(lane, count_, kCheapGrain, [&](int64_t begin, int64_t end) {
      double buffers[4][kPointwiseBlock], out[kPointwiseBlock];
      for (int64_t at = begin; at < end; at += kPointwiseBlock) {
        const int64_t count = std::min(kPointwiseBlock, end - at);
        const double *const of_mean = mean_grad_.block(args.inputs[0], at, count, buffers[0]);
        const double *const of_variance = variance_grad_.block(args.inputs[1], at, count, buffers[1]);
        const double *const x = data_.block(args.inputs[2], at, count, buffers[2]);
        const double *const mean = mean_.block(args.inputs[3], at, count, buffers[3]);
        for (int64_t i = 0; i < count; ++i) {
          out[i] = (of_mean[i] + 2 * of_variance[i] * (x[i] - mean[i])) * scale_;
        }
        store_(out, args.outputs[0], at, count);
      }
    });
  }

 private:
  const Shape shape_, kept_;
  const BroadcastOperand mean_grad_, variance_grad_, data_, mean_;
  const int64_t count_;
  const double scale_;
  const StoreBlock store_;
};

COHORT_KERNEL(cpu, moments, MomentsOfAxes);
COHORT_KERNEL(cpu, _backward_moments, MomentsBackward);

}  // namespace
}  // namespace cohort
