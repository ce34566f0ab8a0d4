/* SPDX-License-Identifier: Apache-2.0 */
/* Every operator takes the combinations of input types that MXNet 1.9.1 takes, returns outputs of the same types, and
 * the numbers that it returns for float32. The table in tests/data/operators/types.tsv explains itself. */
#include <math.h>

#include "support/boundary.h"

#define TABLE "tests/data/operators/types.tsv"

enum { kMaxLine = 1 << 14, kMaxArrays = 80, kMaxAttrs = 24, kMaxValues = 512, kMaxExceptions = 64, kMaxShown = 20 };

static const struct {
  char letter;
  int32_t dtype;
} types[] = {{'h', COHORT_DTYPE_FLOAT16}, {'f', COHORT_DTYPE_FLOAT32}, {'d', COHORT_DTYPE_FLOAT64},
             {'u', COHORT_DTYPE_UINT8},   {'b', COHORT_DTYPE_INT8},    {'i', COHORT_DTYPE_INT32},
             {'l', COHORT_DTYPE_INT64},   {'o', COHORT_DTYPE_BOOL},    {'g', COHORT_DTYPE_BFLOAT16}};

static int32_t dtype_of(char letter) {
  size_t i;

  for (i = 0; i < NUM_OF(types); ++i)
    if (types[i].letter == letter) return types[i].dtype;
  fail_msg("%s: there is no type '%c'", TABLE, letter);
  return COHORT_DTYPE_NONE;
}

static char letter_of(int32_t dtype) {
  size_t i;

  for (i = 0; i < NUM_OF(types); ++i)
    if (types[i].dtype == dtype) return types[i].letter;
  return '?';
}

/* ---- a line of the table ----------------------------------------------------------------------------------------- */

/* An input as the table describes it: float64, its values repeated. */
typedef struct {
  cohort_ndarray *array;
  int whole; /* all values are whole numbers */
} input;

typedef struct {
  const char *op, *keys[kMaxAttrs], *values[kMaxAttrs];
  size_t num_attrs, num_inputs;
  input inputs[kMaxArrays];
} call;

/* Splits at `separator`, which is overwritten by the end of the first part; returns the rest. */
static char *cut(char **rest, char separator) {
  char *part = *rest, *end = part ? strchr(part, separator) : NULL;

  *rest = end ? end + 1 : NULL;
  if (end) *end = '\0';
  return part;
}

static input read_input(char *text) {
  char *shape = cut(&text, ':'), *end;
  int64_t lengths[COHORT_MAX_AXES], size = 1, i;
  int32_t num_axes = 0;
  double values[kMaxValues], *all;
  size_t num_values = 0;
  input made = {NULL, 1};

  assert_non_null(text);
  for (; shape && *shape; ++num_axes) size *= lengths[num_axes] = strtoll(cut(&shape, 'x'), NULL, 10);
  for (; *text; text = *end == ',' ? end + 1 : end) {
    assert_true(num_values < kMaxValues);
    values[num_values] = strtod(text, &end);
    assert_true(end != text);
    if (values[num_values] != floor(values[num_values])) made.whole = 0;
    ++num_values;
  }
  all = malloc((size_t)size * sizeof(double) + 1);
  assert_non_null(all);
  for (i = 0; i < size; ++i) all[i] = values[(size_t)i % num_values];
  ok(cohort_ndarray_from_host(all, (size_t)size * sizeof(double), lengths, num_axes, COHORT_DTYPE_FLOAT64, NULL,
                              &made.array));
  free(all);
  return made;
}

static call read_call(char *op, char *attrs, char *inputs) {
  call made;

  memset(&made, 0, sizeof made);
  made.op = op;
  if (strcmp(attrs, "-") == 0) attrs = NULL;
  while (attrs) {
    char *value = cut(&attrs, ';');

    assert_true(made.num_attrs < kMaxAttrs);
    made.keys[made.num_attrs] = cut(&value, '=');
    made.values[made.num_attrs++] = value;
  }
  if (strcmp(inputs, "-") == 0) inputs = NULL;
  while (inputs) {
    assert_true(made.num_inputs < kMaxArrays);
    made.inputs[made.num_inputs++] = read_input(cut(&inputs, '|'));
  }
  return made;
}

static void free_call(call *made) {
  size_t i;

  for (i = 0; i < made->num_inputs; ++i) cohort_ndarray_free(made->inputs[i].array);
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

static cohort_ndarray *as_type(const cohort_ndarray *array, int32_t dtype) {
  cohort_ndarray *to = NULL;

  ok(cohort_ndarray_cast(array, dtype, &to));
  return to;
}

static double *numbers_of(const cohort_ndarray *array, int64_t *out_size) {
  cohort_ndarray *wide = as_type(array, COHORT_DTYPE_FLOAT64);
  double *numbers;

  ok(cohort_ndarray_size(array, out_size));
  numbers = malloc((size_t)*out_size * sizeof(double) + 1);
  assert_non_null(numbers);
  ok(cohort_ndarray_read(wide, numbers, (size_t)*out_size * sizeof(double)));
  cohort_ndarray_free(wide);
  return numbers;
}

/* Casts the input to a type, as the head of the table says. */
static cohort_ndarray *typed_input(const input *from, char letter) {
  int64_t shape[COHORT_MAX_AXES], size, i;
  int32_t num_axes;
  double *numbers;
  cohort_ndarray *wide = NULL, *to;

  if (!strchr("ubil", letter)) return as_type(from->array, dtype_of(letter));
  numbers = numbers_of(from->array, &size);
  for (i = 0; i < size; ++i) {
    if (!from->whole) numbers[i] *= 8;
    if (letter == 'u') numbers[i] = fabs(numbers[i]);
    if (letter == 'u' || letter == 'b') numbers[i] = fmax(-100, fmin(100, numbers[i]));
  }
  ok(cohort_ndarray_shape(from->array, shape, COHORT_MAX_AXES, &num_axes));
  ok(cohort_ndarray_from_host(numbers, (size_t)size * sizeof(double), shape, num_axes, COHORT_DTYPE_FLOAT64, NULL,
                              &wide));
  to = as_type(wide, dtype_of(letter));
  cohort_ndarray_free(wide);
  free(numbers);
  return to;
}

/* How inputs become those of the call whose numbers are the expected ones. */
enum { kAsTheyAre, kAllFloat32, kFloatsFloat32 };

static cohort_error *apply(const call *c, const char *letters, int how, cohort_arrays **outputs) {
  cohort_ndarray *inputs[kMaxArrays];
  cohort_error *error;
  size_t i;

  for (i = 0; i < c->num_inputs; ++i) {
    inputs[i] = typed_input(&c->inputs[i], letters[i]);
    if (how == kAllFloat32 || (how == kFloatsFloat32 && strchr("hdg", letters[i]))) {
      cohort_ndarray *plain = as_type(inputs[i], COHORT_DTYPE_FLOAT32);

      cohort_ndarray_free(inputs[i]);
      inputs[i] = plain;
    }
  }
  error =
      cohort_operator_invoke(c->op, c->keys, c->values, c->num_attrs, inputs, c->num_inputs, NULL, 0, NULL, outputs);
  for (i = 0; i < c->num_inputs; ++i) cohort_ndarray_free(inputs[i]);
  return error;
}

/* ---- checks of a combination
 * --------------------------------------------------------------------------------------- */

/* Compares output `index` with that of float32, to the precision of the narrowest type of the call; integers are the
 * integer part, and bool is whether it is not 0. */
static int numbers_differ(const cohort_arrays *found, const cohort_arrays *expected, size_t index, const char *letters,
                          char type, char *message, size_t room) {
  cohort_ndarray *a = NULL, *b = NULL;
  double *x, *y, largest = 0x1p-10, eps = 0;
  int64_t num_x, num_y, i;
  int differs = 0;

  ok(cohort_arrays_get(found, index, &a));
  ok(cohort_arrays_get(expected, index, &b));
  x = numbers_of(a, &num_x);
  y = numbers_of(b, &num_y);
  for (i = 0; i < num_y; ++i) largest = fmax(largest, fabs(y[i]));
  if (strchr("hfdg", type)) eps = (strchr(letters, 'h') || type == 'h' ? 0x1p-8 : 0x1p-16) * largest;
  if (strchr(letters, 'g') || type == 'g') eps = 0x1p-5 * largest;
  if (num_x != num_y) {
    snprintf(message, room, "output %zu: expected %lld elements, found %lld", index, (long long)num_y,
             (long long)num_x);
    differs = 1;
  }
  for (i = 0; i < num_x && !differs; ++i) {
    const double expects = type == 'o' ? y[i] != 0 : strchr("hfdg", type) ? y[i] : trunc(y[i]);

    if (fabs(x[i] - expects) <= eps) continue;
    snprintf(message, room, "output %zu, element %lld: expected %g, found %g", index, (long long)i, expects, x[i]);
    differs = 1;
  }
  free(x);
  free(y);
  cohort_ndarray_free(a);
  cohort_ndarray_free(b);
  return differs;
}

/* Whether the call fails, or contradicts the table; `combination` is "hf>f", or "hf>f~". */
static int is_wrong(const call *c, const char *combination, char *message, size_t room) {
  const char *const outputs = strchr(combination, '>') + 1;
  const size_t num_outputs = outputs[0] == '-' ? 0 : strspn(outputs, "hfdubilog");
  cohort_arrays *found = NULL, *expected = NULL;
  cohort_error *error = apply(c, combination, kAsTheyAre, &found);
  size_t num = 0, i;
  int wrong = 0;

  if (error) {
    snprintf(message, room, "%s", cohort_error_message(error));
    cohort_error_free(error);
    return 1;
  }
  ok(cohort_arrays_num(found, &num));
  if (num != num_outputs) {
    snprintf(message, room, "expected %zu outputs, found %zu", num_outputs, num);
    wrong = 1;
  }
  for (i = 0; i < num_outputs && !wrong; ++i) {
    cohort_ndarray *array = NULL;
    int32_t dtype = COHORT_DTYPE_NONE;

    ok(cohort_arrays_get(found, i, &array));
    ok(cohort_ndarray_dtype(array, &dtype));
    cohort_ndarray_free(array);
    if (letter_of(dtype) == outputs[i]) continue;
    snprintf(message, room, "output %zu: expected type %c, found %c", i, outputs[i], letter_of(dtype));
    wrong = 1;
  }
  if (!wrong && !strchr(combination, '~')) {
    error = apply(c, combination, kAllFloat32, &expected);
    if (error) {
      cohort_error_free(error);
      ok(apply(c, combination, kFloatsFloat32, &expected));
    }
    for (i = 0; i < num_outputs && !wrong; ++i)
      wrong = numbers_differ(found, expected, i, combination, outputs[i], message, room);
  }
  cohort_arrays_free(found);
  cohort_arrays_free(expected);
  return wrong;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

typedef struct {
  char op[64], combinations[512];
  int used;
} exception;

static exception exceptions[kMaxExceptions];
static size_t num_exceptions;

/* "-", operator, combinations, reason. */
static void read_exception(char *rest) {
  const char *op = cut(&rest, '\t'), *combinations = cut(&rest, '\t');
  exception *e = &exceptions[num_exceptions];

  assert_true(num_exceptions < kMaxExceptions);
  assert_true(op && combinations && rest); /* the rest is the reason */
  snprintf(e->op, sizeof e->op, "%s", op);
  snprintf(e->combinations, sizeof e->combinations, " %s ", combinations);
  e->used = 0;
  ++num_exceptions;
}

static exception *find_exception(const char *op, const char *combination) {
  char wanted[kMaxArrays * 2];
  size_t i;

  snprintf(wanted, sizeof wanted, " %.*s ", (int)strcspn(combination, "~"), combination);
  for (i = 0; i < num_exceptions; ++i)
    if (strcmp(exceptions[i].op, op) == 0 && strstr(exceptions[i].combinations, wanted)) return &exceptions[i];
  return NULL;
}

static void operators_take_the_types_that_mxnet_takes(void **state) {
  const char *only = getenv("COHORT_TEST_OP"); /* one operator; else all */
  FILE *file = fopen(TABLE, "r");
  char *line = malloc(kMaxLine), message[512];
  size_t num_combinations = 0, num_wrong = 0, i;

  (void)state;
  if (!file) fail_msg("%s cannot be read; run this where it is", TABLE);
  assert_non_null(line);
  num_exceptions = 0;
  while (fgets(line, kMaxLine, file)) {
    char *rest = line, *op, *attrs, *inputs, *combination;
    call c;

    line[strcspn(line, "\n")] = '\0';
    assert_true(strlen(line) + 2 < kMaxLine);
    if (line[0] == '#') continue;
    op = cut(&rest, '\t');
    if (strcmp(op, "-") == 0) {
      read_exception(rest);
      continue;
    }
    if (only && strcmp(op, only) != 0) continue;
    attrs = cut(&rest, '\t');
    inputs = cut(&rest, '\t');
    assert_non_null(rest);
    c = read_call(op, attrs, inputs);
    while ((combination = cut(&rest, ' '))) {
      exception *e = find_exception(op, combination);
      const int wrong = is_wrong(&c, combination, message, sizeof message);

      ++num_combinations;
      if (e) e->used = 1;
      if (e && !wrong) snprintf(message, sizeof message, "works, and is among the exceptions");
      if (!e == !wrong) continue;
      if (++num_wrong <= kMaxShown) print_error("%s %s: %s\n", op, combination, message);
    }
    free_call(&c);
  }
  fclose(file);
  free(line);
  for (i = 0; i < num_exceptions && !only; ++i) {
    if (!exceptions[i].used) fail_msg("%s: the exception of %s is of no combination", TABLE, exceptions[i].op);
  }
  if (only && num_combinations == 0) fail_msg("%s has no line of %s", TABLE, only);
  assert_true(only || num_combinations > 5000);
  if (num_wrong > 0) fail_msg("%zu of %zu combinations are wrong", num_wrong, num_combinations);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(operators_take_the_types_that_mxnet_takes)};

  return cmocka_run_group_tests(tests, NULL, NULL);
}
