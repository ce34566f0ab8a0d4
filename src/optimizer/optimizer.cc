// SPDX-License-Identifier: Apache-2.0
#include "optimizer/optimizer.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/setting_reader.hpp"
#include "device/trace.hpp"
#include "ndarray/name_allocation.hpp"
#include "optimizer/optimizer_impl.hpp"

namespace cohort {
namespace {

constexpr double kNone = -1;  // value of limits that are not set

// One update of one array, which lives until the queue is done with it. It is the kernel of its own first step, too.
struct QueuedUpdate final : Kernel {
  std::unique_ptr<UpdateKernel> kernel;
  NDArray grad;
  std::vector<NDArray> changed;  // the states, then the weight
  const Timeline *by = nullptr;
  std::string label;
  std::unique_ptr<WorkInfo> info;
  std::vector<Step> steps;

  void bind() {
    std::vector<void *> pointers;
    for (const NDArray &array : changed) pointers.push_back(array.data());
    kernel->bind(pointers.back(), grad.data(), pointers.data());
    Step check{};
    check.kernel = this;
    check.label = label.c_str();
    steps.push_back(check);
    info->bytes = kernel->bytes();
    kernel->append_steps(label.c_str(), info.get(), &steps);
  }
  // Fails if earlier work has failed to write what the update reads.
  void run(const Args &, const Lane &) const override {
    grad.check_written();
    for (const NDArray &array : changed) array.check_written();
  }
  static void failed(const void *owner, const char *message) {
    const auto *self = static_cast<const QueuedUpdate *>(owner);
    for (const NDArray &array : self->changed) array.fail(message, self->by);
  }
};

double look_up(const std::string &param, const std::map<std::string, double> &own,
               const std::map<std::string, double> &symbol, double otherwise) {
  auto found = own.find(param);
  if (found != own.end()) return found->second;
  found = symbol.find(param);
  return found != symbol.end() ? found->second : otherwise;
}

// MXNet's AdaGrad spells it differently from its other optimizers; both spellings are one setting.
std::string spelt(const std::string &key) { return key == "eps" ? "epsilon" : key; }

AttrMap spelt(const AttrMap &settings) {
  AttrMap one;
  for (const auto &[key, value] : settings) {
    if (one.emplace(spelt(key), value).second) continue;
    throw Error(Code::kInvalidArgument, "settings 'eps' and 'epsilon': expected one of them, found both", "eps");
  }
  return one;
}

bool is_one_of(const std::string &key, std::initializer_list<const char *> keys) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

bool is_switch(const std::string &key) {
  return is_one_of(key, {"centered", "multi_precision", "lazy_update", "bias_correction", "momentum_correction"});
}

// Whether the setting is a limit that may be absent: kNone.
bool may_be_none(const std::string &key) {
  return is_one_of(key, {"clip_gradient", "clip_weights", "lower_bound", "upper_bound"});
}

void check_value(const OptimizerKind &kind, const std::string &key, double value) {
  const auto refuse = [&](const char *expected) {
    throw Error(Code::kInvalidArgument,
                text("optimizer '", kind.name, "', setting '", key, "': expected ", expected, ", found ", value), key);
  };
  if (!std::isfinite(value)) refuse("a finite number");
  if (is_switch(key) && value != 0 && value != 1) refuse("0 or 1");
  const bool rate = is_one_of(key, {"beta1", "beta2", "gamma1", "gamma2", "rho"});
  if (rate && !(value >= 0 && value < 1)) refuse("at least 0 and below 1");
  if (is_one_of(key, {"epsilon", "momentum", "schedule_decay", "eta"}) && value < 0) refuse("at least 0");
  const bool counts = is_one_of(key, {"batch_scale", "warmup_epochs", "updates_per_epoch", "begin_epoch", "num_epochs",
                                      "begin_num_update", "seed"});
  if (counts && (value < 0 || value != std::floor(value) || value > 9e15)) refuse("a whole number of at least 0");
  if (key == "batch_scale" && value == 0) refuse("at least 1");
  const double num_strategies = double(warmup_strategies().size());
  if (key == "warmup_strategy" && !(value >= 0 && value < num_strategies && value == std::floor(value))) {
    refuse("0 (linear), 1 (power2), 2 (sqrt) or 3 (lars)");
  }
  if (key == "wd" && kind.has(OptimizerKind::kNoDecay) && value != 0) refuse("0, as it has no weight decay");
  if (key == "learning_rate" && kind.has(OptimizerKind::kDraws) && value < 0) refuse("at least 0");
}

}  // namespace

Optimizer::Optimizer() : impl_(std::make_unique<Impl>()) {}
Optimizer::~Optimizer() = default;

std::shared_ptr<Optimizer> Optimizer::create(const std::string &name, const AttrMap &settings) {
  const OptimizerKind *kind = find_optimizer_kind(lower_case(name));
  if (!kind) {
    throw Error(Code::kName, text("there is no optimizer '", name, "'; there are ", list_optimizer_kinds()), name);
  }
  std::shared_ptr<Optimizer> optimizer(new Optimizer());
  Impl &impl = *optimizer->impl_;
  impl.kind = kind;
  impl.name = kind->name;
  impl.settings = {{"learning_rate", 0.01}, {"wd", 0},
                   {"rescale_grad", 1},     {"clip_gradient", kNone},
                   {"begin_num_update", 0}, {"multi_precision", 0}};
  for (const auto &setting : kind->settings) impl.settings[setting.first] = setting.second;
  SettingReader reader("optimizer '" + name + "'", spelt(settings));
  for (auto &setting : impl.settings) {
    if (may_be_none(setting.first)) {
      setting.second = reader.number_or_none(setting.first).value_or(setting.second);
    } else if (setting.first == "warmup_strategy") {
      const std::vector<std::string> &words = warmup_strategies();
      setting.second = double(std::find(words.begin(), words.end(), reader.word(setting.first, words)) - words.begin());
    } else if (is_switch(setting.first)) {
      setting.second = reader.boolean(setting.first, setting.second != 0);
    } else {
      setting.second = reader.number(setting.first, setting.second);
    }
    check_value(*kind, setting.first, setting.second);
  }
  reader.finish();
  impl.read_settings();
  impl.num_update = int64_t(impl.setting("begin_num_update"));
  return optimizer;
}

const std::string &Optimizer::name() const { return impl_->name; }

double Optimizer::get(const std::string &key) const {
  if (key == "num_update") return double(impl_->num_update);
  if (key == "learning_rate") return impl_->next_rate();
  const auto found = impl_->settings.find(spelt(key));
  if (found == impl_->settings.end()) {
    throw Error(Code::kName, text("optimizer '", impl_->name, "' has no setting '", key, "'"), key);
  }
  return may_be_none(key) && found->second <= 0 ? kNone : found->second;  // 0 and below are no limit
}

void Optimizer::set(const std::string &given, double value) {
  const std::string key = spelt(given);
  const auto found = impl_->settings.find(key);
  if (found == impl_->settings.end()) {
    throw Error(Code::kName, text("optimizer '", impl_->name, "' has no setting '", key, "'"), key);
  }
  check_value(*impl_->kind, key, value);
  if (key == "learning_rate" && impl_->schedule) {
    throw Error(Code::kState, "learning_rate: a schedule decides it; end the schedule first", key);
  }
  if (key == "begin_num_update") impl_->num_update = std::max(impl_->num_update, int64_t(value));
  const UpdateOp *before = &impl_->op();
  const double old = found->second;
  found->second = value;
  impl_->read_settings();
  // The setting chooses other kernels, or kernels were made with its old value: all must be made again.
  if (before != &impl_->op() || (key == "multi_precision" && value != old)) {
    ++impl_->generation;
    for (auto &slot : impl_->slots) slot.second->ready = false;
  }
}

void Optimizer::set_lr_schedule(const std::string &name, const AttrMap &settings) {
  if (name.empty()) {
    if (impl_->schedule) impl_->settings["learning_rate"] = impl_->next_rate();
    impl_->schedule.reset();
    impl_->read_settings();
    return;
  }
  const double base_lr = impl_->next_rate();
  std::unique_ptr<LrSchedule> schedule = LrSchedule::create(name, settings, base_lr);
  impl_->schedule = std::move(schedule);
}

void Optimizer::use_symbol(const Symbol &symbol) {
  std::map<std::string, double> lr_mult, wd_mult;
  for (const NodePtr &node : symbol.nodes()) {
    if (!node->is_variable()) continue;
    const auto lr = node->attrs.find("__lr_mult__"), wd = node->attrs.find("__wd_mult__");
    if (lr != node->attrs.end()) lr_mult[node->name] = parse_float("__lr_mult__ of " + node->name, lr->second);
    if (wd != node->attrs.end()) wd_mult[node->name] = parse_float("__wd_mult__ of " + node->name, wd->second);
  }
  impl_->symbol_lr_mult = std::move(lr_mult);
  impl_->symbol_wd_mult = std::move(wd_mult);
  impl_->refresh_mults();
}

void Optimizer::set_mult(const std::string &param, double lr_mult, double wd_mult) {
  if (!std::isfinite(lr_mult) || !std::isfinite(wd_mult)) {
    throw Error(Code::kInvalidArgument,
                text("multipliers of '", param, "': expected finite numbers, found ", lr_mult, " and ", wd_mult),
                param);
  }
  const auto with = [&](std::map<std::string, double> mults, double value) {
    if (value < 0) {
      mults.erase(param);
    } else {
      mults[param] = value;
    }
    return mults;
  };
  std::map<std::string, double> lr_mults = with(impl_->own_lr_mult, lr_mult);
  std::map<std::string, double> wd_mults = with(impl_->own_wd_mult, wd_mult);
  impl_->own_lr_mult.swap(lr_mults);
  impl_->own_wd_mult.swap(wd_mults);
  impl_->refresh_mults();
}

double Optimizer::lr_mult(const std::string &param) const {
  return look_up(param, impl_->own_lr_mult, impl_->symbol_lr_mult, 1);
}

double Optimizer::wd_mult(const std::string &param) const {
  return look_up(param, impl_->own_wd_mult, impl_->symbol_wd_mult, impl_->default_wd_mult(param));
}

// MXNet's rule: a parameter that is no weight and no gamma does not decay.
double Optimizer::Impl::default_wd_mult(const std::string &param) const {
  return ends_with(param, "_weight") || (!kind->has(OptimizerKind::kGammaStays) && ends_with(param, "_gamma")) ? 1 : 0;
}

void Optimizer::Impl::refresh_mults() {
  for (auto &entry : slots) {
    Slot &slot = *entry.second;
    slot.lr_mult = look_up(slot.param, own_lr_mult, symbol_lr_mult, 1);
    slot.wd_mult = look_up(slot.param, own_wd_mult, symbol_wd_mult, default_wd_mult(slot.param));
  }
}

std::string Optimizer::Impl::kind_text() const {
  return text(name, "/", op().num_states, "/", setting("multi_precision") != 0 ? 1 : 0);
}

Optimizer::PendingSlots::PendingSlots(Optimizer &optimizer) : optimizer_(optimizer) {}
Optimizer::PendingSlots::~PendingSlots() = default;

Optimizer::Slot &Optimizer::PendingSlots::slot(const std::string &param, size_t copy) {
  return find_or_make(param, copy, false);
}

Optimizer::Slot &Optimizer::PendingSlots::slot_of_device(const std::string &param, size_t copy) {
  return find_or_make(param, copy, true);
}

Optimizer::Slot &Optimizer::PendingSlots::find_or_make(const std::string &param, size_t copy, bool of_device) {
  const Impl &impl = *optimizer_.impl_;
  const auto known = impl.slots.find({param, copy});
  const auto first = copy > 0 ? impl.slots.find({param, size_t(0)}) : impl.slots.end();
  const bool is_behind = of_device && known != impl.slots.end() && first != impl.slots.end() &&
                         known->second->count != first->second->count;
  if (known != impl.slots.end() && !is_behind) return *known->second;
  std::unique_ptr<Slot> &place = added_[{param, copy}];
  if (place) return *place;
  place = std::make_unique<Slot>();
  place->param = param;
  place->copy = copy;
  place->lr_mult = optimizer_.lr_mult(param);
  place->wd_mult = optimizer_.wd_mult(param);
  place->count = int64_t(impl.setting("begin_num_update"));
  place->carried = impl.kind->carried;
  if (first != impl.slots.end() && (of_device || !first->second->ready)) {
    place->states = first->second->states;  // copied when they are put on the weight's context
    place->has_master = first->second->has_master;
    place->count = first->second->count;
    place->carried = first->second->carried;
  }
  return *place;
}

void Optimizer::PendingSlots::commit() noexcept {
  optimizer_.impl_->slots.merge(added_);
  bool any_moved = !added_.empty();  // from where others may use them
  for (auto &[key, slot] : added_) optimizer_.impl_->slots.find(key)->second.swap(slot);  // of copies that were behind
  added_.clear();
  for (Moved &moved : moved_) {
    any_moved = any_moved || moved.slot->ready;
    moved.slot->states.swap(moved.states);
    moved.slot->has_master = moved.has_master;
    moved.slot->ready = true;
  }
  moved_.clear();
  if (any_moved) ++optimizer_.impl_->generation;
}

// Numbers are rounded to float, as attributes of operators are: bias corrections must match the factors that kernels
// use.
void Optimizer::Impl::read_settings() {
  learning_rate = setting("learning_rate");
  wd = setting("wd");
  const auto rounded = [this](const char *key) { return double(float(setting(key))); };
  common.rescale = double(float(setting("rescale_grad") / gradient_scale));
  common.unscale = 1 / gradient_scale;
  common.clip = setting("clip_gradient") > 0 ? rounded("clip_gradient") : double(INFINITY);
  common.momentum = rounded("momentum");
  common.beta1 = rounded("beta1");
  common.beta2 = rounded("beta2");
  common.epsilon = rounded("epsilon");
  common.wd_lh = rounded("wd_lh");
  common.lamda1 = rounded("lamda1");
  common.beta = rounded("beta");
  if (kind->settle) kind->settle(settings, &common);
}

int64_t Optimizer::num_updates(const Slot &slot) { return slot.count; }

UpdateValues Optimizer::begin_update(Slot &slot) {
  ++slot.count;
  slot.carried_before = slot.carried;
  impl_->num_update = std::max(impl_->num_update, slot.count);
  const double rate = impl_->rate(impl_->kind->has(OptimizerKind::kRateBefore) ? slot.count - 1 : impl_->num_update);
  UpdateValues values = impl_->common;
  values.lr = double(float(rate * slot.lr_mult));
  values.wd = double(float(impl_->wd * slot.wd_mult));
  if (impl_->kind->correct) impl_->kind->correct(impl_->settings, slot, rate, &values);
  return values;
}

void Optimizer::undo_begin_update(const std::vector<Slot *> &slots, int64_t num_update) {
  for (Slot *const slot : slots) {
    --slot->count;
    slot->carried = slot->carried_before;
  }
  impl_->num_update = num_update;
}

void Optimizer::set_gradient_scale(double scale) {
  impl_->gradient_scale = scale;
  impl_->read_settings();
}

std::vector<NDArray> Optimizer::PendingSlots::states(Slot &slot, const NDArray &weight, const NDArray &source) {
  const Impl &impl = *optimizer_.impl_;
  const UpdateOp &op = impl.op();
  const bool master = impl.wants_master(weight.dtype());
  const size_t num_own = size_t(op.num_states), num_states = num_own + (master ? 1 : 0);
  const Dtype dtype = master ? Dtype::kFloat32 : weight.dtype();
  const Shape own_shape = state_shape(op, weight.shape());
  const auto shape_of = [&](size_t i) { return i < num_own ? own_shape : weight.shape(); };
  const auto is_in_place = [&](size_t i) {
    const NDArray &state = slot.states[i];
    return state.shape() == shape_of(i) && state.dtype() == dtype && state.context() == weight.context();
  };
  bool in_place = slot.ready && slot.has_master == master && slot.states.size() == num_states;
  for (size_t i = 0; in_place && i < num_states; ++i) in_place = is_in_place(i);
  if (in_place) return slot.states;
  // Old states of the formula are used again in any type, if there are as many; the float32 weight, if there was one.
  const bool same_formula = slot.states.size() - (slot.has_master ? 1 : 0) == num_own;
  std::vector<NDArray> states;
  for (size_t i = 0; i < num_states; ++i) {
    const bool goes_on = i < num_own ? same_formula : slot.has_master;
    const NDArray *const old = goes_on ? &slot.states[i < num_own ? i : slot.states.size() - 1] : nullptr;
    const Shape shape = shape_of(i);
    if (old && old->shape() != shape) {
      throw Error(Code::kShape,
                  text("optimizer '", impl.name, "': a state of '", slot.param, "' has shape ", old->shape(),
                       ", expected ", shape, " for the parameter's ", weight.shape()),
                  slot.param);
    }
    NDArray state = name_allocation([&] { return NDArray::create(shape, dtype, weight.context()); }, impl.name, " '",
                                    slot.param, "'");
    if (old) {
      state.copy_from(*old);
    } else if (i == num_own || int(i) == op.copied) {
      state.copy_from(source);
    }
    states.push_back(std::move(state));
  }
  if (added_.count({slot.param, slot.copy})) {
    slot.states = states;
    slot.has_master = master;
    slot.ready = true;
  } else {
    moved_.push_back({&slot, states, master});
  }
  return states;
}

std::unique_ptr<UpdateKernel> Optimizer::make_kernel(const Context &context, Dtype dtype, const Shape &shape,
                                                     int num_threads) const {
  return std::make_unique<UpdateKernel>(impl_->op(), impl_->wants_master(dtype), context, dtype, shape, num_threads);
}

bool Optimizer::updates_whole() const { return impl_->op().whole; }

uint64_t Optimizer::generation() const { return impl_->generation; }

void Optimizer::update(const std::string &param, size_t copy, const NDArray &weight, const NDArray &grad) {
  const auto refuse = [&](Code code, const char *what, const auto &expected, const auto &found) {
    throw Error(code, text("gradient of '", param, "': expected the weight's ", what, " ", expected, ", found ", found),
                param);
  };
  if (grad.shape() != weight.shape()) refuse(Code::kShape, "shape", weight.shape(), grad.shape());
  if (grad.dtype() != weight.dtype()) refuse(Code::kDtype, "dtype", weight.dtype(), grad.dtype());
  if (grad.context() != weight.context()) refuse(Code::kDevice, "context", weight.context(), grad.context());
  const std::shared_ptr<Timeline> timeline = weight.storage()->immediate();
  const std::shared_ptr<Queue> queue = timeline->queues()[0];
  PendingSlots pending(*this);
  Slot &place = pending.slot(param, copy);
  const auto work = std::make_shared<QueuedUpdate>();
  work->kernel = make_kernel(weight.context(), weight.dtype(), weight.shape(), queue->num_threads());
  work->grad = grad;
  work->changed = pending.states(place, weight, weight);
  work->changed.push_back(weight);
  work->by = timeline.get();
  work->label = impl_->name + " '" + param + "'";
  work->info = std::make_unique<WorkInfo>(SpanKind::kUpdate, param, impl_->name);
  work->bind();
  const auto enqueue_lock = timeline->lock_to_enqueue();
  grad.storage()->hazards().begin_shared_read(grad.range(), timeline);
  for (const NDArray &array : work->changed) {
    array.storage()->hazards().begin_shared_read(array.range(), timeline);
    array.storage()->hazards().begin_write(array.range(), timeline, /* overwrites */ false);
  }
  const int64_t num_update = impl_->num_update;
  work->kernel->set(begin_update(place));
  Program program{work->steps.data(), work->steps.size(), update_size(weight.size()), QueuedUpdate::failed, true};
  program.isolated = true;
  try {
    queue->run(program, work);
  } catch (...) {  // then the update is not counted
    undo_begin_update({&place}, num_update);
    throw;
  }
  pending.commit();
}

}  // namespace cohort
