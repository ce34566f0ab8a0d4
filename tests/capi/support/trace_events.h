/* SPDX-License-Identifier: Apache-2.0 */
/* The events of a trace, read from its JSON, of which every byte is checked. Include boundary.h first: it defines ok().
 */
#ifndef COHORT_TESTS_TRACE_EVENTS_H
#define COHORT_TESTS_TRACE_EVENTS_H

#include <math.h>
#include <stdio.h>

#include "cohort/trace.h"

/* One event of a trace. */
typedef struct event {
  char phase[4], name[96], cat[24], op[64], thread[64];
  double ts, dur, tid, of_bound, value;
} event;

typedef struct events {
  event *of;
  size_t num;
} events;

static inline const char *skip_space(const char *at) {
  while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r') ++at;
  return at;
}

/* Copies a string into `text`, as far as it fits; returns the position behind it. */
static inline const char *read_text(const char *at, char *text, size_t capacity) {
  size_t length = 0;

  assert_int_equal(*at, '"');
  for (++at; *at != '"'; ++at) {
    assert_true((unsigned char)*at >= 0x20);
    if (*at == '\\') ++at;
    if (length + 1 < capacity) text[length++] = *at;
  }
  text[length] = 0;
  return at + 1;
}

static inline void keep_number(event *into, const char *key, double number) {
  if (strcmp(key, "ts") == 0) into->ts = number;
  if (strcmp(key, "dur") == 0) into->dur = number;
  if (strcmp(key, "tid") == 0) into->tid = number;
  if (strcmp(key, "of_bound") == 0) into->of_bound = number;
  if (strcmp(key, "value") == 0) into->value = number;
}

static inline void keep_text(event *into, const char *key, const char *text, int depth) {
  if (strcmp(key, "ph") == 0) snprintf(into->phase, sizeof(into->phase), "%.3s", text);
  if (strcmp(key, "name") == 0 && depth == 0) snprintf(into->name, sizeof(into->name), "%.90s", text);
  if (strcmp(key, "name") == 0 && depth == 1) snprintf(into->thread, sizeof(into->thread), "%.60s", text);
  if (strcmp(key, "cat") == 0) snprintf(into->cat, sizeof(into->cat), "%.20s", text);
  if (strcmp(key, "op") == 0) snprintf(into->op, sizeof(into->op), "%.60s", text);
}

/* An object of an event, or of its args (depth 1). */
static inline const char *read_object(const char *at, event *into, int depth) {
  char key[64], text[128], *end;

  assert_int_equal(*at, '{');
  at = skip_space(at + 1);
  while (*at != '}') {
    at = skip_space(read_text(at, key, sizeof(key)));
    assert_int_equal(*at, ':');
    at = skip_space(at + 1);
    if (*at == '"') {
      at = read_text(at, text, sizeof(text));
      keep_text(into, key, text, depth);
    } else if (*at == '{') {
      assert_int_equal(depth, 0);
      at = read_object(at, into, 1);
    } else {
      const double number = strtod(at, &end);
      assert_ptr_not_equal(at, end);
      assert_true(isfinite(number));
      keep_number(into, key, number);
      at = end;
    }
    at = skip_space(at);
    if (*at == ',') {
      at = skip_space(at + 1);
      assert_int_equal(*at, '"');
    } else {
      assert_int_equal(*at, '}');
    }
  }
  return at + 1;
}

/* Parses all events of a trace, and checks that every byte of it is JSON. */
static inline events read_events(const char *json) {
  events all = {NULL, 0};
  event whole;
  const char *at = strstr(json, "\"traceEvents\":[");
  char *head;

  assert_non_null(at);
  head = calloc(1, (size_t)(at - json) + 16);
  assert_non_null(head);
  memcpy(head, json, (size_t)(at - json));
  strcat(head, "\"x\":0}");
  memset(&whole, 0, sizeof(whole));
  assert_int_equal(*read_object(head, &whole, 0), 0);
  free(head);
  at = skip_space(at + strlen("\"traceEvents\":["));
  while (*at != ']') {
    all.of = realloc(all.of, (all.num + 1) * sizeof(event));
    assert_non_null(all.of);
    memset(&all.of[all.num], 0, sizeof(event));
    at = skip_space(read_object(at, &all.of[all.num++], 0));
    if (*at == ',') {
      at = skip_space(at + 1);
      assert_int_equal(*at, '{');
    }
  }
  at = skip_space(at + 1);
  assert_int_equal(*at, '}');
  assert_int_equal(*skip_space(at + 1), 0);
  return all;
}

static inline events events_of(cohort_trace *trace) {
  const char *json = NULL;

  ok(cohort_trace_json(trace, &json));
  return read_events(json);
}

/* Counts the spans of this kind; NULL: of any. `thread` is the beginning of a row's name. */
static inline size_t count(const events *all, const char *cat, const char *name, const char *op, const char *thread) {
  size_t i, t, found = 0;

  for (i = 0; i < all->num; ++i) {
    const event *e = &all->of[i];
    int on = !thread;
    if (strcmp(e->phase, "X") != 0) continue;
    for (t = 0; thread && t < all->num; ++t) {
      on = on || (strcmp(all->of[t].name, "thread_name") == 0 && all->of[t].tid == e->tid &&
                  strncmp(all->of[t].thread, thread, strlen(thread)) == 0);
    }
    found += on && (!cat || strcmp(e->cat, cat) == 0) && (!name || strcmp(e->name, name) == 0) &&
             (!op || strcmp(e->op, op) == 0);
  }
  return found;
}

/* Spans of one row are nested or disjoint. Times are rounded to a nanosecond. */
static inline void assert_nested(const events *all) {
  size_t i, j;

  for (i = 0; i < all->num; ++i) {
    for (j = i + 1; j < all->num; ++j) {
      const event *a = &all->of[i], *b = &all->of[j];
      const double slack = 0.0015;
      if (strcmp(a->phase, "X") != 0 || strcmp(b->phase, "X") != 0 || a->tid != b->tid) continue;
      if (b->ts + slack >= a->ts + a->dur || a->ts + slack >= b->ts + b->dur) continue;
      if (b->ts + slack >= a->ts && b->ts + b->dur <= a->ts + a->dur + slack) continue;
      if (a->ts + slack >= b->ts && a->ts + a->dur <= b->ts + b->dur + slack) continue;
      fail_msg("'%s' and '%s' overlap", a->name, b->name);
    }
  }
}

#endif
