// SPDX-License-Identifier: Apache-2.0
#include "autograd.hpp"

#include <algorithm>
#include <unordered_set>

#include "mxnet/c_api.h"
#include "symbol_handle.hpp"

namespace cohort_mxnet {

namespace {

struct Flags {
  bool recording = false, training = false;
};

Flags &flags() {
  static thread_local Flags of_thread;
  return of_thread;
}

// The tape that this thread records on. It lives as long as an array that was recorded on it: then the host has back
// what the tape kept, and its functions are released while it still runs.
std::weak_ptr<SharedTape> &recorded_on() {
  static thread_local std::weak_ptr<SharedTape> of_thread;
  return of_thread;
}

std::shared_ptr<SharedTape> tape_of_thread() {
  std::shared_ptr<SharedTape> tape = recorded_on().lock();
  if (!tape) recorded_on() = tape = std::make_shared<SharedTape>();
  return tape;
}

// Makes sure that the tape knows the variable.
void mark_on(Origin &variable, const std::shared_ptr<SharedTape> &shared, cohort::Tape &tape) {
  const std::lock_guard<std::mutex> lock(variable.mutex);
  std::vector<std::weak_ptr<SharedTape>> &known = variable.marked_on;
  for (const std::weak_ptr<SharedTape> &on : known)
    if (on.lock() == shared) return;
  cohort_ndarray *const handle = variable.array.get(), *const gradient = variable.gradient.get();
  cohort::check(cohort_tape_mark(tape.get(), &handle, &gradient, &variable.req, 1));
  known.erase(std::remove_if(known.begin(), known.end(), [](const auto &on) { return on.expired(); }), known.end());
  known.push_back(shared);
}

// The tape that these arrays were recorded on; null for variables and constants alone.
std::shared_ptr<SharedTape> common_tape(const ArrayList &arrays) {
  std::shared_ptr<SharedTape> common;
  for (const auto &array : arrays) {
    if (!array->origin || !array->origin->tape || array->is_detached) continue;
    if (common && common != array->origin->tape)
      fail("arrays that were recorded by different threads, or inside and outside of a callback, meet in one operator");
    common = array->origin->tape;
  }
  return common;
}

bool has_origin(const NDArray &array) { return array.origin && !array.is_detached; }

// Calls `visit` for each origin that arrays come from.
template <typename Visit>
void for_each_ancestor(const ArrayList &heads, Visit visit) {
  std::unordered_set<const Origin *> seen;
  std::vector<std::shared_ptr<Origin>> open;
  for (const auto &head : heads)
    if (has_origin(*head)) open.push_back(head->origin);
  while (!open.empty()) {
    const std::shared_ptr<Origin> origin = std::move(open.back());
    open.pop_back();
    if (!seen.insert(origin.get()).second) continue;
    for (const auto &parent : origin->parents) open.push_back(parent);
    visit(*origin);
  }
}

struct BackwardCall {
  ArrayList heads;
  std::vector<cohort::NDArray> kept;  // what the pointers below point to
  std::vector<cohort_ndarray *> head_handles, head_grads, variables;
};

void give_handles(const cohort::Arrays &arrays, void ***out_handles, int **out_stypes) {
  static thread_local std::vector<void *> handles;
  static thread_local std::vector<int> stypes;
  NewHandles made;
  for (cohort::NDArray &array : arrays.list()) made.add(std::make_shared<NDArray>(std::move(array)));
  handles = made.release();
  stypes.assign(handles.size(), COHORT_STORAGE_DEFAULT);
  *out_handles = handles.data();
  if (out_stypes) *out_stypes = stypes.data();
}

void backward(const ArrayList &heads, void *const *head_grad_handles, const ArrayList &variables, bool retain_graph,
              bool create_graph, void ***out_grads, int **out_stypes) {
  if (heads.empty()) fail("expected one head or more, found none");
  std::shared_ptr<SharedTape> shared = common_tape(heads);
  for (const auto &head : heads)
    if (!has_origin(*head))
      fail("a head is not in a recorded graph: record the operators that compute it, and mark a variable");
  if (!shared) shared = tape_of_thread();
  BackwardCall call;
  {
    TapeUse use(shared);
    for (const auto &head : heads) {
      cohort::NDArray handle = recorded_input(*head, shared);
      if (head->is_part) {  // the tape knows the whole array: its part is made an array
        use.tape().set_recording(true);
        handle = std::move(use.tape().invoke("_copy", {&handle, 1}).at(0));
      }
      call.kept.push_back(std::move(handle));
      call.head_handles.push_back(call.kept.back().get());
    }
    for (size_t i = 0; i < heads.size(); ++i) {
      const void *const grad = head_grad_handles ? head_grad_handles[i] : nullptr;
      cohort_ndarray *handle = nullptr;
      if (grad) {
        const std::shared_ptr<NDArray> head_grad = ndarray(grad);
        call.kept.push_back(create_graph && has_origin(*head_grad) ? recorded_input(*head_grad, shared)
                                                                   : head_grad->share());
        handle = call.kept.back().get();
      }
      call.head_grads.push_back(handle);
    }
    for (const auto &variable : variables) {
      if (!has_origin(*variable)) fail("a variable is not in a recorded graph");
      call.kept.push_back(recorded_input(*variable, shared));
      call.variables.push_back(call.kept.back().get());
    }
    cohort_backward_options options = COHORT_BACKWARD_OPTIONS_INIT;
    options.retain_graph = retain_graph || create_graph;
    options.create_graph = create_graph;
    if (variables.empty()) {
      cohort::check(cohort_tape_backward(use.tape().get(), call.head_handles.data(), call.head_grads.data(),
                                         heads.size(), &options));
    } else {
      const auto gradients = cohort::make<cohort::Arrays>(
          cohort_tape_grad, use.tape().get(), call.head_handles.data(), call.head_grads.data(), heads.size(),
          call.variables.data(), call.variables.size(), static_cast<const cohort_backward_options *>(&options));
      give_handles(gradients, out_grads, out_stypes);
      if (create_graph) {
        ArrayList sources = heads, made;
        sources.insert(sources.end(), variables.begin(), variables.end());
        for (size_t i = 0; i < variables.size(); ++i) made.push_back(ndarray((*out_grads)[i]));
        set_origin(made, sources, shared);
      }
    }
  }
  if (variables.empty()) {
    for_each_ancestor(heads, [&](Origin &origin) {
      if (!origin.tape) origin.is_fresh = 1;
    });
  }
  if (!retain_graph && !create_graph) {
    std::vector<std::shared_ptr<Origin>> released;
    for_each_ancestor(heads, [&](Origin &origin) {
      for (auto &parent : origin.parents) released.push_back(std::move(parent));
      origin.parents.clear();
    });
  }
}

}  // namespace

// Long chains are taken apart here, without recursion.
Origin::~Origin() {
  std::vector<std::shared_ptr<Origin>> open = std::move(parents);
  while (!open.empty()) {
    const std::shared_ptr<Origin> origin = std::move(open.back());
    open.pop_back();
    if (origin && origin.use_count() == 1) {
      for (auto &parent : origin->parents) open.push_back(std::move(parent));
      origin->parents.clear();
    }
  }
}

bool is_recording() { return flags().recording; }
bool is_training() { return flags().training; }
bool set_recording(bool recording) { return std::exchange(flags().recording, recording); }
bool set_training(bool training) { return std::exchange(flags().training, training); }

std::shared_ptr<SharedTape> tape_for(const ArrayList &inputs) {
  if (!is_recording()) return nullptr;
  if (std::none_of(inputs.begin(), inputs.end(), [](const auto &input) { return has_origin(*input); })) return nullptr;
  const std::shared_ptr<SharedTape> common = common_tape(inputs);
  return common ? common : tape_of_thread();
}

TapeUse::OtherTape::OtherTape() : outer_(std::exchange(recorded_on(), {})) {}
TapeUse::OtherTape::~OtherTape() { recorded_on() = std::move(outer_); }

TapeUse::TapeUse(const std::shared_ptr<SharedTape> &tape) : shared_(tape), lock_(tape->mutex) {
  shared_->tape.set_recording(is_recording());
  shared_->tape.set_training(is_training());
}

cohort::NDArray recorded_input(NDArray &input, const std::shared_ptr<SharedTape> &shared) {
  // The tape knows arrays by their memory: a constant must not share it.
  if (input.is_detached) return input.array().copy(input.array().context());
  if (input.origin && !input.origin->tape) mark_on(*input.origin, shared, shared->tape);
  return input.share();
}

void set_origin(const ArrayList &outputs, const ArrayList &inputs, const std::shared_ptr<SharedTape> &tape) {
  const auto origin = std::make_shared<Origin>();
  origin->tape = tape;
  for (const auto &input : inputs)
    if (has_origin(*input)) origin->parents.push_back(input->origin);
  for (const auto &output : outputs) {
    output->origin = origin;
    output->is_marked = output->is_detached = output->is_part = false;
  }
}

}  // namespace cohort_mxnet

using namespace cohort_mxnet;

extern "C" {

int MXAutogradSetIsRecording(int is_recording, int *prev) {
  return guarded([&] {
    const bool previous = set_recording(is_recording != 0);
    if (prev) *prev = previous;
  });
}

int MXAutogradSetIsTraining(int is_training, int *prev) {
  return guarded([&] {
    const bool previous = set_training(is_training != 0);
    if (prev) *prev = previous;
  });
}

int MXAutogradIsRecording(bool *curr) {
  return guarded([&] { required(curr, "curr") = is_recording(); });
}

int MXAutogradIsTraining(bool *curr) {
  return guarded([&] { required(curr, "curr") = is_training(); });
}

int MXAutogradMarkVariables(uint32_t num_var, NDArrayHandle *var_handles, uint32_t *reqs_array,
                            NDArrayHandle *grad_handles) {
  return guarded([&] {
    const ArrayList variables = ndarrays(var_handles, num_var), gradients = ndarrays(grad_handles, num_var);
    if (num_var > 0) require(reqs_array, "reqs_array");
    std::vector<std::shared_ptr<Origin>> origins;
    for (uint32_t i = 0; i < num_var; ++i) {
      const auto origin = std::make_shared<Origin>();
      origin->req = static_cast<cohort_grad_req>(reqs_array[i]);
      if (reqs_array[i] == 2) origin->req = COHORT_GRAD_WRITE;  // in place
      if (origin->req != COHORT_GRAD_NULL && origin->req != COHORT_GRAD_WRITE && origin->req != COHORT_GRAD_ADD)
        fail("gradient request " + std::to_string(reqs_array[i]) +
             ": expected 0 (null), 1 (write), 2 (in place) or 3 (add)");
      if (origin->req != COHORT_GRAD_NULL) origin->gradient = gradients[i]->share();
      variables[i]->array();
      origins.push_back(origin);
    }
    for (uint32_t i = 0; i < num_var; ++i) {
      NDArray &variable = *variables[i];
      if (variable.is_detached || variable.is_part) variable.own_memory();
      origins[i]->array = variable.share();
      variable.origin = std::move(origins[i]);
      variable.is_marked = true;
    }
  });
}

int MXNDArrayGetGrad(NDArrayHandle handle, NDArrayHandle *out) {
  return guarded([&] {
    const std::shared_ptr<NDArray> array = ndarray(handle);
    required(out, "out") = nullptr;
    if (array->is_marked && array->origin->gradient)
      *out = new_ndarray(NDArray::make_shared_handle(array->origin->gradient));
  });
}

int MXNDArrayDetach(NDArrayHandle handle, NDArrayHandle *out) {
  return guarded([&] {
    const std::shared_ptr<NDArray> array = ndarray(handle);
    auto detached = std::make_shared<NDArray>(array->share());
    detached->is_detached = array->origin != nullptr || array->is_detached;
    detached->is_part = array->is_part;
    required(out, "out") = publish(std::move(detached));
  });
}

int MXNDArraySetGradState(NDArrayHandle handle, int state) {
  return guarded([&] {
    const std::shared_ptr<NDArray> array = ndarray(handle);
    if (!array->origin) fail("the state of a gradient of an NDArray that autograd does not know");
    array->origin->is_fresh = state != 0;
  });
}

int MXNDArrayGetGradState(NDArrayHandle handle, int *out) {
  return guarded([&] {
    const std::shared_ptr<NDArray> array = ndarray(handle);
    required(out, "out") = array->origin ? array->origin->is_fresh.load() : 0;
  });
}

int MXAutogradComputeGradient(uint32_t num_output, NDArrayHandle *output_handles) {
  return MXAutogradBackward(num_output, output_handles, nullptr, 0);
}

int MXAutogradBackward(uint32_t num_output, NDArrayHandle *output_handles, NDArrayHandle *ograd_handles,
                       int retain_graph) {
  return guarded([&] {
    backward(ndarrays(output_handles, num_output), ograd_handles, {}, retain_graph != 0, false, nullptr, nullptr);
  });
}

int MXAutogradBackwardEx(uint32_t num_output, NDArrayHandle *output_handles, NDArrayHandle *ograd_handles,
                         uint32_t num_variables, NDArrayHandle *var_handles, int retain_graph, int create_graph, int,
                         NDArrayHandle **grad_handles, int **grad_stypes) {
  return guarded([&] {
    if (num_variables > 0) require(grad_handles, "grad_handles");
    backward(ndarrays(output_handles, num_output), ograd_handles, ndarrays(var_handles, num_variables),
             retain_graph != 0, create_graph != 0, grad_handles, grad_stypes);
  });
}

int MXAutogradGetSymbol(NDArrayHandle handle, SymbolHandle *out) {
  return guarded([&] {
    require(out, "out");
    const std::shared_ptr<NDArray> array = ndarray(handle);
    const std::shared_ptr<SharedTape> shared = common_tape({array});
    if (!shared) fail("the NDArray is not in a recorded graph");
    TapeUse use(shared);
    *out = new_symbol(use.tape().symbol(recorded_input(*array, shared)));
  });
}

// ---- functions of the host
// -----------------------------------------------------------------------------------------------

}  // extern "C"

namespace {

// The callbacks of a function that the host has computed; the host is told when the last owner is gone.
class HostFunction {
 public:
  explicit HostFunction(const MXCallbackList &callbacks) {
    if (callbacks.num_callbacks <= kCustomFunctionBackward || !callbacks.callbacks || !callbacks.contexts ||
        !callbacks.callbacks[kCustomFunctionBackward])
      fail("a function without a callback for its gradient");
    backward_ = as_function<CustomFunctionBwdFunc>(callbacks.callbacks[kCustomFunctionBackward]);
    backward_state_ = callbacks.contexts[kCustomFunctionBackward];
    if (callbacks.num_callbacks > kCustomFunctionDelete) {
      delete_ = as_function<CustomFunctionDelFunc>(callbacks.callbacks[kCustomFunctionDelete]);
      delete_state_ = callbacks.contexts[kCustomFunctionDelete];
    }
  }
  HostFunction(const HostFunction &) = delete;
  HostFunction &operator=(const HostFunction &) = delete;
  ~HostFunction() {
    if (delete_) delete_(delete_state_);
  }

  std::vector<cohort::NDArray> backward(const std::vector<cohort::NDArray> &head_grads,
                                        const std::vector<std::pair<cohort::Shape, cohort_dtype>> &inputs,
                                        const std::vector<cohort_context> &contexts) const {
    NewHandles handles;  // the callback owns them
    std::vector<cohort::NDArray> gradients;
    for (const cohort::NDArray &head_grad : head_grads)
      handles.add(std::make_shared<NDArray>(NDArray::make_shared_handle(head_grad)));
    for (size_t i = 0; i < inputs.size(); ++i) {
      gradients.push_back(cohort::make<cohort::NDArray>(cohort_ndarray_zeros, inputs[i].first.data(),
                                                        static_cast<int32_t>(inputs[i].first.size()), inputs[i].second,
                                                        &contexts[i]));
      handles.add(std::make_shared<NDArray>(NDArray::make_shared_handle(gradients.back())));
    }
    std::vector<void *> pointers = handles.release();
    const bool training = is_training();
    const ScopedFlags flags(false, training);
    const std::vector<int> requests(inputs.size(), COHORT_GRAD_WRITE);
    if (!backward_(static_cast<int>(head_grads.size()), static_cast<int>(inputs.size()), pointers.data(),
                   requests.data(), is_training(), backward_state_))
      fail("the host's function failed to compute its gradient");
    return gradients;
  }

 private:
  CustomFunctionBwdFunc backward_ = nullptr;
  CustomFunctionDelFunc delete_ = nullptr;
  void *backward_state_ = nullptr, *delete_state_ = nullptr;
};

}  // namespace

extern "C" {

int MXCustomFunctionRecord(int num_inputs, NDArrayHandle *inputs, int num_outputs, NDArrayHandle *outputs,
                           struct MXCallbackList *callbacks) {
  return guarded([&] {
    if (num_inputs < 0 || num_outputs < 0) fail("a negative number of inputs or outputs");
    const ArrayList in = ndarrays(inputs, static_cast<size_t>(num_inputs)),
                    out = ndarrays(outputs, static_cast<size_t>(num_outputs));
    const auto function = std::make_shared<HostFunction>(required(callbacks, "callbacks"));
    const std::shared_ptr<SharedTape> tape = tape_for(in);
    if (!tape) return;
    TapeUse use(tape);
    std::vector<cohort::NDArray> in_handles, out_handles;
    std::vector<std::pair<cohort::Shape, cohort_dtype>> types;
    std::vector<cohort_context> contexts;
    for (const auto &array : in) {
      in_handles.push_back(recorded_input(*array, tape));
      types.emplace_back(array->shape(), array->dtype());
      contexts.push_back(array->context());
    }
    for (const auto &array : out) out_handles.push_back(array->share());
    use.tape().function(in_handles, out_handles,
                        [function, types, contexts](const std::vector<cohort::NDArray> &head_grads) {
                          return function->backward(head_grads, types, contexts);
                        });
    set_origin(out, in, tape);
  });
}

}  // extern "C"
