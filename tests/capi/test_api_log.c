/* SPDX-License-Identifier: Apache-2.0 */
/* Messages go to the callback, whole, from its level up, and nowhere else. */
#include <stdio.h>

#include "support/boundary.h"

typedef struct received {
  int num;
  int32_t level;
  char message[512];
} received;

static void receive(int32_t level, const char *message, void *user_data) {
  received *to = user_data;

  ++to->num;
  to->level = level;
  snprintf(to->message, sizeof(to->message), "%s", message);
}

/* Loading a symbol of a newer version than any we know warns. */
static void warn(void) {
  static const char json[] =
      "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []}], \"arg_nodes\": [0], \"heads\": [[0, 0, 0]],"
      " \"attrs\": {\"mxnet_version\": [\"int\", 990000]}}";
  cohort_symbol *symbol = NULL;

  ok(cohort_symbol_from_json(json, sizeof(json) - 1, &symbol));
  cohort_symbol_free(symbol);
}

static int reset_log(void **state) {
  ok(cohort_set_log(COHORT_LOG_WARNING, NULL, NULL));
  return same_handles(state);
}

/* A warning reaches the callback with its level and user_data. */
static void warnings_reach_the_callback(void **state) {
  received got = {0, -1, ""};

  (void)state;
  ok(cohort_set_log(COHORT_LOG_DEBUG, receive, &got));
  warn();
  assert_true(got.num >= 1);
  assert_int_equal(got.level, COHORT_LOG_WARNING);
  assert_true(strlen(got.message) > 0);
  assert_null(strchr(got.message, '\n'));
}

/* What is below the lowest level wanted is not sent. */
static void levels_below_are_not_sent(void **state) {
  received got = {0, -1, ""};

  (void)state;
  ok(cohort_set_log(COHORT_LOG_ERROR, receive, &got));
  warn();
  ok(cohort_set_log(COHORT_LOG_OFF, receive, &got));
  warn();
  assert_int_equal(got.num, 0);
}

/* A callback that was replaced is not called again. */
static void replaced_callbacks_are_silent(void **state) {
  received first = {0, -1, ""}, second = {0, -1, ""};

  (void)state;
  ok(cohort_set_log(COHORT_LOG_WARNING, receive, &first));
  warn();
  ok(cohort_set_log(COHORT_LOG_WARNING, receive, &second));
  warn();
  assert_int_equal(first.num, second.num);
  assert_true(first.num >= 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(warnings_reach_the_callback, note_handles, reset_log),
      cmocka_unit_test_setup_teardown(levels_below_are_not_sent, note_handles, reset_log),
      cmocka_unit_test_setup_teardown(replaced_callbacks_are_silent, note_handles, reset_log),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
