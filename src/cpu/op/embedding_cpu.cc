// SPDX-License-Identifier: Apache-2.0
#include "op/embedding.hpp"

#include <algorithm>
#include <cstring>

#include "base/dtype_cast.hpp"
#include "cpu/copy_line.hpp"
#include "cpu/op/element_sum.hpp"
#include "cpu/op/pointwise_loops.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

constexpr int64_t kGrainBytes = 131072;

// Reads row numbers block by block from an array of any type; numbers out of range are clamped.
class Rows {
 public:
  Rows(const TensorSpec &indices, int64_t num_rows)
      : count_(indices.shape.size()), last_(num_rows - 1), load_(load_indices(indices.dtype)) {}
  int64_t count() const { return count_; }

  template <typename Fn>
  void for_range(const void *indices, int64_t begin, int64_t end, Fn &&fn) const {  // fn(position, row)
    int64_t block[kPointwiseBlock];
    for (int64_t i = begin; i < end; i += kPointwiseBlock) {
      const int64_t count = std::min(kPointwiseBlock, end - i);
      load_(indices, i, block, count);
      for (int64_t k = 0; k < count; ++k) fn(i + k, std::max<int64_t>(0, std::min(block[k], last_)));
    }
  }

 private:
  const int64_t count_, last_;
  const LoadBlock load_;
};

class EmbeddingForward final : public Kernel {
 public:
  explicit EmbeddingForward(const StepSpec &spec)
      : rows_(spec.inputs[0], spec.inputs[1].shape[0]),
        row_bytes_(size_t(spec.inputs[1].shape[1]) * dtype_size(spec.inputs[1].dtype)) {}
  void run(const Args &args, const Lane &lane) const override {
    const char *const weight = args.in<char>(1);
    char *const out = args.out<char>(0);
    const int64_t grain = std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(int64_t(row_bytes_), 1));
    parallel_for(lane, rows_.count(), grain, [&](int64_t begin, int64_t end) {
      rows_.for_range(args.inputs[0], begin, end, [&](int64_t i, int64_t row) {
        copy_row_(weight + size_t(row) * row_bytes_, out + size_t(i) * row_bytes_, row_bytes_);
      });
    });
  }

 private:
  const Rows rows_;
  const size_t row_bytes_;
  const CopyLine::Function copy_row_ = copy_line_of(row_bytes_);
};

// Each thread adds its own columns, over all indices in order.
template <typename T>
class EmbeddingBackward final : public Kernel {
 public:
  explicit EmbeddingBackward(const StepSpec &spec)
      : rows_(spec.inputs[1], spec.outputs[0].shape[0]),
        num_rows_(spec.outputs[0].shape[0]),
        num_columns_(spec.outputs[0].shape[1]) {}
  void run(const Args &args, const Lane &lane) const override {
    const T *const head = args.in<T>(0);
    T *const grad = args.out<T>(0);
    parallel_for(lane, num_rows_ * num_columns_, kGrainBytes, [&](int64_t begin, int64_t end) {
      std::memset(static_cast<void *>(grad + begin), 0, size_t(end - begin) * sizeof(T));
    });
    const int64_t grain = std::max<int64_t>(16, kCheapGrain / std::max<int64_t>(rows_.count(), 1));
    parallel_for(lane, num_columns_, grain, [&](int64_t begin, int64_t end) {
      rows_.for_range(args.inputs[1], 0, rows_.count(), [&](int64_t i, int64_t row) {
        const T *const from = head + i * num_columns_;
        T *const to = grad + row * num_columns_;
        for (int64_t c = begin; c < end; ++c) to[c] = element_sum(to[c], from[c]);
      });
    });
  }

 private:
  const Rows rows_;
  const int64_t num_rows_, num_columns_;
};

std::unique_ptr<Kernel> make_backward(StepSpec &spec) {
  return dispatch(spec.outputs[0].dtype, [&](auto t) -> std::unique_ptr<Kernel> {
    return std::make_unique<EmbeddingBackward<decltype(t)>>(spec);
  });
}

COHORT_KERNEL(cpu, Embedding, EmbeddingForward);
COHORT_KERNEL_BY(cpu, _backward_Embedding, make_backward);

}  // namespace
}  // namespace cohort
