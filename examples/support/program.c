/* SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void give_up_on_error(const char *file, int line, cohort_error *error) {
  fprintf(stderr, "%s:%d: %s error: %s\n", file, line, cohort_error_code_text(cohort_error_code(error)),
          cohort_error_message(error));
  cohort_error_free(error);
  exit(EXIT_FAILURE);
}

void fail(const char *format, ...) {
  va_list arguments;

  va_start(arguments, format);
  fprintf(stderr, "%s: ", program_name);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(EXIT_FAILURE);
}

void *allocate(size_t bytes) {
  void *memory = malloc(bytes ? bytes : 1);

  if (!memory) fail("no memory for %lu bytes", (unsigned long)bytes);
  return memory;
}

double seconds(void) {
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

double median(double *values, size_t num) {
  qsort(values, num, sizeof *values, by_size);
  return num % 2 ? values[num / 2] : (values[num / 2 - 1] + values[num / 2]) / 2;
}

uint64_t random_number(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

const char *next_item(const char **list, char *item, size_t capacity) {
  const size_t length = strcspn(*list, ",");

  if (length >= capacity) fail("'%s' is too long", *list);
  memcpy(item, *list, length);
  item[length] = '\0';
  *list += length;
  if (**list == ',') ++*list;
  return item;
}

double number(const char *option, const char *text, double low, double high) {
  char *end;
  const double value = strtod(text, &end);

  if (end == text || *end || !(value >= low && value <= high))
    fail("%s takes a number from %g to %g, found '%s'", option, low, high, text);
  return value;
}

size_t read_contexts(const char *list, cohort_context *contexts, size_t capacity) {
  char item[64];
  size_t num;

  for (num = 0; *list; ++num) {
    if (num == capacity) fail("--contexts: at most %lu", (unsigned long)capacity);
    OK(cohort_context_parse(next_item(&list, item, sizeof item), &contexts[num]));
  }
  return num;
}

cohort_symbol *layer(const char *op, const char *name, cohort_symbol *input, ...) {
  const char *keys[8], *values[8];
  cohort_symbol *output;
  size_t num = 0;
  va_list attributes;

  va_start(attributes, input);
  while (num < 8 && (keys[num] = va_arg(attributes, const char *)) != NULL)
    values[num++] = va_arg(attributes, const char *);
  va_end(attributes);
  OK(cohort_symbol_create(op, name, keys, values, num, &input, NULL, 1, &output));
  cohort_symbol_free(input);
  return output;
}
