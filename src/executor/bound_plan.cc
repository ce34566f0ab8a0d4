// SPDX-License-Identifier: Apache-2.0
#include "executor/bound_plan.hpp"

#include <algorithm>
#include <climits>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/settings.hpp"
#include "ndarray/name_allocation.hpp"

namespace cohort {
namespace {

constexpr size_t kMostMappedBytes = size_t(2) << 20;  // of mapped files whose pages are in memory at a time

}  // namespace

SharedArenas::DeviceArena &SharedArenas::arena_on(const Context &context, int num_threads) {
  for (DeviceArena &m : devices) {
    if (m.device->context() == context) return m;
  }
  DeviceArena made;
  made.device = get_device(context);
  QueueOptions options;
  options.num_threads = num_threads;
  made.queue = made.device->create_queue(options);
  register_queue(made.queue);
  timeline->add(made.queue);
  devices.push_back(std::move(made));
  return devices.back();
}

void SharedArenas::join(const SharedArenas &other) {
  for (const DeviceArena &theirs : other.devices) {
    const auto is_same = [&](const DeviceArena &m) { return m.device == theirs.device; };
    if (std::none_of(devices.begin(), devices.end(), is_same))
      devices.push_back({theirs.device, theirs.queue, nullptr});
  }
}

void SharedArenas::reserve(size_t index, size_t bytes) {
  DeviceArena &m = devices[index];
  if (bytes == 0 || (m.arena && m.arena->bytes() >= bytes)) return;
  std::shared_ptr<Memory> larger = m.device->allocate(bytes);
  for (const DeviceArena &other : devices) other.queue->finish();  // the old arena may be in use
  // The backward pass of the latest pass needs the values that are there.
  if (m.arena && num_passes > 0) {
    m.queue->copy(larger->data(), m.arena->data(), m.arena->bytes(), m.arena);
    m.queue->finish();
  }
  m.arena = std::move(larger);
  ++generation;
}

std::shared_ptr<DerivedConstant> SharedArenas::reorder_of(size_t device, const NDArray &source, const TensorSpec &from,
                                                          const TensorSpec &to) {
  const auto same = [](const TensorSpec &a, const TensorSpec &b) {
    return a.shape == b.shape && a.dtype == b.dtype && same_layout(a.layout, b.layout);
  };
  reordered.erase(std::remove_if(reordered.begin(), reordered.end(), [](const auto &entry) { return entry.expired(); }),
                  reordered.end());
  for (const std::weak_ptr<DerivedConstant> &entry : reordered) {
    const std::shared_ptr<DerivedConstant> known = entry.lock();
    if (known && known->device == device && known->source.same_memory(source) && same(known->from, from) &&
        same(known->to, to)) {
      return known;
    }
  }
  auto made = std::make_shared<DerivedConstant>();
  made->device = device;
  made->source = source;
  made->from = from;
  made->to = to;
  reordered.push_back(made);
  return made;
}

void SharedArenas::gather(size_t device) {
  for (size_t m = 0; m < devices.size(); ++m) {
    if (m != device) devices[device].queue->wait(devices[m].queue->record());
  }
}

void SharedArenas::scatter(size_t device) {
  if (devices.size() == 1) return;
  const std::shared_ptr<Event> now = devices[device].queue->record();
  for (size_t m = 0; m < devices.size(); ++m) {
    if (m != device) devices[m].queue->wait(now);
  }
}

BoundPlan::BoundPlan(std::shared_ptr<const Plan> plan, bool is_train, const BoundArrays &arrays,
                     std::shared_ptr<SharedArenas> arenas, std::vector<size_t> arena_index)
    : plan_(std::move(plan)),
      is_train_(is_train),
      arrays_(arrays),
      arenas_(std::move(arenas)),
      arena_index_(std::move(arena_index)),
      kept_versions_(plan_->kept_outputs.size()) {
  for (size_t d = 0; d < arena_index_.size(); ++d) {
    try {
      arenas_->reserve(arena_index_[d], plan_->arena_bytes[d]);
    } catch (const Error &error) {
      const bool is_full = error.code() == Code::kOutOfMemory;
      throw Error(error.code(),
                  text("memory for intermediate values: ", error.what(), is_full ? largest_in_arena(int(d)) : ""),
                  error.subject());
    }
  }
  for (const PlanStep &step : plan_->prologue) constants_.push_back(make_constant(step));
  size_t count = 0;
  for (const auto *list : {&plan_->prologue, &plan_->steps}) {
    for (const PlanStep &step : *list) count += count_pointers(step);
  }
  pointers_.resize(count);
  segments_ = cut_segments(*plan_, arena_index_.size() > 1 && arrays_overlap());
  ends_.resize(segments_.size());
  random_nodes_.resize(arena_index_.size());
  for (size_t s = 0; s < plan_->steps.size(); ++s) {
    const PlanStep &step = plan_->steps[s];
    if (s < plan_->num_forward && arrays_.random.at(size_t(step.node)).seed != 0)
      random_nodes_[size_t(step.device)].push_back(size_t(step.node));
    if (step.kernel->on_caller()) on_caller_.push_back(s);
    if (!step.share_kernel) continue;
    const bool backward = s >= plan_->num_forward;
    const size_t part = arrays_.batch_part;
    const auto sync =
        arrays_.batch_sync->join(part, arrays_.random.of_node[size_t(step.node)], backward, step.share_bytes,
                                 *arenas_->devices[arena_index_[size_t(step.device)]].device);
    sync_steps_.push_back(
        {s, sync, PublishShare(step.share_kernel, sync, part), UseShares(step.kernel.get(), sync), part, Step()});
    sync_points_[backward].push_back(s - (backward ? plan_->num_forward : 0));
    sync_nodes_.push_back(step.node);
  }
  for (std::vector<size_t> &nodes : random_nodes_) std::sort(nodes.begin(), nodes.end());
  resolve();
  trace_steps_ = trace_enabled("step");
  if (trace_enabled("plan")) trace_plan();
}

// The step with the largest working set on a device, for the out-of-memory message.
std::string BoundPlan::largest_in_arena(int device) const {
  const PlanStep *largest = nullptr;
  size_t most = 0;
  for (const PlanStep &step : plan_->steps) {
    if (step.device != device) continue;
    size_t bytes = 0;
    const auto count = [&](int index) {
      if (index < 0) return;
      const Slot &slot = plan_->slots[size_t(index)];
      if (slot.location == ValueLocation::kArena) bytes += slot.bytes;
    };
    for (const auto *list : {&step.inputs, &step.outputs}) std::for_each(list->begin(), list->end(), count);
    count(step.scratch);
    count(step.saved);
    if (bytes > most) largest = &step, most = bytes;
  }
  return largest ? text("; the largest step is ", largest->label, ", with ", most, " bytes") : std::string();
}

std::shared_ptr<DerivedConstant> BoundPlan::make_constant(const PlanStep &step) const {
  const size_t device_index = arena_index_[size_t(step.device)];
  std::shared_ptr<DerivedConstant> result;
  if (step.constant_bytes == 0) return std::make_shared<DerivedConstant>();
  if (step.reorder) {
    const Slot &from = plan_->slots[size_t(step.inputs[0])], &to = plan_->slots[size_t(step.outputs[0])];
    const bool is_argument = from.location == ValueLocation::kArgument;
    if (is_argument || from.location == ValueLocation::kAuxiliary) {
      const NDArray &source = (is_argument ? arrays_.args : arrays_.aux)[size_t(from.index)];
      result = arenas_->reorder_of(device_index, source, from.spec, to.spec);
    }
  }
  if (!result) result = std::make_shared<DerivedConstant>();
  if (!result->memory) {
    Device &device = *arenas_->devices[device_index].device;
    result->memory = name_allocation([&] { return device.allocate(step.constant_bytes); }, step.label);
  }
  return result;
}

// Whether memory that is written through one array is also used through another.
bool BoundPlan::arrays_overlap() const {
  struct Range {
    uintptr_t begin, end;
    bool written;
  };
  std::vector<Range> ranges;
  const auto add = [&](const NDArray &array, bool written) {
    if (!array || array.bytes() == 0) return;
    const auto begin = reinterpret_cast<uintptr_t>(array.data());
    ranges.push_back({begin, begin + array.bytes(), written});
  };
  std::vector<bool> changed(arrays_.args.size(), false);
  for (const auto *list : {&plan_->written_forward, &plan_->written_backward})
    for (const int index : *list) changed[size_t(index)] = true;
  for (size_t i = 0; i < changed.size(); ++i) add(arrays_.args[i], changed[i]);
  for (const NDArray &array : arrays_.grads) add(array, true);
  for (const NDArray &array : arrays_.aux) add(array, true);
  for (size_t h = 0; h < arrays_.outputs.size(); ++h) {
    if (plan_->slots[size_t(plan_->head_slots[h])].location == ValueLocation::kOutput) add(arrays_.outputs[h], true);
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range &a, const Range &b) { return a.begin < b.begin; });
  uintptr_t used = 0, written = 0;  // ends of the ranges so far
  for (const Range &range : ranges) {
    if (range.begin < written || (range.written && range.begin < used)) return true;
    used = std::max(used, range.end);
    if (range.written) written = std::max(written, range.end);
  }
  return false;
}

// Logs one line per step: its label, device, and what it reads and writes.
void BoundPlan::trace_plan() const {
  const auto describe = [this](const std::vector<int> &slots) {
    std::string all;
    for (const int index : slots) {
      if (!all.empty()) all += ", ";
      if (index < 0) {
        all += "-";
        continue;
      }
      const TensorSpec &spec = plan_->slots[size_t(index)].spec;
      all += text(index, ": ", spec.dtype, ' ', spec.shape, spec.layout ? " " + spec.layout->describe() : "");
    }
    return all;
  };
  const auto trace = [&](const char *kind, const PlanStep &step) {
    const Context &context = arenas_->devices[arena_index_[size_t(step.device)]].device->context();
    const KernelChoice &choice = step.choice;
    log(LogLevel::kDebug, text("plan: ", kind, ' ', step.label, " on ", context, " from [", describe(step.inputs),
                               "] to [", describe(step.outputs), "]", choice.name.empty() ? "" : " by " + choice.name,
                               choice.refusals.empty() ? "" : "; refused by " + choice.refusals));
  };
  for (const PlanStep &step : plan_->prologue) trace("prologue", step);
  for (size_t i = 0; i < plan_->steps.size(); ++i)
    trace(i < plan_->num_forward ? "forward" : "backward", plan_->steps[i]);
}

void *BoundPlan::address(int index) {
  if (index < 0) return nullptr;
  const Slot &slot = plan_->slots[size_t(index)];
  switch (slot.location) {
    case ValueLocation::kArgument:
      return arrays_.args[size_t(slot.index)].data();
    case ValueLocation::kAuxiliary:
      return arrays_.aux[size_t(slot.index)].data();
    case ValueLocation::kGradient:
      return arrays_.grads[size_t(slot.index)].data();
    case ValueLocation::kOutput:
      return arrays_.outputs[size_t(slot.index)].data();
    case ValueLocation::kConstant: {  // without memory if the results of its step have no elements
      const Memory *const memory = constants_[size_t(slot.index)]->memory.get();
      return memory ? static_cast<char *>(memory->data()) + slot.offset : nullptr;
    }
    case ValueLocation::kArena: {
      const SharedArenas::DeviceArena &on = arenas_->devices[arena_index_[size_t(slot.device)]];
      return on.arena ? static_cast<char *>(on.arena->data()) + slot.offset : nullptr;
    }
    case ValueLocation::kNowhere:
      break;
  }
  return nullptr;
}

void BoundPlan::resolve() {
  if (generation_ == arenas_->generation) return;
  // Queued work still reads the old addresses.
  for (const SharedArenas::DeviceArena &on : arenas_->devices) on.queue->finish();
  for (Replays *replays : {&replays_, &prologue_replays_})  // keeps the entries, so that later passes allocate none
    for (auto &[steps, replay] : *replays) replay.reset();
  void **next = pointers_.data();
  auto fill = [&](const std::vector<PlanStep> &list, std::vector<Step> *out) {
    out->clear();
    for (const PlanStep &step : list) {
      Step made = bound_step(step, next, [this](int slot) { return address(slot); });
      next += count_pointers(step);
      if (step.scales_loss) made.args.numbers = arrays_.loss_scale.get();
      made.args.random = &arrays_.random.at(size_t(step.node));
      out->push_back(made);
    }
  };
  fill(plan_->prologue, &prologue_);
  fill(plan_->steps, &steps_);
  for (SyncStep &sync_step : sync_steps_) {
    Step &step = steps_[sync_step.step];
    step.args.shares = &sync_step.sync->shares_for(arrays_.batch_part);
    sync_step.publish_step = step;
    sync_step.publish_step.kernel = &sync_step.publish;
    step.kernel = &sync_step.use;
  }
  restored_.clear();
  for (const size_t s : plan_->restored) {
    restored_.push_back(steps_[s]);
    restored_.back().kernel = plan_->steps[s].restorer.get();
    restored_.back().args.scratch = address(plan_->restoring_scratch);
  }
  generation_ = arenas_->generation;
}

// Marks an array that should have been written, or changed, as failed.
void BoundPlan::fail(const NDArray &array, const char *message) const {
  if (array) array.fail(message, arenas_->timeline.get());
}

void BoundPlan::forget_derived() const {
  for (const auto &constant : constants_) constant->failed.store(true, std::memory_order_release);
}

bool BoundPlan::is_written(size_t head) const {
  return plan_->slots[size_t(plan_->head_slots[head])].location == ValueLocation::kOutput;
}

// The step after it fails, too, or is skipped: that marks the arrays.
void BoundPlan::share_failed(const void *sync_step, const char *message) {
  const auto *self = static_cast<const SyncStep *>(sync_step);
  self->sync->not_delivered(self->part, message);
}

void BoundPlan::forward_failed(const void *owner, const char *message) {
  const auto *self = static_cast<const BoundPlan *>(owner);
  const BoundArrays &arrays = self->arrays_;
  self->failed_forward_.store(true, std::memory_order_release);
  self->forget_derived();
  for (size_t h = 0; h < arrays.outputs.size(); ++h)
    if (self->is_written(h)) self->fail(arrays.outputs[h], message);
  for (const int index : self->plan_->written_forward) self->fail(arrays.args[size_t(index)], message);
  for (const NDArray &state : arrays.aux)
    if (self->is_train_) self->fail(state, message);
}

void BoundPlan::backward_failed(const void *owner, const char *message) {
  const auto *self = static_cast<const BoundPlan *>(owner);
  self->failed_backward_.store(true, std::memory_order_release);
  self->forget_derived();
  for (const NDArray &gradient : self->arrays_.grads) self->fail(gradient, message);
  // An argument without a gradient is a frozen gamma, which becomes 1 and is valid in any case.
  for (const int index : self->plan_->written_backward)
    if (self->arrays_.grads[size_t(index)]) self->fail(self->arrays_.args[size_t(index)], message);
}

// If a later begin() throws, earlier arrays have lost their failure mark: fail the whole pass.
template <typename Begin>
void BoundPlan::begin_writes(bool backward, const std::vector<NDArray> &arrays, Begin &&begin) {
  try {
    for (size_t i = 0; i < arrays.size(); ++i) begin(i);
  } catch (const std::exception &failure) {
    pass_failed(backward, failure.what());
    throw;
  }
}

void BoundPlan::begin_forward() {
  const std::shared_ptr<Timeline> &by = arenas_->timeline;
  for (const NDArray &array : arrays_.args) array.begin_read(by);
  for (const int index : plan_->written_forward) arrays_.args[size_t(index)].begin_change(by);
  for (const NDArray &state : arrays_.aux) is_train_ ? state.begin_change(by) : state.begin_read(by);
  begin_writes(/* backward */ false, arrays_.outputs, [&](size_t h) {
    if (is_written(h)) arrays_.outputs[h].begin_write(by);
  });
  failed_forward_.store(false, std::memory_order_release);
}

void BoundPlan::begin_backward() {
  const std::shared_ptr<Timeline> &by = arenas_->timeline;
  const bool forward_failed = has_failed(/* backward */ false);
  for (const auto *list : {&arrays_.args, &arrays_.aux}) {
    for (const NDArray &array : *list) array.begin_read(by);
  }
  for (const int index : plan_->written_backward) arrays_.args[size_t(index)].begin_change(by);
  if (!forward_failed) {
    for (const NDArray &output : arrays_.outputs) output.begin_read(by);
  }
  begin_writes(/* backward */ true, arrays_.grads, [&](size_t i) {
    if (!arrays_.grads[i]) return;
    arrays_.grads[i].begin_write(by);
    if (forward_failed) arrays_.grads[i].fail("the forward pass before it failed");
  });
  failed_backward_.store(false, std::memory_order_release);
}

void BoundPlan::mark_random() {
  ++arrays_.marks->pass;
  mark_random_of(0, INT_MAX);
}

void BoundPlan::mark_random_of(int first_node, int last_node) {
  arrays_.marks->nodes.resize(arrays_.random.of_node.size());
  arrays_.marks->pass = std::max<uint64_t>(arrays_.marks->pass, 1);
  for_streams(first_node, last_node, [](RandomStream *stream, RandomMarks::NodeMark *mark, uint64_t pass) {
    *mark = {pass, stream->draws, 0};
  });
}

void BoundPlan::rewind_random() {
  if (arrays_.marks->pass == 0) return;
  for_streams(0, INT_MAX, [](RandomStream *stream, RandomMarks::NodeMark *mark, uint64_t pass) {
    if (mark->pass != pass) return;
    mark->furthest = stream->draws;
    stream->draws = mark->draws;
  });
}

void BoundPlan::skip_random() {
  if (arrays_.marks->pass == 0) return;
  for_streams(0, INT_MAX, [](RandomStream *stream, RandomMarks::NodeMark *mark, uint64_t pass) {
    if (mark->pass == pass) stream->draws = std::max(stream->draws, mark->furthest);
  });
}

// Calls fn for the streams of these nodes, in the order of the queues that draw from them.
void BoundPlan::for_streams(int first_node, int last_node,
                            void (*fn)(RandomStream *stream, RandomMarks::NodeMark *mark, uint64_t pass)) {
  for (size_t d = 0; d < random_nodes_.size(); ++d) {
    const auto first = std::lower_bound(random_nodes_[d].begin(), random_nodes_[d].end(), size_t(first_node)),
               end = std::upper_bound(first, random_nodes_[d].end(), size_t(last_node));
    if (first == end) continue;
    const auto all = [fn, first, end, self = shared_from_this(), pass = arrays_.marks->pass] {
      for (auto node = first; node != end; ++node)
        fn(&self->arrays_.random.at(*node), &self->arrays_.marks->nodes[*node], pass);
    };
    if (queue(int(d)).idle()) {
      all();
    } else {
      queue(int(d)).call(all, "random numbers");
    }
  }
}

void BoundPlan::begin_work() {
  arenas_->timeline->count_submission();
  arenas_->gather(arena_index_[0]);
  arenas_->scatter(arena_index_[0]);
}

void BoundPlan::end_work() { arenas_->gather(arena_index_[0]); }

void BoundPlan::run_on(int device, const Program &program) {
  for (size_t i = 0; trace_steps_ && i < program.count; ++i) {
    log(LogLevel::kDebug, text("step: ", program.steps[i].label));
  }
  queue(device).run(program, shared_from_this());
}

// Queues steps of one device. Steps for the calling thread run here, after all before them have finished.
void BoundPlan::run_part(int device, size_t begin, size_t end, WorkSize size) {
  auto here = std::lower_bound(on_caller_.begin(), on_caller_.end(), begin);
  while (begin < end) {
    const size_t stop = here == on_caller_.end() ? end : std::min(end, *here);
    const auto failed = begin < plan_->num_forward ? forward_failed : backward_failed;
    Program program{steps_.data() + begin, stop - begin, size, failed, !plan_->stateful};
    program.name = begin < plan_->num_forward ? "forward" : "backward";
    program.replay = &replays_[{begin, stop}];
    if (begin < stop) run_on(device, program);
    if (stop < end) run_here(device, *here++);
    begin = stop + 1;
  }
}

void BoundPlan::run_here(int device, size_t index) {
  const Step &step = steps_[index];
  const auto failed = index < plan_->num_forward ? forward_failed : backward_failed;
  if (trace_steps_) log(LogLevel::kDebug, text("step: ", step.label));
  try {
    queue(device).sync();
    const WorkSpan span(step.info);
    run_on_caller(step);
  } catch (const Error &e) {
    failed(this, e.what());
    throw;
  } catch (const std::bad_alloc &) {
    failed(this, "out of memory");
    throw;
  }
}

// A part of a segment has the waits of the whole. Segments that are not in [begin, end) belong to an earlier call,
// which begin_work() waits for.
void BoundPlan::enqueue(size_t begin, size_t end, WorkSize size) {
  begin_work();
  const auto first = std::upper_bound(segments_.begin(), segments_.end(), begin,
                                      [](size_t step, const Segment &segment) { return step < segment.end; });
  for (size_t i = size_t(first - segments_.begin()); i < segments_.size() && segments_[i].begin < end; ++i) {
    const Segment &segment = segments_[i];
    const size_t from = std::max(begin, segment.begin), to = std::min(end, segment.end);
    const int device = plan_->steps[from].device;
    for (const size_t before : segment.after) {
      if (ends_[before]) queue(device).wait(ends_[before]);
    }
    run_part(device, from, to, size);
    if (segment.awaited) ends_[i] = queue(device).record();
  }
  std::fill(ends_.begin(), ends_.end(), nullptr);
  end_work();
}

const NDArray &BoundPlan::source(int index) const {
  const size_t i = size_t(index);
  return i < arrays_.args.size() ? arrays_.args[i] : arrays_.aux[i - arrays_.args.size()];
}

// The steps of the prologue that must run: their results are out of date, or were not kept and a step that must run
// reads them.
std::vector<bool> BoundPlan::stale_constants() const {
  std::vector<bool> stale(plan_->prologue.size());
  for (size_t p = stale.size(); p-- > 0;) {
    const PlanStep &step = plan_->prologue[p];
    DerivedConstant &constant = *constants_[p];
    if (constant.memory) {
      std::vector<uint64_t> &seen = constant.versions;
      stale[p] = stale[p] || constant.failed.exchange(false, std::memory_order_acq_rel) || seen.empty();
      seen.resize(step.sources.size(), 0);
      for (size_t i = 0; i < step.sources.size(); ++i) {
        const NDArray &array = source(step.sources[i]);
        const uint64_t version = array.version();
        stale[p] = stale[p] || array.exposed() || seen[i] != version;
        seen[i] = version;
      }
    }
    for (const int before : step.passed_by) stale[size_t(before)] = stale[size_t(before)] || stale[p];
  }
  return stale;
}

// Arrays of a step that are mapped from files: once it has run, their pages are rarely needed.
BoundPlan::MappedFiles BoundPlan::mapped_sources(size_t prologue_step) const {
  MappedFiles mapped;
  for (const int index : plan_->prologue[prologue_step].sources) {
    const NDArray &array = source(index);
    if (!array.storage()->has_droppable_pages()) continue;
    mapped.storage.push_back(array.storage());
    mapped.bytes += array.bytes();
  }
  return mapped;
}

// Updates the data derived from constants, a few megabytes of mapped parameters at a time.
void BoundPlan::run_prologue() {
  const std::vector<bool> stale = stale_constants();
  const std::vector<PlanStep> &steps = plan_->prologue;
  for (size_t first = 0, end; first < stale.size(); first = end) {
    end = first + 1;
    if (!stale[first]) continue;
    MappedFiles mapped = mapped_sources(first);
    while (end < stale.size() && stale[end] && steps[end].device == steps[first].device &&
           mapped.bytes < kMostMappedBytes) {
      const MappedFiles more = mapped_sources(end++);
      mapped.storage.insert(mapped.storage.end(), more.storage.begin(), more.storage.end());
      mapped.bytes += more.bytes;
    }
    try {
      begin_work();  // steps of several devices may build on each other
      Program program{prologue_.data() + first, end - first, plan_->forward_size, forward_failed, true};
      program.replay = &prologue_replays_[{first, end}];  // in training weights change with each step
      run_on(steps[first].device, program);
      if (mapped.bytes > 0) {
        queue(steps[first].device)
            .call(
                [storage = std::move(mapped.storage)] {
                  for (const auto &one : storage) one->drop_pages();
                },
                "pages of parameters");
      }
    } catch (...) {
      for (size_t p = first; p < stale.size(); ++p) constants_[p]->failed.store(true, std::memory_order_release);
      throw;
    }
  }
}

void BoundPlan::begin_steps() {
  resolve();
  pass_ = ++arenas_->num_passes;
}

bool BoundPlan::has_lost_values() const {
  if (is_latest()) return false;
  bool lost = plan_->keeps_values;
  for (size_t i = 0; i < kept_versions_.size(); ++i) lost = lost || kept_output(i).version() != kept_versions_[i];
  return lost;
}

void BoundPlan::run_forward(size_t begin, size_t end) {
  begin_steps();
  for (size_t i = 0; i < kept_versions_.size(); ++i) kept_versions_[i] = kept_output(i).version();
  // Once per pass: later steps have values where the prologue works.
  if (begin == 0 && !plan_->prologue.empty()) run_prologue();
  enqueue(begin, end, plan_->forward_size);
}

void BoundPlan::restore() {
  resolve();
  if (restored_.empty()) return;
  begin_work();
  run_on(0, {restored_.data(), restored_.size(), plan_->forward_size, backward_failed, true});
  end_work();
}

void BoundPlan::run_backward(size_t begin, size_t end) {
  begin_steps();
  if (begin == 0 && !plan_->prologue.empty()) run_prologue();  // backward reads the current arguments (BWD-08)
  enqueue(plan_->num_forward + begin, plan_->num_forward + end, plan_->backward_size);
}

void BoundPlan::run(const Program &program, const std::shared_ptr<const void> &owner) { queue(0).run(program, owner); }

void BoundPlan::publish_share(bool backward, size_t sync) {
  resolve();
  const size_t first = backward ? sync_points_[0].size() : 0;
  begin_work();
  const SyncStep &sync_step = sync_steps_[first + sync];
  const WorkSize size = backward ? plan_->backward_size : plan_->forward_size;
  if (trace_steps_) log(LogLevel::kDebug, text("step: ", sync_step.publish_step.label));
  queue(plan_->steps[sync_step.step].device)
      .run({&sync_step.publish_step, 1, size, share_failed, /* isolated */ false}, {shared_from_this(), &sync_step});
  end_work();
}

void BoundPlan::abandon_syncs(bool backward, size_t sync) noexcept {
  if (sync_steps_.empty()) return;
  for (const size_t index : arena_index_) arenas_->devices[index].queue->finish();
  const size_t first = backward ? sync_points_[0].size() : 0;
  for (size_t s = first + sync; s < first + sync_points_[backward].size(); ++s)
    sync_steps_[s].sync->not_delivered(arrays_.batch_part, "its pass failed");
}

void BoundPlan::copy_to_slot(int index, const ArraySlice &source) {
  const Slot &slot = plan_->slots[size_t(index)];
  const size_t m = arena_index_[size_t(slot.device)];
  SharedArenas::DeviceArena &on = arenas_->devices[m];
  resolve();
  auto memory =
      std::make_shared<Memory>(on.device->context(), address(index), slot.bytes, [arena = on.arena](void *) {});
  arenas_->gather(m);
  queue_copy(source, NDArray::wrap(std::move(memory), slot.spec.shape, slot.spec.dtype), arenas_->timeline, *on.queue);
}

NDArray BoundPlan::snapshot(int index) {
  const Slot &slot = plan_->slots[size_t(index)];
  SharedArenas::DeviceArena &on = arenas_->devices[arena_index_[size_t(slot.device)]];
  begin_work();
  on.queue->sync();
  NDArray copy = NDArray::create(slot.spec.shape, slot.spec.dtype, on.device->context(), false);
  if (slot.spec.layout) {
    TensorSpec dense = slot.spec;
    dense.layout = nullptr;
    const std::unique_ptr<Kernel> reorder = on.device->make_reorder(slot.spec, dense, on.queue->num_threads());
    void *input = address(index), *output = copy.data();
    Step step;
    step.kernel = reorder.get();
    step.args.inputs = &input;
    step.args.outputs = &output;
    step.label = "reorder";
    on.queue->run({&step, 1, WorkSize::kParallel}, nullptr);
    on.queue->sync();
  } else {
    on.queue->copy(copy.data(), address(index), slot.bytes, nullptr);
    on.queue->sync();
  }
  return copy;
}

}  // namespace cohort
