// SPDX-License-Identifier: Apache-2.0
// Operators implemented by the host: nodes "Custom" refer to them by their attribute op_type. The boundary (src/api)
// implements these interfaces by calling the host.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/context.hpp"
#include "op/op.hpp"

namespace cohort {

struct CustomArray {
  void *data = nullptr;  // may be null for an array without elements
  bool wanted = true;
  Shape shape;
  Dtype dtype = Dtype::kNone;
};

// The state of one bound node, shared by its forward and backward passes.
class CustomOperator {
 public:
  struct Call {
    Context context;
    bool is_train = false;
    std::vector<CustomArray> inputs, aux, outputs;   // all have `wanted` set
    std::vector<CustomArray> head_grads, gradients;  // backward only
  };
  virtual ~CustomOperator() = default;
  std::atomic<bool> forward_failed{false};  // the latest forward pass failed
  virtual void forward(const Call &call) = 0;
  virtual void backward(const Call &call) = 0;
};

// A node's interface, as determined by its attributes.
class CustomUse {
 public:
  virtual ~CustomUse() = default;
  std::vector<InputField> inputs;  // auxiliary states last
  std::vector<std::string> outputs;
  size_t num_aux = 0;
  bool has_backward = false;
  bool reads_head_grads = true;
  bool any_thread = false;  // the host allows calls on any thread

  size_t num_args() const { return inputs.size() - num_aux; }
  // As in Op.
  virtual void infer_shape(Shapes &in, Shapes &out) const = 0;
  virtual void infer_dtype(Dtypes &in, Dtypes &out) const = 0;
  virtual std::shared_ptr<CustomOperator> create(const Context &context) const = 0;
};

class CustomType {
 public:
  virtual ~CustomType() = default;
  virtual std::shared_ptr<const CustomUse> use(const AttrMap &attrs) = 0;
};

struct CustomAttrs {
  std::string op_type;
  AttrMap others;
  std::shared_ptr<const CustomUse> use;
};

// Thread-safe. Throw kName for a name already added, or not found.
void add_custom_type(const std::string &op_type, std::shared_ptr<CustomType> type);
void remove_custom_type(const std::string &op_type);

}  // namespace cohort
