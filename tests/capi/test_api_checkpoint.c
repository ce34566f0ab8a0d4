/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: written, read back, and refused where the files are not checkpoints. */
#include <unistd.h>

#include "support/boundary.h"
#include "support/temporary.h"

static char prefix[TEMPORARY_PATH];

static const char *file(const char *end) {
  static char path[TEMPORARY_PATH + 64];

  snprintf(path, sizeof(path), "%s%s", prefix, end);
  return path;
}

static int make_prefix(void **state) {
  (void)state;
  temporary_path(prefix, "checkpoint_test", "");
  return 0;
}

static int remove_files(void **state) {
  (void)state;
  remove(file("-symbol.json"));
  remove(file("-0000.params"));
  remove(file("-0012.params"));
  return 0;
}

static cohort_arrays *one_array(const char *name, const float *values) {
  const int64_t two = 2;
  cohort_ndarray *array = floats(values, &two, 1);
  cohort_arrays *arrays = NULL;

  ok(cohort_arrays_create(&arrays));
  ok(cohort_arrays_add(arrays, name, array));
  cohort_ndarray_free(array);
  return arrays;
}

static void assert_one(const cohort_arrays *arrays, const char *name, const float *values) {
  cohort_ndarray *array = NULL;
  const char *found = NULL;
  size_t num = 0;

  ok(cohort_arrays_num(arrays, &num));
  assert_int_equal(num, 1);
  ok(cohort_arrays_name(arrays, 0, &found));
  assert_string_equal(found, name);
  ok(cohort_arrays_get(arrays, 0, &array));
  assert_floats(array, values, 2);
  cohort_ndarray_free(array);
}

/* Symbol, parameters and auxiliary states are read back as they were written, including names with colons. */
static void checkpoints_come_back(void **state) {
  const float w[] = {1, 2}, m[] = {3, 4};
  cohort_symbol *symbol = small_network(), *back = NULL;
  cohort_arrays *args = one_array("a:w", w), *aux = one_array("m", m), *raw = NULL;
  cohort_arrays *back_args = NULL, *back_aux = NULL;
  size_t num = 0, index = 77;

  (void)state;
  ok(cohort_checkpoint_save(prefix, 12, symbol, args, aux));
  ok(cohort_arrays_load(file("-0012.params"), NULL, &raw));
  ok(cohort_arrays_find(raw, "arg:a:w", &index));
  ok(cohort_arrays_find(raw, "aux:m", &index));
  ok(cohort_checkpoint_load(prefix, 12, &back, &back_args, &back_aux));
  assert_one(back_args, "a:w", w);
  assert_one(back_aux, "m", m);
  ok(cohort_symbol_num_nodes(back, &num));
  assert_int_equal(num, 6);
  cohort_arrays_free(back_args);
  cohort_arrays_free(back_aux);

  ok(cohort_checkpoint_save(prefix, 0, NULL, args, NULL));
  ok(cohort_checkpoint_load(prefix, 0, NULL, &back_args, &back_aux));
  assert_one(back_args, "a:w", w);
  ok(cohort_arrays_num(back_aux, &num));
  assert_int_equal(num, 0);
  cohort_arrays_free(back_args);
  cohort_arrays_free(back_aux);
  cohort_symbol_free(symbol);
  cohort_symbol_free(back);
  cohort_arrays_free(args);
  cohort_arrays_free(aux);
  cohort_arrays_free(raw);
}

/* Names with other prefixes are left out, names without a colon are a format error, and missing files are named. */
static void what_is_no_checkpoint(void **state) {
  const float w[] = {1, 2};
  cohort_arrays *other = one_array("opt:w", w), *bare = one_array("w", w), *unnamed = NULL;
  cohort_arrays *args = NULL, *aux = NULL;
  cohort_symbol *symbol = NULL;
  size_t num = 77;

  (void)state;
  ok(cohort_arrays_save(other, file("-0000.params")));
  ok(cohort_checkpoint_load(prefix, 0, NULL, &args, &aux));
  ok(cohort_arrays_num(args, &num));
  assert_int_equal(num, 0);
  cohort_arrays_free(args);
  cohort_arrays_free(aux);
  args = aux = NULL;
  ok(cohort_arrays_save(bare, file("-0000.params")));
  fails(cohort_checkpoint_load(prefix, 0, NULL, &args, &aux), COHORT_ERROR_FORMAT, "'w'");
  fails(cohort_checkpoint_load(prefix, 0, &symbol, &args, &aux), COHORT_ERROR_IO, "-symbol.json");
  fails(cohort_checkpoint_load(prefix, 12, NULL, &args, &aux), COHORT_ERROR_IO, "-0012.params");
  fails(cohort_checkpoint_load(prefix, -1, NULL, &args, &aux), COHORT_ERROR_INVALID_ARGUMENT, "epoch");
  fails(cohort_checkpoint_load(NULL, 0, NULL, &args, &aux), COHORT_ERROR_INVALID_ARGUMENT, "prefix");
  fails(cohort_checkpoint_load(prefix, 0, NULL, NULL, &aux), COHORT_ERROR_INVALID_ARGUMENT, "out_arg_params");
  ok(cohort_arrays_create(&unnamed));
  ok(cohort_arrays_add(unnamed, "gone", NULL));
  fails(cohort_checkpoint_save(prefix, 12, NULL, unnamed, NULL), COHORT_ERROR_INVALID_ARGUMENT, "gone");
  fails(cohort_checkpoint_save(prefix, -1, NULL, bare, NULL), COHORT_ERROR_INVALID_ARGUMENT, "epoch");
  fails(cohort_checkpoint_save("no/such/folder/x", 0, NULL, bare, NULL), COHORT_ERROR_IO, "no/such/folder/x-0000");
  assert_null(symbol);
  assert_null(args);
  assert_null(aux);
  cohort_arrays_free(other);
  cohort_arrays_free(bare);
  cohort_arrays_free(unnamed);
}

static int before(void **state) { return make_prefix(state) || note_handles(state); }
static int after(void **state) { return remove_files(state) || same_handles(state); }

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(checkpoints_come_back, before, after),
      cmocka_unit_test_setup_teardown(what_is_no_checkpoint, before, after),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
