// SPDX-License-Identifier: Apache-2.0
// The problem that a graph of the simulated cuDNN describes, and the operation of a stream that solves it. sim_cudnn.cc
// makes both from descriptors.
#pragma once

#include <library_types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace cudasim::cudnn {

using Numbers = std::vector<int64_t>;

struct Tensor {
  int64_t id = 0, alignment = 0;
  int type = 0;
  bool is_virtual = false;
  Numbers lengths, strides;

  int64_t span() const {  // elements from the first to the last
    int64_t most = 1;
    for (size_t a = 0; a < lengths.size(); ++a) most += (lengths[a] - 1) * strides[a];
    return most;
  }
};

struct Pointwise {
  int mode;
  bool keeps_nan;  // of relu
  Tensor second;   // of an addition
};

struct Problem {
  int of = 0;                    // Cudnn::kForward or a gradient; kPointwiseOperation
  Tensor data, filters, result;  // of a pointwise operation: input, second input, output
  Numbers stride, dilate, pad;   // by spatial axis
  std::vector<Pointwise> then;   // operations on the result, the last of which writes `output`
  Tensor output;
  std::shared_ptr<Problem> self() const { return std::make_shared<Problem>(*this); }
};

// An engine: its properties, and how its numbers differ from the right ones.
struct Engine {
  int64_t index;
  std::vector<int> notes;
  int64_t workspace;
  int64_t alignment;  // of arrays; 0: of elements
  bool supported = true, perturbs = false, rounds = false;
};

cudaDataType_t cuda_type(int type);  // of an array, from Cudnn's constant

// One execution of a plan, as an operation of a stream.
struct Run {
  Problem p;
  Engine engine;
  const void *data = nullptr, *filters = nullptr, *result = nullptr;
  std::vector<const void *> seconds;  // of p.then
  void *workspace;
  std::shared_ptr<bool> plan;  // false: it has been destroyed

  // For each tensor that is not virtual, where the address of its array goes.
  std::vector<std::pair<const Tensor *, const void **>> arrays();

  void operator()() const;
};

}  // namespace cudasim::cudnn
