// SPDX-License-Identifier: Apache-2.0
#include "cohort/checkpoint.h"

#include "api/objects.hpp"
#include "symbol/checkpoint.hpp"

using namespace cohort;
using namespace cohort::api;

cohort_error *cohort_checkpoint_save(const char *prefix, int32_t epoch, const cohort_symbol *symbol,
                                     const cohort_arrays *arg_params, const cohort_arrays *aux_params) {
  return guard([&] {
    save_checkpoint(to_text(prefix, "prefix"), epoch, symbol ? &deref(symbol, "symbol").symbol : nullptr,
                    deref(arg_params, "arg_params"), aux_params ? deref(aux_params, "aux_params") : NamedArrays());
  });
}

namespace {

void load(const char *prefix, int32_t epoch, bool map, cohort_symbol **out_symbol, cohort_arrays **out_arg_params,
          cohort_arrays **out_aux_params) {
  require(out_arg_params, "out_arg_params");
  require(out_aux_params, "out_aux_params");
  Symbol graph;
  NamedArrays args, aux;
  load_checkpoint(to_text(prefix, "prefix"), epoch, map, out_symbol ? &graph : nullptr, &args, &aux);
  ScopedHandle<cohort_symbol> symbol({std::move(graph)});
  ScopedHandle<cohort_arrays> arg_params(std::move(args)), aux_params(std::move(aux));
  if (out_symbol) *out_symbol = symbol.release();
  *out_arg_params = arg_params.release();
  *out_aux_params = aux_params.release();
}

}  // namespace

cohort_error *cohort_checkpoint_load(const char *prefix, int32_t epoch, cohort_symbol **out_symbol,
                                     cohort_arrays **out_arg_params, cohort_arrays **out_aux_params) {
  return guard([&] { load(prefix, epoch, false, out_symbol, out_arg_params, out_aux_params); });
}

cohort_error *cohort_checkpoint_map(const char *prefix, int32_t epoch, cohort_symbol **out_symbol,
                                    cohort_arrays **out_arg_params, cohort_arrays **out_aux_params) {
  return guard([&] { load(prefix, epoch, true, out_symbol, out_arg_params, out_aux_params); });
}
