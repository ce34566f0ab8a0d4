/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of many events: the last ones are kept, in order, and can be read while others are recorded. */
#include <pthread.h>

#include "support/boundary.h"

enum { KEPT = 2500, ALL = 7000 };

static cohort_trace *started(size_t max_events) {
  cohort_trace_options options = COHORT_TRACE_OPTIONS_INIT;
  cohort_trace *trace = NULL;

  options.max_events = max_events;
  ok(cohort_trace_create(&options, &trace));
  ok(cohort_trace_start(trace));
  return trace;
}

/* Checks that the counter in a JSON text has this many consecutive values; returns the last one. */
static int last_of_run(const char *json, int num) {
  const char *const key = "\"args\":{\"value\":";
  int first = -1, found = 0;

  while ((json = strstr(json, key))) {
    const int value = atoi(json += strlen(key));

    if (first < 0) first = value;
    assert_int_equal(value, first + found);
    ++found;
  }
  assert_int_equal(found, num);
  return first + found - 1;
}

static void the_last_events_are_kept_in_order(void **state) {
  cohort_trace *trace = started(KEPT);
  const char *json = NULL;
  int i;

  (void)state;
  for (i = 0; i < ALL; ++i) {
    ok(cohort_trace_counter(trace, "n", i));
    if (i % 1000 != 500) continue;
    ok(cohort_trace_json(trace, &json));
    assert_int_equal(last_of_run(json, i < KEPT ? i + 1 : KEPT), i);
  }
  ok(cohort_trace_clear(trace));
  ok(cohort_trace_counter(trace, "n", 5));
  ok(cohort_trace_json(trace, &json));
  assert_int_equal(last_of_run(json, 1), 5);
  cohort_trace_free(trace);
}

static void *count_up(void *trace) {
  int i;

  for (i = KEPT; i < 20 * ALL; ++i)
    if (cohort_trace_counter(trace, "n", i)) return trace;
  return NULL;
}

static void events_are_read_while_others_come(void **state) {
  cohort_trace *trace = started(KEPT);
  void *failed = NULL;
  pthread_t thread;
  int i, last = 0;

  (void)state;
  for (i = 0; i < KEPT; ++i) ok(cohort_trace_counter(trace, "n", i));
  assert_int_equal(pthread_create(&thread, NULL, count_up, trace), 0);
  while (last < 20 * ALL - 1) {
    const char *json = NULL;

    ok(cohort_trace_json(trace, &json));
    last = last_of_run(json, KEPT);
  }
  assert_int_equal(pthread_join(thread, &failed), 0);
  assert_null(failed);
  cohort_trace_free(trace);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(the_last_events_are_kept_in_order),
      TEST(events_are_read_while_others_come),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
