/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Teaches an LSTM whose layers are on different devices to add binary numbers, then does the same on one device and
 * compares. main() is at the end; its steps:
 *
 *   symbol     each node carries the name of its layer in `ctx_group`     make_cell(), make_adder()
 *   group      one context, and a map from these names to contexts        make_group()
 *   training   as for any other network                                   train()
 *   test       sums of numbers that it has not seen                       test()
 *
 * A number comes bit by bit, the lowest first, so that the network has to learn to carry. While one device works on a
 * bit in the second layer, the other is in the first layer at the next bit. Results are the same to the last bit,
 * wherever the layers are.
 *
 * C99; uses nothing but Cohort's public headers.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cohort/cohort.h"
#include "support/program.h"

enum { MAX_LAYERS = 8, MAX_BITS = 32, WARM_UP = 5, NUM_LINES = 6 };

const char program_name[] = "lstm_model_parallel";

/* ---- settings ---------------------------------------------------------------------------------------------------- */

typedef struct settings {
  const char *contexts_text;
  cohort_context contexts[MAX_LAYERS]; /* layers are distributed over them in order, consecutive ones together */
  size_t num_contexts;
  long layers, hidden, bits, batch, steps, threads;
  double lr;
  unsigned long seed;
} settings;

static const char help[] =
    "lstm_model_parallel [options]: teaches an LSTM whose layers sit on different devices to add binary numbers\n"
    "  --contexts LIST  devices among which the layers are shared out (cpu(0),cpu(1))\n"
    "  --layers N       layers (2)\n"
    "  --hidden N       units of each layer (32)\n"
    "  --bits N         bits of a sum, which are the steps that the LSTM is unrolled for (12)\n"
    "  --batch N        sums a step (64)\n"
    "  --steps N        steps of training (300)\n"
    "  --lr RATE        learning rate of Adam (0.02)\n"
    "  --threads N      threads of each CPU context; 0: the processors are shared out among them (1)\n"
    "  --seed N         of the numbers and the first weights (1)\n"
    "  --help           this text\n";

static void set_contexts(settings *s, const char *list) {
  s->contexts_text = list;
  s->num_contexts = read_contexts(list, s->contexts, MAX_LAYERS);
  if (s->num_contexts == 0) fail("--contexts: expected at least one context");
}

static settings read_options(int argc, char **argv) {
  settings s = {NULL, {{0, 0}}, 0, 2, 32, 12, 64, 300, 1, 0.02, 1};
  int i;

  set_contexts(&s, "cpu(0),cpu(1)");
  for (i = 1; i < argc; i += 2) {
    const char *option = argv[i], *value = argv[i + 1];

    if (!strcmp(option, "--help")) {
      fputs(help, stdout);
      exit(EXIT_SUCCESS);
    }
    if (!value) fail("%s needs a value; see --help", option);
    if (!strcmp(option, "--contexts"))
      set_contexts(&s, value);
    else if (!strcmp(option, "--layers"))
      s.layers = (long)number(option, value, 1, MAX_LAYERS);
    else if (!strcmp(option, "--hidden"))
      s.hidden = (long)number(option, value, 1, 4096);
    else if (!strcmp(option, "--bits"))
      s.bits = (long)number(option, value, 2, MAX_BITS);
    else if (!strcmp(option, "--batch"))
      s.batch = (long)number(option, value, 1, 65536);
    else if (!strcmp(option, "--steps"))
      s.steps = (long)number(option, value, WARM_UP + 1, 1e6);
    else if (!strcmp(option, "--lr"))
      s.lr = number(option, value, 0, 1000);
    else if (!strcmp(option, "--threads"))
      s.threads = (long)number(option, value, 0, 1024);
    else if (!strcmp(option, "--seed"))
      s.seed = (unsigned long)number(option, value, 0, 4294967295.0);
    else
      fail("there is no option %s; see --help", option);
  }
  return s;
}

/* ---- the network ------------------------------------------------------------------------------------------------- */

/* An operator on inputs whose handles it takes, ended by NULL; then attributes: pairs of text, ended by NULL. All nodes
 * of a layer are in one context group. */
static cohort_symbol *node(const char *op, const char *group, ...) {
  const char *keys[8] = {"ctx_group"}, *values[8] = {group};
  cohort_symbol *inputs[MAX_BITS + 1], *output;
  size_t num_inputs = 0, num = 1, i;
  va_list rest;

  va_start(rest, group);
  while ((inputs[num_inputs] = va_arg(rest, cohort_symbol *)) != NULL) ++num_inputs;
  while ((keys[num] = va_arg(rest, const char *)) != NULL) values[num++] = va_arg(rest, const char *);
  va_end(rest);
  OK(cohort_symbol_create(op, NULL, keys, values, num, inputs, NULL, num_inputs, &output));
  for (i = 0; i < num_inputs; ++i) cohort_symbol_free(inputs[i]);
  return output;
}

static cohort_symbol *variable(const char *name) {
  cohort_symbol *symbol;

  OK(cohort_symbol_variable(name, NULL, NULL, 0, &symbol));
  return symbol;
}

static cohort_symbol *copy_handle(const cohort_symbol *symbol) {
  cohort_symbol *same;

  OK(cohort_symbol_output(symbol, 0, &same));
  return same;
}

/* One layer at one bit: takes its input, replaces its cell and hidden state (NULL at the first bit, when both are
 * zeros) and returns a handle on the new hidden state. The weights are the same variables at each bit. */
static cohort_symbol *make_cell(const settings *s, long layer, cohort_symbol *input, cohort_symbol *const weights[3],
                                cohort_symbol **cell, cohort_symbol **hidden) {
  char group[32], units[32];
  cohort_symbol *gates, *gate[4], *activated;
  size_t i;

  sprintf(group, "layer%ld", layer);
  sprintf(units, "%ld", 4 * s->hidden);
  gates = node("FullyConnected", group, input, copy_handle(weights[0]), copy_handle(weights[1]), NULL, "num_hidden",
               units, NULL);
  if (*hidden) {
    cohort_symbol *past = node("FullyConnected", group, *hidden, copy_handle(weights[2]), NULL, "num_hidden", units,
                               "no_bias", "True", NULL);

    gates = node("elemwise_add", group, gates, past, NULL, NULL);
  }
  gates = node("SliceChannel", group, gates, NULL, "num_outputs", "4", NULL);
  for (i = 0; i < 4; ++i) OK(cohort_symbol_output(gates, i, &gate[i]));
  cohort_symbol_free(gates);
  for (i = 0; i < 3; ++i) gate[i] = node("Activation", group, gate[i], NULL, "act_type", "sigmoid", NULL);
  gate[3] = node("Activation", group, gate[3], NULL, "act_type", "tanh", NULL);
  activated = node("elemwise_mul", group, gate[0], gate[3], NULL, NULL);
  if (*cell) {
    activated =
        node("elemwise_add", group, activated, node("elemwise_mul", group, gate[1], *cell, NULL, NULL), NULL, NULL);
  } else {
    cohort_symbol_free(gate[1]); /* there is nothing to forget */
  }
  *cell = activated;
  activated = node("Activation", group, copy_handle(*cell), NULL, "act_type", "tanh", NULL);
  *hidden = node("elemwise_mul", group, gate[2], activated, NULL, NULL);
  return copy_handle(*hidden);
}

/* The LSTM unrolled over the bits of `data` (bits, batch, 2), and a classifier behind its last layer that decides for
 * each bit whether the sum's bit is a one. */
static cohort_symbol *make_adder(const settings *s) {
  static const char *const kinds[] = {"i2h_weight", "i2h_bias", "h2h_weight"};
  cohort_symbol *weights[MAX_LAYERS][3], *cell[MAX_LAYERS] = {NULL}, *hidden[MAX_LAYERS] = {NULL};
  cohort_symbol *bits[MAX_BITS], *input, *all, *label;
  char name[64], count[32], last[32];
  const char *const keys[] = {"num_args", "dim", "ctx_group"}, *const values[] = {count, "0", last};
  long layer, bit;
  int i;

  for (layer = 0; layer < s->layers; ++layer)
    for (i = 0; i < 3; ++i) {
      sprintf(name, "layer%ld_%s", layer, kinds[i]);
      weights[layer][i] = variable(name);
    }
  sprintf(count, "%ld", s->bits);
  sprintf(last, "layer%ld", s->layers - 1);
  input = node("SliceChannel", "layer0", variable("data"), NULL, "num_outputs", count, "axis", "0", "squeeze_axis",
               "True", NULL);
  for (bit = 0; bit < s->bits; ++bit) {
    OK(cohort_symbol_output(input, (size_t)bit, &bits[bit]));
    for (layer = 0; layer < s->layers; ++layer)
      bits[bit] = make_cell(s, layer, bits[bit], weights[layer], &cell[layer], &hidden[layer]);
  }
  OK(cohort_symbol_create("Concat", "all_bits", keys, values, 3, bits, NULL, (size_t)s->bits, &all));
  all = node("FullyConnected", last, all, variable("classifier_weight"), variable("classifier_bias"), NULL,
             "num_hidden", "2", NULL);
  label = node("Reshape", last, variable("label"), NULL, "shape", "(-1,)", NULL);
  all = node("SoftmaxOutput", last, all, label, NULL, NULL);
  cohort_symbol_free(input);
  for (bit = 0; bit < s->bits; ++bit) cohort_symbol_free(bits[bit]);
  for (layer = 0; layer < s->layers; ++layer) {
    cohort_symbol_free(cell[layer]);
    cohort_symbol_free(hidden[layer]);
    for (i = 0; i < 3; ++i) cohort_symbol_free(weights[layer][i]);
  }
  return all;
}

/* Binds the network for training. The group has one context, its first; the map says which nodes run elsewhere. Without
 * a map everything is on that context. */
static cohort_group *make_group(const settings *s, const cohort_symbol *symbol, int one_device) {
  const int64_t data_shape[] = {s->bits, s->batch, 2};
  const char *params[3 * MAX_LAYERS + 8], *names[MAX_LAYERS];
  char layers[MAX_LAYERS][16];
  cohort_context contexts[MAX_LAYERS];
  cohort_group_options options = COHORT_GROUP_OPTIONS_INIT;
  cohort_descs *data, *label;
  cohort_group *group;
  size_t num_params, i;

  for (i = 0; i < (size_t)s->layers; ++i) {
    sprintf(layers[i], "layer%u", (unsigned)i);
    names[i] = layers[i];
    contexts[i] = s->contexts[i * s->num_contexts / (size_t)s->layers];
  }
  if (!one_device) {
    options.ctx_group_names = names;
    options.ctx_group_contexts = contexts;
    options.num_ctx_groups = (size_t)s->layers;
  }
  options.num_threads = (int32_t)s->threads;
  OK(cohort_symbol_num_names(symbol, COHORT_SYMBOL_ARGUMENTS, &num_params));
  for (i = 0; i < num_params; ++i) OK(cohort_symbol_name_at(symbol, COHORT_SYMBOL_ARGUMENTS, i, &params[i]));
  OK(cohort_descs_create(&data));
  OK(cohort_descs_add(data, "data", data_shape, 3, COHORT_DTYPE_FLOAT32, "TNC"));
  OK(cohort_descs_create(&label));
  OK(cohort_descs_add(label, "label", data_shape, 2, COHORT_DTYPE_FLOAT32, "TN"));
  /* Parameters are all arguments but the first and the last one: data and label. */
  OK(cohort_group_create(symbol, s->contexts, 1, data, label, params + 1, num_params - 2, 1, &options, &group));
  cohort_descs_free(data);
  cohort_descs_free(label);
  return group;
}

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

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* A batch of sums: the bits of both numbers (bits, batch, 2), and those of their sum (bits, batch). */
typedef struct sums {
  float *bits, *bits_of_sum;
  cohort_ndarray *data, *label;
} sums;

static sums make_sums(const settings *s) {
  const int64_t shape[] = {s->bits, s->batch, 2};
  const size_t num = (size_t)s->bits * (size_t)s->batch;
  sums batch;

  batch.bits = allocate(2 * num * sizeof(float));
  batch.bits_of_sum = allocate(num * sizeof(float));
  OK(cohort_ndarray_zeros(shape, 3, COHORT_DTYPE_FLOAT32, NULL, &batch.data));
  OK(cohort_ndarray_zeros(shape, 2, COHORT_DTYPE_FLOAT32, NULL, &batch.label));
  return batch;
}

static void free_sums(sums *batch) {
  free(batch->bits);
  free(batch->bits_of_sum);
  cohort_ndarray_free(batch->data);
  cohort_ndarray_free(batch->label);
}

static void draw_sums(const settings *s, sums *batch, uint64_t *random_state) {
  const uint64_t largest = (UINT64_C(1) << (s->bits - 1)) - 1; /* their sum has no more than s->bits bits */
  const size_t num = (size_t)s->bits * (size_t)s->batch;
  long i, bit;

  for (i = 0; i < s->batch; ++i) {
    const uint64_t a = random_number(random_state) & largest, b = random_number(random_state) & largest;

    for (bit = 0; bit < s->bits; ++bit) {
      const size_t at = (size_t)(bit * s->batch + i);

      batch->bits[2 * at] = (float)(a >> bit & 1);
      batch->bits[2 * at + 1] = (float)(b >> bit & 1);
      batch->bits_of_sum[at] = (float)((a + b) >> bit & 1);
    }
  }
  OK(cohort_ndarray_write(batch->data, batch->bits, 2 * num * sizeof(float)));
  OK(cohort_ndarray_write(batch->label, batch->bits_of_sum, num * sizeof(float)));
}

/* ---- training and test ------------------------------------------------------------------------------------------- */

/* Trains, and prints NUM_LINES lines unless it is to be quiet. Returns the steps per second. */
static double train(const settings *s, cohort_group *group, int quiet) {
  const char *const keys[] = {"learning_rate", "rescale_grad"};
  char lr[32], rescale[32];
  const char *const values[] = {lr, rescale};
  uint64_t random_state = s->seed;
  cohort_optimizer *adam;
  cohort_metric *loss;
  sums batch = make_sums(s);
  double elapsed = 0, value;
  long step;

  sprintf(lr, "%.17g", s->lr);
  sprintf(rescale, "%.17g", 1.0 / (double)(s->batch * s->bits)); /* gradients are sums over all bits */
  OK(cohort_optimizer_create("adam", keys, values, 2, &adam));
  OK(cohort_metric_create("cross-entropy", NULL, NULL, 0, &loss));
  for (step = 0; step < s->steps; ++step) {
    if (step == WARM_UP) {
      OK(cohort_group_wait(group));
      elapsed -= seconds();
    }
    draw_sums(s, &batch, &random_state);
    OK(cohort_group_forward(group, &batch.data, 1, &batch.label, 1, 1));
    OK(cohort_group_backward(group, NULL, 0));
    OK(cohort_group_update(group, adam, COHORT_UPDATE_ON_STORE));
    if ((step + 1) * NUM_LINES / s->steps == step * NUM_LINES / s->steps || quiet) continue;
    OK(cohort_metric_reset(loss));
    OK(cohort_group_update_metric(group, loss, &batch.label, 1));
    OK(cohort_metric_value(loss, 0, 0, NULL, &value));
    printf("step %5ld/%ld   loss %.4f\n", step + 1, s->steps, value);
    fflush(stdout);
  }
  OK(cohort_group_wait(group));
  elapsed += seconds();
  free_sums(&batch);
  cohort_metric_free(loss);
  cohort_optimizer_free(adam);
  return (double)(s->steps - WARM_UP) / elapsed;
}

/* The share of sums of one new batch that are right in all bits. */
static double test(const settings *s, cohort_group *group) {
  const size_t num = (size_t)s->bits * (size_t)s->batch;
  uint64_t random_state = s->seed + 1000000;
  float *odds = allocate(2 * num * sizeof(float)); /* probabilities of a zero and of a one, (bits, batch, 2) */
  sums batch = make_sums(s);
  cohort_ndarray *output;
  long i, bit, right = 0;

  draw_sums(s, &batch, &random_state);
  OK(cohort_group_forward(group, &batch.data, 1, NULL, 0, 0));
  OK(cohort_group_merged(group, COHORT_GROUP_OUTPUTS, 0, &output));
  OK(cohort_ndarray_read(output, odds, 2 * num * sizeof(float)));
  for (i = 0; i < s->batch; ++i) {
    int all = 1;

    for (bit = 0; bit < s->bits; ++bit) {
      const size_t at = (size_t)(bit * s->batch + i);

      all = all && (odds[2 * at + 1] > odds[2 * at]) == (batch.bits_of_sum[at] == 1);
    }
    right += all;
  }
  cohort_ndarray_free(output);
  free_sums(&batch);
  free(odds);
  return (double)right / (double)s->batch;
}

/* Whether all parameters are the same to the last bit. */
static int same_parameters(const cohort_group *a, const cohort_group *b) {
  const cohort_group *groups[2];
  cohort_arrays *args[2], *aux[2];
  size_t num, i, g;
  int same = 1;

  groups[0] = a;
  groups[1] = b;
  for (g = 0; g < 2; ++g) OK(cohort_group_copy_params(groups[g], &args[g], &aux[g]));
  OK(cohort_arrays_num(args[0], &num));
  for (i = 0; i < num; ++i) {
    unsigned char *bytes[2];
    int64_t size;

    for (g = 0; g < 2; ++g) {
      cohort_ndarray *array;

      OK(cohort_arrays_get(args[g], i, &array));
      OK(cohort_ndarray_size(array, &size));
      bytes[g] = allocate((size_t)size * sizeof(float));
      OK(cohort_ndarray_read(array, bytes[g], (size_t)size * sizeof(float)));
      cohort_ndarray_free(array);
    }
    same = same && memcmp(bytes[0], bytes[1], (size_t)size * sizeof(float)) == 0;
    free(bytes[0]);
    free(bytes[1]);
  }
  for (g = 0; g < 2; ++g) {
    cohort_arrays_free(args[g]);
    cohort_arrays_free(aux[g]);
  }
  return same;
}

int main(int argc, char **argv) {
  const settings s = read_options(argc, argv);
  cohort_symbol *symbol = make_adder(&s);
  cohort_group *spread, *alone;
  double spread_speed, alone_speed, right;
  int same;

  printf("an LSTM of %ld layers of %ld units learns to add numbers; its layers are on %s, Cohort %s\n", s.layers,
         s.hidden, s.contexts_text, cohort_version());
  spread = make_group(&s, symbol, 0);
  initialise(spread, symbol, s.seed);
  spread_speed = train(&s, spread, 0);
  right = test(&s, spread);
  alone = make_group(&s, symbol, 1);
  initialise(alone, symbol, s.seed);
  alone_speed = train(&s, alone, 1);
  same = same_parameters(spread, alone);
  printf("layers on %s: %.1f steps/s; all on the first one: %.1f steps/s\n", s.contexts_text, spread_speed,
         alone_speed);
  printf("parameters: %s\n", same ? "the same to the last bit" : "they differ");
  cohort_group_free(spread);
  cohort_group_free(alone);
  cohort_symbol_free(symbol);
  if (cohort_live_handles() != 0) fail("%lu handles were not freed", (unsigned long)cohort_live_handles());
  printf("sums right: %.4f\n", right);
  return same ? EXIT_SUCCESS : EXIT_FAILURE;
}
