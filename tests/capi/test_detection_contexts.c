/* SPDX-License-Identifier: Apache-2.0 */
/* Detection operators give the same on a GPU as on the CPU, for all attributes: random boxes, with equal scores and
 * boxes, sides of length zero, NaN, no valid box, no box at all, and more boxes than a block has threads. */
#include <math.h>
#include <stdio.h>

#include "support/executor_tests.h"

enum { MOST_INPUTS = 3, MOST_ATTRS = 12 };

static const cohort_context cpu0 = {COHORT_DEVICE_CPU, 0};

static const cohort_context *here(void) { /* skips the test if that is the CPU */
  if (test_contexts()[0].device_type == COHORT_DEVICE_CPU) skip();
  return &test_contexts()[0];
}

/* ---- numbers ------------------------------------------------------------------------------------------------------
 */

static uint32_t drawn;

static uint32_t below(uint32_t limit) {
  drawn = drawn * 1664525u + 1013904223u;
  return (uint32_t)((uint64_t)drawn * limit >> 32);
}
/* In steps, so that some numbers are equal; every type can represent all of them. */
static double between(double low, double high, uint32_t steps) { return low + (high - low) * below(steps + 1) / steps; }
static double some_score(void) { return below(29) == 0 ? NAN : between(0, 1, 32); }

typedef struct input {
  int64_t shape[4], size;
  int32_t num_axes;
  double *values;
} input;

static void make(input *made, int32_t num_axes, int64_t a, int64_t b, int64_t c, int64_t d) {
  const int64_t shape[4] = {a, b, c, d};
  int32_t axis;

  made->num_axes = num_axes;
  made->size = 1;
  for (axis = 0; axis < num_axes; ++axis) made->size *= made->shape[axis] = shape[axis];
  made->values = calloc((size_t)made->size + 1, sizeof(double));
  assert_non_null(made->values);
}

static void fill_scores(input *made) {
  int64_t i;

  for (i = 0; i < made->size; ++i) made->values[i] = some_score();
}

/* Corners in an image of the given side; one in ten in the wrong order, and some boxes invalid. */
static void draw_box(double *four, double side) {
  int axis;

  for (axis = 0; axis < 2; ++axis) {
    four[axis] = between(0, side * 0.75, 48);
    four[axis + 2] = four[axis] + (below(10) == 0 ? -side / 16 : between(0, side / 4, 8));
  }
  if (below(37) == 0) four[below(4)] = NAN;
}

/* ---- an operator on this context and on the CPU
 * -------------------------------------------------------------------- */

typedef struct call {
  const char *op, *keys[MOST_ATTRS], *values[MOST_ATTRS];
  size_t num_attrs, num_inputs;
  double error; /* of float64, where functions differ in rounding; 0: none */
  input inputs[MOST_INPUTS];
} call;

static void set(call *c, const char *key, const char *value) {
  if (!value) return;
  assert_true(c->num_attrs < MOST_ATTRS);
  c->keys[c->num_attrs] = key;
  c->values[c->num_attrs++] = value;
}

static void free_inputs(call *c) {
  size_t i;

  for (i = 0; i < c->num_inputs; ++i) free(c->inputs[i].values);
}

static cohort_arrays *outputs_on(const cohort_context *context, const call *c, cohort_dtype dtype) {
  cohort_ndarray *inputs[MOST_INPUTS] = {NULL}, *wide, *narrow;
  cohort_arrays *outputs = NULL;
  size_t i;

  for (i = 0; i < c->num_inputs; ++i) {
    const input *from = &c->inputs[i];

    ok(cohort_ndarray_from_host(from->values, (size_t)from->size * sizeof(double), from->shape, from->num_axes,
                                COHORT_DTYPE_FLOAT64, &cpu0, &wide));
    ok(cohort_ndarray_cast(wide, dtype, &narrow));
    ok(cohort_ndarray_copy(narrow, context, &inputs[i]));
    cohort_ndarray_free(wide);
    cohort_ndarray_free(narrow);
  }
  ok(cohort_operator_invoke(c->op, c->keys, c->values, c->num_attrs, inputs, c->num_inputs, NULL, 0, NULL, &outputs));
  for (i = 0; i < c->num_inputs; ++i) cohort_ndarray_free(inputs[i]);
  return outputs;
}

/* All elements, to be freed. */
static double *elements_of(const cohort_ndarray *array, size_t *count) {
  cohort_ndarray *back = NULL, *wide = NULL;
  int64_t size = 0;
  double *values;

  ok(cohort_ndarray_copy(array, &cpu0, &back));
  ok(cohort_ndarray_cast(back, COHORT_DTYPE_FLOAT64, &wide));
  ok(cohort_ndarray_size(wide, &size));
  values = malloc((size_t)size * sizeof(double) + 1);
  assert_non_null(values);
  ok(cohort_ndarray_read(wide, values, (size_t)size * sizeof(double)));
  cohort_ndarray_free(back);
  cohort_ndarray_free(wide);
  *count = (size_t)size;
  return values;
}

static void fail_with(const call *c, const char *what, const char *dtype, size_t at, double expected, double found) {
  size_t i;

  for (i = 0; i < c->num_attrs; ++i) print_error("%s=%s ", c->keys[i], c->values[i]);
  for (i = 0; i < c->num_inputs; ++i) {
    print_error("(%d, %d, %d, %d of %d axes) ", (int)c->inputs[i].shape[0], (int)c->inputs[i].shape[1],
                (int)c->inputs[i].shape[2], (int)c->inputs[i].shape[3], (int)c->inputs[i].num_axes);
  }
  fail_msg("%s of %s: %s[%zu]: expected %.17g, found %.17g", c->op, dtype, what, at, expected, found);
}

static void assert_alike(const call *c, const char *what, const char *dtype, double error, const cohort_ndarray *found,
                         const cohort_ndarray *expected) {
  size_t num_found, num_expected, i;
  double *const a = elements_of(found, &num_found), *const b = elements_of(expected, &num_expected);

  assert_int_equal(num_found, num_expected);
  for (i = 0; i < num_found; ++i) {
    const int both_nan = isnan(a[i]) && isnan(b[i]);

    if (both_nan || a[i] == b[i] || fabs(a[i] - b[i]) <= error * fmax(1, fabs(b[i]))) continue;
    fail_with(c, what, dtype, i, b[i], a[i]);
  }
  free(a);
  free(b);
}

static const struct {
  cohort_dtype dtype;
  const char *name;
  double unit; /* by that of float64 */
} types[] = {{COHORT_DTYPE_FLOAT32, "float32", 1 << 29},
             {COHORT_DTYPE_FLOAT64, "float64", 1},
             {COHORT_DTYPE_FLOAT16, "float16", (double)(1ll << 42)},
             {COHORT_DTYPE_BFLOAT16, "bfloat16", (double)(1ll << 45)}};

/* Checks that the operator gives on this context what it gives on the CPU, for each type. */
static void is_alike(const call *c) {
  size_t t, i, count;
  char name[24];

  for (t = 0; t < COUNT(types); ++t) {
    cohort_arrays *const found = outputs_on(here(), c, types[t].dtype);
    cohort_arrays *const expected = outputs_on(&cpu0, c, types[t].dtype);

    ok(cohort_arrays_num(expected, &count));
    for (i = 0; i < count; ++i) {
      cohort_ndarray *a = NULL, *b = NULL;

      ok(cohort_arrays_get(found, i, &a));
      ok(cohort_arrays_get(expected, i, &b));
      snprintf(name, sizeof(name), "output %d", (int)i);
      assert_alike(c, name, types[t].name, c->error * types[t].unit, a, b);
      cohort_ndarray_free(a);
      cohort_ndarray_free(b);
    }
    cohort_arrays_free(found);
    cohort_arrays_free(expected);
  }
}

/* ---- box_nms ------------------------------------------------------------------------------------------------------
 */

static void fill_rows(input *rows, int64_t coordinates, int64_t score, int64_t id) {
  const int64_t width = rows->shape[rows->num_axes - 1];
  int64_t i, k;

  for (i = 0; i < rows->size / (width > 0 ? width : 1); ++i) {
    double *const row = rows->values + i * width;

    for (k = 0; k < width; ++k) row[k] = between(-1, 1, 8);
    draw_box(row + coordinates, 16);
    row[score] = some_score();
    if (id >= 0) row[id] = between(-1, 3, 8); /* half of the boxes have the class of the one before */
  }
}

static void boxes_are_suppressed_alike(void **state) {
  static const char *const topk[] = {NULL, "0", "1", "3", "100000"}, *const formats[] = {"corner", "center"};
  static const char *const thresholds[] = {"0.5", "0.1", "0", "1"}, *const valid[] = {NULL, "0.3", "2"};
  static const int64_t shapes[][3] = {{2, 17, 6}, {3, 1, 6}, {1, 70, 7}, {5, 33, 6}};
  size_t s, k;
  uint32_t n;

  (void)state;
  here();
  for (s = 0; s < COUNT(shapes); ++s) {
    for (k = 0; k < COUNT(topk); ++k) {
      for (n = 0; n < 8; ++n) { /* every topk with every pair of formats */
        call c = {"_contrib_box_nms", {NULL}, {NULL}, 0, 1, 0, {{{0}, 0, 0, NULL}}};
        const int by_class = n >= 4, elsewhere = (s + k + n) % 3 == 0;

        drawn = (uint32_t)(s * 101 + k * 11 + n);
        make(&c.inputs[0], 3, shapes[s][0], shapes[s][1], shapes[s][2], 0);
        fill_rows(&c.inputs[0], elsewhere ? 1 : 2, elsewhere ? 5 : 1, by_class ? 0 : -1);
        set(&c, "topk", topk[k]);
        set(&c, "in_format", formats[n % 2]);
        set(&c, "out_format", formats[n / 2 % 2]);
        set(&c, "overlap_thresh", thresholds[(s + n) % COUNT(thresholds)]);
        set(&c, "valid_thresh", valid[(s + k + n) % COUNT(valid)]);
        set(&c, "coord_start", elsewhere ? "1" : NULL);
        set(&c, "score_index", elsewhere ? "5" : NULL);
        set(&c, "id_index", by_class ? "0" : NULL);
        set(&c, "background_id", by_class && n % 2 ? "1" : NULL);
        set(&c, "force_suppress", by_class && n % 3 == 0 ? "1" : NULL);
        is_alike(&c);
        free_inputs(&c);
      }
    }
  }
}

/* Panels of 512 boxes are suppressed one after another, in words of 64 boxes. */
static void many_boxes_are_suppressed_alike(void **state) {
  static const int64_t counts[] = {63, 64, 65, 511, 512, 513, 1400};
  static const char *const thresholds[] = {"0.6", "0.05"}, *const topk[] = {"-1", "600"};
  size_t s, n;

  (void)state;
  here();
  for (s = 0; s < COUNT(counts); ++s) {
    for (n = 0; n < 2; ++n) {
      call c = {"_contrib_box_nms", {NULL}, {NULL}, 0, 1, 0, {{{0}, 0, 0, NULL}}};

      drawn = (uint32_t)s;
      make(&c.inputs[0], 4, 1, 2, counts[s], 6);
      fill_rows(&c.inputs[0], 2, 1, -1);
      set(&c, "overlap_thresh", thresholds[n]);
      set(&c, "topk", topk[n]);
      is_alike(&c);
      free_inputs(&c);
    }
  }
}

static void no_boxes_are_suppressed_alike(void **state) {
  call c = {"_contrib_box_nms", {NULL}, {NULL}, 0, 1, 0, {{{0}, 0, 0, NULL}}};

  (void)state;
  here();
  make(&c.inputs[0], 3, 2, 0, 6, 0);
  is_alike(&c);
  c.inputs[0].shape[0] = 0;
  c.inputs[0].shape[1] = 5;
  is_alike(&c);
  free_inputs(&c);
}

static cohort_ndarray *gradient_on(const cohort_context *context, const call *c, cohort_dtype dtype) {
  const input *const data = &c->inputs[0];
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_executor *executor = NULL;
  cohort_ndarray *array, *narrow, *head = NULL, *gradient;
  cohort_descs *known = no_descs();
  cohort_symbol *x = variable("x"), *nms = NULL;

  options.grad_req = "write";
  ok(cohort_symbol_create(c->op, "nms", c->keys, c->values, c->num_attrs, &x, NULL, 1, &nms));
  add_typed(known, "x", data->shape, data->num_axes, dtype);
  ok(cohort_executor_simple_bind(nms, context, known, &options, &executor));
  ok(cohort_ndarray_from_host(data->values, (size_t)data->size * sizeof(double), data->shape, data->num_axes,
                              COHORT_DTYPE_FLOAT64, &cpu0, &array));
  ok(cohort_ndarray_cast(array, dtype, &narrow));
  cohort_ndarray_free(array);
  array = arg_of(executor, "x");
  ok(cohort_ndarray_copy_to(narrow, array));
  ok(cohort_executor_forward(executor, 1));
  ok(cohort_ndarray_copy(narrow, context, &head));
  ok(cohort_executor_backward(executor, &head, 1, 1));
  gradient = grad_of(executor, "x");
  cohort_ndarray_free(head);
  cohort_ndarray_free(array);
  cohort_ndarray_free(narrow);
  cohort_executor_free(executor);
  cohort_descs_free(known);
  cohort_symbol_free(x);
  cohort_symbol_free(nms);
  return gradient;
}

static void gradients_of_boxes_are_alike(void **state) {
  static const char *const topk[] = {"-1", "0", "5"}, *const valid[] = {"0.2", "2"};
  size_t k, v, t;

  (void)state;
  here();
  for (k = 0; k < COUNT(topk); ++k) {
    for (v = 0; v < COUNT(valid); ++v) {
      call c = {"_contrib_box_nms", {NULL}, {NULL}, 0, 1, 0, {{{0}, 0, 0, NULL}}};

      drawn = 3;
      make(&c.inputs[0], 3, 3, 40, 6, 0);
      fill_rows(&c.inputs[0], 2, 1, -1);
      set(&c, "topk", topk[k]);
      set(&c, "valid_thresh", valid[v]);
      for (t = 0; t < COUNT(types); ++t) {
        cohort_ndarray *const found = gradient_on(here(), &c, types[t].dtype);
        cohort_ndarray *const expected = gradient_on(&cpu0, &c, types[t].dtype);

        assert_alike(&c, "gradient", types[t].name, 0, found, expected);
        cohort_ndarray_free(found);
        cohort_ndarray_free(expected);
      }
      free_inputs(&c);
    }
  }
}

/* ---- bipartite_matching -------------------------------------------------------------------------------------------
 */

static void rows_and_columns_are_matched_alike(void **state) {
  static const int64_t shapes[][3] = {{2, 5, 7}, {3, 40, 30}, {1, 1, 1}, {1, 3, 0}, {2, 3, 900}, {1, 70, 70}};
  static const char *const topk[] = {NULL, "0", "1", "4", "1000"}, *const thresholds[] = {"0.25", "1e-12", "5", "-5"};
  size_t s, k;
  uint32_t n;

  (void)state;
  here();
  for (s = 0; s < COUNT(shapes); ++s) {
    for (k = 0; k < COUNT(topk); ++k) {
      for (n = 0; n < 4; ++n) {
        call c = {"_contrib_bipartite_matching", {NULL}, {NULL}, 0, 1, 0, {{{0}, 0, 0, NULL}}};

        drawn = (uint32_t)(s * 31 + k * 7 + n);
        make(&c.inputs[0], 3, shapes[s][0], shapes[s][1], shapes[s][2], 0);
        fill_scores(&c.inputs[0]);
        set(&c, "is_ascend", (s + k + n) % 2 ? "1" : "0");
        set(&c, "threshold", thresholds[n]);
        set(&c, "topk", topk[k]);
        is_alike(&c);
        free_inputs(&c);
      }
    }
  }
}

/* ---- MultiBoxTarget -----------------------------------------------------------------------------------------------
 */

/* Each sample has fewer objects than the one before. */
static void fill_labels(input *label) {
  int64_t n, k, i;

  for (n = 0; n < label->shape[0]; ++n) {
    for (k = 0; k < label->shape[1]; ++k) {
      double *const row = label->values + (n * label->shape[1] + k) * label->shape[2];
      const int there = k + 3 * n < label->shape[1];

      for (i = 0; i < label->shape[2]; ++i) row[i] = there ? between(0, 4, 4) : -1;
      if (there) draw_box(row + 1, 1);
      if (there && k % 4 == 3) memcpy(row, row - label->shape[2], 5 * sizeof(double)); /* two that are equal */
    }
  }
}

static void fill_anchors(input *anchor) {
  int64_t j;

  for (j = 0; j < anchor->shape[1]; ++j) draw_box(anchor->values + 4 * j, 1);
}

static void targets_are_alike(void **state) {
  static const int64_t sizes[][4] = {
      /* samples, anchors, objects, classes */
      {3, 40, 6, 4}, {1, 1, 1, 2}, {2, 300, 9, 3}, {4, 700, 20, 1}, {2, 5, 0, 3}, {2, 0, 3, 2}};
  static const char *const overlaps[] = {NULL, "0", "0.1", "0.9"};
  static const char *const ratios[] = {NULL, "3", "0.4", "1e30"}, *const negatives[] = {"0.5", "0.05", "2"};
  size_t s, r;
  uint32_t n;

  (void)state;
  here();
  for (s = 0; s < COUNT(sizes); ++s) {
    for (r = 0; r < COUNT(ratios); ++r) {
      for (n = 0; n < 4; ++n) {
        call c = {"_contrib_MultiBoxTarget", {NULL}, {NULL}, 0, 3, 1e-14, {{{0}, 0, 0, NULL}}};

        drawn = (uint32_t)(s * 31 + r * 7 + n);
        make(&c.inputs[0], 3, 1, sizes[s][1], 4, 0);
        make(&c.inputs[1], 3, sizes[s][0], sizes[s][2], n % 2 ? 7 : 5, 0);
        make(&c.inputs[2], 3, sizes[s][0], sizes[s][3], sizes[s][1], 0);
        fill_anchors(&c.inputs[0]);
        fill_labels(&c.inputs[1]);
        fill_scores(&c.inputs[2]);
        set(&c, "overlap_threshold", overlaps[n]);
        set(&c, "negative_mining_ratio", ratios[r]);
        set(&c, "negative_mining_thresh", ratios[r] ? negatives[(s + n) % COUNT(negatives)] : NULL);
        set(&c, "ignore_label", n % 2 ? "-7" : NULL);
        set(&c, "variances", n > 1 ? "(0.5, 0.25, 1, 2)" : NULL);
        is_alike(&c);
        free_inputs(&c);
      }
    }
  }
}

/* ---- MultiBoxDetection --------------------------------------------------------------------------------------------
 */

static void detections_are_alike(void **state) {
  static const int64_t sizes[][3] = {
      {2, 4, 30}, {1, 1, 5}, {3, 3, 1}, {2, 5, 700}, {2, 3, 0}}; /* samples, classes, anchors */
  static const char *const overlaps[] = {NULL, "0", "1", "1.5", "0.1"}, *const topk[] = {NULL, "0", "4", "100000"};
  static const char *const thresholds[] = {NULL, "0.7", "2", "-2"};
  size_t s, k;
  uint32_t n;

  (void)state;
  here();
  for (s = 0; s < COUNT(sizes); ++s) {
    for (k = 0; k < COUNT(topk); ++k) {
      for (n = 0; n < COUNT(overlaps); ++n) {
        call c = {"_contrib_MultiBoxDetection", {NULL}, {NULL}, 0, 3, 1e-14, {{{0}, 0, 0, NULL}}};
        int64_t i;

        drawn = (uint32_t)(s * 31 + k * 7 + n);
        make(&c.inputs[0], 3, sizes[s][0], sizes[s][1], sizes[s][2], 0);
        make(&c.inputs[1], 2, sizes[s][0], 4 * sizes[s][2], 0, 0);
        make(&c.inputs[2], 3, 1 + n % 2, sizes[s][2], 4, 0);
        fill_scores(&c.inputs[0]);
        for (i = 0; i < c.inputs[1].size; ++i) c.inputs[1].values[i] = between(-1, 1, 4);
        fill_anchors(&c.inputs[2]);
        set(&c, "clip", n % 3 ? NULL : "0");
        set(&c, "threshold", thresholds[(s + k + n) % COUNT(thresholds)]);
        set(&c, "nms_threshold", overlaps[n]);
        set(&c, "force_suppress", (s + k + n) % 2 ? "1" : NULL);
        set(&c, "nms_topk", topk[k]);
        set(&c, "variances", n % 2 ? "(0.5, 0.25, 1, 2)" : NULL);
        set(&c, "background_id", n % 2 ? "1" : NULL);
        is_alike(&c);
        free_inputs(&c);
      }
    }
  }
}

/* ---- Proposal -----------------------------------------------------------------------------------------------------
 */

static void proposals_are_alike(void **state) {
  static const struct {
    int64_t images, anchors, height, width;
    const char *scales, *ratios;
  } sizes[] = {{1, 6, 3, 5, "(2, 4)", "(0.5, 1, 2)"},
               {2, 1, 1, 1, "(1,)", "(1,)"},
               {3, 12, 7, 8, "(0.5, 1, 2)", "(0.25, 0.5, 1, 2)"},
               {1, 40, 2, 3, "(1, 2, 3, 4, 5, 6, 7, 8)", "(0.25, 0.5, 1, 2, 4)"},
               {0, 1, 2, 2, "(1,)", "(1,)"}};
  static const char *const first[] = {"0", "5", "600", "100000"}, *const rows[] = {"3", "50", "700"};
  static const char *const overlaps[] = {"0.3", "0.7", "1"}, *const sides[] = {"0", "8", "500"};
  size_t s, k;
  uint32_t n;

  (void)state;
  here();
  for (s = 0; s < COUNT(sizes); ++s) {
    for (k = 0; k < COUNT(first); ++k) {
      for (n = 0; n < 4; ++n) {
        call c = {sizes[s].images == 1 && n % 2 ? "_contrib_Proposal" : "_contrib_MultiProposal",
                  {NULL},
                  {NULL},
                  0,
                  3,
                  1e-14,
                  {{{0}, 0, 0, NULL}}};
        const int64_t images = sizes[s].images, anchors = sizes[s].anchors, h = sizes[s].height, w = sizes[s].width;
        int64_t i;

        drawn = (uint32_t)(s * 31 + k * 7 + n);
        make(&c.inputs[0], 4, images, 2 * anchors, h, w);
        make(&c.inputs[1], 4, images, 4 * anchors, h, w);
        make(&c.inputs[2], 2, images, 3, 0, 0);
        fill_scores(&c.inputs[0]);
        for (i = 0; i < c.inputs[1].size; ++i) c.inputs[1].values[i] = between(-0.5, 0.5, 8);
        for (i = 0; i < images; ++i) { /* for one sample in two, places at the edges lie outside the image */
          c.inputs[2].values[3 * i] = (double)(8 * (i % 2 && h > 1 ? h - 1 : h));
          c.inputs[2].values[3 * i + 1] = (double)(8 * w - (i % 2 ? 3 : 0));
          c.inputs[2].values[3 * i + 2] = 0.5 + (double)i;
        }
        set(&c, "feature_stride", "8");
        set(&c, "scales", sizes[s].scales);
        set(&c, "ratios", sizes[s].ratios);
        set(&c, "rpn_pre_nms_top_n", first[k]);
        set(&c, "rpn_post_nms_top_n", rows[(s + k + n) % COUNT(rows)]);
        set(&c, "threshold", overlaps[n % COUNT(overlaps)]);
        set(&c, "rpn_min_size", sides[(k + n) % COUNT(sides)]);
        set(&c, "iou_loss", n > 1 ? "1" : NULL);
        set(&c, "output_score", (s + k + n) % 2 ? "1" : NULL);
        is_alike(&c);
        free_inputs(&c);
      }
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(boxes_are_suppressed_alike),
      TEST(many_boxes_are_suppressed_alike),
      TEST(no_boxes_are_suppressed_alike),
      TEST(gradients_of_boxes_are_alike),
      TEST(rows_and_columns_are_matched_alike),
      TEST(targets_are_alike),
      TEST(detections_are_alike),
      TEST(proposals_are_alike),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
