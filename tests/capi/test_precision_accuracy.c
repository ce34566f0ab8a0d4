/* SPDX-License-Identifier: Apache-2.0 */
/* The accuracy of networks that were trained in bfloat16, or run in int8, on handwritten digits, compared with
 * float32. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/executor_tests.h"
#include "support/sanitizer.h"

enum { kTrain = 1200, kTest = 597, kBatch = 40, kTestBatch = 199, kPixels = 64, kParams = 8 };
enum { kEpochs = UNDER_SANITIZER ? 1 : 8, kSeeds = UNDER_SANITIZER ? 1 : 3 };

static const char *const kNames[kParams] = {"conv1_weight", "conv1_bias", "conv2_weight", "conv2_bias",
                                            "fc1_weight",   "fc1_bias",   "fc2_weight",   "fc2_bias"};

static float images[kTrain + kTest][kPixels], labels[kTrain + kTest];

static cohort_symbol *block(const char *name, cohort_symbol *data, const char *filters) {
  char relu[32], pool[32];

  (void)snprintf(relu, sizeof(relu), "%s_relu", name);
  (void)snprintf(pool, sizeof(pool), "%s_pool", name);
  data = node("Convolution", name, ATTRS("kernel", "(3, 3)", "num_filter", filters, "pad", "(1, 1)"), INPUTS(data));
  return node("Pooling", pool, ATTRS("kernel", "(2, 2)", "stride", "(2, 2)", "pool_type", "max"),
              INPUTS(node("relu", relu, NO_ATTRS, INPUTS(data))));
}

static cohort_symbol *network(void) {
  cohort_symbol *blocks = block("conv2", block("conv1", variable("data"), "16"), "32");
  cohort_symbol *hidden = node("FullyConnected", "fc1", ATTRS("num_hidden", "64"), INPUTS(blocks));

  hidden = node("relu", "fc1_relu", NO_ATTRS, INPUTS(hidden));
  return node("SoftmaxOutput", "softmax", NO_ATTRS,
              INPUTS(node("FullyConnected", "fc2", ATTRS("num_hidden", "10"), INPUTS(hidden))));
}

static cohort_executor *bound(int64_t batch, cohort_dtype type, const cohort_calibration *calibration,
                              const char *grad_req) {
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;

  options.compute_dtype = type;
  options.calibration = calibration;
  options.grad_req = grad_req;
  options.num_threads = 1;
  return simple_bind(network(), desc("data", SHAPE(batch, 1, 8, 8), NULL), &options);
}

/* The images in a different order for each seed, the last kTest for the test. */
static void shuffle(uint32_t seed) {
  cohort_arrays *file = NULL;
  cohort_ndarray *array = NULL;
  const char *const lists[] = {"images", "labels"};
  size_t i, k, index;

  ok(cohort_arrays_load("examples/data/digits.params", NULL, &file));
  for (i = 0; i < 2; ++i) {
    ok(cohort_arrays_find(file, lists[i], &index));
    ok(cohort_arrays_get(file, index, &array));
    if (i == 0)
      ok(cohort_ndarray_read(array, images, sizeof(images)));
    else
      ok(cohort_ndarray_read(array, labels, sizeof(labels)));
    cohort_ndarray_free(array);
  }
  cohort_arrays_free(file);
  for (i = kTrain + kTest - 1; i > 0; --i) {
    float pixels[kPixels], label;

    seed = seed * 1664525u + 1013904223u;
    k = (seed >> 8) % (i + 1);
    memcpy(pixels, images[i], sizeof(pixels));
    memcpy(images[i], images[k], sizeof(pixels));
    memcpy(images[k], pixels, sizeof(pixels));
    label = labels[i];
    labels[i] = labels[k];
    labels[k] = label;
  }
}

static void load(const cohort_executor *executor, size_t first, size_t count) {
  set_array(executor, COHORT_EXECUTOR_ARGS, "data", images[first], count * kPixels);
  set_array(executor, COHORT_EXECUTOR_ARGS, "softmax_label", labels + first, count);
}

static void train(cohort_executor *executor, uint64_t seed) {
  const char *const keys[] = {"learning_rate", "momentum", "rescale_grad"}, *const values[] = {"0.05", "0.9", "0.025"};
  const char *const magnitude[] = {"magnitude"}, *const two[] = {"2"};
  cohort_optimizer *optimizer = NULL;
  cohort_initializer *xavier = NULL;
  cohort_ndarray *array;
  size_t i, first;
  int epoch;

  ok(cohort_initializer_create("xavier", magnitude, two, 1, seed, &xavier));
  ok(cohort_optimizer_create("sgd", keys, values, 3, &optimizer));
  for (i = 0; i < kParams; ++i) {
    array = arg_of(executor, kNames[i]);
    if (strstr(kNames[i], "weight")) ok(cohort_initializer_fill(xavier, kNames[i], array));
    cohort_ndarray_free(array);
  }
  for (epoch = 0; epoch < kEpochs; ++epoch) {
    if (epoch == kEpochs / 2) ok(cohort_optimizer_set(optimizer, "learning_rate", 0.01));
    for (first = 0; first < kTrain; first += kBatch) {
      load(executor, first, kBatch);
      ok(cohort_executor_forward(executor, 1));
      ok(cohort_executor_backward(executor, NULL, 0, 1));
      for (i = 0; i < kParams; ++i) {
        cohort_ndarray *const grad = grad_of(executor, kNames[i]);

        array = arg_of(executor, kNames[i]);
        ok(cohort_optimizer_update(optimizer, kNames[i], 0, array, grad));
        cohort_ndarray_free(array);
        cohort_ndarray_free(grad);
      }
    }
  }
  cohort_optimizer_free(optimizer);
  cohort_initializer_free(xavier);
}

static void take_params(cohort_executor *executor, const cohort_executor *from) {
  size_t i;

  for (i = 0; i < kParams; ++i) {
    cohort_ndarray *const source = arg_of(from, kNames[i]), *const target = arg_of(executor, kNames[i]);

    ok(cohort_ndarray_copy_to(source, target));
    cohort_ndarray_free(source);
    cohort_ndarray_free(target);
  }
}

/* The share of test images whose digit is recognised; frees the executor. */
static int num_right_free(cohort_executor *executor, const cohort_executor *trained) {
  float scores[kTestBatch][10];
  size_t first, i, k;
  int right = 0;

  take_params(executor, trained);
  for (first = kTrain; first < kTrain + kTest; first += kTestBatch) {
    cohort_ndarray *output;

    load(executor, first, kTestBatch);
    ok(cohort_executor_forward(executor, 0));
    output = output_of(executor, 0);
    ok(cohort_ndarray_read(output, scores, sizeof(scores)));
    cohort_ndarray_free(output);
    for (i = 0; i < kTestBatch; ++i) {
      size_t best = 0;

      for (k = 1; k < 10; ++k) best = scores[i][k] > scores[i][best] ? k : best;
      right += (float)best == labels[first + i];
    }
  }
  cohort_executor_free(executor);
  return right;
}

/* Percentage points of accuracy, over all seeds. */
static double points(int right) { return 100.0 * right / (kSeeds * kTest); }

static void narrow_is_as_good_as_wide(void **state) {
  int wide = 0, narrow = 0, bytes[2] = {0, 0};
  uint32_t seed;

  (void)state;
  for (seed = 1; seed <= kSeeds; ++seed) {
    cohort_executor *first, *second, *watched;
    int32_t method;

    shuffle(seed);
    first = bound(kBatch, COHORT_DTYPE_FLOAT32, NULL, "write");
    second = bound(kBatch, COHORT_DTYPE_BFLOAT16, NULL, "write");
    train(first, seed);
    train(second, seed);
    wide += num_right_free(bound(kTestBatch, COHORT_DTYPE_FLOAT32, NULL, NULL), first);
    narrow += num_right_free(bound(kTestBatch, COHORT_DTYPE_BFLOAT16, NULL, NULL), second);
    watched = bound(kTestBatch, COHORT_DTYPE_FLOAT32, NULL, NULL);
    take_params(watched, first);
    for (method = COHORT_CALIBRATION_MIN_MAX; method <= COHORT_CALIBRATION_ENTROPY; ++method) {
      cohort_calibration *calibration = NULL;

      ok(cohort_calibration_create(method, &calibration));
      load(watched, 0, kTestBatch); /* training images */
      ok(cohort_calibration_observe(calibration, watched));
      bytes[method] += num_right_free(bound(kTestBatch, COHORT_DTYPE_INT8, calibration, NULL), first);
      cohort_calibration_free(calibration);
    }
    cohort_executor_free(first);
    cohort_executor_free(second);
    cohort_executor_free(watched);
  }
  print_message("float32 %.2f, bfloat16 %.2f, int8 %.2f by range and %.2f by entropy\n", points(wide), points(narrow),
                points(bytes[0]), points(bytes[1]));
  if (UNDER_SANITIZER) return; /* little was learnt */
  assert_true(points(wide) > 95);
  assert_true(fabs(points(narrow) - points(wide)) <= 0.3);
  assert_true(points(bytes[0]) >= points(wide) - 0.5);
  assert_true(points(bytes[1]) >= points(wide) - 0.5);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(narrow_is_as_good_as_wide)};

  return cmocka_run_group_tests(tests, NULL, NULL);
}
