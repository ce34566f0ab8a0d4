/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that contexts report, and the limit that a program can set; on gpu(0), too, where there is one. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/boundary.h"

enum { LENGTH = 1000, BYTES = LENGTH * 4 };

static cohort_device_memory_info memory_of(const cohort_context *context) {
  cohort_device_memory_info info = COHORT_DEVICE_MEMORY_INFO_INIT;

  ok(cohort_device_memory(context, &info));
  return info;
}

static void counts(const cohort_context *context) {
  const int64_t shape[1] = {LENGTH};
  cohort_ndarray *first = NULL, *kept = NULL, *second = NULL;
  cohort_device_memory_info before, now;

  ok(cohort_ndarray_zeros(shape, 1, COHORT_DTYPE_FLOAT32, context, &kept)); /* the device exists as long as it */
  ok(cohort_device_reset_peak_memory(context));
  before = memory_of(context);
  assert_int_equal(before.peak_bytes, before.used_bytes);
  assert_int_equal(before.limit_bytes, 0);
  ok(cohort_ndarray_zeros(shape, 1, COHORT_DTYPE_FLOAT32, context, &first));
  ok(cohort_ndarray_zeros(shape, 1, COHORT_DTYPE_FLOAT32, context, &second));
  ok(cohort_wait_all());
  now = memory_of(context);
  assert_int_equal(now.used_bytes, before.used_bytes + 2 * BYTES);
  assert_int_equal(now.peak_bytes, now.used_bytes);
  cohort_ndarray_free(first);
  now = memory_of(context);
  assert_int_equal(now.used_bytes, before.used_bytes + BYTES);
  assert_int_equal(now.peak_bytes, before.used_bytes + 2 * BYTES);
  if (context->device_type == COHORT_DEVICE_GPU) assert_true(now.cached_bytes >= BYTES);
  ok(cohort_device_reset_peak_memory(context));
  assert_int_equal(memory_of(context).peak_bytes, before.used_bytes + BYTES);
  cohort_ndarray_free(second);
  cohort_ndarray_free(kept);
}

static void limits(const cohort_context *context) {
  static const char *const params[] = {"fc_weight", "fc_bias"};
  const int64_t shape[1] = {LENGTH}, data_shape[2] = {4, 3}, nothing[1] = {0}, huge[1] = {(int64_t)1 << 50};
  cohort_ndarray *kept = NULL, *more = NULL;
  cohort_symbol *net = small_network();
  cohort_descs *data = one_desc("data", data_shape, 2);
  cohort_group *group = NULL;
  cohort_device_memory_info info;
  char name[32];

  ok(cohort_context_text(context, name, sizeof name, NULL));
  ok(cohort_ndarray_zeros(shape, 1, COHORT_DTYPE_FLOAT32, context, &kept));
  ok(cohort_wait_all());
  info = memory_of(context);
  fails(cohort_ndarray_empty(huge, 1, COHORT_DTYPE_FLOAT32, context, &more), COHORT_ERROR_OUT_OF_MEMORY, name);
  assert_int_equal(memory_of(context).peak_bytes, info.peak_bytes); /* the failed allocation is not counted */
  ok(cohort_device_limit_memory(context, info.used_bytes + BYTES - 1));
  fails(cohort_ndarray_zeros(shape, 1, COHORT_DTYPE_FLOAT32, context, &more), COHORT_ERROR_OUT_OF_MEMORY, name);
  assert_null(more);
  assert_int_equal(memory_of(context).used_bytes, info.used_bytes);
  assert_int_equal(memory_of(context).limit_bytes, info.used_bytes + BYTES - 1);
  assert_true(memory_of(context).peak_bytes < info.used_bytes + BYTES || info.peak_bytes >= info.used_bytes + BYTES);
  ok(cohort_device_limit_memory(context, 1)); /* less than is in use: an allocation of nothing still succeeds */
  ok(cohort_ndarray_zeros(nothing, 1, COHORT_DTYPE_FLOAT32, context, &more));
  cohort_ndarray_free(more);
  more = NULL;
  ok(cohort_device_limit_memory(context, info.used_bytes + BYTES));
  ok(cohort_ndarray_zeros(shape, 1, COHORT_DTYPE_FLOAT32, context, &more));
  /* Memory in use stays allocated and usable; a new group does not fit and leaves nothing behind. */
  ok(cohort_device_limit_memory(context, 1));
  ok(cohort_ndarray_fill(more, 3));
  fails(cohort_group_create(net, context, 1, data, NULL, params, 2, 1, NULL, &group), COHORT_ERROR_OUT_OF_MEMORY,
        "within the limit of 1");
  assert_null(group);
  assert_int_equal(memory_of(context).used_bytes, info.used_bytes + BYTES);
  ok(cohort_device_limit_memory(context, 0));
  ok(cohort_group_create(net, context, 1, data, NULL, params, 2, 1, NULL, &group));
  cohort_group_free(group);
  cohort_descs_free(data);
  cohort_symbol_free(net);
  cohort_ndarray_free(more);
  cohort_ndarray_free(kept);
}

/* Operators queued before the limit was set hold memory until they are done: an allocation that needs it waits for
 * them. */
static void frees_in_time(const cohort_context *context) {
  const int64_t shape[1] = {LENGTH};
  cohort_ndarray *kept = NULL, *array = NULL;
  size_t used;
  int i;

  ok(cohort_ndarray_zeros(shape, 1, COHORT_DTYPE_FLOAT32, context, &kept));
  ok(cohort_wait_all());
  used = memory_of(context).used_bytes;
  ok(cohort_device_limit_memory(context, used + 2 * BYTES));
  for (i = 0; i < 20; ++i) {
    ok(cohort_ndarray_zeros(shape, 1, COHORT_DTYPE_FLOAT32, context, &array));
    ok(cohort_ndarray_copy_to(kept, array)); /* queued, and holds the array */
    cohort_ndarray_free(array);
  }
  ok(cohort_device_limit_memory(context, 0));
  cohort_ndarray_free(kept);
}

static const cohort_context cpu3 = {COHORT_DEVICE_CPU, 3}, gpu0 = {COHORT_DEVICE_GPU, 0};

static int has_gpu(void) {
  size_t num = 0;

  ok(cohort_num_devices(COHORT_DEVICE_GPU, &num));
  return num > 0;
}

static void memory_in_use_is_counted_on_the_host(void **state) {
  (void)state;
  counts(&cpu3);
}
static void memory_in_use_is_counted_on_a_gpu(void **state) {
  (void)state;
  if (!has_gpu()) skip();
  counts(&gpu0);
}
static void more_than_the_limit_is_out_of_memory_on_the_host(void **state) {
  (void)state;
  limits(&cpu3);
}
static void more_than_the_limit_is_out_of_memory_on_a_gpu(void **state) {
  (void)state;
  if (!has_gpu()) skip();
  limits(&gpu0);
  frees_in_time(&gpu0);
}

static void a_context_that_is_not_there_has_no_memory(void **state) {
  const cohort_context beyond = {COHORT_DEVICE_GPU, 9999}, no_context = {77, 0};
  cohort_device_memory_info info = COHORT_DEVICE_MEMORY_INFO_INIT;

  (void)state;
  fails(cohort_device_memory(&beyond, &info), COHORT_ERROR_DEVICE, "gpu(9999)");
  fails(cohort_device_limit_memory(&beyond, 1), COHORT_ERROR_DEVICE, "gpu(9999)");
  fails(cohort_device_reset_peak_memory(&beyond), COHORT_ERROR_DEVICE, "gpu(9999)");
  fails(cohort_device_memory(&no_context, &info), COHORT_ERROR_INVALID_ARGUMENT, "77");
  fails(cohort_device_memory(NULL, NULL), COHORT_ERROR_INVALID_ARGUMENT, "out_info");
}

static int asking; /* atomic */

static void set_asking(int value) { __atomic_store_n(&asking, value, __ATOMIC_RELAXED); }

static void *ask(void *unused) {
  const cohort_context cpu = {COHORT_DEVICE_CPU, 0};

  (void)unused;
  while (__atomic_load_n(&asking, __ATOMIC_RELAXED)) memory_of(&cpu);
  return NULL;
}

/* A process forks while other threads query and allocate: the child has its own memory accounting, whose lock none of
 * them can have left locked. */
static void a_child_has_its_account(void **state) {
  const cohort_context cpu = {COHORT_DEVICE_CPU, 0};
  const int64_t shape[1] = {LENGTH};
  pthread_t threads[2];
  int round, i;

  (void)state;
  only_on_cpus();
  set_asking(1);
  for (i = 0; i < 2; ++i) assert_int_equal(pthread_create(&threads[i], NULL, ask, NULL), 0);
  for (round = 0; round < 200; ++round) {
    const pid_t child = fork();
    int status = -1;

    assert_true(child >= 0);
    if (child == 0) {
      cohort_ndarray *array = NULL;
      size_t before;

      alarm(20); /* ends the child if it hangs */
      before = (size_t)memory_of(&cpu).used_bytes;
      if (cohort_ndarray_empty(shape, 1, COHORT_DTYPE_FLOAT32, NULL, &array)) _exit(1);
      if ((size_t)memory_of(&cpu).used_bytes != before + BYTES) _exit(2);
      cohort_ndarray_free(array);
      _exit((size_t)memory_of(&cpu).used_bytes == before ? 0 : 3);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0) set_asking(0);
    assert_int_equal(status, 0);
  }
  set_asking(0);
  for (i = 0; i < 2; ++i) assert_int_equal(pthread_join(threads[i], NULL), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(memory_in_use_is_counted_on_the_host),
      TEST(memory_in_use_is_counted_on_a_gpu),
      TEST(more_than_the_limit_is_out_of_memory_on_the_host),
      TEST(more_than_the_limit_is_out_of_memory_on_a_gpu),
      TEST(a_context_that_is_not_there_has_no_memory),
      TEST(a_child_has_its_account),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
