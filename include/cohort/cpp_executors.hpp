/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file cpp_executors.hpp
 * Executors: a network bound to arrays on one device; calibration. A part of cohort.hpp, which says what holds for all.
 */
#ifndef COHORT_CPP_EXECUTORS_HPP
#define COHORT_CPP_EXECUTORS_HPP

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cohort/cpp_symbols.hpp"

namespace cohort {
inline namespace abi0 {

class Executor;

/** The use of gradients: not given, one word for all, a word for each argument in order, or words by name. */
class GradReq {
 public:
  GradReq() = default;
  /** "null", "write" or "add" for all. */
  GradReq(std::string word) : word_(std::move(word)) {}
  GradReq(const char *word) : GradReq(std::string(word)) {}
  /** One for each argument in order. */
  GradReq(std::vector<std::string> words) : words_(std::move(words)), has_words_(true) {}
  /** By name of the argument. */
  GradReq(const std::map<std::string, std::string> &by_name) : has_words_(true), has_names_(true) {
    for (const auto &[name, word] : by_name) {
      names_.push_back(name);
      words_.push_back(word);
    }
  }

  const std::optional<std::string> &word() const { return word_; }
  const std::vector<std::string> &words() const { return words_; }
  const std::vector<std::string> &names() const { return names_; }
  bool has_words() const { return has_words_; }
  bool has_names() const { return has_names_; }

 private:
  std::optional<std::string> word_;
  std::vector<std::string> words_, names_;
  bool has_words_ = false, has_names_ = false;
};

/** Ranges of values, for inference in int8. */
class Calibration : public Handle<cohort_calibration, cohort_calibration_free> {
 public:
  using Handle::Handle;
  /** cohort_calibration_create(). */
  explicit Calibration(cohort_calibration_method method) : Handle(make<Handle>(cohort_calibration_create, method)) {}
  /** One that has found these ranges: cohort_calibration_create_from(). */
  static Calibration from(const Arrays &ranges) {
    return make<Calibration>(cohort_calibration_create_from, ranges.get());
  }

  /** Runs a forward pass and notes the values' ranges: cohort_calibration_observe(). */
  void observe(Executor &executor);
  /** The least and the largest number of a value: cohort_calibration_range(). */
  std::pair<double, double> range(const std::string &name) const {
    double low = 0, high = 0;
    check(cohort_calibration_range(get(), name.c_str(), &low, &high));
    return {low, high};
  }
  /** All ranges: cohort_calibration_ranges(). */
  Arrays ranges() const { return make<Arrays>(cohort_calibration_ranges, get()); }
};

/** Settings of an executor: cohort_executor_options, where each field is described. */
struct ExecutorOptions {
  std::map<std::string, Context> group2ctx;   // contexts of the nodes by `__ctx_group__`
  const Executor *shared_executor = nullptr;  // to share memory with
  int32_t num_threads = 0;
  uint64_t seed = 0;

  // From here to strict_dtypes: read by simple_bind alone.
  GradReq grad_req;
  std::vector<Context> arg_contexts, grad_contexts, aux_contexts;  // none, or one for each
  std::map<std::string, cohort_storage_type> storage_types;
  std::vector<std::string> shared_arg_names;
  Arrays *shared_data = nullptr;  // pool of input arrays by name
  bool strict_dtypes = false;

  cohort_dtype compute_dtype = COHORT_DTYPE_FLOAT32;
  std::vector<std::string> float32_names, narrow_names;
  const Calibration *calibration = nullptr;
  bool backward_once = false;
  bool tf32 = false;
  bool recompute = false;
};

/** Settings of a reshape: cohort_reshape_options. */
struct ReshapeOptions {
  bool partial_shaping = false;
  bool allow_up_sizing = false;
  std::optional<Context> context;            // nullopt: the executor's
  std::map<std::string, Context> group2ctx;  // none: the executor's
};

/** Sees an array while a pass runs; the array is a handle of its own and may be kept. */
using MonitorFunction = std::function<void(const std::string &name, const NDArray &array)>;

namespace detail {

// Keys of a map as C takes them, with the values in the same order.
template <typename Value, typename CValue = Value>
struct CMap {
  explicit CMap(const std::map<std::string, Value> &map) {
    for (const auto &[key, value] : map) {
      keys.push_back(key.c_str());
      values.push_back(value);
    }
  }
  std::vector<const char *> keys;
  std::vector<CValue> values;
};

struct CGradReq {
  explicit CGradReq(const GradReq &of) : grad_req(of), words(of.words()), names(of.names()) {}
  template <typename Options>
  void fill(Options &options) const {
    if (grad_req.word()) options.grad_req = grad_req.word()->c_str();
    if (!grad_req.has_words()) return;
    options.grad_req_list = words.data();
    options.grad_req_names = grad_req.has_names() ? names.data() : nullptr;
    options.num_grad_reqs = words.size();
  }
  const GradReq &grad_req;
  CStrings words, names;
};

// The C struct, with what it points to.
struct CExecutorOptions {
  CExecutorOptions(const ExecutorOptions &options, const cohort_executor *shared_executor)
      : ctx_groups(options.group2ctx),
        grad_req(options.grad_req),
        arg_contexts(c_contexts(options.arg_contexts)),
        grad_contexts(c_contexts(options.grad_contexts)),
        aux_contexts(c_contexts(options.aux_contexts)),
        storage(options.storage_types),
        shared_arg_names(options.shared_arg_names),
        float32_names(options.float32_names),
        narrow_names(options.narrow_names) {
    c.ctx_group_names = ctx_groups.keys.data();
    c.ctx_group_contexts = ctx_groups.values.data();
    c.num_ctx_groups = ctx_groups.keys.size();
    c.shared_executor = const_cast<cohort_executor *>(shared_executor);
    c.num_threads = options.num_threads;
    c.seed = options.seed;
    grad_req.fill(c);
    c.arg_contexts = arg_contexts.empty() ? nullptr : arg_contexts.data();
    c.grad_contexts = grad_contexts.empty() ? nullptr : grad_contexts.data();
    c.aux_contexts = aux_contexts.empty() ? nullptr : aux_contexts.data();
    c.storage_names = storage.keys.data();
    c.storage_types = storage.values.data();
    c.num_storage_types = storage.keys.size();
    c.shared_arg_names = shared_arg_names.data();
    c.num_shared_arg_names = shared_arg_names.size();
    c.shared_data = options.shared_data ? options.shared_data->get() : nullptr;
    c.strict_dtypes = options.strict_dtypes;
    c.compute_dtype = options.compute_dtype;
    c.float32_names = float32_names.data();
    c.num_float32_names = float32_names.size();
    c.narrow_names = narrow_names.data();
    c.num_narrow_names = narrow_names.size();
    c.calibration = options.calibration ? options.calibration->get() : nullptr;
    c.backward_once = options.backward_once;
    c.tf32 = options.tf32;
    c.recompute = options.recompute;
  }
  cohort_executor_options c = COHORT_EXECUTOR_OPTIONS_INIT;
  CMap<Context, cohort_context> ctx_groups;
  CGradReq grad_req;
  std::vector<cohort_context> arg_contexts, grad_contexts, aux_contexts;
  CMap<cohort_storage_type> storage;
  CStrings shared_arg_names, float32_names, narrow_names;
};

inline void call_monitor(const char *name, cohort_ndarray *array, void *user_data) {
  run_closure<MonitorFunction>(user_data, [&](MonitorFunction &function) { function(name, NDArray::share(array)); });
}

template <typename Object, typename Function>
void set_monitor(Object *object, Function c_function, Closures &kept, MonitorFunction callback, bool monitor_all) {
  Closures closures;
  void *const user_data = keep_closure(closures, std::move(callback));
  check(c_function(object, user_data ? call_monitor : nullptr, user_data, monitor_all));
  kept = std::move(closures);
}

}  // namespace detail

/** A symbol bound to arrays on its contexts. */
class Executor : public Handle<cohort_executor, cohort_executor_free> {
 public:
  using Handle::Handle;

  /**
   * Binds a symbol to given arrays: cohort_executor_bind().
   *
   * @param grads     None, or one for each argument, empty where there is to be no gradient.
   * @param grad_req  COHORT_GRAD_ constants, none, or one for each argument; none: COHORT_GRAD_WRITE.
   */
  static Executor bind(const Symbol &symbol, const Context &context, Span<NDArray> args, Span<NDArray> grads = {},
                       Span<cohort_grad_req> grad_req = {}, Span<NDArray> aux = {},
                       const ExecutorOptions &options = {}) {
    detail::check_length("grads", grads.size(), args.size());
    detail::check_length("grad_req", grad_req.size(), args.size());
    const detail::CExecutorOptions c(options, options.shared_executor ? options.shared_executor->get() : nullptr);
    return make<Executor>(cohort_executor_bind, symbol.get(), &context, detail::raw(args).data(), args.size(),
                          grads.empty() ? nullptr : detail::raw(grads).data(), grad_req.data(), detail::raw(aux).data(),
                          aux.size(), &c.c);
  }
  /** Binds a symbol to arrays made for it, all zeros: cohort_executor_simple_bind(). */
  static Executor simple_bind(const Symbol &symbol, const Context &context, const Descs &known,
                              const ExecutorOptions &options = {}) {
    const auto num = [&](cohort_symbol_list list) {
      return query<size_t>(cohort_symbol_num_names, symbol.get(), list);
    };
    detail::check_length("arg_contexts", options.arg_contexts.size(), num(COHORT_SYMBOL_ARGUMENTS));
    detail::check_length("grad_contexts", options.grad_contexts.size(), num(COHORT_SYMBOL_ARGUMENTS));
    detail::check_length("aux_contexts", options.aux_contexts.size(), num(COHORT_SYMBOL_AUX));
    const detail::CExecutorOptions c(options, options.shared_executor ? options.shared_executor->get() : nullptr);
    return make<Executor>(cohort_executor_simple_bind, symbol.get(), &context, known.get(), &c.c);
  }
  /** An executor for other shapes, of the same family: cohort_executor_reshape(). It takes the monitor over. */
  Executor reshape(const Descs &known, const ReshapeOptions &options = {}) const {
    const detail::CMap<Context, cohort_context> ctx_groups(options.group2ctx);
    cohort_reshape_options c = COHORT_RESHAPE_OPTIONS_INIT;
    c.partial_shaping = options.partial_shaping;
    c.allow_up_sizing = options.allow_up_sizing;
    c.context = options.context ? &*options.context : nullptr;
    c.ctx_group_names = ctx_groups.keys.data();
    c.ctx_group_contexts = ctx_groups.values.data();
    c.num_ctx_groups = ctx_groups.keys.size();
    Executor made = make<Executor>(cohort_executor_reshape, get(), known.get(), &c);
    made.closures_ = closures_;
    return made;
  }

  /** cohort_executor_symbol(). */
  Symbol symbol() const { return make<Symbol>(cohort_executor_symbol, get()); }
  /** The default context: cohort_executor_context(). */
  Context context() const { return query<cohort_context>(cohort_executor_context, get()); }
  /** The length of a list, COHORT_EXECUTOR_ARGS or another: cohort_executor_num_arrays(). */
  size_t num_arrays(cohort_executor_list list) const { return query<size_t>(cohort_executor_num_arrays, get(), list); }
  /** The name of an entry: cohort_executor_name(). */
  std::string name(cohort_executor_list list, size_t index) const {
    return query<const char *>(cohort_executor_name, get(), list, index);
  }
  /** A live array, empty for an argument without gradient: cohort_executor_array(). */
  NDArray array(cohort_executor_list list, size_t index) const {
    return make<NDArray>(cohort_executor_array, get(), list, index);
  }
  /** cohort_executor_array_named(). */
  NDArray array(cohort_executor_list list, const std::string &name) const {
    return make<NDArray>(cohort_executor_array_named, get(), list, name.c_str());
  }
  /** A whole list: cohort_executor_arrays(). */
  Arrays arrays(cohort_executor_list list) const { return make<Arrays>(cohort_executor_arrays, get(), list); }
  /** The outputs in the order of the heads. */
  std::vector<NDArray> outputs() const { return arrays(COHORT_EXECUTOR_OUTPUTS).list(); }
  /** Arguments by name. */
  std::unordered_map<std::string, NDArray> arg_map() const { return arrays(COHORT_EXECUTOR_ARGS).by_name(); }
  /** Gradients by the names of their arguments, of those that have one. */
  std::unordered_map<std::string, NDArray> grad_map() const { return arrays(COHORT_EXECUTOR_GRADS).by_name(); }
  /** Auxiliary states by name. */
  std::unordered_map<std::string, NDArray> aux_map() const { return arrays(COHORT_EXECUTOR_AUX).by_name(); }
  /** A COHORT_GRAD_ constant of an argument: cohort_executor_grad_req(). */
  cohort_grad_req grad_req(size_t index) const {
    return query<cohort_grad_req>(cohort_executor_grad_req, get(), index);
  }

  /** Copies arrays into arguments: cohort_executor_set_inputs(). */
  void set_inputs(const Arrays &inputs) { check(cohort_executor_set_inputs(get(), inputs.get())); }
  /** cohort_executor_copy_params_from(). */
  void copy_params_from(const Arrays &arg_params, const Arrays &aux_params = Arrays(nullptr),
                        bool allow_extra = false) {
    check(cohort_executor_copy_params_from(get(), arg_params.get(), aux_params.get(), allow_extra));
  }
  /** Queues a forward pass: cohort_executor_forward(). */
  void forward(bool is_train = false) { check(cohort_executor_forward(get(), is_train)); }
  /** Runs one step of a forward pass; returns how many nodes come after it: cohort_executor_partial_forward(). */
  int32_t partial_forward(bool is_train, int32_t step) {
    return query<int32_t>(cohort_executor_partial_forward, get(), cohort_bool{is_train}, step);
  }
  /** Queues a backward pass: cohort_executor_backward(). Head gradients may be empty where an output needs none. */
  void backward(Span<NDArray> head_grads = {}, bool is_train = true) {
    check(cohort_executor_backward(get(), detail::raw(head_grads).data(), head_grads.size(), is_train));
  }
  /** Waits for queued work: cohort_executor_wait(). */
  void wait() { check(cohort_executor_wait(get())); }
  /** Shows operators' outputs to a callback, none if it is empty: cohort_executor_set_monitor(). */
  void set_monitor(MonitorFunction callback, bool monitor_all = false) {
    detail::set_monitor(get(), cohort_executor_set_monitor, closures_, std::move(callback), monitor_all);
  }
  /** cohort_executor_random_state(). */
  std::string random_state() const {
    return detail::written([&](void *out, size_t capacity, size_t *bytes) {
      return cohort_executor_random_state(get(), out, capacity, bytes);
    });
  }
  /** cohort_executor_set_random_state(). */
  void set_random_state(std::string_view state) {
    check(cohort_executor_set_random_state(get(), state.data(), state.size()));
  }
  /** The plan as text: cohort_executor_debug_text(). */
  std::string debug_text() const { return query<const char *>(cohort_executor_debug_text, get()); }
  /** Writes the plan to a stream. */
  void print(std::ostream &out) const { out << debug_text(); }
  /** cohort_executor_memory(). */
  cohort_memory_info memory() const {
    cohort_memory_info info = COHORT_MEMORY_INFO_INIT;
    check(cohort_executor_memory(get(), &info));
    return info;
  }

 private:
  friend class Group;
  detail::Closures closures_;
};

inline void Calibration::observe(Executor &executor) { check(cohort_calibration_observe(get(), executor.get())); }

}  // namespace abi0
}  // namespace cohort

#endif /* COHORT_CPP_EXECUTORS_HPP */
