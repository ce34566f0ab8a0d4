/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trains a language model of characters on a text, in buckets: sequences of several lengths, each with a network of its
 * own, all on one set of parameters and in one piece of memory. Each batch is split over several devices. main() is at
 * the end; its steps:
 *
 *   buckets    a network for each length, made when it is first needed     make_bucket(), make_manager()
 *   training   load, carry the states, forward, backward, update, metric   run_epoch(), train_all()
 *   sampling   a group for one character at a time, states fed back        sample()
 *   figures    memory of all buckets, and the cost of switching buckets    show_memory(), show_switching()
 *
 * Two ways to cut the text: "stream", where the states that a batch ends with are those that the next starts from,
 * whatever its length; and "lines", where each line is separate and goes into the smallest bucket that holds it.
 *
 * C99; uses nothing but Cohort's public headers.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cohort/cohort.h"
#include "support/lstm.h"
#include "support/program.h"
#include "support/text.h"

const char program_name[] = "char_lm";

enum { MAX_CONTEXTS = 16, MAX_PARAMS = 64, MAX_SWITCHES = 1000 };

/* ---- settings ---------------------------------------------------------------------------------------------------- */

typedef struct settings {
  const char *contexts_text, *text, *mode, *cell;
  cohort_context contexts[MAX_CONTEXTS];
  size_t num_contexts;
  bucket_list buckets;
  int is_stream;
  lstm_settings net; /* of the buckets */
  long batch, epochs, num_sampled, num_switches;
  double lr, temperature;
  unsigned long seed;
} settings;

static const char help[] =
    "char_lm [options]: trains a language model of characters in buckets over several devices\n"
    "  --text FILE       what to learn (/usr/share/common-licenses/GPL-3)\n"
    "  --mode MODE       stream: states are carried from batch to batch (the default); lines: each line for itself\n"
    "  --cell CELL       fused: one operator for all layers and steps (the default); unrolled: many for each step\n"
    "  --buckets LIST    lengths of sequences, ascending (16,32,48 for streams; 24,48,64,80 for lines)\n"
    "  --contexts LIST   devices, such as \"cpu(0),cpu(1)\" (the default) or \"gpu(0)\"\n"
    "  --batch N         sequences a step, over all devices (32)\n"
    "  --hidden N        width of the layers (128)\n"
    "  --layers N        how many, up to 8 (1)\n"
    "  --epochs N        passes over the text (20)\n"
    "  --lr RATE         learning rate at the start; it falls to 0 along a cosine (0.01)\n"
    "  --seed N          of the order, the lengths, the first weights and the sample (1)\n"
    "  --sample N        characters to write at the end (400)\n"
    "  --temperature T   of the sample: below 1 bolder, above 1 more various (0.7)\n"
    "  --switches N      measure N times what a change of bucket costs (0)\n"
    "  --help            this text\n";

/* Completes options that depend on each other. */
static void settle(settings *s, const char *buckets) {
  s->is_stream = !strcmp(s->mode, "stream");
  s->net.unrolled = !strcmp(s->cell, "unrolled");
  s->net.state_outputs = s->is_stream;
  if (!s->is_stream && strcmp(s->mode, "lines") != 0) fail("--mode takes stream or lines, found '%s'", s->mode);
  if (!s->net.unrolled && strcmp(s->cell, "fused") != 0) fail("--cell takes fused or unrolled, found '%s'", s->cell);
  s->buckets = read_buckets(buckets ? buckets : s->is_stream ? "16,32,48" : "24,48,64,80");
  s->num_contexts = read_contexts(s->contexts_text, s->contexts, MAX_CONTEXTS);
  if (s->num_switches && s->buckets.num < 2) fail("--switches needs two buckets");
}

static settings read_options(int argc, char **argv) {
  settings s;
  const char *buckets = NULL;
  int i;

  memset(&s, 0, sizeof s);
  s.contexts_text = "cpu(0),cpu(1)";
  s.text = "/usr/share/common-licenses/GPL-3";
  s.mode = "stream";
  s.cell = "fused";
  s.net.hidden = 128;
  s.net.layers = 1;
  s.batch = 32;
  s.epochs = 20;
  s.num_sampled = 400;
  s.lr = 0.01;
  s.temperature = 0.7;
  s.seed = 1;
  for (i = 1; i < argc; i += 2) {
    const char *option = argv[i], *value = argv[i + 1];

    if (!strcmp(option, "--help")) {
      fputs(help, stdout);
      exit(EXIT_SUCCESS);
    }
    if (!value) fail("%s needs a value; see --help", option);
    if (!strcmp(option, "--text"))
      s.text = value;
    else if (!strcmp(option, "--mode"))
      s.mode = value;
    else if (!strcmp(option, "--cell"))
      s.cell = value;
    else if (!strcmp(option, "--buckets"))
      buckets = value;
    else if (!strcmp(option, "--contexts"))
      s.contexts_text = value;
    else if (!strcmp(option, "--batch"))
      s.batch = (long)number(option, value, 1, 4096);
    else if (!strcmp(option, "--hidden"))
      s.net.hidden = (long)number(option, value, 1, 4096);
    else if (!strcmp(option, "--layers"))
      s.net.layers = (long)number(option, value, 1, LSTM_MAX_LAYERS);
    else if (!strcmp(option, "--epochs"))
      s.epochs = (long)number(option, value, 0, 10000);
    else if (!strcmp(option, "--lr"))
      s.lr = number(option, value, 0, 1000);
    else if (!strcmp(option, "--seed"))
      s.seed = (unsigned long)number(option, value, 0, 4294967295.0);
    else if (!strcmp(option, "--sample"))
      s.num_sampled = (long)number(option, value, 0, 1000000);
    else if (!strcmp(option, "--temperature"))
      s.temperature = number(option, value, 0.01, 100);
    else if (!strcmp(option, "--switches"))
      s.num_switches = (long)number(option, value, 0, MAX_SWITCHES);
    else
      fail("there is no option %s; see --help", option);
  }
  settle(&s, buckets);
  return s;
}

/* ---- buckets ----------------------------------------------------------------------------------------------------- */

/* The name of a bucket and the descriptors of its batches. */
typedef struct bucket {
  char key[16];
  cohort_descs *data, *label;
} bucket;

static cohort_descs *describe(const char *name, long batch, long length) {
  const int64_t shape[] = {batch, length};
  cohort_descs *descs;

  OK(cohort_descs_create(&descs));
  OK(cohort_descs_add(descs, name, shape, 2, COHORT_DTYPE_FLOAT32, "NT"));
  return descs;
}

static void make_buckets(const settings *s, bucket *buckets) {
  size_t k;

  for (k = 0; k < s->buckets.num; ++k) {
    const long length = s->buckets.lengths[k];

    sprintf(buckets[k].key, "%ld", length);
    buckets[k].data = describe("data", s->batch, length);
    buckets[k].label = describe("softmax_label", s->batch, length);
  }
}

static void free_buckets(const settings *s, bucket *buckets) {
  size_t k;

  for (k = 0; k < s->buckets.num; ++k) {
    cohort_descs_free(buckets[k].data);
    cohort_descs_free(buckets[k].label);
  }
}

/* Builds the network for a new length. */
static int32_t make_bucket(const char *key, cohort_symbol **out_symbol, void *user_data) {
  const settings *s = user_data;

  *out_symbol = lstm_language_model(&s->net, atol(key));
  return 0;
}

/* The largest bucket comes first, so that the others fit into its memory. */
static cohort_manager *make_manager(settings *s, const bucket *buckets) {
  const bucket *largest = &buckets[s->buckets.num - 1];
  cohort_symbol *symbol = lstm_language_model(&s->net, atol(largest->key));
  cohort_manager_options options = COHORT_MANAGER_OPTIONS_INIT;
  const char *params[MAX_PARAMS], *states[LSTM_MAX_STATES];
  const size_t num_params = lstm_param_names(symbol, params, MAX_PARAMS);
  cohort_manager *manager;

  options.default_bucket_key = largest->key;
  options.bucket_symbol = make_bucket;
  options.bucket_symbol_user_data = s;
  options.state_names = states;
  options.num_state_names = lstm_state_names(&s->net, states);
  OK(cohort_manager_create(symbol, s->contexts, s->num_contexts, s->batch, largest->data, largest->label, params,
                           num_params, &options, &manager));
  cohort_symbol_free(symbol);
  return manager;
}

/* Random weights, zero biases; the same on every device. */
static void initialise(cohort_manager *manager, const settings *s) {
  const char *key = "scale", *value = "0.08";
  cohort_symbol *symbol =
      lstm_language_model(&s->net, s->buckets.lengths[0]); /* says how to fill parameters whose name gives no rule */
  cohort_initializer *uniform;
  cohort_group *group;
  cohort_arrays *args, *aux;

  OK(cohort_manager_main_group(manager, &group));
  OK(cohort_group_copy_params(group, &args, &aux));
  OK(cohort_initializer_create("uniform", &key, &value, 1, s->seed, &uniform));
  OK(cohort_initializer_apply(uniform, symbol, args));
  OK(cohort_manager_set_params(manager, args, aux));
  cohort_initializer_free(uniform);
  cohort_symbol_free(symbol);
  cohort_group_free(group);
  cohort_arrays_free(args);
  cohort_arrays_free(aux);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

/* The states that a batch ended with, on the devices where they are. */
typedef struct carried_states {
  size_t num_states, num_devices;
  int known; /* 0: the next batch starts from zeros */
  cohort_ndarray *arrays[LSTM_MAX_STATES * MAX_CONTEXTS];
} carried_states;

static void forget_states(carried_states *states) {
  size_t i;

  for (i = 0; states->known && i < states->num_states * states->num_devices; ++i)
    cohort_ndarray_free(states->arrays[i]);
  states->known = 0;
}

/* After a batch is loaded: copies in the final states of the previous bucket, which may have been another one. */
static void set_states(cohort_manager *manager, carried_states *states) {
  const double zero = 0;

  if (states->known) {
    OK(cohort_manager_set_states(manager, states->arrays, states->num_states, states->num_devices, NULL));
  } else {
    OK(cohort_manager_set_states(manager, NULL, 0, 0, &zero));
  }
  forget_states(states);
}

/* After the forward pass: the outputs behind the probabilities are states. */
static void keep_states(cohort_manager *manager, carried_states *states) {
  size_t i, d;

  for (i = 0; i < states->num_states; ++i)
    for (d = 0; d < states->num_devices; ++d)
      OK(cohort_manager_array(manager, COHORT_GROUP_OUTPUTS, 1 + i, d, &states->arrays[i * states->num_devices + d]));
  states->known = 1;
}

static cohort_ndarray *array_of(const float *values, long batch, long length) {
  const int64_t shape[] = {batch, length};
  cohort_ndarray *array;

  OK(cohort_ndarray_from_host(values, (size_t)(batch * length) * sizeof(float), shape, 2, COHORT_DTYPE_FLOAT32, NULL,
                              &array));
  return array;
}

/* State shared by training and testing. */
typedef struct job {
  const settings *s;
  const text *t;
  const bucket *buckets;
  cohort_manager *manager;
  cohort_metric *perplexity;
  cohort_optimizer *optimizer;
  uint64_t random_state;
} job;

/* One batch: a training step or, without an optimizer, an evaluation. */
static void run_batch(const job *j, const text_batch *batch, carried_states *states, cohort_optimizer *optimizer,
                      cohort_metric *metric) {
  const bucket *b = &j->buckets[batch->bucket];
  const long length = j->s->buckets.lengths[batch->bucket];
  cohort_ndarray *data = array_of(batch->data, j->s->batch, length);
  cohort_ndarray *labels = array_of(batch->labels, j->s->batch, length);

  OK(cohort_manager_load_data_batch(j->manager, &data, 1, &labels, 1, b->key, b->data, b->label));
  if (states) set_states(j->manager, states);
  OK(cohort_manager_forward(j->manager, optimizer ? 1 : 0));
  if (states) keep_states(j->manager, states);
  if (optimizer) {
    OK(cohort_manager_backward(j->manager));
    OK(cohort_manager_update(j->manager, optimizer, COHORT_UPDATE_ON_STORE));
  }
  if (metric) OK(cohort_manager_update_metric(j->manager, metric, &labels, 1));
  cohort_ndarray_free(data);
  cohort_ndarray_free(labels);
}

static text_batches cut_text(job *j, int part, uint64_t *random_state) {
  return (j->s->is_stream ? stream_batches : line_batches)(j->t, part, &j->s->buckets, j->s->batch, random_state);
}

/* One pass over a part of the text. Returns the perplexity: the chance of the next character was 1 in so many. */
static double run_epoch(job *j, int part, uint64_t *random_state, size_t *out_num_codes) {
  carried_states states = {0, 0, 0, {NULL}};
  const char *names[LSTM_MAX_STATES];
  text_batches all = cut_text(j, part, random_state);
  double perplexity;
  size_t i;

  if (all.num == 0) fail("the text is too short for batches of %ld sequences", j->s->batch);
  states.num_states = lstm_state_names(&j->s->net, names);
  states.num_devices = j->s->num_contexts;
  for (i = 0; i < all.num; ++i)
    run_batch(j, &all.batches[i], j->s->is_stream ? &states : NULL, part == TEXT_TRAIN ? j->optimizer : NULL,
              j->perplexity);
  forget_states(&states);
  OK(cohort_metric_value(j->perplexity, 0, 0, NULL, &perplexity));
  OK(cohort_metric_reset(j->perplexity));
  *out_num_codes = all.num_codes;
  free_batches(&all);
  return perplexity;
}

static cohort_metric *make_perplexity(void) {
  const char *key = "ignore_label", *value = "0", *label = "softmax_label", *output = "softmax_output";
  cohort_metric *metric;

  OK(cohort_metric_create("perplexity", &key, &value, 1, &metric));
  OK(cohort_metric_set_names(metric, &label, 1, &output, 1));
  return metric;
}

/* Adam; the learning rate falls from lr to 0 along a cosine. */
static cohort_optimizer *make_optimizer(const settings *s, size_t num_updates) {
  const char *const keys[] = {"learning_rate", "rescale_grad", "clip_gradient"}, *schedule_key = "max_update";
  char lr[32], rescale[32], updates[32];
  const char *const values[] = {lr, rescale, "5"}, *schedule_value = updates;
  cohort_optimizer *optimizer;

  sprintf(lr, "%.17g", s->lr);
  sprintf(rescale, "%.17g", 1.0 / (double)s->batch); /* gradients are sums over the batch */
  sprintf(updates, "%lu", (unsigned long)(num_updates ? num_updates : 1));
  OK(cohort_optimizer_create("adam", keys, values, 3, &optimizer));
  OK(cohort_optimizer_set_lr_schedule(optimizer, "cosine", &schedule_key, &schedule_value, 1));
  return optimizer;
}

static size_t num_batches(job *j) {
  uint64_t random_state = j->s->seed;
  text_batches all = cut_text(j, TEXT_TRAIN, &random_state);
  const size_t num = all.num;

  free_batches(&all);
  return num;
}

/* Trains, with one line per epoch. Returns the perplexity of the held-out text. */
static double train_all(job *j) {
  double held_out = 0;
  long epoch;

  for (epoch = 0; epoch < j->s->epochs; ++epoch) {
    uint64_t same = 1; /* the held-out text is cut the same way each time */
    double train, elapsed = -seconds();
    size_t num_codes, num_held_out;

    train = run_epoch(j, TEXT_TRAIN, &j->random_state, &num_codes);
    OK(cohort_wait_all());
    elapsed += seconds();
    held_out = run_epoch(j, TEXT_HELD_OUT, &same, &num_held_out);
    printf("epoch %3ld/%ld %8.0f characters/s   perplexity %7.3f   of the held-out text %7.3f\n", epoch + 1,
           j->s->epochs, (double)num_codes / elapsed, train, held_out);
    fflush(stdout);
  }
  return held_out;
}

/* ---- sampling ---------------------------------------------------------------------------------------------------- */

/* A group for one sequence of one character, with the trained parameters. */
static cohort_group *make_sampler(const job *j, const lstm_settings *net) {
  cohort_symbol *symbol = lstm_language_model(net, 1);
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  const char *params[MAX_PARAMS], *states[LSTM_MAX_STATES];
  const size_t num_params = lstm_param_names(symbol, params, MAX_PARAMS);
  cohort_descs *data = describe("data", 1, 1), *label = describe("softmax_label", 1, 1);
  cohort_group *sampler, *trained;
  cohort_arrays *args, *aux;

  options.state_names = states;
  options.num_state_names = lstm_state_names(net, states);
  OK(cohort_group_create(symbol, j->s->contexts, 1, data, label, params, num_params, 0, &options, &sampler));
  OK(cohort_manager_main_group(j->manager, &trained));
  OK(cohort_group_copy_params(trained, &args, &aux)); /* the mean over the devices */
  OK(cohort_group_set_params(sampler, args, aux, 0));
  cohort_arrays_free(args);
  cohort_arrays_free(aux);
  cohort_group_free(trained);
  cohort_symbol_free(symbol);
  cohort_descs_free(data);
  cohort_descs_free(label);
  return sampler;
}

/* Draws a code from probabilities raised to 1 / temperature; never the padding. */
static long draw(const float *probabilities, long num, double temperature, uint64_t *random_state) {
  double weights[256], sum = 0, at;
  long i;

  for (i = 1; i < num; ++i) sum += weights[i] = pow((double)probabilities[i], 1 / temperature);
  at = (double)(random_number(random_state) >> 11) / 9007199254740992.0 * sum;
  for (i = 1; i < num - 1 && at >= weights[i]; ++i) at -= weights[i];
  return i;
}

/* Writes a text, character by character. */
static void sample(const job *j) {
  lstm_settings net = j->s->net;
  const char *names[LSTM_MAX_STATES];
  const size_t num_states = lstm_state_names(&net, names);
  const char *newline = memchr(j->t->of_code, '\n', (size_t)j->t->num_codes);
  long code = newline ? newline - j->t->of_code : 1, i;
  uint64_t random_state = j->s->seed;
  cohort_ndarray *states[LSTM_MAX_STATES];
  cohort_group *sampler;
  size_t k;

  net.state_outputs = 1;
  sampler = make_sampler(j, &net);
  printf("\n");
  for (i = 0; i < j->s->num_sampled; ++i) {
    const float value = (float)code;
    cohort_ndarray *data = array_of(&value, 1, 1), *output;
    float probabilities[256];

    OK(cohort_group_forward(sampler, &data, 1, NULL, 0, 0));
    OK(cohort_group_array(sampler, COHORT_GROUP_OUTPUTS, 0, 0, &output));
    OK(cohort_ndarray_read(output, probabilities, (size_t)j->t->num_codes * sizeof(float)));
    for (k = 0; k < num_states; ++k) OK(cohort_group_array(sampler, COHORT_GROUP_OUTPUTS, 1 + k, 0, &states[k]));
    OK(cohort_group_set_states(sampler, states, num_states, 1, NULL));
    code = draw(probabilities, j->t->num_codes, j->s->temperature, &random_state);
    putchar(j->t->of_code[code]);
    for (k = 0; k < num_states; ++k) cohort_ndarray_free(states[k]);
    cohort_ndarray_free(data);
    cohort_ndarray_free(output);
  }
  printf("\n\n");
  cohort_group_free(sampler);
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

/* All memory allocated for the buckets made so far, over all devices, in bytes. */
static double memory_of(const cohort_manager *manager) {
  cohort_memory_info info = COHORT_MEMORY_INFO_INIT;

  OK(cohort_manager_memory(manager, &info));
  return (double)(info.planned_bytes + info.argument_bytes + info.gradient_bytes + info.output_bytes);
}

/* The same while only the largest exists. It is ready for training; one pass makes it ready for testing. */
static double memory_of_largest(const job *j) {
  text_batch padding = make_batch(&j->s->buckets, j->s->buckets.num - 1, j->s->batch);

  run_batch(j, &padding, NULL, NULL, NULL);
  free(padding.data);
  free(padding.labels);
  return memory_of(j->manager);
}

static void show_memory(const job *j, double largest_alone) {
  const double all = memory_of(j->manager);
  size_t num;

  OK(cohort_manager_num_buckets(j->manager, &num));
  printf("memory: %lu buckets together %.3f MB, the largest alone %.3f MB: %.3f times\n", (unsigned long)num, all / 1e6,
         largest_alone / 1e6, all / largest_alone);
}

/* Milliseconds of one training step in a bucket, from loading to the last update. */
static double timed_step(const job *j, const text_batch *batch) {
  const double start = seconds();

  run_batch(j, batch, NULL, j->optimizer, NULL);
  OK(cohort_wait_all());
  return (seconds() - start) * 1e3;
}

/* Milliseconds of steps in each bucket. */
typedef struct step_times {
  size_t num[2];
  double ms[2][MAX_SWITCHES]; /* after a step of the same bucket; after one of another */
} step_times;

/* Steps in a random order, every other one in the bucket of the one before, until each bucket has enough of both kinds.
 * Both kinds are measured in turn, so that other load on the machine affects them alike. */
static void measure_switching(const job *j, const text_batch *batches, step_times *times) {
  const size_t num = j->s->buckets.num, enough = (size_t)j->s->num_switches;
  uint64_t random_state = j->s->seed;
  size_t now = 0, missing = 2 * num * enough;

  while (missing > 0) {
    const size_t is_other = (size_t)(random_number(&random_state) >> 32) % 2;
    double ms;

    if (is_other) now = (now + 1 + (size_t)(random_number(&random_state) % (num - 1))) % num;
    ms = timed_step(j, &batches[now]);
    if (times[now].num[is_other] == enough) continue;
    times[now].ms[is_other][times[now].num[is_other]++] = ms;
    --missing;
  }
}

static double larger(double a, double b) { return a > b ? a : b; }

/* Medians, and those of the fastest fifth of the steps: on a busy machine the others show the other load. */
static void show_switching(const job *j) {
  const size_t num = j->s->buckets.num;
  step_times *times = allocate(num * sizeof *times);
  text_batch batches[MAX_BUCKETS];
  double worst = 0, worst_of_fastest = 0;
  size_t k;

  memset(times, 0, num * sizeof *times);
  for (k = 0; k < num; ++k) {
    batches[k] = make_batch(&j->s->buckets, k, j->s->batch);
    timed_step(j, &batches[k]); /* creates the bucket if it does not exist */
  }
  measure_switching(j, batches, times);
  for (k = 0; k < num; ++k) {
    const double same = median(times[k].ms[0], times[k].num[0]), other = median(times[k].ms[1], times[k].num[1]);

    printf("bucket %s: a step after its own kind %.3f ms, after another %.3f ms: %.3f times\n", j->buckets[k].key, same,
           other, other / same);
    worst = larger(worst, other / same); /* the values are sorted now */
    worst_of_fastest =
        larger(worst_of_fastest, times[k].ms[1][times[k].num[1] / 10] / times[k].ms[0][times[k].num[0] / 10]);
    free(batches[k].data);
    free(batches[k].labels);
  }
  free(times);
  printf("switching: at most %.3f times a step in a row, %.3f times in the fastest fifth of the steps\n", worst,
         worst_of_fastest);
}

int main(int argc, char **argv) {
  settings s = read_options(argc, argv);
  text t = load_text(s.text);
  bucket buckets[MAX_BUCKETS];
  double largest_alone, held_out;
  job j;

  s.net.vocabulary = t.num_codes;
  printf(
      "%ld layers of %ld, %s, on the %lu characters of %s (%ld different), mode %s, over %s, batches of %ld, Cohort "
      "%s\n",
      s.net.layers, s.net.hidden, s.cell, (unsigned long)t.num, s.text, t.num_codes - 1, s.mode, s.contexts_text,
      s.batch, cohort_version());
  make_buckets(&s, buckets);
  memset(&j, 0, sizeof j);
  j.s = &s;
  j.t = &t;
  j.buckets = buckets;
  j.manager = make_manager(&s, buckets);
  j.perplexity = make_perplexity();
  j.optimizer = make_optimizer(&s, num_batches(&j) * (size_t)s.epochs);
  j.random_state = s.seed;
  initialise(j.manager, &s);
  largest_alone = memory_of_largest(&j);

  held_out = train_all(&j);
  if (s.num_sampled) sample(&j);
  if (s.num_switches) show_switching(&j);
  show_memory(&j, largest_alone);

  cohort_optimizer_free(j.optimizer);
  cohort_metric_free(j.perplexity);
  cohort_manager_free(j.manager);
  free_buckets(&s, buckets);
  free_text(&t);
  if (cohort_live_handles() != 0) fail("%lu handles were not freed", (unsigned long)cohort_live_handles());
  if (s.epochs) printf("held-out perplexity: %.3f\n", held_out);
  return EXIT_SUCCESS;
}
