// SPDX-License-Identifier: Apache-2.0
// States of an optimizer as bytes. Little endian:
//
//   8 bytes  "COHORTOP"
//   u32      version, 1 to 4
//   u32      length of the kind, then the kind: "sgd/1/0" is the optimizer's name, the number of states of a parameter
//            in its formula, and 1 with multi_precision
//   i64      number of updates
//            from version 2 on: f64 loss scale, 0 for none, i32 good updates since it changed, u64 updates that were
//            skipped
//   u64      number of counts, then for each: u32 length of the parameter's name, name, u64 copy, i64 count, from
//            version 3 on f64 of what goes on from update to update beside the states
//            of version 4: u32 number of buckets, then for each: u32 length of its key, key, random state
//            (node_streams.cc)
//   u64      bytes of what follows
//   .params  an array for each state, named "INDEX/COPY/PARAMETER"; of version 4 also the auxiliary states of each
//            device, "aux/DEVICE/NAME", in the order of the devices
//
// Nothing is taken from a file before all of it was read and checked.
#include <algorithm>
#include <charconv>
#include <climits>
#include <cmath>
#include <cstring>

#include "base/byte_stream.hpp"
#include "base/error.hpp"
#include "ndarray/params.hpp"
#include "optimizer/optimizer_impl.hpp"

namespace cohort {
namespace {

constexpr char kMagic[] = "COHORTOP";
constexpr uint32_t kPlain = 1, kWithLossScale = 2, kCarrying = 3, kTraining = 4;  // versions
// Integers that a double holds exactly; begin_num_update may be no larger.
constexpr int64_t kMostUpdates = int64_t(1) << 53;

constexpr char kAux[] = "aux/";

struct StateName {
  size_t index, copy;
  std::string param;
};

// Parses "INDEX/COPY/PARAMETER"; false if it is not such a name.
bool parse_state_name(const std::string &name, StateName *parsed) {
  const char *at = name.data(), *const end = at + name.size();
  for (size_t *const number : {&parsed->index, &parsed->copy}) {
    const auto [behind, error] = std::from_chars(at, end, *number);
    if (error != std::errc() || behind == end || *behind != '/') return false;
    at = behind + 1;
  }
  parsed->param.assign(at, end);
  return true;
}

// Takes an array named "aux/DEVICE/NAME"; false if it is not the next one of a device in ascending order.
bool read_aux(const std::pair<std::string, NDArray> &entry, std::vector<NamedArrays> *aux) {
  const size_t prefix = sizeof(kAux) - 1;
  if (entry.first.compare(0, prefix, kAux) != 0) return false;
  const char *const begin = entry.first.data() + prefix, *const end = entry.first.data() + entry.first.size();
  size_t device = 0;
  const auto [behind, error] = std::from_chars(begin, end, device);
  if (error != std::errc() || behind == end || *behind != '/') return false;
  if (device != aux->size() && device + 1 != aux->size()) return false;
  aux->resize(device + 1);
  aux->back().emplace_back(std::string(behind + 1, end), entry.second);
  return true;
}

// Says what "sgd/1/0" means: "sgd with momentum, without multi_precision".
std::string kind_words(const std::string &kind) {
  const size_t first = kind.find('/'), second = kind.find('/', first + 1);
  if (second == std::string::npos) return "'" + kind + "'";
  const std::string name = kind.substr(0, first), states = kind.substr(first + 1, second - first - 1);
  std::string words = "'" + name + "'";
  const OptimizerKind *const known = find_optimizer_kind(name);
  if (known && known->ops.size() > 1) {
    int fewest = INT_MAX;
    for (const UpdateOp &op : known->ops) fewest = std::min(fewest, int(op.num_states));
    const bool more = states != std::to_string(fewest);
    const auto is_momentum = [](const auto &setting) { return std::strcmp(setting.first, "momentum") == 0; };
    const bool by_momentum = std::any_of(known->settings.begin(), known->settings.end(), is_momentum);
    if (by_momentum)
      words += more ? " with momentum" : " without momentum";
    else
      words += " with " + states + (states == "1" ? " state" : " states") + " for each parameter";
  }
  return words + (kind.substr(second + 1) == "0" ? "" : " and multi_precision");
}

}  // namespace

TrainingState Optimizer::Impl::training_now() const {
  TrainingState now = training;
  for (const auto &[bucket, source] : sources) {
    std::vector<RandomPositions> &devices = now.random[bucket];
    devices.clear();
    bool any = false;
    for (const StreamAccess &random : source->random) {
      devices.push_back(random.positions());
      any |= !devices.back().empty();
    }
    if (!any) now.random.erase(bucket);
  }
  if (latest_source) now.aux = latest_source->aux;
  return now;
}

void Optimizer::keep_source(const std::shared_ptr<const TrainingSource> &source) {
  impl_->training_is_loaded = false;
  if (impl_->latest_source == source) return;
  impl_->sources[source->bucket] = source;
  impl_->latest_source = source;
}

const TrainingState *Optimizer::loaded_training() const {
  return impl_->training_is_loaded ? &impl_->training : nullptr;
}

std::string Optimizer::save_states() const {
  std::string bytes(kMagic, 8);
  const TrainingState training = impl_->training_now();
  const bool trains = !training.random.empty() || !training.aux.empty();
  const bool carries = trains || impl_->kind->has(OptimizerKind::kCarries);
  put(&bytes, trains ? kTraining : carries ? kCarrying : impl_->loss_scale ? kWithLossScale : kPlain);
  put_text(&bytes, impl_->kind_text());
  put(&bytes, impl_->num_update);
  if (impl_->loss_scale || carries) {
    const LossScaleState state = impl_->loss_scale.value_or(LossScaleState{0, 0, 0});
    put_real(&bytes, state.value);
    put(&bytes, int32_t(state.num_good));
    put(&bytes, state.num_skipped);
  }
  put(&bytes, uint64_t(impl_->slots.size()));
  NamedArrays arrays;
  for (const auto &entry : impl_->slots) {
    const Slot &slot = *entry.second;
    put_text(&bytes, slot.param);
    put(&bytes, uint64_t(slot.copy));
    put(&bytes, slot.count);
    if (carries) put_real(&bytes, slot.carried);
    for (size_t i = 0; i < slot.states.size(); ++i) {
      slot.states[i].wait();
      arrays.emplace_back(text(i, "/", slot.copy, "/", slot.param), slot.states[i]);
    }
  }
  if (trains) {
    put(&bytes, uint32_t(training.random.size()));
    for (const auto &[bucket, devices] : training.random) {
      put_text(&bytes, bucket);
      put_random_state(&bytes, devices);
    }
  }
  for (size_t d = 0; d < training.aux.size(); ++d) {
    for (const auto &[name, array] : training.aux[d]) {
      array.wait();
      arrays.emplace_back(text(kAux, d, "/", name), array);
    }
  }
  const std::string params = params_bytes(arrays);
  put(&bytes, uint64_t(params.size()));
  return bytes + params;
}

void Optimizer::load_states(const void *data, size_t num_bytes, const std::string &source) {
  ByteReader reader(data, num_bytes, source);
  if (num_bytes < 8 || std::memcmp(data, kMagic, 8) != 0) reader.fail("this is not an optimizer state");
  reader.words(8);
  const auto version = reader.number<uint32_t>();
  if (version < kPlain || version > kTraining) reader.fail(text("expected version 1 to 4, found ", version));
  const std::string kind = reader.counted_words();
  if (kind != impl_->kind_text()) {
    throw Error(Code::kFormat,
                text(source, ": these states were saved by ", kind_words(kind), ", this optimizer is ",
                     kind_words(impl_->kind_text())),
                source);
  }
  const bool carries = version >= kCarrying;
  if (version != kTraining && carries != impl_->kind->has(OptimizerKind::kCarries)) {
    reader.fail(text("expected version ", carries ? "1, 2" : "3", " or 4 of '", impl_->name, "', found ", version));
  }
  const auto num_update = reader.number<int64_t>();
  std::optional<LossScaleState> loss_scale;
  if (version >= kWithLossScale) {
    loss_scale.emplace();
    loss_scale->value = reader.real();
    loss_scale->num_good = reader.number<int32_t>();
    loss_scale->num_skipped = reader.number<uint64_t>();
    const bool none = carries && loss_scale->value == 0;
    const bool in_range = loss_scale->value >= kLeastLossScale && loss_scale->value <= kLargestLossScale;
    if (!(none || in_range) || loss_scale->num_good < 0 || loss_scale->num_good == INT32_MAX) {
      reader.fail(text("invalid loss scale ", loss_scale->value, " after ", loss_scale->num_good, " good updates"));
    }
    if (none) loss_scale.reset();
  }
  const auto num_counts = reader.number<uint64_t>();
  if (num_update < 0 || num_update > kMostUpdates) reader.fail(text("invalid number of updates ", num_update));
  std::map<std::pair<std::string, size_t>, std::unique_ptr<Slot>> loaded;
  for (uint64_t i = 0; i < num_counts; ++i) {
    auto slot = std::make_unique<Slot>();
    slot->param = reader.counted_words();
    if (slot->param.find('\0') != std::string::npos) reader.fail("'" + slot->param + "': found a zero byte in a name");
    slot->copy = size_t(reader.number<uint64_t>());
    slot->count = reader.number<int64_t>();
    if (carries) slot->carried = reader.real();
    if (slot->count < 0 || slot->count > num_update) {
      reader.fail(text("'", slot->param, "' has ", slot->count, " of ", num_update, " updates"));
    }
    if (!std::isfinite(slot->carried)) reader.fail("'" + slot->param + "': the carried number is not finite");
    const auto key = std::make_pair(slot->param, slot->copy);
    if (!loaded.emplace(key, std::move(slot)).second) reader.fail("'" + key.first + "' is listed twice");
  }
  TrainingState training;
  for (auto num_buckets = version == kTraining ? reader.number<uint32_t>() : 0; num_buckets > 0; --num_buckets) {
    const std::string bucket = reader.counted_words();
    if (!training.random.emplace(bucket, read_random_state(&reader)).second)
      reader.fail("bucket '" + bucket + "' is listed twice");
  }
  const auto params_size = reader.number<uint64_t>();
  if (params_size != reader.left()) {
    reader.fail(text("expected ", params_size, " bytes of arrays, found ", reader.left()));
  }
  for (const auto &entry : load_params(reader.here(), reader.left(), source)) {
    if (version == kTraining && read_aux(entry, &training.aux)) continue;
    StateName name;
    const bool good = parse_state_name(entry.first, &name);
    const auto found = good ? loaded.find({name.param, name.copy}) : loaded.end();
    if (found == loaded.end()) reader.fail("array '" + entry.first + "' is not the state of a listed parameter");
    if (name.index != found->second->states.size()) reader.fail("array '" + entry.first + "' is out of order");
    found->second->states.push_back(entry.second);
  }
  const size_t num_states = size_t(impl_->op().num_states);
  for (const auto &entry : loaded) {
    Slot &slot = *entry.second;
    const size_t masters = impl_->setting("multi_precision") != 0 ? 1 : 0;
    // No states: counted, but not updated yet.
    if (!slot.states.empty() && (slot.states.size() < num_states || slot.states.size() > num_states + masters)) {
      reader.fail(text("'", slot.param, "' has ", slot.states.size(), " states, expected ", num_states));
    }
    slot.has_master = slot.states.size() > num_states;
  }
  // Everything was checked. Slots that group refers to keep their addresses; what needs memory comes first.
  struct Replaced {
    Slot *slot;
    const Slot *by;  // null: nothing was saved of it
    std::vector<NDArray> states;
  };
  std::vector<Replaced> replaced;
  for (auto &entry : impl_->slots) {
    // If fewer copies were saved than are used here, the others continue from the first.
    auto by = loaded.find(entry.first);
    if (by == loaded.end()) by = loaded.find({entry.first.first, size_t(0)});
    const Slot *const saved = by != loaded.end() ? by->second.get() : nullptr;
    replaced.push_back({entry.second.get(), saved, saved ? saved->states : std::vector<NDArray>()});
  }
  for (Replaced &r : replaced) {
    Slot &slot = *r.slot;
    slot.ready = false;
    slot.count = r.by ? r.by->count : int64_t(impl_->setting("begin_num_update"));
    slot.carried = r.by ? r.by->carried : impl_->kind->carried;
    slot.states.swap(r.states);
    slot.has_master = r.by && r.by->has_master;
  }
  impl_->slots.merge(loaded);  // leaves out those that are there already
  impl_->num_update = num_update;
  impl_->sources.clear();
  impl_->latest_source.reset();
  impl_->training = std::move(training);
  impl_->training_is_loaded = true;
  impl_->loss_scale = loss_scale;
  impl_->loss_scale_is_loaded = loss_scale.has_value();
  impl_->refresh_mults();
  ++impl_->generation;
}

const LossScaleState *Optimizer::loss_scale() const { return impl_->loss_scale ? &*impl_->loss_scale : nullptr; }

void Optimizer::keep_loss_scale(const LossScaleState &state) { impl_->loss_scale = state; }

const LossScaleState *Optimizer::take_loaded_loss_scale() {
  return std::exchange(impl_->loss_scale_is_loaded, false) ? &*impl_->loss_scale : nullptr;
}

}  // namespace cohort
