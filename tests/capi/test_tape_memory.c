/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that runs out while a tape records: wherever that happens, nothing is recorded. This program's malloc fails
 * the N-th call. */
#include <errno.h>

#include "support/boundary.h"
#include "support/sanitizer.h"
#include "support/tapes.h"

#define OWN_MALLOC !UNDER_SANITIZER /* a sanitizer has its own malloc */

static long countdown; /* counts down to the allocation that fails; 0: none does */

#if OWN_MALLOC
extern void *__libc_malloc(size_t);

void *malloc(size_t size) {
  if (countdown == 0 || --countdown > 0) return __libc_malloc(size);
  errno = ENOMEM;
  return NULL;
}
#endif

static int32_t give_nothing(cohort_arrays *head_grads, cohort_arrays *gradients, void *user_data) {
  (void)head_grads, (void)user_data;
  ok(cohort_arrays_add(gradients, NULL, NULL));
  return 0;
}

static void what_failed_is_not_recorded(void **state) {
  const int64_t one = 1;
  cohort_tape *tape;
  cohort_ndarray *a = NULL, *output = NULL;
  cohort_error *error;
  long failing;

  (void)state;
  if (!OWN_MALLOC) skip();
  tape = new_tape();
  ok(cohort_ndarray_zeros(&one, 1, COHORT_DTYPE_FLOAT32, NULL, &a));
  ok(cohort_ndarray_zeros(&one, 1, COHORT_DTYPE_FLOAT32, NULL, &output));
  mark(tape, a, NULL, COHORT_GRAD_WRITE);
  for (failing = 1;; ++failing) {
    countdown = failing;
    error = cohort_tape_function(tape, &a, 1, &output, 1, give_nothing, NULL, NULL);
    countdown = 0;
    if (!error) break;
    assert_int_equal(cohort_error_code(error), COHORT_ERROR_OUT_OF_MEMORY);
    cohort_error_free(error);
    assert_int_equal(num_recorded(tape), 0);
  }
  assert_true(failing > 5);
  assert_int_equal(num_recorded(tape), 1);
  ok(cohort_tape_backward(tape, &output, NULL, 1, NULL));
  cohort_ndarray_free(a);
  cohort_ndarray_free(output);
  cohort_tape_free(tape);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(what_failed_is_not_recorded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
