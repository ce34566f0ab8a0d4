/* SPDX-License-Identifier: Apache-2.0 */
/* Several users of the library in one process: while a callback of one does not return, another can still use its own
 * objects; and each user is told only of its own failed work. */
#include <pthread.h>
#include <time.h>

#include "support/boundary.h"

enum { kPatience = 20 /* seconds */ };

static struct {
  pthread_mutex_t mutex; /* guards all the other fields */
  pthread_cond_t changed;
  int inside, let_go, other_done;
} held = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0};

static void reach(int *value) {
  pthread_mutex_lock(&held.mutex);
  *value = 1;
  pthread_cond_broadcast(&held.changed);
  pthread_mutex_unlock(&held.mutex);
}

static int reached(const int *value) {
  struct timespec end;
  int yes;

  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += kPatience;
  pthread_mutex_lock(&held.mutex);
  while (!*value && pthread_cond_timedwait(&held.changed, &held.mutex, &end) == 0) continue;
  yes = *value;
  pthread_mutex_unlock(&held.mutex);
  return yes;
}

/* The body of every callback here: waits until it is released. */
static void hold(void) {
  reach(&held.inside);
  reached(&held.let_go);
}

static cohort_executor *bound_exp(int64_t length) {
  cohort_symbol *variable = NULL, *node = NULL;
  cohort_descs *known = NULL;
  cohort_executor *executor = NULL;
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;

  options.grad_req = "write";
  ok(cohort_symbol_variable("x", NULL, NULL, 0, &variable));
  ok(cohort_symbol_create("exp", "y", NULL, NULL, 0, &variable, NULL, 1, &node));
  ok(cohort_descs_create(&known));
  ok(cohort_descs_add(known, "x", &length, 1, COHORT_DTYPE_FLOAT32, NULL));
  ok(cohort_executor_simple_bind(node, NULL, known, &options, &executor));
  cohort_symbol_free(variable);
  cohort_symbol_free(node);
  cohort_descs_free(known);
  return executor;
}

/* Uses a bit of everything, and causes a warning on the way. */
static void *use_the_library(void *data) {
  static const char newer[] =
      "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []}], \"arg_nodes\": [0], \"heads\": [[0, 0, 0]],"
      " \"attrs\": {\"mxnet_version\": [\"int\", 990000]}}";
  const int64_t length = 3;
  const float ones[] = {1, 1, 1};
  float found[3];
  cohort_executor *executor = bound_exp(3);
  cohort_ndarray *array = NULL, *copy = NULL, *sum = NULL, *pair[2];
  cohort_arrays *outputs = NULL;
  cohort_symbol *symbol = NULL;
  cohort_monitor *monitor = NULL;
  size_t num;

  ok(cohort_symbol_from_json(newer, sizeof(newer) - 1, &symbol));
  ok(cohort_monitor_create(1, NULL, &monitor));
  ok(cohort_monitor_install_on_executor(monitor, executor));
  ok(cohort_monitor_tic(monitor));
  ok(cohort_executor_forward(executor, 1));
  ok(cohort_monitor_toc(monitor, &num));
  ok(cohort_ndarray_from_host(ones, sizeof(ones), &length, 1, COHORT_DTYPE_FLOAT32, NULL, &array));
  ok(cohort_ndarray_cast(array, COHORT_DTYPE_FLOAT32, &copy));
  ok(cohort_executor_backward(executor, &array, 1, 1));
  pair[0] = array;
  pair[1] = copy;
  ok(cohort_operator_invoke("elemwise_add", NULL, NULL, 0, pair, 2, NULL, 0, NULL, &outputs));
  ok(cohort_arrays_get(outputs, 0, &sum));
  ok(cohort_ndarray_read(sum, found, sizeof(found)));
  ok(cohort_wait_all());
  cohort_error_free(cohort_symbol_variable(NULL, NULL, NULL, 0, &symbol));
  cohort_monitor_free(monitor);
  cohort_symbol_free(symbol);
  cohort_arrays_free(outputs);
  cohort_ndarray_free(sum);
  cohort_ndarray_free(copy);
  cohort_ndarray_free(array);
  cohort_executor_free(executor);
  if (found[0] == 2 && found[2] == 2) reach(&held.other_done);
  return data;
}

/* One thread is now inside a callback of its own, and another one uses the library as usual. */
static void other_goes_on_beside(void *(*thread_in_callback)(void *)) {
  pthread_t in_callback, other;
  int was_inside, other_done;

  held.inside = held.let_go = held.other_done = 0;
  assert_int_equal(pthread_create(&in_callback, NULL, thread_in_callback, NULL), 0);
  was_inside = reached(&held.inside);
  assert_int_equal(pthread_create(&other, NULL, use_the_library, NULL), 0);
  other_done = reached(&held.other_done);
  reach(&held.let_go);
  pthread_join(in_callback, NULL);
  pthread_join(other, NULL);
  assert_true(was_inside);
  assert_true(other_done);
}

static void hold_deleted(void *data, void *user_data) {
  (void)data;
  (void)user_data;
  hold();
}

static void *free_an_array(void *data) {
  static float memory[3];
  const int64_t length = 3;
  cohort_ndarray *array = NULL, *view = NULL;

  ok(cohort_ndarray_wrap(memory, &length, 1, COHORT_DTYPE_FLOAT32, NULL, hold_deleted, NULL, &array));
  ok(cohort_ndarray_slice(array, 0, 2, &view));
  cohort_ndarray_free(array);
  cohort_ndarray_free(view);
  return data;
}

static void deleters_hold_nobody_up(void **state) {
  (void)state;
  other_goes_on_beside(free_an_array);
}

static void hold_seen(const char *name, cohort_ndarray *array, void *user_data) {
  (void)name;
  (void)array;
  (void)user_data;
  hold();
}

static void *run_observed(void *data) {
  cohort_executor *executor = bound_exp(3);

  ok(cohort_executor_set_monitor(executor, hold_seen, NULL, 0));
  ok(cohort_executor_forward(executor, 0));
  cohort_executor_free(executor);
  return data;
}

static void monitors_hold_nobody_up(void **state) {
  (void)state;
  other_goes_on_beside(run_observed);
}

static void hold_logged(int32_t level, const char *message, void *user_data) {
  (void)level;
  (void)message;
  if (user_data) hold();
}

static void *log_something(void *data) {
  cohort_log *log = NULL;
  static const char newer[] =
      "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []}], \"arg_nodes\": [0], \"heads\": [[0, 0, 0]],"
      " \"attrs\": {\"mxnet_version\": [\"int\", 990000]}}";
  cohort_symbol *symbol = NULL;

  ok(cohort_log_create(COHORT_LOG_WARNING, hold_logged, NULL, &held, &log));
  ok(cohort_symbol_from_json(newer, sizeof(newer) - 1, &symbol));
  cohort_symbol_free(symbol);
  cohort_log_free(log);
  return data;
}

static void logs_hold_nobody_up(void **state) {
  (void)state;
  other_goes_on_beside(log_something);
}

/* ---- when deleters run ------------------------------------------------------------------------------------------- */

static struct {
  cohort_ndarray *array; /* the last handle on the wrapped memory */
  int num_deleted, num_seen;
} lent;

static void count_deleted(void *data, void *user_data) {
  (void)data;
  ++*(int *)user_data;
}

static void free_inside(const char *name, cohort_ndarray *array, void *user_data) {
  (void)name;
  (void)array;
  (void)user_data;
  cohort_ndarray_free(lent.array);
  lent.array = NULL;
  lent.num_seen += 1 + 100 * lent.num_deleted;
}

/* Wherever in a call the last reference is dropped, the deleter runs at the end of the call, when no lock is held. */
static void deleters_run_when_a_call_ends(void **state) {
  static float memory[3];
  const int64_t length = 3;
  cohort_executor *executor = bound_exp(3);

  (void)state;
  ok(cohort_ndarray_wrap(memory, &length, 1, COHORT_DTYPE_FLOAT32, NULL, count_deleted, &lent.num_deleted,
                         &lent.array));
  ok(cohort_executor_set_monitor(executor, free_inside, NULL, 0));
  ok(cohort_executor_forward(executor, 0));
  assert_int_equal(lent.num_seen, 1);
  assert_int_equal(lent.num_deleted, 1);
  cohort_executor_free(executor);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* A failure of one user's work is not reported to another, who waits for everything and then for its own work. */
static void failures_stay_with_their_owner(void **state) {
  cohort_executor *failing, *good;

  (void)state;
  assert_int_equal(setenv("COHORT_FAULT", "y", 1), 0);
  failing = bound_exp(1 << 16);
  assert_int_equal(unsetenv("COHORT_FAULT"), 0);
  good = bound_exp(3);
  ok(cohort_executor_forward(failing, 0));
  ok(cohort_executor_forward(good, 0));
  fails(cohort_wait_all(), COHORT_ERROR_EXECUTION, "'y'");
  ok(cohort_executor_wait(good));
  fails(cohort_wait_all(), COHORT_ERROR_EXECUTION, "'y'");
  fails(cohort_executor_wait(failing), COHORT_ERROR_EXECUTION, "'y'");
  ok(cohort_wait_all());
  cohort_executor_free(failing);
  cohort_executor_free(good);
}

static int quiet(void **state) {
  (void)state;
  ok(cohort_set_log(COHORT_LOG_WARNING, hold_logged, NULL));
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(deleters_hold_nobody_up),       TEST(monitors_hold_nobody_up),        TEST(logs_hold_nobody_up),
      TEST(deleters_run_when_a_call_ends), TEST(failures_stay_with_their_owner),
  };
  return cmocka_run_group_tests(tests, quiet, NULL);
}
