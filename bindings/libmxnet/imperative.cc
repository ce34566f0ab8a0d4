// SPDX-License-Identifier: Apache-2.0
#include "imperative.hpp"

#include <algorithm>
#include <map>

#include "mxnet/c_api.h"
#include "profiler.hpp"

namespace cohort_mxnet {

namespace {

// ---- seeds
// ---------------------------------------------------------------------------------------------------------------

uint64_t mixed(uint64_t value) {  // splitmix64
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

struct SeedSequence {
  uint64_t seed = 0, num_drawn = 0, generation = 0;
};

struct Seeds {
  std::mutex mutex;  // guards the others
  uint64_t seed_of_all = 0, generation = 0;
  std::map<std::pair<int, int>, SeedSequence> by_context;

  SeedSequence &of(const cohort_context &context) {
    const auto found = by_context.emplace(std::make_pair(context.device_type, context.device_id), SeedSequence());
    if (found.second)
      found.first->second = {mixed(seed_of_all + static_cast<uint64_t>(context.device_id)), 0, generation};
    return found.first->second;
  }
};

Seeds &seeds() {
  static Seeds &all = *std::make_unique<Seeds>().release();
  return all;
}

// ---- copies
// --------------------------------------------------------------------------------------------------------------

bool is_host(const cohort_context &context) { return context.device_type != COHORT_DEVICE_GPU; }

// Copies between devices and types, which no operator does: a function on the tape, whose gradient is copied back.
void copy_across(const std::shared_ptr<NDArray> &source, const std::shared_ptr<NDArray> &target) {
  const std::shared_ptr<SharedTape> shared = tape_for({source});
  if (!shared) {
    source->array().copy_to(target->array());
    return;
  }
  TapeUse use(shared);
  const cohort::NDArray from = recorded_input(*source, shared);
  const cohort::NDArray to = target->share();
  from.copy_to(target->array());
  const cohort_context context = source->context();
  const cohort_dtype dtype = source->dtype();
  use.tape().function({&from, 1}, {&to, 1}, [context, dtype](const std::vector<cohort::NDArray> &head_grads) {
    std::vector<cohort::NDArray> gradients;
    gradients.push_back(head_grads.at(0).cast(dtype).copy(context));
    return gradients;
  });
  set_origin({target}, {source}, shared);
}

bool is_copy_across(const std::string &op, const ArrayList &inputs, const ArrayList &outputs) {
  if ((op != "_copyto" && op != "_copy" && op != "identity") || inputs.size() != 1 || outputs.size() != 1) return false;
  if (inputs[0]->is_none() || outputs[0]->is_none()) return false;
  const cohort_context from = inputs[0]->context(), to = outputs[0]->context();
  const bool same_device =
      (is_host(from) && is_host(to)) || (from.device_type == to.device_type && from.device_id == to.device_id);
  return !same_device || inputs[0]->dtype() != outputs[0]->dtype();
}

cohort_context context_from(const std::string &text) {
  return cohort::query<cohort_context>(cohort_context_parse, text.c_str());
}

}  // namespace

uint64_t next_seed(const cohort_context &context) {
  Seeds &all = seeds();
  const std::lock_guard<std::mutex> lock(all.mutex);
  SeedSequence &sequence = all.of(context);
  return mixed(sequence.seed + mixed(sequence.num_drawn++));
}

uint64_t seed_generation(const cohort_context &context) {
  Seeds &all = seeds();
  const std::lock_guard<std::mutex> lock(all.mutex);
  return all.of(context).generation;
}

TextAttrs text_attrs(size_t num, const char *const *keys, const char *const *values) {
  TextAttrs attrs;
  if (num > 0) require(keys, "the keys of attributes"), require(values, "the values of attributes");
  for (size_t i = 0; i < num; ++i)
    attrs.emplace_back(&required(keys[i], "the key of an attribute"),
                       &required(values[i], "the value of an attribute"));
  return attrs;
}

ArrayList apply_operator(const Operator &of, const TextAttrs &attrs, const ArrayList &inputs, const ArrayList &outputs,
                         cohort_context context) {
  const std::string &op = of.name;
  if (is_copy_across(op, inputs, outputs)) {
    copy_across(inputs[0], outputs[0]);
    return outputs;
  }
  if (!inputs.empty())
    context = inputs[0]->context();
  else if (!outputs.empty() && !outputs[0]->is_none())
    context = outputs[0]->context();
  std::vector<const char *> keys, values;
  for (const auto &[key, value] : attrs) {
    if (key.size() > 4 && key.compare(0, 2, "__") == 0) continue;  // of nodes, such as __layout__
    if (of.takes_context && key == "ctx") {
      if (!value.empty() && inputs.empty() && (outputs.empty() || outputs[0]->is_none())) context = context_from(value);
      continue;
    }
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }

  const char *dtype = nullptr;
  const auto is_dtype = [](const auto &attr) { return attr.first == "dtype" && attr.second != "None"; };
  if (of.infers_dtype && !outputs.empty() && !outputs[0]->is_none() &&
      std::none_of(attrs.begin(), attrs.end(), is_dtype)) {
    cohort::check(cohort_dtype_text(outputs[0]->dtype(), &dtype));
    for (size_t i = keys.size(); i-- > 0;) {
      if (std::string(keys[i]) != "dtype") continue;
      keys.erase(keys.begin() + static_cast<std::ptrdiff_t>(i));
      values.erase(values.begin() + static_cast<std::ptrdiff_t>(i));
    }
    keys.push_back("dtype");
    values.push_back(dtype);
  }

  const bool given = !outputs.empty() &&
                     std::none_of(outputs.begin(), outputs.end(), [](const auto &output) { return output->is_none(); });
  std::vector<cohort_ndarray *> output_handles;
  if (given)
    for (const auto &output : outputs) output_handles.push_back(output->array().get());

  const AppliedInCallbackSpan span(op);
  cohort_invoke_options options = COHORT_INVOKE_OPTIONS_INIT;
  options.context = &context;
  options.seed = next_seed(context);
  const std::shared_ptr<SharedTape> shared = tape_for(inputs);
  cohort_arrays *computed = nullptr;
  std::vector<cohort::NDArray> kept;
  std::vector<cohort_ndarray *> input_handles;
  if (shared) {
    TapeUse use(shared);
    for (const auto &input : inputs) {
      kept.push_back(recorded_input(*input, shared));
      input_handles.push_back(kept.back().get());
    }
    cohort::check(cohort_tape_invoke(use.tape().get(), op.c_str(), keys.data(), values.data(), keys.size(),
                                     input_handles.data(), input_handles.size(), output_handles.data(),
                                     output_handles.size(), &options, &computed));
  } else {
    options.is_train = is_training();
    for (const auto &input : inputs) input_handles.push_back(input->array().get());
    cohort::check(cohort_operator_invoke(op.c_str(), keys.data(), values.data(), keys.size(), input_handles.data(),
                                         input_handles.size(), output_handles.data(), output_handles.size(), &options,
                                         &computed));
  }
  const cohort::Arrays results(computed);
  ArrayList made;
  if (given) {
    made = outputs;
  } else {
    std::vector<cohort::NDArray> list = results.list();
    if (!outputs.empty() && outputs.size() != list.size())
      fail("operator " + op + ": expected " + std::to_string(list.size()) + " arrays for outputs, found " +
           std::to_string(outputs.size()));
    for (size_t i = 0; i < list.size(); ++i) {
      if (outputs.empty()) {
        made.push_back(std::make_shared<NDArray>(std::move(list[i])));
      } else {
        if (outputs[i]->is_none())
          outputs[i]->set_array(std::move(list[i]));
        else
          list[i].copy_to(outputs[i]->array());
        made.push_back(outputs[i]);
      }
    }
  }
  if (shared) set_origin(made, inputs, shared);
  return made;
}

ArrayList apply_operator(const char *op, const ArrayList &inputs, const ArrayList &outputs) {
  const Operator *const found = find_operator(op);
  if (!found) fail(std::string("there is no operator '") + op + "'");
  return apply_operator(*found, {}, inputs, outputs);
}

}  // namespace cohort_mxnet

using namespace cohort_mxnet;

extern "C" {

int MXRandomSeed(int seed) {
  return guarded([&] {
    Seeds &all = seeds();
    const std::lock_guard<std::mutex> lock(all.mutex);
    all.seed_of_all = mixed(static_cast<uint64_t>(static_cast<int64_t>(seed)));
    ++all.generation;
    all.by_context.clear();
  });
}

int MXRandomSeedContext(int seed, int dev_type, int dev_id) {
  return guarded([&] {
    Seeds &all = seeds();
    const std::lock_guard<std::mutex> lock(all.mutex);
    SeedSequence &sequence = all.of({dev_type, dev_id});
    sequence = {mixed(static_cast<uint64_t>(static_cast<int64_t>(seed))), 0, ++all.generation};
  });
}

int MXImperativeInvokeEx(AtomicSymbolCreator creator, int num_inputs, NDArrayHandle *inputs, int *num_outputs,
                         NDArrayHandle **outputs, int num_params, const char **param_keys, const char **param_vals,
                         const int **out_stypes) {
  return guarded([&] {
    static thread_local std::vector<void *> handles;
    static thread_local std::vector<int> stypes;
    const Operator &op = operator_of(creator);
    require(num_outputs, "num_outputs"), require(outputs, "outputs");
    if (num_inputs < 0 || num_params < 0) fail("a negative number of inputs or parameters");
    if (!op.is_known) fail("operator " + op.name + ": not implemented in Cohort");
    const ArrayList in = ndarrays(inputs, static_cast<size_t>(num_inputs));
    ArrayList out;
    if (*outputs && *num_outputs > 0) out = ndarrays(*outputs, static_cast<size_t>(*num_outputs));
    const ArrayList made =
        apply_operator(op, text_attrs(static_cast<size_t>(num_params), param_keys, param_vals), in, out);
    if (out.empty()) {
      NewHandles new_handles;
      for (const auto &array : made) new_handles.add(array);
      handles = new_handles.release();
      *outputs = handles.data();
      *num_outputs = static_cast<int>(handles.size());
    }
    if (out_stypes) {
      stypes.assign(made.size(), COHORT_STORAGE_DEFAULT);
      *out_stypes = stypes.data();
    }
  });
}

int MXImperativeInvoke(AtomicSymbolCreator creator, int num_inputs, NDArrayHandle *inputs, int *num_outputs,
                       NDArrayHandle **outputs, int num_params, const char **param_keys, const char **param_vals) {
  return MXImperativeInvokeEx(creator, num_inputs, inputs, num_outputs, outputs, num_params, param_keys, param_vals,
                              nullptr);
}

}  // extern "C"
