// SPDX-License-Identifier: Apache-2.0
#include "cohort/operator.h"

#include <algorithm>
#include <map>

#include "api/api.hpp"
#include "executor/invoke.hpp"
#include "op/op.hpp"

using namespace cohort;
using namespace cohort::api;

namespace {

// Names and aliases, sorted; the registry is complete once the library is loaded.
const std::vector<std::string> &operator_names() {
  static const std::vector<std::string> *const names = [] {
    auto *all = new std::vector<std::string>;
    for (const Op *op : list_ops()) {
      all->push_back(op->name);
      all->insert(all->end(), op->aliases.begin(), op->aliases.end());
    }
    std::sort(all->begin(), all->end());
    all->erase(std::unique(all->begin(), all->end()), all->end());
    return all;
  }();
  return *names;
}

// Names of outputs as an operator with default attributes has them, for reflection alone.
const std::vector<std::string> &output_names(const Op &op) {
  static std::mutex mutex;  // guards the map, whose entries stay
  static auto *const names = new std::map<const Op *, std::vector<std::string>>;
  std::lock_guard<std::mutex> lock(mutex);
  auto [entry, added] = names->try_emplace(&op);
  if (added) entry->second = op.output_names(Attrs(op.new_attrs()));
  return entry->second;
}

const Op &op_of(const char *op) { return get_op(to_text(op, "op")); }

}  // namespace

cohort_error *cohort_operator_num(size_t *out_num) {
  return guard([&] {
    require(out_num, "out_num");
    *out_num = operator_names().size();
  });
}

cohort_error *cohort_operator_name(size_t index, const char **out_name) {
  return guard([&] {
    require(out_name, "out_name");
    check_index(index, operator_names().size(), "index");
    *out_name = operator_names()[index].c_str();
  });
}

cohort_error *cohort_operator_info(const char *op, const char **out_canonical, const char **out_doc,
                                   size_t *out_num_attrs, size_t *out_num_inputs, size_t *out_num_outputs,
                                   const char **out_count_attr) {
  return guard([&] {
    const Op &found = op_of(op);
    const size_t num_outputs = output_names(found).size();
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

cohort_error *cohort_operator_output(const char *op, size_t index, const char **out_name) {
  return guard([&] {
    require(out_name, "out_name");
    const std::vector<std::string> &names = output_names(op_of(op));
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
    if (!num_outputs) require(out_outputs, "out_outputs");
    const std::string name = to_text(op, "op");
    const AttrMap attrs = to_attrs(keys, values, num_attrs);
    const std::vector<NDArray> sources = deref_all(inputs, num_inputs, "inputs");
    const std::vector<NDArray> targets = deref_all(outputs, num_outputs, "outputs");
    const cohort_invoke_options set = read_options(options, "options");
    Lent<cohort_arrays> results{NamedArrays()};  // first, so that nothing can fail when the work is done
    const std::vector<NDArray> made =
        invoke(name, attrs, sources, targets, to_context(set.context), to_bool(set.is_train, "is_train"), set.seed);
    if (!out_outputs) return;
    for (const NDArray &array : made) deref(results.get(), "outputs").emplace_back("", array);
    *out_outputs = results.release();
  });
}
