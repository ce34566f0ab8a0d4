/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays: the parts of NDA-01 to NDA-12 that other tests leave open; files of arrays: PAR-02 to PAR-08 over the ABI. */
#include <stdio.h>
#include <unistd.h>

#include "support/executor_tests.h"
#include "support/temporary.h"

static cohort_ndarray *filled(const int64_t *shape, int32_t num_axes, double value) {
  cohort_ndarray *array = NULL;

  ok(cohort_ndarray_full(shape, num_axes, COHORT_DTYPE_FLOAT32, NULL, value, &array));
  return array;
}

/* NDA-02: arrays of zeros, of one value, uninitialised, and from host memory, on any context; also of length zero and
 * scalars. */
static void arrays_are_made_in_four_ways(void **state) {
  const cohort_context cpu9 = {COHORT_DEVICE_CPU, 9};
  const float values[] = {1, 2};
  cohort_ndarray *array = NULL;
  int64_t size = -1;

  (void)state;
  ok(cohort_ndarray_zeros(SHAPE(2), COHORT_DTYPE_FLOAT32, &cpu9, &array));
  holds(array, 0, 0);
  is_on_cpu(array, 9);
  ok(cohort_ndarray_full(SHAPE(2), COHORT_DTYPE_FLOAT32, &cpu9, 7, &array));
  holds(array, 7, 7);
  is_on_cpu(array, 9);
  ok(cohort_ndarray_from_host(values, sizeof(values), SHAPE(2), COHORT_DTYPE_FLOAT32, &cpu9, &array));
  holds(array, 1, 2);
  is_on_cpu(array, 9);
  ok(cohort_ndarray_empty(SHAPE(2), COHORT_DTYPE_FLOAT32, &cpu9, &array));
  ok(cohort_ndarray_fill(array, 3));
  holds(array, 3, 3);
  is_on_cpu(array, 9);
  ok(cohort_ndarray_zeros(SHAPE(2, 0), COHORT_DTYPE_FLOAT32, NULL, &array));
  ok(cohort_ndarray_size(array, &size));
  assert_int_equal(size, 0);
  has_shape(array, 2, 0);
  ok(cohort_ndarray_read(array, NULL, 0));
  ok(cohort_ndarray_fill(array, 1));
  cohort_ndarray_free(array);
  ok(cohort_ndarray_zeros(NULL, 0, COHORT_DTYPE_FLOAT32, NULL, &array));
  holds_free(array, 0);
}

/* NDA-03, NDA-05: along axis 0 a range is a view, along another a copy. NDA-04: a row of a rank-1 array keeps an axis.
 */
static void ranges_are_views_along_axis_0_only(void **state) {
  cohort_ndarray *array = counted(SHAPE(2, 3), 1), *rows = NULL, *columns = NULL, *line = counted(SHAPE(3), 1);
  cohort_ndarray *one = NULL;

  (void)state;
  ok(cohort_ndarray_slice_axis(array, 0, 1, INT64_MAX, &rows));
  ok(cohort_ndarray_slice_axis(array, 1, 1, 3, &columns));
  ok(cohort_ndarray_fill(array, 9));
  holds_free(rows, 9, 9, 9);
  holds_free(columns, 1, 2, 4, 5);
  ok(cohort_ndarray_at(line, 2, &one));
  has_shape(one, 1);
  fill(one, 8);
  holds_free(line, 0, 1, 8);
  cohort_ndarray_free(array);
}

/* NDA-07, NDA-08: a copy to a context is a new array; casts truncate toward zero, overflow to infinity in float16, and
 * give true for any number but 0. */
static void copies_are_new_and_cast(void **state) {
  const float values[] = {2.5f, -1.5f, 100000, 0};
  const cohort_context cpu0 = {COHORT_DEVICE_CPU, 0};
  cohort_ndarray *array = NULL, *copy = NULL, *half = NULL, *back = NULL, *truth = NULL;
  unsigned char bools[4] = {9, 9, 9, 9};

  (void)state;
  ok(cohort_ndarray_from_host(values, sizeof(values), SHAPE(4), COHORT_DTYPE_FLOAT32, NULL, &array));
  ok(cohort_ndarray_copy(array, &cpu0, &copy));
  ok(cohort_ndarray_cast(array, COHORT_DTYPE_FLOAT16, &half));
  ok(cohort_ndarray_cast(half, COHORT_DTYPE_FLOAT32, &back));
  ok(cohort_ndarray_cast(array, COHORT_DTYPE_BOOL, &truth));
  ok(cohort_ndarray_fill(array, 0));
  holds_free(copy, 2.5f, -1.5f, 100000, 0);
  {
    float read[4];

    ok(cohort_ndarray_read(back, read, sizeof(read)));
    assert_true(read[0] == 2.5f && read[1] == -1.5f && read[2] > 1e30f && read[2] * 0 != 0 && read[3] == 0);
  }
  ok(cohort_ndarray_read(truth, bools, sizeof(bools)));
  assert_memory_equal(bools, "\1\1\1\0", 4);
  cohort_ndarray_free(array);
  cohort_ndarray_free(half);
  cohort_ndarray_free(back);
  cohort_ndarray_free(truth);
}

/* NDA-09: arrays from any context are joined on the first one's context; dtypes and other lengths must agree. */
static void arrays_are_joined_on_the_first_ones_context(void **state) {
  const cohort_context cpu2 = {COHORT_DEVICE_CPU, 2};
  cohort_ndarray *parts[2], *joined = NULL, *doubles = NULL, *narrow = filled(SHAPE(1, 2), 0);

  (void)state;
  ok(cohort_ndarray_full(SHAPE(1, 3), COHORT_DTYPE_FLOAT32, &cpu2, 1, &parts[0]));
  parts[1] = filled(SHAPE(2, 3), 2);
  ok(cohort_ndarray_concat(parts, 2, 0, &joined));
  holds(joined, 1, 1, 1, 2, 2, 2, 2, 2, 2);
  has_shape(joined, 3, 3);
  is_on_cpu(joined, 2);
  joined = NULL;
  ok(cohort_ndarray_cast(parts[1], COHORT_DTYPE_FLOAT64, &doubles));
  cohort_ndarray_free(parts[1]);
  parts[1] = doubles;
  fails(cohort_ndarray_concat(parts, 2, 0, &joined), COHORT_ERROR_DTYPE, "float64");
  parts[1] = narrow;
  fails(cohort_ndarray_concat(parts, 2, 0, &joined), COHORT_ERROR_SHAPE, "(1, 2)");
  assert_null(joined);
  cohort_ndarray_free(parts[0]);
  cohort_ndarray_free(doubles);
  cohort_ndarray_free(narrow);
}

/* Arrays without elements may have very long axes, but the length of joined ones must fit its type. */
static void lengths_that_are_joined_fit_their_type(void **state) {
  cohort_ndarray *empty = NULL, *parts[5], *joined = NULL;
  size_t i;

  (void)state;
  ok(cohort_ndarray_zeros(SHAPE(INT64_C(1) << 61, 0), COHORT_DTYPE_INT8, NULL, &empty));
  for (i = 0; i < COUNT(parts); ++i) parts[i] = empty;
  fails(cohort_ndarray_concat(parts, COUNT(parts), 0, &joined), COHORT_ERROR_SHAPE, "the total length");
  assert_null(joined);
  ok(cohort_ndarray_concat(parts, 3, 0, &joined));
  has_shape(joined, 3 * (INT64_C(1) << 61), 0);
  cohort_ndarray_free(joined);
  cohort_ndarray_free(empty);
}

/* NDA-12: the operators needed for means, states and statistics are available by name. */
static void arithmetic_goes_by_operators(void **state) {
  const char *const key = "scalar", *const value = "4";
  cohort_ndarray *pair[2], *sum = NULL, *mean = NULL, *norm = NULL;
  cohort_arrays *outputs = NULL;

  (void)state;
  pair[0] = floats(SHAPE(2), FLOATS(6, 8));
  pair[1] = filled(SHAPE(2), 0);
  ok(cohort_ndarray_fill(pair[1], 6));
  ok(cohort_operator_invoke("elemwise_add", NULL, NULL, 0, pair, 2, NULL, 0, NULL, &outputs));
  ok(cohort_arrays_get(outputs, 0, &sum));
  cohort_arrays_free(outputs);
  ok(cohort_operator_invoke("_div_scalar", &key, &value, 1, &sum, 1, NULL, 0, NULL, &outputs));
  ok(cohort_arrays_get(outputs, 0, &mean));
  cohort_arrays_free(outputs);
  ok(cohort_operator_invoke("norm", NULL, NULL, 0, pair, 1, NULL, 0, NULL, &outputs));
  ok(cohort_arrays_get(outputs, 0, &norm));
  cohort_arrays_free(outputs);
  holds_free(mean, 3, 3.5f);
  holds_free(norm, 10);
  cohort_ndarray_free(pair[0]);
  cohort_ndarray_free(pair[1]);
  cohort_ndarray_free(sum);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* A file composed field by field. */
typedef struct bytes {
  unsigned char data[512];
  size_t num;
} bytes;

static void put(bytes *to, const void *data, size_t num) {
  assert_true(to->num + num <= sizeof(to->data));
  memcpy(to->data + to->num, data, num);
  to->num += num;
}
static void put32(bytes *to, uint32_t value) { put(to, &value, sizeof(value)); }
static void put64(bytes *to, uint64_t value) { put(to, &value, sizeof(value)); }
static void put_float(bytes *to, float value) { put(to, &value, sizeof(value)); }

static void header(bytes *to, uint64_t count) {
  to->num = 0;
  put64(to, 0x112);
  put64(to, 0);
  put64(to, count);
}

/* Context, dtype float32 and one value. */
static void one_value(bytes *to, uint32_t device_type, uint32_t device_id, float value) {
  put32(to, device_type);
  put32(to, device_id);
  put32(to, COHORT_DTYPE_FLOAT32);
  put_float(to, value);
}

static void names(bytes *to, const char *letters) {
  put64(to, strlen(letters));
  for (; *letters; ++letters) {
    put64(to, 1);
    put(to, letters, 1);
  }
}

static cohort_arrays *loaded(const bytes *from, const cohort_context *context) {
  cohort_arrays *arrays = NULL;

  ok(cohort_arrays_load_memory(from->data, from->num, context, &arrays));
  return arrays;
}

static cohort_ndarray *got(const cohort_arrays *arrays, const char *name) {
  cohort_ndarray *array = NULL;
  size_t at = 0;

  ok(cohort_arrays_find(arrays, name, &at));
  ok(cohort_arrays_get(arrays, at, &array));
  return array;
}

/* PAR-01 to PAR-04, PAR-06: records of all four kinds in one file; the last array of a repeated name counts; arrays are
 * loaded to the host, or to the context the caller asks for, whatever device they were saved from. Bytes behind the
 * names are not read (PAR-07). */
static void records_of_all_kinds_are_read(void **state) {
  const cohort_context cpu3 = {COHORT_DEVICE_CPU, 3};
  bytes file;
  cohort_arrays *arrays;
  size_t num = 0;

  (void)state;
  only_on_cpus();
  header(&file, 5);
  put32(&file, 0xF993FAC9); /* current version, saved from a GPU */
  put32(&file, 0);
  put32(&file, 1);
  put64(&file, 1);
  one_value(&file, 2, 7, 2);
  put32(&file, 0xF993FAC8); /* the first version, of cpu(3) */
  put32(&file, 1);
  put64(&file, 1);
  one_value(&file, 1, 3, 1);
  put32(&file, 2); /* the oldest version: it begins with the rank */
  put32(&file, 1);
  put32(&file, 1);
  one_value(&file, 1, 0, 0.5f);
  put32(&file, 0xF993FACA); /* the third version, a scalar */
  put32(&file, 0);
  put32(&file, 0);
  one_value(&file, 1, 0, 3);
  put32(&file, 0xF993FAC9);
  put32(&file, 0);
  put32(&file, 1);
  put64(&file, 1);
  one_value(&file, 1, 0, 22);
  names(&file, "abcda");
  put(&file, "more", 4);
  arrays = loaded(&file, NULL);
  ok(cohort_arrays_num(arrays, &num));
  assert_int_equal(num, 4);
  holds_free(got(arrays, "a"), 22);
  is_on_cpu(got(arrays, "a"), 0);
  is_on_cpu(got(arrays, "b"), 0);
  holds_free(got(arrays, "c"), 0.5f);
  holds_free(got(arrays, "d"), 3);
  cohort_arrays_free(arrays);
  arrays = loaded(&file, &cpu3);
  is_on_cpu(got(arrays, "a"), 3);
  holds_free(got(arrays, "d"), 3);
  cohort_arrays_free(arrays);
}

static void keep_message(int32_t level, const char *message, void *user_data) {
  (void)level;
  snprintf(user_data, 256, "%s", message);
}

/* PAR-04, PAR-05: a scalar or an empty array makes a file of version 3. Empty records are entries without an array in a
 * list, and are left out of a map with a warning. */
static void scalars_and_empty_entries(void **state) {
  bytes file;
  cohort_arrays *arrays = named("s", filled(NULL, 0, 5)), *back;
  cohort_ndarray *array = NULL;
  char message[256] = "";
  uint32_t kind = 0;
  size_t num = 0;

  (void)state;
  add_named(arrays, "z", filled(SHAPE(0, 3), 0));
  ok(cohort_arrays_save_memory(arrays, file.data, sizeof(file.data), &file.num));
  memcpy(&kind, file.data + 24, 4);
  assert_int_equal(kind, 0xF993FACA);
  back = loaded(&file, NULL);
  array = got(back, "s");
  has_shape_at(array, NULL, 0, __FILE__, __LINE__);
  holds_free(array, 5);
  array = got(back, "z");
  has_shape(array, 0, 3);
  cohort_ndarray_free(array);
  cohort_arrays_free(arrays);
  cohort_arrays_free(back);

  header(&file, 3);
  put32(&file, 0xF993FAC9);
  put32(&file, 0);
  put32(&file, 0);
  put32(&file, 0); /* the oldest kind, of rank 0 */
  put32(&file, 0xF993FAC8);
  put32(&file, 0);
  put64(&file, 0);
  back = loaded(&file, NULL);
  ok(cohort_arrays_num(back, &num));
  assert_int_equal(num, 3);
  ok(cohort_arrays_get(back, 1, &array));
  assert_null(array);
  cohort_arrays_free(back);
  file.num -= 8;
  names(&file, "abc");
  ok(cohort_set_log(COHORT_LOG_WARNING, keep_message, message));
  back = loaded(&file, NULL);
  ok(cohort_set_log(COHORT_LOG_WARNING, NULL, NULL));
  ok(cohort_arrays_num(back, &num));
  assert_int_equal(num, 0);
  assert_non_null(strstr(message, "'a' and 2 more are empty entries"));
  cohort_arrays_free(back);
}

/* PAR-09: a sparse array is recognised and refused by name; PAR-07: one that is cut short is a format error first. */
static void sparse_arrays_are_refused_by_name(void **state) {
  bytes file;
  cohort_arrays *arrays = NULL;
  cohort_error *error;

  (void)state;
  header(&file, 1);
  put32(&file, 0xF993FAC9);
  put32(&file, 1); /* row_sparse: the rows stored, the whole shape, the type and shape of their indices */
  put32(&file, 1);
  put64(&file, 1);
  put32(&file, 1);
  put64(&file, 4);
  put32(&file, 1);
  put32(&file, 0);
  put32(&file, COHORT_DTYPE_FLOAT32);
  put32(&file, COHORT_DTYPE_INT64);
  put32(&file, 1);
  put64(&file, 1);
  put_float(&file, 1);
  put64(&file, 2);
  names(&file, "e");
  error = cohort_arrays_load_memory(file.data, file.num, NULL, &arrays);
  assert_int_equal(cohort_error_code(error), COHORT_ERROR_UNSUPPORTED);
  assert_string_equal(cohort_error_subject(error), "e");
  assert_non_null(strstr(cohort_error_message(error), "row_sparse"));
  cohort_error_free(error);
  fails(cohort_arrays_load_memory(file.data, file.num - 1, NULL, &arrays), COHORT_ERROR_FORMAT, "truncated");
  assert_null(arrays);
}

/* PAR-01, PAR-07: refused are another header, a wrong number of names, an unknown type, and sizes beyond the file's
 * end. */
static void damage_is_named(void **state) {
  bytes file;
  cohort_arrays *arrays = NULL;

  (void)state;
  header(&file, 1);
  file.data[0] = 0x13;
  fails(cohort_arrays_load_memory(file.data, file.num, NULL, &arrays), COHORT_ERROR_FORMAT, "not a .params file");
  fails(cohort_arrays_load_memory("{\"nodes\": []}", 13, NULL, &arrays), COHORT_ERROR_FORMAT, "this is JSON");
  header(&file, UINT64_MAX / 8);
  fails(cohort_arrays_load_memory(file.data, file.num, NULL, &arrays), COHORT_ERROR_FORMAT, "truncated");
  header(&file, 1);
  put32(&file, 0xF993FAC8);
  put32(&file, 2);
  put64(&file, (uint64_t)1 << 30);
  put64(&file, (uint64_t)1 << 30);
  one_value(&file, 1, 0, 0);
  fails(cohort_arrays_load_memory(file.data, file.num, NULL, &arrays), COHORT_ERROR_FORMAT, "truncated");
  header(&file, 1);
  put32(&file, 0xF993FAC8);
  put32(&file, 1);
  put64(&file, 1);
  one_value(&file, 1, 0, 0);
  put64(&file, 2);
  fails(cohort_arrays_load_memory(file.data, file.num, NULL, &arrays), COHORT_ERROR_FORMAT, "as many as arrays");
  file.data[48] = 77; /* the dtype */
  fails(cohort_arrays_load_memory(file.data, file.num, NULL, &arrays), COHORT_ERROR_FORMAT, "found 77");
  assert_null(arrays);
}

/* PAR-08: a checkpoint's file name has a number of four digits; a file without arrays gives two empty lists and a
 * warning. */
static void an_empty_checkpoint_is_two_empty_lists(void **state) {
  char prefix[TEMPORARY_PATH], path[TEMPORARY_PATH], message[256] = "";
  cohort_arrays *none = NULL, *args = NULL, *aux = NULL;
  size_t num = 77;

  (void)state;
  temporary_path(prefix, "array_rules", "");
  temporary_path(path, "array_rules", "-0007.params");
  ok(cohort_arrays_create(&none));
  ok(cohort_checkpoint_save(prefix, 7, NULL, none, NULL));
  ok(cohort_arrays_load(path, NULL, &args));
  cohort_arrays_free(args);
  ok(cohort_set_log(COHORT_LOG_WARNING, keep_message, message));
  ok(cohort_checkpoint_load(prefix, 7, NULL, &args, &aux));
  ok(cohort_set_log(COHORT_LOG_WARNING, NULL, NULL));
  assert_non_null(strstr(message, "-0007.params holds no arrays"));
  ok(cohort_arrays_num(args, &num));
  assert_int_equal(num, 0);
  ok(cohort_arrays_num(aux, &num));
  assert_int_equal(num, 0);
  remove(path);
  cohort_arrays_free(none);
  cohort_arrays_free(args);
  cohort_arrays_free(aux);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(arrays_are_made_in_four_ways),
      TEST(ranges_are_views_along_axis_0_only),
      TEST(copies_are_new_and_cast),
      TEST(arrays_are_joined_on_the_first_ones_context),
      TEST(lengths_that_are_joined_fit_their_type),
      TEST(arithmetic_goes_by_operators),
      TEST(records_of_all_kinds_are_read),
      TEST(scalars_and_empty_entries),
      TEST(sparse_arrays_are_refused_by_name),
      TEST(damage_is_named),
      TEST(an_empty_checkpoint_is_two_empty_lists),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
