// SPDX-License-Identifier: Apache-2.0
#include "executor/invoke.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/per_process.hpp"
#include "base/settings.hpp"
#include "base/small_array.hpp"
#include "device/trace.hpp"
#include "device/working_queue.hpp"
#include "executor/applied_program.hpp"
#include "executor/value_shapes.hpp"
#include "ndarray/name_allocation.hpp"

namespace cohort {
namespace {

// Working memory up to this size is kept between calls, one block for all programs of a device; a larger block lives as
// long as its call.
constexpr size_t kKeptBytes = size_t(64) << 20;

// ---- one call -----------------------------------------------------------------------------------------------------

// One queued call, which lives until the queue is done with it. Most calls are so small that this is one block of
// memory. It is the kernel of its own first step, too.
class AppliedCall final : public Kernel {
 public:
  AppliedCall(std::shared_ptr<const AppliedProgram> made, size_t num_inputs, size_t num_outputs, uint64_t seed)
      : program(std::move(made)),
        first_output(num_inputs),
        arrays_(num_inputs + num_outputs),
        addresses_(num_inputs + num_outputs),
        bytes_(num_inputs + num_outputs),
        steps_(program->num_steps() + 1),
        pointers_(program->num_pointers()),
        random_{program->random_seed(), seed} {}
  void set(size_t index, const NDArray &array) {
    arrays_[index] = array.storage();
    addresses_[index] = array.data();
    bytes_[index] = array.bytes();
  }
  // Orders the call after the work that it depends on.
  void begin(const std::shared_ptr<Timeline> &by) {
    by_ = by.get();
    for (size_t i = 0; i < first_output; ++i) hazards(i).begin_shared_read(range(i), by);
    for (const size_t i : program->mutated()) hazards(i).begin_write(range(i), by, /* overwrites */ false);
    for (size_t i = first_output; i < arrays_.size(); ++i) {
      if (hazards(i).failed(range(i))) were_bad_.push_back(i);
      hazards(i).begin_write(range(i), by, !is_read(i));
    }
  }
  // The call could not be queued: restores the failure marks.
  void not_queued(const char *why) const {
    for (const size_t i : were_bad_) hazards(i).fail(range(i), why, by_);
  }
  Program bind() {
    program->bind(addresses_.data(), addresses_.data() + first_output,
                  arena ? static_cast<char *>(arena->data()) : nullptr, &random_, steps_.data() + 1, pointers_.data());
    steps_[0] = {this, {}, steps_[1].label};
    Program whole{steps_.data(), steps_.size(), program->size(), failed, !program->stateful()};
    whole.isolated = true;
    return whole;
  }
  // Does the whole call before it returns; run(steps, count) runs its steps.
  template <typename Run>
  void run_here(const std::shared_ptr<Device> &device, const Run &run) {
    if (program->arena_bytes())
      arena = name_allocation([&] { return device->allocate(program->arena_bytes()); }, "operator ", program->op());
    const Program whole = bind();
    for (size_t i = 0; i < first_output; ++i) hazards(i).wait_to_read(range(i));
    for (size_t i = 0; i < arrays_.size(); ++i) {
      if (i >= first_output || is_mutated(i)) hazards(i).wait_to_write(range(i));
    }
    try {
      run(whole.steps + 1, whole.count - 1);
    } catch (const std::exception &e) {
      failed(this, e.what());
      throw;
    }
    for (size_t i = 0; i < arrays_.size(); ++i) {
      if (i >= first_output || is_mutated(i)) hazards(i).written(range(i));
    }
  }
  // Fails the call if earlier work has failed to write one of its inputs.
  void run(const Args &, const Lane &) const override {
    for (size_t i = 0; i < first_output; ++i) hazards(i).check_written(range(i));
    for (size_t i = first_output; i < arrays_.size(); ++i) hazards(i).clear_failure(range(i));
  }

  const std::shared_ptr<const AppliedProgram> program;
  const size_t first_output;
  std::shared_ptr<Memory> arena;

 private:
  static void failed(const void *owner, const char *message) {
    const auto &call = *static_cast<const AppliedCall *>(owner);
    const auto fail = [&](size_t i) { call.hazards(i).fail(call.range(i), message, call.by_); };
    for (size_t i = call.first_output; i < call.arrays_.size(); ++i) fail(i);
    for (const size_t i : call.program->mutated()) fail(i);
  }
  bool is_read(size_t output) const {
    for (size_t i = 0; i < first_output; ++i)
      if (range(i).overlaps(range(output))) return true;
    return false;
  }
  bool is_mutated(size_t input) const {
    const std::vector<size_t> &mutated = program->mutated();
    return std::find(mutated.begin(), mutated.end(), input) != mutated.end();
  }
  Hazards &hazards(size_t index) const { return arrays_[index]->hazards(); }
  AddressRange range(size_t index) const { return AddressRange(addresses_[index], bytes_[index]); }

  SmallArray<std::shared_ptr<Storage>, 6> arrays_;  // inputs, then outputs
  SmallArray<void *, 6> addresses_;                 // theirs
  SmallArray<size_t, 6> bytes_;
  SmallArray<Step, 4> steps_;
  SmallArray<void *, 12> pointers_;
  RandomStream random_;
  std::vector<size_t> were_bad_;  // outputs that were marked as failed before
  const Timeline *by_ = nullptr;  // only compared
};

// ---- the queues ---------------------------------------------------------------------------------------------------

// The queue, programs and working memory of operators applied on one device.
class ImmediateStream {
 public:
  explicit ImmediateStream(const Context &context) : device(get_device(context)) {}

  const std::shared_ptr<Device> device;
  AppliedPrograms programs;
  const bool trace = trace_enabled("step");

  int num_threads() { return open_queue().queue->num_threads(); }
  void enqueue(const std::shared_ptr<AppliedCall> &call) {
    const OpenQueue open = this->open_queue();
    const auto enqueue_lock = open.timeline->lock_to_enqueue();
    try {
      call->arena = name_allocation([&] { return working_memory(call->program->arena_bytes()); }, "operator ",
                                    call->program->op());
      const Program run = call->bind();
      call->begin(open.timeline);
      if (run.size != WorkSize::kBrief || !open.queue->idle()) has_thread_.store(true, std::memory_order_relaxed);
      open.queue->run(run, call);
    } catch (const std::exception &e) {
      call->not_queued(e.what());
      throw;
    }
  }
  // Runs steps on this thread before it returns. Those of a GPU have a queue for themselves: work on the usual one may
  // be waiting for this thread.
  void run_here(const Step *steps, size_t count) {
    if (device->context().on_host()) {
      for (size_t s = 0; s < count; ++s) {
        const WorkSpan span(steps[s].info);
        run_on_caller(steps[s]);
      }
      return;
    }
    std::shared_ptr<Queue> queue;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!spare_.empty()) {
        queue = std::move(spare_.back());
        spare_.pop_back();
      }
    }
    if (!queue) queue = device->create_queue(QueueOptions());
    queue->run({steps, count, WorkSize::kParallel}, nullptr);
    queue->sync();  // a queue that has failed is not used again
    const std::lock_guard<std::mutex> lock(mutex_);
    spare_.push_back(std::move(queue));
  }
  // Releases the memory, and the queue if it may have a thread.
  void release() noexcept {
    std::shared_ptr<Memory> arena;  // these are destroyed outside the lock, which their work may need
    OpenQueue open;
    std::vector<std::shared_ptr<Queue>> spare;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      spare.swap(spare_);
      arena.swap(arena_);
      if (has_thread_.exchange(false)) std::swap(open, open_);
    }
    if (open.queue) open.queue->finish();  // a timeline that is gone has finished its work
  }

 private:
  struct OpenQueue {
    std::shared_ptr<Timeline> timeline;
    std::shared_ptr<Queue> queue;  // the only one of the timeline
  };
  OpenQueue open_queue() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!open_.timeline) {
      OpenQueue fresh;
      fresh.timeline = immediate_timeline(device->context());
      fresh.queue = fresh.timeline->queues().front();
      std::swap(fresh, open_);
    }
    return open_;
  }
  std::shared_ptr<Memory> working_memory(size_t bytes) {
    if (bytes == 0) return nullptr;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (arena_ && arena_->bytes() >= bytes) return arena_;
    std::shared_ptr<Memory> larger = device->allocate(bytes);
    if (bytes <= kKeptBytes) arena_ = larger;  // queued calls still hold the old one
    return larger;
  }

  std::mutex mutex_;  // guards the three below
  OpenQueue open_;
  std::vector<std::shared_ptr<Queue>> spare_;  // of run_here()
  std::shared_ptr<Memory> arena_;              // used by one program after the other
  std::atomic<bool> has_thread_{false};        // it may have been given work
};

struct ImmediateStreams {
  std::mutex mutex;  // guards all
  std::map<Context, std::shared_ptr<ImmediateStream>> all;

  std::shared_ptr<ImmediateStream> of(const Context &context) {
    const std::lock_guard<std::mutex> lock(mutex);
    std::shared_ptr<ImmediateStream> &stream = all[{context.on_host() ? DeviceType::kCpu : context.type, context.id}];
    if (!stream) stream = std::make_shared<ImmediateStream>(context);
    return stream;
  }
  // The stream of the next context in order; null if there is none.
  std::shared_ptr<ImmediateStream> after(const Context &context) {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto next = all.upper_bound(context);
    return next == all.end() ? nullptr : next->second;
  }
};

ImmediateStreams &streams() { return per_process<ImmediateStreams>(); }

// An operator applied by queued work must not be queued after work that may wait for it. Besides, a GPU's queue calls
// the host when work is queued, and the host may apply other operators.
bool must_run_here(const AppliedProgram &program, const Context &context) {
  return program.on_caller() || working_queue || (program.stateful() && !context.on_host());
}

// ---- what may lie in one place ------------------------------------------------------------------------------------

// Whether outputs share memory with inputs, or with each other, in a way that the program does not allow.
bool aliases_unsafely(const Invocation &call, const AppliedProgram &program) {
  for (size_t o = 0; o < call.num_outputs; ++o) {
    const NDArray *const output = call.outputs[o];
    if (!output) continue;
    for (size_t i = 0; i < call.num_inputs; ++i) {
      const NDArray &input = *call.inputs[i];
      if (!output->overlaps(input)) continue;
      if (output->data() != input.data() || output->bytes() != input.bytes() || !program.may_share(i, o)) return true;
    }
    for (size_t other = 0; other < o; ++other) {
      if (call.outputs[other] && output->overlaps(*call.outputs[other])) return true;
    }
  }
  return false;
}

// ---- keys ---------------------------------------------------------------------------------------------------------

template <typename T>
void append(std::string *key, const T &value) {
  key->append(reinterpret_cast<const char *>(&value), sizeof value);
}

void append_type(std::string *key, bool given, const Shape &shape, Dtype dtype) {
  const std::vector<int64_t> &lengths = shape.dims();
  append(key, given);
  append(key, int(lengths.size()));
  append(key, dtype);
  key->append(reinterpret_cast<const char *>(lengths.data()), lengths.size() * sizeof(int64_t));
}

void append_array(std::string *key, const NDArray *array) {
  if (!array) return append(key, false);
  append_type(key, true, array->shape(), array->dtype());
}

// The key has everything that determines the program. Attributes are in it as text, so that they are parsed once.
void write_key(const Invocation &call, bool staged, std::string *key) {
  key->clear();
  key->append(call.op).push_back('\0');
  key->push_back(char(call.is_train | staged << 1 | call.frozen << 2 | call.keeps << 3));
  append(key, call.num_attrs);
  for (size_t i = 0; i < call.num_attrs; ++i) {
    for (const char *const word : {call.keys[i], call.values[i]}) key->append(word).push_back('\0');
  }
  append(key, call.num_inputs);
  for (size_t i = 0; i < call.num_inputs; ++i) append_array(key, call.inputs[i]);
  for (size_t i = 0; i < call.num_outputs; ++i) append_array(key, call.outputs[i]);
}

// ---- what is compiled ---------------------------------------------------------------------------------------------

AttrMap attributes_of(const Invocation &call) {
  AttrMap attrs;
  for (size_t i = 0; i < call.num_attrs; ++i) {
    if (!attrs.emplace(call.keys[i], call.values[i]).second) {
      throw Error(Code::kName, text("keys: '", call.keys[i], "' is given twice"), call.keys[i]);
    }
  }
  return attrs;
}

void infer(const Invocation &call, const std::vector<std::string> &names, AppliedOperator *what) {
  const Op &op = *what->applied.op;
  const Attrs &attrs = what->applied.parsed;
  const std::string &name = op.name;
  what->out_shapes.resize(size_t(op.num_outputs(attrs)));
  what->out_dtypes.assign(what->out_shapes.size(), Dtype::kNone);
  for (size_t i = 0; i < call.num_inputs; ++i) {
    what->in_shapes.push_back(call.inputs[i]->shape());
    what->in_dtypes.push_back(call.inputs[i]->dtype());
  }
  // Given outputs take part in inference: inputs may leave their shapes open.
  for (size_t i = 0; i < call.num_outputs; ++i) {
    if (!call.outputs[i]) continue;
    what->out_shapes[i] = call.outputs[i]->shape();
    what->out_dtypes[i] = call.outputs[i]->dtype();
  }
  try {
    for (const Shape &shape : what->in_shapes) check_size(shape, "input");
    op.infer_shape(attrs, what->in_shapes, what->out_shapes);
    op.infer_dtype(attrs, what->in_dtypes, what->out_dtypes);
    for (size_t i = 0; i < what->out_shapes.size(); ++i) {
      if (what->out_dtypes[i] == Dtype::kNone) what->out_dtypes[i] = Dtype::kFloat32;
      if (!what->out_shapes[i].known()) continue;  // it depends on values, or is an error: sized_by_values() decides
      dense_bytes(what->out_shapes[i], what->out_dtypes[i]);  // throws if no array can be so large
    }
  } catch (const Error &e) {
    throw Error(e.code(), text("operator ", name, ": ", e.what()), name);
  }
  const auto check = [&](const NDArray &array, const Shape &shape, Dtype dtype, const std::string &which) {
    if (array.shape() != shape) {
      throw Error(Code::kShape, text("operator ", name, ", ", which, ": expected ", shape, ", found ", array.shape()),
                  name);
    }
    if (array.dtype() != dtype) {
      throw Error(Code::kDtype, text("operator ", name, ", ", which, ": expected ", dtype, ", found ", array.dtype()),
                  name);
    }
  };
  for (size_t i = 0; i < call.num_inputs; ++i) {
    check(*call.inputs[i], what->in_shapes[i], what->in_dtypes[i], names[i]);
  }
  for (size_t i = 0; i < call.num_outputs; ++i) {
    if (!call.outputs[i]) continue;
    check(*call.outputs[i], what->out_shapes[i], what->out_dtypes[i], text("output ", i));
  }
}

AppliedOperator resolve_operator(const Invocation &call, bool staged) {
  AppliedOperator what;
  const Op &op = get_op(std::string(call.op));
  what.applied.op = &op;
  what.applied.attrs = attributes_of(call);
  what.applied.parsed = call.parsed ? *call.parsed : op.parse(what.applied.attrs);
  what.applied.is_train = call.is_train;
  what.frozen = call.frozen;
  what.keeps = call.keeps;
  what.staged = staged;
  const std::string &name = op.name;
  const Attrs &attrs = what.applied.parsed;
  const std::vector<std::string> names = op.input_names(attrs, op.count_args(what.applied.attrs, call.num_inputs));
  if (names.size() != call.num_inputs) {
    throw Error(Code::kInvalidArgument,
                text("operator ", name, ": expected ", names.size(), " inputs, found ", call.num_inputs), name);
  }
  const size_t visible = size_t(op.num_visible(attrs));
  if (call.num_outputs && call.num_outputs != visible) {
    throw Error(Code::kInvalidArgument,
                text("operator ", name, ": expected ", visible, " outputs, found ", call.num_outputs), name);
  }
  infer(call, names, &what);
  return what;
}

// Null if shapes of outputs depend on the values of inputs.
std::shared_ptr<const AppliedProgram> program_for(const Invocation &call, ImmediateStream &stream, bool staged) {
  thread_local std::string key;
  write_key(call, staged, &key);
  std::shared_ptr<const AppliedProgram> program = stream.programs.find(key);
  if (program) return program;
  const AppliedOperator what = resolve_operator(call, staged);
  const auto is_known = [](const Shape &shape) { return shape.known(); };
  if (!std::all_of(what.out_shapes.begin(), what.out_shapes.end(), is_known)) return nullptr;
  program = std::make_shared<AppliedProgram>(what, stream.device, stream.num_threads());
  if (program->stateful()) return program;  // each call that runs a host operator has its own
  stream.programs.add(key, program);
  return program;
}

// An output of the shape that the values of the inputs determine; waits for the inputs.
NDArray sized_by_values(const Invocation &call, const Context &where) {
  const AppliedOperator what = resolve_operator(call, false);
  const Op &op = *what.applied.op;
  if (!has_shape_by_values(op))
    throw Error(Code::kShape, text("operator ", op.name, ": shape of an output is unknown"), op.name);
  std::vector<NDArray> inputs;
  for (size_t i = 0; i < call.num_inputs; ++i) inputs.push_back(*call.inputs[i]);
  return NDArray::create(shape_by_values(op, what.applied.parsed, inputs), what.out_dtypes[0], where, false);
}

// The operator runs where its inputs are. Outputs must be there, too.
const Context &context_of(const Invocation &call) {
  const Context &where = call.num_inputs ? call.inputs[0]->context() : call.context;
  const auto is_there = [&](const NDArray &array) {
    return array.context() == where || (array.context().on_host() && where.on_host());
  };
  for (size_t i = 1; i < call.num_inputs; ++i) {
    if (is_there(*call.inputs[i])) continue;
    throw Error(
        Code::kDevice,
        text("operator ", call.op, ": expected all inputs on ", where, ", found one on ", call.inputs[i]->context()),
        std::string(call.op));
  }
  for (size_t i = 0; i < call.num_outputs; ++i) {
    if (!call.outputs[i] || is_there(*call.outputs[i])) continue;
    throw Error(Code::kDevice,
                text("operator ", call.op, ": output ", i, " is on ", call.outputs[i]->context(), ", expected ", where),
                std::string(call.op));
  }
  return where;
}

// Queues the program, or runs it here. Outputs that are not given are made.
void run(ImmediateStream &stream, const std::shared_ptr<const AppliedProgram> &program, const NDArray *const *inputs,
         size_t num_inputs, const NDArray *const *outputs, size_t num_given, const Context &where, uint64_t seed,
         std::vector<NDArray> *results) {
  const size_t num_outputs = program->num_outputs();
  const auto call = std::make_shared<AppliedCall>(program, num_inputs, num_outputs, seed);
  for (size_t i = 0; i < num_inputs; ++i) call->set(i, *inputs[i]);
  results->clear();
  results->reserve(num_outputs);
  for (size_t i = 0; i < num_outputs; ++i) {
    if (i < num_given && outputs[i]) {
      results->push_back(*outputs[i]);
    } else {
      const TensorSpec &spec = program->output(i);
      results->push_back(name_allocation([&] { return NDArray::create(spec.shape, spec.dtype, where, false); },
                                         "operator ", program->op()));
    }
    call->set(num_inputs + i, results->back());
  }
  if (stream.trace) log(LogLevel::kDebug, text("step: ", program->op()));
  if (!must_run_here(*program, where)) return stream.enqueue(call);
  call->run_here(stream.device, [&](const Step *steps, size_t count) { stream.run_here(steps, count); });
}

std::vector<const NDArray *> pointers_to(const std::vector<NDArray> &arrays) {
  std::vector<const NDArray *> pointers;
  for (const NDArray &array : arrays) pointers.push_back(array ? &array : nullptr);
  return pointers;
}

}  // namespace

std::shared_ptr<const AppliedProgram> invoke(const Invocation &given, std::vector<NDArray> *results) {
  const Context where = context_of(given);
  const std::shared_ptr<ImmediateStream> stream = streams().of(where);
  Invocation asked = given;
  NDArray sized;
  const NDArray *const only_output = &sized;
  std::shared_ptr<const AppliedProgram> program = program_for(asked, *stream, false);
  if (!program) {
    sized = sized_by_values(given, where);
    asked.outputs = &only_output;
    asked.num_outputs = 1;
    program = program_for(asked, *stream, false);
  }
  if (aliases_unsafely(asked, *program)) program = program_for(asked, *stream, true);
  run(*stream, program, asked.inputs, asked.num_inputs, asked.outputs, asked.num_outputs, where, asked.seed, results);
  return program;
}

std::vector<NDArray> invoke(const Application &what, const std::vector<NDArray> &inputs,
                            const std::vector<NDArray> &outputs, const Context &context, uint64_t seed, bool frozen,
                            Kept *kept) {
  std::vector<const char *> keys, values;
  for (const auto &[key, value] : what.attrs) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  const std::vector<const NDArray *> sources = pointers_to(inputs), targets = pointers_to(outputs);
  Invocation call;
  call.op = what.op->name;
  call.keys = keys.data();
  call.values = values.data();
  call.num_attrs = keys.size();
  if (what.parsed.pointer()) call.parsed = &what.parsed;
  call.inputs = sources.data();
  call.num_inputs = sources.size();
  call.outputs = targets.data();
  call.num_outputs = targets.size();
  call.context = context;
  call.is_train = what.is_train;
  call.seed = seed;
  call.frozen = frozen;
  call.keeps = kept != nullptr;
  std::vector<NDArray> results;
  std::shared_ptr<const AppliedProgram> program = invoke(call, &results);
  if (!kept) return results;
  if (program->saves()) {
    kept->saved = std::move(results.back());
    results.pop_back();
  }
  kept->program = std::move(program);
  return results;
}

std::vector<NDArray> invoke(const std::string &op, const AttrMap &attrs, const std::vector<NDArray> &inputs,
                            const std::vector<NDArray> &outputs, const Context &context, bool is_train, uint64_t seed,
                            bool frozen) {
  Application what;
  what.op = &get_op(op);
  what.is_train = is_train;
  what.attrs = attrs;
  return invoke(what, inputs, outputs, context, seed, frozen, nullptr);
}

std::vector<NDArray> invoke_as(const Application &what, const Kept &kept, const std::vector<NDArray> &inputs,
                               const std::vector<NDArray> &outputs, const std::vector<TensorType> &types,
                               const std::vector<bool> &wanted, const Context &where) {
  const std::shared_ptr<ImmediateStream> stream = streams().of(where);
  std::vector<const NDArray *> sources = pointers_to(inputs);
  if (kept.saved) sources.push_back(&kept.saved);
  std::string key = what.name() + '\0';
  key.push_back(char(what.is_train | 1 << 4));  // no key of write_key() has this bit
  append(&key, kept.program.get());             // an address that is not used again while the program made here is kept
  append(&key, what.attrs.size());
  for (const auto &[name, value] : what.attrs) key.append(name).append(1, '\0').append(value).append(1, '\0');
  append(&key, sources.size());
  for (const NDArray *const source : sources) append_array(&key, source);
  for (size_t i = 0; i < types.size(); ++i) append_type(&key, wanted[i], types[i].shape, types[i].dtype);
  std::shared_ptr<const AppliedProgram> program = stream->programs.find(key);
  if (!program) {
    AppliedOperator made;
    made.applied = what;
    made.forward = kept.program;
    made.wanted = wanted;
    for (const NDArray *const source : sources) {
      made.in_shapes.push_back(source->shape());
      made.in_dtypes.push_back(source->dtype());
    }
    for (const TensorType &type : types) {
      made.out_shapes.push_back(type.shape);
      made.out_dtypes.push_back(type.dtype);
    }
    program = std::make_shared<AppliedProgram>(made, stream->device, stream->num_threads());
    if (!program->stateful()) stream->programs.add(key, program);
  }
  std::vector<const NDArray *> targets;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) targets.push_back(outputs[i] ? &outputs[i] : nullptr);
  }
  std::vector<NDArray> made, results;
  run(*stream, program, sources.data(), sources.size(), targets.data(), targets.size(), where, 0, &made);
  auto next = made.begin();
  for (const bool is_wanted : wanted) results.push_back(is_wanted ? std::move(*next++) : NDArray());
  return results;
}

void release_invoked() noexcept {
  ImmediateStreams *const known = known_per_process<ImmediateStreams>();
  if (!known) return;
  std::shared_ptr<ImmediateStream> stream = known->after({DeviceType::kCpu, -1});
  for (; stream; stream = known->after(stream->device->context())) stream->release();
}

InvokedPrograms invoked_programs(const Context &context) {
  const std::shared_ptr<ImmediateStream> stream = streams().of(context);
  return {stream->programs.size(), stream->programs.num_added()};
}

}  // namespace cohort
