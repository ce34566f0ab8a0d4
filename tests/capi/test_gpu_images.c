/* SPDX-License-Identifier: Apache-2.0 */
/* Image operators give the same on a GPU as on a CPU, in the types and for the attributes that golden cases leave out.
 * Random ones draw the same numbers. */
#include "support/both_devices.h"

#define F32 COHORT_DTYPE_FLOAT32
#define F64 COHORT_DTYPE_FLOAT64
#define F16 COHORT_DTYPE_FLOAT16
#define BF16 COHORT_DTYPE_BFLOAT16
#define U8 COHORT_DTYPE_UINT8

static const int32_t all_types[] = {F32, F64, F16, BF16, U8, COHORT_DTYPE_INT8, COHORT_DTYPE_INT32, COHORT_DTYPE_INT64};

/* The bound on differences for a type: functions of the device may round differently. Integers must be equal. */
static double step_of(int32_t dtype) {
  return dtype == F64 ? 1e-12 : dtype == F32 ? 1e-6 : dtype == F16 ? 1e-3 : dtype == BF16 ? 1e-2 : 0;
}

static double small_numbers(int64_t i) { return floor(60 * spread(i)); }

static void every_interpolation_resizes_alike(void **state) {
  static const char *const interpolations[] = {"0", "1", "2", "3", "4"};
  static const char *const sizes[] = {"(7, 5)", "(1, 1)", "(3, 11)", "(23, 19)", "(11, 13)"};
  size_t how, s, t;

  (void)state;
  need_gpu();
  for (how = 0; how < COUNT(interpolations); ++how) {
    for (s = 0; s < COUNT(sizes); ++s) {
      for (t = 0; t < COUNT(all_types); ++t) {
        const operand image = {{11, 13, 3}, 3, all_types[t], all_types[t] == U8 ? bytes : small_numbers, 1};
        const operand batch = {{2, 5, 1, 2}, 4, all_types[t], small_numbers, 1};
        const char *const *attrs = ATTRS("size", sizes[s], "interp", interpolations[how]);

        alike(apply_on, "_image_resize", attrs, &image, 1, step_of(all_types[t]));
        if (all_types[t] != U8) alike(apply_on, "_image_resize", attrs, &batch, 1, step_of(all_types[t]));
      }
    }
  }
}

static void every_border_is_alike(void **state) {
  static const char *const types[] = {"0", "1", "2", "3", "4"};
  size_t type, t;

  (void)state;
  need_gpu();
  for (type = 0; type < COUNT(types); ++type) {
    for (t = 0; t < COUNT(all_types); ++t) {
      const operand image = {{3, 2, 3}, 3, all_types[t], all_types[t] == U8 ? bytes : small_numbers, 1};
      const operand pixel = {{1, 1, 1}, 3, all_types[t], small_numbers, 1};
      const operand channels = {{2, 3, 70}, 3, all_types[t], small_numbers, 1};

      if (all_types[t] == U8 || t % 2 == 0) {
        alike(apply_on, "_cvcopyMakeBorder",
              ATTRS("top", "7", "bot", "1", "left", "0", "right", "9", "type", types[type], "value", "77.5"), &image, 1,
              0);
      }
      alike(apply_on, "_cvcopyMakeBorder",
            ATTRS("top", "2", "bot", "3", "left", "4", "right", "0", "type", types[type], "values", "(1.5, 2)"),
            &channels, 1, 0);
      if (all_types[t] != U8) {
        alike(apply_on, "_cvcopyMakeBorder",
              ATTRS("top", "2", "bot", "2", "left", "2", "right", "2", "type", types[type]), &pixel, 1, 0);
      }
    }
  }
}

/* The middle is empty: the image is only the frame. */
static void a_frame_around_nothing_is_alike(void **state) {
  const operand nothing = {{0, 2, 3}, 3, F32, spread, 1}, no_channels = {{2, 2, 0}, 3, F32, spread, 1};

  (void)state;
  need_gpu();
  alike(apply_on, "_cvcopyMakeBorder", ATTRS("top", "2", "bot", "1", "left", "0", "right", "3", "value", "4"), &nothing,
        1, 0);
  alike(apply_on, "_cvcopyMakeBorder", ATTRS("top", "2", "bot", "1", "left", "0", "right", "3"), &no_channels, 1, 0);
}

static void colors_change_alike(void **state) {
  static const struct {
    const char *op, *attrs[9];
  } cases[] = {
      {"_image_random_brightness", {"min_factor", "0.2", "max_factor", "2.5", NULL}},
      {"_image_random_contrast", {"min_factor", "0.2", "max_factor", "2.5", NULL}},
      {"_image_random_saturation", {"min_factor", "0.2", "max_factor", "2.5", NULL}},
      {"_image_random_hue", {"min_factor", "0.2", "max_factor", "0.7", NULL}},
      {"_image_random_color_jitter", {"brightness", "0.3", "contrast", "0.4", "saturation", "0.5", "hue", "0.2", NULL}},
      {"_image_adjust_lighting", {"alpha", "(0.1, -0.2, 0.3)", NULL}},
      {"_image_random_lighting", {"alpha_std", "0.5", NULL}},
  };
  size_t c, t;

  (void)state;
  need_gpu();
  for (c = 0; c < COUNT(cases); ++c) {
    for (t = 0; t < COUNT(all_types); ++t) {
      const int32_t dtype = all_types[t];
      const operand image = {{37, 23, 3}, 3, dtype, dtype == COHORT_DTYPE_INT8 ? small_numbers : bytes, 1};
      const operand grey = {{5, 3, 1}, 3, dtype, dtype == COHORT_DTYPE_INT8 ? small_numbers : bytes, 1};
      const operand nothing = {{0, 3, 3}, 3, dtype, bytes, 1};
      const double bound = dtype == F64 ? 1e-6 : step_of(dtype); /* computed in float all the same */

      alike(apply_on, cases[c].op, cases[c].attrs, &image, 1, bound);
      alike(apply_on, cases[c].op, cases[c].attrs, &grey, 1, bound);
      alike(apply_on, cases[c].op, cases[c].attrs, &nothing, 1, 0);
    }
  }
}

static void channels_are_normalized_alike(void **state) {
  size_t t;

  (void)state;
  need_gpu();
  for (t = 0; t < COUNT(all_types); ++t) {
    const operand one = {{1, 3, 5}, 3, all_types[t], small_numbers, 0};
    const operand batch = {{2, 3, 3, 1}, 4, all_types[t], small_numbers, 0};

    alike(apply_on, "_image_normalize", ATTRS("mean", "(3.5,)", "std", "(7,)"), &one, 1, 0);
    alike(apply_on, "_image_normalize", ATTRS("mean", "(3.5, -2, 0.1)", "std", "(7, 0.5, 3)"), &batch, 1, 0);
    if (all_types[t] != F32 && all_types[t] != F64 && all_types[t] != F16 && all_types[t] != BF16) continue;
    alike(differentiate_on, "_image_normalize", ATTRS("mean", "(0.5,)", "std", "(7, 0.5, 3)"), &batch, 1, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(every_interpolation_resizes_alike), TEST(every_border_is_alike),
      TEST(a_frame_around_nothing_is_alike),   TEST(colors_change_alike),
      TEST(channels_are_normalized_alike),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
