/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file cpp_tapes.hpp
 * Tapes: gradients of operators applied to arrays. A part of cohort.hpp, which says what holds for all.
 */
#ifndef COHORT_CPP_TAPES_HPP
#define COHORT_CPP_TAPES_HPP

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/cpp_operators.hpp"
#include "cohort/cpp_symbols.hpp"

namespace cohort {
inline namespace abi0 {

/** Settings of a backward pass along a tape: cohort_backward_options. */
struct BackwardOptions {
  bool retain_graph = false;
  bool create_graph = false;
};

/** Records operators as they are applied, and computes gradients back along them. */
class Tape : public Handle<cohort_tape, cohort_tape_free> {
 public:
  using Handle::Handle;
  /** Computes the gradients of a function's inputs, in order, empty for none, from those of its outputs. */
  using Function = std::function<std::vector<NDArray>(const std::vector<NDArray> &head_grads)>;

  /** Records, in training mode: cohort_tape_create(). */
  Tape() : Handle(make<Handle>(cohort_tape_create)) {}

  /** Pauses or resumes; returns what it was before: cohort_tape_set_recording(). */
  bool set_recording(bool recording) {
    return query<cohort_bool>(cohort_tape_set_recording, get(), cohort_bool{recording}) != 0;
  }
  /** cohort_tape_is_recording(). */
  bool is_recording() const { return query<cohort_bool>(cohort_tape_is_recording, get()) != 0; }
  /** Sets the mode; returns what it was before: cohort_tape_set_training(). */
  bool set_training(bool training) {
    return query<cohort_bool>(cohort_tape_set_training, get(), cohort_bool{training}) != 0;
  }
  /** cohort_tape_is_training(). */
  bool is_training() const { return query<cohort_bool>(cohort_tape_is_training, get()) != 0; }

  /** Marks arrays that want gradients: cohort_tape_mark(). No gradients: none are written; no grad_reqs: "write". */
  void mark(Span<NDArray> arrays, Span<NDArray> gradients = {}, Span<cohort_grad_req> grad_reqs = {}) {
    detail::check_length("gradients", gradients.size(), arrays.size());
    detail::check_length("grad_reqs", grad_reqs.size(), arrays.size());
    check(cohort_tape_mark(get(), detail::raw(arrays).data(),
                           gradients.empty() ? nullptr : detail::raw(gradients).data(), grad_reqs.data(),
                           arrays.size()));
  }
  /** Applies an operator and records it: cohort_tape_invoke(). */
  std::vector<NDArray> invoke(const std::string &op, Span<NDArray> inputs, Span<Attr> attrs = {},
                              const InvokeOptions &options = {}) {
    const detail::CAttrs c(attrs);
    const cohort_invoke_options c_options = detail::c_options(options);
    return make<Arrays>(cohort_tape_invoke, get(), op.c_str(), c.keys.data(), c.values.data(), c.num,
                        detail::raw(inputs).data(), inputs.size(), nullptr, size_t{0}, &c_options)
        .list();
  }
  /** The same into given arrays. */
  void invoke_into(Span<NDArray> outputs, const std::string &op, Span<NDArray> inputs, Span<Attr> attrs = {},
                   const InvokeOptions &options = {}) {
    const detail::CAttrs c(attrs);
    const cohort_invoke_options c_options = detail::c_options(options);
    check(cohort_tape_invoke(get(), op.c_str(), c.keys.data(), c.values.data(), c.num, detail::raw(inputs).data(),
                             inputs.size(), detail::raw(outputs).data(), outputs.size(), &c_options, nullptr));
  }
  /** Writes the gradients of marked arrays: cohort_tape_backward(). No head gradients: ones. */
  void backward(Span<NDArray> heads, Span<NDArray> head_grads = {}, const BackwardOptions &options = {}) {
    detail::check_length("head_grads", head_grads.size(), heads.size());
    const cohort_backward_options c = c_options(options);
    check(cohort_tape_backward(get(), detail::raw(heads).data(),
                               head_grads.empty() ? nullptr : detail::raw(head_grads).data(), heads.size(), &c));
  }
  /** The gradients of some arrays, as new arrays: cohort_tape_grad(). */
  std::vector<NDArray> grad(Span<NDArray> heads, Span<NDArray> variables, Span<NDArray> head_grads = {},
                            const BackwardOptions &options = {}) {
    detail::check_length("head_grads", head_grads.size(), heads.size());
    const cohort_backward_options c = c_options(options);
    return make<Arrays>(cohort_tape_grad, get(), detail::raw(heads).data(),
                        head_grads.empty() ? nullptr : detail::raw(head_grads).data(), heads.size(),
                        detail::raw(variables).data(), variables.size(), &c)
        .list();
  }
  /** Records a function that the caller has computed: cohort_tape_function(). Kept as long as the tape needs it. */
  void function(Span<NDArray> inputs, Span<NDArray> outputs, Function backward) {
    auto closure = std::make_unique<Function>(std::move(backward));
    const cohort_tape_function_fn call = [](cohort_arrays *head_grads, cohort_arrays *gradients, void *user_data) {
      const bool done = detail::run_callback([&] {
        const std::vector<NDArray> heads = detail::Lent<Arrays>(head_grads).owner.list();
        for (const NDArray &gradient : (*static_cast<Function *>(user_data))(heads))
          check(cohort_arrays_add(gradients, nullptr, gradient.get()));
        return true;
      });
      return done ? int32_t{0} : int32_t{1};
    };
    const cohort_tape_release_fn release = [](void *user_data) {
      const std::unique_ptr<Function> last_owner(static_cast<Function *>(user_data));
    };
    check(cohort_tape_function(get(), detail::raw(inputs).data(), inputs.size(), detail::raw(outputs).data(),
                               outputs.size(), call, release, closure.get()));
    closure.release();  // the tape's, or released already
  }
  /** The symbol of what an array was made from: cohort_tape_symbol(). */
  Symbol symbol(const NDArray &array) const { return make<Symbol>(cohort_tape_symbol, get(), array.get()); }
  /** cohort_tape_num_recorded(). */
  size_t num_recorded() const { return query<size_t>(cohort_tape_num_recorded, get()); }

 private:
  static cohort_backward_options c_options(const BackwardOptions &options) {
    cohort_backward_options c = COHORT_BACKWARD_OPTIONS_INIT;
    c.retain_graph = options.retain_graph;
    c.create_graph = options.create_graph;
    return c;
  }
};

}  // namespace abi0
}  // namespace cohort

#endif /* COHORT_CPP_TAPES_HPP */
