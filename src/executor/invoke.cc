// SPDX-License-Identifier: Apache-2.0
#include "executor/invoke.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace cohort {
namespace {

// Keeps what the queue works on alive until it is done.
struct Call {
  Step step;
  std::unique_ptr<Kernel> kernel;
  std::string label;
  std::vector<void *> pointers;
  std::vector<NDArray> arrays;
  std::shared_ptr<Memory> scratch, saved;
};

Context context_of(const std::string &op, const std::vector<NDArray> &inputs, const Context &context) {
  if (inputs.empty()) return context;
  for (const NDArray &input : inputs) {
    if (input.context() != inputs[0].context() && !(input.context().on_host() && inputs[0].context().on_host())) {
      throw Error(Code::kDevice, text("operator ", op, ": inputs on ", inputs[0].context(), " and ", input.context()),
                  op);
    }
  }
  return inputs[0].context();
}

}  // namespace

std::vector<NDArray> invoke(const std::string &name, const AttrMap &attrs, const std::vector<NDArray> &inputs,
                            const std::vector<NDArray> &outputs, const Context &context, bool is_train, uint64_t seed) {
  const Op &op = get_op(name);
  const Attrs parsed = op.parse(attrs);
  const std::vector<std::string> names = op.input_names(parsed, int(inputs.size()));
  if (names.size() != inputs.size()) {
    throw Error(Code::kInvalidArgument,
                text("operator ", name, ": expected ", names.size(), " inputs, found ", inputs.size()), name);
  }
  Shapes in_shapes, out_shapes(size_t(op.num_outputs(parsed)));
  Dtypes in_dtypes, out_dtypes(out_shapes.size(), Dtype::kNone);
  for (const NDArray &input : inputs) {
    in_shapes.push_back(input.shape());
    in_dtypes.push_back(input.dtype());
  }
  const size_t visible = size_t(op.num_visible(parsed));
  if (!outputs.empty() && outputs.size() != visible) {
    throw Error(Code::kInvalidArgument,
                text("operator ", name, ": expected ", visible, " outputs, found ", outputs.size()), name);
  }
  for (size_t i = 0; i < outputs.size();
       ++i) {  // known outputs take part, as they do for shapes that inputs leave open
    if (!outputs[i]) continue;
    out_shapes[i] = outputs[i].shape();
    out_dtypes[i] = outputs[i].dtype();
  }
  try {
    op.infer_shape(parsed, in_shapes, out_shapes);
    op.infer_dtype(parsed, in_dtypes, out_dtypes);
  } catch (const Error &e) {
    throw Error(e.code(), text("operator ", name, ": ", e.what()), name);
  }
  for (size_t i = 0; i < out_shapes.size(); ++i) {
    if (!out_shapes[i].known())
      throw Error(Code::kShape, text("operator ", name, ": shape of output ", i, " is unknown"), name);
    if (out_dtypes[i] == Dtype::kNone) out_dtypes[i] = Dtype::kFloat32;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (in_shapes[i] != inputs[i].shape()) {
      throw Error(Code::kShape,
                  text("operator ", name, ", ", names[i], ": expected ", in_shapes[i], ", found ", inputs[i].shape()),
                  name);
    }
  }
  const Context where = context_of(name, inputs, context);
  const std::shared_ptr<Device> device = get_device(where);
  const std::string kernel_name = op.view ? "_copy" : op.name;
  const KernelEntry *entry = device->find_kernel(kernel_name);
  if (!entry) throw Error(Code::kUnsupported, text("operator ", name, " has no kernel on ", where), name);

  const std::shared_ptr<Queue> queue = device->create_queue({1});
  auto call = std::make_shared<Call>();
  StepSpec spec;
  spec.op = kernel_name;
  spec.attrs = parsed.pointer();
  spec.is_train = is_train;
  spec.seed = seed;
  spec.num_threads = 1;
  std::vector<NDArray> results;
  for (size_t i = 0; i < inputs.size(); ++i) {
    spec.inputs.push_back({inputs[i].shape(), inputs[i].dtype(), nullptr});
    spec.constant.push_back(false);
    inputs[i].wait();
    call->arrays.push_back(inputs[i]);
    call->pointers.push_back(inputs[i].data());
  }
  for (size_t i = 0; i < out_shapes.size(); ++i) {
    spec.outputs.push_back({out_shapes[i], out_dtypes[i], nullptr});
    spec.wanted.push_back(true);
    const bool given = i < outputs.size() && outputs[i];
    if (given && outputs[i].context() != where && !(outputs[i].context().on_host() && where.on_host())) {
      throw Error(Code::kDevice,
                  text("operator ", name, ": output ", i, " is on ", outputs[i].context(), ", expected ", where), name);
    }
    results.push_back(given ? outputs[i] : NDArray::create(out_shapes[i], out_dtypes[i], where, false));
    results.back().wait();
    call->arrays.push_back(results.back());
    call->pointers.push_back(results.back().data());
  }
  call->kernel = device->make_kernel(*entry, spec);
  for (const std::vector<TensorSpec> *specs : {&spec.inputs, &spec.outputs}) {
    for (const TensorSpec &s : *specs) {
      if (s.layout)
        throw Error(Code::kInternal, text("operator ", name, ": kernel of an imperative call asks for a layout"), name);
    }
  }
  if (spec.scratch_bytes) call->scratch = device->allocate(spec.scratch_bytes);
  if (spec.saved_bytes) call->saved = device->allocate(spec.saved_bytes);
  call->label = op.name;
  call->step.kernel = call->kernel.get();
  call->step.label = call->label.c_str();
  call->step.args.inputs = call->pointers.data();
  call->step.args.outputs = call->pointers.data() + inputs.size();
  call->step.args.scratch = call->scratch ? call->scratch->data() : nullptr;
  call->step.args.saved = call->saved ? call->saved->data() : nullptr;
  queue->run({&call->step, 1, true, nullptr}, call);
  queue->sync();
  for (int i : op.mutates) {
    if (size_t(i) < inputs.size()) inputs[size_t(i)].storage()->written();
  }
  for (const NDArray &result : results) result.storage()->written();
  results.resize(visible);
  return results;
}

}  // namespace cohort
