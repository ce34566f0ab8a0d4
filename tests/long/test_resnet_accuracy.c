/* SPDX-License-Identifier: Apache-2.0 */
/* A ResNet-20 of few filters learns to recognise waves by their direction, in float32 and with every product in
 * bfloat16. Images are computed: eight by eight pixels, a wave in one of ten directions with a random phase, and
 * noise. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/executor_tests.h"

enum { kTrain = 640, kTest = 1280, kBatch = 32, kTestBatch = 128, kEpochs = 8, kSeeds = 1, kSide = 8, kClasses = 10 };
enum { kPixels = 3 * kSide * kSide, kMostParams = 100 };

static float images[kTrain + kTest][kPixels], labels[kTrain + kTest];

static uint32_t drawn;

/* From -1 to 1. */
static float draw(void) {
  drawn = drawn * 1664525u + 1013904223u;
  return (float)(drawn >> 8) / (1 << 23) - 1;
}

static void make_images(uint32_t seed) {
  const double pi = 3.14159265358979323846;
  size_t i, p;

  drawn = seed;
  for (i = 0; i < kTrain + kTest; ++i) {
    const size_t wanted = i % kClasses;
    const double angle = pi * (double)wanted / kClasses, phase = pi * draw(), size = 1 + 0.3 * draw();

    labels[i] = (float)wanted;
    for (p = 0; p < kPixels; ++p) {
      const double x = (double)(p % kSide), y = (double)(p / kSide % kSide), channel = (double)(p / (kSide * kSide));

      images[i][p] = (float)(size * cos(1.5 * (x * cos(angle) + y * sin(angle)) + phase + channel) + 0.5 * draw());
    }
  }
}

static cohort_symbol *convolution(const char *name, cohort_symbol *data, int filters, int kernel, int stride) {
  char num[16], size[32], step[32], pad[32];

  (void)snprintf(num, sizeof(num), "%d", filters);
  (void)snprintf(size, sizeof(size), "(%d, %d)", kernel, kernel);
  (void)snprintf(step, sizeof(step), "(%d, %d)", stride, stride);
  (void)snprintf(pad, sizeof(pad), "(%d, %d)", kernel / 2, kernel / 2);
  return node("Convolution", name, ATTRS("num_filter", num, "kernel", size, "stride", step, "pad", pad, "no_bias", "1"),
              INPUTS(data));
}

static cohort_symbol *norm(const char *name, cohort_symbol *data) {
  return node("BatchNorm", name, ATTRS("fix_gamma", "0", "eps", "1e-5", "momentum", "0.9"), INPUTS(data));
}

static cohort_symbol *relu(const char *name, cohort_symbol *data) { return node("relu", name, NO_ATTRS, INPUTS(data)); }

static cohort_symbol *shared(const cohort_symbol *symbol) {
  cohort_symbol *copy = NULL;

  ok(cohort_symbol_copy(symbol, &copy));
  return copy;
}

/* Three stages of three units of two convolutions. */
static cohort_symbol *network(void) {
  cohort_symbol *net = relu("relu0", norm("bn0", convolution("conv0", variable("data"), 8, 3, 1)));
  int stage, unit;

  for (stage = 0; stage < 3; ++stage) {
    for (unit = 0; unit < 3; ++unit) {
      const int stride = stage > 0 && unit == 0 ? 2 : 1, filters = 8 << stage;
      char name[8][16];
      const char *const ends[] = {"conv1", "bn1", "relu1", "conv2", "bn2", "short", "sum", "relu2"};
      cohort_symbol *body, *shortcut;
      size_t i;

      for (i = 0; i < 8; ++i) (void)snprintf(name[i], sizeof(name[i]), "s%du%d_%s", stage, unit, ends[i]);
      shortcut = shared(net);
      body = relu(name[2], norm(name[1], convolution(name[0], net, filters, 3, stride)));
      body = norm(name[4], convolution(name[3], body, filters, 3, 1));
      if (stride == 2) shortcut = convolution(name[5], shortcut, filters, 1, 2);
      net = relu(name[7], node("elemwise_add", name[6], NO_ATTRS, INPUTS(body, shortcut)));
    }
  }
  net = node("Pooling", "pool", ATTRS("global_pool", "1", "pool_type", "avg", "kernel", "(1, 1)"), INPUTS(net));
  net = node("FullyConnected", "fc", ATTRS("num_hidden", "10"), INPUTS(net));
  return node("SoftmaxOutput", "softmax", NO_ATTRS, INPUTS(net));
}

/* Layers with products compute in bfloat16 even if this processor has no units for that. */
static cohort_executor *bound(int64_t batch, cohort_dtype type, const char *grad_req) {
  static const char *const narrow[] = {"Convolution", "FullyConnected"};
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;

  options.compute_dtype = type;
  options.narrow_names = narrow;
  options.num_narrow_names = type == COHORT_DTYPE_BFLOAT16 ? COUNT(narrow) : 0;
  options.grad_req = grad_req;
  return simple_bind(network(), desc("data", SHAPE(batch, 3, kSide, kSide), NULL), &options);
}

/* Each array of a list that is no input. */
static size_t list_arrays(const cohort_executor *executor, cohort_executor_list list, const char **names,
                          cohort_ndarray **arrays) {
  size_t num = 0, found = 0, i;

  ok(cohort_executor_num_arrays(executor, list, &num));
  assert_true(num <= kMostParams);
  for (i = 0; i < num; ++i) {
    ok(cohort_executor_name(executor, list, i, &names[found]));
    if (!strcmp(names[found], "data") || !strcmp(names[found], "softmax_label")) continue;
    ok(cohort_executor_array(executor, list, i, &arrays[found]));
    ++found;
  }
  return found;
}

static void free_arrays(cohort_ndarray **arrays, size_t num) {
  size_t i;

  for (i = 0; i < num; ++i) cohort_ndarray_free(arrays[i]);
}

static void load(const cohort_executor *executor, size_t first, size_t count) {
  set_array(executor, COHORT_EXECUTOR_ARGS, "data", images[first], count * kPixels);
  set_array(executor, COHORT_EXECUTOR_ARGS, "softmax_label", labels + first, count);
}

/* All but the inputs, which are filled anew for each batch. */
static void initialise(const cohort_initializer *initializer, const cohort_executor *executor,
                       cohort_executor_list list) {
  const char *names[kMostParams];
  cohort_ndarray *arrays[kMostParams];
  const size_t num = list_arrays(executor, list, names, arrays);
  cohort_arrays *by_name = NULL;
  size_t i;

  ok(cohort_arrays_create(&by_name));
  for (i = 0; i < num; ++i) ok(cohort_arrays_add(by_name, names[i], arrays[i]));
  ok(cohort_initializer_apply(initializer, NULL, by_name));
  cohort_arrays_free(by_name);
  free_arrays(arrays, num);
}

static void train(cohort_executor *executor, uint64_t seed) {
  const char *const keys[] = {"learning_rate", "momentum", "rescale_grad", "wd"};
  const char *const values[] = {"0.1", "0.9", "0.03125", "1e-4"}, *const magnitude[] = {"magnitude"},
                    *const two[] = {"2"};
  const char *names[kMostParams];
  cohort_ndarray *params[kMostParams], *grads[kMostParams];
  cohort_optimizer *optimizer = NULL;
  cohort_initializer *xavier = NULL;
  const size_t num = list_arrays(executor, COHORT_EXECUTOR_ARGS, names, params);
  size_t i, first;
  int epoch;

  ok(cohort_initializer_create("xavier", magnitude, two, 1, seed, &xavier));
  ok(cohort_optimizer_create("sgd", keys, values, 4, &optimizer));
  initialise(xavier, executor, COHORT_EXECUTOR_ARGS);
  initialise(xavier, executor, COHORT_EXECUTOR_AUX);
  for (i = 0; i < num; ++i) grads[i] = grad_of(executor, names[i]);
  for (epoch = 0; epoch < kEpochs; ++epoch) {
    if (epoch == kEpochs * 2 / 3) ok(cohort_optimizer_set(optimizer, "learning_rate", 0.01));
    for (first = 0; first < kTrain; first += kBatch) {
      load(executor, first, kBatch);
      ok(cohort_executor_forward(executor, 1));
      ok(cohort_executor_backward(executor, NULL, 0, 1));
      for (i = 0; i < num; ++i) ok(cohort_optimizer_update(optimizer, names[i], 0, params[i], grads[i]));
    }
  }
  free_arrays(params, num);
  free_arrays(grads, num);
  cohort_optimizer_free(optimizer);
  cohort_initializer_free(xavier);
}

static void take(cohort_executor *executor, const cohort_executor *from, cohort_executor_list list) {
  const char *names[kMostParams];
  cohort_ndarray *sources[kMostParams], *targets[kMostParams];
  const size_t num = list_arrays(from, list, names, sources);
  size_t i;

  assert_int_equal(list_arrays(executor, list, names, targets), num);
  for (i = 0; i < num; ++i) ok(cohort_ndarray_copy_to(sources[i], targets[i]));
  free_arrays(sources, num);
  free_arrays(targets, num);
}

/* The share of unseen images that a trained network recognises, and the type in which it was trained. */
static int num_right(const cohort_executor *trained, cohort_dtype type) {
  static float scores[kTestBatch][kClasses];
  cohort_executor *executor = bound(kTestBatch, type, "null");
  size_t first, i, k;
  int right = 0;

  take(executor, trained, COHORT_EXECUTOR_ARGS);
  take(executor, trained, COHORT_EXECUTOR_AUX);
  for (first = kTrain; first < kTrain + kTest; first += kTestBatch) {
    cohort_ndarray *output;

    load(executor, first, kTestBatch);
    ok(cohort_executor_forward(executor, 0));
    output = output_of(executor, 0);
    ok(cohort_ndarray_read(output, scores, sizeof(scores)));
    cohort_ndarray_free(output);
    for (i = 0; i < kTestBatch; ++i) {
      size_t best = 0;

      for (k = 1; k < kClasses; ++k) best = scores[i][k] > scores[i][best] ? k : best;
      right += (float)best == labels[first + i];
    }
  }
  cohort_executor_free(executor);
  return right;
}

static void bfloat16_ends_where_float32_does(void **state) {
  static const cohort_dtype types[] = {COHORT_DTYPE_FLOAT32, COHORT_DTYPE_BFLOAT16};
  double points[2] = {0, 0};
  uint32_t seed;
  size_t t;

  (void)state;
  for (seed = 1; seed <= kSeeds; ++seed) {
    make_images(seed);
    for (t = 0; t < COUNT(types); ++t) {
      cohort_executor *executor = bound(kBatch, types[t], "write");

      train(executor, seed);
      points[t] += 100.0 * num_right(executor, types[t]) / (kSeeds * kTest);
      cohort_executor_free(executor);
    }
  }
  print_message("float32 %.2f, bfloat16 %.2f\n", points[0], points[1]);
  assert_true(points[0] > 95);
  assert_true(fabs(points[1] - points[0]) <= 0.3);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(bfloat16_ends_where_float32_does)};

  return cmocka_run_group_tests(tests, NULL, NULL);
}
