/* SPDX-License-Identifier: Apache-2.0 */
/* Iterators over files: batches, padding, numbers of rows, orders, and files that are not what they should be. */
#include "mxnet_test.h"

static DataIterCreator creator_of(const char *wanted) {
  const char *name = NULL, *doc = NULL, **names = NULL, **types = NULL, **docs = NULL;
  DataIterCreator *creators = NULL;
  uint32_t num = 0, num_args = 0, i;

  ok(MXListDataIters(&num, &creators));
  for (i = 0; i < num; ++i) {
    ok(MXDataIterGetIterInfo(creators[i], &name, &doc, &num_args, &names, &types, &docs));
    if (strcmp(name, wanted) == 0) return creators[i];
  }
  fail_msg("there is no %s", wanted);
  return NULL;
}

enum { MOST_PARAMS = 16 };

/* Makes an iterator from pairs of keys and values, up to a NULL. */
static int create(const char *kind, DataIterHandle *out, const char *key, ...) {
  const char *keys[MOST_PARAMS], *values[MOST_PARAMS];
  uint32_t num = 0;
  va_list list;

  va_start(list, key);
  for (; key; key = va_arg(list, const char *)) {
    assert_true(num < MOST_PARAMS);
    keys[num] = key;
    values[num++] = va_arg(list, const char *);
  }
  va_end(list);
  return MXDataIterCreateIter(creator_of(kind), num, keys, values, out);
}

static int has_next(DataIterHandle iter) {
  int there = -1;

  ok(MXDataIterNext(iter, &there));
  return there;
}

static void assert_data(DataIterHandle iter, const float *values, size_t num) {
  NDArrayHandle array = NULL;

  ok(MXDataIterGetData(iter, &array));
  take_floats(array, values, num);
}

static void assert_label(DataIterHandle iter, const float *values, size_t num) {
  NDArrayHandle array = NULL;

  ok(MXDataIterGetLabel(iter, &array));
  take_floats(array, values, num);
}

static void assert_index(DataIterHandle iter, const uint64_t *index, size_t num, int pad) {
  uint64_t *found = NULL, size = 0;
  int num_pad = -1;

  ok(MXDataIterGetIndex(iter, &found, &size));
  assert_int_equal(size, num);
  assert_memory_equal(found, index, num * sizeof *index);
  ok(MXDataIterGetPadNum(iter, &num_pad));
  assert_int_equal(num_pad, pad);
}

/* Checks the next batch by the numbers of its three rows, each of which is (row, 10 row). */
static void next_rows(DataIterHandle iter, uint64_t a, uint64_t b, uint64_t c, int pad) {
  const uint64_t rows[3] = {a, b, c};
  const float values[6] = {(float)a, 10 * (float)a, (float)b, 10 * (float)b, (float)c, 10 * (float)c};

  assert_true(has_next(iter));
  assert_data(iter, values, 6);
  assert_index(iter, rows, 3, pad);
}

static const char seven_rows[] = "0,0\n1,10\n2,20\n3,30\n4,40\n5,50\n6,60\n";

#define WRITE(name, text) write_file(name, text, sizeof(text) - 1)

static void iterators_are_described(void **state) {
  const char *const expected[] = {"CSVIter",         "ImageDetRecordIter",      "ImageRecordInt8Iter",
                                  "ImageRecordIter", "ImageRecordUInt8Iter",    "ImageRecordIter_v1",
                                  "LibSVMIter",      "ImageRecordUInt8Iter_v1", "MNISTIter"};
  const char *name = NULL, *doc = NULL, **names = NULL, **types = NULL, **docs = NULL;
  uint32_t num = 0, i;

  (void)state;
  for (i = 0; i < NUM_OF(expected); ++i) creator_of(expected[i]);
  ok(MXDataIterGetIterInfo(creator_of("MNISTIter"), &name, &doc, &num, &names, &types, &docs));
  assert_int_equal(num, 12);
  assert_true(strlen(doc) > 0);
  assert_string_equal(names[2], "batch_size");
  assert_string_equal(types[2], "int, optional, default='128'");
  assert_string_equal(types[10], "{'cpu', 'gpu'},optional, default='gpu'");
  for (i = 0; i < num; ++i) assert_true(strlen(docs[i]) > 0);
  ok(MXDataIterGetIterInfo(creator_of("CSVIter"), &name, &doc, &num, &names, &types, &docs));
  assert_string_equal(types[0], "string, required");
  assert_string_equal(types[3], "Shape(tuple), optional, default=[1]");
}

/* After an error in a batch that was being filled up, the next pass begins with the first row. */
static void a_pass_after_an_error_begins_at_the_first_row(void **state) {
  DataIterHandle iter = NULL;
  int there = 0, i;

  (void)state;
  ok(create("CSVIter", &iter, "data_csv", WRITE("d.csv", seven_rows), "data_shape", "(2,)", "batch_size", "3", NULL));
  for (i = 0; i < 2; ++i) assert_true(has_next(iter));
  WRITE("d.csv", "0,0\n1,x\n2,20\n3,30\n4,40\n5,50\n6,60\n");
  fails(MXDataIterNext(iter, &there), "line 2: expected 2 numbers, found 'x'");
  ok(MXDataIterBeforeFirst(iter));
  fails(MXDataIterNext(iter, &there), "line 2: expected 2 numbers, found 'x'"); /* not the rows after it */
  ok(MXDataIterFree(iter));
}

/* With round_batch the first rows fill the last batch up, and the next pass begins after them. */
static void a_last_batch_is_filled_up_with_first_rows(void **state) {
  DataIterHandle iter = NULL;

  (void)state;
  ok(create("CSVIter", &iter, "data_csv", WRITE("d.csv", seven_rows), "data_shape", "(2,)", "batch_size", "3", NULL));
  next_rows(iter, 0, 1, 2, 0);
  next_rows(iter, 3, 4, 5, 0);
  next_rows(iter, 6, 0, 1, 2);
  assert_false(has_next(iter));
  assert_false(has_next(iter));
  ok(MXDataIterBeforeFirst(iter));
  next_rows(iter, 2, 3, 4, 0);
  next_rows(iter, 5, 6, 0, 1);
  assert_false(has_next(iter));
  ok(MXDataIterBeforeFirst(iter));
  next_rows(iter, 1, 2, 3, 0);
  next_rows(iter, 4, 5, 6, 0);
  assert_false(has_next(iter));
  ok(MXDataIterBeforeFirst(iter));
  next_rows(iter, 0, 1, 2, 0);
  ok(MXDataIterBeforeFirst(iter)); /* in the middle */
  next_rows(iter, 0, 1, 2, 0);
  ok(MXDataIterFree(iter));
}

static void without_round_batch_each_pass_begins_at_the_first_row(void **state) {
  const float labels[] = {0, 1, 2};
  const int shape[] = {3, 1, 2};
  DataIterHandle iter = NULL;
  NDArrayHandle data = NULL;
  int pass, pad = 0;

  (void)state;
  ok(create("CSVIter", &iter, "data_csv", WRITE("d.csv", seven_rows), "data_shape", "[1, 2]", "batch_size", "3",
            "label_csv", WRITE("l.csv", "0\n1\n2\n0\n1\n2\n9\n"), "round_batch", "False", NULL));
  for (pass = 0; pass < 2; ++pass) {
    next_rows(iter, 0, 1, 2, 0);
    assert_label(iter, labels, 3);
    ok(MXDataIterGetData(iter, &data));
    assert_shape(data, shape, 3);
    ok(MXNDArrayFree(data));
    next_rows(iter, 3, 4, 5, 0);
    assert_label(iter, labels, 3);
    assert_true(has_next(iter));
    ok(MXDataIterGetPadNum(iter, &pad));
    assert_int_equal(pad, 2);
    assert_false(has_next(iter));
    ok(MXDataIterBeforeFirst(iter));
  }
  ok(MXDataIterFree(iter));
}

static void a_batch_may_be_larger_than_the_data_set(void **state) {
  const uint64_t rows[] = {0, 1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5, 6, 0, 1};
  DataIterHandle iter = NULL;

  (void)state;
  ok(create("CSVIter", &iter, "data_csv", WRITE("d.csv", seven_rows), "data_shape", "2", "batch_size", "16", NULL));
  assert_true(has_next(iter));
  assert_index(iter, rows, 16, 9);
  assert_false(has_next(iter));
  ok(MXDataIterFree(iter));
}

static void batches_stay_as_they_were(void **state) {
  const float first[] = {0, 0, 1, 10, 2, 20};
  DataIterHandle iter = NULL;
  NDArrayHandle kept = NULL;

  (void)state;
  ok(create("CSVIter", &iter, "data_csv", WRITE("d.csv", seven_rows), "data_shape", "(2)", "batch_size", "3", NULL));
  assert_true(has_next(iter));
  ok(MXDataIterGetData(iter, &kept));
  assert_true(has_next(iter));
  assert_floats(kept, first, 6);
  ok(MXDataIterFree(iter));
  take_floats(kept, first, 6);
}

static void numbers_are_read_in_their_type(void **state) {
  const int64_t expected[] = {2147483648, -9223372036854775807LL - 1};
  const float floats[] = {-1.5f, 1e10f, 0, 0.25f};
  int64_t found[2];
  int dtype = -1;
  DataIterHandle iter = NULL;
  NDArrayHandle array = NULL;

  (void)state;
  ok(create("CSVIter", &iter, "data_csv", WRITE("i.csv", "2147483648,-9223372036854775808"), "data_shape", "(2,)",
            "batch_size", "1", "dtype", "int64", NULL));
  assert_true(has_next(iter));
  ok(MXDataIterGetData(iter, &array));
  ok(MXNDArrayGetDType(array, &dtype));
  assert_int_equal(dtype, 6);
  ok(MXNDArraySyncCopyToCPU(array, found, 2));
  assert_memory_equal(found, expected, sizeof expected);
  ok(MXNDArrayFree(array));
  ok(MXDataIterFree(iter));
  /* Blanks, line ends of several systems, empty lines, commas at the end, a byte order mark. */
  ok(create("CSVIter", &iter, "data_csv", WRITE("f.csv", "\xef\xbb\xbf-1.5, +1e10 ,\r\n\r\n\t1e-999,.25\r"),
            "data_shape", "(2,)", "batch_size", "2", NULL));
  assert_true(has_next(iter));
  assert_data(iter, floats, 4);
  assert_false(has_next(iter));
  ok(MXDataIterFree(iter));
}

/* Reads all of a text as rows of two numbers of a type, and expects an error with this text. */
static void csv_fails(const char *text, const char *dtype, const char *part) {
  DataIterHandle iter = NULL;
  int there = 0;

  ok(create("CSVIter", &iter, "data_csv", write_file("bad.csv", text, strlen(text)), "data_shape", "(2,)", "batch_size",
            "1", "dtype", dtype, NULL));
  while (MXDataIterNext(iter, &there) == 0) assert_true(there);
  fails(-1, part);
  ok(MXDataIterFree(iter));
}

static void damaged_rows_are_errors(void **state) {
  static char long_field[6000];

  (void)state;
  csv_fails("1,2\n3\n", "float32", "bad.csv, line 2: expected 2 numbers, found 1");
  csv_fails("1,2\n\n3,4,5\n", "float32", "line 3: expected 2 numbers, found more of them");
  csv_fails("1,x\n", "float32", "line 1: expected 2 numbers, found 'x' in column 2");
  csv_fails("1,,2\n", "float32", "found '' in column 2");
  csv_fails("a,b\n1,2\n", "float32", "found 'a' in column 1");
  csv_fails("1,2\n1.5,2\n", "int32", "line 2: expected 2 numbers, found '1.5' in column 1");
  csv_fails("1,99999999999\n", "int32", "found '99999999999'");
  csv_fails("1,0x10\n", "float32", "'0x10'");
  memset(long_field, '1', sizeof long_field - 1);
  csv_fails(long_field, "float32", "a field of more than 4096 characters");
}

static void wrong_parameters_are_errors(void **state) {
  const char *const data = WRITE("d.csv", seven_rows);
  DataIterHandle iter = NULL;
  int there = 0, pad = 0;
  NDArrayHandle array = NULL;

  (void)state;
  fails(create("CSVIter", &iter, "data_csv", data, "data_shape", "(2,)", NULL), "CSVIter: batch_size is required");
  fails(create("CSVIter", &iter, "data_csv", data, "data_shape", "(2,)", "batch_size", "0", NULL), "batch_size");
  fails(create("CSVIter", &iter, "data_csv", data, "data_shape", "(2,)", "batch_size", "-4", NULL), "'-4'");
  fails(create("CSVIter", &iter, "data_csv", data, "data_shape", "(2,", "batch_size", "3", NULL), "between brackets");
  fails(create("CSVIter", &iter, "data_csv", data, "data_shape", "(0,)", "batch_size", "3", NULL), "lengths of 1");
  fails(create("CSVIter", &iter, "data_csv", data, "data_shape", "(4611686018427387904, 2)", "batch_size", "3", NULL),
        "does not fit into memory");
  fails(create("CSVIter", &iter, "data_csv", data, "data_shape", "(2,)", "batch_size", "3", "round_batch", "x", NULL),
        "round_batch: expected True or False, found 'x'");
  fails(create("CSVIter", &iter, "data_csv", data, "data_shape", "(2,)", "batch_size", "3", "dtype", "uint8", NULL),
        "expected float32, int32 or int64, found 'uint8'");
  fails(create("CSVIter", &iter, "data_csv", data, "data_shape", "(2,)", "batch_size", "3", "dtype", "abc", NULL),
        "abc");
  fails(create("CSVIter", &iter, "data_csv", path_of("none"), "data_shape", "(2,)", "batch_size", "3", NULL),
        "cannot open the file");
  fails(create("LibSVMIter", &iter, "data_libsvm", data, "data_shape", "(2,)", "batch_size", "3", NULL),
        "LibSVMIter: not implemented in Cohort");
  fails(MXDataIterCreateIter(&iter, 0, NULL, NULL, &iter), "expected an iterator");
  assert_null(iter);
  /* Parameters of others are ignored. */
  ok(create("CSVIter", &iter, "data_csv", data, "data_shape", "(2,)", "batch_size", "3", "flat", "x", NULL));
  fails(MXDataIterGetData(iter, &array), "no batch");
  fails(MXDataIterGetPadNum(iter, &pad), "no batch");
  fails(MXDataIterNext(iter, NULL), "out");
  ok(MXDataIterFree(iter));
  fails(MXDataIterNext(iter, &there), "freed");
  ok(create("CSVIter", &iter, "data_csv", data, "data_shape", "(2,)", "batch_size", "3", "label_csv",
            WRITE("l.csv", "1\n2\n"), NULL));
  fails(MXDataIterNext(iter, &there), "expected a label for each row");
  ok(MXDataIterFree(iter));
}

/* Ten images of 2 x 2 pixels; pixel j of image i is 10 i + j, its label is i. */
static void write_digits(void) {
  unsigned char images[16 + 40] = {0, 0, 8, 3, 0, 0, 0, 10, 0, 0, 0, 2, 0, 0, 0, 2};
  unsigned char labels[8 + 10] = {0, 0, 8, 1, 0, 0, 0, 10};
  int i;

  for (i = 0; i < 40; ++i) images[16 + i] = (unsigned char)(i / 4 * 10 + i % 4);
  for (i = 0; i < 10; ++i) labels[8 + i] = (unsigned char)i;
  write_file("images", images, sizeof images);
  write_file("labels", labels, sizeof labels);
}

#define DIGITS "image", path_of("images"), "label", path_of("labels")

static void digits_are_read_in_order(void **state) {
  const float pixels[] = {30 / 256.0f, 31 / 256.0f, 32 / 256.0f, 33 / 256.0f, 40 / 256.0f, 41 / 256.0f,
                          42 / 256.0f, 43 / 256.0f, 50 / 256.0f, 51 / 256.0f, 52 / 256.0f, 53 / 256.0f};
  const float digits[] = {3, 4, 5};
  const uint64_t index[] = {3, 4, 5};
  const int shape[] = {3, 1, 2, 2}, flat[] = {3, 4};
  DataIterHandle iter = NULL;
  NDArrayHandle array = NULL;
  int pass;

  (void)state;
  write_digits();
  ok(create("MNISTIter", &iter, DIGITS, "batch_size", "3", "shuffle", "0", NULL));
  for (pass = 0; pass < 2; ++pass) {
    assert_true(has_next(iter));
    assert_true(has_next(iter));
    assert_data(iter, pixels, 12);
    assert_label(iter, digits, 3);
    assert_index(iter, index, 3, 0);
    assert_true(has_next(iter));
    assert_false(has_next(iter)); /* the tenth image is left out */
    ok(MXDataIterBeforeFirst(iter));
  }
  assert_true(has_next(iter));
  ok(MXDataIterGetData(iter, &array));
  assert_shape(array, shape, 4);
  ok(MXNDArrayFree(array));
  ok(MXDataIterFree(iter));
  ok(create("MNISTIter", &iter, DIGITS, "batch_size", "3", "shuffle", "0", "flat", "True", NULL));
  assert_true(has_next(iter));
  ok(MXDataIterGetData(iter, &array));
  assert_shape(array, flat, 2);
  ok(MXNDArrayFree(array));
  ok(MXDataIterFree(iter));
}

/* Reads all labels of a pass over batches of one image, as text. */
static const char *order_of(const char *seed, const char *num_parts, const char *part) {
  static char orders[4][16];
  static int next;
  char *const order = orders[next++ % 4];
  float digit = -1;
  size_t num = 0;
  DataIterHandle iter = NULL;
  NDArrayHandle array = NULL;

  ok(create("MNISTIter", &iter, DIGITS, "batch_size", "1", "shuffle", seed ? "1" : "0", "seed", seed ? seed : "0",
            "num_parts", num_parts, "part_index", part, NULL));
  while (has_next(iter)) {
    ok(MXDataIterGetLabel(iter, &array));
    ok(MXNDArraySyncCopyToCPU(array, &digit, 1));
    ok(MXNDArrayFree(array));
    assert_true(num < 10);
    order[num++] = (char)('0' + (int)digit);
  }
  order[num] = 0;
  ok(MXDataIterFree(iter));
  return order;
}

static void a_seed_gives_an_order(void **state) {
  const char *const first = (write_digits(), order_of("1", "1", "0"));
  int digit;

  (void)state;
  assert_int_equal(strlen(first), 10);
  for (digit = '0'; digit <= '9'; ++digit) assert_non_null(strchr(first, digit));
  assert_string_equal(order_of("1", "1", "0"), first);
  assert_string_not_equal(order_of("2", "1", "0"), first);
  assert_string_not_equal("0123456789", first);
}

static void parts_share_the_images(void **state) {
  (void)state;
  write_digits();
  assert_string_equal(order_of(NULL, "3", "0"), "012");
  assert_string_equal(order_of(NULL, "3", "1"), "345");
  assert_string_equal(order_of(NULL, "3", "2"), "6789");
  assert_string_equal(order_of(NULL, "20", "0"), "");
}

static void damaged_files_of_digits_are_errors(void **state) {
  DataIterHandle iter = NULL;

  (void)state;
  write_digits();
  fails(create("MNISTIter", &iter, "image", path_of("labels"), "label", path_of("labels"), NULL), "begins with 2051");
  fails(create("MNISTIter", &iter, "image", path_of("images"), "label", path_of("images"), NULL), "begins with 2049");
  fails(create("MNISTIter", &iter, "image", WRITE("e", "\0\0\10\3\0\0"), "label", path_of("labels"), NULL),
        "the file ends in its header");
  fails(create("MNISTIter", &iter, "image", WRITE("e", "\0\0\10\3\0\0\0\12\0\0\0\2\0\0\0\2abc"), "label",
               path_of("labels"), NULL),
        "expected 40 bytes after the header, found 3");
  fails(create("MNISTIter", &iter, "image", WRITE("e", "\0\0\10\3\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
               "label", path_of("labels"), NULL),
        "expected labels of 4294967295 images, found 10");
  fails(create("MNISTIter", &iter, "image", WRITE("e", "\0\0\10\3\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
               "label", WRITE("f", "\0\0\10\1\xff\xff\xff\xff"), NULL),
        "does not fit into memory");
  fails(create("MNISTIter", &iter, "image", WRITE("e", "\0\0\10\3\0\0\0\2\0\0\0\2\0\0\0\2abcdabcd"), "label",
               path_of("labels"), NULL),
        "expected labels of 2 images, found 10");
  fails(create("MNISTIter", &iter, DIGITS, "num_parts", "3", "part_index", "3", NULL), "part_index");
  fails(create("MNISTIter", &iter, DIGITS, "batch_size", "0", NULL), "batch_size");
  fails(create("MNISTIter", &iter, "image", path_of("none"), NULL), "cannot open the file");
  assert_null(iter);
}

/* Appends a file to a record file, with a header: its labels, and its number. */
static void write_image(RecordIOHandle writer, const char *image, uint32_t num_labels, const float *labels,
                        uint64_t id) {
  char record[20000];
  const float only = num_labels ? 0 : labels[0];
  const uint64_t unused = 0;
  size_t num_bytes = 0;
  char path[64], *bytes;

  sprintf(path, "tests/data/images/%s", image);
  bytes = read_file(path, &num_bytes);
  memcpy(record, &num_labels, 4);
  memcpy(record + 4, &only, 4);
  memcpy(record + 8, &id, 8);
  memcpy(record + 16, &unused, 8);
  if (num_labels) memcpy(record + 24, labels, 4 * num_labels);
  assert_true(24 + 4 * num_labels + num_bytes <= sizeof record);
  memcpy(record + 24 + 4 * num_labels, bytes, num_bytes);
  free(bytes);
  ok(MXRecordIOWriterWriteRecord(writer, record, 24 + 4 * num_labels + num_bytes));
}

static const char *const pictures[] = {"rgb8.png", "rgb444.jpg", "gray8.png", "rgba8.png"};

/* Picture i has label i + 0.5 and number 100 + i. */
static const char *write_pictures(void) {
  const char *const path = path_of("pictures.rec");
  RecordIOHandle writer = NULL;
  uint64_t i;

  ok(MXRecordIOWriterCreate(path, &writer));
  for (i = 0; i < NUM_OF(pictures); ++i) {
    const float label = (float)i + 0.5f;

    write_image(writer, pictures[i], 0, &label, 100 + i);
  }
  ok(MXRecordIOWriterFree(writer));
  return path;
}

/* The pixels of a picture as Cohort's own operator reads them: (height, width, 3). */
static int64_t read_picture(const char *name, unsigned char pixels[2000], int64_t *width) {
  const char *const key = "filename";
  char path[64];
  const char *value = path;
  int64_t shape[COHORT_MAX_AXES];
  int32_t num_axes = 0;
  size_t num_bytes = 0;
  cohort_arrays *outs = NULL;
  cohort_ndarray *array = NULL;

  sprintf(path, "tests/data/images/%s", name);
  assert_null(cohort_operator_invoke("_cvimread", &key, &value, 1, NULL, 0, NULL, 0, NULL, &outs));
  assert_null(cohort_arrays_get(outs, 0, &array));
  assert_null(cohort_ndarray_shape(array, shape, COHORT_MAX_AXES, &num_axes));
  assert_null(cohort_ndarray_bytes(array, &num_bytes));
  assert_true(num_axes == 3 && shape[2] == 3 && num_bytes <= 2000);
  assert_null(cohort_ndarray_read(array, pixels, num_bytes));
  cohort_ndarray_free(array);
  cohort_arrays_free(outs);
  *width = shape[1];
  return shape[0];
}

enum { EDGE = 6 };

/* The middle of a picture as it is in a batch: channels first, normalised; mirrored if asked for. */
static void expect_picture(const char *name, int mirrored, const float mean[3], const float deviation[3], float *out) {
  unsigned char pixels[2000];
  int64_t width = 0, height = read_picture(name, pixels, &width), c, y, x;
  const int64_t top = (height - EDGE) / 2, left = (width - EDGE) / 2;

  for (c = 0; c < 3; ++c) {
    for (y = 0; y < EDGE; ++y) {
      for (x = 0; x < EDGE; ++x) {
        const int64_t from = left + (mirrored ? EDGE - 1 - x : x);

        *out++ = ((float)pixels[((top + y) * width + from) * 3 + c] - mean[c]) / deviation[c] * 2;
      }
    }
  }
}

static void pictures_are_cropped_and_normalised(void **state) {
  const float means[] = {10, 20, 30}, deviations[] = {1, 2, 4}, labels[] = {0.5f, 1.5f, 2.5f},
              last[] = {3.5f, 0.5f, 1.5f};
  const uint64_t first_ids[] = {100, 101, 102}, last_ids[] = {103, 100, 101};
  static float expected[3][3 * EDGE * EDGE];
  DataIterHandle iter = NULL;
  int mirrored, i;

  (void)state;
  for (mirrored = 0; mirrored < 2; ++mirrored) {
    ok(create("ImageRecordIter", &iter, "path_imgrec", write_pictures(), "data_shape", "(3, 6, 6)", "batch_size", "3",
              "mean_r", "10", "mean_g", "20", "mean_b", "30", "std_g", "2", "std_b", "4", "scale", "2", "mirror",
              mirrored ? "True" : "False", NULL));
    assert_true(has_next(iter));
    for (i = 0; i < 3; ++i) expect_picture(pictures[i], mirrored, means, deviations, expected[i]);
    assert_data(iter, expected[0], sizeof expected / sizeof(float));
    assert_label(iter, labels, 3);
    assert_index(iter, first_ids, 3, 0);
    assert_true(has_next(iter));
    expect_picture(pictures[3], mirrored, means, deviations, expected[0]);
    for (i = 1; i < 3; ++i) expect_picture(pictures[i - 1], mirrored, means, deviations, expected[i]);
    assert_data(iter, expected[0], sizeof expected / sizeof(float));
    assert_label(iter, last, 3);
    assert_index(iter, last_ids, 3, 2);
    assert_false(has_next(iter));
    ok(MXDataIterFree(iter));
  }
}

/* Reads the bytes of a first batch of uint8 pictures. */
static void read_bytes(unsigned char *bytes, size_t num_bytes, const char *threads, const char *seed) {
  DataIterHandle iter = NULL;
  NDArrayHandle array = NULL;
  int dtype = -1;

  ok(create("ImageRecordUInt8Iter", &iter, "path_imgrec", path_of("pictures.rec"), "data_shape", "(3, 6, 6)",
            "batch_size", "4", "preprocess_threads", threads, "shuffle", "1", "rand_crop", "1", "seed", seed, "resize",
            "24", NULL));
  assert_true(has_next(iter));
  ok(MXDataIterGetData(iter, &array));
  ok(MXNDArrayGetDType(array, &dtype));
  assert_int_equal(dtype, 3);
  ok(MXNDArraySyncCopyToCPU(array, bytes, num_bytes));
  ok(MXNDArrayFree(array));
  ok(MXDataIterFree(iter));
}

static void random_crops_follow_from_the_seed_alone(void **state) {
  static unsigned char first[4 * 3 * EDGE * EDGE], again[sizeof first], other[sizeof first];

  (void)state;
  write_pictures();
  read_bytes(first, sizeof first, "1", "7");
  read_bytes(again, sizeof again, "3", "7");
  read_bytes(other, sizeof other, "3", "8");
  assert_memory_equal(first, again, sizeof first);
  assert_memory_not_equal(first, other, sizeof first);
}

static void several_labels_come_from_the_record(void **state) {
  const float labels[] = {1, -2, 3};
  const char *const path = path_of("labels.rec");
  RecordIOHandle writer = NULL;
  DataIterHandle iter = NULL;
  NDArrayHandle label = NULL;
  const int shape[] = {2, 3};
  float found[6];
  int there = 0;

  (void)state;
  ok(MXRecordIOWriterCreate(path, &writer));
  write_image(writer, "rgb8.png", 3, labels, 5);
  ok(MXRecordIOWriterFree(writer));
  ok(create("ImageRecordInt8Iter", &iter, "path_imgrec", path, "data_shape", "(1, 20, 20)", "batch_size", "2",
            "label_width", "3", NULL)); /* one channel, enlarged */
  assert_true(has_next(iter));
  ok(MXDataIterGetLabel(iter, &label));
  assert_shape(label, shape, 2);
  ok(MXNDArraySyncCopyToCPU(label, found, 6));
  assert_memory_equal(found, labels, sizeof labels);
  assert_memory_equal(found + 3, labels, sizeof labels);
  ok(MXNDArrayFree(label));
  ok(MXDataIterFree(iter));
  ok(create("ImageRecordIter", &iter, "path_imgrec", path, "data_shape", "(3, 6, 6)", "batch_size", "1", NULL));
  fails(MXDataIterNext(iter, &there), "image 5: expected 1 labels, found 3");
  ok(MXDataIterFree(iter));
}

/* Makes an iterator over one record, and expects its first batch to be an error. */
static void picture_fails(const char *record, size_t num_bytes, const char *part) {
  RecordIOHandle writer = NULL;
  DataIterHandle iter = NULL;
  int there = 0;

  ok(MXRecordIOWriterCreate(path_of("bad.rec"), &writer));
  ok(MXRecordIOWriterWriteRecord(writer, record, num_bytes));
  ok(MXRecordIOWriterFree(writer));
  ok(create("ImageRecordIter", &iter, "path_imgrec", path_of("bad.rec"), "data_shape", "(3, 6, 6)", "batch_size", "1",
            NULL));
  fails(MXDataIterNext(iter, &there), part);
  ok(MXDataIterBeforeFirst(iter));
  fails(MXDataIterNext(iter, &there), part);
  ok(MXDataIterFree(iter));
}

static void damaged_pictures_are_errors(void **state) {
  const char many_labels[24] = "\xff\xff\xff\xff";
  const char *const pictures_file = write_pictures();
  char no_image[64] = "";
  DataIterHandle iter = NULL;

  (void)state;
  picture_fails("short", 5, "shorter than the header");
  picture_fails(many_labels, sizeof many_labels, "shorter than its labels");
  strcpy(no_image + 24, "this is not an image");
  picture_fails(no_image, sizeof no_image, "bad.rec, image 0: ");
  picture_fails(no_image, 24, "image 0: ");
  fails(create("ImageRecordIter", &iter, "data_shape", "(3, 6, 6)", "batch_size", "1", NULL), "path_imgrec");
  fails(create("ImageRecordIter", &iter, "path_imgrec", path_of("none.rec"), "data_shape", "(3, 6, 6)", "batch_size",
               "1", NULL),
        "cannot open the file");
  fails(create("ImageRecordIter", &iter, "path_imgrec", WRITE("cut.rec", "\x0a\x23\xd7\xce\5\0\0\0ab"), "data_shape",
               "(3, 6, 6)", "batch_size", "1", NULL),
        "ends inside a record");
  fails(create("ImageRecordIter", &iter, "path_imgrec", WRITE("empty.rec", ""), "data_shape", "(3, 6, 6)", "batch_size",
               "1", NULL),
        "no records");
  fails(create("ImageRecordIter", &iter, "path_imgrec", pictures_file, "data_shape", "(4, 6, 6)", "batch_size", "1",
               NULL),
        "data_shape");
  fails(create("ImageRecordIter", &iter, "path_imgrec", pictures_file, "data_shape", "(3, 6, 6)", "batch_size", "1",
               "max_rotate_angle", "30", NULL),
        "not implemented in Cohort, found '30'");
  fails(create("ImageRecordIter", &iter, "path_imgrec", pictures_file, "data_shape", "(3, 6, 6)", "batch_size", "1",
               "std_r", "0", NULL),
        "std_r");
  fails(create("ImageDetRecordIter", &iter, "path_imgrec", pictures_file, "data_shape", "(3, 6, 6)", "batch_size", "1",
               NULL),
        "ImageDetRecordIter: not implemented in Cohort");
  assert_null(iter);
  /* Defaults in other spellings are defaults. */
  ok(create("ImageRecordIter", &iter, "path_imgrec", pictures_file, "data_shape", "(3, 6, 6)", "batch_size", "1",
            "max_random_scale", "1.0", "random_resized_crop", "False", "rotate", "-1", NULL));
  ok(MXDataIterFree(iter));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(iterators_are_described),
      TEST(a_last_batch_is_filled_up_with_first_rows),
      TEST(a_pass_after_an_error_begins_at_the_first_row),
      TEST(without_round_batch_each_pass_begins_at_the_first_row),
      TEST(a_batch_may_be_larger_than_the_data_set),
      TEST(batches_stay_as_they_were),
      TEST(numbers_are_read_in_their_type),
      TEST(damaged_rows_are_errors),
      TEST(wrong_parameters_are_errors),
      TEST(digits_are_read_in_order),
      TEST(a_seed_gives_an_order),
      TEST(parts_share_the_images),
      TEST(damaged_files_of_digits_are_errors),
      TEST(pictures_are_cropped_and_normalised),
      TEST(random_crops_follow_from_the_seed_alone),
      TEST(several_labels_come_from_the_record),
      TEST(damaged_pictures_are_errors),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
