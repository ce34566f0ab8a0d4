// SPDX-License-Identifier: Apache-2.0
// Steps on symbols and slices, and helpers for names and descriptors.
#include "scenario.hpp"

namespace golden {
namespace {

Value symbol_info(Scenario &scenario, const Value &step) {
  const cohort_symbol *symbol = scenario.symbol(step.at("symbol").as_text());
  Value found = Value::object();
  found.set("arguments", Value::texts(symbol_names(symbol, COHORT_SYMBOL_ARGUMENTS)));
  found.set("aux", Value::texts(symbol_names(symbol, COHORT_SYMBOL_AUX)));
  found.set("outputs", Value::texts(symbol_names(symbol, COHORT_SYMBOL_OUTPUTS)));
  found.set("num_nodes", Value::integer(query<size_t>(cohort_symbol_num_nodes, symbol)));
  return found;
}

Value split_slices(Scenario &, const Value &step) {
  const std::vector<double> workload = step.at("workload").as_reals();
  const int32_t rounding =
      step.word("rounding", "half_even") == "half_up" ? COHORT_ROUNDING_HALF_UP : COHORT_ROUNDING_HALF_EVEN;
  std::vector<int64_t> begin(workload.size()), end(workload.size());
  check(cohort_split_slices(step.at("batch_size").as_integer(), workload.data(), workload.size(), rounding,
                            begin.data(), end.data()));
  Value slices = Value::list();
  for (size_t i = 0; i < workload.size(); ++i) slices.add(Value::integers({begin[i], end[i]}));
  Value found = Value::object();
  found.set("slices", slices);
  return found;
}

}  // namespace

std::vector<std::string> symbol_names(const cohort_symbol *symbol, int32_t list) {
  std::vector<std::string> names(query<size_t>(cohort_symbol_num_names, symbol, list));
  for (size_t i = 0; i < names.size(); ++i) names[i] = query<const char *>(cohort_symbol_name_at, symbol, list, i);
  return names;
}

Descs make_descs(const Value &list) {
  if (list.is_null()) return nullptr;
  Descs descs = make<Descs>(cohort_descs_create);
  for (const Value &desc : list.items()) {
    const std::vector<int64_t> shape = desc.at("shape").as_integers();
    const std::string dtype = desc.word("dtype", "float32");
    const std::string layout = desc.word("layout", "");
    check(cohort_descs_add(descs.get(), desc.at("name").as_text().c_str(), shape.data(),
                           static_cast<int32_t>(shape.size()), query<int32_t>(cohort_dtype_parse, dtype.c_str()),
                           desc.get("layout").is_null() ? nullptr : layout.c_str()));
  }
  return descs;
}

Descs known_descs(const Value &shapes, const Value &types) {
  Descs known = make<Descs>(cohort_descs_create);
  const auto dtype_of = [&](const std::string &name) {
    const Value *text = types.is_null() ? nullptr : types.find(name);
    return text ? query<int32_t>(cohort_dtype_parse, text->as_text().c_str()) : int32_t{COHORT_DTYPE_NONE};
  };
  if (!shapes.is_null()) {
    for (size_t i = 0; i < shapes.keys().size(); ++i) {
      const std::vector<int64_t> shape = shapes.items()[i].as_integers();
      check(cohort_descs_add(known.get(), shapes.keys()[i].c_str(), shape.data(), static_cast<int32_t>(shape.size()),
                             dtype_of(shapes.keys()[i]), nullptr));
    }
  }
  if (!types.is_null())
    for (const std::string &name : types.keys())
      if (shapes.is_null() || !shapes.find(name))
        check(cohort_descs_add(known.get(), name.c_str(), nullptr, COHORT_UNKNOWN_SHAPE, dtype_of(name), nullptr));
  return known;
}

void add_symbol_steps(StepTable &table) {
  table["symbol_info"] = symbol_info;
  table["split_slices"] = split_slices;
}

}  // namespace golden
