/* SPDX-License-Identifier: Apache-2.0 */
/* Files of all kinds, cut short at each length: what is loaded is all that the whole file has, or the call fails. The
 * copies have their exact size, so that a sanitizer detects reads beyond their end. */
#include "support/boundary.h"

enum { MOST_BYTES = 1 << 16 };

/* The loaded values, as bytes. */
typedef struct content {
  char bytes[MOST_BYTES];
  size_t size;
} content;

static content file, whole, found;

typedef cohort_error *load(const char *bytes, size_t size, content *out_content);

static cohort_error *load_arrays(const char *bytes, size_t size, content *out_content) {
  cohort_arrays *list = NULL;
  cohort_error *const error = cohort_arrays_load_memory(bytes, size, NULL, &list);

  if (error) return error;
  ok(cohort_arrays_save_memory(list, out_content->bytes, MOST_BYTES, &out_content->size));
  cohort_arrays_free(list);
  return NULL;
}

static cohort_error *load_symbol(const char *bytes, size_t size, content *out_content) {
  cohort_symbol *symbol = NULL;
  cohort_error *const error = cohort_symbol_from_json(bytes, size, &symbol);
  const char *json = NULL;

  if (error) return error;
  ok(cohort_symbol_to_json(symbol, &json));
  out_content->size = strlen(json);
  assert_in_range(out_content->size, 1, MOST_BYTES);
  memcpy(out_content->bytes, json, out_content->size);
  cohort_symbol_free(symbol);
  return NULL;
}

static cohort_error *load_image(const char *bytes, size_t size, content *out_content) {
  const int64_t length = (int64_t)size;
  cohort_ndarray *input = NULL, *pixels = NULL;
  cohort_arrays *results = NULL;
  cohort_error *error;

  ok(cohort_ndarray_from_host(bytes, size, &length, 1, COHORT_DTYPE_UINT8, NULL, &input));
  error = cohort_operator_invoke("_cvimdecode", NULL, NULL, 0, &input, 1, NULL, 0, NULL, &results);
  cohort_ndarray_free(input);
  if (error) return error;
  ok(cohort_arrays_get(results, 0, &pixels));
  cohort_arrays_free(results);
  error = cohort_ndarray_wait(pixels);
  if (!error) {
    out_content->size = 11 * 13 * 3;
    ok(cohort_ndarray_read(pixels, out_content->bytes, out_content->size));
  }
  cohort_ndarray_free(pixels);
  return error;
}

static cohort_optimizer *optimizer(const char *momentum) {
  const char *const key = "momentum";
  cohort_optimizer *made = NULL;

  ok(cohort_optimizer_create("sgd", &key, &momentum, 1, &made));
  return made;
}

/* A load that fails changes nothing. */
static cohort_error *load_states(const char *bytes, size_t size, content *out_content) {
  static content before;
  cohort_optimizer *const sgd = optimizer("0.9");
  cohort_error *error;

  ok(cohort_optimizer_save_states_memory(sgd, before.bytes, MOST_BYTES, &before.size));
  error = cohort_optimizer_load_states_memory(sgd, bytes, size);
  ok(cohort_optimizer_save_states_memory(sgd, out_content->bytes, MOST_BYTES, &out_content->size));
  if (error) {
    assert_int_equal(out_content->size, before.size);
    assert_memory_equal(out_content->bytes, before.bytes, before.size);
  }
  cohort_optimizer_free(sgd);
  return error;
}

static void all_or_nothing(const char *what, load *load) {
  size_t size;

  ok(load(file.bytes, file.size, &whole));
  for (size = 0; size < file.size; ++size) {
    char *const part = malloc(size ? size : 1);
    cohort_error *error;

    assert_non_null(part);
    memcpy(part, file.bytes, size);
    error = load(part, size, &found);
    if (error) {
      const int32_t code = cohort_error_code(error);

      if (code != COHORT_ERROR_FORMAT && code != COHORT_ERROR_EXECUTION) /* of work that was queued */
        fail_msg("%s, %zu bytes of %zu: %s", what, size, file.size, cohort_error_message(error));
    } else if (found.size != whole.size || memcmp(found.bytes, whole.bytes, whole.size) != 0) {
      fail_msg("%s, %zu bytes of %zu: something was loaded, but not everything", what, size, file.size);
    }
    cohort_error_free(error);
    free(part);
  }
}

static void read_file(const char *path) {
  FILE *const from = fopen(path, "rb");

  assert_non_null(from);
  file.size = fread(file.bytes, 1, sizeof file.bytes, from);
  fclose(from);
  assert_in_range(file.size, 1, sizeof file.bytes - 1);
}

static void files_of_numpy(void **state) {
  static const char *const paths[] = {"tests/data/npy/rows.npy",       "tests/data/npy/columns.npy",
                                      "tests/data/npy/big_endian.npy", "tests/data/npy/scalar.npy",
                                      "tests/data/npy/none.npy",       "tests/data/npy/stored.npz",
                                      "tests/data/npy/compressed.npz"};
  size_t i;

  (void)state;
  for (i = 0; i < NUM_OF(paths); ++i) {
    read_file(paths[i]);
    all_or_nothing(paths[i], load_arrays);
  }
}

static void files_of_parameters(void **state) {
  static const float values[] = {1, 2, 3, 4, 5, 6};
  const int64_t shape[] = {2, 3};
  int named, i;

  (void)state;
  for (named = 0; named < 2; ++named) {
    cohort_arrays *list = NULL;

    ok(cohort_arrays_create(&list));
    for (i = 0; i < 3; ++i) {
      static const char *const names[] = {"arg:weight", "arg:bias", "aux:mean"};
      cohort_ndarray *array = floats(values, shape, i);

      ok(cohort_arrays_add(list, named ? names[i] : NULL, array));
      cohort_ndarray_free(array);
    }
    ok(cohort_arrays_save_memory(list, file.bytes, MOST_BYTES, &file.size));
    cohort_arrays_free(list);
    all_or_nothing(".params", load_arrays);
  }
}

static void symbols(void **state) {
  static const char *const paths[] = {"tests/data/symbol/v0.8-mlp-without-aux.json", "tests/data/symbol/v0.9-attr.json",
                                      "tests/data/symbol/v1.9-foreach.json"};
  size_t i;

  (void)state;
  for (i = 0; i < NUM_OF(paths); ++i) {
    read_file(paths[i]);
    all_or_nothing(paths[i], load_symbol);
  }
}

static void images(void **state) {
  static const char *const paths[] = {"tests/data/images/rgb444.jpg", "tests/data/images/prog.jpg",
                                      "tests/data/images/arith.jpg",  "tests/data/images/rgb8.png",
                                      "tests/data/images/rgb8i.png",  "tests/data/images/pal4t.png"};
  size_t i;

  (void)state;
  for (i = 0; i < NUM_OF(paths); ++i) {
    read_file(paths[i]);
    all_or_nothing(paths[i], load_image);
  }
}

static void states_of_optimizers(void **state) {
  static const float values[] = {1, 2, 3};
  const int64_t shape[] = {3};
  static const char *const names[] = {"weight", "bias"};
  cohort_optimizer *const sgd = optimizer("0.9");
  size_t i;

  (void)state;
  for (i = 0; i < NUM_OF(names); ++i) {
    cohort_ndarray *weight = floats(values, shape, 1), *grad = floats(values, shape, 1);

    ok(cohort_optimizer_update(sgd, names[i], 0, weight, grad));
    cohort_ndarray_free(weight);
    cohort_ndarray_free(grad);
  }
  ok(cohort_optimizer_save_states_memory(sgd, file.bytes, MOST_BYTES, &file.size));
  cohort_optimizer_free(sgd);
  all_or_nothing("states", load_states);
}

/* ---- archives whose end record is damaged ------------------------------------------------------------------------ */

static void fails_as_archive(const char *bytes, size_t size) {
  cohort_arrays *list = NULL;

  fails(cohort_arrays_load_memory(bytes, size, NULL, &list), COHORT_ERROR_FORMAT, "");
}

static void archives_that_say_less_than_they_have(void **state) {
  enum { END = 22 };
  size_t entry, num;
  char *end;

  (void)state;
  fails_as_archive("PK\3\4PK\5\6", 8);
  read_file("tests/data/npy/stored.npz");
  end = file.bytes + file.size - END;
  assert_memory_equal(end, "PK\5\6", 4);
  num = (size_t)(unsigned char)end[8];
  assert_in_range(num, 2, 100);
  for (entry = 0; entry < num; ++entry) {
    end[8] = end[10] = (char)entry;
    fails_as_archive(file.bytes, file.size);
  }
  memset(end + 8, 0, 8); /* no entries in a directory of no bytes, */
  fails_as_archive(file.bytes, file.size);
  memset(end + 16, 0, 4); /* which is at the beginning, or */
  fails_as_archive(file.bytes, file.size);
  end[16] = (char)((size_t)(end - file.bytes) & 0xff); /* at the end */
  end[17] = (char)((size_t)(end - file.bytes) >> 8);
  fails_as_archive(file.bytes, file.size);
}

/* A comment, which may look like an end record, is no part of the arrays. */
static void archives_with_comments(void **state) {
  static const char comment[] = "PK\5\6 and more than the twenty-two bytes of an end record";
  char *end;

  (void)state;
  read_file("tests/data/npy/stored.npz");
  ok(load_arrays(file.bytes, file.size, &whole));
  end = file.bytes + file.size;
  memcpy(end, comment + 5, sizeof comment - 5);
  end[-2] = (char)(sizeof comment - 5);
  ok(load_arrays(file.bytes, file.size + sizeof comment - 5, &found));
  assert_int_equal(found.size, whole.size);
  assert_memory_equal(found.bytes, whole.bytes, whole.size);
  fails_as_archive(file.bytes, file.size + sizeof comment - 6);
  memcpy(end, comment, sizeof comment);
  end[-2] = (char)sizeof comment;
  fails_as_archive(file.bytes, file.size + sizeof comment);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(files_of_numpy),
      TEST(files_of_parameters),
      TEST(symbols),
      TEST(images),
      TEST(states_of_optimizers),
      TEST(archives_that_say_less_than_they_have),
      TEST(archives_with_comments),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
