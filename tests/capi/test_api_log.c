/* SPDX-License-Identifier: Apache-2.0 */
/* Log messages reach exactly the receivers that want their level, complete; and no thread waits for another one that is
 * in a callback. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

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

/* Loading a symbol of a newer MXNet version than the library knows logs a warning. */
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

/* Messages below the lowest wanted level are not sent. */
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

/* ---- separate receivers ------------------------------------------------------------------------------------------ */

static void count_end(void *user_data) { ++*(int *)user_data; }

static void count_message(int32_t level, const char *message, void *user_data) {
  (void)level;
  (void)message;
  *(int *)user_data += 100;
}

static cohort_log *receiver(int32_t lowest, int *count) {
  cohort_log *log = NULL;

  ok(cohort_log_create(lowest, count_message, count_end, count, &log));
  return log;
}

/* Users of the library in one process receive the same messages independently, and stop independently. */
static void each_receiver_gets_each_message(void **state) {
  received set = {0, -1, ""};
  int first = 0, second = 0, deaf = 0;
  cohort_log *a, *b, *c;

  (void)state;
  a = receiver(COHORT_LOG_WARNING, &first);
  ok(cohort_set_log(COHORT_LOG_WARNING, receive, &set));
  b = receiver(COHORT_LOG_DEBUG, &second);
  c = receiver(COHORT_LOG_ERROR, &deaf);
  warn();
  assert_int_equal(first, 100);
  assert_int_equal(second, 100);
  assert_int_equal(set.num, 1);
  cohort_log_free(a);
  assert_int_equal(first, 101);
  ok(cohort_set_log(COHORT_LOG_WARNING, NULL, NULL));
  warn();
  assert_int_equal(first, 101);
  assert_int_equal(second, 200);
  assert_int_equal(set.num, 1);
  cohort_log_free(b);
  cohort_log_free(c);
  assert_int_equal(second, 201);
  assert_int_equal(deaf, 1);
}

/* Wrong arguments are refused, and the end callback is called only for a receiver that was created. */
static void wrong_receivers_are_refused(void **state) {
  cohort_log *log = NULL;
  int count = 0;

  (void)state;
  fails(cohort_log_create(5, count_message, count_end, &count, &log), COHORT_ERROR_INVALID_ARGUMENT, "lowest");
  fails(cohort_log_create(0, NULL, count_end, &count, &log), COHORT_ERROR_INVALID_ARGUMENT, "callback");
  fails(cohort_log_create(0, count_message, count_end, &count, NULL), COHORT_ERROR_INVALID_ARGUMENT, "out_log");
  assert_null(log);
  assert_int_equal(count, 0);
  log = receiver(COHORT_LOG_DEBUG, &count);
  cohort_log_free(log);
  cohort_log_free(log);
  cohort_log_free(NULL);
  assert_int_equal(count, 1);
}

/* ---- a callback that does not return ----------------------------------------------------------------------------- */

static struct {
  pthread_mutex_t mutex; /* guards all the other fields */
  pthread_cond_t changed;
  int inside, let_go, num_messages, num_ended, others_done, never;
  cohort_log *log; /* freed in the callback, unless NULL */
} held = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0, 0, 0, 0, NULL};

static void change(int *value, int to) {
  pthread_mutex_lock(&held.mutex);
  *value = to;
  pthread_cond_broadcast(&held.changed);
  pthread_mutex_unlock(&held.mutex);
}

/* Waits until it is at least 1; returns 0 if that takes more than some seconds. */
static int comes(const int *value, int seconds) {
  struct timespec end;
  int come;

  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += seconds;
  pthread_mutex_lock(&held.mutex);
  while (!*value && pthread_cond_timedwait(&held.changed, &held.mutex, &end) == 0) continue;
  come = *value;
  pthread_mutex_unlock(&held.mutex);
  return come;
}

static void hold(int32_t level, const char *message, void *user_data) {
  (void)level;
  (void)message;
  (void)user_data;
  ++held.num_messages; /* by one thread at a time */
  change(&held.inside, 1);
  comes(&held.let_go, 30);
}

static void note_end(void *user_data) {
  (void)user_data;
  change(&held.num_ended, held.num_ended + 1);
}

static void *warn_there(void *data) {
  warn();
  change(&held.others_done, 1);
  return data;
}

/* The calls that another thread makes while one is in the callback. */
static void *use_the_library(void *data) {
  int count = 0;
  cohort_log *other = receiver(COHORT_LOG_DEBUG, &count);

  warn();
  if (count == 100) {
    cohort_log_free(other);
    cohort_log_free(held.log);
    change(&held.others_done, 1);
  }
  return data;
}

static void start_over(void) {
  held.inside = held.let_go = held.num_messages = held.num_ended = held.others_done = 0;
  held.log = NULL;
}

/* A thread in a callback does not keep others from logging, creating receivers or freeing them, including its own
 * receiver. */
static void nobody_waits_for_a_callback(void **state) {
  pthread_t in_callback, other;
  int others_done;

  (void)state;
  start_over();
  ok(cohort_log_create(COHORT_LOG_WARNING, hold, note_end, NULL, &held.log));
  assert_int_equal(pthread_create(&in_callback, NULL, warn_there, NULL), 0);
  assert_true(comes(&held.inside, 20));
  assert_int_equal(pthread_create(&other, NULL, use_the_library, NULL), 0);
  others_done = comes(&held.others_done, 20);
  assert_int_equal(held.num_ended, 0);
  change(&held.let_go, 1);
  pthread_join(in_callback, NULL);
  pthread_join(other, NULL);
  assert_true(others_done);
  assert_int_equal(held.num_ended, 1);
  assert_int_equal(held.num_messages, 1); /* the other was waiting when the receiver was freed */
}

/* The callback of cohort_set_log() blocks nobody either; messages that come while it is busy are delivered when it
 * returns. */
static void messages_wait_for_the_callback_and_threads_do_not(void **state) {
  pthread_t in_callback, other;
  int others_done;

  (void)state;
  start_over();
  ok(cohort_set_log(COHORT_LOG_WARNING, hold, NULL));
  assert_int_equal(pthread_create(&in_callback, NULL, warn_there, NULL), 0);
  assert_true(comes(&held.inside, 20));
  held.others_done = 0;
  assert_int_equal(pthread_create(&other, NULL, warn_there, NULL), 0);
  others_done = comes(&held.others_done, 20);
  change(&held.let_go, 1);
  pthread_join(in_callback, NULL);
  pthread_join(other, NULL);
  assert_true(others_done);
  assert_int_equal(held.num_messages, 2);
}

/* Reports whether the callback had returned when it was replaced. */
static void *replace_callback(void *data) {
  ok(cohort_set_log(COHORT_LOG_DEBUG, NULL, NULL)); /* waits, as documented */
  pthread_mutex_lock(&held.mutex);
  *(int *)data = held.let_go;
  pthread_mutex_unlock(&held.mutex);
  return NULL;
}

/* cohort_set_log() waits for the callback that it replaces, on any thread. */
static void a_callback_is_replaced_when_it_is_over(void **state) {
  pthread_t in_callback, other;
  int had_returned = 0;

  (void)state;
  start_over();
  ok(cohort_set_log(COHORT_LOG_WARNING, hold, NULL));
  assert_int_equal(pthread_create(&in_callback, NULL, warn_there, NULL), 0);
  assert_true(comes(&held.inside, 20));
  assert_int_equal(pthread_create(&other, NULL, replace_callback, &had_returned), 0);
  comes(&held.never, 1); /* long enough for a call that does not wait to return */
  change(&held.let_go, 1);
  pthread_join(in_callback, NULL);
  pthread_join(other, NULL);
  assert_true(had_returned);
  warn();
  assert_int_equal(held.num_messages, 1);
}

static void free_itself(int32_t level, const char *message, void *user_data) {
  hold(level, message, user_data);
  cohort_log_free(held.log);
}

/* A receiver may be freed in its own callback, and gets no message after it. */
static void a_receiver_may_free_itself(void **state) {
  (void)state;
  start_over();
  held.let_go = 1;
  ok(cohort_log_create(COHORT_LOG_WARNING, free_itself, note_end, NULL, &held.log));
  warn();
  warn();
  assert_int_equal(held.num_messages, 1);
  assert_int_equal(held.num_ended, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(warnings_reach_the_callback, note_handles, reset_log),
      cmocka_unit_test_setup_teardown(levels_below_are_not_sent, note_handles, reset_log),
      cmocka_unit_test_setup_teardown(replaced_callbacks_are_silent, note_handles, reset_log),
      cmocka_unit_test_setup_teardown(each_receiver_gets_each_message, note_handles, reset_log),
      cmocka_unit_test_setup_teardown(wrong_receivers_are_refused, note_handles, reset_log),
      cmocka_unit_test_setup_teardown(nobody_waits_for_a_callback, note_handles, reset_log),
      cmocka_unit_test_setup_teardown(messages_wait_for_the_callback_and_threads_do_not, note_handles, reset_log),
      cmocka_unit_test_setup_teardown(a_callback_is_replaced_when_it_is_over, note_handles, reset_log),
      cmocka_unit_test_setup_teardown(a_receiver_may_free_itself, note_handles, reset_log),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
