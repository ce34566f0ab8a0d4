// SPDX-License-Identifier: Apache-2.0
// Compiled sub-graphs of nodes. The kernel of such a node compiles them when it is made and runs them any number of
// times within its own step; their memory is part of the kernel's scratch and saved blocks.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "device/kernel.hpp"

namespace cohort {

// Runs one pass at a time per arena. Passes on different arenas may overlap, and an arena may be kept from forward to
// backward. Like a kernel, it holds no mutable state.
class Subprogram {
 public:
  enum class Gradient : uint8_t { kNone, kWrite, kAdd };

  // The arrays of one pass, in the order of the sub-graph's inputs (auxiliary states included) and outputs.
  struct Arrays {
    void *const *inputs = nullptr;
    void *const *outputs = nullptr;    // all of them
    void *const *gradients = nullptr;  // backward: gradients of the inputs for which they were requested
    void *arena = nullptr;             // arena_bytes(), contents undefined before forward
    void *constants = nullptr;         // constant_bytes(), filled by prepare()
    RandomStream *random = nullptr;    // num_streams() of them
  };

  virtual ~Subprogram() = default;
  virtual const TensorSpec &output(size_t index) const = 0;
  virtual size_t arena_bytes() const = 0;
  virtual size_t constant_bytes() const = 0;
  virtual size_t num_streams() const = 0;  // 0: nothing in it is random
  virtual bool on_caller() const = 0;      // as Kernel::on_caller
  virtual bool replays() const = 0;        // as Kernel::replays
  // Call before the first of several forward passes between which the constant inputs do not change.
  virtual void prepare(const Arrays &arrays, const Lane &lane) const = 0;
  virtual void forward(const Arrays &arrays, const Lane &lane) const = 0;
  // Where backward reads the gradient of an output, valid after forward; null if it does not read it.
  virtual void *head_gradient(size_t output, void *arena) const = 0;
  virtual void backward(const Arrays &arrays, const Lane &lane) const = 0;
};

// Compiles the sub-graphs of one node for its device.
class SubgraphCompiler {
 public:
  struct Request {
    std::vector<TensorSpec> inputs;
    std::vector<bool> constant;                   // inputs that do not change between passes
    std::vector<Subprogram::Gradient> gradients;  // per input; empty: no backward
    bool is_train = false;
    int num_threads = 1;
  };
  virtual ~SubgraphCompiler() = default;
  virtual std::unique_ptr<Subprogram> compile(size_t subgraph, const Request &request) const = 0;
};

}  // namespace cohort
