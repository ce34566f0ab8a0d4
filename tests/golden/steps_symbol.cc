// SPDX-License-Identifier: Apache-2.0
// Steps on symbols and slices, and helpers for names and descriptors.
#include "scenario.hpp"

namespace golden {
namespace {

Value symbol_info(Scenario &scenario, const Value &step) {
  const Symbol &symbol = scenario.symbol(step.at("symbol").as_text());
  Value found = Value::object();
  found.set("arguments", Value::texts(symbol.list_arguments()));
  found.set("aux", Value::texts(symbol.list_aux()));
  found.set("outputs", Value::texts(symbol.list_outputs()));
  found.set("num_nodes", Value::integer(symbol.num_nodes()));
  return found;
}

Value split_slices(Scenario &, const Value &step) {
  const std::vector<double> workload = step.at("workload").as_reals();
  const int32_t rounding =
      step.word("rounding", "half_even") == "half_up" ? COHORT_ROUNDING_HALF_UP : COHORT_ROUNDING_HALF_EVEN;
  Value slices = Value::list();
  for (const Slice &slice :
       cohort::split_slices(step.at("batch_size").as_integer(), workload, workload.size(), rounding))
    slices.add(Value::integers({slice.begin, slice.end}));
  Value found = Value::object();
  found.set("slices", slices);
  return found;
}

}  // namespace

Descs make_descs(const Value &list) {
  if (list.is_null()) return Descs(nullptr);
  Descs descs;
  for (const Value &desc : list.items()) {
    descs.add({desc.at("name").as_text(), desc.at("shape").as_integers(), dtype_parse(desc.word("dtype", "float32")),
               desc.get("layout").is_null() ? "NCHW" : desc.at("layout").as_text()});
  }
  return descs;
}

Descs known_descs(const Value &shapes, const Value &types) {
  Descs known;
  const auto dtype_of = [&](const std::string &name) {
    const Value *text = types.is_null() ? nullptr : types.find(name);
    return text ? dtype_parse(text->as_text()) : cohort_dtype{COHORT_DTYPE_NONE};
  };
  if (!shapes.is_null()) {
    for (size_t i = 0; i < shapes.keys().size(); ++i) {
      known.add({shapes.keys()[i], shapes.items()[i].as_integers(), dtype_of(shapes.keys()[i])});
    }
  }
  if (!types.is_null())
    for (const std::string &name : types.keys())
      if (shapes.is_null() || !shapes.find(name)) known.add(Desc::of_dtype(name, dtype_of(name)));
  return known;
}

void add_symbol_steps(StepTable &table) {
  table["symbol_info"] = symbol_info;
  table["split_slices"] = split_slices;
}

}  // namespace golden
