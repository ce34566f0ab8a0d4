/* SPDX-License-Identifier: Apache-2.0 */
/* Images from bytes and from files. Those in tests/data/images are pictures of 11 rows of 13 pixels in the forms that
 * JPEG and PNG have; expected.params holds the pixels that MXNet 1.9.1 reads from each with flag 0 and 1. */
#include "support/boundary.h"

#define DATA(name) "tests/data/images/" name

enum { HEIGHT = 11, WIDTH = 13, MOST_BYTES = 4096 };

typedef struct file {
  unsigned char bytes[MOST_BYTES];
  size_t length;
} file;

static file read_data(const char *name) {
  char path[256];
  file found;
  FILE *from;

  snprintf(path, sizeof path, DATA("%s"), name);
  from = fopen(path, "rb");
  assert_non_null(from);
  found.length = fread(found.bytes, 1, sizeof found.bytes, from);
  fclose(from);
  assert_in_range(found.length, 50, sizeof found.bytes - 1);
  return found;
}

static cohort_error *try_decode(const file *image, const char *flag, const char *to_rgb, cohort_ndarray **out_pixels) {
  const char *const keys[] = {"flag", "to_rgb"}, *values[2];
  const int64_t length = (int64_t)image->length;
  cohort_ndarray *bytes = NULL;
  cohort_arrays *results = NULL;
  cohort_error *error;

  values[0] = flag;
  values[1] = to_rgb;
  ok(cohort_ndarray_from_host(image->bytes, image->length, &length, 1, COHORT_DTYPE_UINT8, NULL, &bytes));
  error = cohort_operator_invoke("_cvimdecode", keys, values, 2, &bytes, 1, NULL, 0, NULL, &results);
  cohort_ndarray_free(bytes);
  if (error) return error;
  ok(cohort_arrays_get(results, 0, out_pixels));
  cohort_arrays_free(results);
  return NULL;
}

static size_t read_pixels(cohort_ndarray *pixels, int64_t channels, unsigned char *to) {
  const int64_t shape[] = {HEIGHT, WIDTH, channels};

  assert_shape(pixels, shape, 3);
  ok(cohort_ndarray_read(pixels, to, (size_t)(HEIGHT * WIDTH * channels)));
  cohort_ndarray_free(pixels);
  return (size_t)(HEIGHT * WIDTH * channels);
}

/* Each picture has the pixels that MXNet reads; with blue first, the same pixels in the other channel order. */
static void pictures_have_the_pixels_of_mxnets(void **state) {
  static const char *const names[] = {"rgb444.jpg", "rgb420.jpg", "rgb422.jpg", "prog.jpg",   "arith.jpg", "gray.jpg",
                                      "cmyk.jpg",   "ycck.jpg",   "rgbrgb.jpg", "exif6.jpg",  "gray8.png", "gray1.png",
                                      "gray2.png",  "gray4.png",  "gray16.png", "gray8t.png", "rgb8.png",  "rgb8i.png",
                                      "rgb16.png",  "rgb8t.png",  "rgb8g.png",  "pal8.png",   "pal4t.png", "pal1.png",
                                      "ga8.png",    "ga16.png",   "rgba8.png",  "rgba16.png"};
  unsigned char found[HEIGHT * WIDTH * 3], expected[HEIGHT * WIDTH * 3];
  cohort_arrays *all = NULL;
  size_t n, i;

  (void)state;
  ok(cohort_arrays_load(DATA("expected.params"), NULL, &all));
  for (n = 0; n < NUM_OF(names); ++n) {
    const file image = read_data(names[n]);
    int flag;

    for (flag = 0; flag < 2; ++flag) {
      cohort_ndarray *pixels = NULL;
      char key[64];
      size_t index = 0, length;

      snprintf(key, sizeof key, "%s:%d", names[n], flag);
      ok(cohort_arrays_find(all, key, &index));
      ok(cohort_arrays_get(all, index, &pixels));
      length = read_pixels(pixels, flag ? 3 : 1, expected);
      ok(try_decode(&image, flag ? "1" : "0", "1", &pixels));
      read_pixels(pixels, flag ? 3 : 1, found);
      if (memcmp(found, expected, length) != 0) fail_msg("%s: other pixels than MXNet's", key);
      ok(try_decode(&image, flag ? "1" : "0", "0", &pixels));
      read_pixels(pixels, flag ? 3 : 1, found);
      for (i = 0; i < length; ++i) assert_int_equal(found[i], expected[flag ? i / 3 * 3 + (2 - i % 3) : i]);
    }
  }
  cohort_arrays_free(all);
}

/* The same from the name of a file, which is read each time. */
static void pictures_are_read_from_files(void **state) {
  const char *key = "filename", *path = DATA("rgb8.png");
  unsigned char found[HEIGHT * WIDTH * 3], expected[HEIGHT * WIDTH * 3];
  const file image = read_data("rgb8.png");
  cohort_ndarray *pixels = NULL;
  cohort_arrays *results = NULL;
  const char *bad[] = {"tests/data/images/none.png", "tests/data/images", ""};
  size_t i;

  (void)state;
  ok(try_decode(&image, "1", "1", &pixels));
  read_pixels(pixels, 3, expected);
  ok(cohort_operator_invoke("_cvimread", &key, &path, 1, NULL, 0, NULL, 0, NULL, &results));
  ok(cohort_arrays_get(results, 0, &pixels));
  cohort_arrays_free(results);
  assert_memory_equal(expected, found, read_pixels(pixels, 3, found));
  for (i = 0; i < NUM_OF(bad); ++i) {
    fails(cohort_operator_invoke("_cvimread", &key, &bad[i], 1, NULL, 0, NULL, 0, NULL, &results), COHORT_ERROR_IO,
          "operator _cvimread");
  }
  path = DATA("expected.params");
  fails(cohort_operator_invoke("_cvimread", &key, &path, 1, NULL, 0, NULL, 0, NULL, &results), COHORT_ERROR_FORMAT,
        "expected JPEG or PNG");
}

/* An error in the header is reported at once, one in the later data with the pixels; frees any arrays. */
static int is_decoded(const file *image) {
  unsigned char pixels[HEIGHT * WIDTH * 3];
  cohort_ndarray *array = NULL;
  cohort_error *error = try_decode(image, "1", "1", &array);
  int64_t size = 0;

  if (!error) {
    ok(cohort_ndarray_size(array, &size));
    error =
        size == (int64_t)sizeof pixels ? cohort_ndarray_read(array, pixels, sizeof pixels) : cohort_ndarray_wait(array);
  }
  cohort_ndarray_free(array);
  if (!error) return 1;
  assert_true(cohort_error_code(error) == COHORT_ERROR_FORMAT || cohort_error_code(error) == COHORT_ERROR_EXECUTION);
  assert_non_null(strstr(cohort_error_message(error), "image: "));
  cohort_error_free(error);
  return 0;
}

/* DEF-41: a file that is cut short anywhere is refused. */
static void pictures_that_end_too_early_are_refused(void **state) {
  static const char *const names[] = {"rgb444.jpg", "prog.jpg", "rgb8.png", "rgba16.png"};
  size_t n, length;

  (void)state;
  for (n = 0; n < NUM_OF(names); ++n) {
    const file whole = read_data(names[n]);

    assert_true(is_decoded(&whole));
    for (length = 1; length + 12 < whole.length; length += 7) { /* the last bytes of a PNG carry no pixels */
      file part = whole;

      part.length = length;
      if (is_decoded(&part)) fail_msg("%s: %zu bytes of %zu were decoded", names[n], length, whole.length);
    }
  }
}

/* With any byte replaced, there are pixels or an error, without a long wait. */
static void damaged_pictures_do_no_harm(void **state) {
  static const char *const names[] = {"rgb420.jpg", "prog.jpg", "arith.jpg", "cmyk.jpg", "pal4t.png", "rgba16.png"};
  size_t n, at;

  (void)state;
  for (n = 0; n < NUM_OF(names); ++n) {
    const file whole = read_data(names[n]);

    for (at = 0; at < whole.length; ++at) {
      file damaged = whole;

      damaged.bytes[at] ^= (unsigned char)(at % 3 == 0 ? 0xff : 1 << at % 8);
      is_decoded(&damaged);
    }
  }
}

/* A few bytes that tell the decoder to go over all pixels of a large picture again and again. */
static void many_scans_of_a_large_picture_are_refused(void **state) {
  file image = read_data("prog.jpg");
  cohort_ndarray *pixels = NULL;
  size_t at, scan = 0, length;

  (void)state;
  for (at = 0; at + 9 < image.length; ++at) { /* the header of a progressive frame */
    if (image.bytes[at] == 0xff && image.bytes[at + 1] == 0xc2) break;
  }
  assert_in_range(at, 2, image.length - 10);
  memcpy(image.bytes + at + 5, "\x10\x00\x10\x00", 4);
  for (at = 0; at + 1 < image.length; ++at) {
    if (image.bytes[at] == 0xff && image.bytes[at + 1] == 0xda) scan = at; /* the last one */
  }
  assert_true(scan > 0);
  length = image.length - 2 - scan;
  for (at = image.length - 2; at + length + 2 < MOST_BYTES && at < scan + 40 * length; at += length)
    memcpy(image.bytes + at, image.bytes + scan, length);
  memcpy(image.bytes + at, "\xff\xd9", 2);
  image.length = at + 2;
  ok(try_decode(&image, "1", "1", &pixels));
  fails(cohort_ndarray_wait(pixels), COHORT_ERROR_EXECUTION, "of 4096 x 4096 pixels");
  cohort_ndarray_free(pixels);
}

static void bytes_that_are_no_image_are_refused(void **state) {
  file image = read_data("rgb444.jpg");
  cohort_ndarray *pixels = NULL;
  size_t at;

  (void)state;
  for (at = 0; at + 9 < image.length; ++at) { /* the frame's header: its length, 8 bits, height, width */
    if (image.bytes[at] == 0xff && image.bytes[at + 1] == 0xc0) break;
  }
  assert_in_range(at, 2, image.length - 10);
  memset(image.bytes + at + 5, 0xfa, 4);
  fails(try_decode(&image, "1", "1", &pixels), COHORT_ERROR_FORMAT, "the header says 64250 rows of 64250 pixels");
  memset(image.bytes, 7, sizeof image.bytes);
  fails(try_decode(&image, "1", "1", &pixels), COHORT_ERROR_FORMAT,
        "operator _cvimdecode: image: expected JPEG or PNG");
  fails(try_decode(&image, "2", "1", &pixels), COHORT_ERROR_INVALID_ARGUMENT, "flag");
  image.length = 0;
  fails(try_decode(&image, "1", "1", &pixels), COHORT_ERROR_FORMAT, "found 0 bytes");
  {
    const float numbers[] = {1, 2};
    const int64_t two = 2;
    cohort_ndarray *array = floats(numbers, &two, 1);
    cohort_arrays *results = NULL;

    fails(cohort_operator_invoke("_cvimdecode", NULL, NULL, 0, &array, 1, NULL, 0, NULL, &results), COHORT_ERROR_DTYPE,
          "expected uint8, found float32");
    cohort_ndarray_free(array);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(pictures_have_the_pixels_of_mxnets),      TEST(pictures_are_read_from_files),
      TEST(pictures_that_end_too_early_are_refused), TEST(damaged_pictures_do_no_harm),
      TEST(bytes_that_are_no_image_are_refused),     TEST(many_scans_of_a_large_picture_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
