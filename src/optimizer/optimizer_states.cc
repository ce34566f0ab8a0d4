// SPDX-License-Identifier: Apache-2.0
// States of an optimizer as bytes. Little endian:
//
//   8 bytes  "COHORTOP"
//   u32      version, 1 to 3
//   u32      length of the kind, then the kind: "sgd/1/0" is the optimizer's name, the number of states of a parameter
//            in its formula, and 1 with multi_precision
//   i64      number of updates
//            from version 2 on: f64 loss scale, 0 for none, i32 good updates since it changed, u64 updates that were
//            skipped
//   u64      number of counts, then for each: u32 length of the parameter's name, name, u64 copy, i64 count, of
//            version 3 f64 of what goes on from update to update beside the states
//   u64      bytes of what follows
//   .params  an array for each state, named "INDEX/COPY/PARAMETER"
//
// Nothing is taken from a file before all of it was read and checked.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "ndarray/params.hpp"
#include "optimizer/optimizer_impl.hpp"

namespace cohort {
namespace {

constexpr char kMagic[] = "COHORTOP";
constexpr uint32_t kPlain = 1, kWithLossScale = 2, kCarrying = 3;  // versions
// Integers that a double holds exactly; begin_num_update may be no larger.
constexpr int64_t kMostUpdates = int64_t(1) << 53;

template <typename T>
void put(std::string *to, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) to->push_back(char(uint64_t(value) >> (8 * i)));
}

void put_real(std::string *to, double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  put(to, bits);
}

void put_text(std::string *to, const std::string &words) {
  put(to, uint32_t(words.size()));
  *to += words;
}

// Reads within bounds; kFormat with the offset for anything that does not fit.
class StateReader {
 public:
  StateReader(const void *data, size_t bytes, const std::string &source)
      : data_(static_cast<const char *>(data)), bytes_(bytes), source_(source) {}

  template <typename T>
  T number() {
    need(sizeof(T));
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) value |= uint64_t(static_cast<unsigned char>(data_[at_ + i])) << (8 * i);
    at_ += sizeof(T);
    return T(value);
  }
  double real() {
    const auto bits = number<uint64_t>();
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  std::string words(size_t length) {
    need(length);
    std::string result(data_ + at_, length);
    at_ += length;
    return result;
  }
  std::string counted_words() {
    const auto length = number<uint32_t>();
    return words(length);
  }
  const char *here() const { return data_ + at_; }
  size_t left() const { return bytes_ - at_; }
  [[noreturn]] void fail(const std::string &what) const {
    throw Error(Code::kFormat, text(source_, ": ", plain_line(what), " at byte ", at_, " of ", bytes_), source_);
  }

 private:
  void need(size_t length) const {
    if (length > left()) fail(text("expected ", length, " bytes more"));
  }

  const char *const data_;
  const size_t bytes_;
  const std::string source_;
  size_t at_ = 0;
};

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

}  // namespace

std::string Optimizer::save_states() const {
  std::string bytes(kMagic, 8);
  const bool carries = impl_->kind->has(OptimizerKind::kCarries);
  put(&bytes, carries ? kCarrying : impl_->loss_scale ? kWithLossScale : kPlain);
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
  const std::string params = params_bytes(arrays);
  put(&bytes, uint64_t(params.size()));
  return bytes + params;
}

void Optimizer::load_states(const void *data, size_t num_bytes, const std::string &source) {
  StateReader reader(data, num_bytes, source);
  if (num_bytes < 8 || std::memcmp(data, kMagic, 8) != 0) reader.fail("this is not an optimizer state");
  reader.words(8);
  const auto version = reader.number<uint32_t>();
  if (version < kPlain || version > kCarrying) reader.fail(text("expected version 1 to 3, found ", version));
  const std::string kind = reader.counted_words();
  if (kind != impl_->kind_text()) {
    reader.fail(
        text("expected states of '", impl_->kind_text(), "' (optimizer/states/multi_precision), found '", kind, "'"));
  }
  const bool carries = impl_->kind->has(OptimizerKind::kCarries);
  if ((version == kCarrying) != carries) {
    reader.fail(text("expected version ", carries ? "3" : "1 or 2", " of '", impl_->name, "', found ", version));
  }
  const auto num_update = reader.number<int64_t>();
  std::optional<LossScaleState> loss_scale;
  if (version >= kWithLossScale) {
    loss_scale.emplace();
    loss_scale->value = reader.real();
    loss_scale->num_good = reader.number<int32_t>();
    loss_scale->num_skipped = reader.number<uint64_t>();
    const bool none = version == kCarrying && loss_scale->value == 0;
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
  const auto params_size = reader.number<uint64_t>();
  if (params_size != reader.left()) {
    reader.fail(text("expected ", params_size, " bytes of arrays, found ", reader.left()));
  }
  for (const auto &entry : load_params(reader.here(), reader.left(), source)) {
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
