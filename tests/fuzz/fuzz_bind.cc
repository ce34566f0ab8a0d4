// SPDX-License-Identifier: Apache-2.0
// A symbol from JSON, bound and run, for inference and for training. Its first arguments have the shape (2, 3).
#include "fuzz.hpp"

namespace {

// Neither minutes of work nor more memory than the machine has.
bool is_small(const cohort_descs *list) {
  size_t num = 0;
  must(cohort_descs_num(list, &num));
  double elements = 0;
  for (size_t i = 0; i < num; ++i) {
    int64_t shape[COHORT_MAX_AXES];
    int32_t num_axes = 0;
    double size = 1;
    must(cohort_descs_get(list, i, nullptr, shape, COHORT_MAX_AXES, &num_axes, nullptr, nullptr));
    for (int32_t axis = 0; axis < num_axes; ++axis) size *= double(shape[axis]);
    elements += size;
  }
  return elements < 1e5;
}

void run(const cohort_symbol *symbol, const cohort_descs *known, const char *grad_req) {
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_executor *executor = nullptr;
  options.grad_req = grad_req;
  if (good(cohort_executor_simple_bind(symbol, nullptr, known, &options, &executor)) &&
      good(cohort_executor_forward(executor, grad_req != nullptr))) {
    cohort_arrays *outputs = nullptr;
    if (grad_req) good(cohort_executor_backward(executor, nullptr, 0, 1));
    if (good(cohort_executor_arrays(executor, COHORT_EXECUTOR_OUTPUTS, &outputs))) wait_for(outputs);
  }
  cohort_executor_free(executor);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size > 20000) return 0;
  cohort_symbol *symbol = nullptr, *internals = nullptr;
  cohort_descs *known = nullptr, *args = nullptr, *outputs = nullptr;
  if (good(cohort_symbol_from_json(reinterpret_cast<const char *>(data), size, &symbol))) {
    const int64_t shape[] = {2, 3};
    const char *name = nullptr;
    size_t num = 0;
    cohort_bool complete = 0;
    must(cohort_descs_create(&known));
    must(cohort_symbol_num_names(symbol, COHORT_SYMBOL_ARGUMENTS, &num));
    if (num > 0) must(cohort_symbol_name_at(symbol, COHORT_SYMBOL_ARGUMENTS, 0, &name));
    if (num > 0 && *name) must(cohort_descs_add(known, name, shape, 2, COHORT_DTYPE_NONE, nullptr));
    if (good(cohort_symbol_internals(symbol, &internals)) &&
        good(cohort_symbol_infer_shape(internals, known, 0, &complete, &args, &outputs, nullptr)) && complete &&
        is_small(args) && is_small(outputs)) {
      run(symbol, known, nullptr);
      run(symbol, known, "write");
    }
  }
  for (cohort_descs *list : {known, args, outputs}) cohort_descs_free(list);
  for (cohort_symbol *one : {symbol, internals}) cohort_symbol_free(one);
  expect_no_handles();
  return 0;
}
