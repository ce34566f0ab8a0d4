/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays over the C ABI: memory of the caller's and of the library's, views, copies, lists of arrays, .params files in
 * memory. */
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/boundary.h"
#include "support/temporary.h"

static const int64_t two = 2, three = 3, four = 4, six = 6;
static const int64_t two_by_three[] = {2, 3};

/* ---- memory of the caller's -------------------------------------------------------------------------------------- */

typedef struct deleted {
  int num;
  void *data;
} deleted;

static void note_deleted(void *data, void *user_data) {
  deleted *note = user_data;

  ++note->num;
  note->data = data;
}

/* Wrapped memory is the array: no copy, and its deleter is called once, when the last view of it is gone. */
static void wrapped_memory_is_given_back_once(void **state) {
  float values[] = {1, 2, 3, 4, 5, 6};
  deleted note = {0, NULL};
  cohort_ndarray *array = NULL, *row = NULL;
  void *data = NULL;

  (void)state;
  ok(cohort_ndarray_wrap(values, two_by_three, 2, COHORT_DTYPE_FLOAT32, NULL, note_deleted, &note, &array));
  ok(cohort_ndarray_data(array, &data));
  assert_ptr_equal(data, values);
  ok(cohort_ndarray_at(array, 1, &row));
  cohort_ndarray_free(array);
  values[3] = 40;
  assert_floats(row, (const float[]){40, 5, 6}, 3);
  ok(cohort_ndarray_fill(row, 7));
  assert_true(values[3] == 7 && values[5] == 7 && values[2] == 3);
  assert_int_equal(note.num, 0);
  cohort_ndarray_free(row);
  assert_int_equal(note.num, 1);
  assert_ptr_equal(note.data, values);
}

/* A call that fails does not take the memory: its deleter is never called. */
static void failed_wraps_take_nothing(void **state) {
  double doubles[4];
  char *const bytes = (char *)doubles;
  const int64_t negative = -1, huge[] = {INT64_MAX, 2};
  const cohort_context gpu = {COHORT_DEVICE_GPU, 0};
  deleted note = {0, NULL};
  cohort_ndarray *array = NULL;

  (void)state;
  fails(cohort_ndarray_wrap(NULL, &two, 1, COHORT_DTYPE_FLOAT32, NULL, note_deleted, &note, &array),
        COHORT_ERROR_INVALID_ARGUMENT, "data");
  fails(cohort_ndarray_wrap(bytes + 1, &two, 1, COHORT_DTYPE_FLOAT32, NULL, note_deleted, &note, &array),
        COHORT_ERROR_INVALID_ARGUMENT, "multiple of 4");
  fails(cohort_ndarray_wrap(bytes, &two, 1, COHORT_DTYPE_FLOAT32, &gpu, note_deleted, &note, &array),
        COHORT_ERROR_UNSUPPORTED, "gpu(0)");
  fails(cohort_ndarray_wrap(bytes, &negative, 1, COHORT_DTYPE_FLOAT32, NULL, note_deleted, &note, &array),
        COHORT_ERROR_SHAPE, "-1");
  fails(cohort_ndarray_wrap(bytes, huge, 2, COHORT_DTYPE_FLOAT32, NULL, note_deleted, &note, &array),
        COHORT_ERROR_SHAPE, "too large");
  fails(cohort_ndarray_wrap(bytes, &two, 1, COHORT_DTYPE_FLOAT32, NULL, note_deleted, &note, NULL),
        COHORT_ERROR_INVALID_ARGUMENT, "out_array");
  assert_int_equal(note.num, 0);
  assert_null(array);
}

/* An empty array needs neither memory nor a deleter. */
static void empty_and_unowned_memory_can_be_wrapped(void **state) {
  const int64_t zero = 0;
  float value = 3;
  cohort_ndarray *empty = NULL, *scalar = NULL;

  (void)state;
  ok(cohort_ndarray_wrap(NULL, &zero, 1, COHORT_DTYPE_FLOAT32, NULL, NULL, NULL, &empty));
  ok(cohort_ndarray_wrap(&value, NULL, 0, COHORT_DTYPE_FLOAT32, NULL, NULL, NULL, &scalar));
  assert_shape(empty, &zero, 1);
  assert_shape(scalar, NULL, 0);
  assert_floats(scalar, &value, 1);
  cohort_ndarray_free(empty);
  cohort_ndarray_free(scalar);
}

/* ---- contents ---------------------------------------------------------------------------------------------------- */

/* Sizes that do not match are refused, and nothing is written. */
static void sizes_are_checked(void **state) {
  const float values[] = {1, 2, 3, 4, 5, 6};
  float read[] = {9, 9, 9, 9, 9, 9};
  const int64_t lengths[COHORT_MAX_AXES + 1] = {1};
  cohort_ndarray *array = NULL, *other = NULL;
  int64_t shape[2];
  int32_t num_axes = 0;

  (void)state;
  fails(cohort_ndarray_from_host(values, 20, two_by_three, 2, COHORT_DTYPE_FLOAT32, NULL, &array), COHORT_ERROR_SHAPE,
        "expected 24");
  fails(cohort_ndarray_from_host(NULL, 24, two_by_three, 2, COHORT_DTYPE_FLOAT32, NULL, &array),
        COHORT_ERROR_INVALID_ARGUMENT, "data");
  fails(cohort_ndarray_zeros(lengths, COHORT_MAX_AXES + 1, COHORT_DTYPE_FLOAT32, NULL, &array),
        COHORT_ERROR_INVALID_ARGUMENT, "num_axes");
  fails(cohort_ndarray_zeros(lengths, -1, COHORT_DTYPE_FLOAT32, NULL, &array), COHORT_ERROR_INVALID_ARGUMENT,
        "num_axes");
  fails(cohort_ndarray_zeros(NULL, 1, COHORT_DTYPE_FLOAT32, NULL, &array), COHORT_ERROR_INVALID_ARGUMENT, "shape");
  assert_null(array);
  array = floats(values, two_by_three, 2);
  fails(cohort_ndarray_read(array, read, 20), COHORT_ERROR_SHAPE, "expected 24");
  fails(cohort_ndarray_write(array, read, 28), COHORT_ERROR_SHAPE, "expected 24");
  fails(cohort_ndarray_shape(array, shape, 1, &num_axes), COHORT_ERROR_INVALID_ARGUMENT, "capacity");
  assert_true(read[0] == 9);
  assert_int_equal(num_axes, 0);
  assert_floats(array, values, 6);
  ok(cohort_ndarray_zeros(&six, 1, COHORT_DTYPE_FLOAT32, NULL, &other));
  fails(cohort_ndarray_copy_to(array, other), COHORT_ERROR_SHAPE, "(2, 3)");
  cohort_ndarray_free(array);
  cohort_ndarray_free(other);
}

/* Arrays of every dtype hold what they are filled with, converted. */
static void every_dtype_is_filled_and_cast(void **state) {
  static const int32_t dtypes[] = {COHORT_DTYPE_FLOAT32,  COHORT_DTYPE_FLOAT64, COHORT_DTYPE_FLOAT16,
                                   COHORT_DTYPE_BFLOAT16, COHORT_DTYPE_INT8,    COHORT_DTYPE_UINT8,
                                   COHORT_DTYPE_INT32,    COHORT_DTYPE_INT64,   COHORT_DTYPE_BOOL};
  size_t i;

  (void)state;
  for (i = 0; i < NUM_OF(dtypes); ++i) {
    const int is_float = i < 4;
    const float expected = dtypes[i] == COHORT_DTYPE_BOOL ? 1.0f : is_float ? 2.5f : 2.0f;
    const float values[] = {expected, expected, expected};
    cohort_ndarray *array = NULL, *as_float = NULL;
    size_t bytes = 0, element = 0;
    int32_t dtype = -7;
    int64_t size = 0;

    ok(cohort_ndarray_full(&three, 1, dtypes[i], NULL, 2.5, &array));
    ok(cohort_ndarray_dtype(array, &dtype));
    ok(cohort_ndarray_bytes(array, &bytes));
    ok(cohort_ndarray_size(array, &size));
    ok(cohort_dtype_bytes(dtype, &element));
    assert_int_equal(dtype, dtypes[i]);
    assert_int_equal(size, 3);
    assert_int_equal(bytes, 3 * element);
    ok(cohort_ndarray_cast(array, COHORT_DTYPE_FLOAT32, &as_float));
    assert_floats(as_float, values, 3);
    cohort_ndarray_free(array);
    cohort_ndarray_free(as_float);
  }
}

/* Casts to integers truncate toward zero, and a copy onto itself changes nothing. */
static void copies_convert(void **state) {
  const float values[] = {2.5f, -1.5f, 0, 3};
  int32_t read[4];
  cohort_ndarray *array = floats(values, &four, 1), *integers = NULL, *elsewhere = NULL;
  const cohort_context cpu7 = {COHORT_DEVICE_CPU, 7};
  cohort_context found;

  (void)state;
  ok(cohort_ndarray_zeros(&four, 1, COHORT_DTYPE_INT32, NULL, &integers));
  ok(cohort_ndarray_copy_to(array, integers));
  ok(cohort_ndarray_read(integers, read, sizeof(read)));
  assert_int_equal(read[0], 2);
  assert_int_equal(read[1], -1);
  ok(cohort_ndarray_copy_to(array, array));
  assert_floats(array, values, 4);
  ok(cohort_ndarray_copy(array, &cpu7, &elsewhere));
  ok(cohort_ndarray_context(elsewhere, &found));
  assert_int_equal(found.device_id, 7);
  ok(cohort_ndarray_fill(array, 0));
  assert_floats(elsewhere, values, 4);
  cohort_ndarray_free(array);
  cohort_ndarray_free(integers);
  cohort_ndarray_free(elsewhere);
}

/* Slices along axis 0, rows and reshapes are views; ranges out of bounds are refused. */
static void views_share_memory(void **state) {
  const float values[] = {0, 1, 2, 3, 4, 5};
  const int64_t minus_one = -1, both[] = {-1, -1}, three_rest[] = {3, -1}, three_by_two[] = {3, 2}, seven = 7;
  cohort_ndarray *array = floats(values, two_by_three, 2), *row = NULL, *shaped = NULL, *prefix = NULL, *none = NULL;
  cohort_ndarray *bad = NULL;

  (void)state;
  ok(cohort_ndarray_slice(array, 1, 2, &row));
  ok(cohort_ndarray_reshape(array, three_rest, 2, &shaped));
  ok(cohort_ndarray_reshape_prefix(array, &two, 1, &prefix));
  ok(cohort_ndarray_slice(array, 2, 2, &none));
  assert_shape(row, (const int64_t[]){1, 3}, 2);
  assert_shape(shaped, three_by_two, 2);
  assert_shape(none, (const int64_t[]){0, 3}, 2);
  ok(cohort_ndarray_fill(row, 9));
  assert_floats(shaped, (const float[]){0, 1, 2, 9, 9, 9}, 6);
  ok(cohort_ndarray_fill(prefix, 8));
  assert_floats(array, (const float[]){8, 8, 2, 9, 9, 9}, 6);
  fails(cohort_ndarray_slice(array, 1, 3, &bad), COHORT_ERROR_INVALID_ARGUMENT, "3");
  fails(cohort_ndarray_slice(array, 2, 1, &bad), COHORT_ERROR_INVALID_ARGUMENT, "");
  fails(cohort_ndarray_slice(array, -1, 1, &bad), COHORT_ERROR_INVALID_ARGUMENT, "-1");
  fails(cohort_ndarray_at(array, 2, &bad), COHORT_ERROR_INVALID_ARGUMENT, "2");
  fails(cohort_ndarray_reshape(array, &four, 1, &bad), COHORT_ERROR_SHAPE, "4");
  fails(cohort_ndarray_reshape(array, both, 2, &bad), COHORT_ERROR_INVALID_ARGUMENT, "one -1");
  fails(cohort_ndarray_reshape_prefix(array, &seven, 1, &bad), COHORT_ERROR_SHAPE, "7");
  fails(cohort_ndarray_reshape_prefix(array, &minus_one, 1, &bad), COHORT_ERROR_SHAPE, "-1");
  assert_null(bad);
  cohort_ndarray_free(array);
  cohort_ndarray_free(row);
  cohort_ndarray_free(shaped);
  cohort_ndarray_free(prefix);
  cohort_ndarray_free(none);
}

/* A range along any axis, counted from either end. */
static void ranges_along_any_axis(void **state) {
  const float values[] = {0, 1, 2, 3, 4, 5};
  cohort_ndarray *array = floats(values, two_by_three, 2), *tail = NULL, *first = NULL, *bad = NULL, *joined = NULL;
  cohort_ndarray *parts[2];

  (void)state;
  ok(cohort_ndarray_slice_axis(array, -1, 1, INT64_MAX, &tail));
  ok(cohort_ndarray_slice_axis(array, 1, 0, 1, &first));
  assert_floats(tail, (const float[]){1, 2, 4, 5}, 4);
  assert_floats(first, (const float[]){0, 3}, 2);
  parts[0] = first;
  parts[1] = tail;
  ok(cohort_ndarray_concat(parts, 2, -1, &joined));
  assert_shape(joined, two_by_three, 2);
  assert_floats(joined, values, 6);
  fails(cohort_ndarray_slice_axis(array, 2, 0, 1, &bad), COHORT_ERROR_INVALID_ARGUMENT, "axis");
  fails(cohort_ndarray_slice_axis(array, 1, 0, 4, &bad), COHORT_ERROR_INVALID_ARGUMENT, "4");
  fails(cohort_ndarray_slice_axis(array, 1, 1, 1, &bad), COHORT_ERROR_INVALID_ARGUMENT, "");
  fails(cohort_ndarray_concat(parts, 2, 0, &bad), COHORT_ERROR_SHAPE, "");
  fails(cohort_ndarray_concat(NULL, 0, 0, &bad), COHORT_ERROR_INVALID_ARGUMENT, "arrays");
  assert_null(bad);
  cohort_ndarray_free(array);
  cohort_ndarray_free(tail);
  cohort_ndarray_free(first);
  cohort_ndarray_free(joined);
}

/* Random numbers depend on the seed only, and lie in the range or around the mean that was asked for. */
static void random_numbers_depend_on_the_seed(void **state) {
  enum { NUM = 4000 };
  const int64_t length = NUM;
  static float first[NUM], second[NUM];
  const cohort_context cpu1 = {COHORT_DEVICE_CPU, 1};
  cohort_ndarray *array = NULL, *other = NULL, *integers = NULL;
  double sum = 0, squares = 0;
  int i;

  (void)state;
  ok(cohort_ndarray_zeros(&length, 1, COHORT_DTYPE_FLOAT32, NULL, &array));
  ok(cohort_ndarray_zeros(&length, 1, COHORT_DTYPE_FLOAT32, &cpu1, &other));
  ok(cohort_ndarray_fill_uniform(array, -2, 3, 17));
  ok(cohort_ndarray_fill_uniform(other, -2, 3, 17));
  ok(cohort_ndarray_read(array, first, sizeof(first)));
  ok(cohort_ndarray_read(other, second, sizeof(second)));
  assert_memory_equal(first, second, sizeof(first));
  for (i = 0; i < NUM; ++i) {
    assert_true(first[i] >= -2 && first[i] < 3);
    sum += (double)first[i];
  }
  assert_true(fabs(sum / NUM - 0.5) < 0.1); /* standard deviation of the mean: 5 / sqrt(12 * 4000) = 0.023 */
  ok(cohort_ndarray_fill_normal(array, 1, 2, 17));
  ok(cohort_ndarray_fill_normal(other, 1, 2, 18));
  ok(cohort_ndarray_read(array, first, sizeof(first)));
  ok(cohort_ndarray_read(other, second, sizeof(second)));
  assert_memory_not_equal(first, second, sizeof(first));
  for (sum = 0, i = 0; i < NUM; ++i) {
    sum += (double)first[i];
    squares += ((double)first[i] - 1) * ((double)first[i] - 1);
  }
  assert_true(fabs(sum / NUM - 1) < 0.15);          /* standard deviation of the mean: 2 / sqrt(4000) = 0.032 */
  assert_true(fabs(sqrt(squares / NUM) - 2) < 0.1); /* standard deviation of the deviation: 2 / sqrt(8000) = 0.022 */
  ok(cohort_ndarray_zeros(&two, 1, COHORT_DTYPE_INT32, NULL, &integers));
  fails(cohort_ndarray_fill_uniform(integers, 0, 1, 1), COHORT_ERROR_DTYPE, "int32");
  fails(cohort_ndarray_fill_uniform(array, 1, 0, 1), COHORT_ERROR_INVALID_ARGUMENT, "");
  fails(cohort_ndarray_fill_normal(array, 0, -1, 1), COHORT_ERROR_INVALID_ARGUMENT, "-1");
  cohort_ndarray_free(array);
  cohort_ndarray_free(other);
  cohort_ndarray_free(integers);
}

/* ---- lists and files --------------------------------------------------------------------------------------------- */

/* Lists keep their arrays, their order and their names; a name that occurs twice cannot be looked up. */
static void lists_keep_order_and_names(void **state) {
  const float ones[] = {1, 1}, twos[] = {2, 2};
  cohort_ndarray *first = floats(ones, &two, 1), *second = floats(twos, &two, 1), *got = NULL;
  cohort_arrays *list = NULL;
  const char *name = NULL;
  size_t num = 0, index = 77;

  (void)state;
  ok(cohort_arrays_create(&list));
  ok(cohort_arrays_add(list, "a", first));
  ok(cohort_arrays_add(list, NULL, NULL));
  ok(cohort_arrays_set(list, "b", second));
  ok(cohort_arrays_set(list, "a", second));
  cohort_ndarray_free(first);
  cohort_ndarray_free(second);
  ok(cohort_arrays_num(list, &num));
  assert_int_equal(num, 3);
  ok(cohort_arrays_find(list, "b", &index));
  assert_int_equal(index, 2);
  ok(cohort_arrays_name(list, 1, &name));
  assert_string_equal(name, "");
  ok(cohort_arrays_get(list, 1, &got));
  assert_null(got);
  ok(cohort_arrays_get(list, 0, &got));
  assert_floats(got, twos, 2);
  ok(cohort_arrays_add(list, "a", got));
  fails(cohort_arrays_find(list, "a", &index), COHORT_ERROR_NAME, "more than once");
  fails(cohort_arrays_set(list, "a", got), COHORT_ERROR_NAME, "more than once");
  cohort_ndarray_free(got);
  cohort_arrays_free(list);
}

/* float32 (1, 3) = 1, 2, 3 on cpu(0) called "arg:w", as MXNet writes it. */
static const unsigned char one_array[] = {
    0x12, 1,    0,    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,    0,    0,   0,   0,   0,    0, 0, 0xc9,
    0xfa, 0x93, 0xf9, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0,    0,    0,   3,   0,   0,    0, 0, 0,
    0,    0,    1,    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x3f, 0,   0,   0,   0x40, 0, 0, 0x40,
    0x40, 1,    0,    0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0,    'a',  'r', 'g', ':', 'w'};

/* A list is written byte for byte as MXNet writes it, and read back. */
static void params_bytes_are_mxnets(void **state) {
  const float values[] = {1, 2, 3};
  const int64_t shape[] = {1, 3};
  unsigned char bytes[128];
  cohort_ndarray *array = floats(values, shape, 2), *got = NULL;
  cohort_arrays *list = NULL, *read = NULL;
  const char *name = NULL;
  size_t num = 0;

  (void)state;
  assert_int_equal(sizeof(one_array), 97);
  ok(cohort_arrays_create(&list));
  ok(cohort_arrays_add(list, "arg:w", array));
  cohort_ndarray_free(array);
  ok(cohort_arrays_save_memory(list, NULL, 0, &num));
  assert_int_equal(num, sizeof(one_array));
  fails(cohort_arrays_save_memory(list, bytes, num - 1, NULL), COHORT_ERROR_INVALID_ARGUMENT, "capacity");
  ok(cohort_arrays_save_memory(list, bytes, sizeof(bytes), NULL));
  assert_memory_equal(bytes, one_array, sizeof(one_array));
  ok(cohort_arrays_load_memory(one_array, sizeof(one_array), NULL, &read));
  ok(cohort_arrays_name(read, 0, &name));
  assert_string_equal(name, "arg:w");
  ok(cohort_arrays_get(read, 0, &got));
  assert_shape(got, shape, 2);
  assert_floats(got, values, 3);
  cohort_ndarray_free(got);
  cohort_arrays_free(list);
  cohort_arrays_free(read);
}

/* A file that is cut short anywhere is refused, and so is one in which any count is replaced by a huge number. */
static void damaged_params_are_refused(void **state) {
  unsigned char bytes[sizeof(one_array)];
  cohort_arrays *list = NULL;
  size_t length, at;

  (void)state;
  for (length = 0; length < sizeof(one_array); ++length) {
    fails(cohort_arrays_load_memory(one_array, length, NULL, &list), COHORT_ERROR_FORMAT, "");
  }
  for (at = 0; at + 8 <= sizeof(one_array); ++at) {
    cohort_error *error;
    int32_t code;

    memcpy(bytes, one_array, sizeof(bytes));
    memset(bytes + at, 0x7f, 8);
    error = cohort_arrays_load_memory(bytes, sizeof(bytes), NULL, &list);
    code = cohort_error_code(error);
    cohort_error_free(error);
    /* Some bytes are values, part of the name, the context, or zeros before the count. A change of any other byte must
     * be a format error, and must never make the library allocate what the file merely claims. */
    if (code == COHORT_SUCCESS) {
      cohort_arrays_free(list);
      list = NULL;
    } else if (code != COHORT_ERROR_UNSUPPORTED) {
      assert_int_equal(code, COHORT_ERROR_FORMAT);
    }
  }
  fails(cohort_arrays_load_memory(NULL, 5, NULL, &list), COHORT_ERROR_INVALID_ARGUMENT, "data");
  assert_null(list);
}

/* Arguments that make no valid file are refused before anything is written; a missing file is named in the error. */
static void files_are_checked(void **state) {
  const float values[] = {1, 2};
  cohort_ndarray *array = floats(values, &two, 1);
  cohort_arrays *list = NULL, *read = NULL;
  const char *name = NULL;
  char buffer[512];
  size_t num = 0;

  (void)state;
  ok(cohort_arrays_create(&list));
  ok(cohort_arrays_add(list, "named", array));
  ok(cohort_arrays_add(list, NULL, array));
  ok(cohort_arrays_save_memory(list, buffer, sizeof(buffer), &num)); /* without a name: with the empty one */
  ok(cohort_arrays_load_memory(buffer, num, NULL, &read));
  ok(cohort_arrays_name(read, 0, &name));
  assert_string_equal(name, "named");
  ok(cohort_arrays_name(read, 1, &name));
  assert_string_equal(name, "");
  cohort_arrays_free(read);
  cohort_arrays_free(list);
  read = NULL;
  num = 77;
  ok(cohort_arrays_create(&list));
  ok(cohort_arrays_add(list, "nothing", NULL));
  fails(cohort_arrays_save_memory(list, NULL, 0, &num), COHORT_ERROR_INVALID_ARGUMENT, "nothing");
  fails(cohort_arrays_load("no/such/file.params", NULL, &read), COHORT_ERROR_IO, "no/such/file.params");
  fails(cohort_arrays_load(NULL, NULL, &read), COHORT_ERROR_INVALID_ARGUMENT, "path");
  assert_null(read);
  assert_int_equal(num, 77);
  cohort_arrays_free(list);
  ok(cohort_arrays_create(&list));
  ok(cohort_arrays_add(list, "w", array));
  fails(cohort_arrays_save(list, "no/such/folder/file.params"), COHORT_ERROR_IO, "no/such/folder/file.params");
  cohort_arrays_free(list);
  cohort_ndarray_free(array);
}

/* A child writes a file's content into a pipe. */
static pid_t pour(const char *path, const char *pipe) {
  const pid_t child = fork();

  if (child == 0) {
    FILE *const from = fopen(path, "rb");
    const int to = open(pipe, O_WRONLY);
    char bytes[4096];
    size_t num;

    if (!from || to < 0) _exit(1);
    while ((num = fread(bytes, 1, sizeof bytes, from)) > 0)
      if (write(to, bytes, num) != (ssize_t)num) _exit(2);
    _exit(0);
  }
  return child;
}

/* Files of every form can be read from a pipe, whose content can be read only once. */
static void arrays_come_through_a_pipe(void **state) {
  enum { LENGTH = 40000 };
  static float values[LENGTH];
  const int64_t length = LENGTH;
  char path[TEMPORARY_PATH], pipe[TEMPORARY_PATH];
  cohort_arrays *list = NULL;
  cohort_ndarray *array;
  int form, maps, i;

  (void)state;
  only_on_cpus();
  for (i = 0; i < LENGTH; ++i) values[i] = (float)i;
  array = floats(values, &length, 1);
  temporary_path(path, "poured", ".arrays");
  temporary_path(pipe, "poured", ".pipe");
  ok(cohort_arrays_create(&list));
  ok(cohort_arrays_add(list, "numbers", array));
  cohort_ndarray_free(array);
  assert_int_equal(mkfifo(pipe, 0600), 0);
  alarm(120); /* opening the pipe a second time would block for ever */
  for (form = 0; form < 3; ++form) {
    ok((form == 0 ? cohort_arrays_save : form == 1 ? cohort_arrays_save_npy : cohort_arrays_save_npz)(list, path));
    for (maps = 0; maps < 2; ++maps) {
      const pid_t child = pour(path, pipe);
      cohort_arrays *read = NULL;
      int status = -1;

      assert_true(child > 0);
      ok(maps ? cohort_arrays_map(pipe, &read) : cohort_arrays_load(pipe, NULL, &read));
      assert_int_equal(waitpid(child, &status, 0), child);
      assert_int_equal(status, 0);
      ok(cohort_arrays_get(read, 0, &array));
      assert_floats(array, values, LENGTH);
      cohort_ndarray_free(array);
      cohort_arrays_free(read);
      ok(maps ? cohort_arrays_map(path, &read) : cohort_arrays_load(path, NULL, &read));
      ok(cohort_arrays_get(read, 0, &array));
      assert_floats(array, values, LENGTH);
      cohort_ndarray_free(array);
      cohort_arrays_free(read);
    }
  }
  alarm(0);
  fails(cohort_arrays_load("/dev/zero", NULL, &list), COHORT_ERROR_IO, "'/dev/zero': expected a file or a pipe");
  remove(path);
  remove(pipe);
  cohort_arrays_free(list);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(wrapped_memory_is_given_back_once),
      TEST(failed_wraps_take_nothing),
      TEST(empty_and_unowned_memory_can_be_wrapped),
      TEST(sizes_are_checked),
      TEST(every_dtype_is_filled_and_cast),
      TEST(copies_convert),
      TEST(views_share_memory),
      TEST(ranges_along_any_axis),
      TEST(random_numbers_depend_on_the_seed),
      TEST(lists_keep_order_and_names),
      TEST(params_bytes_are_mxnets),
      TEST(damaged_params_are_refused),
      TEST(files_are_checked),
      TEST(arrays_come_through_a_pipe),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
