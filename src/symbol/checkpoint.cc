// SPDX-License-Identifier: Apache-2.0
#include "symbol/checkpoint.hpp"

#include <cstdio>

#include "base/log.hpp"
#include "ndarray/params.hpp"

namespace cohort {
namespace {

std::string symbol_path(const std::string &prefix) { return prefix + "-symbol.json"; }

std::string params_path(const std::string &prefix, int epoch) {
  if (epoch < 0) throw Error(Code::kInvalidArgument, text("epoch: expected 0 or more, found ", epoch), "epoch");
  char number[16];
  std::snprintf(number, sizeof number, "%04d", epoch);
  return prefix + "-" + number + ".params";
}

void append(NamedArrays *all, const char *kind, const NamedArrays &arrays) {
  for (const auto &[name, array] : arrays) {
    if (name.empty() || !array) {
      throw Error(Code::kInvalidArgument,
                  text("checkpoint: expected a name and an array in each entry, found ",
                       name.empty() ? "one without a name" : "no array for '" + name + "'"),
                  name);
    }
    all->emplace_back(std::string(kind) + ":" + name, array);
  }
}

}  // namespace

void save_checkpoint(const std::string &prefix, int epoch, const Symbol *symbol, const NamedArrays &args,
                     const NamedArrays &aux) {
  const std::string path = params_path(prefix, epoch);
  NamedArrays all;
  append(&all, "arg", args);
  append(&all, "aux", aux);
  if (symbol) {
    const std::string json = symbol->to_json();
    write_file(symbol_path(prefix), json.data(), json.size());
  }
  save_params(path, all);
}

void load_checkpoint(const std::string &prefix, int epoch, bool map, Symbol *symbol, NamedArrays *args,
                     NamedArrays *aux) {
  const std::string path = params_path(prefix, epoch);
  Symbol graph;
  if (symbol) graph = Symbol::from_json(read_file(symbol_path(prefix)), symbol_path(prefix));
  NamedArrays loaded_args, loaded_aux;
  const NamedArrays all = map ? map_params(path) : load_params(path);
  if (all.empty()) log(LogLevel::kWarning, text(path, " holds no arrays"));
  for (const auto &[name, array] : all) {
    const size_t colon = name.find(':');
    if (colon == std::string::npos) {
      throw Error(Code::kFormat, text(path, ": expected names such as 'arg:", name, "', found '", name, "'"), path);
    }
    const std::string kind = name.substr(0, colon);
    if (kind == "arg") loaded_args.emplace_back(name.substr(colon + 1), array);
    if (kind == "aux") loaded_aux.emplace_back(name.substr(colon + 1), array);
  }
  if (symbol) *symbol = std::move(graph);
  *args = std::move(loaded_args);
  *aux = std::move(loaded_aux);
}

}  // namespace cohort
