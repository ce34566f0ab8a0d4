// SPDX-License-Identifier: Apache-2.0
#include "cohort/tape.h"

#include "api/objects.hpp"
#include "tape/tape.hpp"

using namespace cohort;
using namespace cohort::api;

namespace {

// The host's callbacks behind a recorded function.
class HostFunction final : public TapeFunction {
 public:
  HostFunction(cohort_tape_function_fn backward, cohort_tape_release_fn release, void *user_data)
      : backward_(backward), user_data_(user_data), release_([=] {
          if (release) release(user_data);
        }) {}

  std::vector<NDArray> backward(const std::vector<NDArray> &head_grads) override {
    NamedArrays named;
    for (const NDArray &gradient : head_grads) named.emplace_back(std::string(), gradient);
    const ScopedHandle<cohort_arrays> heads(std::move(named));
    const ScopedHandle<cohort_arrays> list(NamedArrays{});
    const int32_t status = backward_(heads.get(), list.get(), user_data_);
    if (status) {
      throw Error(Code::kExecution, text("function on the tape: its callback returned ", status), "backward");
    }
    std::vector<NDArray> gradients;
    for (const auto &entry : deref(list.get(), "gradients")) gradients.push_back(entry.second);
    return gradients;
  }
  void take() { release_.take(); }  // see HostRelease::take()

 private:
  const cohort_tape_function_fn backward_;
  void *const user_data_;
  HostRelease release_;
};

Tape::BackwardOptions to_backward_options(const cohort_backward_options *options) {
  const cohort_backward_options set = read_options(options, "options");
  return {to_bool(set.retain_graph, "retain_graph"), to_bool(set.create_graph, "create_graph")};
}

std::vector<NDArray> deref_gradients(cohort_ndarray *const *gradients, size_t count, const char *what) {
  return gradients ? deref_all_or_null(gradients, count, what) : std::vector<NDArray>();
}

cohort_arrays *arrays_handle(const std::vector<NDArray> &arrays) {
  NamedArrays list;
  for (const NDArray &array : arrays) list.emplace_back(std::string(), array);
  return make_handle<cohort_arrays>(std::move(list));
}

}  // namespace

cohort_error *cohort_tape_create(cohort_tape **out_tape) {
  return guard([&] {
    require(out_tape, "out_tape");
    *out_tape = make_handle<cohort_tape>({std::make_shared<Tape>()});
  });
}

void cohort_tape_free(cohort_tape *tape) {
  const CallScope inside;
  free_handle(tape);
}

cohort_error *cohort_tape_set_recording(cohort_tape *tape, int32_t recording, int32_t *out_previous) {
  return guard([&] {
    Tape &target = *deref(tape, "tape").tape;
    const bool previous = target.recording();
    target.set_recording(to_bool(recording, "recording"));
    write_if(out_previous, previous);
  });
}

cohort_error *cohort_tape_is_recording(const cohort_tape *tape, int32_t *out_recording) {
  return guard([&] {
    require(out_recording, "out_recording");
    *out_recording = deref(tape, "tape").tape->recording();
  });
}

cohort_error *cohort_tape_set_training(cohort_tape *tape, int32_t training, int32_t *out_previous) {
  return guard([&] {
    Tape &target = *deref(tape, "tape").tape;
    const bool previous = target.training();
    target.set_training(to_bool(training, "training"));
    write_if(out_previous, previous);
  });
}

cohort_error *cohort_tape_is_training(const cohort_tape *tape, int32_t *out_training) {
  return guard([&] {
    require(out_training, "out_training");
    *out_training = deref(tape, "tape").tape->training();
  });
}

cohort_error *cohort_tape_mark(cohort_tape *tape, cohort_ndarray *const *arrays, cohort_ndarray *const *gradients,
                               const int32_t *grad_reqs, size_t num_arrays) {
  return guard([&] {
    Tape &target = *deref(tape, "tape").tape;
    std::vector<GradReq> reqs(num_arrays, GradReq::kWrite);
    for (size_t i = 0; grad_reqs && i < num_arrays; ++i) reqs[i] = make_grad_req(grad_reqs[i]);
    target.mark(deref_all(arrays, num_arrays, "arrays"), deref_gradients(gradients, num_arrays, "gradients"), reqs);
  });
}

cohort_error *cohort_tape_invoke(cohort_tape *tape, const char *op, const char *const *keys, const char *const *values,
                                 size_t num_attrs, cohort_ndarray *const *inputs, size_t num_inputs,
                                 cohort_ndarray *const *outputs, size_t num_outputs,
                                 const cohort_invoke_options *options, cohort_arrays **out_outputs) {
  return guard([&] {
    if (!num_outputs) require(out_outputs, "out_outputs");
    Tape &target = *deref(tape, "tape").tape;
    const cohort_invoke_options set = read_options(options, "options");
    if (set.is_train) {
      throw Error(Code::kInvalidArgument,
                  text("is_train: expected 0, as the mode of the tape counts, found ", set.is_train), "is_train");
    }
    const std::vector<NDArray> sources = deref_all(inputs, num_inputs, "inputs");
    const std::vector<NDArray> targets = deref_all(outputs, num_outputs, "outputs");
    ScopedHandle<cohort_arrays> results{NamedArrays()};  // made first, so that nothing can fail once the work is done
    const std::vector<NDArray> made = target.invoke(to_text(op, "op"), to_attrs(keys, values, num_attrs), sources,
                                                    targets, to_context(set.context), set.seed);
    if (!out_outputs) return;
    for (const NDArray &array : made) deref(results.get(), "outputs").emplace_back("", array);
    *out_outputs = results.release();
  });
}

void cohort_backward_options_init(cohort_backward_options *options, size_t struct_size) {
  init_struct(options, struct_size);
}

cohort_error *cohort_tape_backward(cohort_tape *tape, cohort_ndarray *const *heads, cohort_ndarray *const *head_grads,
                                   size_t num_heads, const cohort_backward_options *options) {
  return guard([&] {
    deref(tape, "tape")
        .tape->backward(deref_all(heads, num_heads, "heads"), deref_gradients(head_grads, num_heads, "head_grads"),
                        to_backward_options(options));
  });
}

cohort_error *cohort_tape_grad(cohort_tape *tape, cohort_ndarray *const *heads, cohort_ndarray *const *head_grads,
                               size_t num_heads, cohort_ndarray *const *variables, size_t num_variables,
                               const cohort_backward_options *options, cohort_arrays **out_gradients) {
  return guard([&] {
    require(out_gradients, "out_gradients");
    Tape &target = *deref(tape, "tape").tape;
    *out_gradients = arrays_handle(
        target.gradients_of(deref_all(heads, num_heads, "heads"), deref_gradients(head_grads, num_heads, "head_grads"),
                            deref_all(variables, num_variables, "variables"), to_backward_options(options)));
  });
}

cohort_error *cohort_tape_function(cohort_tape *tape, cohort_ndarray *const *inputs, size_t num_inputs,
                                   cohort_ndarray *const *outputs, size_t num_outputs, cohort_tape_function_fn backward,
                                   cohort_tape_release_fn release, void *user_data) {
  return guard([&] {
    Tape &target = *deref(tape, "tape").tape;
    require(reinterpret_cast<const void *>(backward), "backward");
    const std::vector<NDArray> sources = deref_all(inputs, num_inputs, "inputs");
    const std::vector<NDArray> targets = deref_all(outputs, num_outputs, "outputs");
    const auto function = std::make_shared<HostFunction>(backward, release, user_data);
    target.record_function(sources, targets, function);
    function->take();
  });
}

cohort_error *cohort_tape_symbol(cohort_tape *tape, cohort_ndarray *array, cohort_symbol **out_symbol) {
  return guard([&] {
    require(out_symbol, "out_symbol");
    Tape &target = *deref(tape, "tape").tape;
    *out_symbol = symbol_handle(target.symbol(deref(array, "array")));
  });
}

cohort_error *cohort_tape_num_recorded(cohort_tape *tape, size_t *out_num) {
  return guard([&] {
    require(out_num, "out_num");
    *out_num = deref(tape, "tape").tape->num_recorded();
  });
}
