/* SPDX-License-Identifier: Apache-2.0 */
/* cohort_functions.h: a program that loads the library at run time calls it through pointers that the macro
 * declares. */
#include "cohort/cohort_functions.h"

#include <dlfcn.h>

#include "support/boundary.h"

/* Declares pointers of the exact C types, so that the compiler checks calls through them like direct calls. */
#define DECLARE(result, name, parameters) static result(*p_##name) parameters;
COHORT_FUNCTIONS(DECLARE)

static void *find(void *library, const char *name) {
  void *found = dlsym(library, name);

  if (!found) print_error("%s is not in the library\n", name);
  assert_non_null(found);
  return found;
}

#define LOAD(result, name, parameters)       \
  do {                                       \
    void *found = find(library, #name);      \
    memcpy(&p_##name, &found, sizeof found); \
    assert_true(p_##name == name);           \
    ++loaded;                                \
  } while (0);

static void every_function_is_loaded_under_its_type(void **state) {
  const int64_t shape[] = {2};
  const float numbers[] = {3, 4};
  float found[2] = {0, 0};
  cohort_ndarray *array = NULL;
  size_t loaded = 0;
  void *library = dlopen("libcohort.so.0", RTLD_NOW | RTLD_NOLOAD);

  (void)state;
  assert_non_null(library);
  COHORT_FUNCTIONS(LOAD)
  assert_true(loaded > 200);
  ok(p_cohort_ndarray_from_host(numbers, sizeof numbers, shape, 1, COHORT_DTYPE_FLOAT32, NULL, &array));
  ok(p_cohort_ndarray_read(array, found, sizeof found));
  p_cohort_ndarray_free(array);
  assert_true(found[0] == 3 && found[1] == 4);
  dlclose(library);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(every_function_is_loaded_under_its_type)};

  return cmocka_run_group_tests(tests, NULL, NULL);
}
