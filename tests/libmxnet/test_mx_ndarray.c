/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays: making, copying, views, files, and handles that are none. */
#include "mxnet_test.h"

static const float kSix[] = {1, 2, 3, 4, 5, 6};

static NDArrayHandle matrix(void) {
  const uint32_t shape[] = {2, 3};

  return floats_on(0, kSix, shape, 2);
}

/* An array has the shape, type and context that it was made with. */
static void arrays_have_what_they_were_made_with(void **state) {
  const uint32_t shape[] = {2, 3};
  const int expected[] = {2, 3};
  NDArrayHandle array = NULL;
  int dtype = -1, storage = -2, device_type = 0, device_id = -1;

  (void)state;
  ok(MXNDArrayCreateEx(shape, 2, 1, 1, 1, 6, &array));
  assert_shape(array, expected, 2);
  ok(MXNDArrayGetDType(array, &dtype));
  ok(MXNDArrayGetStorageType(array, &storage));
  ok(MXNDArrayGetContext(array, &device_type, &device_id));
  assert_int_equal(dtype, 6);
  assert_int_equal(storage, 0);
  assert_int_equal(device_type, 1);
  assert_int_equal(device_id, 1);
  ok(MXNDArrayFree(array));
}

/* Copies take exactly as many elements as the array has. */
static void copies_count_elements(void **state) {
  NDArrayHandle array = matrix();
  float values[7] = {0};

  (void)state;
  fails(MXNDArraySyncCopyFromCPU(array, values, 7), "expected 6 elements");
  fails(MXNDArraySyncCopyToCPU(array, values, 5), "expected 6 elements");
  take_floats(array, kSix, 6);
}

/* Rows, ranges and other shapes are views: what is written there is seen in the array. */
static void views_share_memory(void **state) {
  NDArrayHandle array = matrix(), row = NULL, range = NULL, flat = NULL;
  const float changed[] = {1, 2, 3, 7, 8, 9};
  int64_t all[] = {-1};
  int expected[] = {3}, one_row[] = {1, 3}, six[] = {6};

  (void)state;
  ok(MXNDArrayAt(array, 1, &row));
  ok(MXNDArraySlice(array, 1, 2, &range));
  ok(MXNDArrayReshape64(array, 1, all, false, &flat));
  assert_shape(row, expected, 1);
  assert_shape(range, one_row, 2);
  assert_shape(flat, six, 1);
  ok(MXNDArraySyncCopyFromCPU(row, changed + 3, 3));
  assert_floats(range, changed + 3, 3);
  assert_floats(flat, changed, 6);
  take_floats(array, changed, 6);
  assert_floats(row, changed + 3, 3); /* the array's handle is gone, its memory is not */
  fails(MXNDArrayAt(flat, 6, &range), "6");
  ok(MXNDArrayFree(row));
  ok(MXNDArrayFree(range));
  ok(MXNDArrayFree(flat));
}

static void expect_reshape(const uint32_t *shape, uint32_t num_axes, int64_t *target, int num_target, bool reverse,
                           const int *expected, int num_expected) {
  NDArrayHandle array = NULL, view = NULL;

  ok(MXNDArrayCreate(shape, num_axes, 1, 0, 0, &array));
  ok(MXNDArrayReshape64(array, num_target, target, reverse, &view));
  assert_shape(view, expected, num_expected);
  ok(MXNDArrayFree(view));
  ok(MXNDArrayFree(array));
}

/* The special lengths of a new shape: keep, infer, keep the rest, join, split; from the right, too. */
static void reshape_takes_special_lengths(void **state) {
  const uint32_t shape[] = {2, 3, 4};
  int64_t keep[] = {0, -1}, rest[] = {-2}, join[] = {-3, 4}, split[] = {-4, 1, 2, -2}, infer[] = {0, -4, -1, 3, 0};
  int64_t from_right[] = {-1, 0}, fewer[] = {2, 2}, split_right[] = {0, 0, -4, 2, 2}, too_many[] = {-1, -1},
          other[] = {5, 5};
  const int kept[] = {2, 12}, same[] = {2, 3, 4}, joined[] = {6, 4}, split_up[] = {1, 2, 3, 4},
            inferred[] = {2, 1, 3, 4};
  const int right[] = {6, 4}, right_split[] = {2, 3, 2, 2}, square[] = {2, 2};
  NDArrayHandle array = NULL, view = NULL;

  (void)state;
  expect_reshape(shape, 3, keep, 2, false, kept, 2);
  expect_reshape(shape, 3, rest, 1, false, same, 3);
  expect_reshape(shape, 3, join, 2, false, joined, 2);
  expect_reshape(shape, 3, split, 4, false, split_up, 4);
  expect_reshape(shape, 3, infer, 5, false, inferred, 4);
  expect_reshape(shape, 3, from_right, 2, true, right, 2);
  expect_reshape(shape, 3, split_right, 5, true, right_split, 4);
  expect_reshape(shape, 3, fewer, 2, false, square, 2);
  ok(MXNDArrayCreate(shape, 3, 1, 0, 0, &array));
  fails(MXNDArrayReshape64(array, 2, too_many, false, &view), "-1 may stand there once");
  fails(MXNDArrayReshape64(array, 2, other, false, &view), "fewer elements");
  ok(MXNDArrayFree(array));
}

/* Named arrays come back from a file, in order. */
static void files_keep_names_and_values(void **state) {
  NDArrayHandle arrays[2], *loaded = NULL;
  const char *names[] = {"arg:w", "aux:m"}, **found = NULL;
  const float one[] = {5};
  uint32_t num = 0, num_names = 0;

  (void)state;
  arrays[0] = matrix();
  arrays[1] = row_of(one, 1);
  ok(MXNDArraySave(path_of("a.params"), 2, arrays, names));
  ok(MXNDArrayFree(arrays[0]));
  ok(MXNDArrayFree(arrays[1]));
  ok(MXNDArrayLoad(path_of("a.params"), &num, &loaded, &num_names, &found));
  assert_int_equal(num, 2);
  assert_int_equal(num_names, 2);
  assert_string_equal(found[0], "arg:w");
  assert_string_equal(found[1], "aux:m");
  arrays[0] = loaded[0];
  arrays[1] = loaded[1];
  take_floats(arrays[0], kSix, 6);
  take_floats(arrays[1], one, 1);
  fails(MXNDArrayLoad(path_of("none.params"), &num, &loaded, &num_names, &found), "none.params");
}

/* A list without names has none when it is read. */
static void files_without_names(void **state) {
  NDArrayHandle array = matrix(), *loaded = NULL, first;
  const char **found = NULL;
  uint32_t num = 0, num_names = 1;
  size_t bytes = 0;
  char *file;

  (void)state;
  ok(MXNDArraySave(path_of("list.params"), 1, &array, NULL));
  file = read_file(path_of("list.params"), &bytes);
  ok(MXNDArrayLoadFromBuffer(file, bytes, &num, &loaded, &num_names, &found));
  free(file);
  assert_int_equal(num, 1);
  assert_int_equal(num_names, 0);
  first = loaded[0];
  take_floats(first, kSix, 6);
  take_floats(array, kSix, 6);
}

/* The raw bytes of an array make the same array again; cut short they do not. */
static void raw_bytes_make_the_array_again(void **state) {
  NDArrayHandle array = matrix(), again = NULL;
  const char *bytes = NULL;
  size_t size = 0;

  (void)state;
  ok(MXNDArraySaveRawBytes(array, &size, &bytes));
  ok(MXNDArrayLoadFromRawBytes(bytes, size, &again));
  take_floats(again, kSix, 6);
  fails(MXNDArrayLoadFromRawBytes(bytes, size - 1, &again), "");
  ok(MXNDArrayFree(array));
}

/* An array without a shape says so wherever contents are wanted. */
static void an_array_without_shape_has_no_contents(void **state) {
  NDArrayHandle none = NULL;
  float value;
  int storage = 0;

  (void)state;
  ok(MXNDArrayCreateNone(&none));
  assert_shape(none, NULL, 0);
  ok(MXNDArrayGetStorageType(none, &storage));
  assert_int_equal(storage, -1);
  fails(MXNDArraySyncCopyToCPU(none, &value, 1), "no shape");
  ok(MXNDArrayFree(none));
}

/* NULL, a freed handle and one of another kind are errors. */
static void wrong_handles_are_errors(void **state) {
  NDArrayHandle array = matrix();
  SymbolHandle symbol = NULL;
  int dtype;

  (void)state;
  ok(MXSymbolCreateVariable("x", &symbol));
  fails(MXNDArrayGetDType(NULL, &dtype), "found NULL");
  fails(MXNDArrayGetDType(symbol, &dtype), "another object");
  ok(MXNDArrayFree(array));
  fails(MXNDArrayGetDType(array, &dtype), "freed");
  fails(MXNDArrayFree(array), "freed");
  ok(MXNDArrayFree(NULL));
  ok(MXSymbolFree(symbol));
}

/* Memory goes to another library and back without a copy. */
static void dlpack_shares_memory(void **state) {
  NDArrayHandle array = matrix(), again = NULL;
  DLManagedTensorHandle managed = NULL;
  const float changed[] = {9, 9, 9, 9, 9, 9};

  (void)state;
  ok(MXNDArrayToDLPack(array, &managed));
  ok(MXNDArrayFromDLPackEx(managed, false, &again));
  ok(MXNDArraySyncCopyFromCPU(array, changed, 6));
  take_floats(again, changed, 6);
  ok(MXNDArrayToDLPack(array, &managed));
  ok(MXNDArrayFree(array));
  ok(MXNDArrayCallDLPackDeleter(managed));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(arrays_have_what_they_were_made_with),
      TEST(copies_count_elements),
      TEST(views_share_memory),
      TEST(reshape_takes_special_lengths),
      TEST(files_keep_names_and_values),
      TEST(files_without_names),
      TEST(raw_bytes_make_the_array_again),
      TEST(an_array_without_shape_has_no_contents),
      TEST(wrong_handles_are_errors),
      TEST(dlpack_shares_memory),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
