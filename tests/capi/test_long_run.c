/* SPDX-License-Identifier: Apache-2.0 */
/* Long-running programs: 10,000 steps over batches and buckets of random shapes, after which the process has no more
 * memory than after the first half of them, and no handle is left. */
#include <stdio.h>
#include <unistd.h>

#include "support/group_tests.h"
#include "support/sanitizer.h"

#if UNDER_SANITIZER /* it keeps freed memory, too */
enum { GROUP_STEPS = 150, BUCKET_STEPS = 150, EXECUTOR_STEPS = 100, MONITOR_STEPS = 50, MEASURED = 0 };
#else
enum { GROUP_STEPS = 9000, BUCKET_STEPS = 4000, EXECUTOR_STEPS = 1000, MONITOR_STEPS = 2000, MEASURED = 1 };
#endif

/* The growth allowed after the first half of the steps, much less than a leak of 1 KiB per step. Some is needed: the
 * heap fragments, and compiled kernels are cached up to a limit that the first half of the steps has to reach. */
enum { MOST_GROWTH_KIB = 1024, MOST_BATCH = 32, NUM_BUCKETS = 8, NUM_CLASSES = 4 };

static long resident_kib(void) {
  FILE *file = fopen("/proc/self/statm", "r");
  long total = 0, resident = 0;

  assert_non_null(file);
  assert_int_equal(fscanf(file, "%ld %ld", &total, &resident), 2);
  fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Runs all steps; compares the memory after half of them with that after the last. */
static void run_long(const char *what, void (*step)(void *), void *of, int num_steps) {
  long before = 0, after;
  int i;

  for (i = 0; i < num_steps; ++i) {
    if (i == num_steps / 2) before = resident_kib();
    step(of);
  }
  after = resident_kib();
  print_message("%s: %ld KiB after %d steps, %ld KiB after %d\n", what, before, num_steps / 2, after, num_steps);
  if (MEASURED && after - before > MOST_GROWTH_KIB)
    fail_msg("%s: resident memory grew by %ld KiB, expected at most %d", what, after - before, MOST_GROWTH_KIB);
}

/* The same random numbers in every run. */
static uint64_t random_state;

static int64_t random_below(int64_t end) {
  random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (int64_t)((random_state >> 33) % (uint64_t)end);
}

/* A number below num_kinds. */
static cohort_ndarray *kinds(const int64_t *shape, int32_t num_axes, int num_kinds) {
  static float values[MOST_BATCH * NUM_BUCKETS];
  size_t size = 1, i;

  for (i = 0; i < (size_t)num_axes; ++i) size *= (size_t)shape[i];
  assert_true(size <= COUNT(values));
  for (i = 0; i < size; ++i) values[i] = (float)(i % (size_t)num_kinds);
  return floats(shape, num_axes, values, size);
}

/* ---- batches of random shape ------------------------------------------------------------------------------------- */

/* A small network of images: convolution, normalisation, layers. */
static cohort_symbol *image_network(void) {
  cohort_symbol *net = node("Convolution", "conv", ATTRS("kernel", "(3, 3)", "num_filter", "8", "pad", "(1, 1)"),
                            INPUTS(variable("data")));

  net = node("BatchNorm", "norm", ATTRS("fix_gamma", "False"), INPUTS(net));
  net = node("Activation", "relu", ATTRS("act_type", "relu"), INPUTS(net));
  net = node("Pooling", "pool", ATTRS("global_pool", "True", "kernel", "(1, 1)", "pool_type", "max"), INPUTS(net));
  net = node("FullyConnected", "fc", ATTRS("num_hidden", "4"), INPUTS(net));
  return node("SoftmaxOutput", "softmax", NO_ATTRS, INPUTS(net, variable("label")));
}

static const char *const image_params[] = {"conv_weight", "conv_bias", "norm_gamma", "norm_beta",
                                           "fc_weight",   "fc_bias",   NULL};

typedef struct images {
  cohort_group *group;
  cohort_optimizer *optimizer;
  cohort_metric *metric;
  int64_t batch, height, width;
  int num_steps;
} images;

/* Every other step reshapes to images of random number and size; trains or infers, and sometimes reads results. There
 * are 1984 sizes, far more than a group or oneDNN caches. */
static void image_step(void *of) {
  images *run = of;
  const int anew = run->num_steps++ % 2 == 0;
  const int64_t batch = run->batch = anew ? 2 + random_below(MOST_BATCH - 1) : run->batch;
  const int64_t height = run->height = anew ? 3 + random_below(8) : run->height;
  const int64_t width = run->width = anew ? 3 + random_below(8) : run->width;
  const int64_t is_train = random_below(4) > 0;
  cohort_descs *data = desc("data", SHAPE(batch, 1, height, width), NULL), *label = desc("label", SHAPE(batch), NULL);
  cohort_ndarray *pixels = counted(SHAPE(batch, 1, height, width), 0.01f), *classes = kinds(SHAPE(batch), NUM_CLASSES);

  ok(cohort_group_reshape(run->group, data, label));
  cohort_descs_free(data);
  cohort_descs_free(label);
  ok(cohort_group_forward(run->group, &pixels, 1, &classes, 1, (int32_t)is_train));
  if (is_train) {
    backward(run->group, NULL);
    ok(cohort_group_update(run->group, run->optimizer, (int32_t)random_below(3)));
  }
  if (run->num_steps % 10 == 0) {
    cohort_ndarray *output = merged(run->group, COHORT_GROUP_OUTPUTS, 0);

    has_shape(output, batch, NUM_CLASSES);
    cohort_ndarray_free(output);
    ok(cohort_group_update_metric(run->group, run->metric, &classes, 1));
  }
  cohort_ndarray_free(pixels);
  cohort_ndarray_free(classes);
}

static void batches_of_random_shape_take_no_more_memory(void **state) {
  images run = {NULL, NULL, NULL, 0, 0, 0, 0};

  (void)state;
  run.group = bind_for_training(image_network(), 2, desc("data", SHAPE(8, 1, 6, 6), NULL),
                                desc("label", SHAPE(8), NULL), image_params, NULL);
  ok(cohort_optimizer_create("sgd", NULL, NULL, 0, &run.optimizer));
  ok(cohort_metric_create("accuracy", NULL, NULL, 0, &run.metric));
  run_long("batches", image_step, &run, GROUP_STEPS);
  cohort_group_free(run.group);
  cohort_optimizer_free(run.optimizer);
  cohort_metric_free(run.metric);
}

/* ---- buckets ----------------------------------------------------------------------------------------------------- */

/* A sum of word vectors, then a classifier. */
static cohort_symbol *word_network(void) {
  cohort_symbol *net =
      node("Embedding", "embed", ATTRS("input_dim", "20", "output_dim", "6"), INPUTS(variable("data")));

  net = node("sum", "bag", ATTRS("axis", "1"), INPUTS(net));
  net = node("FullyConnected", "fc", ATTRS("num_hidden", "4"), INPUTS(net));
  return node("SoftmaxOutput", "softmax", NO_ATTRS, INPUTS(net, variable("label")));
}

static int32_t give_word_network(const char *key, cohort_symbol **out_symbol, void *user_data) {
  (void)key;
  (void)user_data;
  *out_symbol = word_network();
  return 0;
}

typedef struct words {
  cohort_manager *manager;
  cohort_optimizer *optimizer;
  int num_steps;
} words;

static void word_step(void *of) {
  words *run = of;
  const int64_t batch = 8, length = 1 + random_below(NUM_BUCKETS);
  cohort_descs *data_descs = desc("data", SHAPE(batch, length), NULL), *label_descs = desc("label", SHAPE(batch), NULL);
  cohort_ndarray *data = kinds(SHAPE(batch, length), 20), *label = kinds(SHAPE(batch), NUM_CLASSES);
  char key[8];

  snprintf(key, sizeof key, "%d", (int)length);
  ok(cohort_manager_load_data_batch(run->manager, &data, 1, &label, 1, key, data_descs, label_descs));
  ok(cohort_manager_forward(run->manager, 1));
  ok(cohort_manager_backward(run->manager));
  ok(cohort_manager_update(run->manager, run->optimizer, COHORT_UPDATE_ON_STORE));
  if (++run->num_steps % 10 == 0) {
    cohort_ndarray *output = NULL;

    ok(cohort_manager_merged(run->manager, COHORT_GROUP_OUTPUTS, 0, &output));
    has_shape(output, batch, NUM_CLASSES);
    cohort_ndarray_free(output);
  }
  cohort_ndarray_free(data);
  cohort_ndarray_free(label);
  cohort_descs_free(data_descs);
  cohort_descs_free(label_descs);
}

static void buckets_in_any_order_take_no_more_memory(void **state) {
  static const char *const params[] = {"embed_weight", "fc_weight", "fc_bias"};
  const cohort_context *const contexts = test_contexts();
  cohort_manager_options options = COHORT_MANAGER_OPTIONS_INIT;
  cohort_symbol *symbol = word_network();
  cohort_descs *data = desc("data", SHAPE(8, NUM_BUCKETS), NULL), *label = desc("label", SHAPE(8), NULL);
  words run = {NULL, NULL, 0};

  (void)state;
  options.default_bucket_key = "8";
  options.bucket_symbol = give_word_network;
  ok(cohort_manager_create(symbol, contexts, 2, 8, data, label, params, COUNT(params), &options, &run.manager));
  cohort_symbol_free(symbol);
  cohort_descs_free(data);
  cohort_descs_free(label);
  ok(cohort_optimizer_create("adam", NULL, NULL, 0, &run.optimizer));
  run_long("buckets", word_step, &run, BUCKET_STEPS);
  cohort_manager_free(run.manager);
  cohort_optimizer_free(run.optimizer);
}

/* ---- executors --------------------------------------------------------------------------------------------------- */

typedef struct executors {
  cohort_symbol *symbol;
  cohort_executor *latest; /* each reshaped from the one before */
} executors;

static cohort_executor *bind_images(const executors *run, int64_t batch) {
  cohort_executor_options options = COHORT_EXECUTOR_OPTIONS_INIT;
  cohort_descs *known = desc("data", SHAPE(batch, 1, 6, 6), NULL);
  cohort_executor *executor = NULL;

  options.grad_req = "write";
  ok(cohort_executor_simple_bind(run->symbol, NULL, known, &options, &executor));
  cohort_descs_free(known);
  return executor;
}

/* Binds anew, or reshapes the latest one and frees the one before. */
static void executor_step(void *of) {
  executors *run = of;
  cohort_reshape_options how = COHORT_RESHAPE_OPTIONS_INIT;
  const int64_t batch = 1 + random_below(MOST_BATCH);
  cohort_executor *next = NULL;
  cohort_ndarray *output = NULL;

  if (random_below(4) == 0) {
    next = bind_images(run, batch);
  } else {
    cohort_descs *known = desc("data", SHAPE(batch, 1, 6, 6), NULL);

    how.partial_shaping = how.allow_up_sizing = 1;
    ok(cohort_executor_reshape(run->latest, known, &how, &next));
    cohort_descs_free(known);
  }
  ok(cohort_executor_forward(next, 1));
  ok(cohort_executor_backward(next, NULL, 0, 1));
  ok(cohort_executor_array(next, COHORT_EXECUTOR_OUTPUTS, 0, &output));
  has_shape(output, batch, NUM_CLASSES);
  ok(cohort_executor_wait(next));
  cohort_ndarray_free(output);
  cohort_executor_free(run->latest);
  run->latest = next;
}

static void executors_that_come_and_go_take_no_more_memory(void **state) {
  executors run = {NULL, NULL};

  (void)state;
  run.symbol = image_network();
  run.latest = bind_images(&run, 4);
  run_long("executors", executor_step, &run, EXECUTOR_STEPS);
  cohort_executor_free(run.latest);
  cohort_symbol_free(run.symbol);
}

/* ---- monitors ---------------------------------------------------------------------------------------------------- */

static void look_on(const char *name, cohort_ndarray *array, void *user_data) {
  (void)name;
  (void)array;
  ++*(long *)user_data;
}

/* Monitored gradients that are never collected. */
static void watched_step(void *of) {
  forward(of, counted(SHAPE(4, 2), 0.1f), counted(SHAPE(4, 1), 0.2f), 1);
  backward(of, NULL);
}

/* A network large enough for its gradients to be summed in several buckets. */
static void gradients_without_an_update_take_no_more_memory(void **state) {
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_symbol *net = linear("200");
  cohort_group *group;
  long num_looks = 0;

  (void)state;
  options.gradient_bucket_bytes = 64;
  net = node("FullyConnected", "fc2", ATTRS("num_hidden", "20"), INPUTS(net));
  net = node("FullyConnected", "fc3", ATTRS("num_hidden", "1"), INPUTS(net));
  net = node("LinearRegressionOutput", "lro", NO_ATTRS, INPUTS(net, variable("label")));
  group = bind_for_training(net, 2, desc("data", SHAPE(4, 2), NULL), desc("label", SHAPE(4, 1), NULL),
                            NAMES("fc_weight", "fc2_weight", "fc2_bias", "fc3_weight", "fc3_bias"), &options);
  ok(cohort_group_set_monitor(group, look_on, &num_looks, 0));
  run_long("gradients", watched_step, group, MONITOR_STEPS);
  assert_true(num_looks > 0);
  cohort_group_free(group);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(batches_of_random_shape_take_no_more_memory),
      TEST(buckets_in_any_order_take_no_more_memory),
      TEST(executors_that_come_and_go_take_no_more_memory),
      TEST(gradients_without_an_update_take_no_more_memory),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
