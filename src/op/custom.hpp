// SPDX-License-Identifier: Apache-2.0
// Operators of the host's: nodes "Custom" find them by their attribute op_type. What the host does is behind these
// interfaces, which the boundary implements.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/context.hpp"
#include "op/op.hpp"

namespace cohort {

struct CustomArray {
  void *data = nullptr;  // of an array without elements it may be null
  bool wanted = true;
  Shape shape;
  Dtype dtype = Dtype::kNone;
};

// What belongs to one bound node, from its forward passes to its backward passes.
class CustomOperator {
 public:
  struct Pass {
    Context context;
    bool is_train = false;
    std::vector<CustomArray> inputs, aux, outputs;   // all wanted
    std::vector<CustomArray> head_grads, gradients;  // of backward
  };
  virtual ~CustomOperator() = default;
  std::atomic<bool> forward_failed{false};  // the latest one
  virtual void forward(const Pass &pass) = 0;
  virtual void backward(const Pass &pass) = 0;
};

// What one node is, by its attributes.
class CustomUse {
 public:
  virtual ~CustomUse() = default;
  std::vector<InputField> inputs;  // auxiliary states last
  std::vector<std::string> outputs;
  size_t num_aux = 0;
  bool has_backward = false;
  bool reads_head_grads = true;
  bool any_thread = false;  // the host may be called on any thread

  size_t num_args() const { return inputs.size() - num_aux; }
  // As of Op.
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

// Any thread. A name that is taken is kName, as is one that is not there.
void add_custom_type(const std::string &op_type, std::shared_ptr<CustomType> type);
void remove_custom_type(const std::string &op_type);

}  // namespace cohort
