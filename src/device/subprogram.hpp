// SPDX-License-Identifier: Apache-2.0
// Graphs inside nodes, compiled: the kernel of such a node asks for them at its making, and runs them as often as it
// likes, as part of its own step. What they need of memory it books with its own.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "device/kernel.hpp"

namespace cohort {

// One pass at a time on one arena; passes on several, which may be kept from forward to backward. As kernels, they
// change nothing in themselves.
class Subprogram {
 public:
  enum class Gradient : uint8_t { kNone, kWrite, kAdd };

  // Of one pass, in the order of the sub-graph's inputs (auxiliary states among them) and outputs.
  struct Arrays {
    void *const *inputs = nullptr;
    void *const *outputs = nullptr;    // all of them
    void *const *gradients = nullptr;  // of backward: of the inputs for which one was asked
    void *arena = nullptr;             // arena_bytes(), contents undefined before forward
    void *constants = nullptr;         // constant_bytes(), as prepare() left it
    RandomStream *random = nullptr;    // num_streams()
  };

  virtual ~Subprogram() = default;
  virtual const TensorSpec &output(size_t index) const = 0;
  virtual size_t arena_bytes() const = 0;
  virtual size_t constant_bytes() const = 0;
  virtual size_t num_streams() const = 0;  // 0: nothing in it draws
  virtual bool on_caller() const = 0;      // as Kernel::on_caller
  virtual bool replays() const = 0;        // as Kernel::replays
  // Before the first forward of several between which the constant inputs stay as they are.
  virtual void prepare(const Arrays &arrays, const Lane &lane) const = 0;
  virtual void forward(const Arrays &arrays, const Lane &lane) const = 0;
  // Where backward reads the gradient of an output, after forward; null: it does not.
  virtual void *head_gradient(size_t output, void *arena) const = 0;
  virtual void backward(const Arrays &arrays, const Lane &lane) const = 0;
};

// Compiles the sub-graphs of one node for its device.
class SubgraphCompiler {
 public:
  struct Request {
    std::vector<TensorSpec> inputs;
    std::vector<bool> constant;                   // inputs that stay as they are from one pass to the next
    std::vector<Subprogram::Gradient> gradients;  // of inputs; empty: no backward
    bool is_train = false;
    int num_threads = 1;
  };
  virtual ~SubgraphCompiler() = default;
  virtual std::unique_ptr<Subprogram> compile(size_t subgraph, const Request &request) const = 0;
};

}  // namespace cohort
