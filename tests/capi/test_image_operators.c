/* SPDX-License-Identifier: Apache-2.0 */
/* Image operators: cases that golden cases cannot hold, because they are random, at an edge, or differ from MXNet. */
#include <math.h>

#include "support/executor_tests.h"

static cohort_error *apply(const char *op, const char *const *attrs, cohort_ndarray *input, uint64_t seed,
                           cohort_ndarray **out) {
  cohort_invoke_options options = COHORT_INVOKE_OPTIONS_INIT;
  const char *keys[8], *values[8];
  cohort_arrays *found = NULL;
  cohort_error *error;
  size_t num_attrs = 0;

  options.seed = seed;
  for (; attrs[2 * num_attrs]; ++num_attrs) {
    keys[num_attrs] = attrs[2 * num_attrs];
    values[num_attrs] = attrs[2 * num_attrs + 1];
  }
  error = cohort_operator_invoke(op, keys, values, num_attrs, &input, input ? 1 : 0, NULL, 0, &options, &found);
  if (!error) ok(cohort_arrays_get(found, 0, out));
  cohort_arrays_free(found);
  cohort_ndarray_free(input);
  return error;
}

static cohort_ndarray *applied(const char *op, const char *const *attrs, cohort_ndarray *input, uint64_t seed) {
  cohort_ndarray *out = NULL;

  ok(apply(op, attrs, input, seed, &out));
  return out;
}

static void refused(const char *op, const char *const *attrs, cohort_ndarray *input, int32_t code, const char *words) {
  cohort_ndarray *out = NULL;

  fails(apply(op, attrs, input, 0, &out), code, words);
  assert_null(out);
}

/* The first element of an array of at most twelve; frees it. */
static float first_of(cohort_ndarray *array) {
  float values[12];
  int64_t size = 0;

  ok(cohort_ndarray_size(array, &size));
  assert_true(size <= 12);
  ok(cohort_ndarray_read(array, values, (size_t)size * sizeof(float)));
  cohort_ndarray_free(array);
  return values[0];
}

#define PIXEL floats(SHAPE(1, 1, 3), FLOATS(100, 50, 200))

/* The grey value of an image of three channels depends on all of them. */
static void saturation_mixes_with_the_grey_image(void **state) {
  const float grey = 0.299f * 100 + 0.587f * 50 + 0.114f * 200;
  const char *const *half = ATTRS("min_factor", "0.5", "max_factor", "0.5");

  (void)state;
  holds_free(applied("_image_random_saturation", half, PIXEL, 0), 50 + grey / 2, 25 + grey / 2, 100 + grey / 2);
  holds_free(applied("_image_random_saturation", half, floats(SHAPE(1, 1, 1), FLOATS(7)), 0), 7);
  holds_free(applied("_image_random_hue", half, floats(SHAPE(1, 1, 1), FLOATS(7)), 0), 7);
}

static void factors_lie_between_their_bounds(void **state) {
  float least = 9, largest = 0, mean = 0;
  uint64_t seed;

  (void)state;
  for (seed = 0; seed < 1000; ++seed) {
    const float found = first_of(applied("_image_random_brightness", ATTRS("min_factor", "0.5", "max_factor", "1.5"),
                                         floats(SHAPE(1, 1, 1), FLOATS(1)), seed));

    assert_true(found >= 0.5f && found <= 1.5f);
    least = fminf(least, found);
    largest = fmaxf(largest, found);
    mean += found / 1000;
  }
  assert_true(least < 0.51f && largest > 1.49f && fabsf(mean - 1) < 0.05f);
}

static void flips_happen_in_half_of_the_cases(void **state) {
  uint64_t seed;
  int columns = 0, rows = 0;

  (void)state;
  for (seed = 0; seed < 1000; ++seed) {
    columns += first_of(applied("_image_random_flip_left_right", NO_ATTRS, counted(SHAPE(1, 2, 1), 1), seed)) == 1;
    rows += first_of(applied("_image_random_flip_top_bottom", NO_ATTRS, counted(SHAPE(2, 1, 1), 1), seed)) == 1;
  }
  assert_true(columns > 440 && columns < 560 && rows > 440 && rows < 560);
  holds_free(applied("_image_flip_top_bottom", NO_ATTRS, counted(SHAPE(3, 1, 2), 1), 0), 4, 5, 2, 3, 0, 1);
}

static void jitter_without_distance_changes_nothing(void **state) {
  const char *const none[] = {"brightness", "0", "contrast", "0", "saturation", "0", "hue", "0", NULL};
  const char *const some[] = {"brightness", "0.4", "contrast", "0.4", "saturation", "0.4", "hue", "0.1", NULL};
  float first, second;

  (void)state;
  holds_free(applied("_image_random_color_jitter", none, PIXEL, 3), 100, 50, 200);
  first = first_of(applied("_image_random_color_jitter", some, PIXEL, 3));
  second = first_of(applied("_image_random_color_jitter", some, PIXEL, 4));
  assert_true(first != second);
  assert_true(first == first_of(applied("_image_random_color_jitter", some, PIXEL, 3)));
}

/* Lighting adds a constant to an image: the gradient passes unchanged, as in MXNet. */
static void gradients_go_through_lighting(void **state) {
  int random;

  (void)state;
  for (random = 0; random < 2; ++random) {
    cohort_symbol *light =
        random ? node("_image_random_lighting", "light", NO_ATTRS, INPUTS(variable("data")))
               : node("_image_adjust_lighting", "light", ATTRS("alpha", "(1, 2, 3)"), INPUTS(variable("data")));
    cohort_executor *executor = simple_bind_with(light, desc("data", SHAPE(1, 2, 3), NULL), "write");

    ok(cohort_executor_forward(executor, 1));
    ok(try_backward_with(executor, counted(SHAPE(1, 2, 3), 2), 1));
    holds_free(grad_of(executor, "data"), 0, 2, 4, 6, 8, 10);
    cohort_executor_free(executor);
  }
}

/* DEF-67: the gradient moves pixels back to their places in the input; MXNet passes the head gradient on unchanged. */
static void gradients_go_back_to_their_pixels(void **state) {
  static const struct {
    const char *op;
    const float gradient[12];
  } cases[] = {
      {"_image_flip_left_right", {4, 5, 2, 3, 0, 1, 10, 11, 8, 9, 6, 7}},
      {"_image_flip_top_bottom", {6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5}},
      {"_image_to_tensor", {0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11}},
  };
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(cases); ++i) {
    const int is_tensor = strcmp(cases[i].op, "_image_to_tensor") == 0;
    cohort_symbol *symbol = node(cases[i].op, "n", NO_ATTRS, INPUTS(variable("data")));
    cohort_executor *executor = simple_bind_with(symbol, desc("data", SHAPE(2, 3, 2), NULL), "write");

    ok(cohort_executor_forward(executor, 1));
    if (is_tensor) {
      ok(try_backward_with(executor, counted(SHAPE(2, 2, 3), 255), 1));
    } else {
      ok(try_backward_with(executor, counted(SHAPE(2, 3, 2), 1), 1));
    }
    holds_free_at(grad_of(executor, "data"), cases[i].gradient, 12, __FILE__, __LINE__);
    cohort_executor_free(executor);
  }
}

static void sizes_and_windows_that_make_no_sense_are_refused(void **state) {
  const int32_t wrong = COHORT_ERROR_INVALID_ARGUMENT, shape = COHORT_ERROR_SHAPE;
#define IMAGE counted(SHAPE(2, 3, 1), 1)
  (void)state;
  refused("_image_resize", NO_ATTRS, IMAGE, wrong, "one or two numbers");
  refused("_image_resize", ATTRS("size", "(0, 2)"), IMAGE, wrong, "expected 1 to");
  refused("_image_resize", ATTRS("size", "(2, 2)", "interp", "9"), IMAGE, wrong, "interp");
  refused("_image_resize", ATTRS("size", "(2, 2)"), counted(SHAPE(2, 3), 1), shape, "height, width, channels");
  refused("_image_resize", ATTRS("size", "(2, 2)"), counted(SHAPE(0, 3, 1), 1), COHORT_ERROR_UNSUPPORTED, "pixels");
  refused("_cvimresize", ATTRS("w", "-1", "h", "2"), IMAGE, wrong, "'w'");
  refused("_image_crop", ATTRS("x", "2", "y", "0", "width", "2", "height", "1"), IMAGE, shape, "inside 3 pixels");
  refused("_image_crop", ATTRS("x", "-1", "y", "0", "width", "2", "height", "1"), IMAGE, shape, "from -1");
  refused("_image_crop", ATTRS("x", "0", "y", "0", "width", "2", "height", "0"), IMAGE, shape, "height");
  refused("_cvcopyMakeBorder", ATTRS("top", "-1", "bot", "0", "left", "0", "right", "0"), IMAGE, wrong,
          "'top': expected 0 to");
  refused("_image_normalize", ATTRS("mean", "(1, 2)"), counted(SHAPE(3, 2, 2), 1), shape, "'mean'");
  refused("_image_normalize", NO_ATTRS, counted(SHAPE(2, 2, 2), 1), shape, "1 or 3 channels");
  refused("_image_random_hue", ATTRS("min_factor", "-0.1", "max_factor", "0"), IMAGE, wrong, "min_factor");
  refused("_image_adjust_lighting", ATTRS("alpha", "(1, 2)"), IMAGE, wrong, "3 numbers");
  refused("_image_random_contrast", ATTRS("min_factor", "0", "max_factor", "0"), counted(SHAPE(2, 3, 2), 1), shape,
          "1 or 3 channels");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(saturation_mixes_with_the_grey_image),
      TEST(factors_lie_between_their_bounds),
      TEST(flips_happen_in_half_of_the_cases),
      TEST(jitter_without_distance_changes_nothing),
      TEST(gradients_go_through_lighting),
      TEST(gradients_go_back_to_their_pixels),
      TEST(sizes_and_windows_that_make_no_sense_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
