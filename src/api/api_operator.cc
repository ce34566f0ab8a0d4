// SPDX-License-Identifier: Apache-2.0
#include "cohort/operator.h"

#include "api/api.hpp"
#include "base/small_array.hpp"
#include "executor/invoke.hpp"
#include "op/op_list.hpp"

using namespace cohort;
using namespace cohort::api;

namespace {

void check_texts(const char *const *texts, size_t count, const char *what) {
  require(texts, count, what);
  for (size_t i = 0; i < count; ++i) {
    if (!texts[i]) throw Error(Code::kInvalidArgument, text(what, "[", i, "]: expected text, found NULL"), what);
  }
}

// The arrays behind handles, in the form that invoke() takes; they are not copied.
class ArrayList {
 public:
  ArrayList(cohort_ndarray *const *arrays, size_t count, const char *what) : arrays_(arrays ? count : 0) {
    require(arrays, count, what);
    for (size_t i = 0; i < count; ++i) {
      if (!arrays[i]) throw Error(Code::kInvalidArgument, text(what, "[", i, "]: expected an array, found NULL"), what);
      arrays_[i] = &deref(arrays[i], what);
    }
  }
  const NDArray *const *data() const { return arrays_.data(); }

 private:
  SmallArray<const NDArray *, 8> arrays_;
};

const Op &op_of(const char *op) { return get_op(to_text(op, "op")); }

}  // namespace

cohort_error *cohort_operator_num(size_t *out_num) {
  return guard([&] {
    require(out_num, "out_num");
    *out_num = list_op_names().size();
  });
}

cohort_error *cohort_operator_name(size_t index, const char **out_name) {
  return guard([&] {
    require(out_name, "out_name");
    check_index(index, list_op_names().size(), "index");
    *out_name = list_op_names()[index].c_str();
  });
}

cohort_error *cohort_operator_info(const char *op, const char **out_canonical, const char **out_doc,
                                   size_t *out_num_attrs, size_t *out_num_inputs, size_t *out_num_outputs,
                                   const char **out_count_attr) {
  return guard([&] {
    const Op &found = op_of(op);
    const size_t num_outputs = default_output_names(found).size();
    write_if(out_canonical, found.name.c_str());
    write_if(out_doc, found.doc.c_str());
    write_if(out_num_attrs, found.attrs.size());
    write_if(out_num_inputs, found.inputs.size());
    write_if(out_num_outputs, num_outputs);
    write_if(out_count_attr, found.variadic.c_str());
  });
}

cohort_error *cohort_operator_attr(const char *op, size_t index, const char **out_name, const char **out_type,
                                   const char **out_default, const char **out_doc) {
  return guard([&] {
    const Op &found = op_of(op);
    check_index(index, found.attrs.size(), "index");
    const AttrField &field = found.attrs[index];
    write_if(out_name, field.name.c_str());
    write_if(out_type, field.type.c_str());
    write_if(out_default, field.required ? nullptr : field.default_text.c_str());
    write_if(out_doc, field.doc.c_str());
  });
}

cohort_error *cohort_operator_input(const char *op, size_t index, const char **out_name, const char **out_doc,
                                    int32_t *out_is_aux) {
  return guard([&] {
    const Op &found = op_of(op);
    check_index(index, found.inputs.size(), "index");
    const InputField &field = found.inputs[index];
    write_if(out_name, field.name.c_str());
    write_if(out_doc, field.doc.c_str());
    write_if(out_is_aux, field.aux);
  });
}

cohort_error *cohort_operator_attr_range(const char *op, size_t index, double *out_low, double *out_high) {
  return guard([&] {
    const Op &found = op_of(op);
    check_index(index, found.attrs.size(), "index");
    write_if(out_low, found.attrs[index].low);
    write_if(out_high, found.attrs[index].high);
  });
}

cohort_error *cohort_operator_input_gradient(const char *op, size_t index, cohort_bool *out_has_gradient) {
  return guard([&] {
    require(out_has_gradient, "out_has_gradient");
    const Op &found = op_of(op);
    check_index(index, found.inputs.size(), "index");
    *out_has_gradient = has_gradient(found, index);
  });
}

static_assert(int(Op::Precision::kOwn) == COHORT_PRECISION_OWN &&
              int(Op::Precision::kNarrow) == COHORT_PRECISION_NARROW &&
              int(Op::Precision::kFollows) == COHORT_PRECISION_FOLLOWS);

cohort_error *cohort_operator_precision(const char *op, cohort_precision *out_precision) {
  return guard([&] {
    require(out_precision, "out_precision");
    *out_precision = int32_t(op_of(op).precision);
  });
}

cohort_error *cohort_operator_output(const char *op, size_t index, const char **out_name) {
  return guard([&] {
    require(out_name, "out_name");
    const std::vector<std::string> &names = default_output_names(op_of(op));
    check_index(index, names.size(), "index");
    *out_name = names[index].c_str();
  });
}

void cohort_invoke_options_init(cohort_invoke_options *options, size_t struct_size) {
  init_struct(options, struct_size);
}

cohort_error *cohort_operator_invoke(const char *op, const char *const *keys, const char *const *values,
                                     size_t num_attrs, cohort_ndarray *const *inputs, size_t num_inputs,
                                     cohort_ndarray *const *outputs, size_t num_outputs,
                                     const cohort_invoke_options *options, cohort_arrays **out_outputs) {
  return guard([&] {
    require(op, "op");
    if (!num_outputs) require(out_outputs, "out_outputs");
    check_texts(keys, num_attrs, "keys");
    check_texts(values, num_attrs, "values");
    const ArrayList sources(inputs, num_inputs, "inputs"), targets(outputs, num_outputs, "outputs");
    const cohort_invoke_options set = read_options(options, "options");
    const Invocation call{op,
                          keys,
                          values,
                          num_attrs,
                          sources.data(),
                          num_inputs,
                          targets.data(),
                          num_outputs,
                          to_context(set.context),
                          to_bool(set.is_train, "is_train"),
                          set.seed};
    std::vector<NDArray> made;
    if (!out_outputs) {
      invoke(call, &made);
      return;
    }
    ScopedHandle<cohort_arrays> results{NamedArrays()};  // made first, so that little can fail once the work is queued
    invoke(call, &made);
    NamedArrays &list = deref(results.get(), "outputs");
    list.reserve(made.size());
    for (NDArray &array : made) list.emplace_back(std::string(), std::move(array));
    *out_outputs = results.release();
  });
}
