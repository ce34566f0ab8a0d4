// SPDX-License-Identifier: Apache-2.0
#include "group/reducer.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "device/trace.hpp"
#include "ndarray/name_allocation.hpp"

namespace cohort {

namespace {

constexpr int64_t kPieceElements = 16384;  // per thread: a sum takes 64 KiB of float32
constexpr char kSum[] = "_sum_gradients", kCast[] = "_cast_copy";

std::shared_ptr<const Pieces> cut_buckets(const ExchangeParams &params, const GradientBuckets &buckets,
                                          int num_threads) {
  auto pieces = std::make_shared<Pieces>();
  const int64_t length = kPieceElements * std::max(num_threads, 1);
  size_t param = 0;
  for (int end : buckets.param_ends) {
    std::vector<Piece> &bucket = pieces->emplace_back();
    for (; param < size_t(end); ++param) {
      const int64_t size = params[param].grads[0].size();
      for (int64_t begin = 0; begin < size; begin += length) {
        bucket.push_back({int(param), begin, std::min(length, size - begin)});
      }
    }
  }
  return pieces;
}

std::unique_ptr<Kernel> make_kernel(const char *op, const Worker &worker, Dtype from, Dtype to, int64_t length,
                                    size_t num_inputs) {
  TensorSpec in, out;
  in.shape = out.shape = Shape{length};
  in.dtype = from;
  out.dtype = to;
  StepSpec spec = StepSpec::of(op, nullptr, std::vector<TensorSpec>(num_inputs, in), {out}, worker.num_threads);
  std::unique_ptr<Kernel> kernel = get_device(worker.context)->make_kernel(spec);
  if (spec.scratch_bytes > 0) throw Error(Code::kInternal, text(op, " wants scratch memory"));
  return kernel;
}

void run(const Kernel &kernel, void *const *inputs, void *output, const Lane &lane) {
  Args args;
  args.inputs = inputs;
  args.outputs = &output;
  kernel.run(args, lane);
}

}  // namespace

std::unique_ptr<Kernel> make_cast(const Worker &worker, Dtype from, Dtype to, int64_t length) {
  return make_kernel(kCast, worker, from, to, length, 1);
}

void check_gradients(const DeviceArrays &grads, size_t device) {
  if (!grads.empty() && grads[0][device].failed()) {
    throw Error(Code::kExecution, text("device ", device, " has no gradients: its backward pass failed"));
  }
}

GradientReducer::GradientReducer(const ExchangeParams &params, const GradientBuckets &buckets, int num_threads)
    : pieces_(cut_buckets(params, buckets, num_threads)) {}

PieceSum::PieceSum(std::shared_ptr<const DeviceArrays> grads, std::shared_ptr<const Pieces> pieces,
                   const Worker &worker, Dtype wanted)
    : grads_(std::move(grads)), pieces_(std::move(pieces)) {
  size_t largest = 0, largest_narrow = 0;
  for (const std::vector<Piece> &bucket : *pieces_) {
    kernels_of_.emplace_back();
    for (const Piece &piece : bucket) {
      const std::vector<NDArray> &arrays = (*grads_)[size_t(piece.param)];
      const Dtype dtype = arrays[0].dtype(), in = type_of_sum(dtype, wanted);
      largest = std::max(largest, size_t(piece.count) * dtype_size(dtype));
      if (in != dtype) largest_narrow = std::max(largest_narrow, size_t(piece.count) * dtype_size(in));
      inputs_.resize(arrays.size());
      Kernels &kernels = kernels_[{dtype, piece.count}];
      if (!kernels.sum) {
        kernels.sum = make_kernel(kSum, worker, in, in, piece.count, arrays.size());
        if (in != dtype) kernels.narrow = make_cast(worker, dtype, in, piece.count);
        if (in != dtype) kernels.widen = make_cast(worker, in, dtype, piece.count);
      }
      kernels_of_.back().push_back(&kernels);
    }
  }
  const auto allocate = [&](size_t bytes) {
    return name_allocation([&] { return get_device(worker.context)->allocate(bytes); }, kExchangeLabel);
  };
  if (largest > 0) sum_ = allocate(largest);
  for (size_t i = 0; largest_narrow > 0 && i <= inputs_.size(); ++i) narrow_.push_back(allocate(largest_narrow));
}

void *PieceSum::run(size_t bucket, size_t index, const Lane &lane) const {
  const Piece &piece = (*pieces_)[bucket][index];
  const std::vector<NDArray> &arrays = (*grads_)[size_t(piece.param)];
  const double bytes = double(piece.count) * double(dtype_size(arrays[0].dtype())) * double(arrays.size() + 1);
  const WorkSpan span(SpanKind::kExchange, "sum of gradients", bytes);
  for (size_t d = 0; d < arrays.size(); ++d) inputs_[d] = address_of(arrays[d], piece.begin);
  const Kernels &kernels = *kernels_of_[bucket][index];
  if (!kernels.narrow) {
    cohort::run(*kernels.sum, inputs_.data(), sum_->data(), lane);
    return sum_->data();
  }
  for (size_t d = 0; d < arrays.size(); ++d) {
    cohort::run(*kernels.narrow, &inputs_[d], narrow_[d]->data(), lane);
    inputs_[d] = narrow_[d]->data();
  }
  void *const narrow_sum = narrow_.back()->data();
  cohort::run(*kernels.sum, inputs_.data(), narrow_sum, lane);
  cohort::run(*kernels.widen, &narrow_sum, sum_->data(), lane);
  return sum_->data();
}

void PieceSum::replace_gradients(size_t bucket, size_t index) const {
  const Piece &piece = (*pieces_)[bucket][index];
  for (const NDArray &grad : (*grads_)[size_t(piece.param)]) {
    std::memcpy(address_of(grad, piece.begin), sum_->data(), size_t(piece.count) * dtype_size(grad.dtype()));
  }
}

}  // namespace cohort
