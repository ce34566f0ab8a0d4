// SPDX-License-Identifier: Apache-2.0
// Operators of the host: the callbacks of MXNet's interface behind those of Cohort's.
#include <algorithm>
#include <map>
#include <mutex>

#include "autograd.hpp"
#include "mxnet/c_api.h"
#include "profiler.hpp"

namespace cohort_mxnet {

namespace {

// Roles of the arrays that a callback is given.
enum Tag { kInput = 0, kOutput = 1, kInputGradient = 2, kOutputGradient = 3, kAux = 4 };

// A list of callbacks that the host has filled in. The first is called when it is not needed any more.
class HostCallbacks {
 public:
  HostCallbacks() = default;
  HostCallbacks(const HostCallbacks &) = delete;
  HostCallbacks &operator=(const HostCallbacks &) = delete;
  ~HostCallbacks() {
    if (const auto released = find<CustomOpDelFunc>(0)) released(context(0));
  }

  MXCallbackList *list() { return &list_; }
  template <typename Function>
  Function find(int index) const {
    return index < list_.num_callbacks && list_.callbacks ? as_function<Function>(list_.callbacks[index]) : nullptr;
  }
  void *context(int index) const { return list_.contexts ? list_.contexts[index] : nullptr; }
  // Calls a callback that answers 0 for a failure.
  template <typename Function, typename... Args>
  void call(int index, const char *what, Args... args) const {
    const auto function = find<Function>(index);
    if (!function) fail(std::string("a custom operator without the callback ") + what);
    if (!function(args..., context(index))) fail(std::string("the custom operator's ") + what + " failed");
  }

 private:
  MXCallbackList list_{0, nullptr, nullptr};
};

std::vector<std::string> texts_of(char **list) {
  std::vector<std::string> texts;
  for (; list && *list; ++list) texts.emplace_back(*list);
  return texts;
}

// The host's description of nodes with certain attributes.
struct Properties {
  HostCallbacks callbacks;
  std::vector<std::string> inputs, outputs, aux;

  std::vector<std::string> names(int callback, const char *what) const {
    char **list = nullptr;
    callbacks.call<CustomOpListFunc>(callback, what, &list);
    return texts_of(list);
  }
  size_t num_arrays() const { return inputs.size() + outputs.size() + aux.size(); }
};

// An operator type that the host has registered. Descriptions are kept by attributes: one that has inferred shapes goes
// on to make the operators.
struct OperatorType {
  std::string name;
  CustomOpPropCreator creator;
  std::mutex mutex;  // guards by_attrs
  std::map<std::vector<std::string>, std::shared_ptr<Properties>> by_attrs;

  std::shared_ptr<Properties> properties(const char *const *keys, const char *const *values, size_t num_attrs) {
    std::vector<std::string> attrs;
    std::vector<const char *> own_keys, own_values;
    for (size_t i = 0; i < num_attrs; ++i) {
      if (std::string(keys[i]).compare(0, 2, "__") == 0) continue;  // of nodes, not of operators
      attrs.insert(attrs.end(), {keys[i], values[i]});
      own_keys.push_back(keys[i]);
      own_values.push_back(values[i]);
    }
    {
      const std::lock_guard<std::mutex> lock(mutex);
      const auto found = by_attrs.find(attrs);
      if (found != by_attrs.end()) return found->second;
    }
    const auto made = std::make_shared<Properties>();
    if (!creator(name.c_str(), static_cast<int>(own_keys.size()), own_keys.data(), own_values.data(),
                 made->callbacks.list()))
      fail("the host cannot make custom operator '" + name + "'");
    made->inputs = made->names(kCustomOpPropListArguments, "list of arguments");
    made->outputs = made->names(kCustomOpPropListOutputs, "list of outputs");
    made->aux = made->names(kCustomOpPropListAuxiliaryStates, "list of auxiliary states");
    const std::lock_guard<std::mutex> lock(mutex);
    return by_attrs.emplace(std::move(attrs), made).first->second;
  }
};

// A node's operator, made when its inputs are first known.
struct NodeState {
  std::shared_ptr<Properties> properties;
  cohort_context context;
  std::mutex mutex;  // guards made
  std::unique_ptr<HostCallbacks> made;

  const HostCallbacks &op(const std::vector<cohort::NDArray> &inputs) {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (made) return *made;
    }
    std::vector<std::vector<unsigned>> shapes;
    std::vector<unsigned *> pointers;
    std::vector<int> num_axes, dtypes;
    for (const cohort::NDArray &input : inputs) {
      const cohort::Shape shape = input.shape();
      shapes.emplace_back(shape.begin(), shape.end());
      num_axes.push_back(static_cast<int>(shape.size()));
      dtypes.push_back(input.dtype());
    }
    for (std::vector<unsigned> &shape : shapes) pointers.push_back(shape.data());
    char text[32];
    cohort::check(cohort_context_text(&context, text, sizeof text, nullptr));
    auto callbacks = std::make_unique<HostCallbacks>();
    properties->callbacks.call<CustomOpCreateFunc>(kCustomOpPropCreateOperator, "create_operator",
                                                   static_cast<const char *>(text), static_cast<int>(inputs.size()),
                                                   pointers.data(), static_cast<const int *>(num_axes.data()),
                                                   static_cast<const int *>(dtypes.data()), callbacks->list());
    // No lock is held while the host's code runs. If two threads have made the operator, the first one stays.
    const std::lock_guard<std::mutex> lock(mutex);
    if (!made) made.swap(callbacks);
    return *made;
  }
};

// The arrays of one call. The callback owns their handles.
class CallArrays {
 public:
  void add(const std::vector<cohort::NDArray> &arrays, Tag tag) {
    for (const cohort::NDArray &array : arrays) {
      handles_.add(array ? std::make_shared<NDArray>(NDArray::make_shared_handle(array)) : std::make_shared<NDArray>());
      tags_.push_back(tag);
    }
  }
  void call(const HostCallbacks &op, int index, const char *what, const std::vector<int> &requests, bool is_train) {
    std::vector<void *> handles = handles_.release();
    const ScopedFlags flags(false, is_train);
    op.call<CustomOpFBFunc>(index, what, static_cast<int>(handles.size()), handles.data(), tags_.data(),
                            requests.data(), static_cast<int>(is_train));
    cohort_error_free(cohort_wait_all());  // operators that it has applied may still read what it was lent
  }

 private:
  NewHandles handles_;
  std::vector<int> tags_;
};

std::vector<cohort::NDArray> lent(const cohort_arrays *arrays) {
  std::vector<cohort::NDArray> list(cohort::query<size_t>(cohort_arrays_num, arrays));
  for (size_t i = 0; i < list.size(); ++i) list[i] = cohort::make<cohort::NDArray>(cohort_arrays_get, arrays, i);
  return list;
}

void wait_for(const std::vector<cohort::NDArray> &arrays) {
  for (const cohort::NDArray &array : arrays)
    if (array) array.wait();
}

OperatorType &type_of(void *user_data) { return *static_cast<OperatorType *>(user_data); }

void add_names(cohort_descs *descs, const std::vector<std::string> &names) {
  for (const std::string &name : names)
    cohort::check(cohort_descs_add(descs, name.c_str(), nullptr, COHORT_UNKNOWN_SHAPE, COHORT_DTYPE_NONE, nullptr));
}

int32_t declare(const char *const *keys, const char *const *values, size_t num_attrs, cohort_descs *inputs,
                cohort_descs *aux, cohort_descs *outputs, void *user_data) {
  return guarded([&] {
    const auto properties = type_of(user_data).properties(keys, values, num_attrs);
    add_names(inputs, properties->inputs);
    add_names(aux, properties->aux);
    add_names(outputs, properties->outputs);
  });
}

int32_t infer_shape(const char *const *keys, const char *const *values, size_t num_attrs, const cohort_descs *known,
                    cohort_descs *inputs, cohort_descs *aux, cohort_descs *outputs, void *user_data) {
  return guarded([&] {
    const auto properties = type_of(user_data).properties(keys, values, num_attrs);
    const size_t num = properties->num_arrays();
    std::vector<std::vector<int>> shapes(num);
    std::vector<int> num_axes(num, 0);
    std::vector<int *> pointers(num);
    for (size_t i = 0; i < properties->inputs.size(); ++i) {
      int64_t lengths[COHORT_MAX_AXES];
      int32_t axes = 0;
      cohort::check(cohort_descs_get(known, i, nullptr, lengths, COHORT_MAX_AXES, &axes, nullptr, nullptr));
      shapes[i].assign(lengths, lengths + std::max(axes, 0));
      num_axes[i] = std::max(axes, 0);
    }
    for (size_t i = 0; i < num; ++i) pointers[i] = shapes[i].data();
    properties->callbacks.call<CustomOpInferShapeFunc>(kCustomOpPropInferShape, "infer_shape", static_cast<int>(num),
                                                       num_axes.data(), pointers.data());
    const auto add = [&](cohort_descs *descs, size_t first, const std::vector<std::string> &names) {
      for (size_t i = 0; i < names.size(); ++i) {
        const size_t place = first + i;
        if (num_axes[place] < 0 || num_axes[place] > COHORT_MAX_AXES)
          fail("the custom operator's infer_shape: " + std::to_string(num_axes[place]) + " axes for '" + names[i] +
               "'");
        const cohort::Shape shape(pointers[place], pointers[place] + num_axes[place]);
        cohort::check(
            cohort_descs_add(descs, names[i].c_str(), shape.data(), num_axes[place], COHORT_DTYPE_NONE, nullptr));
      }
    };
    add(inputs, 0, properties->inputs);
    add(outputs, properties->inputs.size(), properties->outputs);
    add(aux, properties->inputs.size() + properties->outputs.size(), properties->aux);
  });
}

int32_t infer_dtype(const char *const *keys, const char *const *values, size_t num_attrs, const cohort_descs *known,
                    cohort_descs *inputs, cohort_descs *aux, cohort_descs *outputs, void *user_data) {
  return guarded([&] {
    const auto properties = type_of(user_data).properties(keys, values, num_attrs);
    std::vector<int> dtypes(properties->num_arrays(), COHORT_DTYPE_NONE);
    for (size_t i = 0; i < properties->inputs.size(); ++i)
      cohort::check(cohort_descs_get(known, i, nullptr, nullptr, 0, nullptr, &dtypes[i], nullptr));
    if (properties->callbacks.find<CustomOpInferTypeFunc>(kCustomOpPropInferType))
      properties->callbacks.call<CustomOpInferTypeFunc>(kCustomOpPropInferType, "infer_type",
                                                        static_cast<int>(dtypes.size()), dtypes.data());
    else
      std::fill(dtypes.begin(), dtypes.end(), dtypes.at(0));
    const auto add = [&](cohort_descs *descs, size_t first, const std::vector<std::string> &names) {
      for (size_t i = 0; i < names.size(); ++i)
        cohort::check(
            cohort_descs_add(descs, names[i].c_str(), nullptr, COHORT_UNKNOWN_SHAPE, dtypes[first + i], nullptr));
    };
    add(inputs, 0, properties->inputs);
    add(outputs, properties->inputs.size(), properties->outputs);
    add(aux, properties->inputs.size() + properties->outputs.size(), properties->aux);
  });
}

int32_t create(const char *const *keys, const char *const *values, size_t num_attrs, const cohort_context *context,
               void **out_state, void *user_data) {
  return guarded([&] {
    auto state = std::make_unique<NodeState>();
    state->properties = type_of(user_data).properties(keys, values, num_attrs);
    state->context = *context;
    *out_state = state.release();
  });
}

void release(void *state, void *) { const std::unique_ptr<NodeState> owner(static_cast<NodeState *>(state)); }

int32_t forward(void *state, const cohort_arrays *inputs, const cohort_arrays *aux, const cohort_arrays *outputs,
                cohort_bool is_train, void *user_data) {
  return guarded([&] {
    const CustomOperatorSpan span(type_of(user_data).name);
    NodeState &node = *static_cast<NodeState *>(state);
    const auto in = lent(inputs), out = lent(outputs), states = lent(aux);
    CallArrays call;
    call.add(in, kInput);
    call.add(out, kOutput);
    call.add(states, kAux);
    call.call(node.op(in), kCustomOpForward, "forward", std::vector<int>(out.size(), COHORT_GRAD_WRITE), is_train != 0);
    wait_for(out);
    wait_for(states);
  });
}

int32_t backward(void *state, const cohort_arrays *head_grads, const cohort_arrays *inputs, const cohort_arrays *aux,
                 const cohort_arrays *outputs, const cohort_arrays *gradients, void *user_data) {
  return guarded([&] {
    const CustomOperatorSpan span("_backward_" + type_of(user_data).name);
    NodeState &node = *static_cast<NodeState *>(state);
    const Properties &properties = *node.properties;
    const auto in = lent(inputs), out = lent(outputs), states = lent(aux), heads = lent(head_grads);
    std::vector<cohort::NDArray> grads = lent(gradients);
    std::vector<int> requests;
    for (size_t i = 0; i < grads.size(); ++i) {
      requests.push_back(grads[i] ? COHORT_GRAD_WRITE : COHORT_GRAD_NULL);
      // The host takes an array for each, even if nobody reads it.
      if (!grads[i]) grads[i] = in.at(i).copy(in.at(i).context());
    }
    // The host's classes note here which arrays their backward reads.
    if (properties.callbacks.find<CustomOpBwdDepFunc>(kCustomOpPropDeclareBackwardDependency)) {
      std::vector<int> numbers(properties.inputs.size() + 2 * properties.outputs.size());
      for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int>(i);
      const int *const out_grad = numbers.data(), *const in_data = out_grad + properties.outputs.size(),
                       *const out_data = in_data + properties.inputs.size();
      int num_deps = 0, *deps = nullptr;
      properties.callbacks.call<CustomOpBwdDepFunc>(kCustomOpPropDeclareBackwardDependency,
                                                    "declare_backward_dependency", out_grad, in_data, out_data,
                                                    &num_deps, &deps);
    }
    CallArrays call;
    call.add(heads, kOutputGradient);
    call.add(in, kInput);
    call.add(out, kOutput);
    call.add(grads, kInputGradient);
    call.add(states, kAux);
    call.call(node.op(in), kCustomOpBackward, "backward", requests, true);
    wait_for(grads);
    wait_for(states);
  });
}

}  // namespace

}  // namespace cohort_mxnet

using namespace cohort_mxnet;

extern "C" {

int MXCustomOpRegister(const char *op_type, CustomOpPropCreator creator) {
  return guarded([&] {
    require(op_type, "op_type");
    if (!creator) fail("creator is NULL");
    cohort_custom_op op = COHORT_CUSTOM_OP_INIT;
    op.declare = declare;
    op.infer_shape = infer_shape;
    op.infer_dtype = infer_dtype;
    op.create = create;
    op.forward = forward;
    op.backward = backward;
    op.release = release;
    // MXNet lets a later registration take the place of an earlier one.
    cohort_error_free(cohort_custom_unregister(op_type));
    auto type = std::make_unique<OperatorType>();
    type->name = op_type;
    type->creator = creator;
    op.user_data = type.get();
    cohort::check(cohort_custom_register(op_type, &op));
    type.release();  // lives as long as the process, as the host's callbacks do
  });
}

}  // extern "C"
