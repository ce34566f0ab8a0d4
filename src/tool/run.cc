// SPDX-License-Identifier: Apache-2.0
// cohort run: inference over arrays from files.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tool/network.hpp"
#include "tool/printing.hpp"
#include "tool/tool.hpp"
#include "tool/tracing.hpp"

namespace cohort::tool {
namespace {

using nlohmann::ordered_json;

// ---- inputs ---------------------------------------------------------------------------------------------------------

NDArray load_input(const std::string &name, const std::string &path) {
  const Arrays file = Arrays::load(path);
  const std::vector<std::string> names = file.names();
  size_t at = 0;
  if (names.size() != 1) {
    at = size_t(std::find(names.begin(), names.end(), name) - names.begin());
    if (at == names.size()) {
      throw Failure(path + ": there is no array '" + name + "' among its " + plural(names.size(), "array"));
    }
  }
  NDArray array = file.array(at);
  if (!array) throw Failure(path + ": its entry has no array");
  return array;
}

std::vector<NamedArray> load_inputs(const Arguments &arguments) {
  std::vector<NamedArray> inputs;
  for (const auto &[name, path] : arguments.pairs("--input")) inputs.push_back({name, load_input(name, path)});
  if (inputs.empty()) throw UsageError("--input NAME=FILE is missing");
  return inputs;
}

// Checks that every variable has values, except labels of losses, which inference does not read.
void check_complete(const Symbol &symbol, const std::vector<NamedArray> &inputs, const Params *params) {
  std::vector<std::string> given = symbol.names(COHORT_SYMBOL_LABELS), missing;
  for (const NamedArray &input : inputs) given.push_back(input.name);
  if (params) {
    for (const Arrays *list : {&params->arg, &params->aux}) {
      const std::vector<std::string> names = list->names();
      given.insert(given.end(), names.begin(), names.end());
    }
  }
  std::sort(given.begin(), given.end());
  const std::vector<std::string> variables = symbol.names(COHORT_SYMBOL_INPUTS);
  for (const NamedArray &input : inputs) {
    if (std::find(variables.begin(), variables.end(), input.name) == variables.end()) {
      throw Failure("the network has no input '" + input.name + "'");
    }
  }
  for (const std::string &name : variables) {
    if (!std::binary_search(given.begin(), given.end(), name)) missing.push_back(name);
  }
  if (missing.empty()) return;
  const size_t num = missing.size();
  if (num > 5) missing.resize(5), missing.push_back("...");
  throw Failure("no values are given for " + plural(num, "variable") + " (" + joined(missing, ", ") +
                "): --input or --params");
}

// Removes the shapes of variables that have values. Another shape than that of the values is a Failure.
GivenShapes without_given(GivenShapes known, const std::vector<NamedArray> &inputs, const Params *params) {
  std::map<std::string, Shape> given;
  for (const NamedArray &input : inputs) given[input.name] = input.array.shape();
  if (params) {
    for (const Arrays *list : {&params->arg, &params->aux}) {
      const std::vector<std::string> names = list->names();
      for (size_t i = 0; i < names.size(); ++i) given.emplace(names[i], list->array(i).shape());
    }
  }
  const auto has_values = [&](const std::pair<std::string, Shape> &shape) {
    const auto found = given.find(shape.first);
    if (found == given.end()) return false;
    if (found->second == shape.second) return true;
    throw Failure("--shape " + printable(shape.first) + ": its values have shape " + shape_text(found->second, "0") +
                  ", found " + shape_text(shape.second));
  };
  known.shapes.erase(std::remove_if(known.shapes.begin(), known.shapes.end(), has_values), known.shapes.end());
  return known;
}

// ---- running --------------------------------------------------------------------------------------------------------

// A network bound for one size of its inputs. Several contexts split the inputs along axis 0; a single one takes them
// whole. Parameters are used in the mapped file without a copy if possible.
class BoundNetwork {
 public:
  BoundNetwork(const Symbol &symbol, const std::vector<Context> &contexts, const std::vector<NamedArray> &inputs,
               const Params *params, const GivenShapes &given) {
    GivenShapes known = given;
    for (const NamedArray &input : inputs) known.shapes.emplace_back(input.name, input.array.shape());
    const Descs descs = make_descs(known, params, symbol);
    const std::string layout = contexts.size() == 1 ? "T" : "NCHW";
    const Descs types = symbol.infer_dtype(descs, true).args;
    Descs data, labels;
    for (const NamedArray &input : inputs) {
      data.add({input.name, input.array.shape(), types.at(input.name).dtype, layout});
    }
    for (const auto &[name, shape] : given.shapes) {
      labels.add({name, shape, COHORT_DTYPE_NONE, layout});
    }
    GroupOptions options;
    if (params) options.arg_params = &params->arg, options.aux_params = &params->aux;
    group_ = Group(symbol, contexts, data, labels, false, options);
  }

  // Returns copies of the outputs: the next pass does not change them.
  std::vector<NDArray> forward(const std::vector<NamedArray> &inputs) {
    std::vector<NDArray> outputs;
    std::vector<NDArray> data;
    for (const NamedArray &input : inputs) data.push_back(input.array);
    group_.forward(data, {}, false);
    const size_t num = group_.num_arrays(COHORT_GROUP_OUTPUTS);
    for (size_t i = 0; i < num; ++i) outputs.push_back(group_.output(i).copy(cpu()));
    return outputs;
  }

 private:
  Group group_;
};

int64_t rows_of(const std::vector<NamedArray> &inputs) {
  int64_t rows = -1;
  for (const NamedArray &input : inputs) {
    const Shape shape = input.array.shape();
    if (shape.empty()) throw Failure("input '" + input.name + "' has no axis to cut batches from");
    if (rows >= 0 && shape[0] != rows) {
      throw Failure("input '" + input.name + "' has " + std::to_string(shape[0]) + " rows, and '" + inputs[0].name +
                    "' has " + std::to_string(rows));
    }
    rows = shape[0];
  }
  return rows;
}

std::vector<NDArray> run_in_batches(const Symbol &symbol, const std::vector<Context> &contexts,
                                    const std::vector<NamedArray> &inputs, const Params *params,
                                    const GivenShapes &known, int64_t batch) {
  if (batch == 0) return BoundNetwork(symbol, contexts, inputs, params, known).forward(inputs);
  const int64_t rows = rows_of(inputs);
  std::vector<std::vector<NDArray>> parts;  // for each output, its batches
  std::optional<BoundNetwork> bound;
  int64_t bound_rows = 0;
  Progress progress("running", size_t((rows + batch - 1) / batch));
  for (int64_t begin = 0; begin < rows || parts.empty(); begin += batch) {
    const int64_t end = std::min(rows, begin + batch);
    std::vector<NamedArray> slice;
    for (const NamedArray &input : inputs) {
      slice.push_back({input.name, input.array.slice(begin, end)});
    }
    if (!bound || bound_rows != end - begin) {
      // The last batch may have fewer rows than there are devices.
      const size_t num = begin ? std::min(contexts.size(), size_t(end - begin)) : contexts.size();
      bound.emplace(symbol, std::vector<Context>(contexts.begin(), contexts.begin() + ptrdiff_t(num)), slice, params,
                    known);
    }
    bound_rows = end - begin;
    std::vector<NDArray> outputs = bound->forward(slice);
    parts.resize(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      outputs[i].wait();
      parts[i].push_back(std::move(outputs[i]));
    }
    progress.step();
  }
  std::vector<NDArray> joined_outputs;
  for (const std::vector<NDArray> &of_one : parts) joined_outputs.push_back(NDArray::concat(of_one, 0));
  return joined_outputs;
}

// Outputs of batches, and of the devices' shares, are joined row by row. That is wrong for an output that, for example,
// sums over rows: its shape differs from the inferred one.
void check_rows(const Symbol &symbol, const std::vector<NamedArray> &inputs, const Params *params, GivenShapes known,
                const std::vector<NDArray> &outputs) {
  for (const NamedArray &input : inputs) known.shapes.emplace_back(input.name, input.array.shape());
  const Descs whole = symbol.infer_shape(make_descs(known, params, symbol), true).outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ArrayInfo expected = value_at(whole, i), found = value_of(outputs[i], expected.name);
    if (!expected.known() || *expected.shape == *found.shape) continue;
    throw Failure("output '" + printable(expected.name) + "' of all rows has shape " + shape_text(expected.shape) +
                  ", and of their parts together " + shape_text(found.shape, "0") +
                  ": run it without --batch and with one --context");
  }
}

// ---- outputs --------------------------------------------------------------------------------------------------------

struct Output {
  ArrayInfo value;
  NDArray array;
  std::vector<double> numbers;
};

Output read(const std::string &name, NDArray array) {
  Output output{value_of(array, name), std::move(array), {}};
  output.numbers = output.array.read<double>();
  return output;
}

// The shortest decimal number that is the same float32: 0.1, not 0.100000001490116.
double rounded(double number, cohort_dtype dtype) {
  if (dtype == COHORT_DTYPE_FLOAT64 || !std::isfinite(number)) return number;
  char digits[64];
  const std::to_chars_result shortest = std::to_chars(digits, digits + sizeof digits, float(number));
  std::from_chars(digits, shortest.ptr, number);
  return number;
}

ordered_json numbers_json(const Output &output) {
  ordered_json list = ordered_json::array();
  const bool whole = output.value.dtype != COHORT_DTYPE_FLOAT16 && output.value.dtype != COHORT_DTYPE_FLOAT32 &&
                     output.value.dtype != COHORT_DTYPE_FLOAT64 && output.value.dtype != COHORT_DTYPE_BFLOAT16;
  if (whole) return output.array.read<int64_t>();  // a double cannot hold all int64 numbers
  for (const double number : output.numbers) list.push_back(rounded(number, output.value.dtype));
  return list;
}

// The first rows along the last axis, with the first numbers of each.
std::string numbers_text(const Output &output) {
  constexpr size_t kRows = 8, kColumns = 10;
  const Shape &shape = *output.value.shape;
  const size_t columns = shape.empty() ? 1 : size_t(shape.back());
  const size_t rows = columns ? output.numbers.size() / columns : 0;
  TextTable table(std::vector<bool>(std::min(columns, kColumns) + 1, true));
  for (size_t row = 0; row < std::min(rows, kRows); ++row) {
    std::vector<std::string> words;
    for (size_t i = 0; i < std::min(columns, kColumns); ++i)
      words.push_back(number_text("%.6g", output.numbers[row * columns + i]));
    words.push_back(columns > kColumns ? "..." : "");
    table.add(std::move(words));
  }
  return table.text() + (rows > kRows ? "... " + plural(rows - kRows, "more row") + "\n" : "");
}

std::vector<std::string> read_labels(const std::string &path) {
  std::vector<std::string> labels = split(read_text(path), '\n');
  for (std::string &label : labels) {
    if (!label.empty() && label.back() == '\r') label.pop_back();
  }
  if (!labels.empty() && labels.back().empty()) labels.pop_back();
  return labels;
}

// For each row of axis 0, the indices of the largest numbers, largest first; equal numbers in order of their indices.
std::vector<std::vector<size_t>> largest(const Output &output, size_t top) {
  const Shape &shape = *output.value.shape;
  if (shape.empty()) throw Failure("--top: output '" + output.value.name + "' is one number");
  const size_t rows = shape.size() == 1 ? 1 : size_t(shape[0]);
  const size_t columns = rows ? output.numbers.size() / rows : 0;
  std::vector<std::vector<size_t>> places(rows, std::vector<size_t>(columns));
  for (size_t row = 0; row < rows; ++row) {
    const double *numbers = output.numbers.data() + row * columns;
    std::iota(places[row].begin(), places[row].end(), size_t(0));
    const auto end = places[row].begin() + std::ptrdiff_t(std::min(top, columns));
    std::partial_sort(places[row].begin(), end, places[row].end(), [&](size_t a, size_t b) {
      if (std::isnan(numbers[a]) != std::isnan(numbers[b])) return std::isnan(numbers[b]);
      return numbers[a] != numbers[b] && !std::isnan(numbers[a]) ? numbers[a] > numbers[b] : a < b;
    });
    places[row].erase(end, places[row].end());
  }
  return places;
}

std::string label_of(const std::vector<std::string> &labels, size_t place) {
  return place < labels.size() ? labels[place] : "";
}

ordered_json top_json(const Output &output, size_t top, const std::vector<std::string> &labels) {
  ordered_json all = ordered_json::array();
  const auto rows = largest(output, top);
  const size_t columns = rows.empty() ? 0 : output.numbers.size() / rows.size();
  for (size_t row = 0; row < rows.size(); ++row) {
    ordered_json list = ordered_json::array();
    for (const size_t place : rows[row]) {
      list.push_back({{"class", place}, {"value", rounded(output.numbers[row * columns + place], output.value.dtype)}});
      if (!labels.empty()) list.back()["label"] = label_of(labels, place);
    }
    all.push_back(list);
  }
  return all;
}

std::string top_text(const Output &output, size_t top, const std::vector<std::string> &labels) {
  TextTable table({true, true, true, false});
  table.add({"row", "class", "value", labels.empty() ? "" : "label"});
  const auto rows = largest(output, top);
  const size_t columns = rows.empty() ? 0 : output.numbers.size() / rows.size();
  for (size_t row = 0; row < rows.size(); ++row) {
    table.line();
    for (const size_t place : rows[row]) {
      table.add({std::to_string(row), std::to_string(place), number_text("%.6g", output.numbers[row * columns + place]),
                 printable(label_of(labels, place))});
    }
  }
  return table.text();
}

void save(const std::string &path, const std::vector<Output> &outputs) {
  Arrays list;
  for (const Output &output : outputs) list.add(output.value.name, output.array);
  save_arrays(list, path);
}

void run(const Arguments &arguments) {
  const bool as_json = arguments.has("--json"), has_top = arguments.has("--top"),
             has_output = arguments.has("--output");
  const size_t top = size_t(arguments.number("--top", 5, 1, INT32_MAX));
  const int64_t batch = arguments.number("--batch", 0, 1, INT32_MAX);
  if (arguments.has("--labels") && !has_top) throw UsageError("--labels needs --top");
  const std::vector<Context> contexts = parse_contexts(arguments.one("--context", "cpu(0)"));
  GivenShapes known = known_from(arguments);
  const Symbol symbol = load_symbol(arguments.file());
  const std::vector<std::string> names = symbol.list_outputs();
  if (has_output) check_saving(arguments.one("--output"), names.size());
  const std::vector<NamedArray> inputs = load_inputs(arguments);
  std::optional<Params> params;
  if (arguments.has("--params")) params = load_params(arguments.one("--params"), symbol);
  const Params *const given = params ? &*params : nullptr;
  const std::vector<std::string> labels =
      has_top && arguments.has("--labels") ? read_labels(arguments.one("--labels")) : std::vector<std::string>();
  check_complete(symbol, inputs, given);
  known = without_given(std::move(known), inputs, given);

  Tracing tracing(arguments);
  std::vector<NDArray> arrays = run_in_batches(symbol, contexts, inputs, given, known, batch);
  if (batch || contexts.size() > 1) check_rows(symbol, inputs, given, known, arrays);
  std::vector<Output> outputs;
  for (size_t i = 0; i < arrays.size(); ++i) outputs.push_back(read(names[i], std::move(arrays[i])));
  const std::string totals = tracing.finish();
  ordered_json json;
  json["file"] = arguments.file();
  json["outputs"] = ordered_json::array();
  std::string text;
  for (const Output &output : outputs) {
    json["outputs"].push_back(to_json(output.value));
    if (!has_output && !has_top) json["outputs"].back()["values"] = numbers_json(output);
    text += printable(output.value.name) + " " + shape_text(output.value.shape, "0") + " " +
            dtype_text(output.value.dtype) + "\n";
    if (!has_output && !has_top) text += numbers_text(output);
  }
  if (has_top) {
    json["top"] = top_json(outputs[0], top, labels);
    text += top_text(outputs[0], top, labels);
  }
  if (has_output) {
    save(arguments.one("--output"), outputs);
    json["saved"] = arguments.one("--output");
    text += "saved in " + printable(arguments.one("--output")) + "\n";
  }
  if (as_json) {
    print(json);
  } else {
    print(text + totals);
  }
}

}  // namespace

Command run_command() {
  return {"run",
          "FILE",
          "runs a network over arrays from files, and shows or saves the outputs",
          "FILE is a symbol in JSON. Every variable except labels of losses needs values from --input or --params.\n",
          {kParamsOption,
           {"--input", "NAME=FILE", "values of an input: .npy, .npz or .params; NAME=FILE of others may follow",
            Option::kPairs},
           {"--shape", "NAME=N,..", "shape of a label that does not follow from the inputs", Option::kPairs},
           kDtypeOption,
           {"--output", "FILE", "save the outputs as .npy (one output), .npz or .params; -o is short for it"},
           {"--top", "K", "the K largest numbers in each row of the first output"},
           {"--labels", "FILE", "the names of the classes for --top: line 1 of the file is class 0"},
           {"--batch", "N", "run N rows at a time; default all at once"},
           {"--context", "CONTEXT,..", "devices to split the rows over, such as cpu(0),cpu(1); default cpu(0)"},
           kTraceOption,
           kJsonOption},
          run};
}

}  // namespace cohort::tool
