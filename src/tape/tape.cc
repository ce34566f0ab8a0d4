// SPDX-License-Identifier: Apache-2.0
#include "tape/tape.hpp"

#include <algorithm>
#include <numeric>

#include "base/error.hpp"

namespace cohort {
namespace {

size_t offset_of(const NDArray &array) {
  return size_t(static_cast<const char *>(array.data()) - static_cast<const char *>(array.storage()->data()));
}

bool overlap(size_t a, size_t a_bytes, size_t b, size_t b_bytes) {
  return a_bytes > 0 && b_bytes > 0 && a < b + b_bytes && b < a + a_bytes;
}

TensorType type_of(const NDArray &array) { return {array.shape(), array.dtype()}; }

// Whether the gradient needs more of the forward pass than its visible outputs.
bool needs_kernel(const Application &what) {
  const Gradient gradient = what.op->gradient_of(what.parsed);
  const int visible = what.op->num_visible(what.parsed);
  return gradient.with_forward ||
         std::any_of(gradient.outputs.begin(), gradient.outputs.end(), [&](int j) { return j >= visible; });
}

}  // namespace

void Tape::check_idle() const {
  if (busy_) {
    throw Error(Code::kState, "tape: a backward pass is running; a function that it calls may only apply operators",
                "tape");
  }
}

void Tape::set_recording(bool recording) {
  check_idle();
  recording_ = recording;
}

void Tape::set_training(bool training) {
  check_idle();
  training_ = training;
}

// ---- known arrays ------------------------------------------------------------------------------------------------

// The entry of exactly this array, or null. kInvalidArgument if the array is a part of a known one.
const Tape::Known *Tape::find_known(const NDArray &array, const char *what, size_t index) {
  const auto found = known_.find(array.storage().get());
  if (found == known_.end()) return nullptr;
  const size_t offset = offset_of(array), bytes = array.bytes();
  for (const Known &known : found->second) {
    if (known.storage.expired()) continue;
    if (known.offset == offset && known.bytes == bytes && known.dtype == array.dtype()) return &known;
    if (!overlap(known.offset, known.bytes, offset, bytes) || is_stale(known)) continue;
    throw Error(Code::kInvalidArgument,
                text(what, "[", index, "]: array ", array.shape(),
                     " shares elements with another one that was recorded by ", records_.at(known.edge.record).name()),
                what);
  }
  return nullptr;
}

const Tape::Known *Tape::find_whole(const NDArray &array) const {
  const auto found = known_.find(array.storage().get());
  if (found == known_.end() || array.bytes() == 0) return nullptr;
  const size_t offset = offset_of(array), bytes = array.bytes(), item = dtype_size(array.dtype());
  for (const Known &known : found->second) {
    if (known.storage.expired() || known.dtype != array.dtype() || known.bytes == bytes) continue;
    if (offset < known.offset || offset + bytes > known.offset + known.bytes) continue;
    if ((offset - known.offset) % item == 0) return &known;
  }
  return nullptr;
}

// Records that the array was taken from a larger one; nothing is computed.
Tape::Tracked Tape::record_part(const Known &whole, const NDArray &part) {
  const auto take = [&](const char *op, const AttrMap &attrs, const Tracked &from, const Shape &shape) {
    Record made;
    made.what.op = &get_op(op);
    made.what.attrs = attrs;
    made.what.parsed = made.what.op->parse(attrs);
    made.context = part.context();
    made.out_types = {{shape, part.dtype()}};
    return record(std::move(made), {from}, {NDArray()}).front().edge;
  };
  const size_t item = dtype_size(part.dtype());
  const Shape &shape = records_.at(whole.edge.record).out_types[size_t(whole.edge.output)].shape;
  const std::shared_ptr<Storage> storage = part.storage();
  Tracked from{NDArray(storage, whole.offset, shape, part.dtype()), whole.edge};
  const size_t offset = offset_of(part) - whole.offset;
  size_t row = shape.rank() > 0 ? whole.bytes / size_t(shape[0]) : whole.bytes;
  if (offset % row != 0 || part.bytes() % row != 0) {  // not whole rows
    row = item;
    const Shape flat{int64_t(whole.bytes / item)};
    from = {from.array.reshape(flat), take("Reshape", {{"shape", "(-1,)"}}, from, flat)};
  }
  std::vector<int64_t> lengths(from.array.shape().begin(), from.array.shape().end());
  lengths[0] = int64_t(part.bytes() / row);
  const AttrMap rows{
      {"axis", "0"}, {"begin", std::to_string(offset / row)}, {"end", std::to_string((offset + part.bytes()) / row)}};
  return {part, take("slice_axis", rows, from, Shape(lengths))};
}

// Whether it was overwritten after it was recorded. A variable may be.
bool Tape::is_stale(const Known &known) const {
  if (records_.at(known.edge.record).is_variable) return false;
  const std::shared_ptr<Storage> storage = known.storage.lock();
  if (!storage) return false;
  const AddressRange range(static_cast<const char *>(storage->data()) + known.offset, known.bytes);
  return known.version != storage->hazards().version(range);
}

Tape::Tracked Tape::track(const NDArray &array, const char *what, size_t index) {
  const Known *const whole = find_whole(array), *const known = whole ? whole : find_known(array, what, index);
  if (!known || (whole && !recording_)) return {array, Edge()};
  if (is_stale(*known)) {
    throw Error(Code::kState,
                text(what, "[", index, "]: array ", array.shape(), whole ? " is a part of one that" : "",
                     " was overwritten after it was recorded by ", records_.at(known->edge.record).name()),
                what);
  }
  return whole ? record_part(*whole, array) : Tracked{array, known->edge};
}

Tape::Values Tape::track_all(const Arrays &arrays, const char *what) {
  Values values;
  values.reserve(arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) values.push_back(track(arrays[i], what, i));
  return values;
}

void Tape::remember(const NDArray &array, const Edge &edge) {
  std::vector<Known> &list = known_[array.storage().get()];
  const size_t offset = offset_of(array), bytes = array.bytes();
  list.erase(std::remove_if(list.begin(), list.end(),
                            [&](const Known &k) {
                              return k.storage.expired() || overlap(k.offset, k.bytes, offset, bytes) ||
                                     (k.offset == offset && k.bytes == bytes);
                            }),
             list.end());
  list.push_back({array.storage(), offset, bytes, array.dtype(), array.own_version(), edge});
}

void Tape::untrack(const NDArray &array) {
  const auto found = known_.find(array.storage().get());
  if (found == known_.end()) return;
  std::vector<Known> &list = found->second;
  const size_t offset = offset_of(array), bytes = array.bytes();
  list.erase(std::remove_if(list.begin(), list.end(),
                            [&](const Known &k) {
                              return k.storage.expired() || (overlap(k.offset, k.bytes, offset, bytes) &&
                                                             !records_.at(k.edge.record).is_variable);
                            }),
             list.end());
  if (list.empty()) known_.erase(found);
}

void Tape::mark(const Arrays &arrays, const Arrays &gradients, const std::vector<GradReq> &reqs) {
  check_idle();
  std::vector<AddressRange> ranges;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const NDArray &array = arrays[i];
    find_known(array, "arrays", i);
    ranges.push_back(array.range());
    for (size_t j = 0; j < i; ++j) {
      const bool same = ranges[i].covers(ranges[j]) && ranges[j].covers(ranges[i]);
      if (same || !ranges[i].overlaps(ranges[j])) continue;
      throw Error(Code::kInvalidArgument, text("arrays[", i, "]: overlaps arrays[", j, "]"), "arrays");
    }
    if (reqs[i] == GradReq::kNull) continue;
    if (!dtype_is_float(array.dtype())) {
      throw Error(Code::kDtype, text("arrays[", i, "]: expected a floating type, found ", array.dtype()), "arrays");
    }
    if (gradients.empty() || !gradients[i]) continue;
    const NDArray &gradient = gradients[i];
    if (gradient.shape() != array.shape()) {
      throw Error(Code::kShape,
                  text("gradients[", i, "]: expected shape ", array.shape(), ", found ", gradient.shape()),
                  "gradients");
    }
    if (gradient.dtype() != array.dtype()) {
      throw Error(Code::kDtype,
                  text("gradients[", i, "]: expected dtype ", array.dtype(), ", found ", gradient.dtype()),
                  "gradients");
    }
    if (gradient.context() != array.context()) {
      throw Error(Code::kDevice,
                  text("gradients[", i, "]: expected context ", array.context(), ", found ", gradient.context()),
                  "gradients");
    }
  }
  for (size_t i = 0; i < arrays.size(); ++i) {
    const Known *known = find_known(arrays[i], "arrays", i);
    Record *marked = known ? &records_.at(known->edge.record) : nullptr;
    if (marked && !marked->is_variable) marked = nullptr;
    if (reqs[i] == GradReq::kNull) {
      if (!marked) continue;
      marked->is_variable = false;  // records that read it stay, and compute no gradient for it
      marked->gradient = NDArray();
      untrack(arrays[i]);
      continue;
    }
    if (marked) {
      marked->req = reqs[i];
      const bool takes = !gradients.empty() && gradients[i];
      marked->gradient = takes ? gradients[i].reshape(marked->out_types[0].shape) : NDArray();
      continue;
    }
    Record variable;
    variable.is_variable = true;
    variable.context = arrays[i].context();
    variable.out_types = {type_of(arrays[i])};
    variable.made = {arrays[i].storage()};
    variable.req = reqs[i];
    if (!gradients.empty()) variable.gradient = gradients[i];
    const Edge edge{next_id_++, 0};
    records_.emplace(edge.record, std::move(variable));
    remember(arrays[i], edge);
  }
}

void Tape::refuse_variables(const Arrays &outputs, const std::string &what) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Known *known = outputs[i] ? find_known(outputs[i], "outputs", i) : nullptr;
    if (known && records_.at(known->edge.record).is_variable) {
      throw Error(Code::kInvalidArgument,
                  text("outputs[", i, "]: ", what, " is recorded and would overwrite a marked array; pause the tape"),
                  "outputs");
    }
  }
}

// ---- applying ----------------------------------------------------------------------------------------------------

Tape::Arrays Tape::invoke(const std::string &op, const AttrMap &attrs, const Arrays &inputs, const Arrays &outputs,
                          const Context &context, uint64_t seed) {
  if (!busy_) sweep();
  Application what;
  what.op = &get_op(op);
  what.is_train = training_;
  what.attrs = attrs;
  what.parsed = what.op->parse(attrs);
  Arrays results;
  for (Tracked &value : apply(what, track_all(inputs, "inputs"), outputs, context, seed)) {
    results.push_back(std::move(value.array));
  }
  return results;
}

bool Tape::learns(const Application &what, const Values &inputs) const {
  const auto reaches_variable = [&](size_t input) {
    const auto source = records_.find(inputs[input].edge.record);
    return source != records_.end() && (source->second.is_variable || source->second.learns);
  };
  std::vector<int> of(inputs.size());
  std::iota(of.begin(), of.end(), 0);
  if (what.op && !what.backward) {
    const Gradient gradient = what.op->gradient_of(what.parsed);
    if (gradient.kind == Gradient::Kind::kNone) return false;
    of = inputs_with_gradient(*what.op, gradient, inputs.size());
  }
  return std::any_of(of.begin(), of.end(), [&](int input) { return reaches_variable(size_t(input)); });
}

Tape::Values Tape::apply(const Application &what, const Values &inputs, const Arrays &outputs, const Context &context,
                         uint64_t seed) {
  const bool records =
      recording_ && std::any_of(inputs.begin(), inputs.end(), [](const Tracked &v) { return v.edge.record != 0; });
  if (records) refuse_variables(outputs, "operator " + what.name());
  Arrays arrays;
  for (const Tracked &value : inputs) arrays.push_back(value.array);

  // As in an executor: states of a layer stay if nothing up to it has a gradient.
  const bool has_states = what.is_train && !what.mutated(inputs.size()).empty();
  const bool frozen = has_states && !(records && learns(what, inputs));
  Kept kept;
  const Arrays results =
      cohort::invoke(what, arrays, outputs, context, seed, frozen, records && needs_kernel(what) ? &kept : nullptr);
  const size_t visible = size_t(what.op->num_visible(what.parsed));
  if (!records) {
    for (const NDArray &output : outputs) {
      if (output) untrack(output);
    }
    Values values;
    for (size_t i = 0; i < visible; ++i) values.push_back({results[i], Edge()});
    return values;
  }
  Record made;
  made.what = what;
  made.context = arrays[0].context();
  made.kept = std::move(kept);
  Values values = record(std::move(made), inputs, results);
  values.resize(visible);
  return values;
}

Tape::Values Tape::apply_backward(const Application &what, const Values &inputs, const std::vector<TensorType> &types,
                                  const std::vector<bool> &wanted, const Record &of, const Arrays &spare) {
  Arrays arrays;
  bool tracked = false;
  for (const Tracked &value : inputs) {
    arrays.push_back(value.array);
    tracked = tracked || value.edge.record != 0;
  }
  // It may write the caller's array, if that is a variable; else a copy, as others may read the array, too.
  for (const int i : what.mutated(inputs.size())) {
    const uint64_t record = inputs[size_t(i)].edge.record;
    if (record == 0) continue;
    const auto source = records_.find(record);
    if (source != records_.end() && source->second.is_variable) continue;
    arrays[size_t(i)] = cohort::invoke("_copy", {}, {arrays[size_t(i)]}, {}, of.context)[0];
  }
  Arrays outputs;
  for (size_t i = 0; i < types.size(); ++i) {
    const bool fits = wanted[i] && spare[i] && spare[i].dtype() == types[i].dtype &&
                      spare[i].size() == types[i].shape.size() && spare[i].context() == of.context;
    outputs.push_back(fits ? spare[i].reshape(types[i].shape) : NDArray());
  }
  const Arrays results = invoke_as(what, of.kept, arrays, outputs, types, wanted, of.context);
  if (recording_ && tracked) {
    Record made;
    made.what = what;
    made.what.backward = true;
    made.context = of.context;
    made.kept = of.kept;
    made.out_types = types;
    return record(std::move(made), inputs, results);
  }
  Values values;
  for (const NDArray &result : results) values.push_back({result, Edge()});
  return values;
}

Tape::Tracked Tape::sum(const Values &addends, Dtype type, const NDArray &into) {
  Application what;
  what.op = &get_op("add_n");
  what.attrs = {{"num_args", std::to_string(addends.size())}};
  what.parsed = what.op->parse(what.attrs);
  const Context &context = addends[0].array.context();
  const Shape &shape = addends[0].array.shape();
  Arrays arrays;
  for (const Tracked &addend : addends) arrays.push_back(addend.array);
  return {invoke_as(what, Kept(), arrays, {into}, {{shape, type}}, {true}, context)[0], Edge()};
}

// Keeps the arrays that the gradient reads. A backward step keeps all its inputs.
void Tape::keep_arrays(Record *record, const Values &inputs, const Arrays &outputs) const {
  const auto keep = [](const NDArray &array) { return KeptArray{array, array.own_version()}; };
  record->inputs.resize(inputs.size());
  record->outputs.resize(outputs.size());
  if (!record->what.op) return;
  if (record->what.backward) {
    for (size_t i = 0; i < inputs.size(); ++i) record->inputs[i] = keep(inputs[i].array);
    return;
  }
  const Gradient gradient = record->what.op->gradient_of(record->what.parsed);
  if (gradient.kind != Gradient::Kind::kKernel) return;
  for (int i : gradient.inputs) {
    if (size_t(i) >= inputs.size()) continue;
    KeptArray &kept = record->inputs[size_t(i)] = keep(inputs[size_t(i)].array);
    for (const NDArray &output : outputs) {
      if (output && output.overlaps(kept.array)) kept.version = 0;  // written in place: the gradient's input is lost
    }
  }
  for (int j : gradient.outputs) {
    const NDArray &kept = outputs[size_t(j)];
    record->outputs[size_t(j)] = keep(kept);
    for (size_t other = 0; other < outputs.size(); ++other) {
      if (other == size_t(j) || !outputs[other] || !outputs[other].overlaps(kept)) continue;
      record->outputs[size_t(j)].version = 0;  // overwritten by another output
    }
  }
}

Tape::Values Tape::record(Record record, const Values &inputs, const Arrays &outputs) {
  for (const Tracked &value : inputs) {
    record.edges.push_back(value.edge);
    record.in_types.push_back(type_of(value.array));
    if (record.function) record.in_contexts.push_back(value.array.context());
  }
  if (record.out_types.empty()) {
    for (const NDArray &output : outputs) record.out_types.push_back(type_of(output));
  }
  for (const NDArray &output : outputs) {
    record.made.push_back(output ? std::weak_ptr<Storage>(output.storage()) : std::weak_ptr<Storage>());
  }
  record.learns = learns(record.what, inputs);
  keep_arrays(&record, inputs, outputs);
  Values values;
  values.reserve(outputs.size());
  const uint64_t id = next_id_++;
  const Record &added = records_.emplace(id, std::move(record)).first->second;
  for (const Edge &edge : added.edges) {
    const auto found = records_.find(edge.record);
    if (found != records_.end()) ++found->second.num_readers;
  }
  try {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Edge edge{id, int(i)};
      if (outputs[i]) remember(outputs[i], edge);
      if (outputs[i]) unswept_bytes_ += outputs[i].bytes();
      values.push_back({outputs[i], edge});
    }
  } catch (...) {  // out of memory
    remove(id);
    throw;
  }
  return values;
}

void Tape::record_function(const Arrays &inputs, const Arrays &outputs, std::shared_ptr<TapeFunction> function) {
  check_idle();
  sweep();
  const Values values = track_all(inputs, "inputs");
  if (!recording_ || std::none_of(values.begin(), values.end(), [](const Tracked &v) { return v.edge.record != 0; })) {
    return;
  }
  refuse_variables(outputs, "the function");
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (const NDArray &input : inputs) {
      if (input.overlaps(outputs[i])) {
        throw Error(Code::kInvalidArgument, text("outputs[", i, "]: overlaps an input"), "outputs");
      }
    }
  }
  Record made;
  made.context = inputs[0].context();
  made.function = std::move(function);
  record(std::move(made), values, outputs);
}

// ---- letting go --------------------------------------------------------------------------------------------------

void Tape::remove(uint64_t id) {
  const auto found = records_.find(id);
  if (found == records_.end()) return;
  for (const auto &made : found->second.made) {
    const std::shared_ptr<Storage> storage = made.lock();
    const auto known = known_.find(storage.get());
    if (!storage || known == known_.end()) continue;
    std::vector<Known> &list = known->second;
    list.erase(std::remove_if(list.begin(), list.end(), [&](const Known &k) { return k.edge.record == id; }),
               list.end());
    if (list.empty()) known_.erase(known);
  }
  for (const Edge &edge : found->second.edges) {
    const auto source = records_.find(edge.record);
    if (source != records_.end()) --source->second.num_readers;
  }
  // Destroyed last: a host function is released when the tape is consistent again.
  const Record gone = std::move(found->second);
  records_.erase(found);
}

// Whether nothing but the record itself holds its outputs.
bool Tape::unreachable(const Record &record) const {
  if (record.num_readers > 0) return false;
  if (!record.is_variable && !record.what.op && !record.function) return true;  // a variable that was unmarked
  for (const auto &made : record.made) {
    const long others = made.use_count();
    if (others == 0) continue;
    const std::shared_ptr<Storage> storage = made.lock();
    long own = 0;
    for (const std::vector<KeptArray> *kept : {&record.inputs, &record.outputs}) {
      for (const KeptArray &array : *kept) own += array.array && array.array.storage() == storage;
    }
    if (others > own) return false;
  }
  return true;
}

// When many records, or large ones, were added. From the newest: a record that only unreachable records read is
// unreachable, too.
void Tape::sweep() {
  constexpr size_t kMostUnsweptBytes = size_t(64) << 20;
  if (records_.size() < next_sweep_ && unswept_bytes_ < kMostUnsweptBytes) return;
  unswept_bytes_ = 0;
  for (auto at = records_.end(); at != records_.begin();) {
    --at;
    if (!unreachable(at->second)) continue;
    const uint64_t id = at->first;
    const auto next = std::next(at);
    const bool last = next == records_.end();
    const uint64_t next_id = last ? 0 : next->first;
    remove(id);
    at = last ? records_.end() : records_.find(next_id);
  }
  for (auto at = known_.begin(); at != known_.end();) {
    std::vector<Known> &list = at->second;
    list.erase(std::remove_if(list.begin(), list.end(), [](const Known &k) { return k.storage.expired(); }),
               list.end());
    at = list.empty() ? known_.erase(at) : std::next(at);
  }
  next_sweep_ = std::max<size_t>(256, 2 * records_.size());
}

size_t Tape::num_recorded() {
  check_idle();
  next_sweep_ = 0;
  sweep();
  size_t count = 0;
  for (const auto &entry : records_) count += entry.second.what.op || entry.second.function ? 1 : 0;
  return count;
}

}  // namespace cohort
