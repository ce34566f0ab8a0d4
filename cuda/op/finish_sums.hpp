// SPDX-License-Identifier: Apache-2.0
// The end of a convolution or a product where no library does it: to[i] = relu(sums[i] + addend[i] + bias[channel of
// i]), rounded once.
//   Bytes per element: those of the sums, the addend and the result. Limit: the memory's speed.
//   A thread owns vectors of 16 bytes of the result, a grid stride apart, or elements where arrays, or rows of a
//   channel, are no whole vectors. The result does not depend on which of the two is used.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/kernel.hpp"

namespace cohort {

struct FinishArrays {
  const void *sums;
  void *to;                                       // may be `sums`, if these have its type
  Dtype sums_dtype, dtype;                        // sums: the compute type, or the type of the result
  int64_t count;                                  // of elements
  const void *addend = nullptr, *bias = nullptr;  // of the type of the result; null: none
  bool relu = false;
  // Arrays are [..][channels][inner]; inner is 1 if channels come last. For the bias.
  int64_t channels = 1, inner = 1;
};
void finish_sums(const Lane &lane, const FinishArrays &arrays);

// ---- post-operations of layers: a sum, then relu

struct LayerEnd {
  bool addend = false, relu = false;
  explicit LayerEnd(const std::vector<PostOp> &post);
};

// Why no layer of float type fuses the post-operations; empty if all do. cuDNN has engines only for sums and relu
// behind a bias; other kernels refuse the same steps, so that they do not take these from it.
std::string refuses_post(const StepSpec &spec, bool has_bias);

// Calls `make` for the layer without its post-operations, which are applied to the result, and so to rounded numbers.
std::unique_ptr<Kernel> make_with_post_ops(StepSpec &spec, KernelFactory make);

template <KernelFactory make>
std::unique_ptr<Kernel> with_post_ops(StepSpec &spec) {
  return make_with_post_ops(spec, make);
}

}  // namespace cohort
