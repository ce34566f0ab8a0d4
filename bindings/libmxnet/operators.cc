// SPDX-License-Identifier: Apache-2.0
#include "operators.hpp"

#include <algorithm>
#include <unordered_map>

#include "mxnet/c_api.h"

namespace cohort_mxnet {

namespace {

// Names without which MXNet's Python frontend cannot be imported: it attaches documentation to them.
constexpr const char *kListedNames[] = {"_np__random_shuffle",
                                        "_np_all",
                                        "_np_amax",
                                        "_np_amin",
                                        "_np_any",
                                        "_np_atleast_1d",
                                        "_np_atleast_2d",
                                        "_np_atleast_3d",
                                        "_np_copy",
                                        "_np_cumsum",
                                        "_np_diag",
                                        "_np_diagflat",
                                        "_np_diagonal",
                                        "_np_dot",
                                        "_np_max",
                                        "_np_min",
                                        "_np_moveaxis",
                                        "_np_prod",
                                        "_np_product",
                                        "_np_repeat",
                                        "_np_reshape",
                                        "_np_roll",
                                        "_np_sometrue",
                                        "_np_squeeze",
                                        "_np_sum",
                                        "_np_trace",
                                        "_np_transpose",
                                        "_npi_Custom",
                                        "_npx_constraint_check",
                                        "_npx_nonzero",
                                        "_npx_reshape"};

std::vector<const char *> pointers_to(const std::vector<std::string> &texts) {
  std::vector<const char *> pointers;
  for (const std::string &text : texts) pointers.push_back(text.c_str());
  pointers.push_back(nullptr);
  return pointers;
}

void add_arg(Operator &op, std::string name, std::string type, std::string doc) {
  op.arg_names.push_back(std::move(name));
  op.arg_types.push_back(std::move(type));
  op.arg_docs.push_back(std::move(doc));
}

Operator describe(const std::string &name) {
  const cohort::OperatorInfo info = cohort::operator_info(name);
  Operator op;
  op.name = name;
  op.canonical = info.canonical;
  op.doc = info.doc;
  // Cohort's own attribute for operators whose inputs MXNet does not count.
  op.count_attr = info.count_attr == "__num_inputs__" ? "" : info.count_attr;
  op.is_variadic = !info.count_attr.empty() || info.canonical == "Custom" || info.canonical == "_npi_Custom";
  op.num_inputs = info.inputs.size();
  const size_t num_listed = op.is_variadic ? std::min<size_t>(1, info.inputs.size()) : info.inputs.size();
  for (size_t i = 0; i < num_listed; ++i)
    add_arg(op, info.inputs[i].name, op.is_variadic ? "NDArray-or-Symbol[]" : "NDArray-or-Symbol", info.inputs[i].doc);
  for (const cohort::OperatorAttr &attr : info.attrs) {
    op.takes_context |= attr.name == "ctx";
    op.infers_dtype |= attr.name == "dtype" && attr.default_value == "'None'" && info.inputs.empty();
    add_arg(op, attr.name,
            attr.type + (attr.default_value ? ", optional, default=" + *attr.default_value : ", required"), attr.doc);
  }
  return op;
}

struct Registry {
  std::vector<Operator> operators;  // sorted by name
  std::vector<const char *> names;
  std::vector<void *> creators;
  std::unordered_map<std::string_view, const Operator *> by_name;

  Registry() {
    std::vector<std::string> all = cohort::operator_names();
    const size_t num_known = all.size();
    for (const char *name : kListedNames)
      if (!std::binary_search(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(num_known), name))
        all.emplace_back(name);
    for (size_t i = 0; i < all.size(); ++i) {
      if (i < num_known) {
        operators.push_back(describe(all[i]));
      } else {
        Operator op;
        op.name = op.canonical = all[i];
        op.doc = "Not implemented in Cohort.";
        op.is_known = false;
        operators.push_back(std::move(op));
      }
    }
    std::sort(operators.begin(), operators.end(), [](const Operator &a, const Operator &b) { return a.name < b.name; });
    for (Operator &op : operators) {
      op.arg_name_pointers = pointers_to(op.arg_names);
      op.arg_type_pointers = pointers_to(op.arg_types);
      op.arg_doc_pointers = pointers_to(op.arg_docs);
      names.push_back(op.name.c_str());
      creators.push_back(&op);
      by_name.emplace(op.name, &op);
    }
  }
};

// Never destroyed: what it hands out lives as long as the process.
Registry &registry() {
  static Registry &all = *std::make_unique<Registry>().release();
  return all;
}

}  // namespace

const std::vector<Operator> &operators() { return registry().operators; }

const Operator &operator_of(const void *creator) {
  require(creator, "the operator");
  const std::vector<Operator> &all = operators();
  const auto *const op = static_cast<const Operator *>(creator);
  const auto address = reinterpret_cast<uintptr_t>(op), first = reinterpret_cast<uintptr_t>(all.data());
  if (address < first || address >= first + all.size() * sizeof(Operator) || (address - first) % sizeof(Operator) != 0)
    refuse_handle(creator, "an operator", false);
  return *op;
}

const Operator *find_operator(std::string_view name) {
  const auto found = registry().by_name.find(name);
  return found == registry().by_name.end() ? nullptr : found->second;
}

}  // namespace cohort_mxnet

using namespace cohort_mxnet;

extern "C" {

int MXListAllOpNames(uint32_t *out_size, const char ***out_array) {
  return guarded([&] {
    required(out_size, "out_size") = static_cast<uint32_t>(registry().names.size());
    required(out_array, "out_array") = registry().names.data();
  });
}

int NNListAllOpNames(nn_uint *out_size, const char ***out_array) { return MXListAllOpNames(out_size, out_array); }

int NNGetOpHandle(const char *op_name, OpHandle *op_out) {
  return guarded([&] {
    require(op_name, "op_name");
    const Operator *const op = find_operator(op_name);
    if (!op) fail(std::string("there is no operator '") + op_name + "'");
    required(op_out, "op_out") = const_cast<Operator *>(op);
  });
}

int MXSymbolListAtomicSymbolCreators(uint32_t *out_size, AtomicSymbolCreator **out_array) {
  return guarded([&] {
    required(out_size, "out_size") = static_cast<uint32_t>(registry().creators.size());
    required(out_array, "out_array") = registry().creators.data();
  });
}

int NNListUniqueOps(nn_uint *out_size, OpHandle **out_array) {
  return MXSymbolListAtomicSymbolCreators(out_size, out_array);
}

int MXSymbolGetAtomicSymbolName(AtomicSymbolCreator creator, const char **name) {
  return guarded([&] { required(name, "name") = operator_of(creator).name.c_str(); });
}

int MXSymbolGetAtomicSymbolInfo(AtomicSymbolCreator creator, const char **name, const char **description,
                                uint32_t *num_args, const char ***arg_names, const char ***arg_type_infos,
                                const char ***arg_descriptions, const char **key_var_num_args,
                                const char **return_type) {
  return guarded([&] {
    const Operator &op = operator_of(creator);
    if (name) *name = op.name.c_str();
    if (description) *description = op.doc.c_str();
    if (num_args) *num_args = static_cast<uint32_t>(op.arg_names.size());
    if (arg_names) *arg_names = const_cast<const char **>(op.arg_name_pointers.data());
    if (arg_type_infos) *arg_type_infos = const_cast<const char **>(op.arg_type_pointers.data());
    if (arg_descriptions) *arg_descriptions = const_cast<const char **>(op.arg_doc_pointers.data());
    if (key_var_num_args) *key_var_num_args = op.count_attr.c_str();
    if (return_type) *return_type = "NDArray-or-Symbol";
  });
}

int NNGetOpInfo(OpHandle op, const char **real_name, const char **description, nn_uint *num_doc_args,
                const char ***arg_names, const char ***arg_type_infos, const char ***arg_descriptions,
                const char **return_type) {
  return MXSymbolGetAtomicSymbolInfo(op, real_name, description, num_doc_args, arg_names, arg_type_infos,
                                     arg_descriptions, nullptr, return_type);
}

// ---- older registries: there is nothing in them
// ---------------------------------------------------------------------------

int MXListFunctions(uint32_t *out_size, FunctionHandle **out_array) {
  return guarded([&] {
    static FunctionHandle none[1] = {nullptr};
    required(out_size, "out_size") = 0;
    required(out_array, "out_array") = none;
  });
}

int MXGetFunction(const char *name, FunctionHandle *out) {
  return guarded([&] {
    require(name, "name"), require(out, "out");
    fail(std::string("there is no function '") + name + "': operators are found by NNGetOpHandle()");
  });
}

int MXNetFuncListGlobalNames(int *out_size, const char ***out_array) {
  return guarded([&] {
    static const char *none[1] = {nullptr};
    required(out_size, "out_size") = 0;
    required(out_array, "out_array") = none;
  });
}

int MXNetFuncGetGlobal(const char *name, MXNetFunctionHandle *out) {
  return guarded([&] {
    require(name, "name");
    required(out, "out") = nullptr;  // the answer for a function that does not exist
  });
}

}  // extern "C"
