/* SPDX-License-Identifier: Apache-2.0 */
#include "support/contexts.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *listed(void) { return getenv("COHORT_TEST_CONTEXTS"); }

static cohort_context parsed(const char *text, size_t length) {
  char one[32];
  cohort_context context = {0, 0};
  cohort_error *error;

  snprintf(one, sizeof(one), "%.*s", (int)length, text);
  error = cohort_context_parse(one, &context);
  if (!error) return context;
  fprintf(stderr, "COHORT_TEST_CONTEXTS: %s\n", cohort_error_message(error));
  exit(2);
}

static cohort_context contexts[NUM_TEST_CONTEXTS];

static void read_contexts(void) {
  const char *next = listed();
  size_t i;

  for (i = 0; i < NUM_TEST_CONTEXTS; ++i) {
    if (listed()) {
      const size_t length = strcspn(next, ",");
      contexts[i] = parsed(next, length);
      next = next[length] ? next + length + 1 : listed();
    } else {
      contexts[i].device_type = COHORT_DEVICE_CPU;
      contexts[i].device_id = (int32_t)i;
    }
  }
}

/* Read once, by the thread that asks first. */
const cohort_context *test_contexts(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;

  pthread_once(&once, read_contexts);
  return contexts;
}

enum { NAME_SIZE = 16 };

const char *context_name(size_t i) {
  static char names[NUM_TEST_CONTEXTS][NAME_SIZE];
  cohort_error *error = cohort_context_text(&test_contexts()[i], names[i], NAME_SIZE, NULL);

  if (error) fail_msg("%s", cohort_error_message(error));
  return names[i];
}

const char *context_names(size_t num) {
  static char lists[NUM_TEST_CONTEXTS][NUM_TEST_CONTEXTS * NAME_SIZE];
  char *const list = lists[num];
  size_t i;

  list[0] = '\0';
  for (i = 0; i < num; ++i) {
    if (i > 0) strcat(list, ", ");
    strcat(list, context_name(i));
  }
  return list;
}

static int all_are(cohort_device_type type) {
  size_t i;

  for (i = 0; i < NUM_TEST_CONTEXTS && test_contexts()[i].device_type == type; ++i) continue;
  return i == NUM_TEST_CONTEXTS;
}

void only_on_cpus(void) {
  if (!all_are(COHORT_DEVICE_CPU)) skip();
}

void only_on_one_type(void) {
  if (!all_are(test_contexts()[0].device_type)) skip();
}

/* DLPack's DLManagedTensor. */
typedef struct managed {
  void *data;
  int32_t device[2], num_axes;
  unsigned char dtype[4];
  int64_t *shape, *strides;
  uint64_t byte_offset;
  void *owner;
  void (*deleter)(struct managed *self);
} managed;

void *address_of(const cohort_ndarray *array) {
  managed *lent = NULL;
  char *address = NULL;
  cohort_error *error = cohort_ndarray_to_dlpack_unversioned(array, (void **)&lent);

  if (error) fail_msg("%s", cohort_error_message(error));
  address = (char *)lent->data + lent->byte_offset;
  lent->deleter(lent);
  return address;
}

/* ---- calls that name no context: the linker redirects them here (--wrap, in the Makefile)
 * ------------------------- */

static const cohort_context *or_first(const cohort_context *context) {
  return context || !listed() ? context : test_contexts();
}

/* Attributes of an operator, with a context if they name none; unchanged if they are invalid. One thread at a time. */
static const cohort_invoke_options *on_first(const cohort_invoke_options *options) {
  static cohort_invoke_options changed;

  if (!listed() || (options && (options->struct_size != sizeof(changed) || options->context))) return options;
  cohort_invoke_options_init(&changed, sizeof(changed));
  if (options) changed = *options;
  changed.context = test_contexts();
  return &changed;
}

/* Weak, because a program that is linked without --wrap has none of them. */
#define WRAPPED(function, parameters, arguments)                    \
  __attribute__((weak)) cohort_error *__real_##function parameters; \
  cohort_error *__wrap_##function parameters;                       \
  cohort_error *__wrap_##function parameters { return __real_##function arguments; }

WRAPPED(cohort_ndarray_zeros,
        (const int64_t *shape, int32_t num_axes, cohort_dtype dtype, const cohort_context *context,
         cohort_ndarray **out_array),
        (shape, num_axes, dtype, or_first(context), out_array))
WRAPPED(cohort_ndarray_empty,
        (const int64_t *shape, int32_t num_axes, cohort_dtype dtype, const cohort_context *context,
         cohort_ndarray **out_array),
        (shape, num_axes, dtype, or_first(context), out_array))
WRAPPED(cohort_ndarray_full,
        (const int64_t *shape, int32_t num_axes, cohort_dtype dtype, const cohort_context *context, double value,
         cohort_ndarray **out_array),
        (shape, num_axes, dtype, or_first(context), value, out_array))
WRAPPED(cohort_ndarray_from_host,
        (const void *data, size_t bytes, const int64_t *shape, int32_t num_axes, cohort_dtype dtype,
         const cohort_context *context, cohort_ndarray **out_array),
        (data, bytes, shape, num_axes, dtype, or_first(context), out_array))
WRAPPED(cohort_ndarray_copy, (const cohort_ndarray *array, const cohort_context *context, cohort_ndarray **out_array),
        (array, or_first(context), out_array))
WRAPPED(cohort_executor_bind,
        (const cohort_symbol *symbol, const cohort_context *context, cohort_ndarray *const *args, size_t num_args,
         cohort_ndarray *const *grads, const cohort_grad_req *grad_req, cohort_ndarray *const *aux, size_t num_aux,
         const cohort_executor_options *options, cohort_executor **out_executor),
        (symbol, or_first(context), args, num_args, grads, grad_req, aux, num_aux, options, out_executor))
WRAPPED(cohort_executor_simple_bind,
        (const cohort_symbol *symbol, const cohort_context *context, const cohort_descs *known,
         const cohort_executor_options *options, cohort_executor **out_executor),
        (symbol, or_first(context), known, options, out_executor))

WRAPPED(cohort_arrays_load_memory,
        (const void *data, size_t bytes, const cohort_context *context, cohort_arrays **out_arrays),
        (data, bytes, or_first(context), out_arrays))
WRAPPED(cohort_operator_invoke,
        (const char *op, const char *const *keys, const char *const *values, size_t num_attrs,
         cohort_ndarray *const *inputs, size_t num_inputs, cohort_ndarray *const *outputs, size_t num_outputs,
         const cohort_invoke_options *options, cohort_arrays **out_outputs),
        (op, keys, values, num_attrs, inputs, num_inputs, outputs, num_outputs, on_first(options), out_outputs))
