/* SPDX-License-Identifier: Apache-2.0 */
/* topk, sort and argsort of lines of every length and type, compared with qsort: equal elements keep their order,
 * zeros are equal whatever their sign, NaN comes last in either direction. Values alone are the same as values with
 * indices. */
#include <math.h>
#include <stdio.h>

#include "support/boundary.h"

enum { MOST = 40000, INNER = 3 };
enum { SMALL, WHOLE, PLAIN, WIDE }; /* numbers: draw() */

typedef struct item {
  double key;
  int64_t index;
} item;

static int ascending;

static int compare(const void *left, const void *right) {
  const item *a = left, *b = right;
  const int a_nan = isnan(a->key), b_nan = isnan(b->key);

  if (a_nan || b_nan) return a_nan != b_nan ? a_nan - b_nan : (a->index > b->index) - (a->index < b->index);
  if (a->key != b->key) return (a->key < b->key) == ascending ? -1 : 1;
  return (a->index > b->index) - (a->index < b->index);
}

static cohort_ndarray *applied(const char *op, const char *const *keys, const char *const *values, size_t num_attrs,
                               cohort_ndarray *input, size_t output) {
  cohort_arrays *outputs = NULL;
  cohort_ndarray *result = NULL;

  ok(cohort_operator_invoke(op, keys, values, num_attrs, &input, 1, NULL, 0, NULL, &outputs));
  ok(cohort_arrays_get(outputs, output, &result));
  cohort_arrays_free(outputs);
  return result;
}

static cohort_ndarray *cast(cohort_ndarray *array, const char *dtype) {
  const char *const key = "dtype";

  return applied("Cast", &key, &dtype, 1, array, 0);
}

/* Numbers with ties. Every type can represent SMALL ones; WHOLE are of both signs; PLAIN have halves; WIDE infinities,
 * both zeros and NaN, too. */
static void draw(float *values, int64_t count, int numbers) {
  uint32_t random = 12345;
  int64_t n;

  for (n = 0; n < count; ++n) {
    random = random * 1664525 + 1013904223;
    values[n] = numbers >= PLAIN ? (float)((int)(random >> 20) - 2048) / 2 : (float)(random >> 25);
    if (numbers == WHOLE) values[n] -= 64;
    if (numbers != WIDE) continue;
    if (random >> 16 & 1 && n % 5 == 0) values[n] = n % 2 ? 0.0f : -0.0f;
    if (n % 97 == 1) values[n] = NAN;
    if (n % 89 == 3) values[n] = INFINITY;
    if (n % 83 == 4) values[n] = -INFINITY;
  }
}

/* The first `kept` of each of `inner` lines along the first axis of (count, inner). */
static void check(const char *dtype, int numbers, int64_t count, int64_t inner, int64_t kept, int is_ascend) {
  static float values[MOST], sorted[MOST], alone[MOST];
  static int32_t indices[MOST];
  static item items[MOST];
  const char *const keys[] = {"axis", "k", "ret_typ", "is_ascend", "dtype"};
  char k[24];
  const char *attrs[] = {"0", k, "both", is_ascend ? "True" : "False", "int32"};
  const int64_t shape[] = {count, inner};
  cohort_ndarray *source = NULL, *data, *found, *widened;
  int64_t line, n;

  assert_true(count * inner <= MOST);
  snprintf(k, sizeof(k), "%d", (int)kept);
  draw(values, count * inner, numbers);
  ok(cohort_ndarray_zeros(shape, 2, COHORT_DTYPE_FLOAT32, NULL, &source));
  ok(cohort_ndarray_write(source, values, (size_t)(count * inner) * sizeof(float)));
  data = cast(source, dtype);
  found = applied("topk", keys, attrs, 5, data, 0);
  widened = cast(found, "float32");
  ok(cohort_ndarray_read(widened, sorted, (size_t)(kept * inner) * sizeof(float)));
  cohort_ndarray_free(found);
  found = applied("topk", keys, attrs, 5, data, 1);
  ok(cohort_ndarray_read(found, indices, (size_t)(kept * inner) * sizeof(int32_t)));
  attrs[2] = "value";
  cohort_ndarray_free(found);
  found = applied("topk", keys, attrs, 5, data, 0);
  cohort_ndarray_free(widened);
  widened = cast(found, "float32");
  ok(cohort_ndarray_read(widened, alone, (size_t)(kept * inner) * sizeof(float)));
  assert_memory_equal(alone, sorted, (size_t)(kept * inner) * sizeof(float));
  ascending = is_ascend;
  for (line = 0; line < inner; ++line) {
    for (n = 0; n < count; ++n) items[n] = (item){values[n * inner + line], n};
    qsort(items, (size_t)count, sizeof(item), compare);
    for (n = 0; n < kept; ++n) {
      const float expected = (float)items[n].key, at = sorted[n * inner + line];
      assert_int_equal(indices[n * inner + line], items[n].index);
      assert_true(isnan(expected) ? isnan(at) : at == expected && !signbit(at) == !signbit(expected));
    }
  }
  cohort_ndarray_free(source);
  cohort_ndarray_free(data);
  cohort_ndarray_free(found);
  cohort_ndarray_free(widened);
}

static void lines_of_every_length_are_in_order(void **state) {
  static const struct {
    const char *name;
    int numbers;
  } drawn[] = {{"float32", PLAIN}, {"float32", WIDE}, {"float64", PLAIN}, {"float64", WIDE}, {"float16", PLAIN},
               {"float16", WIDE},  {"int32", WHOLE},  {"int64", WHOLE},   {"int8", WHOLE},   {"uint8", SMALL}};
  static const int64_t counts[] = {1, 2, 15, 33, 127, 128, 129, 500, 513, 1000, 1300, 2049, 4096, 5000};
  size_t d, c, s;
  int is_ascend;

  (void)state;
  for (d = 0; d < NUM_OF(drawn); ++d) {
    for (c = 0; c < NUM_OF(counts); ++c) {
      const int64_t count = counts[c], kept[] = {count, 1, (count + 9) / 10, (count + 1) / 2};
      for (s = 0; s < NUM_OF(kept); ++s) {
        for (is_ascend = 0; is_ascend < 2; ++is_ascend) {
          check(drawn[d].name, drawn[d].numbers, count, 1, kept[s], is_ascend);
          check(drawn[d].name, drawn[d].numbers, count, INNER, kept[s], is_ascend);
        }
      }
    }
  }
}

static void long_lines_are_in_order(void **state) {
  static const int64_t kept[] = {MOST, 1, 10, MOST / 9, MOST / 8, MOST / 2};
  size_t s;
  int is_ascend;

  (void)state;
  for (s = 0; s < NUM_OF(kept); ++s)
    for (is_ascend = 0; is_ascend < 2; ++is_ascend) check("float32", WIDE, MOST, 1, kept[s], is_ascend);
  check("float32", PLAIN, 1 << 14, 1, 1 << 14, 1);
  check("int32", WHOLE, MOST, 1, MOST, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(lines_of_every_length_are_in_order),
      TEST(long_lines_are_in_order),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
