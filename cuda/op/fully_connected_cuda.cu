// SPDX-License-Identifier: Apache-2.0
// FullyConnected: y (rows, units) = x (rows, depth) w^T + bias.
#include <algorithm>

#include "cuda/op/matrix_product.hpp"
#include "cuda/op/rows.cuh"
#include "device/kernel_table.hpp"
#include "op/fully_connected.hpp"

namespace cohort {
namespace {

struct LayerSizes {
  int64_t rows, depth, units;
  LayerSizes(const FullyConnectedAttrs &attrs, const Shape &data)
      : rows(attrs.flatten ? data[0] : data.size(0, data.rank() - 1)),
        depth(attrs.flatten ? data.size(1, data.rank()) : data[data.rank() - 1]),
        units(attrs.num_hidden) {}
};

class FullyConnectedCuda final : public Kernel {
 public:
  explicit FullyConnectedCuda(StepSpec &spec)
      : has_bias_(!spec.attrs_as<FullyConnectedAttrs>().no_bias),
        sizes_(spec.attrs_as<FullyConnectedAttrs>(), spec.inputs[0].shape),
        product_({spec.inputs[0].dtype, spec}, {1, sizes_.rows, sizes_.units, sizes_.depth, false, true}, has_bias_) {
    spec.scratch_bytes = product_.scratch_bytes();
  }

  void run(const Args &args, const Lane &lane) const override {
    product_.run(lane, args.inputs[0], args.inputs[1], args.outputs[0], has_bias_ ? args.inputs[2] : nullptr,
                 args.scratch);
  }

 private:
  const bool has_bias_;
  const LayerSizes sizes_;
  const MatrixProduct product_;
};

// Inputs: head gradient, data, weight. Outputs: gradients of data, weight, bias.
class FullyConnectedBackwardCuda final : public Kernel {
 public:
  explicit FullyConnectedBackwardCuda(StepSpec &spec)
      : sizes_(spec.attrs_as<FullyConnectedAttrs>(), spec.inputs[1].shape), dtype_(spec.inputs[0].dtype) {
    const auto product = [&](const ProductExtent &extent) {
      auto made = std::make_unique<MatrixProduct>(ProductTypes(dtype_, spec), extent);
      spec.scratch_bytes = std::max(spec.scratch_bytes, made->scratch_bytes());
      return made;
    };
    if (spec.wanted[0]) data_ = product({1, sizes_.rows, sizes_.depth, sizes_.units, false, false});
    if (spec.wanted[1]) weight_ = product({1, sizes_.units, sizes_.depth, sizes_.rows, true, false});
    const bool has_bias = !spec.attrs_as<FullyConnectedAttrs>().no_bias;
    bias_ = has_bias && spec.wanted.size() > 2 && spec.wanted[2];
  }

  void run(const Args &args, const Lane &lane) const override {
    if (data_) data_->run(lane, args.inputs[0], args.inputs[2], args.outputs[0], nullptr, args.scratch);
    if (weight_) weight_->run(lane, args.inputs[0], args.inputs[1], args.outputs[1], nullptr, args.scratch);
    if (!bias_) return;
    const Elements head = elements_of(args.inputs[0], dtype_), sums = elements_of(args.outputs[2], dtype_);
    if (dtype_ == Dtype::kFloat64) return sum_rows<double>(lane, head, sizes_.rows, sizes_.units, sums);
    sum_rows<float>(lane, head, sizes_.rows, sizes_.units, sums);
  }

 private:
  const LayerSizes sizes_;
  const Dtype dtype_;
  std::unique_ptr<MatrixProduct> data_, weight_;
  bool bias_ = false;
};

COHORT_KERNEL(cuda, FullyConnected, FullyConnectedCuda).named("cublaslt").one_dtype(kFloatTypes);
COHORT_KERNEL(cuda, _backward_FullyConnected, FullyConnectedBackwardCuda).named("cublaslt").one_dtype(kFloatTypes);

}  // namespace
}  // namespace cohort
