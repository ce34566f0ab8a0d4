// SPDX-License-Identifier: Apache-2.0
#include "group/reducer.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "device/trace.hpp"

namespace cohort {

namespace {

constexpr int64_t kPieceElements = 16384;  // of one thread: the sum takes 64 KiB of float32
constexpr char kSum[] = "_sum_gradients";

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

std::unique_ptr<Kernel> make_sum(const Worker &worker, Dtype dtype, int64_t length, size_t num_devices) {
  TensorSpec tensor;
  tensor.shape = Shape{length};
  tensor.dtype = dtype;
  StepSpec spec;
  spec.op = kSum;
  spec.inputs.assign(num_devices, tensor);
  spec.constant.assign(num_devices, false);
  spec.outputs.assign(1, tensor);
  spec.wanted.assign(1, true);
  spec.num_threads = worker.num_threads;
  std::unique_ptr<Kernel> kernel = get_device(worker.context)->make_kernel(spec);
  if (spec.scratch_bytes > 0) throw Error(Code::kInternal, text(kSum, " wants scratch memory"));
  return kernel;
}

}  // namespace

void check_gradients(const DeviceArrays &grads, size_t device) {
  if (!grads.empty() && grads[0][device].failed()) {
    throw Error(Code::kExecution, text("device ", device, " has no gradients: its backward pass failed"));
  }
}

Reducer::Reducer(const ExchangeParams &params, const GradientBuckets &buckets, int num_threads)
    : pieces_(cut_buckets(params, buckets, num_threads)) {}

PieceSum::PieceSum(std::shared_ptr<const DeviceArrays> grads, std::shared_ptr<const Pieces> pieces,
                   const Worker &worker)
    : grads_(std::move(grads)), pieces_(std::move(pieces)) {
  size_t largest = 0;
  for (const std::vector<Piece> &bucket : *pieces_) {
    kernel_of_.emplace_back();
    for (const Piece &piece : bucket) {
      const std::vector<NDArray> &arrays = (*grads_)[size_t(piece.param)];
      const Dtype dtype = arrays[0].dtype();
      largest = std::max(largest, size_t(piece.count) * dtype_size(dtype));
      inputs_.resize(arrays.size());
      std::unique_ptr<Kernel> &kernel = kernels_[{dtype, piece.count}];
      if (!kernel) kernel = make_sum(worker, dtype, piece.count, arrays.size());
      kernel_of_.back().push_back(kernel.get());
    }
  }
  if (largest > 0) sum_ = get_device(worker.context)->allocate(largest);
}

void *PieceSum::run(size_t bucket, size_t index, const Lane &lane) const {
  const Piece &piece = (*pieces_)[bucket][index];
  const std::vector<NDArray> &arrays = (*grads_)[size_t(piece.param)];
  const double bytes = double(piece.count) * double(dtype_size(arrays[0].dtype())) * double(arrays.size() + 1);
  const WorkSpan span(SpanKind::kExchange, "sum of gradients", bytes);
  for (size_t d = 0; d < arrays.size(); ++d) inputs_[d] = address_of(arrays[d], piece.begin);
  void *sum = sum_->data();
  Args args;
  args.inputs = inputs_.data();
  args.outputs = &sum;
  kernel_of_[bucket][index]->run(args, lane);
  return sum;
}

void PieceSum::replace_gradients(size_t bucket, size_t index) const {
  const Piece &piece = (*pieces_)[bucket][index];
  for (const NDArray &grad : (*grads_)[size_t(piece.param)]) {
    std::memcpy(address_of(grad, piece.begin), sum_->data(), size_t(piece.count) * dtype_size(grad.dtype()));
  }
}

}  // namespace cohort
