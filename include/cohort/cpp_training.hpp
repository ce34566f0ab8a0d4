/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file cpp_training.hpp
 * Optimizers, metrics, initializers, parameter files and checkpoints. A part of cohort.hpp, which says what holds for all.
 */
#ifndef COHORT_CPP_TRAINING_HPP
#define COHORT_CPP_TRAINING_HPP

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/cpp_symbols.hpp"

namespace cohort {
inline namespace abi0 {

/** A loss scale and how it fares: cohort_group_loss_scale(). */
struct LossScale {
  double scale = 1;
  int32_t num_good = 0;
  uint64_t num_skipped = 0;
};

/** Multipliers of a parameter's learning rate and weight decay. */
struct Multipliers {
  double lr_mult = 1;
  double wd_mult = 1;
};

/** A rule that updates parameters from gradients, with its states. */
class Optimizer : public Handle<cohort_optimizer, cohort_optimizer_free> {
 public:
  using Handle::get;
  using Handle::Handle;
  Optimizer() noexcept = default;
  /** Names and settings: cohort_optimizer_create(). */
  explicit Optimizer(const std::string &name, Span<Attr> settings = {}) {
    const detail::CAttrs c(settings);
    *this = make<Optimizer>(cohort_optimizer_create, name.c_str(), c.keys.data(), c.values.data(), c.num);
  }

  /** A setting as a number: cohort_optimizer_get(). */
  double get(const std::string &key) const { return query<double>(cohort_optimizer_get, get(), key.c_str()); }
  /** cohort_optimizer_set(). */
  void set(const std::string &key, double value) { check(cohort_optimizer_set(get(), key.c_str(), value)); }
  /** Lets a schedule decide the learning rate: cohort_optimizer_set_lr_schedule(). */
  void set_lr_schedule(const std::string &name, Span<Attr> settings = {}) {
    const detail::CAttrs c(settings);
    check(cohort_optimizer_set_lr_schedule(get(), name.c_str(), c.keys.data(), c.values.data(), c.num));
  }
  /** The learning rate stays where it is. */
  void clear_lr_schedule() { check(cohort_optimizer_set_lr_schedule(get(), nullptr, nullptr, nullptr, 0)); }
  /** Takes the multipliers of a symbol's variables: cohort_optimizer_use_symbol(). */
  void use_symbol(const Symbol &symbol) { check(cohort_optimizer_use_symbol(get(), symbol.get())); }
  /** cohort_optimizer_set_mult(); a negative one is as if not set. */
  void set_mult(const std::string &param, double lr_mult, double wd_mult) {
    check(cohort_optimizer_set_mult(get(), param.c_str(), lr_mult, wd_mult));
  }
  /** cohort_optimizer_mult(). */
  Multipliers mult(const std::string &param) const {
    Multipliers found;
    check(cohort_optimizer_mult(get(), param.c_str(), &found.lr_mult, &found.wd_mult));
    return found;
  }
  /** Updates one parameter: cohort_optimizer_update(). */
  void update(const std::string &param, NDArray &weight, const NDArray &grad, size_t copy = 0) {
    check(cohort_optimizer_update(get(), param.c_str(), copy, weight.get(), grad.get()));
  }
  /** cohort_optimizer_loss_scale(). */
  LossScale loss_scale() const {
    LossScale found;
    check(cohort_optimizer_loss_scale(get(), &found.scale, &found.num_good, &found.num_skipped));
    return found;
  }
  /** cohort_optimizer_save_states(). */
  void save_states(const std::string &path) const { check(cohort_optimizer_save_states(get(), path.c_str())); }
  /** The bytes of such a file: cohort_optimizer_save_states_memory(). */
  std::string save_states_memory() const {
    return detail::written([&](void *out, size_t capacity, size_t *bytes) {
      return cohort_optimizer_save_states_memory(get(), out, capacity, bytes);
    });
  }
  /** cohort_optimizer_load_states(). */
  void load_states(const std::string &path) { check(cohort_optimizer_load_states(get(), path.c_str())); }
  /** cohort_optimizer_load_states_memory(). */
  void load_states_memory(std::string_view bytes) {
    check(cohort_optimizer_load_states_memory(get(), bytes.data(), bytes.size()));
  }
};

/** The numbers that a metric of the caller's adds in one update; the value is sum / num. */
struct MetricSum {
  double sum = 0;
  double num = 1;
};

/** A value of a metric; NaN if nothing was counted. */
struct MetricValue {
  std::string name;
  double value = 0;
};

/** A figure accumulated from labels and predictions. */
class Metric : public Handle<cohort_metric, cohort_metric_free> {
 public:
  using Handle::Handle;
  /** Computes what one update adds. */
  using Function = std::function<MetricSum(const std::vector<NDArray> &labels, const std::vector<NDArray> &preds)>;

  Metric() noexcept = default;
  /** Kinds and settings: cohort_metric_create(). */
  explicit Metric(const std::string &kind, Span<Attr> settings = {}) {
    const detail::CAttrs c(settings);
    *this = make<Metric>(cohort_metric_create, kind.c_str(), c.keys.data(), c.values.data(), c.num);
  }
  /** A metric of a callback: cohort_metric_create_custom(). */
  static Metric custom(const std::string &name, Function function, bool allow_extra_outputs = false) {
    detail::Closures closures;
    void *const user_data = detail::keep_closure(closures, std::move(function));
    Metric made = make<Metric>(cohort_metric_create_custom, name.c_str(), user_data ? call : nullptr, user_data,
                               cohort_bool{allow_extra_outputs});
    made.closures_ = std::move(closures);
    return made;
  }

  /** Appends a metric to a composite one: cohort_metric_add(). */
  void add(const Metric &child) {
    closures_.reserve(closures_.size() + child.closures_.size());
    check(cohort_metric_add(get(), child.get()));
    closures_.insert(closures_.end(), child.closures_.begin(), child.closures_.end());
  }
  /** cohort_metric_num_children(). */
  size_t num_children() const { return query<size_t>(cohort_metric_num_children, get()); }
  /** A handle on a child: cohort_metric_child(). */
  Metric child(size_t index) const {
    Metric made = make<Metric>(cohort_metric_child, get(), index);
    made.closures_ = closures_;
    return made;
  }
  /** Which labels and outputs it takes, all where none are named: cohort_metric_set_names(). */
  void set_names(Span<std::string> label_names, Span<std::string> output_names) {
    const detail::CStrings labels(label_names), outputs(output_names);
    check(cohort_metric_set_names(get(), label_names.empty() ? nullptr : labels.data(), labels.size(),
                                  output_names.empty() ? nullptr : outputs.data(), outputs.size()));
  }
  /** cohort_metric_update(). */
  void update(Span<NDArray> labels, Span<NDArray> preds) {
    check(cohort_metric_update(get(), detail::raw(labels).data(), labels.size(), detail::raw(preds).data(),
                               preds.size()));
  }
  /** cohort_metric_update_named(). */
  void update_named(const Arrays &labels, const Arrays &preds) {
    check(cohort_metric_update_named(get(), labels.get(), preds.get()));
  }
  /** Forgets everything: cohort_metric_reset(). */
  void reset() { check(cohort_metric_reset(get())); }
  /** Keeps what counts globally: cohort_metric_reset_local(). */
  void reset_local() { check(cohort_metric_reset_local(get())); }
  /** cohort_metric_num_values(). */
  size_t num_values() const { return query<size_t>(cohort_metric_num_values, get()); }
  /** A value since the last reset, or since the last full one: cohort_metric_value(). */
  MetricValue value(size_t index = 0, bool global = false) const {
    const char *name = nullptr;
    MetricValue found;
    check(cohort_metric_value(get(), index, global, &name, &found.value));
    found.name = name;
    return found;
  }
  /** All values. */
  std::vector<MetricValue> values(bool global = false) const {
    std::vector<MetricValue> all(num_values());
    for (size_t i = 0; i < all.size(); ++i) all[i] = value(i, global);
    return all;
  }
  /** The sum and the number behind a value: cohort_metric_counters(). */
  MetricSum counters(size_t index = 0, bool global = false) const {
    MetricSum found;
    check(cohort_metric_counters(get(), index, global, &found.sum, &found.num));
    return found;
  }

 private:
  static int32_t call(cohort_ndarray *const *labels, size_t num_labels, cohort_ndarray *const *preds, size_t num_preds,
                      double *out_sum, double *out_num, void *user_data) {
    const auto shared = [](cohort_ndarray *const *lent, size_t num) {
      std::vector<NDArray> arrays(num);
      for (size_t i = 0; i < num; ++i) arrays[i] = NDArray::share(lent[i]);
      return arrays;
    };
    const bool done = detail::run_closure<Function>(user_data, [&](Function &function) {
      const MetricSum added = function(shared(labels, num_labels), shared(preds, num_preds));
      *out_sum = added.sum;
      *out_num = added.num;
    });
    return done ? 0 : 1;
  }

  detail::Closures closures_;
};

/** A rule that fills parameters before training. */
class Initializer : public Handle<cohort_initializer, cohort_initializer_free> {
 public:
  using Handle::Handle;
  Initializer() noexcept = default;
  /** Names and settings: cohort_initializer_create(). */
  explicit Initializer(const std::string &name, Span<Attr> settings = {}, uint64_t seed = 0) {
    const detail::CAttrs c(settings);
    *this = make<Initializer>(cohort_initializer_create, name.c_str(), c.keys.data(), c.values.data(), c.num, seed);
  }

  /** Fills arrays by name, and by the attributes of a symbol's variables: cohort_initializer_apply(). */
  void apply(const Arrays &arrays, const Symbol &symbol = Symbol()) const {
    check(cohort_initializer_apply(get(), symbol.get(), arrays.get()));
  }
  /** Fills one array by this rule: cohort_initializer_fill(). */
  void fill(const std::string &name, NDArray &array) const {
    check(cohort_initializer_fill(get(), name.c_str(), array.get()));
  }
};

/** Parameters by name: arguments and auxiliary states. */
struct Params {
  Arrays arg{nullptr}, aux{nullptr};
};

/** A checkpoint in MXNet's two files. */
struct Checkpoint {
  Symbol symbol;
  Params params;

  /** cohort_checkpoint_load(); the parameters alone without with_symbol. */
  static Checkpoint load(const std::string &prefix, int32_t epoch, bool with_symbol = true) {
    return read(cohort_checkpoint_load, prefix, epoch, with_symbol);
  }
  /** The same with the arrays in a mapping of their file: cohort_checkpoint_map(). */
  static Checkpoint map(const std::string &prefix, int32_t epoch, bool with_symbol = true) {
    return read(cohort_checkpoint_map, prefix, epoch, with_symbol);
  }
  /** cohort_checkpoint_save(); an empty symbol is not written. */
  void save(const std::string &prefix, int32_t epoch) const { save(prefix, epoch, symbol, params); }
  static void save(const std::string &prefix, int32_t epoch, const Symbol &symbol, const Params &params) {
    check(cohort_checkpoint_save(prefix.c_str(), epoch, symbol.get(), params.arg.get(), params.aux.get()));
  }

 private:
  template <typename Function>
  static Checkpoint read(Function function, const std::string &prefix, int32_t epoch, bool with_symbol) {
    cohort_symbol *symbol = nullptr;
    cohort_arrays *arg = nullptr, *aux = nullptr;
    check(function(prefix.c_str(), epoch, with_symbol ? &symbol : nullptr, &arg, &aux));
    Checkpoint found;
    found.symbol.adopt(symbol);
    found.params.arg.adopt(arg);
    found.params.aux.adopt(aux);
    return found;
  }
};

}  // namespace abi0
}  // namespace cohort

#endif /* COHORT_CPP_TRAINING_HPP */
