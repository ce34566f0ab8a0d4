/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file cpp_custom.hpp
 * Operators that the caller implements. A part of cohort.hpp, which says what holds for all.
 */
#ifndef COHORT_CPP_CUSTOM_HPP
#define COHORT_CPP_CUSTOM_HPP

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/cpp_arrays.hpp"

namespace cohort {
inline namespace abi0 {

/** The names of what a node of a custom operator has; no outputs: one, "output". */
struct CustomNames {
  std::vector<std::string> inputs, aux, outputs;
};

/** Shapes or dtypes that inference finds; no inputs: as they are known. */
struct CustomDescs {
  std::vector<Desc> inputs, aux, outputs;
};

/** One pass of a node. The arrays are the library's working memory and must not be kept. */
struct CustomPass {
  void *state = nullptr;  // what `create` made for this node
  std::vector<NDArray> inputs, aux, outputs;
  std::vector<NDArray> head_grads, gradients;  // of backward: read, and to be written; an empty gradient is not wanted
  bool is_train = false;                       // of forward
};

/** An operator of the caller's: cohort_custom_op, where each callback is described. */
struct CustomOperator {
  std::function<CustomNames(const Attrs &attrs)> declare;
  /** Empty: all inputs and outputs have one shape, or dtype. */
  std::function<CustomDescs(const Attrs &attrs, const std::vector<Desc> &known)> infer_shape, infer_dtype;
  /** Makes the state of a bound node, which lives as long as that. Empty: no state. */
  std::function<std::shared_ptr<void>(const Attrs &attrs, const Context &context)> create;
  std::function<void(CustomPass &pass)> forward;
  std::function<void(CustomPass &pass)> backward;  // empty: nothing flows back
  bool ignores_head_grads = false;
  bool any_thread = false;  // what forward and backward throw is lost then: the pass fails with an Error
};

namespace detail {

struct CustomCalls {
  static CustomOperator &op(void *user_data) { return *static_cast<CustomOperator *>(user_data); }
  static Attrs attrs(const char *const *keys, const char *const *values, size_t num) {
    Attrs found;
    for (size_t i = 0; i < num; ++i) found.emplace_back(keys[i], values[i]);
    return found;
  }
  static void add_names(cohort_descs *list, const std::vector<std::string> &names) {
    for (const std::string &name : names)
      check(cohort_descs_add(list, name.c_str(), nullptr, COHORT_UNKNOWN_SHAPE, COHORT_DTYPE_NONE, nullptr));
  }
  static void add_descs(cohort_descs *list, const std::vector<Desc> &descs) {
    Lent<Descs> view(list);
    for (const Desc &desc : descs) view.owner.add(desc);
  }
  static std::vector<NDArray> arrays(const cohort_arrays *lent) { return Lent<Arrays>(lent).owner.list(); }

  static int32_t declare(const char *const *keys, const char *const *values, size_t num_attrs, cohort_descs *inputs,
                         cohort_descs *aux, cohort_descs *outputs, void *user_data) {
    return !run_callback([&] {
      const CustomNames names = op(user_data).declare(attrs(keys, values, num_attrs));
      add_names(inputs, names.inputs);
      add_names(aux, names.aux);
      add_names(outputs, names.outputs);
      return true;
    });
  }
  template <auto member>
  static int32_t infer(const char *const *keys, const char *const *values, size_t num_attrs, const cohort_descs *known,
                       cohort_descs *inputs, cohort_descs *aux, cohort_descs *outputs, void *user_data) {
    return !run_callback([&] {
      Lent<Descs> view(known);
      const CustomDescs found = (op(user_data).*member)(attrs(keys, values, num_attrs), view.owner.list());
      add_descs(inputs, found.inputs);
      add_descs(aux, found.aux);
      add_descs(outputs, found.outputs);
      return true;
    });
  }
  static int32_t create(const char *const *keys, const char *const *values, size_t num_attrs,
                        const cohort_context *context, void **out_state, void *user_data) {
    return !run_callback([&] {
      auto state = std::make_unique<std::shared_ptr<void>>(
          op(user_data).create(attrs(keys, values, num_attrs), Context(*context)));
      *out_state = state.release();
      return true;
    });
  }
  // An exception kept for a thread of the library's own would never be thrown again.
  template <typename Code>
  static int32_t run(void *user_data, const Code &code) {
    const bool done = run_callback([&] {
      code();
      return true;
    });
    if (op(user_data).any_thread) pending_exception() = nullptr;
    return !done;
  }
  static void *unwrap(void *state) { return state ? static_cast<std::shared_ptr<void> *>(state)->get() : nullptr; }
  static int32_t forward(void *state, const cohort_arrays *inputs, const cohort_arrays *aux,
                         const cohort_arrays *outputs, cohort_bool is_train, void *user_data) {
    return run(user_data, [&] {
      CustomPass pass;
      pass.state = unwrap(state);
      pass.inputs = arrays(inputs);
      pass.aux = arrays(aux);
      pass.outputs = arrays(outputs);
      pass.is_train = is_train != 0;
      op(user_data).forward(pass);
    });
  }
  static int32_t backward(void *state, const cohort_arrays *head_grads, const cohort_arrays *inputs,
                          const cohort_arrays *aux, const cohort_arrays *outputs, const cohort_arrays *gradients,
                          void *user_data) {
    return run(user_data, [&] {
      CustomPass pass;
      pass.state = unwrap(state);
      pass.head_grads = arrays(head_grads);
      pass.inputs = arrays(inputs);
      pass.aux = arrays(aux);
      pass.outputs = arrays(outputs);
      pass.gradients = arrays(gradients);
      op(user_data).backward(pass);
    });
  }
  static void release(void *state, void *) {
    const std::unique_ptr<std::shared_ptr<void>> last_owner(static_cast<std::shared_ptr<void> *>(state));
  }
  static void ended(void *user_data) {
    const std::unique_ptr<CustomOperator> last_owner(static_cast<CustomOperator *>(user_data));
  }
};

}  // namespace detail

/** Registers an operator of the caller's for the whole process: cohort_custom_register(). */
inline void register_custom(const std::string &op_type, CustomOperator custom) {
  auto owner = std::make_unique<CustomOperator>(std::move(custom));
  cohort_custom_op c = COHORT_CUSTOM_OP_INIT;
  c.declare = owner->declare ? detail::CustomCalls::declare : nullptr;
  c.infer_shape = owner->infer_shape ? detail::CustomCalls::infer<&CustomOperator::infer_shape> : nullptr;
  c.infer_dtype = owner->infer_dtype ? detail::CustomCalls::infer<&CustomOperator::infer_dtype> : nullptr;
  c.create = owner->create ? detail::CustomCalls::create : nullptr;
  c.forward = owner->forward ? detail::CustomCalls::forward : nullptr;
  c.backward = owner->backward ? detail::CustomCalls::backward : nullptr;
  c.release = owner->create ? detail::CustomCalls::release : nullptr;
  c.ended = detail::CustomCalls::ended;
  c.user_data = owner.get();
  c.ignores_head_grads = owner->ignores_head_grads;
  c.any_thread = owner->any_thread;
  check(cohort_custom_register(op_type.c_str(), &c));
  owner.release();  // the library's, until nothing has a node of it
}

/** Ends the name; nodes that there are stay: cohort_custom_unregister(). */
inline void unregister_custom(const std::string &op_type) { check(cohort_custom_unregister(op_type.c_str())); }

}  // namespace abi0
}  // namespace cohort

#endif /* COHORT_CPP_CUSTOM_HPP */
