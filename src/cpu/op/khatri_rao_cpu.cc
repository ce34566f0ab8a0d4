// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/dtype_cast.hpp"
#include "cpu/op/pointwise_loops.hpp"
#include "cpu/parallel.hpp"
#include "device/kernel_table.hpp"

namespace cohort {
namespace {

// Row r of the output is the product of one row of each input; the digits of r give the rows, the last input's
// fastest.
template <typename C>
class KhatriRao final : public Kernel {
 public:
  explicit KhatriRao(const StepSpec &spec)
      : rows_(spec.outputs[0].shape[0]),
        columns_(spec.outputs[0].shape[1]),
        load_(load_block(spec.outputs[0].dtype, dtype_of<C>())),
        store_(store_block(dtype_of<C>(), spec.outputs[0].dtype)) {
    for (const TensorSpec &in : spec.inputs) lengths_.push_back(in.shape[0]);
  }
  void run(const Args &args, const Lane &lane) const override {
    parallel_for(lane, rows_, std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(columns_, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row) {
                     for (int64_t at = 0; at < columns_; at += kPointwiseBlock) one(args, row, at);
                   }
                 });
  }

 private:
  void one(const Args &args, int64_t row, int64_t first) const {
    const int64_t count = std::min(kPointwiseBlock, columns_ - first);
    C product[kPointwiseBlock], factor[kPointwiseBlock];
    std::fill_n(product, count, C(1));
    int64_t rest = row;
    for (size_t i = lengths_.size(); i-- > 0;) {
      load_(args.inputs[i], rest % lengths_[i] * columns_ + first, factor, count);
      rest /= lengths_[i];
      for (int64_t c = 0; c < count; ++c) product[c] = pointwise::mul(product[c], factor[c]);
    }
    store_(product, args.outputs[0], row * columns_ + first, count);
  }

  const int64_t rows_, columns_;
  const LoadBlock load_;
  const StoreBlock store_;
  std::vector<int64_t> lengths_;
};

std::unique_ptr<Kernel> make_khatri_rao(StepSpec &spec) {
  return dispatch_compute(spec.outputs[0].dtype, true, [&](auto c) -> std::unique_ptr<Kernel> {
    return std::make_unique<KhatriRao<decltype(c)>>(spec);
  });
}

COHORT_KERNEL_BY(cpu, khatri_rao, make_khatri_rao);

}  // namespace
}  // namespace cohort
