/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trains LeNet on handwritten digits, each batch split over several devices, and shows the result. main() is at
 * the end; its steps:
 *
 *   symbol      what to compute                              make_lenet()
 *   group       where: an executor on each device            make_group(), initialise()
 *   training    forward, backward, update, metric            train_epoch()
 *   checkpoint  the network and its parameters in files      save_checkpoint()
 *   inference   a second group, from the files alone         load_checkpoint(), test_and_show()
 *
 * C99; uses nothing but Cohort's public headers.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cohort/cohort.h"
#include "support/learning_curve.h"
#include "support/program.h"

enum { NUM_CLASSES = 10, NUM_PIXELS = 64, NUM_TEST = 360, MAX_CONTEXTS = 16, MAX_EPOCHS = 1000 };

const char program_name[] = "train_digits";

/* ---- settings ---------------------------------------------------------------------------------------------------- */

typedef struct settings {
  const char *contexts_text;
  cohort_context contexts[MAX_CONTEXTS];
  size_t num_contexts;
  double workload[MAX_CONTEXTS]; /* relative shares of the batch */
  size_t num_workloads;          /* 0: equal shares */
  long batch, epochs;
  double lr;
  unsigned long seed;
  const char *out, *data;
} settings;

static const char help[] =
    "train_digits [options]: trains LeNet on handwritten digits over several devices\n"
    "  --contexts LIST   devices, such as \"cpu(0),cpu(1)\" (the default) or \"gpu(0)\"\n"
    "  --workload LIST   relative share of the batch of each, such as \"1,1\"; equal shares if left out\n"
    "  --batch N         samples a step, over all devices (32)\n"
    "  --epochs N        passes over the training images (20)\n"
    "  --lr RATE         learning rate at the start; it falls to 0 along a cosine (0.05)\n"
    "  --seed N          of the split into training and test images, the order, and the first weights (1)\n"
    "  --out DIR         where checkpoint and learning curve go (.)\n"
    "  --data FILE       the images (examples/data/digits.params)\n"
    "  --help            this text\n";

static void read_workload(settings *s, const char *list) {
  char item[64];

  for (s->num_workloads = 0; *list; ++s->num_workloads) {
    if (s->num_workloads == MAX_CONTEXTS) fail("--workload: at most %d", MAX_CONTEXTS);
    s->workload[s->num_workloads] = number("--workload", next_item(&list, item, sizeof item), 1e-6, 1e6);
  }
}

static settings read_options(int argc, char **argv) {
  settings s = {NULL, {{0, 0}}, 0, {0}, 0, 32, 20, 0.05, 1, ".", "examples/data/digits.params"};
  int i;

  s.contexts_text = "cpu(0),cpu(1)";
  for (i = 1; i < argc; i += 2) {
    const char *option = argv[i], *value = argv[i + 1];

    if (!strcmp(option, "--help")) {
      fputs(help, stdout);
      exit(EXIT_SUCCESS);
    }
    if (!value) fail("%s needs a value; see --help", option);
    if (!strcmp(option, "--contexts"))
      s.contexts_text = value;
    else if (!strcmp(option, "--workload"))
      read_workload(&s, value);
    else if (!strcmp(option, "--batch"))
      s.batch = (long)number(option, value, 1, 1437);
    else if (!strcmp(option, "--epochs"))
      s.epochs = (long)number(option, value, 1, MAX_EPOCHS);
    else if (!strcmp(option, "--lr"))
      s.lr = number(option, value, 0, 1000);
    else if (!strcmp(option, "--seed"))
      s.seed = (unsigned long)number(option, value, 0, 4294967295.0);
    else if (!strcmp(option, "--out"))
      s.out = value;
    else if (!strcmp(option, "--data"))
      s.data = value;
    else
      fail("there is no option %s; see --help", option);
  }
  s.num_contexts = read_contexts(s.contexts_text, s.contexts, MAX_CONTEXTS);
  return s;
}

/* ---- data -------------------------------------------------------------------------------------------------------- */

/* Images (num, 1, 8, 8) and labels (num,) on the host, row by row, and as arrays that hold a copy of them. */
typedef struct digits {
  size_t num;
  float *pixels, *classes;
  cohort_ndarray *images, *labels;
} digits;

static digits make_digits(size_t num) {
  const int64_t image_shape[] = {(int64_t)num, 1, 8, 8};
  digits d = {num, NULL, NULL, NULL, NULL};

  d.pixels = allocate(num * NUM_PIXELS * sizeof(float));
  d.classes = allocate(num * sizeof(float));
  OK(cohort_ndarray_zeros(image_shape, 4, COHORT_DTYPE_FLOAT32, NULL, &d.images));
  OK(cohort_ndarray_zeros(image_shape, 1, COHORT_DTYPE_FLOAT32, NULL, &d.labels));
  return d;
}

static void free_digits(digits *d) {
  free(d->pixels);
  free(d->classes);
  cohort_ndarray_free(d->images);
  cohort_ndarray_free(d->labels);
}

static void write_arrays(const digits *d) {
  OK(cohort_ndarray_write(d->images, d->pixels, d->num * NUM_PIXELS * sizeof(float)));
  OK(cohort_ndarray_write(d->labels, d->classes, d->num * sizeof(float)));
}

static void swap_floats(float *a, float *b, size_t num) {
  while (num--) {
    const float kept = a[num];

    a[num] = b[num];
    b[num] = kept;
  }
}

static void shuffle(digits *d, uint64_t *random_state) {
  size_t i;

  for (i = d->num - 1; i > 0; --i) {
    const size_t j = (size_t)(random_number(random_state) % (i + 1));

    if (i == j) continue;
    swap_floats(d->pixels + i * NUM_PIXELS, d->pixels + j * NUM_PIXELS, NUM_PIXELS);
    swap_floats(d->classes + i, d->classes + j, 1);
  }
}

/* Reads one float32 array of a .params file, which must have this number of elements. */
static void read_array(const cohort_arrays *file, const char *name, float *to, size_t num) {
  cohort_ndarray *array;
  size_t index;

  OK(cohort_arrays_find(file, name, &index));
  OK(cohort_arrays_get(file, index, &array));
  OK(cohort_ndarray_read(array, to, num * sizeof(float)));
  cohort_ndarray_free(array);
}

/* Shuffles all images, then takes the last NUM_TEST of them for the test and the others for the training. */
static void load_digits(const char *path, uint64_t *random_state, digits *train, digits *test) {
  digits all = make_digits(1797);
  cohort_arrays *file;

  OK(cohort_arrays_load(path, NULL, &file));
  read_array(file, "images", all.pixels, all.num * NUM_PIXELS);
  read_array(file, "labels", all.classes, all.num);
  cohort_arrays_free(file);
  shuffle(&all, random_state);

  *train = make_digits(all.num - NUM_TEST);
  *test = make_digits(NUM_TEST);
  memcpy(train->pixels, all.pixels, train->num * NUM_PIXELS * sizeof(float));
  memcpy(train->classes, all.classes, train->num * sizeof(float));
  memcpy(test->pixels, all.pixels + train->num * NUM_PIXELS, test->num * NUM_PIXELS * sizeof(float));
  memcpy(test->classes, all.classes + train->num, test->num * sizeof(float));
  write_arrays(test);
  free_digits(&all);
}

/* ---- the network ------------------------------------------------------------------------------------------------- */

/* LeNet, with kernels and widths for images of 8 x 8. Weights and biases are created as variables automatically. */
static cohort_symbol *make_lenet(void) {
  cohort_symbol *net;

  OK(cohort_symbol_variable("data", NULL, NULL, 0, &net));
  net = layer("Convolution", "conv1", net, "kernel", "(3, 3)", "pad", "(1, 1)", "num_filter", "20", NULL);
  net = layer("Activation", "tanh1", net, "act_type", "tanh", NULL);
  net = layer("Pooling", "pool1", net, "kernel", "(2, 2)", "stride", "(2, 2)", "pool_type", "max", NULL);
  net = layer("Convolution", "conv2", net, "kernel", "(3, 3)", "pad", "(1, 1)", "num_filter", "50", NULL);
  net = layer("Activation", "tanh2", net, "act_type", "tanh", NULL);
  net = layer("Pooling", "pool2", net, "kernel", "(2, 2)", "stride", "(2, 2)", "pool_type", "max", NULL);
  net = layer("Flatten", "flatten", net, NULL);
  net = layer("FullyConnected", "fc1", net, "num_hidden", "128", NULL);
  net = layer("Activation", "tanh3", net, "act_type", "tanh", NULL);
  net = layer("FullyConnected", "fc2", net, "num_hidden", "10", NULL);
  return layer("SoftmaxOutput", "softmax", net, NULL);
}

/* Binds the network for batches of a size, over all devices. */
static cohort_group *make_group(const cohort_symbol *symbol, const settings *s, size_t batch, int32_t for_training) {
  static const char *const params[] = {"conv1_weight", "conv1_bias", "conv2_weight", "conv2_bias",
                                       "fc1_weight",   "fc1_bias",   "fc2_weight",   "fc2_bias"};
  const int64_t image_shape[] = {(int64_t)batch, 1, 8, 8};
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_descs *data, *label;
  cohort_group *group;

  OK(cohort_descs_create(&data));
  OK(cohort_descs_add(data, "data", image_shape, 4, COHORT_DTYPE_FLOAT32, "NCHW"));
  OK(cohort_descs_create(&label));
  OK(cohort_descs_add(label, "softmax_label", image_shape, 1, COHORT_DTYPE_FLOAT32, "N"));
  options.workload = s->num_workloads ? s->workload : NULL;
  options.num_workloads = s->num_workloads;
  OK(cohort_group_create(symbol, s->contexts, s->num_contexts, data, label, params, sizeof params / sizeof *params,
                         for_training, &options, &group));
  cohort_descs_free(data);
  cohort_descs_free(label);
  return group;
}

/* Random weights, zero biases; the same on every device. */
static void initialise(cohort_group *group, const cohort_symbol *symbol, unsigned long seed) {
  cohort_initializer *xavier;
  cohort_arrays *args, *aux;

  OK(cohort_group_copy_params(group, &args, &aux));
  OK(cohort_initializer_create("xavier", NULL, NULL, 0, seed, &xavier));
  OK(cohort_initializer_apply(xavier, symbol, args));
  OK(cohort_group_set_params(group, args, aux, 0));
  cohort_initializer_free(xavier);
  cohort_arrays_free(args);
  cohort_arrays_free(aux);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

/* Stochastic gradient descent with momentum; the learning rate falls from lr to 0 along a cosine. */
static cohort_optimizer *make_optimizer(const settings *s, size_t num_updates) {
  const char *const keys[] = {"learning_rate", "momentum", "wd", "rescale_grad"}, *schedule_key = "max_update";
  char lr[32], rescale[32], updates[32];
  const char *const values[] = {lr, "0.9", "0.0001", rescale}, *schedule_value = updates;
  cohort_optimizer *optimizer;

  sprintf(lr, "%.17g", s->lr);
  sprintf(rescale, "%.17g", 1.0 / (double)s->batch); /* gradients are sums over the batch */
  sprintf(updates, "%lu", (unsigned long)num_updates);
  OK(cohort_optimizer_create("sgd", keys, values, 4, &optimizer));
  OK(cohort_optimizer_set_lr_schedule(optimizer, "cosine", &schedule_key, &schedule_value, 1));
  return optimizer;
}

/* Accuracy and loss, accumulated over batches. */
static cohort_metric *make_metric(void) {
  cohort_metric *metric, *accuracy, *loss;

  OK(cohort_metric_create("composite", NULL, NULL, 0, &metric));
  OK(cohort_metric_create("accuracy", NULL, NULL, 0, &accuracy));
  OK(cohort_metric_create("cross-entropy", NULL, NULL, 0, &loss));
  OK(cohort_metric_add(metric, accuracy));
  OK(cohort_metric_add(metric, loss));
  cohort_metric_free(accuracy);
  cohort_metric_free(loss);
  return metric;
}

/* Reads accuracy and loss, and resets the metric. */
static void take_figures(cohort_metric *metric, double *accuracy, double *loss) {
  OK(cohort_metric_value(metric, 0, 0, NULL, accuracy));
  OK(cohort_metric_value(metric, 1, 0, NULL, loss));
  OK(cohort_metric_reset(metric));
}

/* One pass over the training images in a new order. The rest that does not fill a batch is left out; it differs each
 * time. */
static void train_epoch(cohort_group *group, cohort_optimizer *optimizer, cohort_metric *metric, digits *train,
                        long batch, uint64_t *random_state) {
  long begin;

  shuffle(train, random_state);
  write_arrays(train);
  for (begin = 0; begin + batch <= (long)train->num; begin += batch) {
    cohort_ndarray *images, *labels; /* views of the rows of this batch */

    OK(cohort_ndarray_slice(train->images, begin, begin + batch, &images));
    OK(cohort_ndarray_slice(train->labels, begin, begin + batch, &labels));
    OK(cohort_group_forward(group, &images, 1, &labels, 1, 1));
    OK(cohort_group_backward(group, NULL, 0));
    OK(cohort_group_update(group, optimizer, COHORT_UPDATE_ON_STORE));
    OK(cohort_group_update_metric(group, metric, &labels, 1));
    cohort_ndarray_free(images);
    cohort_ndarray_free(labels);
  }
}

/* Runs the test images through a separate group, with the trained parameters. */
static void evaluate(cohort_group *test_group, const cohort_group *group, cohort_metric *metric, const digits *d) {
  cohort_arrays *args, *aux;

  OK(cohort_group_copy_params(group, &args, &aux)); /* the mean over the devices */
  OK(cohort_group_set_params(test_group, args, aux, 0));
  cohort_arrays_free(args);
  cohort_arrays_free(aux);
  OK(cohort_group_forward(test_group, &d->images, 1, &d->labels, 1, 0));
  OK(cohort_group_update_metric(test_group, metric, &d->labels, 1));
}

/* Trains, with one line per epoch. */
static void train_all(cohort_group *group, const cohort_symbol *symbol, const settings *s, digits *train,
                      const digits *test, uint64_t *random_state, epoch_figures *figures) {
  const size_t num_batches = train->num / (size_t)s->batch;
  cohort_group *test_group = make_group(symbol, s, test->num, 0);
  cohort_optimizer *optimizer = make_optimizer(s, num_batches * (size_t)s->epochs);
  cohort_metric *metric = make_metric();
  long epoch;

  for (epoch = 0; epoch < s->epochs; ++epoch) {
    epoch_figures *f = &figures[epoch];
    double elapsed = -seconds();

    train_epoch(group, optimizer, metric, train, s->batch, random_state);
    OK(cohort_group_wait(group));
    elapsed += seconds();
    take_figures(metric, &f->train_accuracy, &f->train_loss);
    evaluate(test_group, group, metric, test);
    take_figures(metric, &f->test_accuracy, &f->test_loss);
    printf("epoch %3ld/%ld %8.0f samples/s   loss %.4f  accuracy %.4f   test loss %.4f  accuracy %.4f\n", epoch + 1,
           s->epochs, (double)num_batches * (double)s->batch / elapsed, f->train_loss, f->train_accuracy, f->test_loss,
           f->test_accuracy);
    fflush(stdout);
  }
  cohort_metric_free(metric);
  cohort_optimizer_free(optimizer);
  cohort_group_free(test_group);
}

/* ---- checkpoint -------------------------------------------------------------------------------------------------- */

static void save_checkpoint(const cohort_group *group, const cohort_symbol *symbol, const char *prefix, long epoch) {
  cohort_arrays *args, *aux;

  OK(cohort_group_copy_params(group, &args, &aux));
  OK(cohort_checkpoint_save(prefix, (int32_t)epoch, symbol, args, aux));
  cohort_arrays_free(args);
  cohort_arrays_free(aux);
}

/* A group for inference, made from the files alone. */
static cohort_group *load_checkpoint(const settings *s, size_t batch, const char *prefix, long epoch) {
  cohort_arrays *args, *aux;
  cohort_symbol *symbol;
  cohort_group *group;

  OK(cohort_checkpoint_load(prefix, (int32_t)epoch, &symbol, &args, &aux));
  group = make_group(symbol, s, batch, 0);
  OK(cohort_group_set_params(group, args, aux, 0));
  cohort_arrays_free(args);
  cohort_arrays_free(aux);
  cohort_symbol_free(symbol);
  return group;
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* Runs the test images, prints how often each digit was recognised as which, and returns the share of correct ones. */
static double test_and_show(cohort_group *group, const digits *test) {
  int table[NUM_CLASSES][NUM_CLASSES] = {{0}}, right = 0, of, as;
  float *probabilities = allocate(test->num * NUM_CLASSES * sizeof(float));
  cohort_ndarray *output;
  size_t row;

  OK(cohort_group_forward(group, &test->images, 1, NULL, 0, 0));
  OK(cohort_group_merged(group, COHORT_GROUP_OUTPUTS, 0, &output));
  OK(cohort_ndarray_read(output, probabilities, test->num * NUM_CLASSES * sizeof(float)));
  cohort_ndarray_free(output);

  for (row = 0; row < test->num; ++row) {
    const float *p = probabilities + row * NUM_CLASSES;
    int best = 0, k;

    for (k = 1; k < NUM_CLASSES; ++k)
      if (p[k] > p[best]) best = k;
    ++table[(int)test->classes[row]][best];
    right += best == (int)test->classes[row];
  }
  free(probabilities);

  printf("\nconfusion matrix: rows are the digits, columns what they were taken for\n\n     ");
  for (as = 0; as < NUM_CLASSES; ++as) printf("%5d", as);
  printf("\n     ");
  for (as = 0; as < NUM_CLASSES; ++as) fputs("-----", stdout);
  for (of = 0; of < NUM_CLASSES; ++of) {
    printf("\n%3d |", of);
    for (as = 0; as < NUM_CLASSES; ++as) table[of][as] ? printf("%5d", table[of][as]) : printf("    .");
  }
  printf("\n\n");
  return (double)right / (double)test->num;
}

int main(int argc, char **argv) {
  const settings s = read_options(argc, argv);
  uint64_t random_state = s.seed;
  char prefix[512], curve_path[512], subtitle[256];
  digits train, test;
  cohort_symbol *symbol;
  cohort_group *group;
  epoch_figures *figures;
  double accuracy;

  if (strlen(s.out) > 400) fail("--out: the name of the folder is too long");
  if (mkdir(s.out, 0777) != 0 && errno != EEXIST) fail("the folder %s cannot be made: %s", s.out, strerror(errno));
  sprintf(prefix, "%s/digits", s.out);
  sprintf(curve_path, "%s/learning_curve.svg", s.out);

  load_digits(s.data, &random_state, &train, &test);
  printf("LeNet on %lu training and %lu test images over %s, batches of %ld, Cohort %s\n", (unsigned long)train.num,
         (unsigned long)test.num, s.contexts_text, s.batch, cohort_version());
  symbol = make_lenet();
  group = make_group(symbol, &s, (size_t)s.batch, 1);
  initialise(group, symbol, s.seed);
  figures = allocate((size_t)s.epochs * sizeof *figures);
  train_all(group, symbol, &s, &train, &test, &random_state, figures);
  save_checkpoint(group, symbol, prefix, s.epochs);
  cohort_group_free(group);
  cohort_symbol_free(symbol);

  group = load_checkpoint(&s, test.num, prefix, s.epochs);
  accuracy = test_and_show(group, &test);
  cohort_group_free(group);

  snprintf(subtitle, sizeof subtitle, "%.60s, batches of %ld, seed %lu: test accuracy %.4f after %ld epochs",
           s.contexts_text, s.batch, s.seed, accuracy, s.epochs);
  if (draw_learning_curve(curve_path, "LeNet on handwritten digits", subtitle, figures, (int)s.epochs) != 0)
    fail("%s cannot be written", curve_path);
  printf("saved: %s-symbol.json, %s-%04ld.params, %s\n", prefix, prefix, s.epochs, curve_path);

  free(figures);
  free_digits(&train);
  free_digits(&test);
  if (cohort_live_handles() != 0) fail("%lu handles were not freed", (unsigned long)cohort_live_handles());
  printf("test accuracy: %.4f\n", accuracy);
  return EXIT_SUCCESS;
}
