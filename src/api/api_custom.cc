// SPDX-License-Identifier: Apache-2.0
#include "cohort/custom.h"

#include <exception>
#include <set>

#include "api/objects.hpp"
#include "op/custom.hpp"

using namespace cohort;
using namespace cohort::api;

namespace {

// A node's attributes in the form that callbacks take.
struct AttrTexts {
  explicit AttrTexts(const AttrMap &attrs) {
    for (const auto &[key, value] : attrs) {
      keys.push_back(key.c_str());
      values.push_back(value.c_str());
    }
  }
  std::vector<const char *> keys, values;
};

void check_status(int32_t status, const char *callback, Code code) {
  if (status) throw Error(code, text("callback '", callback, "' returned ", status), callback);
}

// The callbacks registered under one name; nodes keep this object.
class HostType final : public CustomType, public std::enable_shared_from_this<HostType> {
 public:
  HostType(std::string name, const cohort_custom_op &callbacks)
      : op_type(std::move(name)), op(callbacks), end_([ended = callbacks.ended, user_data = callbacks.user_data] {
          if (ended) ended(user_data);
        }) {}
  void take() { end_.take(); }  // see HostRelease::take()
  std::shared_ptr<const CustomUse> use(const AttrMap &attrs) override;

  const std::string op_type;
  const cohort_custom_op op;

 private:
  HostRelease end_;
};

// Arrays of the library that the host sees while a callback runs.
class CallbackArrays {
 public:
  CallbackArrays(const Context &context, const std::vector<CustomArray> &arrays, const std::vector<std::string> &names)
      : lent_(made_of(context, arrays, names)) {}
  cohort_arrays *get() const { return lent_.get(); }
  // After the callback: waits for work that the host has queued on the arrays and takes them away from it. Stores the
  // first error of arrays that it should have written in *failure.
  void take_back(bool written, std::exception_ptr *failure) const {
    for (const auto &[name, array] : deref(lent_.get(), "arrays")) {
      if (!array) continue;
      try {
        if (written) array.wait();
      } catch (...) {
        if (!*failure) *failure = std::current_exception();
      }
      array.wait_to_write();
      array.revoke("the array was valid only during a callback, which has returned");
    }
  }

 private:
  static NamedArrays made_of(const Context &context, const std::vector<CustomArray> &arrays,
                             const std::vector<std::string> &names) {
    NamedArrays list;
    for (size_t i = 0; i < arrays.size(); ++i) {
      const CustomArray &array = arrays[i];
      NDArray made;
      if (array.wanted) {
        const size_t bytes = size_t(array.shape.size()) * dtype_size(array.dtype);
        made = NDArray::wrap(std::make_shared<Memory>(context, array.data, bytes, nullptr), array.shape, array.dtype);
      }
      list.emplace_back(i < names.size() ? names[i] : std::string(), std::move(made));
    }
    return list;
  }

  const ScopedHandle<cohort_arrays> lent_;
};

class HostOperator final : public CustomOperator {
 public:
  HostOperator(std::shared_ptr<const HostType> type, const CustomUse &use, const AttrMap &attrs, const Context &context)
      : type_(std::move(type)) {
    for (const InputField &input : use.inputs) (input.aux ? aux_names_ : input_names_).push_back(input.name);
    output_names_ = use.outputs;
    const cohort_custom_op &op = type_->op;
    if (!op.create) return;
    const AttrTexts texts(attrs);
    const cohort_context where = from_context(context);
    const auto state = std::make_shared<void *>(nullptr);
    release_ = std::make_unique<HostRelease>([keep = type_, state] {
      if (keep->op.release) keep->op.release(*state, keep->op.user_data);
    });
    check_status(
        op.create(texts.keys.data(), texts.values.data(), texts.keys.size(), &where, state.get(), op.user_data),
        "create", Code::kExecution);
    state_ = *state;
    release_->take();
  }

  void forward(const Call &call) override {
    const CallbackArrays inputs(call.context, call.inputs, input_names_), aux(call.context, call.aux, aux_names_),
        outputs(call.context, call.outputs, output_names_);
    const int32_t status =
        type_->op.forward(state_, inputs.get(), aux.get(), outputs.get(), call.is_train, type_->op.user_data);
    std::exception_ptr failure;
    for (const CallbackArrays *list : {&inputs, &aux, &outputs}) list->take_back(list != &inputs, &failure);
    check_status(status, "forward", Code::kExecution);
    if (failure) std::rethrow_exception(failure);
  }

  void backward(const Call &call) override {
    const CallbackArrays head_grads(call.context, call.head_grads, output_names_),
        inputs(call.context, call.inputs, input_names_), aux(call.context, call.aux, aux_names_),
        outputs(call.context, call.outputs, output_names_), gradients(call.context, call.gradients, input_names_);
    const int32_t status = type_->op.backward(state_, head_grads.get(), inputs.get(), aux.get(), outputs.get(),
                                              gradients.get(), type_->op.user_data);
    std::exception_ptr failure;
    for (const CallbackArrays *list : {&head_grads, &inputs, &aux, &outputs}) list->take_back(false, &failure);
    gradients.take_back(true, &failure);
    check_status(status, "backward", Code::kExecution);
    if (failure) std::rethrow_exception(failure);
  }

 private:
  const std::shared_ptr<const HostType> type_;
  std::vector<std::string> input_names_, aux_names_, output_names_;
  void *state_ = nullptr;
  std::unique_ptr<HostRelease> release_;
};

// One node with its attributes.
class HostUse final : public CustomUse {
 public:
  HostUse(std::shared_ptr<const HostType> type, const AttrMap &attrs) : type_(std::move(type)), attrs_(attrs) {
    const cohort_custom_op &op = type_->op;
    const AttrTexts texts(attrs_);
    const ScopedHandle<cohort_descs> args({}), aux({}), outs({});
    check_status(op.declare(texts.keys.data(), texts.values.data(), texts.keys.size(), args.get(), aux.get(),
                            outs.get(), op.user_data),
                 "declare", Code::kInvalidArgument);
    std::set<std::string> taken;
    const auto take = [&](const cohort_descs *list, const char *what, const auto &add) {
      for (const Desc &desc : deref(list, what)) {
        if (desc.name.empty()) throw Error(Code::kName, text(what, ": expected a name for each"), what);
        if (!taken.insert(desc.name).second)
          throw Error(Code::kName, text(what, ": two are named '", desc.name, "'"), desc.name);
        add(desc.name);
      }
    };
    take(args.get(), "inputs", [this](const std::string &name) { inputs.push_back({name, "", nullptr}); });
    if (inputs.empty()) throw Error(Code::kInvalidArgument, "inputs: expected at least one, found none", "inputs");
    take(aux.get(), "aux", [this](const std::string &name) { inputs.push_back({name, "", nullptr, true}); });
    num_aux = deref(aux.get(), "aux").size();
    taken.clear();
    take(outs.get(), "outputs", [this](const std::string &name) { outputs.push_back(name); });
    if (outputs.empty()) outputs.emplace_back("output");
    has_backward = op.backward != nullptr;
    reads_head_grads = !to_bool(op.ignores_head_grads, "ignores_head_grads");
    any_thread = to_bool(op.any_thread, "any_thread");
    if (num_aux > 0 && !op.infer_shape) {
      throw Error(Code::kInvalidArgument, "infer_shape: expected a callback, as there are auxiliary states, found NULL",
                  "infer_shape");
    }
  }

  void infer_shape(Shapes &in, Shapes &out) const override {
    if (!type_->op.infer_shape) return infer_same_shape(Attrs(), in, out);
    if (!in[0].known()) return;
    infer(
        type_->op.infer_shape, "infer_shape", &in, &out, [](const Desc &desc) { return unknown_from_zero(desc.shape); },
        [](Desc *desc, const Shape &shape) { desc->shape = shape; });
  }
  void infer_dtype(Dtypes &in, Dtypes &out) const override {
    if (!type_->op.infer_dtype) return infer_same_dtype(Attrs(), in, out);
    if (in[0] == Dtype::kNone) return;
    infer(
        type_->op.infer_dtype, "infer_dtype", &in, &out, [](const Desc &desc) { return desc.dtype; },
        [](Desc *desc, Dtype dtype) { desc->dtype = dtype; });
  }
  std::shared_ptr<CustomOperator> create(const Context &context) const override {
    return std::make_shared<HostOperator>(type_, *this, attrs_, context);
  }

 private:
  template <typename T, typename Read, typename Write>
  void infer(cohort_custom_infer_fn callback, const char *what, std::vector<T> *in, std::vector<T> *out, Read read,
             Write write) const {
    DescList given;
    for (size_t i = 0; i < num_args(); ++i) {
      given.push_back({inputs[i].name, Shape(), Dtype::kNone, ""});
      write(&given.back(), (*in)[i]);
    }
    const ScopedHandle<cohort_descs> known(std::move(given)), args({}), aux({}), outs({});
    const AttrTexts texts(attrs_);
    check_status(callback(texts.keys.data(), texts.values.data(), texts.keys.size(), known.get(), args.get(), aux.get(),
                          outs.get(), type_->op.user_data),
                 what, Code::kInvalidArgument);
    const auto take = [&](const cohort_descs *list, const char *name, T *first, size_t count, bool may_be_empty) {
      const DescList &found = deref(list, name);
      if (found.empty() && may_be_empty) return;
      if (found.size() != count) {
        throw Error(Code::kInvalidArgument, text(what, ", ", name, ": expected ", count, ", found ", found.size()),
                    name);
      }
      for (size_t i = 0; i < count; ++i) unify(first[i], read(found[i]), text(what, ", ", name).c_str());
    };
    take(args.get(), "inputs", in->data(), num_args(), true);
    take(aux.get(), "aux", in->data() + num_args(), num_aux, false);
    take(outs.get(), "outputs", out->data(), outputs.size(), false);
  }

  const std::shared_ptr<const HostType> type_;
  const AttrMap attrs_;
};

std::shared_ptr<const CustomUse> HostType::use(const AttrMap &attrs) {
  try {
    return std::make_shared<HostUse>(shared_from_this(), attrs);
  } catch (const Error &e) {
    throw Error(e.code(), text("custom operator '", op_type, "': ", e.what()), e.subject());
  }
}

}  // namespace

void cohort_custom_op_init(cohort_custom_op *op, size_t struct_size) { init_struct(op, struct_size); }

cohort_error *cohort_custom_register(const char *op_type, const cohort_custom_op *op) {
  return guard([&] {
    const std::string name = to_text(op_type, "op_type");
    if (name.empty()) throw Error(Code::kInvalidArgument, "op_type: expected a name, found \"\"", "op_type");
    require(op, "op");
    const cohort_custom_op set = read_options(op, "op");
    require(reinterpret_cast<const void *>(set.declare), "declare");
    require(reinterpret_cast<const void *>(set.forward), "forward");
    to_bool(set.ignores_head_grads, "ignores_head_grads");
    to_bool(set.any_thread, "any_thread");
    const auto type = std::make_shared<HostType>(name, set);
    add_custom_type(name, type);
    type->take();
  });
}

cohort_error *cohort_custom_unregister(const char *op_type) {
  return guard([&] { remove_custom_type(to_text(op_type, "op_type")); });
}
