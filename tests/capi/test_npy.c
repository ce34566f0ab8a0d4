/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's file formats, in and out of lists of arrays. The files in tests/data/npy were written by NumPy 1.24. */
#include "support/boundary.h"
#include "support/temporary.h"

#define DATA(name) "tests/data/npy/" name

static cohort_ndarray *entry(const cohort_arrays *list, const char *name) {
  cohort_ndarray *array = NULL;
  size_t index = 0;

  ok(cohort_arrays_find(list, name, &index));
  ok(cohort_arrays_get(list, index, &array));
  return array;
}

/* Loads an array from this file, or from its entry of this name. */
static cohort_ndarray *loaded(const char *path, const char *name, cohort_dtype dtype) {
  cohort_arrays *list = NULL;
  cohort_ndarray *array;
  cohort_dtype found = COHORT_DTYPE_NONE;

  ok(cohort_arrays_load(path, NULL, &list));
  array = entry(list, name);
  cohort_arrays_free(list);
  ok(cohort_ndarray_dtype(array, &found));
  assert_int_equal(found, dtype);
  return array;
}

/* Checks its bytes; frees it. */
static void holds_bytes(cohort_ndarray *array, const void *bytes, size_t size) {
  char found[1024];

  assert_true(size <= sizeof found);
  ok(cohort_ndarray_read(array, found, size));
  assert_memory_equal(found, bytes, size);
  cohort_ndarray_free(array);
}

static void files_of_numpy_are_read(void **state) {
  const int64_t rows[] = {2, 3}, columns[] = {2, 3, 4}, none[] = {0, 3};
  const float halves[] = {0, 0.5f, 1, 1.5f, 2, 2.5f}, weight[] = {0, 1, 2, 3};
  const int32_t integers[] = {1, -2, 70000, 4};
  const uint8_t mask[] = {1, 0};
  const uint16_t two_and_a_half = 0x4100;
  double counted[24];
  uint8_t counted_bytes[100];
  int64_t threes[50];
  cohort_ndarray *array;
  int i;

  (void)state;
  for (i = 0; i < 24; ++i) counted[i] = i;
  for (i = 0; i < 100; ++i) counted_bytes[i] = (uint8_t)i;
  for (i = 0; i < 50; ++i) threes[i] = 3;
  array = loaded(DATA("rows.npy"), "", COHORT_DTYPE_FLOAT32);
  assert_shape(array, rows, 2);
  holds_bytes(array, halves, sizeof halves);
  array = loaded(DATA("columns.npy"), "", COHORT_DTYPE_FLOAT64); /* in Fortran's order */
  assert_shape(array, columns, 3);
  holds_bytes(array, counted, sizeof counted);
  holds_bytes(loaded(DATA("big_endian.npy"), "", COHORT_DTYPE_INT32), integers, sizeof integers);
  array = loaded(DATA("scalar.npy"), "", COHORT_DTYPE_FLOAT16);
  assert_shape(array, rows, 0);
  holds_bytes(array, &two_and_a_half, sizeof two_and_a_half);
  array = loaded(DATA("none.npy"), "", COHORT_DTYPE_INT64);
  assert_shape(array, none, 2);
  cohort_ndarray_free(array);
  holds_bytes(loaded(DATA("stored.npz"), "weight", COHORT_DTYPE_FLOAT32), weight, sizeof weight);
  holds_bytes(loaded(DATA("stored.npz"), "mask", COHORT_DTYPE_BOOL), mask, sizeof mask);
  holds_bytes(loaded(DATA("compressed.npz"), "arr_0", COHORT_DTYPE_UINT8), counted_bytes, sizeof counted_bytes);
  holds_bytes(loaded(DATA("compressed.npz"), "bias", COHORT_DTYPE_INT64), threes, sizeof threes);
}

static char *whole_file(const char *path, size_t *out_size) {
  FILE *file = fopen(path, "rb");
  char *bytes = malloc(4096);

  assert_non_null(file);
  assert_non_null(bytes);
  *out_size = fread(bytes, 1, 4096, file);
  fclose(file);
  return bytes;
}

/* Arrays of every dtype that NumPy has, of several ranks, with and without names. */
static void what_is_written_is_read_again(void **state) {
  const cohort_dtype dtypes[] = {COHORT_DTYPE_FLOAT32, COHORT_DTYPE_FLOAT64, COHORT_DTYPE_FLOAT16, COHORT_DTYPE_UINT8,
                                 COHORT_DTYPE_INT32,   COHORT_DTYPE_INT8,    COHORT_DTYPE_INT64,   COHORT_DTYPE_BOOL};
  const int64_t shape[] = {2, 1, 3};
  char path[TEMPORARY_PATH];
  cohort_arrays *list = NULL, *read = NULL;
  char values[6 * sizeof(double)];
  size_t i, num = 0;

  (void)state;
  temporary_path(path, "arrays", ".npz");
  for (i = 0; i < sizeof values; ++i) values[i] = (char)(i % 2);
  ok(cohort_arrays_create(&list));
  for (i = 0; i < NUM_OF(dtypes); ++i) {
    cohort_ndarray *array = NULL;
    cohort_arrays *one = NULL;
    size_t bytes = 0;
    char name[8];

    ok(cohort_ndarray_zeros(shape, (int32_t)(i % 4), dtypes[i], NULL, &array));
    ok(cohort_ndarray_bytes(array, &bytes));
    ok(cohort_ndarray_write(array, values, bytes));
    snprintf(name, sizeof name, "a:%d", (int)i);
    ok(cohort_arrays_add(list, i == 3 ? NULL : name, array));
    ok(cohort_arrays_create(&one));
    ok(cohort_arrays_add(one, "any", array));
    ok(cohort_arrays_save_npy(one, path));
    array = (cohort_ndarray_free(array), loaded(path, "", dtypes[i]));
    assert_shape(array, shape, (int32_t)(i % 4));
    holds_bytes(array, values, bytes);
    cohort_arrays_free(one);
  }
  ok(cohort_arrays_save_npz(list, path));
  ok(cohort_arrays_load(path, NULL, &read));
  ok(cohort_arrays_num(read, &num));
  assert_int_equal(num, NUM_OF(dtypes));
  for (i = 0; i < num; ++i) {
    cohort_ndarray *array = NULL;
    const char *name = NULL;
    char expected[8];
    size_t bytes = 0;

    snprintf(expected, sizeof expected, i == 3 ? "arr_%d" : "a:%d", (int)i);
    ok(cohort_arrays_name(read, i, &name));
    assert_string_equal(name, expected);
    ok(cohort_arrays_get(read, i, &array));
    ok(cohort_ndarray_bytes(array, &bytes));
    holds_bytes(array, values, bytes);
  }
  cohort_arrays_free(read);
  ok(cohort_arrays_add(list, "a:0", NULL));
  fails(cohort_arrays_save_npz(list, path), COHORT_ERROR_INVALID_ARGUMENT, "array");
  fails(cohort_arrays_save_npy(list, path), COHORT_ERROR_INVALID_ARGUMENT, "array");
  cohort_arrays_free(list);
  unlink(path);
}

/* The file that numpy.savez writes for no arrays. */
static void an_archive_of_nothing_is_an_empty_list(void **state) {
  char path[TEMPORARY_PATH];
  cohort_arrays *list = NULL;
  size_t num = 1;

  (void)state;
  temporary_path(path, "nothing", ".npz");
  ok(cohort_arrays_create(&list));
  ok(cohort_arrays_save_npz(list, path));
  cohort_arrays_free(list);
  ok(cohort_arrays_load(path, NULL, &list));
  ok(cohort_arrays_num(list, &num));
  assert_int_equal(num, 0);
  cohort_arrays_free(list);
  unlink(path);
}

/* The same bytes as NumPy's: numpy.save of the same array. */
static void a_written_file_is_that_of_numpy(void **state) {
  char path[TEMPORARY_PATH];
  cohort_arrays *list = NULL;
  size_t size = 0, expected_size = 0;
  char *bytes, *expected = whole_file(DATA("rows.npy"), &expected_size);

  (void)state;
  temporary_path(path, "rows", ".npy");
  ok(cohort_arrays_load(DATA("rows.npy"), NULL, &list));
  ok(cohort_arrays_save_npy(list, path));
  cohort_arrays_free(list);
  bytes = whole_file(path, &size);
  assert_int_equal(size, expected_size);
  assert_memory_equal(bytes, expected, size);
  free(bytes);
  free(expected);
  unlink(path);
}

static void what_cannot_be_is_refused(void **state) {
  const int64_t two = 2;
  char path[TEMPORARY_PATH];
  cohort_arrays *list = NULL;
  cohort_ndarray *array = NULL;

  (void)state;
  temporary_path(path, "never", ".npy");
  fails(cohort_arrays_load(DATA("complex.npy"), NULL, &list), COHORT_ERROR_UNSUPPORTED, "'<c16'");
  fails(cohort_arrays_load(DATA("no_such.npy"), NULL, &list), COHORT_ERROR_IO, "no_such.npy");
  ok(cohort_ndarray_zeros(&two, 1, COHORT_DTYPE_BFLOAT16, NULL, &array));
  ok(cohort_arrays_create(&list));
  ok(cohort_arrays_add(list, "x", array));
  fails(cohort_arrays_save_npy(list, path), COHORT_ERROR_DTYPE, "bfloat16");
  ok(cohort_arrays_add(list, "x", array));
  fails(cohort_arrays_save_npy(list, path), COHORT_ERROR_INVALID_ARGUMENT, "expected one, found 2");
  cohort_ndarray_free(array);
  cohort_arrays_free(list);
  ok(cohort_arrays_load(DATA("rows.npy"), NULL, &list));
  ok(cohort_arrays_get(list, 0, &array));
  ok(cohort_arrays_set(list, "x", array));
  ok(cohort_arrays_add(list, "x", array));
  fails(cohort_arrays_save_npz(list, path), COHORT_ERROR_NAME, "'x'");
  cohort_ndarray_free(array);
  cohort_arrays_free(list);
  assert_int_equal(access(path, F_OK), -1); /* nothing was written */
}

/* Loads from memory: a list, or an error of one of the right classes. */
static void survives(const char *bytes, size_t size) {
  cohort_arrays *list = NULL;
  cohort_error *error = cohort_arrays_load_memory(bytes, size, NULL, &list);

  if (error) {
    const int32_t code = cohort_error_code(error);

    assert_true(code == COHORT_ERROR_FORMAT || code == COHORT_ERROR_UNSUPPORTED || code == COHORT_ERROR_OUT_OF_MEMORY);
  } else {
    cohort_arrays_free(list);
  }
  cohort_error_free(error);
}

/* Files cut short anywhere, and with each byte changed. The copies have their exact size, so that a sanitizer detects
 * reads beyond their end. */
static void hostile_files_are_errors(void **state) {
  const char *const paths[] = {DATA("rows.npy"), DATA("columns.npy"), DATA("none.npy"), DATA("stored.npz"),
                               DATA("compressed.npz")};
  const unsigned char flips[] = {0xff, 0x01, 0x80, 0x08};
  size_t p, i, k;

  (void)state;
  for (p = 0; p < NUM_OF(paths); ++p) {
    size_t size = 0;
    char *bytes = whole_file(paths[p], &size);

    for (i = 0; i < size; ++i) {
      char *part = malloc(i ? i : 1);

      assert_non_null(part);
      memcpy(part, bytes, i);
      survives(part, i);
      free(part);
      for (k = 0; k < NUM_OF(flips); ++k) {
        bytes[i] = (char)(bytes[i] ^ flips[k]);
        survives(bytes, size);
        bytes[i] = (char)(bytes[i] ^ flips[k]);
      }
    }
    free(bytes);
  }
}

static void put_number(char *to, uint32_t number) {
  int i;

  for (i = 0; i < 4; ++i) to[i] = (char)(number >> (8 * i));
}

/* An archive that lists one compressed entry again and again, under other names, would expand without end. */
static void entries_lie_apart(void **state) {
  enum { NUM = 200, LEAST_HEAD = 46, LEAST_END = 22 };
  size_t size = 0, directory, end, i;
  char *bytes = whole_file(DATA("compressed.npz"), &size), *all;
  uint32_t head;
  cohort_arrays *list = NULL;

  (void)state;
  for (directory = 0; memcmp(bytes + directory, "PK\1\2", 4) != 0; ++directory) assert_true(directory + 8 < size);
  for (end = directory; memcmp(bytes + end, "PK\5\6", 4) != 0; ++end) assert_true(end + LEAST_END < size + 1);
  /* The first entry's header, which contains its name, "arr_0.npy" or the like. */
  head = (uint32_t)(LEAST_HEAD + (unsigned char)bytes[directory + 28] + (unsigned char)bytes[directory + 30]);
  all = malloc(directory + NUM * head + LEAST_END);
  assert_non_null(all);
  memcpy(all, bytes, directory);
  for (i = 0; i < NUM; ++i) {
    char *const entry = all + directory + i * head;

    memcpy(entry, bytes + directory, head);
    entry[LEAST_HEAD] = (char)('a' + i / 26);
    entry[LEAST_HEAD + 1] = (char)('a' + i % 26);
  }
  memcpy(all + directory + NUM * head, bytes + end, LEAST_END);
  end = directory + NUM * head;
  all[end + 8] = all[end + 10] = (char)NUM;
  put_number(all + end + 12, NUM * head);
  fails(cohort_arrays_load_memory(all, end + LEAST_END, NULL, &list), COHORT_ERROR_FORMAT, "entries overlap");
  free(all);
  free(bytes);
}

/* An entry that claims far more than its array needs does not get the memory. */
static void entries_take_what_their_arrays_take(void **state) {
  static const char header[] = "\x93NUMPY\x01\x00\x38\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}\n";
  enum { HEAD = 30, LISTED = 46, NAME = 5, COMPRESSED = 4096, CLAIMED = 4000000, END = 22 };
  char bytes[HEAD + NAME + COMPRESSED + LISTED + NAME + END] = "PK\3\4";
  char *const content = bytes + HEAD + NAME, *const listed = content + COMPRESSED, *const end = listed + LISTED + NAME;
  cohort_arrays *list = NULL;

  (void)state;
  bytes[8] = 8; /* deflated */
  put_number(bytes + 18, COMPRESSED);
  put_number(bytes + 22, CLAIMED);
  bytes[26] = NAME;
  memcpy(bytes + HEAD, "x.npy", NAME);
  content[0] = 1; /* a stored block, the last one */
  content[1] = (char)(sizeof header - 1);
  content[3] = (char)~content[1];
  content[2] = 0;
  content[4] = (char)0xff;
  memcpy(content + 5, header, sizeof header - 1);
  memcpy(listed, "PK\1\2", 4);
  listed[10] = 8;
  put_number(listed + 20, COMPRESSED);
  put_number(listed + 24, CLAIMED);
  listed[28] = NAME;
  memcpy(listed + LISTED, "x.npy", NAME);
  memcpy(end, "PK\5\6", 4);
  end[8] = end[10] = 1;
  put_number(end + 12, LISTED + NAME);
  put_number(end + 16, (uint32_t)(listed - bytes));
  fails(cohort_arrays_load_memory(bytes, sizeof bytes, NULL, &list), COHORT_ERROR_FORMAT,
        "shape (1,): expected 4 bytes of data, found 3999934");
}

/* A .npy of this header, without values. */
static void header_fails(const char *header, const char *words) {
  char bytes[512];
  cohort_arrays *list = NULL;
  const size_t length = strlen(header);

  assert_true(length < sizeof bytes - 10);
  memcpy(bytes, "\x93NUMPY\x01\x00", 8);
  bytes[8] = (char)length;
  bytes[9] = 0;
  memcpy(bytes + 10, header, length);
  fails(cohort_arrays_load_memory(bytes, 10 + length, NULL, &list), COHORT_ERROR_FORMAT, words);
}

static void headers_are_read_strictly(void **state) {
  char axes[200] = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  int i;

  (void)state;
  header_fails("{'descr': '<f4', 'fortran_order': False}", "each once");
  header_fails("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", "twice");
  header_fails("{'descr': '<f4', 'fortran_order': 0, 'shape': ()}", "True or False");
  header_fails("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "lengths from 0");
  header_fails("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}", "lengths from 0");
  header_fails("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", "");
  header_fails("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000,)}",
               "expected 4000000000 bytes of data, found 0");
  header_fails("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)", "expected '}'");
  header_fails("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} x", "nothing after");
  header_fails("{'other': '<f4', 'fortran_order': False, 'shape': (2, 3)}", "'other'");
  header_fails("'descr", "expected '{'");
  header_fails("{'descr", "quotes");
  for (i = 0; i < 33; ++i) strcat(axes, "1, ");
  strcat(axes, ")}");
  header_fails(axes, "at most 32 axes");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(files_of_numpy_are_read),
      TEST(what_is_written_is_read_again),
      TEST(an_archive_of_nothing_is_an_empty_list),
      TEST(a_written_file_is_that_of_numpy),
      TEST(what_cannot_be_is_refused),
      TEST(hostile_files_are_errors),
      TEST(entries_lie_apart),
      TEST(entries_take_what_their_arrays_take),
      TEST(headers_are_read_strictly),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
