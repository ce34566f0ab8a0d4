/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and deconvolutions of all shapes and types against plain sums: row lengths that are no multiple of the
 * vector width, windows of one element, channels first and last, batches that are computed in pieces. */
#include "support/whole_number_layers.h"

static const layer layers[] = {
    {"Convolution", "places in vectors", {2, 8, 16, 18}, 4, "(3, 3) (1, 1) (1, 1) (1, 1) 16 1"},
    {"Convolution", "places in vectors, bias", {2, 16, 17, 16}, 4, "(3, 3) (1, 1) (1, 1) (1, 1) 8 1 bias"},
    {"Convolution", "odd places", {3, 16, 7, 7}, 4, "(3, 3) (1, 1) (1, 1) (1, 1) 24 1"},
    {"Convolution", "odd places, bias", {3, 9, 5, 11}, 4, "(3, 3) (1, 1) (0, 2) (1, 1) 13 1 bias"},
    {"Convolution", "one place, in vectors", {3, 16, 16, 18}, 4, "(1, 1) (1, 1) (0, 0) (1, 1) 24 1"},
    {"Convolution", "one place, bias", {2, 16, 17, 16}, 4, "(1, 1) (1, 1) (0, 0) (1, 1) 8 1 bias"},
    {"Convolution", "one place, odd", {3, 16, 7, 7}, 4, "(1, 1) (1, 1) (0, 0) (1, 1) 8 1"},
    {"Convolution", "one place, odd channels", {2, 11, 16, 16}, 4, "(1, 1) (1, 1) (0, 0) (1, 1) 9 1 bias"},
    {"Convolution", "one place, padding", {2, 8, 6, 5}, 4, "(1, 1) (1, 1) (1, 2) (1, 1) 8 1"},
    {"Convolution", "one place, strides", {2, 16, 15, 14}, 4, "(1, 1) (2, 2) (0, 0) (1, 1) 24 1"},
    {"Convolution", "one place, strides, in vectors", {2, 8, 32, 35}, 4, "(1, 1) (2, 2) (0, 0) (1, 1) 8 1"},
    {"Convolution", "images of one place", {5, 24, 1, 1}, 4, "(1, 1) (1, 1) (0, 0) (1, 1) 16 1 bias"},
    {"Convolution", "images of one place, window", {5, 9, 1, 1}, 4, "(3, 3) (1, 1) (1, 1) (1, 1) 16 1 bias"},
    {"Convolution", "the whole image", {4, 8, 6, 6}, 4, "(6, 6) (1, 1) (0, 0) (1, 1) 16 1 bias"},
    {"Convolution", "strides", {2, 9, 15, 13}, 4, "(3, 3) (2, 2) (1, 1) (1, 1) 10 1 bias"},
    {"Convolution", "strides, in vectors", {2, 8, 31, 33}, 4, "(3, 3) (2, 2) (1, 0) (1, 1) 16 1"},
    {"Convolution", "strides beyond the window", {2, 8, 13, 14}, 4, "(2, 2) (3, 4) (0, 0) (1, 1) 8 1"},
    {"Convolution", "dilation", {2, 8, 12, 13}, 4, "(3, 2) (1, 1) (2, 1) (2, 3) 16 1 bias"},
    {"Convolution", "dilation and strides", {2, 8, 14, 13}, 4, "(3, 3) (2, 1) (2, 3) (2, 3) 8 1"},
    {"Convolution", "groups", {2, 24, 7, 9}, 4, "(3, 3) (1, 1) (1, 1) (1, 1) 48 3 bias"},
    {"Convolution", "groups, in vectors", {2, 16, 16, 16}, 4, "(3, 3) (1, 1) (1, 1) (1, 1) 16 2"},
    {"Convolution", "groups, strides", {2, 18, 9, 8}, 4, "(3, 3) (2, 2) (1, 1) (1, 1) 20 2"},
    {"Convolution", "groups, one place", {2, 32, 16, 16}, 4, "(1, 1) (1, 1) (0, 0) (1, 1) 16 2 bias"},
    {"Convolution", "three channels", {2, 3, 19, 18}, 4, "(7, 7) (2, 2) (3, 3) (1, 1) 16 1 first"},
    {"Convolution", "from three channels", {2, 3, 19, 18}, 4, "(3, 3) (2, 2) (1, 1) (1, 1) 16 1 bias"},
    {"Convolution", "to three channels", {2, 16, 9, 8}, 4, "(3, 3) (1, 1) (1, 1) (1, 1) 3 1 bias"},
    {"Convolution", "one channel", {2, 1, 9, 9}, 4, "(5, 5) (1, 1) (0, 0) (1, 1) 8 1 bias first"},
    {"Convolution", "one axis", {3, 10, 37}, 3, "(5,) (2,) (2,) (1,) 12 1 bias"},
    {"Convolution", "one axis, in vectors", {2, 8, 256}, 3, "(3,) (1,) (1,) (1,) 8 1"},
    {"Convolution", "three axes", {2, 8, 4, 5, 6}, 5, "(3, 2, 3) (1, 1, 1) (1, 0, 1) (1, 1, 1) 16 1 bias"},
    {"Convolution", "three axes, strides", {1, 16, 7, 5, 9}, 5, "(3, 3, 3) (2, 1, 2) (1, 1, 1) (1, 2, 1) 16 2"},
    {"Convolution", "last", {2, 6, 7, 16}, 4, "(3, 3) (1, 1) (1, 1) (1, 1) 24 1 bias NHWC"},
    {"Convolution", "last, odd channels", {2, 6, 7, 11}, 4, "(3, 3) (1, 1) (1, 1) (1, 1) 9 1 bias NHWC"},
    {"Convolution", "last, one place", {2, 6, 7, 16}, 4, "(1, 1) (1, 1) (0, 0) (1, 1) 8 1 bias NHWC"},
    {"Convolution", "last, one place, strides", {2, 6, 7, 16}, 4, "(1, 1) (2, 2) (0, 0) (1, 1) 8 1 NHWC"},
    {"Convolution", "last, strides", {2, 9, 8, 8}, 4, "(3, 3) (2, 2) (1, 1) (2, 1) 8 1 NHWC"},
    {"Convolution", "last, groups", {2, 6, 7, 32}, 4, "(3, 3) (1, 1) (1, 1) (1, 1) 16 2 bias NHWC"},
    {"Convolution", "last, groups, strides", {2, 6, 7, 20}, 4, "(3, 2) (2, 1) (1, 1) (1, 1) 20 2 NHWC"},
    {"Convolution", "last, groups, one place", {2, 6, 7, 32}, 4, "(1, 1) (1, 1) (0, 0) (1, 1) 32 2 bias NHWC"},
    {"Convolution", "last, three channels", {2, 19, 18, 3}, 4, "(7, 7) (2, 2) (3, 3) (1, 1) 16 1 first NHWC"},
    {"Convolution", "last, three axes", {2, 4, 5, 6, 8}, 5, "(3, 2, 3) (1, 2, 1) (1, 0, 1) (1, 1, 1) 8 1 bias NDHWC"},
    {"Deconvolution", "strides", {2, 16, 5, 6}, 4, "(4, 4) (2, 2) (1, 1) (1, 1) 8 1 bias"},
    {"Deconvolution", "strides, in vectors", {2, 8, 16, 17}, 4, "(2, 2) (2, 2) (0, 0) (1, 1) 8 1"},
    {"Deconvolution", "to three channels", {2, 16, 6, 5}, 4, "(4, 4) (2, 2) (1, 1) (1, 1) 3 1 bias"},
    {"Deconvolution", "no strides", {2, 9, 6, 5}, 4, "(3, 3) (1, 1) (1, 1) (1, 1) 11 1 bias"},
    {"Deconvolution", "no strides, in vectors", {2, 8, 16, 16}, 4, "(3, 3) (1, 1) (1, 1) (1, 1) 16 1 bias"},
    {"Deconvolution", "groups", {2, 16, 5, 6}, 4, "(3, 3) (2, 1) (1, 1) (1, 1) 24 2 bias"},
    {"Deconvolution", "one axis", {2, 8, 11}, 3, "(4,) (3,) (1,) (1,) 8 1"},
    {"Deconvolution", "three axes", {1, 8, 3, 4, 3}, 5, "(2, 3, 2) (2, 2, 1) (0, 1, 0) (1, 1, 2) 8 1 bias"},
};

/* Their columns in float64 are more than is gathered at a time. */
static const layer batches[] = {
    {"Convolution", "places in vectors", {9, 8, 32, 34}, 4, "(8, 7) (1, 1) (3, 3) (1, 1) 8 1 bias"},
    {"Convolution", "odd places", {10, 8, 33, 31}, 4, "(7, 7) (1, 1) (3, 3) (1, 1) 8 1"},
    {"Convolution", "last", {10, 33, 31, 8}, 4, "(7, 7) (1, 1) (3, 3) (1, 1) 8 1 NHWC"},
    {"Deconvolution", "strides", {10, 8, 31, 33}, 4, "(7, 7) (2, 2) (3, 3) (1, 1) 8 1"},
};

/* The layout of a layer's arrays: lengths and strides of samples, channels and three axes. */
typedef struct places {
  int64_t length[5], step[5], size;
} places;

static places places_of(const layer *l, const cohort_ndarray *array) {
  const int last = strstr(l->sizes, "WC") != NULL;
  int64_t shape[COHORT_MAX_AXES];
  int32_t num_axes = 0, i;
  places p = {{1, 1, 1, 1, 1}, {0}, 1};

  ok(cohort_ndarray_shape(array, shape, COHORT_MAX_AXES, &num_axes));
  for (i = num_axes; i-- > 0;) {
    const int axis = i == 0 ? 0 : i == (last ? num_axes - 1 : 1) ? 1 : 5 - num_axes + i + last;

    p.length[axis] = shape[i];
    p.step[axis] = p.size;
    p.size *= shape[i];
  }
  return p;
}

/* Parses "(3, 2)" into the innermost of three axes. */
static void read_axes(const char *text, int index, int64_t axes[3], int64_t rest) {
  int64_t values[3];
  int count = 0, i;
  char *end = NULL;

  while (index-- > 0) text = strchr(text, ')') + 1;
  for (text = strchr(text, '(') + 1; *text != ')'; text = end + strspn(end, ", "))
    values[count++] = strtol(text, &end, 10);
  for (i = 0; i < 3; ++i) axes[i] = i < 3 - count ? rest : values[i - (3 - count)];
}

typedef struct sums {
  double *x, *w, *y, *dx, *dw, *dy; /* of a convolution: data, filters, result, and their gradients */
} sums;

/* Adds the contribution of each product of a data element and a filter element to the result and to the gradients. */
static void add_products(const layer *l, const places *x, const places *w, const places *y, const sums *s) {
  const char *const counts = strrchr(l->sizes, ')') + 1;
  const int64_t groups = strtol(strchr(counts + 1, ' '), NULL, 10), outs = y->length[1] / groups;
  int64_t kernel[3], stride[3], pad[3], dilate[3], o[5], k[3], c, a;

  read_axes(l->sizes, 0, kernel, 1), read_axes(l->sizes, 1, stride, 1);
  read_axes(l->sizes, 2, pad, 0), read_axes(l->sizes, 3, dilate, 1);
#define EACH(index, count) for (index = 0; index < (count); ++index)
  EACH(o[0], y->length[0])
  EACH(o[1], y->length[1]) EACH(o[2], y->length[2]) EACH(o[3], y->length[3]) EACH(o[4], y->length[4]) {
    int64_t at = 0;

    EACH(a, 5) at += o[a] * y->step[a];
    EACH(k[0], kernel[0]) EACH(k[1], kernel[1]) EACH(k[2], kernel[2]) {
      int64_t from = o[0] * x->step[0] + o[1] / outs * w->length[1] * x->step[1], by = o[1] * w->step[0];
      int inside = 1;

      EACH(a, 3) {
        const int64_t place = o[2 + a] * stride[a] - pad[a] + k[a] * dilate[a];

        inside = inside && place >= 0 && place < x->length[2 + a];
        from += place * x->step[2 + a];
        by += k[a] * w->step[2 + a];
      }
      if (!inside) continue;
      EACH(c, w->length[1]) {
        const int64_t i = from + c * x->step[1], j = by + c * w->step[1];

        s->y[at] += s->x[i] * s->w[j];
        s->dx[i] += s->dy[at] * s->w[j];
        s->dw[j] += s->dy[at] * s->x[i];
      }
    }
  }
}

static double *zeros(int64_t size) { return test_calloc((size_t)size, sizeof(double)); }

/* Checks that `array` holds the sums, rounded to its type; frees it. */
static void is_equal(const layer *l, const char *name, cohort_ndarray *array, const double *expected, int32_t dtype) {
  int64_t shape[COHORT_MAX_AXES], size = 0, i;
  int32_t num_axes = 0;
  cohort_ndarray *wide = NULL;
  double *found, *right;

  ok(cohort_ndarray_shape(array, shape, COHORT_MAX_AXES, &num_axes));
  ok(cohort_ndarray_size(array, &size));
  ok(cohort_ndarray_from_host(expected, (size_t)size * sizeof(double), shape, num_axes, COHORT_DTYPE_FLOAT64, NULL,
                              &wide));
  found = numbers(array, dtype, &size);
  right = numbers(wide, dtype, &size);
  for (i = 0; i < size; ++i) {
    if (found[i] != right[i]) {
      fail_msg("%s, %s, %s in type %d: expected %.9g at %d, found %.9g", l->op, l->what, name, (int)dtype, right[i],
               (int)i, found[i]);
    }
  }
  test_free(found);
  test_free(right);
}

static void is_right(const layer *l, int32_t dtype) {
  const int turned = strcmp(l->op, "Deconvolution") == 0; /* a deconvolution computes a convolution's data from its
                                                           * result */
  cohort_ndarray *head = NULL;
  cohort_executor *executor = trained(l, dtype, &head);
  cohort_ndarray *data = arg_of(executor, "data"), *weight = arg_of(executor, "layer_weight");
  const places in = places_of(l, data), filters = places_of(l, weight), out = places_of(l, head);
  int64_t size = 0, i;
  double *const given = numbers(data, dtype, &size), *const w = numbers(weight, dtype, &size);
  double *const dy = numbers(head, dtype, &size), *const y = zeros(out.size), *const dx = zeros(in.size);
  double *const dw = zeros(filters.size);
  const sums straight = {given, w, y, dx, dw, dy}, other = {dy, w, dx, y, dw, given};

  add_products(l, turned ? &out : &in, &filters, turned ? &in : &out, turned ? &other : &straight);
  if (has_bias(l)) {
    double *const bias = numbers(arg_of(executor, "layer_bias"), dtype, &size), *const db = zeros(out.length[1]);

    for (i = 0; i < out.size; ++i) {
      const int64_t channel = i / out.step[1] % out.length[1];

      y[i] += bias[channel];
      db[channel] += dy[i];
    }
    is_equal(l, "the bias", grad_of(executor, "layer_bias"), db, dtype);
    test_free(bias);
    test_free(db);
  }
  is_equal(l, "the result", output_of(executor, 0), y, dtype);
  is_equal(l, "the filters", grad_of(executor, "layer_weight"), dw, dtype);
  if (!is_first(l)) is_equal(l, "the data", grad_of(executor, "data"), dx, dtype);
  test_free(given);
  test_free(w);
  test_free(dy);
  test_free(y);
  test_free(dx);
  test_free(dw);
  cohort_executor_free(executor);
}

static void all_shapes_and_types_are_plain_sums(void **state) {
  const int32_t dtypes[] = {COHORT_DTYPE_FLOAT64, COHORT_DTYPE_FLOAT32, COHORT_DTYPE_FLOAT16, COHORT_DTYPE_BFLOAT16};
  size_t i, d;

  (void)state;
  for (i = 0; i < COUNT(layers); ++i) {
    for (d = 0; d < COUNT(dtypes); ++d) is_right(&layers[i], dtypes[d]);
  }
}

static void stretches_of_a_batch_are_plain_sums(void **state) {
  size_t i;

  (void)state;
  for (i = 0; i < COUNT(batches); ++i) {
    is_right(&batches[i], COHORT_DTYPE_FLOAT64);
    is_right(&batches[i], COHORT_DTYPE_FLOAT16);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(all_shapes_and_types_are_plain_sums),
                                     TEST(stretches_of_a_batch_are_plain_sums)};

  return cmocka_run_group_tests(tests, NULL, NULL);
}
