// SPDX-License-Identifier: Apache-2.0
#include "cohort/optimizer.h"

#include "api/objects.hpp"
#include "ndarray/params.hpp"

using namespace cohort;
using namespace cohort::api;

namespace {

Optimizer &optimizer_of(const cohort_optimizer *optimizer) { return *deref(optimizer, "optimizer").optimizer; }

}  // namespace

cohort_error *cohort_optimizer_create(const char *name, const char *const *keys, const char *const *values,
                                      size_t num_attrs, cohort_optimizer **out_optimizer) {
  return guard([&] {
    require(out_optimizer, "out_optimizer");
    *out_optimizer =
        make_handle<cohort_optimizer>({Optimizer::create(to_text(name, "name"), to_attrs(keys, values, num_attrs))});
  });
}

void cohort_optimizer_free(cohort_optimizer *optimizer) {
  const CallScope inside;
  free_handle(optimizer);
}

cohort_error *cohort_optimizer_get(const cohort_optimizer *optimizer, const char *key, double *out_value) {
  return guard([&] {
    require(out_value, "out_value");
    *out_value = optimizer_of(optimizer).get(to_text(key, "key"));
  });
}

cohort_error *cohort_optimizer_set(cohort_optimizer *optimizer, const char *key, double value) {
  return guard([&] { optimizer_of(optimizer).set(to_text(key, "key"), value); });
}

cohort_error *cohort_optimizer_set_lr_schedule(cohort_optimizer *optimizer, const char *name, const char *const *keys,
                                               const char *const *values, size_t num_attrs) {
  return guard(
      [&] { optimizer_of(optimizer).set_lr_schedule(to_text_or_empty(name), to_attrs(keys, values, num_attrs)); });
}

cohort_error *cohort_optimizer_use_symbol(cohort_optimizer *optimizer, const cohort_symbol *symbol) {
  return guard([&] { optimizer_of(optimizer).use_symbol(deref(symbol, "symbol").symbol); });
}

cohort_error *cohort_optimizer_set_mult(cohort_optimizer *optimizer, const char *param, double lr_mult,
                                        double wd_mult) {
  return guard([&] { optimizer_of(optimizer).set_mult(to_text(param, "param"), lr_mult, wd_mult); });
}

cohort_error *cohort_optimizer_mult(const cohort_optimizer *optimizer, const char *param, double *out_lr_mult,
                                    double *out_wd_mult) {
  return guard([&] {
    const Optimizer &source = optimizer_of(optimizer);
    const std::string name = to_text(param, "param");
    const double lr_mult = source.lr_mult(name), wd_mult = source.wd_mult(name);
    write_if(out_lr_mult, lr_mult);
    write_if(out_wd_mult, wd_mult);
  });
}

cohort_error *cohort_optimizer_update(cohort_optimizer *optimizer, const char *param, size_t copy,
                                      cohort_ndarray *weight, cohort_ndarray *grad) {
  return guard([&] {
    optimizer_of(optimizer).update(to_text(param, "param"), copy, deref(weight, "weight"), deref(grad, "grad"));
  });
}

cohort_error *cohort_optimizer_loss_scale(const cohort_optimizer *optimizer, double *out_scale, int32_t *out_num_good,
                                          uint64_t *out_num_skipped) {
  return guard([&] {
    const LossScaleState none, *const kept = optimizer_of(optimizer).loss_scale(), &state = kept ? *kept : none;
    write_if(out_scale, state.value);
    write_if(out_num_good, int32_t(state.num_good));
    write_if(out_num_skipped, state.num_skipped);
  });
}

cohort_error *cohort_optimizer_save_states(const cohort_optimizer *optimizer, const char *path) {
  return guard([&] {
    const std::string bytes = optimizer_of(optimizer).save_states();
    write_file(to_text(path, "path"), bytes.data(), bytes.size());
  });
}

cohort_error *cohort_optimizer_save_states_memory(const cohort_optimizer *optimizer, void *out_data, size_t capacity,
                                                  size_t *out_bytes) {
  return guard([&] {
    const std::string bytes = optimizer_of(optimizer).save_states();
    write_bytes(bytes.data(), bytes.size(), out_data, capacity, out_bytes);
  });
}

cohort_error *cohort_optimizer_load_states(cohort_optimizer *optimizer, const char *path) {
  return guard([&] {
    Optimizer &target = optimizer_of(optimizer);
    const std::string file = to_text(path, "path"), bytes = read_file(file);
    target.load_states(bytes.data(), bytes.size(), file);
  });
}

cohort_error *cohort_optimizer_load_states_memory(cohort_optimizer *optimizer, const void *data, size_t bytes) {
  return guard([&] {
    require(data, bytes, "data");
    optimizer_of(optimizer).load_states(data, bytes, "data");
  });
}
