/* SPDX-License-Identifier: Apache-2.0 */
/* Monitor patterns (MON-06) that would crash or hang a backtracking matcher, and those that are refused. */
#include <pthread.h>

#include "support/boundary.h"

enum { kLongName = 30000 };

/* Runs a monitor with this pattern on an executor of one argument of this name, on a thread with a small stack. */
typedef struct question {
  const char *name, *pattern;
  int32_t mode;
  size_t found; /* of the two arrays of the executor */
  cohort_error *error;
} question;

static void *answer(void *data) {
  question *q = data;
  const int64_t shape[] = {2};
  cohort_monitor_options options = COHORT_MONITOR_OPTIONS_INIT;
  cohort_symbol *variable = NULL, *node = NULL;
  cohort_descs *known = NULL;
  cohort_executor *executor = NULL;
  cohort_monitor *monitor = NULL;
  cohort_error *error = NULL;

  options.pattern = q->pattern;
  options.pattern_mode = q->mode;
  if (!error) error = cohort_symbol_variable(q->name, NULL, NULL, 0, &variable);
  if (!error) error = cohort_symbol_create("exp", q->name, NULL, NULL, 0, &variable, NULL, 1, &node);
  if (!error) error = cohort_descs_create(&known);
  if (!error) error = cohort_descs_add(known, q->name, shape, 1, COHORT_DTYPE_FLOAT32, NULL);
  if (!error) error = cohort_executor_simple_bind(node, NULL, known, NULL, &executor);
  if (!error) error = cohort_monitor_create(1, &options, &monitor);
  if (!error) error = cohort_monitor_install_on_executor(monitor, executor);
  if (!error) error = cohort_monitor_tic(monitor);
  if (!error) error = cohort_executor_forward(executor, 0);
  if (!error) error = cohort_monitor_toc(monitor, &q->found);
  cohort_symbol_free(variable);
  cohort_symbol_free(node);
  cohort_descs_free(known);
  cohort_executor_free(executor);
  cohort_monitor_free(monitor);
  q->error = error;
  return NULL;
}

static size_t num_found(const char *name, const char *pattern, int32_t mode) {
  question q = {name, pattern, mode, 77, NULL};
  pthread_attr_t attributes;
  pthread_t thread;

  assert_int_equal(pthread_attr_init(&attributes), 0);
  assert_int_equal(pthread_attr_setstacksize(&attributes, 512 << 10), 0);
  assert_int_equal(pthread_create(&thread, &attributes, answer, &q), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  pthread_attr_destroy(&attributes);
  ok(q.error);
  return q.found;
}

/* A long name does not overflow the stack. */
static void a_pattern_goes_over_names_of_any_length(void **state) {
  char *name = malloc(kLongName + 1);

  (void)state;
  assert_non_null(name);
  memset(name, 'n', kLongName);
  name[kLongName] = '\0';
  assert_int_equal(num_found(name, ".*", COHORT_PATTERN_ANCHORED), 2);
  assert_int_equal(num_found(name, "(n|m)*_output$", COHORT_PATTERN_ANCHORED), 1);
  assert_int_equal(num_found(name, "(n+)+_other", COHORT_PATTERN_ANYWHERE), 0);
  free(name);
}

/* Nested repetitions take linear time. */
static void a_pattern_takes_time_linear_in_the_name(void **state) {
  (void)state;
  assert_int_equal(num_found("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "(a+)+b", COHORT_PATTERN_ANCHORED), 0);
  assert_int_equal(num_found("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "(a|a|aa)*$", COHORT_PATTERN_ANCHORED), 1);
}

/* The syntax that the header promises: classes, counts, alternatives, assertions; letters beyond ASCII. */
static void a_pattern_has_the_usual_syntax(void **state) {
  static const char *const good[] = {"stage[0-9]_unit\\d{1,2}_(conv|bn)", "stage1(?:_\\w+)?$", "^stage1_unit12_conv\\b",
                                     "[^_]+_.*?_conv", "stage1_unit12_conv|x"};
  size_t i;

  (void)state;
  for (i = 0; i < NUM_OF(good); ++i) {
    assert_true(num_found("stage1_unit12_conv", good[i], COHORT_PATTERN_ANCHORED) >= 1);
    assert_int_equal(num_found("other", good[i], COHORT_PATTERN_ANYWHERE), 0);
  }
  assert_int_equal(num_found("gr\xc3\xb6\xc3\x9f"
                             "e",
                             "gr.\xc3\x9f?e", COHORT_PATTERN_ANCHORED),
                   2);
}

/* Refused are patterns that cannot be matched in linear time, invalid ones, and those that take too much memory. */
static void other_patterns_are_refused(void **state) {
  static const char *const bad[] = {
      "(a)\\1", "a(?=b)", "a(?!b)", "(", "a{2,1}", "[z-a]", "*", "((a{999}){999}){999}", "(((\\w{40}){40}){40})",
      "\xff"};
  cohort_monitor_options options = COHORT_MONITOR_OPTIONS_INIT;
  cohort_monitor *monitor = NULL;
  char *large = malloc((64 << 10) + 2);
  size_t i;

  (void)state;
  for (i = 0; i < NUM_OF(bad); ++i) {
    options.pattern = bad[i];
    fails(cohort_monitor_create(1, &options, &monitor), COHORT_ERROR_INVALID_ARGUMENT, "pattern: expected a regular");
  }
  assert_non_null(large);
  memset(large, 'a', (64 << 10) + 1);
  large[(64 << 10) + 1] = '\0';
  options.pattern = large;
  fails(cohort_monitor_create(1, &options, &monitor), COHORT_ERROR_INVALID_ARGUMENT, "65537 bytes");
  free(large);
  assert_null(monitor);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_pattern_goes_over_names_of_any_length),
      TEST(a_pattern_takes_time_linear_in_the_name),
      TEST(a_pattern_has_the_usual_syntax),
      TEST(other_patterns_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
