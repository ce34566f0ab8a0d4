// SPDX-License-Identifier: Apache-2.0
#include "tape/kernel_call.hpp"

#include <algorithm>

#include "executor/invoke.hpp"
#include "ndarray/name_allocation.hpp"
#include "plan/cost.hpp"

namespace cohort {
namespace {

constexpr size_t kBriefBytes = 16384;  // of arrays: so little work that waking a thread does not pay

// The steps of one call, with everything that they point to.
class Steps final : public AppliedWork {
 public:
  explicit Steps(std::string label) : AppliedWork(std::move(label)) {}

  std::shared_ptr<const void> made, forward;
  std::vector<std::shared_ptr<Memory>> memory;
  RandomStream random;  // for a random operator

  void add(const Kernel &step, const WorkInfo *info, const std::vector<void *> &inputs,
           const std::vector<void *> &outputs, Args args = {}) {
    std::vector<void *> &both = pointers_.emplace_back(inputs);
    both.insert(both.end(), outputs.begin(), outputs.end());
    args.inputs = both.data();
    args.outputs = both.data() + inputs.size();
    AppliedWork::add(step, args, info);
  }

 private:
  std::vector<std::vector<void *>> pointers_;  // per step: inputs, then outputs
};

template <typename T>
void append(std::string *key, const T &value) {
  key->append(reinterpret_cast<const char *>(&value), sizeof value);
}

void append_type(std::string *key, const Shape &shape, Dtype dtype) {
  append(key, shape.rank());
  append(key, dtype);
  for (const int64_t length : shape) append(key, length);
}

std::string key_of(const KernelCall &call, const Context &context) {
  std::string key = call.what->name();
  append(&key, context.type);
  append(&key, context.id);
  append(&key, call.what->is_train);
  append(&key, call.frozen);
  append(&key, call.forward ? call.forward->kernel.get() : nullptr);
  for (const auto &[name, value] : call.what->attrs) key.append(name).append(1, '=').append(value).append(1, '\0');
  append(&key, call.inputs.size());
  for (const NDArray &input : call.inputs) append_type(&key, input.shape(), input.dtype());
  for (size_t i = 0; i < call.types.size(); ++i) {
    append(&key, bool(call.outputs[i]));
    append_type(&key, call.types[i].shape, call.types[i].dtype);
  }
  return key;
}

StepSpec spec_of(const KernelCall &call, int num_threads) {
  const Op &op = *call.what->op;
  StepSpec spec;
  spec.op = op.view && !call.what->backward ? "_copy" : call.what->name();
  spec.attrs = call.what->parsed.pointer();
  spec.num_threads = num_threads;
  spec.is_train = call.what->is_train;
  spec.frozen = call.frozen;
  spec.keep_for_backward = !call.what->backward;
  spec.forward = call.forward ? call.forward->kernel.get() : nullptr;
  for (const NDArray &input : call.inputs) {
    spec.inputs.push_back({input.shape(), input.dtype(), nullptr});
    spec.constant.push_back(false);
  }
  for (size_t i = 0; i < call.types.size(); ++i) {
    spec.outputs.push_back({call.types[i].shape, call.types[i].dtype, nullptr});
    spec.wanted.push_back(bool(call.outputs[i]));
  }
  return spec;
}

double flops_of(const KernelCall &call) {
  const Op &op = *call.what->op;
  const Attrs &attrs = call.what->parsed;
  if (!op.flops) return 0;
  Shapes in, out;
  if (!call.what->backward) {
    for (const NDArray &input : call.inputs) in.push_back(input.shape());
    for (const TensorType &type : call.types) out.push_back(type.shape);
    return forward_flops(op, attrs, in, out);
  }
  // Outputs of a backward step are gradients, with the shapes of the forward step's inputs.
  for (const TensorType &type : call.types) in.push_back(type.shape);
  if (op.input_names(attrs, int(in.size())).size() != in.size()) return 0;  // some have no gradient
  out.resize(size_t(op.num_outputs(attrs)));
  op.infer_shape(attrs, in, out);
  std::vector<bool> wanted;
  for (const NDArray &output : call.outputs) wanted.push_back(bool(output));
  return backward_flops(op, attrs, in, out, wanted);
}

std::unique_ptr<WorkInfo> info_of(const KernelCall &call, const KernelChoice &choice) {
  auto info = std::make_unique<WorkInfo>(SpanKind::kOperator, call.what->op->name, call.what->name());
  info->kernel = choice.name;
  info->flops = flops_of(call);
  for (const NDArray &input : call.inputs) info->bytes += double(input.bytes());
  for (const NDArray &output : call.outputs) info->bytes += output ? double(output.bytes()) : 0;
  if (!call.inputs.empty()) {
    const NDArray &first = call.inputs[0];
    info->factors = factors_of(first.dtype(), first.context(), /* tf32 */ false);
  }
  return info;
}

}  // namespace

std::shared_ptr<const KernelRunner::CachedKernel> KernelRunner::cached_kernel(const KernelCall &call,
                                                                              const Context &context, Device &device) {
  const std::string key = key_of(call, context);
  const auto found = cache_.find(key);
  if (found != cache_.end() && !call.what->op->stateful) return found->second;

  auto made = std::make_shared<CachedKernel>();
  StepSpec &spec = made->spec = spec_of(call, num_applied_threads(context));
  KernelChoice choice;
  made->kernel = device.make_kernel(spec, &choice);
  made->info = info_of(call, choice);
  made->reorder_info = std::make_unique<WorkInfo>(SpanKind::kOperator, call.what->op->name, "reorder");
  if (call.forward) made->forward = call.forward->kernel;
  const auto row_major = [](TensorSpec tensor) {
    tensor.layout = nullptr;
    return tensor;
  };
  for (const TensorSpec &input : spec.inputs) {
    made->from_inputs.push_back(input.layout ? device.make_reorder(row_major(input), input, spec.num_threads)
                                             : nullptr);
  }
  for (const TensorSpec &output : spec.outputs) {
    made->to_outputs.push_back(output.layout ? device.make_reorder(output, row_major(output), spec.num_threads)
                                             : nullptr);
  }
  if (call.what->op->stateful) return made;
  if (cache_.size() >= kMostCached) cache_.clear();
  cache_[key] = made;
  return made;
}

std::shared_ptr<const Kept> KernelRunner::run(const KernelCall &call, const Context &context) {
  const std::shared_ptr<Device> device = get_device(context);
  const std::shared_ptr<const CachedKernel> made = cached_kernel(call, context, *device);
  const StepSpec &spec = made->spec;
  const auto work = std::make_shared<Steps>(call.what->name());
  work->made = made;
  work->forward = call.forward;
  work->random.seed = call.seed;
  work->calls_host = call.what->op->is_stateful(call.what->parsed);
  const auto allocate = [&](size_t bytes) -> void * {
    if (bytes)
      work->memory.push_back(name_allocation([&] { return device->allocate(bytes); }, "operator ", call.what->name()));
    return bytes ? work->memory.back()->data() : nullptr;
  };

  std::vector<void *> sources, targets;
  size_t bytes = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const NDArray &input = call.inputs[i];
    bytes += input.bytes();
    work->reads.push_back(input);
    sources.push_back(input.data());
    if (!made->from_inputs[i]) continue;
    sources[i] = allocate(spec.inputs[i].bytes());
    work->add(*made->from_inputs[i], made->reorder_info.get(), {input.data()}, {sources[i]});
  }
  for (const int i : call.what->mutated(call.inputs.size())) work->changes.push_back(call.inputs[size_t(i)]);
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const NDArray &output = call.outputs[i];
    targets.push_back(!output ? nullptr : made->to_outputs[i] ? allocate(spec.outputs[i].bytes()) : output.data());
    if (!output) continue;
    bytes += output.bytes();
    work->writes.push_back(output);
  }
  Args args;
  args.random = &work->random;
  args.scratch = allocate(spec.scratch_bytes);
  NDArray saved;
  if (call.what->backward) {
    if (call.forward) saved = call.forward->saved;
    if (saved) work->reads.push_back(saved);
  } else if (spec.saved_bytes) {
    saved = name_allocation(
        [&] { return NDArray::create(Shape{int64_t(spec.saved_bytes)}, Dtype::kUint8, context, false); }, "operator ",
        call.what->name());
    work->writes.push_back(saved);
  }
  args.saved = saved ? saved.data() : nullptr;
  work->add(*made->kernel, made->info.get(), sources, targets, args);
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (!call.outputs[i] || !made->to_outputs[i]) continue;
    work->add(*made->to_outputs[i], made->reorder_info.get(), {targets[i]}, {call.outputs[i].data()});
  }
  work->brief = bytes <= kBriefBytes;
  enqueue_applied(work, context);
  return std::make_shared<const Kept>(Kept{made->kernel, saved});
}

}  // namespace cohort
