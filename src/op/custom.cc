// SPDX-License-Identifier: Apache-2.0
#include "op/custom.hpp"

#include <map>
#include <mutex>
#include <numeric>
#include <utility>

namespace cohort {
namespace {

struct Types {
  std::mutex mutex;  // guards the map
  std::map<std::string, std::shared_ptr<CustomType>> by_name;
};

Types &types() {
  static Types *const all = std::make_unique<Types>().release();  // outlives static objects
  return *all;
}

std::shared_ptr<CustomType> type_named(const std::string &op_type) {
  Types &all = types();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.by_name.find(op_type);
  if (found != all.by_name.end()) return found->second;
  std::string known;
  for (const auto &entry : all.by_name) known += (known.empty() ? "" : ", ") + entry.first;
  throw Error(Code::kName,
              text("op_type: no custom operator '", op_type,
                   "' is registered; registered are: ", known.empty() ? "none" : known),
              op_type);
}

// Null without attributes, as when reflection queries the operator.
const CustomUse *use_of(const CustomAttrs &a) { return a.use.get(); }

const std::vector<InputField> &inputs_of(const CustomAttrs &a) {
  static const std::vector<InputField> none;
  return use_of(a) ? use_of(a)->inputs : none;
}

Gradient gradient_of_custom(const CustomAttrs &a) {
  if (!a.use || !a.use->has_backward) return Gradient();
  const CustomUse &use = *a.use;
  std::vector<int> of(use.num_args()), inputs(use.inputs.size()), outputs(use.outputs.size());
  std::iota(of.begin(), of.end(), 0);
  std::iota(inputs.begin(), inputs.end(), 0);
  std::iota(outputs.begin(), outputs.end(), 0);
  Gradient gradient = Gradient::by_kernel(of, inputs, outputs).beside_forward();
  gradient.head_grads = use.reads_head_grads;
  return gradient;
}

COHORT_OPERATOR(Custom, CustomAttrs)
    .alias("_npi_Custom")
    .doc("An operator that the host has registered under the name op_type; all other attributes are passed to it.")
    .required(&CustomAttrs::op_type, "op_type", "The registered name of the operator.")
    .other_attrs([](CustomAttrs &a, const std::string &key, const std::string &value) { a.others[key] = value; })
    .check([](CustomAttrs &a) { a.use = type_named(a.op_type)->use(a.others); })
    .input("data", "Inputs, then auxiliary states, named by the operator.")
    .own_inputs(inputs_of)
    .outputs([](const CustomAttrs &a) { return a.use ? int(a.use->outputs.size()) : 1; })
    .output_names([](const CustomAttrs &a) { return a.use ? a.use->outputs : std::vector<std::string>{"output"}; })
    .infer_shape([](const CustomAttrs &a, Shapes &in, Shapes &out) { a.use->infer_shape(in, out); })
    .infer_dtype([](const CustomAttrs &a, Dtypes &in, Dtypes &out) { a.use->infer_dtype(in, out); })
    .gradient(gradient_of_custom)
    .loss()
    .stateful();

}  // namespace

void add_custom_type(const std::string &op_type, std::shared_ptr<CustomType> type) {
  Types &all = types();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (all.by_name.emplace(op_type, std::move(type)).second) return;
  throw Error(Code::kName, text("op_type: a custom operator '", op_type, "' is registered already"), op_type);
}

void remove_custom_type(const std::string &op_type) {
  std::shared_ptr<CustomType> last;  // destroyed outside the lock
  Types &all = types();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.by_name.find(op_type);
  if (found == all.by_name.end()) {
    throw Error(Code::kName, text("op_type: no custom operator '", op_type, "' is registered"), op_type);
  }
  last = std::move(found->second);
  all.by_name.erase(found);
}

}  // namespace cohort
