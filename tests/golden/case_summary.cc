// SPDX-License-Identifier: Apache-2.0
#include "case_summary.hpp"

namespace golden {
namespace {

std::string joined(const std::vector<std::string> &texts) {
  std::string line;
  for (const std::string &text : texts) line += (line.empty() ? "" : " ") + text;
  return line;
}

std::string settings_text(const Value &settings) {
  std::string text;
  for (const std::string &key : settings.keys()) text += ' ' + key + '=' + settings.at(key).as_text();
  return text;
}

std::string scenario_summary(const Value &scenario) {
  return scenario.word("title", "") + " [" + joined(scenario.get("tags").as_texts()) + ']';
}

std::string operator_summary(const Value &description) {
  std::string text = description.at("op").as_text() + settings_text(description.at("attrs")) + " |";
  const Value &inputs = description.at("inputs");
  for (const std::string &name : inputs.keys()) {
    const Value &input = inputs.at(name);
    const std::string dtype = input.at("dtype").as_text();
    text += ' ' + name + shape_text(input.at("shape").as_integers()) + (dtype == "float32" ? "" : ':' + dtype);
  }
  const std::string note = description.word("note", "");
  return note.empty() ? text : text + " | " + note;
}

std::string model_summary(const Value &model) {
  const std::string modes = joined(model.at("modes").as_texts());
  std::string text = model.word("source", "") + " [" + (modes.empty() ? "shapes" : modes);
  if (model.find("batch_size")) text += ", batch " + std::to_string(model.at("batch_size").as_integer());
  if (model.find("num_param_elements"))
    text += ", " + std::to_string(model.at("num_param_elements").as_integer()) + " elements of parameters";
  return text + ']';
}

std::string optimizer_summary(const Value &description) {
  std::string text = description.at("optimizer").as_text() + settings_text(description.at("settings"));
  const Value &schedule = description.get("schedule");
  return schedule.is_null() ? text : text + " | schedule" + settings_text(schedule);
}

}  // namespace

std::string summary_of(const GoldenCase &golden_case) {
  switch (golden_case.kind) {
    case CaseKind::kScenario:
      return scenario_summary(read_json(golden_case.path + "/scenario.json"));
    case CaseKind::kOperator:
      return operator_summary(golden_case.family ? golden_case.family->description(golden_case.name_in_family())
                                                 : read_json(golden_case.path + "/case.json"));
    case CaseKind::kModel:
      return model_summary(read_json(golden_case.path + "/model.json"));
    case CaseKind::kOptimizer:
      return optimizer_summary(read_json(golden_case.path + "/optimizer.json"));
  }
  return "";
}

}  // namespace golden
