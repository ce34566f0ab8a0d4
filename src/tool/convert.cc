// SPDX-License-Identifier: Apache-2.0
// cohort convert: converts older symbols and arrays to the formats of MXNet 1.9, and arrays from and to NumPy's files.
#include <nlohmann/json.hpp>
#include <set>

#include "tool/network.hpp"
#include "tool/printing.hpp"
#include "tool/tool.hpp"

namespace cohort::tool {
namespace {

using nlohmann::ordered_json;

void convert_symbol(const std::string &path, const std::string &out, bool as_json) {
  if (out == "-" && as_json) throw UsageError("--json needs --output FILE");
  const Symbol symbol = load_symbol(path);
  if (out == "-") return print(symbol.to_json() + "\n");
  symbol.save(out);
  const size_t num_nodes = symbol.num_nodes();
  if (as_json) {
    print(ordered_json{{"file", path}, {"saved", out}, {"kind", "symbol"}, {"nodes", num_nodes}});
  } else {
    print(printable(out) + ": a symbol of " + plural(num_nodes, "node") + "\n");
  }
}

// Names the arrays `arg:NAME` and `aux:NAME` as in a checkpoint of the symbol.
Arrays as_checkpoint(const std::string &path, const Symbol &symbol) {
  const Params params = load_params(path, symbol);
  Arrays all;
  const std::pair<const char *, const Arrays *> lists[] = {{"arg:", &params.arg}, {"aux:", &params.aux}};
  for (const auto &[prefix, list] : lists) {
    for (size_t i = 0; i < list->num(); ++i) all.add(prefix + list->name(i), list->array(i));
  }
  return all;
}

void convert_arrays(const Arguments &arguments, const std::string &out, bool as_json) {
  const std::string &path = arguments.file();
  check_saving(out, 1);  // at least the name
  const Arrays arrays =
      arguments.has("--symbol") ? as_checkpoint(path, load_symbol(arguments.one("--symbol"))) : Arrays::load(path);
  save_arrays(arrays, out);
  const size_t num = arrays.num();
  if (as_json) {
    print(ordered_json{{"file", path}, {"saved", out}, {"kind", "arrays"}, {"arrays", num}});
  } else {
    print(printable(out) + ": " + plural(num, "array") + "\n");
  }
}

void convert(const Arguments &arguments) {
  const std::string out = arguments.one("--output");
  if (out.empty()) throw UsageError("--output FILE is missing");
  const bool symbol = is_json(arguments.file());
  if (symbol && arguments.has("--symbol")) throw UsageError("--symbol is only for a file of arrays");
  if (symbol) {
    convert_symbol(arguments.file(), out, arguments.has("--json"));
  } else {
    convert_arrays(arguments, out, arguments.has("--json"));
  }
}

}  // namespace

Command convert_command() {
  return {"convert",
          "FILE",
          "converts older symbols and parameters to the formats of MXNet 1.9",
          "FILE is a symbol in JSON as MXNet 0.8 to 1.9 wrote it, or arrays: .params of any version, .npy\n"
          "or .npz. The end of the output's name says how arrays are written. The output appears whole\n"
          "or not at all.\n",
          {{"--output", "FILE",
            "the file to write: for arrays .params, .npy (one array) or .npz; for a symbol any name, or '-' for\n"
            "standard output; -o is short for it"},
           {"--symbol", "FILE", "name the arrays arg:NAME and aux:NAME as in a checkpoint of this symbol"},
           kJsonOption},
          convert};
}

}  // namespace cohort::tool
