// SPDX-License-Identifier: Apache-2.0
// A kernel has two lives: its factory runs at bind and resolves everything; run() only computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.hpp"
#include "base/shape.hpp"

namespace cohort {

// How a backend keeps a tensor between steps when not row-major and dense: opaque here, compared and sized by the
// backend. A null pointer stands for row-major and dense everywhere.
class Layout {
 public:
  virtual ~Layout() = default;
  virtual bool equals(const Layout &other) const = 0;  // same backend only
  virtual size_t bytes() const = 0;                    // of a whole tensor in this layout, padding included
  virtual std::string describe() const = 0;            // for traces: "nChw16c"
};

inline bool same_layout(const std::shared_ptr<const Layout> &a, const std::shared_ptr<const Layout> &b) {
  return a == b || (a && b && a->equals(*b));
}

struct TensorSpec {
  Shape shape;
  Dtype dtype = Dtype::kFloat32;
  std::shared_ptr<const Layout> layout;

  size_t bytes() const { return layout ? layout->bytes() : size_t(shape.size()) * dtype_size(dtype); }
};

// What a queue lends to the kernels that it runs.
struct Lane {
  int num_threads;  // cpu: at most so many threads; cuda: 1
  void *stream;     // cuda: the cudaStream_t; cpu: null
};

// Pointers of one call, in the order of StepSpec. A null output is not wanted; output 0 of a forward kernel always is.
struct Args {
  void *const *inputs = nullptr;
  void *const *outputs = nullptr;
  void *scratch = nullptr;  // StepSpec::scratch_bytes, contents undefined before and after
  void *saved = nullptr;    // forward writes it, backward reads it: StepSpec::saved_bytes

  template <typename T>
  const T *in(int i) const {
    return static_cast<const T *>(inputs[i]);
  }
  template <typename T>
  T *out(int i) const {
    return static_cast<T *>(outputs[i]);
  }
  template <typename T>
  T *mutable_in(int i) const {  // auxiliary states and whatever Op::mutates lists
    return static_cast<T *>(inputs[i]);
  }
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  // No allocation, no look-up, no lock. One call at a time per kernel. Throws Error if the work fails.
  virtual void run(const Args &args, const Lane &lane) const = 0;
};

// An operation that a kernel does on its result before it writes it, fused in by the plan. The i-th extra input (after
// the operator's own) belongs to the i-th post-operation that takes one.
struct PostOp {
  enum class Kind { kActivation, kSum } kind;
  int activation = 0;  // ActivationAttrs::Type (op/activation.hpp) for kActivation
  // kSum: adds an extra input of the output's shape, before the post-operations that follow.
};

// What a kernel's factory is told, and what it answers. It reads everything, and may set what is marked <-.
struct StepSpec {
  std::string op;                     // "softmax", "_backward_softmax"
  std::shared_ptr<const void> attrs;  // the operator's attribute struct (of the forward operator, for backward)
  bool is_train = false;
  bool keep_for_backward = false;  // a backward step of this node follows: save what it needs
  bool frozen = false;  // a step of training that no gradient flows through: it leaves auxiliary states as they are
  // Inputs come in the layouts in which they lie. A factory that wants another one writes it here <- and the plan puts
  // a reorder in between. Factories that know nothing of layouts leave `any_layout` false and are given row-major
  // inputs.
  std::vector<TensorSpec> inputs;
  std::vector<bool> constant;  // inputs that change so rarely that a reorder of them costs nothing (inference weights)
  std::vector<TensorSpec> outputs;  // layout <- (null unless the factory sets it)
  std::vector<bool> wanted;         // outputs that are used; the others get a null pointer
  std::vector<PostOp> post;         // only if the entry's `fuses` covers them
  const Kernel *forward = nullptr;  // backward: the kernel of the forward step, for hints
  size_t scratch_bytes = 0;         // <-
  size_t saved_bytes = 0;           // <- forward; the same block is given to the backward step
  // <- (input, output) pairs that may share memory, beside those of Op::inplace: an addend that the kernel adds to in
  // place. It must do as well where the two lie apart.
  std::vector<std::pair<int, int>> inplace;
  uint64_t seed = 0;  // random operators: this step's own stream
  // Random operators: how often this node has drawn, in whichever plan of its executor. One call at a time counts.
  std::shared_ptr<uint64_t> draws = std::make_shared<uint64_t>(0);
  int num_threads = 1;

  template <typename A>
  const A &attrs_as() const {
    return *static_cast<const A *>(attrs.get());
  }
};

using KernelFactory = std::unique_ptr<Kernel> (*)(StepSpec &spec);

// Bits of KernelEntry::fuses.
enum : unsigned {
  kFusesActivation = 1,  // forward: relu, tanh, sigmoid, softrelu as a post-operation
  kFusesSum = 2,         // forward: a post-operation that adds a tensor
  kFusesTrainRelu = 4,   // BatchNorm: relu fused into forward and backward (the backward kernel gets `post`, too)
};

class KernelEntry {
 public:
  KernelEntry(const char *op_name, KernelFactory make, bool layouts, unsigned fused)
      : op(op_name), any_layout(layouts), fuses(fused), make_(make) {}
  const char *const op;
  const bool any_layout;  // reads StepSpec layouts; false: gets and gives row-major
  const unsigned fuses;

 private:
  friend class Device;  // Device::make_kernel, and nobody else: a factory reads the settings of the calling thread
  const KernelFactory make_;
};

}  // namespace cohort
